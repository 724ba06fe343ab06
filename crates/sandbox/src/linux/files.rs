//! Which files a confined program can reach, as Landlock rules.
//!
//! Landlock can only allow, and what it allows at a directory holds for everything below. A hidden path
//! below a readable root is therefore left out by allowing what lies beside it, at each level on the way
//! down. Those levels themselves may be listed, so names of hidden files can be seen, but none opened.
//! Below a root that may be written this cannot work, since new files have to be allowed at the root
//! itself; such a confinement is refused.
//!
//! Roots are resolved once, when the confinement is prepared. After that no link is followed: one that a
//! program has put beside a secret, or in the place of a root, leads nowhere.
//!
//! Making the rules takes longer than everything else, so they are kept as long as none of the
//! directories has changed that they were made from.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use convoke_tool::RealPlaces;
use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, Ruleset,
    RulesetAttr, RulesetCreated, RulesetCreatedAttr, Scope, make_bitflags,
};

use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, fstat, openat2};

use super::succeed;
use crate::confinement::{Confinement, Network};
use crate::preflight::{Backend, NotEnforceable};

/// Devices that hold nothing of anybody. There is no terminal among them: programs have none.
const DEVICES: &[&str] = &["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];
/// What lies here gives access to disks, terminals and memory, whoever may read it.
const DEVICE_DIRECTORY: &str = "/dev";

/// Where the kernel shows processes.
const PROC: &str = "/proc";
/// What reading is, for Landlock.
const READ: BitFlags<AccessFs> = make_bitflags!(AccessFs::{Execute | ReadFile | ReadDir});
/// The kind of a rule about what lies beneath a directory.
const PATH_BENEATH: u32 = 1;

/// Such a rule, as the kernel wants to read it.
#[repr(C, packed)]
struct Beneath {
    rights: u64,
    directory: RawFd,
}

/// Tells whether programs may read what the kernel shows of processes.
pub(super) fn reads_proc(confinement: &Confinement) -> bool {
    let hides = |hidden: &PathBuf| Path::new(PROC).starts_with(hidden);
    let reads = |root: &PathBuf| Path::new(PROC).starts_with(root);
    confinement.read.iter().any(reads) && !confinement.hidden.iter().any(hides)
}

/// Tells whether a part of what the kernel shows of processes is hidden, and not all of it.
pub(super) fn hides_below_proc(confinement: &Confinement) -> bool {
    let is_below = |hidden: &PathBuf| hidden.starts_with(PROC) && hidden != Path::new(PROC);
    confinement.hidden.iter().any(is_below)
}

/// Returns the version of Landlock, 0 if there is none.
pub(crate) fn version() -> u32 {
    const ASK_FOR_VERSION: u32 = 1;
    // SAFETY: with this flag the kernel reads no memory.
    let answer = unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            std::ptr::null::<libc::c_void>(),
            0_usize,
            ASK_FOR_VERSION,
        )
    };
    u32::try_from(answer).unwrap_or(0)
}

/// The rules of a confinement, and what they were made from.
#[derive(Debug)]
pub(super) struct FileRules {
    rules: OwnedFd,
    made_from: Vec<(PathBuf, Stamp)>,
}

/// Changes when an entry of a directory appears, disappears or becomes another; `None` where there is
/// no directory.
type Stamp = Option<(u64, u64, i64, i64)>;

impl FileRules {
    /// Makes the rules of a confinement, and of a directory of the programs' own. Nothing can take the
    /// place of that one: the rules are about the directory itself, wherever its name leads later.
    pub(super) fn of(
        confinement: &Confinement,
        own: Option<&Path>,
    ) -> Result<Self, NotEnforceable> {
        let named =
            [&confinement.hidden, &confinement.read, &confinement.write, &confinement.scratch];
        let named = named.into_iter().flatten();
        let parents = named.flat_map(|path| path.ancestors().skip(1)).collect::<BTreeSet<_>>();
        let mut made_from: Vec<_> =
            parents.into_iter().map(|path| (path.to_owned(), stamp(path))).collect();
        let hidden = hidden_places(confinement, Backend::Landlock)?;
        let mut rules = Rules::new(confinement, hidden).map_err(|error| refused(&error))?;
        rules.add_all(confinement, own).map_err(|error| refused(&error))?;
        made_from.append(&mut rules.made_from);
        let rules: Option<OwnedFd> = rules.created.into();
        let rules = rules.ok_or_else(|| refused(&io::Error::from(io::ErrorKind::Unsupported)))?;
        Ok(Self { rules, made_from })
    }

