//! Any events, in any order: nothing breaks, nothing is lost.

use std::sync::Arc;

use convoke_core::event::{Progress, Rescue, VERSION, Wanted};
use convoke_core::policy::RuleSpec;
use convoke_core::{
    AgentPath, CallId, Cause, Effects, Event, EventBody, Kind, Limit, Message, Part, Permission,
    Position, Purpose, Role, RunId, RunSettings, StopReason, TaskId, Timestamp, ToolError,
};
use convoke_journal::export::{html, markdown};
use convoke_journal::timeline::Timeline;
use proptest::prelude::*;
use serde_json::json;

use crate::sample::{millis_of, usage};
use crate::timeline::items;

const KINDS: u8 = 34;

fn body(kind: u8, word: &str, number: u8) -> EventBody {
    if kind < 14 { of_the_run(kind, word, number) } else { of_calls(kind, word, number) }
}

fn of_the_run(kind: u8, word: &str, number: u8) -> EventBody {
    let text = || word.to_owned();
    let message = || Message::text(Role::Assistant, word);
    let used = || usage(number.into(), 0, 1, "0.1");
    match kind {
        0 => EventBody::RunStarted {
            origin: serde_json::Value::Null,
            task: TaskId::new(word),
            model: text(),
            prompt: text(),
            attachments: vec![Part::text(word)],
            history: vec![message()],
            system: Arc::from(word),
            tools: Arc::from([]),
            settings: RunSettings::default(),
        },
        1 => EventBody::UserMessage { message: message() },
        2 => EventBody::RunCancelled { cause: Cause::Interrupted },
        3 => EventBody::RunEnded {
            outcome: Cause::Loop.into(),
            answer: Some(json!(word)),
            usage: used(),
        },
        4 => EventBody::TurnStarted { turn: number.into() },
        5 => EventBody::TurnEnded { turn: number.into() },
        6 => EventBody::ModelRequest {
            model: text(),
            purpose: Purpose::Main,
            notice: Some(text()),
            estimate: 1,
            reserved: None,
        },
        7 => EventBody::ModelDelta { text: text() },
        8 => EventBody::ModelThought { text: text() },
        9 => EventBody::ModelToolCall { tool_name: text() },
        10 => EventBody::ModelResponse {
            purpose: Purpose::Plan,
            message: message(),
            usage: used(),
            stop: StopReason::Length,
            dropped_calls: 2,
        },
        11 => EventBody::ModelFailed {
            status: None,
            purpose: Purpose::Main,
            cause: Cause::Error,
            error: text(),
            message: text(),
            hint: Some(text()),
            partial: Some(text()),
            usage: used(),
        },
        12 => EventBody::ModelRetry {
            attempt: 2,
            delay_ms: millis_of(number.into()),
            reason: text(),
            usage: used(),
        },
        _ => EventBody::Usage(used()),
    }
}

fn of_calls(kind: u8, word: &str, number: u8) -> EventBody {
    let text = || word.to_owned();
    let error = || ToolError::failed(word);
    let content = || vec![Part::text(word)];
    let rules = || vec![RuleSpec::tool(Permission::Allow, word)];
    let used = || usage(number.into(), 0, 1, "0.1");
    match kind {
        14 => EventBody::ToolCallRequested {
            tool_name: text(),
            params: Arc::new(json!({ "path": word })),
        },
        15 => EventBody::ToolCallStarted {
            repeat: convoke_core::Repeat::Pure,
            tool_name: text(),
            description: text(),
            effects: Effects::NONE,
        },
        16 => EventBody::ToolCallProgress {
            tool_name: text(),
            update: Progress { text: Some(text()), fraction: Some(0.5) },
        },
        17 => EventBody::ToolCallCompleted {
            tool_name: text(),
            result: Arc::new(json!(word)),
            content: content(),
            display: None,
            duration_ms: millis_of(1),
            files: Vec::new(),
        },
        18 => EventBody::ToolCallFailed {
            tool_name: text(),
            error: error(),
            content: content(),
            duration_ms: millis_of(1),
            files: Vec::new(),
        },
        19 => EventBody::ToolCallDenied {
            tool_name: text(),
            error: error(),
            content: content(),
            duration_ms: millis_of(1),
        },
        20 => EventBody::PolicyDecision { tool_name: text(), decision: text(), rule: text() },
        21 => EventBody::ApprovalAsked {
            tool_name: text(),
            kind: Kind::Edit,
            description: text(),
            arguments: Arc::new(json!({ "a": word })),
            preview: None,
            reason: text(),
            rules: rules(),
            until: None,
            fingerprint: String::new(),
        },
        22 => EventBody::ApprovalAnswered {
            tool_name: text(),
            approved: number.is_multiple_of(2),
            message: Some(text()),
            by: Some(text()),
            arguments: Some(Arc::new(json!(word))),
            rules: rules(),
        },
        23 => EventBody::AgentSpawned {
            child: run(number),
            name: text(),
            inputs: serde_json::Map::default(),
            background: number.is_multiple_of(2),
            continued: number.is_multiple_of(3),
        },
        24 => EventBody::AgentEnded {
            child: run(number),
            outcome: Cause::Goal.into(),
            usage: used(),
            message: None,
        },
        25 => EventBody::AnswerChecked { value: json!(word), problems: vec![text()] },
        26 => EventBody::Compaction { before: 2, after: 1, kept_from: 0, summary: Some(text()) },
        27 => EventBody::Plan { steps: Vec::new() },
        28 => EventBody::LoopDetected {
            tool_name: text(),
            times: 3,
            rescue: Rescue::Restart,
            message: text(),
        },
        29 => EventBody::BudgetWarning { budget: Limit::Cost, used: f64::NAN, message: text() },
        30 => EventBody::McpServerState { server: text(), state: text(), reason: Some(text()) },
        31 | 32 => of_inquiries(kind, word, number),
        _ => EventBody::Warning { message: text() },
    }
}

