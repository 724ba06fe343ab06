//! Below everything else: what a person types while the run works.

use super::Typed;
use crate::output::{Size, Stream, Style, columns, harmless};
use crate::view::brief::one_line;
use crate::view::line::Line;
use crate::view::look::{Look, Sign};

/// How many messages that wait are shown.
const MAX_WAITING: usize = 3;

/// Returns the lines, each narrower than the terminal. The last one is where the person types.
pub(super) fn footer(typed: Option<&Typed>, size: Size, stream: &Stream) -> Vec<String> {
    let Some(typed) = typed else { return Vec::new() };
    let width = size.columns.saturating_sub(1);
    let look = Look::of(stream);
    let dim = |text: String| Line::indented(2).flexible(Some(Style::Dim), text).fit(width, stream);
    let shown = typed.waiting.iter().take(MAX_WAITING);
    let mut lines: Vec<String> =
        shown.map(|message| dim(format!("queued: {}", one_line(message, width)))).collect();
    match typed.waiting.len().saturating_sub(MAX_WAITING) {
        0 => {}
        more => lines.push(dim(format!("{} {more} more", look.sign(Sign::More)))),
    }
    let sign = format!("{} ", look.sign(Sign::Person));
    let room = width.saturating_sub(columns(&sign));
    let line = Line::default().styled(Style::Place, sign).plain(tail(&typed.draft, room, look));
    lines.push(line.fit(width, stream));
    lines
}

/// Returns as much of the end of a draft as there is room for, on one line.
fn tail(draft: &str, room: usize, look: Look) -> String {
    let line = harmless(&draft.replace('\n', look.sign(Sign::NewLine)).replace('\t', " "));
    let letters: Vec<char> = line.chars().collect();
    let mut kept = letters.len();
    let mut taken = 0;
    for letter in letters.iter().rev() {
        taken += columns(letter.encode_utf8(&mut [0; 4]));
        if taken > room {
            break;
        }
        kept -= 1;
    }
    letters.into_iter().skip(kept).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(waiting: &[&str], draft: &str, columns: usize) -> Vec<String> {
        let waiting = waiting.iter().map(|text| (*text).to_owned()).collect();
        let typed = Typed { waiting, draft: draft.to_owned() };
        let stream = Stream::on_terminal(columns).without_colour();
        footer(Some(&typed), Size { columns, rows: 24 }, &stream)
    }

    #[test]
    fn the_end_of_a_draft_is_seen() {
        assert_eq!(shown(&[], "", 20), ["› "]);
        assert_eq!(shown(&[], "hello", 20), ["› hello"]);
        assert_eq!(shown(&[], "a text that is far too long", 12), ["›  too long"]);
        assert_eq!(shown(&[], "one\ntwo", 20), ["› one⏎two"]);
        assert_eq!(shown(&[], "語語語語語語", 10), ["› 語語語"]);
        assert_eq!(shown(&[], "a\u{1b}[31mb", 20), ["› a\\u{1b}[31mb"]);
    }

    #[test]
    fn what_waits_stands_above_it_and_is_no_crowd() {
        assert_eq!(shown(&["one\ntwo"], "x", 30), ["  queued: one two", "› x"]);
        let many = shown(&["1", "2", "3", "4", "5"], "", 30);
        assert_eq!(many.len(), 5);
        assert_eq!(many[3], "  … 2 more");
    }

    #[test]
    fn nobody_types_where_nobody_may() {
        let stream = Stream::on_terminal(20);
        assert!(footer(None, Size { columns: 20, rows: 5 }, &stream).is_empty());
    }
}
