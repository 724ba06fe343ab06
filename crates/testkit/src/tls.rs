//! A certificate authority for one test.

use std::io;
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose};
use rustls::ServerConfig;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio_rustls::TlsAcceptor;

/// An authority that has vouched for one server, at `127.0.0.1` and `localhost`. Nobody trusts it but
/// who is given [`Authority::ca_pem`].
#[derive(Clone)]
pub struct Authority {
    ca_pem: String,
    config: Arc<ServerConfig>,
}

impl std::fmt::Debug for Authority {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Authority").field("ca_pem", &self.ca_pem).finish_non_exhaustive()
    }
}

impl Authority {
    /// Makes an authority and the certificate of its server.
    pub fn new() -> io::Result<Self> {
        Self::make().map_err(io::Error::other)
    }

    fn make() -> Result<Self, Box<dyn std::error::Error + Send + Sync>> {
        let mut authority = CertificateParams::default();
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        authority.distinguished_name.push(DnType::CommonName, "Convoke test authority");
        let authority_key = KeyPair::generate()?;
        let ca = authority.self_signed(&authority_key)?;

        let mut server =
            CertificateParams::new(vec!["localhost".to_owned(), "127.0.0.1".to_owned()])?;
        server.distinguished_name.push(DnType::CommonName, "localhost");
        server.use_authority_key_identifier_extension = true;
        let server_key = KeyPair::generate()?;
        let issuer = Issuer::new(authority, authority_key);
        let certificate = server.signed_by(&server_key, &issuer)?;

        let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(server_key.serialize_der()));
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key)?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self { ca_pem: ca.pem(), config: Arc::new(config) })
    }

    /// Returns the authority's certificate, to be trusted by a client.
    pub fn ca_pem(&self) -> &str {
        &self.ca_pem
    }

    pub(crate) fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(Arc::clone(&self.config))
    }
}
