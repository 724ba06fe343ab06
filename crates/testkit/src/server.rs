//! The server: listens, keeps its connections, and says what it has seen.

use std::convert::Infallible;
use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use crate::connection::{Shared, serve};
use crate::prepared::Prepared;
use crate::record::{Counts, OpenConnection, Record};
use crate::reply::Reply;
use crate::script::Script;
use crate::seen::Seen;
#[cfg(feature = "tls")]
use crate::tls::Authority;
use crate::wire::Wire;

/// How many connections may wait to be accepted; the system may allow fewer.
const BACKLOG: u32 = 16_384;

/// How long to leave an acceptor alone that cannot accept, for want of file descriptors most likely.
const BREATH: Duration = Duration::from_millis(10);

/// A running model server. Dropping it closes its connections and its port.
pub struct ModelServer {
    address: SocketAddr,
    scheme: &'static str,
    record: Arc<Record>,
    refuse: Option<oneshot::Sender<oneshot::Sender<Infallible>>>,
    _tasks: JoinSet<()>,
}

/// How a server is to be started.
#[derive(Debug)]
#[must_use]
pub struct Options {
    models: Vec<String>,
    delay: Duration,
    port: u16,
    keep_requests: bool,
    #[cfg(feature = "tls")]
    tls: Option<Authority>,
}

impl Default for Options {
    /// One model, named `test-model`; no delay; any free port; requests are kept; no TLS.
    fn default() -> Self {
        Self {
            models: vec!["test-model".to_owned()],
            delay: Duration::ZERO,
            port: 0,
            keep_requests: true,
            #[cfg(feature = "tls")]
            tls: None,
        }
    }
}

impl Options {
    /// Sets the models in the lists. Any other can be asked for as well.
    pub fn models<T: Into<String>>(mut self, models: impl IntoIterator<Item = T>) -> Self {
        self.models = models.into_iter().map(Into::into).collect();
        self
    }

    /// Sets how much time passes before every answer of a model, on top of what the script says.
    pub const fn delay(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// Sets the port.
    pub const fn port(mut self, port: u16) -> Self {
        self.port = port;
        self
    }

    /// Forgets requests once they are answered, as a benchmark wants; they are still counted.
    pub const fn forget_requests(mut self) -> Self {
        self.keep_requests = false;
        self
    }

    /// Serves over TLS with a certificate of this authority.
    #[cfg(feature = "tls")]
    pub fn tls(mut self, authority: &Authority) -> Self {
        self.tls = Some(authority.clone());
        self
    }

    /// Starts a server on 127.0.0.1.
    #[expect(clippy::unused_async, reason = "the runtime of the caller is where the server runs")]
    pub async fn start(self, script: impl Script) -> io::Result<ModelServer> {
        let listener =
            bound(SocketAddr::from((Ipv4Addr::LOCALHOST, self.port)))?.listen(BACKLOG)?;
        let address = listener.local_addr()?;
        let record = Arc::new(Record::new());
        let shared = Arc::new(Shared {
            script: Box::new(script),
            record: Arc::clone(&record),
            models: self.models,
            delay: self.delay,
            keep_requests: self.keep_requests,
            asked: AtomicUsize::new(0),
        });
        let welcome = Welcome {
            #[cfg(feature = "tls")]
            tls: self.tls.as_ref().map(Authority::acceptor),
        };
        let scheme = welcome.scheme();
        let (refuse, refusal) = oneshot::channel();
        let mut tasks = JoinSet::new();
        tasks.spawn(accept(listener, welcome, shared, refusal));
        Ok(ModelServer { address, scheme, record, refuse: Some(refuse), _tasks: tasks })
    }
}

impl ModelServer {
    /// Starts a server on a free port of 127.0.0.1, on the runtime this is called from.
    pub async fn start(script: impl Script) -> io::Result<Self> {
        Options::default().start(script).await
    }

    /// Starts a server for benchmarks, which gives every request the same answer, written beforehand,
    /// in one write, and forgets the request.
    pub async fn constant(reply: &Reply) -> io::Result<Self> {
        Options::default().forget_requests().start(Prepared::new(reply)).await
    }

