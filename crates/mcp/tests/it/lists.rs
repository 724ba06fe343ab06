//! Lists: pages, changes, what is kept of them, and the registry that follows them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use convoke_core::{Kind, Millis, ToolCall};
use convoke_mcp::client::{ServerState, Servers};
use convoke_tool::testing::AllowAll;
use convoke_tool::{FunctionTool, ManualClock, ToolContext, ToolExecutor, ToolRegistry, ToolView};
use serde_json::{Value, json};

use crate::scripted::{Out, Scripted, basics, call, config, reaches, tool};

fn names(servers: &Servers) -> Vec<String> {
    servers.tools().iter().map(|tool| tool.name().to_owned()).collect()
}

/// A server whose list of tools is what `page` says.
fn listing(page: impl Fn(&Value, &Out) + Send + Sync + 'static) -> Scripted {
    Scripted::new(move |message, out| match message["method"].as_str() {
        Some("tools/list") => page(message, out),
        Some("tools/call") => out.text(message, "called"),
        _ => basics(message, out),
    })
}

#[tokio::test]
async fn all_pages_are_read() {
    let scripted = listing(|message, out| {
        let page: usize = message["params"]["cursor"].as_str().unwrap_or("0").parse().unwrap();
        let mut result = json!({ "tools": [tool(&format!("t{page}"))] });
        if page < 4 {
            result["nextCursor"] = json!((page + 1).to_string());
        }
        out.answer(message, &result);
    });
    let servers = scripted.servers();
    servers.start("s").await.unwrap();
    assert_eq!(names(&servers), ["t0", "t1", "t2", "t3", "t4"]);
    assert!(servers.warnings().is_empty(), "{:?}", servers.warnings());
}

#[tokio::test]
async fn pages_without_end_are_cut_and_that_is_said() {
    let endless = listing(|message, out| {
        let page: usize = message["params"]["cursor"].as_str().unwrap_or("0").parse().unwrap();
        let next = (page + 1).to_string();
        out.answer(message, &json!({ "tools": [tool(&format!("t{page}"))], "nextCursor": next }));
    });
    let servers = endless.servers();
    servers.start("s").await.unwrap();
    assert_eq!(names(&servers).len(), 100);
    assert!(servers.warnings()[0].message.contains("more than 100 pages"));

    let circle = listing(|message, out| {
        out.answer(message, &json!({ "tools": [tool("t")], "nextCursor": "again" }));
    });
    let servers = circle.servers();
    servers.start("s").await.unwrap();
    assert_eq!(names(&servers), ["t"]);
    let said: Vec<String> = servers.warnings().into_iter().map(|one| one.message).collect();
    assert!(said.iter().any(|text| text.contains("in a circle")), "{said:?}");

    let many = listing(|message, out| {
        let tools: Vec<Value> = (0..3000).map(|number| tool(&format!("t{number}"))).collect();
        out.answer(message, &json!({ "tools": tools }));
    });
    let servers = many.servers();
    servers.start("s").await.unwrap();
    assert_eq!(names(&servers).len(), 2000);
    let status = servers.status().remove(0);
    assert!(status.warnings[0].contains("1000 or more are left out"), "{:?}", status.warnings);
}

#[tokio::test]
async fn pages_of_a_megabyte_are_cut_before_they_fill_the_memory() {
    let pages = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&pages);
    let heavy = listing(move |message, out| {
        let page = counted.fetch_add(1, Ordering::AcqRel);
        let mut one = tool(&format!("t{page}"));
        one["description"] = json!("x".repeat(1 << 20));
        out.answer(message, &json!({ "tools": [one], "nextCursor": page.to_string() }));
    });
    let servers = heavy.servers();
    servers.start("s").await.unwrap();
    assert_eq!(names(&servers).len(), 7);
    assert!(pages.load(Ordering::Acquire) < 10);
    let said = servers.warnings();
    assert!(said.iter().any(|one| one.message.contains("bytes")), "{said:?}");
}

