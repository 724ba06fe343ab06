//! The walk over a parsed line that gathers everything it would run.

use std::panic::catch_unwind;

use brush_parser::ast::{
    AndOr, AndOrList, Assignment, AssignmentName, AssignmentValue, Command,
    CommandPrefixOrSuffixItem as Item, CompoundCommand, CompoundList, ExtendedTestExpr,
    IoFileRedirectKind as Direction, IoFileRedirectTarget as Target, IoHereDocument, IoRedirect,
    Program, RedirectList, SimpleCommand,
};
use brush_parser::{Parser, ParserOptions, SourceInfo, ast};

use super::careful;
use super::document::{self, Documents, letters};
use super::limits::{MAX_COMMANDS, MAX_LINES, too_much};
use super::word::{self, Trouble, Variables, Word, is_plain_arithmetic};
use super::wrapper::{self, Inner};
use super::{Line, Place, Role, Simple, options};

const UNSURE: &str = "where a here-document in it ends is not sure";

/// Gathers what a line would run.
pub(super) struct Walk<'a> {
    place: Place<'a>,
    variables: Variables,
    /// Whether what is found now only stands for something that is judged beside it.
    stands: bool,
    /// How many loops and functions are around what is found now: it may run any number of times.
    repeats: usize,
    /// The here-documents of the text that is read now, until the parser's are seen.
    documents: Vec<String>,
    line: Line,
}

impl<'a> Walk<'a> {
    pub(super) fn new(place: Place<'a>, text: &str) -> Self {
        let (variables, line) = (Variables::of(text), Line::default());
        let documents = Vec::new();
        Self { place, variables, stands: false, repeats: 0, documents, line }
    }

    pub(super) fn finish(self) -> Line {
        self.line
    }

    /// Reads a line that was found at this depth.
    pub(super) fn text(&mut self, text: &str, depth: usize) {
        if let Some(reason) = too_much(text) {
            return self.unread(reason);
        }
        if depth > MAX_LINES {
            return self.unread("it is nested too deeply");
        }
        let found = if text.contains("<<") { document::scan(text) } else { None };
        if found.is_none() && text.contains("<<") {
            return self.unread(UNSURE);
        }
        let text = found.as_ref().map_or(text, |found| &found.text);
        let Some(program) = parse(text) else {
            return self.unread("it cannot be read as a shell would");
        };
        if found.as_ref().is_some_and(|found| loses(&program, found)) {
            return self.unread(UNSURE);
        }
        let bodies = found.map(|found| found.bodies).unwrap_or_default();
        let outer = std::mem::replace(&mut self.documents, bodies);
        for commands in &program.complete_commands {
            self.list(commands, depth);
        }
        let missed = std::mem::replace(&mut self.documents, outer);
        if !missed.is_empty() {
            self.unread(UNSURE);
        }
    }

    /// Takes a program with its arguments, and whatever it starts in turn.
    pub(super) fn simple(&mut self, words: Vec<Word>, depth: usize) {
        if self.line.commands.len() >= MAX_COMMANDS {
            return self.unread("it has too many commands");
        }
        if depth > MAX_LINES {
            return self.unread("it is nested too deeply");
        }
        let Some(program) = words.first() else { return };
        if program.text().is_none_or(is_no_program) {
            self.opaque("which program it runs is not known");
        }
        let started = wrapper::look_through(&words);
        if let Some(reason) = careful::hazard(&words) {
            self.opaque(&reason);
        }
        for directory in started.directories {
            self.enter(directory);
        }
        for plain in started.also {
            self.line.commands.push(Simple::standing(plain));
        }
        let role = if self.stands { Role::Stands } else { started.role };
        let options::Checked { unlisted, writes, plain } = options::check(&words);
        self.line.commands.extend(plain.clone().map(Simple::standing));
        self.line.commands.push(Simple { words, role, unlisted, writes, plain });
        if let Some(reason) = started.opaque {
            self.opaque(&reason);
        }
        for inner in started.inner {
            match inner {
                Inner::Words(words) => self.simple(words, depth + 1),
                Inner::Line(line) => self.text(&line, depth + 1),
                Inner::Again(line) => self.repeated(|walk| walk.text(&line, depth + 1)),
                Inner::Perhaps(words) => {
                    let before = std::mem::replace(&mut self.stands, true);
                    self.simple(words, depth + 1);
                    self.stands = before;
                }
            }
        }
    }

