//! Which directories a command may walk through.
//!
//! A rule on a file has to count for a program that is given a directory above it. Programs that are
//! known to go down are taken to see everything below; those that are known not to are left alone. Any
//! other may do either: it is only held against rules that say where their files are.

use std::path::PathBuf;

use super::shell::Word;
use super::touch::{Bases, Touch, candidates};

/// A directory, or anything else that a program is given, with what lies below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Walked {
    pub(super) path: PathBuf,
    pub(super) descent: Descent,
}

/// Whether a program goes into directories.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Descent {
    /// It may.
    Perhaps,
    /// It does, and opens what it finds.
    Sure,
}

/// Programs that open what they are told to and nothing below it, or only show names.
const FLAT: &[&str] = &[
    ".",
    ":",
    "[",
    "awk",
    "basename",
    "bash",
    "cat",
    "cd",
    "chdir",
    "cmp",
    "comm",
    "cut",
    "date",
    "dash",
    "df",
    "dirname",
    "du",
    "echo",
    "env",
    "export",
    "false",
    "fd",
    "fdfind",
    "file",
    "find",
    "gawk",
    "head",
    "jq",
    "kill",
    "less",
    "ls",
    "md5sum",
    "mkdir",
    "mktemp",
    "more",
    "nl",
    "od",
    "popd",
    "printf",
    "pushd",
    "pwd",
    "read",
    "readlink",
    "realpath",
    "rmdir",
    "sed",
    "set",
    "sh",
    "sha256sum",
    "sleep",
    "sort",
    "source",
    "stat",
    "tac",
    "tail",
    "tee",
    "test",
    "touch",
    "tr",
    "tree",
    "true",
    "type",
    "uname",
    "uniq",
    "wc",
    "which",
    "xxd",
    "yq",
];

/// Programs that go into directories, or take them along.
const WALKERS: &[&str] = &[
    "7z", "7za", "ack", "ag", "bsdtar", "cpio", "diff", "ln", "mv", "rg", "rgrep", "rsync", "tar",
    "ugrep", "zip",
];

/// Programs that go into directories where an option says so.
const BY_OPTION: &[(&str, &[char], &[&str])] = &[
    ("chgrp", &['R'], &["--recursive"]),
    ("chmod", &['R'], &["--recursive"]),
    ("chown", &['R'], &["--recursive"]),
    ("cp", &['r', 'R', 'a'], &["--recursive", "--archive"]),
    ("egrep", &['r', 'R'], &["--recursive", "--dereference-recursive", "--directories"]),
    ("fgrep", &['r', 'R'], &["--recursive", "--dereference-recursive", "--directories"]),
    ("find", &[], &["-delete"]),
    ("grep", &['r', 'R'], &["--recursive", "--dereference-recursive", "--directories"]),
    ("ls", &['R'], &["--recursive"]),
    ("rm", &['r', 'R'], &["--recursive"]),
    ("scp", &['r'], &[]),
    ("zgrep", &['r', 'R'], &["--recursive", "--dereference-recursive"]),
];

/// Programs that search where they are, unless they are told where: with how many words before that.
const SEARCHERS: &[&str] =
    &["ack", "ag", "egrep", "fgrep", "grep", "rg", "rgrep", "ugrep", "zgrep"];

/// Programs whose first word says what they do. It is not a path.
pub(super) const WITH_SUBCOMMANDS: &[&str] = &[
    "apt",
    "brew",
    "bun",
    "bundle",
    "cargo",
    "composer",
    "deno",
    "docker",
    "dotnet",
    "gem",
    "gh",
    "git",
    "go",
    "gradle",
    "helm",
    "just",
    "kubectl",
    "make",
    "mix",
    "mvn",
    "npm",
    "pip",
    "pip3",
    "pnpm",
    "podman",
    "poetry",
    "rustup",
    "swift",
    "systemctl",
    "terraform",
    "uv",
    "yarn",
    "zig",
];

