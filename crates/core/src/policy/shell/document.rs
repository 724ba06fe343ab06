//! Here-documents of a command line, found without the parser.
//!
//! The parser loses the end of a document within a substitution, and what a shell runs after that end
//! would be taken for text. This scanner reads the raw text: quotes, comments and documents at the top
//! level, and one document within `$(…)` in the form that commit messages are written in; the parser
//! does not get to see that one. A text the scanner is not sure about is asked about.

/// The here-documents of a text, and its comments.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Documents {
    /// The text of each document at the top level, without leading tabs where a shell drops them.
    pub(super) bodies: Vec<String>,
    /// The text without documents in substitutions, whose text is not expanded.
    pub(super) text: String,
    /// Letters and digits within comments.
    pub(super) commented: usize,
}

/// A document whose text starts with the next line.
struct Announced {
    end: String,
    drops_tabs: bool,
    is_quoted: bool,
}

struct Scanner<'a> {
    whole: &'a str,
    rest: &'a str,
    /// How much of the whole is in the text that was found.
    copied: usize,
    previous: char,
    quote: Option<char>,
    announced: Vec<Announced>,
    found: Documents,
}

/// Finds the here-documents of a text; nothing where it is not sure what a shell would find.
pub(super) fn scan(text: &str) -> Option<Documents> {
    let (announced, found) = (Vec::new(), Documents::default());
    let (whole, rest, copied) = (text, text, 0);
    let mut scanner =
        Scanner { whole, rest, copied, previous: '\n', quote: None, announced, found };
    while scanner.step()? {}
    scanner.found.text.push_str(text.get(scanner.copied..)?);
    (scanner.announced.is_empty() && scanner.quote.is_none()).then_some(scanner.found)
}

/// Counts what no shell and no parser drops.
pub(super) fn letters(text: &str) -> usize {
    text.bytes().filter(u8::is_ascii_alphanumeric).count()
}

