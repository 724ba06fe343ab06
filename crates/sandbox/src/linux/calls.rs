//! System calls that a confined program cannot make, as a seccomp filter.
//!
//! Landlock knows TCP only; this is what stops every other kind of socket. `io_uring` could open sockets
//! behind the filter's back, so it is not there at all; the kernel's keyring holds keys of others.

use std::collections::BTreeMap;
use std::io;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch,
};

use super::succeed;
use crate::confinement::{Confinement, Network};
use crate::preflight::NotEnforceable;

/// On x86-64 the same calls exist a second time, with this bit in their numbers.
const SECOND_NUMBERS: i64 = 0x4000_0000;

/// Calls that answer as if the kernel did not have them, so that programs do without.
const ABSENT: &[i64] = &[
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
];

/// Tells whether the kernel can refuse calls with an error.
pub(crate) fn available() -> bool {
    let action: u32 = libc::SECCOMP_RET_ERRNO;
    // SAFETY: the kernel reads four bytes at the address, which stays valid for the call.
    let answer = unsafe {
        libc::syscall(libc::SYS_seccomp, libc::SECCOMP_GET_ACTION_AVAIL, 0, &raw const action)
    };
    answer == 0 && TargetArch::try_from(std::env::consts::ARCH).is_ok()
}

/// A filter, ready to be applied.
#[derive(Debug)]
pub(super) struct Filter {
    refuse: BpfProgram,
    hide: BpfProgram,
}

impl Filter {
    pub(super) fn of(confinement: &Confinement) -> Result<Self, NotEnforceable> {
        let cannot = |why: String| {
            NotEnforceable::new("limits on system calls", why, "use a 64-bit x86 or ARM machine")
        };
        let architecture = TargetArch::try_from(std::env::consts::ARCH)
            .map_err(|error| cannot(error.to_string()))?;
        let build = |rules, errno: i32| -> Result<BpfProgram, NotEnforceable> {
            SeccompFilter::new(
                rules,
                SeccompAction::Allow,
                SeccompAction::Errno(errno.unsigned_abs()),
                architecture,
            )
            .and_then(BpfProgram::try_from)
            .map_err(|error| cannot(error.to_string()))
        };
        let sockets = sockets(confinement).map_err(|error| cannot(error.to_string()))?;
        let absent = ABSENT.iter().flat_map(|call| both(*call)).map(|call| (call, Vec::new()));
        Ok(Self {
            refuse: build(sockets, libc::EACCES)?,
            hide: build(absent.collect(), libc::ENOSYS)?,
        })
    }

    /// Applies it to the calling thread, for good.
    pub(super) fn apply(&self) -> io::Result<()> {
        for program in [&self.refuse, &self.hide] {
            let length = u16::try_from(program.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
            let filter =
                libc::sock_fprog { len: length, filter: program.as_ptr().cast_mut().cast() };
            // SAFETY: the kernel copies `length` instructions, laid out as it wants them, and changes none.
            succeed(unsafe {
                libc::syscall(
                    libc::SYS_seccomp,
                    libc::SECCOMP_SET_MODE_FILTER,
                    0,
                    &raw const filter,
                )
            })?;
        }
        Ok(())
    }
}

fn both(call: i64) -> impl Iterator<Item = i64> {
    let second = cfg!(target_arch = "x86_64").then_some(call | SECOND_NUMBERS);
    std::iter::once(call).chain(second)
}

/// Refuses sockets of every family but the allowed ones. Pairs of connected sockets lead nowhere else,
/// and runtimes need them, so they stay.
fn sockets(
    confinement: &Confinement,
) -> Result<BTreeMap<i64, Vec<SeccompRule>>, seccompiler::BackendError> {
    let mut allowed = Vec::new();
    if confinement.network == Network::All {
        allowed.extend([libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK]);
    }
    if confinement.local_sockets {
        allowed.push(libc::AF_UNIX);
    }
    let other_than = |family: &libc::c_int| {
        let family = u64::from(family.unsigned_abs());
        SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, family)
    };
    let conditions = allowed.iter().map(other_than).collect::<Result<Vec<_>, _>>()?;
    let mut rules = BTreeMap::new();
    for call in both(libc::SYS_socket) {
        let rule = if conditions.is_empty() {
            Vec::new()
        } else {
            vec![SeccompRule::new(conditions.clone())?]
        };
        rules.insert(call, rule);
    }
    Ok(rules)
}
