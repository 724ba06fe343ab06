//! An agent by itself: the same as below a main agent, and no more than that one could do.

use convoke_agent::definition::ToolConfig;
use convoke_agent::registry::Registered;
use convoke_agent::{AgentReport, DirectError, new_run_id};
use convoke_core::{Budget, Cause, RunId, Strategy, Timestamp};
use convoke_model::scripted::Turn;
use serde_json::{Map, Value, json};

use crate::family::{Cast, agent, ask, done, team};
use crate::support::with;

fn inputs(text: &str) -> Map<String, Value> {
    Map::from_iter([("task".to_owned(), text.into())])
}

fn id() -> RunId {
    new_run_id(Timestamp::default())
}

#[tokio::test(start_paused = true)]
async fn it_has_its_own_tools_texts_and_limits_cut_to_what_there_is() {
    let mut definition = agent("solo");
    definition.tools = ToolConfig::only(["echo"]);
    definition.prompt.query = Some("Do this: ${task}".to_owned());
    definition.run.max_turns = Some(99);
    definition.run.max_tokens = Some(7_000);
    let model = Cast::new()
        .says("solo", [Turn::call("echo", json!({ "word": "hi" })), done("it is done")])
        .model();
    let main = with(&model)
        .strategy(Strategy::Planned)
        .budget(Budget { turns: 5, ..Budget::default() })
        .team(team([]).build());
    let solo = Registered::of(definition).unwrap();
    let (builder, task) = main.acting_as(&solo, &inputs("count"), &id()).await.unwrap();
    let agent = builder.build().unwrap();
    let report = agent.start(task).finish().await;
    let report = AgentReport::<String>::from(report);
    assert_eq!((report.output.as_deref(), report.cause()), (Some("it is done"), Cause::Goal));
    let requests = model.requests();
    assert_eq!(requests.len(), 2, "it makes no plan");
    let tools: Vec<&str> = requests[0].tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(tools, ["echo", "complete_task"]);
    assert_eq!(requests[0].messages[0].words(), "Do this: count");
    let settings = solo.budget_below(&Budget { turns: 5, ..Budget::default() });
    assert_eq!((settings.turns, settings.tokens), (5, Some(7_000)));
}

#[tokio::test(start_paused = true)]
async fn what_it_cannot_have_is_told_before_it_starts() {
    let model = Cast::new().model();
    let start = async |name: &str, tools: &[&str], given: Map<String, Value>| {
        let mut definition = agent(name);
        definition.tools = ToolConfig::only(tools.iter().copied());
        let main = with(&model).team(team([]).build());
        let registered = Registered::of(definition).unwrap();
        main.acting_as(&registered, &given, &id()).await.map(|_| ()).unwrap_err()
    };
    let error = start("solo", &["eccho"], inputs("x")).await;
    assert!(matches!(error, DirectError::Unusable { .. }), "{error}");
    assert!(
        error.to_string().contains("no tool is named `eccho`; did you mean `echo`?"),
        "{error}"
    );
    let error = start("solo", &["echo"], Map::new()).await;
    assert!(matches!(error, DirectError::Inputs(_)), "{error}");
    assert!(error.to_string().contains("task"), "{error}");
    assert_eq!(model.requests().len(), 0);
}

/// A policy that nobody could keep was left out where there was no team.
#[tokio::test(start_paused = true)]
async fn without_anybody_who_keeps_its_policy_it_is_not_started() {
    let model = Cast::new().model();
    let mut careful = agent("careful");
    careful.policy.mode = Some(convoke_core::Mode::Plan);
    let mut apart = agent("apart");
    apart.run.workspace = Some(convoke_core::WorkspaceKind::Worktree);
    for (definition, why) in [
        (careful, "policies of agents are not supported here"),
        (apart, "there are no workspaces here"),
    ] {
        let solo = Registered::of(definition).unwrap();
        let made = with(&model).acting_as(&solo, &inputs("x"), &id()).await;
        let error = made.map(|_| ()).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn it_calls_the_agents_it_was_granted() {
    let mut solo = agent("solo");
    solo.agents = vec!["helper".to_owned()];
    let model = Cast::new()
        .says("solo", [ask("other", "x"), ask("helper", "x"), done("both")])
        .says("helper", [done("helped")])
        .model();
    let family = team([agent("helper"), agent("other")]).build();
    let solo = Registered::of(solo).unwrap();
    let made = with(&model).team(family).acting_as(&solo, &inputs("x"), &id()).await;
    let (builder, task) = made.unwrap();
    let report = builder.build().unwrap().start(task).finish().await;
    assert_eq!(report.text().as_deref(), Some("both"));
    let told: Vec<String> =
        model.requests()[1].messages.iter().map(|one| format!("{one:?}")).collect();
    assert!(told.concat().contains("there is no agent `other` (there are: helper)"), "{told:?}");
}

#[tokio::test(start_paused = true)]
async fn a_result_of_another_shape_is_told_and_not_lost() {
    let model = Cast::new().says("solo", [done("many")]).model();
    let solo = Registered::of(agent("solo")).unwrap();
    let made = with(&model).acting_as(&solo, &inputs("count"), &id()).await;
    let (builder, task) = made.unwrap();
    let report = AgentReport::<u32>::from(builder.build().unwrap().start(task).finish().await);
    assert_eq!((report.output, report.cause()), (None, Cause::Goal));
    assert!(report.unread.unwrap().contains("invalid type: string"));
    assert_eq!(report.report.answer, Some("many".into()));
}
