//! `convoke runs`: what is kept of runs, and what can be done with it.

use std::fs;
use std::path::PathBuf;

use convoke::journal::Store;
use convoke_core::RunId;
use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::pty::{Attached, Terminal};
use crate::recorded::{BEGIN, Story, rich, store};
use crate::support::{Ran, Scene};

const DONE: &str = "1k2mabcdrich111";
const CUT_SHORT: &str = "1k2nabcdxxxx222";
const LIMITED: &str = "1k2pabcdyyyy333";

/// A scene with a run that is done, one that was interrupted, and one that a limit ended.
fn three() -> Scene {
    let scene = Scene::new();
    rich(DONE).keep(&scene);
    let place = scene.project();
    Story::new(CUT_SHORT)
        .later(1_000)
        .started("What is\tthis?", place.to_str().unwrap())
        .says(10, 1, "Hm.")
        .keep(&scene);
    Story::new(LIMITED)
        .later(2_000)
        .started("Do too much", "/x")
        .says(10, 1, "I try.")
        .ends(1100, "max_turns", "limited", None)
        .keep(&scene);
    scene
}

fn journal(scene: &Scene, run: &str) -> PathBuf {
    store(scene).directory(&RunId::new(run)).unwrap().join("journal.jsonl")
}

/// Leaves out how long ago something was: that is another time whenever a test runs.
fn without_age(text: &str) -> String {
    let words = |line: &str| match (line.find("UTC, "), line.ends_with(" ago")) {
        (Some(at), true) => format!("{}UTC, [age]", &line[..at]),
        _ => line.to_owned(),
    };
    text.lines().map(words).collect::<Vec<_>>().join("\n")
}