/// A list that cannot be read says so to whoever wants it, and keeps neither the tools from being kept nor from
/// being renewed.
#[tokio::test]
async fn a_list_that_cannot_be_read_spoils_no_other() {
    let place = tempfile::tempdir().unwrap();
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&asked);
    let scripted = Scripted::new(move |message, out| {
        match message["method"].as_str() {
        Some("initialize") => out.answer(
            message,
            &json!({ "protocolVersion": "2025-11-25",
                "capabilities": { "tools": { "listChanged": true }, "resources": { "listChanged": true } },
                "serverInfo": { "name": "scripted", "version": "1" } }),
        ),
        Some("tools/list") => {
            let name = format!("t{}", counted.fetch_add(1, Ordering::AcqRel));
            out.answer(message, &json!({ "tools": [tool(&name)] }));
        }
        Some("tools/call") => {
            for list in ["resources", "tools"] {
                let method = format!("notifications/{list}/list_changed");
                out.send(&json!({ "jsonrpc": "2.0", "method": method }));
            }
            out.text(message, "called");
        }
        _ => basics(message, out),
    }
    });
    let mut surroundings = scripted.surroundings();
    surroundings.cache_directory = Some(place.path().to_owned());
    let servers = Servers::new(vec![config()], surroundings.clone());
    let error = servers.list_resources("s").await.unwrap_err();
    assert!(error.message.contains("Method not found"), "{error}");

    let again = Servers::new(vec![config()], surroundings);
    assert_eq!(names(&again), ["t0"], "it is known from now on");

    let mut changes = servers.changes();
    assert!(call(&servers, "t0").await.success());
    while names(&servers) != ["t1"] {
        changes.next().await.unwrap();
    }
}

/// Whoever stands between ends a stream after a while. What is announced after that has to be heard.
#[tokio::test(start_paused = true)]
async fn announcements_are_heard_again_after_their_stream_has_ended() {
    let listened = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&listened);
    let scripted = Scripted::new(move |message, out| {
        match message["method"].as_str() {
        Some("server/discover") => out.answer(
            message,
            &json!({ "resultType": "complete", "supportedVersions": ["2026-07-28"],
                "capabilities": { "tools": { "listChanged": true } }, "ttlMs": 0, "cacheScope": "private" }),
        ),
        Some("tools/list") => {
            let name = format!("t{}", counted.load(Ordering::Acquire));
            let tools = json!([tool(&name)]);
            out.answer(message, &json!({ "resultType": "complete", "tools": tools,
                "ttlMs": 0, "cacheScope": "private" }));
        }
        Some("subscriptions/listen") => {
            let acknowledged = json!({ "jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged",
                "params": { "_meta": { "io.modelcontextprotocol/subscriptionId": message["id"] },
                    "notifications": { "toolsListChanged": true } } });
            out.send(&acknowledged);
            let (out, message) = (out.clone(), message.clone());
            if counted.fetch_add(1, Ordering::AcqRel) == 0 {
                tokio::spawn(async move {
                    tokio::time::sleep(Duration::from_mins(1)).await;
                    out.answer(&message, &json!({ "resultType": "complete",
                        "_meta": { "io.modelcontextprotocol/subscriptionId": message["id"] } }));
                });
            }
        }
        _ => basics(message, out),
    }
    });
    let servers = scripted.servers();
    servers.start("s").await.unwrap();
    let mut changes = servers.changes();
    while names(&servers) != ["t2"] {
        changes.next().await.unwrap();
    }
    assert_eq!(listened.load(Ordering::Acquire), 2);
}

