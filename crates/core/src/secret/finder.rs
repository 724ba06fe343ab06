//! Finds any of many words in a text, and the beginning of a word at the end of a text.
//!
//! The finder looks at a few bytes of the text at a time (a gram) and skips as many bytes as the shortest
//! word allows: a word of eight bytes has a gram of four at every fifth place. A bit set tells at once
//! that nearly all grams belong to no word. The cost does not grow with the number of words.

/// Bits of the set of grams, as a power of two. The set fits into the first-level cache.
const FILTER_BITS: u32 = 17;
/// Bytes of the longest gram.
const LONGEST_GRAM: usize = 4;

/// Words to find.
#[derive(Debug)]
pub(super) struct Finder {
    words: Vec<String>,
    /// The numbers of the words, in the order of their texts.
    sorted: Vec<usize>,
    longest: usize,
    gram: usize,
    stride: usize,
    /// One bit for each hash of a gram of a word.
    filter: Vec<u64>,
    /// Each gram, with the word and the offset at which the word has it; sorted.
    places: Vec<(u32, usize, usize)>,
}

/// The place of a word in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) word: usize,
}

impl Finder {
    /// Takes the words. An empty word is never found.
    pub(super) fn new(words: Vec<String>) -> Self {
        let lengths = || words.iter().map(String::len).filter(|length| *length > 0);
        let (shortest, longest) = (lengths().min().unwrap_or(1), lengths().max().unwrap_or(0));
        let gram = shortest.min(LONGEST_GRAM);
        let stride = shortest - gram + 1;
        let mut sorted: Vec<usize> = (0..words.len()).collect();
        sorted.sort_unstable_by_key(|word| words.get(*word));
        let mut finder = Self {
            words,
            sorted,
            longest,
            gram,
            stride,
            filter: vec![0; (1 << FILTER_BITS) / 64],
            places: Vec::new(),
        };
        finder.add_grams();
        finder
    }

    fn add_grams(&mut self) {
        for (number, word) in self.words.iter().enumerate() {
            if word.is_empty() {
                continue;
            }
            for offset in 0..self.stride {
                let Some(gram) = gram_at(word.as_bytes(), offset, self.gram) else { continue };
                let (cell, bit) = filter_place(gram);
                if let Some(cell) = self.filter.get_mut(cell) {
                    *cell |= bit;
                }
                self.places.push((gram, number, offset));
            }
        }
        self.places.sort_unstable();
    }

    /// Returns the first word from a place on; of several that begin there, the longest.
    pub(super) fn find(&self, text: &[u8], from: usize) -> Option<Found> {
        let rest = text.get(from..)?;
        let mask = gram_mask(self.gram);
        for (number, window) in
            rest.array_windows::<LONGEST_GRAM>().step_by(self.stride).enumerate()
        {
            let gram = u32::from_le_bytes(*window) & mask;
            if self.may_hold(gram)
                && let Some(found) = self.word_at(text, from, from + number * self.stride, gram)
            {
                return Some(found);
            }
        }
        self.find_in_tail(text, from)
    }

    /// Looks at the last places, which have fewer bytes behind them than a whole window.
    fn find_in_tail(&self, text: &[u8], from: usize) -> Option<Found> {
        let windows = (text.len() - from).saturating_sub(LONGEST_GRAM - 1).div_ceil(self.stride);
        let mut place = from + windows * self.stride;
        while let Some(gram) = gram_at(text, place, self.gram) {
            if let Some(found) = self.word_at(text, from, place, gram) {
                return Some(found);
            }
            place += self.stride;
        }
        None
    }

    fn may_hold(&self, gram: u32) -> bool {
        let (cell, bit) = filter_place(gram);
        self.filter.get(cell).is_some_and(|cell| cell & bit != 0)
    }

    /// Returns the word that has this gram at this place.
    fn word_at(&self, text: &[u8], from: usize, place: usize, gram: u32) -> Option<Found> {
        let first = self.places.partition_point(|(known, ..)| *known < gram);
        let places = self.places.get(first..)?.iter().take_while(|(known, ..)| *known == gram);
        let found = places.filter_map(|(_, word, offset)| {
            let start = place.checked_sub(*offset).filter(|start| *start >= from)?;
            let bytes = self.words.get(*word)?.as_bytes();
            let is_there = text.get(start..)?.starts_with(bytes);
            is_there.then(|| Found { start, end: start + bytes.len(), word: *word })
        });
        found.min_by_key(|found| (found.start, usize::MAX - found.end))
    }

