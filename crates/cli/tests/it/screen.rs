//! A terminal with a person before it: what is written is shown as a terminal shows it, and what a
//! terminal is asked, it answers.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::Child;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};

use crate::pty::pair;
use crate::support::{Scene, skip};

/// How long anything may take to appear.
const PATIENCE: Duration = Duration::from_mins(1);

/// A command on a terminal of its own, which is its controlling one.
pub(crate) struct Session {
    child: Child,
    terminal: File,
    shared: Arc<Shared>,
}

struct Shared {
    screen: Mutex<Screen>,
    changed: Condvar,
}

impl Session {
    /// Starts the command; nothing, where there is no way to give it a terminal.
    pub(crate) fn start(scene: &Scene, arguments: &[&str]) -> Option<Self> {
        let (master, user) = pair(80, 40);
        let mut command = leading_a_session(scene, arguments);
        Self::of(command.env("LANG", "C.UTF-8").env("TERM", "xterm"), master, user)
    }

    /// Starts the command on a terminal on which this line was typed already.
    pub(crate) fn start_after(scene: &Scene, line: &str, arguments: &[&str]) -> Option<Self> {
        let (master, user) = pair(80, 40);
        let mut terminal = File::from(master.try_clone().unwrap());
        terminal.write_all(line.as_bytes()).unwrap();
        // What is echoed lies ready to be read.
        let mut echo = [0];
        while echo != *b"\n" {
            terminal.read_exact(&mut echo).unwrap();
        }
        let mut command = leading_a_session(scene, arguments);
        Self::of(command.env("LANG", "C.UTF-8").env("TERM", "xterm"), master, user)
    }

    /// Starts the command on a terminal that can do nothing but show text.
    pub(crate) fn start_dumb(scene: &Scene, arguments: &[&str]) -> Option<Self> {
        let (master, user) = pair(80, 40);
        let mut command = leading_a_session(scene, arguments);
        Self::of(command.env("TERM", "dumb"), master, user)
    }

    fn of(command: &mut std::process::Command, master: OwnedFd, user: OwnedFd) -> Option<Self> {
        let started = command
            .stdin(user.try_clone().unwrap())
            .stdout(user.try_clone().unwrap())
            .stderr(user)
            .spawn();
        let child = match started {
            Ok(child) => child,
            Err(error) => {
                skip("a controlling terminal", &format!("setsid: {error}"));
                return None;
            }
        };
        // The command holds copies of the user's side; ours would keep the terminal open after it.
        command.stdin(std::process::Stdio::null());
        command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
        let terminal = File::from(master);
        let screen = Mutex::new(Screen::new(80, 40));
        let shared = Arc::new(Shared { screen, changed: Condvar::new() });
        let (reads, shows) = (terminal.try_clone().unwrap(), Arc::clone(&shared));
        std::thread::spawn(move || follow(reads, &shows));
        Some(Self { child, terminal, shared })
    }

    /// Types something.
    pub(crate) fn type_in(&mut self, text: &str) {
        self.terminal.write_all(text.as_bytes()).unwrap();
    }

    /// Pastes something, marked as terminals do it.
    pub(crate) fn paste(&mut self, text: &str) {
        self.type_in(&format!("\u{1b}[200~{}\u{1b}[201~", text.replace('\n', "\r")));
    }

    /// Makes the terminal another size.
    pub(crate) fn resize(&mut self, columns: u16) {
        self.shared.screen.lock().unwrap().columns = columns.into();
        let size = Winsize { ws_row: 40, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&self.terminal, size).unwrap();
    }

    /// Sends the command a signal.
    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Waits until the screen is as wanted, and returns what it shows.
    pub(crate) fn wait_until(&self, what: &str, is_so: impl Fn(&str) -> bool) -> String {
        let end = Instant::now() + PATIENCE;
        let mut screen = self.shared.screen.lock().unwrap();
        loop {
            let text = screen.text();
            if is_so(&text) {
                return text;
            }
            let left = end.saturating_duration_since(Instant::now());
            assert!(!left.is_zero() && !screen.is_over, "{what} did not come:\n{text}");
            screen = self.shared.changed.wait_timeout(screen, left).unwrap().0;
        }
    }

