use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::*;

/// A server near us that answers everything with what it was asked.
async fn echo() -> (u16, JoinSet<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let mut clients = JoinSet::new();
        while let Ok((mut client, _)) = listener.accept().await {
            clients.spawn(async move {
                let mut buffer = [0; 4096];
                let length = client.read(&mut buffer).await.unwrap();
                client.write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n").await.unwrap();
                client.write_all(&buffer[..length]).await.unwrap();
                client.shutdown().await.unwrap();
            });
        }
    });
    (port, tasks)
}

fn proxy(hosts: &[String]) -> (std::net::SocketAddr, Proxy) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    (address, Proxy::start(listener, Arc::new(Hosts::parse(hosts).unwrap())).unwrap())
}

/// Says something, and returns all that is answered.
async fn say(proxy: std::net::SocketAddr, text: &str) -> String {
    let mut client = TcpStream::connect(proxy).await.unwrap();
    client.write_all(text.as_bytes()).await.unwrap();
    let mut answer = String::new();
    client.read_to_string(&mut answer).await.unwrap();
    answer
}

#[tokio::test]
async fn a_listed_host_is_reached_both_ways() {
    let (port, _server) = echo().await;
    let (address, _proxy) = proxy(&[format!("127.0.0.1:{port}")]);
    let get = format!("GET http://127.0.0.1:{port}/path HTTP/1.1\r\nHost: evil.org\r\n\r\n");
    let answer = say(address, &get).await;
    assert!(answer.contains("GET /path HTTP/1.1\r\nHost: 127.0.0.1:"), "{answer}");
    assert!(!answer.contains("evil.org"), "{answer}");
    let connect = format!("CONNECT 127.0.0.1:{port} HTTP/1.1\r\n\r\nhello");
    let answer = say(address, &connect).await;
    assert!(answer.starts_with("HTTP/1.1 200 Connection established\r\n\r\n"), "{answer}");
    assert!(answer.ends_with("hello"), "{answer}");
}

#[tokio::test]
async fn what_is_not_listed_is_refused_with_words() {
    let (port, _server) = echo().await;
    let listed = [format!("127.0.0.1:{port}"), "*.example.com".to_owned()];
    let (address, _proxy) = proxy(&listed);
    for text in [
        "CONNECT evil.org:443 HTTP/1.1\r\n\r\n".to_owned(),
        "GET http://evil.org/ HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".to_owned(),
        format!("CONNECT 127.0.0.1:{} HTTP/1.1\r\n\r\n", port ^ 1),
        format!("CONNECT localhost:{port} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n"),
        format!("CONNECT [::ffff:127.0.0.1]:{port} HTTP/1.1\r\n\r\n"),
        "CONNECT www.example.com:22 HTTP/1.1\r\n\r\n".to_owned(),
    ] {
        let answer = say(address, &text).await;
        assert!(answer.starts_with("HTTP/1.1 403 "), "{text}: {answer}");
        assert!(answer.contains("sandbox.hosts") && answer.contains("*.example.com"), "{answer}");
    }
}

/// The system's resolver reads such a name as this machine.
#[tokio::test]
async fn a_name_that_leads_near_us_is_refused() {
    let (port, _server) = echo().await;
    let (address, _proxy) = proxy(&[format!("0x7f.1:{port}")]);
    let answer = say(address, &format!("CONNECT 0x7f.1:{port} HTTP/1.1\r\n\r\n")).await;
    assert!(answer.starts_with("HTTP/1.1 403 ") && answer.contains("loopback"), "{answer}");
}

#[tokio::test]
async fn what_is_not_a_request_is_refused_within_bounds() {
    let (address, _proxy) = proxy(&[]);
    let answer = say(address, "GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 400 ") && answer.contains("CONNECT"), "{answer}");
    let long = format!("GET http://a/ HTTP/1.1\r\nX: {}\r\n\r\n", "x".repeat(20_000));
    let answer = say(address, &long).await;
    assert!(answer.starts_with("HTTP/1.1 431 "), "{answer}");
}

#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_say_what_it_wants_is_sent_away() {
    let (address, _proxy) = proxy(&[]);
    let answer = say(address, "CONNECT example.com:443 HTTP/1.1\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
}

#[tokio::test]
async fn connections_end_with_the_proxy() {
    let (port, _server) = echo().await;
    let (address, proxy) = proxy(&[format!("127.0.0.1:{port}")]);
    let mut client = TcpStream::connect(address).await.unwrap();
    client
        .write_all(format!("CONNECT 127.0.0.1:{port} HTTP/1.1\r\n\r\n").as_bytes())
        .await
        .unwrap();
    let mut answer = [0; 12];
    client.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"HTTP/1.1 200");
    drop(proxy);
    client.read_to_end(&mut Vec::new()).await.ok();
    let refused = TcpStream::connect(address).await.unwrap_err();
    assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
}
