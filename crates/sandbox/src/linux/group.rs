//! Control groups (version 2): limits on a program and everything it starts, together.
//!
//! What one process may use, the kernel limits for everybody. What many may use together it limits only
//! for a group, and groups can be made only where somebody has let us: below our own group or the one
//! above it, for a root of the machine nearly always, for others where it was delegated to them
//! (`systemd-run --user --scope -p Delegate=yes`). [`Groups::find`] tries it out, and enters.
//!
//! Finding one takes a while, so nobody looks unless something is asked for that only a group can hold:
//! memory or processor time together. The number of processes is limited for everybody, by the guard; it
//! alone is no reason to make a group. Where one is made anyway and can hold it, it does, which is
//! stricter: nothing is ever above the number, and threads count like processes.
//!
//! Each program has a group of its own, and that is two: limits are at the outer, the program is in the
//! inner. A program that makes namespaces of its own may see the group it is in and, as its owner, change
//! what is written there; the outer is out of its sight. Nor can it make groups, since the outer may hold
//! no more than the one: who has to remove them finds what was made here.
//!
//! The guard stays outside, watches, and removes both in the end. If it was killed, they are left behind,
//! empty, and removed by whoever makes the next one.

mod mount;
mod watched;

use std::ffi::CString;
use std::fmt::Write as _;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::fs::{AtFlags, CWD, Dir, Mode, OFlags, Stat, mkdir, open, openat, stat, unlinkat};

use super::in_child;
use crate::confinement::{Confinement, Limits};
use crate::preflight::NotEnforceable;
pub(super) use watched::Watched;

/// Nothing else has a name like this.
const PREFIX: &str = "convoke-";
/// The group that the program is in.
const INNER: &str = "program";
/// The kernel has no numbers for more processes, and takes no limit above it.
const MOST_PROCESSES: u32 = 4_194_304;
/// Younger ones may be in the making, by somebody whose process we cannot see.
const OLD_ENOUGH: i64 = 60;
/// So many are removed at most: a program waits for it.
const MOST_REMOVED: usize = 64;
/// So many names are looked at at most.
const MOST_NAMES: usize = 10_000;

/// What a group has to be able to hold, beside processor time, which all can tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Controllers {
    pub(crate) memory: bool,
    pub(crate) processes: bool,
}

impl Controllers {
    fn names(self) -> impl Iterator<Item = &'static str> {
        [(self.memory, "memory"), (self.processes, "pids")]
            .into_iter()
            .filter_map(|(needed, name)| needed.then_some(name))
    }
}

/// A place where groups can be made.
#[derive(Debug)]
pub(crate) struct Groups {
    directory: PathBuf,
    controllers: Controllers,
}

impl Groups {
    /// Finds a place for groups that can hold this, or says why there is none.
    pub(crate) fn find(needed: Controllers) -> Result<Self, String> {
        let places = mount::places(&asked("mountinfo")?, &asked("cgroup")?)?;
        Self::among(&places, needed, Self::try_out)
    }

    /// Finds one for these limits. The number of processes is held by it if it can be.
    pub(super) fn of(confinement: &Confinement) -> Result<Option<Self>, NotEnforceable> {
        let limits = &confinement.limits;
        if !limits.are_together() {
            return Ok(None);
        }
        out_of_reach(confinement)?;
        let needed = Controllers { memory: limits.memory.is_some(), processes: false };
        let wished = Controllers { processes: limits.processes.is_some(), ..needed };
        let found = Self::find(wished).or_else(|_| Self::find(needed));
        found.map(Some).map_err(|why| NotEnforceable::together(limits, why))
    }

    /// Returns the first that can pass on what is needed and works.
    fn among(
        places: &[PathBuf],
        needed: Controllers,
        works: impl Fn(&Self) -> io::Result<()>,
    ) -> Result<Self, String> {
        let mut why = String::new();
        for place in places {
            let groups = Self { directory: place.clone(), controllers: needed };
            let tried = groups.pass_on(needed).and_then(|()| {
                works(&groups).map_err(|error| format!("no group can be made there: {error}"))
            });
            match tried {
                Ok(()) => return Ok(groups),
                Err(reason) => {
                    let between = if why.is_empty() { "" } else { "; " };
                    write!(why, "{between}`{}`: {reason}", place.display()).ok();
                }
            }
        }
        Err(why)
    }

