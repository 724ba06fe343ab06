//! What is harmless has to be allowed, and ends in the sandbox as it would without.

use convoke::core::Permission;
use convoke::prelude::*;
use convoke_testkit::bypass::{Canary, Case, Layer};
use futures_util::stream;
use serde_json::Value;

use crate::place::{Guard, Place};
use crate::{AT_ONCE, confined};

/// The policy that is shown to users as an example.
const EXAMPLE: &str = include_str!("../../examples/policy/convoke.yml");
const BENIGN: &str = include_str!("../../../core/tests/data/policy/benign.jsonl");

fn cases() -> Vec<Case> {
    let case = |line: &str| {
        let mut value: Value = serde_json::from_str(line).unwrap();
        value["family"] = json!("benign");
        value["layer"] = json!("policy");
        value["canary"] = json!({ "gone": "project" });
        serde_json::from_value(value).unwrap()
    };
    BENIGN.lines().map(case).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn harmless_commands_and_calls_are_allowed_by_the_example() {
    let cases = cases();
    let (commands, calls): (Vec<&Case>, Vec<&Case>) =
        cases.iter().partition(|case| case.command.is_some());
    assert!(commands.len() >= 150 && !calls.is_empty(), "{} {}", commands.len(), calls.len());
    if !confined() {
        return;
    }
    let first = cases.first().unwrap();
    assert!(matches!((first.layer, &first.canary), (Layer::Policy, Canary::Gone(_))));
    let place = Place::with_user_file(first, EXAMPLE);
    let runtime = place.runtime(Guard::Everything).unwrap();
    let main = runtime.standing("main").unwrap();
    let refused = |case: &&Case| {
        let call = case.call_in(&place.world);
        let tool = runtime.callable().get(&call.tool).unwrap();
        let decision = runtime.judge(tool.as_ref(), &call.arguments, &main);
        decision.unwrap().permission != Permission::Allow
    };
    let refused: Vec<&Case> = cases.iter().filter(refused).collect();
    assert!(refused.is_empty(), "{refused:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn harmless_commands_end_in_the_sandbox_as_they_would_without() {
    if !confined() {
        return;
    }
    // What talks to the network ends differently, and so does what only waits.
    let same = |case: &Case| {
        let line = case.command.as_deref().unwrap_or_default();
        !["fetch", "sleep", "cargo", "npm"].iter().any(|word| line.contains(word))
    };
    let compared = cases().into_iter().filter(same).map(|case| {
        tokio::spawn(async move {
            let (inside, outside) = (Place::new(&case), Place::new(&case));
            let call = |place: &Place| case.call_in(&place.world);
            let inside = inside.status(Guard::NoPolicy, call(&inside)).await;
            let outside = outside.status(Guard::Nothing, call(&outside)).await;
            (inside != outside)
                .then(|| format!("{:?}: {inside} instead of {outside}", case.command))
        })
    });
    let found: Vec<_> = stream::iter(compared).buffer_unordered(AT_ONCE).collect().await;
    let different: Vec<String> = found.into_iter().filter_map(Result::unwrap).collect();
    assert!(different.is_empty(), "{different:#?}");
}
