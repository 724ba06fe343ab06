//! `convoke run` against a server that speaks every wire, and fails in every way.

use std::fs;

use convoke_testkit::{Failure, ModelServer, Options, Point, Reaction, Reply, Wire};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::support::{Ran, Scene};

/// A server, and a scene whose variables lead to it.
pub(crate) struct World {
    pub(crate) threads: Runtime,
    pub(crate) server: ModelServer,
    pub(crate) scene: Scene,
}

impl World {
    pub(crate) fn new(script: impl convoke_testkit::Script) -> Self {
        let threads = Runtime::new().unwrap();
        let server = threads.block_on(ModelServer::start(script)).unwrap();
        let url = server.url().clone();
        let scene = Scene::new()
            .variable("OPENAI_API_KEY", "sk-secret-word")
            .variable("ANTHROPIC_API_KEY", "sk-secret-word")
            .variable("GEMINI_API_KEY", "sk-secret-word")
            .variable("OPENAI_BASE_URL", &format!("{url}/v1"))
            .variable("ANTHROPIC_BASE_URL", &url)
            .variable("GOOGLE_GEMINI_BASE_URL", &url);
        Self { threads, server, scene }
    }

    pub(crate) fn run(&self, wire: Wire, flags: &[&str]) -> Ran {
        let model = model(wire);
        let few = ["--set", "model.retries=2"];
        let ran = self.scene.run(&[&["run", "--model", model][..], &few, flags].concat());
        assert!(!ran.shown().contains("sk-secret-word"), "the key is shown: {ran:?}");
        ran
    }

    pub(crate) fn requests(&self) -> usize {
        self.server.requests().len()
    }
}

const fn model(wire: Wire) -> &'static str {
    match wire {
        Wire::OpenAiChat => "openai-chat/some-model",
        Wire::OpenAiResponses => "openai/some-model",
        Wire::Anthropic => "anthropic/some-model",
        Wire::Gemini => "gemini/some-model",
    }
}

fn wires() -> [Wire; 4] {
    [Wire::OpenAiChat, Wire::OpenAiResponses, Wire::Anthropic, Wire::Gemini]
}

fn say(text: &str) -> Reaction {
    Reply::text(text).into()
}

/// rig#679: tools are called where answers are streamed.
#[test]
fn a_task_goes_through_every_wire() {
    for wire in wires() {
        let world = World::new(vec![
            Reply::default()
                .thought("I should look.", "c2lnbmVk")
                .call("read_file", json!({ "path": "a.txt" }))
                .call("read_file", json!({ "path": "b.txt" }))
                .into(),
            say("a is **one**, b is two."),
        ]);
        fs::write(world.scene.project().join("a.txt"), "one\n").unwrap();
        fs::write(world.scene.project().join("b.txt"), "two\n").unwrap();
        let ran = world.run(wire, &["What is in a and b?"]);
        assert_eq!(
            (ran.code, ran.stdout.as_str()),
            (Some(0), "a is **one**, b is two.\n"),
            "{wire:?}"
        );
        assert!(ran.stderr.contains("read_file a.txt ... ok"), "{}", ran.stderr);
        assert!(ran.stderr.contains("2 turns, 2 calls, 200 in, 40 out"), "{}", ran.stderr);
        let second = world.server.requests().remove(1);
        let body = String::from_utf8(second.body.clone()).unwrap();
        assert!(body.contains("one") && body.contains("two"), "the answers went back: {body}");
    }
}

