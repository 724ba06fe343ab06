//! Servers over HTTP: answers, streams, sessions, redirects, and ends in the middle.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use convoke_core::{ErrorKind, EventBody, ToolCall};
use convoke_mcp::client::{Revision, ServerConfig, ServerState, Servers, Surroundings};
use convoke_tool::{Tool, ToolContext};
use serde_json::json;
use tokio::io::AsyncReadExt;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::time::timeout;

use crate::scripted::{call, pipeline, reaches, tasks, the_tool, tool};
use crate::web::{Answer, Asked, Web, basics, modern};

/// Longer than anything here takes, and shorter than anything it could wait for in vain.
const SOON: Duration = Duration::from_secs(10);

#[tokio::test]
async fn an_old_server_is_found_out_and_called() {
    let web = Web::start(|asked| match asked.rpc() {
        "tools/call" => Answer::text(asked, "over the wire"),
        _ => basics(asked, "one"),
    })
    .await;
    let servers = web.servers();
    assert_eq!(call(&servers, "t").await.text(), "over the wire");
    assert_eq!(servers.status()[0].revision.as_deref(), Some("2025-11-25"));
    let asked = web.asked.lock().unwrap();
    assert!(asked.iter().all(|one| one.header("x-key") == Some("k1")));
    let called = asked.iter().find(|one| one.rpc() == "tools/call").unwrap();
    assert_eq!(called.header("mcp-session-id"), Some("one"));
    assert_eq!(called.header("mcp-protocol-version"), Some("2025-11-25"));
}

#[tokio::test]
async fn a_new_server_is_asked_without_a_session_and_with_its_headers() {
    let web = Web::start(modern).await;
    let servers = web.servers();
    assert_eq!(call(&servers, "t").await.text(), "no session");
    assert_eq!(servers.status()[0].revision.as_deref(), Some("2026-07-28"));
    let asked = web.asked.lock().unwrap();
    let called = asked.iter().find(|one| one.rpc() == "tools/call").unwrap();
    assert_eq!(called.header("mcp-method"), Some("tools/call"));
    assert_eq!(called.header("mcp-name"), Some("t"));
    assert_eq!(called.header("mcp-session-id"), None);
    assert_eq!(
        called.body["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"],
        "2026-07-28"
    );
}

/// codex#10338, rig#1521, #1522, claude-code#24317: a session that the server forgot.
#[tokio::test]
async fn a_lost_session_is_replaced_once_and_nobody_notices() {
    let sessions = AtomicUsize::new(0);
    let web = Web::start(move |asked| {
        let (session, now) = (asked.header("mcp-session-id"), sessions.load(Ordering::Acquire));
        match asked.rpc() {
            "initialize" => {
                let next = sessions.fetch_add(1, Ordering::AcqRel) + 1;
                basics(asked, &format!("session-{next}"))
            }
            // The first session is forgotten as soon as the tools are listed.
            "tools/call" if session == Some("session-1") => Answer::status(404),
            "tools/call" => Answer::text(asked, &format!("{} of {now}", session.unwrap())),
            _ => basics(asked, "unused"),
        }
    })
    .await;
    let servers = web.servers();
    assert_eq!(call(&servers, "t").await.text(), "session-2 of 2");
    assert_eq!(web.count("initialize"), 2);
    assert_eq!(web.count("tools/call"), 2);
    assert_eq!(servers.state("s"), Some(ServerState::Ready));
}

