//! Every mode, with everybody who may or may not be there, every kind of tool, and every depth at which it
//! may be called: how a run ends, in time.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use convoke::agent::{AgentDefinition, AgentRegistry, Team};
use convoke::config::{Config, OnAsk};
use convoke::core::{ExitCode, Kind, Mode};
use convoke::model::RequestSnapshot;
use convoke::model::scripted::{ScriptedModel, Turn};
use convoke::prelude::*;
use convoke::tools::{Answer, Approver, FunctionTool, NobodyToAsk, ToolContext, ask_with};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

/// What the documentation says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Rule {
    Runs,
    Asks,
    Never,
}

/// Who is there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum There {
    Nobody,
    NobodyAndItParks,
    SomebodyWhoSaysYes,
    SomebodyWhoSaysNo,
    SomebodyWhoSaysNothing,
}

const EVERYBODY: [There; 5] = [
    There::Nobody,
    There::NobodyAndItParks,
    There::SomebodyWhoSaysYes,
    There::SomebodyWhoSaysNo,
    There::SomebodyWhoSaysNothing,
];

/// The table of the documentation, one row a kind: plan, default, `auto_edit`, full.
fn documented() -> BTreeMap<Kind, [Rule; 4]> {
    use Rule::{Asks, Never, Runs};
    BTreeMap::from([
        (Kind::Read, [Runs, Runs, Runs, Runs]),
        (Kind::Search, [Runs, Runs, Runs, Runs]),
        (Kind::Think, [Runs, Runs, Runs, Runs]),
        (Kind::Agent, [Runs, Runs, Runs, Runs]),
        (Kind::Edit, [Never, Asks, Runs, Runs]),
        (Kind::Move, [Never, Asks, Runs, Runs]),
        (Kind::Delete, [Never, Asks, Asks, Runs]),
        (Kind::Execute, [Never, Asks, Asks, Runs]),
        (Kind::Fetch, [Never, Asks, Asks, Runs]),
        (Kind::Other, [Never, Asks, Asks, Runs]),
    ])
}

const fn expected(rule: Rule, there: There) -> (ExitCode, u32) {
    match (rule, there) {
        (Rule::Runs, _) | (Rule::Asks, There::SomebodyWhoSaysYes) => (ExitCode::Done, 1),
        (Rule::Asks, There::NobodyAndItParks) => (ExitCode::Parked, 0),
        (Rule::Never | Rule::Asks, _) => (ExitCode::Denied, 0),
    }
}

#[derive(Deserialize, JsonSchema)]
struct Nothing {}

/// The agents of a chain: each may call the next.
fn chain(depth: u32) -> Team {
    let registry = AgentRegistry::new();
    for level in 1..=depth {
        let mut definition = AgentDefinition::new(format!("level_{level}"), "Acts.");
        definition.prompt.system_prompt = Some(format!("You are level_{level}."));
        definition.agents = vec![format!("level_{}", level + 1)];
        registry.register(definition).unwrap();
    }
    Team::builder(registry).build()
}

/// Plays all agents of a chain: each calls the next, and the last acts.
fn model(depth: u32) -> ScriptedModel {
    ScriptedModel::from_fn(move |request: &RequestSnapshot| {
        let level =
            request.system.strip_prefix("You are level_").and_then(|rest| rest.split_once('.'));
        let level: u32 = level.and_then(|(level, _)| level.parse().ok()).unwrap_or_default();
        match (request.messages.len() > 1, level) {
            (true, 0) => Turn::text("That was it."),
            (true, _) => Turn::call("complete_task", json!({ "result": "That was it." })),
            (false, level) if level == depth => Turn::call("act", json!({})),
            (false, level) => Turn::call(
                "delegate_to_agent",
                json!({ "agent_name": format!("level_{}", level + 1), "prompt": "Act." }),
            ),
        }
    })
}

async fn ends(mode: Mode, kind: Kind, there: There, depth: u32) -> (ExitCode, u32) {
    let directory = tempfile::tempdir().unwrap();
    let ran = Arc::new(AtomicU32::new(0));
    let counts = Arc::clone(&ran);
    let tool = FunctionTool::new("act", "Acts.", move |_: Nothing, _: ToolContext| {
        counts.fetch_add(1, Ordering::Relaxed);
        std::future::ready(Ok::<_, String>("done"))
    });
    let mut config = Config::default();
    config.tools.enabled = Some(vec!["act".to_owned()]);
    config.policy.approval_timeout = convoke::config::Timeout::from_millis(50);
    if there == There::NobodyAndItParks {
        config.policy.on_ask = OnAsk::Park;
    }
    let runtime = Runtime::builder(directory.path())
        .config(config)
        .mode(mode)
        .tool(tool.kind(kind))
        .build()
        .unwrap();
    let approver: Arc<dyn Approver> = match there {
        There::Nobody | There::NobodyAndItParks => Arc::new(NobodyToAsk),
        There::SomebodyWhoSaysYes => Arc::new(ask_with(async |_| Answer::yes())),
        There::SomebodyWhoSaysNo => Arc::new(ask_with(async |_| Answer::no())),
        There::SomebodyWhoSaysNothing => Arc::new(ask_with(|_| std::future::pending())),
    };
    let agent = runtime.main_agent_with(Arc::new(model(depth)), |tools| tools.approver(approver));
    let run = agent.team(chain(depth)).build().unwrap().start("Act.").finish();
    let report = tokio::time::timeout(Duration::from_secs(20), run).await;
    let report = report.unwrap_or_else(|_| panic!("{mode}, {kind}, {there:?}, {depth} hangs"));
    (report.exit_code(), ran.load(Ordering::Relaxed))
}

/// gemini-cli 4.6 (#18484): no agent gets around `plan`. codex PR #11464, opencode#36868, #41991: where nobody
/// is there, no question of an agent is waited for.
#[tokio::test]
async fn every_cell_ends_as_documented() {
    let documented = documented();
    assert_eq!(documented.len(), Kind::ALL.len(), "every kind has a row");
    let mut cells = 0;
    for (kind, rules) in documented {
        for (mode, rule) in Mode::ALL.iter().zip(rules) {
            for (there, depth) in
                EVERYBODY.into_iter().flat_map(|there| [(there, 0), (there, 1), (there, 2)])
            {
                let ended = ends(*mode, kind, there, depth).await;
                assert_eq!(
                    ended,
                    expected(rule, there),
                    "{mode}, {kind}, {there:?}, {depth} levels down"
                );
                cells += 1;
            }
        }
    }
    assert_eq!(cells, 600);
}
