//! Names in the place of values that differ from machine to machine.
//!
//! A value is replaced only where it stands for itself: the directory `/site` is not part of `/siteshop`,
//! nor of `/home/site`. What is not text, as the bytes of an image, is left alone.

use serde_json::Value;

/// Values and the names that stand for them.
#[derive(Clone, Debug)]
pub(super) struct Placeholders(Vec<(String, &'static str)>);

impl Placeholders {
    /// Longer values go first: a directory must not spoil the paths below another.
    pub(super) fn new(mut pairs: Vec<(String, &'static str)>) -> Self {
        pairs.retain(|(value, name)| !value.is_empty() && !name.is_empty());
        pairs.sort_by_key(|(value, _)| std::cmp::Reverse(value.len()));
        Self(pairs)
    }

    /// Puts the names in the place of the values.
    pub(super) fn hide(&self, value: &mut Value) {
        self.each_text(value, &|text, (value, name)| replace_whole(text, value, name));
    }

    /// Puts the values back.
    pub(super) fn restore(&self, value: &mut Value) {
        self.each_text(value, &|text, (value, name)| text.replace(name, value));
    }

    fn each_text(
        &self,
        value: &mut Value,
        replace: &impl Fn(&str, &(String, &'static str)) -> String,
    ) {
        if self.0.is_empty() {
            return;
        }
        let all =
            |text: &str| self.0.iter().fold(text.to_owned(), |text, pair| replace(&text, pair));
        match value {
            Value::String(text) => *text = all(text),
            Value::Array(items) => {
                for item in items {
                    self.each_text(item, replace);
                }
            }
            Value::Object(fields) => {
                let is_media = fields.get("type").is_some_and(|kind| kind == "media");
                for (name, mut field) in std::mem::take(fields) {
                    if !(is_media && name == "data") {
                        self.each_text(&mut field, replace);
                    }
                    fields.insert(all(&name), field);
                }
            }
            _ => {}
        }
    }
}

/// Replaces a value wherever it is not part of a longer name.
fn replace_whole(text: &str, value: &str, name: &str) -> String {
    let mut replaced = String::with_capacity(text.len());
    let mut done = 0;
    for (start, _) in text.match_indices(value) {
        let end = start + value.len();
        let before = text.get(..start).unwrap_or_default();
        let after = text.get(end..).unwrap_or_default();
        if !ends_in_name(before) && !starts_in_name(after) {
            replaced.push_str(text.get(done..start).unwrap_or_default());
            replaced.push_str(name);
            done = end;
        }
    }
    replaced.push_str(text.get(done..).unwrap_or_default());
    replaced
}

fn is_name(next: char) -> bool {
    next.is_alphanumeric() || matches!(next, '_' | '-')
}

/// A path may follow a line break that is written as `\n`, as in JSON within a text.
fn ends_in_name(before: &str) -> bool {
    let mut back = before.chars().rev();
    match (back.next(), back.next()) {
        (Some('n' | 'r' | 't'), Some('\\')) | (None, _) => false,
        (Some(last), _) => is_name(last) || matches!(last, '.' | '~'),
    }
}

/// A full stop ends a sentence, unless a name goes on after it.
fn starts_in_name(after: &str) -> bool {
    after.strip_prefix('.').unwrap_or(after).starts_with(is_name)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn hidden(mut value: Value) -> Value {
        let pairs = [("/site", "${cwd}"), ("/site/home", "${home}")];
        let pairs = pairs.map(|(value, name)| (value.to_owned(), name));
        Placeholders::new(pairs.to_vec()).hide(&mut value);
        value
    }

    #[test]
    fn a_value_is_not_replaced_inside_of_a_longer_name() {
        for (text, kept) in [
            ("/site", "${cwd}"),
            ("in /site.", "in ${cwd}."),
            ("cd /site/src; ls '/site'", "cd ${cwd}/src; ls '${cwd}'"),
            ("/site/home/x", "${home}/x"),
            ("/site/homes", "${cwd}/homes"),
            (
                "/siteshop /site-2 /site_b /site.bak /siteé",
                "/siteshop /site-2 /site_b /site.bak /siteé",
            ),
            ("/home/site ./site ../site ~/site", "/home/site ./site ../site ~/site"),
            ("file:///site a:/site=/site", "file://${cwd} a:${cwd}=${cwd}"),
            (r#"{"text":"one\n/site/a\t/site"}"#, r#"{"text":"one\n${cwd}/a\t${cwd}"}"#),
            ("/site/site", "${cwd}/site"),
        ] {
            assert_eq!(hidden(json!(text)), kept, "{text}");
        }
    }

    #[test]
    fn keys_are_replaced_and_the_bytes_of_media_are_not() {
        let media = json!({ "type": "media", "mime": "image/png", "data": "a+/site=" });
        assert_eq!(hidden(media.clone()), media);
        let list = json!([{ "/site/a": ["/site"], "type": "text", "data": "/site" }]);
        let kept = json!([{ "${cwd}/a": ["${cwd}"], "type": "text", "data": "${cwd}" }]);
        assert_eq!(hidden(list), kept);
    }

    #[test]
    fn what_was_hidden_comes_back() {
        let said = json!({ "text": "/site and /siteshop and /site/home." });
        let pairs = vec![("/site".to_owned(), "${cwd}"), ("/site/home".to_owned(), "${home}")];
        let placeholders = Placeholders::new(pairs);
        let mut value = said.clone();
        placeholders.hide(&mut value);
        assert_ne!(value, said);
        placeholders.restore(&mut value);
        assert_eq!(value, said);
    }
}
