//! Writes over the file-size limit of the process (`RLIMIT_FSIZE`).

use std::io;

/// Lets a write over the file-size limit fail with an error instead of ending the process by SIGXFSZ. Programs that are
/// started later still end by it, since a handler does not survive exec.
#[cfg(target_os = "linux")]
pub fn report_file_size_limit() -> io::Result<()> {
    extern "C" fn ignore(_: libc::c_int) {}
    let handler: extern "C" fn(libc::c_int) = ignore;
    // SAFETY: a zeroed `sigaction` is a valid one, with an empty mask; the handler does nothing, which is safe at any
    // moment; the old action is not asked for.
    let result = unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler as libc::sighandler_t;
        action.sa_flags = libc::SA_RESTART;
        libc::sigaction(libc::SIGXFSZ, &raw const action, std::ptr::null_mut())
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Does nothing: the process ends by the signal.
#[cfg(not(target_os = "linux"))]
pub fn report_file_size_limit() -> io::Result<()> {
    Ok(())
}
