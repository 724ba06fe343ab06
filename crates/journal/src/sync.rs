//! Brings journals to the disk, off the path of those who write them.
//!
//! One thread serves a whole store. While it works, requests gather; the next round takes all of them.
//! A few files are synced one by one, many with one call for the whole file system. What is written
//! while a round is under way belongs to the next.
//!
//! The thread starts with the first request and ends when the last store and journal are gone, after it
//! has done what was asked. Nobody waits for it to end.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::fs::File;
use std::future::Future;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use crate::error::{JournalError, Tried};
use crate::files;
use crate::tape::{Tape, Work};

/// With more files than this, the whole file system is synced instead.
const FEW: usize = 8;

/// How much a crash of the machine may cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// Nothing is ever waited for: a crash of the machine may cost the last seconds.
    Relaxed,
    /// What was synced survives.
    #[default]
    Standard,
    /// Every event is on the disk before it is accepted.
    Strict,
}

/// What the system does to bring something to the disk.
pub(crate) trait Disk: Debug + Send + Sync {
    fn sync_file(&self, file: &File) -> io::Result<()>;
    fn sync_path(&self, path: &Path) -> io::Result<()>;
    fn sync_file_system(&self, file: &File) -> io::Result<()>;
}

/// The disk of the machine.
#[derive(Debug)]
pub(crate) struct SystemDisk;

impl Disk for SystemDisk {
    fn sync_file(&self, file: &File) -> io::Result<()> {
        file.sync_data()
    }

    fn sync_path(&self, path: &Path) -> io::Result<()> {
        files::open_any(path)?.sync_all()
    }

    #[cfg(target_os = "linux")]
    fn sync_file_system(&self, file: &File) -> io::Result<()> {
        Ok(rustix::fs::syncfs(file)?)
    }

    #[cfg(not(target_os = "linux"))]
    fn sync_file_system(&self, _: &File) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// Takes requests to sync.
#[derive(Debug)]
pub(crate) struct Syncer(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    disk: Box<dyn Disk>,
    queue: Mutex<Queue>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Queue {
    waiting: Vec<Arc<Tape>>,
    running: bool,
    over: bool,
}

impl Syncer {
    pub(crate) fn new(disk: impl Disk + 'static) -> Self {
        let (queue, changed) = (Mutex::default(), Condvar::new());
        Self(Arc::new(Shared { disk: Box::new(disk), queue, changed }))
    }

    /// Has a tape synced soon. Returns at once.
    pub(crate) fn request(&self, tape: &Arc<Tape>) {
        if !tape.ask_for_sync() {
            return;
        }
        let mut queue = self.0.queue.lock().unwrap_or_else(PoisonError::into_inner);
        queue.waiting.push(Arc::clone(tape));
        if !queue.running {
            let shared = Arc::clone(&self.0);
            let thread = thread::Builder::new().name("convoke-sync".into());
            queue.running = thread.spawn(move || shared.work()).is_ok();
        }
        if queue.running {
            self.0.changed.notify_one();
            return;
        }
        // No thread is to be had: then it is done here.
        let waiting = std::mem::take(&mut queue.waiting);
        drop(queue);
        self.0.round(&waiting);
    }
}

impl Drop for Syncer {
    fn drop(&mut self) {
        self.0.queue.lock().unwrap_or_else(PoisonError::into_inner).over = true;
        self.0.changed.notify_one();
    }
}

impl Shared {
    fn work(&self) {
        while let Some(tapes) = self.next_round() {
            self.round(&tapes);
        }
    }

    fn next_round(&self) -> Option<Vec<Arc<Tape>>> {
        let queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        let idle = |queue: &mut Queue| queue.waiting.is_empty() && !queue.over;
        let mut queue =
            self.changed.wait_while(queue, idle).unwrap_or_else(PoisonError::into_inner);
        let tapes = std::mem::take(&mut queue.waiting);
        (!tapes.is_empty()).then_some(tapes)
    }

    fn round(&self, tapes: &[Arc<Tape>]) {
        let work: Vec<_> = tapes.iter().map(|tape| (tape, tape.begin_sync())).collect();
        let files: usize = work.iter().map(|(_, work)| 1 + work.fresh.files.len()).sum();
        if let ([first, ..], true) = (tapes, files > FEW)
            && self.disk.sync_file_system(&first.file).is_ok()
        {
            for (tape, work) in work {
                tape.end_sync(&work, Ok(()));
            }
            return;
        }
        let mut done = BTreeSet::new();
        for (tape, work) in work {
            tape.end_sync(&work, self.sync_one(tape, &work, &mut done));
        }
    }

    fn sync_one(
        &self,
        tape: &Tape,
        work: &Work,
        done: &mut BTreeSet<PathBuf>,
    ) -> Result<(), JournalError> {
        for file in &work.fresh.files {
            self.disk.sync_path(file).tried("sync", file)?;
        }
        self.disk.sync_file(&tape.file).tried("sync", &tape.path)?;
        for directory in &work.fresh.directories {
            // All runs share a directory; it is synced once a round.
            if !done.contains(directory) {
                self.disk.sync_path(directory).tried("sync", directory)?;
                done.insert(directory.clone());
            }
        }
        Ok(())
    }
}

/// Waits until all that was accepted when it was made is on the disk.
#[derive(Debug)]
#[must_use = "nothing is waited for until this is awaited"]
pub struct Synced(Waiting);

#[derive(Debug)]
enum Waiting {
    Nothing,
    For { tape: Arc<Tape>, goal: u64 },
}

impl Synced {
    /// There is nothing to wait for.
    pub(crate) const fn already() -> Self {
        Self(Waiting::Nothing)
    }

    pub(crate) fn of(tape: &Arc<Tape>) -> Self {
        Self(Waiting::For { goal: tape.accepted(), tape: Arc::clone(tape) })
    }

    /// Waits without an async runtime; this thread does nothing else meanwhile.
    pub fn wait(mut self) -> Result<(), JournalError> {
        let waker = Waker::from(Arc::new(Unpark(thread::current())));
        let mut context = Context::from_waker(&waker);
        loop {
            match Pin::new(&mut self).poll(&mut context) {
                Poll::Ready(result) => return result,
                Poll::Pending => thread::park(),
            }
        }
    }
}

impl Future for Synced {
    type Output = Result<(), JournalError>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match &self.0 {
            Waiting::Nothing => Poll::Ready(Ok(())),
            Waiting::For { tape, goal } => tape.poll_synced(*goal, context.waker()),
        }
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

#[cfg(test)]
mod tests;
