//! Calling tools: results, failures and exit codes.

use insta::assert_snapshot;

use crate::support::Scene;

#[test]
fn a_result_is_what_a_person_wants() {
    let scene = Scene::new().file("a.txt", "one\ntwo\n").file("src/b.rs", "fn main() {}\n");
    assert_snapshot!(scene.run(&["tools", "call", "ls"]).shown(), @"
    a.txt
    src/
    --- stderr
    --- exit 0
    ");
    assert_snapshot!(scene.run(&["tools", "call", "grep", "--arg", "pattern=main"]).shown(), @"
    src/b.rs
    1: fn main() {}
    --- stderr
    --- exit 0
    ");
    let edit = ["--arg", "path=a.txt", "--arg", "old_string=two", "--arg", "new_string=2"];
    let ran = scene.run(&[&["tools", "call", "edit_file"][..], &edit].concat());
    assert_snapshot!(ran.shown(), @"
    --- a/a.txt
    +++ b/a.txt
    @@ -1,2 +1,2 @@
     one
    -two
    +2
    --- stderr
    --- exit 0
    ");
    assert_eq!(scene.read("a.txt"), "one\n2\n");
}

#[test]
fn a_person_sees_all_of_it_and_a_model_does_not() {
    let scene = Scene::new().file("long.txt", "0123456789\n".repeat(20_000));
    let call = ["tools", "call", "base64_encode", "--arg", "text=@long.txt"];
    let text = scene.stdout(&call);
    assert_eq!(text.trim_end().len(), 293_336);
    let result = scene.json(&[&call[..], &["--json"]].concat());
    assert!(result["truncated"]["keptBytes"].as_u64().unwrap() < 70_000);
}

#[test]
fn failures_say_what_why_and_what_to_do() {
    let scene = Scene::new();
    let call = |arguments: &[&str]| scene.run(&[&["tools", "call"], arguments].concat()).shown();
    assert_snapshot!(call(&["read_file", "--arg", "path=missing.txt"]), @"
    --- stderr
    error: File not found: `missing.txt`
    cause: No such file or directory (os error 2)
    --- exit 1
    ");
    assert_snapshot!(call(&["read_fil"]), @r#"
    --- stderr
    error: Tool "read_fil" not found; did you mean `read_file`?
    hint: `convoke tools list` shows them all
    --- exit 2
    "#);
    assert_snapshot!(call(&["read_file", "{\"pth\": 1, \"limit\": \"x\"}"]), @r#"
    --- stderr
    error: Parameter validation failed
      - `limit` has to be of type integer, not "x"
      - `pth` is not a parameter; did you mean `path`?
      - `path` is missing
    hint: `convoke tools show read_file` lists its parameters
    --- exit 2
    "#);
    assert_snapshot!(call(&["read_file", "--arg", "path=/etc/passwd"]), @"
    --- stderr
    error: Permission denied: Access denied: `/etc/passwd` is outside the allowed paths (`[root]/home/project`)
    hint: `convoke config explain tools.allowedPaths` says who set them
    --- exit 3
    ");
    assert_snapshot!(call(&["read_file", "{\"path\":"]), @r#"
    --- stderr
    error: the arguments are not JSON
    cause: EOF while parsing a value at line 1 column 8
    hint: write them as '{"key": "value"}', or as --arg key=value
    --- exit 2
    "#);
    assert_snapshot!(call(&["run_command", "--arg", "command=ls"]), @"
    --- stderr
    error: Permission denied: tools of kind `execute` need a person's consent, and nobody can be asked here
    hint: `--yes` consents
    --- exit 3
    ");
}

#[test]
fn time_has_an_end() {
    let ran =
        Scene::new().run(&["tools", "call", "sleep", "{\"duration\": 60}", "--timeout", "20ms"]);
    assert_eq!(ran.code, Some(4), "{ran:?}");
    assert!(ran.stderr.starts_with("error: Tool execution timed out after 20ms\n"), "{ran:?}");
    let by_setting =
        ["--set", "tools.timeouts.tool.sleep=20", "tools", "call", "sleep", "{\"duration\": 60}"];
    assert_eq!(Scene::new().run(&by_setting).code, Some(4));
}

#[test]
fn programs_run_only_if_they_are_allowed_to() {
    let call = ["tools", "call", "run_command", "--arg", "command=echo out; echo err >&2"];
    let run = |scene: Scene, more: &[&str]| scene.run(&[&call[..], more].concat());
    assert_eq!(run(Scene::new(), &[]).code, Some(3));
    assert_snapshot!(run(Scene::new(), &["--allow", "execute"]).shown(), @"
    out
    [stderr]
    err
    --- stderr
    --- exit 0
    ");
    assert_snapshot!(run(Scene::new(), &[]).shown(), @"
    --- stderr
    error: Permission denied: tools of kind `execute` need a person's consent, and nobody can be asked here
    hint: `--yes` consents
    --- exit 3
    ");
    assert_eq!(run(Scene::new(), &["--yes"]).code, Some(0));
    let deny = Scene::new().user("policy:\n  kinds: {execute: deny}\n");
    assert_snapshot!(run(deny, &["--yes"]).shown(), @"
    --- stderr
    error: Permission denied: tools of kind `execute` are not allowed here
    hint: `--allow execute` permits it for this call; `convoke config explain policy.kinds.execute` says who denies it
    --- exit 3
    ");
    let allow = Scene::new().user("policy:\n  kinds: {execute: allow}\n");
    assert_eq!(run(allow, &[]).code, Some(0));
}

#[test]
fn what_is_denied_stays_denied_unless_it_is_named() {
    let scene = Scene::new().user("policy:\n  kinds: {edit: deny}\n");
    let call = ["tools", "call", "write_file", "--arg", "path=a", "--arg", "content=x"];
    assert_snapshot!(scene.run(&call).shown(), @"
    --- stderr
    error: Permission denied: tools of kind `edit` are not allowed here
    hint: `--allow edit` permits it for this call; `convoke config explain policy.kinds.edit` says who denies it
    --- exit 3
    ");
    assert_eq!(scene.run(&[&call[..], &["--allow", "edit"]].concat()).code, Some(0));
    assert_eq!(scene.read("a"), "x");
}

#[test]
fn an_excluded_tool_cannot_be_called() {
    let scene = Scene::new().user("tools: {exclude: [ls]}\n");
    assert_snapshot!(scene.run(&["tools", "call", "ls"]).shown(), @r#"
    --- stderr
    error: Tool "ls" not found
    hint: `tools.exclude` names it; `convoke config explain tools.exclude`
    --- exit 2
    "#);
}

#[test]
fn a_failing_program_leaves_its_output_and_fails() {
    let ran = Scene::new().run(&[
        "tools",
        "call",
        "run_command",
        "--allow",
        "execute",
        "--arg",
        "command=echo before; exit 3",
    ]);
    assert_snapshot!(ran.shown(), @"
    before
    --- stderr
    error: the command ended with exit status: 3
    --- exit 1
    ");
}

#[test]
fn a_command_tool_is_called_like_any_other() {
    let config = "tools:\n  commands:\n    - name: shout\n      description: Shouts.\n      command: [tr, a-z, A-Z]\n";
    let scene = Scene::new().user(config);
    assert_eq!(scene.run(&["tools", "call", "shout", "--arg", "x=hello"]).code, Some(3));
    let allowed = ["tools", "call", "shout", "{\"word\": \"hello\"}", "--allow", "execute"];
    assert_eq!(scene.stdout(&allowed), "{\"WORD\":\"HELLO\"}\n");
}

#[test]
fn json_is_printed_also_for_failures() {
    let scene = Scene::new();
    let missing = ["tools", "call", "read_file", "--arg", "path=missing", "--json"];
    let result = scene.json(&missing);
    assert_eq!(result["success"], false);
    assert_eq!(result["error"]["kind"], "not_found");
    let ran = scene.run(&missing);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(1), ""));
    let unknown = scene.json(&["tools", "call", "nothing", "--json"]);
    assert_eq!(unknown["error"]["kind"], "not_found");
    assert_eq!(scene.run(&["tools", "call", "nothing", "--json"]).code, Some(2));
}
