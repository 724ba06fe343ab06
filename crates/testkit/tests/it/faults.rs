//! Streams that go wrong, in every wire.

use std::time::Duration;

use convoke_testkit::{Failure, ModelServer, Point, Reaction, Reply, Say, Wire};
use serde_json::{Value, json};
use tokio::time::{Instant, timeout};

use crate::client::Client;

const HOUR: Duration = Duration::from_hours(1);

fn reply() -> Reply {
    Reply::default()
        .thought("Let me see.", "c2ln")
        .say(Say::Text("Reading it — now.".into()))
        .call("read_file", json!({ "path": "some/long/path/to/a/file.rs" }))
        .fragments_of(6)
}

fn is_json(data: &str) -> bool {
    data == "[DONE]" || serde_json::from_str::<Value>(data).is_ok()
}

#[tokio::test]
async fn a_stream_is_cut_in_the_middle_of_a_call() {
    for wire in Wire::ALL {
        for point in [Point::InThought, Point::InText, Point::InCall] {
            let server = ModelServer::start(Reaction::answer(reply()).cut(point)).await.unwrap();
            let answer = Client::connect(&server).await.ask(wire).await.unwrap();
            assert!(!answer.is_whole, "{wire:?} {point:?}");
            let events = answer.events();
            let (last, before) = events.split_last().unwrap();
            assert!(before.iter().all(|(_, data)| is_json(data)), "{wire:?} {point:?}");
            assert!(!is_json(&last.1), "{wire:?} {point:?}: {last:?}");
            assert_eq!(before.iter().any(|(_, data)| data.contains("read_file")), {
                point == Point::InCall && wire != Wire::Gemini
            });
            server.wait_closed().await;
            assert_eq!((server.counts().answered, server.counts().abandoned), (1, 0));
        }
    }
}

#[tokio::test]
async fn a_stream_is_cut_after_events_or_bytes() {
    for wire in Wire::ALL {
        let server = ModelServer::start([
            Reaction::answer(reply()),
            Reaction::answer(reply()).cut(Point::Event(3)),
            Reaction::answer(reply()).cut(Point::Byte(37)),
            Reaction::answer(reply()).cut(Point::Byte(0)),
        ])
        .await
        .unwrap();
        let whole = Client::connect(&server).await.ask(wire).await.unwrap();
        let three = Client::connect(&server).await.ask(wire).await.unwrap();
        assert_eq!((three.events().len(), three.is_whole), (3, false));
        let bytes = Client::connect(&server).await.ask(wire).await.unwrap();
        assert_eq!((bytes.body.len(), bytes.is_whole), (37, false));
        // The made-up ids differ in the number of the request alone.
        assert_eq!(whole.body[..20], bytes.body[..20]);
        let head = Client::connect(&server).await.ask(wire).await.unwrap();
        assert_eq!((head.status, head.body.as_str(), head.is_whole), (200, "", false));
    }
}

#[tokio::test]
async fn one_event_is_malformed_and_the_stream_goes_on() {
    for wire in Wire::ALL {
        let server =
            ModelServer::start(Reaction::answer(reply()).malformed(Point::Event(2))).await.unwrap();
        let answer = Client::connect(&server).await.ask(wire).await.unwrap();
        assert!(answer.is_whole);
        let bad: Vec<usize> = answer
            .events()
            .iter()
            .enumerate()
            .filter(|(_, (_, data))| !is_json(data))
            .map(|(nth, _)| nth)
            .collect();
        assert_eq!(bad, [2], "{wire:?}");
        assert!(answer.events().len() > 3);
    }
}

#[tokio::test]
async fn a_stream_ends_with_an_error_in_the_providers_shape() {
    for wire in Wire::ALL {
        let reaction = Reaction::answer(reply()).fail(Point::InText, Failure::Overloaded);
        let server = ModelServer::start(reaction).await.unwrap();
        let answer = Client::connect(&server).await.ask(wire).await.unwrap();
        assert!(answer.is_whole);
        let events = answer.events();
        assert!(events.iter().all(|(_, data)| is_json(data)), "{wire:?}");
        let last: Vec<(Option<&str>, Value)> = events
            .iter()
            .rev()
            .take(2)
            .map(|(name, data)| (name.as_deref(), serde_json::from_str(data).unwrap()))
            .collect();
        match wire {
            Wire::OpenAiChat => assert_eq!(last[0].1["error"]["code"], "server_error"),
            Wire::Gemini => assert_eq!(last[0].1["error"]["code"], 503),
            Wire::Anthropic => {
                assert_eq!(last[0].0, Some("error"));
                assert_eq!(last[0].1["error"]["type"], "overloaded_error");
            }
            Wire::OpenAiResponses => {
                assert_eq!((last[1].0, last[0].0), (Some("error"), Some("response.failed")));
                assert_eq!(last[1].1["code"], "server_error");
                assert_eq!(last[0].1["response"]["error"]["code"], "server_error");
                assert_eq!(last[0].1["sequence_number"], events.len() - 1);
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn silence_lasts() {
    let server = ModelServer::start(Reaction::silent()).await.unwrap();
    let mut client = Client::connect(&server).await;
    assert!(timeout(HOUR, client.ask(Wire::Gemini)).await.is_err());
    assert_eq!((server.counts().requests, server.counts().answered), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn a_stream_hangs_where_it_is_told_to() {
    for wire in Wire::ALL {
        let server =
            ModelServer::start(Reaction::answer(reply()).hang(Point::Event(2))).await.unwrap();
        let mut client = Client::connect(&server).await;
        client.send(wire, &crate::client::question(wire)).await;
        for _ in 0..2 {
            client.read_until("\n\n\r\n").await;
        }
        assert!(timeout(HOUR, client.read_rest()).await.is_err());
        assert_eq!(server.connections_open(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn time_passes_before_the_first_byte_and_between_events() {
    let reaction = Reaction::answer(Reply::text("x")).delay(HOUR).pause(Duration::from_mins(1));
    let server = ModelServer::start(reaction).await.unwrap();
    let mut client = Client::connect(&server).await;
    let start = Instant::now();
    client.send(Wire::Gemini, &crate::client::question(Wire::Gemini)).await;
    client.read_until("\r\n\r\n").await;
    assert!(start.elapsed() >= HOUR && start.elapsed() < HOUR + Duration::from_mins(1));
    client.read_until("0\r\n\r\n").await;
    assert!(start.elapsed() >= HOUR + Duration::from_mins(1));
}

#[tokio::test]
async fn bytes_and_hang_ups_replace_an_answer() {
    let server =
        ModelServer::start([Reaction::raw("HTTP/1.1 200 OK\r\nsurprise"), Reaction::hang_up()])
            .await
            .unwrap();
    for expected in ["HTTP/1.1 200 OK\r\nsurprise", ""] {
        let mut client = Client::connect(&server).await;
        client.send(Wire::Anthropic, &crate::client::question(Wire::Anthropic)).await;
        assert_eq!(client.read_rest().await, expected.as_bytes());
    }
}

#[tokio::test]
async fn chunks_need_not_respect_events_or_characters() {
    for wire in Wire::ALL {
        let server = ModelServer::start([
            Reaction::answer(reply().usage(convoke_core::Usage::default())).in_chunks_of(7),
            Reaction::answer(reply()),
        ])
        .await
        .unwrap();
        let mut client = Client::connect(&server).await;
        let answer = client.ask(wire).await.unwrap();
        assert!(answer.is_whole);
        assert_eq!(answer.chunks, answer.body.len().div_ceil(7));
        let answer = client.ask(wire).await.unwrap();
        assert_eq!(answer.chunks, answer.events().len());
    }
}
