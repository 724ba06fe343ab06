//! The table of harmless options, read from a data file when the first command is judged.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

const DATA: &str = include_str!("../../../data/harmless-options.txt");

static TABLE: LazyLock<Entry> = LazyLock::new(|| Entry::parse(DATA).0);

/// The value of an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Takes {
    /// None.
    Nothing,
    /// One, attached or as the next word.
    Value,
    /// One that is attached, or none.
    Attached,
    /// A path that is written, or has to lie where the run works.
    Written,
    /// A script.
    Script,
}

/// The words of a command that are no options.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Operands {
    /// They are read, or no paths at all.
    #[default]
    Read,
    /// There are none.
    None,
    /// The last one is written.
    Last,
    /// Those from this one on are written, counted from 0.
    From(usize),
    /// The first is a script to run, the others belong to it.
    Script,
    /// The files of `sed`: written where it edits in place.
    Edited,
}

/// A language whose scripts are judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Language {
    Sed,
    Awk,
}

/// The harmless options of a program or a subcommand.
#[derive(Clone, Debug, Default)]
pub(super) struct Block {
    letters: HashMap<char, Takes>,
    words: HashMap<&'static str, Takes>,
    used: Vec<Arc<Self>>,
    marks: Vec<&'static str>,
    pub(super) operands: Operands,
    pub(super) language: Option<Language>,
    pub(super) forbidden: Vec<&'static str>,
    pub(super) needs: Vec<&'static str>,
    /// How many words stand before the program that it starts, if it does.
    pub(super) wraps: Option<usize>,
}

/// A program or a subcommand.
#[derive(Clone, Debug, Default)]
pub(super) struct Entry {
    pub(super) block: Arc<Block>,
    pub(super) subcommands: HashMap<&'static str, Self>,
}

/// Returns the entry of a program. A version may follow its name.
pub(super) fn find(program: &str) -> Option<&'static Entry> {
    let name = program.trim_end_matches(|c: char| c.is_ascii_digit() || matches!(c, '.' | '-'));
    let programs = &TABLE.subcommands;
    programs.get(program).or_else(|| programs.get(name)).filter(|_| !name.starts_with('@'))
}

impl Block {
    /// Tells whether a line of the block is just this word.
    pub(super) fn is(&self, mark: &str) -> bool {
        self.marks.contains(&mark) || self.used.iter().any(|used| used.is(mark))
    }

    /// Returns the value that an option of one letter takes.
    pub(super) fn letter(&self, letter: char) -> Option<Takes> {
        let own = self.letters.get(&letter).copied();
        own.or_else(|| self.used.iter().find_map(|used| used.letter(letter)))
    }

    /// Returns the value that an option takes, by its whole name.
    pub(super) fn word(&self, word: &str) -> Option<Takes> {
        let own = self.words.get(word).copied();
        own.or_else(|| self.used.iter().find_map(|used| used.word(word)))
    }

