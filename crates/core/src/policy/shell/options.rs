//! Commands beside the table of harmless options.
//!
//! A command of a program in the [table](super::table) is known to be harmless only if its subcommand and
//! each of its options are listed, in full. Everything else names a word that a rule has to spell
//! out: an option that is not listed, an abbreviation, a cluster with a letter that is not listed, a value
//! attached to an option that takes none, a word whose text is not known and may be an option.

use super::Word;
use super::careful::bare;
use super::script;
use super::table::{self, Block, Entry, Operands, Takes};
use super::wrapper::split_started;

/// A command that is not known to be harmless.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::policy) struct Unlisted {
    /// The words that a rule has to spell out to cover it.
    pub(in crate::policy) words: Vec<String>,
    /// Whether the rule must not have a `*` at all.
    pub(in crate::policy) exact: bool,
    /// The program and its subcommand.
    pub(in crate::policy) title: String,
    /// For the user, with the first of the words.
    pub(in crate::policy) reason: String,
    /// Whether the command may do something that a rule forbids.
    pub(in crate::policy) hides: bool,
}

/// What the table says about a command.
#[derive(Debug, Default)]
pub(super) struct Checked {
    pub(super) unlisted: Option<Unlisted>,
    /// Paths that it writes, besides those of redirections.
    pub(super) writes: Vec<Word>,
    /// The same command without the options before its subcommand.
    pub(super) plain: Option<Vec<Word>>,
}

/// Looks a command up in the table.
pub(super) fn check(words: &[Word]) -> Checked {
    let known = words.split_first().and_then(|(program, arguments)| {
        let name = bare(program.text()?);
        Some((name, table::find(name)?, arguments))
    });
    let Some((name, entry, arguments)) = known else { return Checked::default() };
    let block = &entry.block;
    if block.is("free") || block.is("launches") || block.wraps.is_some() {
        return Checked::default();
    }
    let (own, _) = split_started(name, arguments);
    let mut check = Check::new(name, own);
    check.command(entry, 0);
    let plain = check.subcommand.filter(|at| *at > 0).and_then(|at| {
        let program = words.first().cloned();
        Some(program.into_iter().chain(check.words.get(at..)?.iter().cloned()).collect())
    });
    let reason = check.reason.unwrap_or_else(|| {
        let word = check.unlisted.first().map_or("", |word| shown(word));
        format!("`{} {word}` is not known to be harmless", check.title)
    });
    let unlisted = (!check.unlisted.is_empty()).then_some(Unlisted {
        words: check.unlisted,
        exact: check.exact,
        title: check.title,
        reason,
        hides: check.hides,
    });
    Checked { unlisted, writes: check.writes, plain }
}

/// Returns how many words are options of a program that starts another, or the one that is not known.
pub(super) fn step_over(name: &str, block: &Block, arguments: &[Word]) -> Result<usize, String> {
    let mut check = Check::new(name, arguments.to_vec());
    let mut at = 0;
    while let Some(text) = arguments.get(at).and_then(Word::text) {
        if text == "--" {
            return Ok(at + 1);
        }
        if !Check::is_option(block, text) {
            return Ok(at);
        }
        at = check.option(block, at, text);
        if let Some(word) = check.unlisted.pop() {
            return Err(word);
        }
    }
    if at < arguments.len() {
        Err(arguments.get(at).map_or_else(String::new, Word::shown))
    } else {
        Ok(at)
    }
}

/// Returns an option without its value.
fn shown(word: &str) -> &str {
    word.split('=').next().filter(|_| word.starts_with("--")).unwrap_or(word)
}

struct Check {
    title: String,
    words: Vec<Word>,
    /// Where the subcommand is.
    subcommand: Option<usize>,
    seen: Vec<String>,
    operands: Vec<Word>,
    scripts: Vec<Word>,
    writes: Vec<Word>,
    unlisted: Vec<String>,
    reason: Option<String>,
    exact: bool,
    hides: bool,
}

impl Check {
    fn new(name: &str, words: Vec<Word>) -> Self {
        Self {
            title: name.to_owned(),
            words,
            subcommand: None,
            seen: Vec::new(),
            operands: Vec::new(),
            scripts: Vec::new(),
            writes: Vec::new(),
            unlisted: Vec::new(),
            reason: None,
            exact: false,
            hides: false,
        }
    }

