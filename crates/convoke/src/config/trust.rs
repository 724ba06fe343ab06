//! What a project's file may say before the user trusted it.
//!
//! A folder can come from anywhere: a clone, an archive, a pull request; and what works in it can write
//! its file. Until the user trusts what the file holds now, it may set plain values from the table
//! below, and nothing that runs a program, names a server, takes something from the environment or
//! widens what is allowed. What it says beyond that is ignored, with a warning.

use std::path::Path;
use std::sync::Arc;

use serde_json::Value;

use super::digest::Digest;
use super::disk;
use super::interpolate::asks_for_variables;
use super::key::{Key, Segment};
use super::loaded::shown_whole;
use super::node::{Body, Node};
use super::origin::{Layer, Place};
use super::problem::{ConfigError, Problem};
use super::schema::{Child, Schema, config_schema};
use super::sources::Standing;
use super::walk::{Verdict, walk};
use super::yaml;

/// The keys, with everything below them, that a folder may set before it is trusted.
///
/// They are all data with bounds of their own (the schema has a range for every number), or they
/// can only make things stricter, which [`narrow`](super::narrow) sees to. A key is harmless only
/// if its worst value is: think of the worst before adding one.
pub(crate) const HARMLESS: &[&str] = &[
    // A slow or an impatient run, a day at the longest.
    "tools.timeout",
    "tools.timeouts",
    // How much work is done at once.
    "tools.maxConcurrent",
    "agent.maxConcurrentTools",
    // Only ever added to what the user excludes.
    "tools.exclude",
    // How much is read and shown; the ranges keep it within memory.
    "tools.maxOutputBytes",
    "tools.maxArgumentBytes",
    "tools.maxReadBytes",
    "tools.readCache",
    "tools.webSearch.maxResults",
    "tools.maxListedTokens",
    // Only ever narrower than what the user allows.
    "tools.allowedPaths",
    // Only ever stricter than what the user allows.
    "policy.kinds",
    // Only ever added to the user's, and only those that ask or deny.
    "policy.rules",
    // Nobody answering is never a yes.
    "policy.onAsk",
    "policy.approvalTimeout",
    "sandbox.mode",
    "sandbox.network",
    "sandbox.hosts",
    // Not `memory` and `cpu`, which need what may not be there: a folder could make the sandbox impossible.
    "sandbox.limits.processes",
    "sandbox.limits.memoryPerProcess",
    "sandbox.limits.cpuPerProcess",
    "sandbox.limits.fileSize",
    // Only ever less than what the user allows.
    "budget",
    // How a run goes about its task, within its budget.
    "agent.strategy",
    // Only ever stricter than what the user chose.
    "agent.workspace",
    "agent.reflection",
    "agent.maxRepeats",
    "agent.compactAt",
    // Only ever less than what the user allows.
    "agents.maxDepth",
    "agents.maxParallel",
    "agents.maxTotal",
    // Only ever added to what the user excludes.
    "agents.exclude",
    // Which of the providers that the user has is asked, and how. Where these are, what they get
    // sent, and what a model is said to cost (a price of nothing would lift the budget) is not here.
    "model.default",
    "model.aliases",
    "model.temperature",
    "model.topP",
    "model.thinkingBudget",
    "model.reasoningEffort",
    "model.maxOutputTokens",
    "model.idleTimeout",
    "model.retries",
];

/// The keys that are harmless with this value, and with no other: what is switched off does nothing. `*` is
/// any name.
const HARMLESS_IF: &[(&str, Off)] = &[
    ("agents.enabled", Off::False),
    ("agents.background", Off::False),
    ("agents.delegation", Off::Word("off")),
    ("agents.overrides.*.enabled", Off::False),
];

/// What switches something off.
#[derive(Clone, Copy)]
enum Off {
    False,
    Word(&'static str),
}

/// Why a value is ignored, and what to do about it.
struct Why {
    reason: &'static str,
    hint: &'static str,
}

const UNTRUSTED: Why = Why {
    reason: "this folder is not trusted",
    hint: "if you trust this folder, run `convoke config trust`",
};
const CHANGED: Why = Why {
    reason: "this file has changed since you trusted it",
    hint: "`convoke config trust` shows what it grants now, and trusts it again",
};

/// Something that a project's file decides only if it is trusted.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Grant {
    /// Its key.
    pub key: String,
    /// What the file says. Command lines, addresses, variables and headers are whole; what is nothing but a key, as
    /// `apiKey`, is masked, unless it asks for variables.
    pub value: Value,
}

/// What a project's file decides if it is trusted as it is now.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Grants {
    /// What the file holds.
    pub digest: Digest,
    /// What it decides beyond harmless values; nothing if it is harmless.
    pub granted: Vec<Grant>,
}

