//! System calls that a confined program cannot make, as a seccomp filter.
//!
//! Landlock knows TCP only; this is what stops every other kind of socket. `io_uring` could open sockets
//! behind the filter's back, so it is not there at all; the kernel's keyring holds keys of others.

use std::collections::BTreeMap;
use std::io;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, sock_filter,
};

use super::succeed;
use crate::confinement::{Confinement, Network};
use crate::preflight::NotEnforceable;

/// On x86-64 the same calls exist a second time, with this bit in their numbers.
const SECOND_NUMBERS: i64 = 0x4000_0000;

/// The part of a socket's kind that is not a flag.
const KIND_OF_SOCKET: u64 = 0xf;
const DCCP: libc::c_int = 6;
const PACKET: libc::c_int = 10;

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
pub(super) struct Filter(BpfProgram);

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
        let refuse = build(sockets, libc::EACCES)?;
        Ok(Self(one_after_the_other(refuse, build(absent.collect(), libc::ENOSYS)?)))
    }

    /// Returns it as the kernel reads it.
    pub(super) fn bytes(&self) -> Vec<u8> {
        let bytes = |step: &sock_filter| {
            let jumps = [step.jt, step.jf];
            step.code.to_ne_bytes().into_iter().chain(jumps).chain(step.k.to_ne_bytes())
        };
        self.0.iter().flat_map(bytes).collect()
    }

    /// Applies it to the calling thread, for good.
    pub(super) fn apply(&self) -> io::Result<()> {
        let length = u16::try_from(self.0.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
        let filter = libc::sock_fprog { len: length, filter: self.0.as_ptr().cast_mut().cast() };
        // SAFETY: the kernel copies `length` instructions, laid out as it wants them, and changes none.
        succeed(unsafe {
            libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, 0, &raw const filter)
        })?;
        Ok(())
    }
}

/// Joins two filters: what the first allows the second still judges.
fn one_after_the_other(mut first: BpfProgram, second: BpfProgram) -> BpfProgram {
    const RETURN: u16 = 0x06;
    const JUMP: u16 = 0x05;
    let mut behind = u32::try_from(first.len()).unwrap_or(u32::MAX);
    for step in &mut first {
        behind = behind.saturating_sub(1);
        if step.code == RETURN && step.k == libc::SECCOMP_RET_ALLOW {
            *step = sock_filter { code: JUMP, jt: 0, jf: 0, k: behind };
        }
    }
    first.extend(second);
    first
}

fn both(call: i64) -> impl Iterator<Item = i64> {
    let second = cfg!(target_arch = "x86_64").then_some(call | SECOND_NUMBERS);
    std::iter::once(call).chain(second)
}

/// Refuses sockets of every family but the allowed ones. Pairs of connected sockets lead nowhere else,
/// and runtimes need them, so they stay. In a network of its own a program gets streams and datagrams,
/// which lead to itself and to the proxy.
fn sockets(
    confinement: &Confinement,
) -> Result<BTreeMap<i64, Vec<SeccompRule>>, seccompiler::BackendError> {
    let mut allowed = Vec::new();
    match confinement.network {
        Network::None => {}
        Network::All => allowed.extend([libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK]),
        Network::Hosts(_) => allowed.extend([libc::AF_INET, libc::AF_INET6]),
    }
    if confinement.local_sockets {
        allowed.push(libc::AF_UNIX);
    }
    let other_than = |family: &libc::c_int| {
        let family = u64::from(family.unsigned_abs());
        SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, family)
    };
    let conditions = allowed.iter().map(other_than).collect::<Result<Vec<_>, _>>()?;
    let mut refused = Vec::new();
    if !conditions.is_empty() {
        refused.push(SeccompRule::new(conditions)?);
    }
    if matches!(confinement.network, Network::Hosts(_)) {
        for kind in [libc::SOCK_RAW, libc::SOCK_RDM, libc::SOCK_SEQPACKET, DCCP, PACKET] {
            let kind = u64::from(kind.unsigned_abs());
            let operation = SeccompCmpOp::MaskedEq(KIND_OF_SOCKET);
            let is_kind = SeccompCondition::new(1, SeccompCmpArgLen::Dword, operation, kind)?;
            refused.push(SeccompRule::new(vec![is_kind])?);
        }
    }
    Ok(both(libc::SYS_socket).map(|call| (call, refused.clone())).collect())
}
