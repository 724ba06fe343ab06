//! Tables: in columns where there is room, as a list of facts where there is not.

use pulldown_cmark::Alignment;

use super::inline::{Inline, Line, Long};
use crate::output::{Stream, Style, columns};
use crate::view::look::{Look, Sign};

/// What stands between two columns.
const GAP: usize = 2;
/// A column that is narrower is no longer read.
const NARROWEST: usize = 8;
/// Tables with more columns are not laid out.
const MAX_COLUMNS: usize = 64;

/// A table that is being put together. The first row is the heading.
#[derive(Debug)]
pub(super) struct Table {
    alignments: Vec<Alignment>,
    rows: Vec<Vec<Inline>>,
    open: Vec<Inline>,
}

impl Table {
    pub(super) const fn new(alignments: Vec<Alignment>) -> Self {
        Self { alignments, rows: Vec::new(), open: Vec::new() }
    }

    pub(super) fn cell(&mut self, cell: Inline) {
        self.open.push(cell);
    }

    pub(super) fn end_row(&mut self) {
        self.rows.push(std::mem::take(&mut self.open));
    }

    /// Lays it out in at most `room` columns.
    pub(super) fn lines(&self, room: usize, stream: &Stream, look: Look) -> Vec<String> {
        match self.widths(room) {
            Some(widths) => self.in_columns(&widths, stream, look),
            None => self.as_facts(stream, room),
        }
    }

    /// Returns how wide each column is, if they fit.
    fn widths(&self, room: usize) -> Option<Vec<usize>> {
        let count = self.alignments.len();
        if count == 0 || count > MAX_COLUMNS {
            return None;
        }
        let mut widths = vec![1; count];
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = cell.columns().max(*width);
            }
        }
        let room = room.checked_sub(GAP * (count - 1))?;
        // The widest column gives first. No column is wider than the room, so this ends soon.
        for width in &mut widths {
            *width = (*width).min(room);
        }
        while widths.iter().sum::<usize>() > room {
            let widest = widths.iter_mut().max()?;
            if *widest <= NARROWEST {
                return None;
            }
            *widest -= 1;
        }
        Some(widths)
    }

    fn in_columns(&self, widths: &[usize], stream: &Stream, look: Look) -> Vec<String> {
        let mut lines = Vec::new();
        for (index, row) in self.rows.iter().enumerate() {
            let style = (index == 0).then_some(Style::Name);
            lines.extend(self.row(row, widths, style, stream));
            if index == 0 {
                let rule = |width: &usize| look.sign(Sign::Rule).repeat(*width);
                let rules: Vec<String> = widths.iter().map(rule).collect();
                lines.push(stream.paint(Style::Dim, rules.join(&" ".repeat(GAP))).to_string());
            }
        }
        lines
    }

    /// Lays out one row, which takes as many lines as its longest cell.
    fn row(
        &self,
        row: &[Inline],
        widths: &[usize],
        style: Option<Style>,
        stream: &Stream,
    ) -> Vec<String> {
        let cells: Vec<Vec<Line>> =
            row.iter().zip(widths).map(|(cell, width)| cell.lines(*width, Long::Broken)).collect();
        let height = cells.iter().map(Vec::len).max().unwrap_or_default().max(1);
        let line = |index: usize| {
            let mut text = String::new();
            for ((cell, width), alignment) in cells.iter().zip(widths).zip(&self.alignments) {
                let line = cell.get(index).cloned().unwrap_or_default();
                let free = width.saturating_sub(line.columns());
                let left = match alignment {
                    Alignment::Right => free,
                    Alignment::Center => free / 2,
                    Alignment::None | Alignment::Left => 0,
                };
                let painted = line.paint(stream);
                let painted = match style {
                    Some(style) if line.columns() > 0 => stream.paint(style, painted).to_string(),
                    _ => painted,
                };
                text.push_str(&" ".repeat(left));
                text.push_str(&painted);
                text.push_str(&" ".repeat(free - left + GAP));
            }
            text.trim_end().to_owned()
        };
        (0..height).map(line).collect()
    }

    /// Writes each row as lines of `heading: cell`, with a blank line between rows.
    fn as_facts(&self, stream: &Stream, room: usize) -> Vec<String> {
        let Some((heading, rows)) = self.rows.split_first() else { return Vec::new() };
        let mut lines = Vec::new();
        for row in rows {
            if !lines.is_empty() {
                lines.push(String::new());
            }
            for (index, cell) in row.iter().enumerate().filter(|(_, cell)| !cell.is_empty()) {
                let name = heading.get(index).map(Inline::plain).unwrap_or_default();
                lines.extend(fact(&name, cell, stream, room));
            }
        }
        lines
    }
}

/// Writes a cell behind its heading, or below it where that is too long.
fn fact(name: &str, cell: &Inline, stream: &Stream, room: usize) -> Vec<String> {
    let pieces = cell.lines(room.saturating_sub(2).max(1), Long::Whole);
    let painted = stream.paint(Style::Name, format!("{name}:")).to_string();
    match pieces.as_slice() {
        [one] if columns(name) + 2 + one.columns() <= room => {
            vec![format!("{painted} {}", one.paint(stream))]
        }
        several => {
            let below = several.iter().map(|line| format!("  {}", line.paint(stream)));
            std::iter::once(painted).chain(below).collect()
        }
    }
}
