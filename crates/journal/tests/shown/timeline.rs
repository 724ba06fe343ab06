//! What a timeline knows about a run.

use std::time::Duration;

use convoke_core::{Cause, EventBody, Message, Part, Purpose, Role, Status, ToolError, Usage};
use convoke_journal::timeline::{
    Agent, Call, CallState, GapReason, Item, ItemKind, ModelCall, ModelState, Timeline,
};
use serde_json::json;

use crate::sample::{self, Stream};

/// Returns the items of an agent, those in turns included.
pub(crate) fn items<'t, 'e>(agent: &'t Agent<'e>) -> Vec<&'t Item<'e>> {
    let inside = |item: &'t Item<'e>| match &item.kind {
        ItemKind::Turn(turn) => turn.items.iter().collect(),
        _ => Vec::new(),
    };
    agent.items.iter().flat_map(|item| std::iter::once(item).chain(inside(item))).collect()
}

fn calls<'t, 'e>(agent: &'t Agent<'e>) -> Vec<(&'t Item<'e>, &'t Call<'e>)> {
    let call = |item: &'t Item<'e>| match &item.kind {
        ItemKind::Call(call) => Some((item, call)),
        _ => None,
    };
    items(agent).into_iter().filter_map(call).collect()
}

fn models<'t, 'e>(agent: &'t Agent<'e>) -> Vec<(&'t Item<'e>, &'t ModelCall<'e>)> {
    let model = |item: &'t Item<'e>| match &item.kind {
        ItemKind::Model(model) => Some((item, model)),
        _ => None,
    };
    items(agent).into_iter().filter_map(model).collect()
}

#[test]
fn a_run_is_told_from_its_events() {
    let events = sample::fixed();
    let timeline = Timeline::of(&events);
    let main = timeline.main().unwrap();
    assert_eq!((main.model, main.turns, main.calls), ("example/large", 5, 6));
    assert_eq!(main.end.unwrap().outcome.status, Status::Completed);
    assert!(main.end.unwrap().is_said);
    assert_eq!(timeline.elapsed, Duration::from_millis(24_498));
    assert!(timeline.gaps.is_empty() && !main.span.open);
    assert_eq!(timeline.usage().input_tokens, 28_120);
    // What the model calls of all agents used is what the end says.
    let sum: Usage = timeline.agents.iter().map(|agent| agent.usage).sum();
    assert_eq!(sum.output_tokens, 856);
    let ItemKind::Turn(turn) = &main.items[2].kind else { panic!("{:?}", main.items[2]) };
    assert_eq!((turn.number, turn.usage.input_tokens, turn.items.len()), (1, 4_180, 4));
}

#[test]
fn calls_of_one_turn_have_their_own_times() {
    let events = sample::fixed();
    let timeline = Timeline::of(&events);
    let main = timeline.main().unwrap();
    let calls = calls(main);
    let (item, failed) = calls[2];
    assert_eq!((failed.tool, item.id.as_str()), ("run_command", "e12"));
    assert!(matches!(failed.state, CallState::Failed(error) if error.message.contains("101")));
    assert_eq!(failed.progress, "running 3 tests\n");
    assert_eq!(calls[0].0.span.start, item.span.start);
    assert!(calls[0].0.span.duration < item.span.duration);
    let edited = calls[3].1;
    let approval = edited.approval.as_ref().unwrap();
    assert_eq!(
        (approval.approved, approval.words),
        (Some(true), Some("Yes, and say why in a comment."))
    );
    assert_eq!(approval.span.duration, Duration::from_millis(4_200));
    let checks = edited.began.unwrap().saturating_sub(calls[3].0.span.start);
    assert_eq!(checks, Duration::from_millis(4_201));
    assert!(edited.display.unwrap().text.contains("trim_start_matches"));
    assert!(matches!(calls[5].1.state, CallState::Denied(_)));
    assert_eq!(calls[5].1.decision, Some(("deny", "rule 4 of the project")));
}

