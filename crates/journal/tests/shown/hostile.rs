//! Texts that want to be more than text, in every place where a text can be.

use std::sync::Arc;

use convoke_core::policy::RuleSpec;
use convoke_core::{
    Cause, Display, DisplayFormat, Effects, EventBody, Kind, Message, Outcome, Part, Permission,
    Purpose, Resource, Role, RunSettings, TaskId, ToolCall, ToolError, Usage,
};
use convoke_journal::export::{html, markdown};
use convoke_journal::timeline::Timeline;
use pulldown_cmark::{Event as Piece, Options, Parser, Tag};
use serde_json::json;

use crate::sample::Stream;

pub(crate) const HOSTILE: &str = "</pre></script></style><script>evil()</script>\
    <img src=x onerror=evil()> \" onmouseover=\"evil() ' \
    [click](javascript:evil()) ![see](https://evil.example/p.png) <https://evil.example/a>\n\n\
    </details></summary>\n\n```\n````\n~~~\n# Heading\n> quote\n\u{1b}[31mred\u{1b}]0;title\u{7}\
    \u{202e}txt.exe\u{2066}\0\u{200b}{{body}}<!--";

/// A run in which everything that can be said is hostile.
pub(crate) fn events() -> Vec<convoke_core::Event> {
    let text = || HOSTILE.to_owned();
    let error = || ToolError { causes: vec![text()], ..ToolError::failed(HOSTILE) };
    let mut stream = Stream::new();
    stream.put(EventBody::RunStarted {
        origin: serde_json::Value::Null,
        task: TaskId::new(HOSTILE),
        model: text(),
        prompt: text(),
        attachments: vec![
            Part::Media { mime: text(), data: text() },
            Part::Link { uri: text(), title: Some(text()) },
        ],
        history: Vec::new(),
        system: Arc::from(HOSTILE),
        tools: Arc::from([]),
        settings: RunSettings::default(),
    });
    stream.put(EventBody::Warning { message: text() }).turn(1).put(EventBody::ModelRequest {
        model: text() + "2",
        purpose: Purpose::Main,
        notice: Some(text()),
        estimate: 0,
        reserved: None,
    });
    stream.put(EventBody::ModelRetry {
        attempt: 2,
        delay_ms: crate::sample::millis_of(1),
        reason: text(),
        usage: Usage::default(),
    });
    let arguments = json!({ "path": HOSTILE, HOSTILE: [HOSTILE] });
    let parts = vec![
        Part::Thought { text: text() },
        Part::text(HOSTILE),
        Part::Opaque { provider: text(), data: json!(HOSTILE) },
        Part::ToolCall(ToolCall::new("c1", HOSTILE, arguments.clone())),
    ];
    stream.answer(Purpose::Main, parts, Usage::default());
    stream.request("c1", HOSTILE, arguments).decide("c1", HOSTILE, HOSTILE, HOSTILE);
    let shown = |format| Some(Display { format, text: text() });
    stream.about(
        "c1",
        EventBody::ApprovalAsked {
            tool_name: text(),
            kind: Kind::Edit,
            description: text(),
            arguments: Arc::new(json!(HOSTILE)),
            preview: shown(DisplayFormat::Diff),
            reason: text(),
            rules: vec![RuleSpec::command(Permission::Allow, HOSTILE)],
            until: None,
            fingerprint: String::new(),
        },
    );
    stream.about(
        "c1",
        EventBody::ApprovalAnswered {
            tool_name: text(),
            approved: true,
            message: Some(text()),
            by: Some(text()),
            arguments: Some(Arc::new(json!(HOSTILE))),
            rules: vec![RuleSpec::command(Permission::Allow, HOSTILE)],
        },
    );
    let effects =
        Effects { reads: vec![Resource::Host(text())], writes: vec![Resource::Path(text())] };
    stream.begin("c1", HOSTILE, HOSTILE, effects);
    stream.complete("c1", HOSTILE, HOSTILE, shown(DisplayFormat::Markdown), 1);
    stream.request("c2", HOSTILE, json!(HOSTILE)).fail("c2", HOSTILE, error(), HOSTILE, 1);
    stream.request("c3", HOSTILE, json!({})).deny("c3", HOSTILE, error());
    stream.put(EventBody::AgentSpawned {
        child: "child".into(),
        name: text(),
        inputs: serde_json::Map::from_iter([(text(), text().into())]),
        background: false,
        continued: false,
    });
    stream.enter("child", HOSTILE).start(HOSTILE, &[HOSTILE]).leave();
    stream.put(EventBody::AnswerChecked { value: json!(HOSTILE), problems: vec![text()] });
    stream.put(EventBody::Compaction { before: 1, after: 1, kept_from: 0, summary: Some(text()) });
    stream.put(EventBody::Notice { message: text() });
    stream.put(EventBody::McpServerState { server: text(), state: text(), reason: Some(text()) });
    stream.put(EventBody::UserMessage { message: Message::text(Role::User, HOSTILE) });
    stream.request("c4", HOSTILE, json!(HOSTILE)).turned(1);
    let mut outcome = Outcome::from(Cause::Error).because(HOSTILE);
    outcome.partial = Some(json!(HOSTILE));
    stream.end(outcome, Some(json!(HOSTILE)), Usage::default());
    stream.events
}