/// What goes wrong, how the command ends, and what it says in both forms.
fn failures() -> Vec<(&'static str, Vec<Reaction>, i32, &'static str, &'static str)> {
    let text = || Reply::text("The beginning of an answer. ".repeat(10));
    let call = || Reply::default().call("read_file", json!({ "path": "a.txt" }));
    let whole = || say("done");
    let short_wait = Reaction::failure(Failure::RateLimited).header("retry-after", "0");
    vec![
        ("429, then an answer", vec![short_wait, whole()], 0, "goal", ""),
        ("500, then an answer", vec![Reaction::failure(Failure::Internal), whole()], 0, "goal", ""),
        (
            "a wrong key",
            vec![Reaction::failure(Failure::WrongKey)],
            6,
            "model_unavailable",
            "_API_KEY",
        ),
        (
            "no such model",
            vec![Reaction::failure(Failure::NoSuchModel)],
            6,
            "model_unavailable",
            "model",
        ),
        (
            "nothing left to spend",
            vec![Reaction::failure(Failure::QuotaExhausted)],
            6,
            "model_unavailable",
            "",
        ),
        (
            "too long",
            vec![Reaction::failure(Failure::ContextTooLong)],
            4,
            "context_window",
            "too long",
        ),
        (
            "cut in a call, then an answer",
            vec![Reaction::from(call()).cut(Point::InCall), whole()],
            0,
            "goal",
            "",
        ),
        (
            "cut in the text, then an answer",
            vec![Reaction::from(text()).cut(Point::Event(8)), whole()],
            0,
            "goal",
            "",
        ),
        (
            "cut in the text again and again",
            vec![Reaction::from(text()).cut(Point::Event(8)); 3],
            6,
            "model_unavailable",
            "",
        ),
        (
            "a chunk that is garbled",
            vec![Reaction::from(text()).malformed(Point::Event(0))],
            6,
            "model_unavailable",
            "",
        ),
        (
            "no answer at all",
            vec![Reaction::silent(), Reaction::silent(), Reaction::silent()],
            6,
            "model_unavailable",
            "",
        ),
    ]
}

/// gemini-cli 4.21: a failure is an object on standard output like any end, and has what there was.
#[test]
fn every_failure_ends_as_documented_on_every_wire() {
    std::thread::scope(|threads| {
        for wire in wires() {
            threads.spawn(move || every_failure_ends_as_documented_on(wire));
        }
    });
}

fn every_failure_ends_as_documented_on(wire: Wire) {
    for (what, script, code, cause, hint) in failures() {
        // Where nobody is silent, nobody has to be quick.
        let soon: &[&str] = match what {
            "no answer at all" => &["--set", "model.idleTimeout=700"],
            _ => &[],
        };
        let told = World::new(script.clone()).run(wire, &[soon, &["Go."]].concat());
        assert_eq!(told.code, Some(code), "{what} on {wire:?}: {told:?}");
        let world = World::new(script.clone());
        let ran = world.run(wire, &[soon, &["--output", "json", "Go."]].concat());
        let report: Value = serde_json::from_str(&ran.stdout).unwrap();
        assert_eq!(report["cause"], cause, "{what} on {wire:?}: {ran:?}");
        assert_eq!((ran.code, &report["exitCode"]), (Some(code), &json!(code)), "{what}");
        if code != 0 {
            assert!(told.stderr.contains(cause), "the same words in both: {what}: {told:?}");
            assert_eq!(told.stdout, "", "{what}: standard output is for answers");
            assert!(told.stderr.contains(hint), "{what} on {wire:?} says what to do: {told:?}");
        }
        if what == "cut in the text again and again" {
            assert!(report["partial"].as_str().is_some_and(|text| !text.is_empty()), "{report}");
            assert_eq!(world.requests(), 3, "it is not asked for ever");
        }
    }
}

#[test]
fn nobody_at_the_terminal_means_no_and_the_model_is_told_why() {
    let edit = || Reply::default().call("write_file", json!({ "path": "x", "content": "y" }));
    let world = World::new(vec![edit().into(), say("I was not allowed to.")]);
    let ran = world.run(Wire::OpenAiChat, &["Write x."]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(3), "I was not allowed to.\n"), "{ran:?}");
    assert!(ran.stderr.contains("--mode auto_edit"), "{}", ran.stderr);
    assert!(!world.scene.project().join("x").exists());
    let told = String::from_utf8(world.server.requests().remove(1).body.clone()).unwrap();
    assert!(told.contains("nobody can be asked here"), "{told}");
    let world = World::new(vec![edit().into(), say("Done.")]);
    assert_eq!(world.run(Wire::OpenAiChat, &["--mode", "auto_edit", "Write x."]).code, Some(0));
    assert_eq!(world.scene.read("x"), "y");
    let world = World::new(vec![edit().into(), say("I only looked.")]);
    world.run(Wire::OpenAiChat, &["--mode", "plan", "Write x."]);
    assert!(!world.scene.project().join("x").exists());
}

