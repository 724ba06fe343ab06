//! MCP servers in a run: real processes, whose tools come late, ask people, and are judged like any.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use convoke::config::{Config, Sources};
use convoke::core::event::Wanted;
use convoke::core::{Cause, Event, EventBody};
use convoke::journal::Store;
use convoke::prelude::*;
use convoke::tools::{Answer, Question, ask_with};
use convoke::{McpPlaces, Programs, RuntimeBuilder};
use convoke_testkit::skip;

struct Scene {
    _directory: tempfile::TempDir,
    root: PathBuf,
}

impl Scene {
    fn new() -> Option<Self> {
        let python = std::process::Command::new("python3").arg("--version").output();
        if !python.is_ok_and(|ran| ran.status.success()) {
            skip("python3", "there is none, and the server is written in it");
            return None;
        }
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("home/project")).unwrap();
        fs::write(root.join("server.py"), include_str!("server.py")).unwrap();
        Some(Self { _directory: directory, root })
    }

    /// Names a server in a configuration.
    fn server(&self, more: &str) -> String {
        let script = self.root.join("server.py").display().to_string();
        format!("{{name: calc, command: python3, args: ['{script}'{more}]}}")
    }

    fn config(&self, text: &str) -> Config {
        let file = self.root.join("user.yml");
        fs::write(&file, text).unwrap();
        let mut sources = Sources::new(self.root.join("home/project"));
        sources.user_file = Some(file);
        sources.project_directory = None;
        convoke::config::load(&sources).unwrap().config
    }

    fn builder(&self, config: &str) -> RuntimeBuilder {
        let home = self.root.join("home");
        let variables = [
            ("PATH".to_owned(), std::env::var("PATH").unwrap()),
            ("HOME".to_owned(), home.display().to_string()),
        ];
        let mut places = McpPlaces::default();
        places.cache = Some(self.root.join("cache"));
        Runtime::builder(home.join("project"))
            .config(self.config(config))
            .home(Some(home))
            .environment(BTreeMap::from(variables))
            .store(Some(Store::at(self.root.join("state"))))
            .mcp(places)
    }
}

async fn run(
    runtime: &Runtime,
    model: &Arc<ScriptedModel>,
    answer: Answer,
) -> (Vec<Arc<Event>>, RunReport) {
    let answer = move |_: Question| std::future::ready(answer.clone());
    let agent = runtime.main_agent_with(model.clone(), |tools| tools.approver(ask_with(answer)));
    let mut run = agent.build().unwrap().start("Go.");
    let mut events = Vec::new();
    while let Some(event) = run.next().await {
        events.push(event);
    }
    (events, run.report().unwrap().clone())
}

fn told(model: &ScriptedModel, request: usize) -> Vec<String> {
    model.requests().remove(request).tools.iter().map(|tool| tool.name.clone()).collect()
}

/// The last answer that the model got.
fn last_answer(model: &ScriptedModel) -> String {
    let requests = model.requests();
    let last = requests.last().unwrap().messages.last().unwrap().clone();
    format!("{:?}", last.parts)
}

fn add() -> Turn {
    Turn::call("use_tool", json!({ "name": "mcp__calc__add", "args": { "a": 2, "b": 3 } }))
}

#[tokio::test]
async fn tools_of_a_server_come_late_the_first_time_and_are_known_the_second() {
    let Some(scene) = Scene::new() else { return };
    let config = format!("tools:\n  mcpServers: [{}]\n", scene.server(""));
    let search = Turn::call("tool_search", json!({ "query": "add numbers" }));
    let model = Arc::new(ScriptedModel::new([search, add(), Turn::text("5")]));
    let runtime = scene.builder(&config).build().unwrap();
    let (events, report) = run(&runtime, &model, Answer::yes()).await;
    assert_eq!(report.outcome.cause, Cause::Goal, "{:?}", report.outcome);
    let first = told(&model, 0);
    assert!(first.contains(&"tool_search".into()) && !first.contains(&"mcp__calc__add".into()));
    assert!(last_answer(&model).contains("\"5\""), "{}", last_answer(&model));
    let states: Vec<&str> = events
        .iter()
        .filter_map(|event| match &event.body {
            EventBody::McpServerState { server, state, .. } if server == "calc" => Some(&**state),
            _ => None,
        })
        .collect();
    assert_eq!(states, ["starting", "ready"]);
    let called = events.iter().any(|event| {
        matches!(&event.body, EventBody::ToolCallCompleted { tool_name, result, .. }
            if tool_name == "mcp__calc__add" && **result == json!({ "total": 5 }))
    });
    assert!(called, "the stream has the tool itself, and its structured value");
    let kept = Store::at(scene.root.join("state")).directory(&report.run).unwrap();
    let log = kept.join("mcp/calc.log");
    assert!(fs::read_to_string(&log).unwrap().contains("calc is here"), "in the run's files");
    drop(runtime);

    // What it offers is known now, and nothing is started until it is called.
    let direct = Turn::call("mcp__calc__add", json!({ "a": 20, "b": 3 }));
    let model = Arc::new(ScriptedModel::new([direct, Turn::text("23")]));
    let runtime = scene.builder(&config).build().unwrap();
    let states = runtime.mcp().unwrap().servers().status();
    assert_eq!((states[0].state.as_str(), states[0].known), ("configured", true));
    let (_, report) = run(&runtime, &model, Answer::yes()).await;
    assert_eq!(report.outcome.cause, Cause::Goal);
    let first = told(&model, 0);
    assert!(first.contains(&"mcp__calc__add".into()) && !first.contains(&"use_tool".into()));
    assert!(last_answer(&model).contains("23"), "{}", last_answer(&model));
}

