//! What came of looking at the work so far: a plan, a judgement, a summary.

use serde_json::Value;

use super::super::decide::TOO_LONG;
use super::super::{Due, Failure, Phase, Run, Strategy};
use crate::event::{ActionType, PlanStep, Reflection, Verdict};
use crate::outcome::Cause;

impl Run {
    pub(super) fn compact(&mut self, kept_from: usize, summary: Option<&str>) {
        self.phase = Phase::Ready;
        self.due.remove(&Due::StartOver);
        let was_too_long = self.due.remove(&Due::Shorten);
        self.compacted_in = Some(self.turn.number);
        if let Some(summary) = summary {
            self.conversation.compact(kept_from, summary);
            self.compaction_refused_at = None;
            return;
        }
        self.compaction_refused_at = Some(self.conversation.tokens);
        if was_too_long {
            let message = TOO_LONG.to_owned();
            self.failure = Some(Failure { cause: Cause::ContextWindow, message });
        }
    }

    pub(super) fn reflect(&mut self, reflection: &Reflection) {
        self.phase = Phase::Ready;
        self.due.remove(&Due::Reflect);
        match reflection.verdict {
            Verdict::Continue => {}
            Verdict::Replan => {
                self.notices.push(in_words(reflection));
                if self.settings.strategy == Strategy::Planned {
                    self.due.insert(Due::Plan);
                }
            }
            Verdict::Complete => {
                self.notices.push(in_words(reflection));
                self.due.insert(Due::WrapUp);
            }
        }
        if let Some(task) = &mut self.task {
            task.reflections.push(reflection.clone());
        }
    }

    pub(super) fn plan(&mut self, steps: &[PlanStep]) {
        self.phase = Phase::Ready;
        self.due.remove(&Due::Plan);
        if !steps.is_empty() {
            let lines =
                steps.iter().enumerate().map(|(index, step)| step_in_words(index + 1, step));
            self.notices.push(format!("The plan:\n{}", lines.collect::<Vec<_>>().join("\n")));
        }
        if let Some(task) = &mut self.task {
            task.plan = steps.to_vec();
        }
    }
}

fn in_words(reflection: &Reflection) -> String {
    let mut text = format!("Looking back: {}", reflection.assessment);
    for lesson in &reflection.lessons {
        text.push_str(&format!("\n- {lesson}"));
    }
    if let Some(focus) = &reflection.next_focus {
        text.push_str(&format!("\nNext: {focus}"));
    }
    text
}

fn step_in_words(number: usize, step: &PlanStep) -> String {
    let what = match (step.action_type, &step.tool) {
        (ActionType::Respond, _) => "answer".to_owned(),
        (ActionType::ToolCall, Some(tool)) => format!("`{tool}`"),
        (ActionType::Delegate, Some(agent)) => format!("hand over to `{agent}`"),
        (ActionType::ToolCall | ActionType::Delegate, None) => "act".to_owned(),
    };
    let with = match &step.params {
        Value::Null => String::new(),
        Value::String(text) => format!(": {text}"),
        params => format!(" {params}"),
    };
    let after = match step.depends_on.as_slice() {
        [] => String::new(),
        steps => format!(" (after {})", steps.join(", ")),
    };
    format!("{number}. {}: {what}{with}{after}", step.id)
}
