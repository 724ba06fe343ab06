//! MCP servers in a run: real processes, whose tools come late, ask people, and are judged like any.

mod waited_for;

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use convoke::agent::definition::ToolConfig;
use convoke::config::{Author, Config, Sources, Trust};
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

    fn project(&self) -> PathBuf {
        self.root.join("home/project")
    }

    /// Writes a file of the project.
    fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.project().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    /// What servers may use in a project that is trusted.
    fn trusted(&self) -> McpPlaces {
        let mut places = McpPlaces::default();
        places.cache = Some(self.root.join("cache"));
        places.project = Some(self.project());
        places
    }

    /// Configuration of a project that is trusted.
    fn config_of_project(&self, text: &str) -> Config {
        self.file("convoke.yml", text);
        let mut sources = Sources::new(self.project());
        sources.trust = Trust::Trusted;
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

/// claude-code#7336, #16307, #23508, codex#9266: a server is configured, known, started and called, one after
/// the other.
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
    let found = format!("{:?}", model.requests()[1].messages.last().unwrap().parts);
    assert!(
        found.contains("mcp__calc__add"),
        "whoever waits for a server finds its tools: {found}"
    );
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
    assert!(first.contains(&"mcp__calc__add".into()), "{first:?}");
    assert!(last_answer(&model).contains("23"), "{}", last_answer(&model));
}

/// What is known may be of yesterday: a server that has more by now is looked through as one that is new.
#[tokio::test]
async fn what_a_known_server_offers_anew_is_found() {
    let Some(scene) = Scene::new() else { return };
    let config = format!("tools:\n  mcpServers: [{}]\n", scene.server(""));
    let search = || Turn::call("tool_search", json!({ "query": "multiply" }));
    let model = Arc::new(ScriptedModel::new([search(), Turn::text("No.")]));
    run(&scene.builder(&config).build().unwrap(), &model, Answer::yes()).await;
    assert!(!last_answer(&model).contains("mcp__calc__multiply"), "{}", last_answer(&model));

    fs::write(scene.root.join("multiplies"), "").unwrap();
    let direct = Turn::call("mcp__calc__add", json!({ "a": 2, "b": 3 }));
    let arguments = json!({ "a": 6, "b": 7 });
    let product = json!({ "name": "mcp__calc__multiply", "args": arguments });
    let turns = [direct, search(), Turn::call("use_tool", product), Turn::text("42")];
    let model = Arc::new(ScriptedModel::new(turns));
    run(&scene.builder(&config).build().unwrap(), &model, Answer::yes()).await;
    let first = told(&model, 0);
    for (name, is_told) in [("mcp__calc__add", true), ("mcp__calc__multiply", false)] {
        assert_eq!(first.contains(&name.to_owned()), is_told, "{name}: {first:?}");
    }
    assert!(first.contains(&"tool_search".into()) && first.contains(&"use_tool".into()));
    assert!(last_answer(&model).contains("42"), "{}", last_answer(&model));
}

/// An exclusion is about a name, whether the server has said yet that it has a tool of that name or not.
#[tokio::test]
async fn what_is_excluded_stays_so_when_its_server_comes_later() {
    let Some(scene) = Scene::new() else { return };
    let servers = format!("  mcpServers: [{}]\n", scene.server(""));
    let config = format!("tools:\n{servers}  exclude: [mcp__calc__add]\n");
    let model = Arc::new(ScriptedModel::new([search(), add(), Turn::text("No.")]));
    let (events, _) = run(&scene.builder(&config).build().unwrap(), &model, Answer::yes()).await;
    assert_excluded(&events, "main");
    fs::remove_dir_all(scene.root.join("cache")).unwrap();

    let (mut worker, model) = searching_worker();
    worker.tools.exclude = vec!["mcp__calc__add".to_owned()];
    let runtime = scene.builder(&format!("tools:\n{servers}")).agent(worker).build().unwrap();
    let (events, report) = run(&runtime, &model, Answer::yes()).await;
    assert_eq!(report.outcome.cause, Cause::Goal, "{:?}", report.outcome);
    assert_excluded(&events, "main/worker");
}

fn search() -> Turn {
    Turn::call("tool_search", json!({ "query": "add two numbers" }))
}