/// 200 tools of a server cost at most 3,000 tokens before the first word.
#[tokio::test]
async fn two_hundred_tools_of_a_server_cost_little() {
    let Some(scene) = Scene::new() else { return };
    let config = format!("tools:\n  mcpServers: [{}]\n", scene.server(", '196'"));
    let runtime = scene.builder(&config).build().unwrap();
    runtime.mcp().unwrap().attach();
    runtime.mcp().unwrap().servers().start("calc").await.unwrap();
    let model = Arc::new(ScriptedModel::new([Turn::text("Hi.")]));
    run(&scene.builder(&config).build().unwrap(), &model, Answer::yes()).await;
    let request = &model.requests()[0];
    let tools: usize = request.tools.iter().map(convoke::tools::catalogue::tokens).sum();
    let all = tools + request.system.len() / 4;
    assert!(all <= 3_000, "{all} tokens");
    assert!(told(&model, 0).contains(&"tool_search".into()), "{:?}", told(&model, 0));
    let search = request.tools.iter().find(|tool| tool.name == "tool_search").unwrap();
    assert!(search.description.contains("calc (200)"), "{}", search.description);
}

#[tokio::test]
async fn a_server_asks_through_the_same_queue_as_everything() {
    let Some(scene) = Scene::new() else { return };
    let config = format!(
        "tools:\n  mcpServers: [{}]\npolicy:\n  kinds: {{other: allow}}\n",
        scene.server("")
    );
    let greet = || Turn::call("use_tool", json!({ "name": "mcp__calc__greet", "args": {} }));
    let answers = [
        (Answer::with_arguments(json!({ "name": "Ada" })), r#""content": {"name": "Ada"}"#),
        (Answer::no(), "decline"),
        // The form has no name yet, so it does not fit, however often it is sent.
        (Answer::yes(), "decline"),
        (Answer::Nobody, "decline"),
    ];
    for (answer, expected) in answers {
        let search = Turn::call("tool_search", json!({ "query": "greet" }));
        let model = Arc::new(ScriptedModel::new([search, greet(), Turn::text("Hello.")]));
        let runtime = scene.builder(&config).build().unwrap();
        let (events, report) = run(&runtime, &model, answer.clone()).await;
        assert_eq!(report.outcome.cause, Cause::Goal, "{:?}", report.outcome);
        let heard = last_answer(&model).replace('\\', "");
        assert!(heard.contains(expected), "{answer:?}: {heard}");
        let asked = events.iter().find_map(|event| match &event.body {
            EventBody::InquiryAsked { tool_name, who, message, wanted, .. } => {
                Some((tool_name.as_str(), who.as_str(), message.as_str(), wanted))
            }
            _ => None,
        });
        let (tool, who, what, wanted) = asked.unwrap();
        assert_eq!((tool, who, what), ("mcp__calc__greet", "mcp:calc", "What is your name?"));
        assert!(matches!(wanted, Wanted::Form { .. }), "{wanted:?}");
    }
}

/// A server gets answers of a model only where it was granted that, and the run pays for them.
#[tokio::test]
async fn a_server_asks_the_model_of_the_run_if_it_may() {
    let Some(scene) = Scene::new() else { return };
    for granted in [true, false] {
        let server =
            scene.server("").replace("name: calc", &format!("name: calc, sampling: {granted}"));
        let config =
            format!("tools:\n  mcpServers: [{server}]\npolicy:\n  kinds: {{other: allow}}\n");
        let model = Arc::new(ScriptedModel::from_fn(|request| {
            let said = request.messages.len();
            match (request.system.starts_with("You are a calculator."), said) {
                (true, _) => Turn::call("complete_task", json!({ "result": "42" })),
                (false, 1) => Turn::call("tool_search", json!({ "query": "wonder" })),
                (false, 3) => Turn::call("use_tool", json!({ "name": "mcp__calc__wonder" })),
                _ => Turn::text("Done."),
            }
        }));
        let runtime = scene.builder(&config).build().unwrap();
        let (events, report) = run(&runtime, &model, Answer::yes()).await;
        assert_eq!(report.outcome.cause, Cause::Goal, "{:?}", report.outcome);
        let heard = last_answer(&model).replace('\\', "");
        assert_eq!(heard.contains(r#""text": "42""#), granted, "{heard}");
        let answered =
            events.iter().filter(|event| event.agent.as_str() == "main/for_calc").count();
        assert_eq!(answered > 0, granted, "what it costs is in the stream");
        let asked = model.requests().iter().any(|request| {
            request.messages.iter().any(|one| one.words() == "What is ${six} times seven?")
        });
        assert_eq!(asked, granted, "word for word");
    }
}

#[tokio::test]
async fn rules_hold_for_tools_of_servers_however_they_are_called() {
    let Some(scene) = Scene::new() else { return };
    let config = format!(
        "tools:\n  mcpServers: [{}]\npolicy:\n  kinds: {{other: allow}}\n  rules:\n    \
         - {{effect: deny, tool: mcp__calc__add}}\n    - {{effect: deny, path: '~/secret/**'}}\n",
        scene.server("")
    );
    let secret = scene.root.join("home/secret/x").display().to_string();
    let write = json!({ "name": "mcp__calc__write", "args": { "path": secret, "word": "x" } });
    let direct = Turn::call("mcp__calc__add", json!({ "a": 1, "b": 1 }));
    let model = Arc::new(ScriptedModel::new([
        Turn::call("tool_search", json!({ "query": "add" })),
        add(),
        direct,
        Turn::call("use_tool", write),
        Turn::text("No."),
    ]));
    let runtime = scene.builder(&config).build().unwrap();
    let (events, _) = run(&runtime, &model, Answer::no()).await;
    let denied: Vec<&str> = events
        .iter()
        .filter_map(|event| match &event.body {
            EventBody::ToolCallDenied { tool_name, .. } => Some(tool_name.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(denied, ["mcp__calc__add", "mcp__calc__add", "mcp__calc__write"]);
}

/// A project's servers are its own: found only where it is trusted, and confined as programs are.
#[tokio::test]
async fn servers_of_a_project_are_confined() {
    let Some(scene) = Scene::new() else { return };
    let project = scene.root.join("home/project");
    let script = project.join("server.py");
    fs::copy(scene.root.join("server.py"), &script).unwrap();
    let servers = json!({ "mcpServers": { "calc": { "command": "python3", "args": [script] } } });
    fs::write(project.join(".mcp.json"), servers.to_string()).unwrap();
    assert!(scene.builder("").build().unwrap().mcp().is_none(), "it was not said to be trusted");
    let mut places = McpPlaces::default();
    places.project = Some(project.clone());
    let config = "policy:\n  kinds: {other: allow}\n";
    let runtime = scene.builder(config).mcp(places).build().unwrap();
    if !matches!(runtime.programs(), Programs::Confined(..)) {
        skip("the sandbox", "programs cannot be confined here");
        return;
    }
    let write = |path: &PathBuf| {
        let arguments = json!({ "path": path, "word": "x" });
        Turn::call("use_tool", json!({ "name": "mcp__calc__write", "args": arguments }))
    };
    let (outside, inside) = (scene.root.join("home/out.txt"), project.join("in.txt"));
    let search = Turn::call("tool_search", json!({ "query": "write" }));
    let turns = [search, write(&outside), write(&inside), Turn::text("Done.")];
    let model = Arc::new(ScriptedModel::new(turns));
    let (_, report) = run(&runtime, &model, Answer::yes()).await;
    assert_eq!(report.outcome.cause, Cause::Goal, "{:?}", report.outcome);
    assert!(!outside.exists(), "it may write where programs may");
    assert_eq!(fs::read_to_string(&inside).unwrap(), "x");
}
