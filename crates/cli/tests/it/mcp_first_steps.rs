//! MCP as somebody meets it who has used another program before: adding, importing, trying, and what is said when it
//! does not work.

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::pty::{Attached, Terminal};
use crate::support::{Scene, skip};
use crate::waiting::python;

const CONVOKE: &str = env!("CARGO_BIN_EXE_convoke");
const FIXTURE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/resources.py");

fn own_file(scene: &Scene) -> String {
    std::fs::read_to_string(scene.root().join("home/.config/convoke/convoke.yml")).unwrap()
}

fn find<'a>(rows: &'a Value, name: &str) -> &'a Value {
    let found = rows.as_array().unwrap().iter().find(|row| row["name"] == name);
    found.unwrap_or_else(|| panic!("no {name} in {rows}"))
}

/// A scene with a server that has a prompt and something to read.
fn notes() -> Option<Scene> {
    let places = ["/usr/bin/python3", "/usr/local/bin/python3"];
    let python = places.into_iter().find(|place| std::path::Path::new(place).exists())?;
    let scene = Scene::new();
    let added = scene.run(&["mcp", "add", "notes", "--", python, FIXTURE]);
    assert_eq!(added.code, Some(0), "{added:?}");
    Some(scene)
}

/// Whoever writes a server learns here that nobody reads all of what it says.
#[test]
fn a_test_says_how_much_models_get_of_what_a_server_says() {
    let Some(python) = python() else { return };
    let scene = Scene::new();
    let said = |name: &str, flags: &[&str], bytes: &str| {
        let words = [&["mcp", "add", name][..], flags, &["--", python, FIXTURE, bytes]].concat();
        let added = scene.run(&words);
        assert_eq!(added.code, Some(0), "{added:?}");
        scene.stdout(&["mcp", "test", name])
    };
    let long = said("long", &["--trust"], "20000");
    assert!(long.contains("models get the first 2048 of these 20000 bytes"), "{long}");
    for short in [said("short", &["--trust"], "20"), said("stranger", &[], "20000")] {
        assert!(short.contains("instructions") && !short.contains("models get"), "{short}");
    }
}

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

/// Why a server failed is long; lines that a terminal breaks are not rows any more.
#[test]
fn the_list_of_servers_fits_a_terminal() {
    let scene = Scene::new();
    let words = ["mcp", "add", "dead", "--", "no-such-program-at-all-with-a-rather-long-name"];
    assert_eq!(scene.run(&words).code, Some(0));
    assert_eq!(scene.run(&["mcp", "list", "--check"]).code, Some(1));
    let list = ["mcp", "list", "--color", "never"];
    let shown = Terminal::start(&scene, 80, Attached::All, &list).end().screen;
    let row = shown.lines().find(|line| line.starts_with("dead  ")).unwrap();
    assert!(row.contains("failed just now: ") && row.chars().count() <= 80, "{shown}");
    assert!(shown.contains("server  source  state"), "{shown}");
}

