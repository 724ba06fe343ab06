//! The same on real connections: a world that listens on this machine.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use convoke_mcp::auth::{AuthError, FileStore, OAuth, Web, WebSettings};
use convoke_mcp::client::{Logins, ServerConfig, Servers, Surroundings};
use convoke_tool::{Tool, ToolContext};
use serde_json::json;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use url::Url;

use crate::support::{User, ask};
use crate::world::{Asked, World};

/// A world on a port of this machine, server and authorization server in one.
async fn listening() -> World {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let origin = format!("http://{}", listener.local_addr().unwrap());
    let world = World::new(&format!("{origin}/mcp"), &origin);
    let served = world.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (world, origin) = (served.clone(), origin.clone());
            tokio::spawn(async move { serve(stream, &world, &origin).await });
        }
    });
    world
}

/// Answers one request.
async fn serve(stream: TcpStream, world: &World, origin: &str) -> Option<()> {
    let mut stream = BufReader::new(stream);
    let mut line = String::new();
    stream.read_line(&mut line).await.ok()?;
    let mut words = line.split(' ');
    let method = if words.next()? == "GET" { "GET" } else { "POST" };
    let url = Url::parse(&format!("{origin}{}", words.next()?)).ok()?;
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await.ok()?;
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        headers.insert(name.to_ascii_lowercase(), value.to_owned());
    }
    let length = headers.get("content-length").map_or(0, |text| text.parse().unwrap());
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    let body = String::from_utf8(body).ok()?;
    let answer = world.answer(&Asked { method, url, headers, body });
    let mut head = format!("HTTP/1.1 {} Answer\r\nConnection: close\r\n", answer.status);
    for (name, value) in &answer.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str(&format!("Content-Length: {}\r\n\r\n", answer.body.len()));
    stream.write_all(head.as_bytes()).await.ok()?;
    stream.write_all(&answer.body).await.ok()
}

fn over_sockets(user: &User, web: WebSettings) -> OAuth {
    OAuth::new(
        user.settings.clone(),
        user.store.clone(),
        Some(user.browser.clone()),
        user.clock.clone(),
        Arc::new(Web::new(web)),
    )
}

#[tokio::test]
async fn a_login_works_over_real_connections_and_files() {
    let directory = tempfile::tempdir().unwrap();
    let world = listening().await;
    let mut user = User::new(&world);
    user.store = Arc::new(FileStore::new(directory.path().join("tokens")));
    let oauth = over_sockets(&user, WebSettings::default());
    oauth.login().await.unwrap();
    assert_eq!(ask(&oauth, &world).await.unwrap(), 200);
    assert_eq!(world.asked("/mcp")[0].method, "POST", "the server was asked what it wants");
    user.clock.advance(Duration::from_hours(2));
    let again = over_sockets(&user, WebSettings::default());
    assert_eq!(ask(&again, &world).await.unwrap(), 200);
    assert_eq!(user.browser.shown(), 1);
    assert!(world.asked("/token")[0].header("user-agent").starts_with("convoke/"));
}

/// Calls the only tool of the server.
async fn call(servers: &Servers) -> String {
    if servers.tools().is_empty() {
        servers.start("files").await.unwrap();
    }
    let tool = &servers.tools()[0];
    let call = tool.prepare(json!({})).unwrap();
    let output = call.run(ToolContext::builder("task").build()).await.unwrap();
    output.value.as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_client_of_servers_logs_in_and_asks_for_more_in_the_middle_of_a_call() {
    let world = listening().await;
    let user = User::new(&world);
    let consent = user.browser.clone();
    let web = Arc::new(Web::default());
    let logins = Logins::new(user.store.clone(), Some(consent), user.clock.clone(), web);
    let surroundings = Surroundings::new("/").authorization(Arc::new(logins));
    let config = ServerConfig::http("files", user.settings.url.as_str());
    let servers = Servers::new(vec![config], surroundings);
    assert_eq!(call(&servers).await, "welcome");
    assert_eq!(user.browser.shown(), 1);
    world.ways().needs = vec!["write".to_owned()];
    assert_eq!(call(&servers).await, "welcome");
    assert_eq!(world.asked("/authorize")[1].field("scope").as_deref(), Some("write read"));
    // All tokens are gone, and everybody notices at the same time.
    world.ways().tokens.clear();
    world.ways().gives_refresh = false;
    world.ways().needs.clear();
    let calls = futures_util::future::join_all((0..4).map(|_| call(&servers))).await;
    assert_eq!(calls, vec!["welcome"; 4]);
    assert_eq!(world.asked("/token").len(), 3, "one of them got a token for all");
}

#[tokio::test]
async fn an_answer_that_is_too_long_is_given_up() {
    let world = listening().await;
    let user = User::new(&world);
    let web = WebSettings { longest_answer: 100, ..WebSettings::default() };
    let error = over_sockets(&user, web).login().await.unwrap_err();
    assert!(matches!(error, AuthError::Unreachable { .. }), "{error}");
    assert!(error.to_string().contains("longer than 100 bytes"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_never_answers_is_given_up() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let origin = format!("http://{}", listener.local_addr().unwrap());
    let world = World::new(&format!("{origin}/mcp"), &origin);
    let user = User::new(&world);
    let oauth = over_sockets(&user, WebSettings::default());
    let held = tokio::spawn(async move { listener.accept().await });
    let error = oauth.login().await.unwrap_err();
    assert!(error.to_string().contains("no answer within 30 s"), "{error}");
    held.abort();
}

#[tokio::test]
async fn a_server_that_is_not_there_is_named() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let origin = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let world = World::new(&format!("{origin}/mcp"), &origin);
    let user = User::new(&world);
    let error = over_sockets(&user, WebSettings::default()).login().await.unwrap_err().to_string();
    assert!(error.contains(&format!("`{origin}/mcp` could not be reached")), "{error}");
}

#[test]
fn what_a_transport_awaits_can_move_between_threads() {
    fn sendable<T: Send>(value: T) {
        drop(value);
    }
    let world = World::remote();
    let oauth = User::new(&world).alone();
    sendable(oauth.headers());
    sendable(oauth.challenged(401, "", &[]));
    sendable(oauth.login());
    sendable(oauth.logout());
    assert!(world.ways().asked.is_empty(), "what nobody waits for asks nothing");
}
