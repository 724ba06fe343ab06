//! Ranks tools by how well they fit a few words (BM25). A name says more than a description.
//!
//! What is looked at is bounded on both sides, since neither is ours: a server writes the descriptions, and a model
//! that somebody else may have told what to do writes the query.

use std::collections::{HashMap, HashSet};

use convoke_core::ToolSpec;
use serde_json::Value;

use crate::truncate::floor_char_boundary;

/// How soon more of the same word stops counting.
const SATURATION: f64 = 1.2;
/// How much long texts are held back.
const LENGTH: f64 = 0.75;
/// What a word of the name counts beside one of the description.
const NAME: f64 = 3.0;
const TITLE: f64 = 2.0;
/// What a word counts that only begins like the one that was looked for.
const BEGINNING: f64 = 0.5;
/// How much of a description or a query is looked at, in bytes.
const MAX_TEXT: usize = 4_096;
/// How many words of a query are looked for.
const MAX_WANTED: usize = 64;
/// How many different words of a tool are kept.
const MAX_WORDS: usize = 512;

/// A tool as a search sees it. It is made once for each tool.
#[derive(Debug)]
pub(crate) struct Words {
    /// The name, as it is compared.
    name: String,
    /// How much each word counts, sorted by word.
    counts: Box<[(Box<str>, f64)]>,
    length: f64,
}

/// Returns the places of the tools that fit, the best first.
pub(super) fn rank(query: &str, tools: &[&Words]) -> Vec<usize> {
    let query = beginning(query);
    let total: f64 = tools.iter().map(|words| words.length).sum();
    let average = (total / count(tools.len()).max(1.0)).max(1.0);
    let mut seen = HashSet::new();
    let wanted = words(query).filter(|word| seen.insert(word.clone())).take(MAX_WANTED);
    let weights: Vec<(String, f64)> = wanted
        .map(|word| {
            let rarity = rarity(&word, tools);
            (word, rarity)
        })
        .collect();
    let exact = query.trim().to_lowercase();
    let mut scored: Vec<(usize, f64)> = tools
        .iter()
        .enumerate()
        .map(|(index, tool)| {
            let score: f64 =
                weights.iter().map(|(word, weight)| weight * tool.count(word, average)).sum();
            (index, if tool.name == exact { f64::MAX } else { score })
        })
        .filter(|(_, score)| *score > 0.0)
        .collect();
    // Equal ones stay in the order of their names.
    scored.sort_by(|(_, one), (_, other)| other.total_cmp(one));
    scored.into_iter().map(|(index, _)| index).collect()
}

impl Words {
    pub(crate) fn of(spec: &ToolSpec) -> Self {
        let mut counts: HashMap<String, f64> = HashMap::new();
        let mut length = 0.0;
        let mut add = |text: &str, weight: f64| {
            for word in words(beginning(text)) {
                length += 1.0;
                if counts.len() < MAX_WORDS || counts.contains_key(&word) {
                    *counts.entry(word).or_default() += weight;
                }
            }
        };
        add(&spec.name, NAME);
        add(spec.display_name.as_deref().unwrap_or_default(), TITLE);
        add(&spec.description, 1.0);
        if let Some(Value::Object(parameters)) = spec.parameters.get("properties") {
            parameters.keys().take(MAX_WORDS).for_each(|name| add(name, 1.0));
        }
        let counts = counts.into_iter().map(|(word, weight)| (word.into_boxed_str(), weight));
        let mut counts: Box<[(Box<str>, f64)]> = counts.collect();
        counts.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        Self { name: spec.name.to_lowercase(), counts, length }
    }

    /// Returns how much a word counts here.
    fn count(&self, word: &str, average: f64) -> f64 {
        let from = self.counts.partition_point(|(known, _)| &**known < word);
        let from = self.counts.get(from..).unwrap_or_default();
        let found = match from.first() {
            Some((known, weight)) if &**known == word => *weight,
            _ if word.len() < 3 => 0.0,
            _ => {
                let begin = from.iter().take_while(|(known, _)| known.starts_with(word));
                begin.map(|(_, weight)| weight * BEGINNING).fold(0.0, f64::max)
            }
        };
        let held_back = 1.0 - LENGTH + LENGTH * self.length / average;
        found * (SATURATION + 1.0) / (found + SATURATION * held_back)
    }
}

fn beginning(text: &str) -> &str {
    text.get(..floor_char_boundary(text, MAX_TEXT)).unwrap_or_default()
}

/// A word that few tools have says more than one that all have.
fn rarity(word: &str, tools: &[&Words]) -> f64 {
    let has = |tool: &&&Words| tool.count(word, 1.0) > 0.0;
    let (all, having) = (count(tools.len()), count(tools.iter().filter(has).count()));
    ((all - having + 0.5) / (having + 0.5)).ln_1p()
}

fn count(number: usize) -> f64 {
    f64::from(u32::try_from(number).unwrap_or(u32::MAX))
}

