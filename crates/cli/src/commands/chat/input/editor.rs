//! The editor: a line, or several, with history, completion and the keys people know.
//!
//! It reads on a thread of its own, because reading blocks, and has the terminal to itself meanwhile.

use std::borrow::Cow;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use reedline::{
    Color, ColumnarMenu, DefaultHinter, EditCommand, Emacs, FileBackedHistory, Highlighter,
    KeyCode, KeyModifiers, MenuBuilder, Prompt, PromptEditMode, PromptHistorySearch, Reedline,
    ReedlineEvent, ReedlineMenu, Signal, StyledText, ValidationResult, Validator,
    default_emacs_keybindings,
};
use tokio::task::JoinHandle;

use super::super::complete::Complete;
use super::super::line::Line;
use super::super::mention::{Piece, pieces};
use super::super::prompt::Served;
use super::Heard;
use crate::files;
use crate::output::Stream;
use crate::view::look::{Look, Sign};

/// How many messages are remembered.
const REMEMBERED: usize = 2_000;
/// How long the editor may take to stop.
const PATIENCE: Duration = Duration::from_secs(1);
const MENU: &str = "completion";

/// Where messages are remembered.
#[derive(Debug)]
pub(in super::super) struct History(Option<PathBuf>);

impl History {
    /// Remembers in this file, which only its owner may read.
    pub(in super::super) fn open(path: &Path) -> io::Result<Self> {
        files::append_private(path)?;
        Ok(Self(Some(path.to_owned())))
    }

    /// Remembers until the chat ends.
    pub(in super::super) const fn passing() -> Self {
        Self(None)
    }
}

/// The editor.
pub(in super::super) struct Editor {
    /// Not here while it reads.
    line: Option<Box<Reedline>>,
    reading: Option<JoinHandle<Read>>,
    sign: PromptSign,
    complete: Complete,
    continued: Continued,
    stop: Arc<AtomicBool>,
}

/// The editor as it comes back, with what was read.
type Read = (Box<Reedline>, io::Result<Signal>);

impl std::fmt::Debug for Editor {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Editor").finish_non_exhaustive()
    }
}

impl Editor {
    pub(in super::super) fn new(err: &Stream, history: History, complete: Complete) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let continued = Continued::default();
        let sign = Look::of(err).sign(Sign::Person);
        let line = Reedline::create()
            .with_ansi_colors(err.is_coloured())
            .with_highlighter(Box::new(Highlight))
            .with_hinter(Box::new(DefaultHinter::default().with_style(Color::Default.dimmed())))
            .with_validator(Box::new(continued.clone()))
            .with_edit_mode(Box::new(Emacs::new(keys())))
            .with_menu(ReedlineMenu::EngineCompleter(Box::new(menu(sign))))
            .with_quick_completions(true)
            .with_partial_completions(true)
            .with_history_exclusion_prefix(Some(" ".to_owned()))
            .use_bracketed_paste(true)
            .with_break_signal(Arc::clone(&stop));
        let line = Box::new(remembering(line, history.0));
        let sign = PromptSign(sign);
        Self { line: Some(line), reading: None, sign, complete, continued, stop }
    }

    /// Learns what servers have. A line that is being written is completed as before.
    pub(super) fn know(&mut self, served: Vec<Served>) {
        self.complete.know(served);
    }

    /// Waits for a message.
    pub(super) async fn read(&mut self, draft: String) -> io::Result<Heard> {
        if self.reading.is_none()
            && let Some(line) = self.line.take()
        {
            self.continued.forget();
            let line = Box::new(line.with_completer(Box::new(self.complete.clone())));
            self.reading = Some(self.begin(line, draft));
        }
        match self.come_back().await? {
            Signal::Success(text) => Ok(Heard::Line(self.continued.join(text))),
            Signal::CtrlC => Ok(Heard::Interrupt),
            // The terminal was closed, or whoever reads it wants no more.
            _ => Ok(Heard::End),
        }
    }

    /// Stops reading, and leaves the terminal as it was. What was being written is given up. Whoever
    /// reads from a terminal that is gone does not hear of it, and is left behind.
    pub(super) async fn stop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        drop(tokio::time::timeout(PATIENCE, self.come_back()).await);
        self.stop.store(false, Ordering::Relaxed);
    }

    fn begin(&self, mut line: Box<Reedline>, draft: String) -> JoinHandle<Read> {
        let sign = self.sign.clone();
        tokio::task::spawn_blocking(move || {
            if !draft.is_empty() {
                line.run_edit_commands(&[EditCommand::InsertString(draft)]);
            }
            let read = line.read_line(&sign);
            // History that cannot be written is history that is forgotten.
            drop(line.sync_history());
            (line, read)
        })
    }

    async fn come_back(&mut self) -> io::Result<Signal> {
        let Some(reading) = &mut self.reading else {
            return Err(io::Error::other("the editor is gone"));
        };
        let ended = reading.await;
        self.reading = None;
        let (line, read) = ended.map_err(io::Error::other)?;
        self.line = Some(line);
        read
    }
}

/// A history that cannot be read is left alone; what is said is remembered until the chat ends.
fn remembering(line: Reedline, path: Option<PathBuf>) -> Reedline {
    let history = match path {
        Some(path) => FileBackedHistory::with_file(REMEMBERED, path),
        None => FileBackedHistory::new(REMEMBERED),
    };
    match history.or_else(|_| FileBackedHistory::new(REMEMBERED)) {
        Ok(history) => line.with_history(Box::new(history)),
        Err(_) => line,
    }
}

