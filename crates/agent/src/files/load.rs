//! Directories into agents: the only place here that looks at the disk.
//!
//! A directory is opened as a handle on the root of its origin, and everything is read relative to that
//! handle, so a link cannot lead out of the root, not even one that is swapped in while files are read.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

use cap_std::ambient_authority;
use cap_std::fs::{Dir, MetadataExt, OpenOptions, OpenOptionsExt};
use convoke_core::file_kind::not_a_file;
use rustix::fs::OFlags;

use super::directory::{AgentDirectory, AgentOrigin, ProjectTrust};
use super::note::FileNote;
use super::read::{AgentSource, Draft, FileReading, Loaded, is_readme, read, unread};

/// The largest file that is read.
pub(super) const MAX_FILE_BYTES: u64 = 256 * 1024;
/// How many files of a directory are read.
pub(super) const MAX_FILES: usize = 500;
/// How many names are looked at before they are sorted.
const MAX_NAMES: usize = 10_000;
/// How deep directories below a directory are looked at.
const MAX_DEPTH: usize = 8;

/// What came of reading directories.
#[derive(Clone, Debug, Default)]
pub struct LoadReport {
    /// The agents, each with its warnings; names are unique.
    pub loaded: Vec<Loaded>,
    /// What is wrong with files that could not be used.
    pub problems: Vec<FileNote>,
    /// What there is to know about files and directories that gave no agent.
    pub warnings: Vec<FileNote>,
    /// Agents that were left out on purpose, with why.
    pub notices: Vec<FileNote>,
    /// Agents that were left out because another one has their name.
    pub shadowed: Vec<Shadowed>,
    /// The files that are wrong, as far as they could be read.
    pub drafts: Vec<Draft>,
    /// The files of a project that were not read, because it is not trusted.
    pub untrusted: Option<Untrusted>,
}

/// Files of a project that were not read, because it is not trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Untrusted {
    /// The project.
    pub root: PathBuf,
    /// How many files of agents it has.
    pub files: usize,
}

/// An agent that was left out because another one has its name.
#[derive(Clone, Debug)]
pub struct Shadowed {
    /// The file that counts.
    pub used: PathBuf,
    /// The agent that does not.
    pub left_out: Loaded,
}

impl std::fmt::Display for Shadowed {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            formatter,
            "{}: the agent `{}` is not used: {} has one of that name and comes first; rename one of \
             them",
            self.left_out.source.path.display(),
            self.left_out.definition.name,
            self.used.display()
        )
    }
}

impl LoadReport {
    /// Returns all warnings, those of agents included, in the order of their files.
    pub fn all_warnings(&self) -> impl Iterator<Item = &FileNote> {
        self.loaded.iter().flat_map(|loaded| &loaded.warnings).chain(&self.warnings)
    }

    #[cfg(test)]
    pub(crate) fn of(definitions: impl IntoIterator<Item = crate::AgentDefinition>) -> Self {
        let loaded = definitions.into_iter().map(|definition| {
            let path = format!("agents/{}.md", definition.name);
            let format = super::AgentFormat::Convoke;
            let source = AgentSource::new(path, format, AgentOrigin::User);
            let lines = super::KeyLines::default();
            Loaded { definition, source, warnings: Vec::new(), lines, switched_on: Vec::new() }
        });
        Self { loaded: loaded.collect(), ..Self::default() }
    }

    /// Makes the report on one file.
    pub fn of_file(reading: FileReading) -> Self {
        let mut report = Self::default();
        report.add(reading, &mut BTreeMap::new());
        report
    }

    fn add(&mut self, reading: FileReading, names: &mut BTreeMap<String, PathBuf>) {
        match reading {
            FileReading::Agent(loaded) => {
                let (name, path) = (&loaded.definition.name, &loaded.source.path);
                if let Some(used) = names.get(name) {
                    self.shadowed.push(Shadowed { used: used.clone(), left_out: *loaded });
                } else {
                    names.insert(name.clone(), path.clone());
                    self.loaded.push(*loaded);
                }
            }
            FileReading::Left(note) => self.notices.push(note),
            FileReading::Wrong { problems, warnings, draft } => {
                self.problems.extend(problems);
                self.warnings.extend(warnings);
                self.drafts.push(*draft);
            }
            FileReading::NoAgent => {}
        }
    }
}

