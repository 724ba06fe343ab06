//! The same over TLS.

use std::io;
use std::sync::Arc;

use convoke_testkit::{Authority, ModelServer, Options, Point, Reaction, Reply, Wire};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::client::Client;

async fn connect(
    server: &ModelServer,
    trusted: &Authority,
    name: &'static str,
) -> io::Result<Client<TlsStream<TcpStream>>> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(trusted.ca_pem().as_bytes()).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let stream = TcpStream::connect(server.address()).await?;
    let name = ServerName::try_from(name).unwrap();
    let stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await?;
    Ok(Client::over(stream))
}

#[tokio::test]
async fn a_client_that_trusts_the_authority_is_served() {
    let authority = Authority::new().unwrap();
    let options = Options::default().tls(&authority);
    let server = options.start(Reply::text("hello")).await.unwrap();
    assert!(server.url().starts_with("https://127.0.0.1:"));
    for name in ["127.0.0.1", "localhost"] {
        let mut client = connect(&server, &authority, name).await.unwrap();
        for wire in Wire::ALL {
            let answer = client.ask(wire).await.unwrap();
            assert!(answer.is_whole && answer.body.contains("hello"));
        }
    }
    server.wait_closed().await;
}

#[tokio::test]
async fn a_client_that_does_not_trust_it_is_not() {
    let authority = Authority::new().unwrap();
    let server = Options::default().tls(&authority).start(Reply::text("x")).await.unwrap();
    assert!(connect(&server, &Authority::new().unwrap(), "127.0.0.1").await.is_err());
    assert!(connect(&server, &authority, "example.com").await.is_err());
    server.wait_closed().await;
    assert_eq!(server.counts().requests, 0);
}

#[tokio::test]
async fn a_cut_shows_through() {
    let authority = Authority::new().unwrap();
    let cut = Reaction::answer(Reply::text("hello")).cut(Point::InText);
    let server = Options::default().tls(&authority).start(cut).await.unwrap();
    let mut client = connect(&server, &authority, "localhost").await.unwrap();
    assert!(!client.ask(Wire::Anthropic).await.unwrap().is_whole);
}