    /// Returns the first place from which on the rest of the text is the beginning of a longer word
    /// that passes the test.
    pub(super) fn find_beginning(
        &self,
        text: &[u8],
        from: usize,
        may_begin: impl Fn(usize, &str) -> bool,
    ) -> Option<usize> {
        let from = from.max((text.len() + 1).saturating_sub(self.longest));
        (from..text.len()).find(|place| {
            let rest = text.get(*place..).unwrap_or_default();
            let word = |number: &usize| self.words.get(*number).map_or("", String::as_str);
            let first = self.sorted.partition_point(|number| word(number).as_bytes() < rest);
            let sorted = self.sorted.get(first..).unwrap_or_default().iter().map(word);
            sorted
                .take_while(|word| word.as_bytes().starts_with(rest))
                .any(|word| word.len() > rest.len() && may_begin(*place, word))
        })
    }
}

fn gram_at(text: &[u8], place: usize, length: usize) -> Option<u32> {
    let mut bytes = [0; LONGEST_GRAM];
    bytes.get_mut(..length)?.copy_from_slice(text.get(place..place + length)?);
    Some(u32::from_le_bytes(bytes))
}

/// The bits of a little-endian number that hold the first bytes.
fn gram_mask(length: usize) -> u32 {
    let bytes: [u8; LONGEST_GRAM] = std::array::from_fn(|at| if at < length { 0xff } else { 0 });
    u32::from_le_bytes(bytes)
}

fn filter_place(gram: u32) -> (usize, u64) {
    let hash = gram.wrapping_mul(0x9e37_79b1) >> (u32::BITS - FILTER_BITS);
    ((hash >> 6) as usize, 1 << (hash & 63))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn finder(words: &[&str]) -> Finder {
        Finder::new(words.iter().map(|word| (*word).to_owned()).collect())
    }

    /// The first and longest word, found the slow way.
    fn naive(words: &[String], text: &str, from: usize) -> Option<Found> {
        let rest = text.get(from..)?;
        let found = words.iter().enumerate().filter_map(|(word, known)| {
            let start = from + rest.find(known.as_str()).filter(|_| !known.is_empty())?;
            Some(Found { start, end: start + known.len(), word })
        });
        found.min_by_key(|found| (found.start, usize::MAX - found.end))
    }

    #[test]
    fn find_returns_the_first_and_longest_word() {
        let finder = finder(&["word", "word-and-more", "more"]);
        let at = |text: &str, from| {
            let found = finder.find(text.as_bytes(), from)?;
            Some((found.start, found.end, found.word))
        };
        assert_eq!(at("a word-and-more", 0), Some((2, 15, 1)));
        assert_eq!(at("a word-and-mor", 0), Some((2, 6, 0)));
        assert_eq!(at("a word-and-more", 3), Some((11, 15, 2)));
        assert_eq!(at("mor", 0), None);
        assert_eq!(at("", 0), None);
        assert_eq!(at("short", 9), None);
    }

    #[test]
    fn find_beginning_returns_the_end_of_a_text_only() {
        let finder = finder(&["secret-word", "word-less"]);
        let at = |text: &str| finder.find_beginning(text.as_bytes(), 0, |_, _| true);
        assert_eq!(at("the secret-wor"), Some(4));
        assert_eq!(at("the secret-word"), Some(11), "a whole word is no beginning of itself");
        assert_eq!(at("the secret"), Some(4));
        assert_eq!(at("the secrets"), Some(10));
        assert_eq!(at("nothing"), None);
        assert_eq!(finder.find_beginning(b"the secret", 5, |_, _| true), None);
        assert_eq!(finder.find_beginning(b"the s", 0, |_, _| false), None);
    }

    proptest! {
        #[test]
        fn find_agrees_with_a_naive_search(
            words in proptest::collection::vec("[ab]{3,9}", 1..40),
            text in "[abc]{0,60}",
            from in 0..20_usize,
        ) {
            let finder = Finder::new(words.clone());
            let fast = finder.find(text.as_bytes(), from);
            let slow = naive(&words, &text, from);
            prop_assert_eq!(fast.map(|at| (at.start, at.end)), slow.map(|at| (at.start, at.end)));
        }

        #[test]
        fn find_agrees_with_a_naive_search_for_long_words(
            words in proptest::collection::vec("[ab]{8,12}", 1..40),
            text in "[ab]{0,200}",
        ) {
            let fast = Finder::new(words.clone()).find(text.as_bytes(), 0);
            let slow = naive(&words, &text, 0);
            prop_assert_eq!(fast.map(|at| (at.start, at.end)), slow.map(|at| (at.start, at.end)));
        }
    }
}
