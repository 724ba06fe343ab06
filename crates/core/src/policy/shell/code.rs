//! Programs that are given code to run: interpreters, and tools that start what they are told to.
//!
//! What such code does is not read here. It may be anything a rule forbids, so where a rule forbids
//! something it is asked about; where none does, the program itself is what has to be allowed.

use super::Word;

/// What a program may start besides what it is.
#[derive(Debug)]
pub(super) enum Given {
    /// Anything: it is given code.
    Code,
    /// One of these.
    Programs(Vec<Vec<Word>>),
}

/// A program that takes code from an option, and from its input if it is given no file.
struct Interpreter {
    /// The name, whatever version comes after it.
    name: &'static str,
    /// Short options with code.
    code: &'static str,
    /// Short options whose value is the next word.
    valued: &'static str,
}

const fn interpreter(name: &'static str, code: &'static str, valued: &'static str) -> Interpreter {
    Interpreter { name, code, valued }
}

const INTERPRETERS: &[Interpreter] = &[
    interpreter("python", "c", "WXQ"),
    interpreter("pypy", "c", "WX"),
    interpreter("ipython", "c", ""),
    interpreter("perl", "eE", "IMm"),
    interpreter("ruby", "e", "IrCE"),
    interpreter("jruby", "e", "IrCE"),
    interpreter("irb", "e", "Ir"),
    interpreter("node", "ep", "rC"),
    interpreter("nodejs", "ep", "rC"),
    interpreter("tsx", "ep", "rC"),
    interpreter("ts-node", "ep", "rCPO"),
    interpreter("bun", "ep", "rc"),
    interpreter("deno", "e", "cL"),
    interpreter("php", "rRBEF", "cdzt"),
    interpreter("lua", "e", "l"),
    interpreter("luajit", "e", "ljb"),
    interpreter("julia", "eE", "LptCJ"),
    interpreter("Rscript", "e", ""),
    interpreter("guile", "c", "Ll"),
    interpreter("osascript", "e", "ls"),
    interpreter("elixir", "e", "rS"),
    interpreter("scala", "e", ""),
    interpreter("groovy", "e", ""),
    interpreter("racket", "e", "ltf"),
    interpreter("ghc", "e", ""),
    interpreter("tclsh", "", ""),
];
/// Long options and first words with code.
const CODE_WORDS: &[&str] = &["--eval", "--print", "--exec", "--run", "--command", "eval", "repl"];
/// Long options whose value is the next word.
const VALUED_WORDS: &[&str] =
    &["--conditions", "--import", "--loader", "--experimental-loader", "--require", "--env-file"];

/// Programs whose input can start others.
const OBEYING_INPUT: &[&str] =
    &["dc", "ed", "ex", "ftp", "m4", "mysql", "psql", "sftp", "sqlite3", "telnet", "vi", "vim"];

/// Programs that start another one, after a word that says so.
const RUNNERS: &[(&str, &[&str])] = &[
    ("asdf", &["exec"]),
    ("bundle", &["exec"]),
    ("bunx", &[]),
    ("conda", &["run"]),
    ("hatch", &["run"]),
    ("mamba", &["run"]),
    ("micromamba", &["run"]),
    ("mise", &["exec", "x"]),
    ("nodenv", &["exec"]),
    ("npm", &["exec", "x"]),
    ("npx", &[]),
    ("pdm", &["run"]),
    ("pipenv", &["run"]),
    ("pnpm", &["exec"]),
    ("poetry", &["run"]),
    ("pyenv", &["exec"]),
    ("rbenv", &["exec"]),
    ("rustup", &["run"]),
    ("rye", &["run"]),
    ("uv", &["run"]),
    ("yarn", &["exec"]),
];

/// Says what a program may start besides what it is.
pub(super) fn given(program: &str, arguments: &[Word]) -> Option<Given> {
    let texts = || arguments.iter().map(|word| word.text().unwrap_or("-"));
    let name = program.trim_end_matches(|c: char| c.is_ascii_digit() || matches!(c, '.' | '-'));
    if let Some(known) = INTERPRETERS.iter().find(|known| known.name == name) {
        return known.takes_code(&texts().collect::<Vec<_>>()).then_some(Given::Code);
    }
    let is_code = match program {
        "make" | "gmake" | "bmake" => texts().any(is_code_for_make),
        "docker" | "podman" | "nerdctl" | "kubectl" | "oc" => {
            texts().any(|text| matches!(text, "exec" | "run" | "create" | "debug"))
        }
        obeying => OBEYING_INPUT.contains(&obeying),
    };
    if is_code {
        return Some(Given::Code);
    }
    let (_, verbs) = RUNNERS.iter().find(|(known, _)| *known == program)?;
    if texts().any(|text| matches!(text, "-c" | "--call")) {
        return Some(Given::Code);
    }
    let verb = texts().position(|text| verbs.contains(&text));
    let at = if verbs.is_empty() { 0 } else { verb? + 1 };
    // The name of a toolchain comes first.
    let at = if program == "rustup" { at + 1 } else { at };
    Some(Given::Programs(started(arguments.get(at..).unwrap_or_default())))
}

