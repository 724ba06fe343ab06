//! Keys of a mapping, taken one after the other. What is left in the end is unknown.
//!
//! Keys can be written in snake case, camel case or with dashes. A value that says nothing is as good as
//! no key at all, except for keys of ours that take something away.

use std::fmt::Display;

use convoke_core::nearest::{did_you_mean, is_slip, nearest};
use serde_json::Value;

use super::note::Findings;
use super::read::KeyLines;
use super::yaml::{Body, Entry, Node};
use crate::agent_tool::MAX_DESCRIPTION_BYTES;

/// What becomes of a file with a key that is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unknown {
    /// It is wrong: all keys here take something away, and a slip would give more than was meant.
    Wrong,
    /// It is used all the same, with a warning; unless the key looks like one that takes something away.
    Told,
    /// The same for a file that is meant for nobody else: whatever may be meant as a limit makes it wrong.
    Ours,
}

/// Keys that take something away from an agent, here and with other tools.
const RESTRICTING: &[&str] = &[
    "at_most_once",
    "budget",
    "commands",
    "disable",
    "disallowed_tools",
    "exclude_tools",
    "isolation",
    "max_steps",
    "max_time_minutes",
    "max_turns",
    "mode",
    "permission",
    "permissions",
    "permission_mode",
    "rules",
    "steps",
    "timeout",
    "timeout_mins",
    "tools",
    "workspace",
];

/// What stands in the names of such keys, whoever made them up.
const RESTRICTING_WORDS: &[&str] =
    &["allow", "deny", "exclude", "forbid", "permission", "read_only", "readonly", "tools"];

/// What stands in the names of keys that are meant as limits.
const LIMITING: &[&str] = &[
    "block", "budget", "cost", "disable", "internet", "limit", "maximum", "minimum", "network",
    "offline", "restrict", "sandbox", "timeout", "token",
];

/// The same, where it is a word of its own: it stands in the middle of others as well.
const LIMITING_WORDS: &[&str] = &["max", "min", "no", "only", "time", "without"];

/// What a key that is meant as a limit is called here, by what stands in its name.
const LIMITS: &[(&str, &[&str])] = &[
    ("token", &["budget.tokens"]),
    ("cost", &["budget.cost"]),
    ("time", &["max_time_minutes", "budget.time"]),
    ("call", &["budget.tool_calls"]),
    ("command", &["commands", "rules"]),
    ("network", &["rules", "exclude_tools"]),
    ("internet", &["rules", "exclude_tools"]),
];

/// The keys that are left.
#[derive(Debug)]
pub(super) struct Fields {
    prefix: String,
    left: Vec<Field>,
    /// Those with nothing behind them.
    empty: Vec<Field>,
    /// Where each key was, also those that were taken.
    lines: Vec<(String, u64)>,
}

/// A key that was taken.
#[derive(Clone, Debug)]
pub(super) struct Field {
    /// The key in snake case.
    name: String,
    /// The key as it is written, with those above it.
    pub(super) key: String,
    pub(super) line: u64,
    pub(super) node: Node,
}

impl Fields {
    /// Starts with the keys of a mapping.
    pub(super) fn new(entries: Vec<Entry>, prefix: &str, findings: &mut Findings) -> Self {
        let mut fields: Vec<Field> = Vec::new();
        for entry in entries {
            let name = snake_case(&entry.key);
            let key = format!("{prefix}{}", entry.key);
            if let Some(other) = fields.iter().find(|field| field.name == name) {
                let message = format!("it is `{}` again; keep one of them", other.key);
                findings.problem(entry.line, &key, message);
            } else {
                fields.push(Field { name, key, line: entry.line, node: entry.node });
            }
        }
        let lines = fields.iter().map(|field| (field.name.clone(), field.line)).collect();
        let (empty, left) = fields.into_iter().partition(|field| field.node.is_null());
        Self { prefix: prefix.to_owned(), left, empty, lines }
    }

    /// Returns the line of a key, whether it was taken or not.
    pub(super) fn line(&self, name: &str) -> Option<u64> {
        self.lines.iter().find(|(known, _)| known == name).map(|(_, line)| *line)
    }

