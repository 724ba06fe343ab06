//! Finding files by content.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use convoke_core::{Effects, ToolError};
use convoke_tool::{Place, Rendered, ToolContext};
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use rustix::fs::FileType;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::filter::Filter;
use super::globs::Patterns;
use super::lines::{FileMatches, FileSearch, Keep, Line};
use super::report::Report;
use super::scope::{Naming, Scope, open, reads_or_here};
use super::unreadable;
use crate::walk::{Found, Ignore, Missed, Next, Stop, Walk, threads};

const DEFAULT_MATCHES: u64 = 100;
const DEFAULT_FILES: u64 = 1000;
/// How many lines one answer has at most, those around matches included.
const MAX_LINES: u64 = 100_000;
/// A pattern that takes more when compiled is turned down.
const PATTERN_BYTES: usize = 10 * 1024 * 1024;

#[derive(Deserialize, JsonSchema)]
pub(super) struct GrepArguments {
    /// The regular expression, in Rust's syntax; it matches within a line.
    pattern: String,
    /// The file or directory to search; the working directory if absent.
    path: Option<String>,
    /// Only files whose names or paths match, as `*.rs`, `src/**` or `src/`.
    include: Option<Patterns>,
    /// No files or directories that match.
    exclude: Option<Patterns>,
    /// Only files of a type, as `rust`, `py`, `js`, `md`.
    r#type: Option<String>,
    /// Whether case matters; true if absent.
    case_sensitive: Option<bool>,
    /// Whether the pattern is plain text.
    literal: Option<bool>,
    /// How many lines to show around each match.
    #[schemars(range(max = 50))]
    context: Option<usize>,
    /// What to return: matching lines (the default), names of files, or numbers of matches.
    mode: Option<Mode>,
    /// How many at most; 100 matches or 1000 files if absent.
    #[schemars(range(min = 1, max = 100_000))]
    max_matches: Option<u64>,
    /// Whether to search files that `.gitignore` names, too.
    include_ignored: Option<bool>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Mode {
    Content,
    Files,
    Count,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct GrepResult {
    /// The files with matches, sorted by path.
    files: Vec<GrepFile>,
    /// How many matches these are; in mode `files`, how many files.
    total: u64,
    /// Whether there are more than are shown.
    truncated: bool,
    /// How many files and directories could not be read.
    #[serde(skip_serializing_if = "unreadable::is_zero")]
    unreadable: u64,
    /// How many files and directories the policy keeps from this call.
    #[serde(skip_serializing_if = "unreadable::is_zero")]
    forbidden: u64,
}

#[derive(Serialize, JsonSchema)]
struct GrepFile {
    /// Its path.
    path: String,
    /// How many matches it has; absent in mode `files`.
    #[serde(skip_serializing_if = "Option::is_none")]
    count: Option<u64>,
    /// Its lines, in mode `content`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    lines: Vec<Line>,
}

impl GrepArguments {
    pub(super) fn effects(&self) -> Effects {
        reads_or_here(self.path.as_deref())
    }
}

pub(super) async fn grep(
    wanted: GrepArguments,
    context: ToolContext,
) -> Result<Rendered<GrepResult>, ToolError> {
    let place = context.locate(wanted.path.as_deref().unwrap_or("."))?;
    let inner = context.clone();
    context.blocking(move || search(&wanted, &place, &inner)).await
}

fn search(
    wanted: &GrepArguments,
    place: &Place,
    context: &ToolContext,
) -> Result<Rendered<GrepResult>, ToolError> {
    let mode = wanted.mode.unwrap_or(Mode::Content);
    let matcher = matcher(wanted)?;
    let file_type = wanted.r#type.as_deref();
    let filter = Filter::new(wanted.include.as_ref(), wanted.exclude.as_ref(), file_type, place)?;
    let default = if mode == Mode::Content { DEFAULT_MATCHES } else { DEFAULT_FILES };
    let context_lines = wanted.context.unwrap_or_default();
    // Lines around matches count too, so that no answer grows without end.
    let limit =
        wanted.max_matches.unwrap_or(default).min(MAX_LINES / (1 + 2 * context_lines as u64));
    let search = Search {
        matcher: &matcher,
        filter: &filter,
        context_lines,
        keep: match mode {
            Mode::Content => Keep::Lines(limit),
            Mode::Files => Keep::Existence,
            Mode::Count => Keep::Count,
        },
        weight: if mode == Mode::Content { |found| found.matches } else { |_| 1 },
        report: Mutex::new(Report::new(limit, context_lines)),
        stop: &|| context.cancellation().is_cancelled(),
    };
    let ignore =
        if wanted.include_ignored == Some(true) { Ignore::Nothing } else { Ignore::Respect };
    match open(place, ignore, context)? {
        Scope::File(file) => search.one_file(file)?,
        Scope::Directory(walk) => search.tree(*walk),
    }
    let report = search.report.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok(render(report, mode, &Naming::new(place, context)))
}

fn matcher(wanted: &GrepArguments) -> Result<RegexMatcher, ToolError> {
    let mut builder = RegexMatcherBuilder::new();
    builder
        .case_insensitive(wanted.case_sensitive == Some(false))
        .fixed_strings(wanted.literal == Some(true))
        .size_limit(PATTERN_BYTES)
        .dfa_size_limit(PATTERN_BYTES)
        .line_terminator(Some(b'\n'));
    builder.build(&wanted.pattern).map_err(|error| {
        let hint =
            if wanted.literal == Some(true) { "" } else { " (set `literal` to search plain text)" };
        ToolError::validation([format!("`pattern`: {error}{hint}")])
    })
}

struct Search<'a> {
    matcher: &'a RegexMatcher,
    filter: &'a Filter,
    context_lines: usize,
    keep: Keep,
    weight: fn(&FileMatches) -> u64,
    report: Mutex<Report>,
    stop: Stop<'a>,
}

impl Search<'_> {
    fn tree(&self, walk: Walk) {
        let missed = walk.run(threads(), self.stop, || {
            let mut files = self.files();
            move |found: &Found<'_>| {
                match found.file_type {
                    FileType::Directory if !self.filter.enters(found.path) => {
                        return Next::PassOver;
                    }
                    FileType::RegularFile if self.filter.takes(found.path) => {
                        self.file(&mut files, found);
                    }
                    _ => {}
                }
                Next::GoOn
            }
        });
        let mut report = self.lock();
        report.missed.unreadable += missed.unreadable;
        report.missed.forbidden += missed.forbidden;
    }

    fn files(&self) -> FileSearch<'_> {
        FileSearch::new(self.matcher, self.context_lines, self.stop)
    }

    fn file(&self, files: &mut FileSearch<'_>, found: &Found<'_>) {
        let keep = {
            let report = self.lock();
            match (report.wants(found.path), report.more) {
                (true, _) => self.keep,
                // Enough is known, but not whether there is more.
                (false, false) => Keep::Existence,
                (false, true) => return,
            }
        };
        match found.open().and_then(|file| files.search(File::from(file), keep)) {
            Ok(matches) if matches.matches == 0 => {}
            Ok(matches) => self.add(found.path.to_path_buf(), matches),
            // It can be read, but there is no time left for it.
            Err(_) if (self.stop)() => {}
            Err(_) => self.lock().missed.unreadable += 1,
        }
    }

    fn one_file(&self, file: File) -> Result<(), ToolError> {
        let found = self.files().search(file, self.keep).map_err(|error| {
            if (self.stop)() {
                return ToolError::cancelled("the file was not searched to its end");
            }
            ToolError::failed("the file cannot be read").caused_by(&error)
        })?;
        if found.matches > 0 {
            self.add(PathBuf::new(), found);
        }
        Ok(())
    }

    fn add(&self, path: PathBuf, found: FileMatches) {
        self.lock().add(path, found, self.weight);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Report> {
        self.report.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn render(report: Report, mode: Mode, naming: &Naming) -> Rendered<GrepResult> {
    let (truncated, missed) = (report.more, report.missed);
    let files: Vec<GrepFile> = report
        .into_files()
        .into_iter()
        .map(|(path, found)| GrepFile {
            path: naming.name(Path::new(&path)),
            count: (mode != Mode::Files).then_some(found.matches),
            lines: found.lines,
        })
        .collect();
    let total = match mode {
        Mode::Files => files.len() as u64,
        _ => files.iter().filter_map(|file| file.count).sum(),
    };
    let Missed { unreadable, forbidden } = missed;
    let result = GrepResult { files, total, truncated, unreadable, forbidden };
    let text = unreadable::note(text(&result, mode), missed);
    Rendered::new(result, text)
}

fn text(result: &GrepResult, mode: Mode) -> String {
    if result.files.is_empty() {
        return "No match.".to_owned();
    }
    let entry = |file: &GrepFile| match mode {
        Mode::Files => format!("{}\n", file.path),
        Mode::Count => format!("{}: {}\n", file.path, file.count.unwrap_or_default()),
        Mode::Content => section(file),
    };
    // A blank line keeps the lines of one file apart from the next file's path.
    let between = if mode == Mode::Content { "\n" } else { "" };
    let mut text = result.files.iter().map(entry).collect::<Vec<_>>().join(between);
    if result.truncated {
        text.push_str("[there are more matches; narrow the search, or raise `max_matches`]\n");
    }
    text
}

/// A file's lines below its path: `12:` before a match, `11-` before a line near one.
fn section(file: &GrepFile) -> String {
    let mut text = format!("{}\n", file.path);
    let shows_gaps = file.lines.iter().any(|line| !line.is_match);
    let mut previous = None;
    for line in &file.lines {
        if shows_gaps && previous.is_some_and(|number| line.number > number + 1) {
            text.push_str("--\n");
        }
        let mark = if line.is_match { ':' } else { '-' };
        text.push_str(&format!("{}{mark} {}\n", line.number, line.text));
        previous = Some(line.number);
    }
    text
}
