//! A whole run, as each view shows it.

mod story;

use insta::assert_snapshot;
use serde_json::{Value, json};

use self::story::{Story, run};
use super::live::terminal::Terminal;
use super::*;
use crate::output::Size;

const SIZE: Size = Size { columns: 72, rows: 24 };

fn screen() -> Size {
    SIZE
}

/// Both streams lead to the same terminal.
fn terminal() -> Output {
    let stream = Stream::on_terminal(SIZE.columns).without_colour().with_screen(screen);
    Output::of(stream.clone(), stream)
}

/// What stands on the terminal.
fn seen_on(output: &Output) -> Terminal {
    let mut seen = Terminal::new(SIZE);
    seen.write(&output.err.contents());
    seen
}

fn told(events: &[Event], view: &mut View) {
    for event in events {
        view.event(event);
    }
}

fn log(events: &[Event], detail: Detail) -> (String, String) {
    let mut output = Output::in_memory();
    let mut view = View::text(&output, detail);
    assert!(!view.is_live());
    told(events, &mut view);
    view.finish(&mut output);
    (output.out.contents(), output.err.contents())
}

#[test]
fn a_log_has_a_line_for_everything_that_ended() {
    let (out, err) = log(&run(), Detail::Usual);
    assert_snapshot!(err, @r#"
    plan of 3 steps:
      1. read_file src/parser.rs
      2. investigator
      3. answer
    says: I read the sources first.
    read_file src/parser.rs ... ok 2 ms (3 lines)
    grep "fn main" src ... ok 2 ms (src/main.rs:1: fn main())
    run_command cargo test --workspace ... failed 8.2 s: the command ended with exit status: 101
    looked back, replan: The tests fail.
    asked again in 3 s: overloaded (attempt 2)
    [investigator] begins: Find out why the parser takes 0 for nothing.
    [investigator 2] begins: Find the test that expects it.
    [investigator 2] grep nothing tests ... ok 14 ms (tests/a.rs:3: x)
    [investigator] grep == 0 ... ok 14 ms (2 lines)
    [investigator] done, 1 turn, 1.1k tokens, $0.0020, 990 ms
    [investigator 2] did not complete its task (loop), 2.1k tokens, $0.0030, 1.9 s
    edit_file src/parser.rs asks: it changes files
    edit_file src/parser.rs ... ok 3 ms (+1 -1)
    delete_file /etc/passwd ... denied: `/etc/passwd` lies outside
    summed up the conversation: 84.0k to 12.4k tokens
    warning: grep was called 3 times with the same answer
    warning: 80 % of the turns are used
    warning: the file `AGENTS.md` is very long
    error: the disk is nearly full
    warning: server files failed: it ended
    4 turns, 5 calls, 15.0k in (7.5k cached), 800 out, $0.0353, 21.0 s
    warning: 1 of 2 agents did not complete: loop
    "#);
    assert_eq!(out, story::ANSWER);
}

#[test]
fn a_quiet_log_has_errors_and_what_puts_the_answer_in_doubt() {
    let (out, err) = log(&run(), Detail::Quiet);
    assert_snapshot!(err, @"
    warning: the file `AGENTS.md` is very long
    error: the disk is nearly full
    warning: server files failed: it ended
    warning: 1 of 2 agents did not complete: loop
    ");
    assert_eq!(out, story::ANSWER);
}

#[test]
fn a_verbose_log_has_thoughts_arguments_decisions_and_usage() {
    assert_snapshot!(log(&run(), Detail::Verbose).1, @r#"
    run r-1, model acme/large, 0 tools
    plan of 3 steps:
      1. read_file src/parser.rs
      2. investigator
      3. answer
    turn 1
    thought:
      The tests come first.
    says:
      I read the sources first. Then the tests.
    model answered: 4.0k in (2.0k cached), 200 out, $0.0101, 800 ms
    policy: allow read_file (reading is allowed)
    arguments of read_file: {"path":"src/parser.rs"}
    read_file src/parser.rs ... ok 2 ms (3 lines)
    arguments of grep: {"path":"src","pattern":"fn main"}
    grep "fn main" src ... ok 2 ms (src/main.rs:1: fn main())
    arguments of run_command: {"command":"cargo test\n --workspace"}
    run_command cargo test --workspace ... failed 8.2 s: the command ended with exit status: 101
    looked back, replan: The tests fail.
    turn 2
    asked again in 3 s: overloaded (attempt 2)
    model answered: 4.0k in (2.0k cached), 200 out, $0.0101, 500 ms
    arguments of delegate: {"agent_name":"investigator","task":"find out why"}
    arguments of delegate: {"agent_name":"investigator","task":"find out why"}
    [investigator] begins: Find out why the parser takes 0 for nothing.
    [investigator 2] begins: Find the test that expects it.
    [investigator] turn 1
    [investigator 2] arguments of grep: {"path":"tests","pattern":"nothing"}
    [investigator 2] grep nothing tests ... ok 14 ms (tests/a.rs:3: x)
    [investigator] arguments of grep: {"pattern":"== 0"}
    [investigator] grep == 0 ... ok 14 ms (2 lines)
    [investigator] done, 1 turn, 1.1k tokens, $0.0020, 990 ms
    delegate investigator ... ok 1.0 s
    [investigator 2] did not complete its task (loop), 2.1k tokens, $0.0030, 1.9 s
    delegate investigator ... failed 2.0 s: the agent got stuck
    turn 3
    arguments of edit_file: {"old_string":"==","path":"src/parser.rs"}
    edit_file src/parser.rs asks: it changes files
    approved edit_file
    edit_file src/parser.rs ... ok 3 ms (+1 -1)
      --- a/src/parser.rs
      +++ b/src/parser.rs
      @@ -1,2 +1,2 @@
      -    if n == 0 {
      +    if n < 0 {
           }
    arguments of delete_file: {"path":"/etc/passwd"}
    delete_file /etc/passwd ... denied: `/etc/passwd` lies outside
    summed up the conversation: 84.0k to 12.4k tokens
    warning: grep was called 3 times with the same answer
    warning: 80 % of the turns are used
    warning: the file `AGENTS.md` is very long
    error: the disk is nearly full
    warning: server files failed: it ended
    turn 4
    model answered: 4.0k in (2.0k cached), 200 out, $0.0101, 2.4 s
    4 turns, 5 calls, 15.0k in (7.5k cached), 800 out, $0.0353, 21.0 s
    warning: 1 of 2 agents did not complete: loop
    "#);
}

#[test]
fn what_a_person_types_stands_below_everything_and_is_gone_at_the_end() {
    let mut output = terminal();
    let mut view = View::text(&output, Detail::Usual);
    let events = run();
    let (first, rest) = events.split_at(events.len() / 2);
    for event in first {
        view.event(event);
        view.typed(vec!["the docs too".into()], "and th");
    }
    let shown = seen_on(&output).text();
    assert!(shown.ends_with("\n  queued: the docs too\n› and th"), "{shown}");
    view.heard("the docs too");
    view.typed(Vec::new(), "and then");
    told(rest, &mut view);
    view.finish(&mut output);
    let seen = seen_on(&output);
    let shown = seen.text();
    assert!(seen.is_clean());
    assert!(shown.contains("\n\n› the docs too\n"), "{shown}");
    assert!(!shown.contains("queued") && !shown.contains("and th"), "{shown}");
}

#[test]
fn a_terminal_keeps_what_ended_and_then_the_answer() {
    let mut output = terminal();
    let mut view = View::text(&output, Detail::Usual);
    told(&run(), &mut view);
    view.finish(&mut output);
    let seen = seen_on(&output);
    assert!(seen.is_clean());
    assert_snapshot!(seen.text(), @r#"
    · plan of 3 steps
        1. read_file src/parser.rs
        2. investigator
        3. answer

    I read the sources first. Then the tests.

    ✓ read_file src/parser.rs  3 lines · 2 ms
    ✓ grep "fn main" src  src/main.rs:1: fn main() · 2 ms
    ✗ run_command cargo test --workspace  8.2 s
        the command ended with exit status: 101
    · looked back, replan: The tests fail.
    ▸ investigator  Find out why the parser takes 0 for nothing.
    ▸ investigator 2  Find the test that expects it.
      ✓ grep nothing tests  tests/a.rs:3: x · 14 ms
    ▸ investigator
      ✓ grep == 0  2 lines · 14 ms
    ✓ investigator  1 turn · 1.1k tokens · $0.0020 · 990 ms
    ✗ investigator 2  loop · 2.1k tokens · $0.0030 · 1.9 s
    ✓ edit_file src/parser.rs  +1 -1 · 3 ms
        @@ -1,2 +1,2 @@
        -    if n == 0 {
        +    if n < 0 {
             }
    ⊘ delete_file /etc/passwd  denied
        `/etc/passwd` lies outside
    · summed up the conversation: 84.0k to 12.4k tokens
    warning: grep was called 3 times with the same answer
    warning: 80 % of the turns are used
    warning: the file `AGENTS.md` is very long
    error: the disk is nearly full
    warning: server files failed: it ended

    ## What I did

    Two things were wrong, and **both** are fixed:

    • the parser took `0` for *nothing*
    • a test expected that

    Run `cargo test` to see.

    4 turns · 5 calls · 15.0k in (7.5k cached) · 800 out · $0.0353 · 21.0 s
    warning: 1 of 2 agents did not complete: loop
    "#);
}

#[test]
fn a_verbose_terminal_keeps_more() {
    let mut output = terminal();
    let mut view = View::text(&output, Detail::Verbose);
    told(&run(), &mut view);
    view.finish(&mut output);
    let text = seen_on(&output).text();
    for said in
        ["thought", "The tests come first.", "\"command\":", "policy: allow", "model answered"]
    {
        assert!(text.contains(said), "{said}: {text}");
    }
}

#[test]
fn colours_tell_apart_what_words_tell_apart() {
    let events = Story::default()
        .started()
        .works(0, "c1", "read_file", json!({ "path": "a" }), "x")
        .main(1, None, "warning", json!({ "message": "careful" }))
        .ended(9, "goal", Some(json!("# Done")))
        .events;
    let stream = Stream::on_terminal(SIZE.columns).with_screen(screen);
    let mut output = Output::of(stream.clone(), stream.clone());
    let mut view = View::text(&output, Detail::Usual);
    told(&events[..2], &mut view);
    assert_snapshot!(stream.contents().replace('\u{1b}', "^").replace('\r', "^M"), @"
    ^[2m0 ms^[0m^[K
    ^[J
    ");
    told(&events[2..], &mut view);
    let before = stream.contents().len();
    view.finish(&mut output);
    assert_snapshot!(stream.contents()[before..].replace('\u{1b}', "^").replace('\r', "^M"), @"
    ^M^[1A^[J^[32m✓^[0m^[1m read_file^[0m a^[2m  x^[0m^[2m · 2 ms^[0m
    ^[1m^[33mwarning: ^[0mcareful

    ^[1m^[4mDone^[0m

    ^[2m0 turns · 1 call · 9 ms^[0m
    ");

    let log = Output::of(Stream::in_memory(), Stream::on_terminal(80));
    told(&events, &mut View::text(&log, Detail::Usual));
    assert_snapshot!(log.err.contents().replace('\u{1b}', "^").replace('\r', "^M"), @"
    read_file a … ^[32mok^[0m 2 ms (x)
    ^[1m^[33mwarning:^[0m careful
    ");
}

/// Returns what stands on the terminal after the first events, at this time.
fn glimpse(events: &[Event], now: i64) -> String {
    let output = terminal();
    let mut view = View::text(&output, Detail::Usual);
    told(events, &mut view);
    view.tick_at(Timestamp::from_millis(now));
    seen_on(&output).text()
}

#[test]
fn what_runs_is_shown_below_what_ended() {
    let story = Story::default()
        .started()
        .main(1000, None, "turn_started", json!({ "turn": 1 }))
        .main(1000, None, "model_request", json!({ "model": "m", "purpose": "main" }));
    assert_snapshot!(glimpse(&story.events, 2500), @"
    ⠴ waiting for the model  1.5 s
    turn 1 · 2.5 s
    ");
    let story = story.main(2600, None, "model_thought", json!({ "text": "hmm\nlet me see" }));
    assert_snapshot!(glimpse(&story.events, 3100), @"
    ⠙ thinking  2.1 s
    turn 1 · 3.1 s
    ");
    let story =
        story.main(3000, None, "model_delta", json!({ "text": "First.\n\nI look at `src" }));
    assert_snapshot!(glimpse(&story.events, 3100), @"
    First.

    I look at `src
    ⠙ writing  2.1 s
    turn 1 · 3.1 s
    ");
    let story =
        story.main(3200, None, "model_tool_call", json!({ "toolName": "run_command" })).main(
            3300,
            None,
            "model_retry",
            json!({ "attempt": 2, "delayMs": 3000, "reason": "overloaded" }),
        );
    assert_snapshot!(glimpse(&story.events, 4000), @"
    First.

    I look at `src
    ⠋ asked again in 3 s: overloaded (attempt 2)
    turn 1 · 4.0 s
    ");
    let story = story
        .answers(7000, "", &[("c1", "run_command", json!({ "command": "cargo test" }))])
        .requests(7000, "c1", "run_command", json!({ "command": "cargo test" }))
        .main(7000, Some("c1"), "tool_call_started", story::begun("run_command"))
        .main(7100, Some("c1"), "tool_call_progress", json!({
            "toolName": "run_command", "text": "   Compiling a v1\n   Compiling b\u{1b}[31m v1\n", "fraction": 0.4,
        }))
        .requests(7100, "c2", "write_file", json!({ "path": "a.txt", "content": "x" }))
        .main(7200, Some("c2"), "approval_asked", json!({
            "toolName": "write_file", "kind": "edit", "description": "writes", "reason": "it changes files",
        }))
        .requests(7100, "c3", "ls", json!({}))
        .child(7200, "k1", "digger", None, "run_started", json!({ "task": "t", "prompt": "dig" }))
        .child(7300, "k1", "digger", Some("d1"), "tool_call_requested", json!({
            "toolName": "grep", "params": { "pattern": "fn main", "path": "src" },
        }))
        .child(7300, "k2", "digger", None, "run_started", json!({ "task": "t", "prompt": "dig deeper" }));
    assert_snapshot!(glimpse(&story.events, 9000), @r#"
    First.

    I look at `src

    ▸ digger  dig
    ▸ digger 2  dig deeper
    ⠋ run_command cargo test  40 % · 2.0 s
        Compiling b\u{1b}[31m v1
    ? write_file a.txt  waits for your answer
    ◦ ls  waits
    ⠋ digger  grep "fn main" src  1.8 s
    ⠋ digger 2  dig deeper  1.7 s
    turn 1 · 4.2k tokens · $0.0101 · 9.0 s
    "#);
}

#[test]
fn the_region_never_leaves_the_screen_and_stays_narrow() {
    fn tiny() -> Size {
        Size { columns: 24, rows: 5 }
    }
    let stream = Stream::on_terminal(24).without_unicode().with_screen(tiny);
    let mut output = Output::of(stream.clone(), stream.clone());
    let mut view = View::text(&output, Detail::Usual);
    let mut seen = Terminal::new(tiny());
    let mut written = 0;
    let mut story = Story::default().started();
    for call in 0..40 {
        let id = format!("c{call}");
        let command = format!("echo {} 漢字", "long ".repeat(10));
        story = story.requests(100 * call, &id, "run_command", json!({ "command": command })).main(
            100 * call,
            Some(&id),
            "tool_call_started",
            story::begun("run_command"),
        );
    }
    for event in &story.events {
        view.event(event);
        let all = stream.contents();
        seen.write(&all[written..]);
        written = all.len();
        assert!(seen.is_clean());
    }
    assert_snapshot!(seen.text(), @r#"
    \ run_command...  3.9 s
    ... 39 more
    3.9 s
    "#);
    view.finish(&mut output);
    seen.write(&stream.contents()[written..]);
    assert_eq!(seen.text(), "");
}

#[test]
fn a_question_is_asked_on_a_clean_line_and_the_rest_waits() {
    let output = terminal();
    let mut view = View::text(&output, Detail::Usual);
    let events = run();
    assert!(view.is_live());
    told(&events[..12], &mut view);
    view.pause();
    let before = output.err.contents();
    let mut seen = Terminal::new(SIZE);
    seen.write(&before);
    assert!(seen.is_clean(), "{}", seen.text());
    told(&events[12..20], &mut view);
    view.tick();
    assert_eq!(output.err.contents(), before);
    view.go_on();
    view.tick_at(Timestamp::from_millis(60_000));
    assert!(output.err.contents().len() > before.len());
}

#[test]
fn a_view_that_breaks_off_leaves_a_clean_terminal() {
    let output = terminal();
    let mut view = View::text(&output, Detail::Usual);
    told(&run()[..15], &mut view);
    drop(view);
    let seen = seen_on(&output);
    assert!(seen.is_clean() && !seen.text().contains("turn 1 ·"), "{}", seen.text());
}

#[test]
fn a_terminal_that_becomes_narrower_breaks_the_lines_that_are_there() {
    use std::sync::atomic::{AtomicUsize, Ordering};
    static COLUMNS: AtomicUsize = AtomicUsize::new(72);
    fn changing() -> Size {
        Size { columns: COLUMNS.load(Ordering::Relaxed), rows: 24 }
    }
    let stream = Stream::on_terminal(72).without_colour().with_screen(changing);
    let output = Output::of(stream.clone(), stream.clone());
    let mut view = View::text(&output, Detail::Usual);
    let story =
        Story::default().started().requests(0, "c", "grep", json!({ "pattern": "x".repeat(60) }));
    told(&story.events, &mut view);
    view.tick_at(Timestamp::from_millis(1000));
    let before = stream.contents().len();
    COLUMNS.store(36, Ordering::Relaxed);
    view.tick_at(Timestamp::from_millis(2000));
    // The call took two rows after the change, and the numbers one.
    assert!(
        stream.contents()[before..].starts_with("\r\u{1b}[3A"),
        "{:?}",
        &stream.contents()[before..]
    );
}

#[test]
fn frames_are_at_least_a_tenth_of_a_second_apart() {
    let output = terminal();
    let mut view = View::text(&output, Detail::Usual);
    told(&Story::default().started().events, &mut view);
    view.tick_at(Timestamp::from_millis(1000));
    let first = output.err.contents();
    view.tick_at(Timestamp::from_millis(1099));
    assert_eq!(output.err.contents(), first);
    view.tick_at(Timestamp::from_millis(1100));
    assert_ne!(output.err.contents(), first);
}

#[test]
fn a_pipe_gets_the_answer_alone_and_the_terminal_the_rest() {
    let err = Stream::on_terminal(72).without_colour().with_screen(screen);
    let mut output = Output::of(Stream::in_memory(), err);
    let mut view = View::text(&output, Detail::Usual);
    told(&run(), &mut view);
    view.finish(&mut output);
    assert_eq!(output.out.contents(), story::ANSWER);
    let seen = seen_on(&output);
    assert!(seen.text().contains("I read the sources first."), "{}", seen.text());
    assert!(!seen.text().contains("Two things were wrong"), "{}", seen.text());
}

#[test]
fn an_answer_that_is_data_is_printed_as_data() {
    let events = Story::default()
        .started()
        .ended(9000, "goal", Some(json!({ "files": ["a\u{9b}"] })))
        .events;
    assert_eq!(log(&events, Detail::Usual).0, "{\n  \"files\": [\n    \"a\u{9b}\"\n  ]\n}\n");
    let mut output = terminal();
    let mut view = View::text(&output, Detail::Usual);
    told(&events, &mut view);
    view.finish(&mut output);
    assert!(output.out.contents().contains("a\\u{9b}"), "{}", output.out.contents());
}

#[test]
fn an_answer_that_was_not_streamed_is_shown_all_the_same() {
    let events = Story::default().started().ended(9000, "goal", Some(json!("**Done**"))).events;
    let mut output = terminal();
    let mut view = View::text(&output, Detail::Usual);
    told(&events, &mut view);
    view.finish(&mut output);
    let seen = seen_on(&output);
    assert_snapshot!(seen.text(), @"
    **Done**

    0 turns · 9.0 s
    ");
}

#[test]
fn programs_get_every_event_on_a_line_or_one_object() {
    let mut output = Output::in_memory();
    let events = run();
    let mut view = View::stream_json(&output);
    told(&events, &mut view);
    view.finish(&mut output);
    let lines = output.out.contents();
    let (lines, last) = lines.trim_end().rsplit_once('\n').unwrap();
    let read: Vec<Event> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(read, events);
    let last: Value = serde_json::from_str(last).unwrap();
    assert!(!output.err.contents().contains(" ok "), "{}", output.err.contents());

    let mut output = Output::in_memory();
    let mut view = View::json(&output, Detail::Usual);
    told(&events, &mut view);
    view.finish(&mut output);
    let report: Value = serde_json::from_str(&output.out.contents()).unwrap();
    assert_eq!(
        report,
        json!({
            "type": "report",
            "status": "completed", "cause": "goal", "recovered": false, "answer": story::ANSWER,
            "warnings": [
                "the file `AGENTS.md` is very long",
                "1 of 2 agents did not complete: loop",
            ],
            "agents": [
                {
                    "agent": "investigator", "run": "k-1", "status": "completed", "cause": "goal",
                    "turns": 1, "durationMs": 990,
                    "usage": {
                        "inputTokens": 1_000, "cachedTokens": 500, "cacheWriteTokens": 0,
                        "outputTokens": 100, "thoughtTokens": 0, "cost": "0.002",
                    },
                },
                {
                    "agent": "investigator 2", "run": "k-2", "status": "stuck", "cause": "loop",
                    "turns": 0, "durationMs": 1_980,
                    "usage": {
                        "inputTokens": 2_000, "cachedTokens": 1_000, "cacheWriteTokens": 0,
                        "outputTokens": 100, "thoughtTokens": 0, "cost": "0.003",
                    },
                },
            ],
            "usage": {
                "inputTokens": 15_000, "cachedTokens": 7_500, "cacheWriteTokens": 0,
                "outputTokens": 800, "thoughtTokens": 0, "cost": "0.0353",
            },
            "turns": 4, "toolCalls": 5, "durationMs": 21_010, "model": "acme/large", "run": "r-1",
            "exitCode": 0,
        })
    );
    assert_eq!(last, report, "the last line says what the one object says");
}

#[test]
fn a_model_that_breaks_off_leaves_what_it_said_in_sight() {
    let failed = json!({
        "purpose": "main", "cause": "model_unavailable", "error": "cut", "status": 502,
        "message": "acme: the connection was cut", "hint": "try again", "partial": "Half an\nanswer",
    });
    let outcome = json!({
        "status": "failed", "cause": "model_unavailable", "partial": "Half an\nanswer",
        "message": "acme: the connection was cut (try again)",
    });
    let events = Story::default()
        .started()
        .main(1000, None, "model_request", json!({ "model": "acme/large", "purpose": "main" }))
        .main(1100, None, "model_delta", json!({ "text": "Half an\nanswer" }))
        .main(1200, None, "model_failed", failed)
        .main(
            1300,
            None,
            "run_ended",
            json!({
                "outcome": outcome, "usage": story::usage(10, 5, "0.5"),
            }),
        )
        .events;
    for detail in [Detail::Quiet, Detail::Usual] {
        let (out, err) = log(&events, detail);
        assert_eq!(out, "", "it is no answer");
        assert!(
            err.contains("what was said until then:\n  Half an\n  answer\n"),
            "{detail:?}: {err}"
        );
    }
    let mut output = Output::in_memory();
    let mut view = View::json(&output, Detail::Usual);
    told(&events, &mut view);
    view.finish(&mut output);
    let report: Value = serde_json::from_str(&output.out.contents()).unwrap();
    assert_eq!(
        report["error"],
        json!({
            "kind": "cut", "provider": "acme", "status": 502, "hint": "try again",
            "message": "acme: the connection was cut",
        })
    );
    assert_eq!(report["partial"], "Half an\nanswer");

    let mut output = terminal();
    let mut view = View::text(&output, Detail::Usual);
    told(&events, &mut view);
    view.finish(&mut output);
    let seen = seen_on(&output);
    assert_eq!(
        seen.text().matches("Half an").count(),
        1,
        "it stands there already: {}",
        seen.text()
    );
}

#[test]
fn a_run_that_was_stopped_says_so_and_keeps_what_there_was() {
    let mut outcome = json!({ "status": "limited", "cause": "max_turns", "recovered": true });
    outcome["partial"] = json!("half");
    let events = Story::default()
        .started()
        .main(1000, None, "turn_started", json!({ "turn": 30 }))
        .main(
            2000,
            None,
            "run_ended",
            json!({
                "outcome": outcome, "answer": "what I know", "usage": story::usage(10, 5, "0.5"),
            }),
        )
        .events;
    let (out, err) = log(&events, Detail::Quiet);
    assert_eq!(out, "what I know\n");
    assert_snapshot!(err, @"
    error: stopped after 30 turns (max_turns); a last answer was recovered
    hint: `--max-turns 60` lets it go on for longer
    ");
}

#[test]
fn nothing_hostile_reaches_a_terminal() {
    let evil = "x\u{1b}[2J\u{9b}H\u{7}\u{202e}y\r";
    let text = serde_json::to_string(&run()).unwrap();
    // The same run, with every text of it hostile at its end.
    let mut value: Value = serde_json::from_str(&text).unwrap();
    poison(&mut value, evil);
    let events: Vec<Event> = serde_json::from_value(value).unwrap();
    for detail in [Detail::Quiet, Detail::Usual, Detail::Verbose] {
        let mut output = terminal();
        let mut view = View::text(&output, detail);
        told(&events, &mut view);
        view.finish(&mut output);
        // The terminal refuses whatever the view does not need.
        assert!(!seen_on(&output).text().contains('\u{202e}'));
        let (_, err) = log(&events, detail);
        assert!(!err.contains(|letter: char| letter.is_control() && letter != '\n'), "{err:?}");
    }
}

/// Adds something to every text that is free to be anything.
fn poison(value: &mut Value, evil: &str) {
    const FIXED: &[&str] = &[
        "type",
        "cause",
        "status",
        "purpose",
        "kind",
        "verdict",
        "actionType",
        "budget",
        "stop",
        "role",
        "cost",
        "turns",
        "v",
        "run",
        "child",
        "parent",
        "format",
        "agent",
        "call",
        "ending",
        "strategy",
        "reflection",
        "repeat",
        "rescue",
        "id",
        "settings",
    ];
    match value {
        Value::String(text) => text.push_str(evil),
        Value::Array(items) => items.iter_mut().for_each(|item| poison(item, evil)),
        Value::Object(fields) => {
            let free = fields.iter_mut().filter(|(name, _)| !FIXED.contains(&name.as_str()));
            free.for_each(|(_, field)| poison(field, evil));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