fn of_inquiries(kind: u8, word: &str, number: u8) -> EventBody {
    let text = || word.to_owned();
    match kind {
        31 => EventBody::InquiryAsked {
            tool_name: text(),
            who: text(),
            message: text(),
            wanted: Wanted::Visit { url: text() },
            problem: None,
            reason: text(),
            until: None,
            fingerprint: String::new(),
        },
        _ => EventBody::InquiryAnswered {
            tool_name: text(),
            who: text(),
            accepted: number.is_multiple_of(2),
            values: Some(Arc::new(json!(word))),
            message: None,
            by: None,
        },
    }
}

fn run(number: u8) -> RunId {
    RunId::new(format!("r{}", number % 4))
}

fn any_event() -> impl Strategy<Value = Event> {
    let moment = prop_oneof![0..5_000_i64, Just(i64::MIN), Just(i64::MAX)];
    let who = (0..4_u8, prop::option::of(0..4_u8), prop::option::of(0..3_u8));
    (0..KINDS, who, any::<u8>(), moment, 0..40_u64).prop_map(|(kind, who, number, ts, place)| {
        let (of, parent, call) = who;
        let word = format!("word{kind}x{number}");
        let body = body(kind, &word, number % 4);
        let position = if body.is_durable() {
            Position::Durable { seq: place }
        } else {
            Position::Ephemeral { after: place, index: place }
        };
        Event {
            v: VERSION,
            position,
            ts: Timestamp::from_millis(ts),
            run: run(of),
            parent: parent.map(run),
            agent: AgentPath::default(),
            call: call.map(|call| CallId::new(format!("c{call}"))),
            secrets: std::collections::BTreeSet::new(),
            body,
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn nothing_breaks_and_names_are_unique(events in prop::collection::vec(any_event(), 0..60)) {
        let timeline = Timeline::of(&events);
        let mut ids: Vec<&str> =
            timeline.agents.iter().flat_map(|agent| items(agent)).map(|item| item.id.as_str()).collect();
        let all = ids.len();
        ids.sort_unstable();
        ids.dedup();
        prop_assert_eq!(ids.len(), all);
        for item in timeline.agents.iter().flat_map(|agent| items(agent)) {
            prop_assert!(item.span.end() <= timeline.elapsed || !item.span.open);
        }
        let (page, text) = (html(&timeline), markdown(&timeline));
        prop_assert!(events.is_empty() || page.contains("<li class=\""), "no row");
        prop_assert_eq!(text.matches("<details>").count(), text.matches("</details>").count());
        prop_assert_eq!(page.matches("<article").count(), page.matches("</article>").count());
        prop_assert_eq!(page.matches("<div").count(), page.matches("</div>").count());
    }

    #[test]
    fn every_agent_is_shown_once(events in prop::collection::vec(any_event(), 1..60)) {
        let timeline = Timeline::of(&events);
        let page = html(&timeline);
        for (number, agent) in timeline.agents.iter().enumerate() {
            let shown = page.matches(&format!(" id=\"agent-{number}\"")).count();
            prop_assert_eq!(shown, usize::from(number != 0), "{:?}", agent.run);
        }
    }

    #[test]
    fn the_words_of_lasting_events_are_on_the_page(kinds in prop::collection::vec(0..KINDS, 1..30)) {
        let events: Vec<Event> = kinds.iter().enumerate().map(|(at, kind)| {
            let body = body(*kind, &format!("word{at}end"), 9);
            let place = u64::try_from(at).unwrap();
            let position = if body.is_durable() {
                Position::Durable { seq: place + 1 }
            } else {
                Position::Ephemeral { after: place, index: 0 }
            };
            Event {
                v: VERSION,
                position,
                ts: Timestamp::from_millis(i64::try_from(at).unwrap()),
                run: run(0),
                parent: None,
                agent: AgentPath::default(),
                call: Some(CallId::new(format!("c{at}"))),
                secrets: std::collections::BTreeSet::new(),
                body,
            }
        }).collect();
        let timeline = Timeline::of(&events);
        let page = html(&timeline);
        for (at, kind) in kinds.iter().enumerate() {
            // Pieces give way to the whole; some events say nothing in words.
            let wordless = matches!(kind, 2 | 4 | 5 | 7 | 8 | 9 | 13 | 24 | 27);
            // These need an item that is not there, or tell what another one tells better.
            let shown = page.contains(&format!("word{at}end"));
            prop_assert!(shown || wordless, "event {at} of kind {kind} is not shown");
        }
    }
}
