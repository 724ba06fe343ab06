//! What others wrote: where it is, and how it is started.

use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::Result;

/// How long a server may take until it listens.
const STARTS_WITHIN: Duration = Duration::from_secs(30);
const LOOKS_AGAIN_AFTER: Duration = Duration::from_millis(50);

/// How a server is reached.
#[derive(Clone, Debug)]
pub(super) enum Target {
    /// Over the standard streams of a program that each client starts for itself.
    Program(Vec<String>),
    /// At an address.
    Url(String),
}

/// The directory with what others wrote.
pub(super) struct Peers(PathBuf);

impl Peers {
    /// Finds it, or says why not.
    pub(super) fn find() -> std::result::Result<Self, String> {
        let Some(directory) = std::env::var_os("CONVOKE_MCP_PEERS").map(PathBuf::from) else {
            return Err("CONVOKE_MCP_PEERS is not set".to_owned());
        };
        let directory = directory.canonicalize();
        directory.map(Self).map_err(|error| format!("CONVOKE_MCP_PEERS: {error}"))
    }

    pub(super) fn directory(&self) -> String {
        self.0.display().to_string()
    }

    /// Returns what runs a package of npm, if it is installed.
    pub(super) fn node(&self, package: &str) -> Option<Vec<String>> {
        let script = self.0.join("node_modules/.bin").join(package);
        // Through `node` itself: what `env` costs is nobody's.
        script.exists().then(|| vec!["node".to_owned(), script.display().to_string()])
    }

    /// Returns a program of Python's, if it is installed.
    pub(super) fn python(&self, program: &str) -> Option<Vec<String>> {
        let path = self.0.join("venv/bin").join(program);
        path.exists().then(|| vec![path.display().to_string()])
    }

    /// Tells whether the official TypeScript library is installed.
    pub(super) fn has_typescript(&self) -> bool {
        self.0.join("node_modules/@modelcontextprotocol/sdk").exists()
    }
}

/// Returns one of our scripts that drive what others wrote.
pub(super) fn script(name: &str) -> String {
    format!("{}/peers/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// A server over HTTP, which ends when this is dropped.
pub(super) struct Listening {
    process: Child,
    pub(super) url: String,
}

impl Listening {
    /// Starts a server that is told its port by `tell`, and waits until it listens.
    pub(super) fn start(line: &[String], tell: impl FnOnce(&mut Command, u16)) -> Result<Self> {
        let (program, arguments) = line.split_first().ok_or("there is nothing to start")?;
        // It is free now; nobody else is likely to take it in the next moment.
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
        let mut command = Command::new(program);
        tell(command.args(arguments), port);
        let process =
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        let mut server = Self { process, url: format!("http://127.0.0.1:{port}/mcp") };
        let began = Instant::now();
        while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
            if began.elapsed() > STARTS_WITHIN || server.process.try_wait()?.is_some() {
                return Err(format!("{line:?} does not listen").into());
            }
            std::thread::sleep(LOOKS_AGAIN_AFTER);
        }
        Ok(server)
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        // One that cannot be ended has ended.
        drop(self.process.kill());
        drop(self.process.wait());
    }
}