#[test]
fn a_model_call_keeps_its_attempts_and_its_thoughts() {
    let events = sample::continued();
    let timeline = Timeline::of(&events);
    let models = models(timeline.main().unwrap());
    let (item, first) = models[0];
    assert_eq!(first.retries[0].reason, "429 Too Many Requests");
    assert_eq!(item.span.duration, Duration::from_millis(4_020));
    // The whole message takes the place of its pieces.
    assert!(
        first.words.starts_with("I'll look at the parser") && first.thoughts.contains("Perhaps")
    );
    let purposes: Vec<Purpose> = models.iter().map(|(_, model)| model.purpose).collect();
    assert!(purposes.contains(&Purpose::Compact) && purposes.contains(&Purpose::Reflect));
    let last = models.last().unwrap().1;
    assert!(matches!(&last.state, ModelState::Failed(failure) if failure.hint.is_some()));
    assert_eq!(last.words, "I will not");
}

#[test]
fn an_agent_is_inside_the_call_that_started_it() {
    let events = sample::fixed();
    let timeline = Timeline::of(&events);
    assert_eq!((timeline.agents.len(), timeline.roots.len()), (2, 1));
    let call = calls(timeline.main().unwrap())[4].1;
    let child = timeline.agent(call.agents[0]).unwrap();
    assert_eq!((child.name, child.depth, child.turns), ("investigator", 1, 2));
    assert_eq!(child.path.as_str(), "main/investigator");
    assert_eq!(child.reported.unwrap().usage.output_tokens, 92);
    assert_eq!(child.end.unwrap().answer.unwrap()["result"].as_str().unwrap().len(), 49);
}

#[test]
fn a_message_after_the_end_goes_on_with_the_run() {
    let events = sample::continued();
    let timeline = Timeline::of(&events);
    let main = timeline.main().unwrap();
    assert_eq!(main.end.unwrap().outcome.cause, Cause::ModelUnavailable);
    let ends = items(main).iter().filter(|item| matches!(item.kind, ItemKind::Ended(_))).count();
    assert_eq!(ends, 2);
    assert_eq!(timeline.gaps.len(), 1);
    assert_eq!(timeline.gaps[0].reason, GapReason::Idle);
    assert_eq!(timeline.gaps[0].span.duration, Duration::from_secs(95));
    assert_eq!(timeline.working() + Duration::from_secs(95), timeline.elapsed);
    // Until the run has ended again, it is not over.
    let open = Timeline::of(&events[..events.len() - 1]);
    assert!(open.main().unwrap().end.is_none() && open.main().unwrap().span.open);
}

#[test]
fn every_beginning_of_a_run_is_a_timeline() {
    let events = sample::continued();
    for end in 0..=events.len() {
        let timeline = Timeline::of(&events[..end]);
        for agent in &timeline.agents {
            let open = items(agent).into_iter().filter(|item| item.span.open);
            for item in open {
                assert_eq!(item.span.end(), timeline.elapsed, "{end}: {item:?}");
            }
            assert!(agent.end.is_none() || items(agent).iter().all(|item| !item.span.open));
        }
    }
}

#[test]
fn what_a_killed_run_was_doing_stays_open() {
    let mut stream = Stream::new();
    stream.start("Wait.", &[]).turn(1).ask(Purpose::Main);
    stream.wait(500).put(EventBody::ModelDelta { text: "I wa".into() });
    let events = stream.events.clone();
    let timeline = Timeline::of(&events);
    let (item, model) = models(timeline.main().unwrap())[0];
    assert_eq!((model.words.as_str(), &model.state), ("I wa", &ModelState::Open));
    assert!(item.span.open && item.span.duration == Duration::from_millis(500));
    // Another process asks again: the first answer is lost.
    stream.wait(60_000).ask(Purpose::Main).wait(100);
    stream.answer(Purpose::Main, vec![Part::text("I waited.")], Usage::default());
    let timeline = Timeline::of(&stream.events);
    let models = models(timeline.main().unwrap());
    assert_eq!(models[0].1.state, ModelState::Interrupted);
    assert_eq!(models[0].0.span.duration, Duration::from_millis(500));
    assert_eq!(models[1].1.words, "I waited.");
}

