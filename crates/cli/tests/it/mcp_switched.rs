//! Servers that are switched off and on: for everybody, and for oneself.

use insta::assert_snapshot;

use crate::mcp::{find, own_file};
use crate::support::Scene;

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
