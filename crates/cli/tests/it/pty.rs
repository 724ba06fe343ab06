//! A terminal for the command to run on, seen from the other side.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::Child;

use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::support::Scene;

/// What of the command is on the terminal.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Attached {
    /// All of it.
    All,
    /// Standard error; standard output is a pipe.
    ErrorsOnly,
}

pub(crate) struct Terminal {
    pub(crate) child: Child,
    screen: File,
}

/// Makes a terminal of this size: our side, and the side of whoever uses it.
pub(crate) fn pair(columns: u16, rows: u16) -> (OwnedFd, OwnedFd) {
    let master = openpt(ours()).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&master, size).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap();
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let user = rustix::fs::open(&name, flags, Mode::empty()).unwrap();
    (master, user)
}

/// A command that another test starts in this moment must not hold our side open.
const fn ours() -> OpenptFlags {
    OpenptFlags::RDWR.union(OpenptFlags::NOCTTY).union(CLOSED_ON_START)
}

#[cfg(target_os = "linux")]
const CLOSED_ON_START: OpenptFlags = OpenptFlags::CLOEXEC;
#[cfg(not(target_os = "linux"))]
const CLOSED_ON_START: OpenptFlags = OpenptFlags::empty();

impl Terminal {
    /// Starts the command on a terminal of this width.
    pub(crate) fn start(
        scene: &Scene,
        columns: u16,
        attached: Attached,
        arguments: &[&str],
    ) -> Self {
        let (master, user) = pair(columns, 40);
        let mut command = scene.command(arguments);
        if attached == Attached::All {
            command.stdin(user.try_clone().unwrap()).stdout(user.try_clone().unwrap());
        }
        let child = command.stderr(user).spawn().unwrap();
        Self { child, screen: File::from(master) }
    }

    /// Reads until this text is there.
    pub(crate) fn wait_for(&mut self, text: &str) -> String {
        let mut seen = Vec::new();
        let mut byte = [0];
        while !String::from_utf8_lossy(&seen).ends_with(text) {
            match self.screen.read(&mut byte) {
                Ok(1) => seen.push(byte[0]),
                _ => panic!("`{text}` did not come: {}", String::from_utf8_lossy(&seen)),
            }
        }
        String::from_utf8_lossy(&seen).replace('\r', "")
    }

    /// Types something.
    pub(crate) fn type_in(&mut self, text: &str) {
        self.screen.write_all(text.as_bytes()).unwrap();
    }

    /// Sends the command a signal.
    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Reads to the end. A terminal whose last user went away answers with an error.
    pub(crate) fn end(mut self) -> Ended {
        let mut seen = Vec::new();
        let mut buffer = [0; 4096];
        while let Ok(length @ 1..) = self.screen.read(&mut buffer) {
            seen.extend_from_slice(&buffer[..length]);
        }
        let mut stdout = String::new();
        if let Some(mut pipe) = self.child.stdout.take() {
            pipe.read_to_string(&mut stdout).unwrap();
        }
        let screen = String::from_utf8_lossy(&seen).replace('\r', "");
        Ended { screen, stdout, code: self.child.wait().unwrap().code() }
    }
}

/// How a command on a terminal ended.
#[derive(Debug)]
pub(crate) struct Ended {
    /// What was shown and not read before.
    pub(crate) screen: String,
    /// What went into a pipe.
    pub(crate) stdout: String,
    pub(crate) code: Option<i32>,
}
