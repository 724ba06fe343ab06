//! Which files are meant, and what comes of each.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use convoke::agent::AgentDefinition;
use convoke::agent::files::{
    AgentDirectory, AgentFormat, AgentOrigin, AgentSource, Draft, FileNote, FileReading, KeyLines,
    LoadReport, Loaded, ProjectTrust, load, read,
};
use convoke::{KnownAgent, Runtime, replaces_shipped};

use super::super::{known, shown};
use super::checked::{Checked, Note};
use crate::failure::Failure;
use crate::files;
use crate::session::Session;
use crate::view::amounts;

/// The files there are, and what they are checked against.
pub(super) struct Files<'a> {
    runtime: &'a Runtime,
    session: &'a Session<'a>,
}

/// Agents that are shown together.
pub(super) struct Group {
    pub(super) heading: Option<String>,
    pub(super) checked: Vec<Checked>,
}

impl Group {
    const fn of(checked: Vec<Checked>) -> Self {
        Self { heading: None, checked }
    }
}

impl<'a> Files<'a> {
    pub(super) const fn new(runtime: &'a Runtime, session: &'a Session<'a>) -> Self {
        Self { runtime, session }
    }

    /// Checks all files there are.
    pub(super) fn all(&self) -> Group {
        Group::of(self.of_report(self.runtime.agent_files()))
    }

    /// Checks what somebody named: an agent, a file or a directory.
    pub(super) fn named(&self, what: &str) -> Result<Group, Failure> {
        let path = self.session.absolute(Path::new(what));
        if path.is_file() {
            return self.of_file(&path, what).map(|checked| Group::of(vec![checked]));
        }
        let found = self.of_name(what);
        if !found.is_empty() {
            return Ok(Group::of(found));
        }
        match known(what, self.runtime, self.session) {
            Ok(known) => Ok(Group::of(vec![self.of_known(&known)])),
            Err(_) if path.is_dir() => self.of_directory(path, what),
            Err(failure) if what.contains(['/', '.']) => {
                let message = format!("there is no file `{what}`");
                Err(Failure::usage(message).causes([failure.to_string()]))
            }
            Err(failure) => Err(failure),
        }
    }

    /// Checks the files whose agent has this name, or that are called so themselves.
    fn of_name(&self, name: &str) -> Vec<Checked> {
        let mut all = self.of_report(self.runtime.agent_files());
        all.retain(|one| {
            let stem = one.file.as_deref().and_then(Path::file_stem);
            one.name.as_deref() == Some(name) || stem.is_some_and(|stem| stem == name)
        });
        all
    }

    fn of_directory(&self, path: PathBuf, what: &str) -> Result<Group, Failure> {
        let usual = self.session.agent_directories();
        let usual = usual.into_iter().find(|usual| is_same(&usual.path, &path));
        let directory = usual.unwrap_or_else(|| AgentDirectory::extra(path));
        let mut report = load(std::slice::from_ref(&directory), ProjectTrust::Trusted);
        let left_out = report.shadowed.iter_mut().map(|shadowed| &mut shadowed.left_out);
        for loaded in report.loaded.iter_mut().chain(left_out) {
            self.runtime.without_missing_servers(loaded);
        }
        let checked = self.of_report(&report);
        let format = directory.format.as_str();
        if checked.is_empty() {
            let failure = Failure::usage(format!("there are no files of agents in `{what}`"));
            return Err(failure.hint(format!("it was read as a directory of {format}")));
        }
        let files = amounts::count(checked.len() as u64, "file");
        Ok(Group { heading: Some(format!("{what}: {files}, read as {format}")), checked })
    }

    /// Checks one file: as it is known, or else by itself.
    fn of_file(&self, path: &Path, what: &str) -> Result<Checked, Failure> {
        let known = self.of_report(self.runtime.agent_files());
        let is_meant = |one: &Checked| one.file.as_deref().is_some_and(|file| is_same(file, path));
        if let Some(checked) = known.into_iter().find(is_meant) {
            return Ok(checked);
        }
        let text = files::read(path).map_err(|error| {
            Failure::usage(format!("the file `{what}` cannot be read")).because(&error)
        })?;
        let source = AgentSource::new(path, format_of(path), AgentOrigin::Extra);
        Ok(match read(&text, &source) {
            FileReading::Agent(mut loaded) => {
                self.runtime.without_missing_servers(&mut loaded);
                self.of_loaded(&loaded, &BTreeSet::new())
            }
            FileReading::Left(note) => self.of_note(&note, Weight::Warning),
            FileReading::Wrong { problems, warnings, draft } => {
                self.of_draft(&draft, &problems, &warnings, &BTreeSet::new())
            }
            FileReading::NoAgent => {
                let message = "it is no agent: it has no keys at its beginning";
                self.of_note(&FileNote::new(path, message), Weight::Problem)
            }
        })
    }

