//! The model server as a process of its own, for benchmarks and for trying clients by hand.
//!
//! It plays one conversation with everybody: in each turn but the last it asks for a tool, and then it
//! answers with text. It prints where it listens, and ends when its input does.
#![expect(
    clippy::disallowed_methods,
    reason = "a program of its own, which writes two small files"
)]

use std::error::Error;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use convoke_testkit::{ModelServer, Options, ToolLoop};
use serde_json::{Value, json};

const USAGE: &str = "usage: model-server [--port N] [--port-file PATH] [--latency-ms N] [--turns N] \
                     [--tool NAME] [--arguments JSON] [--calls N] [--tls DIR]";

struct Settings {
    port: u16,
    port_file: Option<PathBuf>,
    latency: Duration,
    turns: usize,
    tool: String,
    arguments: Value,
    calls: usize,
    tls: Option<PathBuf>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let settings = parse(std::env::args().skip(1))?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let server = runtime.block_on(start(&settings))?;
    if let Some(path) = &settings.port_file {
        write_whole(path, &server.address().port().to_string())?;
    }
    let mut output = io::stdout().lock();
    writeln!(output, "listening on {}", server.url())?;
    output.flush()?;
    io::copy(&mut io::stdin().lock(), &mut io::sink())?;
    Ok(())
}

fn parse(mut words: impl Iterator<Item = String>) -> Result<Settings, Box<dyn Error>> {
    let mut parsed = Settings {
        port: 0,
        port_file: None,
        latency: Duration::ZERO,
        turns: 2,
        tool: "read_file".to_owned(),
        arguments: json!({ "path": "README.md" }),
        calls: 1,
        tls: None,
    };
    while let Some(flag) = words.next() {
        let value = words.next().ok_or(USAGE)?;
        match flag.as_str() {
            "--port" => parsed.port = value.parse()?,
            "--port-file" => parsed.port_file = Some(value.into()),
            "--latency-ms" => parsed.latency = Duration::from_millis(value.parse()?),
            "--turns" => parsed.turns = value.parse()?,
            "--tool" => parsed.tool = value,
            "--arguments" => parsed.arguments = serde_json::from_str(&value)?,
            "--calls" => parsed.calls = value.parse()?,
            "--tls" => parsed.tls = Some(value.into()),
            _ => return Err(USAGE.into()),
        }
    }
    Ok(parsed)
}

async fn start(settings: &Settings) -> Result<ModelServer, Box<dyn Error>> {
    let options = Options::default().port(settings.port).delay(settings.latency).forget_requests();
    let options = with_tls(options, settings.tls.as_deref())?;
    let Settings { turns, calls, tool, arguments, .. } = settings;
    Ok(options.start(ToolLoop::new(*turns, *calls, tool, arguments)).await?)
}

/// Serves over TLS and leaves the authority's certificate in `ca.pem`.
#[cfg(feature = "tls")]
fn with_tls(options: Options, directory: Option<&Path>) -> Result<Options, Box<dyn Error>> {
    let Some(directory) = directory else { return Ok(options) };
    let authority = convoke_testkit::Authority::new()?;
    write_whole(&directory.join("ca.pem"), authority.ca_pem())?;
    Ok(options.tls(&authority))
}

#[cfg(not(feature = "tls"))]
fn with_tls(options: Options, directory: Option<&Path>) -> Result<Options, Box<dyn Error>> {
    match directory {
        Some(_) => Err("this server was built without the feature `tls`".into()),
        None => Ok(options),
    }
}

/// Writes a file that whoever waits for it never sees in part.
fn write_whole(path: &Path, text: &str) -> io::Result<()> {
    let draft = path.with_extension("new");
    std::fs::write(&draft, text)?;
    std::fs::rename(&draft, path)
}
