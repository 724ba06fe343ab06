//! Writes HTML of which the markup is ours and everything else is text.

use std::fmt::Display;

use crate::export::amounts::size;
use crate::export::shorten::shorten;
use crate::export::visible::visible;
use crate::export::words::Mood;

/// How long one text is at most, in bytes.
const LONGEST: usize = 48 * 1024;
/// How much text a page holds in blocks before they are cut shorter.
const ROOM: usize = 24 * 1024 * 1024;
/// How long a text is when there is no room left.
const SHORTEST: usize = 512;

/// A page in the making. Markup cannot come from anywhere but the program: it has to be there when the
/// program is compiled.
#[derive(Debug)]
pub(super) struct Html {
    out: String,
    room: usize,
}

impl Default for Html {
    fn default() -> Self {
        Self { out: String::new(), room: ROOM }
    }
}

impl Html {
    /// Writes markup.
    pub(super) fn markup(&mut self, markup: &'static str) -> &mut Self {
        self.out.push_str(markup);
        self
    }

    /// Writes text, between tags or as the value of an attribute in quotes.
    pub(super) fn text(&mut self, text: &str) -> &mut Self {
        for letter in visible(text).chars() {
            match letter {
                '&' => self.out.push_str("&amp;"),
                '<' => self.out.push_str("&lt;"),
                '>' => self.out.push_str("&gt;"),
                '"' => self.out.push_str("&quot;"),
                '\'' => self.out.push_str("&#39;"),
                letter => self.out.push(letter),
            }
        }
        self
    }

    /// Writes a number.
    pub(super) fn number(&mut self, number: impl Into<u64>) -> &mut Self {
        self.written(number.into())
    }

    /// Writes a place on a line of 10,000 parts as a percentage.
    pub(super) fn percent(&mut self, place: u64) -> &mut Self {
        self.written(place / 100).markup(".");
        if place % 100 < 10 {
            self.markup("0");
        }
        self.written(place % 100).markup("%")
    }

    fn written(&mut self, number: impl Display) -> &mut Self {
        self.out.push_str(&number.to_string());
        self
    }

    /// Writes the class of a mood.
    pub(super) fn mood(&mut self, mood: Mood) -> &mut Self {
        self.markup(match mood {
            Mood::Good => "good",
            Mood::Bad => "bad",
            Mood::Denied => "denied",
            Mood::Stopped => "stopped",
            Mood::Open => "open",
            Mood::Neutral => "neutral",
        })
    }

    /// Writes a text that may be long, through `write`. What is too long is cut in the middle, and the cut
    /// is marked.
    pub(super) fn bounded(&mut self, text: &str, write: impl Fn(&mut Self, &str)) -> &mut Self {
        let limit = if text.len() <= self.room { LONGEST } else { SHORTEST };
        let short = shorten(text, limit);
        self.room = self.room.saturating_sub(text.len().min(limit));
        write(self, short.head);
        if let Some(cut) = short.cut {
            self.markup("<span class=\"cut\">… ").text(&size(cut.bytes));
            self.markup(" are not shown here …</span>");
            write(self, cut.tail);
        }
        self
    }

    /// Returns the page.
    pub(super) fn into_string(self) -> String {
        self.out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(write: impl Fn(&mut Html)) -> String {
        let mut html = Html::default();
        write(&mut html);
        html.into_string()
    }

    #[test]
    fn text_is_never_markup() {
        let hostile = "</pre><script>alert(\"1\")</script>&amp;'\u{1b}";
        assert_eq!(
            written(|html| {
                html.text(hostile);
            }),
            "&lt;/pre&gt;&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt;&amp;amp;&#39;␛"
        );
    }

    #[test]
    fn long_texts_are_cut_and_say_so() {
        let long = "x".repeat(LONGEST * 2);
        let page = written(|html| {
            html.bounded(&long, |html, text| {
                html.text(text);
            });
        });
        assert!(page.len() < LONGEST + 200 && page.contains("… 48 KiB are not shown here …"));
    }

    #[test]
    fn a_page_has_an_end() {
        let long = "x".repeat(LONGEST);
        let page = written(|html| {
            for _ in 0..1000 {
                html.bounded(&long, |html, text| {
                    html.text(text);
                });
            }
        });
        assert!(page.len() < ROOM + 1000 * (SHORTEST + 200), "{}", page.len());
    }

    #[test]
    fn places_are_percentages() {
        let shown = [0, 5, 1234, 10_000].map(|place| {
            written(|html| {
                html.percent(place);
            })
        });
        assert_eq!(shown, ["0.00%", "0.05%", "12.34%", "100.00%"]);
    }
}
