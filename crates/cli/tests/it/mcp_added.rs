//! Servers as they are added: at once, as other programs have them, and tried.

use insta::assert_snapshot;
use serde_json::json;

use crate::mcp::{find, own_file};
use crate::pty::{Attached, Terminal};
use crate::support::Scene;

const CONVOKE: &str = env!("CARGO_BIN_EXE_convoke");

#[test]
fn servers_are_added_as_other_programs_have_it() {
    let scene = Scene::new();
    for words in [
        &["one", "npx", "-y", "server", "--port", "3"][..],
        &["two", "https://x.example/mcp", "--header", "Authorization: Bearer ${TOKEN:-}"],
        &["three", "--transport", "http", "https://y.example/mcp"],
        &[
            "four",
            "-e",
            "A=b",
            "--transport",
            "stdio",
            "--start-timeout",
            "2m",
            "--",
            "prog",
            "--trust",
        ],
    ] {
        let ran = scene.run(&[&["mcp", "add"], words].concat());
        assert_eq!(ran.code, Some(0), "{words:?}: {ran:?}");
    }
    let json = r#"{"type": "stdio", "command": "five", "args": ["x"]}"#;
    assert_eq!(scene.run(&["mcp", "add-json", "five", json]).code, Some(0));
    assert_snapshot!(own_file(&scene), @r#"
    tools:
      mcpServers:
        - name: one
          command: npx
          args: ["-y", "server", "--port", "3"]
        - name: two
          url: "https://x.example/mcp"
          headers:
            Authorization: "Bearer ${TOKEN:-}"
        - name: three
          url: "https://y.example/mcp"
        - name: four
          command: prog
          args: ["--trust"]
          env:
            A: "b"
          startTimeout: 2m
        - name: five
          command: five
          args: ["x"]
          cwd: workspace
    "#);
}

#[test]
fn what_can_never_work_is_not_added() {
    let scene = Scene::new();
    for words in [
        &["x"][..],
        &["x", "--url", "http://"],
        &["x", "https:///mcp"],
        &["x", "https://x.example", "--header", "A B=c"],
        &["x", "https://x.example", "--header", "A=b\nc"],
        &["x", "https://x.example", "--env", "A=b"],
        &["x", "--header", "A=b", "--", "prog"],
        &["x", "--env", "1A-B=v", "--", "prog"],
        &["x", "--transport", "stdio", "https://x.example"],
        &["x", "--transport", "http", "--", "prog"],
        &["x", "--transport", "sse", "https://x.example"],
    ] {
        let ran = scene.run(&[&["mcp", "add"], words].concat());
        assert_eq!(ran.code, Some(2), "{words:?}: {ran:?}");
    }
    let nothing = scene.run(&["mcp", "add", "x"]);
    assert!(nothing.stderr.contains("convoke mcp add x -- PROGRAM"), "{nothing:?}");
    for json in ["{", "{}", "[]", r#"{"type": "sse", "url": "https://x.example"}"#] {
        assert_eq!(scene.run(&["mcp", "add-json", "x", json]).code, Some(2), "{json}");
    }
    let open = ["mcp", "add", "o", "http://x.example/mcp", "--header", "Authorization: Bearer abc"];
    let ran = scene.run(&open);
    assert!(ran.stderr.contains("headers.Authorization can be read on its way"), "{ran:?}");
}

/// Set-up scripts do this.
#[test]
fn servers_that_are_added_at_once_are_all_there() {
    let scene = Scene::new();
    let names: Vec<String> = (0..12).map(|index| format!("q{index}")).collect();
    let add = |name: &String| scene.command(&["mcp", "add", name, "--", "true"]).spawn().unwrap();
    let adding: Vec<_> = names.iter().map(add).collect();
    for child in adding {
        let ran = scene.ended(&child.wait_with_output().unwrap());
        assert_eq!(ran.code, Some(0), "{ran:?}");
    }
    let listed = scene.json(&["mcp", "list", "--json"]);
    for name in &names {
        find(&listed, name);
    }
    let off = |name: &String| scene.command(&["mcp", "disable", name]).spawn().unwrap();
    let switching: Vec<_> = names.iter().map(off).collect();
    for child in switching {
        let ran = scene.ended(&child.wait_with_output().unwrap());
        assert_eq!(ran.code, Some(0), "{ran:?}");
    }
    assert_eq!(own_file(&scene).matches("enabled: false").count(), names.len());
}

/// What somebody protected is not put aside by a file in its place.
#[test]
fn a_file_that_is_read_only_stays() {
    use std::os::unix::fs::PermissionsExt;
    let scene = Scene::new().user("# mine\n");
    let path = scene.root().join("home/.config/convoke/convoke.yml");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o400)).unwrap();
    let ran = scene.run(&["mcp", "add", "x", "--", "true"]);
    assert!(ran.code == Some(9) && ran.stderr.contains("it is read-only"), "{ran:?}");
    assert_eq!(own_file(&scene), "# mine\n");
}

