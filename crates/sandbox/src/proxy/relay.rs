//! Bytes between a client and a server, for as long as any move.
//!
//! A tunnel carries everything both ways. A request that is handed on carries its own body and not a
//! byte more, so that nothing behind it reaches the server as another request, with a host of its own.

use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{
    AsyncBufRead, AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader,
};
use tokio::net::TcpStream;
use tokio::time::Instant;

use super::request::Body;

/// How long nothing may move.
const IDLE: Duration = Duration::from_mins(5);
const CHUNK: usize = 16 * 1024;
/// How long the line before a piece of a body may be.
const LONGEST_LINE: u64 = 1024;
const CONNECTED: &[u8] = b"HTTP/1.1 200 Connection established\r\n\r\n";

/// Carries everything both ways. `first` is what the client has already said.
pub(super) async fn tunnel(
    client: &mut TcpStream,
    mut server: TcpStream,
    first: &[u8],
) -> io::Result<()> {
    client.write_all(CONNECTED).await?;
    let (from_client, to_client) = client.split();
    let (from_server, to_server) = server.split();
    let moving = Moving::new();
    let there = pump(first.chain(from_client), to_server, &moving);
    let back = pump(from_server, to_client, &moving);
    tokio::select! {
        (there, back) = async { tokio::join!(there, back) } => there.and(back),
        () = moving.has_stopped() => Err(io::ErrorKind::TimedOut.into()),
    }
}

/// Hands on one request, and its answer until the server has no more to say.
pub(super) async fn forward(
    client: &mut TcpStream,
    mut server: TcpStream,
    head: &str,
    first: &[u8],
    body: Body,
) -> io::Result<()> {
    server.write_all(head.as_bytes()).await?;
    let (from_client, to_client) = client.split();
    let (from_server, to_server) = server.split();
    let moving = Moving::new();
    let there = async {
        let sent =
            hand_on(body, BufReader::new(first.chain(from_client)), to_server, &moving).await;
        // A server may answer before it has read everything, so only a failure ends it here.
        if sent.is_ok() { std::future::pending().await } else { sent }
    };
    tokio::select! {
        sent = there => sent,
        answered = pump(from_server, to_client, &moving) => answered,
        () = moving.has_stopped() => Err(io::ErrorKind::TimedOut.into()),
    }
}

/// When something last moved.
struct Moving(Mutex<Instant>);

impl Moving {
    fn new() -> Self {
        Self(Mutex::new(Instant::now()))
    }

    fn note(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    async fn has_stopped(&self) {
        loop {
            let last = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if last.elapsed() >= IDLE {
                return;
            }
            tokio::time::sleep_until(last + IDLE).await;
        }
    }
}

/// Carries everything one way, and then the end.
async fn pump(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    moving: &Moving,
) -> io::Result<()> {
    let mut buffer = vec![0; CHUNK];
    loop {
        let length = from.read(&mut buffer).await?;
        if length == 0 {
            return to.shutdown().await;
        }
        moving.note();
        to.write_all(buffer.get(..length).unwrap_or_default()).await?;
        moving.note();
    }
}

async fn hand_on(
    body: Body,
    mut from: impl AsyncBufRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    moving: &Moving,
) -> io::Result<()> {
    match body {
        Body::Length(length) => exactly(length, &mut from, &mut to, moving).await,
        Body::Chunked => loop {
            let size = size_of_piece(&line(&mut from).await?)?;
            to.write_all(format!("{size:x}\r\n").as_bytes()).await?;
            if size == 0 {
                // What follows the last piece says nothing that anybody needs.
                while line(&mut from).await? != "\r\n" {}
                break to.write_all(b"\r\n").await;
            }
            exactly(size, &mut from, &mut to, moving).await?;
            if line(&mut from).await? != "\r\n" {
                break Err(io::ErrorKind::InvalidData.into());
            }
            to.write_all(b"\r\n").await?;
        },
    }
}

async fn exactly(
    mut length: u64,
    from: &mut (impl AsyncBufRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
    moving: &Moving,
) -> io::Result<()> {
    while length > 0 {
        let there = from.fill_buf().await?;
        let most = usize::try_from(length).unwrap_or(usize::MAX).min(there.len());
        let piece = there.get(..most).unwrap_or_default();
        if piece.is_empty() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        to.write_all(piece).await?;
        from.consume(most);
        length -= most as u64;
        moving.note();
    }
    Ok(())
}

async fn line(from: &mut (impl AsyncBufRead + Unpin)) -> io::Result<String> {
    let mut line = String::new();
    from.take(LONGEST_LINE).read_line(&mut line).await?;
    if line.ends_with("\r\n") { Ok(line) } else { Err(io::ErrorKind::InvalidData.into()) }
}

/// Reads the size of a piece; what may stand behind it is left out.
fn size_of_piece(line: &str) -> io::Result<u64> {
    let digits = line.split([';', '\r']).next().unwrap_or_default().trim_end();
    let right = (1..=15).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_hexdigit());
    let size = u64::from_str_radix(digits, 16).ok().filter(|_| right);
    size.ok_or_else(|| io::ErrorKind::InvalidData.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn handed_on(body: Body, from: &str) -> Result<String, io::ErrorKind> {
        let mut to = Vec::new();
        let sent = hand_on(body, from.as_bytes(), &mut to, &Moving::new()).await;
        sent.map(|()| String::from_utf8(to).unwrap()).map_err(|error| error.kind())
    }

    #[tokio::test]
    async fn a_body_is_handed_on_and_not_a_byte_more() {
        let behind = "GET /hidden HTTP/1.1\r\nHost: evil.org\r\n\r\n";
        let sent = handed_on(Body::Length(5), &format!("hello{behind}")).await;
        assert_eq!(sent.as_deref(), Ok("hello"));
        let pieces =
            format!("5;x=y\r\nhello\r\n00a\r\n0123456789\r\n0\r\nTrailer: x\r\n\r\n{behind}");
        let sent = handed_on(Body::Chunked, &pieces).await;
        assert_eq!(sent.as_deref(), Ok("5\r\nhello\r\na\r\n0123456789\r\n0\r\n\r\n"));
    }

    #[tokio::test]
    async fn pieces_that_are_none_end_the_request() {
        for pieces in [
            "",
            "zz\r\n",
            "-1\r\n",
            "5\nhello\r\n0\r\n\r\n",
            "5\r\nhelloGET",
            "5\r\nhello more\r\n",
            "fffffffffffffffff\r\n",
            "5\r\nhel",
        ] {
            assert!(handed_on(Body::Chunked, pieces).await.is_err(), "{pieces:?}");
        }
        assert!(handed_on(Body::Length(5), "hel").await.is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_on_which_nothing_moves_is_over() {
        let moving = Moving::new();
        let start = Instant::now();
        let some = async {
            tokio::time::sleep(IDLE / 2).await;
            moving.note();
            std::future::pending::<()>().await;
        };
        tokio::select! {
            () = some => {}
            () = moving.has_stopped() => {}
        }
        assert_eq!(start.elapsed(), IDLE / 2 * 3);
    }
}
