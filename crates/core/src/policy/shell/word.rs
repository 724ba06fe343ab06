//! One word of a command line: what it says, as far as that is known before the line runs.

use std::panic::catch_unwind;

use brush_parser::ParserOptions;
use brush_parser::word::{
    self, Parameter, ParameterExpr, SpecialParameter, WordPiece, WordPieceWithSource,
};

use super::Place;
use super::careful::is_harmless_in_shell;

/// One word of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::policy) struct Word {
    value: Value,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Value {
    /// Just this text.
    Known(String),
    /// Names of files that start like this, by a pattern that stays below where it starts.
    Starts(String),
    /// Anything.
    Unknown(String, Extent),
}

/// The number of words that a word can become when the line runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Extent {
    /// Any number.
    Any,
    /// One.
    One,
    /// One that is no option.
    Operand,
}

impl Word {
    /// A word that says just this.
    pub(in crate::policy) fn literal(text: impl Into<String>) -> Self {
        Self { value: Value::Known(text.into()) }
    }

    /// A word that can say anything.
    pub(in crate::policy) fn unknown(written: impl Into<String>) -> Self {
        Self { value: Value::Unknown(written.into(), Extent::Any) }
    }

    /// A word that can say anything, but is no option.
    pub(in crate::policy) fn operand(written: impl Into<String>) -> Self {
        Self { value: Value::Unknown(written.into(), Extent::Operand) }
    }

    /// Tells whether it stands for the standard input.
    pub(super) fn is_dash(&self) -> bool {
        self.text() == Some("-")
    }

    /// Tells whether it can be an option, or become several words one of which is.
    pub(super) fn may_be_option(&self) -> bool {
        match &self.value {
            Value::Known(text) => text.starts_with('-'),
            Value::Starts(start) => start.is_empty() || start.starts_with('-'),
            Value::Unknown(_, extent) => *extent != Extent::Operand,
        }
    }

    /// Tells whether it is one word that can be the value of the option before it. Words that look like an
    /// option are left out: which options take a value is not known so well.
    pub(super) fn is_value(&self) -> bool {
        match &self.value {
            Value::Known(text) => {
                let rest = text.strip_prefix('-').unwrap_or_default();
                rest.is_empty() || rest.starts_with(|c: char| c.is_ascii_digit())
            }
            Value::Starts(_) => !self.may_be_option(),
            Value::Unknown(_, extent) => *extent != Extent::Any,
        }
    }

    /// Returns what it says, where that is known.
    pub(in crate::policy) fn text(&self) -> Option<&str> {
        match &self.value {
            Value::Known(text) => Some(text),
            Value::Starts(_) | Value::Unknown(..) => None,
        }
    }

    /// Returns what the file names it stands for start with, if it is a pattern for file names.
    pub(in crate::policy) fn start(&self) -> Option<&str> {
        match &self.value {
            Value::Starts(start) => Some(start),
            Value::Known(_) | Value::Unknown(..) => None,
        }
    }

    /// Returns it for people.
    pub(in crate::policy) fn shown(&self) -> String {
        match &self.value {
            Value::Known(text) | Value::Unknown(text, _) => text.clone(),
            Value::Starts(start) => format!("{start}*"),
        }
    }
}

/// What was found in a word.
#[derive(Debug, Default)]
pub(super) struct Found {
    text: String,
    /// Where the first pattern character was.
    pattern: Option<usize>,
    unknown: bool,
    /// What is known to stand before the first part that is not known; nothing if there may be several words.
    before: Option<String>,
    /// Command lines whose output becomes part of the word.
    pub(super) lines: Vec<String>,
    /// Why it is not known what the word would run.
    pub(super) trouble: Option<Trouble>,
}

