//! The client that the MCP conformance suite tests.
//!
//! The suite starts it once for each scenario, with the address of a server as the last argument. The
//! scenario's name, the revision of the protocol and what else the scenario hands out stand in the
//! environment. It exits with 1 and says why where something went wrong; some scenarios want just that.

#[path = "conformance-client/login.rs"]
mod login;
#[path = "conformance-client/plain.rs"]
mod plain;

use std::error::Error;
use std::process::ExitCode;

use serde_json::Value;

/// What the suite asks for.
struct Task {
    scenario: String,
    revision: String,
    context: Value,
    url: String,
}

impl Task {
    #[expect(
        clippy::disallowed_methods,
        reason = "the suite says what it wants in the environment"
    )]
    fn read() -> Result<Self, Box<dyn Error>> {
        let context = std::env::var("MCP_CONFORMANCE_CONTEXT").unwrap_or_else(|_| "{}".to_owned());
        let revision = std::env::var("MCP_CONFORMANCE_PROTOCOL_VERSION");
        Ok(Self {
            scenario: std::env::var("MCP_CONFORMANCE_SCENARIO")?,
            revision: revision.unwrap_or_else(|_| "2025-11-25".to_owned()),
            context: serde_json::from_str(&context)?,
            url: std::env::args().next_back().ok_or("the address of the server is missing")?,
        })
    }
}

#[tokio::main]
async fn main() -> ExitCode {
    // Fails if there is a provider already, and then that one is used.
    drop(rustls::crypto::ring::default_provider().install_default());
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            complain(error.as_ref());
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<(), Box<dyn Error>> {
    let task = Task::read()?;
    let http = login::Authorized::new(&task)?;
    let listens = http.listens();
    plain::run(&task, http, listens).await
}

#[expect(clippy::print_stderr, reason = "this is the program's only output")]
fn complain(error: &dyn Error) {
    eprintln!("error: {error}");
    let mut source = error.source();
    while let Some(cause) = source {
        eprintln!("cause: {cause}");
        source = cause.source();
    }
}
