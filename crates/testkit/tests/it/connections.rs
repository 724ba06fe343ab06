//! Connections: how they are kept, counted, left and closed.

use std::io::ErrorKind;
use std::time::Duration;

use convoke_testkit::{Failure, ModelServer, Options, Point, Reaction, Reply, Seen, Wire};
use serde_json::json;
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::client::{Client, question};

#[tokio::test]
async fn one_connection_serves_many_requests_in_any_wire() {
    let server = ModelServer::start(|seen: &Seen, nth: usize| {
        Reaction::answer(Reply::text(format!("{} {nth}", seen.model())))
    })
    .await
    .unwrap();
    let mut client = Client::connect(&server).await;
    for (nth, wire) in [Wire::ALL, Wire::ALL].concat().into_iter().enumerate() {
        let answer = client.ask(wire).await.unwrap();
        assert!(answer.is_whole);
        assert!(answer.body.contains(&format!("test-model {nth}")), "{}", answer.body);
        let seen = server.next_request().await;
        assert_eq!((seen.wire, seen.json()), (Some(wire), &question(wire)));
        assert_eq!(seen.header("Host"), Some("x"));
    }
    assert_eq!(server.requests().len(), 8);
    assert_eq!((server.counts().accepted, server.counts().open), (1, 1));
    drop(client);
    server.wait_closed().await;
    assert_eq!((server.counts().answered, server.counts().abandoned), (8, 0));
}

#[tokio::test]
async fn a_failure_leaves_the_connection_usable() {
    let server = ModelServer::start([
        Reaction::failure(Failure::RateLimited),
        Reaction::html_error_page(503),
        Reply::text("x").into(),
    ])
    .await
    .unwrap();
    let mut client = Client::connect(&server).await;
    for status in [429, 503, 200] {
        assert_eq!(client.ask(Wire::OpenAiResponses).await.unwrap().status, status);
    }
    assert_eq!(server.counts().accepted, 1);
}