/// Why it is not known what a word would run.
#[derive(Clone, Copy, Debug)]
pub(super) enum Trouble {
    /// It depends on what is only known when the line runs.
    Opaque(&'static str),
    /// It could not be read.
    Unread(&'static str),
}

impl Found {
    fn opaque(&mut self, reason: &'static str) {
        self.trouble.get_or_insert(Trouble::Opaque(reason));
    }

    fn unread(&mut self, reason: &'static str) {
        self.trouble = Some(Trouble::Unread(reason));
    }

    /// A part is not known. Within quotes it stays one word.
    fn unknown(&mut self, is_one: bool) {
        if !self.unknown {
            self.before = Some(self.text.clone());
        }
        self.unknown = true;
        if !is_one {
            self.before = None;
        }
    }
}

/// Reads a word as it was written.
pub(super) fn read(written: &str, place: Place<'_>, variables: Variables) -> (Word, Found) {
    let mut found = Found::default();
    // Alone it is the name of a program, not the start of a pattern.
    if written == "[" || is_plain(written) {
        return (Word::literal(written), found);
    }
    // The parser is not ours: if it breaks down, the word could not be read.
    let parsed = catch_unwind(|| word::parse(written, &ParserOptions::default()).ok());
    match parsed.ok().flatten() {
        Some(pieces) => {
            Reader { written, place, variables, found: &mut found }.pieces(&pieces, false);
        }
        None => found.trouble = Some(Trouble::Unread("a word in it cannot be read")),
    }
    let value = if found.unknown || found.trouble.is_some() {
        let extent = match found.before.as_deref() {
            _ if found.pattern.is_some() || found.trouble.is_some() => Extent::Any,
            None => Extent::Any,
            Some(before) if before.is_empty() || before.starts_with('-') => Extent::One,
            Some(_) => Extent::Operand,
        };
        Value::Unknown(written.to_owned(), extent)
    } else if let Some(at) = found.pattern {
        let (start, rest) = found.text.split_at_checked(at).unwrap_or_default();
        // Braces can hold whole paths, and `..` leads out of where the pattern starts.
        if rest.contains("..") || (rest.contains('{') && !start.contains('/')) {
            Value::Unknown(written.to_owned(), Extent::Any)
        } else {
            Value::Starts(start.to_owned())
        }
    } else {
        Value::Known(std::mem::take(&mut found.text))
    };
    (Word { value }, found)
}

/// Tells whether a word has nothing in it that a shell would change.
fn is_plain(written: &str) -> bool {
    let plain = |byte: u8| {
        byte.is_ascii_alphanumeric()
            || matches!(byte, b'_' | b'-' | b'.' | b'/' | b':' | b',' | b'+' | b'@' | b'%' | b'=')
    };
    written.bytes().all(plain)
}

/// Whether `HOME` and `PWD` are still what they were when the line started.
#[derive(Clone, Copy, Debug)]
pub(super) struct Variables {
    pub(super) home: bool,
    pub(super) directory: bool,
}

impl Variables {
    /// Looks whether a line names them other than to read them.
    pub(super) fn of(text: &str) -> Self {
        // Quotes can stand in the middle of a name.
        let bare = text.replace(['\'', '"', '\\', '\n'], "");
        let only_read = |name: &str| {
            let read = text.matches(&format!("${name}")).count();
            let braced = text.matches(&format!("${{{name}}}")).count();
            bare.matches(name).count() == read + braced
        };
        let moves = ["cd", "pushd", "popd", "-C"].iter().any(|word| bare.contains(word));
        Self { home: only_read("HOME"), directory: only_read("PWD") && !moves }
    }
}

struct Reader<'a> {
    written: &'a str,
    place: Place<'a>,
    variables: Variables,
    found: &'a mut Found,
}

impl Reader<'_> {
    fn pieces(&mut self, pieces: &[WordPieceWithSource], quoted: bool) {
        for piece in pieces {
            self.piece(piece, quoted);
        }
    }

    fn piece(&mut self, piece: &WordPieceWithSource, quoted: bool) {
        match &piece.piece {
            WordPiece::Text(text) => self.plain(text, quoted),
            WordPiece::SingleQuotedText(text) => self.found.text.push_str(text),
            WordPiece::AnsiCQuotedText(text) => self.escaped(text),
            WordPiece::DoubleQuotedSequence(pieces)
            | WordPiece::GettextDoubleQuotedSequence(pieces) => self.pieces(pieces, true),
            WordPiece::TildePrefix(user) => self.tilde(user),
            WordPiece::ParameterExpansion(expression) => self.parameter(expression, piece, quoted),
            WordPiece::CommandSubstitution(line) => {
                self.found.lines.push(line.clone());
                self.found.unknown(quoted);
            }
            WordPiece::BackquotedCommandSubstitution(line) => {
                if line.contains('\\') {
                    self.found.opaque("it has an escape within backquotes");
                }
                self.found.lines.push(line.clone());
                self.found.unknown(quoted);
            }
            WordPiece::EscapeSequence(sequence) => {
                let text = sequence.strip_prefix('\\').unwrap_or(sequence);
                self.found.text.push_str(if text == "\n" { "" } else { text });
            }
            WordPiece::ArithmeticExpression(expression) => self.arithmetic(&expression.value),
        }
    }

