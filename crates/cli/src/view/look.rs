//! The few signs the view is made of, and what stands for them where there is only ASCII.

use std::time::Duration;

use crate::output::Stream;

/// Which signs a terminal can show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Look {
    /// Whether it shows more than ASCII.
    pub(crate) unicode: bool,
}

/// What a sign says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sign {
    /// It worked.
    Ok,
    /// It did not.
    Failed,
    /// It was not allowed.
    Denied,
    /// Somebody or something stopped it.
    Stopped,
    /// Somebody is asked.
    Asks,
    /// It waits for its turn.
    Waits,
    /// An agent begins.
    Begins,
    /// Something to know.
    Note,
    /// Something to look at.
    Warning,
    /// Something was left out.
    More,
    /// A point of a list.
    Bullet,
    /// The left edge of a quotation.
    Quote,
    /// A piece of a horizontal line.
    Rule,
    /// The person speaks.
    Person,
    /// A line ends here.
    NewLine,
}

impl Look {
    /// The signs of a stream.
    pub(crate) const fn of(stream: &Stream) -> Self {
        Self { unicode: stream.shows_unicode() }
    }

    /// Returns a sign.
    pub(crate) const fn sign(self, sign: Sign) -> &'static str {
        let (unicode, ascii) = match sign {
            Sign::Ok => ("✓", "+"),
            Sign::Failed => ("✗", "x"),
            Sign::Denied => ("⊘", "x"),
            Sign::Stopped => ("■", "#"),
            Sign::Asks => ("?", "?"),
            Sign::Waits => ("◦", "."),
            Sign::Begins => ("▸", ">"),
            Sign::Note => ("·", "*"),
            Sign::Warning => ("!", "!"),
            Sign::More => ("…", "..."),
            Sign::Bullet => ("•", "-"),
            Sign::Quote => ("│", "|"),
            Sign::Rule => ("─", "-"),
            Sign::Person => ("›", ">"),
            Sign::NewLine => ("⏎", "|"),
        };
        if self.unicode { unicode } else { ascii }
    }

    /// Returns the sign of something that is under way, after this long.
    pub(crate) fn spinner(self, elapsed: Duration) -> &'static str {
        const DOTS: &[&str] = &["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
        const LINES: &[&str] = &["|", "/", "-", "\\"];
        let frames = if self.unicode { DOTS } else { LINES };
        let length = frames.len().max(1);
        let frame = usize::try_from(elapsed.as_millis() / 100).unwrap_or_default() % length;
        frames.get(frame).copied().unwrap_or_default()
    }

    /// Returns what stands between two facts.
    pub(crate) const fn between(self) -> &'static str {
        if self.unicode { " · " } else { ", " }
    }

    /// Puts together what there is of several facts.
    pub(crate) fn joined<const N: usize>(self, facts: [Option<String>; N]) -> String {
        facts.into_iter().flatten().collect::<Vec<_>>().join(self.between())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spinner_turns_and_comes_round() {
        for look in [Look { unicode: true }, Look { unicode: false }] {
            let at = |millis| look.spinner(Duration::from_millis(millis));
            assert_eq!(at(0), at(99));
            assert_ne!(at(0), at(100));
            assert_eq!(at(0), at(2000));
        }
        assert!(Look { unicode: false }.spinner(Duration::ZERO).is_ascii());
    }
}