    /// Sees to it that groups made here get these controllers.
    fn pass_on(&self, needed: Controllers) -> Result<(), String> {
        let words = |file: &str| {
            let text = read(&self.directory.join(file)).map_err(|error| error.to_string())?;
            Ok::<_, String>(text.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
        };
        let passed_on = words("cgroup.subtree_control")?;
        let available = words("cgroup.controllers")?;
        let has = |list: &[String], name: &str| list.iter().any(|word| word == name);
        if let Some(name) = needed.names().find(|name| !has(&available, name)) {
            return Err(format!("it has no `{name}` controller"));
        }
        for name in needed.names().filter(|name| !has(&passed_on, name)) {
            write_file(&self.directory.join("cgroup.subtree_control"), &format!("+{name}"))
                .map_err(|error| match error.raw_os_error() {
                    Some(libc::EBUSY) => {
                        format!("`{name}` is not passed on from a group that holds processes")
                    }
                    _ => format!("`{name}` is not passed on: {error}"),
                })?;
        }
        Ok(())
    }

    /// Tells what happens when a process enters a group, by having one try.
    fn try_out(&self) -> io::Result<()> {
        // With limits that nobody reaches, so that each file is written that will be.
        let limits =
            Limits { memory: self.controllers.memory.then_some(1 << 50), ..Limits::default() };
        let (made, group) = self.make(&limits, Some(MOST_PROCESSES))?;
        let entered = in_child(|| group.enter());
        drop(made);
        entered
    }

    /// Tells whether its groups hold the number of processes.
    pub(super) const fn hold_processes(&self) -> bool {
        self.controllers.processes
    }

    /// Makes a group for one program, with these limits and this number of processes.
    pub(super) fn make(
        &self,
        limits: &Limits,
        processes: Option<u32>,
    ) -> io::Result<(Made, Group)> {
        static SWEPT: Once = Once::new();
        let made = Made { outer: self.new_directory()?, is_left: false };
        SWEPT.call_once(|| remove_leftovers(&self.directory, &made.outer));
        made.limit(limits, processes.filter(|_| self.controllers.processes))?;
        mkdir(made.outer.join(INNER), Mode::from(0o755))?;
        let group = Group::of(&made.outer, limits, self.controllers)?;
        Ok((made, group))
    }

    /// Makes a directory that nobody else has. One of our name may be of a process before us.
    fn new_directory(&self) -> io::Result<PathBuf> {
        static COUNTER: AtomicU32 = AtomicU32::new(0);
        loop {
            let number = COUNTER.fetch_add(1, Ordering::Relaxed);
            let path = self.directory.join(format!("{PREFIX}{}-{number}", std::process::id()));
            match mkdir(&path, Mode::from(0o755)) {
                Err(rustix::io::Errno::EXIST) => {}
                made => return Ok(made.map(|()| path)?),
            }
        }
    }
}

/// A group that was made. It is removed with this, unless a guard takes care of it.
#[derive(Debug)]
pub(super) struct Made {
    outer: PathBuf,
    is_left: bool,
}

impl Made {
    /// Leaves it to the guard of a program that was started.
    pub(super) fn leave(mut self) {
        self.is_left = true;
    }

    fn limit(&self, limits: &Limits, processes: Option<u32>) -> io::Result<()> {
        let set = |name: &str, value: String| write_file(&self.outer.join(name), &value);
        set("cgroup.max.descendants", "1".to_owned())?;
        if let Some(most) = processes {
            set("pids.max", most.min(MOST_PROCESSES).to_string())?;
        }
        let Some(bytes) = limits.memory else { return Ok(()) };
        set("memory.max", bytes.to_string())?;
        // All of it ends together: a program without some of its processes is in no state to go on.
        set("memory.oom.group", "1".to_owned())?;
        match set("memory.swap.max", "0".to_owned()) {
            // A kernel that does not count what is swapped out has no such file.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            done => done,
        }
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        if !self.is_left {
            remove(&self.outer);
        }
    }
}

/// A group for one program, as its child and its guard need it: nothing but paths that are written already.
#[derive(Debug)]
pub(super) struct Group {
    outer: CString,
    inner: CString,
    entrance: CString,
    kill: CString,
    time: CString,
    memory: Option<CString>,
    processes: Option<CString>,
    microseconds: Option<u64>,
}

impl Group {
    fn of(outer: &Path, limits: &Limits, controllers: Controllers) -> io::Result<Self> {
        let file =
            |name: &str| Ok::<_, io::Error>(CString::new(outer.join(name).as_os_str().as_bytes())?);
        let has = |there: bool, name: &str| there.then(|| file(name)).transpose();
        Ok(Self {
            outer: CString::new(outer.as_os_str().as_bytes())?,
            inner: file(INNER)?,
            entrance: file("program/cgroup.procs")?,
            kill: file("cgroup.kill")?,
            time: file("cpu.stat")?,
            memory: has(limits.memory.is_some(), "memory.events")?,
            processes: has(controllers.processes, "pids.events")?,
            microseconds: limits
                .cpu
                .map(|time| u64::try_from(time.as_micros()).unwrap_or(u64::MAX)),
        })
    }