impl Interpreter {
    /// Tells whether it is given code, by an option or through its input.
    fn takes_code(&self, words: &[&str]) -> bool {
        let mut words = words.iter().copied();
        let mut shows = false;
        let first = words.clone().next();
        while let Some(word) = words.next() {
            let name = word.split('=').next().unwrap_or(word);
            let is_code_word = CODE_WORDS.contains(&name);
            if is_code_word && (name.starts_with('-') || first == Some(word)) {
                return true;
            }
            if VALUED_WORDS.contains(&word) {
                words.next();
                continue;
            }
            match word.strip_prefix('-') {
                // Everything after a file, or after a module of Python, is for the file.
                None => return is_code_word || is_input(word),
                Some("m") if self.name.starts_with("py") => return false,
                Some("") => return true,
                Some("-") => return words.next().is_none_or(is_input),
                Some(long) if long.starts_with('-') => {
                    shows |= matches!(word, "--version" | "--help" | "--check" | "--test");
                }
                Some(letters) => {
                    if letters.contains(|letter| self.code.contains(letter)) {
                        return true;
                    }
                    shows |= matches!(letters, "V" | "v" | "h" | "i");
                    if letters.ends_with(|letter| self.valued.contains(letter)) {
                        words.next();
                    }
                }
            }
        }
        !shows
    }
}

/// Tells whether a file is the input of the program.
fn is_input(file: &str) -> bool {
    file == "-" || file.starts_with("/dev/") || file.starts_with("/proc/")
}

/// Returns what may be the program and its arguments. The word after an option may be its value.
fn started(words: &[Word]) -> Vec<Vec<Word>> {
    let mut found = Vec::new();
    for (at, word) in words.iter().enumerate() {
        let is_option = word.text().is_some_and(|text| text.starts_with('-'));
        if is_option {
            continue;
        }
        found.push(words.get(at..).unwrap_or_default().to_vec());
        let follows = at.checked_sub(1).and_then(|before| words.get(before)?.text());
        if follows.is_none_or(|text| !text.starts_with('-') || text == "--" || text.contains('=')) {
            break;
        }
    }
    found
}

/// Tells whether a word makes `make` run what the caller wrote, and not what the makefile says.
fn is_code_for_make(text: &str) -> bool {
    let sets = ["SHELL=", ".SHELLFLAGS=", "MAKEFLAGS=", "MAKE=", "MAKEFILES="];
    text.starts_with("--eval")
        || (text.starts_with('-') && !text.starts_with("--") && text.contains('E'))
        || matches!(text, "-" | "-f-" | "--file=-" | "--makefile=-")
        || text.contains("/dev/")
        || sets.iter().any(|name| text.replace([':', '?', '+', '!'], "").starts_with(name))
        || (text.contains('=')
            && (text.contains("$(") || text.contains("${") || text.contains(';')))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<Word> {
        line.split(' ').filter(|word| !word.is_empty()).map(Word::literal).collect()
    }

    #[test]
    fn code_is_recognised() {
        for (program, arguments, expected) in [
            ("python3", "-c x", true),
            ("python3.11", "-Bc x", true),
            ("python3", "", true),
            ("python3", "-", true),
            ("python3", "script.py -c", false),
            ("python3", "-m pytest", false),
            ("python3", "-m pytest -c x", false),
            ("python3", "-X dev -c x", true),
            ("python3", "-W ignore", true),
            ("python3", "-W ignore script.py", false),
            ("python3", "-u script.py -c", false),
            ("python3", "/dev/stdin", true),
            ("perl", "-I lib -e x", true),
            ("perl", "-I lib script.pl", false),
            ("node", "-r fs -p x", true),
            ("node", "-r ts-node/register app.ts", false),
            ("node", "--require fs --eval x", true),
            ("node", "--test", false),
            ("ruby", "-rjson -e x", true),
            ("php", "-d a=b -r x", true),
            ("php", "artisan -r", false),
            ("python3", "--version", false),
            ("perl", "-ne x f", true),
            ("perl", "script.pl", false),
            ("node", "--eval=x", true),
            ("node", "server.js", false),
            ("deno", "eval x", true),
            ("make", "test", false),
            ("make", "SHELL=/tmp/x", true),
            ("make", "CC=gcc test", false),
            ("make", "--eval=x", true),
            ("ed", "f", true),
            ("docker", "ps", false),
            ("docker", "run x", true),
        ] {
            let found = matches!(given(program, &words(arguments)), Some(Given::Code));
            assert_eq!(found, expected, "{program} {arguments}");
        }
    }

    #[test]
    fn what_a_runner_starts_is_found() {
        let found = |program: &str, arguments: &str| match given(program, &words(arguments)) {
            Some(Given::Programs(programs)) => programs
                .iter()
                .map(|words| words.iter().map(Word::shown).collect::<Vec<_>>().join(" "))
                .collect(),
            _ => Vec::new(),
        };
        assert_eq!(found("poetry", "run rm x"), ["rm x"]);
        assert_eq!(found("poetry", "-q run rm x"), ["rm x"]);
        assert_eq!(found("npx", "--yes rm x"), ["rm x", "x"]);
        assert_eq!(found("npx", "--package=p rm x"), ["rm x"]);
        assert_eq!(found("rustup", "run stable rm x"), ["rm x"]);
        assert_eq!(found("poetry", "install"), [""; 0]);
    }
}
