//! Agents that agents call: what they get, what they give back, and how they end.

use std::time::Duration;

use convoke_agent::definition::{Inherit, ToolChoice, ToolConfig};
use convoke_agent::{
    AgentDefinition, AgentExecutor, AgentRegistry, Delegation, InputConfig, InputType, Supplier,
    Team, ToolKind, Toolbox,
};
use convoke_core::{Cause, EventBody, Kind, Status};
use convoke_model::scripted::Turn;
use convoke_tool::{FunctionTool, ToolContext, ToolExecutor, ToolRegistry, ToolView};
use serde_json::json;

use crate::family::{Cast, agent, answers, ask, asked, done, main_with, task, team};
use crate::support::{Word, echo, read, with};

fn say(word: &str) -> Turn {
    Turn::call("echo", json!({ "word": word }))
}

/// R217: the main agent hands a search to an agent, which searches, reads and completes its task.
/// codex#2770, #8664, gemini-cli 4.3 (#20258): it has instructions, tools, a conversation and a run of its own.
#[tokio::test(start_paused = true)]
async fn r217_an_agent_works_with_tools_and_its_result_comes_back() {
    let model = Cast::new()
        .says(
            "main",
            [ask("finder", "find all authentication code"), Turn::text("It is in auth.rs.")],
        )
        .says("finder", [say("grep auth"), say("read auth.rs"), done("auth.rs has it")])
        .model();
    let main = main_with(&model, [agent("finder")]).build().unwrap();
    let (events, report) = read(main.start("Where is authentication?")).await;
    assert_eq!(report.outcome.cause, Cause::Goal);
    assert_eq!(report.text().as_deref(), Some("It is in auth.rs."));
    assert_eq!(asked(&model), ["main", "finder", "finder", "finder", "main"]);
    let answer = &answers(&events, "main")[0];
    assert!(answer.starts_with("auth.rs has it\n\n(agent_id: "), "{answer}");
    let child = &model.requests()[1];
    assert_eq!(child.messages[0].words(), "find all authentication code");
    let tools: Vec<&str> = child.tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(
        tools,
        ["echo", "fail", "nap", "complete_task"],
        "no agents, unless it is granted some"
    );
    let paths: Vec<&str> = events.iter().map(|event| event.agent.as_str()).collect();
    assert!(paths.contains(&"main/finder"), "{paths:?}");
    let parents = events.iter().filter(|event| event.agent.as_str() == "main/finder");
    assert!(parents.into_iter().all(|event| event.parent.as_ref() == Some(&report.run)));
    assert!(events.iter().all(|event| (event.run == report.run) == event.agent.is_root()));
}

/// codex#35027, yoagent#173: what an agent used is told for it, and is part of what its caller used.
#[tokio::test(start_paused = true)]
async fn usage_is_counted_at_the_leaf_and_rolled_up_once() {
    let model = Cast::new()
        .says("main", [ask("a", "x").tokens(100, 10), Turn::text("ok").tokens(200, 20)])
        .says("a", [say("hi").tokens(1_000, 1), done("r").tokens(2_000, 2)])
        .model();
    let main = main_with(&model, [agent("a")]).build().unwrap();
    let (events, report) = read(main.start("go")).await;
    assert_eq!((report.usage.input_tokens, report.usage.output_tokens), (3_300, 33));
    let ended = events.iter().find_map(|event| match &event.body {
        EventBody::AgentEnded { usage, outcome, .. } => Some((*usage, outcome.cause)),
        _ => None,
    });
    let (usage, cause) = ended.unwrap();
    assert_eq!((usage.input_tokens, usage.output_tokens, cause), (3_000, 3, Cause::Goal));
}