#[tokio::test]
async fn a_client_that_wants_to_close_is_closed() {
    let server = ModelServer::start(Reply::text("x")).await.unwrap();
    let mut client = Client::connect(&server).await;
    let body = question(Wire::Anthropic).to_string();
    let head = format!(
        "POST /v1/messages HTTP/1.1\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    client.write(format!("{head}{body}").as_bytes()).await;
    let answer = client.read_rest().await;
    assert!(answer.ends_with(b"0\r\n\r\n"));
    server.wait_closed().await;
}

#[tokio::test]
async fn leaving_is_noticed_while_an_answer_is_awaited_or_under_way() {
    let slow = Reaction::answer(Reply::text("x")).pause(Duration::from_hours(1));
    let late = Reaction::answer(Reply::text("x")).delay(Duration::from_hours(1));
    let hung = Reaction::answer(Reply::text("x")).hang(Point::Event(1));
    let server = ModelServer::start([Reaction::silent(), slow, late, hung]).await.unwrap();
    for left in 1..=4 {
        let mut client = Client::connect(&server).await;
        client.send(Wire::Anthropic, &question(Wire::Anthropic)).await;
        server.next_request().await;
        if left % 2 == 0 {
            client.read_until("\n\n\r\n").await;
        }
        drop(client);
        server.wait_closed().await;
        assert_eq!((server.counts().answered, server.counts().abandoned), (0, left));
    }
}

#[tokio::test]
async fn leaving_is_noticed_while_the_server_cannot_write() {
    let server = ModelServer::start(Reply::text("x".repeat(20_000_000)).fragments_of(100_000))
        .await
        .unwrap();
    let mut client = Client::connect(&server).await;
    client.send(Wire::OpenAiChat, &question(Wire::OpenAiChat)).await;
    client.read_until("\n\n\r\n").await;
    drop(client);
    server.wait_closed().await;
    assert_eq!(server.counts().abandoned, 1);
}

#[tokio::test]
async fn two_hundred_connections_at_once() {
    let server = Options::default()
        .delay(Duration::from_millis(20))
        .start(Reply::text("hello"))
        .await
        .unwrap();
    let mut clients = JoinSet::new();
    for nth in 0..200 {
        let address = server.address();
        clients.spawn(async move {
            let mut client = Client::at(address).await;
            let wire = Wire::ALL[nth % 4];
            for _ in 0..3 {
                let answer = client.ask(wire).await.unwrap();
                assert!(answer.is_whole && answer.body.contains("hello"));
            }
            client
        });
    }
    let clients = clients.join_all().await;
    assert_eq!((server.counts().accepted, server.counts().open), (200, 200));
    assert_eq!((server.counts().requests, server.requests().len()), (600, 600));
    drop(clients);
    server.wait_closed().await;
    assert_eq!(server.counts().abandoned, 0);
}

#[tokio::test]
async fn a_constant_server_forgets_requests_but_counts_them() {
    let server = ModelServer::constant(&Reply::text("hello")).await.unwrap();
    let mut client = Client::connect(&server).await;
    for wire in Wire::ALL {
        let answer = client.ask(wire).await.unwrap();
        assert!(answer.is_whole && answer.body.contains("hello"));
    }
    assert_eq!((server.counts().requests, server.requests().len()), (4, 0));
}

#[tokio::test]
async fn dropping_the_server_closes_everything() {
    let server = ModelServer::start([
        Reaction::silent(),
        Reaction::answer(Reply::text("x")).hang(Point::Event(1)),
        Reply::text("x").into(),
    ])
    .await
    .unwrap();
    let address = server.address();
    let mut clients = Vec::new();
    for _ in 0..2 {
        let mut client = Client::connect(&server).await;
        client.send(Wire::Anthropic, &question(Wire::Anthropic)).await;
        server.next_request().await;
        clients.push(client);
    }
    let mut idle = Client::connect(&server).await;
    assert!(idle.ask(Wire::Anthropic).await.unwrap().is_whole);
    clients.push(idle);
    drop(server);
    for mut client in clients {
        assert!(!client.read_rest().await.ends_with(b"0\r\n\r\n"));
    }
    let refused = TcpStream::connect(address).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
}

#[tokio::test]
async fn connections_are_refused_from_the_moment_it_is_asked() {
    let mut server = ModelServer::start(Reply::text("x")).await.unwrap();
    let mut client = Client::connect(&server).await;
    assert!(client.ask(Wire::Gemini).await.unwrap().is_whole);
    server.refuse_connections().await;
    for _ in 0..3 {
        let refused = TcpStream::connect(server.address()).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
    }
    assert!(client.ask(Wire::Gemini).await.unwrap().is_whole, "the open connection goes on");
    server.refuse_connections().await;
}

#[tokio::test]
async fn nonsense_is_refused_and_the_connection_closed() {
    let server = ModelServer::start(Reply::text("x")).await.unwrap();
    let mut client = Client::connect(&server).await;
    client.write(b"what\r\n\r\n").await;
    assert!(client.read_rest().await.starts_with(b"HTTP/1.1 400 "));
    server.wait_closed().await;
    assert_eq!(server.counts().requests, 0);
}

#[tokio::test]
async fn requests_that_are_not_for_a_stream_do_not_use_up_the_script() {
    let server = ModelServer::start([Reaction::from(Reply::text("x"))]).await.unwrap();
    let mut client = Client::connect(&server).await;
    client.send(Wire::OpenAiChat, &json!({ "model": "m", "messages": [] })).await;
    let refused = client.read_answer().await.unwrap();
    assert_eq!(refused.status, 400);
    assert!(refused.body.contains("only streams"), "{}", refused.body);
    assert_eq!(client.get("/v1/nothing", "").await.status, 404);
    assert_eq!(client.ask(Wire::OpenAiChat).await.unwrap().status, 200);
}
