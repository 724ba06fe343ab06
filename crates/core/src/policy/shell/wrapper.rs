//! Programs that start another one: the other one is what counts.
//!
//! Only options that are known are stepped over. One that is not might take the next word for itself,
//! and then it would not be known which word is the program; such a command is opaque.

use super::careful::{bare, git_rest, is_harmless_for_programs};
use super::code::{self, Given};
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
    pub(super) directories: Vec<Word>,
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
    /// A line for a shell, any number of times.
    Again(String),
    /// What may be a program with arguments. It can be forbidden; it does not have to be allowed.
    Perhaps(Vec<Word>),
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
            ..wrapper("nEHSkbA", "ugpChrtTUD", 0)
        },
        _ => return None,
    })
}

/// Programs that start others in ways that are not looked into.
const LAUNCHERS: &[&str] = &[
    "aa-exec",
    "at",
    "batch",
    "bwrap",
    "capsh",
    "cgexec",
    "choom",
    "chpst",
    "chroot",
    "coreutils",
    "cpulimit",
    "crontab",
    "daemonize",
    "dbus-launch",
    "dbus-run-session",
    "dtach",
    "dumb-init",
    "entr",
    "expect",
    "fakechroot",
    "fakeroot",
    "faketime",
    "firejail",
    "flock",
    "gdb",
    "gosu",
    "hyperfine",
    "i386",
    "linux32",
    "linux64",
    "lldb",
    "logsave",
    "ltrace",
    "machinectl",
    "newgrp",
    "nsenter",
    "numactl",
    "parallel",
    "perf",
    "pkexec",
    "prlimit",
    "proot",
    "proxychains",
    "proxychains4",
    "rlwrap",
    "rr",
    "run-parts",
    "runcon",
    "runuser",
    "screen",
    "script",
    "setarch",
    "setpriv",
    "sg",
    "socat",
    "softlimit",
    "ssh-agent",
    "start-stop-daemon",
    "strace",
    "su-exec",
    "systemd-run",
    "tini",
    "tmux",
    "torify",
    "torsocks",
    "uclampset",
    "unbuffer",
    "unshare",
    "valgrind",
    "watch",
    "watchexec",
    "x86_64",
    "xvfb-run",
];

const SHELLS: &[&str] = &["sh", "bash", "dash", "ksh", "mksh", "ash", "rbash", "yash"];
/// Shells with a grammar of their own.
const FOREIGN_SHELLS: &[&str] =
    &["csh", "elvish", "es", "fish", "nu", "pwsh", "powershell", "rc", "tcsh", "xonsh", "zsh"];

/// Looks at what a command starts.
pub(super) fn look_through(words: &[Word]) -> Started {
    let mut started = Started {
        role: Role::Acts,
        inner: Vec::new(),
        also: Vec::new(),
        directories: Vec::new(),
        opaque: None,
    };
    let Some((Some(program), arguments)) =
        words.split_first().map(|(program, rest)| (program.text().map(bare), rest))
    else {
        return started;
    };
    match program {
        shell if SHELLS.contains(&shell) => started.shell(shell, arguments),
        shell if FOREIGN_SHELLS.contains(&shell) => {
            started.shell(shell, arguments);
            started.opaque(&format!("`{shell}` reads lines in its own way"));
        }
        "eval" => started.joined(after_dashes(arguments)),
        "trap" => started.trap(arguments),
        "su" => started.opaque("`su` runs a shell"),
        "find" | "fd" | "fdfind" => started.find(program, arguments),
        "cd" | "pushd" | "chdir" => {
            let target =
                arguments.iter().find(|word| word.text().is_none_or(|text| !text.starts_with('-')));
            let back = arguments.iter().any(|word| word.text() == Some("-"));
            let target = target.filter(|_| !back).cloned();
            started.directories.push(target.unwrap_or(Word::unknown("~")));
        }
        "popd" => started.directories.push(Word::unknown("popd")),
        "git" => started.git(arguments),
        launcher if LAUNCHERS.contains(&launcher) || is_loader(launcher) => {
            started.opaque(&format!("`{launcher}` starts other programs"));
        }
        "command" if looks_up(arguments) => {}
        program => {
            if let Some(wrapper) = known(program) {
                started.wrapped(program, &wrapper, arguments);
            }
        }
    }
    match code::given(program, arguments) {
        Some(Given::Code) => {
            let anything = [Word::unknown("code"), Word::unknown("code")];
            started.also.push(anything.to_vec());
        }
        Some(Given::Programs(programs)) => {
            started.inner.extend(programs.into_iter().map(Inner::Perhaps));
        }
        None => {}
    }
    if !matches!(program, "cd" | "pushd" | "chdir" | "popd") {
        started.directories.extend(directories(program, arguments));
    }
    started
}

/// Tells whether a program is the one that loads others.
fn is_loader(program: &str) -> bool {
    program == "ld.so" || program.starts_with("ld-")
}