#[tokio::test]
async fn one_bad_tool_does_not_spoil_the_list() {
    let scripted = listing(|message, out| {
        out.answer(message, &json!({ "tools": [
            tool("good"),
            { "name": "bad", "inputSchema": { "type": "object", "properties": { "a": { "type": 7 } } } },
            { "name": "none" },
            { "inputSchema": {} },
            tool("good"),
            "not a tool",
        ] }));
    });
    let servers = scripted.servers();
    servers.start("s").await.unwrap();
    assert_eq!(names(&servers), ["good"]);
    let status = servers.status().remove(0);
    assert_eq!(status.tools, 1);
    assert!(status.unusable["bad"].contains("not valid"), "{:?}", status.unusable);
    assert!(status.unusable["none"].contains("not the schema of an object"));
    assert_eq!(status.software.as_deref(), Some("scripted 1"));
    let said: Vec<String> = servers.warnings().into_iter().map(|one| one.message).collect();
    assert!(said.iter().any(|text| text.contains("`bad`")), "{said:?}");
}

/// What is wrong with one list hides nothing of what is wrong with another, and is forgotten once it was put right.
#[tokio::test]
async fn what_is_wrong_with_a_list_is_told_until_it_is_right() {
    let is_right = AtomicUsize::new(0);
    let scripted = Scripted::new(move |message, out| match message["method"].as_str() {
        Some("initialize") => out.answer(
            message,
            &json!({ "protocolVersion": "2025-11-25",
                "capabilities": { "tools": {}, "resources": { "listChanged": true } },
                "serverInfo": { "name": "scripted", "version": "1" } }),
        ),
        Some("tools/list") => out.answer(message, &json!({ "tools": [tool("t")] })),
        Some("resources/list") => {
            let uri = [json!(7), json!("a:b")][is_right.load(Ordering::Acquire)].clone();
            out.answer(message, &json!({ "resources": [{ "uri": uri }] }));
        }
        Some("resources/templates/list") => {
            let uri = [json!(7), json!("a:{b}")][is_right.load(Ordering::Acquire)].clone();
            out.answer(message, &json!({ "resourceTemplates": [{ "uriTemplate": uri }] }));
        }
        Some("tools/call") => {
            is_right.store(1, Ordering::Release);
            let changed = "notifications/resources/list_changed";
            out.send(&json!({ "jsonrpc": "2.0", "method": changed }));
            out.text(message, "put right");
        }
        _ => basics(message, out),
    });
    let servers = scripted.servers();
    let said = || servers.warnings().into_iter().map(|one| one.message).collect::<Vec<_>>();
    servers.list_resources("s").await.unwrap();
    assert_eq!(
        said(),
        [
            "MCP server `s`: 1 entries of its list of resources cannot be used",
            "MCP server `s`: 1 entries of its list of templates cannot be used",
        ]
    );
    let mut changes = servers.changes();
    assert!(call(&servers, "t").await.success());
    // Lists that were being read when they were put right are read again.
    let is_right = || {
        let (resources, templates) = servers.known_resources("s");
        said().is_empty() && (resources.len(), templates.len()) == (1, 1)
    };
    let put_right = async {
        while !is_right() {
            changes.next().await.unwrap();
        }
    };
    tokio::time::timeout(Duration::from_secs(10), put_right).await.unwrap();
}

