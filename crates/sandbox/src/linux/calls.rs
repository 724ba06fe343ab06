//! System calls that a confined program cannot make, as a seccomp filter.
//!
//! Landlock knows TCP only; this is what stops every other kind of socket. `io_uring` could open sockets
//! behind the filter's back, so it is not there at all; the kernel's keyring holds keys of others. Nor
//! does Landlock cover the limits of other processes of the same user.
//!
//! No program makes a user namespace: inside one it would have capabilities, and much of the kernel that only
//! root reaches otherwise. A filter cannot read the flags of `clone3`, so that is not there either, and
//! libraries use `clone`.
//!
//! Where a program sees the processes of others, it cannot change how they are scheduled, and has no System V
//! objects. Threads of a program are then named by 0 alone: a thread schedules itself.

use std::collections::BTreeMap;
use std::io;

use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition,
    SeccompFilter, SeccompRule, TargetArch, sock_filter,
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
/// The arguments of `socket` and `socketpair`.
const FAMILY: u8 = 0;
const KIND: u8 = 1;
/// The arguments of `prlimit`: whose limit, and what it becomes.
const WHOSE: u8 = 0;
const NEW_LIMIT: u8 = 2;
/// The flags of `clone` and `unshare`.
const FLAGS: u8 = 0;
/// The arguments of `setpriority` and `ioprio_set`: the kind of target, and its number.
const NAMED_BY: u8 = 0;
const NAME: u8 = 1;
/// The kind of name that stands for all processes of a user, for `setpriority` and for `ioprio_set`.
const USER_PRIORITY: u64 = 2;
const USER_IO: u64 = 3;

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

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
    libc::SYS_clone3,
    libc::SYS_setns,
];

/// System V objects, which all programs of a machine share.
const SYSTEM_V: &[i64] = &[
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_shmdt,
    libc::SYS_msgget,
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_msgctl,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_semctl,
];

/// Calls that schedule a process, which their first argument names.
const SCHEDULING: &[i64] = &[
    libc::SYS_sched_setaffinity,
    libc::SYS_sched_setscheduler,
    libc::SYS_sched_setparam,
    libc::SYS_sched_setattr,
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
    /// Makes the filter for programs that see the processes of others, or only their own.
    pub(super) fn of(confinement: &Confinement, sees_others: bool) -> Result<Self, NotEnforceable> {
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
        let refused = refused(confinement, sees_others);
        let refused = refused.map_err(|error| cannot(error.to_string()))?;
        let shared: &[i64] = if sees_others { SYSTEM_V } else { &[] };
        let absent = ABSENT.iter().chain(shared).flat_map(|call| both(*call));
        let absent = absent.map(|call| (call, Vec::new()));
        let refuse = build(refused, libc::EACCES)?;
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

fn refused(confinement: &Confinement, sees_others: bool) -> Result<Rules, BackendError> {
    let mut rules = Rules::new();
    let mut calls = vec![
        (libc::SYS_socket, sockets(confinement)?),
        (libc::SYS_socketpair, pairs(confinement)?),
        (libc::SYS_prlimit64, vec![limits_of_others()?]),
        (libc::SYS_clone, vec![new_user_namespace()?]),
        (libc::SYS_unshare, vec![new_user_namespace()?]),
    ];
    if sees_others {
        let other = |argument| SeccompRule::new(vec![other_than(argument, 0)?]);
        for call in SCHEDULING {
            calls.push((*call, vec![other(WHOSE)?]));
        }
        for (call, user) in
            [(libc::SYS_setpriority, USER_PRIORITY), (libc::SYS_ioprio_set, USER_IO)]
        {
            let all = condition(NAMED_BY, SeccompCmpOp::Eq, user)?;
            calls.push((call, vec![other(NAME)?, SeccompRule::new(vec![all])?]));
        }
    }
    for (call, refused) in calls {
        rules.extend(both(call).map(|call| (call, refused.clone())));
    }
    Ok(rules)
}

/// Refuses sockets of every family but the allowed ones. In a network of its own a program gets streams
/// and datagrams, which lead to itself and to the proxy.
fn sockets(confinement: &Confinement) -> Result<Vec<SeccompRule>, BackendError> {
    let mut allowed = Vec::new();
    match confinement.network {
        Network::None => {}
        Network::All => allowed.extend([libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK]),
        Network::Hosts(_) => allowed.extend([libc::AF_INET, libc::AF_INET6]),
    }
    if confinement.local_sockets {
        allowed.push(libc::AF_UNIX);
    }
    if allowed.is_empty() {
        // A call without rules is refused whatever it is made with.
        return Ok(Vec::new());
    }
    let mut refused = vec![families_other_than(&allowed)?];
    if matches!(confinement.network, Network::Hosts(_)) {
        for kind in [libc::SOCK_RAW, libc::SOCK_RDM, libc::SOCK_SEQPACKET, DCCP, PACKET] {
            refused.push(of_kind(kind)?);
        }
    }
    Ok(refused)
}

/// Refuses pairs that could be pointed at somebody else later: a datagram socket can be connected again,
/// and sends to any path, though it has a partner. Asked for a raw one, the kernel makes that too. Pairs
/// of streams stay with each other, and runtimes need them.
fn pairs(confinement: &Confinement) -> Result<Vec<SeccompRule>, BackendError> {
    let mut refused = vec![families_other_than(&[libc::AF_UNIX])?];
    if !confinement.local_sockets {
        for kind in [libc::SOCK_DGRAM, libc::SOCK_RAW] {
            refused.push(of_kind(kind)?);
        }
    }
    Ok(refused)
}

/// Refuses a user namespace. The kernel reads the lower half of the flags alone.
fn new_user_namespace() -> Result<SeccompRule, BackendError> {
    let flag = u64::from(libc::CLONE_NEWUSER.unsigned_abs());
    SeccompRule::new(vec![condition(FLAGS, SeccompCmpOp::MaskedEq(flag), flag)?])
}

fn other_than(argument: u8, value: u64) -> Result<SeccompCondition, BackendError> {
    condition(argument, SeccompCmpOp::Ne, value)
}

fn condition(
    argument: u8,
    operation: SeccompCmpOp,
    value: u64,
) -> Result<SeccompCondition, BackendError> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operation, value)
}

/// Refuses to change the limits of a process that is named. A process changes its own without a name,
/// and may ask for those of others.
fn limits_of_others() -> Result<SeccompRule, BackendError> {
    let other = |argument, length| SeccompCondition::new(argument, length, SeccompCmpOp::Ne, 0);
    SeccompRule::new(vec![
        other(WHOSE, SeccompCmpArgLen::Dword)?,
        other(NEW_LIMIT, SeccompCmpArgLen::Qword)?,
    ])
}

fn families_other_than(allowed: &[libc::c_int]) -> Result<SeccompRule, BackendError> {
    let other_than = |family: &libc::c_int| {
        let family = u64::from(family.unsigned_abs());
        SeccompCondition::new(FAMILY, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, family)
    };
    SeccompRule::new(allowed.iter().map(other_than).collect::<Result<_, _>>()?)
}

fn of_kind(kind: libc::c_int) -> Result<SeccompRule, BackendError> {
    let operation = SeccompCmpOp::MaskedEq(KIND_OF_SOCKET);
    let kind = u64::from(kind.unsigned_abs());
    let is_kind = SeccompCondition::new(KIND, SeccompCmpArgLen::Dword, operation, kind)?;
    SeccompRule::new(vec![is_kind])
}
