//! Showing, explaining and checking configuration.

use insta::assert_snapshot;
use serde_json::json;

use crate::support::Scene;

fn layered() -> Scene {
    Scene::new()
        .user("tools:\n  timeout: 1000\n  exclude: [sleep]\n")
        .file("convoke.yml", "tools:\n  timeout: 2000\n")
        .variable("CONVOKE__TOOLS__MAX_CONCURRENT", "2")
}

#[test]
fn what_differs_is_shown_with_its_place() {
    assert_snapshot!(layered().stdout(&["config", "show"]), @r#"
    tools.exclude        ["sleep"]  user ([root]/home/.config/convoke/convoke.yml:3:12)
    tools.maxConcurrent  2          environment (environment variable CONVOKE__TOOLS__MAX_CONCURRENT)
    tools.timeout        2000       project ([root]/home/project/convoke.yml:2:12)
    "#);
    let nothing = Scene::new().run(&["config", "show"]);
    assert_snapshot!(nothing.shown(), @"
    --- stderr
    Every setting is as it is built in; `--all` shows them.
    --- exit 0
    ");
    let all = layered().stdout(&["config", "show", "--all"]);
    assert!(all.contains("policy.kinds.execute"), "{all}");
    let entries = layered().json(&["config", "show", "--json"]);
    assert_eq!(entries[0]["key"], "tools.exclude");
    assert_eq!(entries[0]["origin"]["layer"], "user");
}

#[test]
fn a_value_is_explained() {
    let words = ["config", "explain", "tools.timeout", "--set", "tools.timeout=3000"];
    assert_snapshot!(layered().stdout(&words), @"
    tools.timeout
      How long one call may take, as `90s` or in milliseconds, where nothing closer says otherwise.

      value      3000
      from       flags (--set tools.timeout)
      default    30000
      overrides  2000 from project ([root]/home/project/convoke.yml:2:12)
      overrides  1000 from user ([root]/home/.config/convoke/convoke.yml:2:12)
    ");
    let alias = layered().stdout(&["config", "explain", "agent.maxConcurrentTools"]);
    assert_snapshot!(alias, @"
    tools.maxConcurrent
      agent.maxConcurrentTools is another spelling of it.
      How many calls of one run may be under way at once.

      value    2
      from     environment (environment variable CONVOKE__TOOLS__MAX_CONCURRENT)
      default  3
    ");
    assert_snapshot!(layered().stdout(&["config", "explain", "tools.timeouts"]), @"
    tools.timeouts
      How long one call may take, by category and by tool.

      tools.timeouts.category.network  60000  built-in
    ");
    assert_snapshot!(layered().stdout(&["config", "explain", "tools.allowedPaths"]), @"
    tools.allowedPaths
      Directories that file tools may touch, relative to the directory of the file that lists them; `~/` is the home directory. An empty list allows nothing; without the key it is the workspace. A project's file can only narrow what the user allows.

      value  not set
    ");
    let json = layered().json(&["config", "explain", "tools.timeout", "--json"]);
    assert_eq!(json["value"], 2000);
    assert_eq!(json["overridden"][0]["value"], 1000);
}

#[test]
fn an_unknown_key_is_told_with_its_neighbours() {
    assert_snapshot!(Scene::new().run(&["config", "explain", "tools.timout"]).shown(), @"
    --- stderr
    error: there is no key `tools.timout`; did you mean `tools.timeout` or `tools.timeouts`?
    hint: `convoke config show --all` lists all keys
    --- exit 2
    ");
}

#[test]
fn a_right_configuration_is_ok() {
    assert_snapshot!(layered().run(&["config", "check"]).shown(), @"
    ok: [root]/home/.config/convoke/convoke.yml (user), [root]/home/project/convoke.yml (project)
    --- stderr
    --- exit 0
    ");
    assert_snapshot!(Scene::new().run(&["config", "check"]).shown(), @"
    ok: no files, so everything is as it is built in
    --- stderr
    --- exit 0
    ");
    let report = layered().json(&["config", "check", "--json"]);
    assert_eq!((&report["ok"], &report["problems"]), (&json!(true), &json!([])));
}

#[test]
fn mistakes_are_told_with_line_and_hint() {
    let scene = Scene::new()
        .user("tools:\n  timeot: 1000\n  maxConcurrent: many\n")
        .file("convoke.yml", "tools: [1]\n")
        .variable("CONVOKE_TRUST_PROJECT", "1");
    assert_snapshot!(scene.run(&["config", "check"]).shown(), @r#"
    --- stderr
    error: the configuration has 3 mistakes
    cause: [root]/home/.config/convoke/convoke.yml:2:3: tools.timeot: there is no such key
    hint: did you mean `tools.timeout` or `tools.timeouts`?
    cause: [root]/home/.config/convoke/convoke.yml:3:18: tools.maxConcurrent: expected a whole number from 1 to 1024, found the text "many"
    cause: [root]/home/project/convoke.yml:1:8: tools: expected a mapping, found a list
    --- exit 7
    "#);
    assert_eq!(scene.run(&["tools", "list"]).code, Some(7));
    assert_eq!(scene.run(&["tools", "call", "ls"]).code, Some(7));
    let ran = scene.run(&["config", "check", "--json"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(7), ""));
    let report = scene.json(&["config", "check", "--json"]);
    assert_eq!(report["problems"].as_array().unwrap().len(), 3);
}

#[test]
fn a_file_is_checked_alone() {
    let scene = Scene::new()
        .user("wrong: true\n")
        .file("good.yml", "tools: {timeout: 5}\n")
        .file("bad.yml", "tools: {timeout: 0}\n");
    assert_snapshot!(scene.run(&["config", "check", "good.yml"]).shown(), @"
    ok: [root]/home/project/good.yml (user)
    --- stderr
    --- exit 0
    ");
    assert_snapshot!(scene.run(&["config", "check", "bad.yml"]).shown(), @"
    --- stderr
    error: the configuration has a mistake
    cause: [root]/home/project/bad.yml:1:18: tools.timeout: expected a duration, as 250ms, 90s or 1h30m, or milliseconds from 1 to 86400000, found `0`
    --- exit 7
    ");
    assert_eq!(scene.run(&["config", "check", "none.yml"]).code, Some(7));
}

#[test]
fn another_file_can_take_the_place_of_the_users() {
    let scene = Scene::new().user("wrong: true\n").file("other.yml", "tools: {timeout: 5}\n");
    let shown = scene.stdout(&["--config", "other.yml", "config", "show"]);
    assert!(shown.starts_with("tools.timeout  5  user ([root]/home/project/other.yml:"), "{shown}");
    assert_eq!(scene.run(&["--config", "none.yml", "tools", "list"]).code, Some(7));
    let scene = scene.variable("CONVOKE_CONFIG", "other.yml");
    assert_eq!(scene.stdout(&["config", "show"]), shown);
    let scene = scene.variable("CONVOKE_CONFIG", "none.yml");
    let ran = scene.run(&["config", "show"]);
    assert_snapshot!(ran.shown(), @"
    --- stderr
    error: the configuration file `[root]/home/project/none.yml` is not there
    hint: it is named by CONVOKE_CONFIG
    --- exit 7
    ");
}

#[test]
fn a_directory_that_cannot_be_opened_is_told() {
    let scene = Scene::new().user("tools: {allowedPaths: [/nowhere/at/all]}\n");
    assert_snapshot!(scene.run(&["config", "check"]).shown(), @"
    --- stderr
    error: allowed path `/nowhere/at/all` cannot be opened
    cause: No such file or directory (os error 2)
    hint: `convoke config explain tools.allowedPaths` says which file and line set it
    --- exit 7
    ");
    assert_eq!(scene.run(&["tools", "call", "ls"]).code, Some(7));
    let report = scene.json(&["config", "check", "--json"]);
    assert_eq!(report["ok"], false, "{report}");
}

#[test]
fn secrets_are_not_shown() {
    let scene = Scene::new()
        .user("tools: {webSearch: {provider: tavily, apiKey: \"${SEARCH_KEY}\"}}\n")
        .variable("SEARCH_KEY", "tvly-123");
    for words in [
        &["config", "show"][..],
        &["config", "show", "--json"],
        &["config", "explain", "tools.webSearch.apiKey"],
    ] {
        let text = scene.stdout(words);
        assert!(text.contains("***") && !text.contains("tvly"), "{text}");
    }
}

#[test]
fn the_directory_can_be_chosen() {
    let scene = Scene::new().file("sub/convoke.yml", "tools: {timeout: 7000}\n").file("sub/x", "");
    let shown = scene.stdout(&["--cwd", "sub", "config", "show"]);
    assert!(shown.contains("sub/convoke.yml:1:"), "{shown}");
    let listed = scene.stdout(&["tools", "call", "ls", "--cwd", "sub"]);
    assert_eq!(listed, "convoke.yml\nx\n");
}

#[test]
fn durations_are_written_as_people_say_them() {
    let scene = Scene::new().user("budget: {time: 1h30m}\ntools: {timeout: 1.5m}\n");
    let flag = ["config", "show", "--json", "--set", "budget.turnTime=1h 30m"];
    let shown = scene.stdout(&flag);
    for value in ["5400000", "90000"] {
        assert!(shown.contains(value), "{value}: {shown}");
    }
    assert_eq!(shown.matches("5400000").count(), 2, "{shown}");
    for words in [
        &["config", "check", "--set", "budget.time=soon"][..],
        &["run", "--timeout", "soon", "x"],
        &["run", "--turn-timeout", "90", "x"],
        &["tools", "call", "ls", "--timeout", "1x"],
    ] {
        let ran = scene.run(words);
        assert!(ran.stderr.contains("as 250ms, 90s or 1h30m"), "{words:?}: {ran:?}");
    }
    let wide = Scene::new()
        .user("budget: {time: 1h}\n")
        .file("convoke.yml", "budget: {time: 90m, turnTime: 30s}\n");
    let ran = wide.run(&["config", "check"]);
    assert!(ran.shown().contains("a project cannot raise your"), "{ran:?}");
}
