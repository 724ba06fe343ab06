//! Bodies: their text, their limit, and the ways in which they fail to end.

use super::*;

const LIMIT: usize = 100_000;

fn limited() -> HttpSettings {
    HttpSettings { max_body_bytes: LIMIT, ..open() }
}

#[tokio::test]
async fn text_is_decoded_and_the_rest_is_base64() {
    for (content_type, body, expected, encoding) in [
        ("text/plain; charset=iso-8859-1", b"gr\xfcn".as_slice(), "grün", None),
        ("text/html", "grün".as_bytes(), "grün", None),
        ("application/json", b"{\"a\":1}", "{\"a\":1}", None),
        ("image/png", b"\x89PNG\x00\xff", "iVBORwD/", Some("base64")),
    ] {
        let server = Server::answering(answer(200, &[("content-type", content_type)], body)).await;
        let result = get(open(), server.url("/")).await;
        let value = value(&result);
        assert_eq!(value["body"], expected, "{content_type}");
        assert_eq!(value.get("encoding").and_then(Value::as_str), encoding, "{content_type}");
        assert_eq!(value.get("bodyBytes").is_some(), encoding.is_some(), "{content_type}");
        if encoding.is_some() {
            assert!(
                result.text().ends_with("\n\n[6 bytes that are not text]"),
                "{}",
                result.text()
            );
        }
    }
}

#[tokio::test]
async fn a_body_that_never_ends_is_cut() {
    let server = Server::start(|_| {
        vec![Step::Send(head(200, &[])), Step::Forever(b"0123456789".repeat(1000))]
    })
    .await;
    let result = get(limited(), server.url("/")).await;
    let value = value(&result);
    assert_eq!((&value["truncated"], &value["bodyBytes"]), (&json!(true), &json!(LIMIT)));
    assert_eq!(value["body"].as_str().unwrap().len(), LIMIT);
    assert!(result.text().contains("only the first 100000 bytes of the body are here"));
}

#[tokio::test]
async fn a_body_as_long_as_the_limit_is_whole() {
    for (length, truncated) in [(LIMIT - 1, None), (LIMIT, None), (LIMIT + 1, Some(true))] {
        let server = Server::answering(answer(200, &[], vec![b'x'; length])).await;
        let result = get(limited(), server.url("/")).await;
        assert_eq!(value(&result).get("truncated").and_then(Value::as_bool), truncated);
        assert_eq!(value(&result)["body"].as_str().unwrap().len(), length.min(LIMIT));
    }
}

#[tokio::test]
async fn compressed_bodies_are_unpacked() {
    // `hello`, as gzip writes it.
    let gzip =
        b"\x1f\x8b\x08\0\0\0\0\0\x02\xff\xcb\x48\xcd\xc9\xc9\x07\0\x86\xa6\x10\x36\x05\0\0\0";
    let headers = [("content-encoding", "gzip"), ("content-type", "text/plain")];
    let server = Server::answering(answer(200, &headers, gzip)).await;
    let result = get(open(), server.url("/")).await;
    assert_eq!(value(&result)["body"], "hello");
    assert!(server.only_request().header("accept-encoding").unwrap().contains("gzip"));
}

#[tokio::test]
async fn a_small_body_that_unpacks_to_a_huge_one_is_cut() {
    let bomb = gzip_bomb(250_000);
    assert!(bomb.len() < 500_000);
    let headers = [("content-encoding", "gzip"), ("content-type", "text/plain")];
    let server = Server::answering(answer(200, &headers, bomb)).await;
    let result = get(limited(), server.url("/")).await;
    let value = value(&result);
    assert_eq!((&value["truncated"], &value["bodyBytes"]), (&json!(true), &json!(LIMIT)));
}

/// Writes `1 + 258 × repeats` letters as gzip, in 13 bits for 258 letters: one literal, then "the last
/// letter, 258 times", with the fixed codes of deflate.
fn gzip_bomb(repeats: usize) -> Vec<u8> {
    let block = [1, 1, 0];
    let literal_a = [1, 0, 0, 1, 0, 0, 0, 1];
    let length_258_distance_1 = [1, 1, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0, 0];
    let end = [0; 7];
    let mut bits: Vec<u8> = block.into_iter().chain(literal_a).collect();
    bits.extend(length_258_distance_1.iter().cycle().take(13 * repeats));
    bits.extend(end);
    let packed = bits.chunks(8).map(|byte| byte.iter().rev().fold(0, |all, bit| all << 1 | bit));
    let head = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 2, 0xff];
    head.into_iter().chain(packed).chain([0; 8]).collect()
}

#[tokio::test]
async fn chunks_are_joined() {
    let mut bytes = head(200, &[("transfer-encoding", "chunked")]);
    bytes.extend(b"5\r\nhello\r\n7;x=y\r\n, world\r\n0\r\nx-trailer: 1\r\n\r\n");
    let server = Server::answering(bytes).await;
    assert_eq!(value(&get(open(), server.url("/")).await)["body"], "hello, world");
}

#[tokio::test]
async fn what_lies_beyond_the_declared_length_is_not_read() {
    let mut bytes = answer(200, &[], "hello");
    bytes.extend(b" and more");
    let server = Server::answering(bytes).await;
    assert_eq!(value(&get(open(), server.url("/")).await)["body"], "hello");
}

#[tokio::test]
async fn a_body_that_breaks_off_is_a_failure_that_keeps_what_there_was() {
    let mut short = head(200, &[("content-length", "100")]);
    short.extend(b"half of");
    let mut chunk = head(200, &[("transfer-encoding", "chunked")]);
    chunk.extend(b"7\r\nhalf of\r\n50\r\nno");
    for bytes in [short, chunk] {
        let server = Server::answering(bytes).await;
        let result = get(open(), server.url("/")).await;
        fails(&result, ErrorKind::Failed, "the answer broke off");
        let CallOutcome::Failed { partial: Some(partial), error } = &result.outcome else {
            panic!("{result:?}");
        };
        assert!(partial["body"].as_str().unwrap().starts_with("half of"), "{partial}");
        assert_eq!(partial["truncated"], true);
        assert!(error.message.contains(&format!("127.0.0.1:{}", server.port())));
        assert!(error.causes.len() > 1, "{error:?}");
    }
}

#[tokio::test]
async fn a_body_that_drips_is_cut_by_the_time_limit_and_kept() {
    let server = Server::start(|request| match request.path() {
        "/first" => vec![Step::Send(answer(200, &[], ""))],
        _ => vec![Step::Send(head(200, &[])), Step::Drip(b'x', Duration::from_millis(5))],
    })
    .await;
    let executor = executor(open());
    let get = |path| ToolCall::new("c", "http_get", json!({ "url": server.url(path) }));
    // The first call sets the client up; the second has its time to itself.
    assert!(executor.execute(get("/first")).await.success());
    let started = Instant::now();
    let limit = CallOptions::timeout(Duration::from_millis(500));
    let result = executor.execute_with(get("/drip"), limit).await;
    fails(&result, ErrorKind::Timeout, "timed out after 500ms");
    assert!(started.elapsed() < Duration::from_secs(2), "{:?}", started.elapsed());
    let CallOutcome::Failed { partial: Some(partial), .. } = &result.outcome else {
        panic!("{result:?}");
    };
    assert!(partial["body"].as_str().unwrap().starts_with('x'), "{partial}");
    assert_eq!(partial["truncated"], true);
}
