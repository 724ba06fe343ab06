//! Servers that ask for a variable that they do not get.

use serde_json::{Value, json};

use crate::mcp::{find, own_file};
use crate::support::Scene;

#[test]
fn one_server_that_lacks_a_variable_keeps_nothing_else_from_working() {
    let scene = Scene::new().user(
        "tools:\n  mcpServers:\n    - name: lacking\n      command: x\n      env: {K: \"${NOT_SET}\"}\n    \
         - name: odd\n      command: \"${input:x}\"\n    - name: fine\n      command: y\n",
    );
    let listed = scene.run(&["mcp", "list"]);
    assert_eq!(listed.code, Some(0), "{listed:?}");
    assert!(listed.stdout.contains("\nfine     user"), "{listed:?}");
    let said =
        "the MCP server `lacking` is left out: the environment variable `NOT_SET` is not set";
    assert!(listed.stderr.contains(said), "{listed:?}");
    assert!(listed.stderr.contains("the MCP server `odd` is left out"), "{listed:?}");
    for words in [
        &["mcp", "add", "more", "--", "z"][..],
        &["mcp", "remove", "odd"],
        &["mcp", "remove", "lacking"],
        &["tools", "list"],
        &["config", "check"],
    ] {
        let ran = scene.run(words);
        assert_eq!(ran.code, Some(0), "{words:?}: {ran:?}");
    }
    assert!(!own_file(&scene).contains("NOT_SET"), "{}", own_file(&scene));
    let other = Scene::new().user("tools:\n  exclude: [\"${NOT_SET}\"]\n");
    assert_eq!(other.run(&["mcp", "list"]).code, Some(7), "other keys are as strict as ever");
}

/// What a layer above takes away from a server must not come back because that layer lacks a variable.
#[test]
fn a_server_is_left_out_whole() {
    let scene = Scene::new()
        .user("tools:\n  mcpServers:\n    - name: s\n      command: x\n")
        .file(
            "convoke.yml",
            "tools:\n  mcpServers:\n    - name: s\n      enabled: false\n      exclude: [\"${NOT_SET}\"]\n",
        );
    let rows = scene.json(&["--trust-project", "mcp", "list", "--json"]);
    assert_eq!(
        (rows.as_array().unwrap().len(), &find(&rows, "s")["state"]),
        (1, &json!("left_out"))
    );
}

/// Regression: servers that are left out counted as working, and lacked the keys of others.
#[test]
fn a_server_that_is_left_out_does_not_work() {
    let lacking = "tools:\n  mcpServers:\n    - name: lacking\n      command: \"${NOT_SET}\"\n";
    let off = "    - {name: off, command: x, enabled: false}\n";
    for scene in [Scene::new().user(lacking), Scene::new().user(&format!("{lacking}{off}"))] {
        for words in [&["mcp", "list", "--check"][..], &["mcp", "test"]] {
            let ran = scene.run(words);
            assert_eq!(ran.code, Some(1), "{words:?}: {ran:?}");
        }
        assert_eq!(scene.run(&["mcp", "list"]).code, Some(0), "nobody wanted to know");
        let rows = scene.json(&["mcp", "list", "--json"]);
        assert_eq!(find(&rows, "lacking")["enabled"], false, "{rows}");
        let keys = |row: &Value| row.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
        let rows = rows.as_array().unwrap();
        assert!(rows.iter().all(|row| keys(row) == keys(&rows[0])), "{rows:?}");
    }
}

/// What was said of its tools, in rules for instance, was not said of a project's.
#[test]
fn a_server_that_is_left_out_keeps_its_name() {
    let servers = json!({ "mcpServers": { "s": { "command": "x" }, "t": { "command": "x" } } });
    let scene = Scene::new()
        .user("tools:\n  mcpServers:\n    - name: s\n      command: \"${NOT_SET}\"\n")
        .file("convoke.yml", "")
        .file(".mcp.json", servers.to_string());
    let ran = scene.run(&["--trust-project", "mcp", "list"]);
    assert!(ran.stdout.contains("\nt       project"), "{ran:?}");
    assert!(ran.stdout.lines().any(|line| line.starts_with("s ") && line.contains("left out")));
    assert_eq!(ran.stdout.lines().count(), 3, "the titles, a server, one left out: {ran:?}");
    assert!(ran.stderr.contains("there is another of that name"), "{ran:?}");
}

/// One that lacks a variable is there, and whoever asks for it is told so.
#[test]
fn a_server_that_is_left_out_is_not_unknown() {
    let scene = Scene::new()
        .user("tools:\n  mcpServers:\n    - name: lacking\n      command: \"${NOT_SET}\"\n")
        .file("convoke.yml", "")
        .file(".mcp.json", r#"{"mcpServers": {"pj": {"command": "${NOT_SET}"}}}"#);
    for (verb, name) in [("get", "lacking"), ("test", "lacking"), ("get", "pj"), ("tools", "pj")] {
        let ran = scene.run(&["--trust-project", "mcp", verb, name]);
        let said = format!("the MCP server `{name}` is left out: it asks for a variable");
        assert!(ran.code == Some(7) && ran.stderr.contains(&said), "{ran:?}");
    }
    let ran = scene.run(&["mcp", "add", "x", "--", "true", "${NOT_SET}"]);
    assert!(ran.stderr.contains("until it is, the server `x` is left out"), "{ran:?}");
}

#[test]
fn a_variable_that_projects_do_not_get_is_told_as_such() {
    let servers = json!({ "mcpServers": {
        "plain": { "command": "x", "env": { "X": "${PLAINV}" } },
        "default": { "command": "x", "env": { "X": "${PLAINV:-none}" } },
        "missing": { "command": "x", "env": { "X": "${NOT_SET}" } },
        "fine": { "command": "x", "env": { "X": "${NOT_SET:-none}" } },
    } });
    let scene = Scene::new()
        .file("convoke.yml", "")
        .file(".mcp.json", servers.to_string())
        .variable("PLAINV", "hello");
    let ran = scene.run(&["--trust-project", "mcp", "list"]);
    assert!(ran.stdout.contains("\nfine     project"), "{ran:?}");
    assert_eq!(ran.stdout.matches("left out: ").count(), 3, "{ran:?}");
    let withheld = "the environment variable `PLAINV` is set, but it is not given to projects; \
                    `tools.environment: [PLAINV]`";
    assert_eq!(ran.stderr.matches(withheld).count(), 2, "{ran:?}");
    assert!(ran.stderr.contains("the environment variable `NOT_SET` is not set"), "{ran:?}");
    let given = ["--trust-project", "--set", "tools.environment=[\"PLAINV\"]", "mcp", "list"];
    assert_eq!(scene.stdout(&given).matches("left out: ").count(), 1);
}
