use insta::assert_snapshot;
use proptest::prelude::*;

use super::*;
use crate::output::columns;

const SAMPLE: &str = "\
# What I found

The parser lives in `src/parser.rs` and is **much** too *long*: it handles four formats, and two of them are
never used. See [the guide](https://example.org/guide) or <https://example.org>.

## Steps

1. Split it
   - by format
   - by ***layer***, with a sentence that is long enough to be broken into several lines
2. Delete ~~everything~~ the rest

   A second paragraph.
3. Test

- [x] read
- [ ] written

> A quotation that goes on for a while, until it no longer fits one line of the terminal.
>
> ```
> code
> ```

```rust,ignore
fn main() {
\tprintln!(\"hello\");

}
```

| Format | Lines | Used |
|:-------|------:|:----:|
| yaml   |  1200 | yes  |
| toml with a long explanation of what it is for | 90 | no |

---

<b>html</b> and a\\
hard break
";

fn plain(width: usize) -> Stream {
    Stream::on_terminal(width).without_colour()
}

fn text(markdown: &str, stream: &Stream) -> String {
    render(markdown, Page::of(stream)).join("\n")
}

#[test]
fn a_page_without_colour_keeps_its_marks() {
    assert_snapshot!(text(SAMPLE, &plain(60)), @r#"
    # What I found

    The parser lives in `src/parser.rs` and is **much** too
    *long*: it handles four formats, and two of them are never
    used. See the guide (https://example.org/guide) or
    https://example.org.

    ## Steps

    1. Split it

       • by format
       • by ***layer***, with a sentence that is long enough to
         be broken into several lines

    2. Delete ~~everything~~ the rest

       A second paragraph.

    3. Test

    • [x] read
    • [ ] written

    │ A quotation that goes on for a while, until it no longer
    │ fits one line of the terminal.
    │
    │     code

      rust
        fn main() {
            println!("hello");

        }

    Format                                          Lines  Used
    ──────────────────────────────────────────────  ─────  ────
    yaml                                             1200  yes
    toml with a long explanation of what it is for     90   no

    ────────────────────────────────────────

    <b>html</b> and a
    hard break
    "#);
}

#[test]
fn a_page_with_colour_has_styles_in_place_of_marks() {
    let sample =
        "# Title here\n\nA **bold *both*** and `code` [x](u) ~~no~~\n\n> q\n\n```sh\nls\n```\n";
    let shown = text(sample, &Stream::on_terminal(60));
    assert_snapshot!(shown.replace('\u{1b}', "^"), @"
    ^[1m^[4mTitle here^[0m

    A ^[1mbold^[0m ^[1m^[3mboth^[0m^[0m and ^[36mcode^[0m x ^[2m(u)^[0m ^[9mno^[0m

    ^[2m│^[0m q

      ^[2msh^[0m
        ls
    ");
}

#[test]
fn ascii_is_enough() {
    let shown = text("- a\n- b\n\n> q\n\n---\n\n|a|\n|-|\n|b|\n", &plain(40).without_unicode());
    assert!(shown.is_ascii(), "{shown}");
    assert_snapshot!(shown, @"
    - a
    - b

    | q

    ----------------------------------------

    a
    -
    b
    ");
}

#[test]
fn a_table_is_as_wide_as_the_terminal_or_a_list() {
    let table = "| Name | Meaning | Default |\n|---|---|---|\n\
                 | `max_turns` | how many turns a run may take before it ends | 30 |\n\
                 | `timeout` | how long | 10m |\n";
    assert_snapshot!(text(table, &plain(44)), @"
    Name         Meaning                 Default
    ───────────  ──────────────────────  ───────
    `max_turns`  how many turns a run    30
                 may take before it
                 ends
    `timeout`    how long                10m
    ");
    assert_snapshot!(text(table, &plain(24)), @"
    Name: `max_turns`
    Meaning:
      how many turns a run
      may take before it
      ends
    Default: 30

    Name: `timeout`
    Meaning: how long
    Default: 10m
    ");
}

#[test]
fn escape_sequences_are_shown_and_not_obeyed() {
    let evil = "# a\u{1b}]0;x\u{7}\n\n`b\u{1b}[2J` [c\u{9b}](http://\u{1b}c)\n\n```\u{1b}[1m\nd\u{1b}[H\n```\n\n\
                |e\u{1b}|\n|-|\n|f\u{1b}|\n\n<i\u{1b}>\n\n[g]: http://\u{1b}x\n\n&#27;[31m\n";
    let shown = text(evil, &plain(80));
    assert!(!shown.contains(|letter: char| letter.is_control() && letter != '\n'), "{shown:?}");
    for letter in ["a\\u{1b}", "b\\u{1b}", "c\\u{9b}", "d\\u{1b}", "e\\u{1b}", "f\\u{1b}"] {
        assert!(shown.contains(letter), "{letter}: {shown}");
    }
}

#[test]
fn a_definition_is_shown_and_serves_what_follows() {
    let shown = text("See [one].\n\n[one]: https://a.b\n\nSee [One].\n", &plain(80));
    assert_eq!(shown, "See [one].\n\n[one]: https://a.b\n\nSee One (https://a.b).");
}

#[test]
fn scripts_without_spaces_are_broken_but_not_before_a_stop() {
    let shown = text(&"漢字かな交じり文。".repeat(4), &plain(20));
    assert!(shown.lines().all(|line| columns(line) <= 22 && !line.starts_with('。')), "{shown}");
    assert!(shown.lines().count() >= 3, "{shown}");
}

#[test]
fn depth_is_bounded() {
    let shown = text(&format!("{}deep", ">".repeat(5000)), &plain(80));
    assert!(shown.lines().all(|line| columns(line) < 80), "{shown}");
    let nested: Vec<String> = (0..60).map(|depth| format!("{}- x", "  ".repeat(depth))).collect();
    assert!(text(&nested.join("\n"), &plain(40)).lines().all(|line| columns(line) < 40));
}

#[test]
fn blocks_appear_as_they_are_completed() {
    let terminal = plain(60);
    let page = Page::of(&terminal);
    let mut stream = MarkdownStream::default();
    assert!(stream.push("One para", page).is_empty());
    assert_eq!(stream.preview(page), ["One para"]);
    assert!(stream.push("graph.\n\n", page).is_empty());
    assert_eq!(stream.push("`", page), ["One paragraph."]);
    assert!(stream.push("``\na\n\nb\n```\n", page).is_empty());
    assert_eq!(stream.preview(page), ["    a", "", "    b"]);
    assert_eq!(
        stream.push("\n- x\n\n  more\n\nEnd", page),
        ["", "    a", "", "    b", "", "• x", "", "  more"]
    );
    assert_eq!(stream.finish(page), ["", "End"]);
    assert!(stream.preview(page).is_empty() && !stream.gave_lines());
}

fn streamed(pieces: &[&str], page: Page<'_>) -> Vec<String> {
    let mut stream = MarkdownStream::default();
    let mut lines: Vec<String> = pieces.iter().flat_map(|piece| stream.push(piece, page)).collect();
    lines.extend(stream.finish(page));
    lines
}

/// Splits a text at these places, as far as they lie between letters.
fn split<'a>(text: &'a str, places: &[usize]) -> Vec<&'a str> {
    let mut places: Vec<usize> = places.iter().map(|place| place % (text.len() + 1)).collect();
    places.retain(|place| text.is_char_boundary(*place));
    places.extend([0, text.len()]);
    places.sort_unstable();
    places.windows(2).map(|pair| &text[pair[0]..pair[1]]).collect()
}

proptest! {
    #[test]
    fn a_text_in_pieces_looks_like_the_whole(places in prop::collection::vec(any::<usize>(), 0..40)) {
        let terminal = Stream::on_terminal(50);
        let page = Page::of(&terminal);
        prop_assert_eq!(streamed(&split(SAMPLE, &places), page), render(SAMPLE, page));
    }

    #[test]
    fn whatever_a_text_is_made_of(
        words in prop::collection::vec(prop::sample::select(&[
            "word", " ", "\n", "\n\n", "  ", "\t", "- ", "1. ", "> ", "```", "~~~~", "`", "**", "_", "#",
            "|", "|-|\n", "[x]", "(u)", "[x]: y\n", "<b>", "<!--", "---\n", "===\n", "\r\n", "漢", "\u{1b}[2J",
            "\\", "&#27;", "    ", "* * *\n", "\u{a0}", "!", "é",
        ][..]), 0..60),
        places in prop::collection::vec(any::<usize>(), 0..20),
        width in 1_usize..120,
    ) {
        let text = words.concat();
        let terminal = Stream::on_terminal(width).without_colour();
        let page = Page::of(&terminal);
        let whole = render(&text, page);
        prop_assert!(whole.iter().all(|line| !line.contains(char::is_control)), "{:?}", whole);
        prop_assert_eq!(streamed(&split(&text, &places), page), whole);
    }
}
