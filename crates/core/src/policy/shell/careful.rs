//! What makes a harmless looking command do something else: variables that programs obey, options that
//! start other programs, and builtins that read text as code.

use brush_parser::ast::BinaryPredicate;

use super::{Word, sed};
pub(super) use crate::variable::is_harmless as is_harmless_for_programs;

/// Tells whether the shell can set this variable without changing what programs do. Names in small
/// letters are the line's own: programs listen to capitals, but for proxies.
pub(super) fn is_harmless_in_shell(name: &str) -> bool {
    let own =
        name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
    let one_letter = name.len() == 1 && name != "_";
    (own && name != "_" && !name.ends_with("_proxy"))
        || one_letter
        || is_harmless_for_programs(name)
}

/// Tells whether what is written to a file goes nowhere, or where the command writes anyway.
pub(super) fn is_sink(path: &str) -> bool {
    matches!(path, "/dev/null" | "/dev/stdout" | "/dev/stderr" | "/dev/tty")
}

/// Tells whether a text runs commands when it is expanded.
pub(super) fn has_substitution(text: &str) -> bool {
    ["$(", "`", "${", "$["].iter().any(|start| text.contains(start))
}

/// Tells whether both sides of a test are evaluated as arithmetic.
pub(super) const fn is_arithmetic(predicate: &BinaryPredicate) -> bool {
    matches!(
        predicate,
        BinaryPredicate::ArithmeticEqualTo
            | BinaryPredicate::ArithmeticNotEqualTo
            | BinaryPredicate::ArithmeticLessThan
            | BinaryPredicate::ArithmeticLessThanOrEqualTo
            | BinaryPredicate::ArithmeticGreaterThan
            | BinaryPredicate::ArithmeticGreaterThanOrEqualTo
    )
}

/// Programs with options that start other programs or write files.
const OBEDIENT: &[&str] = &[
    "awk", "bsdtar", "ed", "emacs", "ex", "fd", "fdfind", "find", "gawk", "git", "gsed", "less",
    "man", "mawk", "more", "nawk", "nvim", "rg", "rsync", "scp", "sed", "sftp", "sort", "ssh",
    "tar", "vi", "vim",
];

/// Tells whether a word that is not known may turn out to be an option.
fn may_have_options(program: &str, arguments: &[Word]) -> bool {
    let ends_options = |word: &Word| matches!(program, "git" | "rg") && word.text() == Some("--");
    let before = arguments.iter().take_while(|word| !ends_options(word));
    before.filter(|word| word.text().is_none()).any(|word| {
        // A pattern for file names can only become an option if nothing stands before it.
        word.start().is_none_or(|start| start.is_empty() || start.starts_with('-'))
    })
}

