//! `convoke mcp prompts` and `resources`: what a server has beside tools.

use std::sync::Arc;

use clap::Args;
use convoke::McpServers;
use convoke::config::Timeout;
use convoke::mcp::client::{Prompt, Resource, ResourceTemplate};
use convoke_core::ExitCode;
use serde_json::json;

use super::advice::failed;
use super::{find, runtime_for, test};
use crate::duration;
use crate::failure::Failure;
use crate::output::{Output, Style, Table};
use crate::session::Session;

const AFTER_PROMPTS: &str = "\
Starts the server and asks for its prompts. In a chat, /SERVER:PROMPT sends one, and asks for what it takes. The \
columns are: the name; what it takes, with a ? behind what may be left out; what it is for.

Examples:
  convoke mcp prompts docs
  convoke mcp prompts docs --json | jq -r '.[].name'";

const AFTER_RESOURCES: &str = "\
Starts the server and asks what can be read from it. In a chat, @SERVER:ADDRESS attaches it; in an address, a word in \
braces is to be filled in. The columns are: the address; the name; what it is.

Examples:
  convoke mcp resources docs
  convoke mcp resources docs --json | jq -r '.resources[].uri'";

/// List the prompts of a server
#[derive(Debug, Args)]
#[command(after_help = AFTER_PROMPTS)]
pub(crate) struct Prompts {
    #[command(flatten)]
    asked: Asked,
}

/// List what can be read from a server
#[derive(Debug, Args)]
#[command(after_help = AFTER_RESOURCES)]
pub(crate) struct Resources {
    #[command(flatten)]
    asked: Asked,
}

#[derive(Debug, Args)]
struct Asked {
    /// The server
    name: String,
    /// How long the server may take to start
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = duration::parse)]
    timeout: Timeout,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Prompts {
    /// Runs the command.
    pub(super) fn run(
        &self,
        session: &Session<'_>,
        output: &mut Output,
    ) -> Result<ExitCode, Failure> {
        let servers = self.asked.look(session, output)?;
        let prompts = servers.servers().known_prompts(&self.asked.name);
        if self.asked.json {
            output.json(&prompts);
            return Ok(ExitCode::Done);
        }
        let rows = prompts.iter().map(|prompt| {
            let about = prompt.description.as_ref().or(prompt.title.as_ref());
            (prompt.name.clone(), taken(prompt), about.cloned().unwrap_or_default())
        });
        let table = Table::default().cut().titled(["prompt", "takes", "about"]);
        print(table, rows.collect(), "it has no prompts", output);
        Ok(ExitCode::Done)
    }
}

impl Resources {
    /// Runs the command.
    pub(super) fn run(
        &self,
        session: &Session<'_>,
        output: &mut Output,
    ) -> Result<ExitCode, Failure> {
        let servers = self.asked.look(session, output)?;
        let (resources, templates) = servers.servers().known_resources(&self.asked.name);
        if self.asked.json {
            output.json(&json!({ "resources": resources, "templates": templates }));
            return Ok(ExitCode::Done);
        }
        let about = |text: &Option<String>| text.clone().unwrap_or_default();
        let resource =
            |one: &Resource| (one.uri.clone(), one.name.clone(), about(&one.description));
        let template = |one: &ResourceTemplate| {
            (one.uri_template.clone(), one.name.clone(), about(&one.description))
        };
        let rows = resources.iter().map(resource).chain(templates.iter().map(template));
        let table = Table::default().cut().titled(["address", "name", "about"]);
        print(table, rows.collect(), "there is nothing to read", output);
        Ok(ExitCode::Done)
    }
}

impl Asked {
    /// Starts the server, asks for all that it has, and ends it.
    fn look(&self, session: &Session<'_>, output: &mut Output) -> Result<Arc<McpServers>, Failure> {
        let runtime = runtime_for(&self.name, session, output)?;
        let (servers, listed) = find(&self.name, &runtime)?;
        let looked = test::look(&self.name, servers, self.timeout.duration())?;
        match &looked.result {
            Ok(_) => Ok(Arc::clone(servers)),
            Err(error) => Err(failed(listed, error, &runtime, session)),
        }
    }
}

/// Returns the names of what a prompt takes.
fn taken(prompt: &Prompt) -> String {
    let mark = |required: bool| if required { "" } else { "?" };
    let names = prompt.arguments.iter().map(|one| format!("{}{}", one.name, mark(one.required)));
    names.collect::<Vec<_>>().join(" ")
}

fn print(mut table: Table, rows: Vec<(String, String, String)>, nothing: &str, output: &Output) {
    let out = &output.out;
    let one_line = |text: &str| {
        let words: Vec<&str> = text.split_whitespace().collect();
        out.printable(&words.join(" ")).to_string()
    };
    let is_empty = rows.is_empty();
    for (name, what, about) in rows {
        table.row([
            (one_line(&name), Some(Style::Name)),
            (one_line(&what), Some(Style::Dim)),
            (one_line(&about), None),
        ]);
    }
    table.print(out);
    if is_empty && !output.is_quiet() {
        output.err.line(nothing);
    }
}
