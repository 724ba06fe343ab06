//! A run as Markdown, for a place where Markdown is read: an issue, a pull request, a wiki.
//!
//! Calls are folded with `<details>`. Between its tags, in headings and in lines there is only text that
//! was escaped for that place; what is longer stands between fences.

mod item;
mod prose;
mod text;

use self::item::Writer;
use self::prose::prose;
use self::text::{code, fenced, plain};
use super::amounts::{count, moment, time, usage};
use super::brief::one_line;
use super::words;
use crate::timeline::Timeline;

/// How many letters the title has at most.
const TITLE: usize = 100;

/// Writes a run as Markdown.
pub fn markdown(timeline: &Timeline<'_>) -> String {
    let Some(main) = timeline.main() else { return "There are no events.\n".to_owned() };
    let mut out = format!("# {}\n\n", plain(&one_line(words::task(timeline), TITLE)));
    let (mood, ending) = words::ending(main);
    let others = timeline.agents.len().saturating_sub(1);
    let facts = [
        Some(format!("**{} {ending}**", mood.sign())),
        Some(code(main.model)).filter(|model| !model.is_empty()),
        Some(time(timeline.working())),
        Some(count(main.turns.into(), "turn")),
        Some(count(timeline.calls(), "tool call")),
        (others > 0).then(|| count(u64::try_from(others).unwrap_or(u64::MAX), "subagent")),
        usage(&timeline.usage()),
    ];
    out.push_str(&facts.into_iter().flatten().collect::<Vec<_>>().join(" · "));
    out.push_str(&format!("\n\nRun {}, {}\n\n", code(main.run.as_str()), moment(timeline.started)));
    if let Some(answer) = main.end.and_then(|end| end.answer) {
        out.push_str("## Answer\n\n");
        out.push_str(&value(answer));
    }
    let mut writer = Writer { timeline, out, gaps: 0, inside: 0 };
    writer.agents();
    if main.end.is_none() {
        writer
            .out
            .push_str("*Nothing is known of what came after this: the run is still at work, ");
        writer.out.push_str("or was ended from outside.*\n");
    }
    format!("{}\n", writer.out.trim_end())
}

fn value(value: &serde_json::Value) -> String {
    match value {
        serde_json::Value::String(text) => prose(text),
        value => fenced("json", &words::json(value)),
    }
}