/// Says why it cannot be known what a command would run, if it cannot.
pub(super) fn hazard(words: &[Word]) -> Option<String> {
    let (program, arguments) = words.split_first()?;
    let program = bare(program.text()?);
    let texts: Vec<&str> = arguments.iter().filter_map(Word::text).collect();
    let any = |test: &dyn Fn(&str) -> bool| texts.iter().any(|text| test(text));
    if OBEDIENT.contains(&program) && may_have_options(program, arguments) {
        return Some(format!("which options `{program}` gets is not known"));
    }
    let found = match program {
        "alias" | "source" | "." | "let" | "enable" | "hash" | "mapfile" | "readarray" | "bind"
        | "complete" | "compgen" | "fc" | "coproc" | "shopt" => !arguments.is_empty(),
        "set" => !arguments.iter().all(|word| word.text().is_some_and(is_harmless_setting)),
        "export" => exports_hazard(arguments),
        "declare" | "typeset" | "local" | "readonly" => sets_hazard(arguments),
        "printf" | "read" | "getopts" | "wait" => {
            !names_set(program, arguments).all(|name| name.is_some_and(is_harmless_in_shell))
        }
        "unset" => any(&|text| text.contains('[')) || texts.len() < arguments.len(),
        // A subscript is evaluated, and so is what it names.
        "test" | "[" => {
            any(&|text| text == "-v")
                && (any(&|text| text.contains('[')) || texts.len() < arguments.len())
        }
        "find" => {
            any(&|text| text.starts_with("-fprint") || matches!(text, "-fls" | "-files0-from"))
        }
        "git" => git(&texts),
        "cargo" => cargo(&texts),
        "tar" | "bsdtar" => {
            any(&|text| {
                let long =
                    ["--to-command", "--checkpoint-action", "--use-compress", "--info-script"]
                        .iter()
                        .any(|option| abbreviates(text, option));
                long || ["--new-volume-script", "--rsh-command", "--rmt-command"]
                    .iter()
                    .any(|option| abbreviates(text, option))
                    || cluster(text, &['I', 'F', 'T'])
            }) || texts
                .first()
                .is_some_and(|text| !text.starts_with('-') && text.contains(['I', 'F', 'T']))
        }
        "rsync" => any(&|text| {
            abbreviates(text, "--rsh") || abbreviates(text, "--rsync-path") || cluster(text, &['e'])
        }),
        "zip" => any(&|text| text.starts_with("-TT") || text.starts_with("--unzip-command")),
        "wget" => any(&|text| abbreviates(text, "--use-askpass") || cluster(text, &['e'])),
        "gcc" | "cc" | "g++" | "c++" | "clang" | "clang++" => any(&|text| text == "-wrapper"),
        "ag" | "ack" | "bat" | "batcat" => any(&|text| abbreviates(text, "--pager")),
        "scp" | "sftp" | "ssh" => any(&|text| cluster(text, &['o', 'S', 'F'])),
        "sort" => any(&|text| abbreviates(text, "--compress-program")),
        "rg" => any(&|text| text.starts_with("--pre") || text.starts_with("--hostname-bin")),
        "man" => any(&|text| cluster(text, &['P', 'H']) || abbreviates(text, "--pager")),
        "sed" | "gsed" => !sed::is_harmless(arguments),
        "awk" | "gawk" | "mawk" | "nawk" => any(&|text| {
            text.contains("system")
                || text.contains('|')
                || text.contains("getline")
                || text.contains('@')
                || text.contains("ARG")
                || cluster(text, &['f', 'E', 'l', 'i'])
                || text.starts_with("--")
                || text.contains('>')
        }),
        "vi" | "vim" | "nvim" | "ex" | "emacs" | "ed" | "less" | "more" => {
            any(&|text| text.starts_with('+') || text.starts_with('-'))
        }
        _ => false,
    };
    // Names of files that are themselves in a file are not known here.
    let listed = any(&|text| {
        ["--files0-from", "--files-from", "--pathspec-from-file"]
            .iter()
            .any(|option| abbreviates(text, option) && text.len() > 8)
    });
    if listed {
        return Some(format!("which files `{program}` reads is not known"));
    }
    found.then(|| format!("`{program}` with these arguments can run other programs"))
}

/// Returns the name of a program without its directory.
pub(super) fn bare(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}

/// Tells whether a word is an option or a start of it that programs take for it.
fn abbreviates(word: &str, option: &str) -> bool {
    let name = word.split('=').next().unwrap_or(word);
    name.len() > 3 && option.starts_with(name) || name.starts_with(option)
}

/// Tells whether a word of short options has one of these among them.
fn cluster(word: &str, options: &[char]) -> bool {
    word.strip_prefix('-').is_some_and(|rest| !rest.starts_with('-') && rest.contains(options))
}

/// Tells whether a word of `set` only makes the shell stricter.
fn is_harmless_setting(word: &str) -> bool {
    let flags = |rest: &str| rest.chars().all(|flag| matches!(flag, 'e' | 'u' | 'f' | 'C' | 'o'));
    matches!(word, "pipefail" | "errexit" | "nounset" | "noglob" | "noclobber")
        || word.strip_prefix(['-', '+']).is_some_and(flags)
}

