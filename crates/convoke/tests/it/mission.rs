//! The worked examples of the mission, by name.

use std::sync::{Arc, Mutex};

use convoke::agent::{AgentTool, Delegation, shipped};
use convoke::core::{Part, Role};
use convoke::model::RequestSnapshot;
use convoke::prelude::*;
use convoke::tools::Tool;
use serde_json::Value;

/// What came back of a call of the main agent.
fn answer(events: &[Arc<Event>], tool: &str) -> (String, Value) {
    let found = events.iter().find_map(|event| match &event.body {
        EventBody::ToolCallCompleted { tool_name, content, result, .. }
            if event.agent.is_root() && tool_name == tool =>
        {
            let texts = content.iter().map(|part| match part {
                Part::Text { text } => text.clone(),
                other => format!("{other:?}"),
            });
            Some((texts.collect::<String>(), Value::clone(result)))
        }
        _ => None,
    });
    found.unwrap()
}

async fn play(runtime: &Runtime, model: ScriptedModel, task: &str) -> (Vec<Arc<Event>>, RunReport) {
    let main = runtime.main_agent(Arc::new(model)).system("The main agent.").build().unwrap();
    let mut run = main.start(task);
    let mut events = Vec::new();
    while let Some(event) = run.next().await {
        events.push(event);
    }
    (events, run.report().unwrap().clone())
}

fn project() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("README.md"), "# The project\n").unwrap();
    std::fs::write(directory.path().join("auth.rs"), "fn authenticate() {}\n").unwrap();
    directory
}

/// "read README.md": the model asks for `read_file`, and gets the content.
#[tokio::test]
async fn r216_a_function_tool_is_called_directly() {
    let project = project();
    let runtime = Runtime::builder(project.path()).build().unwrap();
    let read = Turn::call("read_file", json!({ "path": "README.md" }));
    let model = ScriptedModel::new([read, Turn::text("It is called The project.")]);
    let (events, report) = play(&runtime, model, "read README.md").await;
    assert!(answer(&events, "read_file").0.contains("# The project"));
    assert_eq!(report.text().as_deref(), Some("It is called The project."));
    assert!(events.iter().all(|event| event.agent.is_root()), "no agent has to be asked");
}

fn report() -> Value {
    json!({
        "summary": "auth.rs authenticates.",
        "exploration_trace": ["searched for authenticate", "read auth.rs"],
        "relevant_locations": [
            { "file_path": "auth.rs", "reasoning": "It is there.", "key_symbols": ["authenticate"] },
        ],
    })
}

/// The investigator searches, reads and completes; the main agent calls it as `call` says.
fn investigation(call: Turn) -> ScriptedModel {
    let steps = Mutex::new(0);
    ScriptedModel::from_fn(move |request: &RequestSnapshot| {
        let said = request.messages.iter().any(|message| message.role == Role::Tool);
        if request.system.starts_with("The main agent.") {
            return if said { Turn::text("In auth.rs.") } else { call.clone() };
        }
        let mut step = steps.lock().unwrap();
        *step += 1;
        match *step {
            1 => Turn::call("grep", json!({ "pattern": "authenticate" })),
            2 => Turn::call("read_file", json!({ "path": "auth.rs" })),
            _ => Turn::call("complete_task", json!({ "report": report() })),
        }
    })
}

fn steps_of(events: &[Arc<Event>], agent: &str) -> Vec<String> {
    let own = events.iter().filter(|event| event.agent.as_str() == agent);
    let begun = own.filter_map(|event| match &event.body {
        EventBody::ToolCallRequested { tool_name, .. } => Some(tool_name.clone()),
        _ => None,
    });
    begun.collect()
}

