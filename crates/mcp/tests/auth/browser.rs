//! People with and without a browser.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use convoke_mcp::auth::Consent;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use url::Url;

use crate::world::{Asked, World};

/// A person who opens what is shown, and a browser that goes where it is sent.
#[derive(Debug)]
pub(crate) struct Browser {
    world: World,
    /// Every address that was shown.
    pub(crate) shown: Mutex<Vec<Url>>,
}

impl Browser {
    pub(crate) fn new(world: &World) -> Arc<Self> {
        Arc::new(Self { world: world.clone(), shown: Mutex::default() })
    }

    pub(crate) fn shown(&self) -> usize {
        self.shown.lock().unwrap().len()
    }
}

#[async_trait]
impl Consent for Browser {
    async fn show(&self, url: &str) {
        let back = log_in(&self.world, url);
        self.shown.lock().unwrap().push(Url::parse(url).unwrap());
        visit(&back).await;
    }
}

/// Opens the address where people log in; returns where it sends the browser.
pub(crate) fn log_in(world: &World, url: &str) -> Url {
    let url = Url::parse(url).unwrap();
    let asked = Asked { method: "GET", url, headers: BTreeMap::new(), body: String::new() };
    let answer = world.answer(&asked);
    assert_eq!(answer.status, 302);
    Url::parse(&answer.headers[0].1).unwrap()
}

/// Fetches an address of this machine, byte by byte as a browser would.
pub(crate) async fn visit(url: &Url) -> String {
    let (host, port) = (url.host_str().unwrap(), url.port().unwrap());
    let mut stream = TcpStream::connect((host, port)).await.unwrap();
    let target = &url[url::Position::BeforePath..];
    let request = format!("GET {target} HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut page = String::new();
    stream.read_to_string(&mut page).await.unwrap();
    page
}

/// A person on another machine, who copies addresses back and forth.
#[derive(Debug)]
pub(crate) struct Copyist {
    pub(crate) shown: mpsc::UnboundedSender<String>,
    pub(crate) pastes: tokio::sync::Mutex<mpsc::UnboundedReceiver<String>>,
    pub(crate) told: Mutex<Vec<String>>,
}

#[async_trait]
impl Consent for Copyist {
    async fn show(&self, url: &str) {
        self.shown.send(url.to_owned()).unwrap();
    }

    async fn pasted(&self) -> String {
        match self.pastes.lock().await.recv().await {
            Some(text) => text,
            None => std::future::pending().await,
        }
    }

    async fn unusable(&self, why: &str) {
        self.told.lock().unwrap().push(why.to_owned());
    }
}

/// A person who does nothing.
#[derive(Debug)]
pub(crate) struct Sleeper;

#[async_trait]
impl Consent for Sleeper {
    async fn show(&self, _: &str) {}
}