#[test]
fn limits_end_a_run_with_their_own_code() {
    let again =
        |word: usize| Reply::default().call("ls", json!({ "ignore": word.to_string() })).into();
    let world = World::new(vec![again(1), again(2), say("As far as I got.")]);
    let ran = world.run(Wire::OpenAiChat, &["--max-turns", "3", "--output", "json", "Go."]);
    let report: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((ran.code, &report["cause"]), (Some(4), &json!("max_turns")));
    assert_eq!(
        (&report["recovered"], &report["answer"]),
        (&json!(true), &json!("As far as I got."))
    );
    let world = World::new(vec![again(1)]);
    let ran = world.run(Wire::OpenAiChat, &["--max-tokens", "200", "Go."]);
    assert_eq!((ran.code, world.requests()), (Some(4), 0), "what cannot be paid is not asked");
    let ran = world.run(Wire::OpenAiChat, &["--max-cost", "0.01", "Go."]);
    assert_eq!(ran.code, Some(7), "{ran:?}");
    assert!(ran.stderr.contains("no price is known"), "{}", ran.stderr);
    let same = || Reply::default().call("ls", json!({})).into();
    let summed_up = say("I listed the directory four times.");
    let world = World::new(vec![same(), same(), same(), same(), summed_up, same(), same(), same()]);
    let ran = world.run(Wire::Anthropic, &["Go."]);
    assert_eq!((ran.code, world.requests()), (Some(5), 8), "told, started over, ended: {ran:?}");
}

#[test]
fn an_answer_has_the_shape_that_was_asked_for() {
    let schema = json!({
        "type": "object", "properties": { "count": { "type": "integer" } }, "required": ["count"],
    });
    let by_call = Reply::default().call("complete_task", json!({ "result": { "count": 3 } }));
    for (script, flags) in [
        (vec![by_call.into()], &["--schema", "s.json", "Count."][..]),
        (vec![say("{\"count\": 3}")], &["--no-tools", "--schema", "s.json", "Count."]),
    ] {
        let world = World::new(script);
        fs::write(world.scene.project().join("s.json"), schema.to_string()).unwrap();
        let ran = world.run(Wire::Gemini, flags);
        let answer: Value = serde_json::from_str(&ran.stdout).unwrap();
        assert_eq!((ran.code, answer), (Some(0), json!({ "count": 3 })), "{}", ran.stderr);
    }
}

#[test]
fn files_are_shown_and_prompts_are_read() {
    let world = World::new(vec![say("A dot."), say("Three words.")]);
    let dot = b"\x89PNG\r\n\x1a\n and so on";
    fs::write(world.scene.project().join("dot.png"), dot).unwrap();
    fs::write(world.scene.project().join("note.txt"), "remember the milk").unwrap();
    let flags = ["--file", "dot.png", "--file", "note.txt", "What is it?"];
    assert_eq!(world.run(Wire::Anthropic, &flags).stdout, "A dot.\n");
    let body = world.server.requests().remove(0).json().to_string();
    assert!(body.contains("image/png") && body.contains("remember the milk"), "{body}");
    let model = model(Wire::Anthropic);
    let ran = world.scene.run_with(b"Count: one two three", &["run", "--model", model, "-"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "Three words.\n"), "{ran:?}");
    assert!(world.server.requests().remove(1).json().to_string().contains("one two three"));
}

#[test]
fn what_is_piped_in_beside_a_prompt_is_shown_to_the_model() {
    let world = World::new(vec![say("An error in line 3.")]);
    let prompt = ["run", "--model", model(Wire::Gemini), "What does the log say?"];
    let ran = world.scene.run_with(b"line 3: oh no", &prompt);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let body = world.server.requests().remove(0).json().to_string();
    assert!(body.contains("line 3: oh no") && body.contains("What does the log say?"), "{body}");
}