/// Returns the directories that options name for a program to start in.
fn directories(program: &str, arguments: &[Word]) -> Vec<Word> {
    let long =
        ["--directory", "--chdir", "--cwd", "--work-tree", "--working-directory", "--prefix"];
    let short = if matches!(program, "sudo" | "doas") { 'D' } else { 'C' };
    let old_style = matches!(program, "tar" | "bsdtar");
    let mut found = Vec::new();
    let mut words = arguments.iter().enumerate().peekable();
    while let Some((at, word)) = words.next() {
        let Some(text) = word.text() else { continue };
        let mut next = || words.peek().map_or(Word::unknown("-C"), |(_, word)| (*word).clone());
        let named = long.iter().find_map(|option| text.strip_prefix(option));
        if let Some(rest) = named {
            match rest.strip_prefix('=') {
                Some(value) => found.push(Word::literal(value)),
                None if rest.is_empty() => found.push(next()),
                None => {}
            }
        } else if !text.starts_with("--")
            && (text.starts_with('-') || (old_style && at == 0))
            && let Some((_, attached)) = text.split_once(short)
        {
            match attached {
                "" => found.push(next()),
                // In a word of options its value may be any of the words that follow.
                _ if old_style => found.push(Word::unknown("-C")),
                value => found.push(Word::literal(value)),
            }
        }
    }
    // With a number it is something else: lines of context, for instance.
    found.retain(|word| word.text().is_none_or(|text| text.parse::<u32>().is_err()));
    found
}

/// Returns the arguments after the word that ends options, if that comes first.
fn after_dashes(arguments: &[Word]) -> &[Word] {
    match arguments.split_first() {
        Some((first, rest)) if first.text() == Some("--") => rest,
        _ => arguments,
    }
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
            // Alone it is short for `env -i`.
            if program == "env" && text == "-" {
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
            at += if valued == Some(short.len() - 1) { 2 } else { 1 };
        }
        Some(at)
    }

    fn shell(&mut self, shell: &str, arguments: &[Word]) {
        let mut rest = arguments.iter();
        let mut takes_line = false;
        while let Some(word) = rest.next() {
            let at = arguments.len() - rest.len();
            let Some(text) = word.text() else {
                return self.opaque("what the shell runs is not known");
            };
            match text {
                "--norc" | "--noprofile" | "--posix" | "--" => {}
                "--version" | "--help" => return,
                option if option.starts_with(['-', '+']) && option.len() > 1 => {
                    let flags = option.get(1..).unwrap_or_default();
                    if flags.contains('s') {
                        return self.opaque("the shell runs what it is sent");
                    }
                    if !flags.chars().all(|flag| "abcefhilmnoptuvxBCEHOP".contains(flag)) {
                        return self
                            .opaque(&format!("`{option}` is not a known option of `{shell}`"));
                    }
                    takes_line |= flags.contains('c');
                    // Each of these takes a word.
                    for _ in flags.matches(['o', 'O']) {
                        rest.next();
                    }
                }
                line if takes_line => {
                    self.role = Role::Stands;
                    return self.inner.push(Inner::Line(line.to_owned()));
                }
                file if file.starts_with("/dev/") || file.starts_with("/proc/") || file == "-" => {
                    break;
                }
                // A script is a program like any other, and is looked for like one.
                _ => {
                    let script = arguments.get(at.saturating_sub(1)..).unwrap_or_default().to_vec();
                    return self.inner.push(Inner::Perhaps(script));
                }
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
        match after_dashes(arguments).first().map(Word::text) {
            Some(Some("-" | "-l" | "-p" | "-P")) | None => {}
            Some(Some(line)) => self.inner.push(Inner::Again(line.to_owned())),
            Some(None) => self.opaque("what is run at the end is not known"),
        }
    }

    fn find(&mut self, program: &str, arguments: &[Word]) {
        let mut rest = arguments.iter();
        let starts = |text: &str| match program {
            "find" => matches!(text, "-exec" | "-execdir" | "-ok" | "-okdir"),
            _ => {
                matches!(text, "--exec" | "--exec-batch")
                    || (!text.starts_with("--")
                        && text.starts_with('-')
                        && text.ends_with(['x', 'X']))
            }
        };
        while let Some(word) = rest.next() {
            match word.text() {
                Some(text) if text.starts_with("--exec=") || text.starts_with("--exec-batch=") => {
                    self.opaque("it starts another program");
                }
                Some(text) if starts(text) => {
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
        let rest = git_rest(&texts);
        if rest.len() < texts.len() {
            let plain = std::iter::once("git").chain(rest.iter().copied());
            self.also.push(plain.map(Word::literal).collect());
        }
    }
}

/// What xargs adds to a command is not known.
fn given_by_xargs(options: &[Word], inner: Vec<Word>) -> Vec<Word> {
    let mut placeholders = Vec::new();
    let mut words = options.iter().filter_map(Word::text).peekable();
    while let Some(word) = words.next() {
        if let Some(text) = word.strip_prefix("--replace=") {
            placeholders.push(text);
        } else if !word.starts_with("--")
            && word.starts_with('-')
            && let Some((_, attached)) = word.split_once('I')
        {
            placeholders.push(if attached.is_empty() {
                *words.peek().unwrap_or(&"{}")
            } else {
                attached
            });
        }
    }
    let replaced = |word: Word| match word.text() {
        Some(text) if placeholders.iter().any(|placeholder| text.contains(placeholder)) => {
            Word::unknown(text)
        }
        _ => word,
    };
    let mut inner: Vec<Word> = inner.into_iter().map(replaced).collect();
    // Which of them counts, or whether one does, is not looked into.
    if placeholders.len() != 1 {
        inner.push(Word::unknown("…"));
    }
    inner
}
