//! `convoke chat` and `convoke` alone: a person at a terminal, or a pipe.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::sync::mpsc;
use std::time::Duration;

use convoke_testkit::{Failure, ModelServer, Reaction, Reply};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::pty::pair;
use crate::screen::Session;
use crate::support::{Scene, skip};
use crate::waiting::python;

const MODEL: &[&str] = &["chat", "--model", "openai-chat/some-model"];
const CTRL_C: &str = "\u{3}";
const CTRL_D: &str = "\u{4}";
const CTRL_R: &str = "\u{12}";
const UP: &str = "\u{1b}[A";

/// A model that says what the script says, and a project to talk about.
struct World {
    _threads: Runtime,
    server: ModelServer,
    scene: Scene,
}

impl World {
    fn new(script: Vec<Reaction>) -> Self {
        let threads = Runtime::new().unwrap();
        let server = threads.block_on(ModelServer::start(script)).unwrap();
        let scene = Scene::new()
            .variable("OPENAI_API_KEY", "sk-secret-word")
            .variable("OPENAI_BASE_URL", &format!("{}/v1", server.url()))
            .file("a.txt", "hello world\n");
        Self { _threads: threads, server, scene }
    }

    /// Starts a chat on a terminal, and waits for the prompt.
    fn chat(&self, flags: &[&str]) -> Option<Session> {
        let session = Session::start(&self.scene, &[MODEL, flags].concat())?;
        session.wait_for_prompt();
        Some(session)
    }

    /// What the model was told in the last request: the words of each message.
    fn last_request(&self) -> Vec<String> {
        let request = self.server.requests().pop().unwrap();
        let body: Value = serde_json::from_slice(&request.body).unwrap();
        let words = |message: &Value| match &message["content"] {
            Value::Array(parts) => parts
                .iter()
                .filter_map(|part| part["text"].as_str())
                .collect::<Vec<_>>()
                .join("\n\n"),
            content => content.as_str().unwrap_or_default().to_owned(),
        };
        body["messages"].as_array().unwrap().iter().skip(1).map(words).collect()
    }
}

fn say(text: &str) -> Reaction {
    Reply::text(text).into()
}

fn edit() -> Reaction {
    let arguments = json!({ "path": "a.txt", "old_string": "hello", "new_string": "bye" });
    Reply::default().call("edit_file", arguments).into()
}

#[test]
fn a_message_is_answered_and_the_next_one_goes_on_from_there() {
    let world = World::new(vec![say("The **first** answer."), say("The second one.")]);
    let Some(mut chat) = world.chat(&[]) else { return };
    let banner = chat.wait_for("Ctrl-D leaves");
    assert!(banner.contains("openai-chat/some-model · ~/project · mode default"), "{banner}");
    chat.type_in("What is it?\r");
    chat.wait_for("The first answer.");
    chat.wait_for("1 turn · 100 in · 20 out");
    chat.wait_for_prompt();
    chat.type_in("And then?\r");
    chat.wait_for("The second one.");
    let shown = chat.wait_for_prompt();
    assert_eq!(shown.matches("1 turn · 100 in · 20 out").count(), 2, "each by itself: {shown}");
    chat.type_in(CTRL_D);
    assert_eq!(chat.end().1, Some(0));
    let said = world.last_request();
    assert_eq!(said, ["What is it?", "The **first** answer.", "And then?"]);
}

#[test]
fn the_command_alone_opens_a_chat() {
    let world = World::new(vec![say("Hello.")]);
    let scene = world.scene.user("model: {default: openai-chat/some-model}\n");
    let Some(mut chat) = Session::start(&scene, &[]) else { return };
    chat.wait_for_prompt();
    chat.type_in("Hi\r");
    chat.wait_for("Hello.");
    chat.wait_for_prompt();
    chat.type_in("/quit\r");
    assert_eq!(chat.end().1, Some(0));
}