    /// Waits until this text is on the screen.
    pub(crate) fn wait_for(&self, wanted: &str) -> String {
        self.wait_until(&format!("`{wanted}`"), |text| text.contains(wanted))
    }

    /// Waits for an empty prompt. It is set apart from what is above it; while a run works, the place to
    /// type is not.
    pub(crate) fn wait_for_prompt(&self) -> String {
        self.wait_until("the prompt", |text| text.ends_with("\n\n›"))
    }

    /// Waits for a question that can be answered: an earlier one may still be in sight.
    pub(crate) fn wait_for_question(&self) -> String {
        self.wait_until("the question", |text| text.ends_with("or say what to do instead:"))
    }

    /// Tells whether the terminal echoes and waits for whole lines, as it did before.
    pub(crate) fn is_as_before(&self) -> bool {
        let modes = tcgetattr(&self.terminal).unwrap().local_modes;
        modes.contains(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG)
    }

    /// Waits until the terminal waits for whole lines that it does not show.
    pub(crate) fn wait_until_unseen(&self) {
        self.wait_for_modes(|modes| {
            modes.contains(LocalModes::ICANON) && !modes.contains(LocalModes::ECHO)
        });
    }

    /// Waits until the terminal is as it was before.
    pub(crate) fn wait_until_as_before(&self) {
        self.wait_for_modes(|_| self.is_as_before());
    }

    fn wait_for_modes(&self, are_so: impl Fn(LocalModes) -> bool) {
        let end = Instant::now() + PATIENCE;
        while !are_so(tcgetattr(&self.terminal).unwrap().local_modes) {
            assert!(Instant::now() < end, "the terminal is another");
            std::thread::yield_now();
        }
    }

    /// Waits until the command has ended, and returns what the screen shows and the exit code.
    pub(crate) fn end(mut self) -> (String, Option<i32>) {
        let code = self.child.wait().unwrap().code();
        // What it wrote last may not have been read yet.
        let screen = self.shared.screen.lock().unwrap();
        let is_read = self.shared.changed.wait_timeout_while(screen, PATIENCE, |one| !one.is_over);
        let (screen, _) = is_read.unwrap();
        let text = screen.text();
        drop(screen);
        (text, code)
    }
}

/// Returns the command as the one that a terminal belongs to.
fn leading_a_session(scene: &Scene, arguments: &[&str]) -> std::process::Command {
    let words = ["setsid", "--ctty", "--wait", env!("CARGO_BIN_EXE_convoke")];
    scene.program(&[&words[..], arguments].concat())
}

/// A test that fails leaves nothing running.
impl Drop for Session {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn follow(mut terminal: File, shared: &Shared) {
    let mut bytes = [0; 4096];
    loop {
        let read = terminal.read(&mut bytes);
        let mut screen = shared.screen.lock().unwrap();
        // A terminal whose last user went away answers with an error.
        let Ok(length @ 1..) = read else {
            screen.is_over = true;
            shared.changed.notify_all();
            return;
        };
        let answer = screen.write(&bytes[..length]);
        // A command that has just ended wants no answer.
        drop(terminal.write_all(answer.as_bytes()));
        shared.changed.notify_all();
    }
}

/// What a terminal shows, and what has scrolled out of it.
struct Screen {
    columns: usize,
    height: usize,
    rows: Vec<Vec<char>>,
    row: usize,
    column: usize,
    saved: (usize, usize),
    /// Bytes of a letter or a sequence that is not complete.
    begun: Vec<u8>,
    is_over: bool,
}

impl Screen {
    fn new(columns: usize, height: usize) -> Self {
        Self {
            columns,
            height,
            rows: vec![Vec::new()],
            row: 0,
            column: 0,
            saved: (0, 0),
            begun: Vec::new(),
            is_over: false,
        }
    }

