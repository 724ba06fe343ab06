//! What root may do besides files: nothing.
//!
//! Anybody else has nothing, or what comes with a user namespace of their own, and keeps none of it.
//! Root keeps the capabilities that concern who owns a file and who may open it, since it often works in
//! directories of others; the rules about files still hold.

use std::io;

use super::succeed;

const CHOWN: u32 = 0;
const DAC_OVERRIDE: u32 = 1;
const FOWNER: u32 = 3;
const FSETID: u32 = 4;
const KEPT: u32 = (1 << CHOWN) | (1 << DAC_OVERRIDE) | (1 << FOWNER) | (1 << FSETID);
/// The kernel knows fewer than this.
const MOST: u32 = 64;
const VERSION_3: u32 = 0x2008_0522;

#[repr(C)]
struct Header {
    version: u32,
    process: libc::c_int,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Set {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}

/// Drops all capabilities but those for files, for good.
pub(super) fn drop_all_but_files() -> io::Result<()> {
    // SAFETY: asks for a number.
    let is_root = unsafe { libc::geteuid() } == 0;
    let kept = if is_root { KEPT } else { 0 };
    for capability in
        (0..MOST).filter(|capability| *capability >= 32 || kept & (1 << capability) == 0)
    {
        // SAFETY: takes numbers only.
        let dropped = succeed(unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0) });
        match dropped {
            // The kernel does not know this one, so nobody has it.
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => break,
            // Without a user namespace nobody but root may, and nobody but root has any.
            Err(error) if !is_root && error.raw_os_error() == Some(libc::EPERM) => break,
            done => done?,
        };
    }
    if !is_root {
        return set(0);
    }
    let header = Header { version: VERSION_3, process: 0 };
    let mut sets = [Set::default(); 2];
    // SAFETY: the kernel fills two sets with this version, and both are ours.
    succeed(unsafe { libc::syscall(libc::SYS_capget, &raw const header, sets.as_mut_ptr()) })?;
    let [low, _] = sets;
    set(low.permitted & KEPT)
}

/// Keeps these capabilities and no other.
fn set(kept: u32) -> io::Result<()> {
    let header = Header { version: VERSION_3, process: 0 };
    let sets = [Set { effective: kept, permitted: kept, inheritable: 0 }, Set::default()];
    // SAFETY: the kernel reads two sets with this version, and both are ours.
    succeed(unsafe { libc::syscall(libc::SYS_capset, &raw const header, sets.as_ptr()) })?;
    Ok(())
}
