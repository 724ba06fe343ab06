//! Servers that die, hang, lie or babble, and the calls of others meanwhile.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use convoke_core::ErrorKind;
use convoke_mcp::client::{Change, ServerConfig, ServerState, Servers, Surroundings, Warning};
use convoke_tool::{Process, Program, Spawner, ToolContext, ToolError, ToolRegistry};
use serde_json::json;

use crate::scripted::{
    Scripted, basics, call, call_tool, call_with, config, later, reaches, the_tool, tool,
};

/// A server whose tool `die` ends it, and whose other tools work.
fn mortal() -> Scripted {
    Scripted::with_tools(json!([tool("die"), tool("live"), tool("wait")]), |message, out| {
        match message["params"]["name"].as_str().unwrap() {
            "die" => out.exit(3),
            "live" => out.text(message, "alive"),
            _ => {}
        }
    })
}

/// codex#39990, rig#1521, #1522, claude-code#24317, #55943, copilot-cli#4084: a server that died is used again
/// without anybody doing anything.
#[tokio::test]
async fn a_death_fails_the_calls_under_way_with_how_it_came_and_the_next_use_starts_it_again() {
    let scripted = mortal();
    let servers = scripted.servers();
    servers.start("s").await.unwrap();
    let wait = the_tool(&servers, "wait");
    let context = ToolContext::builder("task").build();
    let waiting = call_tool(&wait, json!({}), context.clone());
    let killing = async {
        scripted.seen.method("tools/call").await;
        call(&servers, "die").await
    };
    let (waited, died) = tokio::join!(waiting, killing);
    for result in [waited, died] {
        let error = result.error().unwrap();
        assert_eq!(error.kind, ErrorKind::Unavailable, "{error}");
        for part in ["`s`", "status 3", "it hurts", "next call starts it again"] {
            assert!(error.message.contains(part), "{part}: {error}");
        }
    }
    let state = reaches(&servers, |state| matches!(state, ServerState::Failed { .. })).await;
    assert!(state.reason().unwrap().contains("status 3"), "{state:?}");
    assert_eq!(call(&servers, "live").await.text(), "alive");
    assert_eq!(scripted.starts(), 2);
    assert_eq!(servers.state("s"), Some(ServerState::Ready));
}

/// codex#32148: it is not started in a circle.
#[tokio::test(start_paused = true)]
async fn a_server_that_fails_again_and_again_is_left_alone_for_longer_and_longer() {
    let scripted = Scripted::new(|_, out| out.exit(1));
    let servers = scripted.configured(config());
    // Unasked, a server that hangs up is asked in the other way as well: two starts each time.
    let first = servers.start("s").await.unwrap_err();
    assert!(first.message.contains("status 1") && first.message.contains("it hurts"), "{first}");
    assert_eq!(scripted.starts(), 2);
    let begun = tokio::time::Instant::now();
    servers.start("s").await.unwrap_err();
    assert_eq!(scripted.starts(), 4);
    assert_eq!(begun.elapsed(), Duration::ZERO, "once is no habit");
    // A short rest is waited for; a long one is told.
    servers.start("s").await.unwrap_err();
    assert_eq!(scripted.starts(), 6);
    assert!(begun.elapsed() >= Duration::from_millis(500), "{:?}", begun.elapsed());
    let mut resting = servers.start("s").await.unwrap_err();
    while !resting.message.contains("left alone") {
        resting = servers.start("s").await.unwrap_err();
    }
    assert_eq!(resting.kind, ErrorKind::Unavailable);
    let wait = resting.details.unwrap()["retryInMs"].as_u64().unwrap();
    assert!((5_000..=16_000).contains(&wait), "{wait}");
    let Some(ServerState::Failed { retry_in, .. }) = servers.state("s") else {
        panic!("{:?}", servers.state("s"));
    };
    assert!(retry_in > Duration::ZERO);
    let starts = scripted.starts();
    servers.start("s").await.unwrap_err();
    assert_eq!(scripted.starts(), starts);

    tokio::time::advance(Duration::from_secs(16)).await;
    servers.start("s").await.unwrap_err();
    assert_eq!(scripted.starts(), starts + 2);
}

