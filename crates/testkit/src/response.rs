//! Writes HTTP answers.

/// Writes the head of a stream of events.
pub(crate) fn stream_head(headers: &[(String, String)]) -> Vec<u8> {
    let mut head = String::from(
        "HTTP/1.1 200 OK\r\n\
         content-type: text/event-stream; charset=utf-8\r\n\
         cache-control: no-cache\r\n\
         x-request-id: req_testkit\r\n\
         transfer-encoding: chunked\r\n",
    );
    add_headers(&mut head, headers);
    head.into_bytes()
}

/// Adds a chunk of a body.
pub(crate) fn push_chunk(bytes: &mut Vec<u8>, chunk: &[u8]) {
    bytes.extend(format!("{:x}\r\n", chunk.len()).as_bytes());
    bytes.extend(chunk);
    bytes.extend(b"\r\n");
}

/// What ends a body of chunks.
pub(crate) const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

/// Writes an answer whose body is known.
pub(crate) fn whole(
    status: u16,
    content_type: &str,
    headers: &[(String, String)],
    body: &[u8],
) -> Vec<u8> {
    let mut head = format!(
        "HTTP/1.1 {status} {}\r\ncontent-type: {content_type}\r\ncontent-length: {}\r\n",
        reason(status),
        body.len(),
    );
    add_headers(&mut head, headers);
    let mut bytes = head.into_bytes();
    bytes.extend(body);
    bytes
}

fn add_headers(head: &mut String, headers: &[(String, String)]) {
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("\r\n");
}

/// Returns the words that go with a status.
pub(crate) const fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        413 => "Content Too Large",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        500 => "Internal Server Error",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        529 => "Site Is Overloaded",
        _ => "Status",
    }
}
