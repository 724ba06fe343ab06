//! The place on this machine that a browser comes back to.
//!
//! As little of a web server as will do: it reads the first lines of a request, up to a limit and a
//! deadline, and answers with a small page. Browsers open connections ahead of time and leave them idle,
//! so several are served at once, and none holds up another.

use std::net::Ipv4Addr;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

use super::answer::{Answer, Expected};
use super::consent::Consent;
use super::error::AuthError;
use super::secret::Secret;

/// The path of the address.
const PATH: &str = "/callback";
/// What ends the head of a request.
const END: &[u8] = b"\r\n\r\n";
/// The longest head of a request that is read.
const LONGEST_HEAD: usize = 16 * 1024;
/// How long a connection may take.
const CONNECTION: Duration = Duration::from_secs(10);
/// How many connections are served at once.
const MOST_CONNECTIONS: usize = 16;

/// Waits for a browser.
#[derive(Debug)]
pub(super) struct Listener {
    listener: TcpListener,
    port: u16,
}

impl Listener {
    /// Opens a port for this machine alone: the first of these that is free, or any.
    pub(super) async fn open(ports: &[u16]) -> Result<Self, AuthError> {
        let mut opened = None;
        for port in ports {
            opened = TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).await.ok();
            if opened.is_some() {
                break;
            }
        }
        let listener = match opened {
            Some(listener) => Ok(listener),
            None => TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await,
        };
        let listener = listener.map_err(AuthError::NoListener)?;
        let port = listener.local_addr().map_err(AuthError::NoListener)?.port();
        Ok(Self { listener, port })
    }

    /// Opens one port and no other.
    pub(super) async fn open_exactly(port: u16) -> Result<Self, AuthError> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await;
        Ok(Self { listener: listener.map_err(AuthError::NoListener)?, port })
    }

    /// Returns the address that browsers are sent back to.
    pub(super) fn redirect_uri(&self) -> String {
        format!("http://127.0.0.1:{}{PATH}", self.port)
    }

    /// Waits for the answer. The person hears of the first that is none: anybody on this machine can send more.
    pub(super) async fn wait(
        &self,
        expected: &Expected,
        consent: &dyn Consent,
    ) -> Result<Secret, AuthError> {
        let mut connections = FuturesUnordered::new();
        let mut was_told = false;
        loop {
            tokio::select! {
                Some(served) = connections.next() => match served {
                    Some(Came::Answer(answer)) => return answer,
                    Some(Came::NotOurs(why)) if !was_told => {
                        was_told = true;
                        consent.unusable(why).await;
                    }
                    Some(Came::NotOurs(_)) | None => {}
                },
                accepted = self.listener.accept(), if connections.len() < MOST_CONNECTIONS => {
                    // A connection that breaks before it begins is nobody's.
                    if let Ok((stream, _)) = accepted {
                        connections.push(serve(stream, expected));
                    }
                }
            }
        }
    }
}

/// What a browser brought.
enum Came {
    /// How the login ended.
    Answer(Result<Secret, AuthError>),
    /// Nothing to do with this login, for this reason.
    NotOurs(&'static str),
}

/// Serves one connection; returns what came of it, if anything did.
async fn serve(mut stream: TcpStream, expected: &Expected) -> Option<Came> {
    let target = timeout(CONNECTION, read_target(&mut stream)).await.ok().flatten()?;
    let query = target.strip_prefix(PATH).and_then(|rest| rest.strip_prefix('?'));
    let (status, text, ended) = match query.map(|query| expected.read(query)) {
        None => ("404 Not Found", "There is nothing here.".to_owned(), None),
        Some(Ok(Answer::NotOurs(why))) => {
            let text = format!("This is of no use here: {why}.");
            ("400 Bad Request", text, Some(Came::NotOurs(why)))
        }
        Some(Ok(Answer::Code(code))) => {
            // The code is still to be exchanged, which may go wrong.
            let text =
                "Thank you. You can close this window; the program that began the login says \
                        whether it worked."
                    .to_owned();
            ("200 OK", text, Some(Came::Answer(Ok(code))))
        }
        Some(Err(error)) => {
            let text = "The login did not work. The program that began it says why. You can close \
                        this window.";
            ("400 Bad Request", text.to_owned(), Some(Came::Answer(Err(error))))
        }
    };
    // The login counts, whether or not the browser waits for the page.
    drop(timeout(CONNECTION, stream.write_all(page(status, &text).as_bytes())).await);
    drop(timeout(CONNECTION, stream.shutdown()).await);
    ended
}

/// Reads the head of a request and returns what it asks for.
async fn read_target(stream: &mut TcpStream) -> Option<String> {
    let mut head = Vec::new();
    let mut buffer = [0; 1024];
    loop {
        let read = stream.read(&mut buffer).await.ok().filter(|read| *read > 0)?;
        // The end may have begun in what was read before.
        let new = head.len().saturating_sub(END.len());
        head.extend_from_slice(buffer.get(..read)?);
        if head.get(new..)?.windows(END.len()).any(|end| end == END) {
            break;
        }
        if head.len() > LONGEST_HEAD {
            return None;
        }
    }
    let head = String::from_utf8_lossy(&head);
    let mut words = head.lines().next()?.split(' ');
    (words.next() == Some("GET")).then_some(())?;
    words.next().map(str::to_owned)
}

fn page(status: &str, text: &str) -> String {
    let body = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Convoke</title><p>{text}</p></html>"
    );
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {}\r\n\
         Cache-Control: no-store\r\nReferrer-Policy: no-referrer\r\n\
         Content-Security-Policy: default-src 'none'\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
}
