//! How Linux enforces a confinement.
//!
//! A program is started in two steps. [`Cages`] prepares everything while memory can be had; what
//! [`Cage::enter`] does happens between fork and exec, and makes nothing but system calls.
//!
//! There are two kinds of walls. With Landlock the child confines itself. With bubblewrap the child
//! becomes `bwrap`, which makes a file system without what is hidden and then becomes the program. The
//! guard, the limits, the filter and the network are the same for both.

mod bubblewrap;
pub(crate) mod calls;
pub(crate) mod files;
pub(crate) mod group;
pub(crate) mod guard;
pub(crate) mod network;
mod own_processes;
pub(crate) mod process;
mod resources;
mod rights;
mod temporary;
mod user_namespace;

use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use convoke_core::ToolError;
use convoke_tool::Program;

use crate::confinement::{Confinement, Limits, Network};
use crate::host::Hosts;
use crate::preflight::{Backend, NotEnforceable};
use crate::proxy;
use bubblewrap::Wrapping;
pub(crate) use bubblewrap::try_out as try_bubblewrap;
use files::FileRules;
use group::{Group, Groups, Made};
use guard::Watch;
use network::Door;
use own_processes::OwnProcesses;
use resources::Resources;
use temporary::OwnDirectory;

/// A confinement that has been prepared, for many programs.
#[derive(Debug)]
pub(crate) struct Cages {
    confinement: Confinement,
    backend: Backend,
    /// Made for the first program: many runs start none.
    files: Mutex<Option<Arc<FileRules>>>,
    own: OwnDirectory,
    /// Made for the first program, which tells whether it gets processes of its own.
    calls: OnceLock<Arc<calls::Filter>>,
    resources: Resources,
    /// Where groups are made, if something is limited that only a group can hold.
    groups: Option<Groups>,
    hosts: Option<Arc<Hosts>>,
}

impl Cages {
    /// Prepares a confinement.
    pub(crate) fn new(confinement: Confinement, backend: Backend) -> Result<Self, NotEnforceable> {
        let confinement = files::settle(confinement, backend)?;
        let hosts = match &confinement.network {
            Network::Hosts(list) => Some(Arc::new(Hosts::parse(list)?)),
            Network::None | Network::All => None,
        };
        Ok(Self {
            files: Mutex::default(),
            own: OwnDirectory::of(&confinement),
            calls: OnceLock::new(),
            resources: Resources::of(&confinement.limits),
            groups: Groups::of(&confinement)?,
            hosts,
            backend,
            confinement,
        })
    }

    /// Returns what was prepared.
    pub(crate) const fn confinement(&self) -> &Confinement {
        &self.confinement
    }

    /// Returns who enforces it.
    pub(crate) const fn backend(&self) -> Backend {
        self.backend
    }

    /// Makes a cage for one program, as the files are now. It looks at many directories, so it is not for
    /// a thread on which others wait.
    pub(crate) fn prepare(&self, mut program: Program) -> Result<Prepared, ToolError> {
        let refused = |error: NotEnforceable| ToolError::permission(error.to_string());
        let failed = |error: io::Error| {
            ToolError::failed("the program's confinement could not be prepared").caused_by(&error)
        };
        let mut way_out = None;
        let mut door = None;
        if let Some(hosts) = &self.hosts {
            let made = Door::new().map_err(failed)?;
            way_out = Some((made.outside().map_err(failed)?, Arc::clone(hosts)));
            door = Some(made);
            program.environment.extend(proxy::variables(network::PORT));
        }
        let own = self.own.path();
        if let Some(own) = own {
            program.environment.insert("TMPDIR".to_owned(), own.display().to_string());
        }
        let own_processes = self.own_processes();
        let calls = self.calls(own_processes).map_err(refused)?;
        let walls = match self.backend {
            Backend::Landlock => {
                let files = self.files(own).map_err(refused)?;
                let own_proc = own_processes.is_some() && files::reads_proc(&self.confinement);
                Walls::Landlock { files, calls, own_proc }
            }
            Backend::Bubblewrap => {
                bubblewrap::find_program(&program)?;
                let wrapping = Wrapping::new(&self.confinement, own, &calls, &program.environment)?;
                program = wrapping.wrap(program);
                Walls::Bubblewrap(wrapping)
            }
        };
        let (made, group) = self.group().map_err(failed)?.unzip();
        let resources = self.resources.clone();
        let watch = self.watch();
        let cage = Cage { walls, resources, watch, own_processes, group, door };
        let limits = self.confinement.limits.clone();
        Ok(Prepared { program, cage, way_out, made, limits })
    }

