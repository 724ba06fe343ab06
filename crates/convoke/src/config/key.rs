//! The path of a setting: `tools.mcpServers[0].name`.
//!
//! A name that is not a plain word is quoted (`tools.timeouts.tool."a.b"`), so that what
//! [`Display`](fmt::Display) writes is what [`Key::parse`] reads, unless the name itself contains
//! quotes or control characters.

use std::fmt;

/// One step of a [`Key`].
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Segment {
    /// A name in a mapping.
    Name(String),
    /// A place in a list, from 0.
    Index(usize),
}

/// The path of a setting.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key(Vec<Segment>);

impl Key {
    /// Reads a key as people write it, or says what is wrong with it.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut key = Self::default();
        let mut rest = text;
        while !rest.is_empty() {
            let (segment, after) = next_segment(rest)?;
            key.0.push(segment);
            rest = match after.strip_prefix('.') {
                Some("") => return Err("it ends with a `.`".to_owned()),
                Some(more) => more,
                None if after.is_empty() || after.starts_with('[') => after,
                None => return Err(format!("`.` expected before `{after}`")),
            };
        }
        Ok(key)
    }

    /// Returns this key with a name below it.
    pub(crate) fn name(&self, name: &str) -> Self {
        self.with(Segment::Name(name.to_owned()))
    }

    /// Returns this key with a place in a list below it.
    pub(crate) fn index(&self, index: usize) -> Self {
        self.with(Segment::Index(index))
    }

    /// Returns this key with one more step.
    pub(crate) fn with(&self, segment: Segment) -> Self {
        let mut segments = self.0.clone();
        segments.push(segment);
        Self(segments)
    }

    /// Returns the steps from the root.
    pub(crate) fn segments(&self) -> &[Segment] {
        &self.0
    }

    /// Returns the last step, where it is a name.
    pub(crate) fn last_name(&self) -> Option<&str> {
        match self.0.last()? {
            Segment::Name(name) => Some(name),
            Segment::Index(_) => None,
        }
    }

    /// Returns whether this is the key of everything.
    pub(crate) fn is_root(&self) -> bool {
        self.0.is_empty()
    }
}

fn next_segment(text: &str) -> Result<(Segment, &str), String> {
    if let Some(inner) = text.strip_prefix('[') {
        let (digits, after) = inner.split_once(']').ok_or("`]` is missing")?;
        let index = digits.parse().map_err(|_| format!("`{digits}` is not a place in a list"))?;
        return Ok((Segment::Index(index), after));
    }
    if let Some(inner) = text.strip_prefix('"') {
        let (name, after) = inner.split_once('"').ok_or("the closing `\"` is missing")?;
        return Ok((Segment::Name(name.to_owned()), after));
    }
    let end = text.find(['.', '[']).unwrap_or(text.len());
    match text.split_at(end) {
        ("", _) => Err("a name is missing".to_owned()),
        (name, after) => Ok((Segment::Name(name.to_owned()), after)),
    }
}

impl fmt::Display for Key {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, segment) in self.0.iter().enumerate() {
            match segment {
                Segment::Index(index) => write!(formatter, "[{index}]")?,
                Segment::Name(name) => {
                    let dot = if place == 0 { "" } else { "." };
                    let quote = if is_plain(name) { "" } else { "\"" };
                    write!(formatter, "{dot}{quote}{}{quote}", name.escape_debug())?;
                }
            }
        }
        Ok(())
    }
}

fn is_plain(name: &str) -> bool {
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '$' | '/' | ':');
    !name.is_empty() && name.chars().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_what_is_read() {
        for text in [
            "",
            "tools",
            "tools.timeouts.tool.read_file",
            "tools.mcpServers[0].name",
            "a[1][2]",
            "tools.timeouts.tool.\"a.b\".c",
        ] {
            assert_eq!(Key::parse(text).unwrap().to_string(), text);
        }
    }

    #[test]
    fn mistakes_are_named() {
        for (text, mistake) in [
            (".a", "a name is missing"),
            ("a..b", "a name is missing"),
            ("a.", "it ends with a `.`"),
            ("a[x]", "`x` is not a place in a list"),
            ("a[1", "`]` is missing"),
            ("\"a", "the closing `\"` is missing"),
            ("\"a\"b", "`.` expected before `b`"),
        ] {
            assert_eq!(Key::parse(text), Err(mistake.to_owned()), "{text}");
        }
    }
}
