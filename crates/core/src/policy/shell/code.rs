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

/// Programs that take code from an option, and from their input if they are given no file. With their
/// names, whatever version they have after it.
const INTERPRETERS: &[(&str, &[char], &[&str])] = &[
    ("python", &['c'], &[]),
    ("pypy", &['c'], &[]),
    ("perl", &['e', 'E'], &[]),
    ("ruby", &['e'], &[]),
    ("node", &['e', 'p'], &["--eval", "--print"]),
    ("nodejs", &['e', 'p'], &["--eval", "--print"]),
    ("bun", &['e', 'p'], &["--eval", "--print", "-e"]),
    ("deno", &[], &["eval", "repl"]),
    ("php", &['r', 'R', 'B', 'E'], &[]),
    ("lua", &['e'], &[]),
    ("luajit", &['e'], &[]),
    ("julia", &['e', 'E'], &["--eval", "--print"]),
    ("Rscript", &['e'], &[]),
    ("guile", &['c'], &[]),
    ("osascript", &['e'], &[]),
    ("tclsh", &[], &[]),
];

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
    if let Some((_, short, long)) = INTERPRETERS.iter().find(|(known, ..)| *known == name) {
        let asks = texts().all(|text| text.starts_with("--v") || text == "-V" || text == "--help");
        let mut before_file = texts().take_while(|text| text.starts_with('-'));
        let by_option = before_file.any(|text| {
            let is_long = text.starts_with("--");
            let attached = text.split('=').next().unwrap_or(text);
            long.contains(&attached) || (!is_long && text.contains(*short)) || text == "-"
        });
        let by_word = texts().next().is_some_and(|text| long.contains(&text));
        let has_file =
            texts().any(|text| !text.starts_with('-')) || texts().any(|text| text == "-m");
        let shows = !arguments.is_empty() && asks;
        return (by_option || by_word || !(has_file || shows)).then_some(Given::Code);
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
