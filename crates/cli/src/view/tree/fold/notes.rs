//! Remarks: what is neither a call nor an answer, in words.

use convoke_core::event::{ActionType, PlanStep, Reflection, Verdict};
use convoke_core::policy::RuleSpec;
use convoke_core::{Cause, EventBody, Limit};

use super::{NAME, Told};
use crate::output::first_sentence;
use crate::view::amounts;
use crate::view::brief::{self, REMARK, one_line};
use crate::view::tree::{Said, Weight};

/// Returns what an event gives to remark.
pub(super) fn notes(body: &EventBody) -> Told {
    let (weight, text) = match body {
        EventBody::Plan { steps } => return plan(steps),
        EventBody::Warning { message } => (Weight::Warning, line(message)),
        EventBody::Error { message } => (Weight::Error, line(message)),
        EventBody::Notice { message } => (Weight::Detail, format!("told: {}", line(message))),
        EventBody::Reflection(reflection) => (Weight::Usual, looked_back(reflection)),
        EventBody::Compaction { before, after, summary, .. } => {
            (Weight::Usual, compaction(*before, *after, summary.is_some()))
        }
        // The end of the run says it, unless the run goes on.
        EventBody::ModelFailed { purpose, cause, .. }
            if purpose.is_turn() && *cause != Cause::ContextWindow =>
        {
            return Told::new();
        }
        EventBody::ModelFailed { message, hint, .. } => {
            let hint = hint.as_ref().map(|hint| format!(" ({hint})")).unwrap_or_default();
            (Weight::Caution, line(&format!("the model did not answer: {message}{hint}")))
        }
        EventBody::LoopDetected { tool_name, times, .. } => {
            let tool = one_line(tool_name, NAME);
            (Weight::Caution, format!("{tool} was called {times} times with the same answer"))
        }
        EventBody::BudgetWarning { budget, used, .. } => {
            (Weight::Caution, format!("{:.0} % of the {} used", used * 100.0, of(*budget)))
        }
        EventBody::BudgetExceeded { why: Some(why), .. } => {
            (Weight::Usual, line(&format!("too little is left for a request: {why}")))
        }
        EventBody::BudgetExceeded { budget, .. } => {
            (Weight::Usual, format!("the {} used up", of(*budget)))
        }
        EventBody::PolicyDecision { tool_name, decision, rule } => {
            let text = format!("policy: {decision} {tool_name} ({rule})");
            (Weight::Detail, line(&text))
        }
        EventBody::ApprovalAnswered { tool_name, approved, message, by, rules, .. } => {
            let answer = if *approved { "approved" } else { "refused" };
            let by = by.as_ref().map(|who| format!(" by {who}")).unwrap_or_default();
            let reason = message.as_ref().map(|said| format!(": {said}")).unwrap_or_default();
            let shown: Vec<String> = rules.iter().map(RuleSpec::shown).collect();
            let always = if shown.is_empty() {
                String::new()
            } else {
                format!(", and from now on {}", shown.join("; "))
            };
            // What the person at this terminal said, the person knows.
            let here = by == " by terminal" || by.is_empty();
            let weight = if here { Weight::Detail } else { Weight::Usual };
            (weight, line(&format!("{answer} {tool_name}{by}{reason}{always}")))
        }
        EventBody::InquiryAnswered { who, accepted, message, by, .. } => {
            let answer = if *accepted { "answered" } else { "told nothing to" };
            let weight = match by.as_deref() {
                // What the person at this terminal said, the person knows.
                Some("terminal") => Weight::Detail,
                _ => Weight::Usual,
            };
            let by = by.as_ref().map(|by| format!(" by {by}")).unwrap_or_default();
            let reason = message.as_ref().map(|said| format!(": {said}")).unwrap_or_default();
            (weight, line(&format!("{answer} {who}{by}{reason}")))
        }
        EventBody::ToolCallDeferred { tool_name, reason } => {
            (Weight::Usual, line(&format!("{tool_name} waits: {reason}")))
        }
        EventBody::HookActed { hook, moment, action, message, .. } => {
            let is_usual = matches!(action.as_str(), "changed" | "asked");
            let weight = if is_usual { Weight::Usual } else { Weight::Warning };
            let reason = message.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
            (weight, line(&format!("hook {hook} ({moment}) {action}{reason}")))
        }
        EventBody::WorkspacePrepared { place, notes } => {
            let mut told = vec![(
                Weight::Usual,
                Said::Note(line(&format!("works in its own {}: {}", place.kind, place.path))),
            )];
            told.extend(notes.iter().map(|note| (Weight::Caution, Said::Note(line(note)))));
            return told;
        }
        EventBody::WorkspaceChanged(report) => {
            let note = |note: &String| (Weight::Caution, Said::Note(line(note)));
            return report.notes.iter().map(note).collect();
        }
        EventBody::AnswerChecked { problems, .. } => match problems.first() {
            Some(problem) => {
                (Weight::Usual, line(&format!("the answer has the wrong shape: {problem}")))
            }
            None => return Told::new(),
        },
        EventBody::McpServerState { server, state, reason } => {
            let weight = if state == "failed" { Weight::Warning } else { Weight::Detail };
            let reason = reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
            (weight, line(&format!("server {server} {state}{reason}")))
        }
        EventBody::RunCancelled { .. } => (Weight::Usual, "stopping".to_owned()),
        EventBody::UserMessage { message } => {
            (Weight::Detail, line(&format!("you: {}", message.words())))
        }
        _ => return Told::new(),
    };
    vec![(weight, Said::Note(text))]
}

