//! Listing and describing tools.

use insta::assert_snapshot;
use serde_json::Value;

use crate::support::Scene;

#[test]
fn a_category_is_listed_in_columns() {
    assert_snapshot!(Scene::new().stdout(&["tools", "list", "--category", "data"]), @"
    data
      base64_decode     think  allow  Decodes base64 into text.
      base64_encode     think  allow  Encodes a text as base64.
      json_parse        think  allow  Parses a JSON text.
      json_stringify    think  allow  Writes a value as JSON text.

    4 tools, 0 offered to models (*)
    ");
}

#[test]
fn categories_are_listed_one_after_the_other() {
    let text = Scene::new().stdout(&["tools", "list"]);
    let position = |word: &str| text.find(word).unwrap_or_else(|| panic!("{word} in {text}"));
    assert!(position("system\n") < position("\nfile\n"));
    assert!(position("\nfile\n") < position("\ncode\n"));
    assert!(text.contains("  edit_file       *  edit     ask    Replaces exact text in a file.\n"));
    assert!(text.contains("  run_command     *  execute  ask    "), "{text}");
    assert!(text.trim_end().ends_with("offered to models (*)"), "{text}");
}

#[test]
fn the_listing_follows_the_configuration() {
    let scene = Scene::new().user(
        "tools:\n  exclude: [\"base64_*\"]\n  enabled: [json_parse]\npolicy:\n  kinds: {think: ask}\n",
    );
    assert_snapshot!(scene.stdout(&["tools", "list", "--category", "data"]), @"
    data
      json_parse      *  think  ask  Parses a JSON text.
      json_stringify     think  ask  Writes a value as JSON text.

    2 tools, 1 offered to models (*), 2 excluded by configuration
    ");
    assert_snapshot!(scene.stdout(&["tools", "list", "--category", "data", "--quiet"]), @"
    data
      json_parse      *  think  ask  Parses a JSON text.
      json_stringify     think  ask  Writes a value as JSON text.
    ");
}

#[test]
fn programs_get_specs() {
    let listed = Scene::new().json(&["tools", "list", "--json"]);
    let tools = listed.as_array().unwrap();
    let grep = tools.iter().find(|tool| tool["name"] == "grep").unwrap();
    assert_eq!(grep["offered"], true);
    assert_eq!(grep["permission"], "allow");
    assert_eq!(grep["parameters"]["required"], serde_json::json!(["pattern"]));
    let run = tools.iter().find(|tool| tool["name"] == "run_command").unwrap();
    assert_eq!(run["permission"], "ask");
    assert_eq!(Scene::new().json(&["tools", "show", "grep", "--json"]), *grep);
}

#[test]
fn a_tool_is_described_in_full() {
    assert_snapshot!(Scene::new().stdout(&["tools", "show", "get_file_info"]), @"
    get_file_info
      Tells whether a path exists, and its size and age.

      category    file
      kind        read
      permission  allow
      offered     no
      timeout     30s
      repeat      pure
      effects     reads path
      aliases     file_path for path

    Parameters
      path  string, required
          The path.

    Output
      exists  boolean
          Whether there is anything.
      size  integer
          How many bytes; 0 if there is nothing.
      modified  integer
          When it was changed, in milliseconds since the epoch; 0 if there is nothing.
      is_dir  boolean
          Whether it is a directory.

    Example
      convoke tools call get_file_info --arg path=README.md
    ");
    assert_snapshot!(Scene::new().stdout(&["tools", "show", "run_command"]), @"
    run_command
      Runs a shell command and returns its output and exit code. It has no terminal and no input; what it leaves running is ended with it, and variables that look like credentials are not passed on.

      category    code
      kind        execute
      permission  ask (a person is asked first)
      offered     yes
      timeout     2m
      repeat      unsafe
      effects     none named by arguments

    Parameters
      command  string, required
          The command, for `bash`.
      timeout_ms  integer, 1 or more
          How long it may take, in milliseconds; two minutes if absent.
      working_directory  string
          Where it runs; the working directory if absent.

    Output
      exitCode  integer
          Its exit code; null if a signal ended it.
      stdout  string
          What it wrote.
      stderr  string
          What it complained about.
      notices  array of string
          What became of files that it changed and that decide what runs later.
      omittedBytes  integer
          How many bytes of its output were left out.

    Example
      convoke tools call run_command --arg 'command=git status'
    ");
}

#[test]
fn what_holds_for_a_tool_follows_the_configuration() {
    let scene = Scene::new()
        .user("tools:\n  exclude: [grep]\n  timeouts: {tool: {grep: 90000}}\npolicy:\n  kinds: {search: deny}\n");
    let text = scene.stdout(&["tools", "show", "grep"]);
    assert!(text.contains("  permission  deny\n"), "{text}");
    assert!(text.contains("  timeout     90s\n"), "{text}");
    assert!(text.contains("cannot be called: the configuration excludes it"), "{text}");
    assert!(
        text.ends_with("convoke tools call grep --arg pattern=TODO --allow search\n"),
        "{text}"
    );
}

#[test]
fn an_unknown_tool_is_told_with_its_neighbours() {
    assert_snapshot!(Scene::new().run(&["tools", "show", "gerp"]).shown(), @"
    --- stderr
    error: there is no tool `gerp`; did you mean `grep`?
    hint: `convoke tools list` shows them all
    --- exit 2
    ");
}

#[test]
fn tools_are_counted_and_calls_are_not_made_up() {
    let text = Scene::new().stdout(&["tools", "stats"]);
    assert!(text.contains("\ndata       4\n"), "{text}");
    assert!(text.ends_with("each process counts its own, and this one made none.\n"), "{text}");
    let stats = Scene::new().json(&["tools", "stats", "--json"]);
    assert_eq!(stats["byCategory"]["data"], 4);
    assert_eq!(stats["callStats"], Value::Object(serde_json::Map::new()));
}
