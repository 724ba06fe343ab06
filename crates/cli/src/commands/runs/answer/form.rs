//! What a server asks, answered from another terminal: by what the command names, or here, field by field.

use std::io::{self, BufRead};

use convoke::journal::OpenQuestion;
use serde_json::{Map, Value};

use super::meant::described;
use crate::commands::ask;
use crate::commands::inquiry::{Answering, Step};
use crate::commands::run::approve::forget_what_was_typed;
use crate::failure::Failure;
use crate::output::Output;

/// Returns what the server is told; nothing, if somebody thought better of it.
pub(super) fn entered(
    answering: Answering,
    question: &OpenQuestion<'_>,
    arguments: Option<&Value>,
    output: &Output,
) -> Result<Option<Map<String, Value>>, Failure> {
    if arguments.is_none() && ask::can_be_asked(output) {
        return Ok(filled_in(answering, question, output));
    }
    let named = arguments.and_then(Value::as_object).cloned().unwrap_or_default();
    let Some(form) = answering.form() else {
        if named.is_empty() {
            return Ok(Some(named));
        }
        return Err(Failure::usage("a page is opened, not filled in; leave out --arguments"));
    };
    form.filled(named).map(Some).map_err(|problem| {
        let failure = Failure::usage(format!("this does not fit the form: {problem}"));
        let failure = failure.hint(described(question));
        answering.field_lines().into_iter().fold(failure, Failure::hint)
    })
}

fn filled_in(
    mut answering: Answering,
    question: &OpenQuestion<'_>,
    output: &Output,
) -> Option<Map<String, Value>> {
    let agent = Some(question.agent_label.as_str()).filter(|_| !question.agent.is_root());
    forget_what_was_typed();
    answering.show(question.tool_name, agent, &output.err);
    loop {
        answering.prompt(&output.err);
        let mut line = String::new();
        let read = io::stdin().lock().read_line(&mut line);
        match answering.hear(read.ok().filter(|read| *read > 0).map(|_| &*line), &output.err) {
            Step::Ask => {}
            Step::Send(entered) => return Some(entered),
            Step::Decline => {
                output.err.line("  (not answered; the question stays open)");
                return None;
            }
        }
    }
}
