//! Programs that start another one: the other one is what counts.
//!
//! Only options of the table are stepped over. One that is not might take the next word for itself,
//! and then it would not be known which word is the program; such a command is opaque.

use super::careful::{bare, is_harmless_for_programs};
use super::code::{self, Given};
use super::table::{self, Block};
use super::{Role, Word, options};

/// What a command starts.
#[derive(Debug)]
pub(super) struct Started {
    /// What the command itself is.
    pub(super) role: Role,
    /// What it runs.
    pub(super) inner: Vec<Inner>,
    /// Other ways to read it, which can be forbidden as well.
    pub(super) also: Vec<Vec<Word>>,
    /// Where it moves to.
    pub(super) directories: Vec<Word>,
    /// Why it cannot be known what it runs.
    pub(super) opaque: Option<String>,
}

/// Something that a command runs.
#[derive(Debug)]
pub(super) enum Inner {
    /// A program with arguments.
    Words(Vec<Word>),
    /// A line for a shell.
    Line(String),
    /// A line for a shell, any number of times.
    Again(String),
    /// What may be a program with arguments. It can be forbidden; it does not have to be allowed.
    Perhaps(Vec<Word>),
}

const SHELLS: &[&str] = &["sh", "bash", "dash", "ksh", "mksh", "ash", "rbash", "yash"];
/// Shells with a grammar of their own.
const FOREIGN_SHELLS: &[&str] =
    &["csh", "elvish", "es", "fish", "nu", "pwsh", "powershell", "rc", "tcsh", "xonsh", "zsh"];

/// Looks at what a command starts.
pub(super) fn look_through(words: &[Word]) -> Started {
    let mut started = Started {
        role: Role::Acts,
        inner: Vec::new(),
        also: Vec::new(),
        directories: Vec::new(),
        opaque: None,
    };
    let Some((Some(program), arguments)) =
        words.split_first().map(|(program, rest)| (program.text().map(bare), rest))
    else {
        return started;
    };
    match program {
        shell if SHELLS.contains(&shell) => started.shell(shell, arguments),
        shell if FOREIGN_SHELLS.contains(&shell) => {
            started.shell(shell, arguments);
            started.opaque(&format!("`{shell}` reads lines in its own way"));
        }
        "eval" => started.joined(after_dashes(arguments)),
        "trap" => started.trap(arguments),
        "su" => started.opaque("`su` runs a shell"),
        "find" | "fd" | "fdfind" => started.find(program, arguments),
        "cd" | "pushd" | "chdir" => {
            let target =
                arguments.iter().find(|word| word.text().is_none_or(|text| !text.starts_with('-')));
            let back = arguments.iter().any(|word| word.text() == Some("-"));
            let target = target.filter(|_| !back).cloned();
            started.directories.push(target.unwrap_or(Word::unknown("~")));
        }
        "popd" => started.directories.push(Word::unknown("popd")),
        launcher if is_loader(launcher) => started.launches(launcher),
        "command" if looks_up(arguments) => {}
        program => match table::find(program).map(|entry| &entry.block) {
            Some(block) if block.is("launches") => started.launches(program),
            Some(block) if block.wraps.is_some() => started.wrapped(program, block, arguments),
            _ => {}
        },
    }
    match code::given(program, arguments) {
        Some(Given::Code) => {
            let anything = [Word::unknown("code"), Word::unknown("code")];
            started.also.push(anything.to_vec());
        }
        Some(Given::Programs(programs)) => {
            started.inner.extend(programs.into_iter().map(Inner::Perhaps));
        }
        None => {}
    }
    if !matches!(program, "cd" | "pushd" | "chdir" | "popd") {
        started.directories.extend(directories(program, arguments));
    }
    started
}

/// Tells whether a program is the one that loads others.
fn is_loader(program: &str) -> bool {
    program == "ld.so" || program.starts_with("ld-")
}

