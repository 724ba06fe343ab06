//! The server that the MCP conformance suite tests: `conformance-server [PORT]`.
//!
//! It says where it listens on its first line and ends when its input does, so that whoever started it
//! cannot forget it.

use std::io::Write;
use std::process::ExitCode;

use convoke_mcp::serve::{HttpSettings, serve_http};
use tokio::net::TcpListener;

#[tokio::main]
async fn main() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // There is nowhere else to say it.
            drop(writeln!(std::io::stderr(), "error: {error}"));
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<(), Box<dyn std::error::Error>> {
    let port: u16 = std::env::args().nth(1).map_or(Ok(0), |port| port.parse())?;
    let listener = TcpListener::bind(("127.0.0.1", port)).await?;
    let settings = HttpSettings::default();
    writeln!(std::io::stdout(), "http://{}{}", listener.local_addr()?, settings.path)?;
    std::io::stdout().flush()?;
    let stop = settings.stop.clone();
    let served = serve_http(convoke_conformance::fixture::service()?, listener, settings);
    tokio::select! {
        served = served => served?,
        () = end_of_input() => stop.cancel(),
    }
    Ok(())
}

async fn end_of_input() {
    let ended =
        tokio::task::spawn_blocking(|| std::io::copy(&mut std::io::stdin(), &mut std::io::sink()));
    drop(ended.await);
}
