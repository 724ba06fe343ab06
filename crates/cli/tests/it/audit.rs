//! `convoke runs audit`: who did what, and whether that is what was recorded.

use std::fs;
use std::path::PathBuf;

use convoke::journal::Journal;
use convoke_core::{RunId, Timestamp};
use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::pty::{Attached, Terminal};
use crate::recorded::{BEGIN, Story, rich, store};
use crate::support::Scene;

const RICH: &str = "1k2mabcdrich111";
const OTHER: &str = "1k2nabcdxxxx222";

/// A scene with a run in which much was done, and one in which little was, a day later.
fn two() -> Scene {
    let scene = Scene::new();
    rich(RICH).keep(&scene);
    let decided = json!({ "toolName": "ls", "decision": "allow", "rule": "the kind `read`" });
    Story::new(OTHER)
        .later(86_400_000)
        .started("Look", "/x")
        .requested(10, "c", "ls", &json!({ "path": "src" }))
        .call(11, "c", "policy_decision", &decided)
        .starts(12, "c", "ls")
        .keep(&scene);
    scene
}

/// Brings a run to the disk, and with that its head.
fn sync(scene: &Scene, run: &str) {
    let opened = store(scene).open(&RunId::new(run), Timestamp::from_millis(BEGIN)).unwrap();
    opened.journal.sync().wait().unwrap();
}

