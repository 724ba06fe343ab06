//! Raw requests: who comes in, and with how much.

use std::net::SocketAddr;

use convoke_mcp::serve::{HttpSettings, ServeError, serve_http};
use rmcp::{ClientLifecycleMode, ClientServiceExt};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::support::{Server, Way, call, http_client};

const TOKEN: &str = "0123456789abcdef0123";

struct Reply {
    status: u16,
    head: String,
    body: String,
}

impl Reply {
    fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (key, value) = line.split_once(": ")?;
            key.eq_ignore_ascii_case(name).then_some(value)
        })
    }

    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }
}

/// Sends one request and reads everything that comes back.
async fn send(address: SocketAddr, head: &str, body: &str) -> Reply {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let length = body.len();
    let request = format!("{head}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut text = Vec::new();
    stream.read_to_end(&mut text).await.unwrap();
    let text = String::from_utf8(text).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    Reply { status, head: head.to_owned(), body: body.to_owned() }
}

async fn post(address: SocketAddr, headers: &str, body: &str) -> Reply {
    let head = format!(
        "POST /mcp HTTP/1.1\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream{headers}"
    );
    send(address, &head, body).await
}

fn hello() -> String {
    json!({
        "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": { "name": "c", "version": "1" },
        },
    })
    .to_string()
}

const HOST: &str = "\r\nHost: 127.0.0.1";

#[tokio::test]
async fn a_forged_host_or_a_foreign_page_is_refused() {
    let mut server = Server::new();
    let address = server.port(HttpSettings::default()).await;
    let good = post(address, HOST, &hello()).await;
    assert_eq!(good.status, 200);
    assert!(good.header("mcp-session-id").is_some());
    for bad in [
        "\r\nHost: evil.example",
        "\r\nHost: localhost\r\nOrigin: https://evil.example",
        "\r\nHost: localhost\r\nOrigin: null",
    ] {
        let reply = post(address, bad, &hello()).await;
        assert_eq!(reply.status, 403, "{bad}");
        assert!(reply.json()["error"]["message"].as_str().unwrap().contains("request"), "{bad}");
    }
    let page =
        post(address, "\r\nHost: localhost\r\nOrigin: http://localhost:5173", &hello()).await;
    assert_eq!(page.status, 200);
}

/// A browser asks before it sends what a page wants to, without the token, and shows the page only answers that
/// name it.
#[tokio::test]
async fn browsers_let_the_pages_in_that_may_come() {
    const PAGE: &str = "https://app.example";
    let mut server = Server::new();
    let mut settings = HttpSettings::default();
    settings.token = Some(TOKEN.into());
    settings.origins = vec![PAGE.into()];
    let address = server.port(settings).await;
    let ask = async |origin: &str, path: &str| {
        let head = format!(
            "OPTIONS {path} HTTP/1.1{HOST}\r\nOrigin: {origin}\r\nAccess-Control-Request-Method: POST\r\n\
             Access-Control-Request-Headers: authorization,content-type"
        );
        send(address, &head, "").await
    };
    for page in [PAGE, "http://localhost:5173"] {
        let asked = ask(page, "/mcp").await;
        assert_eq!((asked.status, asked.body.as_str()), (204, ""), "{page}");
        assert_eq!(asked.header("access-control-allow-origin"), Some(page));
        assert_eq!(asked.header("vary"), Some("Origin"));
        assert_eq!(asked.header("access-control-allow-methods"), Some("GET, POST, DELETE"));
        let allowed = asked.header("access-control-allow-headers").unwrap().to_ascii_lowercase();
        for header in ["authorization", "content-type", "mcp-session-id", "mcp-protocol-version"] {
            assert!(allowed.contains(header), "{header}: {allowed}");
        }
    }
    for (page, path, status) in [("https://evil.example", "/mcp", 403), (PAGE, "/other", 401)] {
        let refused = ask(page, path).await;
        assert_eq!(refused.status, status, "{page}{path}");
        let told = |name| refused.header(name).is_some();
        assert_eq!(told("access-control-allow-origin"), page == PAGE, "{page}{path}");
        assert!(!told("access-control-allow-methods"), "{page}{path}");
    }

    let from_page = format!("{HOST}\r\nOrigin: {PAGE}\r\nAuthorization: Bearer {TOKEN}");
    let served = post(address, &from_page, &hello()).await;
    assert_eq!((served.status, served.header("access-control-allow-origin")), (200, Some(PAGE)));
    let exposed = served.header("access-control-expose-headers").unwrap();
    assert!(exposed.contains("Mcp-Session-Id"), "{exposed}");
    let no_token = post(address, &format!("{HOST}\r\nOrigin: {PAGE}"), &hello()).await;
    assert_eq!(no_token.status, 401, "a page needs the token like everybody");
    assert_eq!(no_token.header("access-control-allow-origin"), Some(PAGE), "and is told so");
    let program =
        post(address, &format!("{HOST}\r\nAuthorization: Bearer {TOKEN}"), &hello()).await;
    assert_eq!(program.header("access-control-allow-origin"), None, "it comes from no page");
}

