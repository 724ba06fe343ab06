//! Markdown that models write, written again: what is markup in it is known, and all else is text.
//!
//! Copying it would be shorter, but then what it does to the rest of the page would depend on how each
//! reader understands it.

use pulldown_cmark::{CodeBlockKind, CowStr, Event, Tag};

use super::text::{code, escape, fenced, quoted};
use crate::export::amounts::size;
use crate::export::prose::{parse, safe_target};
use crate::export::shorten::shorten;
use crate::export::visible::visible;

/// How long one text is at most, in bytes.
const LONGEST: usize = 32 * 1024;
/// How deep lists and quotations go; deeper ones are not set off.
const MAX_DEPTH: usize = 24;

/// Returns a Markdown text that cannot reach beyond itself, cut if it is too long.
pub(super) fn prose(text: &str) -> String {
    let short = shorten(text.trim(), LONGEST);
    let mut out = rewrite(short.head);
    if let Some(cut) = short.cut {
        out.push_str(&format!("*… {} are not shown here …*\n\n", size(cut.bytes)));
        out.push_str(&rewrite(cut.tail));
    }
    out
}

fn rewrite(text: &str) -> String {
    // A letter that hides could change what is markup for whom.
    let text = visible(text);
    let mut writer = Writer { frames: vec![Frame { tag: None, out: String::new() }] };
    parse(&text).for_each(|event| writer.piece(event));
    while writer.frames.len() > 1 {
        writer.close();
    }
    let out = writer.frames.pop().map(|frame| frame.out).unwrap_or_default();
    match out.trim() {
        "" => String::new(),
        text => format!("{text}\n\n"),
    }
}

/// An element that is open, and what is in it so far.
struct Frame<'a> {
    tag: Option<Tag<'a>>,
    out: String,
}

struct Writer<'a> {
    frames: Vec<Frame<'a>>,
}

impl<'a> Writer<'a> {
    fn piece(&mut self, event: Event<'a>) {
        match event {
            Event::Start(tag) => {
                let tag = (self.frames.len() <= MAX_DEPTH).then_some(tag);
                self.frames.push(Frame { tag, out: String::new() });
            }
            Event::End(_) => self.close(),
            Event::Code(text) => {
                let in_table =
                    self.frames.iter().any(|frame| matches!(frame.tag, Some(Tag::Table(_))));
                let code = code(&text);
                self.push(&if in_table { code.replace('|', "\\|") } else { code });
            }
            Event::SoftBreak => self.push("\n"),
            Event::HardBreak => self.push("\\\n"),
            Event::Rule => self.push("* * *\n\n"),
            Event::TaskListMarker(done) => self.push(if done { "☑ " } else { "☐ " }),
            Event::Text(text)
            | Event::Html(text)
            | Event::InlineHtml(text)
            | Event::InlineMath(text)
            | Event::DisplayMath(text)
            | Event::FootnoteReference(text) => self.text(&text),
        }
    }

    fn text(&mut self, text: &CowStr<'_>) {
        let Some(frame) = self.frames.last_mut() else { return };
        if matches!(frame.tag, Some(Tag::CodeBlock(_))) {
            frame.out.push_str(text);
        } else {
            escape(text, &mut frame.out);
        }
    }

    fn push(&mut self, markdown: &str) {
        if let Some(frame) = self.frames.last_mut() {
            frame.out.push_str(markdown);
        }
    }

    fn close(&mut self) {
        let number = self.number_of_item();
        let Some(Frame { tag, out }) = self.frames.pop() else { return };
        let markdown = match tag {
            None => out + " ",
            Some(tag) => {
                self.break_before(&tag);
                wrap(&tag, &out, number)
            }
        };
        self.push(&markdown);
    }

    /// A block does not begin in the middle of a line.
    fn break_before(&mut self, tag: &Tag<'_>) {
        let Some(frame) = self.frames.last_mut() else { return };
        if frame.out.is_empty() || frame.out.ends_with('\n') {
            return;
        }
        frame.out.push_str(match tag {
            Tag::List(_) | Tag::BlockQuote(_) | Tag::CodeBlock(_) => "\n",
            Tag::Paragraph | Tag::HtmlBlock | Tag::Heading { .. } | Tag::Table(_) => "\n\n",
            _ => "",
        });
    }

    /// Returns the number of the list item that is open, if its list has numbers, and counts on.
    fn number_of_item(&mut self) -> Option<u64> {
        let [.., list, item] = self.frames.as_mut_slice() else { return None };
        match (&mut list.tag, &item.tag) {
            (Some(Tag::List(Some(next))), Some(Tag::Item)) => {
                let number = *next;
                *next = next.saturating_add(1);
                Some(number)
            }
            _ => None,
        }
    }
}