    /// Returns how many processes there may be, those of bubblewrap included.
    fn processes(&self) -> Option<u32> {
        let beside = match self.backend {
            Backend::Landlock => 0,
            Backend::Bubblewrap => bubblewrap::PROCESSES,
        };
        self.confinement.limits.processes.map(|most| most.saturating_add(beside))
    }

    /// Returns how a program gets processes of its own, where that is ours to do and works. One that may
    /// send signals to others has to see them.
    fn own_processes(&self) -> Option<&'static OwnProcesses> {
        let is_ours = self.backend == Backend::Landlock && !self.confinement.signals;
        let is_possible = is_ours && !files::hides_below_proc(&self.confinement);
        is_possible.then(OwnProcesses::find).and_then(Result::ok)
    }

    fn calls(&self, own: Option<&OwnProcesses>) -> Result<Arc<calls::Filter>, NotEnforceable> {
        if let Some(made) = self.calls.get() {
            return Ok(Arc::clone(made));
        }
        let sees_others = self.backend == Backend::Landlock && own.is_none();
        let made = Arc::new(calls::Filter::of(&self.confinement, sees_others)?);
        Ok(Arc::clone(self.calls.get_or_init(|| made)))
    }

    fn watch(&self) -> Watch {
        let by_group = self.groups.as_ref().is_some_and(Groups::hold_processes);
        let processes = self.processes().filter(|_| !by_group);
        Watch { processes, wrapped: self.backend == Backend::Bubblewrap }
    }

    fn group(&self) -> io::Result<Option<(Made, Group)>> {
        let make = |groups: &Groups| groups.make(&self.confinement.limits, self.processes());
        self.groups.as_ref().map(make).transpose()
    }

    /// Keeps rules from being made until what it returns is dropped.
    #[cfg(test)]
    pub(crate) fn hold(&self) -> impl Drop + use<'_> {
        self.files.lock().unwrap()
    }

    fn files(&self, own: Option<&Path>) -> Result<Arc<FileRules>, NotEnforceable> {
        let mut kept = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        let files = match kept.take().filter(|files| files.are_current()) {
            Some(files) => files,
            None => Arc::new(FileRules::of(&self.confinement, own)?),
        };
        *kept = Some(Arc::clone(&files));
        Ok(files)
    }
}

/// Prepares a program that is not confined, but ends with us.
pub(crate) fn guarded(program: Program) -> Prepared {
    let watch = Watch { processes: None, wrapped: false };
    let resources = Resources::of(&Limits::default());
    let walls = Walls::None;
    let cage = Cage { walls, resources, watch, own_processes: None, group: None, door: None };
    Prepared { program, cage, way_out: None, made: None, limits: Limits::default() }
}

/// A program that can be started, and everything it is started with.
pub(crate) struct Prepared {
    /// What is started.
    pub(crate) program: Program,
    /// What it is started in.
    pub(crate) cage: Cage,
    /// Where the door of its network will be received, and whom it may talk to through it.
    pub(crate) way_out: Option<(UnixDatagram, Arc<Hosts>)>,
    /// Its group, removed if it is not started.
    made: Option<Made>,
    /// What it may use.
    limits: Limits,
}

/// Everything a child needs to confine itself.
pub(crate) struct Cage {
    walls: Walls,
    resources: Resources,
    watch: Watch,
    own_processes: Option<&'static OwnProcesses>,
    group: Option<Group>,
    door: Option<Door>,
}