    /// Reads the words of a program or a subcommand, from this one on.
    fn command(&mut self, entry: &Entry, from: usize) {
        let block = &*entry.block;
        let (mut at, mut ended) = (from, false);
        while let Some(word) = self.words.get(at).cloned() {
            let text = word.text();
            let subcommand = text.and_then(|text| entry.subcommands.get(text));
            match text {
                Some(text) if !ended && self.operands.is_empty() && subcommand.is_some() => {
                    self.title = format!("{} {text}", self.title);
                    self.subcommand.get_or_insert(at);
                    if let Some(entry) = subcommand {
                        return self.command(entry, at + 1);
                    }
                }
                Some("--") if !ended => {
                    ended = !block.is("continues");
                    at += 1;
                }
                Some(text) if !ended && Self::is_option(block, text) => {
                    at = self.option(block, at, text);
                }
                Some(text) if block.is("bundled") && at == 0 => {
                    at = self.cluster(block, at, text);
                }
                None if !ended && word.may_be_option() && !block.is("any") => {
                    let which = format!("which options `{}` gets is not known", self.title);
                    self.reason.get_or_insert(which);
                    self.refuse(block, format!("\0{}", word.shown()));
                    at += 1;
                }
                _ => {
                    self.operands.push(word);
                    at += 1;
                    let first = self.operands.len() == 1;
                    if first && Self::wants_subcommand(entry) {
                        return self.refuse_all(block, at - 1);
                    }
                    if first && (block.is("rest") || block.operands == Operands::Script) {
                        break;
                    }
                }
            }
        }
        self.finish(block, from);
    }

    /// Tells whether the first word that is no option has to be a subcommand.
    fn wants_subcommand(entry: &Entry) -> bool {
        let block = &entry.block;
        !entry.subcommands.is_empty()
            && block.needs.is_empty()
            && block.operands != Operands::Script
    }

    fn finish(&mut self, block: &Block, from: usize) {
        let met = |need: &&str| self.seen.iter().any(|seen| seen == need);
        if !block.needs.is_empty() && !block.needs.iter().any(met) {
            self.reason = Some(format!(
                "`{}` without {} is not known to be harmless",
                self.title,
                block.needs.join(" or ")
            ));
            return self.refuse_all(block, from);
        }
        let mut operands = std::mem::take(&mut self.operands);
        if block.language.is_some() && self.scripts.is_empty() && !operands.is_empty() {
            self.scripts.push(operands.remove(0));
        }
        for word in std::mem::take(&mut self.scripts) {
            let harmless = |text| script::is_plain(block.language, text);
            if !word.text().is_some_and(harmless) {
                let reason = format!("this script for `{}` is not plainly harmless", self.title);
                self.reason.get_or_insert(reason);
                self.refuse(block, word.text().unwrap_or("\0").to_owned());
            }
        }
        for word in &operands {
            self.value(block, Takes::Value, word, word.text().unwrap_or_default());
        }
        if block.is("named") || block.operands == Operands::None {
            // Which words are left over hides nothing: rules that forbid are held against all of them.
            self.unlisted.extend(operands.iter().map(Word::shown));
            self.exact = true;
        }
        // Code comes in.
        if block.operands == Operands::Script && operands.first().is_some_and(Word::is_dash) {
            self.refuse(block, "-".to_owned());
        }
        let in_place = ["-i", "--in-place"].iter().any(|name| self.seen.iter().any(|s| s == name));
        let written = match block.operands {
            Operands::Last => operands.get(operands.len().saturating_sub(1)..).unwrap_or_default(),
            Operands::From(first) => operands.get(first..).unwrap_or_default(),
            Operands::Script => operands.get(..1).unwrap_or_default(),
            Operands::Edited if in_place => &operands,
            Operands::Edited | Operands::Read | Operands::None => &[],
        };
        self.writes.extend(written.iter().cloned());
    }

    fn is_option(block: &Block, text: &str) -> bool {
        (text.starts_with('-') && text.len() > 1) || block.word(text).is_some()
    }

