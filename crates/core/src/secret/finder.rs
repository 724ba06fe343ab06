//! Finds any of a number of words, and what may be the beginning of one.

use aho_corasick::packed::{Config, MatchKind as Packed, Searcher};
use aho_corasick::{AhoCorasick, Input, MatchKind, Span};

/// So many words are found in one pass with the vector instructions of the processor.
const ONE_PASS: usize = 32;
/// Where several passes are needed, each looks this far before the next does: whoever stops at what one finds
/// has not waited for what another finds far away.
const WINDOW: usize = 4 * 1024;

/// Words to be found.
#[derive(Debug)]
pub(super) struct Finder {
    words: Vec<String>,
    passes: Vec<Pass>,
    longest: usize,
    /// Which bytes a word begins with.
    first: [bool; 256],
}

#[derive(Debug)]
enum Pass {
    Vectors(Searcher),
    Automaton(AhoCorasick),
    /// Nothing better could be made.
    OneByOne(Vec<String>),
}

/// Where a word was found, and which.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) word: usize,
}

impl Finder {
    pub(super) fn new(words: Vec<String>) -> Self {
        let mut first = [false; 256];
        for byte in words.iter().filter_map(|word| word.bytes().next()) {
            if let Some(known) = first.get_mut(usize::from(byte)) {
                *known = true;
            }
        }
        let longest = words.iter().map(String::len).max().unwrap_or_default();
        let passes = words.chunks(ONE_PASS).map(Pass::new).collect();
        Self { words, passes, longest, first }
    }

    /// Finds the first word from a place on; of several that begin there, the longest.
    pub(super) fn find(&self, text: &str, from: usize) -> Option<Found> {
        match self.passes.as_slice() {
            [only] => only.find(text, from, text.len()),
            _ => self.hits(text, from).next_from(from),
        }
    }

    /// Finds one word after the other, from a place on.
    pub(super) fn hits<'f>(&'f self, text: &'f str, from: usize) -> Hits<'f> {
        let window = if self.passes.len() > 1 { WINDOW } else { text.len() };
        let mut hits = Hits { finder: self, text, window, end: from, ahead: Vec::new() };
        hits.look_further(from);
        hits
    }

    /// Finds the first place from which on the rest of the text is the beginning of a word, but not all
    /// of it, and which passes a test.
    pub(super) fn find_beginning(
        &self,
        text: &str,
        from: usize,
        may_begin: impl Fn(usize, &str) -> bool,
    ) -> Option<usize> {
        let from = from.max((text.len() + 1).saturating_sub(self.longest));
        let tail = text.as_bytes().get(from..)?;
        let begins = |(offset, byte): (usize, &u8)| {
            if !self.first.get(usize::from(*byte)).copied().unwrap_or_default() {
                return None;
            }
            let rest = tail.get(offset..)?;
            let mut longer = self.words.iter().filter(|word| word.len() > rest.len());
            let place = from + offset;
            let fits = |word: &String| word.as_bytes().starts_with(rest) && may_begin(place, word);
            longer.any(fits).then_some(place)
        };
        tail.iter().enumerate().find_map(begins)
    }
}

/// Words that are found one after the other. What a pass has found ahead is not looked for again.
pub(super) struct Hits<'f> {
    finder: &'f Finder,
    text: &'f str,
    window: usize,
    /// So far was looked.
    end: usize,
    /// What each pass finds next, up to there.
    ahead: Vec<Option<Found>>,
}

impl Hits<'_> {
    /// Returns the first word from a place on; of several that begin there, the longest. Places only grow.
    pub(super) fn next_from(&mut self, place: usize) -> Option<Found> {
        loop {
            for number in 0..self.ahead.len() {
                let passed = |found: &Found| found.start < place;
                if self.ahead.get(number).and_then(Option::as_ref).is_some_and(passed) {
                    let found = self.look(number, place);
                    if let Some(ahead) = self.ahead.get_mut(number) {
                        *ahead = found;
                    }
                }
            }
            let first = |found: &&Found| (found.start, usize::MAX - found.end);
            if let Some(found) = self.ahead.iter().flatten().min_by_key(first) {
                return Some(*found);
            }
            if self.end >= self.text.len() {
                return None;
            }
            self.look_further(place.max(self.end));
        }
    }

    fn look_further(&mut self, from: usize) {
        self.end = self.text.ceil_char_boundary(from.saturating_add(self.window));
        let passes = 0..self.finder.passes.len();
        self.ahead = passes.map(|number| self.look(number, from)).collect();
    }

    /// Finds the first word of a pass that begins before the end of what is looked at. It may end behind.
    fn look(&self, number: usize, from: usize) -> Option<Found> {
        let upto = self.text.ceil_char_boundary(self.end.saturating_add(self.finder.longest));
        let found = self.finder.passes.get(number)?.find(self.text, from, upto)?;
        let found = Found { word: found.word + number * ONE_PASS, ..found };
        (found.start < self.end).then_some(found)
    }
}

