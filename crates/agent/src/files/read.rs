//! One file into one agent.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::directory::{AgentFormat, AgentOrigin};
use super::document::{self, NoDocument};
use super::field::{Fields, Unknown};
use super::note::{FileNote, Finding, Findings};
use super::{claude, convoke, gemini, opencode, yaml};
use crate::check::{check, check_name};
use crate::definition::AgentDefinition;

/// Where an agent was read from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentSource {
    /// The file.
    pub path: PathBuf,
    /// How it is written.
    pub format: AgentFormat,
    /// Whose it is.
    pub origin: AgentOrigin,
    /// The name it has by its place, where it has none of its own: the path below the directory, without
    /// the ending.
    pub place: String,
}

impl AgentSource {
    /// Makes the source of a file that lies right in a directory.
    pub fn new(path: impl Into<PathBuf>, format: AgentFormat, origin: AgentOrigin) -> Self {
        let path = path.into();
        let place = path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
        Self { path, format, origin, place: place.unwrap_or_default() }
    }
}

/// An agent that was read.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// What it is.
    pub definition: AgentDefinition,
    /// Where it was read from.
    pub source: AgentSource,
    /// What its file says that is not used, or not as it is written.
    pub warnings: Vec<FileNote>,
    /// Where its keys are.
    pub lines: KeyLines,
    /// Tools of servers that the file switches on, which it has without that where there is such a server, with
    /// their lines.
    pub switched_on: Vec<(String, u64)>,
}

/// A file that cannot be used, as far as it could be read.
#[derive(Clone, Debug)]
pub struct Draft {
    /// The file.
    pub source: AgentSource,
    /// What it would be; nothing, where its keys cannot be read at all.
    pub definition: Option<AgentDefinition>,
    /// Where its keys are.
    pub lines: KeyLines,
}

/// The lines of the keys of a file, by their names in snake case.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyLines(BTreeMap<String, u64>);

impl KeyLines {
    pub(super) fn new(lines: impl IntoIterator<Item = (String, u64)>) -> Self {
        Self(lines.into_iter().collect())
    }

    /// Returns the line of the first of these keys that the file has, and that key.
    pub fn first<'k>(&self, keys: &[&'k str]) -> Option<(&'k str, u64)> {
        keys.iter().find_map(|key| Some((*key, *self.0.get(*key)?)))
    }
}

/// What came of reading a file.
#[derive(Clone, Debug)]
pub enum FileReading {
    /// An agent.
    Agent(Box<Loaded>),
    /// An agent that is not to be used, with why.
    Left(FileNote),
    /// Nothing that can be used.
    Wrong {
        /// What is wrong.
        problems: Vec<FileNote>,
        /// What would not be used either.
        warnings: Vec<FileNote>,
        /// What could be read all the same.
        draft: Box<Draft>,
    },
    /// A file beside the agents that is none of them.
    NoAgent,
}

/// What a format makes of the keys of a file.
pub(super) enum Verdict {
    /// An agent, unless problems were found.
    Agent(Box<AgentDefinition>),
    /// An agent that is not to be used.
    Left(Finding),
}

/// What a format gets beside the keys.
pub(super) struct Context<'a> {
    /// The name of the agent by its place, made one that can be used.
    pub(super) place: &'a str,
    /// The text below the keys; nothing, in a file of keys only.
    pub(super) body: Option<&'a str>,
}

impl Context<'_> {
    /// Returns the text below the keys, if there is one.
    pub(super) fn body(&self) -> Option<String> {
        self.body.filter(|body| !body.is_empty()).map(str::to_owned)
    }
}