fn line(text: &str) -> String {
    one_line(text, REMARK)
}

/// Returns a budget as the beginning of a sentence about it.
const fn of(limit: Limit) -> &'static str {
    match limit {
        Limit::Turns => "turns are",
        Limit::Time => "time is",
        Limit::TurnTime => "time of one turn is",
        Limit::Tokens => "tokens are",
        Limit::Cost => "money is",
        Limit::ToolCalls => "tool calls are",
    }
}

fn compaction(before: u64, after: u64, done: bool) -> String {
    let (before, after) = (amounts::tokens(before), amounts::tokens(after));
    if done {
        format!("summed up the conversation: {before} to {after} tokens")
    } else {
        format!("the conversation of {before} tokens could not be made shorter")
    }
}

fn looked_back(reflection: &Reflection) -> String {
    let verdict = match reflection.verdict {
        Verdict::Complete => "complete",
        Verdict::Continue => "continue",
        Verdict::Replan => "replan",
    };
    line(&format!("looked back, {verdict}: {}", first_sentence(&reflection.assessment)))
}

fn plan(steps: &[PlanStep]) -> Told {
    if steps.is_empty() {
        return vec![(Weight::Usual, Said::Note("made a plan without steps".into()))];
    }
    let step = |(index, step): (usize, &PlanStep)| {
        let what = match (step.action_type, &step.tool) {
            (ActionType::Respond, _) => "answer",
            (ActionType::ToolCall | ActionType::Delegate, Some(tool)) => tool,
            (ActionType::ToolCall, None) => "call a tool",
            (ActionType::Delegate, None) => "hand over",
        };
        line(&format!("{}. {what} {}", index + 1, brief::arguments(&step.params)))
    };
    let text = steps.iter().enumerate().map(step).collect::<Vec<_>>().join("\n");
    let title = format!("plan of {}", amounts::count(steps.len() as u64, "step"));
    vec![(Weight::Usual, Said::Block { title, text })]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_told_of_only_if_it_fails() {
        let weight = |state: &str, reason: Option<&str>| {
            let (server, state) = ("files".to_owned(), state.to_owned());
            let reason = reason.map(str::to_owned);
            let told = notes(&EventBody::McpServerState { server, state, reason });
            told.into_iter().map(|(weight, _)| weight).collect::<Vec<_>>()
        };
        for state in ["starting", "ready", "stopped"] {
            assert_eq!(weight(state, None), [Weight::Detail], "{state}");
        }
        assert_eq!(weight("failed", Some("it ended")), [Weight::Warning]);
    }
}