/// An agent that looks for a tool and calls it, and the model of it and of the main agent that calls it.
fn searching_worker() -> (AgentDefinition, Arc<ScriptedModel>) {
    let mut worker = AgentDefinition::new("worker", "Works.");
    worker.prompt.system_prompt = Some("You work.".to_owned());
    let model = ScriptedModel::from_fn(|request| {
        match (request.system.starts_with("You work."), request.messages.len()) {
            (true, 1) => search(),
            (true, 3) => add(),
            (true, _) => Turn::call("complete_task", json!({ "result": "no" })),
            (false, 1) => {
                let task = json!({ "agent_name": "worker", "prompt": "Add." });
                Turn::call("delegate_to_agent", task)
            }
            (false, _) => Turn::text("No."),
        }
    });
    (worker, Arc::new(model))
}

/// A search finds other tools of the server, and this one cannot be called.
fn assert_excluded(events: &[Arc<Event>], agent: &str) {
    let own = events.iter().filter(|event| event.agent.as_str() == agent);
    let ends: Vec<(String, String)> = own
        .filter_map(|event| match &event.body {
            EventBody::ToolCallCompleted { tool_name, content, .. }
            | EventBody::ToolCallFailed { tool_name, content, .. }
            | EventBody::ToolCallDenied { tool_name, content, .. } => {
                Some((tool_name.clone(), format!("{content:?}")))
            }
            _ => None,
        })
        .collect();
    let said = |name: &str| ends.iter().find(|(tool, _)| tool == name).unwrap().1.clone();
    let found = said("tool_search");
    assert!(found.contains("fitting") && !found.contains("mcp__calc__add"), "{found}");
    let called = said("mcp__calc__add");
    assert!(called.contains("is not here") || called.contains("not found"), "{called}");
}

/// claude-code#79728: an agent that was given a tool of a server that does not start has its other tools, and is told
/// what is missing, and why.
#[tokio::test]
async fn an_agent_is_told_which_server_of_its_tools_is_missing() {
    let Some(scene) = Scene::new() else { return };
    let missing = scene.root.join("nowhere.py").display().to_string();
    let config =
        format!("tools:\n  mcpServers: [{{name: calc, command: python3, args: ['{missing}']}}]\n");
    let (mut worker, model) = searching_worker();
    worker.tools = ToolConfig::only(["ls", "mcp__calc__add"]);
    let runtime = scene.builder(&config).agent(worker).build().unwrap();
    let (events, _) = run(&runtime, &model, Answer::yes()).await;
    let first = told(&model, 1);
    assert!(first.contains(&"ls".into()) && first.contains(&"tool_search".into()), "{first:?}");
    let said = |request: usize| format!("{:?}", model.requests()[request].messages.last());
    assert!(said(2).contains("unavailable") && said(2).contains("calc: "), "{}", said(2));
    assert!(said(3).contains("is not here") || said(3).contains("not found"), "{}", said(3));
    let failed = events.iter().any(|event| {
        matches!(&event.body, EventBody::McpServerState { server, state, .. }
            if server == "calc" && state == "failed")
    });
    assert!(failed, "and so is whoever watches");
}

/// What holds for all tools of a server holds for what is read from it.
#[tokio::test]
async fn rules_on_a_server_hold_for_what_is_read_from_it() {
    let Some(scene) = Scene::new() else { return };
    let server = scene.server(", '0', 'readable'");
    let servers = format!("tools:\n  mcpServers: [{server}]\n");
    let runtime = scene.builder(&servers).build().unwrap();
    runtime.mcp().unwrap().servers().list_resources("calc").await.unwrap();
    drop(runtime);
    let rule = "policy:\n  rules:\n    - {effect: deny, tool: 'mcp__calc__*'}\n";
    let one = "policy:\n  rules:\n    - {effect: deny, tool: mcp__calc__add}\n";
    for (more, expected) in [
        (String::new(), "dark night"),
        (one.to_owned(), "dark night"),
        (rule.to_owned(), "is forbidden by the rule on tool `mcp__calc__*`"),
        ("  exclude: ['mcp__calc__*']\n".to_owned(), "no MCP server `calc`"),
        ("  exclude: [mcp__calc__]\n".to_owned(), "no MCP server `calc`"),
        ("  enabled: [mcp_read_resource, mcp__calc__add]\n".to_owned(), "dark night"),
        ("  enabled: [mcp_read_resource, mcp__other__x]\n".to_owned(), "no MCP server `calc`"),
    ] {
        let read = json!({ "server": "calc", "uri": "book:1" });
        let turns = [Turn::call("mcp_read_resource", read), Turn::text("So it was.")];
        let model = Arc::new(ScriptedModel::new(turns));
        let runtime = scene.builder(&format!("{servers}{more}")).build().unwrap();
        run(&runtime, &model, Answer::yes()).await;
        assert!(last_answer(&model).contains(expected), "{more}: {}", last_answer(&model));
    }
    // What cannot be read is not listed, either.
    let config = format!("{servers}  exclude: ['mcp__calc__*']\n");
    let list = Turn::call("mcp_list_resources", json!({}));
    let model = Arc::new(ScriptedModel::new([list, Turn::text("Nothing.")]));
    run(&scene.builder(&config).build().unwrap(), &model, Answer::yes()).await;
    assert!(!last_answer(&model).contains("book:1"), "{}", last_answer(&model));
}

