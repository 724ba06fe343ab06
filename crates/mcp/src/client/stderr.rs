//! What a program writes to its standard error: kept in a file up to a limit, its first and last lines in memory.
//!
//! It is always read, also when nothing is kept, so that a program that complains a lot is never held
//! up; and it never reaches a terminal.

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::fs::OFlags;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::sync::watch;

use super::complaint::reason;
use super::name::file_name;
use super::task::Background;

/// How much one file keeps.
const MAX_LOG_BYTES: u64 = 1024 * 1024;
const CUT_NOTE: &str = "\n[the log ends here: its limit is reached; the server goes on]\n";
/// How many of the first lines are kept, and of the last ones. A stack trace fits in.
const FIRST_LINES: usize = 16;
const LAST_LINES: usize = 32;
/// Of a program that worked before it ended, only what it said last can be why.
const RECENT_LINES: usize = 20;
const MAX_LINE_BYTES: usize = 500;
const CHUNK: usize = 16 * 1024;

/// Follows the standard error of one process.
#[derive(Debug)]
pub(super) struct Stderr {
    complaints: Complaints,
    done: watch::Receiver<bool>,
    _reader: Background,
}

/// What was read of it so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Complaints(Arc<Mutex<Tail>>);

#[derive(Debug, Default)]
struct Tail {
    first: Vec<String>,
    last: VecDeque<String>,
    /// How many there were between these.
    left_out: usize,
    current: Vec<u8>,
}

impl Stderr {
    /// Starts to read. What is read goes to the file as well, where there is a place for it.
    pub(super) fn follow(stream: Box<dyn AsyncRead + Send + Unpin>, log: LogFile) -> Self {
        let complaints = Complaints::default();
        let (end, done) = watch::channel(false);
        let kept = complaints.clone();
        let reader = Background::spawn(async move {
            read(stream, log, &kept.0).await;
            end.send_replace(true);
        });
        Self { complaints, done, _reader: reader }
    }

    /// Waits until everything is read, if that does not take long.
    pub(super) async fn settle(&mut self, patience: Duration) {
        // Somebody the program left behind may keep the stream open; then what there is has to do.
        drop(tokio::time::timeout(patience, self.done.wait_for(|done| *done)).await);
    }

    /// Returns what was read so far, and will be.
    pub(super) const fn complaints(&self) -> &Complaints {
        &self.complaints
    }
}

impl Complaints {
    /// Returns the last line that says something.
    pub(super) fn last_line(&self) -> Option<String> {
        self.lines().pop().map(|line| line.trim_start().to_owned())
    }

    /// Returns the line that says why the program does not work, if there is one.
    pub(super) fn reason(&self) -> Option<String> {
        reason(&self.lines())
    }

    /// Returns the line that says why a program ended that had worked; without one, the last.
    pub(super) fn last_reason(&self) -> Option<String> {
        let lines = self.lines();
        let recent = lines.get(lines.len().saturating_sub(RECENT_LINES)..).unwrap_or_default();
        reason(recent).or_else(|| self.last_line())
    }

    /// Returns the first lines and the last ones, each with the space that it begins with.
    pub(super) fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).all()
    }

    /// Returns how many lines are not kept.
    pub(super) fn left_out(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).left_out
    }
}

impl Tail {
    fn push(&mut self, bytes: &[u8]) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let room = MAX_LINE_BYTES.saturating_sub(self.current.len());
            self.current.extend(piece.iter().take(room));
            if piece.ends_with(b"\n") {
                let line = std::mem::take(&mut self.current);
                self.keep(&line);
            }
        }
    }

    fn keep(&mut self, line: &[u8]) {
        let Some(text) = readable(line) else { return };
        if self.first.len() < FIRST_LINES {
            return self.first.push(text);
        }
        self.last.push_back(text);
        if self.last.len() > LAST_LINES {
            self.last.pop_front();
            self.left_out += 1;
        }
    }

    fn all(&self) -> Vec<String> {
        let kept = self.first.iter().chain(&self.last).cloned();
        kept.chain(readable(&self.current)).collect()
    }
}

/// Returns a line without colours and control characters, if anything is left. A tab is a space.
fn readable(line: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(line).replace('\t', " ");
    let text = without_escapes(&text);
    let text: String = text.chars().filter(|letter| !letter.is_control()).collect();
    let text = text.trim_end();
    (!text.is_empty()).then(|| text.to_owned())
}