    /// The line goes to another directory. From within a loop nobody knows how far `..` leads.
    fn enter(&mut self, directory: Word) {
        let absolute = directory.text().is_some_and(|text| text.starts_with('/'));
        let known = absolute || self.repeats == 0;
        self.line.directories.push(if known { directory } else { Word::unknown("cd") });
    }

    fn repeated(&mut self, walk: impl FnOnce(&mut Self)) {
        self.repeats += 1;
        walk(self);
        self.repeats -= 1;
    }

    fn opaque(&mut self, reason: &str) {
        self.line.opaque.get_or_insert_with(|| reason.to_owned());
    }

    fn unread(&mut self, reason: &str) {
        self.line.unread.get_or_insert_with(|| reason.to_owned());
    }

    fn list(&mut self, list: &CompoundList, depth: usize) {
        for item in &list.0 {
            self.and_or(&item.0, depth);
        }
    }

    fn and_or(&mut self, list: &AndOrList, depth: usize) {
        let more = list.additional.iter().map(|(AndOr::And(next) | AndOr::Or(next))| next);
        for pipeline in std::iter::once(&list.first).chain(more) {
            pipeline.seq.iter().for_each(|command| self.command(command, depth));
        }
    }

    fn command(&mut self, command: &Command, depth: usize) {
        match command {
            Command::Simple(simple) => self.simple_command(simple, depth),
            Command::Compound(compound, redirects) => {
                self.compound(compound, depth);
                self.redirects(redirects.as_ref(), depth);
            }
            Command::Function(function) => {
                self.repeated(|walk| walk.compound(&function.body.0, depth));
                self.redirects(function.body.1.as_ref(), depth);
            }
            Command::ExtendedTest(test) => self.test(&test.expr, depth),
        }
    }

    fn compound(&mut self, compound: &CompoundCommand, depth: usize) {
        match compound {
            CompoundCommand::Arithmetic(command) => self.arithmetic(&command.expr.value),
            CompoundCommand::ArithmeticForClause(clause) => {
                for part in [&clause.initializer, &clause.condition, &clause.updater] {
                    self.arithmetic(part.as_ref().map_or("", |expression| &expression.value));
                }
                self.repeated(|walk| walk.list(&clause.body.list, depth));
            }
            CompoundCommand::BraceGroup(group) => self.list(&group.list, depth),
            CompoundCommand::Subshell(subshell) => self.list(&subshell.list, depth),
            CompoundCommand::ForClause(clause) => {
                self.assigned(&clause.variable_name);
                for word in clause.values.iter().flatten() {
                    self.word(word, depth);
                }
                self.repeated(|walk| walk.list(&clause.body.list, depth));
            }
            CompoundCommand::CaseClause(clause) => {
                self.word(&clause.value, depth);
                for case in &clause.cases {
                    for pattern in &case.patterns {
                        self.word(pattern, depth);
                    }
                    case.cmd.iter().for_each(|list| self.list(list, depth));
                }
            }
            CompoundCommand::IfClause(clause) => {
                self.list(&clause.condition, depth);
                self.list(&clause.then, depth);
                for other in clause.elses.iter().flatten() {
                    other.condition.iter().for_each(|list| self.list(list, depth));
                    self.list(&other.body, depth);
                }
            }
            CompoundCommand::WhileClause(clause) | CompoundCommand::UntilClause(clause) => {
                self.repeated(|walk| {
                    walk.list(&clause.0, depth);
                    walk.list(&clause.1.list, depth);
                });
            }
        }
    }