/// Splits a text into words as names have them: `createIssue` and `create_issues` are `create` and `issue`.
fn words(text: &str) -> impl Iterator<Item = String> {
    let mut all: Vec<String> = Vec::new();
    let mut word = String::new();
    let mut before = ' ';
    for letter in text.chars() {
        let begins = letter.is_uppercase() && before.is_lowercase();
        if (begins || !letter.is_alphanumeric()) && !word.is_empty() {
            all.push(std::mem::take(&mut word));
        }
        if letter.is_alphanumeric() {
            word.extend(letter.to_lowercase());
        }
        before = letter;
    }
    if !word.is_empty() {
        all.push(word);
    }
    all.into_iter().filter(|word| !IGNORED.contains(&word.as_str())).map(singular)
}

/// Words that say nothing about a tool.
const IGNORED: &[&str] =
    &["a", "an", "and", "for", "from", "in", "mcp", "of", "on", "or", "the", "to", "tool", "with"];

fn singular(mut word: String) -> String {
    let is_plural = word.len() > 3 && word.ends_with('s') && !word.ends_with("ss");
    if word.len() > 4 && word.ends_with("ies") {
        word.truncate(word.len() - 3);
        word.push('y');
    } else if is_plural {
        word.pop();
    }
    word
}

#[cfg(test)]
mod tests {
    use convoke_core::Kind;
    use proptest::prelude::*;

    use super::*;

    fn tools() -> Vec<ToolSpec> {
        let all = [
            ("mcp__github__create_issue", "Create a new issue in a GitHub repository"),
            ("mcp__github__list_issues", "List issues in a GitHub repository"),
            ("mcp__github__create_pull_request", "Create a new pull request"),
            ("mcp__files__read_text_file", "Read the complete contents of a file as text"),
            ("mcp__files__move_file", "Move or rename files and directories"),
            ("mcp__time__get_current_time", "Get current time in a specific timezone"),
            ("mcp__db__query", "Run a read-only SQL query"),
            ("investigator", "Finds out how a codebase works, and reports where things are"),
        ];
        all.iter().map(|(name, what)| ToolSpec::new(*name, *what, Kind::Other)).collect()
    }

    fn best(query: &str) -> Option<String> {
        let tools = tools();
        let words: Vec<Words> = tools.iter().map(Words::of).collect();
        let words: Vec<&Words> = words.iter().collect();
        rank(query, &words).first().map(|index| tools[*index].name.clone())
    }

    /// A query of four megabytes took seconds: each word of it was held against each word of each tool.
    #[test]
    fn no_more_of_a_query_is_looked_for_than_somebody_means() {
        let other =
            (0..MAX_WANTED).map(|number| format!("w{number}")).collect::<Vec<_>>().join(" ");
        assert_eq!(best(&format!("rename {other}")).as_deref(), Some("mcp__files__move_file"));
        assert_eq!(best(&format!("{other} rename")), None, "too many words come before");
        let same = "w ".repeat(MAX_WANTED);
        assert_eq!(best(&format!("{same} rename")).as_deref(), Some("mcp__files__move_file"));
        let long = format!("{} rename", "ä".repeat(2 << 20));
        assert_eq!(best(&long), None);
    }

    #[test]
    fn what_is_kept_of_a_tool_is_bounded() {
        let text = (0..4_000).map(|number| number.to_string()).collect::<Vec<_>>().join(" ");
        let mut spec = ToolSpec::new("wordy", text, Kind::Other);
        let names = (0..4_000).map(|number| (format!("p{number}"), Value::Null)).collect();
        spec.parameters = serde_json::json!({ "properties": Value::Object(names) }).into();
        assert_eq!(Words::of(&spec).counts.len(), MAX_WORDS);
    }

    #[test]
    fn what_fits_best_comes_first() {
        for (query, name) in [
            ("create issue", Some("mcp__github__create_issue")),
            ("createIssue", Some("mcp__github__create_issue")),
            ("open a pull request", Some("mcp__github__create_pull_request")),
            ("rename a file", Some("mcp__files__move_file")),
            ("what time is it in a timezone", Some("mcp__time__get_current_time")),
            ("sql queries", Some("mcp__db__query")),
            ("mcp__github__list_issues", Some("mcp__github__list_issues")),
            ("how does the codebase work", Some("investigator")),
            ("repo", Some("mcp__github__list_issues")),
            ("send an email", None),
            ("", None),
            ("the of and", None),
        ] {
            assert_eq!(best(query).as_deref(), name, "{query}");
        }
    }

    proptest! {
        #[test]
        fn any_words_are_looked_for(query in "\\PC{0,200}") {
            let tools: Vec<Words> = tools().iter().map(Words::of).collect();
            let words: Vec<&Words> = tools.iter().collect();
            let found = rank(&query, &words);
            prop_assert!(found.iter().all(|index| *index < tools.len()));
            let unique: HashSet<&usize> = found.iter().collect();
            prop_assert_eq!(unique.len(), found.len());
        }
    }
}
