//! What a person types on the terminal while a run works.
//!
//! The terminal belongs to the live view then, so what is typed is not echoed: it becomes a [`Draft`],
//! which the view draws below everything else. Ctrl-C stays a signal. Whoever wants to read from the
//! terminal in another way makes this rest first; then the terminal is as it was before.

mod draft;
mod keyboard;

use tokio::time::Instant;

pub(crate) use self::draft::Draft;
use self::keyboard::Keyboard;

/// Listens to the keyboard, unless it rests.
#[derive(Debug, Default)]
pub(crate) struct Typing {
    keyboard: Option<Keyboard>,
    draft: Draft,
    /// Whether what is typed stays in the draft, complete or not.
    is_held: bool,
    /// When a key was last pressed.
    pressed: Option<Instant>,
}

impl Typing {
    /// Begins with something that was typed.
    #[cfg(test)]
    pub(crate) fn begun(draft: &str) -> Self {
        let mut typing = Self::default();
        typing.take_in(draft.as_bytes());
        typing
    }

    /// Takes in something as if it was typed now.
    #[cfg(test)]
    pub(crate) fn press(&mut self, keys: &str) -> Vec<String> {
        self.take_in(keys.as_bytes())
    }

    /// Listens from now on, if there is a terminal to listen to.
    pub(crate) fn listen(&mut self) {
        self.is_held = false;
        if self.keyboard.is_none() {
            self.keyboard = Keyboard::open();
        }
    }

    /// Keeps everything in the draft until it listens anew: nobody sees what is typed meanwhile.
    pub(crate) const fn hold(&mut self) {
        self.is_held = true;
    }

    /// Lets go of the terminal. Returns the lines that were completed in the last moment.
    pub(crate) fn rest(&mut self) -> Vec<String> {
        let bytes = self.keyboard.take().map(Keyboard::close).unwrap_or_default();
        self.take_in(&bytes)
    }

    /// Waits until something is typed. Returns the lines that are complete; the rest is in the draft.
    pub(crate) async fn next(&mut self) -> Vec<String> {
        let bytes = match &mut self.keyboard {
            Some(keyboard) => keyboard.next().await,
            None => std::future::pending().await,
        };
        self.take_in(&bytes)
    }

    fn take_in(&mut self, bytes: &[u8]) -> Vec<String> {
        if !bytes.is_empty() {
            self.pressed = Some(Instant::now());
        }
        if self.is_held {
            self.draft.keep(bytes);
            return Vec::new();
        }
        self.draft.take_in(bytes)
    }

    /// Returns when a key was last pressed.
    pub(crate) const fn last_pressed(&self) -> Option<Instant> {
        self.pressed
    }

    /// Returns what is not complete yet.
    pub(crate) fn draft(&self) -> &str {
        self.draft.text()
    }

    /// Takes away what is not complete yet.
    pub(crate) fn take_draft(&mut self) -> String {
        self.draft.take_text()
    }
}
