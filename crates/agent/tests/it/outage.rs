//! An outage takes a whole tree: what becomes of it when the model is back.

use convoke_agent::{AgentDefinition, NotResumable, Task, replay};
use convoke_core::{Cause, Message, RunId};
use convoke_model::scripted::Turn;
use convoke_model::{ModelError, ModelErrorKind};
use serde_json::json;

use crate::family::{
    Cast, agent, answers, ask, asked, done, in_background, lost_after, main_with, task,
};
use crate::support::{durable, read};

fn gone() -> Turn {
    Turn::error(ModelError::new(ModelErrorKind::Server, "fake", "it is down"))
}

fn nap(seconds: u64) -> Turn {
    Turn::call("nap", json!({ "millis": seconds * 1_000 }))
}

/// An agent that calls these.
fn boss(agents: &[&str]) -> AgentDefinition {
    let mut boss = agent("boss");
    boss.agents = agents.iter().map(ToString::to_string).collect();
    boss
}

/// An outage takes a whole tree. Who takes the run up when the model is back goes on everywhere; who has something else
/// to do hears what was not done.
#[tokio::test(start_paused = true)]
async fn agents_that_found_no_model_go_on_with_a_run_that_found_none() {
    let boss = boss(&["a"]);
    for more in [None, Some(Task::new("Never mind."))] {
        let model = Cast::new()
            .says("main", [ask("boss", "x"), gone(), Turn::text("ok")])
            .says("boss", [ask("a", "y"), gone(), done("boss is done")])
            .says("a", [Turn::call("echo", json!({ "word": "x" })), gone(), done("a is done")])
            .model();
        let main = main_with(&model, [boss.clone(), agent("a")]).build().unwrap();
        let (events, report) = read(main.start_as(RunId::new("r"), "go")).await;
        assert_eq!(report.outcome.cause, Cause::ModelUnavailable);
        let kept = durable(&events);
        let goes_on = more.is_none();
        let run = main.resume(lost_after(&kept, kept.len()), more).unwrap();
        let (events, report) = read(run).await;
        assert_eq!(report.text().as_deref(), Some("ok"), "{:?}", report.outcome);
        let told = answers(&events, "main");
        assert_eq!(told.len(), usize::from(goes_on), "{told:?}");
        assert!(told.iter().all(|answer| answer.starts_with("boss is done")), "{told:?}");
        assert_eq!(answers(&events, "main/boss/a"), Vec::<String>::new(), "nothing is done twice");
        let since: &[&str] = if goes_on { &["a", "boss", "main"] } else { &["main"] };
        assert_eq!(asked(&model)[6..], *since);
        let all = [kept, durable(&events)].concat();
        assert_eq!(replay(&RunId::new("r"), &all).err().map(|error| error.to_string()), None);
    }
}

/// That holds for those in the background, too. The model was away when it was told of their ends, so nobody has heard
/// that; nor of one that was stopped since its caller found no model.
#[tokio::test(start_paused = true)]
async fn agents_in_the_background_go_on_with_a_run_that_found_no_model() {
    for more in [None, Some(Task::new("Never mind."))] {
        let calls = Turn::call("delegate_to_agent", in_background("a", "x"))
            .and_call("delegate_to_agent", in_background("slow", "y"));
        let model = Cast::new()
            .says("main", [calls, Turn::text("I wait."), gone(), Turn::text("I still wait.")])
            .says("main", [Turn::text("one is done"), Turn::text("both are done")])
            .says("a", [nap(1), gone(), nap(1), done("a is done")])
            .says("slow", [nap(5), nap(9), done("slow is done")])
            .model();
        let main = main_with(&model, [agent("a"), agent("slow")]).build().unwrap();
        let (events, report) = read(main.start_as(RunId::new("r"), "go")).await;
        assert_eq!(report.outcome.cause, Cause::ModelUnavailable);
        let kept = durable(&events);
        let before = model.requests().len();
        let goes_on = more.is_none();
        let run = main.resume(lost_after(&kept, kept.len()), more).unwrap();
        let (events, report) = read(run).await;
        let last = if goes_on { "both are done" } else { "I still wait." };
        assert_eq!(report.text().as_deref(), Some(last), "{:?}", report.outcome);
        let mut since = asked(&model)[before..].to_vec();
        since.sort();
        let expected: &[&str] =
            if goes_on { &["a", "a", "main", "main", "main", "slow", "slow"] } else { &["main"] };
        assert_eq!(since, expected);
        let requests = model.requests();
        let heard: Vec<String> =
            requests[requests.len() - 1].messages.iter().map(Message::words).collect();
        let heard = heard.join("\n");
        assert_eq!(heard.contains("did not complete its task"), !goes_on, "{heard}");
        assert_eq!(
            heard.contains("a is done") && heard.contains("slow is done"),
            goes_on,
            "{heard}"
        );
        let all = [kept, durable(&events)].concat();
        assert_eq!(replay(&RunId::new("r"), &all).err().map(|error| error.to_string()), None);
    }
}

/// What an agent did before an outage is not given up because its file is gone since then.
#[tokio::test(start_paused = true)]
async fn a_run_that_found_no_model_is_not_taken_up_without_an_agent_that_is_gone() {
    for background in [false, true] {
        let mut call = task("boss", "x");
        call["background"] = background.into();
        let call = Turn::call("delegate_to_agent", call);
        let says =
            if background { vec![call, Turn::text("I wait."), gone()] } else { vec![call, gone()] };
        let model = Cast::new()
            .says("main", says)
            .says("boss", [ask("a", "y"), gone()])
            .says("a", [nap(1), gone()])
            .model();
        let main = main_with(&model, [boss(&["a"]), agent("a")]).build().unwrap();
        let (events, report) = read(main.start_as(RunId::new("r"), "go")).await;
        assert_eq!(report.outcome.cause, Cause::ModelUnavailable);
        let kept = durable(&events);
        for (team, absent, said) in [
            (vec![agent("a")], "boss", "there is no agent of that name"),
            (vec![boss(&["a"])], "a", "there is no agent of that name"),
            (vec![boss(&[]), agent("a")], "a", "`boss`, which called it, may not call it any more"),
        ] {
            let model = Cast::new().says("main", [Turn::text("ok")]).model();
            let main = main_with(&model, team).build().unwrap();
            let refused = main.resume(lost_after(&kept, kept.len()), None).unwrap_err();
            let NotResumable::Absent { agent, why, .. } = &refused else { panic!("{refused}") };
            assert_eq!(agent, absent, "{refused}");
            assert!(why.starts_with(said), "{why}");
            assert_eq!(model.requests().len(), 0);
            let with_more = main.resume(lost_after(&kept, kept.len()), Some(Task::new("go on")));
            let (_, report) = read(with_more.unwrap()).await;
            assert_eq!(report.text().as_deref(), Some("ok"), "{:?}", report.outcome);
        }
    }
}
