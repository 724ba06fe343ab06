//! One line made of parts, some of which give way when it does not fit.

use crate::output::{Stream, Style, columns, cut};

/// A line that is being put together.
#[derive(Debug, Default)]
pub(crate) struct Line {
    parts: Vec<Part>,
}

#[derive(Debug)]
struct Part {
    text: String,
    style: Option<Style>,
    gives_way: bool,
}

impl Line {
    /// A line that starts with this many spaces.
    pub(crate) fn indented(columns: usize) -> Self {
        Self::default().plain(" ".repeat(columns))
    }

    /// Adds text.
    pub(crate) fn plain(self, text: impl Into<String>) -> Self {
        self.part(text.into(), None, false)
    }

    /// Adds text with a style.
    pub(crate) fn styled(self, style: Style, text: impl Into<String>) -> Self {
        self.part(text.into(), Some(style), false)
    }

    /// Adds text that is cut where there is too little room.
    pub(crate) fn flexible(self, style: Option<Style>, text: impl Into<String>) -> Self {
        self.part(text.into(), style, true)
    }

    fn part(mut self, text: String, style: Option<Style>, gives_way: bool) -> Self {
        if !text.is_empty() {
            self.parts.push(Part { text, style, gives_way });
        }
        self
    }

    /// Returns the line in at most `width` columns: what gives way is cut first, the last before the
    /// others, and then the end.
    pub(crate) fn fit(mut self, width: usize, stream: &Stream) -> String {
        let mark = stream.ellipsis();
        let total: usize = self.parts.iter().map(|part| columns(&part.text)).sum();
        let mut excess = total.saturating_sub(width);
        for part in self.parts.iter_mut().rev().filter(|part| part.gives_way) {
            let taken = columns(&part.text);
            part.text = cut(&part.text, taken.saturating_sub(excess), mark);
            excess = excess.saturating_sub(taken - columns(&part.text));
        }
        let mut room = width;
        for part in &mut self.parts {
            part.text = cut(&part.text, room, mark);
            room -= columns(&part.text);
        }
        self.paint(stream)
    }

    /// Returns the whole line, however long it is.
    pub(crate) fn paint(&self, stream: &Stream) -> String {
        let paint = |part: &Part| match part.style {
            Some(style) if !part.text.is_empty() => stream.paint(style, &part.text).to_string(),
            _ => part.text.clone(),
        };
        self.parts.iter().map(paint).collect()
    }
}

/// Returns how many columns a painted text takes: what begins with an escape and ends with `m` takes
/// none.
pub(crate) fn painted_columns(text: &str) -> usize {
    let mut pieces = text.split('\u{1b}');
    let first = pieces.next().map(columns).unwrap_or_default();
    first + pieces.map(|piece| columns(after_colour(piece).1)).sum::<usize>()
}

/// Returns the beginning of a painted text, in at most `width` columns.
pub(crate) fn cut_painted(text: &str, width: usize, stream: &Stream) -> String {
    if painted_columns(text) <= width {
        return text.to_owned();
    }
    let mut room = width;
    let mut shown = String::new();
    for (index, piece) in text.split('\u{1b}').enumerate() {
        let (colour, letters) = if index == 0 { ("", piece) } else { after_colour(piece) };
        if index > 0 {
            shown.push('\u{1b}');
            shown.push_str(colour);
        }
        let kept = cut(letters, room, stream.ellipsis());
        // What was cut shows that it was; nothing more is written after it.
        room = if kept == letters { room - columns(&kept) } else { 0 };
        shown.push_str(&kept);
    }
    shown
}

/// Splits what follows an escape into the colour and the text.
fn after_colour(piece: &str) -> (&str, &str) {
    match piece.find('m') {
        Some(end) => piece.split_at(end + 1),
        None => ("", piece),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line() -> Line {
        Line::indented(2)
            .styled(Style::Name, "grep")
            .flexible(None, " a long summary")
            .styled(Style::Dim, " 2 ms")
    }

    #[test]
    fn what_gives_way_is_cut_first() {
        let stream = Stream::on_terminal(80).without_colour();
        assert_eq!(line().fit(80, &stream), "  grep a long summary 2 ms");
        assert_eq!(line().fit(20, &stream), "  grep a long… 2 ms");
        assert_eq!(line().fit(9, &stream), "  grep 2…");
        assert_eq!(line().fit(4, &stream), "  g…");
        assert_eq!(line().fit(0, &stream), "");
        assert_eq!(line().fit(20, &stream.without_unicode()), "  grep a lon... 2 ms");
    }

    #[test]
    fn colour_takes_no_room() {
        let stream = Stream::on_terminal(80);
        let painted = line().fit(80, &stream);
        assert_eq!(painted_columns(&painted), 26);
        let cut = cut_painted(&painted, 10, &stream);
        assert_eq!(cut, "  \u{1b}[1mgrep\u{1b}[0m a…\u{1b}[2m\u{1b}[0m");
        assert_eq!(painted_columns(&cut), 9);
    }
}
