//! Programs that start another one: the other one is what counts.
//!
//! Only options that are known are stepped over. One that is not might take the next word for itself,
//! and then it would not be known which word is the program; such a command is opaque.

use super::careful::{bare, git_rest, is_harmless_for_programs};
use super::{Role, Word};

/// What a command starts.
#[derive(Debug)]
pub(super) struct Started {
    /// What the command itself is.
    pub(super) role: Role,
    /// What it runs.
    pub(super) inner: Vec<Inner>,
    /// Other ways to read it, which can be forbidden as well.
    pub(super) also: Vec<Vec<Word>>,
    /// Where it moves to.
    pub(super) directory: Option<Word>,
    /// Why it cannot be known what it runs.
    pub(super) opaque: Option<String>,
}

/// Something that a command runs.
#[derive(Debug)]
pub(super) enum Inner {
    /// A program with arguments.
    Words(Vec<Word>),
    /// A line for a shell.
    Line(String),
}

/// The options of a program that starts another one.
struct Wrapper {
    /// Short options that take no value.
    flags: &'static str,
    /// Short options that take one.
    valued: &'static str,
    /// Long options that take no value, or have it after `=`.
    long: &'static [&'static str],
    /// Words of its own before the program.
    operands: usize,
}

const fn wrapper(flags: &'static str, valued: &'static str, operands: usize) -> Wrapper {
    Wrapper { flags, valued, long: &[], operands }
}

fn known(program: &str) -> Option<Wrapper> {
    Some(match program {
        "env" => Wrapper {
            long: &["--ignore-environment", "--null", "--unset=", "--chdir=", "--debug"],
            ..wrapper("i0v", "uC", 0)
        },
        "nice" => Wrapper { long: &["--adjustment="], ..wrapper("", "n", 0) },
        "timeout" => Wrapper {
            long: &["--signal=", "--kill-after=", "--foreground", "--preserve-status", "--verbose"],
            ..wrapper("vfp", "sk", 1)
        },
        "stdbuf" => {
            Wrapper { long: &["--input=", "--output=", "--error="], ..wrapper("", "ioe", 0) }
        }
        "nohup" | "builtin" | "busybox" | "toybox" => wrapper("", "", 0),
        "setsid" => Wrapper { long: &["--wait", "--fork", "--ctty"], ..wrapper("cfw", "", 0) },
        "ionice" => wrapper("t", "cn", 0),
        "chrt" => wrapper("bfior", "", 1),
        "taskset" => wrapper("c", "", 1),
        "time" => {
            Wrapper { long: &["--portability", "--verbose", "--format="], ..wrapper("pv", "f", 0) }
        }
        "command" => wrapper("p", "", 0),
        "exec" => wrapper("cl", "a", 0),
        "xargs" => Wrapper {
            long: &[
                "--null",
                "--no-run-if-empty",
                "--verbose",
                "--max-args=",
                "--max-procs=",
                "--max-lines=",
                "--delimiter=",
                "--arg-file=",
                "--replace=",
                "--exit",
            ],
            ..wrapper("0rtxo", "nPLdaIEs", 0)
        },
        "sudo" | "doas" => Wrapper {
            long: &["--user=", "--group=", "--non-interactive", "--preserve-env", "--set-home"],
            ..wrapper("nEHSkbA", "ugpChrtTUDR", 0)
        },
        _ => return None,
    })
}

/// Programs that start others in ways that are not looked into.
const LAUNCHERS: &[&str] = &[
    "at",
    "batch",
    "capsh",
    "chroot",
    "crontab",
    "entr",
    "expect",
    "firejail",
    "flock",
    "gdb",
    "ltrace",
    "nsenter",
    "parallel",
    "perf",
    "proot",
    "prlimit",
    "run-parts",
    "runuser",
    "script",
    "setarch",
    "setpriv",
    "socat",
    "start-stop-daemon",
    "strace",
    "systemd-run",
    "unshare",
    "valgrind",
    "watch",
];

const SHELLS: &[&str] =
    &["sh", "bash", "dash", "zsh", "ksh", "mksh", "ash", "fish", "rbash", "yash"];

