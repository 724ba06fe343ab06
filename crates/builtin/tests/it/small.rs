//! The small tools: time, environment, data.

use std::time::Duration;

use convoke_core::ErrorKind;
use convoke_tool::CallOptions;
use serde_json::json;

use crate::support::Workspace;

#[tokio::test]
async fn current_time_knows_zones() {
    let workspace = Workspace::new();
    workspace.clock.advance(Duration::from_secs(1_700_000_000));
    assert_eq!(
        workspace.value("current_time", json!({})).await,
        json!({ "timestamp": 1_700_000_000_000_i64, "iso": "2023-11-14T22:13:20.000+00:00", "timezone": "UTC" })
    );
    let berlin = workspace.value("current_time", json!({ "timezone": "Europe/Berlin" })).await;
    assert_eq!(berlin["iso"], "2023-11-14T23:13:20.000+01:00");
    let (kind, message) = workspace.error("current_time", json!({ "timezone": "Mars/Base" })).await;
    assert_eq!(kind, ErrorKind::Validation);
    assert!(message.contains("`Mars/Base` is not a known time zone"), "{message}");
}

#[tokio::test(start_paused = true)]
async fn sleep_sleeps_longer_than_other_tools_may_take_and_can_be_cut_short() {
    let workspace = Workspace::new();
    let started = tokio::time::Instant::now();
    assert_eq!(
        workspace.value("sleep", json!({ "duration": 45.5 })).await,
        json!({ "slept": 45.5 })
    );
    assert_eq!(started.elapsed(), Duration::from_millis(45_500));
    let options = CallOptions::timeout(Duration::from_secs(1));
    let cut = workspace.call_with("sleep", json!({ "duration": 9 }), options).await;
    assert_eq!(cut.error_kind(), Some(ErrorKind::Timeout));
    let capped = workspace.call("sleep", json!({ "duration": 1e300 })).await;
    assert_eq!(capped.error().unwrap().message, "Tool execution timed out after 600000ms");
    assert_eq!(workspace.error("sleep", json!({ "duration": -1 })).await.0, ErrorKind::Validation);
}

#[tokio::test]
async fn the_environment_is_the_sessions_own() {
    let workspace = Workspace::new();
    assert_eq!(
        workspace.value("get_env", json!({ "key": "LANG" })).await,
        json!({ "value": "C.UTF-8" })
    );
    assert_eq!(
        workspace.value("get_env", json!({ "key": "NOPE" })).await,
        json!({ "value": null })
    );
    assert_eq!(
        workspace.value("get_env", json!({ "key": "SECRET_TOKEN" })).await,
        json!({ "value": "***" })
    );
    let set = async |value: &str| {
        workspace.value("set_env", json!({ "key": "MODE", "value": value })).await
    };
    assert_eq!(set("fast").await, json!({ "previous": null }));
    assert_eq!(set("slow").await, json!({ "previous": "fast" }));
    let seen = workspace
        .value("run_command", json!({ "command": "printf %s \"$MODE[$SECRET_TOKEN]\"" }))
        .await;
    assert_eq!(seen["stdout"], "slow[]");
    assert_eq!(std::env::var_os("MODE"), None);
    for key in ["", "A=B", "A\0"] {
        assert_eq!(
            workspace.error("get_env", json!({ "key": key })).await.0,
            ErrorKind::Validation
        );
    }
}

#[tokio::test]
async fn json_is_parsed_and_written() {
    let workspace = Workspace::new();
    let parsed = workspace.value("json_parse", json!({ "text": "{\"b\": [1, null]}" })).await;
    assert_eq!(parsed, json!({ "data": { "b": [1, null] } }));
    let data = json!({ "a": 1 });
    assert_eq!(
        workspace.value("json_stringify", json!({ "data": data })).await,
        json!({ "text": "{\"a\":1}" })
    );
    let pretty = workspace.value("json_stringify", json!({ "data": data, "pretty": true })).await;
    assert_eq!(pretty["text"], "{\n  \"a\": 1\n}");
    assert_eq!(
        workspace.value("json_stringify", json!({ "data": null })).await,
        json!({ "text": "null" })
    );
    let (kind, message) = workspace.error("json_parse", json!({ "text": "{\"a\": }" })).await;
    assert_eq!(kind, ErrorKind::Failed);
    assert!(message.contains("line 1 column 7"), "{message}");
    let deep = "[".repeat(100_000);
    assert!(
        workspace.error("json_parse", json!({ "text": deep })).await.1.contains("recursion limit")
    );
}

#[tokio::test]
async fn base64_goes_both_ways() {
    let workspace = Workspace::new();
    let encoded = workspace.value("base64_encode", json!({ "text": "häuser?>" })).await;
    assert_eq!(encoded, json!({ "encoded": "aMOkdXNlcj8+" }));
    for spelling in ["aMOkdXNlcj8+", "aMOkdXNlcj8-", "aMOk\ndXNl cj8+"] {
        let decoded = workspace.value("base64_decode", json!({ "encoded": spelling })).await;
        assert_eq!(decoded, json!({ "decoded": "häuser?>" }), "{spelling}");
    }
    assert_eq!(
        workspace.value("base64_decode", json!({ "encoded": "YQ" })).await,
        json!({ "decoded": "a" })
    );
    assert!(
        workspace.error("base64_decode", json!({ "encoded": "!" })).await.1.contains("not base64")
    );
    assert!(
        workspace
            .error("base64_decode", json!({ "encoded": "/w==" }))
            .await
            .1
            .contains("not UTF-8")
    );
}

#[tokio::test]
async fn a_variable_that_decides_what_runs_cannot_be_set() {
    let workspace = Workspace::new();
    for key in ["PATH", "BASH_ENV", "LD_PRELOAD", "GIT_SSH_COMMAND", "node_options"] {
        let (kind, message) = workspace.error("set_env", json!({ "key": key, "value": "x" })).await;
        assert_eq!(kind, ErrorKind::Permission, "{key}: {message}");
    }
}

#[tokio::test]
async fn what_is_set_is_seen_by_later_calls_of_the_same_batch() {
    let workspace = Workspace::new();
    for round in 0..20 {
        let value = round.to_string();
        let call = |id: &str, tool: &str, arguments| {
            convoke_core::ToolCall::new(format!("{id}{round}"), tool, arguments)
        };
        let results = workspace
            .executor
            .execute_batch(vec![
                call("s", "set_env", json!({ "key": "ROUND", "value": value })),
                call("g", "get_env", json!({ "key": "ROUND" })),
            ])
            .await;
        assert_eq!(results[1].value(), Some(&json!({ "value": value })));
    }
}
