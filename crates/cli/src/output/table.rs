//! Rows in columns. The last column takes what is left of the line.

use super::stream::Stream;
use super::style::Style;
use super::text::{columns, cut};

const GAP: usize = 2;

/// Rows of the same columns.
#[derive(Debug, Default)]
pub(crate) struct Table {
    indent: usize,
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
        Self { indent, rows: Vec::new() }
    }

    /// Adds a row.
    pub(crate) fn row<const N: usize>(&mut self, cells: [(String, Option<Style>); N]) {
        let cell = |(text, style)| Cell { text, style };
        self.rows.push(cells.into_iter().map(cell).collect());
    }

    /// Returns how wide each column is.
    pub(crate) fn widths(&self) -> Vec<usize> {
        let mut widths = Vec::new();
        for row in &self.rows {
            widths.resize(widths.len().max(row.len()), 0);
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = columns(&cell.text).max(*width);
            }
        }
        widths
    }

    /// Writes the rows; on a terminal the last column is cut to fit.
    pub(crate) fn print(&self, stream: &Stream) {
        self.print_with(stream, &self.widths());
    }

    /// Writes the rows with columns of these widths, so that several tables line up.
    pub(crate) fn print_with(&self, stream: &Stream, widths: &[usize]) {
        for row in &self.rows {
            stream.line(self.render(row, widths, stream));
        }
    }

    fn render(&self, row: &[Cell], widths: &[usize], stream: &Stream) -> String {
        let mut line = " ".repeat(self.indent);
        let mut taken = self.indent;
        for (index, cell) in row.iter().enumerate() {
            let last = index + 1 == row.len();
            let text = match stream.width() {
                Some(width) if last => {
                    cut(&cell.text, width.saturating_sub(taken), stream.ellipsis())
                }
                _ => cell.text.clone(),
            };
            let width = widths.get(index).copied().unwrap_or_default();
            let padding = width.saturating_sub(columns(&text)) + GAP;
            match cell.style {
                Some(style) => line.push_str(&stream.paint(style, text).to_string()),
                None => line.push_str(&text),
            }
            if !last {
                line.push_str(&" ".repeat(padding));
            }
            taken += width + GAP;
        }
        line.truncate(line.trim_end().len());
        line
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
    fn the_last_column_fits_a_terminal() {
        let stream = Stream::on_terminal(24);
        table().print(&stream);
        assert_eq!(stream.contents(), " a     first  the quick…\n \u{1b}[1mlong\u{1b}[0m\n");
    }
}
