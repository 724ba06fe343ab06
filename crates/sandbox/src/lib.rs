//! Confined processes. What a program may do is a [`Confinement`]; a [`ConfinedSpawner`] starts programs
//! that can do no more than that, and that all end with us.
//!
//! On Linux the kernel enforces it: Landlock for files and signals, seccomp for sockets, capabilities
//! and resource limits for the rest. [`Preflight`] tells what can be enforced on this machine. What
//! cannot be is refused: a program never starts with more rights than it was to have.
//!
//! This is the one crate with `unsafe` code. It is needed between fork and exec, where only system calls
//! may be used; everything that takes memory is prepared before.

mod confinement;
#[cfg(target_os = "linux")]
mod linux;
mod preflight;
mod spawner;

pub use confinement::{Confinement, Limits, Network, secrets_of};
pub use preflight::{Feature, NotEnforceable, Preflight};
pub use spawner::ConfinedSpawner;