    fn test(&mut self, test: &ExtendedTestExpr, depth: usize) {
        match test {
            ExtendedTestExpr::And(left, right) | ExtendedTestExpr::Or(left, right) => {
                self.test(left, depth);
                self.test(right, depth);
            }
            ExtendedTestExpr::Not(inner) | ExtendedTestExpr::Parenthesized(inner) => {
                self.test(inner, depth);
            }
            ExtendedTestExpr::UnaryTest(predicate, word) => {
                let word = self.word(word, depth);
                if matches!(predicate, ast::UnaryPredicate::ShellVariableIsSetAndAssigned) {
                    self.arithmetic(word.text().unwrap_or("$"));
                }
            }
            ExtendedTestExpr::BinaryTest(predicate, left, right) => {
                let (left, right) = (self.word(left, depth), self.word(right, depth));
                if careful::is_arithmetic(predicate) {
                    self.arithmetic(left.text().unwrap_or("$"));
                    self.arithmetic(right.text().unwrap_or("$"));
                }
            }
        }
    }

    fn simple_command(&mut self, command: &SimpleCommand, depth: usize) {
        let mut words = Vec::new();
        for item in command.prefix.iter().flat_map(|prefix| &prefix.0) {
            match item {
                Item::AssignmentWord(assignment, _) => {
                    self.assignment(assignment, command.word_or_name.is_some(), depth);
                }
                item => self.item(item, &mut words, depth),
            }
        }
        if let Some(program) = &command.word_or_name {
            words.insert(0, self.word(program, depth));
        }
        for item in command.suffix.iter().flat_map(|suffix| &suffix.0) {
            self.item(item, &mut words, depth);
        }
        self.simple(words, depth);
    }

    fn item(&mut self, item: &Item, words: &mut Vec<Word>, depth: usize) {
        match item {
            Item::IoRedirect(redirect) => self.redirect(redirect, depth),
            Item::Word(word) => {
                let word = self.word(word, depth);
                words.push(word);
            }
            Item::AssignmentWord(assignment, word) => {
                self.assignment(assignment, false, depth);
                let word = self.word(word, depth);
                words.push(word);
            }
            Item::ProcessSubstitution(_, subshell) => {
                self.list(&subshell.list, depth);
                words.push(Word::literal("/dev/fd/0"));
            }
        }
    }

    fn assignment(&mut self, assignment: &Assignment, for_a_command: bool, depth: usize) {
        match &assignment.name {
            AssignmentName::VariableName(name) if for_a_command => self.given(name),
            AssignmentName::VariableName(name) => self.assigned(name),
            AssignmentName::ArrayElementName(name, index) => {
                self.assigned(name);
                self.arithmetic(index);
            }
        }
        match &assignment.value {
            AssignmentValue::Scalar(word) => self.input(word, depth),
            AssignmentValue::Array(items) => {
                for (index, word) in items {
                    if let Some(index) = index {
                        self.arithmetic(&index.value);
                    }
                    self.input(word, depth);
                }
            }
        }
    }

    /// A text that a program or a variable gets.
    fn input(&mut self, word: &ast::Word, depth: usize) {
        let word = self.word(word, depth);
        self.line.inputs.push(word);
    }

    /// A variable of the shell gets a value; the programs it starts may see it.
    fn assigned(&mut self, name: &str) {
        if !careful::is_harmless_in_shell(name) {
            self.opaque(&format!("it sets `{name}`, which can change what programs do"));
        }
    }

    /// A program gets a variable.
    fn given(&mut self, name: &str) {
        if !careful::is_harmless_for_programs(name) {
            self.opaque(&format!("it sets `{name}`, which can change what programs do"));
        }
    }

    fn arithmetic(&mut self, expression: &str) {
        if !is_plain_arithmetic(expression) {
            self.opaque("arithmetic with names in it can run commands");
        }
    }

    fn redirects(&mut self, redirects: Option<&RedirectList>, depth: usize) {
        for redirect in redirects.iter().flat_map(|list| &list.0) {
            self.redirect(redirect, depth);
        }
    }

