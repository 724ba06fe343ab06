//! What the tests of this crate share: a wire that is easy to read, and a server that says what it is
//! told.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener as StdListener};
use std::sync::{Arc, Mutex};

use convoke_core::{Message, ModelFacts, Role, Usage};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinSet;

use crate::error::ModelErrorKind;
use crate::model::{Answer, Chunk, StopReason};
use crate::request::Request;
use crate::wire::{Complaint, Decoder, Outgoing, Wire, kind_of_status};

/// A wire whose events are words: `T` and a text, `H` and a thought, `C` and a tool, `A` and arguments,
/// `END` of the answer, `BYE` where nothing follows.
pub(crate) struct FakeWire;
pub(crate) static FAKE_WIRE: FakeWire = FakeWire;

impl Wire for FakeWire {
    fn headers(&self, key: Option<&str>) -> Vec<(&'static str, String)> {
        key.map(|key| ("x-key", key.to_owned())).into_iter().collect()
    }

    fn encode(&self, model: &str, _: &ModelFacts, request: &Request<'_>) -> Outgoing {
        Outgoing { path: format!("ask/{model}"), body: request.system.as_bytes().to_vec() }
    }

    fn decoder(&self) -> Box<dyn Decoder> {
        Box::<FakeDecoder>::default()
    }

    fn error(&self, status: u16, body: &[u8]) -> Complaint {
        let message = String::from_utf8_lossy(body).into_owned();
        let kind =
            if message.contains("quota") { ModelErrorKind::Quota } else { kind_of_status(status) };
        Complaint::new(kind, message)
    }
}

#[derive(Default)]
struct FakeDecoder {
    text: String,
    arguments: usize,
    complete: bool,
    over: bool,
}

impl Decoder for FakeDecoder {
    fn event(
        &mut self,
        _: Option<&str>,
        data: &str,
        chunks: &mut Vec<Chunk>,
    ) -> Result<(), Complaint> {
        let (word, rest) = data.split_once(' ').unwrap_or((data, ""));
        match word {
            "T" => {
                self.text.push_str(rest);
                chunks.push(Chunk::Text(rest.to_owned()));
            }
            "H" => chunks.push(Chunk::Thought(rest.to_owned())),
            "C" => chunks.push(Chunk::ToolCall { name: rest.to_owned() }),
            "A" => self.arguments += rest.len(),
            "END" => self.complete = true,
            "BYE" => (self.complete, self.over) = (true, true),
            "BUSY" => {
                return Err(Complaint::new(ModelErrorKind::Server, "too busy"));
            }
            _ => return Err(Complaint::malformed(format!("`{data}` is no event"))),
        }
        Ok(())
    }

    fn is_complete(&self) -> bool {
        self.complete
    }

    fn is_over(&self) -> bool {
        self.over
    }

    fn call_bytes(&self) -> usize {
        self.arguments
    }

    fn finish(self: Box<Self>) -> Result<Answer, Complaint> {
        Ok(answer(&self.text))
    }
}

/// An answer of one text.
pub(crate) fn answer(text: &str) -> Answer {
    Answer {
        message: Message::text(Role::Assistant, text),
        usage: Usage::default(),
        stop: StopReason::Done,
    }
}

/// What the server does with one connection.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    bytes: Vec<u8>,
    /// Whether it leaves the connection open, and waits for the other side to close it.
    holds: bool,
}

impl Reply {
    /// Sends these bytes and closes the connection.
    pub(crate) fn raw(bytes: impl Into<Vec<u8>>) -> Self {
        Self { bytes: bytes.into(), holds: false }
    }

    pub(crate) fn new(status: u16, headers: &str, body: &str) -> Self {
        Self::raw(format!("HTTP/1.1 {status} Status\r\n{headers}connection: close\r\n\r\n{body}"))
    }

    pub(crate) fn json(status: u16, body: &str) -> Self {
        Self::new(status, "content-type: application/json\r\n", body)
    }

    /// Sends these events.
    pub(crate) fn events(events: &[&str]) -> Self {
        let body =
            events.iter().fold(String::new(), |body, event| body + "data: " + event + "\n\n");
        Self::new(200, "content-type: text/event-stream\r\n", &body)
    }

    /// Leaves the connection open.
    pub(crate) fn hold(mut self) -> Self {
        self.holds = true;
        self
    }
}

/// A server that answers its connections one after the other, and remembers what it was asked.
pub(crate) struct Server {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<String>>>,
    closed: UnboundedReceiver<usize>,
    _tasks: JoinSet<()>,
}

impl Server {
    pub(crate) async fn start(replies: impl IntoIterator<Item = Reply>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (sender, closed) = unbounded_channel();
        let mut tasks = JoinSet::new();
        let replies: Vec<_> = replies.into_iter().collect();
        tasks.spawn(serve(listener, replies, requests.clone(), sender));
        Self { address, requests, closed, _tasks: tasks }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn place(&self) -> String {
        self.address.to_string()
    }

    /// Returns the heads and bodies of the requests, in order.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }

    /// Waits until the other side has closed a connection that is held open.
    pub(crate) async fn closed(&mut self) -> usize {
        self.closed.recv().await.unwrap()
    }
}

async fn serve(
    listener: TcpListener,
    replies: Vec<Reply>,
    requests: Arc<Mutex<Vec<String>>>,
    closed: UnboundedSender<usize>,
) {
    let mut connections = JoinSet::new();
    for (number, reply) in replies.into_iter().enumerate() {
        let (mut stream, _) = listener.accept().await.unwrap();
        let request = read_request(&mut stream).await;
        requests.lock().unwrap().push(request);
        let closed = closed.clone();
        connections.spawn(async move {
            // The other side may be gone already.
            drop(stream.write_all(&reply.bytes).await);
            if reply.holds {
                while stream.read(&mut [0; 64]).await.is_ok_and(|count| count > 0) {}
                // The test may be over.
                closed.send(number).ok();
            }
        });
    }
    connections.join_all().await;
}

/// Reads one request to its end.
pub(crate) async fn read_request(stream: &mut TcpStream) -> String {
    let mut request = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&request).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            if body.len() >= length.map_or(0, |length| length.parse().unwrap()) {
                return text;
            }
        }
        if stream.read_buf(&mut request).await.unwrap_or(0) == 0 {
            return text;
        }
    }
}

/// The certificate of [`tls_server`], which nobody trusts.
pub(crate) const CERTIFICATE: &str = include_str!("testing/localhost.pem");

/// Starts a server behind TLS that gives every connection the same bytes; returns its address and the
/// number of connections so far.
pub(crate) fn tls_server(reply: &'static [u8]) -> (String, Arc<Mutex<usize>>) {
    let certificate = CertificateDer::from_pem_slice(CERTIFICATE.as_bytes()).unwrap();
    let key = include_bytes!("testing/localhost.key.pem");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], PrivateKeyDer::from_pem_slice(key).unwrap())
        .unwrap();
    let listener = StdListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    let (config, count) = (Arc::new(config), Arc::new(Mutex::new(0)));
    let counted = count.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            *counted.lock().unwrap() += 1;
            let connection = ServerConnection::new(config.clone()).unwrap();
            let mut stream = StreamOwned::new(connection, stream.unwrap());
            let mut request = [0; 4096];
            if stream.read(&mut request).is_ok_and(|count| count > 0) {
                drop(stream.write_all(reply));
                stream.conn.send_close_notify();
                drop(stream.flush());
            }
        }
    });
    (url, count)
}
