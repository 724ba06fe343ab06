//! What makes a harmless looking command do something else: variables that programs obey, and builtins
//! that read text as code.

use brush_parser::ast::BinaryPredicate;

use super::Word;
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
pub(in crate::policy) fn is_sink(path: &str) -> bool {
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

/// Says why it cannot be known what a command would run, if it cannot.
pub(super) fn hazard(words: &[Word]) -> Option<String> {
    let (program, arguments) = words.split_first()?;
    let program = bare(program.text()?);
    let texts: Vec<&str> = arguments.iter().filter_map(Word::text).collect();
    let any = |test: &dyn Fn(&str) -> bool| texts.iter().any(|text| test(text));
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
        _ => false,
    };
    found.then(|| format!("`{program}` with these arguments can run other programs"))
}

/// Returns the name of a program without its directory.
pub(super) fn bare(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
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

#[cfg(test)]
mod tests {
    use super::*;

    fn hazardous(line: &[&str]) -> bool {
        hazard(&line.iter().copied().map(Word::literal).collect::<Vec<_>>()).is_some()
    }

    #[test]
    fn builtins_that_change_what_programs_do_are_known() {
        for line in [
            &["source", "x"][..],
            &["export", "PATH=/tmp"],
            &["declare", "-i", "x"],
            &["printf", "-v", "a[$(rm)]", "x"],
            &["export", "npm_config_shell"],
        ] {
            assert!(hazardous(line), "{line:?}");
        }
        for line in [&["export", "LANG=C"][..], &["printf", "%s", "x"]] {
            assert!(!hazardous(line), "{line:?}");
        }
    }
}