/// goose#5812, gemini-cli 4.12: a child that failed is not a success for its caller.
/// codex#23296, gemini-cli 4.10: one that only says something has not done its task, and what it said is not
/// lost.
#[tokio::test(start_paused = true)]
async fn a_failed_agent_is_a_failed_call_with_what_there_was() {
    let model = Cast::new()
        .says("main", [ask("a", "x"), Turn::text("It did not work.")])
        .says("a", ["I looked around.", "Nothing.", "Still nothing."].map(Turn::text))
        .model();
    let main = main_with(&model, [agent("a")]).build().unwrap();
    let (events, _) = read(main.start("go")).await;
    let failed = events.iter().any(|event| {
        event.agent.as_str() == "main" && matches!(event.body, EventBody::ToolCallFailed { .. })
    });
    assert!(failed);
    let answer = &answers(&events, "main")[0];
    assert!(answer.contains("did not complete its task (no_completion)"), "{answer}");
    assert!(answer.contains("Still nothing."), "{answer}");
}

/// deepagents#694, opencode#37315: one failed child does not stop its siblings.
#[tokio::test(start_paused = true)]
async fn siblings_work_at_once_and_do_not_share_failures() {
    let both = ask("good", "a").and_call("delegate_to_agent", task("bad", "b"));
    let model = Cast::new()
        .says("main", [both, Turn::text("One of two.")])
        .says("good", [Turn::call("nap", json!({ "millis": 5_000 })), done("fine")])
        .says(
            "bad",
            [
                Turn::call("nap", json!({ "millis": 5_000 })),
                Turn::text("no"),
                Turn::text("no"),
                Turn::text("no"),
            ],
        )
        .model();
    let main = main_with(&model, [agent("good"), agent("bad")]).build().unwrap();
    let (events, report) = read(main.start("go")).await;
    let [good, bad] = &answers(&events, "main")[..] else { panic!() };
    assert!(good.starts_with("fine"), "{good}");
    assert!(bad.contains("did not complete"), "{bad}");
    assert!(report.duration_ms.get() < Duration::from_secs(8), "they work at once");
    assert_eq!(report.outcome.cause, Cause::Goal);
}