    /// Returns the lines of all keys, also of those that were taken.
    pub(super) fn lines(&self) -> KeyLines {
        KeyLines::new(self.lines.iter().cloned())
    }

    /// Remembers the line of a key below one of these.
    pub(super) fn add_line(&mut self, name: String, line: u64) {
        self.lines.push((name, line));
    }

    /// Takes a key out.
    pub(super) fn take(&mut self, name: &str) -> Option<Field> {
        let at = self.left.iter().position(|field| field.name == name)?;
        Some(self.left.remove(at))
    }

    /// Takes what models choose an agent by. They are told the beginning of a long one.
    pub(super) fn description(&mut self, findings: &mut Findings) -> Option<String> {
        let line = self.line("description");
        let text = self.text("description", findings)?;
        if text.len() > MAX_DESCRIPTION_BYTES {
            let message = format!(
                "it has {} bytes; a model is told the first {MAX_DESCRIPTION_BYTES} with every request, so \
                 say in them what the agent is good for",
                text.len()
            );
            findings.warning(line.unwrap_or(1), "description", message);
        }
        Some(text)
    }

    /// Takes a text. Numbers and truth values are texts too, as YAML writes them.
    pub(super) fn text(&mut self, name: &str, findings: &mut Findings) -> Option<String> {
        let field = self.take(name)?;
        match &field.node.body {
            Body::Scalar(Value::String(text)) => Some(text.clone()),
            Body::Scalar(other) => Some(other.to_string()),
            _ => field.wrong("a text", findings),
        }
    }

    /// Takes a truth value.
    pub(super) fn flag(&mut self, name: &str, findings: &mut Findings) -> Option<bool> {
        let field = self.take(name)?;
        match &field.node.body {
            Body::Scalar(Value::Bool(value)) => Some(*value),
            _ => field.wrong("`true` or `false`", findings),
        }
    }

    /// Takes a whole number that is at least 1.
    pub(super) fn count(&mut self, name: &str, findings: &mut Findings) -> Option<u64> {
        let field = self.take(name)?;
        match field.node.value().as_u64().filter(|number| *number > 0) {
            Some(number) => Some(number),
            None => field.wrong("a whole number that is at least 1", findings),
        }
    }

    /// Takes a whole number that is at least 1 and not huge.
    pub(super) fn small(&mut self, name: &str, findings: &mut Findings) -> Option<u32> {
        let field = self.take(name)?;
        let number = field.node.value().as_u64().filter(|number| (1..=100_000).contains(number));
        match number.and_then(|number| u32::try_from(number).ok()) {
            Some(number) => Some(number),
            None => field.wrong("a whole number from 1 to 100000", findings),
        }
    }

    /// Takes a number in a range.
    pub(super) fn number(
        &mut self,
        name: &str,
        (least, most): (f64, f64),
        findings: &mut Findings,
    ) -> Option<f64> {
        let field = self.take(name)?;
        match field.node.value().as_f64().filter(|number| (least..=most).contains(number)) {
            Some(number) => Some(number),
            None => field.wrong(&format!("a number from {least} to {most}"), findings),
        }
    }

    /// Takes several texts: a list, or one text with commas between them.
    pub(super) fn texts(
        &mut self,
        name: &str,
        findings: &mut Findings,
    ) -> Option<Vec<(String, u64)>> {
        let field = self.take(name)?;
        match &field.node.body {
            Body::Scalar(Value::String(text)) => {
                Some(at_commas(text).into_iter().map(|item| (item, field.line)).collect())
            }
            Body::List(items) => {
                for item in items.iter().filter(|item| item.text().is_none()) {
                    let message = format!("expected a name, found {}", item.shown());
                    findings.problem(item.line, &field.key, message);
                }
                let item = |item: &Node| Some((item.text()?.trim().to_owned(), item.line));
                Some(items.iter().filter_map(item).collect())
            }
            _ => field.wrong("a list of names, such as `[grep, read_file]`", findings),
        }
    }

