//! Markdown as HTML. Its HTML is shown as text, its pictures are named and not loaded, and its links say
//! where they go.

use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, Tag, TagEnd};

use super::writer::Html;
use crate::export::prose::{host, parse, safe_target};
use crate::export::visible::visible;

/// How deep lists and quotations go; deeper ones are not set off.
const MAX_DEPTH: usize = 24;

/// What ends an element.
enum Close {
    Markup(&'static str),
    /// A link, after which its host is named.
    Link(String),
}

/// Writes a Markdown text, cut if it is too long.
pub(super) fn write(page: &mut Html, text: &str) {
    page.markup("<div class=\"prose\">");
    page.bounded(text.trim(), |page, text| {
        // A letter that hides could change what is markup for whom.
        let text = visible(text);
        let mut open: Vec<Close> = Vec::new();
        let mut in_head = false;
        for event in parse(&text) {
            piece(page, event, &mut open, &mut in_head);
        }
        while let Some(close) = open.pop() {
            end(page, close);
        }
    });
    page.markup("</div>");
}

fn piece(page: &mut Html, event: Event<'_>, open: &mut Vec<Close>, in_head: &mut bool) {
    match event {
        Event::Start(tag) => {
            let close = if open.len() < MAX_DEPTH || matches!(tag, Tag::Link { .. }) {
                start(page, &tag, in_head)
            } else {
                Close::Markup(" ")
            };
            open.push(close);
        }
        Event::End(tag) => {
            if tag == TagEnd::TableHead {
                *in_head = false;
            }
            if let Some(close) = open.pop() {
                end(page, close);
            }
        }
        Event::Code(text) => {
            page.markup("<code>").text(&text).markup("</code>");
        }
        Event::SoftBreak => {
            page.markup("\n");
        }
        Event::HardBreak => {
            page.markup("<br>");
        }
        Event::Rule => {
            page.markup("<hr>");
        }
        Event::TaskListMarker(done) => {
            page.markup(if done { "☑ " } else { "☐ " });
        }
        Event::Text(text)
        | Event::Html(text)
        | Event::InlineHtml(text)
        | Event::InlineMath(text)
        | Event::DisplayMath(text)
        | Event::FootnoteReference(text) => {
            page.text(&text);
        }
    }
}

fn start(page: &mut Html, tag: &Tag<'_>, in_head: &mut bool) -> Close {
    let (open, close) = match tag {
        Tag::Heading { level: HeadingLevel::H1 | HeadingLevel::H2, .. } => ("<h4>", "</h4>"),
        Tag::Heading { level: HeadingLevel::H3, .. } => ("<h5>", "</h5>"),
        Tag::Heading { .. } => ("<h6>", "</h6>"),
        Tag::BlockQuote(_) => ("<blockquote>", "</blockquote>"),
        Tag::CodeBlock(kind) => return code_block(page, kind),
        Tag::List(Some(first)) => {
            page.markup("<ol start=\"").number(*first).markup("\">");
            return Close::Markup("</ol>");
        }
        Tag::List(None) => ("<ul>", "</ul>"),
        Tag::Item => ("<li>", "</li>"),
        Tag::Table(_) => ("<div class=\"wide\"><table>", "</table></div>"),
        Tag::TableHead => {
            *in_head = true;
            ("<tr>", "</tr>")
        }
        Tag::TableRow => ("<tr>", "</tr>"),
        Tag::TableCell if *in_head => ("<th>", "</th>"),
        Tag::TableCell => ("<td>", "</td>"),
        Tag::Emphasis => ("<em>", "</em>"),
        Tag::Strong => ("<strong>", "</strong>"),
        Tag::Strikethrough => ("<s>", "</s>"),
        Tag::Link { dest_url, .. } => return link(page, dest_url),
        Tag::Image { dest_url, .. } => {
            page.markup("<span class=\"image\">picture at ").text(dest_url).markup(": ");
            return Close::Markup("</span>");
        }
        _ => ("<p>", "</p>"),
    };
    page.markup(open);
    Close::Markup(close)
}

fn code_block(page: &mut Html, kind: &CodeBlockKind<'_>) -> Close {
    page.markup("<pre");
    if let CodeBlockKind::Fenced(language) = kind
        && !language.is_empty()
    {
        page.markup(" title=\"").text(language).markup("\"");
    }
    page.markup(" tabindex=\"0\"><code>");
    Close::Markup("</code></pre>")
}

fn link(page: &mut Html, target: &str) -> Close {
    let Some(target) = safe_target(target) else {
        page.markup("<span class=\"no-link\" title=\"").text(target).markup("\">");
        return Close::Markup("</span>");
    };
    page.markup("<a rel=\"noopener noreferrer nofollow\" target=\"_blank\" title=\"").text(target);
    page.markup("\" href=\"").text(target).markup("\">");
    Close::Link(host(target).to_owned())
}

fn end(page: &mut Html, close: Close) {
    match close {
        Close::Markup(markup) => page.markup(markup),
        Close::Link(host) => {
            page.markup("</a> <span class=\"host\">").text(&host).markup("</span>")
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        let mut page = Html::default();
        write(&mut page, text);
        page.into_string()
    }

    #[test]
    fn markdown_is_set() {
        assert_eq!(
            shown("# A\n\n- *b* `c`\n\n| d |\n|---|\n| e |\n"),
            "<div class=\"prose\"><h4>A</h4><ul><li><em>b</em> <code>c</code></li></ul>\
             <div class=\"wide\"><table><tr><th>d</th></tr><tr><td>e</td></tr></table></div></div>"
        );
    }

    #[test]
    fn html_in_markdown_is_text() {
        let page = shown("<script>x()</script>\n\na <img src=x onerror=y> b");
        assert!(!page.contains("<script") && !page.contains("<img"), "{page}");
        assert!(page.contains("&lt;script&gt;x()&lt;/script&gt;") && page.contains("&lt;img src"));
    }

    #[test]
    fn links_show_where_they_go_and_run_nothing() {
        let page = shown("[a](https://b.example/c) [d](javascript:e()) ![f](https://g.example/h)");
        assert!(page.contains("href=\"https://b.example/c\">a</a> <span class=\"host\">b.example"));
        assert!(!page.contains("href=\"java") && !page.contains("<img"), "{page}");
        assert!(page.contains("picture at https://g.example/h: f"));
    }

    #[test]
    fn deep_nesting_stays_flat() {
        let page = shown(&">".repeat(10_000));
        assert!(page.matches("<blockquote>").count() <= MAX_DEPTH);
        assert_eq!(page.matches("<blockquote>").count(), page.matches("</blockquote>").count());
    }
}