/// Reads the text of a file.
pub fn read(text: &str, source: &AgentSource) -> FileReading {
    let path = source.path.as_path();
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut findings = Findings::default();
    let (keys, body, body_line) = if source.format == AgentFormat::Convoke && is_yaml(path) {
        (text.to_owned(), None, 0)
    } else {
        match document::split(text) {
            Ok(document) => (document.keys, Some(document.body), document.body_line),
            Err(NoDocument::NoKeys) if is_readme(path) => return FileReading::NoAgent,
            Err(NoDocument::NoKeys) => {
                let message = "there are no keys at its beginning; begin it with a line of `---`, \
                               `name:`, `description:` and another `---`";
                return wrong(source, Finding::of_line(1, message));
            }
            Err(NoDocument::Unfinished(finding)) => return wrong(source, finding),
        }
    };
    let entries = match (yaml::parse(&keys, &mut findings), source.format) {
        (Ok(entries), _) => entries,
        (Err(finding), AgentFormat::Convoke) => return wrong(source, finding),
        // Other tools read texts with colons in them that are not in quotes.
        (Err(finding), _) => match yaml::parse(&document::with_quotes(&keys), &mut findings) {
            Err(_) => return wrong(source, finding),
            Ok(entries) => {
                let message = "a text with `: ` in it is not in quotes; it is read as one text";
                findings.warnings.push(Finding {
                    line: finding.line,
                    key: None,
                    message: message.into(),
                });
                entries
            }
        },
    };
    let mut fields = Fields::new(entries, "", &mut findings);
    let place = name_of_place(&source.place);
    let context = Context { place: &place, body: body.as_deref() };
    let (verdict, known) = match source.format {
        AgentFormat::Convoke => convoke::read(&mut fields, &context, &mut findings),
        AgentFormat::Gemini => gemini::read(&mut fields, &context, &mut findings),
        AgentFormat::Claude => claude::read(&mut fields, &context, &mut findings),
        AgentFormat::OpenCode => opencode::read(&mut fields, &context, &mut findings),
    };
    let definition = match verdict {
        Verdict::Agent(definition) => *definition,
        Verdict::Left(finding) => return FileReading::Left(finding.into_note(path)),
    };
    if definition.prompt.system_prompt.is_none() && definition.prompt.query.is_none() {
        let message = "it has no instructions; write below the keys how it is to work";
        findings.warnings.push(Finding::of_line(1, message));
    }
    check_definition(&definition, &fields, body.is_some().then_some(body_line), &mut findings);
    let lines = fields.lines();
    let unknown = match source.format {
        AgentFormat::Convoke => Unknown::Ours,
        _ => Unknown::Told,
    };
    fields.finish(known, unknown, &mut findings);
    findings.sort();
    let notes = |found: Vec<Finding>| found.into_iter().map(|finding| finding.into_note(path));
    let warnings = notes(findings.warnings).collect();
    let source = source.clone();
    if findings.problems.is_empty() {
        let switched_on = findings.switched_on;
        FileReading::Agent(Box::new(Loaded { definition, source, warnings, lines, switched_on }))
    } else {
        let draft = Box::new(Draft { source, definition: Some(definition), lines });
        FileReading::Wrong { problems: notes(findings.problems).collect(), warnings, draft }
    }
}

fn check_definition(
    definition: &AgentDefinition,
    fields: &Fields,
    body_line: Option<u64>,
    findings: &mut Findings,
) {
    let offset = |line: Option<usize>| {
        line.and_then(|line| u64::try_from(line).ok()).unwrap_or(1).saturating_sub(1)
    };
    let said: Vec<Option<u64>> = findings.problems.iter().map(|found| found.line).collect();
    for problem in check(definition).err().unwrap_or_default() {
        let at = |key: &str| fields.line(key);
        let part = problem.item.as_ref().map(|item| format!("{}.{item}", problem.key));
        let part_line = part.as_deref().and_then(at);
        let (key, line) = match (problem.key, body_line) {
            (_, _) if part_line.is_some() => (part.as_deref(), part_line),
            ("system_prompt", Some(line)) => (None, Some(line + offset(problem.line))),
            ("rules", _) => (Some("rules"), at("rules").or(at("permissions")).or(at("permission"))),
            ("commands", _) if at("commands").is_none() => (Some("tools"), at("tools")),
            ("output", _) => (Some("output"), at("output").or(at("output_schema"))),
            (key, _) => (Some(key), at(key)),
        };
        // What was said about a key already is not said again in other words.
        if line.is_none() || !said.contains(&line) {
            let key = key.map(str::to_owned);
            findings.problems.push(Finding {
                line: line.or(Some(1)),
                key,
                message: problem.message,
            });
        }
    }
}

/// Says what keeps a file from being read any further.
fn wrong(source: &AgentSource, problem: Finding) -> FileReading {
    unread(source, problem.into_note(&source.path))
}

/// Says of a file that cannot be read at all why not.
pub(super) fn unread(source: &AgentSource, problem: FileNote) -> FileReading {
    let (definition, lines) = (None, KeyLines::default());
    let draft = Box::new(Draft { source: source.clone(), definition, lines });
    FileReading::Wrong { problems: vec![problem], warnings: Vec::new(), draft }
}

/// Makes a name of a place: `team/reviewer` is `team-reviewer`.
fn name_of_place(place: &str) -> String {
    let name: String = place
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' })
        .collect();
    let name = name.trim_matches('-').to_owned();
    if check_name(&name).is_ok() { name } else { crate::check::suggest_name(place) }
}

pub(super) fn is_yaml(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == "yml" || ending == "yaml")
}

/// Tells whether a file is about the others.
pub(super) fn is_readme(path: &Path) -> bool {
    let stem = path.file_stem().map(|stem| stem.to_string_lossy().to_ascii_lowercase());
    stem.is_some_and(|stem| stem == "readme")
}
