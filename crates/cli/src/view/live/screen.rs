//! Lines that are drawn again in their own place.
//!
//! The cursor rests at the beginning of the line below the region, or at the end of its last line where
//! somebody types there. To draw again it goes up by as many rows as the region takes now: a terminal
//! that became narrower has broken its lines.

use crate::output::Size;
use crate::view::line::painted_columns;

/// Clears from the cursor to the end of the line.
const CLEAR_LINE: &str = "\u{1b}[K";
/// Clears from the cursor to the end of the screen.
const CLEAR_BELOW: &str = "\u{1b}[J";

/// Where the cursor is left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Cursor {
    /// At the beginning of the line below the region.
    #[default]
    Below,
    /// At the end of the last line.
    AtTheEnd,
}

/// What is drawn.
#[derive(Debug, Default)]
pub(super) struct Screen {
    /// How wide each line of the region is.
    drawn: Vec<usize>,
    cursor: Cursor,
}

impl Screen {
    /// Returns what draws these lines in the place of those that are there. Each has to be narrower
    /// than the terminal.
    pub(super) fn frame(&mut self, lines: &[String], cursor: Cursor, size: Size) -> String {
        let mut frame = self.home(size);
        let ends = lines.iter().enumerate().map(|(index, _)| index + 1 == lines.len());
        for (line, is_last) in lines.iter().zip(ends) {
            frame.push_str(line);
            if is_last && cursor == Cursor::AtTheEnd {
                break;
            }
            frame.push_str(CLEAR_LINE);
            frame.push('\n');
        }
        if !frame.is_empty() {
            frame.push_str(CLEAR_BELOW);
        }
        self.drawn = lines.iter().map(|line| painted_columns(line)).collect();
        self.cursor = cursor;
        frame
    }

    /// Returns what takes the region away.
    pub(super) fn erase(&mut self, size: Size) -> String {
        let home = self.home(size);
        self.drawn.clear();
        self.cursor = Cursor::Below;
        if home.is_empty() { home } else { home + CLEAR_BELOW }
    }

    /// Returns what moves the cursor to the beginning of the region.
    fn home(&self, size: Size) -> String {
        let rows: usize =
            self.drawn.iter().map(|width| width.div_ceil(size.columns.max(1)).max(1)).sum();
        if rows == 0 {
            return String::new();
        }
        let up = match self.cursor {
            Cursor::Below => rows,
            Cursor::AtTheEnd => rows - 1,
        };
        // A region taller than the screen has lost its top: what is gone cannot be reached.
        match up.min(size.rows.saturating_sub(1)) {
            0 => "\r".to_owned(),
            up => format!("\r\u{1b}[{up}A"),
        }
    }
}