    fn plain(&mut self, text: &str, quoted: bool) {
        // The parser found no substitution here; a shell might.
        if text.contains('`')
            || text.contains("$(")
            || (text == "$" && !self.written.ends_with('$'))
        {
            self.found.unread("it has a substitution that cannot be read");
        }
        let text = text.replace("\\\n", "");
        if !quoted && let Some(at) = pattern_start(&text, self.written) {
            let at = self.found.text.len() + at;
            self.found.pattern.get_or_insert(at);
        }
        self.found.text.push_str(&text);
    }

    /// Text in `$'…'`: escapes other than for lines and tabs can spell anything.
    fn escaped(&mut self, text: &str) {
        let text = text.replace("\\n", "\n").replace("\\t", "\t");
        if text.contains('\\') {
            self.found.unknown(true);
        }
        self.found.text.push_str(&text);
    }

    fn tilde(&mut self, user: &str) {
        match (user, self.place.home) {
            ("", Some(home)) if self.variables.home => self.found.text.push_str(home),
            (user, _) if user.chars().all(|c| c.is_alphanumeric() || "_-.+".contains(c)) => {
                self.found.unknown(false);
            }
            // The parser takes a substitution for a name.
            _ => self.found.unread("it has a substitution that cannot be read"),
        }
    }

    fn parameter(&mut self, expression: &ParameterExpr, piece: &WordPieceWithSource, quoted: bool) {
        let known = match expression {
            ParameterExpr::Parameter { parameter, indirect: false } => match parameter {
                Parameter::Named(name) if name == "HOME" && self.variables.home => self.place.home,
                Parameter::Named(name) if name == "PWD" && self.variables.directory => {
                    Some(self.place.directory)
                }
                Parameter::Special(
                    SpecialParameter::LastExitStatus
                    | SpecialParameter::ProcessId
                    | SpecialParameter::PositionalParameterCount,
                ) => Some("0"),
                _ => None,
            },
            _ => None,
        };
        let written = self.written.get(piece.start_index..piece.end_index);
        // The parser takes this for a here-document, and a shell does not.
        if written.is_none_or(|written| written.contains("<<") || written.contains('\n')) {
            self.found.unread("it has an expansion that cannot be read");
        }
        let runs = ["$(", "`", "<(", ">(", "@P", "[", "!"];
        if known.is_none()
            && written.is_none_or(|written| runs.iter().any(|text| written.contains(text)))
        {
            self.found.opaque("an expansion in it can run commands");
        }
        self.operands(expression);
        if let Some(text) = known {
            self.found.text.push_str(text);
        } else {
            let several = written.is_none_or(|written| written.contains(['@', '*', '[']));
            self.found.unknown(quoted && !several);
        }
    }

    /// Parts of an expansion are evaluated in turn, and one kind of it sets a variable.
    fn operands(&mut self, expression: &ParameterExpr) {
        match expression {
            ParameterExpr::Substring { offset, length, .. } => {
                let numbers = std::iter::once(offset).chain(length);
                if !numbers.into_iter().all(|number| is_plain_arithmetic(&number.value)) {
                    self.found.opaque("arithmetic with names in it can run commands");
                }
            }
            ParameterExpr::AssignDefaultValues { parameter, .. } => match parameter {
                Parameter::Named(name) if is_harmless_in_shell(name) => {}
                _ => self.found.opaque("it sets a variable that can change what programs do"),
            },
            _ => {}
        }
    }

    /// Plain arithmetic is a number. A name in it is evaluated in turn, which can run commands.
    fn arithmetic(&mut self, expression: &str) {
        if is_plain_arithmetic(expression) {
            self.found.text.push('0');
        } else {
            self.found.opaque("arithmetic with names in it can run commands");
        }
    }
}

/// Tells whether an expression has nothing but numbers and operators in it.
pub(super) fn is_plain_arithmetic(expression: &str) -> bool {
    !expression.contains(|c: char| c.is_alphabetic() || matches!(c, '_' | '$' | '`' | '[' | '@'))
}

/// Returns where a pattern for file names, or a list in braces, starts. Quotes can stand in the middle of
/// a list, so its end is looked for in the whole word.
fn pattern_start(text: &str, word: &str) -> Option<usize> {
    let glob = text.find(['*', '?', '[']);
    let extended = ["@(", "!(", "+("].iter().filter_map(|open| text.find(open)).min();
    let braces = text.find('{').filter(|_| word.contains(',') || word.contains(".."));
    [glob, extended, braces].into_iter().flatten().min()
}
