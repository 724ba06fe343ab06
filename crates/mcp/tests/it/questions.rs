//! Servers that ask a person, or a model, in the middle of a call.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use convoke_core::{ErrorKind, EventBody, ToolCall, ToolError};
use convoke_mcp::client::{
    Elicitation, Elicited, Elicitor, ElicitorHandle, Sample, SampleRequest, Sampler, SamplerHandle,
    Sampling, Wanted,
};
use convoke_tool::testing::AllowAll;
use convoke_tool::{
    Answer, MemorySink, Recorder, SystemClock, Tool, ToolContext, ToolExecutor, ToolRegistry,
    ToolView, ask_with,
};
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use crate::scripted::{Scripted, basics, call_with, config, pipeline, the_tool, tool};

/// Gives the answers it has, in order, each after a while.
#[derive(Debug, Default)]
pub(crate) struct Person {
    answers: Mutex<VecDeque<Elicited>>,
    pub(crate) asked: Mutex<Vec<Elicitation>>,
    thinks: Duration,
}

impl Person {
    pub(crate) fn says(answers: impl IntoIterator<Item = Elicited>) -> Arc<Self> {
        Arc::new(Self { answers: Mutex::new(answers.into_iter().collect()), ..Self::default() })
    }
}

#[async_trait]
impl Elicitor for Person {
    async fn elicit(&self, question: Elicitation) -> Elicited {
        tokio::time::sleep(self.thinks).await;
        self.asked.lock().unwrap().push(question);
        self.answers.lock().unwrap().pop_front().unwrap_or(Elicited::Cancel)
    }
}

pub(crate) fn with(person: &Arc<Person>) -> ToolContext {
    let person: Arc<dyn Elicitor> = person.clone();
    ToolContext::builder("task").extension(ElicitorHandle(person)).build()
}

fn name_is(name: &str) -> Elicited {
    Elicited::Accept(Map::from_iter([("name".to_owned(), json!(name))]))
}

fn question() -> Value {
    json!({ "message": "Who are you?", "requestedSchema": { "type": "object", "properties": {
        "name": { "type": "string" }, "age": { "type": "integer", "default": 7 } },
        "required": ["name"] } })
}

/// A server of the old kind: it asks by itself, and shows what it was answered.
fn asks(method: &'static str, params: fn() -> Value) -> Scripted {
    let open = Mutex::new(None::<Value>);
    Scripted::new(move |message, out| match message["method"].as_str() {
        Some("tools/list") => out.answer(message, &json!({ "tools": [tool("ask")] })),
        Some("tools/call") => {
            *open.lock().unwrap() = Some(message.clone());
            out.send(
                &json!({ "jsonrpc": "2.0", "id": "q1", "method": method, "params": params() }),
            );
        }
        None if message["id"] == "q1" => {
            let call = open.lock().unwrap().take().unwrap();
            let answer = message.get("result").or_else(|| message.get("error")).unwrap();
            out.text(&call, &answer.to_string());
        }
        _ => basics(message, out),
    })
}

/// A server of the new kind: it answers with what it needs, and is asked again.
fn needs(request: fn() -> Value) -> Scripted {
    Scripted::new(move |message, out| match message["method"].as_str() {
        Some("server/discover") => out.answer(
            message,
            &json!({
                "resultType": "complete", "supportedVersions": ["2026-07-28"],
                "capabilities": { "tools": {} }, "ttlMs": 0, "cacheScope": "private",
            }),
        ),
        Some("tools/list") => out.answer(
            message,
            &json!({ "resultType": "complete",
            "tools": [tool("ask")], "ttlMs": 0, "cacheScope": "private" }),
        ),
        Some("tools/call") => match message["params"].get("inputResponses") {
            None => out.answer(
                message,
                &json!({ "resultType": "input_required",
                "inputRequests": { "who": request() }, "requestState": "s1" }),
            ),
            Some(answers) => {
                assert_eq!(message["params"]["requestState"], "s1");
                let text = answers["who"].to_string();
                out.answer(
                    message,
                    &json!({ "resultType": "complete",
                    "content": [{ "type": "text", "text": text }] }),
                );
            }
        },
        _ => basics(message, out),
    })
}