#[test]
fn what_was_said_is_remembered_by_the_next_chat_and_by_nobody_else() {
    let world = World::new(vec![say("One."), say("Two."), say("Three.")]);
    let Some(mut chat) = world.chat(&[]) else { return };
    chat.type_in("remember me\r");
    chat.wait_for("One.");
    chat.wait_for_prompt();
    chat.type_in(CTRL_D);
    assert_eq!(chat.end().1, Some(0));
    let history = world.scene.root().join("home/.local/state/convoke/history");
    assert_eq!(fs::read_to_string(&history).unwrap(), "remember me\n");
    assert_eq!(history.metadata().unwrap().permissions().mode() & 0o777, 0o600);

    let Some(mut chat) = world.chat(&[]) else { return };
    chat.type_in(UP);
    chat.wait_for("› remember me");
    chat.type_in("\r");
    chat.wait_for("Two.");
    chat.wait_for_prompt();
    chat.type_in(CTRL_R);
    chat.wait_for("search");
    chat.type_in("memb");
    chat.wait_for("search `memb` › remember me");
    chat.type_in("\r\r");
    chat.wait_for("Three.");
    assert_eq!(world.last_request(), ["remember me", "Two.", "remember me"]);
}

#[test]
fn a_pasted_text_is_one_message() {
    let world = World::new(vec![say("I see."), say("I do.")]);
    let Some(mut chat) = world.chat(&[]) else { return };
    chat.paste("one\ntwo \\\nthree");
    let shown = chat.wait_for("three");
    assert!(shown.ends_with("› one\n  two \\\n  three"), "{shown}");
    assert_eq!(world.server.requests().len(), 0, "nothing is sent before Enter");
    chat.type_in("\r");
    chat.wait_for("I see.");
    assert_eq!(world.last_request(), ["one\ntwo \\\nthree"]);
    chat.wait_for_prompt();
    chat.type_in("four\\\rfive\u{1b}\rsix\r");
    chat.wait_for("I do.");
    assert_eq!(world.last_request()[2], "four\nfive\nsix");
}

#[test]
fn an_interrupt_stops_the_answer_and_the_chat_goes_on() {
    let world = World::new(vec![Reaction::silent(), say("Here I am.")]);
    let Some(mut chat) = world.chat(&[]) else { return };
    chat.type_in("Are you there?\r");
    chat.wait_for("turn 1");
    chat.type_in(CTRL_C);
    chat.wait_for("interrupted; the conversation goes on with your next message");
    let shown = chat.wait_for_prompt();
    assert!(!shown.contains("error:"), "{shown}");
    chat.type_in("Hello?\r");
    chat.wait_for("Here I am.");
    assert_eq!(world.last_request(), ["Are you there?", "Hello?"]);
}

#[test]
fn an_interrupt_clears_the_line_and_a_second_one_leaves() {
    let world = World::new(vec![say("Yes.")]);
    let Some(mut chat) = world.chat(&[]) else { return };
    chat.type_in("never mi");
    chat.wait_for("never mi");
    chat.type_in(CTRL_C);
    chat.wait_for("Ctrl-C again to leave");
    chat.wait_for_prompt();
    chat.type_in("Sure?\r");
    chat.wait_for("Yes.");
    assert_eq!(world.last_request(), ["Sure?"]);
    chat.wait_for_prompt();
    chat.type_in(CTRL_C);
    chat.wait_until("the second remark", |text| text.matches("again to leave").count() == 2);
    chat.wait_for_prompt();
    chat.type_in(CTRL_C);
    assert_eq!(chat.end().1, Some(0));
}

#[test]
fn the_end_of_the_system_is_the_end_and_the_terminal_is_given_back() {
    for at_work in [false, true] {
        let world = World::new(vec![Reaction::silent()]);
        let Some(mut chat) = world.chat(&[]) else { return };
        if at_work {
            chat.type_in("Go.\r");
            chat.wait_for("turn 1");
        }
        chat.signal(Signal::TERM);
        chat.wait_until("the end", |_| chat.is_as_before());
        assert_eq!(chat.end().1, Some(143), "at work: {at_work}");
    }
}

