//! Every attempt of the corpus, really made: through the whole pipeline, with the policy and the sandbox,
//! and again without the policy where the sandbox alone has to hold.
//!
//! A canary that nobody could ever see proves nothing, so the same attempts are also made with nothing to
//! stop them but a fence around the world they are made in, and most of those that can run here have to
//! succeed.

#![cfg(target_os = "linux")]
#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::print_stderr,
    reason = "a test may fail by panicking, makes the world it acts in, and says what it skipped"
)]

mod bash;
mod below;
mod benign;
mod foreign;
mod grammar;
mod place;
mod served;

use convoke_testkit::bypass::{self, Case, Layer};
use convoke_testkit::skip;
use futures_util::stream::{self, StreamExt};
use place::{Guard, PATH, Place};

/// How many attempts are made at a time.
const AT_ONCE: usize = 6;

fn cases(wanted: impl Fn(&Case) -> bool) -> Vec<Case> {
    bypass::cases().unwrap().into_iter().filter(|case| wanted(case)).collect()
}

/// What came of one attempt.
struct Tried {
    shown: bool,
    what: String,
}

/// Makes all attempts; returns what came of each.
async fn try_all(cases: Vec<Case>, guard: Guard) -> Vec<Tried> {
    try_all_below(0, cases, guard).await
}

/// Makes all attempts, so many levels below the main agent.
async fn try_all_below(depth: u32, cases: Vec<Case>, guard: Guard) -> Vec<Tried> {
    let tried = stream::iter(cases.into_iter().map(|case| try_one(depth, case, guard)));
    tried.buffer_unordered(AT_ONCE).collect().await
}

async fn try_one(depth: u32, case: Case, guard: Guard) -> Tried {
    tokio::spawn(async move {
        let mut place = Place::new(&case);
        let call = case.call_in(&place.world);
        let what = format!("{:?} {} {} {:?}", case.layer, call.tool, call.arguments, case.project);
        let output = match depth {
            0 => place.call(guard, call).await,
            depth => place.call_below(depth, guard, call).await,
        };
        let shown = place.world.shows(&case.canary, &output).unwrap();
        Tried { shown, what: format!("{what}: {output}") }
    })
    .await
    .unwrap()
}

/// Makes all attempts over MCP.
async fn try_all_served(cases: Vec<Case>, guard: Guard) -> Vec<Tried> {
    let tried = stream::iter(cases.into_iter().map(|case| {
        tokio::spawn(async move {
            let mut place = Place::new(&case);
            let call = case.call_in(&place.world);
            let what = format!("{:?} {} {}", case.layer, call.tool, call.arguments);
            let output = place.call_served(guard, call).await;
            let shown = place.world.shows(&case.canary, &output).unwrap();
            Tried { shown, what: format!("{what}: {output}") }
        })
    }));
    tried.buffer_unordered(AT_ONCE).map(Result::unwrap).collect().await
}

fn shown(tried: &[Tried]) -> Vec<&str> {
    tried.iter().filter(|tried| tried.shown).map(|tried| tried.what.as_str()).collect()
}

fn confined() -> bool {
    let case = cases(|case| case.layer == Layer::Sandbox).remove(0);
    let place = Place::new(&case);
    let reason = place.unconfined();
    if let Some(reason) = &reason {
        skip("the sandbox", reason);
    }
    reason.is_none()
}

#[tokio::test(flavor = "multi_thread")]
async fn no_attempt_succeeds() {
    let all = cases(|_| true);
    assert!(all.len() >= 250, "{}", all.len());
    if !confined() {
        return;
    }
    let tried = try_all(all, Guard::Everything).await;
    assert!(shown(&tried).is_empty(), "{:#?}", shown(&tried));
}

/// An agent that somebody called may do no more than its caller, however far down it is.
#[tokio::test(flavor = "multi_thread")]
async fn no_attempt_succeeds_from_an_agent_further_down() {
    if !confined() {
        return;
    }
    for depth in [1, 2] {
        let tried = try_all_below(depth, cases(|_| true), Guard::Everything).await;
        assert!(shown(&tried).is_empty(), "{depth} levels down: {:#?}", shown(&tried));
    }
}

/// Whoever comes over MCP may do no more than whoever is here.
#[tokio::test(flavor = "multi_thread")]
async fn no_attempt_succeeds_over_mcp() {
    if !confined() {
        return;
    }
    let tried = try_all_served(cases(|_| true), Guard::Everything).await;
    assert!(shown(&tried).is_empty(), "{:#?}", shown(&tried));
}

/// And it is the policy that stops them there, not the way.
#[tokio::test(flavor = "multi_thread")]
async fn attempts_over_mcp_mean_something() {
    if !confined() {
        return;
    }
    let some = cases(|case| case.layer == Layer::Policy && case.can_run(PATH));
    let some: Vec<Case> = some.into_iter().step_by(8).collect();
    enough(&try_all_served(some, Guard::NoPolicy).await);
}

/// Neither do agents lose what they may do.
#[tokio::test(flavor = "multi_thread")]
async fn attempts_from_agents_mean_something() {
    if !confined() {
        return;
    }
    let some = cases(|case| case.layer == Layer::Policy && case.can_run(PATH));
    let some: Vec<Case> = some.into_iter().step_by(8).collect();
    enough(&try_all_below(2, some, Guard::NoPolicy).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_others_than_the_policy_stop_they_stop_without_it() {
    if !confined() {
        return;
    }
    let without = |case: &Case| !matches!(case.layer, Layer::Policy | Layer::Config);
    let tried = try_all(cases(without), Guard::NoPolicy).await;
    assert!(shown(&tried).is_empty(), "{:#?}", shown(&tried));
}

/// What the policy stops would succeed without it, also in the sandbox.
#[tokio::test(flavor = "multi_thread")]
async fn attempts_on_the_policy_mean_something() {
    if !confined() {
        return;
    }
    let can_run = cases(|case| case.layer == Layer::Policy && case.can_run(PATH));
    let tried = try_all(can_run, Guard::NoPolicy).await;
    enough(&tried);
}

/// What the sandbox stops would succeed without it.
#[tokio::test(flavor = "multi_thread")]
async fn attempts_on_the_sandbox_mean_something() {
    if !confined() {
        return;
    }
    let can_run = cases(|case| case.layer == Layer::Sandbox && case.control && case.can_run(PATH));
    let tried = try_all(can_run, Guard::Nothing).await;
    enough(&tried);
}

fn enough(tried: &[Tried]) {
    let succeeded = shown(tried).len();
    let failed = tried.iter().filter(|tried| !tried.shown).map(|tried| &tried.what);
    let failed: Vec<&String> = failed.collect();
    eprintln!("{succeeded} of {} would succeed", tried.len());
    assert!(succeeded * 5 >= tried.len() * 4, "{succeeded} of {}: {failed:#?}", tried.len());
}
