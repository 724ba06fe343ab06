//! MCP servers as the command lists, tries, adds and uses them. The servers are the command itself.

use std::fs;

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::support::{Ran, Scene};

const CONVOKE: &str = env!("CARGO_BIN_EXE_convoke");

fn scene() -> Scene {
    Scene::new().file("a.txt", "one\n")
}

/// A scene with a server that works.
fn served() -> Scene {
    let scene = scene();
    let project = scene.project().display().to_string();
    let ran = scene.run(&["mcp", "add", "self", "--", CONVOKE, "--cwd", &project, "mcp", "serve"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    scene
}

/// Returns the user's configuration file.
pub(crate) fn own_file(scene: &Scene) -> String {
    fs::read_to_string(scene.root().join("home/.config/convoke/convoke.yml")).unwrap()
}

/// Returns the row of a server.
pub(crate) fn find<'a>(rows: &'a Value, name: &str) -> &'a Value {
    rows.as_array().unwrap().iter().find(|row| row["name"] == name).unwrap()
}

fn readable(text: &str) -> String {
    text.replace(CONVOKE, "[convoke]")
}

#[test]
fn where_there_are_no_servers_the_list_says_how_to_add_one() {
    let ran = scene().run(&["mcp", "list"]);
    assert_snapshot!(ran.shown(), @"
    --- stderr
    there are no MCP servers; `convoke mcp add` adds one
    --- exit 0
    ");
    assert_eq!(scene().json(&["mcp", "list", "--json"]), json!([]));
}

/// It is in the file, so it is in the list, whether or not there are others.
#[test]
fn a_server_whose_variable_is_not_set_is_listed_with_why_it_is_not_used() {
    let one = "tools:\n  mcpServers:\n    - {name: x, command: y, env: {TOKEN: '${TOK}'}}\n";
    for text in [one.to_owned(), format!("{one}    - {{name: other, command: z}}\n")] {
        let scene = scene().user(&text);
        let listed = scene.run(&["mcp", "list"]);
        let row = listed.stdout.lines().find(|line| line.starts_with("x ")).unwrap_or_default();
        assert!(
            row.contains("left out: it asks for a variable that it does not get"),
            "{listed:?}"
        );
        assert!(listed.stderr.contains("the MCP server `x` is left out"), "{listed:?}");
        assert!(listed.stderr.contains("TOK"), "{listed:?}");
        let rows = scene.json(&["mcp", "list", "--json"]);
        assert_eq!(find(&rows, "x")["state"], "left_out");
        for words in [["mcp", "get", "x"], ["mcp", "test", "x"]] {
            let ran = scene.run(&words);
            assert_eq!(ran.code, Some(7), "{ran:?}");
            assert!(ran.stderr.contains("error: the MCP server `x` is left out"), "{ran:?}");
        }
    }
}

#[test]
fn a_server_is_added_tried_listed_and_removed() {
    let scene = scene().user("# mine\nmodel:\n  default: a/b # the best\n");
    let words = ["mcp", "add", "self", "--env", "TONE=${TONE:-}", "--exclude", "gl*", "--trust"];
    let ran = scene.run(&[&words[..], &["--", CONVOKE, "mcp", "serve"]].concat());
    assert_snapshot!(ran.shown(), @"
    --- stderr
    added self to [root]/home/.config/convoke/convoke.yml
    hint: `convoke mcp test self` says whether it works
    --- exit 0
    ");
    assert_snapshot!(readable(&own_file(&scene)), @r#"
    # mine
    model:
      default: a/b # the best

    tools:
      mcpServers:
        - name: self
          command: [convoke]
          args: ["mcp", "serve"]
          env:
            TONE: "${TONE:-}"
          exclude: ["gl*"]
          trust: true
    "#);
    assert_snapshot!(readable(&scene.stdout(&["mcp", "list"])), @"
    server  source  state          reached
    self    user    not asked yet  [convoke] mcp serve
    ");

    let tried = scene.stdout(&["mcp", "test", "self"]);
    for said in ["  revision  2026-07-28\n", "  software  convoke ", "3 tools, 0 resources"] {
        assert!(tried.contains(said), "{said}: {tried}");
    }
    let listed = scene.stdout(&["mcp", "list"]);
    assert!(listed.contains("3 tools, revision 2026-07-28, asked just now"), "{listed}");

    let tools = scene.stdout(&["mcp", "tools", "self"]);
    assert!(tools.contains("read_file  path encoding? limit? offset?  "), "{tools}");
    assert!(!tools.contains("glob"), "{tools}");
    let full = scene.stdout(&["mcp", "tools", "self", "--full"]);
    assert!(full.contains("read_file  mcp__self__read_file\n"), "{full}");
    let rows = scene.json(&["mcp", "tools", "self", "--json"]);
    assert_eq!(find(&rows, "read_file")["toolName"], "mcp__self__read_file");
    assert_eq!(find(&rows, "read_file")["kind"], "read", "it is believed");

    let ran = scene.run(&["mcp", "remove", "self"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let left = own_file(&scene);
    assert!(left.starts_with("# mine\nmodel:\n  default: a/b # the best\n"), "{left}");
    assert!(!left.contains("self"), "{left}");
    let again = scene.run(&["mcp", "remove", "self"]);
    assert_eq!(again.code, Some(2), "{again:?}");
}

#[test]
fn names_are_checked_and_nobody_is_replaced_by_accident() {
    let scene = served();
    let add = |name: &str, more: &[&str]| {
        scene.run(&[&["mcp", "add", name, "--url", "https://x.example/mcp"][..], more].concat())
    };
    assert_snapshot!(add("self", &[]).shown(), @"
    --- stderr
    error: there is an MCP server `self` already
    hint: `--force` puts this one in its place; `convoke mcp list` shows it
    --- exit 2
    ");
    assert_eq!(add("self", &["--force"]).code, Some(0));
    let file = own_file(&scene);
    assert!(file.contains("url: \"https://x.example/mcp\"") && !file.contains("command"), "{file}");
    for bad in ["a b", "", "a.b", "ä"] {
        assert_eq!(add(bad, &[]).code, Some(2), "{bad}");
    }
    let both = scene.run(&["mcp", "add", "two", "--url", "https://x.example", "--", "x"]);
    assert_eq!(both.code, Some(2), "{both:?}");
    let wrong = scene.run(&["mcp", "add", "two", "--url", "ftp://x.example"]);
    assert_eq!(wrong.code, Some(2), "{wrong:?}");
    assert_eq!(own_file(&scene), file, "what is refused changes nothing");
}

/// A variable that is not set keeps a server from being used: whoever writes it down has to know.
#[test]
fn a_variable_that_is_not_set_is_told_and_kept_as_it_is() {
    let scene = scene();
    let words = ["mcp", "add", "r", "--url", "https://x.example/mcp", "--header"];
    let ran = scene.run(&[&words[..], &["Authorization=Bearer ${MISSING}"]].concat());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stderr.contains("warning: the variable MISSING is not set"), "{ran:?}");
    assert!(own_file(&scene).contains("Authorization: \"Bearer ${MISSING}\""));
}

/// Regression: what it waits for was not told, and the hint was to raise another limit than the one that was given.
#[test]
fn a_server_that_is_not_ready_in_time_says_what_it_waits_for() {
    let scene = scene();
    let script = "echo Please open a page >&2; echo Listening; exec sleep 100";
    let ran = scene.run(&["mcp", "add", "waits", "--", "sh", "-c", script]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let ran = scene.run(&["mcp", "test", "waits", "--timeout", "2s"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    for part in [
        "could not be started: Please open a page (it was not ready in time)",
        "a line that is no message: `Listening`",
        "`convoke mcp test waits --timeout 2m`",
    ] {
        assert!(ran.stderr.contains(part), "{part} in {ran:?}");
    }
    assert!(!ran.stderr.contains("startTimeout"), "{ran:?}");
    let row = find(&scene.json(&["mcp", "list", "--json"]), "waits").clone();
    assert!(row["setback"]["why"].as_str().unwrap().starts_with("Please open a page"), "{row}");
}

#[test]
fn a_server_that_does_not_start_says_why_and_what_to_do() {
    let scene = served();
    let add = |name: &str, command: &[&str]| {
        let ran = scene.run(&[&["mcp", "add", name, "--"], command].concat());
        assert_eq!(ran.code, Some(0), "{ran:?}");
    };
    add("gone", &["no-such-program-at-all"]);
    add("rude", &["sh", "-c", "echo I will not >&2; exit 3"]);
    let gone = scene.run(&["mcp", "test", "gone"]);
    assert_eq!(gone.code, Some(1), "{gone:?}");
    let hint = "hint: is `no-such-program-at-all` installed, and in a directory of PATH?";
    assert!(gone.stderr.contains(hint), "{gone:?}");
    let rude = scene.run(&["mcp", "test", "rude"]);
    assert!(rude.stderr.contains("I will not"), "{rude:?}");
    let told = scene.json(&["mcp", "test", "rude", "--json"]);
    assert_eq!((&told["ok"], &told["error"]["kind"]), (&json!(false), &json!("unavailable")));

    for words in [&["mcp", "list", "--check"][..], &["mcp", "test"]] {
        let ran = scene.run(&[words, &["--json"]].concat());
        assert_eq!(ran.code, Some(1), "{ran:?}");
        let rows: Value = serde_json::from_str(&ran.stdout).unwrap();
        assert_eq!(find(&rows, "self")["state"], "ready");
        assert_eq!(find(&rows, "self")["tools"], 4);
        assert_eq!(find(&rows, "gone")["state"], "failed");
        assert!(find(&rows, "rude")["reason"].as_str().unwrap().contains("I will not"));
    }
    let unknown = scene.run(&["mcp", "test", "slef"]);
    assert_snapshot!(unknown.stderr, @"
    error: there is no MCP server `slef`; did you mean `self`?
    hint: `convoke mcp list` shows them all
    ");
    let listed = scene.run(&["doctor"]);
    assert_eq!(listed.code, Some(1), "{listed:?}");
    let said = "gone: failed just now: program `no-such-program-at-all` not found";
    assert!(listed.stdout.contains(said), "{listed:?}");
    assert!(listed.stdout.contains("self: 4 tools, asked just now"), "{listed:?}");
}

#[test]
fn no_list_shows_a_secret() {
    const SECRET: &str = "correct-horse-7-battery";
    let scene = scene().variable("TRACKER_TOKEN", SECRET).user(&format!(
        "tools:\n  mcpServers:\n    - name: r\n      url: https://x.example/mcp?key={SECRET}\n      \
         headers: {{Authorization: Bearer {SECRET}}}\n    - name: p\n      command: x\n      \
         args: [\"--token=${{TRACKER_TOKEN}}\"]\n      env: {{KEY: {SECRET}}}\n"
    ));
    for words in [&["mcp", "list"][..], &["mcp", "list", "--json"], &["doctor", "--json"]] {
        let ran = scene.run(words);
        assert!(!ran.shown().contains(SECRET), "{words:?}: {ran:?}");
    }
    let rows = scene.json(&["mcp", "list", "--json"]);
    assert_eq!(find(&rows, "r")["reached"]["headers"], json!(["Authorization"]));
    assert_eq!(find(&rows, "r")["reached"]["url"], "https://x.example/mcp?…");
}

const FOREIGN: &str = r#"{"mcpServers": {
    "files": {"command": "npx", "args": ["-y", "x"], "env": {"KEY": "${KEY:-}"}},
    "old": {"type": "sse", "url": "https://x.example/sse"},
    "a b": {"command": "y"},
    "self": {"command": "z", "unknown": 1}
}}"#;

#[test]
fn servers_of_other_programs_are_taken_over_and_every_problem_is_named() {
    let scene = served().file("theirs.json", FOREIGN);
    let before = own_file(&scene);
    let tried = scene.run(&["mcp", "import", "theirs.json", "--dry-run"]);
    assert_eq!((tried.code, own_file(&scene)), (Some(1), before), "{tried:?}");
    let ran = scene.run(&["mcp", "import", "theirs.json"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), "a-b\nfiles\n"), "{ran:?}");
    for said in ["HTTP+SSE", "it is called `a-b` here", "`self` is left out", "unknown"] {
        assert!(ran.stderr.contains(said), "{said}: {ran:?}");
    }
    let file = own_file(&scene);
    assert!(file.contains("    - name: files\n      command: npx\n"), "{file}");
    assert!(file.contains("KEY: \"${KEY:-}\""), "{file}");
    assert!(
        file.contains("      cwd: workspace\n"),
        "it starts where that program starts it: {file}"
    );
}

#[test]
fn what_editors_call_directories_is_written_as_it_is_called_here() {
    let servers = json!({ "servers": {
        "a": { "command": "${workspaceFolder}/s", "args": ["--root=${workspaceFolder}", "${userHome}/x", "${env:HOME}"] },
        "b": { "command": "y", "cwd": "${workspaceFolder}/sub" },
        "c": { "command": "y", "cwd": "sub" },
        "d": { "command": "y", "args": ["${workspaceFolder}"], "cwd": "/srv" },
    } });
    let scene = scene().file("mcp.json", servers.to_string());
    let ran = scene.run(&["mcp", "import", "mcp.json"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), "a\nb\nc\n"), "{ran:?}");
    assert!(
        ran.stderr.contains("`d` is left out: ${workspaceFolder} can be written only"),
        "{ran:?}"
    );
    assert_snapshot!(own_file(&scene), @r#"
    tools:
      mcpServers:
        - name: a
          command: "./s"
          args: ["--root=.", "${HOME}/x", "${HOME}"]
          cwd: workspace
        - name: b
          command: "y"
          cwd: workspace/sub
        - name: c
          command: "y"
          cwd: workspace/sub
    "#);
}

/// Without that it would be shown the whole home directory.
#[test]
fn a_program_that_is_given_this_directory_runs_in_the_workspace() {
    let scene = scene().file("server.py", "");
    let ran = scene.run(&["mcp", "add", "files", "--", "npx", "-y", "files", "."]);
    assert_snapshot!(ran.shown(), @"
    --- stderr
    added files to [root]/home/.config/convoke/convoke.yml
    hint: it runs in the directory that is worked in (cwd: workspace)
    hint: `convoke mcp test files` says whether it works
    --- exit 0
    ");
    let ran = scene.run(&["mcp", "add", "other", "--", "python3", "server.py"]);
    assert!(ran.stderr.contains("`server.py` is a file here, and the program runs in"), "{ran:?}");
    assert_eq!(scene.run(&["mcp", "add", "plain", "--", "npx", "-y", "git"]).code, Some(0));
    let words = ["mcp", "add", "here", "--workdir", "workspace/sub", "--", "x"];
    assert_eq!(scene.run(&words).code, Some(0));
    assert_snapshot!(own_file(&scene), @r#"
    tools:
      mcpServers:
        - name: files
          command: npx
          args: ["-y", "files", "."]
          cwd: workspace
        - name: other
          command: python3
          args: ["server.py"]
        - name: plain
          command: npx
          args: ["-y", "git"]
        - name: here
          command: x
          cwd: workspace/sub
    "#);
    let rows = scene.json(&["mcp", "list", "--json"]);
    let cwd = |name| find(&rows, name)["reached"]["cwd"].as_str().unwrap_or_default().to_owned();
    assert_eq!(
        (cwd("files").as_str(), cwd("plain").as_str()),
        ("[root]/home/project", "[root]/home")
    );
    assert_eq!(cwd("here"), "[root]/home/project/sub");
}

/// Regression: the old one was taken out before it was known whether the new one can be used.
#[test]
fn a_server_that_cannot_be_used_takes_no_place() {
    let theirs = r#"{"mcpServers": {"self": {"url": "ftp://x"}, "b": {"command": "b"}}}"#;
    let scene = served().file("theirs.json", theirs);
    let ran = scene.run(&["mcp", "import", "theirs.json", "--force"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), "b\n"), "{ran:?}");
    let file = own_file(&scene);
    assert!(file.contains("- name: self\n      command: "), "{file}");
    assert!(file.contains("- name: b\n") && !file.contains("ftp"), "{file}");
}

/// What cannot be used is told by the file that was read, and by what stands in it.
#[test]
fn odd_values_are_told_by_file_and_server() {
    let theirs = r#"{"mcpServers": {
        "far": {"type": "http", "url": "https://x.example/mcp", "oauth": {"clientId": "me", "callbackPort": 8080}},
        "ftp": {"url": "ftp://x"},
        "two": {"command": "x", "url": "http://y"},
        "words": {"command": "x", "args": "y"}
    }}"#;
    let scene = scene();
    let ran = scene.run_with(theirs.as_bytes(), &["mcp", "import", "-"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), "far\n"), "{ran:?}");
    for said in [
        "standard input: mcpServers.ftp.url: this is no address of a server: it begins with `ftp://`",
        "standard input: mcpServers.two: it has both a `command` and a `url`",
        "standard input: mcpServers.words.args: this has to be a list of texts",
    ] {
        assert!(ran.stderr.contains(said), "{said}: {ran:?}");
    }
    assert!(!ran.stderr.contains("convoke.yml:"), "{ran:?}");
    assert_snapshot!(own_file(&scene), @r#"
    tools:
      mcpServers:
        - name: far
          url: "https://x.example/mcp"
          auth:
            clientId: "me"
            redirectPort: 8080
    "#);
}

/// Regression: the first two were written into the file, and the others taken for programs.
#[test]
fn an_address_that_cannot_be_is_not_added() {
    let scene = scene();
    for (word, why) in [
        ("http://[::1", "not an IPv6 address"),
        ("http://h:99999/x", "its port is not a number from 1 to 65535"),
        ("http://h:0/x", "its port is not a number from 1 to 65535"),
        ("http://", "it names no host"),
        ("http://exa mple/x", "a space"),
        ("ftp://x/y", "it begins with `ftp://`"),
        ("ws://x/y", "it begins with `ws://`"),
    ] {
        for words in [&["mcp", "add", "odd", word][..], &["mcp", "add", "odd", "--url", word]] {
            let ran = scene.run(words);
            assert_eq!(ran.code, Some(2), "{ran:?}");
            assert!(ran.stderr.contains("is no address of a server"), "{ran:?}");
            assert!(ran.stderr.contains(why), "{ran:?}");
        }
        let json = json!({ "type": "http", "url": word }).to_string();
        let ran = scene.run(&["mcp", "add-json", "odd", &json]);
        assert!(ran.code == Some(2) && ran.stderr.contains(why), "{ran:?}");
    }
    assert!(!scene.root().join("home/.config/convoke/convoke.yml").exists());
}

/// Regression: these were written into the file as programs, and an address in capitals was none.
#[test]
fn what_looks_like_an_address_is_no_program() {
    let scene = scene();
    for (word, said) in [
        ("localhost:3000/mcp", "did you mean `http://localhost:3000/mcp`?"),
        ("example.com/mcp", "did you mean `https://example.com/mcp`?"),
        ("//x/y", "did you mean `https://x/y`?"),
        (" ", "the program has no name"),
    ] {
        let ran = scene.run(&["mcp", "add", "odd", word]);
        assert!(ran.code == Some(2) && ran.stderr.contains(said), "{ran:?}");
    }
    let blank = scene.run(&["mcp", "add-json", "odd", r#"{"command": " "}"#]);
    assert_eq!(blank.code, Some(2), "{blank:?}");
    assert!(!scene.root().join("home/.config/convoke/convoke.yml").exists());
    let words = ["mcp", "add", "meant", "--transport", "stdio", "example.com/mcp"];
    assert_eq!(scene.run(&words).code, Some(0));
    let json = r#"{"type": "http", "url": "HTTP://127.0.0.1:9/mcp"}"#;
    for words in [["mcp", "add", "one", "HTTP://127.0.0.1:9/mcp"], ["mcp", "add-json", "two", json]]
    {
        let ran = scene.run(&words);
        assert_eq!(ran.code, Some(0), "{ran:?}");
    }
    let own = own_file(&scene);
    assert_eq!(own.matches("url: \"http://127.0.0.1:9/mcp\"").count(), 2, "{own}");
    assert!(own.contains("command: example.com/mcp"), "{own}");
}

fn trusted(ran: &Ran) -> bool {
    ran.stdout.contains("theirs  project")
}

#[test]
fn servers_of_a_project_are_shown_before_it_is_trusted_and_used_after_it_is() {
    let json = r#"{"mcpServers": {"theirs": {"command": "helper", "args": ["--all"]}}}"#;
    let scene = scene().file("convoke.yml", "").file(".mcp.json", json);
    let before = scene.run(&["mcp", "list"]);
    assert!(!trusted(&before), "{before:?}");
    assert!(before.stderr.contains(".mcp.json is not used"), "{before:?}");
    assert!(before.stderr.contains("convoke config trust"), "{before:?}");
    let doctor = scene.stdout(&["doctor"]);
    assert!(doctor.contains(".mcp.json is not used: this project is not trusted"), "{doctor}");
    let test = scene.run(&["mcp", "test", "theirs"]);
    assert!(test.code == Some(2) && test.stderr.contains("not trusted"), "{test:?}");
    let ran = scene.run(&["config", "trust", "--yes"]);
    assert!(ran.stderr.contains(".mcp.json is used as well"), "{ran:?}");
    assert!(ran.stderr.contains("asked where sandbox.network lets programs go"), "{ran:?}");
    assert!(ran.stderr.contains("  theirs: helper --all\n"), "{ran:?}");
    assert!(trusted(&scene.run(&["mcp", "list"])));
}

#[test]
fn a_server_of_the_project_is_written_into_its_file() {
    let scene = scene().file("convoke.yml", "# ours\ntools:\n  timeout: 5s\n");
    let words = ["mcp", "add", "db", "--project", "--env", "API_KEY=abc", "--", "db"];
    let ran = scene.run(&words);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stderr.contains("env.API_KEY is now in the project's file"), "{ran:?}");
    assert!(ran.stderr.contains("convoke config trust"), "{ran:?}");
    assert_snapshot!(scene.read("convoke.yml"), @r#"
    # ours
    tools:
      timeout: 5s
      mcpServers:
        - name: db
          command: db
          env:
            API_KEY: "abc"
    "#);
    assert_eq!(scene.run(&["mcp", "remove", "db"]).code, Some(2), "it is not in the user's file");
    assert_eq!(scene.run(&["mcp", "remove", "db", "--project"]).code, Some(0));
}

#[test]
fn a_file_that_cannot_be_changed_is_left_and_the_lines_are_told() {
    let text = "tools: {timeout: 5s}\n";
    let scene = scene().user(text);
    let ran = scene.run(&["mcp", "add", "x", "--", "y"]);
    assert_eq!((ran.code, own_file(&scene).as_str()), (Some(7), text), "{ran:?}");
    assert!(ran.stderr.contains("    - name: x\n"), "{ran:?}");
}

#[test]
fn tools_of_servers_are_listed_shown_and_called() {
    let scene = served();
    let listed = scene.run(&["tools", "list", "--category", "mcp"]);
    assert!(listed.stdout.contains("mcp__self__read_file  *  other  ask"), "{listed:?}");
    assert_eq!(listed.stderr, "asking self for tools, for the first time\n");
    let again = scene.run(&["tools", "list", "--category", "mcp"]);
    assert_eq!((again.stdout, again.stderr.as_str()), (listed.stdout, ""), "it is known now");
    let refreshed = scene.json(&["tools", "list", "--category", "mcp", "--refresh", "--json"]);
    assert_eq!(find(&refreshed, "mcp__self__read_file")["server"], "self");

    for name in ["self.read_file", "mcp__self__read_file"] {
        let call = ["tools", "call", name, "--arg", "path=a.txt"];
        assert_eq!(scene.stdout(&call), "one\n", "{name}");
    }
    let shown = scene.stdout(&["tools", "show", "self.grep"]);
    assert!(shown.starts_with("mcp__self__grep\n"), "{shown}");
    assert!(shown.contains("  server      self\n"), "{shown}");
}

/// What is listed is what would be decided.
#[test]
fn rules_on_tools_of_servers_are_part_of_what_is_listed() {
    for (effect, said) in [("deny", "deny"), ("allow", "allow")] {
        let rule =
            format!("policy:\n  rules:\n    - {{effect: {effect}, tool: \"mcp__self__*\"}}\n");
        let scene = scene().user(&rule);
        let project = scene.project().display().to_string();
        let add = ["mcp", "add", "self", "--", CONVOKE, "--cwd", &project, "mcp", "serve"];
        assert_eq!(scene.run(&add).code, Some(0));
        let listed = scene.json(&["tools", "list", "--category", "mcp", "--json"]);
        assert_eq!(find(&listed, "mcp__self__grep")["permission"], said);
        let shown = scene.stdout(&["tools", "show", "self.grep"]);
        assert!(shown.contains(&format!("  permission  {said}\n")), "{shown}");
        let checked = scene.json(&["policy", "check", "self.ls", "--json"]);
        assert_eq!(checked["decision"], said, "{checked}");
    }
}

/// Whoever serves what nobody can call is told so.
#[test]
fn tools_that_are_denied_whatever_is_sent_are_not_served() {
    let scene = Scene::new().user("policy:\n  rules:\n    - {effect: deny, tool: grep}\n");
    let ran = scene.run(&["mcp", "serve", "--tool", "grep", "--tool", "ls"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stderr.contains("`grep`: not served, every call would be denied"), "{ran:?}");
    assert!(!ran.stderr.contains("`ls`"), "{ran:?}");
    let ran = scene.run(&["mcp", "serve", "--tool", "grep"]);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    assert!(ran.stderr.contains("there is nothing left to serve"), "{ran:?}");
}

#[test]
fn a_server_that_nobody_asked_yet_is_started_for_one_call() {
    let scene = served();
    let ran = scene.run(&["tools", "call", "self.read_file", "--arg", "path=a.txt"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "one\n"), "{ran:?}");
    assert_eq!(ran.stderr, "starting self\n");
    let wrong = scene.run(&["tools", "call", "self.raed_file"]);
    assert_eq!(wrong.code, Some(2), "{wrong:?}");
    assert!(
        wrong.stderr.contains("has no tool `raed_file`; did you mean `read_file`?"),
        "{wrong:?}"
    );
}

#[test]
fn there_is_nothing_to_sign_in_to_where_a_program_is_started() {
    let scene = served();
    let ran = scene.run(&["mcp", "login", "self"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.stderr.contains("is a program that is started here"), "{ran:?}");
    let add = ["mcp", "add", "r", "--url", "https://x.example/mcp"];
    assert_eq!(scene.run(&add).code, Some(0));
    let out = scene.run(&["mcp", "logout", "r"]);
    assert_eq!((out.code, out.stderr.as_str()), (Some(0), "you were not signed in to r\n"));
}

/// What servers gave when somebody signed in is for no model.
#[test]
fn logins_are_hidden_from_tools() {
    let scene = scene().user("tools:\n  allowedPaths: [\"~\"]\n");
    let place = scene.root().join("home/.local/share/convoke/mcp-tokens");
    fs::create_dir_all(&place).unwrap();
    fs::write(place.join("r.json"), "the token").unwrap();
    fs::write(scene.root().join("home/open.txt"), "open").unwrap();
    assert_eq!(
        scene.stdout(&["tools", "call", "read_file", "--arg", "path=../open.txt"]),
        "open\n"
    );
    let path = "path=../.local/share/convoke/mcp-tokens/r.json";
    let ran = scene.run(&["tools", "call", "read_file", "--arg", path]);
    assert!(ran.code != Some(0) && !ran.shown().contains("the token"), "{ran:?}");
}