fn keys() -> reedline::Keybindings {
    let mut keys = default_emacs_keybindings();
    let next =
        ReedlineEvent::UntilFound(vec![ReedlineEvent::Menu(MENU.into()), ReedlineEvent::MenuNext]);
    keys.add_binding(KeyModifiers::NONE, KeyCode::Tab, next);
    keys.add_binding(KeyModifiers::SHIFT, KeyCode::BackTab, ReedlineEvent::MenuPrevious);
    keys
}

fn menu(sign: &str) -> ColumnarMenu {
    ColumnarMenu::default()
        .with_name(MENU)
        .with_marker(&format!("{sign} "))
        .with_text_style(Color::Default.normal())
        .with_match_text_style(Color::Default.normal())
        .with_selected_text_style(Color::Default.reverse())
        .with_selected_match_text_style(Color::Default.reverse())
        .with_description_text_style(Color::Default.dimmed())
}

/// The sign before a message.
#[derive(Clone, Debug)]
struct PromptSign(&'static str);

impl Prompt for PromptSign {
    fn render_prompt_left(&self) -> Cow<'_, str> {
        Cow::Borrowed("")
    }

    fn render_prompt_right(&self) -> Cow<'_, str> {
        Cow::Borrowed("")
    }

    fn render_prompt_indicator(&self, _: PromptEditMode) -> Cow<'_, str> {
        Cow::Owned(format!("{} ", self.0))
    }

    fn render_prompt_multiline_indicator(&self) -> Cow<'_, str> {
        Cow::Borrowed("  ")
    }

    fn render_prompt_history_search_indicator(&self, search: PromptHistorySearch) -> Cow<'_, str> {
        Cow::Owned(format!("search `{}` {} ", search.term, self.0))
    }

    fn get_indicator_color(&self) -> Color {
        Color::Cyan
    }
}

/// Sets commands and mentions apart from what is just said.
struct Highlight;

impl Highlighter for Highlight {
    fn highlight(&self, line: &str, _: usize) -> StyledText {
        let (plain, set_apart) = (Color::Default.normal(), Color::Cyan.normal());
        let mut text = StyledText::new();
        if line.starts_with('/') && Line::is_command(line) {
            let end = line.find(char::is_whitespace).unwrap_or(line.len());
            let (name, rest) = line.split_at(end);
            text.push((set_apart, name.to_owned()));
            text.push((plain, rest.to_owned()));
            return text;
        }
        let mut shown = 0;
        for piece in pieces(line) {
            if let Piece::Mention { written, .. } = piece
                && let Some(at) = line.get(shown..).and_then(|rest| rest.find(written))
                && let Some(before) = line.get(shown..shown + at)
            {
                text.push((plain, before.to_owned()));
                text.push((set_apart, written.to_owned()));
                shown += at + written.len();
            }
        }
        text.push((plain, line.get(shown..).unwrap_or_default().to_owned()));
        text
    }
}

/// Lines that end with a backslash go on. It is taken out again, and only where it was typed for that.
#[derive(Clone, Debug, Default)]
struct Continued(Arc<Mutex<Vec<String>>>);

impl Validator for Continued {
    fn validate(&self, text: &str) -> ValidationResult {
        let slashes = text.len() - text.trim_end_matches('\\').len();
        if slashes.is_multiple_of(2) {
            return ValidationResult::Complete;
        }
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(text.to_owned());
        ValidationResult::Incomplete
    }
}

impl Continued {
    fn forget(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Takes out the backslashes that were typed to go on. The last come first, so that what was known
    /// of the beginning stays true.
    fn join(&self, mut text: String) -> String {
        let beginnings = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for beginning in beginnings.iter().rev() {
            let end = beginning.len();
            if text.starts_with(beginning.as_str()) && text.get(end..end + 1) == Some("\n") {
                text.remove(end - 1);
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backslash_is_taken_out_where_it_was_typed_to_go_on() {
        let continued = Continued::default();
        let is_complete = |text| matches!(continued.validate(text), ValidationResult::Complete);
        assert!(!is_complete("one\\"));
        assert!(!is_complete("one\\\ntwo\\"));
        assert!(is_complete("one\\\ntwo\\\nthree"));
        assert_eq!(continued.join("one\\\ntwo\\\nthree".into()), "one\ntwo\nthree");
        continued.forget();
        assert!(is_complete("cc -c \\\n  -o x"));
        assert_eq!(continued.join("cc -c \\\n  -o x".into()), "cc -c \\\n  -o x");
        assert!(is_complete("a path \\\\"));
    }

    #[test]
    fn commands_and_mentions_are_set_apart() {
        let parts = |line: &str| {
            let text = Highlight.highlight(line, 0);
            assert_eq!(text.raw_string(), line);
            let coloured =
                text.buffer.into_iter().filter(|(style, _)| *style == Color::Cyan.normal());
            coloured.map(|(_, text)| text).collect::<Vec<_>>()
        };
        assert_eq!(parts("/model x"), ["/model"]);
        assert_eq!(parts("see @a.rs and \\@b, @c"), ["@a.rs", "@c"]);
        assert_eq!(parts("nothing here"), Vec::<String>::new());
    }
}
