//! What a server asks, answered from another terminal: by what the command names, or here, field by field.

use convoke::journal::OpenQuestion;
use serde_json::{Map, Value};

use super::meant::described;
use crate::commands::ask;
use crate::commands::inquiry::{Answering, Step};
use crate::commands::mcp::unless_stopped;
use crate::commands::run::approve::{Keys, Said};
use crate::commands::run::watch::threads;
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
        return threads()?.block_on(unless_stopped(filled_in(answering, question, output)));
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

/// Asks for each field. Whoever stops the command leaves the terminal as it was.
async fn filled_in(
    mut answering: Answering,
    question: &OpenQuestion<'_>,
    output: &Output,
) -> Option<Map<String, Value>> {
    let agent = Some(question.agent_label.as_str()).filter(|_| !question.agent.is_root());
    Keys::Terminal.forget();
    answering.show(question.tool_name, agent, &output.err);
    loop {
        let mut line = Keys::Terminal.line(answering.typed());
        answering.prompt(&output.err);
        let said = match &mut line {
            Some(line) => line.next().await,
            None => Said::Line(None),
        };
        drop(line);
        let Said::Line(said) = said else { return None };
        if said.is_none() {
            // The end of input leaves the cursor behind the question.
            output.err.line("");
        }
        match answering.hear(said.as_deref(), &output.err) {
            Step::Ask => {}
            Step::Send(entered) => return Some(entered),
            Step::Decline => {
                output.err.line("  (not answered; the question stays open)");
                return None;
            }
        }
    }
}
