//! What the system says about a process.

use std::path::Path;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::time::{ClockId, clock_gettime};

use crate::Result;

/// Returns how much processor time this process has used.
pub(crate) fn own_cpu() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or_default())
}

/// Memory of a process, in bytes.
#[derive(Clone, Copy, Default)]
pub(crate) struct Memory {
    pub(crate) now: u64,
    pub(crate) peak: u64,
}

impl Memory {
    /// Reads that of this process.
    pub(crate) fn own() -> Result<Self> {
        Self::at(Path::new("/proc/self/status"))
    }

    /// Reads that of another process; nothing if it has ended.
    pub(crate) fn of(process: u32) -> Result<Self> {
        Self::at(Path::new(&format!("/proc/{process}/status")))
    }

    fn at(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path)?;
        let bytes = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name))?;
            Some(line.split_whitespace().next()?.parse::<u64>().ok()? * 1024)
        };
        Ok(Self {
            now: bytes("VmRSS:").unwrap_or_default(),
            peak: bytes("VmHWM:").unwrap_or_default(),
        })
    }
}

/// Allows this process and those it starts this many open files, or as many as the system lets it,
/// and returns how many.
pub(crate) fn raise_open_files(wanted: u64) -> u64 {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let is_enough = |limit: Option<u64>| limit.is_none_or(|limit| limit >= wanted);
    let raised = if is_enough(current) {
        return current.unwrap_or(u64::MAX);
    } else if is_enough(maximum) {
        setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum })
    } else {
        // Whoever may, raises the upper limit as well; otherwise what there is has to do.
        setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum: Some(wanted) })
            .or_else(|_| setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }))
    };
    if raised.is_ok() { getrlimit(Resource::Nofile).current } else { current }.unwrap_or(u64::MAX)
}