/// Takes out what a terminal would obey: colours, titles, links. Of what was cut in the middle nothing is left.
fn without_escapes(text: &str) -> String {
    const ESCAPE: char = '\u{1b}';
    const BELL: char = '\u{7}';
    let mut shown = String::with_capacity(text.len());
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        if letter != ESCAPE {
            shown.push(letter);
            continue;
        }
        match letters.next() {
            // Up to the letter that says what it is.
            Some('[') => drop(letters.find(|letter| ('@'..='~').contains(letter))),
            Some(']' | 'P' | 'X' | '^' | '_') => {
                // Up to its end, which is one letter or two.
                let end = letters.find(|letter| [ESCAPE, BELL].contains(letter));
                letters.next_if(|letter| end == Some(ESCAPE) && *letter == '\\');
            }
            // Which letters are meant from here on: one more.
            Some('(' | ')') => drop(letters.next()),
            _ => {}
        }
    }
    shown
}

async fn read(mut stream: Box<dyn AsyncRead + Send + Unpin>, file: LogFile, tail: &Mutex<Tail>) {
    let (mut path, mut log) = (None, None);
    let mut buffer = vec![0; CHUNK];
    while let Ok(length @ 1..) = stream.read(&mut buffer).await {
        let bytes = buffer.get(..length).unwrap_or_default();
        tail.lock().unwrap_or_else(PoisonError::into_inner).push(bytes);
        let now = file.path();
        // A file that is full, or cannot be written, is not opened again.
        let moved = (now != path).then(|| now.clone());
        path = now;
        if moved.is_none() && log.is_none() {
            continue;
        }
        let (bytes, open): (_, Option<Log>) = (bytes.to_vec(), log.take());
        let written = tokio::task::spawn_blocking(move || {
            let open = match moved {
                Some(path) => path.and_then(|path| Log::open(&path)),
                None => open,
            };
            open.and_then(|mut open| open.write(&bytes).then_some(open))
        });
        log = written.await.ok().flatten();
    }
}

/// Where logs are kept. That changes with the runs of a process: each has what was said while it worked, as far as
/// no other has begun.
#[derive(Debug, Default)]
pub(super) struct Logs(Mutex<Option<PathBuf>>);

impl Logs {
    pub(super) const fn at(directory: Option<PathBuf>) -> Self {
        Self(Mutex::new(directory))
    }

    /// Keeps them here from now on.
    pub(super) fn move_to(&self, directory: PathBuf) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(directory);
    }
}

/// The log of one server, wherever it is kept.
#[derive(Debug)]
pub(super) struct LogFile {
    name: String,
    logs: Arc<Logs>,
}

impl LogFile {
    pub(super) fn of(server: &str, logs: Arc<Logs>) -> Self {
        Self { name: format!("{}.log", file_name(server)), logs }
    }

    fn path(&self) -> Option<PathBuf> {
        let directory = self.logs.0.lock().unwrap_or_else(PoisonError::into_inner);
        directory.as_ref().map(|directory| directory.join(&self.name))
    }
}

/// A file that takes so much and no more.
struct Log {
    file: File,
    left: u64,
}