    fn redirect(&mut self, redirect: &IoRedirect, depth: usize) {
        match redirect {
            IoRedirect::File(_, direction, target) => match target {
                Target::Filename(word) => self.file(word, direction, depth),
                Target::Duplicate(word) => {
                    // `>&2` is a descriptor, `>&name` is a file.
                    let is_descriptor =
                        word.value.trim_end_matches('-').bytes().all(|byte| byte.is_ascii_digit());
                    if !is_descriptor {
                        self.file(word, direction, depth);
                    }
                }
                Target::ProcessSubstitution(_, subshell) => self.list(&subshell.list, depth),
                Target::Fd(_) => {}
            },
            IoRedirect::HereDocument(_, document) => {
                // Both this text and the parser's have to end at the same line.
                let bodies = &mut self.documents;
                match bodies.iter().position(|body| body.trim_end() == without_tabs(document)) {
                    Some(at) => drop(bodies.remove(at)),
                    None => self.unread(UNSURE),
                }
                self.line.inputs.push(Word::literal(&document.doc.value));
                if document.requires_expansion {
                    self.document(&document.doc.value, depth);
                }
            }
            IoRedirect::HereString(_, word) => self.input(word, depth),
            IoRedirect::OutputAndError(word, _) => self.file(word, &Direction::Write, depth),
        }
    }

    /// Reads a here-document that is expanded, as the quoted text it stands for. Quotes mean nothing in
    /// it, but do within its substitutions; such a text is not taken apart.
    fn document(&mut self, text: &str, depth: usize) {
        if !careful::has_substitution(text) {
            return;
        }
        if text.contains(['"', '\'', '\\']) {
            return self.opaque("a here-document in it runs commands");
        }
        let quoted = ast::Word { value: format!("\"{text}\""), loc: None };
        self.word(&quoted, depth);
    }

    fn file(&mut self, word: &ast::Word, direction: &Direction, depth: usize) {
        let word = self.word(word, depth);
        let is_network = |text: &str| text.contains("/dev/tcp/") || text.contains("/dev/udp/");
        if word.text().is_some_and(is_network) {
            self.opaque("it opens a connection");
        }
        match direction {
            Direction::Read | Direction::DuplicateInput => self.line.reads.push(word),
            _ if word.text().is_some_and(careful::is_sink) => {}
            _ => self.line.writes.push(word),
        }
    }

    fn word(&mut self, written: &ast::Word, depth: usize) -> Word {
        let (word, found) = word::read(&written.value, self.place, self.variables);
        match found.trouble {
            Some(Trouble::Opaque(reason)) => self.opaque(reason),
            Some(Trouble::Unread(reason)) => self.unread(reason),
            None => {}
        }
        for line in found.lines {
            self.text(&line, depth + 1);
        }
        word
    }
}

/// Returns the text of a document without the tabs that a shell drops.
fn without_tabs(document: &IoHereDocument) -> String {
    let lines = document
        .doc
        .value
        .split('\n')
        .map(|line| if document.remove_tabs { line.trim_start_matches('\t') } else { line });
    lines.collect::<Vec<_>>().join("\n").trim_end().to_owned()
}

/// Tells whether the parser lost some of a text, as it does with here-documents in odd places.
fn loses(program: &Program, found: &Documents) -> bool {
    letters(&program.to_string()) + found.commented < letters(&found.text)
}

/// Tells whether a name of a program says nothing about what is run: none, or one the kernel makes up.
fn is_no_program(text: &str) -> bool {
    text.is_empty() || text.starts_with("/proc/") || text.starts_with("/dev/")
}

/// Parses a line. The parser is not ours: if it breaks down, the line could not be read.
fn parse(text: &str) -> Option<Program> {
    let parsed = catch_unwind(|| {
        let options = ParserOptions::default();
        Parser::new(text.as_bytes(), &options, &SourceInfo::default()).parse_program().ok()
    });
    parsed.ok().flatten()
}
