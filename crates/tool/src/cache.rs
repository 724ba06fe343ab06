//! Remembers what files held, for as long as they are unchanged.
//!
//! An entry belongs to one state of one file: device, inode, size, modification and change time. A
//! file that was changed a moment ago is not remembered, because it could change again within the
//! resolution of its time stamps. Whatever a tool writes is forgotten at once.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use cap_std::fs::{Metadata, MetadataExt};
use convoke_core::Timestamp;

/// Younger changes are not trusted: two could share one time stamp.
const SETTLE_MILLIS: i64 = 2_000;

/// Identifies one state of one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    /// Takes the stamp of an open file.
    pub fn of(metadata: &Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            size: metadata.size(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }

    fn has_settled(&self, now: Timestamp) -> bool {
        let changed = self.changed.0.max(self.modified.0).saturating_mul(1000);
        now.as_millis().saturating_sub(changed) > SETTLE_MILLIS
    }
}

/// A bounded memory of file contents. Cheap to clone; clones share it.
#[derive(Clone, Debug)]
pub struct ReadCache(Option<Arc<Mutex<Entries>>>);

#[derive(Debug)]
struct Entries {
    by_path: HashMap<PathBuf, Entry>,
    by_use: BTreeMap<u64, PathBuf>,
    uses: u64,
    bytes: usize,
    limit: usize,
}

#[derive(Debug)]
struct Entry {
    stamp: Stamp,
    content: Arc<str>,
    last_use: u64,
}

impl ReadCache {
    /// Remembers up to `limit` bytes of contents.
    pub fn new(limit: usize) -> Self {
        let entries =
            Entries { by_path: HashMap::new(), by_use: BTreeMap::new(), uses: 0, bytes: 0, limit };
        Self(Some(Arc::new(Mutex::new(entries))))
    }

    /// Remembers nothing.
    pub const fn off() -> Self {
        Self(None)
    }

    /// Returns what the file holds if it is still in this state.
    pub fn get(&self, path: &Path, stamp: Stamp) -> Option<Arc<str>> {
        let mut entries = self.0.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner);
        if entries.by_path.get(path)?.stamp == stamp {
            return entries.touch(path);
        }
        entries.remove(path);
        None
    }

    /// Remembers what the file holds in this state, if that state is old enough to be trusted.
    pub fn put(&self, path: &Path, stamp: Stamp, content: &str, now: Timestamp) {
        let Some(entries) = &self.0 else { return };
        if !stamp.has_settled(now) {
            return;
        }
        let mut entries = entries.lock().unwrap_or_else(PoisonError::into_inner);
        if content.len() <= entries.limit / 64 {
            entries.insert(path, stamp, content);
        }
    }

    /// Forgets one file.
    pub fn forget(&self, path: &Path) {
        if let Some(entries) = &self.0 {
            entries.lock().unwrap_or_else(PoisonError::into_inner).remove(path);
        }
    }

    /// Forgets everything.
    pub fn clear(&self) {
        if let Some(entries) = &self.0 {
            let mut entries = entries.lock().unwrap_or_else(PoisonError::into_inner);
            *entries = Entries {
                by_path: HashMap::new(),
                by_use: BTreeMap::new(),
                uses: 0,
                bytes: 0,
                limit: entries.limit,
            };
        }
    }
}

impl Entries {
    fn touch(&mut self, path: &Path) -> Option<Arc<str>> {
        self.uses += 1;
        let entry = self.by_path.get_mut(path)?;
        self.by_use.remove(&entry.last_use);
        self.by_use.insert(self.uses, path.to_path_buf());
        entry.last_use = self.uses;
        Some(Arc::clone(&entry.content))
    }

    fn insert(&mut self, path: &Path, stamp: Stamp, content: &str) {
        self.remove(path);
        self.uses += 1;
        self.bytes += content.len();
        self.by_use.insert(self.uses, path.to_path_buf());
        let entry = Entry { stamp, content: content.into(), last_use: self.uses };
        self.by_path.insert(path.to_path_buf(), entry);
        while self.bytes > self.limit {
            let Some((_, oldest)) = self.by_use.pop_first() else { break };
            self.remove(&oldest);
        }
    }

    fn remove(&mut self, path: &Path) {
        if let Some(entry) = self.by_path.remove(path) {
            self.by_use.remove(&entry.last_use);
            self.bytes -= entry.content.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stamp(size: u64) -> Stamp {
        Stamp { device: 1, inode: 2, size, modified: (10, 0), changed: (10, 0) }
    }

    const LATER: Timestamp = Timestamp::from_millis(60_000);

    #[test]
    fn only_the_same_state_is_remembered() {
        let cache = ReadCache::new(64_000);
        let path = Path::new("/a");
        cache.put(path, stamp(5), "hello", LATER);
        assert_eq!(cache.get(path, stamp(5)).as_deref(), Some("hello"));
        assert_eq!(cache.get(path, stamp(6)), None);
        assert_eq!(cache.get(path, stamp(5)), None, "a state that was seen to pass is forgotten");
    }

    #[test]
    fn a_fresh_change_is_not_trusted() {
        let cache = ReadCache::new(64_000);
        cache.put(Path::new("/a"), stamp(5), "hello", Timestamp::from_millis(11_000));
        assert_eq!(cache.get(Path::new("/a"), stamp(5)), None);
    }

    #[test]
    fn the_oldest_use_goes_first_and_forgetting_works() {
        let cache = ReadCache::new(640);
        let (a, b, c) = (Path::new("/0"), Path::new("/1"), Path::new("/c"));
        let ten = "0123456789";
        for number in 0..64 {
            cache.put(Path::new(&format!("/{number}")), stamp(10), ten, LATER);
        }
        assert!(cache.get(a, stamp(10)).is_some());
        cache.put(c, stamp(10), ten, LATER);
        assert!(cache.get(b, stamp(10)).is_none(), "unused the longest");
        assert!(cache.get(a, stamp(10)).is_some());
        cache.forget(a);
        assert!(cache.get(a, stamp(10)).is_none());
        cache.clear();
        assert!(cache.get(c, stamp(10)).is_none());
        assert!(ReadCache::off().get(c, stamp(10)).is_none());
    }
}