impl Log {
    /// Opens the file to write at its end. One that is half full begins anew, so that there is room.
    fn open(path: &Path) -> Option<Self> {
        if let Some(directory) = path.parent() {
            // If it cannot be made, the file cannot be opened either.
            drop(std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory));
        }
        let mut options = OpenOptions::new();
        // A pipe is not waited for.
        options.append(true).create(true).mode(0o600);
        options.custom_flags(OFlags::NONBLOCK.bits().cast_signed());
        let file = options.open(path).ok()?;
        let metadata = file.metadata().ok().filter(std::fs::Metadata::is_file)?;
        let mut length = metadata.len();
        if length > MAX_LOG_BYTES / 2 {
            file.set_len(0).ok()?;
            length = 0;
        }
        Some(Self { file, left: MAX_LOG_BYTES - length })
    }

    /// Writes what there is room for; tells whether there will be room for more.
    fn write(&mut self, bytes: &[u8]) -> bool {
        let room = usize::try_from(self.left).unwrap_or(usize::MAX).min(bytes.len());
        let taken = bytes.get(..room).unwrap_or_default();
        self.left -= room as u64;
        if self.left > 0 {
            return self.file.write_all(taken).is_ok();
        }
        // Nobody can be told that the note could not be written.
        drop(self.file.write_all(taken).and_then(|()| self.file.write_all(CUT_NOTE.as_bytes())));
        false
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use tokio::io::AsyncWriteExt;

    use super::*;

    #[tokio::test]
    async fn lines_are_kept_short_and_readable() {
        let mut text = String::from("first\n\n\u{1b}[31mred\u{1b}[0m\n");
        text.push_str(&"long ".repeat(1000));
        text.push_str("\nlast without an end");
        let stream: &'static [u8] = text.leak().as_bytes();
        let mut stderr = Stderr::follow(Box::new(stream), LogFile::of("s", Arc::default()));
        stderr.settle(Duration::from_secs(5)).await;
        let lines = stderr.complaints().lines();
        assert_eq!(lines.first().map(String::as_str), Some("first"));
        assert_eq!(lines[1], "red");
        assert!(lines[2].len() <= MAX_LINE_BYTES);
        assert_eq!(stderr.complaints().last_line().as_deref(), Some("last without an end"));
    }

    /// Regression: of a complaint in colour it was not known that it is one.
    #[test]
    fn colours_titles_and_links_are_taken_out_whole() {
        let plain = |text: &str| readable(text.as_bytes()).unwrap_or_default();
        for (text, shown) in [
            ("\u{1b}[1;31mError\u{1b}[0m: KEY is not set", "Error: KEY is not set"),
            ("\u{1b}]0;title\u{7}said", "said"),
            ("\u{1b}]8;;https://a.example\u{1b}\\link\u{1b}]8;;\u{1b}\\ here", "link here"),
            ("\u{1b}(Bplain\u{1b}M", "plain"),
            ("cut \u{1b}[38;5", "cut"),
            ("[31m is text", "[31m is text"),
        ] {
            assert_eq!(plain(text), shown, "{text:?}");
        }
        let mut tail = Tail::default();
        tail.push(b"starting\n\x1b[31mTypeError: no\x1b[0m\n    at x.js\n");
        assert_eq!(reason(&tail.all()).as_deref(), Some("TypeError: no"));
    }

    /// Regression: of a stack trace only the frames were left.
    #[tokio::test]
    async fn the_first_and_the_last_lines_are_kept_and_the_reason_is_found() {
        let mut text = String::from("Error: KEY is not set\n");
        text.push_str(&"    at somewhere (x.js:1:1)\n".repeat(100));
        let follow = |text: String| {
            let stream: &'static [u8] = text.leak().as_bytes();
            Stderr::follow(Box::new(stream), LogFile::of("s", Arc::default()))
        };
        let mut stderr = follow(text);
        stderr.settle(Duration::from_secs(5)).await;
        assert_eq!(stderr.complaints().lines().len(), FIRST_LINES + LAST_LINES);
        assert_eq!(stderr.complaints().left_out(), 101 - FIRST_LINES - LAST_LINES);
        assert_eq!(stderr.complaints().reason().as_deref(), Some("Error: KEY is not set"));
        let recent = stderr.complaints().last_reason();
        assert_eq!(recent.as_deref(), Some("at somewhere (x.js:1:1)"), "that was long ago");

        let mut stderr = follow("Error: gone\n    at x.js\n".to_owned());
        stderr.settle(Duration::from_secs(5)).await;
        assert_eq!(stderr.complaints().last_reason().as_deref(), Some("Error: gone"));
    }

    #[tokio::test]
    async fn a_flood_fills_the_file_once_and_says_so() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("logs/loud.log");
        let logs = Arc::new(Logs::at(path.parent().map(Path::to_owned)));
        let file = || LogFile::of("loud", Arc::clone(&logs));
        let flood: &'static [u8] = vec![b'x'; 3 * 1024 * 1024].leak();
        let mut stderr = Stderr::follow(Box::new(flood), file());
        stderr.settle(Duration::from_secs(20)).await;
        let written = std::fs::metadata(&path).unwrap().len();
        assert_eq!(written, MAX_LOG_BYTES + CUT_NOTE.len() as u64);
        assert_eq!(stderr.complaints().last_line().map(|line| line.len()), Some(MAX_LINE_BYTES));

        let next: &'static [u8] = b"hello\n";
        let mut stderr = Stderr::follow(Box::new(next), file());
        stderr.settle(Duration::from_secs(5)).await;
        assert_eq!(std::fs::metadata(&path).unwrap().len(), 6);
    }

    #[tokio::test]
    async fn what_is_said_goes_where_logs_are_kept_then() {
        let directory = tempfile::tempdir().unwrap();
        let logs = Arc::<Logs>::default();
        let (mut said, stream) = tokio::io::duplex(64);
        let mut stderr = Stderr::follow(Box::new(stream), LogFile::of("s", Arc::clone(&logs)));
        for (run, words) in [(None, "none\n"), (Some("a"), "one\n"), (Some("b"), "two\n")] {
            if let Some(run) = run {
                logs.move_to(directory.path().join(run));
            }
            said.write_all(words.as_bytes()).await.unwrap();
            while stderr.complaints().last_line().as_deref() != Some(words.trim()) {
                tokio::task::yield_now().await;
            }
        }
        drop(said);
        stderr.settle(Duration::from_secs(5)).await;
        let kept = |run: &str| {
            let mut text = String::new();
            let file = OpenOptions::new().read(true).open(directory.path().join(run).join("s.log"));
            file.unwrap().read_to_string(&mut text).unwrap();
            text
        };
        assert_eq!((kept("a"), kept("b")), ("one\n".to_owned(), "two\n".to_owned()));
    }
}
