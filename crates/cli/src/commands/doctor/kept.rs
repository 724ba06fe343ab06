//! Whether runs can be kept: the state directory.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use convoke_core::file_kind;
use rustix::fs::{Access, access, statvfs};
use serde::Serialize;
use serde_json::Value;

use super::Check;
use crate::bytes;
use crate::session::Session;

const NAME: &str = "state";
/// With less it is soon full.
const LITTLE: u64 = 100 * 1000 * 1000;

/// What there is to know about the state directory.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Kept {
    path: PathBuf,
    exists: bool,
    writable: bool,
    /// Whether it is the user's; unknown where it is not there.
    ours: Option<bool>,
    /// What in it others may look into.
    open: Vec<PathBuf>,
    free_bytes: Option<u64>,
    /// What is special about the file system, where something is.
    file_system: Option<&'static str>,
}

/// Looks at the state directory, and makes nothing.
pub(super) fn check(session: &Session<'_>) -> Check {
    let Ok(store) = session.existing_store() else {
        return Check::warn(NAME, "there is no place for it, so no run is kept")
            .hint("set HOME, or name a directory with --state or CONVOKE_STATE");
    };
    let root = store.root();
    let shown = root.display();
    if let Some(what) = is_no_directory(root) {
        return Check::warn(NAME, format!("{shown} cannot be used: {what}"))
            .hint("move it away, or name another directory with --state or CONVOKE_STATE");
    }
    let kept = Kept::at(root);
    let doubts = kept.doubts();
    let check = match (doubts.is_empty(), kept.exists) {
        (true, true) => Check::ok(NAME, format!("{shown} is yours alone and can be written")),
        (true, false) => Check::ok(NAME, format!("{shown} is made when it is needed")),
        (false, _) => {
            let texts: Vec<&str> = doubts.iter().map(|(text, _)| text.as_str()).collect();
            Check::warn(NAME, format!("{shown} {}", texts.join("; ")))
        }
    };
    let check = doubts.into_iter().fold(check, |check, (_, hint)| check.hint(hint));
    check.details(serde_json::to_value(kept).unwrap_or(Value::Null))
}

fn is_no_directory(path: &Path) -> Option<String> {
    let metadata = path.metadata().ok().filter(|metadata| !metadata.is_dir())?;
    Some(format!("it is {}", file_kind::name(metadata.mode())))
}

impl Kept {
    fn at(root: &Path) -> Self {
        let there = root.metadata().ok();
        // What is not there is made in the nearest directory that is.
        let nearest = root.ancestors().find(|path| path.is_dir()).unwrap_or(root);
        let user = rustix::process::geteuid().as_raw();
        let inside = [root.to_owned(), root.join("runs"), root.join("heads")];
        let is_open = |path: &PathBuf| {
            path.metadata().is_ok_and(|metadata| metadata.is_dir() && metadata.mode() & 0o077 != 0)
        };
        Self {
            path: root.to_owned(),
            exists: there.is_some(),
            writable: access(nearest, Access::WRITE_OK | Access::EXEC_OK).is_ok(),
            ours: there.map(|metadata| metadata.uid() == user),
            open: inside.into_iter().filter(is_open).collect(),
            free_bytes: free_bytes(nearest),
            file_system: file_system(nearest),
        }
    }

    /// Returns what is not as it should be, each with what to do about it.
    fn doubts(&self) -> Vec<(String, String)> {
        let mut doubts = Vec::new();
        let mut doubt = |text: String, hint: String| doubts.push((text, hint));
        let elsewhere = || "name another directory with --state or CONVOKE_STATE".to_owned();
        if !self.writable {
            let verb = if self.exists { "written" } else { "made" };
            doubt(format!("cannot be {verb}, so no run can be kept"), elsewhere());
        }
        if self.ours == Some(false) {
            doubt("belongs to somebody else, who can change what is kept".to_owned(), elsewhere());
        }
        if !self.open.is_empty() {
            let paths: Vec<String> =
                self.open.iter().map(|path| path.display().to_string()).collect();
            let hint = format!("`chmod 700 {}` closes it", paths.join(" "));
            doubt("can be looked into by other users of this machine".to_owned(), hint);
        }
        if let Some(free) = self.free_bytes.filter(|free| *free < LITTLE) {
            let hint = "`convoke runs gc` removes old runs; or make room".to_owned();
            doubt(format!("has little space left: {}", bytes::show(free)), hint);
        }
        if let Some(special) = self.file_system {
            doubt(format!("is {special}"), elsewhere());
        }
        doubts
    }
}

fn free_bytes(path: &Path) -> Option<u64> {
    let status = statvfs(path).ok()?;
    Some(status.f_bavail.saturating_mul(status.f_frsize))
}

/// Says what is special about a file system on which a sync does not mean that something is on a disk here.
#[cfg(target_os = "linux")]
fn file_system(path: &Path) -> Option<&'static str> {
    const IN_MEMORY: &str = "kept in memory: all runs are lost when this machine is switched off";
    const ELSEWHERE: &str =
        "on a file system of another machine, where locks and syncs may not mean what they do here";
    let status = rustix::fs::statfs(path).ok()?;
    match u32::try_from(status.f_type).ok()? {
        // tmpfs, ramfs
        0x0102_1994 | 0x8584_58f6 => Some(IN_MEMORY),
        // NFS, SMB, CIFS, SMB2, 9p
        0x6969 | 0x517b | 0xff53_4d42 | 0xfe53_4d42 | 0x0102_1997 => Some(ELSEWHERE),
        _ => None,
    }
}

#[cfg(not(target_os = "linux"))]
const fn file_system(_: &Path) -> Option<&'static str> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_that_is_not_as_it_should_be_is_said() {
        let fine = Kept {
            exists: true,
            writable: true,
            ours: Some(true),
            free_bytes: Some(LITTLE),
            ..Kept::default()
        };
        assert_eq!(fine.doubts(), []);
        let bad = Kept {
            ours: Some(false),
            writable: false,
            open: vec!["/s".into()],
            free_bytes: Some(LITTLE - 1),
            file_system: Some("somewhere else"),
            ..fine
        };
        let texts: Vec<String> = bad.doubts().into_iter().map(|(text, _)| text).collect();
        assert_eq!(texts.len(), 5, "{texts:?}");
        assert!(texts[3].starts_with("has little space left: "), "{texts:?}");
    }
}