fn wrap(tag: &Tag<'_>, inside: &str, number: Option<u64>) -> String {
    let inline = inside.trim();
    match tag {
        Tag::Heading { .. } if inline.is_empty() => String::new(),
        // The headings of the page are ours.
        Tag::Heading { .. } => format!("**{}**\n\n", inline.replace("**", "")),
        Tag::BlockQuote(_) => quoted(inside),
        Tag::CodeBlock(CodeBlockKind::Fenced(language)) => fenced(language, inside),
        Tag::CodeBlock(CodeBlockKind::Indented) => fenced("", inside),
        Tag::List(_) => format!("{}\n\n", inside.trim_end()),
        Tag::Item => item(inside, number),
        Tag::Table(columns) => table(inside, columns.len()),
        Tag::TableHead | Tag::TableRow => format!("|{inside}\n"),
        Tag::TableCell => format!(" {} |", inline.replace('\n', " ")),
        Tag::Emphasis if !inline.is_empty() => format!("*{inline}*"),
        Tag::Strong if !inline.is_empty() => format!("**{inline}**"),
        Tag::Strikethrough if !inline.is_empty() => format!("~~{inline}~~"),
        Tag::Link { dest_url, .. } => link(inline, dest_url),
        Tag::Image { dest_url, .. } => format!("picture: {inline} ({})", code(dest_url)),
        Tag::Paragraph | Tag::HtmlBlock => format!("{inline}\n\n"),
        _ => inside.to_owned(),
    }
}

fn item(inside: &str, number: Option<u64>) -> String {
    let sign = number.map_or_else(|| "- ".to_owned(), |number| format!("{number}. "));
    let indent = " ".repeat(sign.len());
    let lines = inside.trim().lines().enumerate().map(|(at, line)| match (at, line.is_empty()) {
        (0, _) => format!("{sign}{line}\n"),
        (_, true) => "\n".to_owned(),
        (_, false) => format!("{indent}{line}\n"),
    });
    lines.collect()
}

fn table(rows: &str, columns: usize) -> String {
    let (head, rest) = rows.split_once('\n').unwrap_or((rows, ""));
    format!("{head}\n|{}\n{rest}\n", " --- |".repeat(columns))
}

fn link(text: &str, target: &str) -> String {
    match safe_target(target) {
        Some(target) => {
            let target = target.replace('<', "%3C").replace('>', "%3E").replace('\\', "%5C");
            format!("[{text}](<{target}>)")
        }
        None => format!("{text} ({})", code(target)),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn nothing_but_known_markup_comes_out(
            pieces in prop::collection::vec(
                prop::sample::select(vec![
                    "<", ">", "/", "script", "<img src=x>", "</details>", "`", "``", "```", "\n",
                    "\n\n", "    ", "> ", "- ", "1. ", "*", "**", "_", "~~", "[", "](", ")", "![",
                    "javascript:a", "http://b.example", "<http://c.example>", "\\", "&lt;", "|",
                    "\n| --- |\n", "#", "# ", "=", "---", "x", " ", "\t", "<!--", "-->", "]: ",
                ]),
                0..40,
            )
        ) {
            let out = prose(&pieces.concat());
            for event in parse(&out) {
                let is_safe = match &event {
                    Event::Html(_)
                    | Event::InlineHtml(_)
                    | Event::Start(Tag::Image { .. } | Tag::Heading { .. }) => false,
                    Event::Start(Tag::Link { dest_url, .. }) => safe_target(dest_url).is_some(),
                    _ => true,
                };
                prop_assert!(is_safe, "{event:?} in {out:?}");
            }
            let below = format!("{out}<details>");
            let seen = parse(&below).any(|event| matches!(event, Event::Html(text) if text.contains("<details>")));
            prop_assert!(seen, "what follows is swallowed by {out:?}");
        }
    }

    #[test]
    fn plain_markdown_stays_what_it_is() {
        for text in [
            "Some *words*, **strong** and `code`.\n\n",
            "- a\n- b\n\n",
            "3. a\n4. b\n   - c\n\n",
            "> a\n>\n> b\n\n",
            "```rust\nlet x = \"`\";\n```\n\n",
            "[a](<https://b.example/c>)\n\n",
            "| a | b |\n| --- | --- |\n| c | d |\n\n",
        ] {
            assert_eq!(prose(text), text);
        }
    }

    #[test]
    fn html_pictures_and_odd_links_are_text() {
        assert_eq!(prose("</details><script>x</script>"), "\\</details>\\<script>x\\</script>\n\n");
        assert_eq!(prose("a <img src=x> b"), "a \\<img src=x> b\n\n");
        assert_eq!(prose("![a](http://b.example)"), "picture: a (`http://b.example`)\n\n");
        assert_eq!(prose("[a](javascript:b)"), "a (`javascript:b`)\n\n");
        assert_eq!(prose("# A **b**"), "**A b**\n\n");
    }

    #[test]
    fn an_open_fence_ends_with_its_text() {
        assert_eq!(prose("```\n</details>\n"), "```\n</details>\n```\n\n");
        assert_eq!(prose("````\n```\nx"), "````\n```\nx\n````\n\n");
    }

    #[test]
    fn writing_it_again_changes_nothing() {
        for text in ["a\n- b\n> c\n\n1) d", "* * *\n\n_a_ *b* __c__", "a\\\nb &amp; <b>c</b> \\* d"]
        {
            let once = prose(text);
            assert_eq!(prose(&once), once, "{text:?}");
        }
        assert!(prose(&">".repeat(10_000)).len() < 20_000);
    }
}
