//! The only way out of a program's own network: a proxy that knows whom the program may talk to.
//!
//! It accepts inside the program's network and connects outside it, in tasks of ours. It speaks
//! `CONNECT` and plain HTTP/1.1 with absolute addresses, resolves names itself, and goes to addresses
//! near us only if the list names them in so many words. It does not look into what is encrypted: whoever
//! serves an allowed name can pass on to anybody.
//!
//! What a client can make it hold is bounded: connections, heads of requests, and the time in which
//! nothing moves. It ends when it is dropped, with all its connections.

mod connection;
mod relay;
mod request;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::task::JoinSet;

use crate::host::Hosts;

/// How many connections one program may have through it at a time; others wait.
const MOST_CONNECTIONS: usize = 256;
/// How long to wait where no connection can be accepted, because too much is open already.
const PAUSE: Duration = Duration::from_millis(100);
/// The names under which programs look for a proxy, in both spellings.
const VARIABLES: &[&str] = &["http_proxy", "https_proxy", "all_proxy"];
const EXCEPTIONS: &str = "no_proxy";

/// A proxy that runs until it is dropped.
#[derive(Debug)]
pub(crate) struct Proxy {
    _tasks: JoinSet<()>,
}

impl Proxy {
    /// Serves whoever connects to the listener.
    pub(crate) fn start(listener: std::net::TcpListener, hosts: Arc<Hosts>) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        let listener = TcpListener::from_std(listener)?;
        let mut tasks = JoinSet::new();
        tasks.spawn(serve(listener, hosts));
        Ok(Self { _tasks: tasks })
    }
}

/// Returns the variables that lead a program to a proxy on this port.
pub(crate) fn variables(port: u16) -> impl Iterator<Item = (String, String)> {
    let address = format!("http://127.0.0.1:{port}");
    let proxies = VARIABLES.iter().map(move |name| (*name, address.clone()));
    let all = proxies.chain([(EXCEPTIONS, String::new())]);
    all.flat_map(|(name, value)| {
        [(name.to_owned(), value.clone()), (name.to_ascii_uppercase(), value)]
    })
}

async fn serve(listener: TcpListener, hosts: Arc<Hosts>) {
    let mut connections = JoinSet::new();
    loop {
        let room = connections.len() < MOST_CONNECTIONS;
        tokio::select! {
            Some(_) = connections.join_next() => {}
            accepted = listener.accept(), if room => match accepted {
                Ok((client, _)) => {
                    connections.spawn(connection::attend(client, Arc::clone(&hosts)));
                }
                Err(_) => tokio::time::sleep(PAUSE).await,
            },
        }
    }
}

#[cfg(test)]
mod tests;