/// The reference server says 400 for a session that it does not know; after a restart no chat could use it again.
#[tokio::test]
async fn a_session_that_is_refused_with_400_is_replaced_once_and_other_refusals_are_told() {
    let calls = AtomicUsize::new(0);
    let sessions = AtomicUsize::new(0);
    let web = Web::start(move |asked| match asked.rpc() {
        "initialize" => {
            let next = sessions.fetch_add(1, Ordering::AcqRel) + 1;
            basics(asked, &format!("session-{next}"))
        }
        "tools/call" => match calls.fetch_add(1, Ordering::AcqRel) {
            0 => Answer::status(400).with("content-type", "application/json").body(
                r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32000,
                    "message":"Bad Request: No valid session ID provided"}}"#
                    .to_owned(),
            ),
            1 => Answer::text(asked, asked.header("mcp-session-id").unwrap()),
            _ => Answer::status(400).body("the argument is wrong".to_owned()),
        },
        _ => basics(asked, "unused"),
    })
    .await;
    let servers = web.servers();
    assert_eq!(call(&servers, "t").await.text(), "session-2");
    assert_eq!((web.count("initialize"), web.count("tools/call")), (2, 2));
    let refused = call(&servers, "t").await;
    assert!(refused.text().contains("the argument is wrong"), "{}", refused.text());
    assert_eq!((web.count("initialize"), web.count("tools/call")), (2, 3));
}

/// Regression: the session was given up, and the call made again, since the server had used a word.
#[tokio::test]
async fn a_call_that_is_refused_with_400_is_no_end_of_the_session() {
    let calls = AtomicUsize::new(0);
    let web = Web::start(move |asked| match asked.rpc() {
        "tools/call" => match calls.fetch_add(1, Ordering::AcqRel) {
            0 => {
                let error = json!({ "code": -32602, "message": "no such shopping session" });
                let refusal = json!({ "jsonrpc": "2.0", "id": asked.body["id"], "error": error });
                let answer = Answer::status(400).with("content-type", "application/json");
                answer.body(refusal.to_string())
            }
            1 => Answer::status(400).body("the basket is not initialized".to_owned()),
            2 => Answer::status(400).body("Bad Request: Server not initialized".to_owned()),
            _ => Answer::text(asked, "in a new one"),
        },
        _ => basics(asked, "one"),
    })
    .await;
    let servers = web.servers();
    for (says, greetings) in
        [("no such shopping session", 1), ("the basket", 1), ("in a new one", 2)]
    {
        let refused = call(&servers, "t").await;
        assert!(refused.text().contains(says), "{}", refused.text());
        assert_eq!(web.count("initialize"), greetings, "{says}");
    }
}

#[tokio::test]
async fn a_stream_carries_progress_and_the_answer() {
    let web = Web::start(|asked| match asked.rpc() {
        "tools/call" => {
            let token = asked.body["params"]["_meta"]["progressToken"].clone();
            let progress = json!({ "jsonrpc": "2.0", "method": "notifications/progress",
                "params": { "progressToken": token, "progress": 1, "message": "half" } });
            let content = json!([{ "type": "text", "text": "streamed" }]);
            let answer = json!({ "jsonrpc": "2.0", "id": asked.body["id"],
                "result": { "content": content } });
            Answer::events(format!("data: {progress}\n\ndata: {answer}\n\n"))
        }
        _ => basics(asked, "one"),
    })
    .await;
    assert_eq!(call(&web.servers(), "t").await.text(), "streamed");
}

#[tokio::test]
async fn an_answer_that_ends_in_the_middle_or_is_far_too_long_fails_its_call_alone() {
    let calls = AtomicUsize::new(0);
    let web = Web::start(move |asked| match asked.rpc() {
        "tools/call" => match calls.fetch_add(1, Ordering::AcqRel) {
            0 => Answer { cut: true, ..Answer::events(": still here\n\n".to_owned()) },
            1 => Answer::text(asked, &"x".repeat(20_000_000)),
            2 => {
                let content = json!([{ "type": "text", "text": "x".repeat(20_000_000) }]);
                let answer = json!({ "jsonrpc": "2.0", "id": asked.body["id"],
                    "result": { "content": content } });
                Answer::events(format!("data: {answer}\n\n"))
            }
            _ => Answer::text(asked, "still fine"),
        },
        _ => basics(asked, "one"),
    })
    .await;
    let servers = web.servers();
    for says in ["before the answer had come", "16777216 bytes", "16777216 bytes"] {
        let result = call(&servers, "t").await;
        let error = result.error().unwrap();
        assert_eq!(error.kind, ErrorKind::Failed);
        assert!(error.message.contains(says), "{says}: {error}");
    }
    assert_eq!(call(&servers, "t").await.text(), "still fine");
    assert_eq!(web.count("initialize"), 1);
}