/// Reads the agents in directories. The first agent of a name counts: the project's before the user's
/// before others, and within these the order of the list, and of the alphabet in a directory.
pub fn load(directories: &[AgentDirectory], trust: ProjectTrust) -> LoadReport {
    load_admitted(directories, trust, &mut |_| true)
}

/// Reads the agents in directories that the caller admits. An agent that is not admitted is as if its file were
/// not there, so it hides none of the same name.
pub fn load_admitted(
    directories: &[AgentDirectory],
    trust: ProjectTrust,
    admits: &mut dyn FnMut(&Loaded) -> bool,
) -> LoadReport {
    let mut report = LoadReport::default();
    let mut names = BTreeMap::new();
    // Settings may name a directory that is read anyway, and a link may lead to one.
    let mut seen: Vec<PathBuf> = Vec::new();
    let mut ordered: Vec<&AgentDirectory> = directories.iter().collect();
    ordered.sort_by_key(|directory| directory.origin);
    for directory in ordered {
        let Some(place) = Place::open(directory, &mut report) else { continue };
        let real = place.root.join(&place.below);
        if seen.contains(&real) {
            continue;
        }
        seen.push(real);
        let files = place.files(&mut report);
        if directory.origin == AgentOrigin::Project && trust == ProjectTrust::Untrusted {
            let count = files.iter().filter(|file| !is_readme(file)).count();
            if count > 0 {
                let none = || Untrusted { root: directory.root.clone(), files: 0 };
                report.untrusted.get_or_insert_with(none).files += count;
            }
            continue;
        }
        for file in files {
            let reading = place.read(&file);
            if let FileReading::Agent(agent) = &reading
                && !admits(agent)
            {
                continue;
            }
            report.add(reading, &mut names);
        }
    }
    report
}

/// Lists the files of a directory that can be agents, without reading them: paths below it, sorted.
pub fn list(directory: &AgentDirectory) -> Vec<PathBuf> {
    let mut report = LoadReport::default();
    let place = Place::open(directory, &mut report);
    let mut files = place.map(|place| place.files(&mut report)).unwrap_or_default();
    files.retain(|file| !is_readme(file));
    files
}

/// A directory that is there, as a handle on its root.
struct Place<'a> {
    directory: &'a AgentDirectory,
    handle: Dir,
    /// The root with its links followed.
    root: PathBuf,
    /// The directory below the root, with its links followed.
    below: PathBuf,
}

/// What was met on the way through a directory.
struct Walk {
    found: Vec<PathBuf>,
    /// The directories that were looked at, below the root.
    seen: Vec<PathBuf>,
    /// Directories that cannot be looked at, with why.
    closed: Vec<(PathBuf, String)>,
}

impl<'a> Place<'a> {
    fn open(directory: &'a AgentDirectory, report: &mut LoadReport) -> Option<Self> {
        // What is not there is not missed.
        let real = directory.path.canonicalize().ok()?;
        let mut refuse = |message: String| {
            report.problems.push(FileNote::new(&directory.path, message));
            None
        };
        let root = match directory.root.canonicalize() {
            Ok(root) => root,
            Err(error) => return refuse(format!("its root cannot be read: {error}")),
        };
        let Ok(below) = real.strip_prefix(&root).map(Path::to_owned) else {
            return refuse(format!(
                "it is a link that leads out of `{}`; its agents are not read: move them there",
                directory.root.display()
            ));
        };
        match Dir::open_ambient_dir(&root, ambient_authority()) {
            Ok(handle) => Some(Self { directory, handle, root, below }),
            Err(error) => refuse(format!("it cannot be read: {error}")),
        }
    }

    /// Returns the files that can be agents, sorted, below the directory.
    fn files(&self, report: &mut LoadReport) -> Vec<PathBuf> {
        let mut walk =
            Walk { found: Vec::new(), seen: vec![self.below.clone()], closed: Vec::new() };
        if let Err(error) = self.collect(Path::new(""), &self.below, 0, &mut walk) {
            let message = format!("it cannot be read: {error}");
            report.problems.push(FileNote::new(&self.directory.path, message));
        }
        for (below, message) in walk.closed {
            let path = self.directory.path.join(below);
            report.problems.push(FileNote::new(&path, message));
        }
        let mut found = walk.found;
        found.sort();
        if found.len() > MAX_FILES {
            let message = format!(
                "it has more than {MAX_FILES} files; those after `{}` are not read",
                found.get(MAX_FILES - 1).map(|path| path.display().to_string()).unwrap_or_default()
            );
            report.problems.push(FileNote::new(&self.directory.path, message));
            found.truncate(MAX_FILES);
        }
        found
    }