#[test]
fn what_claude_keeps_for_this_directory_is_imported_here() {
    let scene = Scene::new();
    let here = scene.project().display().to_string();
    let settings = json!({ "projects": {
        here: { "mcpServers": { "own": { "command": "x" } } },
        "/elsewhere": { "mcpServers": { "other": { "command": "y" } } },
    } });
    let scene = scene.file("claude.json", format!("// mine\n{settings}"));
    let ran = scene.run(&["mcp", "import", "claude.json"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "own\n"), "{ran:?}");
    assert!(ran.stderr.contains("1 server of this directory too"), "{ran:?}");
    assert!(ran.stderr.contains("1 server of 1 directory left out"), "{ran:?}");
}

/// Regression: of several servers with keys, one warning was given, and not of which.
#[test]
fn each_server_with_a_key_is_named() {
    let server = json!({ "command": "true", "args": ["--api-key", "sk-live-zzzzzz1234567890"] });
    let servers = json!({ "mcpServers": { "one": server, "two": server } });
    let scene = Scene::new().file("mcp.json", servers.to_string());
    let ran = scene.run(&["mcp", "import", "mcp.json"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    for name in ["one", "two"] {
        assert!(ran.stderr.contains(&format!("among the arguments of `{name}`")), "{ran:?}");
    }
}

#[test]
fn a_server_is_tried_when_it_is_added() {
    let scene = Scene::new();
    let project = scene.project().display().to_string();
    let add = ["mcp", "add", "self", "--test", "--", CONVOKE, "--cwd", &project, "mcp", "serve"];
    let ran = scene.run(&add);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stderr.contains("it works, and offers 4 tools, "), "{ran:?}");
    assert!(scene.stdout(&["mcp", "list"]).contains("4 tools, revision"));
    let ran = scene.run(&["mcp", "add", "dead", "--test", "--", "no-such-program-at-all"]);
    assert_eq!(ran.code, Some(1), "what was to be tried does not work: {ran:?}");
    assert!(ran.stderr.contains("it stays in the file; "), "{ran:?}");
    assert!(own_file(&scene).contains("name: dead"), "{}", own_file(&scene));

    let words = ["mcp", "add", "again", "--", CONVOKE, "--cwd", &project, "mcp", "serve"];
    let shown = Terminal::start(&scene, 100, Attached::All, &words).end().screen;
    assert!(shown.contains("it works, and offers 4 tools, "), "{shown}");
}

/// Regression: that it was not tried was said, and not why.
#[test]
fn why_a_server_was_not_tried_is_said() {
    let scene = Scene::new();
    let ran = scene.run(&["mcp", "add", "x", "--test", "--", "true", "${NOT_SET}"]);
    let why = "it was not tried: the MCP server `x` is left out: it asks for a variable";
    assert!(ran.code == Some(1) && ran.stderr.contains(why), "{ran:?}");
    assert!(ran.stderr.contains("hint: the warning above says which"), "{ran:?}");
    let ran = scene.run(&["mcp", "add", "y", "--project", "--test", "--", "true"]);
    let why = "it was not tried: what the project's file says now is not trusted";
    assert!(ran.code == Some(1) && ran.stderr.contains(why), "{ran:?}");
}
