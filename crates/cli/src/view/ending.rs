//! How a run ended that did not reach its goal, in words: the same for every cause, every time.

use std::collections::BTreeSet;

use convoke_core::{Cause, Limit, Millis, Outcome, Status};
use serde_json::Value;

use super::amounts;
use super::tree::Totals;
use crate::duration;
use crate::failure::Failure;

/// How to let a run do more.
const MODES: &str = "`--mode auto_edit` permits changes to files, `--mode full` everything";

/// Returns the word a cause has in JSON.
pub(crate) fn word(cause: Cause) -> String {
    match serde_json::to_value(cause) {
        Ok(Value::String(word)) => word,
        _ => "unknown".to_owned(),
    }
}

/// Says how an agent ended, in the words that its caller reads, too.
pub(crate) fn of_agent(cause: Cause) -> String {
    let how = match cause {
        Cause::Goal => return "done".to_owned(),
        Cause::AwaitsApproval => return "waits for an answer".to_owned(),
        Cause::Denied => "was not allowed to do what it wanted",
        Cause::Interrupted | Cause::Terminated => "was stopped",
        _ => "did not complete its task",
    };
    format!("{how} ({})", word(cause))
}

/// Says how many agents of a run that reached its goal did not reach theirs: its answer may lack what they were to find.
pub(crate) fn not_completed(totals: &Totals, outcome: &Outcome) -> Option<String> {
    let left = totals.agents.iter().filter(|agent| agent.status != Status::Completed);
    let causes: Vec<String> = left.map(|agent| word(agent.cause)).collect();
    if outcome.cause != Cause::Goal || causes.is_empty() {
        return None;
    }
    let all = amounts::count(totals.agents.len() as u64, "agent");
    let words: Vec<String> = causes.iter().cloned().collect::<BTreeSet<_>>().into_iter().collect();
    Some(format!("{} of {all} did not complete: {}", causes.len(), words.join(", ")))
}

/// Says why a run did not reach its goal and what to do about it; nothing, if it did.
pub(crate) fn failure(totals: &Totals, outcome: &Outcome) -> Option<Failure> {
    let cause = outcome.cause;
    let failure = reason(totals, outcome)?.any_hint(hint(cause, totals));
    // Who was refused often tries again until a limit ends it.
    let refused =
        would_modes_help(totals) && matches!(cause.status(), Status::Limited | Status::Stuck);
    Some(failure.any_hint(refused.then(|| {
        let calls = amounts::count((totals.denied - totals.refused).into(), "call");
        format!("{calls} had no permission; {MODES}")
    })))
}

/// A mode changes nothing about what a person or a hook said no to, or a rule, or what an agent may do by itself.
const fn would_modes_help(totals: &Totals) -> bool {
    totals.denied > totals.refused
}

/// Says why a run did not reach its goal; nothing, if it did.
pub(crate) fn reason(totals: &Totals, outcome: &Outcome) -> Option<Failure> {
    let cause = outcome.cause;
    if cause == Cause::Goal {
        return None;
    }
    let recovered = match cause {
        _ if !outcome.recovered => "",
        Cause::Denied => "; it answered all the same",
        _ => "; a last answer was recovered",
    };
    let message = format!("{} ({}){recovered}", sentence(cause, totals), word(cause));
    Some(Failure::new(cause, message).causes(outcome.message.clone()))
}

