//! Rows in columns. The last column takes what is left of the line, and is made to fit it. Where rows are cut,
//! so are other columns that would leave no room for it: no row is longer than the terminal is wide.

use super::stream::Stream;
use super::style::Style;
use super::text::{columns, cut, harmless, wrap};

const GAP: usize = 2;
/// How much room the last column of rows that are cut has at least.
const LAST: usize = 16;
/// How narrow other columns get at most to make that room.
const NARROWEST: usize = 6;
/// How wide a column gets at most on a pipe, where what is longer makes only its own row longer.
const PADDED: usize = 64;
/// How much wider than others the first column stays: it has the names, which people type.
const NAMES: usize = 24;

/// What happens to a last column that is too long for the terminal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Fit {
    /// It goes on below itself.
    #[default]
    Wrap,
    /// It ends with a mark.
    Cut,
}

/// Rows of the same columns.
#[derive(Debug, Default)]
pub(crate) struct Table {
    indent: usize,
    fit: Fit,
    /// What the columns are, where that is said.
    titles: Vec<Cell>,
    rows: Vec<Vec<Cell>>,
}

#[derive(Debug)]
struct Cell {
    text: String,
    style: Option<Style>,
}

impl Table {
    /// Makes a table that starts this many columns from the left.
    pub(crate) fn indented(indent: usize) -> Self {
        Self { indent, ..Self::default() }
    }

    /// Cuts what does not fit, where a glance is wanted and no more.
    pub(crate) const fn cut(mut self) -> Self {
        self.fit = Fit::Cut;
        self
    }

    /// Says above the rows what the columns are; where there are no rows, nothing is said.
    pub(crate) fn titled<const N: usize>(mut self, titles: [&str; N]) -> Self {
        let cell = |title: &str| Cell { text: title.to_owned(), style: Some(Style::Dim) };
        self.titles = titles.into_iter().map(cell).collect();
        self
    }

    /// Writes what there is to say by name, a line each. What is said may come from somewhere else.
    pub(crate) fn facts(facts: impl IntoIterator<Item = (&'static str, String)>, stream: &Stream) {
        let mut table = Self::indented(2);
        for (name, text) in facts {
            table.row([(name.to_owned(), Some(Style::Name)), (text, None)]);
        }
        table.print(stream);
    }

    /// Adds a row. What is in it may come from somewhere else, and steers no terminal.
    pub(crate) fn row<const N: usize>(&mut self, cells: [(String, Option<Style>); N]) {
        let cell = |(text, style): (String, _)| Cell { text: harmless(&text), style };
        self.rows.push(cells.into_iter().map(cell).collect());
    }

    /// Returns how wide each column is.
    pub(crate) fn widths(&self) -> Vec<usize> {
        let mut widths = Vec::new();
        for row in std::iter::once(&self.titles).chain(&self.rows) {
            widths.resize(widths.len().max(row.len()), 0);
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = columns(&cell.text).max(*width);
            }
        }
        widths
    }

    /// Writes the rows.
    pub(crate) fn print(&self, stream: &Stream) {
        self.print_with(stream, &self.widths());
    }

    /// Writes the rows with columns of these widths, so that several tables line up.
    pub(crate) fn print_with(&self, stream: &Stream, widths: &[usize]) {
        let widths = match (stream.width(), self.fit) {
            (Some(width), Fit::Cut) => self.narrowed(widths, width),
            (None, _) => widths.iter().map(|width| (*width).min(PADDED)).collect(),
            _ => widths.to_vec(),
        };
        let titles =
            Some(&self.titles).filter(|titles| !titles.is_empty() && !self.rows.is_empty());
        for row in titles.into_iter().chain(&self.rows) {
            self.print_row(row, &widths, stream);
        }
    }

    /// Makes columns narrower, the widest first, until there is room for the last one.
    fn narrowed(&self, widths: &[usize], width: usize) -> Vec<usize> {
        let mut widths = widths.to_vec();
        let Some((last, others)) = widths.split_last_mut() else { return widths };
        let gaps = self.indent + GAP * others.len();
        let room = width.saturating_sub(gaps + LAST.min(*last));
        while others.iter().sum::<usize>() > room {
            let wide = |(index, width): &(usize, &mut usize)| {
                width.saturating_sub(if *index == 0 { NAMES } else { 0 })
            };
            let wider = others.iter_mut().enumerate().filter(|(_, width)| **width > NARROWEST);
            match wider.max_by_key(wide) {
                Some((_, widest)) => *widest -= 1,
                None => break,
            }
        }
        widths
    }

    fn print_row(&self, row: &[Cell], widths: &[usize], stream: &Stream) {
        let Some((last, others)) = row.split_last() else { return };
        let mut line = " ".repeat(self.indent);
        let mut taken = self.indent;
        for (cell, width) in others.iter().zip(widths) {
            let text = match stream.width() {
                Some(_) => cut(&cell.text, *width, stream.ellipsis()),
                // Whoever reads a pipe gets all of it.
                None => cell.text.clone(),
            };
            let padding = width.saturating_sub(columns(&text)) + GAP;
            line.push_str(&painted(&text, cell.style, stream));
            line.push_str(&" ".repeat(padding));
            taken += width + GAP;
        }
        let mut pieces = self.fitted(&last.text, taken, stream).into_iter();
        line.push_str(&painted(&pieces.next().unwrap_or_default(), last.style, stream));
        stream.line(line.trim_end());
        for piece in pieces {
            let line = format!("{:taken$}{}", "", painted(&piece, last.style, stream));
            stream.line(line.trim_end());
        }
    }

