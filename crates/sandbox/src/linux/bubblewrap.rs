//! Walls made by bubblewrap: a file system of the program's own, in which what is hidden is covered.
//!
//! `bwrap` mounts what may be read, then what may be written, then something empty over what is hidden.
//! It can therefore hide a path below one that may be written, which Landlock cannot, and it works on
//! older kernels. A program could move a directory that holds a hidden path, and so uncover it for the
//! next one; each directory on the way down to such a path is mounted onto itself, and what is mounted
//! cannot be moved.
//!
//! Root's programs are in a user namespace as well, see `user_namespace`; `/proc` and `/sys` can be read only,
//! and what shows the machine is masked.
//!
//! It is started with no environment and told everything through a file in memory: what a program is to
//! have in its environment must neither steer `bwrap`, which is not confined yet, nor be seen by others.
//! What is hidden here is what is there when the program starts.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Seek, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};

use convoke_core::ToolError;
use convoke_tool::Program;
use rustix::fs::MemfdFlags;
use rustix::io::FdFlags;

use super::{calls, files, user_namespace};
use crate::confinement::{Confinement, Network};
use crate::preflight::Backend;

/// Where it may be. Others could put one of their own elsewhere in the search path.
const PLACES: [&str; 2] = ["/usr/bin/bwrap", "/usr/local/bin/bwrap"];
/// How many processes of its own it adds: one that waits outside, one that waits inside.
pub(super) const PROCESSES: u32 = 2;
/// What root may still do, as in `rights`.
const KEPT: [&str; 4] = ["CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_FSETID"];
/// What the program gets anew, whatever is there.
const MADE_ANEW: [&str; 2] = ["/dev", "/proc"];
/// The paths that no program can write under any confinement.
const READ_ONLY: &str = "/sys";
/// What shows or steers the machine and not the program, as OCI runtimes mask it. Files of the kernel ask for
/// the user at most, so even a user namespace does not keep root's programs from them.
const MASKED: [&str; 16] = [
    "/proc/acpi",
    "/proc/asound",
    "/proc/interrupts",
    "/proc/kcore",
    "/proc/keys",
    "/proc/latency_stats",
    "/proc/sched_debug",
    "/proc/scsi",
    "/proc/timer_list",
    "/proc/timer_stats",
    "/sys/devices/virtual/powercap",
    "/sys/firmware",
    "/sys/kernel/debug",
    "/sys/kernel/security",
    "/sys/kernel/tracing",
    "/sys/fs/pstore",
];

/// Finds it, if it is root's.
fn find() -> io::Result<&'static Path> {
    let is_roots = |path: &&Path| {
        path.metadata().is_ok_and(|found| {
            found.is_file() && found.uid() == 0 && found.permissions().mode() & 0o022 == 0
        })
    };
    let found = PLACES.iter().map(Path::new).find(is_roots);
    found.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "`bwrap` is not installed"))
}

/// Tells what happens when it is started with such a confinement, by starting it.
pub(crate) fn try_out(confinement: &Confinement) -> io::Result<()> {
    let reason = |error: &dyn std::fmt::Display| io::Error::other(error.to_string());
    let confinement =
        files::settle(confinement.clone(), Backend::Bubblewrap).map_err(|error| reason(&error))?;
    let calls = calls::Filter::of(&confinement, false).map_err(|error| reason(&error))?;
    let wrapping = Wrapping::make(&confinement, None, &calls, &BTreeMap::new())?;
    let itself = wrapping.path;
    let number = wrapping.arguments.as_raw_fd().to_string();
    #[expect(clippy::disallowed_methods, reason = "nobody's program: it says its version and ends")]
    let mut command = std::process::Command::new(itself);
    command.env_clear().current_dir("/").args(["--args", &number, "--"]);
    command.arg(itself).arg("--version");
    // SAFETY: the closure runs in the child between fork and exec, and makes only system calls.
    unsafe { command.pre_exec(move || wrapping.keep_open()) };
    let ran = command.output()?;
    if ran.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&ran.stderr);
    let said = said.lines().next().unwrap_or_default();
    Err(io::Error::other(format!("`bwrap` ended with {}: {said}", ran.status)))
}

