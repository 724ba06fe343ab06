//! Which files are meant, and what comes of each.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::path::Path;

use convoke::agent::AgentDefinition;
use convoke::agent::files::{
    AgentFormat, AgentOrigin, AgentSource, Draft, FileNote, KeyLines, LoadReport, Loaded,
    ProjectTrust, load, read,
};
use convoke::{KnownAgent, NotOffered, Runtime, replaces_shipped};

use super::super::note::Note;
use super::super::{known, shown};
use super::checked::Checked;
use super::directory::{self, is_same};
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
    pub(super) fn named(&self, what: &str) -> Result<Vec<Group>, Failure> {
        let path = self.session.absolute(Path::new(what));
        if path.is_file() {
            return self.of_file(&path, what).map(|checked| vec![Group::of(vec![checked])]);
        }
        let found = self.of_name(what);
        if !found.is_empty() {
            return Ok(vec![Group::of(found)]);
        }
        match known(what, self.runtime, self.session) {
            Ok(known) => Ok(vec![Group::of(vec![self.of_known(&known)])]),
            Err(_) if path.is_dir() => self.of_directory(&path, what),
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

    /// Checks the agents in a directory and in the folders below it where agents usually are, a group for each.
    fn of_directory(&self, path: &Path, what: &str) -> Result<Vec<Group>, Failure> {
        let mut directories = directory::meant(path, &self.session.agent_directories());
        let mut report = load(&directories, ProjectTrust::Trusted);
        let others = directory::without_others(&mut report);
        self.runtime.settle_servers(&mut report);
        let mut checked = self.of_report(&report);
        if checked.is_empty() {
            let failure = Failure::usage(format!("there are no files of agents in `{what}`"));
            return Err(failure.hint(directory::where_agents_are(path)));
        }
        // What lies in a folder below is not of the directory itself.
        directories.sort_by_key(|directory| Reverse(directory.path.components().count()));
        let mut groups = Vec::new();
        for directory in &directories {
            let is_in = |one: &mut Checked| {
                one.file.as_ref().is_some_and(|file| file.starts_with(&directory.path))
            };
            let inside: Vec<Checked> = checked.extract_if(.., is_in).collect();
            if inside.is_empty() {
                continue;
            }
            let (files, format) =
                (amounts::count(inside.len() as u64, "file"), directory.format.as_str());
            let place = match shown(&directory.path, self.session) {
                here if here.is_empty() => ".".to_owned(),
                place => place,
            };
            let heading = Some(format!("{place}: {files}, read as {format}"));
            groups.push(Group { heading, checked: inside });
        }
        if let (Some(Group { heading: Some(heading), .. }), 1..) = (groups.last_mut(), others) {
            let are = if others == 1 { "is no agent" } else { "are no agents" };
            heading.push_str(&format!("; {} {are}", amounts::count(others as u64, "other file")));
        }
        // Whatever else was said is said as well: it may be what is wrong.
        if !checked.is_empty() {
            groups.push(Group::of(checked));
        }
        Ok(groups)
    }

    /// Checks one file: as it is known, or else by itself.
    fn of_file(&self, path: &Path, what: &str) -> Result<Checked, Failure> {
        let known = self.of_report(self.runtime.agent_files());
        let is_meant = |one: &Checked| one.file.as_deref().is_some_and(|file| is_same(file, path));
        if let Some(checked) = known.into_iter().find(is_meant) {
            return Ok(checked);
        }
        let text = files::read_regular(path).map_err(|error| {
            Failure::usage(format!("the file `{what}` cannot be read")).because(&error)
        })?;
        let source = AgentSource::new(path, format_of(path), AgentOrigin::Extra);
        let mut report = LoadReport::of_file(read(&text, &source));
        self.runtime.settle_servers(&mut report);
        Ok(self.of_report(&report).pop().unwrap_or_else(|| {
            let message = "it is no agent: it has no keys at its beginning";
            self.of_note(&FileNote::new(path, message), Weight::Problem)
        }))
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
            (&report.notices, Weight::LeftOut),
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
        let kept_back = own.and_then(|known| self.kept_back(known));
        checked.warnings.extend(kept_back.map(|why| Note::new(path.as_deref(), why)));
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
        checked.warnings.extend(self.kept_back(known).map(|why| Note::new(None, why)));
        self.finish(&mut checked, &known.agent, &KeyLines::default(), &BTreeSet::new());
        checked
    }

    /// Says why nobody can call an agent, or not the main agent, if that is so.
    fn kept_back(&self, known: &KnownAgent) -> Option<String> {
        if let Some(off) = &known.off {
            return Some(format!("it is switched off: {off}"));
        }
        // What is wrong with its model or its tools is said with them.
        let why = self.runtime.not_offered(&known.agent.name);
        let said = [NotOffered::NoModel, NotOffered::NoTool];
        let why = why.filter(|why| !said.contains(why))?;
        Some(format!("it is not offered to the main agent: {why}"))
    }

    fn of_note(&self, note: &FileNote, weight: Weight) -> Checked {
        let path = Some(shown(&note.path, self.session));
        let file = Some(note.path.clone());
        let notes = vec![Note::of(note, self.session)];
        let (ok, problems, warnings) = match weight {
            Weight::Problem => (false, notes, Vec::new()),
            Weight::Warning | Weight::LeftOut => (true, Vec::new(), notes),
        };
        let left_out = matches!(weight, Weight::LeftOut);
        Checked { file, path, ok, left_out, problems, warnings, ..Checked::default() }
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

/// Whether something is wrong, good to know, or why an agent is not for here.
#[derive(Clone, Copy)]
enum Weight {
    Problem,
    Warning,
    LeftOut,
}

/// Returns how a file is written: as the nearest directory above it that another tool calls so.
fn format_of(path: &Path) -> AgentFormat {
    let above = path.ancestors().skip(1).map(AgentFormat::of_directory);
    above.into_iter().find(|format| *format != AgentFormat::Convoke).unwrap_or(AgentFormat::Convoke)
}