enum Walls {
    /// There are none: it may do what its user may.
    None,
    Landlock {
        files: Arc<FileRules>,
        calls: Arc<calls::Filter>,
        /// Whether it may read the `/proc` of its own namespace.
        own_proc: bool,
    },
    Bubblewrap(Wrapping),
}

impl Cage {
    /// Confines the calling process for good. The guard stays behind and watches `control`.
    ///
    /// # Safety
    ///
    /// The caller is a child between fork and exec, with one thread.
    pub(crate) unsafe fn enter(&self, control: &UnixStream) -> io::Result<()> {
        // SAFETY: the caller promises what it needs.
        unsafe {
            let control = control.as_raw_fd();
            guard::split(control, self.watch, self.group.as_ref(), self.own_processes)?;
        }
        // The guard is behind: it is neither counted nor ended with the others.
        self.group.as_ref().map_or(Ok(()), Group::enter)?;
        self.door.as_ref().map_or(Ok(()), Door::enter)?;
        close_on_exec()?;
        self.resources.apply()?;
        match &self.walls {
            Walls::None => Ok(()),
            Walls::Landlock { files, calls, own_proc } => {
                rights::drop_all_but_files()?;
                files.apply(*own_proc)?;
                // Last, since it may forbid what the others need.
                calls.apply()
            }
            Walls::Bubblewrap(wrapping) => wrapping.keep_open(),
        }
    }
}

/// Makes this process unreadable for others, and leaves no dump of it. Where that is refused, everything else
/// still holds.
pub(crate) fn close_memory() {
    // SAFETY: takes numbers only.
    unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0) };
    Resources::of(&Limits::default()).apply().ok();
}

/// Leaves the program nothing that we have open but its streams.
fn close_on_exec() -> io::Result<()> {
    const FIRST: u32 = 3;
    // SAFETY: takes numbers only, and closes nothing before exec.
    succeed(unsafe {
        libc::syscall(libc::SYS_close_range, FIRST, u32::MAX, libc::CLOSE_RANGE_CLOEXEC)
    })?;
    Ok(())
}

/// Has a child do something, which makes nothing but system calls, and tells how it went.
fn in_child(act: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
    // SAFETY: the caller promises that it makes system calls only.
    wait_for(unsafe { fork(act)? })
}

/// Starts a child that does something and ends, with the number of the error as its exit code.
///
/// # Safety
///
/// `act` makes nothing but system calls: other threads may hold locks.
unsafe fn fork(act: impl FnOnce() -> io::Result<()>) -> io::Result<libc::pid_t> {
    // SAFETY: with these flags it is a plain fork; the child makes system calls only, and then ends.
    let child = succeed(unsafe { libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0) })?;
    if child == 0 {
        let code = act().err().map_or(0, |error| error.raw_os_error().unwrap_or(libc::EIO));
        // SAFETY: ends this process at once.
        unsafe { libc::_exit(code) };
    }
    libc::pid_t::try_from(child).map_err(|_| io::ErrorKind::InvalidData.into())
}

/// Waits for such a child, and returns its error.
fn wait_for(child: libc::pid_t) -> io::Result<()> {
    let mut how = 0;
    // SAFETY: the kernel writes one number, which is ours.
    while let Err(error) = succeed(unsafe { libc::waitpid(child, &raw mut how, 0) }) {
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
    match (libc::WIFEXITED(how), libc::WEXITSTATUS(how)) {
        (true, 0) => Ok(()),
        (true, error) => Err(io::Error::from_raw_os_error(error)),
        // Not made of text: this may be a process that must not take memory.
        (false, _) => Err(io::ErrorKind::ConnectionAborted.into()),
    }
}

/// Turns the answer of a system call into a result.
fn succeed(answer: impl Into<i64>) -> io::Result<i64> {
    match answer.into() {
        failed if failed < 0 => Err(io::Error::last_os_error()),
        fine => Ok(fine),
    }
}