#[test]
fn calls_that_were_never_answered_are_interrupted_by_the_end() {
    let mut stream = Stream::new();
    stream.start("Wait.", &[]).turn(1).request("c", "sleep", json!({}));
    stream.wait(10).end(Cause::Terminated.into(), None, Usage::default());
    let timeline = Timeline::of(&stream.events);
    let (item, call) = calls(timeline.main().unwrap())[0];
    assert_eq!(call.state, CallState::Interrupted);
    assert!(!item.span.open && item.span.duration == Duration::from_millis(10));
}

#[test]
fn an_id_that_is_used_again_is_another_call() {
    let mut stream = Stream::new();
    stream.start("Go.", &[]);
    stream.request("c", "a", json!(1)).complete("c", "a", "one", None, 1);
    stream.request("c", "b", json!(2)).complete("c", "b", "two", None, 1);
    stream.fail("c", "b", ToolError::failed("late"), "", 1);
    let timeline = Timeline::of(&stream.events);
    let main = timeline.main().unwrap();
    assert_eq!(calls(main).iter().map(|(_, call)| call.tool).collect::<Vec<_>>(), ["a", "b"]);
    let late = items(main).into_iter().find(|item| matches!(item.kind, ItemKind::Plain { .. }));
    assert!(
        matches!(&late.unwrap().kind, ItemKind::Plain { kind, .. } if kind == "tool_call_failed")
    );
}

#[test]
fn agents_that_nobody_announced_are_shown_too() {
    let mut stream = Stream::new();
    stream.start("Go.", &[]);
    stream.enter("child", "helper").start("Help.", &[]).leave();
    let mut events = stream.events.clone();
    let timeline = Timeline::of(&events);
    assert!(matches!(timeline.main().unwrap().items[1].kind, ItemKind::Agent(_)));
    // Without its parent it stands for itself.
    events.remove(0);
    let timeline = Timeline::of(&events);
    assert_eq!((timeline.roots.len(), timeline.main().unwrap().name), (1, "helper"));
}

#[test]
fn a_message_keeps_what_came_with_it() {
    let mut stream = Stream::new();
    let picture = Part::Media { mime: "image/png".into(), data: "AAAA".into() };
    let message = Message { role: Role::User, parts: vec![Part::text("See?"), picture] };
    stream.start("Go.", &[]).put(EventBody::UserMessage { message });
    let timeline = Timeline::of(&stream.events);
    let ItemKind::Asked { text, attachments, .. } = &timeline.main().unwrap().items[1].kind else {
        panic!("not asked");
    };
    assert_eq!((text.as_str(), attachments.len()), ("See?", 1));
}

/// Such an event was in no item: it was taken for the report on the agent that sent it.
#[test]
fn an_agent_that_reports_its_own_end_is_shown() {
    let mut stream = Stream::new();
    let (outcome, usage) = (Cause::Goal.into(), Usage::default());
    stream.put(EventBody::AgentEnded {
        child: "r-20260301-7f3a".into(),
        outcome,
        usage,
        message: None,
    });
    let timeline = Timeline::of(&stream.events);
    assert!(matches!(timeline.main().unwrap().items[0].kind, ItemKind::Plain { .. }));
}

#[test]
fn there_may_be_no_events() {
    let timeline = Timeline::of(&[]);
    assert_eq!(timeline, Timeline::default());
    assert!(timeline.main().is_none() && timeline.usage().is_empty());
}

#[test]
fn timeline_with_events_behind_the_end_keeps_the_end() {
    let mut events = sample::fixed();
    let last = events.last().cloned().unwrap();
    assert!(matches!(last.body, EventBody::RunEnded { .. }));
    let (server, state) = ("files".to_owned(), "starting".to_owned());
    let body = EventBody::McpServerState { server, state, reason: None };
    events.push(convoke_core::Event { body, ..last });
    let timeline = Timeline::of(&events);
    assert_eq!(timeline.main().unwrap().end.unwrap().outcome.status, Status::Completed);
    assert!(timeline.gaps.is_empty());
}
