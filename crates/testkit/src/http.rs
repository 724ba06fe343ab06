//! Reads HTTP/1.1 requests, as many from a connection as the client sends.

use std::io;

use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::seen::Seen;

/// The longest head of a request.
const MAX_HEAD: usize = 64 * 1024;
/// The longest body of a request.
const MAX_BODY: usize = 64 * 1024 * 1024;

/// A request, and whether another may follow it.
#[derive(Debug)]
pub(crate) struct Incoming {
    pub(crate) seen: Seen,
    pub(crate) keep_alive: bool,
}

/// Why there is no request.
#[derive(Debug)]
pub(crate) enum NoRequest {
    /// The client has closed the connection, or it broke.
    Gone,
    /// What came is not a request; this status says why.
    Refused(u16),
}

impl From<io::Error> for NoRequest {
    fn from(_: io::Error) -> Self {
        Self::Gone
    }
}

/// Reads the next request. The writer is for the one thing that is said in the middle of a request:
/// that the body may come.
pub(crate) async fn read_request<R, W>(
    reader: &mut R,
    writer: &mut W,
) -> Result<Incoming, NoRequest>
where
    R: AsyncBufRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let head = read_head(reader).await?;
    let head = parse_head(&head).ok_or(NoRequest::Refused(400))?;
    if head.has("expect", "100-continue") {
        writer.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").await?;
        writer.flush().await?;
    }
    let body = if head.has("transfer-encoding", "chunked") {
        read_chunks(reader).await?
    } else {
        let length = head.header("content-length").map_or(Ok(0), str::parse);
        let length: usize = length.map_err(|_| NoRequest::Refused(400))?;
        let mut body = Vec::new();
        read_more(reader, &mut body, length).await?;
        body
    };
    let keep_alive = head.is_1_1 && !head.has("connection", "close");
    let seen = Seen::new(head.method, &head.target, head.headers, body);
    Ok(Incoming { seen, keep_alive })
}

struct Head {
    method: String,
    target: String,
    is_1_1: bool,
    headers: Vec<(String, String)>,
}

impl Head {
    fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    fn has(&self, name: &str, value: &str) -> bool {
        self.header(name).is_some_and(|found| found.eq_ignore_ascii_case(value))
    }
}

/// Reads up to and including the empty line that ends a head.
async fn read_head<R: AsyncBufRead + Unpin>(reader: &mut R) -> Result<Vec<u8>, NoRequest> {
    let mut head = Vec::new();
    loop {
        let line = read_line(reader, &mut head, MAX_HEAD, 431).await?;
        match head.len() {
            total if line <= 2 && total > line => return Ok(head),
            // Empty lines before a request are to be passed over.
            _ if line <= 2 => head.clear(),
            _ => {}
        }
    }
}

/// Reads one more line and returns its length, its end included.
async fn read_line<R: AsyncBufRead + Unpin>(
    reader: &mut R,
    text: &mut Vec<u8>,
    limit: usize,
    too_long: u16,
) -> Result<usize, NoRequest> {
    let left = limit.saturating_sub(text.len());
    let mut limited = reader.take(u64::try_from(left).unwrap_or(u64::MAX));
    let length = limited.read_until(b'\n', text).await?;
    if text.last() == Some(&b'\n') && length > 0 {
        Ok(length)
    } else if text.len() >= limit {
        Err(NoRequest::Refused(too_long))
    } else {
        Err(NoRequest::Gone)
    }
}

fn parse_head(head: &[u8]) -> Option<Head> {
    let text = str::from_utf8(head).ok()?;
    let mut lines = text.lines();
    let mut words = lines.next()?.split(' ');
    let (method, target, version) = (words.next()?, words.next()?, words.next()?);
    if words.next().is_some() || !version.starts_with("HTTP/1.") {
        return None;
    }
    let headers = lines.take_while(|line| !line.is_empty()).map(|line| {
        let (name, value) = line.split_once(':')?;
        Some((name.to_ascii_lowercase(), value.trim().to_owned()))
    });
    Some(Head {
        method: method.to_owned(),
        target: target.to_owned(),
        is_1_1: version == "HTTP/1.1",
        headers: headers.collect::<Option<_>>()?,
    })
}

