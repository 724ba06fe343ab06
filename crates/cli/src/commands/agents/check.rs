//! `convoke agents check`: whether files of agents are right, and what comes of them.

use std::path::Path;

use clap::Args;
use convoke::Runtime;
use convoke::agent::files::{
    AgentFormat, AgentOrigin, AgentSource, FileNote, FileReading, Loaded, read,
};
use convoke::agent::{AgentDefinition, AgentOverride};
use convoke_core::ExitCode;
use serde::Serialize;

use super::effective::Effective;
use super::{find, shown, source};
use crate::failure::Failure;
use crate::files;
use crate::output::{Output, Style, Table};
use crate::session::Session;
use crate::view::amounts;

const AFTER_HELP: &str = "\
Without a name, all files of agents are checked that there are here, those of a project that is not trusted \
included: checking uses none of them. A path is checked as the tool writes it that its directory is named \
after.

Examples:
  convoke agents check
  convoke agents check .convoke/agents/reviewer.md
  convoke agents check reviewer --json

Exit codes:
  0 all are right, 7 one is not";

/// Check files of agents
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Check {
    /// Files, or names of agents
    #[arg(value_name = "PATH | NAME")]
    what: Vec<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What came of checking one file.
#[derive(Debug, Default, Serialize)]
struct Checked {
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    ok: bool,
    problems: Vec<Note>,
    warnings: Vec<Note>,
    #[serde(skip_serializing_if = "Option::is_none")]
    effective: Option<Effective>,
}

/// Something about a file.
#[derive(Debug, Serialize)]
struct Note {
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    message: String,
}

impl Note {
    fn of(note: &FileNote, session: &Session<'_>) -> Self {
        Self {
            path: Some(shown(&note.path, session)),
            line: note.line,
            key: note.key.clone(),
            message: note.message.clone(),
        }
    }

    fn new(message: impl Into<String>) -> Self {
        Self { path: None, line: None, key: None, message: message.into() }
    }

    /// Returns it as people find the place.
    fn text(&self) -> String {
        let path = self.path.iter().map(|path| format!("{path}:"));
        let line = self.line.iter().map(|line| format!("{line}:"));
        let place: String = path.chain(line).collect();
        let key = self.key.as_ref().map(|key| format!("key `{key}`: ")).unwrap_or_default();
        let gap = if place.is_empty() { "" } else { " " };
        format!("{place}{gap}{key}{}", self.message)
    }
}

impl Check {
    /// Runs the command.
    pub(super) fn run(
        &self,
        session: &Session<'_>,
        output: &mut Output,
    ) -> Result<ExitCode, Failure> {
        let config = session.load(output)?.config;
        let overrides = config.agents.overrides();
        let runtime = session.runtime_looking(config)?;
        let checked = if self.what.is_empty() {
            everything(&runtime, session)
        } else {
            let one = |what: &String| match overrides.get(what) {
                _ if session.absolute(Path::new(what)).is_file() => {
                    of_path(Path::new(what), &runtime, session)
                }
                own => of_name(what, own, &runtime, session),
            };
            self.what.iter().map(one).collect::<Result<_, _>>()?
        };
        if self.json {
            output.json(&checked);
        } else {
            print(&checked, output);
        }
        let wrong = checked.iter().filter(|checked| !checked.ok).count();
        Ok(if wrong == 0 { ExitCode::Done } else { ExitCode::Configuration })
    }
}

/// Checks all files there are.
fn everything(runtime: &Runtime, session: &Session<'_>) -> Vec<Checked> {
    let report = runtime.agent_files();
    let mut all: Vec<Checked> =
        report.loaded.iter().map(|loaded| of_loaded(loaded, runtime, session)).collect();
    let mut add = |note: &FileNote, is_problem: bool| {
        let path = shown(&note.path, session);
        let note = Note::of(note, session);
        let known = all.iter().position(|checked| checked.path.as_ref() == Some(&path));
        let known = known.unwrap_or_else(|| {
            all.push(Checked { path: Some(path), ok: true, ..Checked::default() });
            all.len() - 1
        });
        if let Some(checked) = all.get_mut(known) {
            if is_problem {
                checked.ok = false;
                checked.problems.push(note);
            } else {
                checked.warnings.push(note);
            }
        }
    };
    report.problems.iter().for_each(|note| add(note, true));
    report.warnings.iter().chain(&report.notices).for_each(|note| add(note, false));
    for shadowed in &report.shadowed {
        let used = shown(&shadowed.used, session);
        let message =
            format!("the agent `{}` is not used: {used} has one of that name", shadowed.name);
        add(&FileNote::new(&shadowed.left_out, message), false);
    }
    all
}

fn of_loaded(loaded: &Loaded, runtime: &Runtime, session: &Session<'_>) -> Checked {
    let notes = loaded.warnings.iter().map(|note| Note::of(note, session));
    // As it is with what settings change about it.
    let agent = runtime.agents().get(&loaded.definition.name);
    let agent = agent.filter(|agent| source(agent, runtime) == Some(&loaded.source));
    let definition = agent.as_ref().map_or(&loaded.definition, |agent| agent.definition());
    let path = Some(shown(&loaded.source.path, session));
    of_definition(path, definition, notes.collect(), runtime)
}

fn of_definition(
    path: Option<String>,
    definition: &AgentDefinition,
    mut warnings: Vec<Note>,
    runtime: &Runtime,
) -> Checked {
    let effective = Effective::of(definition, runtime);
    let mut problems: Vec<Note> = effective.missing.iter().map(|name| missing(name)).collect();
    if problems.is_empty() {
        problems.extend(effective.unusable.as_deref().map(Note::new));
    }
    let unknown = definition.agents.iter().filter(|name| runtime.agents().get(name).is_none());
    problems.extend(unknown.map(|name| Note {
        key: Some("agents".to_owned()),
        ..Note::new(format!("there is no agent `{name}`"))
    }));
    for note in &mut problems {
        note.path.clone_from(&path);
    }
    // Whether a model can be asked depends on where that is tried, not on the file.
    warnings.extend(effective.no_model.as_deref().map(Note::new));
    Checked {
        path,
        name: Some(definition.name.clone()),
        ok: problems.is_empty(),
        problems,
        warnings,
        effective: Some(effective),
    }
}

fn missing(name: &str) -> Note {
    let message = format!("there is no tool `{name}` here; `convoke tools list` shows them all");
    Note { key: Some("tools".to_owned()), ..Note::new(message) }
}

fn of_path(path: &Path, runtime: &Runtime, session: &Session<'_>) -> Result<Checked, Failure> {
    let whole = session.absolute(path);
    let text = files::read(&whole).map_err(|error| {
        Failure::usage(format!("the file `{}` cannot be read", path.display())).because(&error)
    })?;
    let format = AgentFormat::of_directory(whole.parent().unwrap_or(&whole));
    let source = AgentSource::new(&whole, format, AgentOrigin::Extra);
    let notes = |notes: &[FileNote]| notes.iter().map(|note| Note::of(note, session)).collect();
    let path = Some(shown(&whole, session));
    Ok(match read(&text, &source) {
        FileReading::Agent(loaded) => of_loaded(&loaded, runtime, session),
        FileReading::Left(note) => {
            Checked { path, ok: true, warnings: notes(&[note]), ..Checked::default() }
        }
        FileReading::Wrong { problems, warnings } => {
            let (problems, warnings) = (notes(&problems), notes(&warnings));
            Checked { path, problems, warnings, ..Checked::default() }
        }
        FileReading::NoAgent => {
            let problems = vec![Note::new("it is no agent: it has no keys at its beginning")];
            Checked { path, problems, ..Checked::default() }
        }
    })
}

fn of_name(
    name: &str,
    own: Option<&AgentOverride>,
    runtime: &Runtime,
    session: &Session<'_>,
) -> Result<Checked, Failure> {
    let shipped = runtime.agents_switched_off().into_iter().find(|agent| agent.name == name);
    if let Some(definition) = shipped {
        let definition = own.map_or_else(|| definition.clone(), |own| own.apply(&definition));
        let off = vec![Note::new("it is switched off")];
        return Ok(of_definition(None, &definition, off, runtime));
    }
    let agent = match find(name, runtime) {
        Ok(agent) => agent,
        Err(failure) if name.contains(['/', '.']) => {
            return Err(
                Failure::usage(format!("there is no file `{name}`")).causes([failure.to_string()])
            );
        }
        Err(failure) => return Err(failure),
    };
    let source = source(&agent, runtime);
    let loaded = runtime.agent_files().loaded.iter();
    let mut loaded = loaded.filter(|loaded| Some(&loaded.source) == source);
    Ok(match loaded.next() {
        Some(loaded) => of_loaded(loaded, runtime, session),
        None => of_definition(None, &agent, Vec::new(), runtime),
    })
}

fn print(checked: &[Checked], output: &Output) {
    for one in checked {
        let title = match (&one.path, &one.name) {
            (Some(path), Some(name)) => format!("{path} ({name})"),
            (Some(name), None) | (None, Some(name)) => name.clone(),
            (None, None) => String::new(),
        };
        let (word, style) = if one.ok { ("ok", Style::Good) } else { ("wrong", Style::Bad) };
        let title = output.out.printable(&title).to_string();
        output.out.line(format_args!("{}  {title}", output.out.paint(style, word)));
        let line = |style: Style, label: &str, note: &Note| {
            let text = note.text();
            let label = output.out.paint(style, label);
            output.out.line(format_args!("  {label}: {}", output.out.printable(&text)));
        };
        one.problems.iter().for_each(|note| line(Style::Bad, "error", note));
        one.warnings.iter().for_each(|note| line(Style::Warn, "warning", note));
        if let Some(effective) = one.effective.as_ref().filter(|_| one.ok) {
            let mut table = Table::indented(2);
            for (name, text) in effective.lines() {
                table.row([
                    (name.to_owned(), Some(Style::Name)),
                    (output.out.printable(&text).to_string(), None),
                ]);
            }
            table.print(&output.out);
        }
        output.out.gap();
    }
    if !output.is_quiet() {
        let wrong = checked.iter().filter(|one| !one.ok).count();
        let files = amounts::count(checked.len() as u64, "agent");
        output.out.line(format_args!("{files}, {wrong} wrong"));
    }
}
