//! The structure of the page.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use convoke_core::{EventBody, Part, Purpose, Usage};
use convoke_journal::export::html;
use convoke_journal::timeline::Timeline;
use sha2::{Digest, Sha256};

use crate::sample::{self, Stream};

fn page() -> String {
    let events = sample::continued();
    html(&Timeline::of(&events))
}

fn between<'p>(page: &'p str, start: &str, end: &str) -> &'p str {
    let rest = page.split_once(start).unwrap_or_else(|| panic!("no {start}")).1;
    rest.split_once(end).unwrap_or_else(|| panic!("no {end}")).0
}

#[test]
fn the_page_says_what_it_is() {
    let page = page();
    let title = between(&page, "<title>", "</title>");
    let task = "The release job fails since the last tag. Find out why, and fix it.";
    assert_eq!(title, format!("{task} · failed: model unavailable"));
    assert!(page.contains(&format!("<h1>{task}</h1>")));
    assert_eq!(
        between(&page, "<meta name=\"description\" content=\"", "\""),
        "Run r-20260301-7f3a of 2026-03-01 09:30:00 UTC, with example/large: failed: model unavailable."
    );
    let facts = between(&page, "<dl class=\"facts\">", "</dl>");
    for fact in ["example/large", "28.7 s", "30.2k in, 886 out", "$0.0446", "and 1 subagent"] {
        assert!(facts.contains(fact), "{fact}");
    }
}

#[test]
fn the_policy_allows_our_script_and_our_styles_and_nothing_else() {
    let page = page();
    let policy = between(&page, "Content-Security-Policy\" content=\"", "\"");
    let hash = |text: &str| STANDARD.encode(Sha256::digest(text));
    let style = hash(between(&page, "<style>", "</style>"));
    let script = hash(between(&page, "<script>", "</script>"));
    assert_eq!(
        policy,
        format!(
            "default-src 'none'; style-src 'sha256-{style}'; script-src 'sha256-{script}'; \
             base-uri 'none'; form-action 'none'"
        )
    );
    assert!(!page.contains(" style=\"") && !page.contains(" onclick"));
    for loads in [" src=", "<link", "<iframe", "<object", "@import", "url("] {
        assert!(!page.contains(loads), "{loads}");
    }
}

#[test]
fn every_row_leads_to_an_item() {
    let page = page();
    let bars = between(&page, "<nav", "</nav>");
    let rows: Vec<&str> =
        bars.split("href=\"#").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
    assert!(rows.len() > 35, "{}", rows.len());
    for id in rows {
        assert_eq!(page.matches(&format!(" id=\"{id}\"")).count(), 1, "{id}");
    }
    // All places are on the line.
    for x in bars.split(" x=\"").skip(1).map(|rest| rest.split('%').next().unwrap()) {
        assert!((0.0..=100.0).contains(&x.parse::<f64>().unwrap()), "{x}");
    }
}

/// A gap was shown again in every turn that came after it.
#[test]
fn a_gap_is_shown_once() {
    let page = page();
    assert_eq!(page.matches("1 m 35 s later").count(), 1);
    let before = page.split_once("1 m 35 s later").unwrap().0;
    assert!(before.ends_with("<p class=\"gap\"><span>"));
    let after = page.split_once("1 m 35 s later").unwrap().1;
    assert!(after.starts_with("</span></p><article data-item class=\"item asked\""));
}

#[test]
fn calls_are_folded_and_trouble_is_not() {
    let page = page();
    let call = |id: &str| between(&page, &format!("id=\"{id}\""), "<summary>").to_owned();
    assert!(call("e8").ends_with("<details data-fold class=\"good\">"), "{}", call("e8"));
    assert!(call("e12").ends_with("<details data-fold class=\"bad\" open>"));
    let edit = between(&page, "id=\"e24\"", "</article>");
    assert!(edit.contains("<span class=\"add\">+    // A tag has a `v` in front.\n</span>"));
    assert!(
        edit.contains("<b>Allowed</b>") && edit.contains("<q>Yes, and say why in a comment.</q>")
    );
}

#[test]
fn the_answer_is_set_as_markdown() {
    let events = sample::fixed();
    let page = html(&Timeline::of(&events));
    let answer = between(&page, "<h2>Answer</h2>", "</section>");
    assert!(answer.contains("<strong>The release job works again.</strong>"));
    assert!(answer.contains("<li><code>parse</code> in"));
}

#[test]
fn a_run_that_has_not_ended_says_so() {
    let events = sample::fixed();
    let page = html(&Timeline::of(&events[..12]));
    assert!(page.contains("not finished") && page.contains("class=\"bar open\""));
    assert!(page.contains("was ended from outside"));
    let empty = html(&Timeline::of(&[]));
    assert!(
        empty.contains("There are no events.")
            && empty.contains("<title>A run · no events</title>")
    );
}

#[test]
fn long_output_is_cut_and_the_cut_is_marked() {
    let mut stream = Stream::new();
    stream.start("Print a lot.", &[]).turn(1).request("c", "run_command", serde_json::json!({}));
    let long = format!("first line\n{}last line", "x\n".repeat(1_000_000));
    stream.complete("c", "run_command", &long, None, 5);
    let page = html(&Timeline::of(&stream.events));
    assert!(page.len() < 200_000, "{}", page.len());
    assert!(page.contains("first line") && page.contains("last line"));
    assert!(page.contains("1 MiB are not shown here"));
}

#[test]
fn parts_that_cannot_be_shown_are_named() {
    let mut stream = Stream::new();
    stream.start("Draw.", &[]).ask(Purpose::Main);
    let parts = vec![
        Part::Media { mime: "image/png".into(), data: "A".repeat(4_096) },
        Part::Opaque { provider: "example".into(), data: serde_json::json!({}) },
    ];
    stream.answer(Purpose::Main, parts, Usage::default());
    stream.put(EventBody::Notice { message: "Go *on*.".into() });
    let page = html(&Timeline::of(&stream.events));
    assert!(page.contains("[image/png, 3 KiB]"));
    assert!(page.contains("[a part that only example understands]"));
    assert!(page.contains("Go <em>on</em>."));
}
