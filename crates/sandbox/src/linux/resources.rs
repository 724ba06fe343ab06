//! Limits on what one process may use. They are inherited, and cannot be raised again.

use std::io;

use super::succeed;
use crate::confinement::Limits;

/// The limits to set, prepared.
#[derive(Clone, Debug)]
pub(super) struct Resources {
    limits: Vec<(libc::__rlimit_resource_t, u64)>,
}

impl Resources {
    pub(super) fn of(limits: &Limits) -> Self {
        // A dump of memory would put what a program knows into a file.
        let mut all = vec![(libc::RLIMIT_CORE, 0)];
        all.extend(limits.memory.map(|bytes| (libc::RLIMIT_AS, bytes)));
        all.extend(limits.cpu.map(|time| (libc::RLIMIT_CPU, time.as_secs().max(1))));
        all.extend(limits.file_size.map(|bytes| (libc::RLIMIT_FSIZE, bytes)));
        Self { limits: all }
    }

    pub(super) fn apply(&self) -> io::Result<()> {
        for (resource, most) in &self.limits {
            let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
            // SAFETY: the kernel fills the structure, which is ours.
            succeed(unsafe { libc::getrlimit(*resource, &raw mut limit) })?;
            // One that is already lower stays.
            let most = (*most).min(limit.rlim_max);
            let limit = libc::rlimit { rlim_cur: most, rlim_max: most };
            // SAFETY: the kernel reads the structure, which is ours.
            succeed(unsafe { libc::setrlimit(*resource, &raw const limit) })?;
        }
        Ok(())
    }
}
