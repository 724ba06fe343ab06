//! What a sed script does. It can run commands, and read and write files by name; only a script in which
//! every command is known to do neither is harmless.

use super::Word;

/// Tells whether sed, with these arguments, only changes text and the files it is given.
pub(super) fn is_harmless(arguments: &[Word]) -> bool {
    scripts(arguments)
        .is_some_and(|scripts| scripts.iter().all(|script| Script(script).does_no_harm()))
}

/// Returns the scripts; nothing if there may be others.
fn scripts(arguments: &[Word]) -> Option<Vec<&str>> {
    let (mut scripts, mut operands) = (Vec::new(), Vec::new());
    let mut words = arguments.iter();
    let mut options = true;
    while let Some(word) = words.next() {
        match word.text() {
            Some("--") if options => options = false,
            Some("-e" | "--expression") if options => scripts.push(words.next()?.text()?),
            Some(long) if options && long.starts_with("--") => {
                if let Some(script) = long.strip_prefix("--expression=") {
                    scripts.push(script);
                } else if !is_known(long) {
                    return None;
                }
            }
            Some(short) if options && short.starts_with('-') && short.len() > 1 => {
                let flags = short.get(1..)?;
                let at = flags.find(['e', 'i']).unwrap_or(flags.len());
                let (before, rest) = flags.split_at_checked(at)?;
                if !are_flags(before) {
                    return None;
                }
                match rest.strip_prefix('e') {
                    Some("") => scripts.push(words.next()?.text()?),
                    Some(script) => scripts.push(script),
                    // Nothing, or `i` and a suffix.
                    None => {}
                }
            }
            _ => operands.push(word),
        }
    }
    if scripts.is_empty() {
        scripts.push(operands.first()?.text()?);
    }
    Some(scripts)
}

fn are_flags(flags: &str) -> bool {
    flags.chars().all(|flag| "nErsuz".contains(flag))
}

fn is_known(option: &str) -> bool {
    let known = [
        "--quiet",
        "--silent",
        "--regexp-extended",
        "--separate",
        "--unbuffered",
        "--null-data",
        "--zero-terminated",
        "--in-place",
        "--posix",
        "--debug",
        "--sandbox",
        "--version",
        "--help",
    ];
    known.contains(&option) || option.starts_with("--in-place=")
}

/// What is left of a script.
struct Script<'a>(&'a str);

