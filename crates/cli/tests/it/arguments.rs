//! Arguments: from flags, JSON, files and standard input.

use serde_json::json;

use crate::support::Scene;

#[test]
fn flags_become_what_the_tool_asks_for() {
    let scene = Scene::new().file("a.rs", "x\nfn one() {}\n").file("b.md", "fn two\n");
    let grep = |more: &[&str]| {
        let words = [&["tools", "call", "grep", "--arg", "pattern=FN", "--json"], more].concat();
        scene.json(&words)["result"].clone()
    };
    assert_eq!(grep(&[])["total"], 0);
    assert_eq!(grep(&["--arg", "case_sensitive=false"])["total"], 2);
    let one = ["--arg", "case_sensitive=false", "--arg", "max_matches=1"];
    assert_eq!(grep(&one)["truncated"], true);
    let rust = ["--arg", "case_sensitive=false", "--arg", "include=[\"*.rs\"]"];
    assert_eq!(grep(&rust)["total"], 1);
}

#[test]
fn a_text_stays_a_text() {
    let scene = Scene::new();
    for (argument, encoded) in [("text=12", "MTI="), ("text=", ""), ("text=a=b", "YT1i")] {
        let result = scene.json(&["tools", "call", "base64_encode", "--json", "--arg", argument]);
        assert_eq!(result["result"]["encoded"], encoded, "{argument}");
    }
}

#[test]
fn flags_win_over_json() {
    let scene = Scene::new();
    let words = [
        "tools",
        "call",
        "write_file",
        "{\"path\": \"a\", \"content\": \"json\"}",
        "--arg",
        "content=flag",
    ];
    assert_eq!(scene.run(&words).code, Some(0));
    assert_eq!(scene.read("a"), "flag");
}

#[test]
fn files_give_their_text() {
    let scene = Scene::new()
        .file("in.txt", "from a file\n")
        .file("edits.json", "[{\"old_string\": \"from\", \"new_string\": \"of\"}]");
    let write = ["tools", "call", "write_file", "--arg", "path=out", "--arg", "content=@in.txt"];
    assert_eq!(scene.run(&write).code, Some(0));
    let edit = ["tools", "call", "edit_file", "--arg", "path=out", "--arg", "edits=@edits.json"];
    assert_eq!(scene.run(&edit).code, Some(0));
    assert_eq!(scene.read("out"), "of a file\n");
    let literal = ["tools", "call", "write_file", "--arg", "path=out", "--arg", "content=@@in.txt"];
    assert_eq!(scene.run(&literal).code, Some(0));
    assert_eq!(scene.read("out"), "@in.txt");
    let missing = scene.run(&["tools", "call", "read_file", "--arg", "path=@nowhere"]);
    assert_eq!(missing.code, Some(2), "{missing:?}");
}

#[test]
fn standard_input_gives_an_object() {
    let scene = Scene::new();
    let call = ["tools", "call", "base64_encode", "-"];
    assert_eq!(scene.run_with(b"{\"text\": \"hi\"}\n", &call).stdout, "aGk=\n");
    for input in [&b""[..], b"[1]", b"{\"text\": ", b"\xff\xfe"] {
        let ran = scene.run_with(input, &call);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{input:?}: {ran:?}");
    }
}

#[test]
fn an_argument_is_given_once() {
    let ran = Scene::new().run(&["tools", "call", "ls", "--arg", "path=a", "--arg", "path=b"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.stderr.contains("`path` is given twice"), "{ran:?}");
}

#[test]
fn lists_grow_with_every_flag() {
    let config = "tools:\n  commands:\n    - name: echo_back\n      description: Echoes.\n      command: [cat]\n      kind: think\n      parameters: {type: object, properties: {tags: {type: array, items: {type: string}}, size: {type: number}}}\npolicy:\n  kinds: {execute: allow}\n";
    let scene = Scene::new().user(config);
    let result = scene.json(&[
        "tools",
        "call",
        "echo_back",
        "--json",
        "--arg",
        "tags=a",
        "--arg",
        "tags=b",
        "--arg",
        "size=1.5",
    ]);
    assert_eq!(result["result"], json!({ "tags": ["a", "b"], "size": 1.5 }));
}
