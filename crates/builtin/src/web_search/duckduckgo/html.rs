//! Splits HTML into tags and text, as far as reading a list of links needs it.
//!
//! It knows comments, scripts, attributes and character references. It builds no tree, repairs nothing
//! and runs in one pass over the text, whatever that is.

/// A piece of a page.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Token<'a> {
    /// `<a href="x">`
    Start(Tag<'a>),
    /// `</a>`
    End(&'a str),
    /// What is between tags, with its character references resolved.
    Text(String),
}

/// The beginning of an element.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Tag<'a> {
    /// Its name, as it is written.
    pub(super) name: &'a str,
    attributes: &'a str,
}

impl Tag<'_> {
    /// Returns the value of an attribute.
    pub(super) fn attribute(&self, name: &str) -> Option<String> {
        let mut rest = self.attributes;
        while let Some((key, value, after)) = next_attribute(rest) {
            if key.eq_ignore_ascii_case(name) {
                return Some(unescape(value));
            }
            rest = after;
        }
        None
    }

    /// Tells whether the element has this class, among others.
    pub(super) fn has_class(&self, class: &str) -> bool {
        self.attribute("class")
            .is_some_and(|classes| classes.split_ascii_whitespace().any(|each| each == class))
    }
}

/// Returns the pieces of a page in order.
pub(super) fn tokens(html: &str) -> impl Iterator<Item = Token<'_>> {
    let mut rest = html;
    std::iter::from_fn(move || {
        loop {
            let (token, after) = next_token(rest)?;
            rest = after;
            if token.is_some() {
                return token;
            }
        }
    })
}

/// Takes the next piece off; comments and the like are pieces without a token.
fn next_token(html: &str) -> Option<(Option<Token<'_>>, &str)> {
    if html.is_empty() {
        return None;
    }
    if let Some(comment) = html.strip_prefix("<!--") {
        return Some((None, after(comment, "-->")));
    }
    if html.starts_with("<!") || html.starts_with("<?") {
        return Some((None, after(html, ">")));
    }
    if let Some(tag) = html.strip_prefix("</").filter(|tag| starts_with_letter(tag)) {
        let (name, _) = split_name(tag);
        return Some((Some(Token::End(name)), after(tag, ">")));
    }
    if let Some(tag) = html.strip_prefix('<').filter(|tag| starts_with_letter(tag)) {
        return Some(start_tag(tag));
    }
    let text_end = html.char_indices().skip(1).find(|(_, character)| *character == '<');
    let (text, rest) = html.split_at_checked(text_end.map_or(html.len(), |(at, _)| at))?;
    Some((Some(Token::Text(unescape(text))), rest))
}

fn start_tag(tag: &str) -> (Option<Token<'_>>, &str) {
    let (name, inside) = split_name(tag);
    let (attributes, rest) = split_attributes(inside);
    let rest = match name.to_ascii_lowercase().as_str() {
        "script" => after_ignoring_case(rest, "</script"),
        "style" => after_ignoring_case(rest, "</style"),
        _ => rest,
    };
    (Some(Token::Start(Tag { name, attributes })), rest)
}

fn starts_with_letter(text: &str) -> bool {
    text.starts_with(|character: char| character.is_ascii_alphabetic())
}

fn split_name(tag: &str) -> (&str, &str) {
    let ends = |character: char| character.is_ascii_whitespace() || matches!(character, '/' | '>');
    let end = tag.find(ends).unwrap_or(tag.len());
    tag.split_at_checked(end).unwrap_or((tag, ""))
}

/// Splits at the `>` that ends a tag; one inside quotes does not.
fn split_attributes(inside: &str) -> (&str, &str) {
    let mut quote = None;
    for (at, character) in inside.char_indices() {
        match (quote, character) {
            (None, '>') => {
                let (attributes, rest) = inside.split_at_checked(at).unwrap_or((inside, ""));
                return (attributes, rest.strip_prefix('>').unwrap_or(rest));
            }
            (None, '"' | '\'') => quote = Some(character),
            (Some(open), close) if open == close => quote = None,
            _ => {}
        }
    }
    (inside, "")
}

/// Takes the next attribute off: its name, its value, and what follows.
fn next_attribute(attributes: &str) -> Option<(&str, &str, &str)> {
    let is_space = |character: char| character.is_ascii_whitespace();
    let text = attributes.trim_start_matches(|each: char| is_space(each) || each == '/');
    if text.is_empty() {
        return None;
    }
    let name_end = text.find(|each: char| is_space(each) || matches!(each, '=' | '/'));
    // An attribute that starts with `=` has that as its name; so there always is progress.
    let name_end = name_end.unwrap_or(text.len()).max(1);
    let (name, rest) = text.split_at_checked(name_end)?;
    let Some(value) = rest.trim_start().strip_prefix('=') else { return Some((name, "", rest)) };
    let value = value.trim_start();
    for quote in ['"', '\''] {
        if let Some(quoted) = value.strip_prefix(quote) {
            let (value, rest) = quoted.split_once(quote).unwrap_or((quoted, ""));
            return Some((name, value, rest));
        }
    }
    let (value, rest) = value.split_at_checked(value.find(is_space).unwrap_or(value.len()))?;
    Some((name, value, rest))
}

fn after<'a>(text: &'a str, end: &str) -> &'a str {
    text.split_once(end).map_or("", |(_, rest)| rest)
}