    /// Tells whether making them again would make the same.
    pub(super) fn are_current(&self) -> bool {
        self.made_from.iter().all(|(directory, then)| stamp(directory) == *then)
    }

    /// Confines the calling thread for good. The rules know the `/proc` of the machine only; one that was
    /// mounted since for this process is added to them, if it may be read.
    pub(super) fn apply(&self, own_proc: bool) -> io::Result<()> {
        // SAFETY: takes numbers only.
        succeed(unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) })?;
        let rules = self.rules.as_raw_fd();
        if own_proc {
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let proc = rustix::fs::open(PROC, flags, Mode::empty())?;
            let beneath = Beneath { rights: READ.bits(), directory: proc.as_raw_fd() };
            // SAFETY: the kernel reads the structure, which is ours; both descriptors are open.
            succeed(unsafe {
                let of = &raw const beneath;
                libc::syscall(libc::SYS_landlock_add_rule, rules, PATH_BENEATH, of, 0)
            })?;
        }
        // SAFETY: takes numbers only; the descriptor is open.
        succeed(unsafe { libc::syscall(libc::SYS_landlock_restrict_self, rules, 0) })?;
        Ok(())
    }
}

fn stamp(directory: &Path) -> Stamp {
    let found = std::fs::symlink_metadata(directory).ok()?;
    Some((found.dev(), found.ino(), found.mtime(), found.mtime_nsec()))
}

/// Resolves the roots of a confinement, and tells whether rules can be made for it. What is hidden is
/// hidden where it is now, and where its name leads later.
pub(super) fn settle(
    mut confinement: Confinement,
    backend: Backend,
) -> Result<Confinement, NotEnforceable> {
    let mut places = RealPlaces::default();
    for roots in [&mut confinement.read, &mut confinement.write, &mut confinement.scratch] {
        *roots = roots.iter().map(|root| places.of(root)).collect();
    }
    confinement.temporary = confinement.temporary.as_deref().map(|path| places.of(path));
    confinement.hidden.extend(hidden_places(&confinement, backend)?);
    Ok(confinement)
}

fn hidden_places(
    confinement: &Confinement,
    backend: Backend,
) -> Result<Vec<PathBuf>, NotEnforceable> {
    let hidden = real_places(&confinement.hidden);
    // Bubblewrap can cover what lies in a root, but nobody can work below what is covered.
    let lies_in =
        |secret: &Path, root: &Path| backend == Backend::Landlock && secret.starts_with(root);
    let in_conflict = |root: &Path| {
        hidden.iter().find(|secret| lies_in(secret, root) || root.starts_with(secret))
    };
    match confinement.write.iter().find_map(|root| Some((root, in_conflict(root)?))) {
        None => Ok(hidden),
        Some((root, secret)) => Err(NotEnforceable::new(
            format!("that `{}` stays hidden", secret.display()),
            format!("what may be written, `{}`, holds it or lies in it", root.display()),
            match backend {
                Backend::Landlock => "work elsewhere, move what is hidden, or install bubblewrap",
                Backend::Bubblewrap => "work elsewhere, or move what is hidden",
            },
        )),
    }
}

fn refused(error: &dyn std::error::Error) -> NotEnforceable {
    NotEnforceable::new("access to files", error.to_string(), "see `convoke doctor`")
}

/// Where paths really are; where a part of one is missing, where it would be.
pub(super) fn real_places(paths: &[PathBuf]) -> Vec<PathBuf> {
    let mut places = RealPlaces::default();
    paths.iter().map(|path| places.of(path)).collect()
}

struct Rules {
    created: RulesetCreated,
    hidden: Vec<PathBuf>,
    made_from: Vec<(PathBuf, Stamp)>,
}