#[test]
fn what_came_of_the_last_try_is_remembered() {
    let scene = Scene::new().file("s.sh", format!("#!/bin/sh\nexec {CONVOKE} mcp serve\n"));
    let script = scene.project().join("s.sh").display().to_string();
    for (name, command) in [("m", &["sh", &script][..]), ("dead", &["no-such-program-at-all"])] {
        let ran = scene.run(&[&["mcp", "add", name, "--"], command].concat());
        assert_eq!(ran.code, Some(0), "{ran:?}");
    }
    scene.run(&["mcp", "list", "--check"]);
    let row = find(&scene.json(&["mcp", "list", "--json"]), "m").clone();
    assert_eq!((&row["tools"], &row["setback"]), (&json!(4), &Value::Null), "{row}");
    let listed = scene.stdout(&["mcp", "list"]);
    assert!(listed.contains("failed just now: "), "{listed}");

    std::fs::write(scene.project().join("s.sh"), "echo sorry >&2; exit 3\n").unwrap();
    scene.run(&["mcp", "test", "m"]);
    let row = find(&scene.json(&["mcp", "list", "--json"]), "m").clone();
    assert!(row["setback"]["why"].as_str().unwrap().contains("sorry"), "{row}");
    let doctor = scene.run(&["doctor"]);
    assert!(doctor.stdout.contains("m: failed just now: "), "{doctor:?}");
    assert!(!doctor.stdout.contains("Everything is in order"), "{doctor:?}");

    std::fs::write(scene.project().join("s.sh"), format!("exec {CONVOKE} mcp serve\n")).unwrap();
    let again = scene.stdout(&["mcp", "test", "m"]);
    assert!(again.contains("  before    failed just now: "), "{again}");
    let row = find(&scene.json(&["mcp", "list", "--json"]), "m").clone();
    assert_eq!(row["setback"], Value::Null, "it works again: {row}");
}

#[test]
fn doctor_looks_at_programs_that_are_named_in_full() {
    let scene = Scene::new().file("plain.txt", "x");
    let plain = scene.project().join("plain.txt").display().to_string();
    for (name, command) in [("a", "/nope/program"), ("b", plain.as_str()), ("c", "/tmp")] {
        let ran = scene.run(&["mcp", "add", name, "--", command]);
        assert!(ran.code == Some(0) && ran.stderr.contains("warning: "), "{ran:?}");
    }
    let doctor = scene.stdout(&["doctor"]);
    for said in
        ["a: there is no program `/nope/program`", "is not executable", "c: `/tmp` is a directory"]
    {
        assert!(doctor.contains(said), "{said}: {doctor}");
    }
}

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

