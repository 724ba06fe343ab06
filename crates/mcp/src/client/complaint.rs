//! Which line of what a program complained about says why it ended.
//!
//! Most complaints are stack traces: the line that helps stands before the frames (Node), after them (Python), or below
//! the one that looks like it (Rust), and whoever shows one line has to show that one. Lines come with the space that
//! they begin with, which tells a frame from what is said.

const TRACEBACK: &str = "Traceback (most recent call last):";
const PANIC: &str = "panicked at ";
/// How lines end in which a shell, or the system, says that there is no such thing.
const MISSING: [&str; 4] =
    ["command not found", ": not found", "No such file or directory", "Permission denied"];

/// Returns the line that says why, if one of them seems to.
pub(super) fn reason(lines: &[String]) -> Option<String> {
    let told = [of_python(lines), lines.iter().rposition(|line| is_told(line))];
    let told = told.into_iter().flatten().max();
    let at = told
        .or_else(|| lines.iter().position(|line| is_of_npm(line)))
        .or_else(|| lines.iter().rposition(|line| is_likely(line)))?;
    let line = bare(lines.get(at)?).trim();
    let place = line.find(PANIC).and_then(|begin| line.get(begin..));
    match (place, lines.get(at + 1)) {
        // What it says is on the next line.
        (Some(place), Some(said)) if place.ends_with(':') => {
            Some(format!("{place} {}", said.trim()))
        }
        _ => Some(line.to_owned()),
    }
}

/// Finds what follows the frames of the last traceback. Of several that caused each other, the last counts.
fn of_python(lines: &[String]) -> Option<usize> {
    let begin = lines.iter().rposition(|line| bare(line).ends_with(TRACEBACK))?;
    let below = lines.get(begin + 1..)?;
    let found = below.iter().position(|line| !is_indented(bare(line)))?;
    Some(begin + 1 + found)
}

/// Tells whether a line names an error: `TypeError: …`, `tool: error: …`, `sh: x: not found`.
fn is_told(line: &str) -> bool {
    let line = bare(line);
    if is_indented(line) {
        return false;
    }
    let line = line.trim_end();
    let mut parts = line.split(':').map(str::trim);
    let first = parts.next().unwrap_or_default();
    let first = first.strip_prefix("Uncaught ").unwrap_or(first);
    let name = first.split(" [").next().unwrap_or_default();
    let is_word = |part: &str| {
        ["error", "fatal", "fatal error", "panic"].iter().any(|one| one.eq_ignore_ascii_case(part))
    };
    is_exception(name)
        || is_word(first)
        || parts.take(2).any(is_word)
        || line.starts_with("Exception in thread ")
        || line.contains(PANIC)
        || MISSING.iter().any(|end| line.ends_with(end))
}

/// Tells whether a word is the name of a kind of error, as `java.io.IOException`.
fn is_exception(word: &str) -> bool {
    let is_part = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '.' | '$');
    !word.is_empty()
        && word.chars().all(is_part)
        && ["Error", "Exception", "Rejection"].iter().any(|end| word.ends_with(end))
}

/// Its first line names a code, and its last ones where there is more to read.
fn is_of_npm(line: &str) -> bool {
    let said = line.strip_prefix("npm ERR! ").or_else(|| line.strip_prefix("npm error "));
    said.is_some_and(|said| !said.starts_with("code ") && !said.starts_with("A complete log"))
}

fn is_likely(line: &str) -> bool {
    let lower = line.to_lowercase();
    let words = ["error", "exception", "failed", "cannot ", "missing", "not set", "required"];
    !is_indented(line) && words.iter().any(|word| lower.contains(word))
}

/// Returns a line without what groups of exceptions are drawn with.
fn bare(line: &str) -> &str {
    let inner = line.trim_start();
    let said = inner.strip_prefix('|').or_else(|| inner.strip_prefix('+'));
    said.map_or(line, |said| said.strip_prefix(' ').unwrap_or(said))
}

