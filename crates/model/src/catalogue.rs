//! Prices and windows, from a data file.
//!
//! The file that comes with the crate holds what the providers have published; whoever knows better adds
//! entries of their own, which go before it field by field. What is not known stays absent: it is never
//! taken to be zero. The file is read when the first model is looked up, and prices only become numbers
//! for the model that was asked for.

use std::sync::OnceLock;

use convoke_core::{ModelFacts, Money, Price};
use serde::Deserialize;

use crate::name::ModelName;

const SHIPPED: &str = include_str!("../data/models.json");

/// What is known about models.
#[derive(Debug, Default)]
pub struct Catalogue {
    own: Vec<(String, ModelFacts)>,
    shipped: OnceLock<Vec<Group<'static>>>,
}

impl Catalogue {
    /// Makes a catalogue of what comes with the crate.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds facts about all models a pattern fits: `provider/model`, where `*` stands for anything. They
    /// go before what comes with the crate.
    #[must_use]
    pub fn with(mut self, pattern: impl Into<String>, facts: ModelFacts) -> Self {
        self.own.push((pattern.into(), facts));
        self
    }

    /// Returns what is known about a model. Of several patterns that fit, the most specific counts: the
    /// one with the most letters that are not `*`.
    pub fn facts(&self, name: &ModelName) -> ModelFacts {
        let full = name.to_string();
        let own = self
            .own
            .iter()
            .filter(|(pattern, _)| fits(pattern, &full))
            .max_by_key(|(pattern, _)| letters(pattern))
            .map(|(_, facts)| *facts)
            .unwrap_or_default();
        own.or(self.shipped(name))
    }

    fn shipped(&self, name: &ModelName) -> ModelFacts {
        // A test reads every entry, so nothing is lost here.
        let groups = self.shipped.get_or_init(|| serde_json::from_str(SHIPPED).unwrap_or_default());
        groups
            .iter()
            .filter(|group| group.providers.contains(&name.provider()))
            .flat_map(|group| &group.models)
            .flat_map(|entry| entry.names.iter().map(move |pattern| (pattern, entry)))
            .filter(|(pattern, _)| fits(pattern, name.model()))
            .max_by_key(|(pattern, _)| letters(pattern))
            .map(|(_, entry)| entry.facts())
            .unwrap_or_default()
    }
}

/// Models that are priced together. Where the numbers come from is for readers of the file.
#[derive(Debug, Deserialize)]
struct Group<'a> {
    #[serde(borrow)]
    providers: Vec<&'a str>,
    #[serde(borrow)]
    models: Vec<Entry<'a>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry<'a> {
    #[serde(borrow)]
    names: Vec<&'a str>,
    window: Option<u64>,
    max_output: Option<u64>,
    #[serde(borrow)]
    price: Option<PriceText<'a>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct PriceText<'a> {
    input: &'a str,
    cached_input: Option<&'a str>,
    cache_write: Option<&'a str>,
    output: &'a str,
}

impl Entry<'_> {
    fn facts(&self) -> ModelFacts {
        let price = self.price.as_ref().and_then(PriceText::read);
        ModelFacts { window: self.window, max_output: self.max_output, max_calls: None, price }
    }
}

impl PriceText<'_> {
    /// Returns the price, or none at all if one of its numbers is none.
    fn read(&self) -> Option<Price> {
        let money = |text: &str| text.parse::<Money>().ok();
        let maybe = |text: Option<&str>| match text {
            Some(text) => money(text).map(Some),
            None => Some(None),
        };
        Some(Price {
            input: money(self.input)?,
            cached_input: maybe(self.cached_input)?,
            cache_write: maybe(self.cache_write)?,
            output: money(self.output)?,
        })
    }
}

fn letters(pattern: &str) -> usize {
    pattern.bytes().filter(|byte| *byte != b'*').count()
}