impl Script<'_> {
    fn does_no_harm(mut self) -> bool {
        loop {
            self.skip(|c| c.is_whitespace() || matches!(c, ';' | '}'));
            if self.0.is_empty() {
                return true;
            }
            if self.command().is_none() {
                return false;
            }
        }
    }

    /// Steps over one command that is harmless; nothing if it is not.
    fn command(&mut self) -> Option<()> {
        self.address()?;
        let command = self.next()?;
        match command {
            '{' | '=' | 'd' | 'D' | 'g' | 'G' | 'h' | 'H' | 'n' | 'N' | 'p' | 'P' | 'x' | 'z' => {}
            'l' | 'L' | 'q' | 'Q' => self.skip(|c| c == ' ' || c.is_ascii_digit()),
            '#' | 'a' | 'i' | 'c' => return self.line(),
            'b' | 't' | 'T' | ':' => self.skip(|c| !matches!(c, ';' | '\n' | '}')),
            's' => {
                self.delimited()?;
                self.skip(|c| c.is_ascii_digit() || matches!(c, 'g' | 'p' | 'i' | 'I' | 'm' | 'M'));
            }
            'y' => self.delimited()?,
            _ => return None,
        }
        self.skip(|c| c == ' ');
        (command == '{' || self.0.is_empty() || self.0.starts_with([';', '\n', '}'])).then_some(())
    }

    /// Steps over numbers and patterns before a command.
    fn address(&mut self) -> Option<()> {
        loop {
            self.skip(|c| c.is_ascii_digit() || matches!(c, '$' | ',' | ' ' | '!' | '~' | '+'));
            let delimiter = match self.0.chars().next()? {
                '/' => '/',
                '\\' => {
                    self.next()?;
                    self.0.chars().next()?
                }
                _ => return Some(()),
            };
            self.next()?;
            self.until(delimiter)?;
            self.skip(|c| matches!(c, 'I' | 'M'));
        }
    }

    /// Steps over two texts between delimiters.
    fn delimited(&mut self) -> Option<()> {
        let delimiter = self.next().filter(|c| *c != '\n' && *c != '\\')?;
        self.until(delimiter)?;
        self.until(delimiter)
    }

    /// Steps over a text and the delimiter that ends it. In brackets a delimiter may not count, so
    /// they are not taken apart.
    fn until(&mut self, delimiter: char) -> Option<()> {
        let (mut escaped, mut bracket) = (false, false);
        for (at, c) in self.0.char_indices() {
            match c {
                _ if escaped => escaped = false,
                '\\' => escaped = true,
                c if c == delimiter => {
                    if bracket {
                        return None;
                    }
                    self.0 = self.0.get(at + c.len_utf8()..)?;
                    return Some(());
                }
                '[' => bracket = true,
                ']' => bracket = false,
                _ => {}
            }
        }
        None
    }

    /// Steps over the text of a command up to the end of its line.
    fn line(&mut self) -> Option<()> {
        let (text, rest) = self.0.split_once('\n').unwrap_or((self.0, ""));
        // A line that goes on would have to be read on.
        if text.ends_with('\\') {
            return None;
        }
        self.0 = rest;
        Some(())
    }

    fn next(&mut self) -> Option<char> {
        let mut characters = self.0.chars();
        let next = characters.next()?;
        self.0 = characters.as_str();
        Some(next)
    }

    fn skip(&mut self, of: impl Fn(char) -> bool) {
        self.0 = self.0.trim_start_matches(of);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn harmless(line: &[&str]) -> bool {
        is_harmless(&line.iter().copied().map(Word::literal).collect::<Vec<_>>())
    }

    #[test]
    fn scripts_that_run_or_write_are_known() {
        for line in [
            &["1e rm x", "f"][..],
            &["1e rm x.txt", "f"],
            &["e"],
            &["s/a/rm/e", "f"],
            &["s/a/rm/ge", "f"],
            &["sXaXrm yXe", "f"],
            &["s,a,b,w out", "f"],
            &["w out", "f"],
            &["/x/w out", "f"],
            &["\\,x,e rm", "f"],
            &["1~2e rm", "f"],
            &["r /etc/passwd", "f"],
            &["p;e rm", "f"],
            &["{e rm\n}", "f"],
            &["y/a/b/;e rm", "f"],
            &["-n", "-e", "p", "-e", "e rm"],
            &["-ne", "e rm"],
            &["-nee rm"],
            &["-ep;ix\ne rm"],
            &["--expression=e rm"],
            &["--expression", "e rm"],
            &["-f", "x"],
            &["-nf", "x"],
            &["--file=x"],
            &["a\\\nx\ne rm", "f"],
            &["s/[/]/x/e;s/a/b/", "f"],
        ] {
            assert!(!harmless(line), "{line:?}");
        }
        assert!(!is_harmless(&[Word::unknown("$X"), Word::literal("f")]));
    }

    #[test]
    fn everyday_scripts_are_harmless() {
        for line in [
            &["-n", "1,5p", "f"][..],
            &["s/a/b/", "f"],
            &["s/a/b/g;s|c|d|", "f"],
            &["-E", "s/(a+)/[\\1]/gI", "f"],
            &["-n", "/start/,/end/p", "f"],
            &["-i", "s/a/b/", "e.txt"],
            &["-i.bak", "-e", "1d", "-e", "$d", "w"],
            &["$!d", "f"],
            &["/x/{s/a/b/;p}", "f"],
            &["s/a[bc]/d/", "f"],
            &["-ne", "s/a/b/p", "f"],
            &["5q", "f"],
            &["1i text", "f"],
            &["s/a\\/b/c/", "f"],
        ] {
            assert!(harmless(line), "{line:?}");
        }
    }
}