/// The editor once went on reading from a terminal that was gone, as fast as it could and for ever.
#[test]
fn a_terminal_that_is_closed_ends_the_chat() {
    let world = World::new(Vec::new());
    for how in ["--ctty", "--wait"] {
        let (master, user) = pair(80, 40);
        let words = ["setsid", how, env!("CARGO_BIN_EXE_convoke")];
        let mut command = world.scene.program(&[&words[..], MODEL].concat());
        command.stdin(user.try_clone().unwrap()).stdout(user.try_clone().unwrap()).stderr(user);
        let Ok(mut child) = command.env("TERM", "xterm").spawn() else {
            return skip("a controlling terminal", "setsid cannot be started");
        };
        drop(command);
        let mut terminal = fs::File::from(master);
        let (mut seen, mut byte) = (Vec::new(), [0]);
        while !seen.ends_with(b"\x1b[6n") {
            terminal.read_exact(&mut byte).unwrap();
            seen.push(byte[0]);
        }
        terminal.write_all(b"\x1b[4;1R").unwrap();
        while !seen.ends_with(b"> ") {
            terminal.read_exact(&mut byte).unwrap();
            seen.push(byte[0]);
        }
        drop(terminal);
        let (ended, end) = mpsc::channel();
        let id = Pid::from_child(&child);
        std::thread::spawn(move || ended.send(child.wait().unwrap().code()));
        let code = end.recv_timeout(Duration::from_mins(1));
        if code.is_err() {
            kill_process(id, Signal::KILL).unwrap();
        }
        assert_eq!(code, Ok(Some(143)), "{how}");
    }
}

#[test]
fn a_change_is_asked_about_with_its_diff() {
    for (answer, expected) in [("y\r", "bye world\n"), ("n\r", "hello world\n")] {
        let world = World::new(vec![edit(), say("Well then.")]);
        let Some(mut chat) = world.chat(&[]) else { return };
        chat.type_in("Change it.\r");
        let asked = chat.wait_for_question();
        assert!(asked.contains("  -hello world\n  +bye world\n"), "{asked}");
        assert!(chat.is_as_before(), "the question is answered in a line");
        chat.type_in(answer);
        chat.wait_for("Well then.");
        let shown = chat.wait_for_prompt();
        assert!(!shown.contains("error:"), "whoever said no knows it: {shown}");
        assert_eq!(world.scene.read("a.txt"), expected, "{answer:?}");
    }
}

/// The question once went on reading from the terminal, and took away what was typed next.
#[test]
fn a_question_that_was_interrupted_takes_nothing_away() {
    let world = World::new(vec![edit(), say("Then not.")]);
    let Some(mut chat) = world.chat(&[]) else { return };
    chat.type_in("Change it.\r");
    chat.wait_for_question();
    chat.type_in(CTRL_C);
    chat.wait_for("interrupted;");
    chat.wait_for_prompt();
    chat.type_in("Leave it as it is.\r");
    chat.wait_for("Then not.");
    assert_eq!(world.last_request().last().unwrap(), "Leave it as it is.");
    assert_eq!(world.scene.read("a.txt"), "hello world\n");
}

#[test]
fn always_is_for_the_whole_chat() {
    let back = json!({ "path": "a.txt", "old_string": "bye", "new_string": "hello" });
    let back = Reply::default().call("edit_file", back).into();
    let world = World::new(vec![edit(), say("Done."), back, say("Done again.")]);
    let Some(mut chat) = world.chat(&[]) else { return };
    chat.type_in("Change it.\r");
    chat.wait_for_question();
    chat.type_in("a\r");
    chat.wait_for("Done.");
    chat.wait_for_prompt();
    chat.type_in("Change it back.\r");
    chat.wait_for("Done again.");
    assert_eq!(world.scene.read("a.txt"), "hello world\n");
}

#[test]
fn what_is_typed_while_it_works_is_heard_at_the_next_turn() {
    let wait = json!({ "command": "until [ -e go ]; do :; done" });
    let world =
        World::new(vec![Reply::default().call("run_command", wait).into(), say("All of it.")]);
    let Some(mut chat) = world.chat(&["--mode", "full"]) else { return };
    chat.type_in("Work.\r");
    chat.wait_for("run_command");
    chat.wait_until("the place to type", |text| text.ends_with("s\n›"));
    chat.type_in("More to do.");
    chat.wait_for("› More to do.");
    chat.resize(60);
    chat.type_in("\r");
    chat.wait_for("queued: More to do.");
    chat.type_in("/usage\r");
    chat.wait_for("queued: /usage");
    chat.type_in("a dra");
    fs::write(world.scene.project().join("go"), "").unwrap();
    chat.wait_for("All of it.");
    let shown = chat.wait_for("the conversation is about");
    assert!(shown.contains("\n› More to do.\n"), "where it was taken in: {shown}");
    assert!(shown.contains("\n› /usage\n"), "what is done is said: {shown}");
    assert!(!shown.contains("queued"), "{shown}");
    chat.type_in("ft");
    chat.wait_for("› a draft");
    assert_eq!(world.last_request().last().unwrap(), "More to do.");
    assert_eq!(world.server.requests().len(), 2);
}

