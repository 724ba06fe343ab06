//! How Linux enforces a confinement.
//!
//! A program is started in two steps. [`Cages`] prepares everything while memory can be had; what
//! [`Cage::enter`] does happens between fork and exec, and makes nothing but system calls.

pub(crate) mod calls;
pub(crate) mod files;
pub(crate) mod guard;
pub(crate) mod process;
mod resources;
mod rights;

use std::io::{self, PipeReader};
use std::os::fd::AsRawFd;
use std::sync::{Arc, Mutex, PoisonError};

use crate::confinement::Confinement;
use crate::preflight::NotEnforceable;
use files::FileRules;
use resources::Resources;

/// A confinement that has been prepared, for many programs.
#[derive(Debug)]
pub(crate) struct Cages {
    confinement: Confinement,
    /// Made for the first program: many runs start none.
    files: Mutex<Option<Arc<FileRules>>>,
    calls: Arc<calls::Filter>,
    resources: Resources,
}

impl Cages {
    /// Prepares a confinement.
    pub(crate) fn new(confinement: Confinement) -> Result<Self, NotEnforceable> {
        let confinement = files::settle(confinement)?;
        Ok(Self {
            files: Mutex::default(),
            calls: Arc::new(calls::Filter::of(&confinement)?),
            resources: Resources::of(&confinement.limits),
            confinement,
        })
    }

    /// Returns what was prepared.
    pub(crate) const fn confinement(&self) -> &Confinement {
        &self.confinement
    }

    /// Makes a cage for one program, as the files are now.
    pub(crate) fn next(&self) -> Result<Cage, NotEnforceable> {
        let mut kept = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        let files = match kept.take().filter(|files| files.are_current()) {
            Some(files) => files,
            None => Arc::new(FileRules::of(&self.confinement)?),
        };
        *kept = Some(Arc::clone(&files));
        Ok(Cage {
            files,
            calls: Arc::clone(&self.calls),
            resources: self.resources.clone(),
            processes: self.confinement.limits.processes,
        })
    }
}

/// Everything a child needs to confine itself.
pub(crate) struct Cage {
    files: Arc<FileRules>,
    calls: Arc<calls::Filter>,
    resources: Resources,
    processes: Option<u32>,
}

impl Cage {
    /// Confines the calling process for good. The guard stays behind and watches `control`.
    ///
    /// # Safety
    ///
    /// The caller is a child between fork and exec, with one thread.
    pub(crate) unsafe fn enter(&self, control: &PipeReader) -> io::Result<()> {
        // SAFETY: the caller promises what it needs.
        unsafe { guard::split(control.as_raw_fd(), self.processes)? };
        close_on_exec()?;
        self.resources.apply()?;
        rights::drop_all_but_files()?;
        self.files.apply()?;
        // Last, since it may forbid what the others need.
        self.calls.apply()
    }
}

/// Leaves the program nothing that we have open but its streams.
fn close_on_exec() -> io::Result<()> {
    const FIRST: u32 = 3;
    // SAFETY: takes numbers only, and closes nothing before exec.
    succeed(unsafe {
        libc::syscall(libc::SYS_close_range, FIRST, u32::MAX, libc::CLOSE_RANGE_CLOEXEC)
    })?;
    Ok(())
}

/// Turns the answer of a system call into a result.
fn succeed(answer: impl Into<i64>) -> io::Result<i64> {
    match answer.into() {
        failed if failed < 0 => Err(io::Error::last_os_error()),
        fine => Ok(fine),
    }
}