/// Returns the directories that options name for a program to start in.
fn directories(program: &str, arguments: &[Word]) -> Vec<Word> {
    let long =
        ["--directory", "--chdir", "--cwd", "--work-tree", "--working-directory", "--prefix"];
    let short = if matches!(program, "sudo" | "doas") { 'D' } else { 'C' };
    let old_style = matches!(program, "tar" | "bsdtar");
    let mut found = Vec::new();
    let mut words = arguments.iter().enumerate().peekable();
    while let Some((at, word)) = words.next() {
        let Some(text) = word.text() else { continue };
        let mut next = || words.peek().map_or(Word::unknown("-C"), |(_, word)| (*word).clone());
        let named = long.iter().find_map(|option| text.strip_prefix(option));
        if let Some(rest) = named {
            match rest.strip_prefix('=') {
                Some(value) => found.push(Word::literal(value)),
                None if rest.is_empty() => found.push(next()),
                None => {}
            }
        } else if !text.starts_with("--")
            && (text.starts_with('-') || (old_style && at == 0))
            && let Some((_, attached)) = text.split_once(short)
        {
            match attached {
                "" => found.push(next()),
                // In a word of options its value may be any of the words that follow.
                _ if old_style => found.push(Word::unknown("-C")),
                value => found.push(Word::literal(value)),
            }
        }
    }
    // With a number it is something else: lines of context, for instance.
    found.retain(|word| word.text().is_none_or(|text| text.parse::<u32>().is_err()));
    found
}

/// Returns the arguments after the word that ends options, if that comes first.
fn after_dashes(arguments: &[Word]) -> &[Word] {
    match arguments.split_first() {
        Some((first, rest)) if first.text() == Some("--") => rest,
        _ => arguments,
    }
}

fn looks_up(arguments: &[Word]) -> bool {
    matches!(arguments.first().and_then(Word::text), Some("-v" | "-V"))
}

impl Started {
    fn opaque(&mut self, reason: &str) {
        self.opaque.get_or_insert_with(|| reason.to_owned());
    }

    fn launches(&mut self, program: &str) {
        self.opaque(&format!("`{program}` starts other programs"));
    }

    fn wrapped(&mut self, program: &str, block: &Block, arguments: &[Word]) {
        let options = match options::step_over(program, block, arguments) {
            Ok(options) => options,
            Err(word) => {
                return self.opaque(&format!("`{word}` is not a known option of `{program}`"));
            }
        };
        let operands = block.wraps.unwrap_or_default();
        let mut rest = arguments.get(options + operands..).unwrap_or_default();
        if matches!(program, "env" | "sudo" | "doas") {
            while let Some((name, _)) =
                rest.first().and_then(Word::text).and_then(|t| t.split_once('='))
            {
                if !is_harmless_for_programs(name) {
                    self.opaque(&format!("it sets `{name}`, which can change what programs do"));
                }
                rest = rest.get(1..).unwrap_or_default();
            }
        }
        if rest.is_empty() {
            return;
        }
        // Acting as somebody else is more than what is run.
        if !matches!(program, "sudo" | "doas") {
            self.role = Role::Stands;
        }
        let mut inner = rest.to_vec();
        if program == "xargs" {
            let own = arguments.get(..options).unwrap_or_default();
            inner = given_by_xargs(own, inner);
        }
        self.inner.push(Inner::Words(inner));
    }

    fn shell(&mut self, shell: &str, arguments: &[Word]) {
        let mut rest = arguments.iter();
        let mut takes_line = false;
        while let Some(word) = rest.next() {
            let at = arguments.len() - rest.len();
            let Some(text) = word.text() else {
                return self.opaque("what the shell runs is not known");
            };
            match text {
                "--norc" | "--noprofile" | "--posix" | "--" => {}
                "--version" | "--help" => return,
                option if option.starts_with(['-', '+']) && option.len() > 1 => {
                    let flags = option.get(1..).unwrap_or_default();
                    if flags.contains('s') {
                        return self.opaque("the shell runs what it is sent");
                    }
                    if !flags.chars().all(|flag| "abcefhilmnoptuvxBCEHOP".contains(flag)) {
                        return self
                            .opaque(&format!("`{option}` is not a known option of `{shell}`"));
                    }
                    takes_line |= flags.contains('c');
                    // Each of these takes a word.
                    for _ in flags.matches(['o', 'O']) {
                        rest.next();
                    }
                }
                line if takes_line => {
                    self.role = Role::Stands;
                    return self.inner.push(Inner::Line(line.to_owned()));
                }
                file if file.starts_with("/dev/") || file.starts_with("/proc/") || file == "-" => {
                    break;
                }
                // A script is a program like any other, and is looked for like one.
                _ => {
                    let script = arguments.get(at.saturating_sub(1)..).unwrap_or_default().to_vec();
                    return self.inner.push(Inner::Perhaps(script));
                }
            }
        }
        self.opaque("the shell runs what it is sent");
    }

