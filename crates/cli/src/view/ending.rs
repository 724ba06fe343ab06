//! How a run ended that did not reach its goal, in words: the same for every cause, every time.

use convoke_core::{Budget, Cause};
use serde_json::Value;

use super::amounts;
use super::json::RunReport;
use crate::duration;
use crate::failure::Failure;

/// Returns the word a cause has in JSON.
pub(crate) fn word(cause: Cause) -> String {
    match serde_json::to_value(cause) {
        Ok(Value::String(word)) => word,
        _ => "unknown".to_owned(),
    }
}

/// Says why a run did not reach its goal and what to do about it; nothing, if it did.
pub(crate) fn failure(report: &RunReport, budget: &Budget) -> Option<Failure> {
    Some(reason(report)?.any_hint(hint(report, budget)))
}

/// Says why a run did not reach its goal; nothing, if it did.
pub(crate) fn reason(report: &RunReport) -> Option<Failure> {
    if report.cause == Cause::Goal {
        return None;
    }
    let recovered = match report.cause {
        _ if !report.recovered => "",
        Cause::Denied => "; it answered all the same",
        _ => "; a last answer was recovered",
    };
    let message = format!("{} ({}){recovered}", sentence(report), word(report.cause));
    let failure = Failure::new(report.cause, message);
    Some(failure.causes(report.message.clone()))
}