    /// Shows what was written, and returns what the terminal answers.
    fn write(&mut self, bytes: &[u8]) -> String {
        let mut answer = String::new();
        for byte in bytes {
            self.begun.push(*byte);
            let begun = self.begun.clone();
            match begun.as_slice() {
                [0x1b, b'[', .., end @ 0x40..=0x7e] if begun.len() > 2 => {
                    let numbers = String::from_utf8_lossy(&begun[2..begun.len() - 1]).into_owned();
                    self.obey(*end, &numbers, &mut answer);
                }
                [0x1b] | [0x1b, b'[', ..] => continue,
                [0x1b, b'7'] => self.saved = (self.row, self.column),
                [0x1b, b'8'] => (self.row, self.column) = self.saved,
                [0x1b, _] => {}
                letter => match std::str::from_utf8(letter) {
                    Ok(text) => text.chars().for_each(|letter| self.put(letter)),
                    Err(error) if error.error_len().is_none() => continue,
                    Err(_) => {}
                },
            }
            self.begun.clear();
        }
        answer
    }

    /// The first row that can be seen.
    fn top(&self) -> usize {
        self.rows.len().saturating_sub(self.height)
    }

    fn obey(&mut self, command: u8, numbers: &str, answer: &mut String) {
        let mut given = numbers.split(';').map(|number| number.parse::<usize>().ok());
        let first = given.next().flatten();
        let count = first.unwrap_or(1).max(1);
        match command {
            b'A' => self.row = self.row.saturating_sub(count).max(self.top()),
            b'B' => self.go_down_to(self.row + count),
            b'C' => self.column = (self.column + count).min(self.columns - 1),
            b'D' => self.column = self.column.saturating_sub(count),
            b'G' => self.column = count - 1,
            b'H' => {
                self.go_down_to(self.top() + count - 1);
                self.row = self.top() + count - 1;
                self.column = given.next().flatten().unwrap_or(1).max(1) - 1;
            }
            b'J' if first == Some(2) => {
                let top = self.top();
                self.rows[top..].iter_mut().for_each(Vec::clear);
            }
            b'J' => {
                self.rows[self.row].truncate(self.column);
                self.rows[self.row + 1..].iter_mut().for_each(Vec::clear);
            }
            b'K' if first.is_none_or(|how| how == 0) => {
                self.rows[self.row].truncate(self.column);
            }
            b'K' => self.rows[self.row].clear(),
            b's' => self.saved = (self.row, self.column),
            b'u' => (self.row, self.column) = self.saved,
            b'n' if numbers == "6" => {
                let column = self.column.min(self.columns - 1) + 1;
                answer.push_str(&format!("\u{1b}[{};{column}R", self.row - self.top() + 1));
            }
            _ => {}
        }
    }

    fn go_down_to(&mut self, row: usize) {
        while self.rows.len() <= row {
            self.rows.push(Vec::new());
        }
        self.row = row;
    }

    fn put(&mut self, letter: char) {
        match letter {
            '\r' => self.column = 0,
            '\n' => self.go_down_to(self.row + 1),
            '\u{8}' => self.column = self.column.saturating_sub(1),
            letter if letter.is_control() => {}
            letter => {
                if self.column >= self.columns {
                    self.column = 0;
                    self.go_down_to(self.row + 1);
                }
                let row = &mut self.rows[self.row];
                row.resize(row.len().max(self.column + 1), ' ');
                row[self.column] = letter;
                self.column += 1;
            }
        }
    }

    /// Returns everything that was shown and still stands.
    fn text(&self) -> String {
        let line = |row: &Vec<char>| row.iter().collect::<String>().trim_end().to_owned();
        let lines: Vec<String> = self.rows.iter().map(line).collect();
        lines.join("\n").trim_end().to_owned()
    }
}