/// Returns the tags of a page, as a reader that knows quotes sees them.
fn tags(page: &str) -> Vec<String> {
    let mut tags = Vec::new();
    let mut rest = page;
    while let Some(start) = rest.find('<') {
        rest = &rest[start..];
        let mut quote = None;
        let end = rest.char_indices().find(|(_, letter)| match (quote, *letter) {
            (None, '"' | '\'') => {
                quote = Some(*letter);
                false
            }
            (Some(open), letter) if letter == open => {
                quote = None;
                false
            }
            (None, '>') => true,
            _ => false,
        });
        let Some((end, _)) = end else { panic!("a tag has no end: {}", &rest[..80]) };
        let tag = &rest[..=end];
        tags.push(tag.to_owned());
        rest = &rest[end + 1..];
        for raw in ["script", "style"] {
            if tag == format!("<{raw}>") {
                rest = &rest[rest.find(&format!("</{raw}>")).unwrap()..];
            }
        }
    }
    tags
}

#[test]
fn nothing_hostile_becomes_markup_on_the_page() {
    let events = events();
    let page = html(&Timeline::of(&events));
    let known = [
        "!doctype",
        "html",
        "head",
        "meta",
        "title",
        "style",
        "script",
        "body",
        "a",
        "header",
        "p",
        "code",
        "h1",
        "h2",
        "h4",
        "h5",
        "h6",
        "span",
        "dl",
        "div",
        "dt",
        "dd",
        "small",
        "input",
        "button",
        "nav",
        "details",
        "summary",
        "svg",
        "line",
        "text",
        "rect",
        "ol",
        "ul",
        "li",
        "b",
        "main",
        "section",
        "article",
        "pre",
        "q",
        "em",
        "strong",
        "blockquote",
        "hr",
        "br",
        "s",
        "table",
        "tr",
        "th",
        "td",
        "footer",
        "kbd",
    ];
    let tags = tags(&page);
    for tag in &tags {
        let name = tag.trim_start_matches(['<', '/']).split([' ', '>', '/']).next().unwrap();
        assert!(known.contains(&name), "{tag}");
        // Attributes end where they should: none of the hostile ones is outside of quotes.
        let outside: String = tag.split('"').step_by(2).collect();
        assert!(!outside.contains("evil") && !outside.contains(" on"), "{tag}");
        for href in tag.split("href=\"").skip(1).map(|rest| rest.split('"').next().unwrap()) {
            assert!(href.starts_with('#') || href.starts_with("https://evil.example/a"), "{tag}");
        }
    }
    assert_eq!(tags.iter().filter(|tag| tag.starts_with("<script")).count(), 1);
    assert_eq!(tags.iter().filter(|tag| tag.starts_with("<style")).count(), 1);
    assert!(!tags.iter().any(|tag| tag.contains("src=") && !tag.contains('"')));
}

#[test]
fn letters_that_hide_are_seen() {
    let events = events();
    let timeline = Timeline::of(&events);
    for shown in [html(&timeline), markdown(&timeline)] {
        let hidden = shown.chars().filter(|letter| {
            let controls = letter.is_control() && !matches!(letter, '\n' | '\t');
            controls
                || matches!(letter, '\u{200b}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
        });
        assert_eq!(hidden.count(), 0);
        assert!(shown.contains("␛[31mred") && shown.contains("⟨U+202E⟩txt.exe"));
    }
}

#[test]
fn a_page_is_made_once() {
    // The text has the name of a part of the page in it.
    let events = events();
    let page = html(&Timeline::of(&events));
    assert!(page.contains("{{body}}"));
    assert_eq!(page.matches("<main").count(), 1);
}

#[test]
fn nothing_hostile_breaks_out_of_markdown() {
    let events = events();
    let text = markdown(&Timeline::of(&events));
    let (mut open, mut headings) = (0_i32, Vec::new());
    let mut pieces = Parser::new_ext(&text, Options::ENABLE_TABLES);
    while let Some(piece) = pieces.next() {
        match piece {
            Piece::Html(html) => {
                let line = html.trim();
                open += i32::from(line == "<details>") - i32::from(line == "</details>");
                let mut tags = tags(line);
                tags.retain(|tag| {
                    !["details", "summary", "code", "b"]
                        .contains(&tag.trim_matches(['<', '/', '>']))
                });
                assert_eq!(tags, Vec::<String>::new(), "{line}");
            }
            Piece::InlineHtml(html) => panic!("{html} within a line"),
            Piece::Start(Tag::Image { dest_url, .. }) => panic!("a picture of {dest_url}"),
            Piece::Start(Tag::Link { dest_url, .. }) => {
                assert_eq!(&*dest_url, "https://evil.example/a");
            }
            Piece::Start(Tag::Heading { level, .. }) => {
                let inside = pieces.by_ref().take_while(|piece| !matches!(piece, Piece::End(_)));
                let words = inside.map(|piece| match piece {
                    Piece::Text(text) => text.into_string(),
                    other => panic!("{other:?} in a heading"),
                });
                headings.push(format!("{level} {}", words.collect::<String>()));
            }
            _ => {}
        }
    }
    assert_eq!(open, 0);
    assert!(headings[0].starts_with("h1 </pre></script>"), "{headings:?}");
    assert_eq!(headings[1..], ["h2 Answer", "h2 Asked", "h2 Turn 1"]);
}
