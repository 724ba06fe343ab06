//! A small HTTP server whose every byte a test decides.
//!
//! It reads one request a connection, remembers it, plays the steps the test gave for it, and closes.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may fail")]

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::JoinSet;

/// A request as it arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Received {
    pub(crate) method: String,
    pub(crate) target: String,
    headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Received {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    pub(crate) fn path(&self) -> &str {
        self.target.split('?').next().unwrap_or_default()
    }
}

/// What the server does next.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// Sends these bytes.
    Send(Vec<u8>),
    /// Sends these bytes again and again until nobody listens.
    Forever(Vec<u8>),
    /// Sends one byte at each beat until nobody listens.
    Drip(u8, Duration),
    /// Keeps the connection open and does nothing.
    Hang,
}

type Script = dyn Fn(&Received) -> Vec<Step> + Send + Sync;

#[derive(Default)]
struct Inbox {
    requests: Mutex<Vec<Received>>,
    arrived: Notify,
}

/// A running server; it ends when it is dropped.
pub(crate) struct Server {
    address: SocketAddr,
    received: Arc<Inbox>,
    _tasks: JoinSet<()>,
}

impl Server {
    /// Starts a server that plays what `script` says for each request.
    pub(crate) async fn start(
        script: impl Fn(&Received) -> Vec<Step> + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let received = Arc::<Inbox>::default();
        let mut tasks = JoinSet::new();
        tasks.spawn(serve(listener, Arc::clone(&received), Arc::new(script)));
        Self { address, received, _tasks: tasks }
    }

    /// Starts a server that gives the same answer to everything.
    pub(crate) async fn answering(bytes: impl Into<Vec<u8>>) -> Self {
        let bytes = bytes.into();
        Self::start(move |_| vec![Step::Send(bytes.clone())]).await
    }

    /// Returns a URL on this server, by address.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(crate) fn port(&self) -> u16 {
        self.address.port()
    }

    /// Waits until a request has arrived.
    pub(crate) async fn request_arrived(&self) {
        self.received.arrived.notified().await;
    }

    /// Returns the requests so far.
    pub(crate) fn received(&self) -> Vec<Received> {
        self.received.requests.lock().unwrap().clone()
    }

    /// Returns the one request there was.
    pub(crate) fn only_request(&self) -> Received {
        let received = self.received();
        assert_eq!(received.len(), 1, "{received:?}");
        received[0].clone()
    }
}

async fn serve(listener: TcpListener, received: Arc<Inbox>, script: Arc<Script>) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let (received, script) = (Arc::clone(&received), Arc::clone(&script));
        connections.spawn(async move {
            let mut stream = BufReader::new(stream);
            if let Some(request) = read_request(&mut stream).await {
                let steps = script(&request);
                received.requests.lock().unwrap().push(request);
                received.arrived.notify_one();
                play(stream, steps).await;
            }
        });
    }
}

async fn read_request(stream: &mut BufReader<TcpStream>) -> Option<Received> {
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await.ok().filter(|length| *length > 0)?;
        match line.trim_end() {
            "" => break,
            line => lines.push(line.to_owned()),
        }
    }
    let mut words = lines.first()?.split(' ').map(str::to_owned);
    let (method, target) = (words.next()?, words.next()?);
    let headers = lines.iter().skip(1).filter_map(|line| line.split_once(':'));
    let headers: Vec<(String, String)> =
        headers.map(|(name, value)| (name.to_owned(), value.trim().to_owned())).collect();
    let mut request = Received { method, target, headers, body: String::new() };
    let length = request.header("content-length").map_or(0, |length| length.parse().unwrap());
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    request.body = String::from_utf8(body).unwrap();
    Some(request)
}

async fn play(mut stream: BufReader<TcpStream>, steps: Vec<Step>) {
    for step in steps {
        let sent = match step {
            Step::Send(bytes) => stream.write_all(&bytes).await,
            Step::Forever(bytes) => loop {
                if let Err(error) = stream.write_all(&bytes).await {
                    break Err(error);
                }
            },
            Step::Drip(byte, beat) => loop {
                if let Err(error) = stream.write_all(&[byte]).await {
                    break Err(error);
                }
                tokio::time::sleep(beat).await;
            },
            Step::Hang => std::future::pending().await,
        };
        if sent.is_err() {
            return;
        }
    }
    // Nobody may be there to hear it.
    drop(stream.shutdown().await);
}

/// Writes a well-formed answer.
pub(crate) fn answer(status: u16, headers: &[(&str, &str)], body: impl AsRef<[u8]>) -> Vec<u8> {
    let body = body.as_ref();
    let mut bytes = head(status, headers);
    bytes.truncate(bytes.len() - 2);
    bytes.extend(format!("content-length: {}\r\n\r\n", body.len()).into_bytes());
    bytes.extend(body);
    bytes
}

/// Writes the head of an answer whose body ends with the connection.
pub(crate) fn head(status: u16, headers: &[(&str, &str)]) -> Vec<u8> {
    let headers = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n"));
    let headers: String = headers.collect();
    format!("HTTP/1.1 {status} Status\r\nconnection: close\r\n{headers}\r\n").into_bytes()
}

/// Writes an answer that leads elsewhere.
pub(crate) fn redirect(status: u16, location: &str) -> Vec<Step> {
    vec![Step::Send(answer(status, &[("location", location)], ""))]
}