#[test]
fn a_server_is_shown_switched_off_and_on() {
    let scene = Scene::new();
    let add = ["mcp", "add", "s", "--env", "KEY=correct-horse-7", "--exclude", "x*", "--", "sh"];
    assert_eq!(scene.run(&add).code, Some(0));
    let shown = scene.run(&["mcp", "get", "s"]);
    assert_snapshot!(shown.shown(), @"
    s  user  sh
      variables  KEY
      runs in    [root]/home
      exclude    x*
      offers     not asked yet
    --- stderr
    --- exit 0
    ");
    assert_eq!(scene.run(&["mcp", "disable", "s"]).code, Some(0));
    assert_eq!(scene.json(&["mcp", "get", "s", "--json"])["enabled"], false);
    assert!(scene.stdout(&["mcp", "list"]).contains("s       user    off"));
    assert_eq!(scene.run(&["mcp", "enable", "s"]).code, Some(0));
    assert!(!own_file(&scene).contains("enabled"), "{}", own_file(&scene));
    assert_eq!(scene.run(&["mcp", "disable", "t"]).code, Some(2));
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

#[test]
fn prompts_and_resources_are_listed() {
    let Some(scene) = notes() else { return skip("python3", "the server is written in it") };
    assert_snapshot!(scene.stdout(&["mcp", "prompts", "notes"]), @"
    prompt  takes       about
    greet   city tone?  Say hello
    ");
    assert_snapshot!(scene.stdout(&["mcp", "resources", "notes"]), @"
    address       name   about
    note://today  today
    ");
    let rows = scene.json(&["mcp", "prompts", "notes", "--json"]);
    assert_eq!(rows[0]["arguments"][0], json!({ "name": "city", "required": true }));
}

#[test]
fn an_untrusted_project_with_servers_says_so_wherever_tools_are_used() {
    let json = r#"{"mcpServers": {"pt": {"command": "x"}}}"#;
    let scene = Scene::new().file(".mcp.json", json).file("a.txt", "one\n");
    for words in [
        &["tools", "list"][..],
        &["tools", "call", "pt.x"],
        &["tools", "show", "ls"],
        &["mcp", "test", "pt"],
    ] {
        let ran = scene.run(words);
        assert!(
            ran.stderr.contains(".mcp.json is not used: this project is not trusted"),
            "{ran:?}"
        );
    }
}

#[test]
fn tools_that_are_all_left_out_are_counted() {
    let scene = Scene::new();
    let words = ["mcp", "add", "self", "--include", "gr*", "--exclude", "grep", "--", CONVOKE];
    assert_eq!(scene.run(&[&words[..], &["mcp", "serve"]].concat()).code, Some(0));
    let ran = scene.run(&["mcp", "tools", "self"]);
    assert_eq!(
        ran.stderr, "it has 4 tools, and include and exclude leave none of them\n",
        "{ran:?}"
    );
    let tried = scene.stdout(&["mcp", "test", "self"]);
    assert!(tried.contains("4 tools more, left out by include and exclude"), "{tried}");
}

#[test]
fn a_tool_is_named_in_the_same_way_to_call_it_and_to_ask_about_it() {
    let scene = Scene::new();
    let add = ["mcp", "add", "self", "--", CONVOKE, "mcp", "serve"];
    assert_eq!(scene.run(&add).code, Some(0));
    let unknown = scene.run(&["policy", "check", "self.grep", r#"{"pattern": "x"}"#]);
    assert_eq!(unknown.code, Some(2), "{unknown:?}");
    assert!(unknown.stderr.contains("convoke mcp tools self"), "{unknown:?}");
    scene.run(&["mcp", "test", "self"]);
    let known = scene.run(&["policy", "check", "self.grep", r#"{"pattern": "x"}"#]);
    assert_eq!(known.code, Some(3), "it is asked about: {known:?}");
}

/// What a server says of its tools must not clear a screen, name a window or write a clipboard.
#[test]
fn words_of_a_server_do_not_steer_a_terminal() {
    let Some(scene) = notes() else { return skip("python3", "the server is written in it") };
    let python =
        find(&scene.json(&["mcp", "list", "--json"]), "notes")["reached"]["command"].clone();
    let fixture = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/steers.py");
    let added = scene.run(&["mcp", "add", "steers", "--", python.as_str().unwrap(), fixture]);
    assert_eq!(added.code, Some(0), "{added:?}");
    assert_eq!(scene.run(&["mcp", "test", "steers"]).code, Some(0));
    for words in [
        &["tools", "list", "--category", "mcp"][..],
        &["tools", "show", "steers.look"],
        &["mcp", "tools", "steers"],
        &["mcp", "tools", "steers", "--full"],
    ] {
        let words = [words, &["--color", "never"]].concat();
        let shown = Terminal::start(&scene, 200, Attached::All, &words).end().screen;
        assert!(shown.contains("Looks."), "{words:?}: {shown:?}");
        assert!(!shown.contains(['\u{1b}', '\u{7}']), "{words:?}: {shown:?}");
    }
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

/// This is what people paste into a report.
#[test]
fn keys_among_arguments_and_in_addresses_are_not_shown() {
    let scene = Scene::new();
    let address = "http://user:pwpwpw99@127.0.0.1:9/mcp?api_key=sk-live-qqqq1234567890";
    for words in [
        &["one", "--", "true", "--api-key", "sk-live-zzzzzz1234567890"][..],
        &["two", address],
        &["three", "--", "true", "--password=hunter22"],
    ] {
        let ran = scene.run(&[&["mcp", "add"], words].concat());
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert!(ran.stderr.contains("warning: what looks like a key is "), "{ran:?}");
        assert!(ran.stderr.contains("write `${NAME}` there"), "{ran:?}");
    }
    let by_variable = ["mcp", "add", "four", "--", "true", "--api-key", "${KEY:-}"];
    let ran = scene.run(&by_variable);
    assert!(!ran.stderr.contains("looks like a key"), "{ran:?}");
    for words in [
        &["config", "show"][..],
        &["config", "show", "--json"],
        &["config", "explain", "tools.mcpServers"],
        &["config", "explain", "tools", "--json"],
        &["mcp", "list"],
        &["mcp", "list", "--json"],
    ] {
        let shown = scene.stdout(words);
        for key in ["zzzzzz", "qqqq", "pwpwpw", "hunter22"] {
            assert!(!shown.contains(key), "{words:?}: {shown}");
        }
        assert!(shown.contains("--api-key") && shown.contains("127.0.0.1:9/mcp"), "{shown}");
    }
    let four = scene.stdout(&["config", "show"]);
    assert!(four.contains("${KEY:-}"), "{four}");
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
fn a_server_of_the_project_says_how_it_is_switched() {
    let scene = Scene::new()
        .file("convoke.yml", "tools:\n  mcpServers:\n    - name: own\n      command: x\n")
        .file(".mcp.json", r#"{"mcpServers": {"jj": {"command": "x"}}}"#);
    let run = |words: &[&str]| {
        let ran = scene.run(&[&["--trust-project", "mcp"], words].concat());
        assert_eq!(ran.code, Some(2), "{ran:?}");
        ran.stderr
    };
    let off = run(&["disable", "jj", "--project"]);
    assert!(off.contains("write \"disabled\": true there"), "{off}");
    assert!(off.contains("`convoke mcp disable jj` switches it off for you alone"), "{off}");
    let on = run(&["enable", "jj"]);
    assert!(on.contains("`jj` is in use already") && !on.contains("off"), "{on}");
}

/// Regression: all that a project said of a server went with the switch.
#[test]
fn what_is_said_beside_a_switch_stays_when_it_is_switched_on() {
    let servers = "tools:\n  mcpServers:\n    - name: files\n";
    let limits = "      exclude: [write_file]\n      timeout: 5s\n";
    let scene =
        Scene::new().file("convoke.yml", format!("{servers}      enabled: false\n{limits}"));
    let ran = scene.run(&["mcp", "enable", "files", "--project"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(scene.read("convoke.yml"), format!("{servers}{limits}"));
    let scene = Scene::new().file("convoke.yml", format!("{servers}      enabled: false\n"));
    let ran = scene.run(&["mcp", "enable", "files", "--project"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(!scene.read("convoke.yml").contains("files"), "{}", scene.read("convoke.yml"));
}

/// The project's files are everybody's; who does not want a server says so in their own.
#[test]
fn a_server_of_the_project_is_switched_off_for_oneself_and_on_again() {
    let project = "tools:\n  mcpServers:\n    - name: own\n      command: x\n";
    let theirs = r#"{"mcpServers": {"jj": {"command": "x"}, "kk": {"command": "x"}}}"#;
    let scene =
        Scene::new().user("# mine\n").file("convoke.yml", project).file(".mcp.json", theirs);
    let run = |words: &[&str]| {
        let ran = scene.run(&[&["--trust-project", "mcp"], words].concat());
        assert_eq!(ran.code, Some(0), "{ran:?}");
        ran
    };
    let enabled = |name: &str| {
        let rows = scene.json(&["--trust-project", "mcp", "list", "--json"]);
        find(&rows, name)["enabled"].clone()
    };
    for name in ["own", "jj"] {
        let ran = run(&["disable", name]);
        assert!(ran.stderr.contains("it is off for you alone"), "{ran:?}");
        assert_eq!(enabled(name), false);
        run(&["disable", name]);
    }
    assert_eq!(enabled("kk"), true);
    assert_eq!(
        (scene.read("convoke.yml").as_str(), scene.read(".mcp.json").as_str()),
        (project, theirs)
    );
    let elsewhere = scene.run(&["mcp", "list"]);
    assert_eq!(
        elsewhere.code,
        Some(0),
        "where there is no such server, nothing is wrong: {elsewhere:?}"
    );
    for name in ["own", "jj"] {
        run(&["enable", name]);
        assert_eq!(enabled(name), true);
    }
    assert!(!own_file(&scene).contains("enabled"), "{}", own_file(&scene));
}

/// Regression: a server was said to be there already that no list had.
#[test]
fn a_switch_of_a_server_that_is_not_here_is_named() {
    let scene = Scene::new().user("tools:\n  mcpServers:\n    - name: jj\n      enabled: false\n");
    for words in [&["mcp", "list"][..], &["mcp", "get", "jj"]] {
        let ran = scene.run(words);
        assert!(ran.stderr.contains("switches off what is not here: `jj`;"), "{ran:?}");
    }
    let other = scene.run(&["mcp", "get", "kk"]);
    assert!(other.code == Some(2) && !other.stderr.contains("jj"), "{other:?}");
    let added = scene.run(&["mcp", "add", "jj", "--", "true"]);
    assert_eq!(added.code, Some(2), "{added:?}");
    for said in ["switches off an MCP server `jj`", "`convoke mcp enable jj`", "`--force`"] {
        assert!(added.stderr.contains(said), "{said}: {added:?}");
    }
    assert_eq!(scene.run(&["mcp", "enable", "jj"]).code, Some(0));
    let listed = scene.run(&["mcp", "list"]);
    assert!(listed.code == Some(0) && !listed.stderr.contains("jj"), "{listed:?}");
    assert_eq!(scene.run(&["mcp", "add", "jj", "--", "true"]).code, Some(0));
}

#[test]
fn a_server_that_is_switched_off_is_not_started_and_says_what_to_do() {
    let scene = Scene::new();
    assert_eq!(scene.run(&["mcp", "add", "s", "--", "true"]).code, Some(0));
    let ran = scene.run(&["mcp", "disable", "s"]);
    assert!(ran.stderr.contains("that are under way use it until they end"), "{ran:?}");
    for words in [&["tools", "call", "s.x"][..], &["mcp", "test", "s"]] {
        let ran = scene.run(words);
        assert!(ran.code != Some(0) && !ran.stderr.contains("starting s"), "{ran:?}");
        assert!(ran.stderr.contains("`convoke mcp enable s`"), "{ran:?}");
    }
}

/// Where a server starts is told to whoever uses or looks at it, and to nobody else.
#[test]
fn that_a_server_is_confined_here_is_told_where_it_matters() {
    let scene = Scene::new();
    for (name, words) in [("here", &["--workdir", "workspace"][..]), ("other", &[])] {
        let ran = scene.run(&[&["mcp", "add", name], words, &["--", "sh"]].concat());
        assert_eq!(ran.code, Some(0), "{ran:?}");
    }
    let said = "`here` starts in a folder that is not trusted";
    for (words, is_told) in [
        (&["mcp", "list"][..], true),
        (&["mcp", "get", "here"], true),
        (&["doctor"], true),
        (&["mcp", "get", "other"], false),
        (&["tools", "show", "ls"], false),
        (&["mcp", "remove", "other"], false),
    ] {
        let ran = scene.run(words);
        assert_eq!(ran.shown().matches(said).count(), usize::from(is_told), "{words:?}: {ran:?}");
    }
}

#[test]
fn servers_that_failed_are_not_everything_that_works() {
    let scene = Scene::new();
    assert_eq!(scene.run(&["mcp", "add", "dead", "--", "no-such-program-at-all"]).code, Some(0));
    assert_eq!(scene.run(&["mcp", "test", "dead"]).code, Some(1));
    let ran = scene.run(&["doctor"]);
    assert!(ran.code == Some(1) && ran.stdout.contains("Something does not work: "), "{ran:?}");
    let lines = ran.stdout.lines().filter(|line| line.trim_start().starts_with("dead: "));
    assert_eq!(lines.count(), 1, "one line a server: {ran:?}");
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