impl Pass {
    fn new(words: &[String]) -> Self {
        let vectors =
            Config::new().match_kind(Packed::LeftmostLongest).builder().extend(words).build();
        if let Some(vectors) = vectors {
            return Self::Vectors(vectors);
        }
        let automaton = AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(words);
        automaton.map_or_else(|_| Self::OneByOne(words.to_vec()), Self::Automaton)
    }

    fn find(&self, text: &str, from: usize, upto: usize) -> Option<Found> {
        let found = match self {
            Self::Vectors(searcher) => searcher.find_in(text, Span::from(from..upto))?,
            Self::Automaton(automaton) => automaton.find(Input::new(text).range(from..upto))?,
            Self::OneByOne(words) => return find_one_by_one(words, text, from, upto),
        };
        Some(Found { start: found.start(), end: found.end(), word: found.pattern().as_usize() })
    }
}

fn find_one_by_one(words: &[String], text: &str, from: usize, upto: usize) -> Option<Found> {
    let rest = text.get(from..upto)?;
    let found = words.iter().enumerate().filter_map(|(word, known)| {
        let start = from + rest.find(known.as_str())?;
        Some(Found { start, end: start + known.len(), word })
    });
    found.min_by_key(|found| (found.start, usize::MAX - found.end))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finder(words: &[&str]) -> Finder {
        Finder::new(words.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn the_first_and_of_those_the_longest_is_found() {
        let many: Vec<String> = (0..100).map(|number| format!("word-{number:03}-end")).collect();
        let finder = Finder::new([many, vec!["word-007".into()]].concat());
        let found = finder.find("a word-099-end and word-007-end", 0).unwrap();
        assert_eq!((found.start, found.word), (2, 99));
        let found = finder.find("a word-099-end and word-007-end", 3).unwrap();
        assert_eq!((found.start, found.word), (19, 7));
        assert_eq!(finder.find("a word-007 and", 0).unwrap().word, 100);
        assert_eq!(finder.find("word-", 0), None);
        assert_eq!(finder.find("", 0), None);
    }

    #[test]
    fn what_lies_across_two_windows_is_found() {
        let many: Vec<String> = (0..100).map(|number| format!("wörd-{number:03}-end")).collect();
        let finder = Finder::new(many);
        for before in WINDOW - 14..WINDOW + 2 {
            let text = format!(
                "{}wörd-007-end wörd-099-end",
                "é".repeat(before / 2) + &"x".repeat(before % 2)
            );
            let found = finder.find(&text, 0).unwrap();
            assert_eq!((found.start, found.word), (before, 7));
            let next = finder.find(&text, found.end).unwrap();
            assert_eq!((next.start, next.word), (found.end + 1, 99));
        }
    }

    #[test]
    fn one_by_one_finds_the_same() {
        let words = ["abcd".to_owned(), "bcdefg".to_owned(), "bcde".to_owned()];
        for text in ["xxabcdefg", "bcdefg", "bcdef", "x", "äbcde abcd"] {
            let fast = Pass::new(&words).find(text, 0, text.len());
            assert_eq!(find_one_by_one(&words, text, 0, text.len()), fast, "{text}");
        }
    }

    #[test]
    fn a_beginning_is_found_at_the_end_only() {
        let finder = finder(&["secret-word", "word-less"]);
        let at = |text: &str| finder.find_beginning(text, 0, |_, _| true);
        assert_eq!(at("the secret-wor"), Some(4));
        assert_eq!(at("the secret-word"), Some(11), "the whole word is no beginning of itself");
        assert_eq!(at("the secret"), Some(4));
        assert_eq!(at("the secrets"), Some(10));
        assert_eq!(at("nothing"), None);
        assert_eq!(finder.find_beginning("the secret", 5, |_, _| true), None);
        assert_eq!(finder.find_beginning("the s", 0, |_, _| false), None);
    }
}