impl Scanner<'_> {
    /// Reads one thing; says whether there is more.
    fn step(&mut self) -> Option<bool> {
        let Some(next) = self.rest.chars().next() else { return Some(false) };
        let quoted = self.quote.is_some();
        match (self.quote, next) {
            (Some('\''), '\'') => self.quote = None,
            (Some('\''), _) => {}
            (Some(_), '"') => self.quote = None,
            (_, '\\') => return self.escape(),
            (_, '`') => return self.last(),
            (_, '$') if self.rest.starts_with("$((") => return self.arithmetic(),
            (_, '$') if self.rest.starts_with("$(") => return self.substitution(),
            (_, '$') if self.rest.starts_with("${") => return self.expansion(),
            (_, '$') if self.rest.starts_with("$[") => return self.last(),
            (None, '$') if self.rest.starts_with("$'") => return self.last(),
            (None, '\'' | '"') => self.quote = Some(next),
            (None, '#') if " \t\n;&|()".contains(self.previous) => return self.comment(),
            (None, '<' | '>') if self.rest.get(1..2) == Some("(") => return self.last(),
            (None, '(') if self.rest.starts_with("((") => return self.last(),
            (None, '<') if self.rest.starts_with("<<<") => return self.skip(3),
            (None, '<') if self.rest.starts_with("<<") => return self.announce(),
            (None, '\n') if !self.announced.is_empty() => return self.bodies(),
            _ => {}
        }
        // A document does not start within quotes that go on over its first line.
        if quoted && next == '\n' && !self.announced.is_empty() {
            return None;
        }
        self.previous = if quoted { 'x' } else { next };
        self.skip_as(next.len_utf8(), self.previous)
    }

    fn skip(&mut self, bytes: usize) -> Option<bool> {
        self.skip_as(bytes, 'x')
    }

    fn skip_as(&mut self, bytes: usize, previous: char) -> Option<bool> {
        self.rest = self.rest.get(bytes..)?;
        self.previous = previous;
        Some(true)
    }

    /// Something starts here whose end this scanner does not look for: no document may follow.
    fn last(&mut self) -> Option<bool> {
        let sure = !self.rest.contains("<<") && self.announced.is_empty();
        // Whether a `#` in the rest starts a comment is not known.
        let sure = sure && (self.found.bodies.is_empty() || !self.rest.contains('#'));
        (self.rest, self.quote) = ("", None);
        sure.then_some(false)
    }

    fn escape(&mut self) -> Option<bool> {
        let escaped = self.rest.chars().nth(1)?;
        let joins = escaped == '\n';
        if joins && (!self.announced.is_empty() || self.rest.starts_with("\\\n#")) {
            return None;
        }
        let previous = if joins { self.previous } else { 'x' };
        self.skip_as(1 + escaped.len_utf8(), previous)
    }

    fn comment(&mut self) -> Option<bool> {
        let text = self.rest.split('\n').next().unwrap_or_default();
        if !self.announced.is_empty() || text.contains("<<") {
            return None;
        }
        self.found.commented += letters(text);
        self.skip(text.len())
    }

    /// `$((…))` with numbers only.
    fn arithmetic(&mut self) -> Option<bool> {
        let end = self.rest.find("))").unwrap_or_default();
        let inner = self.rest.get(3..end).unwrap_or("x");
        if inner.chars().all(|c| c.is_ascii_digit() || " +-*/%<>&|^~()".contains(c)) {
            return self.skip(end + 2);
        }
        self.last()
    }

    /// `${name}`.
    fn expansion(&mut self) -> Option<bool> {
        let end = self.rest.find('}').unwrap_or_default();
        let name = self.rest.get(2..end).unwrap_or("-");
        if name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
            return self.skip(end + 1);
        }
        self.last()
    }

    /// `$(command <<'END'`, the lines of the document, `END` alone on one line of all that follow, `)`.
    fn substitution(&mut self) -> Option<bool> {
        if !self.rest.contains("<<") {
            return self.last();
        }
        let (before, after) = self.rest.get(2..)?.split_once("<<")?;
        let plain = |c: char| c.is_ascii_alphanumeric() || " _./-".contains(c);
        let (announced, line) = announced(after)?;
        let (_, lines) = line.split_once('\n')?;
        let is_end = |line: &str| {
            let start = line.trim_start().strip_prefix(announced.end.as_str());
            start.is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_'))
        };
        let sure = before.chars().all(plain)
            && self.announced.is_empty()
            && announced.is_quoted
            && !after.contains("<<")
            && line.starts_with('\n')
            && lines.split('\n').filter(|line| is_end(line)).count() == 1;
        let (_, behind) = body(lines, &announced).filter(|_| sure)?;
        let close = behind.trim_start().strip_prefix(')')?;
        let start = self.whole.len() - self.rest.len();
        self.found.text.push_str(self.whole.get(self.copied..start + 2 + before.len())?);
        self.copied = self.whole.len() - close.len() - 1;
        self.skip(self.rest.len() - close.len())
    }

    fn announce(&mut self) -> Option<bool> {
        let (announced, rest) = announced(self.rest.get(2..)?)?;
        self.announced.push(announced);
        self.skip(self.rest.len() - rest.len())
    }

    /// Reads the documents that were announced on the line that ends here.
    fn bodies(&mut self) -> Option<bool> {
        self.rest = self.rest.get(1..)?;
        for announced in std::mem::take(&mut self.announced) {
            let (body, rest) = body(self.rest, &announced)?;
            // A shell joins lines before it looks for the end of a document that it expands.
            if !announced.is_quoted && body.contains("\\\n") {
                return None;
            }
            self.found.bodies.push(body);
            self.rest = rest;
        }
        self.previous = '\n';
        Some(true)
    }
}