/// Says so if there is no such program, since `bwrap` would start first and find out later.
pub(super) fn find_program(program: &Program) -> Result<(), ToolError> {
    let Some(name) = program.command.first() else {
        return Err(ToolError::validation(["the command is empty"]));
    };
    let path = program.environment.get("PATH").map_or("", String::as_str);
    let found = if name.contains('/') {
        program.working_directory.join(name).exists()
    } else {
        std::env::split_paths(path).any(|directory| directory.join(name).is_file())
    };
    if found { Ok(()) } else { Err(ToolError::not_found(format!("program `{name}` not found"))) }
}

/// What `bwrap` needs for one program, open.
#[derive(Debug)]
pub(super) struct Wrapping {
    path: &'static Path,
    arguments: OwnedFd,
    filter: OwnedFd,
    /// The user namespace to start in; `None` where `bwrap` makes one.
    users: Option<BorrowedFd<'static>>,
}

impl Wrapping {
    pub(super) fn new(
        confinement: &Confinement,
        own: Option<&Path>,
        calls: &calls::Filter,
        environment: &BTreeMap<String, String>,
    ) -> Result<Self, ToolError> {
        Self::make(confinement, own, calls, environment).map_err(|error| {
            ToolError::failed("`bwrap` cannot be started: see `convoke doctor`").caused_by(&error)
        })
    }

    fn make(
        confinement: &Confinement,
        own: Option<&Path>,
        calls: &calls::Filter,
        environment: &BTreeMap<String, String>,
    ) -> io::Result<Self> {
        let path = find()?;
        let filter = in_memory(&calls.bytes())?;
        let is_root = rustix::process::geteuid().is_root();
        let users = is_root.then(user_namespace::of_root).transpose()?;
        let mut arguments = Arguments::default();
        arguments.isolation(confinement, users);
        arguments.files(confinement, own);
        arguments.add(["--seccomp", &filter.as_raw_fd().to_string()]);
        for (name, value) in environment {
            arguments.add(["--setenv", name, value]);
        }
        Ok(Self { path, arguments: in_memory(&arguments.0)?, filter, users })
    }

    /// Returns what is started in place of a program.
    pub(super) fn wrap(&self, mut program: Program) -> Program {
        let number = self.arguments.as_raw_fd().to_string();
        let path = self.path.display().to_string();
        let start = [path, "--args".to_owned(), number, "--".to_owned()];
        program.command = start.into_iter().chain(program.command).collect();
        program.environment.clear();
        program
    }

    /// Lets `bwrap` have what was prepared for it. Makes nothing but system calls.
    pub(super) fn keep_open(&self) -> io::Result<()> {
        let kept = [Some(self.arguments.as_fd()), Some(self.filter.as_fd()), self.users];
        kept.into_iter()
            .flatten()
            .try_for_each(|kept| Ok(rustix::io::fcntl_setfd(kept, FdFlags::empty())?))
    }
}

fn in_memory(bytes: &[u8]) -> io::Result<OwnedFd> {
    let mut file = File::from(rustix::fs::memfd_create("convoke", MemfdFlags::CLOEXEC)?);
    file.write_all(bytes)?;
    file.rewind()?;
    Ok(file.into())
}

/// Arguments as `bwrap` reads them from a file: each with a zero byte behind it.
#[derive(Default)]
struct Arguments(Vec<u8>);

impl Arguments {
    fn add<T: AsRef<OsStr>>(&mut self, words: impl IntoIterator<Item = T>) {
        for word in words {
            self.0.extend_from_slice(word.as_ref().as_bytes());
            self.0.push(0);
        }
    }

    fn mount(&mut self, how: &str, path: &Path) {
        self.add([OsStr::new(how), path.as_os_str(), path.as_os_str()]);
    }

    fn isolation(&mut self, confinement: &Confinement, users: Option<BorrowedFd<'_>>) {
        self.add(["--die-with-parent", "--new-session", "--cap-drop", "ALL"]);
        match users {
            None => self.add(["--unshare-user"]),
            Some(users) => {
                self.add(["--userns", &users.as_raw_fd().to_string()]);
                for right in KEPT {
                    self.add(["--cap-add", right]);
                }
            }
        }
        self.add(["--unshare-pid", "--unshare-ipc", "--unshare-uts"]);
        // With a list of hosts it starts in a network of its own, and with all in ours.
        if confinement.network == Network::None {
            self.add(["--unshare-net"]);
        }
    }