    /// Takes a word, one of several.
    pub(super) fn word<T>(
        &mut self,
        name: &str,
        read: impl FnOnce(&str) -> Option<T>,
        words: &[impl Display],
        findings: &mut Findings,
    ) -> Option<T> {
        let field = self.take(name)?;
        let read = field.node.text().and_then(read);
        if read.is_none() {
            let words: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
            return field.wrong(&format!("one of {}", words.join(", ")), findings);
        }
        read
    }

    /// Takes a mapping.
    pub(super) fn map(&mut self, name: &str, findings: &mut Findings) -> Option<Self> {
        let field = self.take(name)?;
        match field.node.body {
            Body::Map(entries) => Some(Self::new(entries, &format!("{}.", field.key), findings)),
            _ => field.wrong("keys and values", findings),
        }
    }

    /// Says which of the keys that are left are not known.
    pub(super) fn finish(self, known: &[&str], unknown: Unknown, findings: &mut Findings) {
        // Somebody who began to take something away is not taken to have left it.
        let is_limit = |field: &&Field| match unknown {
            Unknown::Wrong => true,
            Unknown::Told => false,
            Unknown::Ours => {
                let name = field.name.as_str();
                RESTRICTING.contains(&name) || (!known.contains(&name) && may_limit(name))
            }
        };
        for field in self.empty.iter().filter(is_limit) {
            let message = "nothing stands behind it; write what is meant (`[]` for none of a list), or leave \
                           the key out";
            findings.problem(field.line, &field.key, message);
        }
        for field in self.left {
            let written = field.key.strip_prefix(&self.prefix).unwrap_or(&field.key);
            let is_limit = unknown == Unknown::Ours && may_limit(&field.name);
            let close = match limits_like(&field.name).filter(|_| is_limit) {
                Some(limits) => limits.to_vec(),
                None => nearest(written, known.iter().copied()),
            };
            let message = format!("this key is not known{}", did_you_mean(&close));
            match unknown {
                Unknown::Told | Unknown::Ours if !is_limit && !may_restrict(&field.name, known) => {
                    findings.warning(field.line, &field.key, message);
                }
                Unknown::Told | Unknown::Ours => {
                    let why = "it may be meant to take something away from the agent";
                    findings.problem(field.line, &field.key, format!("{message} ({why})"));
                }
                Unknown::Wrong => findings.problem(field.line, &field.key, message),
            }
        }
    }
}

impl Field {
    /// Says that the value is not what is expected.
    pub(super) fn wrong<T>(&self, expected: &str, findings: &mut Findings) -> Option<T> {
        let message = format!("expected {expected}, found {}", self.node.shown());
        findings.problem(self.line, &self.key, message);
        None
    }
}

/// Tells whether a key that is not known looks like one that takes something away.
fn may_restrict(name: &str, known: &[&str]) -> bool {
    let known = known.iter().map(|known| snake_case(known));
    let mut restricting = known.filter(|known| RESTRICTING.contains(&known.as_str()));
    RESTRICTING_WORDS.iter().any(|word| name.contains(word))
        || restricting.any(|known| is_slip(name, &known))
}

/// Tells whether a key that is not known may be meant as a limit.
fn may_limit(name: &str) -> bool {
    let is_word = |word: &&str| name.split('_').any(|part| part == *word);
    LIMITING.iter().any(|word| name.contains(word)) || LIMITING_WORDS.iter().any(is_word)
}

/// Returns what a limit like this is called here, if there is one.
fn limits_like(name: &str) -> Option<&'static [&'static str]> {
    LIMITS.iter().find(|(word, _)| name.contains(word)).map(|(_, limits)| *limits)
}

/// Takes a text apart at its commas, except those in brackets.
fn at_commas(text: &str) -> Vec<String> {
    let (mut items, mut depth) = (vec![String::new()], 0_usize);
    for character in text.chars() {
        match character {
            '(' | '{' => depth += 1,
            ')' | '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if character == ',' && depth == 0 {
            items.push(String::new());
        } else if let Some(item) = items.last_mut() {
            item.push(character);
        }
    }
    items.into_iter().map(|item| item.trim().to_owned()).filter(|item| !item.is_empty()).collect()
}