/// Reads the word after `<<`; returns it with what follows it.
fn announced(text: &str) -> Option<(Announced, &str)> {
    let (drops_tabs, text) = text.strip_prefix('-').map_or((false, text), |text| (true, text));
    let text = text.trim_start_matches(' ');
    let quote = text.chars().next().filter(|c| matches!(c, '\'' | '"' | '\\'));
    let text = text.get(quote.map_or(0, char::len_utf8)..)?;
    let end = text.find(|c: char| !c.is_ascii_alphanumeric() && !"_-.!".contains(c))?;
    let (end, rest) = text.split_at_checked(end)?;
    let closing = quote.filter(|quote| *quote != '\\');
    let rest = closing.map_or(Some(rest), |quote| rest.strip_prefix(quote))?;
    let sure = !end.is_empty() && rest.starts_with(['\n', ' ', ';', '|', '&', '>', '<', ')']);
    let announced = Announced { end: end.to_owned(), drops_tabs, is_quoted: quote.is_some() };
    sure.then_some((announced, rest))
}

/// Returns a document, and what follows the line that ends it.
fn body<'a>(text: &'a str, announced: &Announced) -> Option<(String, &'a str)> {
    let (mut body, mut rest) = (String::new(), text);
    while !rest.is_empty() {
        let (line, after) = rest.split_once('\n').unwrap_or((rest, ""));
        let line = if announced.drops_tabs { line.trim_start_matches('\t') } else { line };
        if line == announced.end {
            return Some((body, after));
        }
        body.push_str(line);
        body.push('\n');
        rest = after;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_with_a_plain_end_are_found() {
        for (text, bodies) in [
            ("cat <<E\na\nE", &["a\n"][..]),
            ("cat <<'E' | sort\na\nE\nls", &["a\n"]),
            ("cat <<-E\n\ta\n\tE\n", &["a\n"]),
            ("cat <<A <<B\na\nA\nb\nB", &["a\n", "b\n"]),
            ("cat <<E\nE\ncat <<E\nx\nE", &["", "x\n"]),
            ("grep '<<<<<<<' f # don't <", &[]),
            ("echo \"a << b\" $((1<<2)) ${x} <<< y", &[]),
            ("git commit -m \"$(cat <<'EOF'\nfix: don't (a)\n\nEOF\n)\" && ls", &[]),
        ] {
            assert_eq!(
                scan(text).map(|found| found.bodies),
                Some(bodies.iter().map(ToString::to_string).collect()),
                "{text}"
            );
        }
        let text = "git commit -m \"$(cat <<'EOF'\nfix\nEOF\n)\"";
        assert_eq!(scan(text).unwrap().text, "git commit -m \"$(cat )\"");
        assert_eq!(scan("a # b c").unwrap().commented, 2);
    }

    #[test]
    fn documents_with_an_end_that_is_not_sure_are_not() {
        for text in [
            "echo $(cat <<\"E\"\nx\nE\nrm x\nE\necho)",
            "echo $(cat <<''\nx\n\nrm x\n)",
            "cat <<''\nx\n\nrm x",
            "echo $(cat <<E\nx\nE\n)",
            "echo $(cat <<'E'\nx\nE)",
            "echo $(cat <<'E'\nx\nE\nrm x)",
            "echo $(cat <<'E' # c\nx\nE\n)",
            "echo $(cat <<'E'; rm x\nx\nE\n)",
            "echo $(echo '$(' <<'E'\nx\nE\n)",
            "echo `cat <<'E'\nx\nE\n`",
            "cat <(cat <<'E'\nx\nE\n)",
            "echo ${x:-a} <<E\nE",
            "echo $(cat <<'E'\nE \nrm x\nE\n)",
            "cat <<E\nx",
            "cat <<E\t\nE",
            "cat <<E\nE\\\n\nrm x\nE",
            "cat <<E\"F\"\nx\nEF",
            "cat <<$E\nx\n$E",
            "echo $(cat #<<E\nrm x\nE)",
            "x=$(cat <<'E'\ncat <<E\n:\nE\nrm x\nE)",
            "((1<<2))",
            "cat <<E 'a\nb'\nE",
        ] {
            assert_eq!(scan(text), None, "{text}");
        }
    }
}
