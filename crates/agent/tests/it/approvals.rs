//! Questions to people: answered at once, from another process, after a restart, or never.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use convoke_agent::{AgentBuilder, AgentExecutor, Letter, RunReport, replay};
use convoke_core::policy::RuleSpec;
use convoke_core::{CallId, Cause, EventBody, ExitCode, Permission, RunId, Status};
use convoke_model::scripted::{ScriptedModel, Turn};
use convoke_tool::{Answer, Approver, NobodyToAsk, SystemClock, ask_with};
use serde_json::json;

use crate::support::read;
use crate::world::World;

impl World {
    fn agent(&self, turns: Vec<Turn>, approver: impl Approver + 'static) -> AgentExecutor {
        let model = Arc::new(ScriptedModel::new(turns));
        self.builder(&model, approver).build().unwrap()
    }

    fn builder(
        &self,
        model: &Arc<ScriptedModel>,
        approver: impl Approver + 'static,
    ) -> AgentBuilder {
        AgentExecutor::with_model(model.clone(), self.tools(approver))
            .keeper(Arc::new(self.journals()))
    }

    /// Leaves an answer, as another process would.
    fn leave(&self, letter: Letter) {
        let now = letter.at;
        let inbox = self.journals().store().inbox(&RunId::new("r")).unwrap();
        inbox.put(&letter.into_item(), now).unwrap();
    }

    async fn go_on(&self, turns: Vec<Turn>, approver: impl Approver + 'static) -> RunReport {
        let reopened = self.journals().reopen(&RunId::new("r")).unwrap();
        let agent = self.agent(turns, approver);
        read(agent.resume(reopened.paused, None).unwrap()).await.1
    }

    /// Everything that was decided is decided again from the journal.
    fn check(&self) {
        let id = RunId::new("r");
        let events = self.journals().store().read(&id).unwrap().events;
        replay(&id, &events).unwrap();
    }
}

fn hit_and_look() -> Turn {
    Turn::call("echo", json!({ "word": "y" })).and_call("hit", json!({ "word": "x" }))
}

fn now() -> convoke_core::Timestamp {
    use convoke_tool::Clock;
    SystemClock.now()
}

/// Starts a run that parks, and returns the call that waits, with what stands for what was shown.
async fn parked(world: &World) -> (CallId, String) {
    let agent = world.agent(vec![hit_and_look()], NobodyToAsk);
    let (events, report) = read(agent.start_as(RunId::new("r"), "Go.")).await;
    assert_eq!(
        (report.outcome.status, report.outcome.cause, report.exit_code()),
        (Status::Parked, Cause::AwaitsApproval, ExitCode::Parked)
    );
    assert_eq!(report.outcome.message.as_deref(), Some("a call waits for an approval"));
    assert_eq!(world.hits(), 0);
    let echoed = |body: &EventBody| matches!(body, EventBody::ToolCallCompleted { tool_name, .. } if tool_name == "echo");
    assert!(events.iter().any(|event| echoed(&event.body)), "what can be done is done");
    let asked = events.iter().find_map(|event| match &event.body {
        EventBody::ApprovalAsked { fingerprint, .. } => {
            Some((event.call.clone().unwrap(), fingerprint.clone()))
        }
        _ => None,
    });
    asked.unwrap()
}

#[tokio::test]
async fn a_parked_run_goes_on_with_an_answer_from_another_process() {
    for (yes, hits) in [(true, 1), (false, 0)] {
        let world = World::new();
        let (call, shown) = parked(&world).await;
        let letter = if yes {
            Letter::yes(RunId::new("r"), call, shown, now())
        } else {
            Letter::no(RunId::new("r"), call, shown, now())
        };
        world.leave(letter);
        let report = world.go_on(vec![Turn::text("done")], NobodyToAsk).await;
        assert_eq!((report.text().as_deref(), world.hits()), (Some("done"), hits));
        world.check();
    }
}

#[tokio::test]
async fn a_parked_run_that_is_taken_up_without_an_answer_asks_again() {
    let world = World::new();
    parked(&world).await;
    let report = world.go_on(vec![], NobodyToAsk).await;
    assert_eq!(report.outcome.cause, Cause::AwaitsApproval, "nobody was there, again");
    let report = world.go_on(vec![Turn::text("done")], ask_with(async |_| Answer::yes())).await;
    assert_eq!((report.text().as_deref(), world.hits()), (Some("done"), 1));
    world.check();
}

#[tokio::test]
async fn an_answer_that_is_older_than_the_question_does_not_count() {
    let world = World::new();
    let agent = world.agent(vec![Turn::text("first")], NobodyToAsk);
    read(agent.start_as(RunId::new("r"), "Go.")).await;
    let before = convoke_core::Timestamp::from_millis(1);
    world.leave(Letter::yes(RunId::new("r"), CallId::new("call_1"), String::new(), before));
    let reopened = world.journals().reopen(&RunId::new("r")).unwrap();
    let agent = world.agent(vec![Turn::call("hit", json!({ "word": "x" }))], NobodyToAsk);
    let run = agent.resume(reopened.paused, Some("More.".into())).unwrap();
    let (events, report) = read(run).await;
    assert!(events.iter().any(|event| event.call == Some(CallId::new("call_1"))));
    assert_eq!((report.outcome.cause, world.hits()), (Cause::AwaitsApproval, 0));
}