#[tokio::test]
async fn only_clients_with_the_token_are_served() {
    let mut server = Server::new();
    let mut settings = HttpSettings::default();
    settings.token = Some(TOKEN.into());
    let address = server.port(settings).await;
    let none = post(address, HOST, &hello()).await;
    assert_eq!((none.status, none.header("www-authenticate")), (401, Some("Bearer")));
    let wrong = format!("{HOST}\r\nAuthorization: Bearer {}", TOKEN.replace('3', "4"));
    assert_eq!(post(address, &wrong, &hello()).await.status, 401);
    let right = format!("{HOST}\r\nAuthorization: Bearer {TOKEN}");
    assert_eq!(post(address, &right, &hello()).await.status, 200);
    let transport = http_client(address, Some(TOKEN));
    let client = ().serve_with_lifecycle(transport, ClientLifecycleMode::Initialize).await.unwrap();
    assert!(client.call_tool(call("talk", json!({}))).await.is_ok());
}

#[tokio::test]
async fn a_server_for_everybody_does_not_start_without_a_token() {
    let server = Server::new();
    let listener = TcpListener::bind("0.0.0.0:0").await.unwrap();
    let refused = serve_http(server.service(), listener, HttpSettings::default()).await;
    let Err(error @ ServeError::TokenMissing { .. }) = refused else { panic!("{refused:?}") };
    assert!(error.to_string().contains("set a token, or listen on 127.0.0.1"), "{error}");
}

#[tokio::test]
async fn what_is_no_message_is_refused_with_a_reason() {
    let mut server = Server::new();
    server.limits.max_message_bytes = 2000;
    let address = server.port(HttpSettings::default()).await;
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let huge = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{}"}}"#, "x".repeat(3000));
    for (body, status, code) in [
        ("garbage", 400, -32700),
        (&*format!("[{ping}]"), 400, -32600),
        (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, 400, -32600),
        (&*huge, 413, -32600),
    ] {
        let reply = post(address, HOST, body).await;
        assert_eq!(reply.status, status, "{body}");
        assert_eq!(reply.json()["error"]["code"], code, "{body}");
    }
    let elsewhere = send(address, &format!("POST /other HTTP/1.1{HOST}"), ping).await;
    assert_eq!(elsewhere.status, 404);
    assert!(elsewhere.body.contains("the endpoint is `/mcp`"));
    let put = send(address, &format!("PUT /mcp HTTP/1.1{HOST}"), ping).await;
    assert_eq!((put.status, put.header("allow")), (405, Some("GET, POST, DELETE")));
}

/// Returns how many of these sessions are still there.
async fn live_sessions(address: SocketAddr, begun: &[Reply]) -> usize {
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let mut live = 0;
    for reply in begun {
        let id = reply.header("mcp-session-id").unwrap();
        let headers = format!("{HOST}\r\nMcp-Session-Id: {id}");
        live += usize::from(post(address, &headers, ping).await.status != 404);
    }
    live
}

#[tokio::test]
async fn abandoned_sessions_make_room_for_new_clients() {
    let mut server = Server::new();
    let address = server.port(HttpSettings::default()).await;
    let mut begun = Vec::new();
    for client in 0..130 {
        let reply = post(address, HOST, &hello()).await;
        assert_eq!(reply.status, 200, "client {client}");
        begun.push(reply);
    }
    assert_eq!(live_sessions(address, &begun[..2]).await, 0, "the first two were given up");
    assert_eq!(live_sessions(address, &begun[2..]).await, 128);
}

#[tokio::test]
async fn not_even_clients_that_come_all_at_once_pass_the_limit() {
    let mut server = Server::new();
    let mut settings = HttpSettings::default();
    settings.max_sessions = 2;
    let address = server.port(settings).await;
    let body = hello();
    let coming = (0..20).map(|_| post(address, HOST, &body));
    let replies = futures_util::future::join_all(coming).await;
    assert!(replies.iter().all(|reply| reply.status == 200));
    assert_eq!(live_sessions(address, &replies).await, 2);
}

#[tokio::test]
async fn a_server_stops_although_clients_hold_on() {
    let mut server = Server::new();
    let client = server.connect(Way::OldHttp).await;
    client.running.list_all_tools().await.unwrap();
    server.stop.cancel();
    assert!(server.served.join_next().await.unwrap().unwrap().is_ok());
}

/// A stream is for what comes before an answer. Where nothing does, the answer is all there is.
#[tokio::test]
async fn only_a_call_that_has_something_to_say_first_is_answered_with_a_stream() {
    let mut server = Server::new();
    let address = server.port(HttpSettings::default()).await;
    for (tool, arguments, kind) in [
        ("greet", json!({ "name": "Ada" }), "application/json"),
        ("talk", json!({}), "text/event-stream"),
    ] {
        let request = json!({
            "jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": { "name": tool, "arguments": arguments, "_meta": {
                "progressToken": 1,
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": {},
            } },
        });
        let headers = format!(
            "{HOST}\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: {tool}"
        );
        let reply = post(address, &headers, &request.to_string()).await;
        assert_eq!(
            (reply.status, reply.header("content-type")),
            (200, Some(kind)),
            "{}",
            reply.body
        );
    }
}
