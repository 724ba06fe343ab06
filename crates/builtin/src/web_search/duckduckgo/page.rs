//! Finds the results in a page, by the classes of its elements.
//!
//! A result is an element of class `result`; in it, the link of class `result__a` is the title, and the
//! element of class `result__snippet` the passage. Advertisements look the same but for `result--ad`,
//! or for where their link leads.

use url::Url;

use super::html::{Tag, Token, collapse, tokens};

/// Something the page lists.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Hit {
    pub(super) title: String,
    pub(super) url: String,
    pub(super) snippet: String,
}

/// What a page says.
#[derive(Debug, Default)]
pub(super) struct Page<'a> {
    pub(super) hits: Vec<Hit>,
    /// Whether it is a puzzle that only people are meant to solve.
    pub(super) puzzle: bool,
    /// Whether what follows belongs to an advertisement.
    skips: bool,
    /// Which text is being read, and the tag that ends it.
    open: Option<(Part, &'a str)>,
}

#[derive(Clone, Copy, Debug)]
enum Part {
    Title,
    Snippet,
}

impl<'a> Page<'a> {
    /// Reads a page; one that is something else entirely has no hits.
    pub(super) fn read(html: &'a str) -> Self {
        let mut page = Self::default();
        for token in tokens(html) {
            match token {
                Token::Start(tag) => page.start(&tag),
                Token::End(name) => page.end(name),
                Token::Text(text) => page.text(&text),
            }
        }
        for hit in &mut page.hits {
            hit.title = collapse(&hit.title);
            hit.snippet = collapse(&hit.snippet);
        }
        page
    }

    fn start(&mut self, tag: &Tag<'a>) {
        if tag.has_class("result") {
            self.skips = tag.has_class("result--ad");
            self.open = None;
        } else if tag.has_class("anomaly-modal__title") {
            self.puzzle = true;
        } else if self.skips {
            // Nothing of an advertisement is kept.
        } else if tag.has_class("result__a") {
            match tag.attribute("href").and_then(|link| target(&link)) {
                Some(url) => {
                    self.hits.push(Hit { url, ..Hit::default() });
                    self.open = Some((Part::Title, tag.name));
                }
                None => self.skips = true,
            }
        } else if tag.has_class("result__snippet") {
            self.open = Some((Part::Snippet, tag.name));
        }
    }

    fn end(&mut self, name: &str) {
        if self.open.is_some_and(|(_, ends)| ends.eq_ignore_ascii_case(name)) {
            self.open = None;
        }
    }

    fn text(&mut self, text: &str) {
        if let (Some((part, _)), Some(hit)) = (self.open, self.hits.last_mut()) {
            match part {
                Part::Title => hit.title.push_str(text),
                Part::Snippet => hit.snippet.push_str(text),
            }
        }
    }
}

/// Returns where a link leads in the end, unless that is an advertisement: links pass through
/// `/l/?uddg=…`, advertisements through `/y.js`.
fn target(link: &str) -> Option<String> {
    let home = Url::parse("https://duckduckgo.com/").ok()?;
    let url = home.join(link).ok()?;
    let url = if is_own(&url) && url.path() == "/l/" {
        let (_, wrapped) = url.query_pairs().find(|(name, _)| name == "uddg")?;
        Url::parse(&wrapped).ok()?
    } else {
        url
    };
    let is_ad = is_own(&url) && url.path() == "/y.js";
    (matches!(url.scheme(), "http" | "https") && !is_ad).then(|| url.into())
}

fn is_own(url: &Url) -> bool {
    let domain = url.domain().unwrap_or_default();
    domain == "duckduckgo.com" || domain.ends_with(".duckduckgo.com")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_unwrapped_once_and_advertisements_are_dropped() {
        for (link, leads_to) in [
            (
                "//duckduckgo.com/l/?uddg=https%3A%2F%2Fa.example%2Fx%3Fy%3D1%26z&rut=1",
                Some("https://a.example/x?y=1&z"),
            ),
            ("/l/?uddg=http%3A%2F%2Fa.example", Some("http://a.example/")),
            ("https://a.example/direct", Some("https://a.example/direct")),
            ("https://duckduckgo.com/y.js?ad_domain=a.example", None),
            ("//duckduckgo.com/l/?uddg=https%3A%2F%2Fduckduckgo.com%2Fy.js%3Fad", None),
            ("//duckduckgo.com/l/?rut=1", None),
            ("//duckduckgo.com/l/?uddg=javascript%3Aalert(1)", None),
            ("javascript:alert(1)", None),
            ("https://evilduckduckgo.com/y.js", Some("https://evilduckduckgo.com/y.js")),
        ] {
            assert_eq!(target(link).as_deref(), leads_to, "{link}");
        }
    }

    #[test]
    fn text_outside_of_results_is_ignored() {
        let page = Page::read(
            "<a class='result__snippet'>stray</a>\
             <div class='result'><a class='result__a' href='https://a.example/'>One</a> loose\
             <DIV class='result__snippet'>a<br>b</div> loose</div>\
             <div class='result'><a class='result__a' href='/y.js'>Ad</a>\
             <a class='result__snippet'>ad text</a></div>",
        );
        let hit =
            Hit { title: "One".into(), url: "https://a.example/".into(), snippet: "ab".into() };
        assert_eq!(page.hits, [hit]);
        assert!(!page.puzzle);
    }

    #[test]
    fn anything_can_be_read() {
        for html in ["", "<", "<a", "<a class=\"result__a", "<!--", "</", "&", "{\"json\":1}"] {
            assert_eq!(Page::read(html).hits, [], "{html}");
        }
    }
}