/// Regression: a call that is a task did not wait for it.
#[tokio::test]
async fn a_call_waits_until_the_server_can_ask_back() {
    for support in ["optional", "required"] {
        let (open, opened) = watch::channel(false);
        let web = Web::start(move |asked| match asked.rpc() {
            _ if asked.method == "GET" => {
                Answer { held: Some(opened.clone()), ..Answer::events(": ready\n\n".to_owned()) }
            }
            "initialize" => {
                let capabilities =
                    json!({ "tools": {}, "resources": {}, "prompts": {}, "tasks": tasks() });
                let agreed = json!({ "protocolVersion": "2025-11-25", "capabilities": capabilities,
                    "serverInfo": { "name": "web", "version": "1" } });
                Answer::json(asked, &agreed).with("mcp-session-id", "one")
            }
            "tools/list" => {
                let mut tool = tool("t");
                tool["execution"] = json!({ "taskSupport": support });
                Answer::json(asked, &json!({ "tools": [tool] }))
            }
            "resources/list" => Answer::json(asked, &json!({ "resources": [] })),
            "resources/templates/list" => Answer::json(asked, &json!({ "resourceTemplates": [] })),
            // This is asked last of all, by nobody who waits for it.
            "prompts/list" => {
                open.send_replace(true);
                Answer::json(asked, &json!({ "prompts": [] }))
            }
            "tools/call" if *opened.borrow() => Answer::text(asked, "asked"),
            "tools/call" => Answer::text(asked, "the question was lost"),
            _ => basics(asked, "one"),
        })
        .await;
        assert_eq!(call(&web.servers(), "t").await.text(), "asked", "{support}");
    }
}

#[tokio::test]
async fn a_call_that_breaks_off_shows_in_the_state_only_if_the_server_is_gone() {
    let web = Web::start(|asked| match asked.rpc() {
        "tools/call" => {
            let whole = Answer::text(asked, "half of it");
            Answer { cut: true, ..whole }
        }
        _ => basics(asked, "one"),
    })
    .await;
    let servers = web.servers();
    let result = call(&servers, "t").await;
    let error = result.error().unwrap();
    assert_eq!(error.kind, ErrorKind::Unavailable);
    assert!(error.message.contains("effect is not known"), "{error}");
    assert_eq!(web.count("ping"), 1, "{error}");
    assert_eq!(servers.state("s"), Some(ServerState::Ready));
    assert_eq!(web.count("initialize"), 1);

    let (_never, held) = watch::channel(false);
    let (seen, mut called) = watch::channel(false);
    let web = Web::start(move |asked| match asked.rpc() {
        "tools/call" => {
            seen.send_replace(true);
            Answer { held: Some(held.clone()), ..Answer::text(asked, "never said") }
        }
        _ => basics(asked, "one"),
    })
    .await;
    let servers = web.servers();
    let leaving = async {
        called.wait_for(|called| *called).await.unwrap();
        web.leave().await
    };
    let (result, _port) = tokio::join!(call(&servers, "t"), leaving);
    let error = result.error().unwrap();
    assert_eq!(error.kind, ErrorKind::Unavailable);
    assert!(error.message.contains("is gone"), "{error}");
    // Regression: what was told of the next call was told of a server that was not known to be gone yet.
    let state = servers.state("s");
    assert!(matches!(state, Some(ServerState::Failed { .. })), "{state:?}");
}

