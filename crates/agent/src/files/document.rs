//! A Markdown file in two halves: keys between two lines of `---`, and the text below them.

use super::note::Finding;

/// The two halves of a file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Document {
    /// The keys as YAML. It has as many lines before it as the file has, so its lines are the file's.
    pub(super) keys: String,
    /// The text below, without the space around it.
    pub(super) body: String,
    /// The line the text begins in.
    pub(super) body_line: u64,
}

/// Why a file has no two halves.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NoDocument {
    /// It does not begin with `---`.
    NoKeys,
    /// The keys do not end.
    Unfinished(Finding),
}

/// Takes a file apart.
pub(super) fn split(text: &str) -> Result<Document, NoDocument> {
    let text = text.replace("\r\n", "\n");
    let mut lines = text.lines().enumerate();
    let is_fence = |line: &str| line.trim_end() == "---";
    let start = loop {
        match lines.next() {
            Some((_, line)) if line.trim().is_empty() => {}
            Some((index, line)) if is_fence(line) => break index,
            _ => return Err(NoDocument::NoKeys),
        }
    };
    let Some((end, _)) = lines.by_ref().find(|(_, line)| is_fence(line)) else {
        let message = "the keys that begin here do not end; write a second `---` below them";
        return Err(NoDocument::Unfinished(Finding::of_line(count(start + 1), message)));
    };
    let inside = text.lines().skip(start + 1).take(end - start - 1);
    let mut keys = "\n".repeat(start + 1);
    inside.for_each(|line| {
        keys.push_str(line);
        keys.push('\n');
    });
    let below: Vec<&str> = text.lines().skip(end + 1).collect();
    let blank = below.iter().take_while(|line| line.trim().is_empty()).count();
    let body = below.join("\n").trim().to_owned();
    Ok(Document { keys, body, body_line: count(end + 2 + blank) })
}

fn count(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

/// Puts quotes around values that are one line of text and not valid YAML, as `description: Use it: now`.
/// Other tools read such files; ours are written with quotes.
pub(super) fn with_quotes(keys: &str) -> String {
    let quoted = keys.lines().map(|line| {
        let plain = |key: &str| {
            !key.is_empty()
                && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
        };
        let special =
            |value: &str| value.starts_with(['"', '\'', '[', '{', '|', '>', '&', '*', '!']);
        match line.split_once(": ") {
            Some((key, value)) if plain(key) && !special(value.trim()) && value.contains(':') => {
                let value = value.trim().replace('\\', "\\\\").replace('"', "\\\"");
                // Some tools write line breaks as two characters.
                format!("{key}: \"{}\"", value.replace("\\\\n", "\\n"))
            }
            _ => line.to_owned(),
        }
    });
    quoted.map(|line| line + "\n").collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_keys_and_a_text() {
        for text in [
            "---\nname: a\n---\n\nDo it.\n",
            "---\r\nname: a\r\n---\r\n\r\nDo it.\r\n",
            "---  \nname: a\n---\t\n\nDo it.",
        ] {
            let document = split(text).unwrap();
            assert_eq!(document.keys, "\nname: a\n", "{text:?}");
            assert_eq!((document.body.as_str(), document.body_line), ("Do it.", 5), "{text:?}");
        }
        let later = split("\n\n---\na: 1\n---\nx\n---\ny").unwrap();
        assert_eq!((later.keys.as_str(), later.body_line), ("\n\n\na: 1\n", 6));
        assert_eq!(later.body, "x\n---\ny", "a rule below belongs to the text");
        assert_eq!(split("---\n---").unwrap().body, "");
    }

    #[test]
    fn without_keys_there_is_no_document() {
        for text in ["", "# Title\n", "--- x\n---\n", "text\n---\n---\n"] {
            assert_eq!(split(text), Err(NoDocument::NoKeys), "{text:?}");
        }
        let Err(NoDocument::Unfinished(found)) = split("\n---\nname: a\n\nDo it.\n") else {
            panic!("the keys do not end")
        };
        assert_eq!(found.line, Some(2));
    }

    #[test]
    fn quotes_are_put_around_plain_texts_only() {
        let text =
            "name: a\ndescription: Use it: \"now\"\\nor later\ntools: [\"x: y\"]\n  sub: a: b\n";
        assert_eq!(
            with_quotes(text),
            "name: a\ndescription: \"Use it: \\\"now\\\"\\nor later\"\ntools: [\"x: y\"]\n  sub: a: b\n"
        );
    }
}
