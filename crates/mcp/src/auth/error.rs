//! Why a server is not told who asks. Each message says what to do next; none holds a secret.

use std::time::Duration;

use super::http::HttpError;
use super::key::BadKey;
use super::store::StoreError;

/// Authorization did not work out.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AuthError {
    /// Somebody has to log in, and nobody can be asked here.
    #[error(
        "nobody is logged in to it, and nobody can be asked here; run `convoke mcp login {server}` in a \
         terminal, then try again"
    )]
    LoginNeeded {
        /// The server.
        server: String,
    },
    /// An address must not be used.
    #[error("`{url}` is not used to log in: {why}")]
    UnsafeAddress {
        /// The address.
        url: String,
        /// What is wrong with it.
        why: String,
    },
    /// A server could not be reached, or did not answer in time.
    #[error("`{url}` could not be reached to {purpose}: {source}")]
    Unreachable {
        /// The address.
        url: String,
        /// What for.
        purpose: &'static str,
        /// Why.
        source: HttpError,
    },
    /// An answer was not what it has to be.
    #[error("`{url}` gave no usable answer when asked to {purpose}: {why}")]
    BadAnswer {
        /// The address.
        url: String,
        /// What it was asked for.
        purpose: &'static str,
        /// What is wrong with the answer.
        why: String,
    },
    /// The server says it is another one.
    #[error(
        "the server at `{url}` says it is `{resource}`, which it is not; a token for that would be \
         misused, so there is no login. Check the address in the configuration"
    )]
    ResourceMismatch {
        /// The server's address.
        url: String,
        /// What it says it is.
        resource: String,
    },
    /// Somebody speaks for an issuer and is another one.
    #[error(
        "the authorization server should be `{expected}` and says it is `{found}`; its answer is not \
         used, since it could come from somebody else. Tell whoever runs the server"
    )]
    IssuerMismatch {
        /// Who it should be.
        expected: String,
        /// Who it says it is.
        found: String,
    },
    /// An answer does not say who gives it, though it should.
    #[error(
        "the answer to the login does not say that it comes from `{expected}`, though that one always \
         says so; it is not used, since it could come from somebody else. Try again, and tell whoever \
         runs the server if it stays"
    )]
    IssuerUnnamed {
        /// Who should have given it.
        expected: String,
    },
    /// A client that was registered by hand would be shown to somebody it was not registered with.
    #[error(
        "`{server}` now names the authorization server `{found}`; the configured client was registered \
         with `{expected}`. If the change is right, register a client there and put its id, secret and \
         issuer into the configuration"
    )]
    IssuerChanged {
        /// The server.
        server: String,
        /// Who the client was registered with.
        expected: String,
        /// Who is named now.
        found: String,
    },
    /// The authorization server knows no way to register that we know.
    #[error(
        "the authorization server `{issuer}` lets no client register itself; register one there by hand \
         and put its id into the configuration of `{server}`, as `auth: {{clientId: ID}}`"
    )]
    NoRegistration {
        /// The server.
        server: String,
        /// The authorization server.
        issuer: String,
    },
    /// The settings lack something that the grant needs.
    #[error("the configuration of `{server}` lacks {what}")]
    Incomplete {
        /// The server.
        server: String,
        /// What is missing.
        what: &'static str,
    },
    /// The authorization server does not do what a login needs.
    #[error("the authorization server `{issuer}` cannot be used: {why}")]
    Unsupported {
        /// The authorization server.
        issuer: String,
        /// What it lacks.
        why: &'static str,
    },
    /// Somebody or something said no.
    #[error("the authorization server refused to {purpose}: {error}{}", described(.description))]
    Refused {
        /// What was asked for.
        purpose: &'static str,
        /// Its word for it.
        error: String,
        /// What else it says; may be empty.
        description: String,
    },
    /// The server wants scopes again that were given already.
    #[error(
        "`{server}` keeps asking for the scopes `{scopes}`, though they were granted {times} times; ask \
         whoever runs it what your account lacks"
    )]
    ScopesInVain {
        /// The server.
        server: String,
        /// What it asks for.
        scopes: String,
        /// How often they were granted.
        times: u32,
    },
    /// The server takes no token, however new.
    #[error(
        "`{server}` turns away every token as soon as it is issued; ask whoever runs it, or begin anew \
         with `convoke mcp logout {server}` and `convoke mcp login {server}`"
    )]
    TokensInVain {
        /// The server.
        server: String,
    },
    /// Nobody logged in.
    #[error("nobody finished the login to `{server}` within {} s; try again", .waited.as_secs())]
    NotInTime {
        /// The server.
        server: String,
        /// How long was waited.
        waited: Duration,
    },
    /// The place a browser comes back to could not be opened.
    #[error("no port of this machine could be opened for the browser to come back to: {0}")]
    NoListener(#[source] std::io::Error),
    /// The machine has no random numbers.
    #[error("the system gives no random numbers, and without them a login is not safe")]
    NoRandomness,
    /// The client's key is of no use.
    #[error(transparent)]
    Key(#[from] BadKey),
    /// The tokens could not be read or kept.
    #[error(transparent)]
    Store(#[from] StoreError),
}

fn described(description: &str) -> String {
    if description.is_empty() { String::new() } else { format!(" ({description})") }
}

/// The longest piece of a server's own words in an error.
const LONGEST_SAYING: usize = 300;

/// Returns what a server said as it may be shown: short, on one line, and without anything that could
/// steer a terminal.
pub(super) fn said(text: &str) -> String {
    text.chars().filter(|letter| !letter.is_control()).take(LONGEST_SAYING).collect()
}