/// Regression: it was told that the next call starts it, which was refused then.
#[tokio::test(start_paused = true)]
async fn whoever_ends_a_server_once_more_is_told_when_it_is_started_again() {
    let servers = mortal().servers();
    let died = async || call(&servers, "die").await.error().unwrap().clone();
    let mut told = died().await;
    for _ in 0..10 {
        if !told.message.contains("The next call starts it again") {
            break;
        }
        told = died().await;
    }
    assert!(told.message.contains("left alone for now: a call in "), "{told}");
    let wait = told.details.unwrap()["retryInMs"].as_u64().unwrap();
    assert!((5_000..=16_000).contains(&wait), "{wait}");
    let refused = call(&servers, "live").await;
    assert!(refused.text().contains("is left alone for another"), "{}", refused.text());
    tokio::time::advance(Duration::from_millis(wait)).await;
    assert_eq!(call(&servers, "live").await.text(), "alive");
}

#[tokio::test(start_paused = true)]
async fn the_server_of_a_tool_is_waited_for_and_no_other() {
    let scripted = mortal();
    let (servers, registry) = (scripted.servers(), ToolRegistry::new());
    servers.attach(&registry);
    servers.bring("mcp__other__live").await.unwrap();
    servers.bring("mcp_read_resource").await.unwrap();
    assert_eq!(scripted.starts(), 0, "it is not about this one");
    servers.bring("mcp__s__live").await.unwrap();
    assert!(registry.has("mcp__s__live"), "whoever waited finds it");
    servers.bring("mcp__s__other").await.unwrap();
    assert_eq!(scripted.starts(), 1, "what it offers is known");
    servers.stop().await;
    let error = servers.bring("mcp__s__live").await.unwrap_err();
    assert!(error.message.contains("was stopped"), "{error}");

    let mut off = config();
    off.enabled = false;
    let error = scripted.configured(off).bring("mcp__s__live").await.unwrap_err();
    assert!(error.message.contains("`s` is switched off"), "{error}");
    let mute = Scripted::new(|_, _| {}).configured(config());
    let error = mute.bring("mcp__s__live").await.unwrap_err();
    assert!(error.message.contains("did not answer in time"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_never_answers_fails_in_time_and_babble_is_shown() {
    let servers = Scripted::new(|_, _| {}).configured(config());
    let error = servers.start("s").await.unwrap_err();
    assert!(error.message.contains("did not answer in time"), "{error}");

    let babble = Scripted::new(|_, out| out.raw("Welcome to the server!"));
    let error = babble.configured(config()).start("s").await.unwrap_err();
    assert!(error.message.contains("`Welcome to the server!`"), "{error}");
    assert!(error.message.contains("lines that are no messages"), "{error}");
}

/// Regression: of a server that waits for something it was told only that it was not ready.
#[tokio::test(start_paused = true)]
async fn what_a_server_says_that_is_not_ready_in_time_is_told() {
    const SAID: &str = "Please open https://login.example/ to authorize";
    let waits = Scripted::new(|_, out| out.complain(SAID));
    let error = waits.configured(config()).start("s").await.unwrap_err();
    let told = format!("{SAID} (it did not answer in time)");
    assert!(error.message.contains(&told), "{error}");

    let servers = waits.configured(config());
    let looking = tokio::time::timeout(Duration::from_secs(3), servers.look("s"));
    assert!(looking.await.is_err(), "it starts for longer than that");
    let why = servers.not_waited_for("s").await;
    assert!(why.starts_with(&format!("{SAID} (it was not ready in time)")), "{why}");
    assert_eq!(servers.status()[0].setback.as_ref().map(|setback| &*setback.why), Some(&*why));
}

/// codex#32148: whoever wants to end does not wait for a server that does not come up.
#[tokio::test(start_paused = true)]
async fn a_server_that_is_being_started_can_be_stopped_at_once() {
    let servers = Scripted::new(|_, _| {}).configured(config());
    let begun = tokio::time::Instant::now();
    let stopping = async {
        reaches(&servers, |state| *state == ServerState::Starting).await;
        servers.stop().await;
    };
    let (started, ()) = tokio::join!(servers.start("s"), stopping);
    let error = started.unwrap_err();
    assert!(error.message.contains("was stopped while it was being started"), "{error}");
    assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
    assert_eq!(servers.state("s"), Some(ServerState::Stopped));
}

#[tokio::test]
async fn babble_between_messages_does_no_harm() {
    let scripted = Scripted::with_tools(json!([tool("t")]), |message, out| {
        out.raw("debug: about to answer");
        out.raw("{\"jsonrpc\":\"2.0\",\"method\":\"window/logMessage\",\"params\":{}}");
        out.raw("{\"half\":");
        out.text(message, "fine");
    });
    let servers = scripted.servers();
    assert_eq!(call(&servers, "t").await.text(), "fine");
    let told: Vec<_> = servers.warnings().into_iter().filter(Warning::is_about_output).collect();
    assert_eq!(told.len(), 1, "{told:?}");
    for part in ["`s`", "2 lines that are no messages", "`debug: about to answer`"] {
        assert!(told[0].message.contains(part), "{part}: {told:?}");
    }
}

/// Regression: a server that wrote 2000 such lines first was ready late, and nobody was told why.
#[tokio::test]
async fn babble_before_the_first_message_is_named() {
    let scripted = Scripted::new(|message, out| {
        if message["method"] == "tools/list" {
            return out.answer(message, &json!({ "tools": [tool("t")] }));
        }
        if message["method"] == "initialize" {
            for line in 0..2000 {
                out.raw(&format!("this is no json {line} \u{1b}[31mred"));
            }
        }
        basics(message, out);
    });
    let servers = scripted.servers();
    let mut changes = servers.changes();
    servers.start("s").await.unwrap();
    let status = servers.status().remove(0);
    let told = status.warnings.join("\n");
    assert!(told.contains("2000 lines that are no messages"), "{told}");
    assert!(told.contains("`this is no json 0 \\u{1b}[31mred`"), "{told}");
    let warned = async {
        while let Some(change) = changes.next().await {
            if matches!(change, Change::Warning(warning) if warning.is_about_output()) {
                return true;
            }
        }
        false
    };
    let warned = tokio::time::timeout(Duration::from_secs(10), warned).await;
    assert_eq!(warned, Ok(true), "and whoever follows is told");
}

#[tokio::test]
async fn a_result_that_is_far_too_long_ends_the_connection_with_a_clear_error() {
    let scripted = Scripted::with_tools(json!([tool("huge"), tool("small")]), |message, out| {
        let length = if message["params"]["name"] == "huge" { 50_000_000 } else { 10 };
        out.text(message, &"x".repeat(length));
    });
    let servers = scripted.servers();
    let result = call(&servers, "huge").await;
    let error = result.error().unwrap();
    assert_eq!(error.kind, ErrorKind::Unavailable);
    assert!(error.message.contains("more than 16777216 bytes"), "{error}");
    assert_eq!(call(&servers, "small").await.text(), "xxxxxxxxxx");
}

/// Two servers: each program goes to its own script.
#[derive(Debug)]
struct Both(Scripted, Scripted);

#[async_trait::async_trait]
impl Spawner for Both {
    async fn spawn(&self, program: Program) -> Result<Box<dyn Process>, ToolError> {
        let first = program.command.first().is_some_and(|command| command == "first");
        if first { self.0.spawn(program).await } else { self.1.spawn(program).await }
    }
}

/// codex#20167, #14627, #6317: a server that takes its time keeps nobody else from working.
#[tokio::test(start_paused = true)]
async fn a_slow_server_holds_up_nobody_else() {
    let slow = Scripted::new(|message, out| {
        let (message, out) = (message.clone(), out.clone());
        later(Duration::from_secs(20), move || match message["method"].as_str() {
            Some("tools/list") => out.answer(&message, &json!({ "tools": [tool("late")] })),
            Some("tools/call") => out.text(&message, "at last"),
            _ => basics(&message, &out),
        });
    });
    let quick = Scripted::with_tools(json!([tool("t")]), |message, out| out.text(message, "quick"));
    let start_timeout = Duration::from_mins(2);
    let nothing = Vec::<String>::new;
    let configs = vec![
        ServerConfig::program("slow", "first", nothing()).start_timeout(start_timeout),
        ServerConfig::program("quick", "second", nothing()),
    ];
    let surroundings = Surroundings::new("/").spawner(Arc::new(Both(slow.clone(), quick)));
    let servers = Servers::new(configs, surroundings);
    servers.start_all();
    assert_eq!(servers.state("slow"), Some(ServerState::Starting));
    let begun = tokio::time::Instant::now();
    servers.start("quick").await.unwrap();
    assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
    let result = call(&servers, "t").await;
    assert_eq!(result.text(), "quick");
    assert_eq!(servers.state("slow"), Some(ServerState::Starting));
    servers.start("slow").await.unwrap();
    let late = the_tool(&servers, "late");
    let context = ToolContext::builder("task").build();
    assert_eq!(call_tool(&late, json!({}), context).await.text(), "at last");
}

#[tokio::test]
async fn several_calls_share_one_start() {
    let scripted = mortal();
    let cache = tempfile::tempdir().unwrap();
    let surroundings = scripted.surroundings().cache_directory(cache.path());
    let servers = Servers::new(vec![config()], surroundings);
    servers.start("s").await.unwrap();
    servers.stop().await;
    let again = scripted.starts();
    servers.start_all();
    let calls = (0..5).map(|_| call(&servers, "live"));
    for result in futures_util::future::join_all(calls).await {
        assert_eq!(result.text(), "alive");
    }
    assert_eq!(scripted.starts(), again + 1);
}

#[tokio::test]
async fn what_is_stopped_stays_stopped_until_it_is_started_again() {
    let scripted = mortal();
    let servers = scripted.servers();
    assert_eq!(call(&servers, "live").await.text(), "alive");
    servers.stop().await;
    assert_eq!(servers.state("s"), Some(ServerState::Stopped));
    let context = ToolContext::builder("task").build();
    let refused = call_tool(&the_tool(&servers, "live"), json!({}), context).await;
    assert!(refused.error().unwrap().message.contains("was stopped"), "{}", refused.text());
    assert_eq!(scripted.starts(), 1);
    servers.start("s").await.unwrap();
    assert_eq!(call(&servers, "live").await.text(), "alive");
}

/// gemini-cli 4.14: no server outlives who used it.
#[tokio::test]
async fn when_the_last_handle_is_gone_so_is_the_server_and_its_tools_say_so() {
    let scripted = mortal();
    let servers = scripted.servers();
    assert_eq!(call(&servers, "live").await.text(), "alive");
    let live = the_tool(&servers, "live");
    let other = servers.clone();
    drop(servers);
    let context = ToolContext::builder("task").build();
    assert_eq!(call_tool(&live, json!({}), context.clone()).await.text(), "alive");
    drop(other);
    let result = call_tool(&live, json!({}), context).await;
    assert_eq!(result.error().unwrap().kind, ErrorKind::Unavailable);
    assert_eq!(scripted.starts(), 1);
}

#[tokio::test]
async fn a_switched_off_server_is_never_started() {
    let scripted = mortal();
    let servers = scripted.configured(config().disabled());
    servers.start_all();
    let error = servers.start("s").await.unwrap_err();
    assert!(error.message.contains("switched off"), "{error}");
    assert_eq!(scripted.starts(), 0);
    let unknown = servers.start("z").await.unwrap_err();
    assert_eq!(unknown.kind, ErrorKind::NotFound);
}

#[tokio::test]
async fn a_server_that_ends_at_the_first_question_is_greeted_instead() {
    let old = Scripted::new(|message, out| match message["method"].as_str() {
        Some("server/discover") => out.exit(1),
        Some("tools/list") => out.answer(message, &json!({ "tools": [tool("t")] })),
        Some("tools/call") => out.text(message, "old but good"),
        _ => basics(message, out),
    });
    let servers = old.servers();
    assert_eq!(call(&servers, "t").await.text(), "old but good");
    assert_eq!(old.starts(), 2);
    servers.stop().await;
    servers.start("s").await.unwrap();
    // Now it is known.
    assert_eq!(old.starts(), 3);
}

#[tokio::test]
async fn garbage_as_an_answer_fails_its_call_and_nothing_else() {
    let count = Arc::new(AtomicUsize::new(0));
    let scripted = Scripted::with_tools(json!([tool("t")]), move |message, out| {
        match count.fetch_add(1, Ordering::AcqRel) {
            0 => out.send(&json!({ "jsonrpc": "2.0", "id": message["id"], "error": "odd" })),
            1 => out.send(&json!({ "jsonrpc": "2.0", "id": 99_999, "result": {} })),
            2 => out.answer(message, &json!("just a text")),
            _ => {}
        }
        if count.load(Ordering::Acquire) == 2 {
            out.text(message, "after a stray answer");
        }
    });
    let servers = scripted.servers();
    let broken = call(&servers, "t").await;
    assert_eq!(broken.error().unwrap().kind, ErrorKind::Failed, "{}", broken.text());
    assert_eq!(call(&servers, "t").await.text(), "after a stray answer");
    let context = ToolContext::builder("task").build();
    let odd = call_with(&servers, "t", json!({}), context).await;
    let error = odd.error().unwrap();
    assert!(error.message.contains("no result of a tool"), "{error}");
    assert_eq!(scripted.starts(), 1);
}