#[test]
fn what_waits_is_given_back_when_the_answer_is_stopped() {
    let world = World::new(vec![Reaction::silent(), say("Fine.")]);
    let Some(mut chat) = world.chat(&[]) else { return };
    chat.type_in("Go.\r");
    chat.wait_for("turn 1");
    chat.type_in("/usage\rand");
    chat.wait_for("› and");
    chat.type_in(CTRL_C);
    chat.wait_for("interrupted;");
    let shown = chat.wait_until("what was typed", |text| text.ends_with("› /usage\n  and"));
    assert!(!shown.contains("window"), "nothing was done with it: {shown}");
}

#[test]
fn commands_of_the_chat_are_answered_by_the_chat() {
    let world = World::new(vec![say("Hello."), say("It is me.")]);
    let Some(mut chat) = world.chat(&[]) else { return };
    let ask = |chat: &mut Session, line: &str, answer: &str| {
        chat.type_in(&format!("{line}\r"));
        chat.wait_for(answer);
        chat.wait_for_prompt()
    };
    ask(&mut chat, "/help", "/export [FILE]  Write the conversation to a file");
    ask(&mut chat, "/tools", "run_command  ask");
    ask(&mut chat, "/mode plan", "mode plan from now on");
    ask(&mut chat, "/clear", "this is a new conversation");
    ask(&mut chat, "/tools", "run_command  deny");
    ask(&mut chat, "/agents", "codebase_investigator");
    ask(&mut chat, "/usage", "nothing was used yet");
    ask(&mut chat, "/compact", "there is nothing to sum up yet");
    ask(&mut chat, "/export", "nothing was said yet");
    ask(&mut chat, "/resume", "there is no earlier conversation");
    ask(&mut chat, "/hepl", "there is no command `/hepl`; did you mean `/help`?");
    assert_eq!(world.server.requests().len(), 0);
    ask(&mut chat, "//help me", "Hello.");
    assert_eq!(world.last_request(), ["/help me"]);
    ask(&mut chat, "/usage", "1 turn · 100 in · 20 out · the price is not known");
    ask(&mut chat, "/fork 99", "so there is no event 99");
    ask(&mut chat, "/model", "openai-chat/some-model is asked");
    ask(&mut chat, "/model nonsense/model", "error: ");
    ask(&mut chat, "/model openai-chat/other", "openai-chat/other is asked from now on");
    ask(&mut chat, "Who are you?", "It is me.");
    let request = world.server.requests().pop().unwrap();
    let body: Value = serde_json::from_slice(&request.body).unwrap();
    assert_eq!(body["model"], "other");
    chat.type_in("/exit\r");
    assert_eq!(chat.end().1, Some(0));
}

#[test]
fn a_conversation_is_kept_and_taken_up_again() {
    let world = World::new(vec![say("Noted."), say("It was 7."), say("Still 7."), say("8, here.")]);
    let Some(mut chat) = world.chat(&[]) else { return };
    chat.type_in("Remember 7.\r");
    chat.wait_for("Noted.");
    chat.wait_for_prompt();
    chat.type_in(CTRL_D);
    assert_eq!(chat.end().1, Some(0));

    // Another process goes on with it.
    let Some(mut chat) = world.chat(&["--last"]) else { return };
    chat.wait_for("Remember 7.");
    chat.type_in("What was it?\r");
    chat.wait_for("It was 7.");
    chat.wait_for_prompt();
    assert_eq!(world.last_request(), ["Remember 7.", "Noted.", "What was it?"]);

    // From here on there are two of them.
    chat.type_in("/fork\r");
    chat.wait_for("inherits about");
    chat.wait_for_prompt();
    chat.type_in("And now?\r");
    chat.wait_for("Still 7.");
    chat.wait_for_prompt();
    chat.type_in("/export talk.md\r");
    chat.wait_for("written to talk.md");
    chat.wait_for_prompt();
    assert!(world.scene.read("talk.md").contains("Still 7."));
    chat.type_in("/export talk.txt\r");
    chat.wait_for("a name that ends with .html, .md or .jsonl does");
    chat.wait_for_prompt();

    // The first one knows nothing of what was said in the second.
    chat.type_in("/resume\r");
    chat.wait_for_prompt();
    chat.type_in("Now 8.\r");
    chat.wait_for("8, here.");
    let said = ["Remember 7.", "Noted.", "What was it?", "It was 7.", "Now 8."];
    assert_eq!(world.last_request(), said);
    let listed = world.scene.json(&["runs", "list", "--json"]);
    let count = listed["runs"].as_array().or_else(|| listed.as_array()).unwrap().len();
    assert_eq!(count, 2, "{listed}");
}