    fn files(&mut self, confinement: &Confinement, own: Option<&Path>) {
        let root = Path::new("/");
        let write = confinement.write.iter().chain(&confinement.scratch);
        let write = write.map(PathBuf::as_path).filter(|path| !path.starts_with(READ_ONLY));
        let write = outermost(write.chain(own));
        let read = outermost(confinement.read.iter().map(PathBuf::as_path));
        let of_list = |list: &[PathBuf]| list.iter().any(|path| path == root);
        let whole = of_list(&read) || of_list(&write);
        match (of_list(&write), whole) {
            (true, _) => self.mount("--bind", root),
            (false, true) => self.mount("--ro-bind", root),
            (false, false) => self.roots_only(&read),
        }
        self.add(["--dev", "/dev", "--proc", "/proc"]);
        let sys = Path::new(READ_ONLY);
        if of_list(&write) && sys.is_dir() {
            self.mount("--ro-bind", sys);
        }
        let shows_sys = whole || read.iter().any(|root| sys.starts_with(root));
        for path in MASKED.iter().map(Path::new).filter(|path| path.exists()) {
            if shows_sys || !path.starts_with(sys) {
                self.hide(path);
            }
        }
        self.add(["--remount-ro", "/proc"]);
        for path in write.iter().filter(|path| path.as_path() != root) {
            self.mount("--bind", path);
        }
        let visible =
            |path: &PathBuf| whole || read.iter().chain(&write).any(|r| path.starts_with(r));
        let mut hidden =
            outermost(files::real_places(&confinement.hidden).iter().map(PathBuf::as_path));
        hidden.retain(visible);
        let mut protected = files::real_places(&confinement.protected);
        protected.retain(|path| {
            let below = |root: &PathBuf| path.starts_with(root) && path != root;
            write.iter().any(below) && !hidden.iter().any(|outer| path.starts_with(outer))
        });
        let protected = outermost(protected.iter().map(PathBuf::as_path));
        self.keep_in_place(hidden.iter().chain(&protected), &write);
        for path in &hidden {
            self.hide(path);
        }
        for path in &protected {
            self.mount("--ro-bind", path);
        }
        if !whole {
            self.add(["--remount-ro", "/"]);
        }
    }

    /// Begins with nothing. Links at the top are what programs know the system's directories by.
    fn roots_only(&mut self, read: &[PathBuf]) {
        self.add(["--tmpfs", "/"]);
        for path in read {
            self.mount("--ro-bind", path);
        }
        for (name, target) in files::links("/") {
            let inside = read.iter().any(|path| Path::new("/").join(&target).starts_with(path));
            if inside {
                self.add([OsStr::new("--symlink"), target.as_os_str(), name.as_os_str()]);
            }
        }
    }

    /// Mounts the directories on the way down to these paths onto themselves, so that none can be moved.
    /// Each only once and before all else: mounted again, it would uncover what was mounted below it.
    fn keep_in_place<'p>(&mut self, paths: impl Iterator<Item = &'p PathBuf>, write: &[PathBuf]) {
        let mut way: BTreeSet<&Path> = BTreeSet::new();
        for path in paths {
            if let Some(root) = write.iter().find(|root| path.starts_with(root)) {
                way.extend(path.ancestors().skip(1).take_while(|above| *above != root));
            }
        }
        for above in way {
            self.mount("--bind", above);
        }
    }

    fn hide(&mut self, path: &Path) {
        if path.is_dir() {
            self.add([OsStr::new("--tmpfs"), path.as_os_str()]);
            self.add([OsStr::new("--remount-ro"), path.as_os_str()]);
        } else {
            self.add([OsStr::new("--ro-bind"), OsStr::new("/dev/null"), path.as_os_str()]);
        }
    }
}