impl Rules {
    fn new(
        confinement: &Confinement,
        hidden: Vec<PathBuf>,
    ) -> Result<Self, landlock::RulesetError> {
        let version = version();
        let abi = ABI::from(i32::try_from(version).unwrap_or(0));
        let mut handled = AccessFs::from_all(abi);
        if confinement.local_sockets {
            handled.remove(AccessFs::ResolveUnix);
        }
        // What is asked of the kernel here it has said it can do: anything less is an error.
        let mut ruleset = Ruleset::default()
            .set_compatibility(CompatLevel::HardRequirement)
            .handle_access(handled)?;
        if confinement.network == Network::None && version >= 4 {
            ruleset = ruleset.handle_access(AccessNet::from_all(abi))?;
        }
        if version >= 6 {
            let mut scope = BitFlags::from(Scope::AbstractUnixSocket);
            if !confinement.signals {
                scope |= Scope::Signal;
            }
            ruleset = ruleset.scope(scope)?;
        }
        Ok(Self { created: ruleset.create()?, hidden, made_from: Vec::new() })
    }

    fn add_all(
        &mut self,
        confinement: &Confinement,
        own: Option<&Path>,
    ) -> Result<(), landlock::RulesetError> {
        let read = READ;
        // No devices: a node made by hand would lead around every rule.
        let write = read
            | make_bitflags!(AccessFs::{
                WriteFile | RemoveDir | RemoveFile | MakeDir | MakeReg | MakeSock | MakeFifo
                    | MakeSym | Refer | Truncate
            });
        let holds_secret =
            |root: &PathBuf| self.hidden.iter().any(|secret| secret.starts_with(root));
        let scratch: Vec<_> =
            confinement.scratch.iter().filter(|root| !holds_secret(root)).collect();
        self.hidden.push(PathBuf::from(DEVICE_DIRECTORY));
        for root in &confinement.read {
            self.allow_around_hidden(root, read)?;
        }
        let write_below = confinement.write.iter().chain(scratch).map(PathBuf::as_path);
        for root in write_below.chain(own) {
            self.allow(root, write)?;
        }
        for device in DEVICES {
            self.allow(Path::new(device), AccessFs::ReadFile | AccessFs::WriteFile)?;
        }
        Ok(())
    }

    fn allow_around_hidden(
        &mut self,
        path: &Path,
        rights: BitFlags<AccessFs>,
    ) -> Result<(), landlock::RulesetError> {
        if self.hidden.iter().any(|hidden| path.starts_with(hidden)) {
            return Ok(());
        }
        if !self.hidden.iter().any(|hidden| hidden.starts_with(path)) {
            return self.allow(path, rights);
        }
        self.made_from.push((path.to_owned(), stamp(path)));
        self.allow(path, AccessFs::ReadDir.into())?;
        entries(path).iter().try_for_each(|entry| self.allow_around_hidden(entry, rights))
    }

    /// Allows rights at a path and below. What cannot be opened is not allowed, which is the safe side.
    fn allow(
        &mut self,
        path: &Path,
        rights: BitFlags<AccessFs>,
    ) -> Result<(), landlock::RulesetError> {
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let handle = openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS);
        let Ok(handle) = handle else { return Ok(()) };
        let is_directory = fstat(&handle)
            .is_ok_and(|found| FileType::from_raw_mode(found.st_mode) == FileType::Directory);
        let of_files = make_bitflags!(AccessFs::{Execute | ReadFile | WriteFile | Truncate});
        let rights = if is_directory { rights } else { rights & of_files };
        if !rights.is_empty() {
            (&mut self.created).add_rule(PathBeneath::new(handle, rights))?;
        }
        Ok(())
    }
}

/// Lists a directory without its links.
fn entries(directory: &Path) -> Vec<PathBuf> {
    let no_link =
        |entry: &std::fs::DirEntry| entry.file_type().is_ok_and(|kind| !kind.is_symlink());
    listed(directory).filter(no_link).map(|entry| entry.path()).collect()
}

/// Lists the links of a directory, with what they say.
pub(super) fn links(directory: &str) -> impl Iterator<Item = (PathBuf, PathBuf)> {
    let link = |entry: std::fs::DirEntry| Some((entry.path(), entry.path().read_link().ok()?));
    listed(Path::new(directory)).filter_map(link)
}

fn listed(directory: &Path) -> impl Iterator<Item = std::fs::DirEntry> {
    #[expect(clippy::disallowed_methods, reason = "rules are about real places, not about roots")]
    let entries = std::fs::read_dir(directory);
    entries.into_iter().flatten().flatten()
}