#[test]
fn a_yes_for_always_ends_with_the_conversation() {
    let world = World::new(vec![edit(), say("Changed."), edit(), say("Not changed.")]);
    let Some(mut chat) = world.chat(&[]) else { return };
    chat.type_in("Change it.\r");
    chat.wait_for_question();
    chat.type_in("a\r");
    chat.wait_for("Changed.");
    chat.wait_for_prompt();
    chat.type_in("/clear\r");
    chat.wait_for("this is a new conversation");
    chat.wait_for_prompt();
    fs::write(world.scene.project().join("a.txt"), "hello again\n").unwrap();
    chat.type_in("Change it once more.\r");
    chat.wait_for("hello again");
    chat.wait_for_question();
    chat.type_in("n\r");
    chat.wait_for("Not changed.");
    assert_eq!(world.scene.read("a.txt"), "hello again\n");
}

#[test]
fn a_mentioned_file_is_completed_and_attached() {
    let world = World::new(vec![say("I read it.")]);
    let scene = &world.scene;
    fs::create_dir_all(scene.project().join("deep/er")).unwrap();
    fs::write(scene.project().join("deep/er/two words.txt"), "its text\n").unwrap();
    let Some(mut chat) = world.chat(&[]) else { return };
    chat.type_in("/mod\t");
    chat.wait_for("/mode   Show or change how freely it may act");
    chat.type_in(CTRL_C);
    chat.wait_for("again to leave");
    chat.wait_for_prompt();
    chat.type_in("Look at @twow\t");
    chat.wait_for("› Look at @\"deep/er/two words.txt\"");
    chat.type_in("\r");
    chat.wait_for("attached deep/er/two words.txt (9 bytes)");
    chat.wait_for("I read it.");
    let said = world.last_request();
    let file = "The file deep/er/two words.txt:\nits text\n";
    assert_eq!(said, [format!("{file}\n\nLook at @\"deep/er/two words.txt\"")]);
}

#[test]
fn a_file_that_is_not_there_is_told_before_anything_is_sent() {
    let world = World::new(vec![say("Fine.")]);
    let Some(mut chat) = world.chat(&[]) else { return };
    chat.type_in("See @b.txt!\r");
    chat.wait_for("there is no file `b.txt`");
    chat.wait_until("the message", |text| text.ends_with("\n› See @b.txt!"));
    assert_eq!(world.server.requests().len(), 0);
    chat.type_in("\u{15}Write to \\@b or me@b.org\r");
    chat.wait_for("Fine.");
    assert_eq!(world.last_request(), ["Write to @b or me@b.org"]);
}

#[test]
fn a_failure_is_told_and_the_chat_goes_on() {
    let world = World::new(vec![Reaction::failure(Failure::WrongKey), say("Back again.")]);
    let Some(mut chat) = world.chat(&["--set", "model.retries=0"]) else { return };
    chat.type_in("Hello?\r");
    chat.wait_for("(model_unavailable)");
    chat.wait_for_prompt();
    chat.type_in("Now?\r");
    chat.wait_for("Back again.");
    chat.wait_for_prompt();
    chat.type_in(CTRL_D);
    let (shown, code) = chat.end();
    assert_eq!(code, Some(0));
    assert!(!shown.contains("sk-secret-word"), "{shown}");
}

#[test]
fn a_limit_holds_for_each_message() {
    let call = || Reply::default().call("ls", json!({})).into();
    let script = vec![call(), say("So far."), call(), say("And further.")];
    let world = World::new(script);
    let Some(mut chat) = world.chat(&["--max-turns", "2"]) else { return };
    for answer in ["So far.", "And further."] {
        chat.type_in("Go on.\r");
        chat.wait_for(answer);
        let shown = chat.wait_for_prompt();
        assert!(shown.contains("stopped after 2 turns (max_turns)"), "{shown}");
        assert!(shown.contains("the limit is for each message"), "{shown}");
    }
}