/// Regression: what could not be asked was how the task goes on, and it was said that the call could not be.
#[tokio::test]
async fn a_task_whose_server_leaves_may_have_had_an_effect() {
    let working = json!({ "taskId": "t-1", "status": "working", "statusMessage": "digging",
        "createdAt": "2026-01-01T00:00:00Z", "lastUpdatedAt": "2026-01-01T00:00:00Z", "pollInterval": 500 });
    let web = Web::start(move |asked| match asked.rpc() {
        "tools/list" => {
            let mut dig = tool("t");
            dig["execution"] = json!({ "taskSupport": "required" });
            Answer::json(asked, &json!({ "tools": [dig] }))
        }
        "tools/call" => Answer::json(asked, &json!({ "task": working })),
        "tasks/get" => Answer::json(asked, &working),
        _ => basics(asked, "one"),
    })
    .await;
    let servers = web.servers();
    servers.start("s").await.unwrap();
    let dig = the_tool(&servers, "t");
    let (executor, events) = pipeline(&dig, ToolContext::builder("task").build());
    let leaving = async {
        let is_told = |body: &EventBody| matches!(body, EventBody::ToolCallProgress { .. });
        let told = async {
            while !events.all().iter().any(|event| is_told(&event.body)) {
                tokio::task::yield_now().await;
            }
        };
        timeout(SOON, told).await.expect("how the task stands is told");
        web.leave().await
    };
    let calling = executor.execute(ToolCall::new("c", dig.spec().name.clone(), json!({})));
    let (result, _port) = tokio::join!(calling, leaving);
    let error = result.error().unwrap();
    assert_eq!(error.kind, ErrorKind::Unavailable, "{error}");
    for part in ["is gone", "whether the call had an effect is not known"] {
        assert!(error.message.contains(part), "{part} in {error}");
    }
}

