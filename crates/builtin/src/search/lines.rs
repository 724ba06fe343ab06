//! Searches one file and keeps the lines that match.

use std::fs::File;
use std::io::{self, Read};

use grep_regex::RegexMatcher;
use grep_searcher::{
    BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkFinish, SinkMatch,
};
use schemars::JsonSchema;
use serde::Serialize;

use convoke_tool::floor_char_boundary;

use crate::walk::Stop;

/// Files up to this size are read at once; longer ones are searched in pieces.
const WHOLE_FILE_BYTES: u64 = 4 * 1024 * 1024;
/// Of a longer file so much is held at once; one with a longer line cannot be searched.
const HEAP_BYTES: usize = 64 * 1024 * 1024;
/// Longer lines are cut there: a minified file is one line.
const MAX_LINE_BYTES: usize = 400;

/// A line of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(super) struct Line {
    /// Its number, from 1.
    #[serde(rename = "line")]
    pub(super) number: u64,
    /// Its text; a very long one is cut.
    pub(super) text: String,
    /// Whether it matches, or only stands near a line that does.
    #[serde(rename = "match")]
    pub(super) is_match: bool,
}

/// What was found in one file.
#[derive(Debug, Default)]
pub(super) struct FileMatches {
    pub(super) lines: Vec<Line>,
    pub(super) matches: u64,
    /// Whether the search of this file stopped at its limit.
    pub(super) more: bool,
}

impl FileMatches {
    /// Drops the lines at the end that stood near a match that is not kept.
    pub(super) fn drop_stray_lines(&mut self, context_lines: usize) {
        let last = self.lines.iter().rev().find(|line| line.is_match);
        let end = last.map_or(0, |line| line.number).saturating_add(context_lines as u64);
        let kept = self.lines.iter().rposition(|line| line.number <= end);
        self.lines.truncate(kept.map_or(0, |index| index + 1));
    }
}

/// How much of a file's matches to keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keep {
    /// The lines, up to a number of matches.
    Lines(u64),
    /// Only their number.
    Count,
    /// Only whether there is one.
    Existence,
}

/// Searches files, one after the other, with one set of buffers.
pub(super) struct FileSearch<'m> {
    matcher: &'m RegexMatcher,
    searcher: Searcher,
    context_lines: usize,
    stop: Stop<'m>,
    buffer: Vec<u8>,
}

impl<'m> FileSearch<'m> {
    pub(super) fn new(matcher: &'m RegexMatcher, context_lines: usize, stop: Stop<'m>) -> Self {
        let searcher = SearcherBuilder::new()
            .binary_detection(BinaryDetection::quit(0))
            .line_number(true)
            .heap_limit(Some(HEAP_BYTES))
            .before_context(context_lines)
            .after_context(context_lines)
            .build();
        Self { matcher, searcher, context_lines, stop, buffer: Vec::new() }
    }

    /// Searches a file. A binary one has no matches; neither has one that is not a regular file. The
    /// search of a long one fails when it is told to stop.
    pub(super) fn search(&mut self, mut file: File, keep: Keep) -> io::Result<FileMatches> {
        let metadata = file.metadata()?;
        let mut found = FileMatches::default();
        if !metadata.is_file() {
            return Ok(found);
        }
        let sink = Collect { found: &mut found, keep };
        if metadata.len() > WHOLE_FILE_BYTES {
            let file = Stoppable { file, stop: self.stop };
            self.searcher.search_reader(self.matcher, file, sink)?;
        } else {
            self.buffer.clear();
            read_once(&mut file, metadata.len(), &mut self.buffer)?;
            self.searcher.search_slice(self.matcher, &self.buffer, sink)?;
        }
        if found.more {
            found.drop_stray_lines(self.context_lines);
        }
        Ok(found)
    }
}

/// A file that cannot be read any more once it is time to stop.
struct Stoppable<'a> {
    file: File,
    stop: Stop<'a>,
}

impl Read for Stoppable<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if (self.stop)() {
            return Err(io::Error::other("the search was stopped"));
        }
        self.file.read(buffer)
    }
}

/// Reads a short file. One byte more than it has is asked for, so that its end is seen at once.
fn read_once(file: &mut File, length: u64, buffer: &mut Vec<u8>) -> io::Result<()> {
    buffer.reserve(usize::try_from(length).unwrap_or_default() + 1);
    file.take(WHOLE_FILE_BYTES + 1).read_to_end(buffer).map(|_| ())
}

struct Collect<'a> {
    found: &'a mut FileMatches,
    keep: Keep,
}

impl Collect<'_> {
    fn line(&mut self, number: Option<u64>, bytes: &[u8], is_match: bool) {
        let first = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let text = String::from_utf8_lossy(first.strip_suffix(b"\r").unwrap_or(first));
        self.found.lines.push(Line {
            number: number.unwrap_or_default(),
            text: shorten(&text),
            is_match,
        });
    }
}

fn shorten(text: &str) -> String {
    if text.len() <= MAX_LINE_BYTES {
        return text.to_owned();
    }
    let cut = floor_char_boundary(text, MAX_LINE_BYTES);
    format!("{}[… {} bytes]", text.get(..cut).unwrap_or_default(), text.len() - cut)
}

impl Sink for Collect<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, line: &SinkMatch<'_>) -> io::Result<bool> {
        self.found.matches += 1;
        match self.keep {
            Keep::Existence => return Ok(false),
            Keep::Count => return Ok(true),
            Keep::Lines(limit) if self.found.matches > limit => {
                self.found.matches -= 1;
                self.found.more = true;
                return Ok(false);
            }
            Keep::Lines(_) => {}
        }
        self.line(line.line_number(), line.bytes(), true);
        Ok(true)
    }

    fn context(&mut self, _: &Searcher, line: &SinkContext<'_>) -> io::Result<bool> {
        if matches!(self.keep, Keep::Lines(_)) {
            self.line(line.line_number(), line.bytes(), false);
        }
        Ok(true)
    }

    fn finish(&mut self, _: &Searcher, end: &SinkFinish) -> io::Result<()> {
        // What looked like text until a NUL byte is not text.
        if end.binary_byte_offset().is_some() {
            *self.found = FileMatches::default();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use grep_regex::RegexMatcher;

    use super::*;

    #[test]
    fn the_search_of_a_long_file_can_be_stopped() {
        let path = tempfile::NamedTempFile::new().unwrap();
        let bytes = b"needle\n".repeat(2 * 1024 * 1024);
        path.as_file().write_all(&bytes).unwrap();
        let matcher = RegexMatcher::new("needle").unwrap();
        let asked = AtomicUsize::new(0);
        let stop = || asked.fetch_add(1, Ordering::Relaxed) >= 3;
        let mut files = FileSearch::new(&matcher, 0, &stop);
        let error = files.search(path.reopen().unwrap(), Keep::Count).unwrap_err();
        assert_eq!(error.to_string(), "the search was stopped");
        assert_eq!(asked.load(Ordering::Relaxed), 4);
        let never = || false;
        let mut files = FileSearch::new(&matcher, 0, &never);
        let found = files.search(path.reopen().unwrap(), Keep::Count).unwrap();
        assert_eq!(found.matches, 2 * 1024 * 1024);
    }
}
