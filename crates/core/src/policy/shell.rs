//! What a command line would run: every simple command in it, wherever it hides.
//!
//! The line is parsed with the grammar of bash, never matched as text. Pipes, lists, loops, functions,
//! substitutions and programs that only start another one are all looked through. What cannot be
//! known before the line runs makes it [opaque](Line::opaque): no rule on commands can allow such a
//! line. What cannot be read at all is [unread](Line::unread): nothing allows it without a question.
//!
//! The invariant: whatever a line would run is in [`Line::commands`], or the line is opaque or unread.
//! What a program does once it runs is not known here; holding it is the sandbox's part.

mod careful;
mod code;
mod document;
mod limits;
mod options;
mod script;
mod table;
mod walk;
mod word;
mod wrapper;

pub(super) use careful::is_sink;
pub(super) use options::Unlisted;
pub(super) use word::Word;

use walk::Walk;

/// Where a command line would run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place<'a> {
    /// The home directory, where it is known.
    pub(super) home: Option<&'a str>,
    /// The working directory.
    pub(super) directory: &'a str,
}

/// What a command line would do, as far as it can be told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Line {
    /// Everything it would run.
    pub(super) commands: Vec<Simple>,
    /// Files it would write by redirection.
    pub(super) writes: Vec<Word>,
    /// Files it would read by redirection.
    pub(super) reads: Vec<Word>,
    /// Texts it would hand to programs or variables: here-documents, here-strings, assigned values.
    pub(super) inputs: Vec<Word>,
    /// Directories it would change to.
    pub(super) directories: Vec<Word>,
    /// Why it cannot be known what the line would do.
    pub(super) opaque: Option<String>,
    /// Why it, or a line within it, cannot be read at all.
    pub(super) unread: Option<String>,
}

/// One program with its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Simple {
    pub(super) words: Vec<Word>,
    pub(super) role: Role,
    /// Why it is not known to be harmless.
    pub(super) unlisted: Option<Unlisted>,
    /// Paths that it writes, as far as its words say so.
    pub(super) writes: Vec<Word>,
    /// The same command without options before its subcommand.
    pub(super) plain: Option<Vec<Word>>,
}

impl Simple {
    /// A command that can only be forbidden.
    const fn standing(words: Vec<Word>) -> Self {
        Self { words, role: Role::Stands, unlisted: None, writes: Vec::new(), plain: None }
    }
}

/// What a simple command is in its line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// It does something itself, so it has to be allowed.
    Acts,
    /// It only stands for another command, or is another way to read one: it can be forbidden, and
    /// what it stands for has to be allowed.
    Stands,
}

/// Works out what a command line would do.
pub(super) fn read(text: &str, place: Place<'_>) -> Line {
    let mut walk = Walk::new(place, text);
    walk.text(text, 0);
    walk.finish()
}

/// Works out what a program with these arguments would do; no shell is between.
pub(super) fn read_words(words: &[String], place: Place<'_>) -> Line {
    let mut walk = Walk::new(place, "");
    walk.simple(words.iter().map(Word::literal).collect(), 0);
    walk.finish()
}

#[cfg(test)]
mod tests;