    fn options(&mut self, takes: Takes, names: &[&'static str]) {
        for name in names {
            let letters = name.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
            match (name.strip_prefix('='), letters) {
                (Some(word), _) => drop(self.words.insert(word, takes)),
                (None, Some(letters)) if !letters.is_empty() && !self.is("single") => {
                    self.letters.extend(letters.chars().map(|letter| (letter, takes)));
                }
                (None, _) => drop(self.words.insert(name, takes)),
            }
        }
    }

    /// Takes a line; says whether it was understood.
    fn line(&mut self, line: &'static str, entries: &Entry) -> bool {
        let words: Vec<&'static str> = line.split_whitespace().collect();
        let Some((key, rest)) = words.split_first() else { return true };
        match (*key, rest) {
            ("flags", names) => self.options(Takes::Nothing, names),
            ("values", names) => self.options(Takes::Value, names),
            ("maybe", names) => self.options(Takes::Attached, names),
            ("writes", names) => self.options(Takes::Written, names),
            ("script", ["sed", names @ ..]) => {
                self.language = Some(Language::Sed);
                self.options(Takes::Script, names);
            }
            ("script", ["awk"]) => self.language = Some(Language::Awk),
            ("use", [name]) => match entries.subcommands.get(name) {
                Some(entry) => self.used.push(Arc::clone(&entry.block)),
                None => return false,
            },
            ("operands", ["none"]) => self.operands = Operands::None,
            ("operands", ["written"]) => self.operands = Operands::From(0),
            ("operands", ["last"]) => self.operands = Operands::Last,
            ("operands", ["from", "2"]) => self.operands = Operands::From(1),
            ("operands", ["script"]) => self.operands = Operands::Script,
            ("operands", ["sed"]) => self.operands = Operands::Edited,
            ("forbid", texts) => self.forbidden.extend(texts),
            ("needs", names) => self.needs.extend(names),
            ("wraps", ["0"]) => self.wraps = Some(0),
            ("wraps", ["1"]) => self.wraps = Some(1),
            (
                "any" | "free" | "rest" | "continues" | "numbers" | "single" | "bundled"
                | "launches" | "named",
                [],
            ) => self.marks.push(key),
            _ => return false,
        }
        true
    }
}

impl Entry {
    /// Reads a table; returns it with the lines that it did not understand.
    fn parse(text: &'static str) -> (Self, Vec<&'static str>) {
        let (mut table, mut wrong) = (Self::default(), Vec::new());
        let (mut names, mut block): (Vec<&'static str>, Block) = (Vec::new(), Block::default());
        let mut in_block = false;
        for line in text.lines().filter(|line| !line.starts_with('#')).chain([""]) {
            if line.starts_with(' ') {
                in_block = true;
                if !block.line(line, &table) {
                    wrong.push(line);
                }
                continue;
            }
            if in_block {
                table.insert(&std::mem::take(&mut names), std::mem::take(&mut block));
                in_block = false;
            }
            names.extend(line.split(',').map(str::trim).filter(|name| !name.is_empty()));
        }
        (table, wrong)
    }

    fn insert(&mut self, names: &[&'static str], block: Block) {
        let block = Arc::new(block);
        for name in names {
            let place = name
                .split_whitespace()
                .fold(&mut *self, |entry, word| entry.subcommands.entry(word).or_default());
            place.block = Arc::clone(&block);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_understood_and_names_no_option_that_starts_a_program() {
        let (table, wrong) = Entry::parse(DATA);
        assert_eq!(wrong, [""; 0]);
        assert!(table.subcommands.len() > 250, "{}", table.subcommands.len());
        let at = |names: &str| {
            names.split(' ').fold(&table, |entry, name| &entry.subcommands[name]).block.clone()
        };
        for (names, option) in [
            ("git", "-c"),
            ("git", "--config-env"),
            ("git rebase", "--exec"),
            ("git rebase", "-x"),
            ("git clone", "--upload-pack"),
            ("git clone", "--template"),
            ("git clone", "-c"),
            ("git grep", "-O"),
            ("git diff", "--ext-diff"),
            ("git log", "--output"),
            ("git log", "--textconv"),
            ("git merge", "-s"),
            ("git push", "--receive-pack"),
            ("cargo test", "--config"),
            ("cargo build", "-Z"),
            ("sort", "--compress-program"),
            ("tar", "--to-command"),
            ("tar", "-I"),
            ("tar", "-F"),
            ("rg", "--pre"),
            ("find", "-fprintf"),
            ("find", "-fls"),
            ("find", "-files0-from"),
            ("tree", "-R"),
            ("curl", "-K"),
            ("curl", "-T"),
            ("pytest", "-p"),
            ("pytest", "-c"),
            ("pip install", "-i"),
            ("go test", "-exec"),
            ("go build", "-toolexec"),
            ("make", "-f"),
            ("make", "--eval"),
            ("npm run", "--script-shell"),
            ("npm install", "--prefix"),
            ("mypy", "--config-file"),
            ("eslint", "--config"),
            ("diff", "-l"),
            ("wget", "-e"),
            ("zip", "-T"),
            ("date", "-s"),
            ("node", "-e"),
            ("node", "-r"),
            ("python", "-c"),
            ("mvn", "-f"),
            ("mvn", "-s"),
            ("docker build", "-o"),
            ("kubectl get", "--kubeconfig"),
        ] {
            let block = at(names);
            let letter = option.chars().nth(1).filter(|_| option.len() == 2);
            let by_letter = letter.and_then(|letter| block.letter(letter));
            assert_eq!(block.word(option).or(by_letter), None, "{names} {option}");
        }
    }
}