#[tokio::test]
async fn an_answer_from_elsewhere_ends_the_wait_of_whoever_is_asked_here() {
    let world = Arc::new(World::new());
    let other = Arc::clone(&world);
    // The person at the terminal never answers; somebody else does.
    let approver = ask_with(move |question| {
        other.leave(Letter::yes(RunId::new("r"), question.call, question.fingerprint, now()));
        std::future::pending()
    });
    let agent = world.agent(vec![hit_and_look(), Turn::text("done")], approver);
    let (events, report) = read(agent.start_as(RunId::new("r"), "Go.")).await;
    assert_eq!((report.text().as_deref(), world.hits()), (Some("done"), 1));
    let inbox = world.journals().store().inbox(&RunId::new("r")).unwrap();
    assert!(inbox.waiting().unwrap().items.is_empty(), "an answer is used once");
    assert!(events.iter().any(|event| matches!(event.body, EventBody::ApprovalAnswered { .. })));
    world.check();
}

#[tokio::test]
async fn what_was_allowed_for_always_is_remembered_when_the_run_is_taken_up() {
    let world = World::new();
    let (call, shown) = parked(&world).await;
    let rules = vec![RuleSpec::tool(Permission::Allow, "hit")];
    let mut letter = Letter::yes(RunId::new("r"), call, shown, now());
    letter.rules.clone_from(&rules);
    letter.arguments = Some(json!({ "word": "softly" }));
    letter.by = Some("somebody".into());
    world.leave(letter);
    let model = Arc::new(ScriptedModel::new([hit_and_look(), Turn::text("done")]));
    let agent = world.builder(&model, NobodyToAsk).build().unwrap();
    let reopened = world.journals().reopen(&RunId::new("r")).unwrap();
    let report = agent.resume(reopened.paused, None).unwrap().finish().await;
    assert_eq!((report.text().as_deref(), world.hits()), (Some("done"), 2));
    let told = format!("{:?}", model.requests());
    assert!(told.contains("hit softly") && told.contains("changed the arguments"), "{told}");

    let reopened = world.journals().reopen(&RunId::new("r")).unwrap();
    let agent = world.agent(vec![hit_and_look(), Turn::text("done again")], NobodyToAsk);
    let run = agent.resume(reopened.paused, Some("Once more.".into())).unwrap();
    let (_, report) = read(run).await;
    assert_eq!((report.text().as_deref(), world.hits()), (Some("done again"), 3));
    world.check();
}

#[tokio::test]
async fn a_no_that_was_left_after_a_yes_counts() {
    for yes_first in [true, false] {
        let world = World::new();
        let (call, shown) = parked(&world).await;
        let yes = Letter::yes(RunId::new("r"), call.clone(), shown.clone(), now());
        let no = Letter::no(RunId::new("r"), call, shown, now());
        let letters = if yes_first { [yes, no] } else { [no, yes] };
        for letter in letters {
            world.leave(letter);
        }
        let report = world.go_on(vec![Turn::text("done")], NobodyToAsk).await;
        assert_eq!((report.text().as_deref(), world.hits()), (Some("done"), 0));
    }
}

#[tokio::test]
async fn an_answer_to_something_else_than_was_shown_does_not_count() {
    let world = World::new();
    let (call, _) = parked(&world).await;
    world.leave(Letter::yes(RunId::new("r"), call, "something else".to_owned(), now()));
    let report = world.go_on(vec![], NobodyToAsk).await;
    assert_eq!((report.outcome.cause, world.hits()), (Cause::AwaitsApproval, 0));
}

#[tokio::test]
async fn a_yes_for_always_answers_the_questions_that_are_open() {
    let world = World::new();
    let asked = AtomicU32::new(0);
    let approver = ask_with(move |_| {
        // The first one is answered; the others would wait forever.
        let first = asked.fetch_add(1, Ordering::Relaxed) == 0;
        async move {
            if !first {
                std::future::pending::<()>().await;
            }
            Answer::always(vec![RuleSpec::tool(Permission::Allow, "hit")])
        }
    });
    let hit = |turn: Turn| turn.and_call("hit", json!({ "word": "x" }));
    let turn = hit(hit(Turn::call("hit", json!({ "word": "x" }))));
    let agent = world.agent(vec![turn, Turn::text("done")], approver);
    let (_, report) = read(agent.start_as(RunId::new("r"), "Go.")).await;
    assert_eq!((report.text().as_deref(), world.hits()), (Some("done"), 3));
    world.check();
}

#[tokio::test]
async fn what_comes_after_a_call_that_waits_waits_with_it() {
    let world = World::new();
    let turn = Turn::call("hit", json!({ "word": "x" })).and_call("echo", json!({ "word": "y" }));
    let agent = world.agent(vec![turn], NobodyToAsk);
    let (events, report) = read(agent.start_as(RunId::new("r"), "Go.")).await;
    assert_eq!(report.outcome.cause, Cause::AwaitsApproval);
    let begun = |event: &EventBody| matches!(event, EventBody::ToolCallStarted { .. });
    assert!(
        !events.iter().any(|event| begun(&event.body)),
        "a program may change what is looked at"
    );
    let report = world.go_on(vec![Turn::text("done")], ask_with(async |_| Answer::yes())).await;
    assert_eq!((report.text().as_deref(), world.hits()), (Some("done"), 1));
    world.check();
}
