//! How the process ends: with a code of ours, or with that of a program it ran for somebody.

use std::process::{self, ExitStatus};

use convoke_core::ExitCode;

/// The code of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ended(u8);

impl Ended {
    /// There is no such program, as shells say it.
    pub(crate) const NOT_FOUND: Self = Self(127);
    /// There is one, and it cannot be started.
    pub(crate) const NOT_STARTED: Self = Self(126);

    /// As a program ended: with its own code, or with 128 and the signal that ended it.
    pub(crate) fn like(status: ExitStatus) -> Self {
        use std::os::unix::process::ExitStatusExt;
        let code = status.code().or_else(|| Some(128 + status.signal()?));
        Self(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(ExitCode::Failed as u8))
    }

    /// Returns the number.
    pub(crate) const fn code(self) -> u8 {
        self.0
    }

    /// Turns a good end into a bad one; one that is bad stays what it is.
    pub(crate) fn failed(self) -> Self {
        if self.0 == ExitCode::Done as u8 { ExitCode::Failed.into() } else { self }
    }
}

impl From<ExitCode> for Ended {
    fn from(code: ExitCode) -> Self {
        Self(code as u8)
    }
}

impl From<Ended> for process::ExitCode {
    fn from(ended: Ended) -> Self {
        Self::from(ended.0)
    }
}