    fn joined(&mut self, arguments: &[Word]) {
        let texts: Option<Vec<&str>> = arguments.iter().map(Word::text).collect();
        match texts {
            Some(texts) => {
                self.role = Role::Stands;
                self.inner.push(Inner::Line(texts.join(" ")));
            }
            None => self.opaque("what is evaluated is not known"),
        }
    }

    fn trap(&mut self, arguments: &[Word]) {
        match after_dashes(arguments).first().map(Word::text) {
            Some(Some("-" | "-l" | "-p" | "-P")) | None => {}
            Some(Some(line)) => self.inner.push(Inner::Again(line.to_owned())),
            Some(None) => self.opaque("what is run at the end is not known"),
        }
    }

    fn find(&mut self, program: &str, arguments: &[Word]) {
        let (own, inner) = split_started(program, arguments);
        self.inner.extend(inner.into_iter().map(Inner::Words));
        if own.iter().any(|word| word.text() == Some("-delete")) {
            let removed = vec![Word::literal("rm"), Word::operand("{}")];
            self.inner.push(Inner::Words(removed));
        }
    }
}

/// Separates the commands that `find` and `fd` start from their own words.
pub(super) fn split_started(program: &str, arguments: &[Word]) -> (Vec<Word>, Vec<Vec<Word>>) {
    let starts = |text: &str| match program {
        "find" => matches!(text, "-exec" | "-execdir" | "-ok" | "-okdir"),
        "fd" | "fdfind" => {
            let short = text.starts_with('-') && !text.starts_with("--");
            matches!(text, "--exec" | "--exec-batch") || (short && text.ends_with(['x', 'X']))
        }
        _ => false,
    };
    let (mut own, mut started) = (Vec::new(), Vec::new());
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        if !word.text().is_some_and(starts) {
            own.push(word.clone());
            continue;
        }
        let mut inner: Vec<Word> = Vec::new();
        // `+` ends a command only after the place for the files.
        for word in words.by_ref() {
            let text = word.text().unwrap_or_default();
            let follows = inner.last().is_some_and(|last| last.shown() == "{}");
            if text == ";" || (text == "+" && follows) {
                break;
            }
            inner.push(match text {
                text if text.contains('{') && text.starts_with('-') => Word::unknown(text),
                text if text.contains('{') => Word::operand(text),
                _ => word.clone(),
            });
        }
        if program != "find" {
            inner.push(Word::operand("{}"));
        }
        started.push(inner);
    }
    (own, started)
}

/// What xargs adds to a command is not known.
fn given_by_xargs(options: &[Word], inner: Vec<Word>) -> Vec<Word> {
    let mut placeholders = Vec::new();
    let mut words = options.iter().filter_map(Word::text).peekable();
    while let Some(word) = words.next() {
        if let Some(text) = word.strip_prefix("--replace=") {
            placeholders.push(text);
        } else if !word.starts_with("--")
            && word.starts_with('-')
            && let Some((_, attached)) = word.split_once('I')
        {
            placeholders.push(if attached.is_empty() {
                *words.peek().unwrap_or(&"{}")
            } else {
                attached
            });
        }
    }
    let replaced = |word: Word| match word.text() {
        Some(text) if placeholders.iter().any(|placeholder| text.contains(placeholder)) => {
            Word::unknown(text)
        }
        _ => word,
    };
    let mut inner: Vec<Word> = inner.into_iter().map(replaced).collect();
    // Which of them counts, or whether one does, is not looked into.
    if placeholders.len() != 1 {
        inner.push(Word::unknown("…"));
    }
    inner
}
