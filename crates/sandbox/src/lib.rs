//! Confined processes. What a program may do is a [`Confinement`]; a [`ConfinedSpawner`] starts programs
//! that can do no more than that, and that all end with us.
//!
//! On Linux the kernel enforces it: Landlock, or mounts and namespaces made by bubblewrap, for files and
//! signals; seccomp for sockets; a network of its own and a proxy for a list of hosts; capabilities,
//! resource limits and control groups for the rest. [`Preflight`] tells what can be enforced on this
//! machine, and by which [`Backend`]. What cannot be is refused: a program never starts with more rights
//! than it was to have.
//!
//! A [`GuardedSpawner`] starts programs that may do what their user may, and that still all end with us.
//!
//! This is the one crate with `unsafe` code. It is needed between fork and exec, where only system calls
//! may be used; everything that takes memory is prepared before.

mod confinement;
mod file_size;
#[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "only the proxy asks"))]
mod host;
#[cfg(target_os = "linux")]
mod linux;
mod preflight;
#[cfg(target_os = "linux")]
mod proxy;
mod spawner;

pub use confinement::{Confinement, Limits, Network, secrets_of};
pub use file_size::report_file_size_limit;
pub use host::{AllowedHost, NotAHost, Reach};
pub use preflight::{Backend, Feature, NotEnforceable, Preflight, Tried};
pub use spawner::{ConfinedSpawner, GuardedSpawner};

/// Keeps other programs of this user from reading the memory and the variables of this process, and the kernel
/// from writing them to a file when it crashes. Programs that it starts are as readable as any. For the start of a
/// command: it holds for all threads, and for good.
pub fn close_memory() {
    #[cfg(target_os = "linux")]
    linux::close_memory();
}