fn is_indented(line: &str) -> bool {
    line.starts_with(char::is_whitespace)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODE_THROW: &str = "\
[eval]:1
throw new Error(\"NODE_TOKEN missing: set it\")
^

Error: NODE_TOKEN missing: set it
    at [eval]:1:7
    at runScriptInThisContext (node:internal/vm:209:10)
    at node:internal/process/execution:118:14
    at [eval]-wrapper:6:24
    at runScript (node:internal/process/execution:101:62)
    at evalScript (node:internal/process/execution:133:3)
    at node:internal/main/eval_string:51:3

Node.js v20.20.2";

    const NODE_MODULE: &str = "\
node:internal/modules/cjs/loader:1210
  throw err;
  ^

Error: Cannot find module '/srv/index.js'
    at Module._resolveFilename (node:internal/modules/cjs/loader:1207:15)
    at Module._load (node:internal/modules/cjs/loader:1038:27)
    at node:internal/main/run_main_module:28:49 {
  code: 'MODULE_NOT_FOUND',
  requireStack: []
}

Node.js v20.20.2";

    const NODE_CAUSE: &str = "\
node:internal/deps/undici/undici:13392
      Error.captureStackTrace(err);
            ^

TypeError [ERR_FETCH]: fetch failed
    at node:internal/deps/undici/undici:13392:13 {
  [cause]: Error: connect ECONNREFUSED 127.0.0.1:1
      at TCPConnectWrap.afterConnect [as oncomplete] (node:net:1555:16)
}

Node.js v20.20.2";

    const PYTHON_CHAIN: &str = "\
INFO: starting
Traceback (most recent call last):
  File \"/srv/server.py\", line 3, in <module>
    token = os.environ[\"TOKEN\"]
            ~~~~~~~~~~^^^^^^^^^
KeyError: 'TOKEN'

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File \"/srv/server.py\", line 5, in <module>
    raise Unusable(\"TOKEN is not set\")
server.Unusable: TOKEN is not set";

    const PYTHON_GROUP: &str = "  + Exception Group Traceback (most recent call last):
  |   File \"<string>\", line 6, in <module>
  |     raise me from None
  | ExceptionGroup: unhandled errors in a TaskGroup (1 sub-exception)
  +-+---------------- 1 ----------------
    | Traceback (most recent call last):
    |   File \"<string>\", line 3, in f
    | ValueError: no key
    +------------------------------------";

    const RUST_PANIC: &str = "\
thread 'main' panicked at src/main.rs:12:34:
TOKEN is not set: NotPresent
stack backtrace:
   0: rust_begin_unwind
             at /rustc/lib.rs:652:5
note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace";

    const NPM: &str = "\
npm error code E404
npm error 404 Not Found - GET https://registry.npmjs.org/nothing - Not found
npm error 404 Note that you can also install from a folder.
npm error A complete log of this run can be found in: /home/me/.npm/x.log";

    fn chosen(text: &str) -> Option<String> {
        let lines: Vec<String> =
            text.lines().filter(|line| !line.trim().is_empty()).map(str::to_owned).collect();
        reason(&lines)
    }

    #[test]
    fn the_line_that_says_why_is_found_among_all_the_others() {
        for (text, why) in [
            (NODE_THROW, "Error: NODE_TOKEN missing: set it"),
            (NODE_MODULE, "Error: Cannot find module '/srv/index.js'"),
            (NODE_CAUSE, "TypeError [ERR_FETCH]: fetch failed"),
            (PYTHON_CHAIN, "server.Unusable: TOKEN is not set"),
            (PYTHON_GROUP, "ValueError: no key"),
            (RUST_PANIC, "panicked at src/main.rs:12:34: TOKEN is not set: NotPresent"),
            (
                "thread 'main' panicked at 'no token', src/main.rs:2:5\nnote: run with `X`",
                "thread 'main' panicked at 'no token', src/main.rs:2:5",
            ),
            ("bash: server: command not found", "bash: server: command not found"),
            ("starting\nsh: 1: server: not found", "sh: 1: server: not found"),
            ("usage: x [-h]\nx: error: `--key` is missing", "x: error: `--key` is missing"),
            ("panic: no key\n\ngoroutine 1 [running]:\nmain.main()", "panic: no key"),
            (NPM, "npm error 404 Not Found - GET https://registry.npmjs.org/nothing - Not found"),
            ("The variable KEY is required\nSee the manual", "The variable KEY is required"),
        ] {
            assert_eq!(chosen(text).as_deref(), Some(why), "{text}");
        }
    }

    #[test]
    fn what_says_nothing_of_it_is_no_reason() {
        for text in
            ["", "Listening on standard input", "a\n    Error: in a frame\nb", "Node.js v20"]
        {
            assert_eq!(chosen(text), None, "{text}");
        }
    }
}