    fn refuse(&mut self, block: &Block, word: String) {
        self.unlisted.push(word);
        self.hides |= !block.is("any");
    }

    fn refuse_all(&mut self, block: &Block, from: usize) {
        self.exact = true;
        let words: Vec<String> = self.words.iter().skip(from).map(Word::shown).collect();
        for word in words {
            self.refuse(block, word);
        }
        if self.unlisted.is_empty() {
            self.refuse(block, self.title.clone());
        }
    }

    /// Reads an option; returns where the words go on.
    fn option(&mut self, block: &Block, at: usize, text: &str) -> usize {
        let is_number =
            || text.get(1..).is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_digit()));
        if let Some(takes) = block.word(text) {
            return self.found(block, at, text, text, takes, None);
        }
        if block.is("numbers") && is_number() {
            return at + 1;
        }
        let single = block.is("single");
        if text.starts_with("--") || single {
            let name = if single && text.starts_with("--") { text.get(1..) } else { Some(text) };
            let (name, value) = match name.unwrap_or(text).split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (name.unwrap_or(text), None),
            };
            return match block.word(name) {
                Some(Takes::Nothing) if value.is_some() => self.refused(block, at, text),
                Some(takes) => self.found(block, at, text, name, takes, value),
                None => self.refused(block, at, text),
            };
        }
        self.cluster(block, at, text)
    }

    /// Reads letters of options, the last of which may have its value attached. Without a dash each of
    /// them takes its value from the words that follow.
    fn cluster(&mut self, block: &Block, at: usize, text: &str) -> usize {
        let dashed = text.starts_with('-');
        let mut next = at + 1;
        for (index, letter) in text.char_indices().skip(usize::from(dashed)) {
            let rest = text.get(index + letter.len_utf8()..).unwrap_or_default();
            let name = format!("-{letter}");
            match block.letter(letter) {
                None => return self.refused(block, at, text),
                Some(Takes::Nothing) => self.seen.push(name),
                Some(takes @ Takes::Attached) => {
                    let value = Some(rest).filter(|rest| !rest.is_empty());
                    return self.found(block, at, text, &name, takes, value);
                }
                Some(takes) if dashed => {
                    let value = Some(rest).filter(|rest| !rest.is_empty());
                    return self.found(block, at, text, &name, takes, value);
                }
                Some(takes) => next = self.found(block, next - 1, text, &name, takes, None),
            }
        }
        next
    }

    fn refused(&mut self, block: &Block, at: usize, text: &str) -> usize {
        self.refuse(block, text.to_owned());
        at + 1
    }

    /// Takes an option that is listed, with its value.
    fn found(
        &mut self,
        block: &Block,
        at: usize,
        text: &str,
        name: &str,
        takes: Takes,
        value: Option<&str>,
    ) -> usize {
        self.seen.push(name.to_owned());
        if let Some(value) = value {
            self.value(block, takes, &Word::literal(value), text);
            return at + 1;
        }
        if matches!(takes, Takes::Nothing | Takes::Attached) {
            return at + 1;
        }
        let word = self.words.get(at + 1).cloned();
        let Some(word) = word.filter(Word::is_value) else { return self.refused(block, at, text) };
        self.value(block, takes, &word, word.text().unwrap_or_default());
        at + 2
    }

    /// Judges the value of an option, or an operand. `written` is the word that it stands in.
    fn value(&mut self, block: &Block, takes: Takes, value: &Word, written: &str) {
        let text = value.text().unwrap_or_default();
        let is_forbidden = |part: &&str| match part.strip_prefix('^') {
            Some(start) => text.starts_with(start),
            // A variable that no program obeys may be set.
            None if *part == "=" => text
                .split_once('=')
                .is_some_and(|(name, _)| !super::careful::is_harmless_for_programs(name)),
            None => text.contains(*part),
        };
        let is_backup = takes == Takes::Attached && block.operands == Operands::Edited;
        if block.forbidden.iter().any(is_forbidden) || (is_backup && text.contains(['/', '*'])) {
            self.refuse(block, written.to_owned());
        }
        match takes {
            Takes::Written if text != "-" => self.writes.push(value.clone()),
            Takes::Script => self.scripts.push(value.clone()),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests;