    /// Moves the calling process into it. Makes nothing but system calls.
    pub(super) fn enter(&self) -> io::Result<()> {
        watched::write(&self.entrance, b"0")
    }
}

/// Refuses a confinement that lets programs write where groups are: their limits would be theirs.
fn out_of_reach(confinement: &Confinement) -> Result<(), NotEnforceable> {
    let points = asked("mountinfo").map(|text| mount::points(&text)).unwrap_or_default();
    let meets = |root: &Path| {
        points.iter().find(|point| point.starts_with(root) || root.starts_with(point))
    };
    let roots = confinement.write.iter().chain(&confinement.scratch);
    match roots.into_iter().find_map(|root| Some((root, meets(root)?))) {
        None => Ok(()),
        Some((root, point)) => Err(NotEnforceable::new(
            "limits on all processes together",
            format!(
                "`{}` may be written, and the groups that hold them are in `{}`",
                root.display(),
                point.display()
            ),
            "let less be written, or use the limits of each process alone",
        )),
    }
}

/// Removes groups of processes that are no more. The newest, which is ours, tells how old the others are.
/// One that somebody is in cannot be removed.
fn remove_leftovers(directory: &Path, newest: &Path) {
    let Ok(now) = stat(newest) else { return };
    let is_old = |other: Stat| other.st_mtime.saturating_add(OLD_ENOUGH) <= now.st_mtime;
    let leftovers = names(directory).into_iter().filter(|name| is_gone(name));
    let leftovers = leftovers.map(|name| directory.join(name));
    for path in leftovers.filter(|path| stat(path).is_ok_and(is_old)).take(MOST_REMOVED) {
        remove(&path);
    }
}

/// Tells whether the process is no more that a group is named after.
fn is_gone(name: &str) -> bool {
    let process = name.strip_prefix(PREFIX).and_then(|rest| rest.split_once('-'));
    let process = process.and_then(|(process, _)| process.parse::<u32>().ok());
    process.is_some_and(|process| {
        matches!(stat(format!("/proc/{process}")), Err(rustix::io::Errno::NOENT))
    })
}

fn names(directory: &Path) -> Vec<String> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let directory = openat(CWD, directory, flags, Mode::empty()).and_then(Dir::new);
    let entries = directory.into_iter().flatten().take(MOST_NAMES).flatten();
    let names = entries.filter_map(|entry| entry.file_name().to_str().ok().map(str::to_owned));
    names.filter(|name| name.starts_with(PREFIX)).collect()
}

/// Removes a group, if nobody is in it.
fn remove(outer: &Path) {
    for path in [&outer.join(INNER), outer] {
        // One that is gone, or in use, is as it should be.
        unlinkat(CWD, path, AtFlags::REMOVEDIR).ok();
    }
}

/// Asks the kernel about us.
fn asked(what: &str) -> Result<String, String> {
    let path = PathBuf::from(format!("/proc/self/{what}"));
    read(&path).map_err(|error| format!("`{}`: {error}", path.display()))
}

fn read(path: &Path) -> io::Result<String> {
    let file = open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    io::read_to_string(std::fs::File::from(file))
}

fn write_file(path: &Path, text: &str) -> io::Result<()> {
    let file = open(path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
    rustix::io::write(file, text.as_bytes())?;
    Ok(())
}

#[cfg(test)]
mod tests;