/// Returns what a command may walk through.
pub(super) fn walked(words: &[Word], bases: &Bases) -> Vec<Walked> {
    let Some((program, arguments)) = words.split_first() else { return Vec::new() };
    let Some(program) = program.text() else { return Vec::new() };
    let program = program.rsplit('/').next().unwrap_or(program);
    let texts: Vec<&str> = arguments.iter().filter_map(Word::text).collect();
    let Some(descent) = descent(program, &texts) else { return Vec::new() };
    let is_subcommand = |text: &str| {
        WITH_SUBCOMMANDS.contains(&program)
            && texts.iter().find(|word| !word.starts_with('-')) == Some(&text)
    };
    let named = texts.iter().filter(|text| !is_subcommand(text));
    let named = named.flat_map(|text| candidates(text)).flat_map(|text| bases.resolve(text));
    let here = (descent == Descent::Sure && searches_here(program, arguments.len(), &texts))
        .then(|| bases.here())
        .into_iter()
        .flatten();
    let path = |touch| match touch {
        Touch::At(path) => Some(path),
        // What is not known is held against all rules anyway.
        Touch::Below(_) | Touch::Anywhere => None,
    };
    named.chain(here).filter_map(path).map(|path| Walked { path, descent }).collect()
}

/// Tells whether a program goes into directories; nothing if it does not.
fn descent(program: &str, texts: &[&str]) -> Option<Descent> {
    if let Some((_, short, long)) = BY_OPTION.iter().find(|(known, ..)| *known == program) {
        let says_so = |text: &&str| match text.strip_prefix('-') {
            Some(rest) if rest.starts_with('-') || program == "find" => {
                let name = text.split('=').next().unwrap_or(text);
                long.iter()
                    .any(|option| *option == name || (name.len() > 3 && option.starts_with(name)))
            }
            Some(options) => options.contains(*short),
            None => false,
        };
        // `grep -d recurse`, with or without the space.
        let by_value = texts.iter().any(|text| text.ends_with("recurse"));
        return (texts.iter().any(says_so) || by_value).then_some(Descent::Sure);
    }
    match program {
        "git" => Some(if texts.iter().any(|text| matches!(*text, "grep" | "clean")) {
            Descent::Sure
        } else {
            Descent::Perhaps
        }),
        walker if WALKERS.contains(&walker) => Some(Descent::Sure),
        flat if FLAT.contains(&flat) => None,
        _ => Some(Descent::Perhaps),
    }
}

/// Tells whether a program that goes into directories starts where it is.
fn searches_here(program: &str, given: usize, texts: &[&str]) -> bool {
    let operands = texts.iter().filter(|text| !text.starts_with('-')).count();
    // What is not known may be a path, but need not be one.
    let unknown = given - texts.len();
    match program {
        "git" => true,
        searcher if SEARCHERS.contains(&searcher) => operands + unknown < 2 || unknown > 0,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn found(line: &str) -> Vec<(String, Descent)> {
        let words: Vec<Word> = line.split(' ').map(Word::literal).collect();
        let bases = Bases::new(Path::new("/srv"), &[]).home(Some("/home/u"));
        let shown = |walked: Walked| (walked.path.display().to_string(), walked.descent);
        walked(&words, &bases).into_iter().map(shown).collect()
    }

    #[test]
    fn programs_that_go_into_directories_are_known() {
        for line in [
            "grep -r KEY /home/u",
            "grep -rn KEY /home/u",
            "grep --recursive KEY /home/u",
            "grep -d recurse KEY /home/u",
            "cp -r /home/u x",
            "cp -a /home/u x",
            "tar c /home/u",
            "mv /home/u x",
            "ln -s /home/u x",
            "rg KEY /home/u",
            "find /home/u -delete",
            "/bin/tar c /home/u",
        ] {
            let found = found(line);
            assert!(found.contains(&("/home/u".to_owned(), Descent::Sure)), "{line}: {found:?}");
        }
        for line in ["grep -r KEY", "rg KEY", "git grep KEY", "git clean -fdx"] {
            let found = found(line);
            assert!(found.contains(&("/srv".to_owned(), Descent::Sure)), "{line}: {found:?}");
        }
        assert!(found("./tool /home/u").contains(&("/home/u".to_owned(), Descent::Perhaps)));
    }

    #[test]
    fn programs_that_stay_where_they_are_walk_through_nothing() {
        for line in
            ["ls", "ls /home/u", "cat /home/u", "grep KEY /home/u", "find . -name x", "cd /"]
        {
            assert_eq!(found(line), [], "{line}");
        }
        assert_eq!(found("cargo test"), [], "the first word is what it does");
    }
}
