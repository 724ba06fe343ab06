//! Bars on a line of time, drawn with letters.

use std::time::Duration;

use convoke::journal::export;
use convoke::journal::timeline::{Span, Timeline};

/// A block that fills so many eighths of a column, from the left.
const EIGHTHS: [&str; 8] = ["▏", "▎", "▍", "▌", "▋", "▊", "▉", "█"];

/// A line of time in a terminal.
#[derive(Clone, Debug)]
pub(super) struct Axis {
    line: export::Axis,
    width: usize,
    unicode: bool,
}

impl Axis {
    /// The line of a run, in so many columns.
    pub(super) fn of(timeline: &Timeline<'_>, width: usize, unicode: bool) -> Self {
        Self { line: export::Axis::of(timeline), width, unicode }
    }

    /// Returns how many columns it has.
    pub(super) const fn width(&self) -> usize {
        self.width
    }

    /// Returns where a moment is, in eighths of a column.
    fn place(&self, moment: Duration) -> usize {
        let length = self.width * EIGHTHS.len();
        usize::try_from(self.line.place_on(length as u64, moment)).unwrap_or(length)
    }

    /// Draws when something was, with spaces before and after. However short, it can be seen.
    pub(super) fn bar(&self, span: Span) -> String {
        let eighths = EIGHTHS.len();
        let length = self.width * eighths;
        let start = self.place(span.start).min(length.saturating_sub(1));
        let end = self.place(span.end()).max(start + 1);
        // A block begins at the left of a column or in its middle: there are no others.
        let start = start - start % (eighths / 2);
        let mut bar = " ".repeat(start / eighths);
        for column in start / eighths..end.div_ceil(eighths) {
            let left = column * eighths;
            bar.push_str(match (start > left, end.saturating_sub(left).min(eighths)) {
                _ if !self.unicode => "#",
                (true, _) => "▐",
                (false, filled) => EIGHTHS.get(filled.saturating_sub(1)).copied().unwrap_or(" "),
            });
        }
        format!("{bar:<width$}", width = self.width)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn span(start: u64, duration: u64) -> Span {
        Span {
            start: Duration::from_secs(start),
            duration: Duration::from_secs(duration),
            open: false,
        }
    }

    fn axis(total: u64, gaps: Vec<Span>) -> Axis {
        let line = export::Axis::new(Duration::from_secs(total), gaps);
        Axis { line, width: 10, unicode: true }
    }

    #[test]
    fn bars_stand_where_things_happened() {
        let axis = axis(100, Vec::new());
        assert_eq!(axis.bar(span(0, 100)), "██████████");
        assert_eq!(axis.bar(span(0, 0)), "▏         ");
        assert_eq!(axis.bar(span(20, 15)), "  █▌      ");
        assert_eq!(axis.bar(span(25, 10)), "  ▐▌      ");
        assert_eq!(axis.bar(span(100, 0)), "         ▐");
        assert_eq!(axis.bar(span(9_999, 1)), "         ▐");
        let ascii = Axis { unicode: false, ..axis };
        assert_eq!(ascii.bar(span(25, 10)), "  ##      ");
    }

    #[test]
    fn gaps_take_no_room_and_nothing_is_no_problem() {
        let axis = axis(100, vec![span(50, 1_000)]);
        assert_eq!(axis.bar(span(1_050, 50)), "     █████");
        assert_eq!(axis.bar(span(40, 1_020)), "    ██    ");
        let line = export::Axis::new(Duration::ZERO, Vec::new());
        let nothing = Axis { line, width: 0, ..axis };
        assert_eq!(nothing.bar(span(5, 5)).trim(), "▏");
    }
}
