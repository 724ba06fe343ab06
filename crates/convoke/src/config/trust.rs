//! What a project's file may say before the user trusted it.
//!
//! A folder can come from anywhere: a clone, an archive, a pull request; and what works in it can write
//! its file. Until the user trusts the folder, its file may set plain values from the table below, and
//! nothing that runs a program, names a server, takes something from the environment or widens what is
//! allowed. What it says beyond that is ignored, with a warning. In a folder that is trusted, each of these
//! is an entry of its own, which counts once the user has seen it as it is now.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::entry::{CommandWords, EntryContent, EntryTrust, ProjectEntry};
use super::interpolate::{self, asks_for_variables};
use super::key::{Key, Segment};
use super::loaded::shown_whole;
use super::node::{Body, Node};
use super::paths::WORKSPACE;
use super::problem::Problem;
use super::schema::{Child, Schema};
use super::servers;
use super::sources::Trust;
use super::walk::{Verdict, walk};

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
const LAPSED: Why = Why {
    reason: "an older version trusted this folder, without saying which entries",
    hint: "`convoke config trust` shows the entries, and trusts them",
};

/// Takes out of a trusted project's file every entry that is new or changed since the user looked at it, and
/// returns all entries. Values that are harmless stay.
pub(crate) fn keep_trusted(
    root: &mut Node,
    schema: Schema<'_>,
    file: &Path,
    trust: &EntryTrust,
    environment: &BTreeMap<String, String>,
) -> Vec<ProjectEntry> {
    let mut entries = Vec::new();
    let mut keeps = |key: &Key, node: &Node, schema: Child<'_>| {
        let content =
            EntryContent::Setting { key: key.to_string(), value: shown_whole(node, schema) };
        let label = format!("{} of {}", title(key, node), trust.relative(file).display());
        let words = command_words(node, environment);
        let entry = trust.entry(&label, &node.to_json(), &words, content);
        let keeps = trust.admits(&entry);
        entries.push(entry);
        keeps
    };
    walk(root, schema, &mut |visit| match (visit.schema, harm(visit.key, visit.node)) {
        (Child::Unknown | Child::Free, _) => Verdict::Keep,
        (_, Harm::None) => {
            let asks = visit.node.text().is_some_and(asks_for_variables);
            if asks && !keeps(visit.key, visit.node, visit.schema) {
                return Verdict::Drop;
            }
            Verdict::Descend
        }
        (_, Harm::Below) if matches!(visit.node.body, Body::Map(_)) => Verdict::Descend,
        (known, Harm::Below | Harm::Some) => {
            let Body::List(items) = &mut visit.node.body else {
                let keeps = keeps(visit.key, visit.node, known);
                return if keeps { Verdict::Keep } else { Verdict::Drop };
            };
            let (before, mut index) = (items.len(), 0);
            items.retain(|item| {
                let key = visit.key.index(index);
                index += 1;
                // An item that names no program and no address uses less of a server of the user's.
                let is_less = is_servers(visit.key) && !servers::is_reached(item);
                is_less || keeps(&key, item, known.item())
            });
            // A list of which nothing is left is as if it were not written: an empty one may say more.
            if items.is_empty() && before > 0 { Verdict::Drop } else { Verdict::Keep }
        }
    });
    entries
}

fn is_servers(key: &Key) -> bool {
    *key == Key::default().name("tools").name("mcpServers")
}

/// Returns the name of an entry: its key, and for an item of a list what tells it from the others.
fn title(key: &Key, node: &Node) -> String {
    let Some((Segment::Index(_), list)) = key.segments().split_last() else {
        return key.to_string();
    };
    let list = list.iter().fold(Key::default(), |key, step| key.with(step.clone()));
    let at = |name: &str| node.get(&Key::default().name(name));
    let command = at("command").map(|command| match &command.body {
        Body::List(words) => words.first().and_then(Node::text).unwrap_or_default(),
        _ => command.text().unwrap_or_default(),
    });
    let name = at("name").and_then(Node::text).or(command).or(node.text());
    match name {
        Some(name) => format!("{list} `{name}`"),
        None => list.to_string(),
    }
}

/// Collects the texts of an entry that may name files: command lines and variables.
fn command_words(node: &Node, environment: &BTreeMap<String, String>) -> CommandWords {
    let at = |name: &str| node.get(&Key::default().name(name));
    let mut words = Vec::new();
    for part in ["command", "args", "env"].into_iter().filter_map(at) {
        texts(part, environment, &mut words);
    }
    let directory = at("workingDirectory").or_else(|| at("cwd")).and_then(Node::text);
    let directory = directory
        .map(|text| replaced(text, environment))
        .filter(|text| !Path::new(text).starts_with(WORKSPACE));
    CommandWords { words, directory: directory.map(PathBuf::from) }
}

fn texts(node: &Node, environment: &BTreeMap<String, String>, found: &mut Vec<String>) {
    match &node.body {
        Body::Scalar(_) => found.extend(node.text().map(|text| replaced(text, environment))),
        Body::List(items) => {
            for item in items {
                texts(item, environment, found);
            }
        }
        Body::Map(fields) => {
            for field in fields.values() {
                texts(&field.node, environment, found);
            }
        }
    }
}

fn replaced(text: &str, environment: &BTreeMap<String, String>) -> String {
    interpolate::replace(text, environment).map_or_else(|_| text.to_owned(), |done| done.text)
}

/// Takes out everything that a folder may not set before it is trusted, and says so. Keys that do
/// not exist stay, to be reported as mistakes.
pub(crate) fn keep_harmless(root: &mut Node, schema: Schema<'_>, trust: &Trust) -> Vec<Problem> {
    let why = if *trust == Trust::Lapsed { &LAPSED } else { &UNTRUSTED };
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
