//! Limits on what one process may use. They are inherited, and cannot be raised again.

use std::io;

use super::succeed;
use crate::confinement::Limits;

/// How many seconds a program that ignores the signal has more than it should.
const GRACE_SECONDS: u64 = 1;

/// The limits to set, prepared.
#[derive(Clone, Debug)]
pub(super) struct Resources {
    limits: Vec<Resource>,
}

/// What may be used of a resource: so much until it is told, so much until it is refused.
#[derive(Clone, Copy, Debug)]
struct Resource {
    name: libc::__rlimit_resource_t,
    soft: u64,
    hard: u64,
}

impl Resources {
    pub(super) fn of(limits: &Limits) -> Self {
        let at_once = |name, most| Resource { name, soft: most, hard: most };
        // A dump of memory would put what a program knows into a file.
        let mut all = vec![at_once(libc::RLIMIT_CORE, 0)];
        all.extend(limits.memory_per_process.map(|bytes| at_once(libc::RLIMIT_AS, bytes)));
        // With a signal of its own first, so that whoever waits for the program learns why it ended.
        all.extend(limits.cpu_per_process.map(|time| {
            let soft = time.as_secs().max(1);
            Resource { name: libc::RLIMIT_CPU, soft, hard: soft.saturating_add(GRACE_SECONDS) }
        }));
        all.extend(limits.file_size.map(|bytes| at_once(libc::RLIMIT_FSIZE, bytes)));
        Self { limits: all }
    }

    pub(super) fn apply(&self) -> io::Result<()> {
        for Resource { name, soft, hard } in &self.limits {
            let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
            // SAFETY: the kernel fills the structure, which is ours.
            succeed(unsafe { libc::getrlimit(*name, &raw mut limit) })?;
            // One that is already lower stays.
            let hard = (*hard).min(limit.rlim_max);
            let limit = libc::rlimit { rlim_cur: (*soft).min(hard), rlim_max: hard };
            // SAFETY: the kernel reads the structure, which is ours.
            succeed(unsafe { libc::setrlimit(*name, &raw const limit) })?;
        }
        Ok(())
    }
}
