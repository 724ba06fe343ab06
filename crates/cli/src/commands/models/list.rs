//! `convoke models list`.

use std::time::Duration;

use clap::Args;
use convoke::Runtime;
use convoke::model::{ListedModel, ModelName, Provider, list_models};
use convoke_core::ExitCode;
use serde_json::json;

use super::super::run::watch::threads;
use crate::failure::Failure;
use crate::output::{Output, Style, Table};
use crate::session::Session;

/// How long a provider may take to send its list.
const PATIENCE: Duration = Duration::from_secs(10);

const AFTER_HELP: &str = "\
Without a provider, lists the providers: where each is, and whether there is a key for it. Nobody is \
asked. With one, asks it for its models; for those whose price is known, dollars per million tokens \
are shown. What model.facts says goes before what is built in.

Examples:
  convoke models list
  convoke models list ollama
  convoke models list openai --json | jq -r '.[].name'";

/// List providers, or the models of one
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct List {
    /// The provider whose models are wanted
    provider: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl List {
    pub(super) fn run(
        self,
        session: &Session<'_>,
        output: &mut Output,
    ) -> Result<ExitCode, Failure> {
        let config = session.load(output)?.config;
        let runtime = session.runtime(config)?;
        Session::warn_of_entries(&runtime, output);
        match &self.provider {
            None => self.providers(&runtime, output),
            Some(name) => self.models(&runtime, name, output)?,
        }
        Ok(ExitCode::Done)
    }

    fn providers(&self, runtime: &Runtime, output: &mut Output) {
        let sources = runtime.models();
        let names = sources.provider_names();
        let rows: Vec<(String, Result<Provider, String>)> = names
            .into_iter()
            .map(|name| {
                let found = sources.provider_named(name).map_err(|error| format!("{error}"));
                (name.to_owned(), found)
            })
            .collect();
        if self.json {
            let rows: Vec<_> = rows
                .iter()
                .map(|(name, provider)| match provider {
                    Ok(provider) => json!({
                        "provider": name, "wire": provider.wire.as_str(),
                        "baseUrl": provider.address(), "usable": true,
                        "hasKey": provider.key.is_some(),
                    }),
                    Err(hint) => json!({ "provider": name, "usable": false, "hint": hint }),
                })
                .collect();
            return output.json(&rows);
        }
        let mut table = Table::default().titled(["provider", "wire", "address", "key"]);
        for (name, provider) in &rows {
            match provider {
                Ok(provider) => {
                    let key = if provider.key.is_some() { "key is set" } else { "needs no key" };
                    table.row([
                        (name.clone(), Some(Style::Name)),
                        (provider.wire.as_str().to_owned(), None),
                        (provider.address(), None),
                        (key.to_owned(), Some(Style::Good)),
                    ]);
                }
                Err(hint) => table.row([
                    (name.clone(), Some(Style::Name)),
                    (String::new(), None),
                    (String::new(), None),
                    (hint.clone(), Some(Style::Warn)),
                ]),
            }
        }
        table.print(&output.out);
    }

    fn models(&self, runtime: &Runtime, name: &str, output: &mut Output) -> Result<(), Failure> {
        let provider = runtime
            .models()
            .provider_named(name)
            .map_err(|error| Failure::configuration(error.to_string()).hint(error.hint()))?;
        let transport = runtime.transport(&runtime.models().network()).clone();
        let listed = threads()?.block_on(list_models(provider, &transport, PATIENCE));
        let models = listed.map_err(|error| {
            Failure::new(convoke_core::Cause::ModelUnavailable, error.to_string())
                .any_hint(error.hint)
        })?;
        let sources = runtime.models();
        let known = |model: &ListedModel| {
            sources.facts_of_listed(&ModelName::new(name, model.name.as_str()), model.facts())
        };
        if self.json {
            let rows: Vec<_> = models
                .iter()
                .map(|model| json!({ "name": format!("{name}/{}", model.name), "facts": known(model) }))
                .collect();
            output.json(&rows);
            return Ok(());
        }
        let mut table = Table::default().titled(["model", "window", "input", "output"]);
        for model in &models {
            let facts = known(model);
            let window = facts.window.map(|tokens| tokens.to_string()).unwrap_or_default();
            let price = |pick: fn(&convoke_core::Price) -> convoke_core::Money| {
                facts.price.as_ref().map(|price| pick(price).to_string()).unwrap_or_default()
            };
            let (input, out) = (price(|price| price.input), price(|price| price.output));
            table.row([
                (
                    output.out.printable(&format!("{name}/{}", model.name)).to_string(),
                    Some(Style::Name),
                ),
                (window, None),
                (input, None),
                (out, None),
            ]);
        }
        table.print(&output.out);
        Ok(())
    }
}
