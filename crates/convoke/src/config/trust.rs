//! What a project's file may say before the user trusted its folder.
//!
//! A folder can come from anywhere: a clone, an archive, a pull request. Until the user says
//! otherwise its file may set plain values from the table below, and nothing that runs a program,
//! names a server, takes something from the environment or widens what is allowed. What it says
//! beyond that is ignored, with a warning.

use super::interpolate::asks_for_variables;
use super::key::Key;
use super::node::{Body, Node};
use super::problem::Problem;
use super::schema::{Child, Schema};
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
    "sandbox.limits",
    // Only ever less than what the user allows.
    "budget",
    // How a run goes about its task, within its budget.
    "agent.strategy",
    // Only ever stricter than what the user chose.
    "agent.workspace",
    "agent.reflection",
    "agent.maxRepeats",
    "agent.compactAt",
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

const HINT: &str = "if you trust this folder, run `convoke config trust`";

/// Takes out everything that a folder may not set before it is trusted, and says so. Keys that do
/// not exist stay, to be reported as mistakes.
pub(crate) fn keep_harmless(root: &mut Node, schema: Schema<'_>) -> Vec<Problem> {
    let mut warnings = Vec::new();
    walk(root, schema, &mut |visit| match (visit.schema, harm(visit.key)) {
        (Child::Unknown | Child::Free, _) | (_, Harm::None) => Verdict::Keep,
        (_, Harm::Below) if matches!(visit.node.body, Body::Map(_)) => Verdict::Descend,
        (_, Harm::Below) => Verdict::Keep,
        (_, Harm::Some) => {
            let message = "ignored, because this folder is not trusted";
            warnings.push(Problem::new(visit.place, visit.key, message).with_hint(HINT));
            Verdict::Drop
        }
    });
    refuse_variables(root, schema, &mut warnings);
    warnings
}

fn refuse_variables(root: &mut Node, schema: Schema<'_>, warnings: &mut Vec<Problem>) {
    walk(root, schema, &mut |visit| match visit.node.text() {
        Some(text) if asks_for_variables(text) => {
            let message = "`${…}` is ignored, because this folder is not trusted";
            let place = &visit.node.origin.place;
            warnings.push(Problem::new(place, visit.key, message).with_hint(HINT));
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

fn harm(key: &Key) -> Harm {
    let wanted = key.segments();
    let mut harm = Harm::Some;
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
