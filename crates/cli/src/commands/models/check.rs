//! `convoke models check`.

use std::time::Instant;

use clap::Args;
use convoke::model::{Chunk, Model, ModelError, ModelErrorKind, Request};
use convoke_core::{Cause, ExitCode, Message, ModelFacts, Role, Usage};
use futures_util::StreamExt;
use serde_json::json;

use super::super::run::{choose, watch::threads};
use crate::failure::Failure;
use crate::output::{Output, Style};
use crate::session::Session;

const AFTER_HELP: &str = "\
Says which model would be asked and why, what is known about it, and asks it one short question.

Examples:
  convoke models check
  convoke models check anthropic/claude-sonnet-4-5
  convoke models check ollama/qwen3 --json

Exit codes:
  0 it answered, 6 it did not, 7 there is none to ask";

/// Find out whether a model answers
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Check {
    /// The model; the one to ask where nobody says, if absent
    name: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Check {
    pub(super) fn run(
        self,
        session: &Session<'_>,
        output: &mut Output,
    ) -> Result<ExitCode, Failure> {
        let config = session.load(output)?.config;
        let runtime = session.runtime(config)?;
        Session::warn_of_entries(&runtime, output);
        let threads = threads()?;
        let why = runtime.models().resolve(self.name.as_deref()).map(|resolved| resolved.why);
        let chosen = choose::model(self.name.as_deref(), &runtime, &threads, output)?;
        let model = chosen.model;
        let began = Instant::now();
        let answered = threads.block_on(ask(model.as_ref()));
        let millis = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        let why = why.unwrap_or_else(|_| "it was found on this machine".to_owned());
        let facts = *model.facts();
        if self.json {
            output.json(&json!({
                "model": model.name().to_string(), "why": why, "facts": facts,
                "answered": answered.is_ok(), "millis": millis,
                "usage": answered.as_ref().ok(),
                "error": answered.as_ref().err().map(ToString::to_string),
                "hint": answered.as_ref().err().and_then(|error| error.hint.clone()),
            }));
            let code = if answered.is_ok() { ExitCode::Done } else { ExitCode::ModelUnavailable };
            return Ok(code);
        }
        let name = output.out.paint(Style::Name, model.name().to_string());
        output.out.line(format_args!("{name}"));
        output.out.line(format_args!("  {why}"));
        output.out.line(format_args!("  {}", known(&facts)));
        match answered {
            Ok(usage) => {
                output.out.line(format_args!(
                    "  it answered in {millis} ms ({} tokens in, {} out)",
                    usage.input_tokens, usage.output_tokens
                ));
                Ok(ExitCode::Done)
            }
            Err(error) => {
                Err(Failure::new(Cause::ModelUnavailable, error.to_string()).any_hint(error.hint))
            }
        }
    }
}

fn known(facts: &ModelFacts) -> String {
    let window = match facts.window {
        Some(window) => format!("window {window} tokens"),
        None => "its window is not known".to_owned(),
    };
    let price = match &facts.price {
        Some(price) => format!("{} in, {} out per million tokens", price.input, price.output),
        None => "its price is not known".to_owned(),
    };
    format!("{window}; {price}")
}

async fn ask(model: &dyn Model) -> Result<Usage, ModelError> {
    let messages = [Message::text(Role::User, "Answer with the word OK.")];
    let mut stream = model.stream(&Request::new(&messages));
    while let Some(chunk) = stream.next().await {
        if let Chunk::End(answer) = chunk? {
            return Ok(answer.usage);
        }
    }
    let provider = model.name().provider();
    Err(ModelError::new(ModelErrorKind::Cut, provider, "the answer ended before it was whole"))
}

#[cfg(test)]
mod tests {
    use convoke::model::{ModelName, ModelStream};
    use futures_util::stream;

    use super::*;

    /// Says something, but never that this was all.
    #[derive(Debug)]
    struct Unfinished(ModelName, ModelFacts);

    impl Model for Unfinished {
        fn name(&self) -> &ModelName {
            &self.0
        }

        fn facts(&self) -> &ModelFacts {
            &self.1
        }

        fn stream(&self, _: &Request<'_>) -> ModelStream {
            Box::pin(stream::iter([Ok(Chunk::Text("O".into()))]))
        }
    }

    #[tokio::test]
    async fn an_answer_without_an_end_is_none() {
        let model = Unfinished(ModelName::new("p", "m"), ModelFacts::default());
        let error = ask(&model).await.unwrap_err();
        assert_eq!(error.to_string(), "p: the answer ended before it was whole");
    }
}
