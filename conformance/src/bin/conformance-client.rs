//! The client that the MCP conformance suite tests.
//!
//! The suite starts it once for each scenario, with the address of a server as the last argument. The
//! scenario's name and what else it hands out stand in the environment; which revision of the protocol is
//! spoken is for the client to find out. It exits with 1 and says why where something went wrong; some scenarios want just that.
//!
//! What is tested is the product's client: its servers, its tools in its pipeline, its logins. Here is only
//! what a scenario wants done, and the person who says yes to everything.

#[path = "conformance-client/login.rs"]
mod login;
#[path = "conformance-client/scenario.rs"]
mod scenario;

use std::error::Error;
use std::process::ExitCode;

use serde_json::Value;

/// What the server of a scenario is called here.
const SERVER: &str = "conformance";

/// What the suite asks for.
struct Task {
    scenario: String,
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
        Ok(Self {
            scenario: std::env::var("MCP_CONFORMANCE_SCENARIO")?,
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
    scenario::run(&Task::read()?).await
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
