//! What goes wrong before there is an answer, and what is said about it.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::*;

#[tokio::test]
async fn a_server_that_never_answers_ends_with_the_time_limit() {
    let server = Server::start(|_| vec![Step::Hang]).await;
    let started = Instant::now();
    let limit = Duration::from_millis(200);
    let result = call_within(open(), "http_get", json!({ "url": server.url("/") }), limit).await;
    fails(&result, ErrorKind::Timeout, "timed out after 200ms");
    assert!(started.elapsed() < Duration::from_secs(2), "{:?}", started.elapsed());
}

#[tokio::test]
async fn a_refused_connection_names_the_place() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let result = get(open(), format!("http://127.0.0.1:{port}/")).await;
    fails(
        &result,
        ErrorKind::Unavailable,
        &format!("`127.0.0.1:{port}`: the connection was refused"),
    );
    let error = result.error().unwrap();
    assert!(error.causes.iter().any(|cause| cause.contains("refused")), "{error:?}");
    assert_eq!(error.details, Some(json!({ "host": "127.0.0.1", "port": port })));
}

#[tokio::test]
async fn a_name_without_address_is_unavailable() {
    // A label this long cannot exist, so nobody is asked for it.
    let host = format!("{}.invalid", "x".repeat(64));
    for settings in [open(), HttpSettings::default()] {
        let result = get(settings, &format!("http://{host}/?token=abc")).await;
        fails(&result, ErrorKind::Unavailable, &format!("`{host}:80`: the host name could not"));
        assert!(!format!("{:?}", result.error()).contains("abc"), "{result:?}");
    }
}

#[tokio::test]
async fn a_server_without_tls_gives_no_secure_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let answer_anything = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        assert!(stream.read(&mut [0; 1]).await.unwrap() > 0);
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await.unwrap();
        drop(stream.read_to_end(&mut Vec::new()).await);
    };
    let (result, ()) =
        tokio::join!(get(open(), format!("https://127.0.0.1:{port}/")), answer_anything);
    fails(&result, ErrorKind::Failed, "no secure connection could be made");
}

#[tokio::test]
async fn what_is_no_http_fails_and_breaks_nothing() {
    let mut many_headers = b"HTTP/1.1 200 OK\r\n".to_vec();
    for number in 0..500 {
        many_headers.extend(format!("x-{number}: {number}\r\n").into_bytes());
    }
    many_headers.extend(b"\r\n");
    let mut long_header = b"HTTP/1.1 200 OK\r\nx-long: ".to_vec();
    long_header.extend(vec![b'x'; 2 * 1024 * 1024]);
    long_header.extend(b"\r\n\r\n");
    let cases: [&[u8]; 6] = [
        b"",
        b"HTTP/1.1 2",
        b"220 mail.example ESMTP\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\nhello!",
        &many_headers,
        &long_header,
    ];
    for bytes in cases {
        let server = Server::answering(bytes).await;
        let result = get(open(), server.url("/")).await;
        let start = String::from_utf8_lossy(&bytes[..bytes.len().min(40)]);
        fails(&result, ErrorKind::Failed, &format!("`127.0.0.1:{}`", server.port()));
        assert!(!result.error().unwrap().causes.is_empty(), "{start}");
    }
}