    fn leads_out(&self) -> String {
        let root = self.directory.root.display();
        format!("it is a link that leads out of `{root}`, and is not followed; put a copy here")
    }

    /// Collects the files below a directory. `real` is the same directory with its links followed.
    fn collect(
        &self,
        below: &Path,
        real: &Path,
        depth: usize,
        walk: &mut Walk,
    ) -> std::io::Result<()> {
        let here = if real.as_os_str().is_empty() { Path::new(".") } else { real };
        for entry in self.handle.read_dir(here)? {
            let entry = entry?;
            let (name, kind) = (entry.file_name(), entry.file_type()?);
            if walk.found.len() >= MAX_NAMES || name.to_string_lossy().starts_with('.') {
                continue;
            }
            let path = below.join(&name);
            let target = if kind.is_dir() {
                Some(real.join(&name))
            } else if kind.is_symlink() {
                self.linked_directory(&real.join(&name), &path, walk)
            } else {
                None
            };
            if let Some(target) = target {
                // A link can lead to a directory that was looked at already.
                let is_new = !walk.seen.contains(&target);
                if is_new && self.directory.format.is_deep() && depth < MAX_DEPTH {
                    walk.seen.push(target.clone());
                    if let Err(error) = self.collect(&path, &target, depth + 1, walk) {
                        walk.closed.push((path, format!("it cannot be read: {error}")));
                    }
                }
            } else if self.directory.format.takes(&path) {
                walk.found.push(path);
            }
        }
        Ok(())
    }

    /// Returns the directory below the root that a link leads to, if it does.
    fn linked_directory(&self, link: &Path, shown: &Path, walk: &mut Walk) -> Option<PathBuf> {
        let target = self.root.join(link).canonicalize().ok().filter(|target| target.is_dir())?;
        let inside = target.strip_prefix(&self.root).ok().map(Path::to_owned);
        if inside.is_none() && self.directory.format.is_deep() {
            walk.closed.push((shown.to_owned(), self.leads_out()));
        }
        inside
    }

    fn read(&self, file: &Path) -> FileReading {
        let source = AgentSource {
            path: self.directory.path.join(file),
            format: self.directory.format,
            origin: self.directory.origin,
            place: file.with_extension("").to_string_lossy().into_owned(),
        };
        match self.text(file) {
            Ok(text) => read(&text, &source),
            Err((line, message)) => {
                let problem = FileNote { line, ..FileNote::new(&source.path, message) };
                unread(&source, problem)
            }
        }
    }

    fn text(&self, file: &Path) -> Result<String, (Option<u64>, String)> {
        let plain = |message: String| (None, message);
        let unreadable = |error: std::io::Error| plain(format!("it cannot be read: {error}"));
        // A link may be written with the whole path; what it leads to has to be in the root all the same.
        let real = self.root.join(&self.below).join(file).canonicalize();
        let real = real.map_err(unreadable)?;
        let Ok(inside) = real.strip_prefix(&self.root) else {
            return Err(plain(self.leads_out()));
        };
        // A pipe would be waited for.
        if let Some(what) = not_a_file(self.handle.metadata(inside).map_err(unreadable)?.mode()) {
            return Err(plain(what));
        }
        let mut bytes = Vec::new();
        let mut options = OpenOptions::new();
        options.read(true).custom_flags(OFlags::NONBLOCK.bits().cast_signed());
        let opened = self.handle.open_with(inside, &options).map_err(unreadable)?;
        opened.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes).map_err(unreadable)?;
        if u64::try_from(bytes.len()).is_ok_and(|length| length > MAX_FILE_BYTES) {
            let kilobytes = MAX_FILE_BYTES / 1024;
            return Err(plain(format!("it is larger than {kilobytes} KiB; make it shorter")));
        }
        String::from_utf8(bytes).map_err(|error| {
            let valid = error.utf8_error().valid_up_to();
            let before = error.as_bytes().get(..valid).unwrap_or_default();
            let line = before.split(|byte| *byte == b'\n').count();
            (u64::try_from(line).ok(), "it is not UTF-8 text; save it as UTF-8".to_owned())
        })
    }
}

#[cfg(test)]
mod tests;
