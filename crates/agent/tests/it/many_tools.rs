//! Many tools, and tools that come later: looked for, and called through one that stays the same.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use convoke_agent::{AgentBuilder, AgentExecutor, ManyTools};
use convoke_core::{Category, Cause, Event, EventBody, Kind, RunId, USE_TOOL};
use convoke_model::scripted::{ScriptedModel, Turn};
use convoke_tool::catalogue::{Arrivals, Source, SourceChange, Standing, TOOL_SEARCH, tokens};
use convoke_tool::testing::AllowAll;
use convoke_tool::{
    Authorizer, Decision, FunctionTool, IntoTool as _, Request, Tool, ToolContext, ToolExecutor,
    ToolRegistry, ToolView,
};
use futures_util::stream::{self, BoxStream, StreamExt as _};
use serde_json::json;
use tokio::sync::watch;

use crate::family::{Cast, agent, answers, team};
use crate::support::{PausedClock, Word, echo, read, script};

/// A tool as a server brings it, with parameters of the usual length.
fn foreign(server: &str, name: &str, what: &str) -> Arc<dyn Tool> {
    let name = format!("mcp__{server}__{name}");
    let label = name.clone();
    let act = move |word: Word, _: ToolContext| {
        let said = format!("{label} heard {}", word.word);
        async move { Ok::<_, String>(said) }
    };
    FunctionTool::new(&*name, what, act).category(Category::Mcp).kind(Kind::Read).into_tool()
}

/// Two hundred tools of ten servers.
fn registry() -> ToolRegistry {
    let registry = ToolRegistry::new();
    registry.register(echo()).unwrap();
    for server in 0..10 {
        let group = format!("mcp__s{server}__");
        let what =
            "Does something with the word that it is given, and says at length what that was.";
        let mut tools: Vec<_> = (0..20)
            .map(|index| foreign(&format!("s{server}"), &format!("act_{index}"), what))
            .collect();
        if server == 3 {
            tools.push(foreign("s3", "brew_coffee", "Makes coffee of a kind."));
        }
        assert_eq!(registry.set_group(&group, tools), []);
    }
    registry
}

fn with(
    model: &Arc<ScriptedModel>,
    registry: ToolRegistry,
    authorizer: impl Authorizer + 'static,
) -> AgentBuilder {
    let context = ToolContext::builder("t").clock(Arc::new(PausedClock::new())).build();
    let tools = ToolExecutor::builder(ToolView::of(registry), context).authorizer(authorizer);
    AgentExecutor::with_model(model.clone(), tools).system("Main.")
}

fn called(events: &[Arc<Event>]) -> Vec<&str> {
    let started = events.iter().filter_map(|event| match &event.body {
        EventBody::ToolCallStarted { tool_name, .. } => Some(tool_name.as_str()),
        _ => None,
    });
    started.collect()
}

