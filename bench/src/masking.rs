//! What it costs to keep secrets out of everything that is said.

use std::sync::Arc;
use std::time::Duration;

use convoke::core::{EventBody, Millis, Part, Secrets};
use serde_json::json;

use crate::Result;
use crate::measure::{in_turns, time, time_many};
use crate::table::Table;

const MEGABYTES: usize = 16;
const SAMPLES: usize = 15;
const EVENTS: u32 = 20_000;
const PIECES: u32 = 100_000;

/// Lines as tools print them: code, paths, hashes, addresses, words that nearly begin like a token.
const LINES: &str = "\
    fn main() -> Result<(), Box<dyn std::error::Error>> { let task = disk.risk(\"sk-learn\"); }\n\
    crates/core/src/secret.rs:42: the quick brown fox asks for https://example.com/a?b=c&d=e#f\n\
    commit 3f2a91c0d4e5b6a7980123456789abcdef012345 (HEAD -> main, origin/main) 2026-03-01\n\
    123e4567-e89b-12d3-a456-426614174000 12.5 MB 99 % done, 3 files changed, 17 insertions(+)\n";

pub(crate) fn measure(table: &mut Table) -> Result<()> {
    let secrets = secrets();
    throughput(table, &secrets)?;
    events(table, &secrets)?;
    pieces(table, &secrets)
}

/// As many as a developer's environment holds.
fn secrets() -> Secrets {
    Secrets::new((0..12).map(|number| {
        let value = format!("{:016x}-{number}", 0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(number + 1));
        (format!("SERVICE_{number}_KEY"), value)
    }))
}

fn throughput(table: &mut Table, secrets: &Secrets) -> Result<()> {
    let text = LINES.repeat(MEGABYTES * 1024 * 1024 / LINES.len());
    let ours = || {
        time(|| match secrets.hide(&text) {
            std::borrow::Cow::Borrowed(same) => Ok(same.len()),
            std::borrow::Cow::Owned(_) => Err("there is no secret in it".into()),
        })
    };
    let copy = || time(|| Ok(std::hint::black_box(text.clone()).len()));
    let pair = in_turns(SAMPLES, ours, copy)?;
    table.pair("looking for secrets in 16 MB without any", "copying it", pair, "");
    table.fact("megabytes a second", per_second(text.len(), pair.ours), "≥ 500");
    let leaky: String = text
        .split_inclusive('\n')
        .enumerate()
        .flat_map(|(number, line)| {
            let token = "export T=ghp_0a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R\n";
            [line, if number % 100 == 0 { token } else { "" }]
        })
        .collect();
    let pair = in_turns(SAMPLES, || time(|| Ok(secrets.hide(&leaky).len())), copy)?;
    table.pair("the same with a token every 100 lines", "copying it", pair, "");
    table.fact("megabytes a second", per_second(leaky.len(), pair.ours), "");
    Ok(())
}

fn per_second(bytes: usize, took: Duration) -> String {
    (bytes as u128 * 1_000 / took.as_nanos().max(1)).to_string()
}

/// What one event costs, beside writing it as JSON, which was done to look at it before.
fn events(table: &mut Table, secrets: &Secrets) -> Result<()> {
    let body = EventBody::ToolCallCompleted {
        tool_name: "read_file".into(),
        result: Arc::new(json!({ "path": "src/a.rs", "content": LINES.repeat(4), "lines": 16 })),
        content: vec![Part::text(LINES.repeat(4))],
        display: None,
        duration_ms: Millis::default(),
        files: Vec::new(),
    };
    let mut body = Some(body);
    let ours = || {
        time_many(EVENTS, || {
            let hidden = secrets.hide_in(body.take().ok_or("the event was lost")?)?;
            body = Some(hidden);
            Ok(())
        })
    };
    let other = json!({ "path": "src/a.rs", "content": LINES.repeat(8), "lines": 16 });
    let write = || {
        time_many(EVENTS, || {
            std::hint::black_box(other.to_string());
            Ok(())
        })
    };
    let pair = in_turns(5, ours, write)?;
    table.pair("looking for secrets in an event of 3 KB", "writing it as JSON", pair, "");
    Ok(())
}

/// An answer in pieces of a few letters, as a model sends it.
fn pieces(table: &mut Table, secrets: &Secrets) -> Result<()> {
    let words: Vec<&str> = LINES.split_inclusive(' ').collect();
    let ours = || {
        let (mut masker, mut next) = (secrets.masker(), words.iter().cycle());
        time_many(PIECES, || {
            std::hint::black_box(masker.push(next.next().copied().unwrap_or_default()));
            Ok(())
        })
    };
    let copy = || {
        let mut next = words.iter().cycle();
        time_many(PIECES, || {
            std::hint::black_box(next.next().copied().unwrap_or_default().to_owned());
            Ok(())
        })
    };
    let pair = in_turns(5, ours, copy)?;
    table.pair("a piece of an answer, looked at", "copied", pair, "");
    Ok(())
}