fn journal(scene: &Scene, run: &str) -> PathBuf {
    store(scene).root().join("runs").join(run).join("journal.jsonl")
}

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn each_call_is_a_line_and_what_is_not_verified_is_said() {
    let scene = two();
    sync(&scene, RICH);
    let ran = scene.run(&["runs", "audit"]);
    assert_snapshot!(ran.shown(), @"
    when (UTC)           run              agent  outcome       tool         decision  rule             what
    2026-03-01 09:30:00  1k2mabcdrich111  main   started                                               mode default; in /somewhere
    2026-03-01 09:30:01  1k2mabcdrich111  main   + completed   read_file                               src/version.rs
    2026-03-01 09:30:01  1k2mabcdrich111  main   x failed      run_command                             cargo test -p release (the command ended with exit status: 101)
    2026-03-01 09:30:05  1k2mabcdrich111  main   + completed   edit_file    ask: yes                   v.rs (Yes, with a comment.)
    2026-03-01 09:30:09  1k2mabcdrich111  main   x denied      run_command                             rm -rf / (the policy says no: programs are not run here)
    2026-03-01 09:30:09  1k2mabcdrich111  main   + completed   delegate                                digger
    2026-03-01 11:30:10  1k2mabcdrich111  main   resumed                                               mode default; in /somewhere
    2026-03-02 09:30:00  1k2nabcdxxxx222  main   started                                               mode default; in /x
    2026-03-02 09:30:00  1k2nabcdxxxx222  main   # unfinished  ls           allow     the kind `read`  src
    --- stderr
    no head is kept that vouches for: 1k2nabcdxxxx222
    --- exit 0
    ");
}

#[test]
fn filters_combine() {
    let scene = two();
    let tools = |flags: &[&str]| -> Vec<String> {
        let ran = scene.run(&[&["runs", "audit", "--json"], flags].concat());
        let calls = lines(&ran.stdout).into_iter().filter(|line| line["type"] == "call");
        calls.map(|call| call["tool"].as_str().unwrap().to_owned()).collect()
    };
    let all = tools(&[]);
    assert_eq!(all.len(), 6, "{all:?}");
    assert_eq!(tools(&["--denied"]), ["run_command"]);
    assert_eq!(tools(&["--tool", "run_*"]), ["run_command", "run_command"]);
    assert_eq!(tools(&["--tool", "run_*", "--denied"]), ["run_command"]);
    assert_eq!(tools(&["--agent", "main/*"]), [""; 0]);
    assert_eq!(tools(&["--since", "2026-03-02"]), ["ls"]);
    assert_eq!(tools(&["--until", "2026-03-01"]).len(), 5);
    assert_eq!(tools(&["--since", "2026-03-01T09:30:08", "--until", "2026-03-01"]).len(), 2);
    assert_eq!(tools(&["xxxx"]), ["ls"]);
    assert_eq!(tools(&["--last", "--all"]), ["ls"]);
    let none = scene.run(&["runs", "audit", "--tool", "nothing"]);
    assert_eq!((none.code, none.stdout.as_str()), (Some(0), ""), "{none:?}");
    assert!(none.stderr.contains("nothing of the kind was done in 2 runs"), "{none:?}");
    assert!(!none.stderr.contains("is called"), "{none:?}");
    // That a name is wrong is another thing than that nothing was done.
    let nobody = scene.run(&["runs", "audit", "--agent", "nosuch"]);
    let said = "no agent here is called `nosuch`; there are: main";
    assert!(nobody.stderr.contains(said), "{nobody:?}");
}

#[test]
fn programs_read_one_object_a_line() {
    let scene = two();
    sync(&scene, OTHER);
    let told = lines(&scene.stdout(&["runs", "audit", OTHER, "--json"]));
    assert_eq!(
        told,
        [
            json!({
                "type": "rights", "ts": BEGIN + 86_400_000, "run": OTHER, "seq": 1, "agent": "main",
                "agentLabel": "main",
                "event": "started", "origin": { "workingDirectory": "/x", "mode": "default" },
            }),
            json!({
                "type": "call", "ts": BEGIN + 86_400_010, "run": OTHER, "seq": 2, "agent": "main",
                "agentLabel": "main",
                "call": "c", "tool": "ls", "arguments": { "path": "src" }, "what": "does it",
                "decision": "allow", "rule": "the kind `read`", "outcome": "unfinished",
            }),
            json!({
                "type": "verification", "run": OTHER, "status": "intact", "events": 4,
                "vouchedUpTo": 4,
            }),
        ]
    );
}

#[test]
fn a_journal_that_was_changed_is_told_and_the_others_are_listed() {
    let scene = two();
    sync(&scene, RICH);
    sync(&scene, OTHER);
    let path = journal(&scene, OTHER);
    let whole = fs::read_to_string(&path).unwrap();
    let two_lines: String = whole.split_inclusive('\n').take(2).collect();
    for (changed, problem) in [
        (whole.replace("\"src\"", "\"etc\""), "line 3 was altered: its checksum does not fit"),
        (two_lines, "line 3 is missing: 4 events were recorded"),
    ] {
        fs::write(&path, &changed).unwrap();
        let ran = scene.run(&["runs", "audit"]);
        assert_eq!(ran.code, Some(9), "{ran:?}");
        assert!(ran.stdout.contains("read_file"), "the other run is listed: {ran:?}");
        let said = format!("the journal of run `{OTHER}` is damaged: {problem}");
        assert!(ran.stderr.contains(&said), "{ran:?}");
        let told = lines(&scene.run(&["runs", "audit", "--json"]).stdout);
        let status = |run: &str| {
            let is_it = |line: &&Value| line["type"] == "verification" && line["run"] == run;
            told.iter().find(is_it).unwrap()["status"].clone()
        };
        assert_eq!((status(OTHER), status(RICH)), (json!("damaged"), json!("intact")));
        for words in [&["runs", "show", OTHER][..], &["runs", "resume", OTHER]] {
            let ran = scene.run(words);
            assert_eq!(ran.code, Some(9), "{words:?}: {ran:?}");
            assert!(ran.stderr.contains(problem), "{words:?}: {ran:?}");
        }
    }
    fs::write(&path, &whole).unwrap();
    assert_eq!(scene.run(&["runs", "audit"]).code, Some(0));
}

/// It passed as a run in which nothing had happened yet.
#[test]
fn a_journal_that_was_emptied_is_told_as_cut_short() {
    let scene = two();
    sync(&scene, OTHER);
    fs::write(journal(&scene, OTHER), "").unwrap();
    for words in [&["runs", "audit"][..], &["runs", "audit", OTHER]] {
        let ran = scene.run(words);
        assert_eq!(ran.code, Some(9), "{words:?}: {ran:?}");
        assert!(ran.stderr.contains("line 1 is missing: 4 events were recorded"), "{ran:?}");
    }
    let told = lines(&scene.run(&["runs", "audit", OTHER, "--json"]).stdout);
    assert_eq!(told.last().unwrap()["status"], "damaged");
}

#[test]
fn a_run_that_was_removed_by_hand_is_told_and_one_that_was_removed_by_us_is_not() {
    let scene = two();
    sync(&scene, RICH);
    sync(&scene, OTHER);
    scene.stdout(&["runs", "rm", RICH, "--yes"]);
    assert_eq!(scene.run(&["runs", "audit"]).code, Some(0));
    fs::remove_dir_all(store(&scene).root().join("runs").join(OTHER)).unwrap();
    for words in [&["runs", "audit"][..], &["runs", "audit", OTHER]] {
        let ran = scene.run(words);
        assert_eq!(ran.code, Some(9), "{words:?}: {ran:?}");
        let said = format!("the journal of run `{OTHER}` is gone, and `convoke runs rm` did not");
        assert!(ran.stderr.contains(&said), "{ran:?}");
        assert!(!ran.stderr.contains(RICH), "{ran:?}");
    }
    let told = lines(&scene.run(&["runs", "audit", "--json"]).stdout);
    assert_eq!((&told[0]["run"], &told[0]["status"]), (&json!(OTHER), &json!("gone")));
    let ran = scene.run(&["runs", "gc"]);
    assert!(ran.stderr.contains(&format!("forgot {OTHER}")), "{ran:?}");
    assert_eq!(scene.run(&["runs", "audit"]).code, Some(0), "it was told and forgotten");
}

/// A run in which a hook refused a call, and in which a hook and a person changed others.
fn hooked() -> Scene {
    let scene = Scene::new();
    let hook = |hook: &str, action: &str| json!({ "hook": hook, "moment": "before_tool", "action": action });
    let mut changed = hook("linter", "changed");
    changed["arguments"] = json!({ "path": "b.rs" });
    let error = convoke_core::ToolError::permission("the hook `guard` refused it: not today");
    let decided = json!({ "toolName": "rm", "decision": "allow", "rule": "the kind `delete`" });
    Story::new(OTHER)
        .started("Look", "/x")
        .requested(10, "c", "rm", &json!({ "path": "a.rs" }))
        .call(11, "c", "policy_decision", &decided)
        .call(12, "c", "hook_acted", &hook("guard", "denied"))
        .call(
            13,
            "c",
            "tool_call_denied",
            &json!({ "toolName": "rm", "error": error, "durationMs": 1 }),
        )
        .requested(20, "d", "edit_file", &json!({ "path": "a.rs" }))
        .call(21, "d", "hook_acted", &changed)
        .starts(22, "d", "edit_file")
        .keep(&scene);
    scene
}

#[test]
fn what_a_hook_did_is_shown() {
    let scene = hooked();
    let ran = scene.run(&["runs", "audit"]);
    assert_snapshot!(ran.stdout, @"
    when (UTC)           run              agent  outcome       tool       decision            rule               what
    2026-03-01 09:30:00  1k2nabcdxxxx222  main   started                                                         mode default; in /x
    2026-03-01 09:30:00  1k2nabcdxxxx222  main   x denied      rm         hook guard: denied  the kind `delete`  a.rs (Permission denied: the hook `guard` refused it: not today)
    2026-03-01 09:30:00  1k2nabcdxxxx222  main   # unfinished  edit_file                                         b.rs (asked: a.rs)
    ");
    let told = lines(&scene.stdout(&["runs", "audit", "--json"]));
    let calls: Vec<&Value> = told.iter().filter(|line| line["type"] == "call").collect();
    assert_eq!(calls[0]["hooks"][0]["action"], "denied");
    assert!(calls[0].get("asked").is_none(), "{}", calls[0]);
    let ran_and_asked = (&calls[1]["arguments"]["path"], &calls[1]["asked"]["path"]);
    assert_eq!(ran_and_asked, (&json!("b.rs"), &json!("a.rs")));
}

#[test]
fn one_run_is_not_several() {
    let ran = hooked().run(&["runs", "audit", "--tool", "nothing"]);
    assert!(ran.stderr.contains("nothing of the kind was done in 1 run\n"), "{ran:?}");
}

#[test]
fn rows_fit_a_narrow_terminal() {
    let scene = two();
    sync(&scene, RICH);
    for (columns, titles) in [
        (60, "when (UTC)      run   agent     tool         what"),
        (80, "when (UTC)      run   agent  outcome       tool         what"),
        (100, "when (UTC)           run   agent  outcome       tool         decision  what"),
    ] {
        let words = ["runs", "audit", "--color", "never"];
        let shown = Terminal::start(&scene, columns, Attached::All, &words).end().screen;
        assert!(shown.contains(titles), "{columns}: {shown}");
        assert!(shown.contains("03-01 09:30:09"), "{columns}: {shown}");
        assert!(shown.contains("h111  main"), "{columns}: {shown}");
        assert!(shown.contains("rm -rf /"), "{columns}: {shown}");
        for line in shown.lines() {
            assert!(line.trim_end().chars().count() <= columns.into(), "{columns}: {line}");
        }
    }
}