/// Returns the variables that a builtin sets, by its arguments; nothing for one that is not known.
fn names_set<'a>(builtin: &'a str, arguments: &'a [Word]) -> impl Iterator<Item = Option<&'a str>> {
    // Options with a value, and those whose value is a name.
    let (valued, naming) = match builtin {
        "read" => ("diNnptu", "a"),
        "printf" => ("", "v"),
        "wait" => ("", "p"),
        _ => ("", ""),
    };
    let (mut is_value, mut is_name, mut operands) = (false, false, 0);
    arguments.iter().filter_map(move |word| {
        let text = word.text();
        if std::mem::take(&mut is_value) {
            return None;
        }
        if std::mem::take(&mut is_name) {
            return Some(text);
        }
        let options = text.and_then(|text| text.strip_prefix('-')).filter(|_| operands == 0);
        if let Some(options) = options {
            let at = options.find(|option| valued.contains(option) || naming.contains(option));
            let (option, attached) = options.split_at_checked(at?)?.1.split_at_checked(1)?;
            return match (naming.contains(option), attached) {
                (true, "") => {
                    is_name = true;
                    None
                }
                (true, name) => Some(Some(name)),
                (false, attached) => {
                    is_value = attached.is_empty();
                    None
                }
            };
        }
        operands += 1;
        let names = match builtin {
            "read" => true,
            "getopts" => operands == 2,
            // Before its options are over, a word that is not known may be one.
            _ => operands == 1 && text.is_none(),
        };
        names.then_some(text)
    })
}

fn exports_hazard(arguments: &[Word]) -> bool {
    let name = |text: &str| text.split(['=', '+']).next().is_some_and(is_harmless_for_programs);
    !arguments.iter().all(|word| word.text().is_some_and(name))
}

fn sets_hazard(arguments: &[Word]) -> bool {
    arguments.iter().any(|word| match word.text() {
        None => true,
        Some(option) if option.starts_with('-') => option.contains(['i', 'n', 'x']),
        Some(text) => {
            let name = text.split(['=', '+']).next().unwrap_or(text);
            text.contains('=') && !is_harmless_for_programs(name) || name.contains('[')
        }
    })
}

/// Options of cargo that name what it runs, or a package elsewhere, whose build script runs.
fn cargo(texts: &[&str]) -> bool {
    let mut own = texts.iter().take_while(|text| **text != "--").peekable();
    let leads_out = |path: &str| path.starts_with(['/', '~']) || path.contains("..");
    while let Some(text) = own.next() {
        let (name, attached) = text.split_once('=').map_or((*text, None), |(n, v)| (n, Some(v)));
        let mut value = || attached.or_else(|| own.peek().map(|text| **text)).unwrap_or_default();
        let found = match name {
            "--config" => true,
            "--manifest-path" => leads_out(value()),
            name => name.starts_with("-C") || name.starts_with("-Z"),
        };
        if found {
            return true;
        }
    }
    false
}

/// Options and subcommands of git that run what they are given.
fn git(texts: &[&str]) -> bool {
    let options = [
        "-c",
        "--config-env",
        "--exec-path=",
        "--exec",
        "-x",
        "--upload-pack",
        "--receive-pack",
        "--open-files-in-pager",
        "--extcmd",
        "--ext-diff",
        "--textconv",
        "--template",
        "--git-dir",
        "--tool",
        "--to-cmd",
        "--smtp-server",
        "--output",
        "--work-tree",
        "--config",
    ];
    let subcommands = [
        "config",
        "daemon",
        "difftool",
        "filter-branch",
        "for-each-repo",
        "foreach",
        "hook",
        "instaweb",
        "mergetool",
        "remote-ext",
        "remote-fd",
        "send-email",
        "submodule--helper",
        "web--browse",
    ];
    let by_option = texts.iter().any(|text| {
        options.iter().any(|option| {
            let long = option.starts_with("--");
            text == option
                || (long && abbreviates(text, option) && text.len() > 5)
                || (!long
                    && text.starts_with(option)
                    && text.starts_with("-c")
                    && text.contains('='))
        })
    });
    let runs = texts.contains(&"bisect") && texts.contains(&"run");
    let pager = texts.contains(&"grep") && texts.iter().any(|text| text.starts_with("-O"));
    let named = git_subcommand(texts);
    let subcommand = named.is_some_and(|name| subcommands.contains(&name));
    // What answers at the other end, which for a clone of this machine is this one.
    let upload = named == Some("clone") && texts.iter().any(|text| cluster(text, &['u']));
    let nested = texts.contains(&"submodule") && texts.contains(&"foreach");
    by_option
        || runs
        || upload
        || pager
        || subcommand
        || nested
        || texts.iter().any(|text| text.contains("ext::"))
}