#[test]
fn a_conversation_is_summed_up_when_somebody_asks_for_it() {
    let long = "A long answer. ".repeat(100);
    let world = World::new(vec![say(&long), say(&long), say("They talked."), say("Then.")]);
    let scene = &world.scene;
    let facts = "model: {facts: {\"openai-chat/*\": {window: 400}}}\n";
    fs::create_dir_all(scene.root().join("home/.config/convoke")).unwrap();
    fs::write(scene.root().join("home/.config/convoke/convoke.yml"), facts).unwrap();
    let Some(mut chat) = world.chat(&["--set", "agent.compactAt=95"]) else { return };
    for _ in 0..2 {
        chat.type_in("Talk.\r");
        chat.wait_for("1 turn · 100 in");
        chat.wait_for_prompt();
    }
    chat.type_in("/usage\r");
    chat.wait_for("the window is 30 % full: about 120 of 400 tokens");
    chat.type_in("/compact\r");
    chat.wait_for("the conversation is summed up before your next message is answered");
    chat.wait_for_prompt();
    chat.type_in("And then?\r");
    chat.wait_for("summed up the conversation");
    chat.wait_for("Then.");
    let said = world.last_request();
    assert!(said.iter().any(|words| words.contains("They talked.")), "{said:?}");
    assert_eq!(said.last().unwrap(), "And then?");
}

#[test]
fn a_plain_terminal_is_enough() {
    let world = World::new(vec![edit(), say("Done.")]);
    let Some(mut chat) = Session::start_dumb(&world.scene, MODEL) else { return };
    chat.wait_until("the prompt", |text| text.ends_with("\n>"));
    chat.type_in("Change it.\r");
    chat.wait_for_question();
    chat.type_in("y\r");
    let shown =
        chat.wait_until("the answer", |text| text.ends_with("\n>") && text.contains("Done."));
    assert!(shown.is_ascii(), "{shown}");
    assert_eq!(world.scene.read("a.txt"), "bye world\n");
    chat.type_in(CTRL_D);
    assert_eq!(chat.end().1, Some(0));
}

#[test]
fn on_a_pipe_each_line_is_a_message() {
    let world = World::new(vec![say("One."), say("Two **stars**.")]);
    let ran = world.scene.run_with(b"first\n\n/usage\nsecond @a.txt\n", MODEL);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "One.\nTwo **stars**.\n"), "{ran:?}");
    assert!(ran.stderr.contains("1 turn, 100 in, 20 out, the price is not known"), "{ran:?}");
    assert!(!ran.stderr.contains('\u{1b}') && !ran.stderr.contains("leaves"), "{ran:?}");
    let said = world.last_request();
    assert_eq!(said, ["first", "One.", "The file a.txt:\nhello world\n\n\nsecond @a.txt"]);
}

#[test]
fn on_a_pipe_the_first_failure_decides_the_exit_code() {
    let world = World::new(vec![edit(), say("I may not."), say("Two.")]);
    let ran = world.scene.run_with(b"change it\n/nonsense\nsecond\n", MODEL);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(3), "I may not.\nTwo.\n"), "{ran:?}");
    assert!(ran.stderr.contains("there is no command `/nonsense`"), "{ran:?}");
    let world = World::new(vec![say("One.")]);
    let ran = world.scene.run_with(b"first\n/quit\nnever\n", MODEL);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "One.\n"), "{ran:?}");
}

#[test]
fn files_named_on_the_command_line_go_with_the_first_message() {
    let world = World::new(vec![say("One."), say("Two.")]);
    let flags = [MODEL, &["--file", "a.txt"]].concat();
    let ran = world.scene.run_with(b"first\nsecond\n", &flags);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let said = world.last_request();
    assert_eq!(said, ["The file a.txt:\nhello world\n\n\nfirst", "One.", "second"]);
    let ran = world.scene.run_with(b"first\n", &[MODEL, &["--file", "b.txt"]].concat());
    assert_eq!(ran.code, Some(2), "it is told before anything else: {ran:?}");
}

#[test]
fn a_chat_without_a_model_says_what_a_run_says() {
    let scene = Scene::new().variable("OPENAI_BASE_URL", "http://127.0.0.1:9/v1");
    let (chat, run) = (scene.run_with(b"hello\n", &["chat"]), scene.run(&["run", "hello"]));
    assert_eq!((chat.code, chat.stderr), (Some(7), run.stderr));
    assert_eq!(run.code, Some(7));
}