/// A process that makes several runs keeps for each what servers complained of meanwhile.
#[tokio::test]
async fn every_run_has_what_servers_said_while_it_worked() {
    let Some(scene) = Scene::new() else { return };
    let config = format!("tools:\n  mcpServers: [{}]\n", scene.server(""));
    let runtime = scene.builder(&config).build().unwrap();
    let search = || Turn::call("tool_search", json!({ "query": "add" }));
    for _ in 0..2 {
        let model = Arc::new(ScriptedModel::new([search(), add(), Turn::text("5")]));
        let (_, report) = run(&runtime, &model, Answer::yes()).await;
        let kept = Store::at(scene.root.join("state")).directory(&report.run).unwrap();
        let log = kept.join("mcp/calc.log");
        let mut said = String::new();
        for _ in 0..200 {
            said = fs::read_to_string(&log).unwrap_or_default();
            if said.contains("called add") {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        assert_eq!(said.matches("called add").count(), 1, "{said}");
    }
}

/// 200 tools of a server cost at most 3,000 tokens before the first word.
/// claude-code#13717, #11364, kilocode#9602.
#[tokio::test]
async fn two_hundred_tools_of_a_server_cost_little() {
    let Some(scene) = Scene::new() else { return };
    let config = format!("tools:\n  mcpServers: [{}]\n", scene.server(", '194'"));
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
        (Answer::Nobody, "cancel"),
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

/// Regression: what was shorter than a token went to the model and to the journal, unless the server said nothing but
/// JSON.
#[tokio::test]
async fn a_short_password_that_a_server_repeats_is_told_to_nobody() {
    let Some(scene) = Scene::new() else { return };
    let config = format!(
        "tools:\n  mcpServers: [{}]\npolicy:\n  kinds: {{other: allow}}\n",
        scene.server("")
    );
    for password in ["0815", "ab", "zebra"] {
        let search = Turn::call("tool_search", json!({ "query": "unlock" }));
        let unlock = Turn::call("use_tool", json!({ "name": "mcp__calc__unlock", "args": {} }));
        let model = Arc::new(ScriptedModel::new([search, unlock, Turn::text("Open.")]));
        let runtime = scene.builder(&config).build().unwrap();
        let answer = Answer::with_arguments(json!({ "password": password }));
        let (_, report) = run(&runtime, &model, answer).await;
        assert_eq!(report.outcome.cause, Cause::Goal, "{:?}", report.outcome);
        let kept = Store::at(scene.root.join("state")).directory(&report.run).unwrap();
        let journal = fs::read_to_string(kept.join("journal.jsonl")).unwrap();
        for told in [last_answer(&model), journal] {
            assert!(told.contains("heard: ") && told.contains("[secret password]"), "{told}");
            assert!(!told.contains(&format!("\"{password}\"")), "{told}");
            assert!(!told.contains(&format!("\\\"{password}\\\"")), "{told}");
        }
    }
}

/// Regression: what a server says of its use reached only models that looked for tools.
#[tokio::test]
async fn what_a_believed_server_says_of_its_use_is_told_at_the_beginning() {
    let Some(scene) = Scene::new() else { return };
    for trust in [true, false] {
        let server = scene.server(", '0', 'readable', 'Add before you write.'");
        let server = server.replace("name: calc", &format!("name: calc, trust: {trust}"));
        let config = format!("tools:\n  mcpServers: [{server}]\n");
        let runtime = scene.builder(&config).build().unwrap();
        runtime.mcp().unwrap().servers().start("calc").await.unwrap();
        let model = Arc::new(ScriptedModel::new([Turn::text("Done.")]));
        run(&runtime, &model, Answer::yes()).await;
        let system = model.requests()[0].system.clone();
        assert_eq!(system.contains("Server calc:\n> Add before you write.\n"), trust, "{system}");
    }
}

/// Regression: the words of a server stayed where its tools could not be called at all.
#[tokio::test]
async fn what_a_server_says_is_not_told_where_none_of_its_tools_can_be_called() {
    let Some(scene) = Scene::new() else { return };
    let server = scene.server(", '0', 'readable', 'Add before you write.'");
    let server = server.replace("name: calc", "name: calc, trust: true");
    let deny = |tool: &str| format!("policy:\n  rules:\n    - {{effect: deny, tool: '{tool}'}}\n");
    for (more, is_told) in [
        (String::new(), true),
        (deny("mcp__calc__add"), true),
        (deny("mcp__calc__*"), false),
        ("  exclude: [mcp__calc__add]\n".to_owned(), true),
        ("  exclude: ['mcp__calc__*']\n".to_owned(), false),
        ("  enabled: [read_file]\n".to_owned(), false),
    ] {
        let config = format!("tools:\n  mcpServers: [{server}]\n{more}");
        let runtime = scene.builder(&config).build().unwrap();
        runtime.mcp().unwrap().servers().start("calc").await.unwrap();
        let told = runtime.surroundings().with("Be good.");
        assert_eq!(told.contains("> Add before you write.\n"), is_told, "{more}: {told}");
    }
}

/// A server gets answers of a model only where it was granted that, and the run pays for them.
#[tokio::test]
async fn a_server_asks_the_model_of_the_run_if_it_may() {
    let Some(scene) = Scene::new() else { return };
    for (granted, agents) in [(true, true), (false, true), (true, false)] {
        let server =
            scene.server("").replace("name: calc", &format!("name: calc, sampling: {granted}"));
        let config = format!(
            "tools:\n  mcpServers: [{server}]\npolicy:\n  kinds: {{other: allow}}\nagents:\n  \
             enabled: {agents}\n"
        );
        let model = Arc::new(ScriptedModel::from_fn(|request| {
            let said = request.messages.len();
            match (request.system.starts_with("You are a calculator."), said) {
                (true, _) => Turn::text("42"),
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

/// Calls a tool of the one server, which has to be there, and returns what it said.
async fn asked(runtime: &Runtime, tool: &str, arguments: serde_json::Value) -> String {
    let arguments = json!({ "name": format!("mcp__calc__{tool}"), "args": arguments });
    let search = Turn::call("tool_search", json!({ "query": tool }));
    let turns = [search, Turn::call("use_tool", arguments), Turn::text("Done.")];
    let model = Arc::new(ScriptedModel::new(turns));
    run(runtime, &model, Answer::yes()).await;
    last_answer(&model)
}

fn is_confined(runtime: &Runtime) -> bool {
    let confined = matches!(runtime.programs(), Programs::Confined(..));
    if !confined {
        skip("the sandbox", "programs cannot be confined here");
    }
    confined
}

/// Writes into the home directory as soon as it is started, and is a server then.
const TAKES: &str =
    "import os\ntry:\n    open(os.environ['HOME'] + '/taken', 'w')\nexcept OSError:\n    pass\n";

#[tokio::test]
async fn a_file_that_a_project_lists_is_the_projects() {
    let Some(scene) = Scene::new() else { return };
    scene.file("server.py", &format!("{TAKES}{}", include_str!("server.py")));
    let script = scene.project().join("server.py");
    let entry = |word: &str| json!({ "command": "python3", "args": [script], "env": { "K": word }, "trust": true });
    let servers = json!({ "calc": entry("${NOT_SET:-none}"), "nosy": entry("${MY_TOKEN:-none}") });
    scene.file("servers.json", &json!({ "mcpServers": servers }).to_string());
    let config = scene.config_of_project("tools: {mcpFiles: [servers.json]}\n");
    let variables = BTreeMap::from([
        ("PATH".to_owned(), std::env::var("PATH").unwrap()),
        ("HOME".to_owned(), scene.root.join("home").display().to_string()),
        ("MY_TOKEN".to_owned(), "mine-alone-1234".to_owned()),
    ]);
    let builder = scene.builder("").config(config).environment(variables).mcp(scene.trusted());
    let runtime = builder.build().unwrap();
    let [listed] = runtime.mcp().unwrap().listed() else { panic!("one is left out") };
    assert_eq!((listed.author, listed.confined), (Author::Project, true));
    let warnings = runtime.mcp().unwrap().warnings().join("\n");
    assert!(
        warnings.contains("`nosy` is left out") && warnings.contains("`MY_TOKEN`"),
        "{warnings}"
    );
    if !is_confined(&runtime) {
        return;
    }
    for (variable, said) in [("K", "none in "), ("MY_TOKEN", "None in ")] {
        let answer = asked(&runtime, "recall", json!({ "variable": variable })).await;
        assert!(answer.contains(said), "{answer}");
    }
    assert!(!scene.root.join("home/taken").exists(), "it runs as programs do");
}

#[tokio::test]
async fn a_file_of_the_user_that_tools_can_write_is_the_projects() {
    let Some(scene) = Scene::new() else { return };
    let file =
        scene.file(".vscode/mcp.json", r#"{"servers": {"calc": {"command": "x", "cwd": "/"}}}"#);
    let config = format!("tools: {{mcpFiles: ['{}']}}\n", file.display());
    let runtime = scene.builder(&config).mcp(scene.trusted()).build().unwrap();
    let servers = runtime.mcp().unwrap();
    assert_eq!(servers.listed()[0].author, Author::Project);
    assert!(
        servers.warnings()[0].contains("lies where tools and programs write"),
        "{:?}",
        servers.warnings()
    );
    let runtime = scene.builder(&config).build().unwrap();
    let servers = runtime.mcp().unwrap();
    assert!(servers.listed().is_empty(), "{:?}", servers.listed());
    assert!(
        servers.warnings()[0].contains("in a folder that is not trusted"),
        "{:?}",
        servers.warnings()
    );
}

/// What is read without being listed was once read a second time, and each server told to be there twice.
#[tokio::test]
async fn a_file_that_is_read_anyway_may_be_listed() {
    let Some(scene) = Scene::new() else { return };
    scene.file(".mcp.json", r#"{"mcpServers": {"calc": {"command": "x"}}}"#);
    let config = scene.config_of_project("tools: {mcpFiles: [.mcp.json]}\n");
    let runtime = scene.builder("").config(config).mcp(scene.trusted()).build().unwrap();
    let servers = runtime.mcp().unwrap();
    assert_eq!(servers.listed().len(), 1, "{:?}", servers.listed());
    assert_eq!(servers.warnings(), Vec::<String>::new());
}

#[tokio::test]
async fn a_project_does_not_take_the_name_of_a_server_of_the_user() {
    let Some(scene) = Scene::new() else { return };
    let file = scene.root.join("home/mine.json");
    fs::write(&file, r#"{"mcpServers": {"calc": {"command": "mine"}}}"#).unwrap();
    scene.file("convoke.yml", "tools: {mcpServers: [{name: calc, command: theirs}]}\n");
    let user = scene.root.join("user.yml");
    fs::write(&user, format!("tools: {{mcpFiles: ['{}']}}\n", file.display())).unwrap();
    let mut sources = Sources::new(scene.project());
    (sources.user_file, sources.trust) = (Some(user), Trust::Trusted);
    let config = convoke::config::load(&sources).unwrap().config;
    let runtime = scene.builder("").config(config).mcp(scene.trusted()).build().unwrap();
    let servers = runtime.mcp().unwrap();
    let [listed] = servers.listed() else { panic!("{:?}", servers.listed()) };
    assert_eq!((listed.author, listed.file.as_ref()), (Author::User, Some(&file)));
    assert!(servers.warnings()[0].contains("`calc` of the project's configuration is not used"));
}

/// Bug: a project's server that is left out for a variable made that of the user count as left out.
#[tokio::test]
async fn a_server_of_the_user_is_not_left_out_for_one_of_a_project() {
    let Some(scene) = Scene::new() else { return };
    let theirs = r#"{"mcpServers": {"calc": {"command": "x", "args": ["${NOWHERE_SET}"]}}}"#;
    scene.file(".mcp.json", theirs);
    let own = format!("tools:\n  mcpServers: [{}]\n", scene.server(""));
    for (config, is_left_out) in [(own, false), (String::new(), true)] {
        let runtime = scene.builder(&config).mcp(scene.trusted()).build().unwrap();
        assert_eq!(runtime.mcp().unwrap().is_left_out("calc"), is_left_out, "{config}");
    }
}

/// `python3 -m` takes from the directory it starts in what it runs.
#[tokio::test]
async fn a_folder_does_not_choose_what_a_server_of_the_user_runs() {
    let Some(scene) = Scene::new() else { return };
    scene.file("calc_here.py", &format!("{TAKES}{}", include_str!("server.py")));
    let taken = scene.root.join("home/taken");
    let config = |more: &str| {
        format!(
            "tools:\n  mcpServers: [{{name: calc, command: python3, args: [-m, calc_here]{more}}}]\n\
             policy:\n  kinds: {{other: allow}}\n"
        )
    };
    let here = json!({ "variable": "NOTHING" });

    let runtime = scene.builder(&config("")).build().unwrap();
    let said = asked(&runtime, "recall", here.clone()).await;
    assert!(!said.contains("None in "), "it starts elsewhere: {said}");
    assert!(!taken.exists());

    let runtime = scene.builder(&config(", cwd: workspace, trust: true")).build().unwrap();
    if !is_confined(&runtime) {
        return;
    }
    let said = asked(&runtime, "recall", here.clone()).await;
    assert!(said.contains("None in "), "{said}");
    assert!(!taken.exists(), "it runs as programs do");
    let servers = runtime.mcp().unwrap();
    let [warning] = &servers.warnings()[..] else { panic!("{:?}", servers.warnings()) };
    assert!(warning.contains("`calc` starts in a folder that is not trusted"), "{warning}");
    assert_eq!(servers.listed()[0].config.trust, convoke::mcp::client::Trust::Nothing);

    let config = config(", cwd: workspace");
    let runtime = scene.builder(&config).mcp(scene.trusted()).build().unwrap();
    let servers = runtime.mcp().unwrap();
    assert_eq!(servers.warnings(), Vec::<String>::new());
    assert!(!servers.servers().status()[0].known, "what it said there counts for nothing here");
    asked(&runtime, "recall", here).await;
    assert!(taken.exists(), "in a project that is trusted it has the user's rights");
}

/// What tools could have written is not run with the user's rights, unless the user named it in full.
#[tokio::test]
async fn a_server_of_the_user_that_tools_can_write_is_the_projects() {
    let Some(scene) = Scene::new() else { return };
    let script = scene.file("tools/server.py", include_str!("server.py"));
    let program = scene.file("server", "#!/bin/sh\n");
    let full = script.display();
    for (entry, trusted, untrusted) in [
        ("command: python3, args: [tools/server.py], cwd: workspace".to_owned(), true, true),
        ("command: ./server, cwd: workspace".to_owned(), true, true),
        (format!("command: python3, args: ['{full}']"), false, false),
        (format!("command: '{}'", program.display()), false, false),
    ] {
        let config = format!("tools: {{mcpServers: [{{name: calc, {entry}}}]}}\n");
        let runtime = scene.builder(&config).mcp(scene.trusted()).build().unwrap();
        assert_eq!(runtime.mcp().unwrap().listed()[0].confined, trusted, "{entry}");
        let runtime = scene.builder(&config).build().unwrap();
        let servers = runtime.mcp().unwrap();
        assert_eq!(servers.listed()[0].confined, untrusted, "{entry}");
        let refused = servers.warnings().iter().any(|text| text.contains("is not started"));
        assert_eq!(refused, entry.contains("./server"), "{:?}", servers.warnings());
        if refused {
            let error = servers.servers().start("calc").await.unwrap_err();
            assert!(error.message.contains("lies in a folder that is not trusted"), "{error:?}");
        }
    }
}

/// In the home directory tools may write there, so servers start where they cannot.
#[tokio::test]
async fn servers_start_where_tools_do_not_write() {
    let Some(scene) = Scene::new() else { return };
    let config = scene.config(&format!("tools:\n  mcpServers: [{}]\n", scene.server("")));
    let home = scene.root.join("home");
    for (place, start) in [(scene.project(), home.clone()), (home.clone(), PathBuf::from("/"))] {
        let builder = Runtime::builder(place).config(config.clone()).home(Some(home.clone()));
        let runtime = builder.build().unwrap();
        let listed = &runtime.mcp().unwrap().listed()[0];
        let convoke::mcp::client::Transport::Program { cwd, .. } = &listed.config.transport else {
            panic!("{listed:?}")
        };
        assert_eq!((cwd.as_ref(), listed.confined), (Some(&start), false));
    }
}

/// A project's address is asked from here, so it counts what the project's programs may do.
#[tokio::test]
async fn an_address_of_a_project_is_asked_only_where_programs_may_go() {
    let Some(scene) = Scene::new() else { return };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let called = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let count = Arc::clone(&called);
    tokio::spawn(async move {
        while listener.accept().await.is_ok() {
            count.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        }
    });
    for (host, sandbox, reason) in [
        ("127.0.0.1", "network: none", Some("may talk to nobody")),
        (
            "127.0.0.1",
            "network: hosts, hosts: [example.com]",
            Some("is not among your sandbox.hosts"),
        ),
        ("127.0.0.1", "network: all", Some("out of bounds")),
        ("localhost", "network: all", Some("out of bounds")),
        ("127.0.0.1", "network: hosts, hosts: ['127.0.0.1:PORT']", None),
        ("localhost", "network: hosts, hosts: ['localhost:PORT']", None),
    ] {
        let before = called.load(std::sync::atomic::Ordering::SeqCst);
        let servers =
            json!({ "mcpServers": { "x": { "url": format!("http://{host}:{port}/mcp") } } });
        scene.file(".mcp.json", &servers.to_string());
        let config = format!("sandbox: {{{}}}\n", sandbox.replace("PORT", &port.to_string()));
        let runtime = scene.builder(&config).mcp(scene.trusted()).build().unwrap();
        let servers = runtime.mcp().unwrap();
        let error = servers.servers().start("x").await.unwrap_err();
        let reached = called.load(std::sync::atomic::Ordering::SeqCst) > before;
        assert_eq!(reached, reason.is_none(), "{host} with {sandbox}: {error:?}");
        if let Some(reason) = reason {
            assert!(error.message.contains(reason), "{host} with {sandbox}: {error:?}");
            assert_eq!(servers.servers().status()[0].state.as_str(), "failed");
        }
    }
}

/// What other programs keep in their files is as secret as what `convoke.yml` holds.
#[tokio::test]
async fn what_servers_of_other_programs_are_given_is_hidden() {
    let Some(scene) = Scene::new() else { return };
    let script = scene.root.join("server.py");
    let file = scene.root.join("home/theirs.json");
    let servers = json!({ "mcpServers": {
        "calc": { "command": "python3", "args": [script], "cwd": "/", "env": { "KEY": "nine-c1-lives" } },
        "web": { "url": "https://x.example", "headers": { "Authorization": "Bearer 9c1-lives-on" } },
    } });
    fs::write(&file, servers.to_string()).unwrap();
    let config = format!(
        "tools: {{mcpFiles: ['{}']}}\npolicy: {{kinds: {{other: allow}}}}\n",
        file.display()
    );
    let runtime = scene.builder(&config).build().unwrap();
    let said = asked(&runtime, "recall", json!({ "variable": "KEY" })).await;
    assert!(said.contains("[secret tools.mcpServers.calc.env.KEY] in /"), "{said}");
    let hidden = runtime.secrets().hide("it said: no token 9c1-lives-on").into_owned();
    assert_eq!(
        hidden,
        "it said: no token [secret tools.mcpServers.web.headers.Authorization token]"
    );
}

#[tokio::test]
async fn what_editors_call_directories_is_understood() {
    let Some(scene) = Scene::new() else { return };
    let servers = json!({ "servers": { "calc": {
        "type": "stdio",
        "command": "${userHome}/bin/${workspaceFolderBasename}",
        "args": ["${workspaceFolder}/x", "${env:WORD}"],
        "cwd": "${workspaceFolder}/sub",
    } } });
    let file = scene.root.join("home/mcp.json");
    fs::write(&file, servers.to_string()).unwrap();
    let config = format!("tools: {{mcpFiles: ['{}']}}\n", file.display());
    let variables = BTreeMap::from([("WORD".to_owned(), "soon".to_owned())]);
    let runtime = scene.builder(&config).environment(variables).build().unwrap();
    let [listed] = runtime.mcp().unwrap().listed() else { panic!() };
    let convoke::mcp::client::Transport::Program { command, args, cwd, .. } =
        &listed.config.transport
    else {
        panic!("{listed:?}")
    };
    let project = scene.project().display().to_string();
    assert_eq!(*command, scene.root.join("home/bin/project").display().to_string());
    assert_eq!(args, &[format!("{project}/x"), "soon".to_owned()]);
    assert_eq!(cwd.as_deref(), Some(scene.project().join("sub").as_path()));
}
