//! Tokens that are one word: a prefix and characters of one set, of which there are so many.

use super::{End, Token, Verdict, tag};

/// Words that stand in manuals where a token would be.
const EXAMPLES: [&[u8]; 7] =
    [b"example", b"xxxxx", b"your", b"placeholder", b"redacted", b"changeme", b"00000000"];

/// No part of a web token is longer.
const LONGEST_PART: usize = 8 * 1024;

/// What follows a prefix.
pub(super) struct Body {
    shortest: usize,
    longest: usize,
    set: Set,
}

/// Which characters there are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Set {
    /// Letters and digits.
    Plain,
    /// Capital letters and digits.
    Capitals,
    /// Letters, digits and `_`.
    Underscored,
    /// Letters, digits, `_` and `-`.
    Dashed,
    /// The same; and to be told from words in kebab case.
    Opaque,
    /// Letters, digits, `_`, `-` and `.`.
    Dotted,
    /// Letters, digits, `_`, `-` and `/`.
    Path,
    /// Letters, digits, `+`, `/` and `=`.
    Base64,
}

impl Body {
    pub(super) const fn plain(shortest: usize, longest: usize) -> Self {
        Self { shortest, longest, set: Set::Plain }
    }

    pub(super) const fn capitals(shortest: usize, longest: usize) -> Self {
        Self { shortest, longest, set: Set::Capitals }
    }

    pub(super) const fn underscored(shortest: usize, longest: usize) -> Self {
        Self { shortest, longest, set: Set::Underscored }
    }

    pub(super) const fn dashed(shortest: usize, longest: usize) -> Self {
        Self { shortest, longest, set: Set::Dashed }
    }

    pub(super) const fn opaque(shortest: usize, longest: usize) -> Self {
        Self { shortest, longest, set: Set::Opaque }
    }

    pub(super) const fn dotted(shortest: usize, longest: usize) -> Self {
        Self { shortest, longest, set: Set::Dotted }
    }

    pub(super) const fn path(shortest: usize, longest: usize) -> Self {
        Self { shortest, longest, set: Set::Path }
    }

    pub(super) const fn base64(shortest: usize, longest: usize) -> Self {
        Self { shortest, longest, set: Set::Base64 }
    }

    /// Judges the word that begins at `place` and whose body begins at `body`.
    pub(super) fn judge(
        &self,
        kind: &'static str,
        text: &str,
        place: usize,
        body: usize,
        end: End,
    ) -> Verdict {
        let Some(run) = run(text, body, self.longest, |byte| self.set.has(byte)) else {
            return Verdict::No;
        };
        if run.reaches_the_end && end == End::Later {
            return Verdict::More;
        }
        // A full stop at the end is one of the sentence.
        let word = run.bytes.strip_suffix(b".").unwrap_or(run.bytes);
        let follows = text.as_bytes().get(body + run.bytes.len());
        let is_token = word.len() >= self.shortest
            && !follows.is_some_and(|byte| is_word_byte(*byte))
            && !is_example(word)
            && (self.set != Set::Opaque || is_opaque(word));
        if !is_token {
            return Verdict::No;
        }
        secret(kind, text, place..body + word.len())
    }
}

impl Set {
    const fn has(self, byte: u8) -> bool {
        match self {
            Self::Plain => byte.is_ascii_alphanumeric(),
            Self::Capitals => byte.is_ascii_uppercase() || byte.is_ascii_digit(),
            Self::Underscored => is_word_byte(byte),
            Self::Dashed | Self::Opaque => is_word_byte(byte) || byte == b'-',
            Self::Path => is_word_byte(byte) || matches!(byte, b'-' | b'/'),
            Self::Base64 => byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'='),
            Self::Dotted => is_word_byte(byte) || matches!(byte, b'-' | b'.'),
        }
    }
}

/// Characters of one set.
pub(super) struct Run<'t> {
    pub(super) bytes: &'t [u8],
    pub(super) reaches_the_end: bool,
}

/// Returns the characters of a set from a place on; nothing, if there are more than `longest`.
pub(super) fn run(
    text: &str,
    from: usize,
    longest: usize,
    has: impl Fn(u8) -> bool,
) -> Option<Run<'_>> {
    let rest = text.as_bytes().get(from..)?;
    let length = rest.iter().take(longest + 1).take_while(|byte| has(**byte)).count();
    let bytes = rest.get(..length).filter(|bytes| bytes.len() <= longest)?;
    Some(Run { bytes, reaches_the_end: length == rest.len() })
}

/// A token is what stands in this part of a text.
pub(super) fn secret(kind: &'static str, text: &str, span: std::ops::Range<usize>) -> Verdict {
    let value = text.as_bytes().get(span.clone()).unwrap_or_default();
    Verdict::Secret(Token { kind, tag: tag([value]), span })
}

/// Judges three parts in base64 with dots between them, the first two of which are JSON objects.
pub(super) fn web_token(kind: &'static str, text: &str, place: usize, end: End) -> Verdict {
    const SHORTEST: [usize; 3] = [10, 10, 16];
    let is_letter = |byte: u8| is_word_byte(byte) || byte == b'-';
    let mut from = place;
    for (part, shortest) in SHORTEST.into_iter().enumerate() {
        let Some(run) = run(text, from, LONGEST_PART, is_letter) else { return Verdict::No };
        let is_object = b"eyJ".starts_with(run.bytes.get(..3).unwrap_or(run.bytes));
        if part < 2 && !is_object {
            return Verdict::No;
        }
        if run.reaches_the_end && end == End::Later {
            return Verdict::More;
        }
        if run.bytes.len() < shortest {
            return Verdict::No;
        }
        from += run.bytes.len();
        if part < 2 {
            if text.as_bytes().get(from) != Some(&b'.') {
                return Verdict::No;
            }
            from += 1;
        }
    }
    secret(kind, text, place..from)
}

pub(super) const fn is_word_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Tells whether a word stands for a token in a manual: it says so, or it is made of too few characters.
pub(super) fn is_example(word: &[u8]) -> bool {
    let says_so = |example: &&[u8]| {
        word.windows(example.len()).any(|part| part.eq_ignore_ascii_case(example))
    };
    let mut seen = [false; 256];
    for byte in word {
        if let Some(seen) = seen.get_mut(usize::from(*byte)) {
            *seen = true;
        }
    }
    let different = seen.iter().filter(|seen| **seen).count();
    different * 3 < word.len().min(24) || EXAMPLES.iter().any(says_so)
}

/// Tells whether there is a long part with letters and digits, as no word has.
fn is_opaque(word: &[u8]) -> bool {
    const LONG: usize = 16;
    let digits = word.iter().filter(|byte| byte.is_ascii_digit()).count();
    digits >= 2 && word.split(|byte| matches!(byte, b'-' | b'_')).any(|part| part.len() >= LONG)
}