/// Reads a project's file, and says what trusting it grants. One that is not there says nothing, as an empty one:
/// who trusts that trusts the folder, and not what such a file says later.
///
/// # Errors
///
/// Returns what is wrong with the file, if it cannot be read.
pub fn grants(file: &Path) -> Result<Grants, ConfigError> {
    let shared: Arc<Path> = file.into();
    let wrong = |message, position| {
        let place = Place::File { path: Arc::clone(&shared), position };
        ConfigError::new(vec![Problem::of_place(place, message)])
    };
    let text = disk::read_file(file).map_err(|error| wrong(error.message, error.position))?;
    let text = text.unwrap_or_default();
    let mut root = yaml::parse(&text, &shared, Layer::Project)
        .map_err(|problem| ConfigError::new(vec![problem]))?;
    let schema = config_schema();
    let mut granted = Vec::new();
    walk(&mut root, Schema::new(&schema), &mut |visit| match (
        visit.schema,
        harm(visit.key, visit.node),
    ) {
        (Child::Unknown | Child::Free, _) => Verdict::Keep,
        (_, Harm::None) => {
            if visit.node.text().is_some_and(asks_for_variables) {
                granted.push(granted_by(visit.key, visit.node, visit.schema));
            }
            Verdict::Descend
        }
        (_, Harm::Below) => Verdict::Descend,
        (_, Harm::Some) => {
            match &visit.node.body {
                Body::List(items) => {
                    granted.extend(items.iter().enumerate().map(|(at, item)| {
                        granted_by(&visit.key.index(at), item, visit.schema.item())
                    }));
                }
                _ => granted.push(granted_by(visit.key, visit.node, visit.schema)),
            }
            Verdict::Keep
        }
    });
    Ok(Grants { digest: Digest::of(&text), granted })
}

fn granted_by(key: &Key, node: &Node, schema: Child<'_>) -> Grant {
    Grant { key: key.to_string(), value: shown_whole(node, schema) }
}

/// Takes out everything that a folder may not set before it is trusted, and says so. Keys that do
/// not exist stay, to be reported as mistakes.
pub(crate) fn keep_harmless(
    root: &mut Node,
    schema: Schema<'_>,
    standing: Standing,
) -> Vec<Problem> {
    let why = if standing == Standing::Changed { &CHANGED } else { &UNTRUSTED };
    let mut warnings = Vec::new();
    walk(root, schema, &mut |visit| match (visit.schema, harm(visit.key, visit.node)) {
        (Child::Unknown | Child::Free, _) | (_, Harm::None) => Verdict::Keep,
        (_, Harm::Below) if matches!(visit.node.body, Body::Map(_)) => Verdict::Descend,
        (_, Harm::Below) => Verdict::Keep,
        (_, Harm::Some) => {
            let message = format!("ignored, because {}", why.reason);
            warnings.push(Problem::new(visit.place, visit.key, message).with_hint(why.hint));
            Verdict::Drop
        }
    });
    refuse_variables(root, schema, why, &mut warnings);
    warnings
}

fn refuse_variables(root: &mut Node, schema: Schema<'_>, why: &Why, warnings: &mut Vec<Problem>) {
    walk(root, schema, &mut |visit| match visit.node.text() {
        Some(text) if asks_for_variables(text) => {
            let message = format!("`${{…}}` is ignored, because {}", why.reason);
            let place = &visit.node.origin.place;
            warnings.push(Problem::new(place, visit.key, message).with_hint(why.hint));
            Verdict::Drop
        }
        _ => Verdict::Descend,
    });
}

enum Harm {
    /// The key is on the list.
    None,
    /// Some keys below it are.
    Below,
    /// It is not.
    Some,
}

fn harm(key: &Key, node: &Node) -> Harm {
    let wanted = key.segments();
    let mut harm = Harm::Some;
    for (allowed, value) in HARMLESS_IF {
        let Ok(allowed) = Key::parse(allowed) else { continue };
        if !is_on_the_way(wanted, allowed.segments()) {
            continue;
        }
        if wanted.len() < allowed.segments().len() {
            harm = Harm::Below;
        } else if is_off(node, *value) {
            return Harm::None;
        }
    }
    for allowed in HARMLESS.iter().filter_map(|text| Key::parse(text).ok()) {
        if wanted.starts_with(allowed.segments()) {
            return Harm::None;
        }
        if allowed.segments().starts_with(wanted) {
            harm = Harm::Below;
        }
    }
    harm
}

/// Tells whether a key is another one, in which `*` is any name, or lies above it.
fn is_on_the_way(key: &[Segment], pattern: &[Segment]) -> bool {
    let any = Segment::Name("*".to_owned());
    let mut pairs = key.iter().zip(pattern);
    key.len() <= pattern.len() && pairs.all(|(one, other)| one == other || *other == any)
}

fn is_off(node: &Node, off: Off) -> bool {
    match off {
        Off::False => node.to_json() == Value::Bool(false),
        Off::Word(word) => node.text() == Some(word),
    }
}