/// Looks at what a command starts.
pub(super) fn look_through(words: &[Word]) -> Started {
    let mut started = Started {
        role: Role::Acts,
        inner: Vec::new(),
        also: Vec::new(),
        directory: None,
        opaque: None,
    };
    let Some((Some(program), arguments)) =
        words.split_first().map(|(program, rest)| (program.text().map(bare), rest))
    else {
        return started;
    };
    match program {
        shell if SHELLS.contains(&shell) => started.shell(shell, arguments),
        "eval" => started.joined(arguments),
        "trap" => started.trap(arguments),
        "su" => started.opaque("`su` runs a shell"),
        "find" | "fd" | "fdfind" => started.find(program, arguments),
        "cd" | "pushd" | "chdir" => {
            let target =
                arguments.iter().find(|word| word.text().is_none_or(|text| !text.starts_with('-')));
            started.directory = Some(target.cloned().unwrap_or(Word::unknown("~")));
            if arguments.iter().any(|word| word.text() == Some("-")) {
                started.directory = Some(Word::unknown("-"));
            }
        }
        "popd" => started.directory = Some(Word::unknown("popd")),
        "git" => started.git(arguments),
        launcher if LAUNCHERS.contains(&launcher) || launcher.starts_with("ld-linux") => {
            started.opaque(&format!("`{launcher}` starts other programs"));
        }
        "command" if looks_up(arguments) => {}
        program => {
            if let Some(wrapper) = known(program) {
                started.wrapped(program, &wrapper, arguments);
            }
        }
    }
    started
}

fn looks_up(arguments: &[Word]) -> bool {
    matches!(arguments.first().and_then(Word::text), Some("-v" | "-V"))
}

impl Started {
    fn opaque(&mut self, reason: &str) {
        self.opaque.get_or_insert_with(|| reason.to_owned());
    }

    fn wrapped(&mut self, program: &str, wrapper: &Wrapper, arguments: &[Word]) {
        let Some(options) = self.step_over(program, wrapper, arguments) else { return };
        let mut rest = arguments.get(options + wrapper.operands..).unwrap_or_default();
        if matches!(program, "env" | "sudo" | "doas") {
            while let Some((name, _)) =
                rest.first().and_then(Word::text).and_then(|t| t.split_once('='))
            {
                if !is_harmless_for_programs(name) {
                    self.opaque(&format!("it sets `{name}`, which can change what programs do"));
                }
                rest = rest.get(1..).unwrap_or_default();
            }
        }
        if rest.is_empty() {
            return;
        }
        // Acting as somebody else is more than what is run.
        if !matches!(program, "sudo" | "doas") {
            self.role = Role::Stands;
        }
        let mut inner = rest.to_vec();
        if program == "xargs" {
            let own = arguments.get(..options).unwrap_or_default();
            inner = given_by_xargs(own, inner);
        }
        self.inner.push(Inner::Words(inner));
    }

    /// Returns how many of the arguments are options of the wrapper.
    fn step_over(&mut self, program: &str, wrapper: &Wrapper, arguments: &[Word]) -> Option<usize> {
        let mut at = 0;
        while let Some(word) = arguments.get(at) {
            let Some(text) = word.text() else {
                self.opaque("which program it runs is not known");
                return None;
            };
            if text == "--" {
                return Some(at + 1);
            }
            if let Some(long) = text.strip_prefix("--") {
                let fits = wrapper.long.iter().any(|known| match known.strip_suffix('=') {
                    Some(valued) => text.starts_with(valued) && text.contains('='),
                    None => long == known.trim_start_matches('-'),
                });
                if !fits {
                    self.opaque(&format!("`{text}` is not a known option of `{program}`"));
                    return None;
                }
                at += 1;
                continue;
            }
            let Some(short) = text.strip_prefix('-').filter(|short| !short.is_empty()) else {
                break;
            };
            let valued = short.find(|c| wrapper.valued.contains(c));
            let flags = short.get(..valued.unwrap_or(short.len())).unwrap_or_default();
            let number = program == "nice" && short.bytes().all(|byte| byte.is_ascii_digit());
            if !number && !flags.chars().all(|flag| wrapper.flags.contains(flag)) {
                self.opaque(&format!("`{text}` is not a known option of `{program}`"));
                return None;
            }
            if program == "env" && short.contains('C') {
                self.directory = Some(Word::unknown("env -C"));
            }
            at += if valued == Some(short.len() - 1) { 2 } else { 1 };
        }
        Some(at)
    }