    /// Returns the address without a path, as `http://127.0.0.1:4711`.
    pub fn url(&self) -> String {
        format!("{}://{}", self.scheme, self.address)
    }

    /// Returns the address.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the URL that a client of this wire is configured with.
    pub fn base_url(&self, wire: Wire) -> String {
        format!("{}{}", self.url(), wire.base_path())
    }

    /// Returns the requests so far, in the order of their arrival.
    pub fn requests(&self) -> Vec<Arc<Seen>> {
        self.record.requests()
    }

    /// Waits for the next request: the first call returns the first request, the second the second.
    pub async fn next_request(&self) -> Arc<Seen> {
        self.record.next_request().await
    }

    /// Returns how many of everything there were.
    pub fn counts(&self) -> Counts {
        self.record.counts()
    }

    /// Waits until the counts are as wanted.
    pub async fn wait_until(&self, reached: impl Fn(&Counts) -> bool) {
        self.record.wait_until(reached).await;
    }

    /// Returns how many connections are open.
    pub fn connections_open(&self) -> usize {
        self.counts().open
    }

    /// Waits until no connection is open. A connection that was made but not yet accepted does not
    /// count; wait for its request first.
    pub async fn wait_closed(&self) {
        self.wait_until(|counts| counts.open == 0).await;
    }

    /// Stops listening, so that further connections are refused. Those that are open go on.
    pub async fn refuse_connections(&mut self) {
        if let Some(refuse) = self.refuse.take() {
            let (done, is_done) = oneshot::channel();
            if refuse.send(done).is_ok() {
                // The acceptor drops its end when it is done.
                drop(is_done.await);
            }
        }
    }
}

impl fmt::Debug for ModelServer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ModelServer")
            .field("url", &self.url())
            .field("counts", &self.counts())
            .finish_non_exhaustive()
    }
}

fn bound(address: SocketAddr) -> io::Result<TcpSocket> {
    let socket = TcpSocket::new_v4()?;
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    Ok(socket)
}

/// Accepts connections until told to refuse them; ends only when it is stopped, with all of them.
async fn accept(
    listener: TcpListener,
    welcome: Welcome,
    shared: Arc<Shared>,
    mut refusal: oneshot::Receiver<oneshot::Sender<Infallible>>,
) {
    let welcome = Arc::new(welcome);
    let mut connections = JoinSet::new();
    let refused = loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    let open = OpenConnection::count(&shared.record);
                    let (welcome, shared) = (Arc::clone(&welcome), Arc::clone(&shared));
                    connections.spawn(async move {
                        welcome.serve(stream, shared).await;
                        drop(open);
                    });
                }
                Err(_) => tokio::time::sleep(BREATH).await,
            },
            Some(_) = connections.join_next() => {}
            done = &mut refusal => break done,
        }
    };
    let address = listener.local_addr();
    drop(listener);
    // A port that is bound but not listened on refuses, and nobody else gets it meanwhile.
    let _bound = address.and_then(bound);
    // Whoever asked waits for this.
    drop(refused);
    while connections.join_next().await.is_some() {}
    std::future::pending::<()>().await;
}

/// What comes before the first request of a connection.
struct Welcome {
    #[cfg(feature = "tls")]
    tls: Option<tokio_rustls::TlsAcceptor>,
}

impl Welcome {
    #[cfg(feature = "tls")]
    const fn scheme(&self) -> &'static str {
        if self.tls.is_some() { "https" } else { "http" }
    }

    #[cfg(not(feature = "tls"))]
    #[expect(clippy::unused_self, reason = "with TLS it depends")]
    const fn scheme(&self) -> &'static str {
        "http"
    }

    async fn serve(&self, stream: TcpStream, shared: Arc<Shared>) {
        // Events are small and must not wait for each other. If it cannot be set, they are only slower.
        drop(stream.set_nodelay(true));
        #[cfg(feature = "tls")]
        if let Some(tls) = &self.tls {
            if let Ok(stream) = tls.accept(stream).await {
                serve(stream, shared).await;
            }
            return;
        }
        serve(stream, shared).await;
    }
}