fn git_subcommand<'a>(texts: &[&'a str]) -> Option<&'a str> {
    git_rest(texts).first().copied()
}

/// Returns the words after the options that git takes before its subcommand.
pub(super) fn git_rest<'t, 'a>(texts: &'t [&'a str]) -> &'t [&'a str] {
    let mut at = 0;
    while let Some(text) = texts.get(at) {
        match *text {
            "-C" | "-c" | "--git-dir" | "--work-tree" | "--namespace" | "--config-env" => at += 2,
            option if option.starts_with('-') => at += 1,
            _ => break,
        }
    }
    texts.get(at..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hazardous(line: &[&str]) -> bool {
        hazard(&line.iter().copied().map(Word::literal).collect::<Vec<_>>()).is_some()
    }

    #[test]
    fn options_that_start_programs_are_known() {
        for line in [
            &["git", "-c", "core.pager=rm", "log"][..],
            &["git", "clone", "ext::sh -c rm"],
            &["git", "bisect", "run", "rm"],
            &["cargo", "test", "--config", "build.rustc-wrapper='rm'"],
            &["cargo", "test", "--manifest-path=/elsewhere/Cargo.toml"],
            &["cargo", "test", "--manifest-path", "../elsewhere/Cargo.toml"],
            &["git", "rebase", "--exec", "rm"],
            &["git", "config", "alias.x", "!rm"],
            &["git", "grep", "-Orm", "x"],
            &["tar", "xf", "a", "--to-command=rm"],
            &["tar", "xf", "a", "--checkpoint-act=exec=rm"],
            &["sort", "--compress-program=rm", "x"],
            &["sed", "1e rm -rf x", "f"],
            &["sed", "s/a/rm/e", "f"],
            &["awk", "BEGIN{system(\"rm\")}"],
            &["source", "x"],
            &["export", "PATH=/tmp"],
            &["declare", "-i", "x"],
            &["printf", "-v", "a[$(rm)]", "x"],
            &["export", "npm_config_shell"],
            &["find", ".", "-fprintf", "x", "y"],
            &["awk", "-f", "x"],
        ] {
            assert!(hazardous(line), "{line:?}");
        }
    }

    #[test]
    fn a_word_that_is_not_known_may_be_such_an_option() {
        let with = |program: &str, word: Word| hazard(&[Word::literal(program), word]).is_some();
        assert!(with("git", Word::unknown("$X")));
        assert!(with("find", Word::unknown("$X")));
        assert!(!with("cat", Word::unknown("$X")));
        let after = [Word::literal("git"), Word::literal("--"), Word::unknown("$X")];
        assert!(hazard(&after).is_none());
    }

    #[test]
    fn everyday_options_are_not_taken_for_them() {
        for line in [
            &["git", "commit", "-m", "a message"][..],
            &["git", "log", "--oneline", "-n", "5"],
            &["cargo", "test", "--manifest-path", "crates/core/Cargo.toml"],
            &["cargo", "run", "--", "--config", "x"],
            &["git", "-C", "sub", "status"],
            &["tar", "tzf", "a.tgz"],
            &["sed", "-n", "1,5p", "f"],
            &["sed", "s/a/b/g", "f"],
            &["awk", "{print $1}", "f"],
            &["sort", "-u", "f"],
            &["export", "LANG=C"],
            &["printf", "%s", "x"],
        ] {
            assert!(!hazardous(line), "{line:?}");
        }
    }
}
