//! A server that waits until the test lets it go on, and tells the test what happens to it.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Child;

use crate::support::{Ran, Scene, skip};

const FIXTURE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/waits.py");

/// Where such servers report.
pub(crate) struct Lines(TcpListener);

/// What one of them tells.
pub(crate) struct Line(BufReader<TcpStream>);

/// Finds what servers of tests are written in; says so where it is not there.
pub(crate) fn python() -> Option<&'static str> {
    let places = ["/usr/bin/python3", "/usr/local/bin/python3"];
    let found = places.into_iter().find(|place| std::path::Path::new(place).exists());
    if found.is_none() {
        skip("python3", "the server of this test is written in it");
    }
    found
}

impl Lines {
    /// Adds such a server, called `slow`.
    pub(crate) fn add(scene: &Scene) -> Option<Self> {
        Self::add_with(&[], scene)
    }

    /// Adds such a server that does something of its own when its input is closed.
    pub(crate) fn add_with(manner: &[&str], scene: &Scene) -> Option<Self> {
        let python = python()?;
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port().to_string();
        let words = ["mcp", "add", "slow", "--", python, FIXTURE, &port];
        let added = scene.run(&[&words[..], manner].concat());
        assert_eq!(added.code, Some(0), "{added:?}");
        Some(Self(listener))
    }

    /// Waits until one is started; it does nothing yet.
    pub(crate) fn held(&self) -> Line {
        Line(BufReader::new(self.0.accept().unwrap().0))
    }

    /// Waits until one is started, and lets it go on.
    pub(crate) fn started(&self) -> Line {
        let mut line = self.held();
        line.go_on();
        line
    }

    /// Has the server asked for its tools, so that they are known.
    pub(crate) fn make_known(&self, scene: &Scene) {
        let asking = scene.command(&["mcp", "test", "slow"]).spawn().unwrap();
        drop(self.started());
        let asked = ended(scene, asking);
        assert_eq!(asked.code, Some(0), "{asked:?}");
    }
}

impl Line {
    pub(crate) fn go_on(&mut self) {
        self.0.get_mut().write_all(b"x").unwrap();
    }

    /// Waits for the next words; nothing, when the process has ended.
    pub(crate) fn next(&mut self) -> Option<String> {
        let mut words = String::new();
        let heard = self.0.read_line(&mut words).unwrap_or_default();
        (heard > 0).then(|| words.trim_end().to_owned())
    }
}

/// Waits for the end of a command.
pub(crate) fn ended(scene: &Scene, child: Child) -> Ran {
    scene.ended(&child.wait_with_output().unwrap())
}
