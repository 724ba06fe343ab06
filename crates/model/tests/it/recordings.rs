//! A run is recorded against the server and replayed without it.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use convoke_core::Message;
use convoke_model::{Model, ModelErrorKind as Kind, Recording, Replay, Request, Settings};
use convoke_testkit::{Failure, Reaction, Reply, Say};
use serde_json::json;

use crate::support::{Case, Heard, Talk, on_every_wire, results, tools, user, with_ids};

on_every_wire!(a_run_is_replayed_as_it_was_recorded);

/// A file in memory.
#[derive(Clone, Default)]
struct Tape(Arc<Mutex<Vec<u8>>>);

impl Write for Tape {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Asks three times; returns the conversation, and the error of the last question.
async fn run(model: &dyn Model) -> (Vec<Message>, Kind) {
    let (tools, settings) = (tools(), Settings { temperature: Some(0.25), ..Settings::UNSET });
    let mut conversation = vec![user("Read /home/me/project/a.")];
    for turn in 0..2 {
        let request = Request {
            system: "Be brief.",
            tools: &tools,
            settings: &settings,
            ..Request::new(&conversation)
        };
        let answer = with_ids(Heard::of(model, &request).await.answer().message, turn);
        let calls: Vec<_> = answer.calls().cloned().collect();
        conversation.push(answer);
        conversation.push(if calls.is_empty() { user("Go on.") } else { results(&calls) });
    }
    let heard = Heard::of(model, &Request::new(&conversation)).await;
    (conversation, heard.error().kind)
}

async fn a_run_is_replayed_as_it_was_recorded(case: Case) {
    let calls = Reply::default()
        .thought("Reading /home/me/project.", "c2lnbmVk")
        .call("read_file", json!({ "path": "/home/me/project/a" }))
        .call("grep", json!({ "pattern": "x" }));
    let text = Reply::default().thought("Hm.", "c2ln").say(Say::Text("It says x.".to_owned()));
    let Talk { server, model, .. } = case
        .serve([
            Reaction::failure(Failure::Internal),
            calls.into(),
            text.into(),
            Reaction::failure(Failure::QuotaExhausted),
        ])
        .await;
    let here = || vec![("/home/me/project".to_owned(), "${cwd}")];
    let tape = Tape::default();
    let recording = Recording::new(Arc::new(model), tape.clone(), here()).unwrap();
    let recorded = run(&recording).await;
    assert_eq!(recorded.1, Kind::Quota);
    assert_eq!(server.counts().requests, 4);
    drop(server);

    let tape = tape.0.lock().unwrap().clone();
    let text = String::from_utf8(tape.clone()).unwrap();
    assert!(!text.contains("/home/me") && text.contains("${cwd}/a"), "{text}");
    assert_eq!(text.lines().count(), 4, "{text}");
    let replay = Replay::open(&tape[..], here()).unwrap();
    assert_eq!(replay.name().to_string(), format!("acme/{}", case.model));
    assert_eq!(run(&replay).await, recorded);
    assert_eq!(replay.remaining(), 0);
}
