//! Lines that are drawn again in their own place.
//!
//! The cursor rests at the beginning of the line below the region. To draw again it goes up by as many
//! rows as the region takes now: a terminal that became narrower has broken its lines.

use crate::output::Size;
use crate::view::line::painted_columns;

/// Clears from the cursor to the end of the line.
const CLEAR_LINE: &str = "\u{1b}[K";
/// Clears from the cursor to the end of the screen.
const CLEAR_BELOW: &str = "\u{1b}[J";

/// What is drawn.
#[derive(Debug, Default)]
pub(super) struct Screen {
    /// How wide each line of the region is.
    drawn: Vec<usize>,
}

impl Screen {
    /// Returns what draws these lines in the place of those that are there. Each has to be narrower
    /// than the terminal.
    pub(super) fn frame(&mut self, lines: &[String], size: Size) -> String {
        let mut frame = self.home(size);
        for line in lines {
            frame.push_str(line);
            frame.push_str(CLEAR_LINE);
            frame.push('\n');
        }
        if !frame.is_empty() {
            frame.push_str(CLEAR_BELOW);
        }
        self.drawn = lines.iter().map(|line| painted_columns(line)).collect();
        frame
    }

    /// Returns what takes the region away.
    pub(super) fn erase(&mut self, size: Size) -> String {
        let home = self.home(size);
        self.drawn.clear();
        if home.is_empty() { home } else { home + CLEAR_BELOW }
    }

    /// Returns what moves the cursor to the beginning of the region.
    fn home(&self, size: Size) -> String {
        let rows: usize =
            self.drawn.iter().map(|width| width.div_ceil(size.columns.max(1)).max(1)).sum();
        // A region taller than the screen has lost its top: what is gone cannot be reached.
        match rows.min(size.rows.saturating_sub(1)) {
            0 => String::new(),
            rows => format!("\r\u{1b}[{rows}A"),
        }
    }
}