/// Reads a body that comes in chunks, and the trailer, which is thrown away.
async fn read_chunks<R: AsyncBufRead + Unpin>(reader: &mut R) -> Result<Vec<u8>, NoRequest> {
    let mut body = Vec::new();
    loop {
        let mut line = Vec::new();
        read_line(reader, &mut line, 1024, 400).await?;
        let line = str::from_utf8(&line).map_err(|_| NoRequest::Refused(400))?;
        let size = line.split(';').next().unwrap_or_default().trim();
        let size = usize::from_str_radix(size, 16).map_err(|_| NoRequest::Refused(400))?;
        if size == 0 {
            let mut trailer = Vec::new();
            while read_line(reader, &mut trailer, MAX_HEAD, 431).await? > 2 {}
            return Ok(body);
        }
        read_more(reader, &mut body, size).await?;
        let mut end = [0; 2];
        reader.read_exact(&mut end).await?;
        if end != *b"\r\n" {
            return Err(NoRequest::Refused(400));
        }
    }
}

/// Reads exactly so many bytes more.
async fn read_more<R: AsyncBufRead + Unpin>(
    reader: &mut R,
    body: &mut Vec<u8>,
    length: usize,
) -> Result<(), NoRequest> {
    let total = body.len().checked_add(length).filter(|total| *total <= MAX_BODY);
    let total = total.ok_or(NoRequest::Refused(413))?;
    body.reserve_exact(length);
    let limit = u64::try_from(length).unwrap_or(u64::MAX);
    reader.take(limit).read_to_end(body).await?;
    if body.len() == total { Ok(()) } else { Err(NoRequest::Gone) }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn read(bytes: &[u8]) -> Result<Incoming, NoRequest> {
        let mut reader = bytes;
        read_request(&mut reader, &mut Vec::new()).await
    }

    #[tokio::test]
    async fn requests_follow_each_other() {
        let mut reader: &[u8] = b"POST /a?b=c HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc\
                                  \r\nGET /d HTTP/1.0\r\n\r\n";
        let first = read_request(&mut reader, &mut Vec::new()).await.unwrap();
        assert!(first.keep_alive);
        assert_eq!((&*first.seen.path, &*first.seen.query), ("/a", "b=c"));
        assert_eq!((first.seen.header("HOST"), &*first.seen.body), (Some("x"), &b"abc"[..]));
        let second = read_request(&mut reader, &mut Vec::new()).await.unwrap();
        assert!(!second.keep_alive);
        assert_eq!((&*second.seen.method, &*second.seen.path), ("GET", "/d"));
        let end = read_request(&mut reader, &mut Vec::new()).await;
        assert!(matches!(end, Err(NoRequest::Gone)));
    }

    #[tokio::test]
    async fn chunks_are_put_together() {
        let request = b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n\
                        3;x=y\r\nabc\r\nA\r\n0123456789\r\n0\r\nTrailer: t\r\n\r\n";
        assert_eq!(read(request).await.unwrap().seen.body, b"abc0123456789");
    }

    #[tokio::test]
    async fn a_body_that_is_expected_is_asked_for() {
        let mut reader: &[u8] =
            b"POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\nx";
        let mut written = Vec::new();
        let request = read_request(&mut reader, &mut written).await.unwrap();
        assert_eq!(
            (&*request.seen.body, &*written),
            (&b"x"[..], &b"HTTP/1.1 100 Continue\r\n\r\n"[..])
        );
    }

    #[tokio::test]
    async fn nonsense_and_excess_are_refused() {
        let long = format!("GET / HTTP/1.1\r\nx: {}\r\n\r\n", "y".repeat(MAX_HEAD));
        let cases: [(&[u8], u16); 7] = [
            (b"hello\r\n\r\n", 400),
            (b"GET / HTTP/2\r\n\r\n", 400),
            (b"GET / HTTP/1.1\r\nno colon\r\n\r\n", 400),
            (b"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", 400),
            (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 400),
            (b"POST / HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n", 413),
            (long.as_bytes(), 431),
        ];
        for (request, status) in cases {
            let refused = read(request).await;
            assert!(
                matches!(refused, Err(NoRequest::Refused(found)) if found == status),
                "{refused:?}"
            );
        }
        assert!(matches!(
            read(b"POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nabc").await,
            Err(NoRequest::Gone)
        ));
    }
}
