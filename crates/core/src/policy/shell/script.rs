//! Scripts for `sed` and `awk` that are plainly harmless: a small part of each language, and no more.

use super::table::Language;

/// Tells whether a script can neither start a program nor open a file.
pub(super) fn is_plain(language: Option<Language>, script: &str) -> bool {
    match language {
        Some(Language::Sed) => is_plain_sed(script),
        Some(Language::Awk) => is_plain_awk(script),
        None => true,
    }
}

/// Texts that a program for `awk` needs to start another one, to read another file, or to load code.
const AWK: &[&str] = &["system", "getline", "|", "@", "ARGV", "ARGC", "extension", "\\\n"];

fn is_plain_awk(script: &str) -> bool {
    // Where nothing was printed yet, `>` compares.
    let after = script.find("print").and_then(|at| script.get(at..)).unwrap_or_default();
    !AWK.iter().any(|text| script.contains(text)) && !after.contains('>')
}

/// Commands for `sed` that consist of addresses and one letter, `s` or `y`.
fn is_plain_sed(script: &str) -> bool {
    let mut rest = script;
    loop {
        rest = rest.trim_start_matches([' ', ';', '\n']);
        if rest.is_empty() {
            return true;
        }
        let Some(next) = sed_command(rest) else { return false };
        if !next.is_empty() && !next.starts_with([';', '\n']) {
            return false;
        }
        rest = next;
    }
}

/// Reads one command; returns what follows it.
fn sed_command(script: &str) -> Option<&str> {
    let mut rest = sed_address(script)?;
    if let Some(second) = rest.strip_prefix(',') {
        rest = sed_address(second.trim_start_matches(['+', '~'])).filter(|next| *next != second)?;
    }
    let rest = rest.trim_start_matches(' ');
    let rest = rest.strip_prefix('!').unwrap_or(rest).trim_start_matches(' ');
    let command = rest.chars().next()?;
    let rest = rest.get(command.len_utf8()..)?;
    let spaced = |rest: &str| rest.len() - rest.trim_start_matches(' ').len();
    match command {
        'p' | 'd' | 'D' | 'P' | 'h' | 'H' | 'g' | 'G' | 'x' | 'n' | 'N' | '=' => {
            rest.get(spaced(rest)..)
        }
        'q' | 'Q' => Some(rest.trim_start_matches(|c: char| c == ' ' || c.is_ascii_digit())),
        's' | 'y' => {
            let delimiter = rest.chars().next().filter(char::is_ascii_punctuation)?;
            let rest = delimited(rest.get(1..)?, delimiter)?;
            let rest = delimited(rest, delimiter)?;
            let flags = |c: char| command == 's' && "gpiI0123456789".contains(c);
            let rest = rest.trim_start_matches(flags);
            rest.get(spaced(rest)..)
        }
        _ => None,
    }
}

/// Reads an address, if there is one.
fn sed_address(script: &str) -> Option<&str> {
    if let Some(rest) = script.strip_prefix('/') {
        return delimited(rest, '/').map(|rest| rest.strip_prefix('I').unwrap_or(rest));
    }
    let rest = script.trim_start_matches(|c: char| c.is_ascii_digit() || matches!(c, '$' | '~'));
    Some(rest)
}

/// Reads up to a delimiter. Lists of characters have to be closed before it: programs differ there.
fn delimited(text: &str, delimiter: char) -> Option<&str> {
    let (mut escaped, mut open) = (false, 0_usize);
    for (at, character) in text.char_indices() {
        match character {
            '\n' => return None,
            _ if escaped => escaped = false,
            '\\' if delimiter == '\\' => return None,
            '\\' => escaped = true,
            c if c == delimiter => {
                return (open == 0).then(|| text.get(at + c.len_utf8()..)).flatten();
            }
            '[' => open += 1,
            ']' => open = open.saturating_sub(1),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_scripts_are_told_from_those_that_run_or_write() {
        for script in [
            "p",
            "1,5p",
            "$d",
            "/^a/p",
            "/a/,/b/d",
            "/a/I!d",
            "2q",
            "s/a/b/",
            "s|/a|/b|g",
            "s/a/b/gI;s/c/d/2p",
            "1~2d",
            "y/ab/cd/",
            "10,+3p",
            "/x/s/[0-9]*/N/",
            "1d; $d",
            "=",
            "s/[[:space:]]*$//",
        ] {
            assert!(is_plain_sed(script), "{script}");
        }
        for script in [
            "e",
            "1e rm x",
            "s/a/rm/e",
            "s/a/b/w f",
            "w f",
            "r f",
            "1W f",
            ":a e rm",
            ":a",
            "ba",
            "ta e rm",
            "{p;e rm}",
            "a\\\ntext",
            "s/a/b",
            "s/[/]/b/e",
            "/a/e rm",
            "i x",
            "R f",
            "s/a/b/ge",
            "s/a\n/b/",
            "1!e rm",
            "F",
            "v",
            "#n",
            "y/a/b/e",
            "s/a/b/m;e",
            "\\%a%e",
            "1,e rm",
            "p e",
            "pe",
            "s,a,b,we",
            "z;e",
            "l;e rm",
            "dw f",
        ] {
            assert!(!is_plain_sed(script), "{script}");
        }
        for script in ["{print $1}", "$3 > 5", "$3 > 5 {print $1}", "NR==1", "{s+=$1} END{print s}"]
        {
            assert!(is_plain_awk(script), "{script}");
        }
        for script in [
            "BEGIN{system(\"rm\")}",
            "{print > \"f\"}",
            "{print | \"sh\"}",
            "\"rm\" | getline",
            "@load \"x\"",
            "@include \"x\"",
            "{while((getline l < \"f\")>0) print l}",
            "BEGIN{ARGV[1]=\"x\"}",
            "{printf \"x\" >> \"f\"}",
            "BEGIN{f=\"system\";@f(\"rm\")}",
        ] {
            assert!(!is_plain_awk(script), "{script}");
        }
    }
}
