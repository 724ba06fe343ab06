//! Ranks tools by how well they fit a few words (BM25). A name says more than a description.

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
/// How much of a description is looked at, in bytes.
const MAX_TEXT: usize = 4_096;

/// A tool as the search sees it.
struct Document {
    /// How much each word counts.
    words: HashMap<String, f64>,
    length: f64,
}

/// Returns the places of the tools that fit, the best first.
pub(super) fn rank(query: &str, tools: &[&ToolSpec]) -> Vec<usize> {
    let wanted: Vec<String> = words(query).collect();
    let documents: Vec<Document> = tools.iter().map(|spec| Document::of(spec)).collect();
    let total: f64 = documents.iter().map(|document| document.length).sum();
    let average = (total / count(documents.len()).max(1.0)).max(1.0);
    let weights: Vec<(&String, f64)> = {
        let mut seen = HashSet::new();
        let new = wanted.iter().filter(|word| seen.insert(word.as_str()));
        new.map(|word| (word, rarity(word, &documents))).collect()
    };
    let exact = query.trim().to_lowercase();
    let mut scored: Vec<(usize, f64)> = documents
        .iter()
        .zip(tools)
        .enumerate()
        .map(|(index, (document, spec))| {
            let is_named = spec.name.to_lowercase() == exact;
            let score: f64 =
                weights.iter().map(|(word, weight)| weight * document.count(word, average)).sum();
            (index, if is_named { f64::MAX } else { score })
        })
        .filter(|(_, score)| *score > 0.0)
        .collect();
    // Equal ones stay in the order of their names.
    scored.sort_by(|(_, one), (_, other)| other.total_cmp(one));
    scored.into_iter().map(|(index, _)| index).collect()
}

impl Document {
    fn of(spec: &ToolSpec) -> Self {
        let mut words_found: HashMap<String, f64> = HashMap::new();
        let mut length = 0.0;
        let mut add = |text: &str, weight: f64| {
            for word in words(text) {
                length += 1.0;
                *words_found.entry(word).or_default() += weight;
            }
        };
        add(&spec.name, NAME);
        add(spec.display_name.as_deref().unwrap_or_default(), TITLE);
        add(
            spec.description
                .get(..floor_char_boundary(&spec.description, MAX_TEXT))
                .unwrap_or_default(),
            1.0,
        );
        if let Some(Value::Object(parameters)) = spec.parameters.get("properties") {
            parameters.keys().for_each(|name| add(name, 1.0));
        }
        Self { words: words_found, length }
    }

    /// Returns how much a word counts here.
    fn count(&self, word: &str, average: f64) -> f64 {
        let found = self.words.get(word).copied().unwrap_or_else(|| {
            let begins = |(known, weight): (&String, &f64)| {
                let long_enough = word.len() >= 3;
                (long_enough && known.starts_with(word)).then_some(weight * BEGINNING)
            };
            self.words.iter().filter_map(begins).fold(0.0, f64::max)
        });
        let held_back = 1.0 - LENGTH + LENGTH * self.length / average;
        found * (SATURATION + 1.0) / (found + SATURATION * held_back)
    }
}

/// A word that few tools have says more than one that all have.
fn rarity(word: &str, documents: &[Document]) -> f64 {
    let has = |document: &&Document| document.count(word, 1.0) > 0.0;
    let (all, having) = (count(documents.len()), count(documents.iter().filter(has).count()));
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
        let specs: Vec<&ToolSpec> = tools.iter().collect();
        rank(query, &specs).first().map(|index| tools[*index].name.clone())
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
            let tools = tools();
            let specs: Vec<&ToolSpec> = tools.iter().collect();
            let found = rank(&query, &specs);
            prop_assert!(found.iter().all(|index| *index < tools.len()));
            let unique: HashSet<&usize> = found.iter().collect();
            prop_assert_eq!(unique.len(), found.len());
        }
    }
}