/// "find all authentication code": the main agent hands it to `codebase_investigator`, which works through
/// tools of its own and gives back a report.
#[tokio::test]
async fn r217_an_agent_is_called_like_a_tool() {
    let project = project();
    let runtime = Runtime::builder(project.path()).build().unwrap();
    let call = Turn::call(
        "delegate_to_agent",
        json!({ "agent_name": "codebase_investigator", "prompt": "Find all authentication code." }),
    );
    let (events, report_of_run) =
        play(&runtime, investigation(call), "find all authentication code").await;
    assert_eq!(report_of_run.text().as_deref(), Some("In auth.rs."));
    let agent = "main/codebase_investigator";
    assert_eq!(steps_of(&events, agent), ["grep", "read_file", "complete_task"]);
    let (text, value) = answer(&events, "delegate_to_agent");
    assert!(text.contains("auth.rs authenticates."), "{text}");
    assert_eq!(value["output"], report());
    let asked = events.iter().find_map(|event| match &event.body {
        EventBody::RunStarted { prompt, .. } if event.agent.as_str() == agent => {
            Some(prompt.clone())
        }
        _ => None,
    });
    assert!(asked.unwrap().contains("Find all authentication code."));
}

/// `codebase_investigator{objective}`: one tool for each agent, whose text is what the model and people see.
#[tokio::test]
async fn r167_an_agent_is_a_tool_of_its_own_name() {
    let project = project();
    let mut config = Config::default();
    config.agents.delegation = convoke::config::DelegationWord::PerAgent;
    let runtime = Runtime::builder(project.path()).config(config).build().unwrap();
    assert_eq!(runtime.team().delegation(), Delegation::PerAgent);
    let call = Turn::call("codebase_investigator", json!({ "objective": "Find it." }));
    let (events, _) = play(&runtime, investigation(call), "find it").await;
    let (text, _) = answer(&events, "codebase_investigator");
    let shown = events.iter().find_map(|event| match &event.body {
        EventBody::ToolCallCompleted { tool_name, display, .. }
            if tool_name == "codebase_investigator" =>
        {
            display.clone()
        }
        _ => None,
    });
    assert_eq!(shown.unwrap().text, text, "the model and a person see the same");
}

/// Schema first, from the registry; then a call: look up, split, wrap, build, run, result.
#[tokio::test]
async fn r178_delegation_has_two_phases() {
    let project = project();
    let runtime = Runtime::builder(project.path()).build().unwrap();
    let call = Turn::call(
        "delegate_to_agent",
        json!({ "agent_name": "codebase_investigator", "prompt": "Find it." }),
    );
    let (events, _) = play(&runtime, investigation(call), "find it").await;
    let order: Vec<&str> = events
        .iter()
        .filter_map(|event| match (&event.body, event.agent.is_root()) {
            (EventBody::RunStarted { tools, .. }, true) => {
                let delegate = tools.iter().find(|tool| tool.name == "delegate_to_agent").unwrap();
                let schema = serde_json::to_value(&delegate.parameters).unwrap();
                let names = schema["properties"]["agent_name"]["enum"].as_array().unwrap().len();
                assert_eq!(names, runtime.team().offered().len());
                Some("schema")
            }
            (EventBody::ToolCallRequested { .. }, true) => Some("requested"),
            (EventBody::ToolCallStarted { .. }, true) => Some("started"),
            (EventBody::AgentSpawned { .. }, true) => Some("spawned"),
            (EventBody::RunStarted { .. }, false) => Some("agent started"),
            (EventBody::RunEnded { .. }, false) => Some("agent ended"),
            (EventBody::AgentEnded { .. }, true) => Some("known to its caller"),
            (EventBody::ToolCallCompleted { .. }, true) => Some("answered"),
            _ => None,
        })
        .collect();
    assert_eq!(
        order,
        [
            "schema",
            "requested",
            "started",
            "spawned",
            "agent started",
            "agent ended",
            "known to its caller",
            "answered",
        ]
    );
}

/// R157, R221: what the wrapper says about the agent it wraps.
#[test]
fn r157_a_wrapped_agent_says_what_its_definition_says() {
    let registry = convoke::agent::AgentRegistry::new();
    registry.register(shipped::codebase_investigator()).unwrap();
    let tool = AgentTool::new(registry.get("codebase_investigator").unwrap());
    let spec = tool.spec();
    assert_eq!(spec.name, "codebase_investigator");
    assert_eq!(spec.kind, Kind::Agent);
    assert!(spec.markdown && spec.streaming);
    let schema = serde_json::to_value(&spec.parameters).unwrap();
    assert_eq!(schema["required"], json!(["objective"]));
}