#[tokio::test]
async fn a_redirect_to_somewhere_else_is_not_followed() {
    let thief = Web::start(|asked| basics(asked, "stolen")).await;
    let elsewhere = thief.url.clone();
    let web = Web::start(move |_| Answer::status(307).with("location", &elsewhere)).await;
    let error = web.servers().start("s").await.unwrap_err();
    assert!(
        error.message.contains("HTTP 307") && error.message.contains("somewhere else"),
        "{error}"
    );
    assert!(thief.asked.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_server_that_has_left_is_said_to_be_unreachable() {
    let web = Web::start(modern).await;
    let servers = web.servers();
    assert!(call(&servers, "t").await.success());
    let _port = web.leave().await;
    // The first calls may still find an old connection, and lose it.
    let mut said = String::new();
    while !said.contains("cannot be reached") {
        let result = call(&servers, "t").await;
        let error = result.error().unwrap();
        assert_eq!(error.kind, ErrorKind::Unavailable, "{error}");
        said.clone_from(&error.message);
    }
    reaches(&servers, |state| matches!(state, ServerState::Failed { .. })).await;
    let error = servers.start("s").await.unwrap_err();
    assert!(error.message.contains("could not be started: it cannot be reached"), "{error}");
}

#[tokio::test]
async fn addresses_and_headers_that_cannot_be_used_are_named() {
    let odd = ServerConfig::http("s", "ftp://somewhere");
    let error = Servers::new(vec![odd], Surroundings::new("/")).start("s").await.unwrap_err();
    assert!(error.message.contains("not an http or https URL"), "{error}");
    let odd = ServerConfig::http("s", "http://127.0.0.1:1/").header("bad name", "x");
    let error = Servers::new(vec![odd], Surroundings::new("/")).start("s").await.unwrap_err();
    assert!(error.message.contains("`bad name`"), "{error}");
}

/// What a server answers that knows no `initialize`, in all the ways in which it is said.
fn no_handshake(asked: &Asked, way: usize) -> Answer {
    let refusal = json!({ "jsonrpc": "2.0", "id": asked.body["id"],
        "error": { "code": if way == 3 { -32022 } else { -32601 }, "message": "no handshake here" } });
    let refused = |status: u16| {
        Answer::status(status).with("content-type", "application/json").body(refusal.to_string())
    };
    match way {
        0 => Answer::status(400).body("no handshake here".to_owned()),
        1 | 3 => refused(200),
        2 => refused(404),
        _ => refused(400),
    }
}

#[tokio::test]
async fn a_server_that_has_grown_since_it_was_last_seen_is_asked_anew() {
    for way in 0..5 {
        let grown = Arc::new(AtomicUsize::new(0));
        let now = Arc::clone(&grown);
        let web = Web::start(move |asked| match (now.load(Ordering::Acquire), asked.rpc()) {
            (0, "tools/call") => Answer::text(asked, "old"),
            (0, _) => basics(asked, "one"),
            (_, "initialize") => no_handshake(asked, way),
            _ => modern(asked),
        })
        .await;
        let servers = web.servers();
        assert_eq!(call(&servers, "t").await.text(), "old");
        servers.stop().await;
        grown.store(1, Ordering::Release);
        let started = timeout(SOON, servers.start("s")).await;
        started.unwrap_or_else(|_| panic!("way {way} hangs")).unwrap();
        assert_eq!(call(&servers, "t").await.text(), "no session");
        assert_eq!(servers.status()[0].revision.as_deref(), Some("2026-07-28"));
    }
}

/// The library waits for ever for what comes after a greeting that was refused.
#[tokio::test]
async fn a_server_that_refuses_to_begin_fails_at_once() {
    for (result, says) in [
        (json!({ "error": { "code": -32000, "message": "no more seats" } }), "no more seats"),
        (
            json!({ "result": { "protocolVersion": "1999-01-01", "capabilities": {},
                "serverInfo": { "name": "old", "version": "0" } } }),
            "1999-01-01",
        ),
    ] {
        let web = Web::start(move |asked| {
            let mut answer = result.clone();
            answer["jsonrpc"] = json!("2.0");
            answer["id"] = asked.body["id"].clone();
            Answer::status(200).with("content-type", "application/json").body(answer.to_string())
        })
        .await;
        let config = ServerConfig::http("s", &web.url).revision(Revision::Handshake);
        let servers = Servers::new(vec![config], Surroundings::new("/"));
        let started = timeout(SOON, servers.start("s")).await.expect("it hangs");
        let error = started.unwrap_err();
        assert!(error.message.contains(says), "{error}");
    }
}

/// An answer that nobody understands, or a stream that ends where it could be taken up again and cannot, is the
/// end of one call.
#[tokio::test]
async fn an_exchange_that_breaks_off_leaves_the_others_alone() {
    let (free, held) = watch::channel(false);
    let calls = AtomicUsize::new(0);
    let web = Web::start(move |asked| match asked.rpc() {
        "tools/call" => match calls.fetch_add(1, Ordering::AcqRel) {
            0 => Answer { held: Some(held.clone()), ..Answer::text(asked, "held and answered") },
            1 => {
                let odd = json!({ "jsonrpc": "2.0", "id": asked.body["id"], "error": "odd" });
                Answer::events(format!("data: {odd}\n\n"))
            }
            _ => Answer { cut: true, ..Answer::events("id: 1\ndata: {}\n\n".to_owned()) },
        },
        _ => basics(asked, "one"),
    })
    .await;
    let servers = web.servers();
    servers.start("s").await.unwrap();
    let others = async {
        let called = async {
            while web.count("tools/call") == 0 {
                tokio::task::yield_now().await;
            }
        };
        timeout(SOON, called).await.expect("the first call");
        for _ in 0..2 {
            let result = call(&servers, "t").await;
            assert!(!result.success(), "{}", result.text());
        }
        free.send_replace(true);
    };
    let (first, ()) = tokio::join!(call(&servers, "t"), others);
    assert_eq!(first.text(), "held and answered");
    assert_eq!(web.count("initialize"), 1);
    assert_eq!(servers.state("s"), Some(ServerState::Ready));
}

/// An answer that broke off can be taken up again; if nobody is there for that, the call must not wait for it.
#[tokio::test]
async fn a_server_that_dies_in_the_middle_of_a_stream_is_soon_known_to_be_gone() {
    let (seen, mut called) = watch::channel(false);
    let web = Web::start(move |asked| match asked.rpc() {
        "tools/call" => {
            seen.send_replace(true);
            Answer { cut: true, ..Answer::events("id: 1\ndata: {}\n\n".to_owned()) }
        }
        _ => basics(asked, "one"),
    })
    .await;
    let servers = web.servers();
    servers.start("s").await.unwrap();
    let leaving = async {
        called.wait_for(|called| *called).await.unwrap();
        web.leave().await
    };
    let (result, _port) = tokio::join!(timeout(2 * SOON, call(&servers, "t")), leaving);
    let result = result.expect("nobody is waited for who is gone");
    let error = result.error().unwrap();
    assert!(error.message.contains("is gone"), "{error}");
}

/// Whoever is told that nothing was asked may ask again, so that is only said where it is so.
#[tokio::test]
async fn a_call_that_reached_the_server_is_not_said_to_be_unasked() {
    for (status, kind, body, known) in [
        (500, "text/plain", "oops", false),
        (504, "text/html", "gateway", false),
        (200, "application/json", "{\"jsonrpc\":", false),
        (200, "text/plain", "done", false),
        (404, "text/plain", "no such thing", true),
        (429, "text/plain", "later", true),
    ] {
        let web = Web::start(move |asked| match asked.rpc() {
            "tools/call" => Answer::status(status).with("content-type", kind).body(body.to_owned()),
            _ => modern(asked),
        })
        .await;
        let result = call(&web.servers(), "t").await;
        let error = result.error().unwrap();
        let unsure = error.message.contains("effect is not known");
        assert_eq!(unsure, !known, "{status} {kind}: {error}");
    }
}

/// codex#39990: a server that was started again.
#[tokio::test]
async fn a_server_that_was_started_anew_is_asked_what_it_offers() {
    let sessions = AtomicUsize::new(0);
    let web = Web::start(move |asked| {
        let session = asked.header("mcp-session-id");
        match asked.rpc() {
            "initialize" => {
                let next = sessions.fetch_add(1, Ordering::AcqRel) + 1;
                basics(asked, &format!("session-{next}"))
            }
            "tools/call" if session == Some("session-1") => Answer::status(404),
            "tools/call" => Answer::text(asked, "anew"),
            "tools/list" if session == Some("session-2") => {
                Answer::json(asked, &json!({ "tools": [tool("t2")] }))
            }
            _ => basics(asked, "unused"),
        }
    })
    .await;
    let servers = web.servers();
    let mut changes = servers.changes();
    assert_eq!(call(&servers, "t").await.text(), "anew");
    let renewed = async {
        while servers.tools().first().is_none_or(|tool| tool.name() != "t2") {
            changes.next().await.unwrap();
        }
    };
    timeout(SOON, renewed).await.expect("the tools of the new one");
}

/// A start that was given up leaves no connection behind that waits for ever.
#[tokio::test]
async fn a_start_that_is_given_up_closes_its_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let config = ServerConfig::http("s", &url)
        .revision(Revision::Handshake)
        .start_timeout(Duration::from_secs(1));
    let servers = Servers::new(vec![config], Surroundings::new("/"));
    let silent = async {
        let (mut stream, _) = timeout(SOON, listener.accept()).await.expect("it comes").unwrap();
        let mut taken = Vec::new();
        // Reads until the other side closes.
        timeout(SOON, stream.read_to_end(&mut taken)).await.expect("it was closed").ok();
        taken
    };
    let (started, taken) = tokio::join!(servers.start("s"), silent);
    assert!(started.unwrap_err().message.contains("in time"));
    assert!(String::from_utf8_lossy(&taken).contains("initialize"));
}