/// Does the same with the column of a list.
fn without_ages(text: &str) -> String {
    let is_age = |word: &&str| word.len() > 1 && word.ends_with('d');
    let line = |line: &str| match line.split_whitespace().nth(1).filter(is_age) {
        Some(age) => line.replacen(&format!("{age} ago"), "[age]", 1),
        None => line.to_owned(),
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn runs_are_listed_newest_first_with_what_became_of_them() {
    let scene = three();
    let list = without_ages(&scene.stdout(&["runs", "list"]));
    let title = list.lines().next().unwrap().split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(title, "run started status model turns tools tokens cost asked");
    assert_snapshot!(list.lines().skip(1).collect::<Vec<_>>().join("\n"), @"
    1k2pabcdyyyy333  [age]  # limited      example/large      1           2.6k  $0.0246  Do too much
    1k2nabcdxxxx222  [age]  # interrupted  example/large      1                          What is this?
    1k2mabcdrich111  [age]  + completed    example/large      3      4    2.6k  $0.0246  The release job fails since the last tag. Find out why, and fix it.
    ");
    assert_eq!(scene.stdout(&["runs", "ls"]), scene.stdout(&["runs", "list"]));
}

#[test]
fn a_list_can_be_narrowed() {
    let scene = three();
    let ids = |flags: &[&str]| -> Vec<String> {
        let all = scene.json(&[&["runs", "list", "--json"], flags].concat());
        let id = |run: &Value| run["run"].as_str().unwrap().to_owned();
        all.as_array().unwrap().iter().map(id).collect()
    };
    assert_eq!(ids(&[]), [LIMITED, CUT_SHORT, DONE]);
    assert_eq!(ids(&["--limit", "1"]), [LIMITED]);
    assert_eq!(ids(&["--status", "completed"]), [DONE]);
    assert_eq!(ids(&["--status", "completed", "--status", "limited"]), [LIMITED, DONE]);
    assert_eq!(ids(&["--here"]), [CUT_SHORT]);
    assert_eq!(ids(&["--since", "1h"]), [""; 0]);
    assert_eq!(ids(&["--since", "9999w"]).len(), 3);
    let limited = scene.run(&["runs", "list", "--limit", "1"]);
    assert!(limited.stderr.contains("... and 2 more; --all shows them"), "{limited:?}");
    let none = scene.run(&["runs", "list", "--status", "stuck"]);
    assert_eq!((none.code, none.stdout.as_str()), (Some(0), ""));
    assert!(none.stderr.contains("no run is like that, of 3"), "{none:?}");
    let exact = &scene.json(&["runs", "list", "--json", "--limit", "1"])[0];
    assert_eq!(exact["created"], BEGIN + 2_000);
    assert_eq!(
        exact["condition"],
        json!({ "state": "ended", "status": "limited", "cause": "max_turns" })
    );
}

#[test]
fn without_runs_a_list_says_how_to_make_one() {
    let scene = Scene::new();
    let ran = scene.run(&["runs", "list"]);
    assert_snapshot!(ran.shown(), @r#"
    --- stderr
    there are no runs in [root]/home/.local/state/convoke
    convoke run "…" makes one
    --- exit 0
    "#);
    assert_eq!(scene.json(&["runs", "list", "--json"]), json!([]));
    assert!(!store(&scene).root().exists(), "looking makes nothing");
    let ran = scene.run(&["runs", "show", "--last"]);
    assert!(ran.code == Some(2) && ran.stderr.contains("there are no runs"), "{ran:?}");
}

#[test]
fn a_run_is_shown_as_a_story() {
    let shown = three().stdout(&["runs", "show", "rich"]);
    assert_snapshot!(without_age(&shown), @r"
    1k2mabcdrich111  + completed
      model      example/large
      directory  /somewhere
      started    2026-03-01 09:30:00 UTC, [age]
      took       13.0 s, idle for 2 h 00 m
      used       3 turns, 4 calls, 1 subagent, 2.4k in, 160 out, $0.0246

     1      0 ms                  > asked The release job fails since the last tag. Find out why, and fix it.
     2     10 ms ##               * turn 1  1.0 s, 1.2k in, 80 out, $0.0123
                                    says: I'll look at the parser, and run the tests.
     5     1.1 s  #                 + read_file src/version.rs  6 ms, 3 lines
     8     1.1 s  #####             x run_command cargo test -p release  3.1 s, failed
                                      the command ended with exit status: 101
    12     4.2 s                  * plan 1 step
                                    s1 edit_file v.rs
    13     4.3 s      ##          * turn 2  1.0 s, 1.2k in, 80 out, $0.0123
                                    says: `parse` does not expect the `v`.
    16     5.4 s            #       + edit_file v.rs  8 ms, +1 -1
                                      allowed after 4.2 s: Yes, with a comment.
    21     9.6 s                    x run_command rm -rf /  denied
                                      the policy says no: programs are not run here
    23     9.6 s            ###     + delegate digger  1.0 s
           9.6 s            ###       + agent digger completed  1.0 s, 1 turn, 900 in, 50 out, $0.0040
    26     9.6 s                  > [digger] asked Dig.
    27     9.6 s            ##    * [digger] turn 1  1.0 s, 900 in, 50 out, $0.0040
                                    says: I found it.
    30    10.7 s                  + [digger] ended completed
    33    10.7 s                    ! Warning: AGENTS.md was cut\u{1b}[2J
    34    10.7 s                    * conversation shortened from 20.0k to 4.0k tokens
                                  --- resumed after 2 h 00 m, in another process ---
    37  2 h 00 m              ### * turn 3  2.2 s, 900 in, 50 out, $0.0040
                                    attempt 2 after 1.0 s: 429 Too Many Requests
    42  2 h 00 m                  + ended completed

    **Fixed.**
    ");
}

/// goose#5140: what an agent did, and what it cost, can be looked up.
#[test]
fn what_a_subagent_did_stands_below_what_started_it() {
    let shown = three().stdout(&["runs", "show", "rich", "--tree"]);
    let from = shown.lines().position(|line| line.contains("delegate")).unwrap();
    let part: Vec<&str> = shown.lines().skip(from).take(5).collect();
    assert_snapshot!(part.join("\n"), @"
    23     9.6 s            ###     + delegate digger  1.0 s
           9.6 s            ###       + agent digger completed  1.0 s, 1 turn, 900 in, 50 out, $0.0040
    26     9.6 s                        > asked Dig.
    27     9.6 s            ##          * turn 1  1.0 s, 900 in, 50 out, $0.0040
                                          says: I found it.
    ");
}

#[test]
fn everything_is_shown_in_full_but_nothing_endlessly() {
    let scene = Scene::new();
    let long = "line\n".repeat(1000);
    let result = json!({
        "toolName": "ls", "result": null, "durationMs": 1,
        "content": [{ "type": "text", "text": long }],
    });
    Story::new("r-long")
        .started("Look", "/x")
        .requested(1, "c", "ls", &json!({ "path": "." }))
        .starts(1, "c", "ls")
        .call(2, "c", "tool_call_completed", &result)
        .ends(3, "goal", "completed", Some("ok"))
        .keep(&scene);
    let full = scene.stdout(&["runs", "show", "--last", "--all", "--full"]);
    assert!(full.contains("arguments:\n          {\n            \"path\": \".\"\n"), "{full}");
    assert!(full.contains("... 940 more lines\n"), "{full}");
    assert!(full.contains("what was left out is in: convoke runs export r-long"), "{full}");
    assert!(full.lines().count() < 100, "{full}");
    let usual = scene.stdout(&["runs", "show", "--last", "--all"]);
    assert!(!usual.contains("arguments:") && usual.contains("1000 lines"), "{usual}");
}

#[test]
fn a_run_that_did_not_reach_its_goal_is_told_in_the_words_of_the_run() {
    let scene = three();
    let limited = scene.stdout(&["runs", "show", LIMITED]);
    assert!(limited.contains("# limited (max_turns)\n"), "{limited}");
    assert!(limited.ends_with("\nerror: stopped after 1 turn (max_turns)\nhint: `--max-turns 60` lets it go on for longer\n"), "{limited}");
    let interrupted = scene.stdout(&["runs", "show", CUT_SHORT]);
    let resume = format!("It was interrupted. To go on: convoke runs resume {CUT_SHORT}\n");
    assert!(interrupted.ends_with(&resume), "{interrupted}");
}

#[test]
fn programs_get_the_same_story() {
    let told = three().json(&["runs", "show", "rich", "--json"]);
    assert_eq!(told["run"], DONE);
    assert_eq!((&told["status"], &told["report"]["cause"]), (&json!("completed"), &json!("goal")));
    assert_eq!(told["workingDirectory"], "/somewhere");
    let items = told["items"].as_array().unwrap();
    let failed = items.iter().find(|item| item["text"] == "run_command cargo test -p release");
    assert_eq!(failed.unwrap()["seq"], 8);
    let digger = items.iter().filter(|item| item["agent"] == "main/digger").count();
    assert_eq!(digger, 4);
    let kinds: Vec<&str> = items.iter().filter_map(|item| item["kind"].as_str()).collect();
    for kind in ["asked", "turn", "call", "agent", "plan", "compaction", "gap", "note", "ended"] {
        assert!(kinds.contains(&kind), "{kind}: {kinds:?}");
    }
}

/// goose PR #7972: a run at work can be looked at from elsewhere.
#[test]
fn a_run_can_be_looked_at_while_it_works_but_not_removed() {
    let scene = three();
    let run = RunId::new(CUT_SHORT);
    let now = convoke_core::Timestamp::from_millis(BEGIN + 5_000);
    let working = store(&scene).open(&run, now).unwrap();
    let shown = scene.stdout(&["runs", "show", CUT_SHORT]);
    assert!(
        shown.contains("> running\n") && shown.ends_with("A process works on it.\n"),
        "{shown}"
    );
    assert!(scene.stdout(&["runs", "list"]).contains("> running"));
    let ran = scene.run(&["runs", "rm", "--yes", DONE, CUT_SHORT]);
    assert_eq!(ran.code, Some(9), "{ran:?}");
    assert!(ran.stderr.contains("is being worked on"), "{ran:?}");
    let ran = scene.run(&["runs", "gc", "--keep", "0", "--unfinished"]);
    assert_eq!((ran.code, kept(&scene)), (Some(0), vec![CUT_SHORT.to_owned()]), "{ran:?}");
    drop(working);
}

fn kept(scene: &Scene) -> Vec<String> {
    let all = store(scene).list().unwrap();
    all.iter().map(|run| run.run.to_string()).collect()
}

#[test]
fn a_run_becomes_a_page_markdown_or_its_events() {
    let scene = three();
    let lines = scene.stdout(&["runs", "export", "rich"]);
    assert_eq!(lines.lines().count(), rich(DONE).len());
    assert!(lines.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()));
    let markdown = scene.stdout(&["runs", "export", "rich", "--format", "md"]);
    assert!(markdown.starts_with("# The release job fails"), "{markdown}");
    let ran = scene.run(&["runs", "export", "rich", "--output", "run.html"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), ""));
    assert_eq!(ran.stderr, "wrote run.html\n");
    assert!(scene.read("run.html").starts_with("<!doctype html>"));
    let again = scene.run(&["runs", "export", "rich", "--format", "md", "--output", "run.html"]);
    assert_eq!(again.code, Some(2), "{again:?}");
    assert!(again.stderr.contains("is there already\nhint: --force replaces it"), "{again:?}");
    let forced = ["runs", "export", "rich", "--format", "md", "--output", "run.html", "--force"];
    assert_eq!(scene.run(&forced).code, Some(0));
    assert_eq!(scene.read("run.html"), markdown);
    let nowhere = scene.run(&["runs", "export", "rich", "--output", "no/such/place.md"]);
    assert_eq!(nowhere.code, Some(1), "{nowhere:?}");
    assert_eq!(scene.stdout(&["runs", "export", "rich", "-o", "-"]), lines);
}

#[test]
fn nobody_gets_the_source_of_a_page_on_a_terminal() {
    let scene = three();
    let words = ["runs", "export", "rich", "--format", "html"];
    let ended = Terminal::start(&scene, 80, Attached::All, &words).end();
    assert_eq!((ended.code, ended.screen), (Some(0), format!("wrote run-{DONE}.html\n")));
    assert!(scene.read(&format!("run-{DONE}.html")).contains("The release job fails"));
    assert!(scene.stdout(&words).starts_with("<!doctype html>"), "a pipe gets the page");
}

#[test]
fn removed_runs_are_gone_and_their_bytes_counted() {
    let scene = three();
    let asked = scene.run(&["runs", "rm", "rich"]);
    assert_eq!(asked.code, Some(2), "nobody can be asked: {asked:?}");
    assert!(asked.stderr.contains("hint: --yes removes without a question"), "{asked:?}");
    let unknown = scene.run(&["runs", "rm", "--yes", "rich", "1k2pabcdyyyz333"]);
    assert_eq!((unknown.code, kept(&scene).len()), (Some(2), 3), "{unknown:?}");
    assert!(unknown.stderr.contains(LIMITED), "the nearest is named: {unknown:?}");
    let ran = scene.run(&["runs", "rm", "--force", "rich", DONE, "2222", "yyyy333"]);
    assert_eq!(ran.code, Some(2), "`2222` is in no id: {ran:?}");
    let ran = scene.run(&["runs", "rm", "--force", "rich", DONE, "yyyy333"]);
    assert_eq!((ran.code, kept(&scene)), (Some(0), vec![CUT_SHORT.to_owned()]), "{ran:?}");
    assert!(ran.stdout.starts_with(&format!("removed {DONE}, ")), "{ran:?}");
    assert!(ran.stderr.starts_with("2 runs, ") && ran.stderr.ends_with(" KiB freed\n"), "{ran:?}");
}

#[test]
fn on_a_terminal_somebody_is_asked_before_a_run_is_gone() {
    for (answer, left) in [("y\n", 2), ("n\n", 3), ("\n", 3)] {
        let scene = three();
        let words = ["runs", "rm", "rich", "--color=never"];
        let mut terminal = Terminal::start(&scene, 80, Attached::All, &words);
        let question = terminal.wait_for("Remove it? [y/N] ");
        assert!(question.contains("completed  The release job fails"), "{question}");
        terminal.type_in(answer);
        assert_eq!(terminal.end().code, Some(0));
        assert_eq!(kept(&scene).len(), left, "{answer:?}");
    }
}

#[test]
fn old_runs_make_room_and_unfinished_ones_stay() {
    let scene = three();
    let dry = scene.run(&["runs", "gc", "--dry-run"]);
    assert_eq!((dry.code, kept(&scene).len()), (Some(0), 3));
    assert!(dry.stdout.contains(&format!("would remove {DONE}, ")), "{dry:?}");
    assert!(dry.stderr.contains("1 run kept that did not end; --unfinished"), "{dry:?}");
    let fresh = scene.run(&["runs", "gc", "--older-than", "9999w"]);
    assert_eq!((fresh.stdout.as_str(), fresh.stderr.as_str()), ("", "0 runs, 0 bytes freed\n"));
    let told = scene.json(&["runs", "gc", "--keep", "1", "--json"]);
    assert_eq!(told["removed"][0]["run"], LIMITED, "rich was active last: {told}");
    assert_eq!((&told["dryRun"], &told["unfinished"]), (&json!(false), &json!(1)));
    assert_eq!(kept(&scene), [CUT_SHORT, DONE]);
    scene.stdout(&["runs", "gc", "--max-bytes", "0", "--unfinished"]);
    assert_eq!(kept(&scene), [""; 0]);
}

#[test]
fn damage_is_told_after_what_is_intact() {
    let scene = three();
    let path = journal(&scene, DONE);
    let text = fs::read_to_string(&path).unwrap();
    let garbled: Vec<String> = text
        .lines()
        .enumerate()
        .map(|(index, line)| if index == 6 { "garbage".to_owned() } else { line.to_owned() })
        .collect();
    fs::write(&path, garbled.join("\n") + "\n").unwrap();
    let row = without_ages(&scene.stdout(&["runs", "list"]));
    let row = row.lines().find(|line| line.starts_with(DONE)).unwrap();
    assert!(
        row.contains("! damaged") && row.ends_with("line 7 of the journal cannot be read"),
        "{row}"
    );
    for command in
        [&["runs", "show", DONE][..], &["runs", "show", DONE, "--json"], &["runs", "export", DONE]]
    {
        let ran = scene.run(command);
        assert_eq!(ran.code, Some(9), "{command:?}: {ran:?}");
        // What comes after the damage is shown, too.
        assert!(ran.stdout.contains("read_file") && ran.stdout.contains("cargo test"), "{ran:?}");
        assert!(ran.stderr.contains("after it can be read"), "{ran:?}");
        assert!(ran.stderr.contains("is damaged: line 7 is not JSON"), "{ran:?}");
        assert!(ran.stderr.contains(&format!("convoke runs fork {DONE} --at 5")), "{ran:?}");
    }
    assert_eq!(scene.run(&["runs", "list", "--status", "damaged"]).stdout.lines().count(), 2);
    assert_eq!(scene.run(&["runs", "rm", "--yes", DONE]).code, Some(0), "it can be removed");
}

#[test]
fn a_torn_tail_and_a_newer_journal_hide_no_other_run() {
    let scene = three();
    let torn = journal(&scene, CUT_SHORT);
    let mut text = fs::read_to_string(&torn).unwrap();
    text.push_str("{\"prev\":\"half a li");
    fs::write(&torn, text).unwrap();
    assert_eq!(scene.run(&["runs", "show", CUT_SHORT]).code, Some(0));
    let newer = journal(&scene, LIMITED);
    let text = fs::read_to_string(&newer).unwrap().replacen("\"journal\":1", "\"journal\":99", 1);
    fs::write(&newer, text).unwrap();
    let ran = scene.run(&["runs", "show", LIMITED]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(9), ""), "{ran:?}");
    assert!(ran.stderr.contains("update the program"), "{ran:?}");
    let list = scene.stdout(&["runs", "list"]);
    assert!(list.contains("a newer program wrote the journal (format 99)"), "{list}");
    assert_eq!(list.lines().count(), 4, "{list}");
}

#[test]
fn ids_that_name_nothing_are_usage_errors() {
    let scene = three();
    let long = "x".repeat(5_000);
    for id in
        ["", "nothing", "..", "../..", "runs/../..", "/etc/passwd", "a\u{1b}[2J", "1k2", &long]
    {
        for command in [&["runs", "show"][..], &["runs", "export"], &["runs", "rm", "--yes"]] {
            let Ran { code, stdout, stderr } = scene.run(&[command, &["--", id]].concat());
            assert_eq!((code, stdout.as_str()), (Some(2), ""), "{command:?} {id}: {stderr}");
            assert!(stderr.starts_with("error: ") && stderr.len() < 500, "{stderr}");
        }
    }
    assert_eq!(kept(&scene).len(), 3);
    let both = scene.run(&["runs", "show", "--last", DONE]);
    assert!(both.code == Some(2) && both.stderr.contains("beside --last"), "{both:?}");
}

#[test]
fn a_place_that_cannot_be_read_is_a_state_problem() {
    let scene = Scene::new().file("state/runs", "not a directory");
    for command in
        [&["list"][..], &["show", "--last"], &["gc"], &["rm", "-y", "x"], &["export", "x"]]
    {
        let ran = scene.run(&[&["--state", "state", "runs"], command].concat());
        assert_eq!(ran.code, Some(9), "{command:?}: {ran:?}");
        assert!(ran.stderr.contains("[root]/home/project/state/runs"), "{ran:?}");
    }
    let nowhere = Scene::new().command(&["runs", "list"]).env_remove("HOME").output().unwrap();
    assert_eq!(nowhere.status.code(), Some(9));
    assert!(String::from_utf8_lossy(&nowhere.stderr).contains("hint: --state or CONVOKE_STATE"));
}

#[test]
fn what_a_model_said_does_not_steer_the_terminal() {
    let scene = Scene::new().variable("TERM", "dumb");
    let evil = "a\u{1b}]0;title\u{7}b \u{202e}c";
    Story::new("r-evil")
        .started(evil, evil)
        .says(10, 1, &format!("{evil} first."))
        .works(20, "c", evil, &json!({ "path": evil }), 1)
        .main(30, "warning", &json!({ "message": evil }))
        .ends(40, "error", "failed", Some(evil))
        .keep(&scene);
    for command in [
        &["runs", "list"][..],
        &["runs", "show", "--last", "--all", "--full"],
        &["runs", "export", "--last", "--all"],
    ] {
        let ended = Terminal::start(&scene, 80, Attached::All, command).end();
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert!(!ended.screen.contains(['\u{1b}', '\u{7}', '\u{202e}']), "{command:?}: {ended:?}");
        assert!(ended.screen.contains("title"), "{ended:?}");
    }
}

#[test]
fn lists_and_stories_fit_the_terminal() {
    let scene = three().variable("LANG", "C.UTF-8").variable("PAGER", "cat");
    for columns in [40, 80, 140] {
        for command in
            [&["runs", "list"][..], &["runs", "show", "rich"], &["runs", "show", "rich", "--tree"]]
        {
            let words = [command, &["--color=never"]].concat();
            let ended = Terminal::start(&scene, columns, Attached::All, &words).end();
            let widest = ended.screen.lines().map(|line| line.chars().count()).max().unwrap();
            assert!(widest <= columns.into(), "{columns} {command:?}: {}", ended.screen);
        }
    }
    let coloured = Terminal::start(&scene, 80, Attached::All, &["runs", "list"]).end().screen;
    assert!(
        coloured.contains("\u{1b}[2m1k2mabcdric\u{1b}[0m\u{1b}[1mh111\u{1b}[0m"),
        "{coloured:?}"
    );
}

#[test]
fn a_long_story_is_shown_with_the_pager_of_the_person() {
    let scene = three().file("pager.sh", "echo seen by the pager\ncat > seen.txt\n");
    let pager = format!("sh {}", scene.project().join("pager.sh").display());
    let scene = scene.variable("PAGER", &pager).variable("TERM", "xterm");
    let words = ["runs", "show", "rich", "--full", "--color=never"];
    let ended = Terminal::start(&scene, 80, Attached::All, &words).end();
    assert_eq!((ended.code, ended.screen.as_str()), (Some(0), "seen by the pager\n"));
    assert!(scene.read("seen.txt").contains("conversation shortened"));
    let piped = scene.stdout(&words);
    assert!(piped.contains("conversation shortened"), "a pipe gets no pager: {piped}");
    let short = ["runs", "show", LIMITED, "--color=never"];
    let ended = Terminal::start(&scene, 80, Attached::All, &short).end();
    assert!(ended.screen.contains("stopped after 1 turn"), "{ended:?}");
}

#[test]
fn the_first_of_many_runs_are_listed_and_the_rest_counted() {
    let scene = Scene::new();
    for number in 0..300 {
        Story::new(&format!("r-{number:05}")).later(number).started("Go", "/x").keep(&scene);
    }
    let ran = scene.run(&["runs", "list"]);
    assert_eq!(ran.stdout.lines().count(), 21);
    assert!(ran.stderr.contains("... and 280 more; --all shows them"), "{ran:?}");
    assert_eq!(scene.stdout(&["runs", "list", "--all"]).lines().count(), 301);
}

#[test]
fn the_newest_of_two_runs_of_one_second_is_the_last() {
    let scene = Scene::new();
    Story::new("1k2mabczzzzzzzz").started("First", "/x").keep(&scene);
    Story::new("1k2mabcaaaaaaaa").later(300).started("Second", "/x").keep(&scene);
    let last = scene.stdout(&["runs", "show", "--last", "--all"]);
    assert!(last.starts_with("1k2mabcaaaaaaaa "), "{last}");
}

#[test]
fn a_run_of_the_command_is_kept_in_its_state_directory_and_nowhere_else() {
    let demo = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("demo");
    let mut scene = Scene::new();
    for name in ["AGENTS.md", "README.md", "slug.sh", "test.sh"] {
        scene = scene.file(name, fs::read(demo.join("project").join(name)).unwrap());
    }
    let recording = demo.join("recording.jsonl");
    let prompt = "The test of this project fails. Find out why, fix it, and show that it passes.";
    let words = ["run", "--mode", "full", "--replay", recording.to_str().unwrap(), prompt];
    let ran = scene.run(&[&["--state", "../elsewhere"], &words[..]].concat());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(kept(&scene), [""; 0]);
    assert_eq!(Store::at(scene.project().join("../elsewhere")).list().unwrap().len(), 1);
    let shown = scene.stdout(&["--state", "../elsewhere", "runs", "show", "--last"]);
    for part in ["+ completed\n", "turn 4", "+ edit_file slug.sh", "x run_command sh test.sh"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert!(shown.ends_with(&ran.stdout), "the answer stands at the end: {shown}");
    let here = scene.stdout(&["--state", "../elsewhere", "runs", "list", "--here"]);
    assert_eq!(here.lines().count(), 2, "{here}");
}

const STOPPED: &str = "1k2rabcdstop444";

/// A list called it `interrupted`, what was shown `cancelled`, and no word found it.
#[test]
fn a_run_that_was_stopped_has_one_word_everywhere() {
    let scene = three();
    Story::new(STOPPED)
        .later(3_000)
        .started("Stop", "/x")
        .ends(1100, "interrupted", "cancelled", None)
        .keep(&scene);
    let listed = |status: &str| -> Vec<String> {
        let runs = scene.json(&["runs", "list", "--json", "--status", status]);
        let runs = runs.as_array().unwrap().clone();
        runs.iter()
            .map(|run| {
                assert_eq!(run["status"], "interrupted", "{run}");
                run["run"].as_str().unwrap().to_owned()
            })
            .collect()
    };
    assert_eq!(listed("interrupted"), [STOPPED, CUT_SHORT]);
    assert_eq!(listed("cancelled"), [STOPPED, CUT_SHORT], "as its report says");
    assert!(scene.stdout(&["runs", "list"]).contains("interrupted"));
    assert!(!scene.stdout(&["runs", "list"]).contains("cancelled"));
    assert_eq!(scene.json(&["runs", "show", STOPPED, "--json"])["status"], "interrupted");
    let shown = scene.run(&["runs", "show", STOPPED]);
    assert!(shown.stdout.starts_with(&format!("{STOPPED}  # interrupted\n")), "{shown:?}");
    let wrong = scene.run(&["runs", "list", "--status", "stopped"]);
    assert_eq!(wrong.code, Some(2), "{wrong:?}");
    assert!(wrong.stderr.contains("interrupted, completed, failed"), "{wrong:?}");
}

#[test]
fn a_fork_that_would_be_refused_is_refused_before_it_is_tried() {
    let scene = Scene::new();
    let spawned = json!({ "child": format!("{DONE}-kid"), "name": "kid" });
    let place = json!({ "kind": "copy", "path": "/nowhere" });
    Story::new(DONE)
        .started("Go", "/x")
        .call(1, "c", "agent_spawned", &spawned)
        .child(2, "kid", "workspace_prepared", &place)
        .keep(&scene);
    for words in [&["--dry-run"][..], &["More."]] {
        let ran = scene.run(&[&["runs", "fork", DONE], words].concat());
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(9), ""), "{words:?}: {ran:?}");
        assert!(ran.stderr.contains("works in files of its own there"), "{words:?}: {ran:?}");
    }
    assert_eq!(scene.run(&["runs", "fork", DONE, "--at", "1", "--dry-run"]).code, Some(0));
    let done = three().run(&["runs", "fork", DONE, "--dry-run"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(done.stderr.contains("has to be told what more to do"), "{done:?}");
}

/// It was cut off as if a crash had torn it.
#[test]
fn a_last_line_that_is_no_json_is_damage() {
    let scene = three();
    let path = journal(&scene, DONE);
    let whole = fs::read(&path).unwrap();
    fs::write(&path, [&whole[..], b"this is no JSON\n"].concat()).unwrap();
    let listed = scene.json(&["runs", "list", "--json"]);
    let run = listed.as_array().unwrap().iter().find(|run| run["run"] == DONE).unwrap();
    assert_eq!(run["status"], "damaged", "{run}");
    for words in [&["show", DONE][..], &["resume", DONE, "More."], &["audit", DONE]] {
        let ran = scene.run(&[&["runs"], words].concat());
        assert_eq!(ran.code, Some(9), "{words:?}: {ran:?}");
        assert!(ran.stderr.contains("is not JSON"), "{words:?}: {ran:?}");
    }
}

#[test]
fn the_last_run_is_called_the_same_everywhere() {
    let scene = Scene::new();
    for command in ["show", "resume", "fork", "replay", "export", "rm", "audit", "diff", "apply"] {
        let help = scene.stdout(&["runs", command, "--help"]);
        let words = help.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            words.contains("--last The run of this directory that was last worked on"),
            "{command}: {help}"
        );
    }
    let help = scene.stdout(&["chat", "--help"]);
    let words = help.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("--last The run of this directory that was last worked on"), "{help}");
}