/// Writes a key in snake case.
pub(super) fn snake_case(key: &str) -> String {
    let mut name = String::new();
    let mut lower = false;
    for character in key.chars() {
        if character.is_ascii_uppercase() && lower {
            name.push('_');
        }
        lower = character.is_ascii_lowercase() || character.is_ascii_digit();
        name.push(if character == '-' { '_' } else { character.to_ascii_lowercase() });
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::yaml;

    fn fields(text: &str) -> (Fields, Findings) {
        let mut findings = Findings::default();
        let entries = yaml::parse(text, &mut findings).unwrap();
        let fields = Fields::new(entries, "", &mut findings);
        (fields, findings)
    }

    #[test]
    fn keys_have_three_spellings() {
        for (key, name) in [
            ("max_turns", "max_turns"),
            ("maxTurns", "max_turns"),
            ("max-turns", "max_turns"),
            ("topP", "top_p"),
            ("mcpServers", "mcp_servers"),
            ("NAME", "name"),
        ] {
            assert_eq!(snake_case(key), name);
        }
        let (mut fields, findings) = fields("maxTurns: 3\nmax_turns: 4\n");
        assert_eq!(findings.problems[0].message, "it is `maxTurns` again; keep one of them");
        assert_eq!(fields.small("max_turns", &mut Findings::default()), Some(3));
    }

    #[test]
    fn a_long_description_is_told_of() {
        for (length, warnings) in [(1024, 0), (1025, 1)] {
            let (mut fields, mut findings) =
                fields(&format!("name: a\ndescription: {}\n", "x".repeat(length)));
            let text = fields.description(&mut findings).unwrap();
            assert_eq!((text.len(), findings.warnings.len()), (length, warnings));
            let said = findings.warnings.first().map(|found| (found.line, found.message.clone()));
            assert!(said.is_none_or(|(line, message)| {
                line == Some(2)
                    && message.starts_with("it has 1025 bytes; a model is told the first 1024")
            }));
        }
    }

    #[test]
    fn lists_are_lists_or_texts_with_commas() {
        for text in ["t: [a, b]", "t: a, b", "t:\n  - a\n  - b", "t: 'a,b,'"] {
            let (mut fields, mut findings) = fields(text);
            let names = fields.texts("t", &mut findings).unwrap();
            assert_eq!(names.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["a", "b"]);
        }
        assert_eq!(at_commas("Bash(a, b), Read"), ["Bash(a, b)", "Read"]);
        assert_eq!(at_commas(""), [""; 0]);
    }

    #[test]
    fn wrong_values_and_unknown_keys_are_said_with_their_lines() {
        let (mut fields, mut findings) = fields("a: x\nb: 0\nc: maybe\nd: 3\ntemprature: 1\ne:\n");
        assert_eq!(fields.flag("a", &mut findings), None);
        assert_eq!(fields.small("b", &mut findings), None);
        assert_eq!(fields.word("c", |_| None::<u8>, &["yes", "no"], &mut findings), None);
        assert_eq!(fields.number("d", (0.0, 2.0), &mut findings), None);
        assert!(fields.take("e").is_none());
        fields.finish(&["temperature"], Unknown::Wrong, &mut findings);
        let said: Vec<(Option<u64>, &str)> =
            findings.problems.iter().map(|found| (found.line, found.message.as_str())).collect();
        assert_eq!(
            said,
            [
                (Some(1), "expected `true` or `false`, found `x`"),
                (Some(2), "expected a whole number from 1 to 100000, found `0`"),
                (Some(3), "expected one of `yes`, `no`, found `maybe`"),
                (Some(4), "expected a number from 0 to 2, found `3`"),
                (
                    Some(6),
                    "nothing stands behind it; write what is meant (`[]` for none of a list), or leave the key out"
                ),
                (Some(5), "this key is not known; did you mean `temperature`?"),
            ]
        );
    }

    #[test]
    fn unknown_keys_of_others_are_told_and_wrong_where_they_may_take_something_away() {
        let text =
            "version: 2\ncategory: x\ndisalowedTool: a\nallowed-tools: b\ntool: c\nmaxTurn: 3\n";
        let (fields, mut findings) = fields(text);
        let known = ["tools", "disallowedTools", "maxTurns", "permissionMode"];
        fields.finish(&known, Unknown::Told, &mut findings);
        let lines = |found: &[crate::files::note::Finding]| {
            found.iter().filter_map(|found| found.line).collect::<Vec<_>>()
        };
        assert_eq!(lines(&findings.warnings), [1, 2]);
        assert_eq!(lines(&findings.problems), [3, 4, 5, 6]);
        assert_eq!(
            findings.problems[2].message,
            "this key is not known; did you mean `tools` or `disallowedTools`? (it may be meant to take \
             something away from the agent)"
        );
    }

    #[test]
    fn a_key_of_ours_that_may_be_meant_as_a_limit_is_wrong() {
        let known = ["max_turns", "max_time_minutes", "timeout_mins", "budget", "tools", "rules"];
        for (key, hint) in [
            ("max_tokens", "; did you mean `budget.tokens`?"),
            ("maxTokens", "; did you mean `budget.tokens`?"),
            ("max_cost", "; did you mean `budget.cost`?"),
            ("cost-limit", "; did you mean `budget.cost`?"),
            ("timeout", "; did you mean `max_time_minutes` or `budget.time`?"),
            ("max_tool_calls", "; did you mean `budget.tool_calls`?"),
            ("blocked_commands", "; did you mean `commands` or `rules`?"),
            ("network", "; did you mean `rules` or `exclude_tools`?"),
            ("no_network", "; did you mean `rules` or `exclude_tools`?"),
            ("sandbox", ""),
            ("only", ""),
        ] {
            let (fields, mut findings) = fields(&format!("{key}: 5\n"));
            fields.finish(&known, Unknown::Ours, &mut findings);
            assert!(findings.warnings.is_empty(), "{key}: {:?}", findings.warnings);
            let said = findings.problems.first().map(|found| found.message.clone());
            let why = "it may be meant to take something away from the agent";
            assert_eq!(said, Some(format!("this key is not known{hint} ({why})")), "{key}");
        }
        // The file of another tool may have keys that mean nothing here.
        for (key, unknown) in [
            ("max_tokens", Unknown::Told),
            ("colour", Unknown::Ours),
            ("administrator", Unknown::Ours),
            ("notes", Unknown::Ours),
            ("runtime", Unknown::Ours),
        ] {
            let (fields, mut findings) = fields(&format!("{key}: 5\n"));
            fields.finish(&known, unknown, &mut findings);
            assert_eq!((findings.problems.len(), findings.warnings.len()), (0, 1), "{key}");
        }
    }

    #[test]
    fn a_limit_of_ours_with_nothing_behind_it_is_wrong() {
        for (unknown, problems) in [(Unknown::Ours, 2), (Unknown::Told, 0)] {
            let (mut fields, mut findings) = fields("tools:\nmodel:\ncommands:\nmax_turns: 3\n");
            assert!(fields.take("tools").is_none());
            assert_eq!(fields.small("max_turns", &mut findings), Some(3));
            fields.finish(&["tools", "model", "commands", "max_turns"], unknown, &mut findings);
            assert_eq!((findings.problems.len(), findings.warnings.len()), (problems, 0));
            let first = findings.problems.first().map(|found| (found.line, found.key.clone()));
            assert!(first.is_none_or(|first| first == (Some(1), Some("tools".to_owned()))));
        }
        // Below `budget` there is nothing but limits.
        for (unknown, keys) in [(Unknown::Wrong, "tokens:\n"), (Unknown::Ours, "max_tokens:\n")] {
            let (fields, mut findings) = fields(keys);
            fields.finish(&["tokens"], unknown, &mut findings);
            assert_eq!((findings.problems.len(), findings.warnings.len()), (1, 0), "{keys}");
        }
    }
}
