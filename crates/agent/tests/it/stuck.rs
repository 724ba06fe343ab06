//! Runs that make no progress: they are told, start over from a summary, and end, or a person is asked.
//!
//! opencode#45442 (364 identical searches), claude-code#75036 (a watchdog without recovery), openclaw#74864
//! (recoveries without end).

use convoke_core::event::Rescue;
use convoke_core::run::OnStuck;
use convoke_core::{Cause, Event, EventBody, RunSettings, Status};
use convoke_model::RequestSnapshot;
use convoke_model::scripted::{ScriptedModel, Turn};
use convoke_tool::testing::AllowAll;
use convoke_tool::{Answer, ToolContext, ToolExecutor, ToolRegistry, ToolView, ask_with};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use convoke_agent::AgentExecutor;
use serde_json::json;

use crate::support::{echo, read, script, with};

fn again(word: &str) -> Turn {
    Turn::call("echo", json!({ "word": word }))
}

fn rescues(events: &[Arc<Event>]) -> Vec<Rescue> {
    let rescue = |event: &Arc<Event>| match event.body {
        EventBody::LoopDetected { rescue, .. } => Some(rescue),
        _ => None,
    };
    events.iter().filter_map(rescue).collect()
}

/// Repeats itself whatever it is told, and sums up when it is asked to.
fn stubborn() -> Arc<ScriptedModel> {
    let answer = |request: &RequestSnapshot| {
        let last = request.messages.last().map(convoke_core::Message::words).unwrap_or_default();
        if last.contains("Sum up") || request.tools.is_empty() {
            Turn::text("I called echo.")
        } else {
            again("same")
        }
    };
    Arc::new(ScriptedModel::from_fn(answer))
}

#[tokio::test(start_paused = true)]
async fn a_loop_is_told_then_started_over_then_ended() {
    let turns = std::iter::repeat_n(again("1"), 4)
        .chain([Turn::text("I called echo four times.")])
        .chain(std::iter::repeat_n(again("1"), 10));
    let model = script(turns);
    let (events, report) = read(with(&model).build().unwrap().start("Go.")).await;
    assert_eq!((report.outcome.status, report.outcome.cause), (Status::Stuck, Cause::Loop));
    assert_eq!(rescues(&events), [Rescue::Nudge, Rescue::Restart]);
    let requests = model.requests();
    let told = requests[3].messages.last().unwrap().words();
    assert!(told.contains("`echo` 3 times in a row"), "{told}");
    let anew = &requests[5].messages;
    assert!(anew[1].words().contains("I called echo four times."), "{anew:?}");
    assert!(anew.last().unwrap().words().contains("Begin again from the summary"), "{anew:?}");
    assert_eq!(requests.len(), 8, "after it started over, three more are enough");
}

#[tokio::test(start_paused = true)]
async fn who_heeds_goes_on() {
    let model = script([again("1"), again("1"), again("1"), again("2"), Turn::text("found it")]);
    let (_, report) = read(with(&model).build().unwrap().start("Go.")).await;
    assert_eq!(report.outcome.cause, Cause::Goal);
}

#[tokio::test(start_paused = true)]
async fn two_things_in_turn_and_nothing_new_are_loops_as_well() {
    for words in [vec!["a", "b"], vec!["a", "b", "c", "d", "e"]] {
        let model = script((0..60).map(|turn| again(words[turn % words.len()])));
        let settings = RunSettings { on_stuck: OnStuck::End, ..RunSettings::default() };
        let agent = with(&model).run_settings(settings).build().unwrap();
        let (events, report) = read(agent.start("Go.")).await;
        assert_eq!(report.outcome.cause, Cause::Loop, "{words:?}");
        assert_eq!(rescues(&events), [Rescue::Nudge], "{words:?}");
        assert!(model.requests().len() < 20, "{words:?}: {}", model.requests().len());
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_is_never_helped_more_often_than_it_is_set() {
    for most in 0..3 {
        let settings = RunSettings { max_rescues: most, ..RunSettings::default() };
        let agent = with(&stubborn()).run_settings(settings).build().unwrap();
        let (events, report) = read(agent.start("Go.")).await;
        assert_eq!(report.outcome.cause, Cause::Loop);
        assert_eq!(rescues(&events).len(), most as usize);
    }
}

#[tokio::test(start_paused = true)]
async fn a_person_may_let_it_go_on_or_not() {
    for (consents, asked) in [(0, 1), (1, 1)] {
        let (left, questions) = (AtomicU32::new(consents), Arc::new(AtomicU32::new(0)));
        let counted = Arc::clone(&questions);
        let approver = ask_with(move |question| {
            counted.fetch_add(1, Ordering::Relaxed);
            assert!(question.reason.contains("no progress"), "{}", question.reason);
            let yes = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1));
            async move { if yes.is_ok() { Answer::yes() } else { Answer::no_because("stop it") } }
        });
        let registry = ToolRegistry::new();
        registry.register(echo()).unwrap();
        let tools =
            ToolExecutor::builder(ToolView::of(registry), ToolContext::builder("t").build())
                .authorizer(AllowAll)
                .approver(approver);
        let settings =
            RunSettings { on_stuck: OnStuck::Ask, max_rescues: 3, ..RunSettings::default() };
        let agent = AgentExecutor::with_model(stubborn(), tools).run_settings(settings);
        let (_, report) = read(agent.build().unwrap().start("Go.")).await;
        assert_eq!(report.outcome.cause, Cause::Loop);
        assert_eq!(questions.load(Ordering::Relaxed), asked, "with {consents} times yes");
    }
}