fn after_ignoring_case<'a>(text: &'a str, end: &str) -> &'a str {
    let found = text.match_indices('<').find_map(|(at, _)| {
        let rest = text.get(at..)?;
        rest.get(..end.len()).is_some_and(|start| start.eq_ignore_ascii_case(end)).then_some(rest)
    });
    found.unwrap_or_default()
}

/// Resolves character references.
fn unescape(text: &str) -> String {
    let mut resolved = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, reference)) = rest.split_once('&') {
        resolved.push_str(before);
        if let Some((character, after)) = take_reference(reference) {
            resolved.push(character);
            rest = after;
        } else {
            resolved.push('&');
            rest = reference;
        }
    }
    resolved.push_str(rest);
    resolved
}

/// Takes a character reference off, if one begins here.
fn take_reference(text: &str) -> Option<(char, &str)> {
    let (end, _) = text.char_indices().take(MAX_REFERENCE).find(|(_, each)| *each == ';')?;
    let (name, after) = text.split_at_checked(end)?;
    Some((resolve(name)?, after.strip_prefix(';')?))
}

/// The longest name of a character reference that is looked for.
const MAX_REFERENCE: usize = 12;

/// The names that occur in titles and snippets.
const NAMED: [(&str, char); 24] = [
    ("amp", '&'),
    ("apos", '\''),
    ("bull", '•'),
    ("copy", '©'),
    ("deg", '°'),
    ("euro", '€'),
    ("gt", '>'),
    ("hellip", '…'),
    ("laquo", '«'),
    ("ldquo", '“'),
    ("lsquo", '‘'),
    ("lt", '<'),
    ("mdash", '—'),
    ("middot", '·'),
    ("nbsp", ' '),
    ("ndash", '–'),
    ("pound", '£'),
    ("quot", '"'),
    ("raquo", '»'),
    ("rdquo", '”'),
    ("reg", '®'),
    ("rsquo", '’'),
    ("times", '×'),
    ("trade", '™'),
];

fn resolve(name: &str) -> Option<char> {
    let Some(number) = name.strip_prefix('#') else {
        return NAMED.iter().find(|(known, _)| *known == name).map(|(_, character)| *character);
    };
    let code = match number.strip_prefix(['x', 'X']) {
        Some(hexadecimal) => u32::from_str_radix(hexadecimal, 16),
        None => number.parse(),
    };
    let code = code.ok()?;
    Some(char::from_u32(code).filter(|each| *each != '\0').unwrap_or(char::REPLACEMENT_CHARACTER))
}

/// Makes any run of white space one space, and none at the ends.
pub(super) fn collapse(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(html: &str) -> Vec<String> {
        tokens(html)
            .map(|token| match token {
                Token::Start(tag) => format!("+{}", tag.name),
                Token::End(name) => format!("-{name}"),
                Token::Text(text) => text,
            })
            .collect()
    }

    #[test]
    fn pages_fall_into_pieces() {
        for (html, expected) in [
            ("<p>a <b>c</b></p >", vec!["+p", "a ", "+b", "c", "-b", "-p"]),
            ("<!doctype html><?x?><!-- <p> -->a", vec!["a"]),
            ("<script>if (a<b) '<p>'</SCRIPT>x", vec!["+script", "-SCRIPT", "x"]),
            ("<style>a>b{}", vec!["+style"]),
            ("1 < 2 <> 3", vec!["1 ", "< 2 ", "<> 3"]),
            ("<br/>a<img alt='>'>b", vec!["+br", "a", "+img", "b"]),
            ("<p", vec!["+p"]),
            ("é<ü>", vec!["é", "<ü>"]),
        ] {
            assert_eq!(pieces(html), expected, "{html}");
        }
    }

    #[test]
    fn attributes_are_found_however_they_are_written() {
        let html = "<a one = \"1&amp;2\" TWO='2' three=3 four/five =x class=\"a  b\n c\" six>";
        let Some(Token::Start(tag)) = tokens(html).next() else { panic!("no tag") };
        for (name, value) in
            [("one", "1&2"), ("two", "2"), ("three", "3"), ("four", ""), ("five", "x"), ("six", "")]
        {
            assert_eq!(tag.attribute(name).as_deref(), Some(value), "{name}");
        }
        assert_eq!(tag.attribute("seven"), None);
        assert!(tag.has_class("b") && tag.has_class("c") && !tag.has_class("a b"));
    }

    #[test]
    fn character_references_are_resolved() {
        for (text, expected) in [
            ("a &amp; b &lt;c&gt; &quot;d&quot; &#39;e&#39; &#x27;", "a & b <c> \"d\" 'e' '"),
            ("&#x1F600;&eacute;&amp;amp;", "😀&eacute;&amp;"),
            ("&#0;&#xD800;&#x110000;", "\u{fffd}\u{fffd}\u{fffd}"),
            ("a & b &; &#; &#x; &rut=1; &", "a & b &; &#; &#x; &rut=1; &"),
            ("AT&ampT", "AT&ampT"),
        ] {
            assert_eq!(unescape(text), expected, "{text}");
        }
    }

    #[test]
    fn a_hostile_page_takes_one_pass() {
        for unit in ["<a ", "<!--", "&", "<script>", "<a href=\"", "='", "</"] {
            let html = unit.repeat(200_000);
            let started = std::time::Instant::now();
            for token in tokens(&html) {
                if let Token::Start(tag) = token {
                    drop(tag.attribute("class"));
                }
            }
            assert!(started.elapsed().as_secs() < 5, "{unit}");
        }
    }
}