/// Returns those that are there, where they are said to be, and in none of the others. One that has
/// become a link leads somewhere else, so it counts for nothing.
fn outermost<'p>(paths: impl Iterator<Item = &'p Path>) -> Vec<PathBuf> {
    let anew = |path: &Path| MADE_ANEW.iter().any(|made| path.starts_with(made));
    let is_itself = |path: &Path| path.canonicalize().is_ok_and(|real| real == path);
    let mut sorted: Vec<PathBuf> =
        paths.filter(|path| !anew(path) && is_itself(path)).map(Path::to_owned).collect();
    sorted.sort();
    let mut kept: Vec<PathBuf> = Vec::new();
    for path in sorted {
        if kept.last().is_none_or(|outer| !path.starts_with(outer)) {
            kept.push(path);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the mounts of files, without what is masked below `/proc` and `/sys`.
    fn lines(confinement: &Confinement) -> String {
        let mut arguments = Arguments::default();
        arguments.files(confinement, None);
        let all = String::from_utf8(arguments.0).unwrap();
        let all = all.replace("\0--", "\n--").replace('\0', " ");
        let is_masked =
            |line: &&str| MASKED.iter().any(|path| line.trim_end().ends_with(&format!(" {path}")));
        let lines: Vec<_> = all.lines().filter(|line| !is_masked(line)).collect();
        lines.join("\n")
    }

    #[test]
    fn kernel_files_are_masked_and_read_only_before_anything_else_is_mounted() {
        let mut arguments = Arguments::default();
        arguments.files(&Confinement { write: vec!["/".into()], ..Confinement::default() }, None);
        let all = String::from_utf8(arguments.0).unwrap().replace('\0', " ");
        assert!(all.contains("--ro-bind /sys /sys "), "{all}");
        assert!(all.contains("--ro-bind /dev/null /proc/keys "), "{all}");
        assert!(all.trim_end().ends_with("--remount-ro /proc"), "{all}");
    }

    #[test]
    fn places_of_the_kernel_are_never_mounted_for_writing() {
        let write = ["/sys/fs/cgroup", "/sys", "/proc/sys", "/dev"].map(PathBuf::from).to_vec();
        let shown = lines(&Confinement { read: vec!["/".into()], write, ..Confinement::default() });
        assert!(!shown.contains("--bind "), "{shown}");
    }

    #[test]
    fn what_is_hidden_is_covered_last_and_cannot_be_moved_away() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().canonicalize().unwrap().join(name);
        std::fs::create_dir_all(at("work/a/b/secret")).unwrap();
        std::os::unix::fs::symlink("/", at("work/link")).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(at("work/key")).unwrap();
        let confinement = Confinement {
            read: vec!["/".into()],
            write: vec![at("work"), at("work/a"), at("work/link"), at("missing")],
            hidden: vec![
                at("work/a/b/secret"),
                at("work/a/b/secret/more"),
                at("work/key"),
                at("no"),
            ],
            ..Confinement::default()
        };
        let shown = lines(&confinement).replace(&at("").display().to_string(), "/T/");
        assert_eq!(
            shown.trim_end(),
            "--ro-bind / /\n--dev /dev\n--proc /proc\n--remount-ro /proc\n\
             --bind /T/work /T/work\n\
             --bind /T/work/a /T/work/a\n--bind /T/work/a/b /T/work/a/b\n\
             --tmpfs /T/work/a/b/secret\n--remount-ro /T/work/a/b/secret\n\
             --ro-bind /dev/null /T/work/key"
        );
    }

    #[test]
    fn what_is_protected_is_read_only_and_cannot_be_moved_away() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().canonicalize().unwrap().join(name);
        std::fs::create_dir_all(at("work/.git/hooks")).unwrap();
        let confinement = Confinement {
            read: vec!["/".into()],
            write: vec![at("work")],
            protected: vec![at("work/.git/hooks"), at("work/missing"), at("work"), at("")],
            ..Confinement::default()
        };
        let shown = lines(&confinement).replace(&at("").display().to_string(), "/T/");
        assert!(
            shown.trim_end().ends_with(
                "--bind /T/work /T/work\n--bind /T/work/.git /T/work/.git\n\
                 --ro-bind /T/work/.git/hooks /T/work/.git/hooks"
            ),
            "{shown}"
        );
    }

    #[test]
    fn with_roots_to_read_the_rest_is_not_there() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().canonicalize().unwrap().join(name);
        std::fs::create_dir_all(at("read")).unwrap();
        std::fs::create_dir_all(at("secret")).unwrap();
        let confinement = Confinement {
            read: vec![at("read"), "/usr".into()],
            hidden: vec![at("secret")],
            ..Confinement::default()
        };
        let shown = lines(&confinement).replace(&at("").display().to_string(), "/T/");
        assert!(
            shown.starts_with("--tmpfs /\n--ro-bind /T/read /T/read\n--ro-bind /usr /usr\n"),
            "{shown}"
        );
        assert!(shown.trim_end().ends_with("--remount-ro /proc\n--remount-ro /"), "{shown}");
        assert!(!shown.contains("secret"), "{shown}");
    }
}