#[test]
fn a_file_that_is_no_recording_is_not_overwritten() {
    let world = World::new(vec![say("hello")]);
    fs::write(world.scene.project().join("notes.md"), "precious").unwrap();
    let ran = world.run(Wire::Gemini, &["--record", "notes.md", "Go."]);
    assert_eq!((ran.code, world.scene.read("notes.md").as_str()), (Some(2), "precious"));
}

#[test]
fn what_cannot_be_meant_is_a_usage_error() {
    let scene = Scene::new().variable("OPENAI_API_KEY", "k").file("bad.json", "{");
    for flags in [
        &["run"][..],
        &["run", ""],
        &["run", "  "],
        &["run", "--max-turns", "0", "x"],
        &["run", "--max-cost", "-1", "x"],
        &["run", "--timeout", "soon", "x"],
        &["run", "--mode", "yolo", "x"],
        &["run", "--output", "xml", "x"],
        &["run", "--file", "nowhere.png", "x"],
        &["run", "--file", ".", "x"],
        &["run", "--schema", "bad.json", "x"],
        &["run", "--replay", "nowhere.jsonl", "x"],
        &["run", "--record", "a", "--replay", "b", "x"],
        &["run", "--tools", "ls", "--no-tools", "x"],
    ] {
        let ran = scene.run(flags);
        assert_eq!(ran.code, Some(2), "{flags:?}: {ran:?}");
        assert_eq!(ran.stdout, "", "{flags:?}");
    }
    assert_eq!(scene.run(&["run", "--tools", "no_such_tool", "x"]).code, Some(2));
    let report = scene.json(&["run", "--output", "json", "--file", "nowhere.png", "x"]);
    assert_eq!((&report["cause"], &report["exitCode"]), (&json!("usage"), &json!(2)));
    for flags in
        [&["run", "--model", "nobody/knows", "x"][..], &["run", "--model", "anthropic/claude", "x"]]
    {
        let ran = scene.run(flags);
        assert_eq!(ran.code, Some(7), "{flags:?}: {ran:?}");
        assert!(ran.stderr.contains("hint: "), "{flags:?}: {}", ran.stderr);
    }
}