fn elicitation() -> Value {
    json!({ "method": "elicitation/create", "params": question() })
}

#[tokio::test]
async fn a_person_is_asked_in_both_ways_and_defaults_are_filled_in() {
    for scripted in [asks("elicitation/create", question), needs(elicitation)] {
        let person = Person::says([name_is("Ada")]);
        let servers = scripted.servers();
        let result = call_with(&servers, "ask", json!({}), with(&person)).await;
        let answer: Value = serde_json::from_str(&result.text()).unwrap();
        let content = json!({ "name": "Ada", "age": 7 });
        assert_eq!(answer, json!({ "action": "accept", "content": content }));
        let asked = person.asked.lock().unwrap();
        assert_eq!((asked[0].server.as_str(), asked[0].message.as_str()), ("s", "Who are you?"));
        assert!(matches!(&asked[0].wanted, Wanted::Form { .. }));
    }
}

#[tokio::test]
async fn no_answer_or_nobody_to_ask_lets_the_call_go_on() {
    for make in [|| asks("elicitation/create", question), || needs(elicitation)] {
        let nobody = ToolContext::builder("task").build();
        let result = call_with(&make().servers(), "ask", json!({}), nobody).await;
        assert_eq!(result.text(), r#"{"action":"cancel"}"#);
        let declines = with(&Person::says([Elicited::Decline]));
        let result = call_with(&make().servers(), "ask", json!({}), declines).await;
        assert_eq!(result.text(), r#"{"action":"decline"}"#);
        let silent = with(&Person::says([]));
        let result = call_with(&make().servers(), "ask", json!({}), silent).await;
        assert_eq!(result.text(), r#"{"action":"cancel"}"#);
    }
}

#[tokio::test(start_paused = true)]
async fn time_stands_still_while_a_person_thinks() {
    let scripted = asks("elicitation/create", question);
    let limits = config().timeout(Duration::from_secs(5)).longest_call(Duration::from_secs(9));
    let servers = scripted.configured(limits.start_timeout(Duration::from_secs(1)));
    let person = Arc::new(Person {
        answers: Mutex::new([name_is("Ada")].into()),
        thinks: Duration::from_mins(1),
        ..Person::default()
    });
    let result = call_with(&servers, "ask", json!({}), with(&person)).await;
    assert!(result.text().contains("accept"), "{}", result.text());
}

#[tokio::test]
async fn a_question_that_nobody_could_answer_is_refused() {
    let nested = || {
        json!({ "message": "", "requestedSchema": { "type": "object", "properties": {
        "inner": { "type": "object", "properties": {} } } } })
    };
    let person = Person::says([name_is("Ada")]);
    let scripted = asks("elicitation/create", nested);
    let result = call_with(&scripted.servers(), "ask", json!({}), with(&person)).await;
    assert!(result.text().contains("`inner`"), "{}", result.text());
    assert!(person.asked.lock().unwrap().is_empty());
}

#[derive(Debug)]
struct Model;

#[async_trait]
impl Sampler for Model {
    async fn sample(&self, _: &ToolContext, request: SampleRequest) -> Result<Sample, ToolError> {
        Ok(Sample { text: format!("{}!", request.messages[0].words()), model: "m".into() })
    }
}

fn sampling() -> Value {
    json!({ "messages": [{ "role": "user", "content": { "type": "text", "text": "hi" } }],
        "maxTokens": 10 })
}

fn sampling_request() -> Value {
    json!({ "method": "sampling/createMessage", "params": sampling() })
}

#[tokio::test]
async fn a_model_answers_only_where_that_is_granted() {
    let context = || ToolContext::builder("task").extension(SamplerHandle(Arc::new(Model))).build();
    let old = || asks("sampling/createMessage", sampling);
    let refused = call_with(&old().servers(), "ask", json!({}), context()).await;
    assert!(refused.text().contains("not granted"), "{}", refused.text());
    let new = needs(sampling_request);
    let refused = call_with(&new.servers(), "ask", json!({}), context()).await;
    let error = refused.error().unwrap();
    assert_eq!(error.kind, ErrorKind::Failed);
    assert!(error.message.contains("not granted"), "{error}");

    let granted = config().sampling(Sampling::Granted);
    let servers = old().configured(granted.clone());
    let answered = call_with(&servers, "ask", json!({}), context()).await;
    assert!(answered.text().contains("hi!"), "{}", answered.text());
    let servers = needs(sampling_request).configured(granted.clone());
    let answered = call_with(&servers, "ask", json!({}), context()).await;
    assert!(answered.text().contains("hi!"), "{}", answered.text());
    let nobody = ToolContext::builder("task").build();
    let servers = old().configured(granted);
    let refused = call_with(&servers, "ask", json!({}), nobody).await;
    assert!(refused.text().contains("no model answers"), "{}", refused.text());
}

#[tokio::test(start_paused = true)]
async fn questions_without_end_are_given_up() {
    let scripted = Scripted::new(|message, out| match message["method"].as_str() {
        Some("tools/call") => out.answer(
            message,
            &json!({ "resultType": "input_required",
            "requestState": "again" }),
        ),
        Some("tools/list") => out.answer(message, &json!({ "tools": [tool("ask")] })),
        _ => basics(message, out),
    });
    let nobody = ToolContext::builder("task").build();
    let result = call_with(&scripted.servers(), "ask", json!({}), nobody).await;
    assert!(result.error().unwrap().message.contains("10 rounds"), "{}", result.text());
}

/// A server that asks one question once two calls are under way, and tells both what it was answered. It does not say
/// for which of them it asks. A call of `end_slow` ends those of `slow` before.
fn asks_for_one_of_two() -> Scripted {
    let open = Mutex::new(Vec::<Value>::new());
    Scripted::new(move |message, out| match message["method"].as_str() {
        Some("tools/list") => {
            let tools = ["ask", "slow", "end_slow"].map(tool);
            out.answer(message, &json!({ "tools": tools }));
        }
        Some("tools/call") if message["params"]["name"] == "end_slow" => {
            let mut open = open.lock().unwrap();
            let ended = open.extract_if(.., |call| call["params"]["name"] == "slow");
            ended.for_each(|call| out.text(&call, "slow has ended"));
            out.text(message, "done");
        }
        Some("tools/call") => {
            let mut open = open.lock().unwrap();
            open.push(message.clone());
            if open.len() == 2 {
                out.send(&json!({ "jsonrpc": "2.0", "id": "q1", "method": "elicitation/create",
                    "params": question() }));
            }
        }
        None if message["id"] == "q1" => {
            for call in open.lock().unwrap().drain(..) {
                out.text(&call, &message["result"].to_string());
            }
        }
        _ => basics(message, out),
    })
}

#[tokio::test(start_paused = true)]
async fn time_stands_still_for_every_call_that_a_question_may_belong_to() {
    let limits = config().timeout(Duration::from_secs(5)).longest_call(Duration::from_secs(9));
    let limits = limits.start_timeout(Duration::from_secs(1));
    let servers = asks_for_one_of_two().configured(limits);
    servers.start("s").await.unwrap();
    let person = Arc::new(Person {
        answers: Mutex::new([name_is("Ada")].into()),
        thinks: Duration::from_mins(1),
        ..Person::default()
    });
    let (first, second) = tokio::join!(
        call_with(&servers, "ask", json!({}), with(&person)),
        call_with(&servers, "ask", json!({}), with(&person)),
    );
    for result in [first, second] {
        assert!(result.text().contains("accept"), "{}", result.text());
    }
    assert_eq!(person.asked.lock().unwrap().len(), 1);
}

/// Regression: for a call that is a task, the time in which a person thought was its own.
#[tokio::test(start_paused = true)]
async fn time_stands_still_for_a_task_while_it_asks() {
    let answer = Mutex::new(None::<Value>);
    let scripted = Scripted::new(move |message, out| {
        let status = if answer.lock().unwrap().is_some() { "completed" } else { "working" };
        let task = json!({ "taskId": "t-1", "status": status, "ttl": null, "pollInterval": 500,
            "createdAt": "2026-01-01T00:00:00Z", "lastUpdatedAt": "2026-01-01T00:00:00Z" });
        match message["method"].as_str() {
            Some("tools/list") => {
                let mut ask = tool("ask");
                ask["execution"] = json!({ "taskSupport": "required" });
                out.answer(message, &json!({ "tools": [ask] }));
            }
            Some("tools/call") => {
                out.answer(message, &json!({ "task": task }));
                out.send(&json!({ "jsonrpc": "2.0", "id": "q1", "method": "elicitation/create",
                    "params": question() }));
            }
            Some("tasks/get") => out.answer(message, &task),
            Some("tasks/result") => {
                out.text(message, &answer.lock().unwrap().take().unwrap_or_default().to_string());
            }
            None if message["id"] == "q1" => {
                *answer.lock().unwrap() = Some(message["result"].clone());
            }
            _ => basics(message, out),
        }
    });
    let limits = config().timeout(Duration::from_secs(5)).longest_call(Duration::from_secs(9));
    let servers = scripted.configured(limits.start_timeout(Duration::from_secs(1)));
    let person = Arc::new(Person {
        answers: Mutex::new([name_is("Ada")].into()),
        thinks: Duration::from_mins(1),
        ..Person::default()
    });
    let result = call_with(&servers, "ask", json!({}), with(&person)).await;
    assert!(result.text().contains("Ada"), "{}", result.text());
}

/// A program does not say for which of its calls it asks. A question does not go away with the wrong one.
#[tokio::test]
async fn a_question_that_may_belong_to_several_calls_is_open_as_long_as_one_of_them_is() {
    let servers = asks_for_one_of_two().servers();
    servers.start("s").await.unwrap();
    let registry = ToolRegistry::new();
    servers.introduce(&registry);
    let asked = Arc::new(Mutex::new(Vec::new()));
    let approver = {
        let (asked, servers) = (Arc::clone(&asked), servers.clone());
        ask_with(move |question| {
            let mut asked = asked.lock().unwrap();
            asked.push((question.tool_name.clone(), question.reason.clone()));
            let (is_first, servers) = (asked.len() == 1, servers.clone());
            async move {
                if is_first {
                    let context = ToolContext::builder("other").build();
                    call_with(&servers, "end_slow", json!({}), context).await;
                    std::future::pending::<()>().await;
                }
                Answer::with_arguments(json!({ "name": "Ada" }))
            }
        })
    };
    let context = ToolContext::builder("task").build();
    let executor = ToolExecutor::builder(ToolView::of(registry), context)
        .authorizer(AllowAll)
        .approver(approver)
        .build();
    let call = |id: &str, tool: &str| executor.execute(ToolCall::new(id, tool, json!({})));
    let (ask, slow) = tokio::join!(call("c1", "mcp__s__ask"), call("c2", "mcp__s__slow"));
    assert_eq!(slow.text(), "slow has ended");
    assert!(ask.text().contains("Ada"), "{}", ask.text());
    let asked = asked.lock().unwrap().clone();
    let for_whom: Vec<&str> = asked.iter().map(|(tool, _)| tool.as_str()).collect();
    assert_eq!(for_whom, ["mcp__s__slow", "mcp__s__ask"]);
    let (_, reason) = &asked[0];
    assert!(reason.ends_with("(for one of its calls: mcp__s__ask, mcp__s__slow)"), "{reason}");
}

/// Whoever reads the record learns how each question ended.
#[tokio::test]
async fn a_question_that_is_open_when_the_run_stops_is_closed_and_nothing_is_asked_again() {
    // Which of two ends is seen first was a matter of chance.
    for _ in 0..10 {
        let scripted = needs(elicitation);
        let servers = scripted.servers();
        servers.start("s").await.unwrap();
        let registry = ToolRegistry::new();
        servers.introduce(&registry);
        let stop = CancellationToken::new();
        let context = ToolContext::builder("task").cancellation(stop.clone()).build();
        let approver = ask_with(move |_| {
            stop.cancel();
            std::future::pending::<Answer>()
        });
        let sink = Arc::new(MemorySink::default());
        let recorder = Recorder::new("run", sink.clone(), Arc::new(SystemClock));
        let executor = ToolExecutor::builder(ToolView::of(registry), context)
            .authorizer(AllowAll)
            .approver(approver)
            .recorder(recorder)
            .build();
        let result = executor.execute(ToolCall::new("c1", "mcp__s__ask", json!({}))).await;
        assert_eq!(result.error().unwrap().kind, ErrorKind::Cancelled);
        let is_closed = sink
            .events()
            .iter()
            .any(|event| matches!(&event.body, EventBody::InquiryAnswered { accepted: false, .. }));
        assert!(is_closed);
        let methods = scripted.seen.methods();
        assert_eq!(methods.iter().filter(|method| *method == "tools/call").count(), 1);
    }
}

/// Somebody who stops the run and never answers.
#[derive(Debug)]
struct Leaves(CancellationToken);

#[async_trait]
impl Elicitor for Leaves {
    async fn elicit(&self, _: Elicitation) -> Elicited {
        self.0.cancel();
        std::future::pending().await
    }
}

#[tokio::test]
async fn a_question_ends_with_its_call() {
    let scripted = asks("elicitation/create", question);
    let servers = scripted.servers();
    servers.start("s").await.unwrap();
    let stop = CancellationToken::new();
    let person: Arc<dyn Elicitor> = Arc::new(Leaves(stop.clone()));
    let context = ToolContext::builder("task").extension(ElicitorHandle(person));
    let context = context.cancellation(stop).build();
    let result = call_with(&servers, "ask", json!({}), context).await;
    assert_eq!(result.error().unwrap().kind, ErrorKind::Cancelled);
    let answer = scripted.seen.wait_for(|message| message["id"] == "q1").await;
    assert_eq!(answer["result"]["action"], "cancel");
}

/// What is not done here, such as roots, tasks or tools for a model that answers a server, is not offered.
#[tokio::test]
async fn a_server_is_told_what_is_done_here_and_nothing_else() {
    for (sampling, expected) in [
        (Sampling::Refused, vec!["elicitation"]),
        (Sampling::Granted, vec!["elicitation", "sampling"]),
    ] {
        let scripted = Scripted::with_tools(json!([tool("t")]), |_, _| {});
        let servers = scripted.configured(config().sampling(sampling));
        servers.start("s").await.unwrap();
        let greeting = scripted.seen.method("initialize").await;
        let capabilities = greeting["params"]["capabilities"].as_object().unwrap();
        let mut told: Vec<&str> = capabilities.keys().map(String::as_str).collect();
        told.sort_unstable();
        assert_eq!(told, expected);
        assert!(capabilities.get("sampling").is_none_or(|sampling| *sampling == json!({})));
    }
}

#[tokio::test]
async fn calls_of_different_people_do_not_answer_for_each_other() {
    // Whom the question concerns, nobody can tell.
    let servers = asks_for_one_of_two().servers();
    servers.start("s").await.unwrap();
    let (ada, bob) = (Person::says([name_is("Ada")]), Person::says([name_is("Bob")]));
    let (first, second) = tokio::join!(
        call_with(&servers, "ask", json!({}), with(&ada)),
        call_with(&servers, "ask", json!({}), with(&bob)),
    );
    assert_eq!(first.text(), r#"{"action":"cancel"}"#);
    assert_eq!(second.text(), r#"{"action":"cancel"}"#);
    assert!(ada.asked.lock().unwrap().is_empty() && bob.asked.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_list_that_is_being_read_does_not_stand_between_a_question_and_its_call() {
    let open = Mutex::new(None::<Value>);
    let scripted = Scripted::new(move |message, out| match message["method"].as_str() {
        Some("initialize") => out.answer(
            message,
            &json!({ "protocolVersion": "2025-11-25",
                "capabilities": { "tools": {}, "resources": {} },
                "serverInfo": { "name": "x", "version": "1" } }),
        ),
        Some("tools/list") => out.answer(message, &json!({ "tools": [tool("ask")] })),
        // This one is never answered.
        Some("resources/list") => {}
        Some("tools/call") => {
            *open.lock().unwrap() = Some(message.clone());
            out.send(&json!({ "jsonrpc": "2.0", "id": "q1", "method": "elicitation/create",
                "params": question() }));
        }
        None if message["id"] == "q1" => {
            let call = open.lock().unwrap().take().unwrap();
            out.text(&call, &message["result"]["action"].to_string());
        }
        _ => basics(message, out),
    });
    let servers = scripted.servers();
    servers.start("s").await.unwrap();
    scripted.seen.method("resources/list").await;
    let person = Person::says([name_is("Ada")]);
    let result = call_with(&servers, "ask", json!({}), with(&person)).await;
    assert_eq!(result.text(), "\"accept\"");
}

/// A server that asks as often as it can while it is called, and then says how often it was answered how.
fn insists(times: usize, schema: Value) -> Scripted {
    let open = Mutex::new((None::<Value>, 0, 0));
    Scripted::new(move |message, out| match message["method"].as_str() {
        Some("tools/list") => out.answer(message, &json!({ "tools": [tool("ask")] })),
        Some("tools/call") => {
            open.lock().unwrap().0 = Some(message.clone());
            for number in 0..times {
                let params = json!({ "message": "Again?", "requestedSchema": schema });
                out.send(&json!({ "jsonrpc": "2.0", "id": format!("q{number}"),
                    "method": "elicitation/create", "params": params }));
            }
        }
        None if message["id"].as_str().is_some_and(|id| id.starts_with('q')) => {
            let mut open = open.lock().unwrap();
            let action = &message["result"]["action"];
            open.1 += usize::from(action == "decline" || action == "cancel");
            open.2 += usize::from(message.get("error").is_some());
            if open.1 + open.2 == times {
                let text = format!("{} unanswered, {} refused", open.1, open.2);
                out.text(&open.0.take().unwrap(), &text);
            }
        }
        _ => basics(message, out),
    })
}

#[tokio::test]
async fn questions_are_few_and_small() {
    for (times, text) in [(1_000, String::new()), (3, "x".repeat(5 << 20))] {
        let field = json!({ "type": "string", "description": text });
        let servers = insists(times, json!({ "properties": { "a": field } })).servers();
        servers.start("s").await.unwrap();
        let tool = the_tool(&servers, "ask");
        let (executor, events) = pipeline(&tool, ToolContext::builder("task").build());
        let name = tool.spec().name.clone();
        let result = executor.execute(ToolCall::new("c1", name, json!({}))).await;
        let expected = if text.is_empty() { "1000 unanswered, 0" } else { "0 unanswered, 3" };
        assert!(result.text().contains(expected), "{}", result.text());
        let events = events.all();
        let asked = |body: &EventBody| matches!(body, EventBody::InquiryAsked { .. });
        let count = events.iter().filter(|event| asked(&event.body)).count();
        assert_eq!(count, if text.is_empty() { 20 } else { 0 });
        let bytes = serde_json::to_string(&events).unwrap().len();
        assert!(bytes < 64 << 10, "{bytes}");
    }
}
