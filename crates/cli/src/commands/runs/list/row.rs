//! Runs as rows. Where the terminal is narrow, columns go until there is room for what was asked.

use std::collections::HashMap;

use convoke::journal::Summary;
use convoke_core::Timestamp;

use super::super::short;
use super::super::state::State;
use crate::output::{Stream, Style, columns};
use crate::view::line::Line;
use crate::view::tree::between;
use crate::view::{amounts, brief};

/// How many columns what was asked wants at least.
const PROMPT: usize = 24;
/// How many columns it has at most.
const LONGEST_PROMPT: usize = 200;
/// How many columns a model has at most.
const MODEL: usize = 26;
const GAP: usize = 2;

/// A column before the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Column {
    Run,
    Started,
    Status,
    Model,
    Turns,
    Tools,
    Tokens,
    Cost,
}

/// In which order they stand.
const COLUMNS: [Column; 8] = [
    Column::Run,
    Column::Started,
    Column::Status,
    Column::Model,
    Column::Turns,
    Column::Tools,
    Column::Tokens,
    Column::Cost,
];
/// In which order they go where there is too little room.
const LEAST_MISSED: [Column; 5] =
    [Column::Turns, Column::Tools, Column::Model, Column::Tokens, Column::Cost];

/// Runs to be printed.
#[derive(Debug)]
pub(super) struct Rows<'r> {
    runs: &'r [&'r Summary],
    endings: HashMap<&'r str, usize>,
    now: Timestamp,
}

impl<'r> Rows<'r> {
    /// These runs, among all there are.
    pub(super) fn of(runs: &'r [&'r Summary], all: &'r [Summary], now: Timestamp) -> Self {
        let ids: Vec<&str> = all.iter().map(|run| run.run.as_str()).collect();
        Self { runs, endings: short::endings(&ids), now }
    }

    /// Prints them.
    pub(super) fn print(&self, stream: &Stream) {
        let cells: Vec<[String; 8]> = self
            .runs
            .iter()
            .map(|run| COLUMNS.map(|column| self.cell(column, run, stream)))
            .collect();
        let mut shown = Vec::new();
        for (index, column) in COLUMNS.into_iter().enumerate() {
            let cells = cells.iter().filter_map(|row| row.get(index));
            let width = cells.map(|cell| columns(cell)).max().unwrap_or_default();
            if width > 0 {
                shown.push((index, column, width.max(columns(column.title()))));
            }
        }
        if let Some(room) = stream.width() {
            drop_least_missed(&mut shown, room.saturating_sub(PROMPT));
        }
        let width = stream.width().unwrap_or(usize::MAX);
        let title = shown.iter().fold(Line::default(), |line, (_, column, width)| {
            column.put(line, Some(Style::Dim), column.title(), *width)
        });
        stream.line(title.styled(Style::Dim, "asked").fit(width, stream));
        for (run, row) in self.runs.iter().zip(&cells) {
            let line = shown.iter().fold(Line::default(), |line, (index, column, width)| {
                let text = row.get(*index).map(String::as_str).unwrap_or_default();
                match column {
                    Column::Run => self.id(line, text, *width),
                    Column::Status => column.put(line, Some(State::of(run).style()), text, *width),
                    _ => column.put(line, None, text, *width),
                }
            });
            let (style, asked) = match (&run.problem, &run.agent) {
                (Some(problem), _) => (Some(Style::Bad), problem.clone()),
                (None, Some(agent)) => (None, format!("@{agent} {}", run.prompt)),
                (None, None) => (None, run.prompt.clone()),
            };
            let line = line.flexible(style, brief::one_line(&asked, LONGEST_PROMPT));
            stream.line(line.fit(width, stream).trim_end());
        }
    }

    /// The part of an id that is enough to name the run stands out.
    fn id(&self, line: Line, id: &str, width: usize) -> Line {
        let enough = self.endings.get(id).copied().unwrap_or(id.len());
        let (rest, end) = id.split_at_checked(id.len() - enough).unwrap_or(("", id));
        let padding = (width + GAP).saturating_sub(columns(id));
        line.styled(Style::Dim, rest).styled(Style::Name, end).plain(" ".repeat(padding))
    }

    fn cell(&self, column: Column, run: &Summary, stream: &Stream) -> String {
        let some = |number: u64| if number == 0 { String::new() } else { number.to_string() };
        match column {
            Column::Run => run.run.to_string(),
            Column::Started if run.created == Timestamp::default() => String::new(),
            Column::Started => amounts::ago(between(run.created, self.now)),
            Column::Status => State::of(run).shown(run.open_questions, stream),
            Column::Model => brief::one_line(&run.model, MODEL),
            Column::Turns => some(run.turns.into()),
            Column::Tools => some(run.tool_calls),
            Column::Tokens => run.usage.as_ref().map(amounts::all_tokens).unwrap_or_default(),
            Column::Cost => run.usage.as_ref().and_then(amounts::cost).unwrap_or_default(),
        }
    }
}

impl Column {
    const fn title(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Started => "started",
            Self::Status => "status",
            Self::Model => "model",
            Self::Turns => "turns",
            Self::Tools => "tools",
            Self::Tokens => "tokens",
            Self::Cost => "cost",
        }
    }

    /// Adds a cell. Numbers stand at the right.
    fn put(self, line: Line, style: Option<Style>, text: &str, width: usize) -> Line {
        let padding = " ".repeat(width.saturating_sub(columns(text)));
        let is_number = matches!(self, Self::Turns | Self::Tools | Self::Tokens | Self::Cost);
        let (before, after) =
            if is_number { (padding, String::new()) } else { (String::new(), padding) };
        let line = line.plain(before);
        let line = match style {
            Some(style) => line.styled(style, text),
            None => line.plain(text),
        };
        line.plain(after + &" ".repeat(GAP))
    }
}

fn drop_least_missed(shown: &mut Vec<(usize, Column, usize)>, room: usize) {
    for least in LEAST_MISSED {
        let taken: usize = shown.iter().map(|(_, _, width)| width + GAP).sum();
        if taken <= room {
            return;
        }
        shown.retain(|(_, column, _)| *column != least);
    }
}