/// A chat with a server that has prompts.
fn with_prompts(script: Vec<Reaction>) -> Option<World> {
    let python = python()?;
    let fixture = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/resources.py");
    let world = World::new(script);
    assert_eq!(world.scene.run(&["mcp", "add", "notes", "--", python, fixture]).code, Some(0));
    Some(world)
}

#[test]
fn files_named_on_the_command_line_go_with_a_prompt_as_well() {
    let Some(world) = with_prompts(vec![say("Hello."), say("Two.")]) else { return };
    let flags = [MODEL, &["--file", "a.txt"]].concat();
    let ran = world.scene.run_with(b"/notes:greet Oslo\nsecond\n", &flags);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let said = world.last_request();
    assert_eq!(said, ["The file a.txt:\nhello world\n\n\nGreet @Oslo", "Hello.", "second"]);
}

#[test]
fn a_prompt_of_a_server_is_filled_in_and_said() {
    let Some(world) = with_prompts(vec![say("Hello.")]) else { return };
    let ran = world
        .scene
        .run_with(b"/notes:greet a.txt\n/notes:greet\n/notes:gret x\n/nots:greet x\n", MODEL);
    assert_eq!(ran.stdout, "Hello.\n", "{ran:?}");
    assert_eq!(world.last_request(), ["Greet @a.txt"], "a server's words attach no file");
    for said in [
        "this prompt needs `city`",
        "has no prompt `gret`; did you mean `greet`?",
        "there is no MCP server `nots`; did you mean `notes`?",
    ] {
        assert!(ran.stderr.contains(said), "{said}: {ran:?}");
    }
}

/// What no model may read from a server is not read for one either.
#[test]
fn a_rule_that_denies_a_server_holds_for_what_is_attached_and_said() {
    let Some(world) = with_prompts(vec![say("Hello.")]) else { return };
    let file = world.scene.root().join("home/.config/convoke/convoke.yml");
    let rule = "policy:\n  rules:\n    - {effect: deny, tool: \"mcp__notes__*\"}\n";
    let text = fs::read_to_string(&file).unwrap() + "\n" + rule;
    fs::write(&file, text).unwrap();
    let ran = world.scene.run_with(b"@notes:note://today hi\n/notes:greet Oslo\n", MODEL);
    assert!(!ran.shown().contains("buy milk"), "{ran:?}");
    assert!(ran.stderr.contains("`notes:note://today` cannot be read"), "{ran:?}");
    assert!(ran.stderr.contains("no prompt of the MCP server `notes` can be used"), "{ran:?}");
    assert!(ran.stderr.contains("the rule on tool `mcp__notes__*`"), "{ran:?}");
    let sent = |request: &[u8]| String::from_utf8_lossy(request).contains("Greet");
    assert!(!world.server.requests().iter().any(|request| sent(&request.body)), "nothing was sent");
}

/// An `@agent` is a wish: a model that does the work itself is not found out by its answer.
#[test]
fn an_agent_that_was_named_and_not_called_is_told_of() {
    let delegate = json!({ "agent_name": "worker", "prompt": "look" });
    let mut world = World::new(vec![
        say("I did it myself."),
        say("Me again."),
        Reply::default().call("delegate_to_agent", delegate).into(),
        Reply::default().call("complete_task", json!({ "result": "Looked." })).into(),
        say("It looked."),
    ]);
    let file = "---\nname: worker\ndescription: Works.\ntools: [read_file]\n---\nYou work.\n";
    let scene = world.scene.file(".convoke/agents/worker.md", file);
    world.scene = scene.variable("CONVOKE_TRUST_PROJECT", "1");
    let remark = "warning: worker was named, and the model did not call it; ask again, or run it yourself: `convoke agents run worker`";
    let two = world.scene.run_with(b"@worker look\n@worker look\n", MODEL);
    assert_eq!((two.code, two.stdout.as_str()), (Some(0), "I did it myself.\nMe again.\n"));
    assert_eq!(two.stderr.matches(remark).count(), 2, "{two:?}");
    let called = world.scene.run_with(b"@worker look\n", MODEL);
    assert_eq!((called.code, called.stdout.as_str()), (Some(0), "It looked.\n"), "{called:?}");
    assert!(!called.stderr.contains("was named"), "{called:?}");
}
