use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use convoke_core::{Message, Part, Role};
use futures_util::StreamExt;
use serde_json::json;

use super::*;
use crate::model::{Chunk, Model};
use crate::scripted::{ScriptedModel, Turn};

/// A file in memory.
#[derive(Clone, Default)]
struct File(Arc<Mutex<Vec<u8>>>);

impl Write for File {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl File {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

type Items = Vec<Result<Chunk, ModelError>>;

async fn ask(model: &dyn Model, system: &str, messages: &[Message]) -> Items {
    model.stream(&Request { system, ..Request::new(messages) }).collect().await
}

fn answer(items: &Items) -> Message {
    match items.last() {
        Some(Ok(Chunk::End(answer))) => answer.message.clone(),
        other => panic!("{other:?}"),
    }
}

fn result(call: &str, text: &str) -> Message {
    let part =
        Part::ToolResult { call: call.into(), content: vec![Part::text(text)], is_error: false };
    Message { role: Role::Tool, parts: vec![part] }
}

/// Has a conversation of two exchanges; the second sends the result of the first one's call.
async fn converse(model: &dyn Model, tool_result: &str) -> (Items, Items) {
    let mut messages = vec![Message::text(Role::User, "read /work/me/x")];
    let first = ask(model, "be brief", &messages).await;
    messages.extend([answer(&first), result("call_1", tool_result)]);
    let second = ask(model, "be brief", &messages).await;
    (first, second)
}

fn script() -> ScriptedModel {
    ScriptedModel::new([
        Turn::thought("hm").and_call("read_file", json!({ "path": "/work/me/x" })).tokens(9, 1),
        Turn::text("it says /work/me"),
    ])
}

fn placeholders(directory: &str) -> Vec<(String, &'static str)> {
    vec![(directory.to_owned(), "${cwd}")]
}

async fn record() -> (String, (Items, Items)) {
    let file = File::default();
    let model = Arc::new(script());
    let recording = Recording::new(model, file.clone(), placeholders("/work/me")).unwrap();
    let items = converse(&recording, "contents").await;
    (file.text(), items)
}

fn replay(text: &str, directory: &str) -> Replay {
    Replay::open(text.as_bytes(), placeholders(directory)).unwrap()
}

fn error(items: &Items) -> &ModelError {
    items[0].as_ref().unwrap_err()
}

#[tokio::test]
async fn what_was_recorded_is_replayed() {
    let (text, recorded) = record().await;
    let replay = replay(&text, "/work/me");
    assert_eq!((replay.name().to_string().as_str(), replay.remaining()), ("scripted/model", 2));
    assert_eq!(converse(&replay, "contents").await, recorded);
    assert_eq!(replay.remaining(), 0);
}

#[tokio::test]
async fn a_recording_fits_another_directory() {
    let (text, _) = record().await;
    assert!(!text.contains("/work/me"), "{text}");
    let replay = replay(&text, "/home/you");
    let mut messages = vec![Message::text(Role::User, "read /home/you/x")];
    let first = answer(&ask(&replay, "be brief", &messages).await);
    let Some(Part::ToolCall(call)) = first.parts.last() else { panic!("{first:?}") };
    assert_eq!(call.arguments, json!({ "path": "/home/you/x" }));
    messages.extend([first, result("call_1", "contents")]);
    let second = ask(&replay, "be brief", &messages).await;
    assert_eq!(second[0], Ok(Chunk::Text("it says /home/you".to_owned())));
}

#[tokio::test]
async fn a_changed_tool_result_is_named() {
    let (text, _) = record().await;
    let replay = replay(&text, "/work/me");
    let (_, second) = converse(&replay, "contests").await;
    let error = error(&second);
    assert_eq!((error.kind, error.repeatable), (ModelErrorKind::NotRecorded, false));
    assert_eq!(
        error.message,
        "this request was not recorded; the nearest one differs at \
         messages[2].parts[0].content[0].text: expected `contents`, got `contests`"
    );
    assert_eq!(error.hint.as_deref(), Some("record it again with --record"));
    assert_eq!(replay.remaining(), 1);
}

#[tokio::test]
async fn a_changed_instruction_and_one_request_too_many_are_named() {
    let (text, _) = record().await;
    let replay = replay(&text, "/work/me");
    let messages = [Message::text(Role::User, "read /work/me/x")];
    let items = ask(&replay, "be long", &messages).await;
    let message = &error(&items).message;
    assert!(
        message.ends_with("differs at system: expected `be brief`, got `be long`"),
        "{message}"
    );

    converse(&replay, "contents").await;
    let items = ask(&replay, "be brief", &messages).await;
    let message = &error(&items).message;
    assert!(message.ends_with("all 2 recorded exchanges have been used"), "{message}");
}

#[tokio::test]
async fn equal_requests_get_their_answers_in_order_and_others_in_any() {
    let file = File::default();
    let script = ["one", "two", "three"].map(Turn::text);
    let recording =
        Recording::new(Arc::new(ScriptedModel::new(script)), file.clone(), Vec::new()).unwrap();
    let (same, other) = ([Message::text(Role::User, "a")], [Message::text(Role::User, "b")]);
    for messages in [&same, &same, &other] {
        ask(&recording, "", messages).await;
    }
    let replay = replay(&file.text(), "");
    for (messages, text) in [(&other, "three"), (&same, "one"), (&same, "two")] {
        assert_eq!(ask(&replay, "", messages).await[0], Ok(Chunk::Text(text.to_owned())));
    }
}

#[tokio::test]
async fn errors_are_recorded_too() {
    let file = File::default();
    let failed = ModelError {
        status: Some(400),
        ..ModelError::new(ModelErrorKind::Rejected, "scripted", "no /tmp/x").hint("try y")
    }
    .after_receiving(12);
    let model = ScriptedModel::new([Turn::text("begun").and_error(failed.clone())]);
    let recording = Recording::new(Arc::new(model), file.clone(), placeholders("/tmp/x")).unwrap();
    assert_eq!(ask(&recording, "", &[]).await.last(), Some(&Err(failed.clone())));
    assert!(!file.text().contains("/tmp/x"));
    assert_eq!(ask(&replay(&file.text(), "/tmp/x"), "", &[]).await, [Err(failed)]);
}

#[tokio::test]
async fn what_is_given_up_is_not_recorded() {
    let file = File::default();
    let model = ScriptedModel::new([Turn::text("a").and_text("b")]);
    let recording = Recording::new(Arc::new(model), file.clone(), Vec::new()).unwrap();
    let mut stream = recording.stream(&Request::new(&[]));
    assert!(stream.next().await.is_some());
    drop(stream);
    assert_eq!(file.text().lines().count(), 1);
}

#[tokio::test]
async fn a_recording_that_cannot_be_written_is_an_error() {
    struct Full(usize);
    impl Write for Full {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            match self.0.checked_sub(1) {
                Some(left) => {
                    self.0 = left;
                    Ok(bytes.len())
                }
                None => Err(io::Error::other("no space")),
            }
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    assert!(Recording::new(Arc::new(script()), Full(0), Vec::new()).is_err());
    let recording = Recording::new(Arc::new(script()), Full(1), Vec::new()).unwrap();
    let items = ask(&recording, "", &[]).await;
    let error = items.last().unwrap().as_ref().unwrap_err();
    assert_eq!(error.message, "the answer came but could not be recorded: no space");
}

#[tokio::test]
async fn a_recording_grows_with_the_conversation_and_not_with_its_square() {
    let length = async |turns: usize| {
        let file = File::default();
        let model = ScriptedModel::from_fn(|_| Turn::call("ls", json!({}))).forgetful();
        let recording = Recording::new(Arc::new(model), file.clone(), Vec::new()).unwrap();
        let mut messages = vec![Message::text(Role::User, "go")];
        for _ in 0..turns {
            let said = answer(&ask(&recording, &"s".repeat(5_000), &messages).await);
            messages.extend([said, result("call_1", "some output")]);
        }
        let replay = replay(&file.text(), "");
        let items = ask(&replay, &"s".repeat(5_000), &messages[..messages.len() - 2]).await;
        assert!(items.iter().all(Result::is_ok), "{items:?}");
        file.text().len()
    };
    let (ten, hundred) = (length(10).await, length(100).await);
    assert!(hundred < ten * 10, "{ten} {hundred}");
}

#[tokio::test]
async fn a_file_that_is_cut_or_garbage_is_refused_with_its_line() {
    let (text, _) = record().await;
    let lines: Vec<&str> = text.lines().collect();
    let cut = text.trim_end().strip_suffix("}}").unwrap();
    let version = text.replacen("\"cassette\":1", "\"cassette\":2", 1);
    let orphan = format!("{}\n{}\n", lines[0], lines[2]);
    for (text, line, message) in [
        ("", 1, "the recording is empty"),
        ("nonsense", 1, "not a JSON object"),
        ("{}", 1, "not the first line of a recording"),
        (&version, 1, "version 2 is not known"),
        (cut, 3, "not a JSON object"),
        (&format!("{text}\n"), 4, "not a JSON object"),
        (&format!("{text}{{}}"), 4, "there is no request"),
        (&orphan, 2, "the request has no `system`"),
    ] {
        let error = Replay::open(text.as_bytes(), Vec::new()).unwrap_err();
        assert_eq!(error.line, line, "{error}");
        assert!(error.message.starts_with(message), "{error}");
    }
}