    /// Checks what came of reading directories: the agents, those that are not used, the files that are wrong,
    /// and whatever else there is to say.
    fn of_report(&self, report: &LoadReport) -> Vec<Checked> {
        let names = report.loaded.iter().map(|loaded| loaded.definition.name.clone());
        let beside: BTreeSet<String> = names.collect();
        let mut all: Vec<Checked> =
            report.loaded.iter().map(|loaded| self.of_loaded(loaded, &beside)).collect();
        for shadowed in &report.shadowed {
            let mut checked = self.of_loaded(&shadowed.left_out, &beside);
            self.is_shadowed(&mut checked, &shadowed.used);
            all.push(checked);
        }
        let mut told = BTreeSet::new();
        for draft in &report.drafts {
            let path = &draft.source.path;
            let of = |notes: &[FileNote]| -> Vec<FileNote> {
                notes.iter().filter(|note| note.path == *path).cloned().collect()
            };
            let (problems, warnings) = (of(&report.problems), of(&report.warnings));
            all.push(self.of_draft(draft, &problems, &warnings, &beside));
            told.insert(path.as_path());
        }
        for (notes, weight) in [
            (&report.problems, Weight::Problem),
            (&report.warnings, Weight::Warning),
            (&report.notices, Weight::Warning),
        ] {
            let untold = notes.iter().filter(|note| !told.contains(note.path.as_path()));
            all.extend(untold.map(|note| self.of_note(note, weight)));
        }
        all
    }

    fn of_loaded(&self, loaded: &Loaded, beside: &BTreeSet<String>) -> Checked {
        let mut checked = self.begun(&loaded.source, &[], &loaded.warnings);
        // As it is with what settings change about it.
        let known = self.runtime.known_agent(&loaded.definition.name).ok();
        let own = known.as_ref().filter(|known| known.source.as_ref() == Some(&loaded.source));
        let definition = own.map_or(&loaded.definition, |known| known.agent.definition());
        let path = checked.path.clone();
        let replaces = replaces_shipped(definition, &loaded.source);
        checked.warnings.extend(replaces.map(|why| Note::new(path.as_deref(), why)));
        let off = own.and_then(|known| known.off.as_ref());
        let off = off.map(|off| Note::new(path.as_deref(), format!("it is switched off: {off}")));
        checked.warnings.extend(off);
        self.finish(&mut checked, definition, &loaded.lines, beside);
        checked
    }

    fn of_draft(
        &self,
        draft: &Draft,
        problems: &[FileNote],
        warnings: &[FileNote],
        beside: &BTreeSet<String>,
    ) -> Checked {
        let mut checked = self.begun(&draft.source, problems, warnings);
        if let Some(definition) = &draft.definition {
            checked.name = Some(definition.name.clone());
            let remarks = self.runtime.review_agent(definition, beside);
            checked.review(&remarks, &draft.lines);
        }
        checked.ok = false;
        checked
    }

    /// Checks an agent that is in no file.
    fn of_known(&self, known: &KnownAgent) -> Checked {
        let mut checked = Checked::default();
        let off = known.off.as_ref().map(|off| format!("it is switched off: {off}"));
        checked.warnings.extend(off.map(|off| Note::new(None, off)));
        self.finish(&mut checked, &known.agent, &KeyLines::default(), &BTreeSet::new());
        checked
    }

    fn of_note(&self, note: &FileNote, weight: Weight) -> Checked {
        let path = Some(shown(&note.path, self.session));
        let file = Some(note.path.clone());
        let notes = vec![Note::of(note, self.session)];
        let (ok, problems, warnings) = match weight {
            Weight::Problem => (false, notes, Vec::new()),
            Weight::Warning => (true, Vec::new(), notes),
        };
        Checked { file, path, ok, problems, warnings, ..Checked::default() }
    }

    fn begun(&self, source: &AgentSource, problems: &[FileNote], warnings: &[FileNote]) -> Checked {
        let notes = |notes: &[FileNote]| {
            notes.iter().map(|note| Note::of(note, self.session)).collect::<Vec<_>>()
        };
        Checked {
            file: Some(source.path.clone()),
            path: Some(shown(&source.path, self.session)),
            format: Some(source.format.as_str()),
            problems: notes(problems),
            warnings: notes(warnings),
            ..Checked::default()
        }
    }

    fn finish(
        &self,
        checked: &mut Checked,
        definition: &AgentDefinition,
        lines: &KeyLines,
        beside: &BTreeSet<String>,
    ) {
        checked.name = Some(definition.name.clone());
        checked.review(&self.runtime.review_agent(definition, beside), lines);
        checked.with_effective(definition, self.runtime);
    }

    fn is_shadowed(&self, checked: &mut Checked, used: &Path) {
        let used = shown(used, self.session);
        let name = checked.name.as_deref().unwrap_or_default();
        let message = format!("the agent `{name}` is not used: {used} has one of that name");
        checked.warnings.insert(0, Note::new(checked.path.as_deref(), message));
        checked.used_instead = Some(used);
    }
}

/// Whether something is wrong, or good to know.
#[derive(Clone, Copy)]
enum Weight {
    Problem,
    Warning,
}

/// Returns how a file is written: as the nearest directory above it that another tool calls so.
fn format_of(path: &Path) -> AgentFormat {
    let above = path.ancestors().skip(1).map(AgentFormat::of_directory);
    above.into_iter().find(|format| *format != AgentFormat::Convoke).unwrap_or(AgentFormat::Convoke)
}

fn is_same(one: &Path, other: &Path) -> bool {
    match (one.canonicalize(), other.canonicalize()) {
        (Ok(one), Ok(other)) => one == other,
        _ => false,
    }
}
