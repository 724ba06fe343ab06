//! Markdown that models write, read with suspicion.

use pulldown_cmark::{Options, Parser};

/// Reads Markdown. HTML in it comes out as pieces of text; whoever writes it must treat it as such.
pub(super) fn parse(text: &str) -> Parser<'_> {
    let options =
        Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    Parser::new_ext(text, options)
}

/// Returns where a link goes, if that is a place on the web or a mailbox: what runs code, or reads files,
/// is no link.
pub(super) fn safe_target(target: &str) -> Option<&str> {
    let (scheme, rest) = target.split_once(':')?;
    let known = ["http", "https", "mailto"].iter().any(|known| scheme.eq_ignore_ascii_case(known));
    let plain = !target.contains(|letter: char| letter.is_control() || letter.is_whitespace());
    (known && plain && !rest.is_empty()).then_some(target)
}

/// Returns the part of a link's target that says whose it is.
pub(super) fn host(target: &str) -> &str {
    let rest = target.split_once(':').map_or(target, |(_, rest)| rest).trim_start_matches('/');
    let authority = rest.split(['/', '?', '#', '\\']).next().unwrap_or_default();
    authority.rsplit_once('@').map_or(authority, |(_, host)| host)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_web_and_mailboxes_are_linked() {
        for good in ["https://a.example/b?c#d", "HTTP://a", "mailto:a@b.example"] {
            assert_eq!(safe_target(good), Some(good));
        }
        for bad in [
            "javascript:alert(1)",
            "JaVaScRiPt:alert(1)",
            "java\nscript:alert(1)",
            " javascript:alert(1)",
            "data:text/html,x",
            "file:///etc/passwd",
            "vbscript:x",
            "//a.example",
            "#e1",
            "relative/path",
            "https:",
            "https://a b",
            "",
        ] {
            assert_eq!(safe_target(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_link_says_whose_it_is() {
        assert_eq!(host("https://good.example@evil.example/x"), "evil.example");
        assert_eq!(host("http://a.example:80?q"), "a.example:80");
        assert_eq!(host("mailto:me@b.example"), "b.example");
    }
}