    /// Breaks or cuts the last column.
    fn fitted(&self, text: &str, taken: usize, stream: &Stream) -> Vec<String> {
        match (stream.width().map(|width| width.saturating_sub(taken)), self.fit) {
            (None, Fit::Cut) => vec![text.to_owned()],
            (None, Fit::Wrap) => text.lines().map(str::to_owned).collect(),
            (Some(room), Fit::Cut) => vec![cut(text, room, stream.ellipsis())],
            (Some(room), Fit::Wrap) => wrap(text, Some(room)),
        }
    }
}

fn painted(text: &str, style: Option<Style>, stream: &Stream) -> String {
    match style {
        Some(style) if !text.is_empty() => stream.paint(style, text).to_string(),
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::indented(1);
        table.row([
            ("a".into(), None),
            ("first".into(), None),
            ("the quick brown fox".into(), None),
        ]);
        table.row([
            ("long".into(), Some(Style::Name)),
            (String::new(), None),
            (String::new(), None),
        ]);
        table
    }

    #[test]
    fn columns_line_up_and_nothing_trails() {
        let stream = Stream::in_memory();
        table().print(&stream);
        assert_eq!(stream.contents(), " a     first  the quick brown fox\n long\n");
    }

    #[test]
    fn what_stands_in_a_row_steers_no_terminal() {
        let stream = Stream::on_terminal(80);
        let mut table = Table::default();
        table.row([("a\u{1b}]0;x\u{7}".into(), None), ("b\u{1b}[2J".into(), None)]);
        table.print(&stream);
        assert_eq!(stream.contents(), "a\\u{1b}]0;x\\u{7}  b\\u{1b}[2J\n");
    }

    #[test]
    fn titles_stand_above_rows_and_never_alone() {
        let stream = Stream::in_memory();
        let mut table = Table::default().titled(["name", "about"]);
        table.print(&stream);
        assert_eq!(stream.contents(), "");
        table.row([("a".into(), None), ("b".into(), None)]);
        table.print(&stream);
        assert_eq!(stream.contents(), "name  about\na     b\n");
    }

    #[test]
    fn one_long_name_does_not_pad_every_row_of_a_pipe() {
        let stream = Stream::in_memory();
        let mut table = Table::default();
        table.row([("x".repeat(200), None), ("long".into(), None)]);
        table.row([("a".into(), None), ("short".into(), None)]);
        table.print(&stream);
        let lines: Vec<usize> = stream.contents().lines().map(columns).collect();
        assert_eq!(lines, [206, PADDED + 2 + 5]);
    }

    #[test]
    fn several_lines_stay_in_their_column() {
        let facts = [("says", "one\n\n  two".to_owned()), ("empty", String::new())];
        let stream = Stream::in_memory();
        Table::facts(facts.clone(), &stream);
        assert_eq!(stream.contents(), "  says   one\n\n           two\n  empty\n");
        let stream = Stream::on_terminal(40).without_colour();
        Table::facts(facts, &stream);
        assert!(stream.contents().starts_with("  says   one\n"), "{}", stream.contents());
    }

    #[test]
    fn the_last_column_fits_a_terminal() {
        let stream = Stream::on_terminal(24);
        table().cut().print(&stream);
        assert_eq!(stream.contents(), " a     first  the quick…\n \u{1b}[1mlong\u{1b}[0m\n");
    }

    #[test]
    fn no_row_is_longer_than_the_terminal_is_wide() {
        let mut table = Table::indented(0).cut();
        let name = "a_name_that_is_as_long_as_the_longest_names_of_agents_may_be_at_all";
        table.row([
            (name.into(), None),
            ("project (not offered)".into(), None),
            ("provider/a-model-with-a-long-name-2026".into(), None),
            ("a description that goes on for much longer than that".into(), None),
        ]);
        table.row([
            ("b".into(), None),
            ("user".into(), None),
            ("-".into(), None),
            ("c".into(), None),
        ]);
        for width in [50, 80, 120] {
            let stream = Stream::on_terminal(width).without_colour();
            table.print(&stream);
            for line in stream.contents().lines() {
                assert!(columns(line) <= width, "{width}: {line}");
            }
        }
    }

    #[test]
    fn what_matters_goes_on_below_itself() {
        let stream = Stream::on_terminal(34);
        table().print(&stream);
        assert!(stream.contents().starts_with(" a     first  the quick brown fox\n"));
        let stream = Stream::on_terminal(30);
        let mut table = Table::default();
        table.row([("key".into(), None), ("one two three four five six seven".into(), None)]);
        table.print(&stream);
        assert_eq!(stream.contents(), "key  one two three four five\n     six seven\n");
    }
}