#[test]
fn a_recording_is_replayed_without_a_server() {
    let call = Reply::default().call("read_file", json!({ "path": "a.txt" }));
    let world = World::new(vec![call.into(), say("It says one.")]);
    fs::write(world.scene.project().join("a.txt"), "one\n").unwrap();
    let ran = world.run(Wire::OpenAiResponses, &["--record", "tape.jsonl", "What is in a?"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let World { threads, server, scene } = world;
    drop(server);
    drop(threads);
    assert!(!scene.read("tape.jsonl").contains("sk-secret-word"));
    let ran = scene.run(&["run", "--replay", "tape.jsonl", "What is in a?"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "It says one.\n"), "{ran:?}");
    assert!(!ran.stderr.contains("warning"), "all of it was used: {}", ran.stderr);
    let tape = scene.read("tape.jsonl");
    let again = tape.lines().nth(1).unwrap();
    fs::write(scene.project().join("longer.jsonl"), format!("{tape}{again}\n")).unwrap();
    let ran = scene.run(&["run", "--replay", "longer.jsonl", "--quiet", "What is in a?"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let warning = "an exchange of the recording was not used: line 4";
    assert_eq!(ran.stderr, format!("warning: {warning}\n"));
    let flags = ["run", "--replay", "longer.jsonl", "--output", "json", "What is in a?"];
    assert_eq!(scene.json(&flags)["warnings"], json!([warning]));
    let other = scene.run(&["run", "--replay", "tape.jsonl", "What is in b?"]);
    assert_eq!(other.code, Some(1), "{other:?}");
    assert!(other.stderr.contains("What is in b?"), "it shows the difference: {}", other.stderr);
}

#[test]
fn events_are_lines_that_fit_their_schema() {
    let call = Reply::default().call("ls", json!({}));
    let world = World::new(vec![call.into(), say("Nothing.")]);
    let ran = world.run(Wire::Gemini, &["--output", "stream-json", "What is here?"]);
    let schema = include_str!("../../../../schemas/events.schema.json");
    let schema: Value = serde_json::from_str(schema).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let mut events: Vec<Value> =
        ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let report = events.pop().unwrap();
    assert_eq!((&report["type"], &report["answer"]), (&json!("report"), &json!("Nothing.")));
    assert_eq!((&report["turns"], &report["exitCode"]), (&json!(2), &json!(0)));
    assert_eq!(report["task"]["actionsDone"][0]["toolName"], "ls", "{report}");
    for event in &events {
        assert!(validator.is_valid(event), "{event}");
    }
    let numbers: Vec<u64> = events.iter().filter_map(|event| event["seq"].as_u64()).collect();
    assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>(), "no gaps");
    assert_eq!(events.last().unwrap()["type"], "run_ended");
}

/// gemini-cli 4.21: nothing but the report is on standard output.
#[test]
fn reports_fit_their_schema_and_are_the_same_in_both_formats() {
    let schema = include_str!("../../../../schemas/report.schema.json");
    let schema: Value = serde_json::from_str(schema).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let same = || Reaction::from(Reply::default().call("ls", json!({})));
    let loops = || (0..5).map(|_| same()).collect::<Vec<_>>();
    for (script, flags) in [
        (vec![same(), say("Nothing.")], &["Go."][..]),
        (vec![Reaction::failure(Failure::WrongKey)], &["Go."]),
        (loops(), &["Go."]),
        (vec![], &["--max-tokens", "200", "Go."]),
        (vec![], &["--file", "nowhere.png", "Go."]),
    ] {
        let report = |format: &str| -> Value {
            let world = World::new(script.clone());
            let ran = world.run(Wire::OpenAiChat, &[&["--output", format][..], flags].concat());
            let text = match format {
                "json" => ran.stdout.as_str(),
                _ => ran.stdout.lines().last().unwrap(),
            };
            let mut report: Value = serde_json::from_str(text).unwrap();
            assert!(validator.is_valid(&report), "{flags:?}: {report}");
            // What to do next names the run.
            if let Some(run) = report["run"].as_str() {
                report = serde_json::from_str(&text.replace(run, "RUN")).unwrap();
            }
            for varying in ["run", "durationMs", "task"] {
                report.as_object_mut().unwrap().remove(varying);
            }
            let why = report["message"].as_str().unwrap_or_default();
            assert_eq!(why.is_empty(), report["cause"] == "goal", "it says why: {report}");
            report
        };
        let (one, stream) = (report("json"), report("stream-json"));
        assert_eq!(one["type"], "report");
        assert_eq!(one, stream, "{flags:?}");
    }
}

#[test]
fn a_report_says_what_the_provider_said() {
    let world = World::new(vec![Reaction::failure(Failure::WrongKey)]);
    let ran = world.run(Wire::OpenAiChat, &["--output", "json", "Go."]);
    let report: Value = serde_json::from_str(&ran.stdout).unwrap();
    let error = &report["error"];
    assert_eq!(error["kind"], "authentication", "{report}");
    assert_eq!((&error["provider"], &error["status"]), (&json!("openai-chat"), &json!(401)));
    assert!(error["hint"].as_str().unwrap().contains("OPENAI_API_KEY"), "{report}");
}

#[test]
fn what_was_said_before_a_failure_is_seen_and_is_no_answer() {
    let text = Reply::text("The beginning of an answer. ".repeat(10));
    let world = World::new(vec![Reaction::from(text).cut(Point::Event(8)); 3]);
    let ran = world.run(Wire::Anthropic, &["--quiet", "Go."]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(6), ""), "{ran:?}");
    assert!(ran.stderr.contains("until then:\n  The beginning of an answer."), "{}", ran.stderr);
}

#[test]
fn calls_and_single_answers_have_limits_too() {
    let look =
        |word: &str| -> Reaction { Reply::default().call("ls", json!({ "ignore": word })).into() };
    let world = World::new(vec![look("a"), look("b"), say("As far as I got.")]);
    let ran = world.run(Wire::OpenAiChat, &["--max-tool-calls", "1", "Go."]);
    assert_eq!(ran.code, Some(4), "{ran:?}");
    assert!(ran.stderr.contains("(max_tool_calls)"), "{}", ran.stderr);
    assert!(ran.stderr.contains("`--max-tool-calls 2`"), "{}", ran.stderr);
    let world = World::new(vec![Reaction::silent(), Reaction::silent()]);
    let ran = world.run(Wire::OpenAiChat, &["--turn-timeout", "250ms", "Go."]);
    assert_eq!(ran.code, Some(4), "{ran:?}");
    assert!(ran.stderr.contains("one answer took longer than 250 ms"), "{}", ran.stderr);
    assert!(ran.stderr.contains("`--turn-timeout 500ms`"), "{}", ran.stderr);
}

#[test]
fn a_run_that_is_refused_until_it_is_stuck_says_how_to_permit_more() {
    let write = || Reply::default().call("write_file", json!({ "path": "x", "content": "y" }));
    let mut script: Vec<Reaction> = (0..7).map(|_| write().into()).collect();
    script.insert(4, say("I was not allowed to write x."));
    let world = World::new(script);
    let ran = world.run(Wire::OpenAiChat, &["Write x."]);
    assert_eq!(ran.code, Some(5), "{ran:?}");
    assert!(ran.stderr.contains("7 calls had no permission; `--mode auto_edit`"), "{}", ran.stderr);
}

#[test]
fn notes_for_agents_reach_the_model() {
    let world = World::new(vec![say("ok")]);
    fs::write(world.scene.project().join("AGENTS.md"), "Always use tabs.").unwrap();
    world.run(Wire::OpenAiChat, &["Go."]);
    let body = world.server.requests().remove(0).json().to_string();
    assert!(body.contains("From AGENTS.md:") && body.contains("Always use tabs."), "{body}");
    assert!(body.len() < 8_000, "the first request is small: {} bytes", body.len());
}

#[test]
fn notes_that_do_not_reach_the_model_are_told_to_their_author() {
    let world = World::new(vec![say("ok")]);
    fs::write(world.scene.project().join("AGENTS.md"), "Use tabs. ".repeat(2_000)).unwrap();
    let ran = world.run(Wire::OpenAiChat, &["--quiet", "Go."]);
    let warning = "AGENTS.md is too long: the model is shown 16384 of its 20000 bytes";
    assert_eq!((ran.code, ran.stderr), (Some(0), format!("warning: {warning}\n")));
    let world = World::new(vec![say("ok")]);
    fs::write(world.scene.project().join("AGENTS.md"), b"\xff\xfe\x00").unwrap();
    let ran = world.run(Wire::OpenAiChat, &["--output", "stream-json", "Go."]);
    let report: Value = serde_json::from_str(ran.stdout.lines().last().unwrap()).unwrap();
    assert!(
        report["warnings"][0].as_str().unwrap().starts_with("AGENTS.md was not read"),
        "{report}"
    );
}

#[test]
fn a_model_on_this_machine_is_one_to_talk_to() {
    let threads = Runtime::new().unwrap();
    let server = Options::default().models(["bge-m3", "talker"]);
    let server = threads.block_on(server.start(vec![say("Hello.")])).unwrap();
    let address = format!("{}/v1", server.url());
    let nobody = "{baseUrl: 'http://127.0.0.1:1/v1'}";
    let scene = Scene::new().user(&format!(
        "model: {{providers: {{ollama: {{baseUrl: '{address}'}}, llamacpp: {nobody}, lmstudio: \
         {nobody}}}, facts: {{'ollama/*': {{maxOutput: 77}}}}}}\n"
    ));
    let listed = scene.json(&["models", "list", "ollama", "--json"]);
    assert_eq!(listed[0]["facts"]["maxOutput"], 77, "{listed}");
    let ran = scene.run(&["run", "Hello?"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "Hello.\n"), "{ran:?}");
    assert!(ran.stderr.contains("found ollama/talker on this machine"), "{}", ran.stderr);
    let asked = server.requests().pop().unwrap().json().to_string();
    assert!(asked.contains("\"model\":\"talker\""), "{asked}");
}