/// Returns what happened.
fn sentence(cause: Cause, totals: &Totals) -> String {
    let usage = &totals.usage;
    match cause {
        Cause::Usage => "the run was asked for wrongly".to_owned(),
        Cause::Denied => "the run was not allowed to do what it wanted".to_owned(),
        Cause::MaxTurns => {
            format!("stopped after {}", amounts::count(totals.turns.into(), "turn"))
        }
        Cause::Timeout if totals.exceeded == Some(Limit::TurnTime) => {
            let time = amounts::time(totals.budget.turn_time_ms.get());
            format!("stopped, since one answer took longer than {time}")
        }
        Cause::Timeout => {
            format!("stopped after {}", amounts::time(totals.elapsed(totals.latest)))
        }
        Cause::MaxTokens | Cause::MaxCost if totals.turns == 0 => {
            "stopped before the first request, which would pass the limit".to_owned()
        }
        Cause::MaxTokens => {
            format!("stopped after {} tokens", amounts::all_tokens(usage))
        }
        Cause::MaxCost => match amounts::cost(usage) {
            Some(cost) => format!("stopped after {cost}"),
            None => "stopped, since the cost cannot be known".to_owned(),
        },
        Cause::MaxToolCalls => {
            format!("stopped after {}", amounts::count(totals.tool_calls.into(), "tool call"))
        }
        Cause::ContextWindow => "the conversation no longer fits the model".to_owned(),
        Cause::Loop => "stuck: the same thing happened again and again".to_owned(),
        Cause::NoCompletion => "the model did not complete its task".to_owned(),
        Cause::ModelUnavailable => "no model answers".to_owned(),
        Cause::Configuration => "the configuration is wrong".to_owned(),
        Cause::AwaitsApproval => "an approval is awaited".to_owned(),
        Cause::State => "the state directory cannot be used".to_owned(),
        Cause::Interrupted => "the run was interrupted".to_owned(),
        Cause::Terminated => "the run was ended by the system".to_owned(),
        _ => "the run failed".to_owned(),
    }
}