/// 200 tools cost at most 3,000 tokens before the first word, and each can still be used.
/// claude-code#13717, #7336, #11364, kilocode#9602, opencode#8277, #8625: schemas are not told before they are
/// wanted.
#[tokio::test(start_paused = true)]
async fn two_hundred_tools_are_looked_for_and_called_as_what_they_are() {
    let use_it = json!({ "name": "mcp__s3__brew_coffee", "args": { "word": "black" } });
    let model = script([
        Turn::call(TOOL_SEARCH, json!({ "query": "make some coffee" })),
        Turn::call(USE_TOOL, use_it).and_call("echo", json!({ "word": "x" })),
        Turn::text("Here you are."),
    ]);
    let main = with(&model, registry(), AllowAll).many_tools(Some(ManyTools::up_to(2_000)));
    let (events, report) = read(main.build().unwrap().start("Coffee!")).await;
    assert_eq!(report.outcome.cause, Cause::Goal);
    let told = model.requests()[0].tools.clone();
    let names: Vec<&str> = told.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["echo", TOOL_SEARCH, USE_TOOL]);
    let cost: usize = told.iter().map(tokens).sum();
    assert!(cost < 500, "{cost} tokens");
    assert!(model.requests().iter().all(|request| request.tools == told), "it stays the same");
    let found = &answers(&events, "main")[0];
    assert!(found.contains(r#""name":"mcp__s3__brew_coffee""#), "{found}");
    assert!(found.contains(r#""required":["word"]"#), "with its parameters: {found}");
    assert_eq!(called(&events), [TOOL_SEARCH, "mcp__s3__brew_coffee", "echo"]);
    assert_eq!(answers(&events, "main")[1], "mcp__s3__brew_coffee heard black");
}

/// Below the threshold everything is told as ever.
#[tokio::test(start_paused = true)]
async fn a_few_tools_are_told_one_by_one() {
    let registry = ToolRegistry::new();
    registry.register(echo()).unwrap();
    assert_eq!(registry.set_group("mcp__a__", vec![foreign("a", "x", "Does x.")]), []);
    let model = script([Turn::text("Hi.")]);
    let main = with(&model, registry, AllowAll).many_tools(Some(ManyTools::up_to(2_000)));
    read(main.build().unwrap().start("Hi")).await;
    let told = model.requests()[0].tools.clone();
    let names: Vec<&str> = told.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["echo", "mcp__a__x"]);
}

/// Denies one tool by its name.
#[derive(Debug)]
struct NoCoffee;

impl Authorizer for NoCoffee {
    fn decide(&self, request: &Request<'_>) -> Decision {
        if request.spec.name == "mcp__s3__brew_coffee" {
            return Decision::Deny {
                rule: "coffee".into(),
                reason: "coffee is not allowed".into(),
            };
        }
        AllowAll.decide(request)
    }
}

/// Whoever decides sees the tool that is meant, its arguments are checked as its own, and wrong calls are told
/// what is wrong.
#[tokio::test(start_paused = true)]
async fn nothing_is_hidden_behind_the_tool_that_calls_others() {
    let model = script([
        Turn::call(USE_TOOL, json!({ "name": "mcp__s3__brew_coffee", "args": { "word": "x" } }))
            .and_call(USE_TOOL, json!({ "name": "mcp__s1__act_1", "args": { "wrod": "x" } }))
            .and_call(USE_TOOL, json!({ "name": "mcp__s1__act_1", "args": "{\"word\":\"text\"}" }))
            .and_call(USE_TOOL, json!({ "name": "mcp__s1__act", "args": {} }))
            .and_call(USE_TOOL, json!({ "name": USE_TOOL, "args": { "name": "echo" } }))
            .and_call(USE_TOOL, json!({ "args": {} }))
            .and_call(USE_TOOL, json!({ "name": "complete_task", "args": { "result": "x" } })),
        Turn::text("Well."),
    ]);
    let main = with(&model, registry(), NoCoffee).many_tools(Some(ManyTools::up_to(2_000)));
    let (events, _) = read(main.build().unwrap().start("Go")).await;
    let denied: Vec<&str> = events
        .iter()
        .filter_map(|event| match &event.body {
            EventBody::ToolCallDenied { tool_name, .. } => Some(tool_name.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(denied, ["mcp__s3__brew_coffee"]);
    // As the model sees them, in the order of its calls.
    let last = model.requests()[1].messages.last().unwrap().clone();
    let said: Vec<String> = last
        .parts
        .iter()
        .filter_map(|part| match part {
            convoke_core::Part::ToolResult { content, .. } => Some(format!("{content:?}")),
            _ => None,
        })
        .collect();
    for (index, part) in [
        (0, "coffee is not allowed"),
        (1, "wrod"),
        (2, "mcp__s1__act_1 heard text"),
        (3, "did you mean"),
        (4, "the name of another tool"),
        (5, "name"),
        (6, "not found"),
    ] {
        assert!(said[index].contains(part), "{index}: {}", said[index]);
    }
}

/// A server that starts slowly.
#[derive(Debug)]
struct Slow {
    registry: ToolRegistry,
    here: watch::Sender<bool>,
    expected: Mutex<u32>,
}

#[async_trait]
impl Arrivals for Slow {
    fn expect(&self, _: &RunId) {
        *self.expected.lock().unwrap() += 1;
    }

    fn sources(&self) -> Vec<Source> {
        let standing =
            if *self.here.borrow() { Standing::Here { count: 1 } } else { Standing::Coming };
        let broken = Standing::Missing { reason: "it does not start".into() };
        vec![
            Source { name: "late".into(), standing },
            Source { name: "broken".into(), standing: broken },
        ]
    }

    async fn settled(&self) {
        tokio::time::sleep(std::time::Duration::from_secs(5)).await;
        let tools = vec![foreign("late", "tell_fortune", "Tells the future.")];
        assert_eq!(self.registry.set_group("mcp__late__", tools), []);
        self.here.send_replace(true);
    }

    fn changes(&self) -> BoxStream<'static, SourceChange> {
        let next = |mut here: watch::Receiver<bool>| async move {
            here.changed().await.ok()?;
            let change = SourceChange { name: "late".into(), state: "ready".into(), reason: None };
            Some((change, here))
        };
        let warned = |change| {
            let warning = SourceChange::warning("late".into(), "it babbles".into());
            stream::iter([warning, change])
        };
        stream::unfold(self.here.subscribe(), next).flat_map(warned).boxed()
    }
}

/// The first request waits for nobody; a search does, and says who did not come.
/// codex#20167, #14627, #6317: a slow server holds up no start. claude-code#92033, #91514, #81967, #85326,
/// #27048: a server that comes and goes does not change the beginning of a request, which caches depend on.
#[tokio::test(start_paused = true)]
async fn tools_that_come_later_are_found_without_changing_what_was_told() {
    let registry = registry();
    registry.announce("mcp__late__");
    let slow = Arc::new(Slow {
        registry: registry.clone(),
        here: watch::Sender::new(false),
        expected: Mutex::default(),
    });
    let model = script([
        Turn::call(TOOL_SEARCH, json!({ "query": "the future" })),
        Turn::call(
            USE_TOOL,
            json!({ "name": "mcp__late__tell_fortune", "args": { "word": "mine" } }),
        ),
        Turn::text("It is bright."),
    ]);
    let many = ManyTools::up_to(1_000_000).and(slow.clone());
    let main = with(&model, registry, AllowAll).many_tools(Some(many)).build().unwrap();
    let (events, report) = read(main.start("Tell me")).await;
    assert_eq!(report.outcome.cause, Cause::Goal);
    assert_eq!(*slow.expected.lock().unwrap(), 1, "it was asked for at once");
    let first = &model.requests()[0].tools;
    assert!(first.iter().all(|tool| !tool.name.contains("late")), "nobody waited");
    let search = first.iter().find(|tool| tool.name == TOOL_SEARCH).unwrap();
    assert!(search.description.contains("There are tools of: late, broken."), "{search:?}");
    assert!(model.requests().iter().all(|request| request.tools == *first));
    let found = &answers(&events, "main")[0];
    assert!(found.contains("mcp__late__tell_fortune"), "{found}");
    assert!(found.contains("broken: it does not start"), "{found}");
    assert_eq!(answers(&events, "main")[1], "mcp__late__tell_fortune heard mine");
    let told = events.iter().any(|event| {
        matches!(&event.body, EventBody::McpServerState { server, state, .. } if server == "late" && state == "ready")
    });
    assert!(told, "what becomes of a server is in the stream");
    let warned = events.iter().any(
        |event| matches!(&event.body, EventBody::Warning { message } if message == "it babbles"),
    );
    assert!(warned, "and so is what there is to know about it");
}

/// Servers that are all known.
#[derive(Debug)]
struct Known;

#[async_trait]
impl Arrivals for Known {
    fn expect(&self, _: &RunId) {}

    fn sources(&self) -> Vec<Source> {
        vec![Source { name: "a".into(), standing: Standing::Here { count: 1 } }]
    }

    async fn settled(&self) {}

    fn changes(&self) -> BoxStream<'static, SourceChange> {
        stream::pending().boxed()
    }
}

/// A server that is known may have more tomorrow, or in a minute: its tools are told, and so is how to find
/// others. Who may use none of any server is not told how.
#[tokio::test(start_paused = true)]
async fn what_servers_may_bring_later_can_be_found_by_who_may_use_it() {
    let model = Cast::new()
        .says("main", [crate::family::ask("plain", "Go."), Turn::text("ok")])
        .says("plain", [crate::family::done("fine")])
        .model();
    let registry = ToolRegistry::new();
    registry.register(echo()).unwrap();
    assert_eq!(registry.set_group("mcp__a__", vec![foreign("a", "x", "Does x.")]), []);
    let mut plain = agent("plain");
    plain.tools = convoke_agent::definition::ToolConfig::only(["echo"]);
    let main = with(&model, registry, AllowAll)
        .team(team([plain]).build())
        .many_tools(Some(ManyTools::up_to(2_000).and(Arc::new(Known))));
    read(main.build().unwrap().start("Hi")).await;
    let names = |request: usize| -> Vec<String> {
        model.requests()[request].tools.iter().map(|tool| tool.name.clone()).collect()
    };
    for name in ["mcp__a__x", TOOL_SEARCH, USE_TOOL] {
        assert!(names(0).contains(&name.to_owned()), "{name}: {:?}", names(0));
    }
    assert_eq!(names(1), ["echo", "complete_task"]);
}

/// Agents are found beside tools, and called the same way; so do agents look for tools.
/// goose#6583: where tools are looked for in place of being listed, agents are not hidden by it.
#[tokio::test(start_paused = true)]
async fn agents_are_found_and_find() {
    let model = Cast::new()
        .says(
            "main",
            [
                Turn::call(TOOL_SEARCH, json!({ "query": "barista" })),
                Turn::call(USE_TOOL, json!({ "name": "barista", "args": { "task": "two cups" } })),
                Turn::text("Served."),
            ],
        )
        .says(
            "barista",
            [
                Turn::call(
                    USE_TOOL,
                    json!({ "name": "mcp__s3__brew_coffee", "args": { "word": "x" } }),
                ),
                Turn::call("complete_task", json!({ "result": "two cups" })),
            ],
        )
        .model();
    let main = with(&model, registry(), AllowAll)
        .team(team([agent("barista")]).build())
        .many_tools(Some(ManyTools::up_to(2_000)))
        .build()
        .unwrap();
    let (events, report) = read(main.start("Coffee for two")).await;
    assert_eq!(report.outcome.cause, Cause::Goal);
    assert!(answers(&events, "main")[0].contains(r#""name":"barista""#));
    assert!(answers(&events, "main")[1].contains("two cups"), "{:?}", answers(&events, "main"));
    assert_eq!(called(&events), [TOOL_SEARCH, "barista", "mcp__s3__brew_coffee"]);
}
