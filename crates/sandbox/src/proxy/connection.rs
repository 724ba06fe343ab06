//! One client of the proxy, from its request to its end.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use convoke_core::address::private_range;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, lookup_host};
use tokio::time::timeout;

use super::relay;
use super::request::{LARGEST_HEAD, Request};
use crate::host::{Destination, Host, Hosts, Reach};

/// How long a client may take to say what it wants.
const HEAD_TIME: Duration = Duration::from_secs(30);
/// How long looking up a name, and connecting to one address, may take.
const CONNECT_TIME: Duration = Duration::from_secs(15);
/// How long, and how much, is read from a client that was refused, so that it hears why.
const FAREWELL_TIME: Duration = Duration::from_secs(2);
const FAREWELL_BYTES: u64 = 1 << 20;
const END_OF_HEAD: &[u8] = b"\r\n\r\n";

/// Why a client does not get what it wants.
struct Refusal {
    status: u16,
    reason: &'static str,
    message: String,
}

impl Refusal {
    fn bad(message: impl Into<String>) -> Self {
        Self { status: 400, reason: "Bad Request", message: message.into() }
    }

    fn not_allowed(message: String) -> Self {
        Self { status: 403, reason: "Not an allowed host of the sandbox", message }
    }

    fn unreachable(host: &Host, error: &dyn std::fmt::Display) -> Self {
        let message = format!("`{host}` may be talked to, but cannot be reached: {error}");
        Self { status: 502, reason: "Bad Gateway", message }
    }

    fn as_answer(&self) -> String {
        let Self { status, reason, message } = self;
        format!(
            "HTTP/1.1 {status} {reason}\r\nContent-Type: text/plain; charset=utf-8\r\n\
             Content-Length: {}\r\nConnection: close\r\n\r\n{message}\n",
            message.len() + 1
        )
    }
}

/// Serves a client. Whatever goes wrong ends the connection, which is all that can be done.
pub(super) async fn attend(mut client: TcpStream, hosts: Arc<Hosts>) {
    if let Err(refusal) = serve(&mut client, &hosts).await {
        let told = async {
            client.write_all(refusal.as_answer().as_bytes()).await?;
            client.shutdown().await?;
            // Closing with something unread would take back the answer.
            tokio::io::copy(&mut client.take(FAREWELL_BYTES), &mut tokio::io::sink()).await
        };
        drop(timeout(FAREWELL_TIME, told).await);
    }
}

async fn serve(client: &mut TcpStream, hosts: &Hosts) -> Result<(), Refusal> {
    client.set_nodelay(true).ok();
    let Ok(read) = timeout(HEAD_TIME, read_head(client)).await else {
        return Err(Refusal { status: 408, reason: "Request Timeout", message: "too slow".into() });
    };
    let (head, rest) = match read {
        Ok(Some(read)) => read,
        Ok(None) => {
            let message = format!("the head of a request may have {LARGEST_HEAD} bytes");
            return Err(Refusal {
                status: 431,
                reason: "Request Header Fields Too Large",
                message,
            });
        }
        Err(_) => return Ok(()),
    };
    // How the connection ends both sides see for themselves.
    match Request::parse(&head).map_err(Refusal::bad)? {
        Request::Tunnel(host) => {
            let server = connect(&host, hosts).await?;
            relay::tunnel(client, server, &rest).await.ok();
        }
        Request::Forward { host, head, body } => {
            let server = connect(&host, hosts).await?;
            relay::forward(client, server, &head, &rest, body).await.ok();
        }
    }
    Ok(())
}

/// Reads up to the empty line, and what came along behind it; nothing where the line does not come.
async fn read_head(client: &mut TcpStream) -> io::Result<Option<(Vec<u8>, Vec<u8>)>> {
    let mut read = Vec::with_capacity(1024);
    loop {
        let seen = read.len();
        if client.read_buf(&mut read).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let from = seen.saturating_sub(END_OF_HEAD.len());
        let fresh = read.get(from..).unwrap_or_default();
        let end = fresh.windows(END_OF_HEAD.len()).position(|window| window == END_OF_HEAD);
        match end.map(|end| from + end + END_OF_HEAD.len()) {
            Some(end) if end <= LARGEST_HEAD => {
                let rest = read.split_off(end);
                return Ok(Some((read, rest)));
            }
            None if read.len() < LARGEST_HEAD => {}
            _ => return Ok(None),
        }
    }
}

/// Connects to a host that may be talked to.
async fn connect(host: &Host, hosts: &Hosts) -> Result<TcpStream, Refusal> {
    let reach = hosts.reach(host);
    if reach == Reach::Nowhere {
        return Err(Refusal::not_allowed(format!(
            "`{host}` is not among the hosts that this program may talk to: {hosts}. Do without it, or \
             ask the user to add it to `sandbox.hosts`."
        )));
    }
    let addresses = look_up(host).await?;
    if reach != Reach::Anywhere {
        let private = |address: &SocketAddr| Some((address.ip(), private_range(address.ip())?));
        if let Some((address, range)) = addresses.iter().find_map(private) {
            return Err(Refusal::not_allowed(format!(
                "`{host}` leads to {address}, which is not on the internet ({range}). If the user wants \
                 that, the list has to name the address itself."
            )));
        }
    }
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    for address in addresses {
        match timeout(CONNECT_TIME, TcpStream::connect(address)).await {
            Ok(Ok(server)) => {
                server.set_nodelay(true).ok();
                return Ok(server);
            }
            Ok(Err(error)) => last = error,
            Err(_) => last = io::ErrorKind::TimedOut.into(),
        }
    }
    Err(Refusal::unreachable(host, &last))
}

async fn look_up(host: &Host) -> Result<Vec<SocketAddr>, Refusal> {
    let name = match &host.name {
        Destination::Address(address) => return Ok(vec![SocketAddr::new(*address, host.port)]),
        Destination::Name(name) => name,
    };
    match timeout(CONNECT_TIME, lookup_host((name.as_str(), host.port))).await {
        Ok(Ok(found)) => Ok(found.collect()),
        Ok(Err(error)) => Err(Refusal::unreachable(host, &error)),
        Err(late) => Err(Refusal::unreachable(host, &late)),
    }
}