/// Promise 7, codex#32027, #35463, opencode#37235: agents below get no agents, or named ones; never
/// themselves, and never too deep.
#[tokio::test(start_paused = true)]
async fn who_may_call_whom_is_granted_by_name_and_bounded() {
    let granting = |name: &str, granted: &[&str]| {
        let mut definition = agent(name);
        definition.agents = granted.iter().map(|name| (*name).to_owned()).collect();
        definition
    };
    let agents = [
        granting("a", &["b", "a"]),
        granting("b", &["a", "c"]),
        granting("c", &["d"]),
        granting("d", &[]),
    ];
    let model = Cast::new()
        .says("main", [ask("a", "1"), Turn::text("done")])
        .says("a", [ask("a", "me?"), ask("b", "2"), done("a")])
        .says("b", [ask("a", "back?"), ask("c", "3"), done("b")])
        .says("c", [ask("d", "4"), done("c")])
        .model();
    let main = main_with(&model, agents).build().unwrap();
    let (events, _) = read(main.start("go")).await;
    let told = |who: &str| answers(&events, who).join("\n");
    assert!(told("main/a").contains("there is no agent `a` (there are: b)"), "{}", told("main/a"));
    assert!(told("main/a/b").contains("there is no agent `a` (there are: c)"));
    let deepest = told("main/a/b/c");
    assert!(deepest.contains("delegate_to_agent"), "three levels are all there are: {deepest}");
    assert!(!asked(&model).contains(&"d".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn an_agent_gets_the_less_of_what_it_wants_and_what_is_left() {
    let mut small = agent("small");
    (small.run.max_turns, small.run.max_time) = (Some(3), Some(Duration::from_secs(30)));
    let mut large = agent("large");
    (large.run.max_turns, large.run.max_time) = (Some(500), Some(Duration::from_hours(9)));
    let model = Cast::new().says("main", [ask("small", "x"), ask("large", "x"), Turn::text("ok")]);
    let model = model.model();
    let main = main_with(&model, [small, large]).build().unwrap();
    let (events, _) = read(main.start("go")).await;
    let budgets = events.iter().filter_map(|event| match &event.body {
        EventBody::RunStarted { settings, .. } => Some(settings.budget.clone()),
        _ => None,
    });
    let budgets: Vec<(u32, u64)> =
        budgets.map(|budget| (budget.turns, budget.time_ms.get().as_secs())).collect();
    assert_eq!(
        budgets,
        [(30, 600), (3, 30), (28, 540)],
        "a minute is kept for the caller's last answer"
    );
}

/// R130, R186-R201: every way in which an agent ends.
/// gemini-cli 4.1 (#22323): an answer in the last turn does not make a goal of a limit.
#[tokio::test(start_paused = true)]
async fn every_termination_mode_is_reached_by_an_agent() {
    let mut short = agent("short");
    (short.run.max_turns, short.run.max_time) = (Some(2), Some(Duration::from_secs(20)));
    let nap = |millis: u64| Turn::call("nap", json!({ "millis": millis }));
    let broken = convoke_model::ModelError::new(
        convoke_model::ModelErrorKind::Authentication,
        "p",
        "no key",
    );
    let cases: Vec<(&str, Vec<Turn>, Cause, bool, &str)> = vec![
        ("goal", vec![done("r")], Cause::Goal, false, "GOAL"),
        ("recovered", vec![say("a"), done("late")], Cause::MaxTurns, true, "MAX_TURNS"),
        ("turns", vec![say("a"), Turn::text("no")], Cause::MaxTurns, false, "MAX_TURNS"),
        ("time", vec![nap(60_000), Turn::text("no")], Cause::Timeout, false, "TIMEOUT"),
        (
            "nothing",
            vec![Turn::text("a"), Turn::text("b")],
            Cause::NoCompletion,
            false,
            "ERROR_NO_COMPLETE_TASK_CALL",
        ),
        ("broken", vec![Turn::error(broken)], Cause::ModelUnavailable, false, "ERROR"),
    ];
    for (name, turns, cause, recovered, mode) in cases {
        let model = Cast::new()
            .says("main", [ask("short", "x"), Turn::text("ok")])
            .says("short", turns)
            .model();
        let main = main_with(&model, [short.clone()]).build().unwrap();
        let (events, report) = read(main.start("go")).await;
        let outcome = events.iter().find_map(|event| match &event.body {
            EventBody::AgentEnded { outcome, .. } => Some(outcome.clone()),
            _ => None,
        });
        let outcome = outcome.unwrap();
        assert_eq!((outcome.cause, outcome.recovered), (cause, recovered), "{name}");
        assert_eq!(json!(outcome.cause.terminate_mode()), mode, "{name}");
        assert_eq!(report.outcome.status, Status::Completed, "{name}: the caller goes on");
        let failed = answers(&events, "main")[0].contains("did not complete");
        assert_eq!(failed, cause != Cause::Goal, "{name}");
    }
}

/// A caller that is stopped stops everything below before it returns.
#[tokio::test(start_paused = true)]
async fn a_stopped_caller_stops_its_agents_first() {
    let mut middle = agent("middle");
    middle.agents = vec!["low".into()];
    let model = Cast::new()
        .says("main", [ask("middle", "x")])
        .says("middle", [ask("low", "x")])
        .says("low", [Turn::wait(Duration::from_secs(100)).and_text("never")])
        .model();
    let main = main_with(&model, [middle, agent("low")]).build().unwrap();
    let run = main.start("go");
    let handle = run.handle();
    let stopper = async {
        tokio::time::sleep(Duration::from_secs(3)).await;
        handle.cancel_because(Cause::Terminated);
    };
    let ((events, report), ()) = tokio::join!(read(run), stopper);
    assert_eq!(report.outcome.cause, Cause::Terminated);
    let ends: Vec<(String, Cause)> = events
        .iter()
        .filter_map(|event| match &event.body {
            EventBody::RunEnded { outcome, .. } => Some((event.agent.to_string(), outcome.cause)),
            _ => None,
        })
        .collect();
    let ended = |who: &str| (who.to_owned(), Cause::Terminated);
    assert_eq!(ends, [ended("main/middle/low"), ended("main/middle"), ended("main")]);
    assert_eq!(asked(&model), ["main", "middle", "low"], "nobody was asked after that");
}

/// R170-R173, R177-R179, C6: the ways in which a model reaches agents.
/// codex#31097: where agents are switched off, no model is offered any.
#[tokio::test(start_paused = true)]
async fn a_model_reaches_agents_as_it_is_set() {
    let mut typed = agent("typed");
    typed.input = InputConfig::none()
        .required("objective", InputType::String, "What to find.")
        .optional("max_files", InputType::Integer, "How many.");
    let cases = [
        (
            Delegation::Delegate,
            "delegate_to_agent",
            json!({ "agent_name": "typed", "prompt": "x", "inputs": { "max_files": 3 } }),
        ),
        (
            Delegation::Union,
            "delegate_to_agent",
            json!({ "agent_name": "typed", "objective": "x", "max_files": 3 }),
        ),
        (Delegation::PerAgent, "typed", json!({ "objective": "x", "max_files": 3 })),
    ];
    for (delegation, tool, arguments) in cases {
        let model = Cast::new()
            .says("main", [Turn::call(tool, arguments), Turn::text("ok")])
            .says("typed", [done("found")])
            .model();
        let team = team([typed.clone(), agent("other")]).delegation(delegation).background(false);
        let main = with(&model).system("Main.").team(team.build()).build().unwrap();
        let (events, _) = read(main.start("go")).await;
        let answer = &answers(&events, "main")[0];
        assert!(answer.starts_with("found"), "{delegation:?}: {answer}");
        let tools = &model.requests()[0].tools;
        let declared = tools.iter().find(|declared| declared.name == tool).unwrap();
        let schema = serde_json::to_value(&declared.parameters).unwrap();
        match delegation {
            Delegation::Delegate => {
                assert_eq!(schema["properties"]["agent_name"]["enum"], json!(["other", "typed"]));
                assert!(
                    declared
                        .description
                        .contains("- typed: Does what typed does. Inputs: max_files?.")
                );
            }
            Delegation::Union => {
                let branches = schema["oneOf"].as_array().unwrap();
                assert_eq!(branches[1]["properties"]["agent_name"]["const"], "typed");
                assert_eq!(branches[1]["required"], json!(["agent_name", "objective"]));
            }
            _ => assert_eq!(schema["required"], json!(["objective"])),
        }
    }
    let model = Cast::new().says("main", [Turn::text("alone")]).model();
    let off = team([typed]).delegation(Delegation::Off).build();
    let main = with(&model).team(off).build().unwrap();
    read(main.start("go")).await;
    assert_eq!(model.requests()[0].tools.len(), 3, "no agents, no tools for them");
}

/// R177, G9: a call is held against the agents there are now.
#[tokio::test(start_paused = true)]
async fn agents_that_come_and_go_while_a_run_works() {
    let registry = AgentRegistry::new();
    registry.register(agent("old")).unwrap();
    let team = Team::builder(registry.clone()).build();
    let hire = FunctionTool::new("hire", "Hires.", move |_: Word, _: ToolContext| {
        registry.register(agent("new")).unwrap();
        registry.remove("old");
        async { Ok::<_, String>("hired") }
    });
    let tools = ToolRegistry::new();
    tools.register(hire.kind(Kind::Read)).unwrap();
    let tools = ToolExecutor::builder(ToolView::of(tools), ToolContext::builder("t").build());
    let hired = Turn::call("hire", json!({ "word": "new" }));
    let model = Cast::new()
        .says("main", [hired, ask("new", "x"), ask("old", "x"), Turn::text("ok")])
        .says("new", [done("I am new")])
        .model();
    let main = AgentExecutor::with_model(model, tools).system("Main.").team(team).build().unwrap();
    let (events, _) = read(main.start("go")).await;
    let told = answers(&events, "main");
    assert!(told[1].starts_with("I am new"), "{told:?}");
    assert!(told[2].contains("there is no agent `old` (there are: new)"), "{told:?}");
}

#[tokio::test(start_paused = true)]
async fn wrong_inputs_are_answered_with_what_an_agent_wants() {
    let mut typed = agent("typed");
    typed.input = InputConfig::none().required("files", InputType::Strings, "Which.").optional(
        "depth",
        InputType::Integer,
        "How deep.",
    );
    let call = |arguments| Turn::call("delegate_to_agent", arguments);
    let model = Cast::new().says(
        "main",
        [
            call(json!({ "agent_name": "typed", "prompt": "look" })),
            call(json!({ "agent_name": "typed", "prompt": "", "inputs": { "files": "a", "depth": 1.5 } })),
            call(json!({ "agent_name": "typde", "prompt": "x" })),
            call(json!({ "prompt": "x" })),
            call(json!({ "agent_name": "typed", "prompt": "", "inputs": { "file": ["a"], "x": 1 } })),
            call(json!({ "agent_name": "typed", "prompt": "", "files": ["a"], "input": {} })),
            Turn::text("ok"),
        ],
    );
    let model = model.model();
    let main = main_with(&model, [typed]).build().unwrap();
    let (events, _) = read(main.start("go")).await;
    let told = answers(&events, "main");
    assert!(
        told[0].contains("takes no plain prompt: put what it needs into `inputs` (depth?, files)"),
        "{}",
        told[0]
    );
    assert!(
        told[1].contains("input `files` of `typed`") && told[1].contains("input `depth`"),
        "{}",
        told[1]
    );
    assert!(told[2].contains("there is no agent `typde`; did you mean `typed`?"), "{}", told[2]);
    assert!(told[3].contains("agent_name"), "{}", told[3]);
    assert!(told[4].contains("`typed` has no input `file`; did you mean `files`?"), "{}", told[4]);
    assert!(
        told[4].contains("`typed` has no input `x`; its inputs are: depth, files"),
        "{}",
        told[4]
    );
    assert!(
        told[5].contains("`files` is an input of `typed`: put it into `inputs`"),
        "{}",
        told[5]
    );
    assert!(told[5].contains("`input` is not a parameter; did you mean `inputs`?"), "{}", told[5]);
    assert_eq!(asked(&model).len(), 7, "no agent was asked anything");
}

/// R200, R132: output of a type, checked, and turned into the text that is handed on.
#[tokio::test(start_paused = true)]
async fn an_agent_gives_back_what_its_type_says() {
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Report {
        summary: String,
        files: Vec<String>,
    }
    let typed = agent("typed")
        .returning::<Report>("report", "What was found.")
        .processed(|report: Report| format!("{} in {} files", report.summary, report.files.len()));
    let model = Cast::new()
        .says("main", [ask("typed", "x"), Turn::text("ok")])
        .says(
            "typed",
            [
                Turn::call("complete_task", json!({ "report": { "summary": "auth" } })),
                Turn::call(
                    "complete_task",
                    json!({ "report": { "summary": "auth", "files": ["a", "b"] } }),
                ),
            ],
        )
        .model();
    let main = main_with(&model, [typed.untyped()]).build().unwrap();
    let (events, _) = read(main.start("go")).await;
    let answer = &answers(&events, "main")[0];
    assert!(answer.starts_with("auth in 2 files"), "{answer}");
    let value = events.iter().find_map(|event| match &event.body {
        EventBody::ToolCallCompleted { tool_name, result, .. }
            if tool_name == "delegate_to_agent" =>
        {
            Some(result.clone())
        }
        _ => None,
    });
    assert_eq!(value.unwrap()["output"]["files"], json!(["a", "b"]));
    assert_eq!(asked(&model), ["main", "typed", "typed", "main"], "a wrong shape is told");
}

/// R210-R212, C20.
#[test]
fn a_toolbox_finds_tools_first_and_agents_then() {
    let registry = ToolRegistry::new();
    registry.register(echo()).unwrap();
    let mut same = AgentDefinition::new("echo", "An agent with the name of a tool.");
    same.prompt.system_prompt = Some("You are echo.".into());
    let toolbox = Toolbox::new(ToolView::of(registry), Some(team([agent("finder"), same]).build()));
    assert_eq!(toolbox.kind_of("echo"), Some(ToolKind::Function));
    assert_eq!(toolbox.kind_of("finder"), Some(ToolKind::Agent));
    assert_eq!(toolbox.kind_of("nobody"), None);
    let names: Vec<String> = toolbox.all().iter().map(|tool| tool.spec().name.clone()).collect();
    assert_eq!(names, ["echo", "finder"]);
    assert_eq!(toolbox.get("finder").unwrap().spec().kind, Kind::Agent);
}

/// R203: whoever watches the call sees what the agent thinks, marked.
#[tokio::test(start_paused = true)]
async fn r203_thoughts_of_an_agent_are_shown_with_its_call() {
    let thinks = Turn::thought("Where could it be?").and_call("echo", json!({ "word": "x" }));
    let model = Cast::new()
        .says(
            "main",
            [
                Turn::thought("my own").and_call("delegate_to_agent", task("a", "x")),
                Turn::text("ok"),
            ],
        )
        .says("a", [thinks, done("r")])
        .model();
    let main = main_with(&model, [agent("a")]).build().unwrap();
    let (events, _) = read(main.start("go")).await;
    let shown: String = events
        .iter()
        .filter(|event| event.agent.as_str() == "main")
        .filter_map(|event| match &event.body {
            EventBody::ToolCallProgress { update, .. } => update.text.clone(),
            _ => None,
        })
        .collect();
    assert_eq!(shown, "🤖💭 Where could it be?");
    let activity =
        events.iter().filter_map(|event| convoke_core::mission::subagent_activity(event));
    let kinds: Vec<String> = activity
        .map(|one| one["type"].as_str().unwrap().to_owned())
        .filter(|kind| kind != "THOUGHT_CHUNK")
        .collect();
    assert_eq!(kinds, ["TOOL_CALL_START", "TOOL_CALL_END", "TOOL_CALL_START", "TOOL_CALL_END"]);
}

/// What an agent knows of its caller is what its definition says.
#[tokio::test(start_paused = true)]
async fn an_agent_knows_as_much_of_its_caller_as_it_is_meant_to() {
    for (context, messages, first) in [
        (Inherit::Fresh, 1, "look"),
        (Inherit::Brief, 1, "Your caller works on this task:\nThe big task"),
        (Inherit::Fork, 4, "The big task"),
    ] {
        let mut child = agent("a");
        child.run.context = context;
        let asks = Turn::text("I need help.").and_call("delegate_to_agent", task("a", "look"));
        let model = Cast::new().says("main", [say("first"), asks, Turn::text("ok")]).model();
        let main = main_with(&model, [child]).build().unwrap();
        read(main.start("The big task")).await;
        let asked = &model.requests()[2];
        assert_eq!(crate::family::who(asked), "a");
        let words: Vec<String> = asked.messages.iter().map(convoke_core::Message::words).collect();
        let roles: Vec<_> = asked.messages.iter().map(|message| message.role).collect();
        assert!(words[0].starts_with(first), "{context:?}: {words:?}");
        assert!(words.last().unwrap().ends_with("look"), "{context:?}: {words:?}");
        assert!(asked.messages.len() >= messages, "{context:?}: {roles:?}");
        let open = asked.messages.last().unwrap().calls().count();
        assert_eq!(open, 0, "no call without an answer is shown");
    }
}

/// Supplies a second model and denies what rules of agents deny.
#[derive(Debug)]
struct Shop(std::sync::Arc<convoke_model::scripted::ScriptedModel>);

#[async_trait::async_trait]
impl Supplier for Shop {
    fn model(&self, name: &str) -> Result<std::sync::Arc<dyn convoke_model::Model>, String> {
        match name {
            "fast" => Ok(self.0.clone()),
            other => Err(format!("no model is named `{other}`")),
        }
    }

    fn authorizer(
        &self,
        policy: &convoke_agent::definition::PolicyConfig,
    ) -> Result<Option<std::sync::Arc<dyn convoke_tool::Authorizer>>, String> {
        let deny = policy.mode.map(|_| -> std::sync::Arc<dyn convoke_tool::Authorizer> {
            let deny = convoke_tool::KindAuthorizer::default()
                .with(Kind::Read, convoke_core::Permission::Deny);
            std::sync::Arc::new(deny)
        });
        Ok(deny)
    }

    async fn premises(
        &self,
        kind: convoke_core::WorkspaceKind,
        _: &convoke_core::RunId,
        _: &ToolContext,
    ) -> Result<convoke_agent::Premises, String> {
        Err(format!("no workspace of the kind `{kind}`"))
    }
}

/// gemini-cli#24699, zed#62143, codex#23095: models, tools, policies and places of agents are as their
/// definitions say, or the call fails and says why; the caller goes on.
/// codex#2770, #8664: so an agent has a model, tools and a policy of its own.
#[tokio::test(start_paused = true)]
async fn an_agent_gets_what_its_definition_names_or_its_call_fails() {
    let fast = Cast::new().says("quick", [done("by the fast model")]).model();
    let mut quick = agent("quick");
    quick.model.model = Some("fast".into());
    let mut lost = agent("lost");
    lost.model.model = Some("slow".into());
    let mut tooled = agent("tooled");
    tooled.tools = ToolConfig::only(["echo", "hammer"]);
    let mut narrow = agent("narrow");
    narrow.policy.mode = Some(convoke_core::Mode::Plan);
    let mut housed = agent("housed");
    housed.run.workspace = Some(convoke_core::WorkspaceKind::Worktree);
    let own = FunctionTool::new("own", "Its own.", async |_: Word, _: ToolContext| {
        Ok::<_, String>("own tool")
    });
    let mut special = agent("special");
    special.tools.allow = Some(vec![
        ToolChoice::Given(convoke_tool::IntoTool::into_tool(own.kind(Kind::Read))),
        ToolChoice::Declared(convoke_core::Declaration {
            name: "echo".into(),
            description: "Said in other words.".into(),
            parameters: json!({ "type": "object", "properties": { "word": { "type": "string" } } })
                .into(),
        }),
    ]);
    let names = ["quick", "lost", "tooled", "narrow", "housed", "special"];
    let calls = names.iter().map(|name| ask(name, "x")).chain([Turn::text("ok")]);
    let model = Cast::new()
        .says("main", calls)
        .says("narrow", [say("x"), done("narrow")])
        .says("special", [Turn::call("own", json!({ "word": "x" })), done("special")])
        .model();
    let team = team([quick, lost, tooled, narrow, housed, special]).supplier(Shop(fast.clone()));
    let main = with(&model).system("Main.").team(team.build()).build().unwrap();
    let (events, report) = read(main.start("go")).await;
    let told = answers(&events, "main");
    assert!(told[0].starts_with("by the fast model"), "{}", told[0]);
    assert_eq!(asked(&fast), ["quick"]);
    assert!(
        told[1].contains("the agent `lost` cannot be started: no model is named `slow`"),
        "{}",
        told[1]
    );
    assert!(
        told[2].contains("no tool is named `hammer`") && told[2].contains("echo, fail, nap"),
        "{}",
        told[2]
    );
    assert!(answers(&events, "main/narrow")[0].contains("not allowed"), "child = caller and own");
    assert!(told[4].contains("no workspace of the kind `worktree`"), "{}", told[4]);
    assert!(told[5].starts_with("special"), "{}", told[5]);
    let special = model.requests().into_iter().find(|one| crate::family::who(one) == "special");
    let declared: Vec<String> =
        special.unwrap().tools.iter().map(|tool| tool.description.clone()).collect();
    assert!(declared.contains(&"Said in other words.".to_owned()), "{declared:?}");
    assert_eq!(report.outcome.cause, Cause::Goal);
}

/// An agent that ended is continued by its id in every way of calling it, and none takes what it does not know.
#[tokio::test(start_paused = true)]
async fn an_agent_goes_on_whichever_way_a_model_reaches_it() {
    for (delegation, tool, name) in
        [(Delegation::Union, "delegate_to_agent", Some("a")), (Delegation::PerAgent, "a", None)]
    {
        let call = |mut arguments: serde_json::Value| {
            if let Some(name) = name {
                arguments["agent_name"] = json!(name);
            }
            Turn::call(tool, arguments)
        };
        let model = Cast::new()
            .says(
                "main",
                [
                    call(json!({ "task": "first" })),
                    call(json!({ "task": "and now?", "agent_id": "call_1" })),
                    call(json!({ "task": "x", "agent_id": "nobody" })),
                    call(json!({ "task": "x", "taks": "y" })),
                    call(json!({ "task": "x", "background": true })),
                    Turn::text("ok"),
                    Turn::text("ok, heard"),
                ],
            )
            .says("a", [done("one"), done("two"), done("three")])
            .model();
        let team = team([agent("a")]).delegation(delegation).background(true).build();
        let main = with(&model).system("Main.").team(team).build().unwrap();
        let (events, _) = read(main.start("go")).await;
        let told = answers(&events, "main");
        assert!(told[0].starts_with("one") && told[0].contains("(agent_id: call_1)"), "{told:?}");
        assert!(told[1].starts_with("two"), "{delegation:?}: {told:?}");
        let again = &model.requests()[3].messages;
        assert_eq!(again[0].words(), "first", "{delegation:?}: it knows what it did");
        assert_eq!(again.last().unwrap().words(), "and now?");
        assert!(told[2].contains("you called no agent with the id `nobody`"), "{told:?}");
        assert!(told[3].contains("`taks`") && told[3].contains("did you mean `task`"), "{told:?}");
        assert!(told[4].contains("works in the background"), "{delegation:?}: {told:?}");
    }
}

/// A description is sent with every request: a long one is cut.
#[tokio::test(start_paused = true)]
async fn a_long_description_is_told_in_short() {
    let mut wordy = agent("wordy");
    wordy.description = "It does many things. ".repeat(5_000);
    for delegation in [Delegation::Delegate, Delegation::Union, Delegation::PerAgent] {
        let model = Cast::new().says("main", [Turn::text("ok")]).model();
        let team = team([wordy.clone()]).delegation(delegation).background(false).build();
        let main = with(&model).system("Main.").team(team).build().unwrap();
        read(main.start("go")).await;
        let tools = &model.requests()[0].tools;
        let bytes: usize = tools
            .iter()
            .map(|tool| tool.description.len() + tool.parameters.text().get().len())
            .sum();
        assert!(bytes < 5_000, "{delegation:?}: {bytes}");
        assert!(tools.iter().any(|tool| {
            let text = format!("{}{}", tool.description, tool.parameters.text().get());
            text.contains("It does many things.") && text.contains(" …")
        }));
    }
}