/// Returns what happened.
fn sentence(report: &RunReport) -> String {
    let usage = &report.usage;
    match report.cause {
        Cause::Usage => "the run was asked for wrongly".to_owned(),
        Cause::Denied => "the run was not allowed to do what it wanted".to_owned(),
        Cause::MaxTurns => {
            format!("stopped after {}", amounts::count(report.turns.into(), "turn"))
        }
        Cause::Timeout => format!("stopped after {}", amounts::time(report.duration_ms.get())),
        Cause::MaxTokens | Cause::MaxCost if report.turns == 0 => {
            "stopped before the first request, which would pass the limit".to_owned()
        }
        Cause::MaxTokens => {
            let tokens = usage.input_tokens.saturating_add(usage.output_tokens);
            format!("stopped after {} tokens", amounts::tokens(tokens))
        }
        Cause::MaxCost => match usage.cost {
            Some(cost) => format!("stopped after {}", amounts::money(cost)),
            None => "stopped, since the cost cannot be known".to_owned(),
        },
        Cause::MaxToolCalls => {
            format!("stopped after {}", amounts::count(report.tool_calls.into(), "tool call"))
        }
        Cause::ContextWindow => "the conversation no longer fits the model".to_owned(),
        Cause::Loop => "stuck: the same thing happened again and again".to_owned(),
        Cause::NoCompletion => "the model stopped without completing its task".to_owned(),
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
pub(crate) fn hint(report: &RunReport, budget: &Budget) -> Option<String> {
    let more = |flag: &str, value: String| format!("`{flag} {value}` lets it go on for longer");
    let double = |number: u64| number.saturating_mul(2).max(2).to_string();
    let hint = match report.cause {
        Cause::MaxTurns => more("--max-turns", double(budget.turns.into())),
        Cause::Timeout => more("--timeout", duration::show(budget.time_ms.get().saturating_mul(2))),
        Cause::MaxTokens | Cause::MaxCost if report.turns == 0 => {
            "a higher limit lets it start".to_owned()
        }
        Cause::MaxTokens => more("--max-tokens", double(budget.tokens.unwrap_or_default())),
        Cause::MaxCost if report.usage.cost.is_none() => {
            "a price for the model in the configuration makes its cost known".to_owned()
        }
        Cause::MaxCost => {
            let limit = budget.cost.unwrap_or_default();
            more("--max-cost", (limit + limit).amount().normalize().to_string())
        }
        Cause::MaxToolCalls => {
            let calls = double(budget.tool_calls.unwrap_or_default().into());
            more("--set", format!("budget.toolCalls={calls}"))
        }
        Cause::ContextWindow => {
            "a smaller task, or a model with a larger window, may help".to_owned()
        }
        Cause::Loop | Cause::NoCompletion => {
            "a task that says more exactly what is wanted, or another model, may help".to_owned()
        }
        Cause::ModelUnavailable => {
            "`convoke models check` says which model is asked, why, and whether it answers"
                .to_owned()
        }
        Cause::Configuration => "`convoke config check` says where".to_owned(),
        Cause::Denied | Cause::AwaitsApproval => {
            "`--mode auto_edit` permits changes to files, `--mode full` everything".to_owned()
        }
        _ => return None,
    };
    Some(hint)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use convoke_core::{ExitCode, Millis, Outcome, Usage};
    use insta::assert_snapshot;

    use super::*;
    use crate::output::Output;
    use crate::view::tree::Totals;

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

    fn report(outcome: &Outcome) -> RunReport {
        let totals = Totals {
            run: "r-1".into(),
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
        };
        RunReport::new(&totals, outcome, None)
    }

    fn said(outcome: &Outcome) -> String {
        let mut output = Output::in_memory();
        if let Some(failure) = failure(&report(outcome), &budget()) {
            assert_eq!(failure.code(), outcome.cause.exit_code());
            failure.print(&mut output);
        }
        output.err.contents()
    }

    #[test]
    fn every_cause_has_its_words() {
        let all: String = CAUSES.iter().map(|cause| said(&Outcome::from(*cause))).collect();
        assert_snapshot!(all, @"
        error: the run failed (error)
        error: the run was asked for wrongly (usage)
        error: the run was not allowed to do what it wanted (denied)
        hint: `--mode auto_edit` permits changes to files, `--mode full` everything
        error: stopped after 30 turns (max_turns)
        hint: `--max-turns 60` lets it go on for longer
        error: stopped after 10 m 00 s (timeout)
        hint: `--timeout 20m` lets it go on for longer
        error: stopped after 50.0k tokens (max_tokens)
        hint: `--max-tokens 100000` lets it go on for longer
        error: stopped after $0.5000 (max_cost)
        hint: `--max-cost 1` lets it go on for longer
        error: stopped after 10 tool calls (max_tool_calls)
        hint: `--set budget.toolCalls=20` lets it go on for longer
        error: the conversation no longer fits the model (context_window)
        hint: a smaller task, or a model with a larger window, may help
        error: stuck: the same thing happened again and again (loop)
        hint: a task that says more exactly what is wanted, or another model, may help
        error: the model stopped without completing its task (no_completion)
        hint: a task that says more exactly what is wanted, or another model, may help
        error: no model answers (model_unavailable)
        hint: `convoke models check` says which model is asked, why, and whether it answers
        error: the configuration is wrong (configuration)
        hint: `convoke config check` says where
        error: an approval is awaited (awaits_approval)
        hint: `--mode auto_edit` permits changes to files, `--mode full` everything
        error: the state directory cannot be used (state)
        error: the run was interrupted (interrupted)
        error: the run was ended by the system (terminated)
        ");
    }

    #[test]
    fn text_and_json_use_the_same_word_and_only_the_goal_says_nothing() {
        for cause in CAUSES {
            let outcome = Outcome::from(*cause);
            let json = serde_json::to_value(report(&outcome)).unwrap();
            let word = json["cause"].as_str().unwrap();
            let said = said(&outcome);
            assert_eq!(said.contains(&format!("({word})")), *cause != Cause::Goal, "{said}");
            assert_eq!(said.is_empty(), cause.exit_code() == ExitCode::Done);
            assert_eq!(json["exitCode"], cause.exit_code() as u8);
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
        let mut report =
            report(&Outcome::from(Cause::MaxCost).because("no price is known for `m`"));
        report.usage.cost = None;
        let mut output = Output::in_memory();
        failure(&report, &budget()).unwrap().print(&mut output);
        assert_snapshot!(output.err.contents(), @"
        error: stopped, since the cost cannot be known (max_cost)
        cause: no price is known for `m`
        hint: a price for the model in the configuration makes its cost known
        ");
    }
}