/// Tells whether a pattern fits a text; `*` stands for anything, also for nothing.
fn fits(pattern: &str, text: &str) -> bool {
    let Some((head, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(text) = text.strip_prefix(head) else { return false };
    let mut starts = text.char_indices().map(|(start, _)| start).chain([text.len()]);
    starts.any(|start| text.get(start..).is_some_and(|text| fits(rest, text)))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn facts(catalogue: &Catalogue, name: &str) -> ModelFacts {
        catalogue.facts(&name.parse().unwrap())
    }

    fn money(text: &str) -> Money {
        text.parse().unwrap()
    }

    #[test]
    fn every_entry_of_the_file_can_be_read() {
        let groups: Vec<Group<'_>> = serde_json::from_str(SHIPPED).unwrap();
        let mut seen = HashSet::new();
        let mut entries = 0;
        for group in &groups {
            for entry in &group.models {
                entries += 1;
                assert_eq!(entry.price.is_some(), entry.facts().price.is_some(), "{entry:?}");
                for provider in &group.providers {
                    for name in &entry.names {
                        assert!(
                            seen.insert((*provider, *name)),
                            "{provider}/{name} is there twice"
                        );
                    }
                }
            }
        }
        assert!((20..=60).contains(&entries), "{entries}");
    }

    #[test]
    fn a_cached_token_never_costs_more_and_an_answer_never_less() {
        for group in serde_json::from_str::<Vec<Group<'_>>>(SHIPPED).unwrap() {
            for price in group.models.iter().filter_map(|entry| entry.facts().price) {
                assert!(price.cached_input.is_none_or(|cached| cached < price.input), "{price:?}");
                assert!(price.cache_write.is_none_or(|write| write > price.input), "{price:?}");
                assert!(price.output >= price.input, "{price:?}");
            }
        }
    }

    #[test]
    fn models_are_found_with_and_without_their_date() {
        let catalogue = Catalogue::new();
        for name in ["openai/gpt-5", "openai/gpt-5-2025-08-07", "openai-chat/gpt-5"] {
            let facts = facts(&catalogue, name);
            assert_eq!(facts.window, Some(400_000), "{name}");
            assert_eq!(facts.price.unwrap().input, money("1.25"), "{name}");
        }
        let sonnet = facts(&catalogue, "anthropic/claude-sonnet-4-5-20250929");
        assert_eq!(sonnet.price.unwrap().cache_write, Some(money("3.75")));
    }

    #[test]
    fn what_is_not_known_is_absent_and_never_free() {
        let catalogue = Catalogue::new();
        for name in
            ["openai/gpt-99", "nobody/gpt-5", "ollama/big:cloud", "ollama/gpt-oss:120b-cloud"]
        {
            assert_eq!(facts(&catalogue, name).price, None, "{name}");
        }
        let local = facts(&catalogue, "ollama/qwen2.5:7b").price.unwrap();
        assert_eq!((local.input, local.output), (money("0"), money("0")));
    }

    #[test]
    fn own_entries_go_first_field_by_field_and_the_most_specific_counts() {
        let window = |window| ModelFacts { window: Some(window), ..ModelFacts::default() };
        let catalogue = Catalogue::new()
            .with("*", window(1))
            .with("openai/gpt-5*", window(3))
            .with("openai/*", window(2));
        let found = facts(&catalogue, "openai/gpt-5");
        assert_eq!(found.window, Some(3));
        assert_eq!(found.price.unwrap().input, money("1.25"));
        assert_eq!(facts(&catalogue, "openai/other").window, Some(2));
        assert_eq!(facts(&catalogue, "other/other").window, Some(1));
    }

    #[test]
    fn stars_stand_for_anything() {
        for (pattern, text, expected) in [
            ("a*c", "abc", true),
            ("a*c", "ac", true),
            ("a*c", "acb", false),
            ("*b*", "abc", true),
            ("**", "", true),
            ("a", "ab", false),
            ("*é", "aé", true),
        ] {
            assert_eq!(fits(pattern, text), expected, "{pattern} {text}");
        }
    }
}
