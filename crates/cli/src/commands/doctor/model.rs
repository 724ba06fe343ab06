//! Which model would be asked, why, and whether it could answer.
//!
//! Nobody outside this machine is asked: `convoke models check` does that.

use convoke::Runtime;
use convoke::model::{ModelError, Provider, list_models};
use convoke::models::{ModelChoiceError, Resolved};
use convoke_core::ExitCode;
use serde_json::json;

use super::super::run::choose::{self, PATIENCE};
use super::super::run::watch::threads;
use super::Check;

const NAME: &str = "model";

pub(super) fn check(runtime: &Runtime) -> Check {
    match runtime.models().resolve(None) {
        Ok(resolved) => chosen(runtime, &resolved),
        Err(ModelChoiceError::NoModel { other_server: false }) => found_here(runtime),
        Err(error) => {
            let check = Check::fail(NAME, error.to_string()).hint(error.hint());
            check.exits(ExitCode::Configuration).details(json!({ "model": null }))
        }
    }
}

/// A model that somebody chose, or that a key decides on.
fn chosen(runtime: &Runtime, resolved: &Resolved) -> Check {
    let Resolved { name, provider, why, .. } = resolved;
    let has_key = provider.key.is_some();
    // Where a key comes from is among the reasons.
    let key = match (has_key, provider.is_on_this_machine()) {
        (true, _) => "",
        (false, true) => "; it needs no key",
        (false, false) => "; no key is set",
    };
    let answers = provider.is_on_this_machine().then(|| answers(runtime, provider.clone()));
    let details = json!({
        "model": name.to_string(), "why": why, "provider": provider.name,
        "address": provider.address(), "hasKey": has_key,
        "answers": answers.as_ref().map(Result::is_ok),
    });
    let said = format!("{name}; {why}{key}");
    let check = match answers {
        None => Check::ok(NAME, said),
        Some(Ok(())) => Check::ok(NAME, format!("{said}; its server answers")),
        Some(Err(error)) => {
            let hint = error.hint.unwrap_or_else(|| "start the server on this machine".to_owned());
            Check::warn(NAME, format!("{said}; its server does not answer: {}", error.message))
                .hint(hint)
        }
    };
    check.details(details)
}

/// Nobody chose: a server on this machine may have one.
fn found_here(runtime: &Runtime) -> Check {
    let found = threads().ok().and_then(|threads| threads.block_on(choose::local(runtime)));
    let Some(name) = found.map(|local| local.name()) else {
        let failure = choose::no_model();
        let check = Check::warn(NAME, failure.to_string());
        return failure.hints().fold(check, Check::hint).details(json!({ "model": null }));
    };
    let why = "it was found on this machine";
    let details = json!({ "model": name, "why": why, "hasKey": false, "answers": true });
    Check::ok(NAME, format!("{name}; {why}")).details(details)
}

fn answers(runtime: &Runtime, provider: Provider) -> Result<(), ModelError> {
    // A machine that has no threads left has other troubles, and says so elsewhere.
    let Ok(threads) = threads() else { return Ok(()) };
    let transport = runtime.transport(&runtime.models().network());
    threads.block_on(list_models(provider, transport, PATIENCE)).map(drop)
}