    fn shell(&mut self, shell: &str, arguments: &[Word]) {
        let mut rest = arguments.iter();
        let mut takes_line = false;
        while let Some(word) = rest.next() {
            let Some(text) = word.text() else {
                return self.opaque("what the shell runs is not known");
            };
            match text {
                "--norc" | "--noprofile" | "--posix" | "--" => {}
                "--version" | "--help" => return,
                "-o" | "+o" | "-O" | "+O" => {
                    rest.next();
                }
                option if option.starts_with("--") => {
                    return self.opaque(&format!("`{option}` is not a known option of `{shell}`"));
                }
                option if option.starts_with('-') && option.len() > 1 => {
                    if option.contains('s') {
                        return self.opaque("the shell runs what it is sent");
                    }
                    takes_line |= option.contains('c');
                }
                line if takes_line => {
                    self.role = Role::Stands;
                    return self.inner.push(Inner::Line(line.to_owned()));
                }
                file if file.starts_with("/dev/") || file.starts_with("/proc/") || file == "-" => {
                    break;
                }
                // A script is a program like any other.
                _ => return,
            }
        }
        self.opaque("the shell runs what it is sent");
    }

    fn joined(&mut self, arguments: &[Word]) {
        let texts: Option<Vec<&str>> = arguments.iter().map(Word::text).collect();
        match texts {
            Some(texts) => {
                self.role = Role::Stands;
                self.inner.push(Inner::Line(texts.join(" ")));
            }
            None => self.opaque("what is evaluated is not known"),
        }
    }

    fn trap(&mut self, arguments: &[Word]) {
        match arguments.first().map(Word::text) {
            Some(Some(option)) if option.starts_with('-') => {}
            Some(Some(line)) => self.inner.push(Inner::Line(line.to_owned())),
            Some(None) => self.opaque("what is run at the end is not known"),
            None => {}
        }
    }

    fn find(&mut self, program: &str, arguments: &[Word]) {
        let mut rest = arguments.iter();
        while let Some(word) = rest.next() {
            match word.text() {
                Some(
                    "-exec" | "-execdir" | "-ok" | "-okdir" | "-x" | "-X" | "--exec"
                    | "--exec-batch",
                ) => {
                    let inner =
                        rest.by_ref().take_while(|word| !matches!(word.text(), Some(";" | "+")));
                    let inner = inner.map(|word| match word.text() {
                        Some(text) if text.contains('{') => Word::unknown(text),
                        _ => word.clone(),
                    });
                    let mut inner: Vec<Word> = inner.collect();
                    if program != "find" {
                        inner.push(Word::unknown("{}"));
                    }
                    self.inner.push(Inner::Words(inner));
                }
                Some("-delete") => {
                    let removed = vec![Word::literal("rm"), Word::unknown("{}")];
                    self.inner.push(Inner::Words(removed));
                }
                _ => {}
            }
        }
    }

    /// What git does is told by its subcommand, which options can stand before.
    fn git(&mut self, arguments: &[Word]) {
        if arguments.iter().any(|word| word.text().is_none()) {
            return;
        }
        let texts: Vec<&str> = arguments.iter().filter_map(Word::text).collect();
        if let Some(at) = texts.iter().position(|text| *text == "-C") {
            self.directory = arguments.get(at + 1).cloned();
        }
        let rest = git_rest(&texts);
        if rest.len() < texts.len() {
            let plain = std::iter::once("git").chain(rest.iter().copied());
            self.also.push(plain.map(Word::literal).collect());
        }
    }
}

/// What xargs adds to a command is not known.
fn given_by_xargs(options: &[Word], inner: Vec<Word>) -> Vec<Word> {
    let mut placeholder = None;
    let mut words = options.iter().filter_map(Word::text).peekable();
    while let Some(word) = words.next() {
        if let Some(attached) = word.strip_prefix("-I") {
            placeholder =
                Some(if attached.is_empty() { *words.peek().unwrap_or(&"{}") } else { attached });
        } else if let Some(text) = word.strip_prefix("--replace=") {
            placeholder = Some(text);
        }
    }
    match placeholder {
        Some(placeholder) => inner
            .into_iter()
            .map(|word| match word.text() {
                Some(text) if text.contains(placeholder) => Word::unknown(text),
                _ => word,
            })
            .collect(),
        None => inner.into_iter().chain([Word::unknown("…")]).collect(),
    }
}