/// Returns what to do about it, where that is known.
pub(crate) fn hint(cause: Cause, totals: &Totals) -> Option<String> {
    let budget = &totals.budget;
    let more = |flag: &str, value: String| format!("`{flag} {value}` lets it go on for longer");
    let double = |number: u64| number.saturating_mul(2).max(2).to_string();
    let twice = |time: Millis| duration::show(time.get().saturating_mul(2));
    let hint = match cause {
        Cause::MaxTurns => more("--max-turns", double(budget.turns.into())),
        Cause::Timeout if totals.exceeded == Some(Limit::TurnTime) => {
            format!("`--turn-timeout {}` gives it longer", twice(budget.turn_time_ms))
        }
        Cause::Timeout => more("--timeout", twice(budget.time_ms)),
        Cause::MaxTokens | Cause::MaxCost if totals.turns == 0 => {
            "a higher limit lets it start".to_owned()
        }
        Cause::MaxTokens => more("--max-tokens", double(budget.tokens.unwrap_or_default())),
        Cause::MaxCost if totals.usage.cost.is_none() => {
            "a price for the model in the configuration makes its cost known".to_owned()
        }
        Cause::MaxCost => {
            let limit = budget.cost.unwrap_or_default();
            more("--max-cost", (limit + limit).amount().normalize().to_string())
        }
        Cause::MaxToolCalls => {
            more("--max-tool-calls", double(budget.tool_calls.unwrap_or_default().into()))
        }
        Cause::ContextWindow => {
            "a smaller task, or a model with a larger window, may help".to_owned()
        }
        Cause::Loop | Cause::NoCompletion => {
            "a task that says more exactly what is wanted, or another model, may help".to_owned()
        }
        // It had begun: nothing of that has to be done again.
        Cause::ModelUnavailable if totals.is_kept && totals.turns > 1 => format!(
            "`convoke runs resume {}` goes on where it was, once the model answers; `convoke models check` says \
             whether it does",
            totals.run
        ),
        Cause::ModelUnavailable => {
            "`convoke models check` says which model is asked, why, and whether it answers"
                .to_owned()
        }
        Cause::Configuration => "`convoke config check` says where".to_owned(),
        Cause::AwaitsApproval if totals.is_kept && totals.is_answered => format!(
            "it has its answer; `convoke runs resume {}` goes on, once what it waits for is there",
            totals.run
        ),
        Cause::AwaitsApproval if totals.is_kept => {
            let run = &totals.run;
            format!(
                "`convoke runs approve {run}` or `deny {run}` answers, then `convoke runs resume {run}` goes on"
            )
        }
        Cause::Denied if totals.unanswered > 0 => {
            "nobody answered in time; `--approval-timeout` gives longer, and with `--on-ask park` the run waits for the \
             answer"
                .to_owned()
        }
        Cause::Denied | Cause::AwaitsApproval if would_modes_help(totals) => MODES.to_owned(),
        Cause::Interrupted | Cause::Terminated if totals.is_kept => {
            format!("`convoke runs resume {}` goes on where it was", totals.run)
        }
        _ => return None,
    };
    Some(hint)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use convoke_core::{Budget, ExitCode, Millis, Usage};
    use insta::assert_snapshot;

    use super::*;
    use crate::output::Output;
    use crate::view::json::RunReport;

    const CAUSES: &[Cause] = &[
        Cause::Goal,
        Cause::Error,
        Cause::Usage,
        Cause::Denied,
        Cause::MaxTurns,
        Cause::Timeout,
        Cause::MaxTokens,
        Cause::MaxCost,
        Cause::MaxToolCalls,
        Cause::ContextWindow,
        Cause::Loop,
        Cause::NoCompletion,
        Cause::ModelUnavailable,
        Cause::Configuration,
        Cause::AwaitsApproval,
        Cause::State,
        Cause::Interrupted,
        Cause::Terminated,
    ];

    fn budget() -> Budget {
        Budget {
            turns: 30,
            time_ms: Millis::new(Duration::from_mins(10)),
            tokens: Some(50_000),
            cost: Some("0.50".parse().unwrap()),
            tool_calls: Some(10),
            ..Budget::default()
        }
    }

    fn totals() -> Totals {
        Totals {
            run: "r-1".into(),
            budget: budget(),
            turns: 30,
            tool_calls: 10,
            usage: Usage {
                input_tokens: 49_000,
                output_tokens: 1_000,
                cost: Some("0.49999".parse().unwrap()),
                ..Usage::default()
            },
            latest: convoke_core::Timestamp::from_millis(600_000),
            ..Totals::default()
        }
    }

    fn said(outcome: &Outcome) -> String {
        said_of(&totals(), outcome)
    }

    fn said_of(totals: &Totals, outcome: &Outcome) -> String {
        let mut output = Output::in_memory();
        if let Some(failure) = failure(totals, outcome) {
            assert_eq!(failure.code(), outcome.cause.exit_code());
            failure.print(&mut output);
        }
        output.err.contents()
    }

    #[test]
    fn a_run_that_had_begun_can_go_on_when_its_model_is_back() {
        let kept = Totals { is_kept: true, ..totals() };
        let said = said_of(&kept, &Outcome::from(Cause::ModelUnavailable));
        assert!(said.contains("goes on where it was, once the model answers"), "{said}");
    }

    #[test]
    fn every_cause_has_its_words() {
        let all: String = CAUSES.iter().map(|cause| said(&Outcome::from(*cause))).collect();
        assert_snapshot!(all, @"
        error: the run failed (error)
        error: the run was asked for wrongly (usage)
        error: the run was not allowed to do what it wanted (denied)
        error: stopped after 30 turns (max_turns)
        hint: `--max-turns 60` lets it go on for longer
        error: stopped after 10 m 00 s (timeout)
        hint: `--timeout 20m` lets it go on for longer
        error: stopped after 50.0k tokens (max_tokens)
        hint: `--max-tokens 100000` lets it go on for longer
        error: stopped after $0.5000 (max_cost)
        hint: `--max-cost 1` lets it go on for longer
        error: stopped after 10 tool calls (max_tool_calls)
        hint: `--max-tool-calls 20` lets it go on for longer
        error: the conversation no longer fits the model (context_window)
        hint: a smaller task, or a model with a larger window, may help
        error: stuck: the same thing happened again and again (loop)
        hint: a task that says more exactly what is wanted, or another model, may help
        error: the model did not complete its task (no_completion)
        hint: a task that says more exactly what is wanted, or another model, may help
        error: no model answers (model_unavailable)
        hint: `convoke models check` says which model is asked, why, and whether it answers
        error: the configuration is wrong (configuration)
        hint: `convoke config check` says where
        error: an approval is awaited (awaits_approval)
        error: the state directory cannot be used (state)
        error: the run was interrupted (interrupted)
        error: the run was ended by the system (terminated)
        ");
    }

    #[test]
    fn who_waits_or_was_stopped_did_not_fail() {
        for (cause, words) in [
            (Cause::Goal, "done"),
            (Cause::AwaitsApproval, "waits for an answer"),
            (Cause::Interrupted, "was stopped (interrupted)"),
            (Cause::Denied, "was not allowed to do what it wanted (denied)"),
            (Cause::NoCompletion, "did not complete its task (no_completion)"),
        ] {
            assert_eq!(of_agent(cause), words);
        }
    }

    #[test]
    fn text_and_json_use_the_same_word_and_only_the_goal_says_nothing() {
        for cause in CAUSES {
            let outcome = Outcome::from(*cause);
            let json = serde_json::to_value(RunReport::new(&totals(), &outcome, None)).unwrap();
            let word = json["cause"].as_str().unwrap();
            let said = said(&outcome);
            assert_eq!(said.contains(&format!("({word})")), *cause != Cause::Goal, "{said}");
            assert_eq!(said.is_empty(), cause.exit_code() == ExitCode::Done);
            assert_eq!(json["exitCode"], cause.exit_code() as u8);
            // A program is told why in the same words as a person.
            let message = json["message"].as_str().unwrap_or_default();
            assert!(said.contains(message) && message.is_empty() == said.is_empty(), "{json}");
            let hints = json["hints"].as_array().map_or(0, Vec::len);
            assert_eq!(said.matches("hint: ").count(), hints, "{json}");
        }
    }

    #[test]
    fn a_recovered_answer_does_not_hide_the_cause() {
        let outcome = Outcome { recovered: true, ..Cause::MaxTurns.into() };
        assert_snapshot!(said(&outcome.because("the last\nwords")), @"
        error: stopped after 30 turns (max_turns); a last answer was recovered
        cause: the last
          words
        hint: `--max-turns 60` lets it go on for longer
        ");
    }

    #[test]
    fn a_cost_that_is_not_known_wants_a_price_and_not_more_money() {
        let mut totals = totals();
        totals.usage.cost = None;
        let outcome = Outcome::from(Cause::MaxCost).because("no price is known for `m`");
        assert_snapshot!(said_of(&totals, &outcome), @"
        error: stopped, since the cost cannot be known (max_cost)
        cause: no price is known for `m`
        hint: a price for the model in the configuration makes its cost known
        ");
    }

    #[test]
    fn a_limit_after_refusals_says_how_to_permit_more() {
        let totals = Totals { denied: 2, ..totals() };
        for cause in [Cause::Loop, Cause::NoCompletion, Cause::MaxTurns, Cause::Timeout] {
            let said = said_of(&totals, &cause.into());
            assert!(said.contains("hint: 2 calls had no permission; `--mode auto_edit`"), "{said}");
        }
        for cause in [Cause::Denied, Cause::ModelUnavailable, Cause::Interrupted] {
            assert!(!said_of(&totals, &cause.into()).contains("had no permission"), "{cause:?}");
        }
    }

    #[test]
    fn who_was_not_answered_in_time_needs_no_other_mode() {
        let totals = Totals { denied: 1, unanswered: 1, ..totals() };
        let said = said_of(&totals, &Cause::Denied.into());
        assert!(said.contains("hint: nobody answered in time"), "{said}");
        assert!(!said.contains("--mode"), "{said}");
    }

    #[test]
    fn one_answer_that_took_too_long_is_told_from_a_run_that_did() {
        let totals = Totals { exceeded: Some(Limit::TurnTime), ..totals() };
        assert_snapshot!(said_of(&totals, &Cause::Timeout.into()), @"
        error: stopped, since one answer took longer than 5 m 00 s (timeout)
        hint: `--turn-timeout 10m` gives it longer
        ");
    }
}