#[tokio::test]
async fn what_a_server_says_of_its_use_is_found_by_its_tools() {
    let scripted = Scripted::new(|message, out| match message["method"].as_str() {
        Some("initialize") => out.answer(
            message,
            &json!({ "protocolVersion": "2025-11-25", "capabilities": { "tools": {} },
                "serverInfo": { "name": "scripted", "version": "1" },
                "instructions": "Look before you leap." }),
        ),
        Some("tools/list") => out.answer(message, &json!({ "tools": [tool("t")] })),
        _ => basics(message, out),
    });
    let servers = scripted.servers();
    assert_eq!(servers.instructions_for("mcp__s__t"), None, "nobody has spoken to it");
    servers.start("s").await.unwrap();
    let said = ("s".to_owned(), "Look before you leap.".to_owned());
    assert_eq!(servers.instructions_for("mcp__s__t"), Some(said));
    assert_eq!(servers.instructions_for("mcp__s__u"), None);
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

#[tokio::test(start_paused = true)]
async fn a_registry_follows_what_servers_offer() {
    let version = Arc::new(AtomicUsize::new(0));
    let now = Arc::clone(&version);
    let scripted = Scripted::new(move |message, out| match message["method"].as_str() {
        Some("tools/list") => {
            let tools = match now.load(Ordering::Acquire) {
                0 => json!([tool("stays"), tool("goes"), tool("taken")]),
                _ => json!([{ "name": "stays", "description": "New words.",
                    "inputSchema": { "type": "object" } }, tool("comes"), tool("taken")]),
            };
            out.answer(message, &json!({ "tools": tools }));
        }
        Some("tools/call") => {
            out.text(message, "called");
            now.store(1, Ordering::Release);
            out.send(&json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" }));
        }
        _ => basics(message, out),
    });
    let registry = ToolRegistry::new();
    let own = FunctionTool::new("mcp__s__taken", "Ours.", async |_: Nothing, _: ToolContext| {
        Ok::<_, String>("ours")
    });
    registry.register(own.kind(Kind::Think)).unwrap();
    let servers = scripted.servers();
    servers.attach(&registry);
    let generation = registry.generation();
    servers.start("s").await.unwrap();
    // Whoever waited for a server finds its tools.
    assert!(registry.has("mcp__s__goes") && registry.has("mcp__s__stays"));
    assert_eq!(registry.get("mcp__s__taken").unwrap().spec().description, "Ours.");
    let said = servers.warnings();
    assert!(said[0].message.contains("`mcp__s__taken` is already registered"), "{said:?}");
    assert!(registry.generation() > generation);

    let view = ToolView::of(registry.clone());
    let context = ToolContext::builder("task").build();
    let executor = ToolExecutor::builder(view, context).authorizer(AllowAll).build();
    let called = executor.execute(ToolCall::new("c", "mcp__s__stays", json!({}))).await;
    assert_eq!(called.text(), "called");
    settled(&registry, |registry| registry.has("mcp__s__comes")).await;
    assert!(!registry.has("mcp__s__goes"));
    assert_eq!(registry.get("mcp__s__stays").unwrap().spec().description, "New words.");

    servers.stop().await;
    settled(&registry, |registry| !registry.has("mcp__s__stays")).await;
    assert!(registry.has("mcp__s__taken"));
}

/// Waits until a registry is as wanted; time is paused, so this takes none.
async fn settled(registry: &ToolRegistry, wanted: impl Fn(&ToolRegistry) -> bool) {
    let waiting = async {
        while !wanted(registry) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_mins(1), waiting).await.expect("it never came to that");
}

#[tokio::test(start_paused = true)]
async fn a_list_that_changes_all_the_time_is_read_less_and_less_often() {
    let lists = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&lists);
    let scripted = listing(move |message, out| {
        let number = counted.fetch_add(1, Ordering::AcqRel);
        out.answer(message, &json!({ "tools": [tool(&format!("t{number}"))] }));
        out.send(&json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" }));
    });
    let servers = scripted.servers();
    servers.start("s").await.unwrap();
    tokio::time::sleep(Duration::from_hours(1)).await;
    let read = lists.load(Ordering::Acquire);
    assert!((10..200).contains(&read), "{read}");
    assert_eq!(servers.state("s"), Some(ServerState::Ready));
}

#[tokio::test(start_paused = true)]
async fn a_list_that_has_outlived_its_promise_is_read_again_when_it_is_used() {
    let lists = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&lists);
    let scripted = listing(move |message, out| {
        counted.fetch_add(1, Ordering::AcqRel);
        out.answer(message, &json!({ "tools": [tool("t")], "ttlMs": 300_000 }));
    });
    let servers = scripted.servers();
    call(&servers, "t").await;
    tokio::time::sleep(Duration::from_secs(200)).await;
    call(&servers, "t").await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(lists.load(Ordering::Acquire), 1);
    tokio::time::sleep(Duration::from_secs(200)).await;
    assert_eq!(lists.load(Ordering::Acquire), 1);
    call(&servers, "t").await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(lists.load(Ordering::Acquire), 2);
}

#[tokio::test]
async fn tools_are_known_before_their_server_has_started() {
    let cache = tempfile::tempdir().unwrap();
    let scripted = listing(|message, out| out.answer(message, &json!({ "tools": [tool("t")] })));
    let surroundings = scripted.surroundings().cache_directory(cache.path());
    let first = Servers::new(vec![config()], surroundings.clone());
    // Once all lists are read, they are kept.
    assert!(first.list_resources("s").await.unwrap().is_empty());
    drop(first);

    let second = Servers::new(vec![config()], surroundings.clone());
    assert_eq!(names(&second), ["t"]);
    assert_eq!(second.state("s"), Some(ServerState::Configured));
    assert_eq!(scripted.starts(), 1);
    let registry = ToolRegistry::new();
    second.attach(&registry);
    assert!(registry.has("mcp__s__t"));
    assert_eq!(call(&second, "t").await.text(), "called");
    assert_eq!(scripted.starts(), 2);
    // It is known to want a handshake, and is not asked anything else.
    let methods = scripted.seen.methods();
    let probes = methods.iter().filter(|method| *method == "server/discover").count();
    assert_eq!(probes, 1, "{methods:?}");

    // Another way to reach it, an old file or a broken one: nothing is known.
    let moved = Servers::new(vec![config().env("A", "1")], surroundings.clone());
    assert!(names(&moved).is_empty());
    let clock = ManualClock::new(convoke_core::Timestamp::from_millis(i64::MAX / 2));
    let later = Servers::new(vec![config()], surroundings.clone().clock(Arc::new(clock)));
    assert!(names(&later).is_empty());
    // A copy, since the server that runs may write its own at any time.
    let other = tempfile::tempdir().unwrap();
    for kept in std::fs::read_dir(cache.path()).unwrap().flatten() {
        let Ok(text) = std::fs::read(kept.path()) else { continue };
        std::fs::write(other.path().join(kept.file_name()), &text[..text.len().min(100)]).unwrap();
    }
    let broken = Servers::new(vec![config()], surroundings.cache_directory(other.path()));
    assert!(names(&broken).is_empty());
    assert!(broken.warnings().is_empty());
}

/// What is known is used at once, also when it is old; then it is asked for again, beside the work.
#[tokio::test]
async fn what_is_known_is_asked_for_again_when_its_time_is_over() {
    const MINUTE: Duration = Duration::from_mins(1);
    const HOUR: Duration = Duration::from_hours(1);
    let began = convoke_core::Timestamp::from_millis(1_700_000_000_000);
    // What the server promised, how long afterwards nobody starts it, and when somebody does.
    for (promised, still, over) in [
        (Some(10 * MINUTE), 9 * MINUTE, 11 * MINUTE),
        // Whoever promises nothing is believed for a minute.
        (Some(Duration::ZERO), MINUTE / 2, 2 * MINUTE),
        (None, 23 * HOUR, 25 * HOUR),
    ] {
        let cache = tempfile::tempdir().unwrap();
        let version = Arc::new(AtomicUsize::new(1));
        let now = Arc::clone(&version);
        let scripted = listing(move |message, out| {
            let name = format!("t{}", now.load(Ordering::Acquire));
            let mut result = json!({ "tools": [tool(&name)] });
            if let Some(promised) = promised {
                result["ttlMs"] = json!(u64::try_from(promised.as_millis()).unwrap());
            }
            out.answer(message, &result);
        });
        let at = |time: Duration| {
            let clock = Arc::new(ManualClock::new(began.after(time)));
            let surroundings = scripted.surroundings().cache_directory(cache.path());
            Servers::new(vec![config()], surroundings.clock(clock))
        };
        at(Duration::ZERO).look("s").await.unwrap();
        version.store(2, Ordering::Release);

        let fresh = at(still);
        fresh.start_unknown();
        assert_eq!(fresh.state("s"), Some(ServerState::Configured), "{promised:?}");
        assert_eq!(names(&fresh), ["t1"]);

        let old = at(over);
        assert_eq!(names(&old), ["t1"], "what is known is there at once");
        old.start_unknown();
        assert_eq!(old.state("s"), Some(ServerState::Starting), "{promised:?}");
        // Nobody who looks for tools waits for that: they are known.
        old.settled().await;
        assert_eq!(old.state("s"), Some(ServerState::Starting));
        old.look("s").await.unwrap();
        assert_eq!(names(&old), ["t2"]);
        drop(old);

        // It was asked just now.
        let again = at(over + still);
        again.start_unknown();
        assert_eq!(again.state("s"), Some(ServerState::Configured), "{promised:?}");
        assert_eq!(scripted.starts(), 2);
    }
}

/// Of what a registry has already, nothing is done again: what was made of it stays.
#[tokio::test]
async fn attaching_what_was_introduced_changes_nothing() {
    let cache = tempfile::tempdir().unwrap();
    let scripted = listing(|message, out| out.answer(message, &json!({ "tools": [tool("t")] })));
    let surroundings = scripted.surroundings().cache_directory(cache.path());
    Servers::new(vec![config()], surroundings.clone()).look("s").await.unwrap();
    let servers = Servers::new(vec![config()], surroundings);
    let registry = ToolRegistry::new();
    servers.introduce(&registry);
    let generation = registry.generation();
    servers.introduce(&registry);
    servers.attach(&registry);
    assert_eq!(registry.generation(), generation);
    let other = ToolRegistry::new();
    servers.attach(&other);
    assert!(other.has("mcp__s__t"));
    // The server says the same again.
    servers.look("s").await.unwrap();
    assert_eq!(registry.generation(), generation, "who has looked finds it in step");
}

/// gemini-cli 4.14: nothing of two servers of one name is mixed.
#[tokio::test]
async fn of_two_servers_of_one_name_the_first_counts() {
    let scripted = listing(|message, out| out.answer(message, &json!({ "tools": [tool("t")] })));
    let servers = Servers::new(vec![config(), config()], scripted.surroundings());
    assert_eq!(servers.status().len(), 1);
    assert!(servers.warnings()[0].message.contains("more than once"));
}

#[tokio::test]
async fn resources_and_prompts_can_be_read_by_people_and_models() {
    let scripted = Scripted::new(|message, out| match message["method"].as_str() {
        Some("initialize") => out.answer(
            message,
            &json!({
                "protocolVersion": "2025-06-18",
                "capabilities": { "resources": {}, "prompts": {} },
                "serverInfo": { "name": "library", "version": "1" },
            }),
        ),
        Some("resources/list") => out.answer(
            message,
            &json!({ "resources": [
            { "uri": "book:1", "name": "One", "mimeType": "text/plain" }, { "broken": true },
        ] }),
        ),
        Some("prompts/list") => out.answer(
            message,
            &json!({ "prompts": [
            { "name": "sum", "arguments": [{ "name": "of", "required": true }] },
        ] }),
        ),
        Some("resources/read") if message["params"]["uri"] == "book:1" => out.answer(
            message,
            &json!({ "contents": [{ "uri": "book:1", "text": "It was a dark night." }] }),
        ),
        Some("prompts/get") => {
            let of = message["params"]["arguments"]["of"].as_str().unwrap_or_default();
            let text = format!("Sum up {of}");
            out.answer(
                message,
                &json!({ "messages": [
                { "role": "user", "content": { "type": "text", "text": text } },
            ] }),
            );
        }
        _ => basics(message, out),
    });
    let servers = scripted.servers();
    assert!(servers.all_tools().is_empty());
    let resources = servers.list_resources("s").await.unwrap();
    assert_eq!(resources[0].uri, "book:1");
    assert_eq!(servers.list_prompts("s").await.unwrap()[0].arguments[0].name, "of");
    let parts = servers.read_resource("s", "book:1").await.unwrap();
    assert!(parts[0].as_text().unwrap().contains("dark night"));
    let missing = servers.read_resource("s", "book:2").await.unwrap_err();
    assert!(missing.message.contains("`s`"), "{missing}");
    let filled = std::collections::BTreeMap::from([("of".to_owned(), "it".to_owned())]);
    let messages = servers.get_prompt("s", "sum", filled).await.unwrap();
    assert_eq!(messages[0].words(), "Sum up it");

    let registry = ToolRegistry::new();
    servers.attach(&registry);
    let longest = Some(Millis::new(Duration::from_secs(30 + 600)));
    for name in ["mcp_read_resource", "mcp_get_prompt"] {
        let tool = registry.get(name).unwrap();
        assert_eq!(tool.spec().timeout_ms, longest, "a server may have to start first");
    }
    let context = ToolContext::builder("task").build();
    let executor =
        ToolExecutor::builder(ToolView::of(registry), context).authorizer(AllowAll).build();
    for (name, arguments, says) in [
        ("mcp_list_resources", json!({}), "book:1"),
        ("mcp_read_resource", json!({ "server": "s", "uri": "book:1" }), "dark night"),
        ("mcp_get_prompt", json!({ "server": "s" }), "sum"),
        (
            "mcp_get_prompt",
            json!({ "server": "s", "name": "sum", "arguments": { "of": "x" } }),
            "Sum up x",
        ),
        ("mcp_read_resource", json!({ "server": "z", "uri": "book:1" }), "no MCP server `z`"),
    ] {
        let result = executor.execute(ToolCall::new("c", name, arguments)).await;
        assert!(result.text().contains(says), "{name}: {}", result.text());
    }
    let state = reaches(&servers, |state| *state == ServerState::Ready).await;
    assert_eq!(state, ServerState::Ready);
}

#[tokio::test(start_paused = true)]
async fn a_server_without_a_handshake_is_asked_to_announce_changes() {
    let version = Arc::new(AtomicUsize::new(0));
    let now = Arc::clone(&version);
    let subscription = std::sync::Mutex::new(Value::Null);
    let scripted = Scripted::new(move |message, out| match message["method"].as_str() {
        Some("server/discover") => out.answer(
            message,
            &json!({ "resultType": "complete", "supportedVersions": ["2026-07-28"],
                "capabilities": { "tools": { "listChanged": true } }, "ttlMs": 0,
                "cacheScope": "private" }),
        ),
        Some("tools/list") => {
            let name = format!("t{}", now.load(Ordering::Acquire));
            out.answer(
                message,
                &json!({ "resultType": "complete", "tools": [tool(&name)], "ttlMs": 0,
                    "cacheScope": "private" }),
            );
        }
        Some("subscriptions/listen") => {
            *subscription.lock().unwrap() = message["id"].clone();
            let about = json!({ "io.modelcontextprotocol/subscriptionId": message["id"] });
            out.send(&json!({ "jsonrpc": "2.0",
                "method": "notifications/subscriptions/acknowledged",
                "params": { "notifications": message["params"]["notifications"], "_meta": about } }));
        }
        Some("tools/call") => {
            now.store(1, Ordering::Release);
            let about =
                json!({ "io.modelcontextprotocol/subscriptionId": *subscription.lock().unwrap() });
            out.send(&json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed",
                "params": { "_meta": about } }));
            out.answer(message, &json!({ "resultType": "complete", "content": [] }));
        }
        _ => basics(message, out),
    });
    let servers = scripted.servers();
    servers.start("s").await.unwrap();
    let asked = scripted.seen.method("subscriptions/listen").await;
    assert_eq!(asked["params"]["notifications"], json!({ "toolsListChanged": true }));
    assert_eq!(names(&servers), ["t0"]);
    let mut changes = servers.changes();
    call(&servers, "t0").await;
    while names(&servers) != ["t1"] {
        changes.next().await.unwrap();
    }
}
