//! What the HTTP client is told once.

/// How HTTP requests are made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpSettings {
    /// Whether every private address may be reached.
    pub allow_private: bool,
    /// Hosts that may be reached although they are private, as `host` or `host:port`. An entry that
    /// is neither allows nothing.
    pub allowed_hosts: Vec<String>,
    /// How many redirects are followed before the request fails. With none, a redirect is an answer
    /// like any other.
    pub max_redirects: usize,
    /// How many bytes of an answer are read, counted after decompression.
    pub max_body_bytes: usize,
    /// How the client introduces itself, unless a request says otherwise.
    pub user_agent: String,
}

impl Default for HttpSettings {
    fn default() -> Self {
        Self {
            allow_private: false,
            allowed_hosts: Vec::new(),
            max_redirects: 10,
            max_body_bytes: 10 * 1024 * 1024,
            user_agent: concat!("convoke/", env!("CARGO_PKG_VERSION")).into(),
        }
    }
}
