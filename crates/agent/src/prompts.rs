//! Every text a model is told by the runtime. The texts are files in `prompts/`, so that they can be
//! read, compared and measured without reading code.

use convoke_core::{Cause, Ending, Limit};

/// The standing instructions of the main agent.
pub const SYSTEM: &str = include_str!("../prompts/system.md");

/// The standing instructions of an agent that has none of its own.
pub(crate) const SUBAGENT: &str = include_str!("../prompts/subagent.md");
/// Says how an agent hands over its result.
pub(crate) const COMPLETE: &str = include_str!("../prompts/complete.md");

const BRIEF: &str = include_str!("../prompts/brief.md");
const START_OVER: &str = include_str!("../prompts/start_over.md");
const GRACE: &str = include_str!("../prompts/grace.md");
const GRACE_COMPLETE: &str = include_str!("../prompts/grace_complete.md");
const GRACE_STRUCTURED: &str = include_str!("../prompts/grace_structured.md");
const BUDGET: &str = include_str!("../prompts/budget.md");
const LOOP: &str = include_str!("../prompts/loop.md");
const CUT_OFF: &str = include_str!("../prompts/cut_off.md");
const DROPPED_CALLS: &str = include_str!("../prompts/dropped_calls.md");
const GIVEN_UP: &str = include_str!("../prompts/given_up.md");
const LAST_LEVEL: &str = include_str!("../prompts/last_level.md");
const REMIND: &str = include_str!("../prompts/remind.md");
const DROPPED: &str = include_str!("../prompts/dropped.md");
const COMPACTED: &str = include_str!("../prompts/compacted.md");
const WRONG_ANSWER: &str = include_str!("../prompts/wrong_answer.md");

/// Says that a run goes on, where nobody says anything else.
pub(crate) const GO_ON: &str = include_str!("../prompts/go_on.md");
/// Says which variables of the environment did not come back. See [`is_own`].
const FORGOTTEN: &str = include_str!("../prompts/forgotten.md");
/// Asks for a summary.
pub(crate) const COMPACT: &str = include_str!("../prompts/compact.md");
/// Asks for a look back.
pub(crate) const REFLECT: &str = include_str!("../prompts/reflect.md");
/// Asks for a plan.
pub(crate) const PLAN: &str = include_str!("../prompts/plan.md");

/// Puts values in the place of `${name}`. The texts are ours, so a name without a value is a mistake
/// that a test finds, and stays as it is.
fn fill(template: &str, values: &[(&str, &str)]) -> String {
    let mut text = String::with_capacity(template.len());
    let mut rest = template.trim_end();
    while let Some((before, after)) = rest.split_once("${") {
        text.push_str(before);
        let known = after.split_once('}').and_then(|(name, after)| {
            let value = values.iter().find(|(known, _)| *known == name)?.1;
            Some((value, after))
        });
        if let Some((value, after)) = known {
            text.push_str(value);
            rest = after;
        } else {
            text.push_str("${");
            rest = after;
        }
    }
    text.push_str(rest);
    text
}

/// Says which variables of the environment did not come back, by their names.
pub(crate) fn forgotten(names: &[String]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    fill(FORGOTTEN, &[("names", &names.join(", "))])
}

/// Tells whether a text is what [`forgotten`] says.
pub(crate) fn is_forgotten(text: &str) -> bool {
    FORGOTTEN.split_once("${").is_some_and(|(beginning, _)| text.starts_with(beginning))
}

/// Tells whether a text that stands in the place of what a person said was said by the runtime.
pub(crate) fn is_own(text: &str) -> bool {
    text == GO_ON.trim_end() || is_forgotten(text)
}

pub(crate) fn grace(cause: Cause, ending: Ending) -> String {
    let reason = match cause {
        Cause::MaxTurns => "all turns but this one are used",
        Cause::Timeout => "the time is up",
        Cause::MaxToolCalls => "all tool calls are used",
        _ => "you have not completed the task",
    };
    let template = match ending {
        Ending::Text => GRACE,
        Ending::Structured => GRACE_STRUCTURED,
        Ending::StructuredOrCall | Ending::CompleteTask => GRACE_COMPLETE,
    };
    fill(template, &[("reason", reason)])
}

pub(crate) fn budget(limit: Limit, used: f64) -> String {
    let budget = match limit {
        Limit::Turns => "turns",
        Limit::Time | Limit::TurnTime => "seconds",
        Limit::Tokens => "tokens",
        Limit::Cost => "dollars",
        Limit::ToolCalls => "tool calls",
    };
    fill(BUDGET, &[("used", &format!("{:.0}", used * 100.0)), ("budget", budget)])
}

pub(crate) fn repetition(tool: &str, times: u32) -> String {
    fill(LOOP, &[("tool", tool), ("times", &times.to_string())])
}

pub(crate) fn start_over(tool: &str) -> String {
    fill(START_OVER, &[("tool", tool)])
}

pub(crate) fn brief(task: &str, words: &str) -> String {
    fill(BRIEF, &[("task", task), ("words", words)])
}

pub(crate) fn cut_off() -> String {
    fill(CUT_OFF, &[])
}

/// Tells an agent that was granted others why it has no tool to call them.
pub(crate) fn last_level() -> String {
    fill(LAST_LEVEL, &[])
}

pub(crate) fn remind() -> String {
    fill(REMIND, &[])
}

pub(crate) fn dropped_calls(taken: u32, dropped: u32) -> String {
    let (taken, dropped) = (taken.to_string(), dropped.to_string());
    fill(DROPPED_CALLS, &[("taken", &taken), ("dropped", &dropped)])
}

pub(crate) fn given_up(agents: &str) -> String {
    fill(GIVEN_UP, &[("agents", agents)])
}

pub(crate) fn dropped(read: &str, changed: &str) -> String {
    fill(DROPPED, &[("read", read), ("changed", changed)])
}

pub(crate) fn compacted(summary: &str, read: &str, changed: &str) -> String {
    fill(COMPACTED, &[("summary", summary), ("read", read), ("changed", changed)])
}

pub(crate) fn wrong_answer(problems: &str, schema: &str) -> String {
    fill(WRONG_ANSWER, &[("problems", problems), ("schema", schema)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_put_in_once_and_never_read_again() {
        assert_eq!(fill("a ${x} b ${y}", &[("x", "${y}"), ("y", "2")]), "a ${y} b 2");
        assert_eq!(fill("${unknown} and ${", &[]), "${unknown} and ${");
    }

    #[test]
    fn no_text_has_a_gap() {
        let texts = [
            grace(Cause::MaxTurns, Ending::CompleteTask),
            grace(Cause::NoCompletion, Ending::Text),
            grace(Cause::Timeout, Ending::Structured),
            budget(Limit::Cost, 0.81),
            repetition("grep", 3),
            start_over("grep"),
            brief("t", "w"),
            cut_off(),
            remind(),
            dropped_calls(128, 3),
            given_up("a"),
            forgotten(&["A".to_owned()]),
            last_level(),
            compacted("s", "r", "c"),
            dropped("r", "c"),
            wrong_answer("- x", "{}"),
            SYSTEM.to_owned(),
        ];
        for text in texts {
            assert!(!text.contains("${"), "{text}");
        }
    }
}
