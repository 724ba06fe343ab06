//! `convoke tools show`: everything about one tool.

mod example;
pub(in crate::commands) mod fields;

use clap::Args;
use convoke::Runtime;
use convoke_core::{ExitCode, Permission, ToolSpec};

use self::fields::{Field, Side, fields};
use super::{Listed, permission, servers, unknown_tool};
use crate::duration;
use crate::failure::Failure;
use crate::output::{Output, Stream, Style, Table, wrap};
use crate::session::Session;

const AFTER_HELP: &str = "\
Examples:
  convoke tools show grep
  convoke tools show read_file --json
  convoke tools show files.read_text_file";

/// Show everything about one tool
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Show {
    /// The tool
    name: String,
    /// Print the spec as JSON, with `offered` and `permission`
    #[arg(long)]
    json: bool,
}

impl Show {
    /// Runs the command.
    pub(super) fn run(
        &self,
        session: &Session<'_>,
        output: &mut Output,
    ) -> Result<ExitCode, Failure> {
        let runtime = session.runtime(session.load(output)?.config)?;
        session.warn_of_servers_in_common(&runtime, output);
        let (name, started) = servers::known_as(&self.name, &runtime, output)?;
        let tool = runtime.registry().get(&name);
        let tool = tool.ok_or_else(|| unknown_tool(&name, &runtime))?;
        if self.json {
            output.json(&Listed::new(tool.spec(), &runtime));
        } else {
            print(tool.spec(), &runtime, &output.out);
        }
        started.end(&runtime);
        Ok(ExitCode::Done)
    }
}

fn print(spec: &ToolSpec, runtime: &Runtime, out: &Stream) {
    out.line(out.paint(Style::Name, out.printable(&spec.name)));
    paragraph(&spec.description, 2, out);
    out.gap();
    let mut table = Table::indented(2);
    for (label, value) in facts(spec, runtime) {
        let is_permission = label == "permission";
        let style = is_permission.then(|| Style::of(runtime.permission_of(spec)));
        let value = out.printable(&value).to_string();
        table.row([(label.to_owned(), None), (value, style)]);
    }
    table.print(out);
    section("Parameters", &fields(&spec.parameters, Side::Parameters), "none", out);
    if let Some(value) = &spec.output {
        section("Output", &fields(value, Side::Output), &fields::type_of(value), out);
    }
    out.gap();
    out.line(out.paint(Style::Heading, "Example"));
    let example = example::command_line(spec, permission(runtime, spec.kind));
    out.line(format_args!("  {}", out.printable(&example)));
}

/// Returns what there is to say about a tool in a word or two each.
fn facts(spec: &ToolSpec, runtime: &Runtime) -> Vec<(&'static str, String)> {
    let callable = runtime.callable().get(&spec.name).is_some();
    let offered = match (callable, runtime.offered().get(&spec.name).is_some()) {
        (false, _) => "no, and it cannot be called: the configuration excludes it",
        (true, true) => "yes",
        (true, false) => "no",
    };
    let permission = match runtime.permission_of(spec) {
        Permission::Allow => "allow",
        Permission::Ask => "ask (a person is asked first)",
        Permission::Deny => "deny",
    };
    let mut facts = vec![
        ("category", spec.category.to_string()),
        ("kind", spec.kind.to_string()),
        ("permission", permission.to_owned()),
        ("offered", offered.to_owned()),
        ("timeout", duration::show(runtime.timeout_of(spec))),
        ("repeat", spec.repeat.to_string()),
        ("effects", effects(spec)),
    ];
    if let Some(server) = servers::server_of(spec, runtime) {
        facts.insert(1, ("server", server));
    }
    let aliases: Vec<String> =
        spec.aliases.iter().map(|(alias, name)| format!("{alias} for {name}")).collect();
    for (label, values) in [("aliases", aliases), ("requires", spec.requires.clone())] {
        if !values.is_empty() {
            facts.push((label, values.join(", ")));
        }
    }
    facts.extend(spec.version.clone().map(|version| ("version", version)));
    facts
}

fn effects(spec: &ToolSpec) -> String {
    let rules = &spec.effects;
    let lists = [("reads", &rules.reads), ("writes", &rules.writes), ("fetches", &rules.urls)];
    let parts: Vec<String> = lists
        .iter()
        .filter(|(_, names)| !names.is_empty())
        .map(|(verb, names)| format!("{verb} {}", names.join(", ")))
        .collect();
    if parts.is_empty() { "none named by arguments".to_owned() } else { parts.join("; ") }
}

fn section(title: &str, fields: &[Field], empty: &str, out: &Stream) {
    out.gap();
    out.line(out.paint(Style::Heading, title));
    if fields.is_empty() {
        out.line(format_args!("  {}", out.printable(empty)));
    }
    for field in fields {
        let indent = 2 + 2 * field.depth;
        let name = out.paint(Style::Name, out.printable(&field.name));
        let about = out.paint(Style::Dim, out.printable(&field.about));
        out.line(format_args!("{:indent$}{name}  {about}", ""));
        paragraph(&field.description, indent + 4, out);
    }
}

/// Writes a text as a block that fits.
fn paragraph(text: &str, indent: usize, out: &Stream) {
    let room = out.width().map(|width| width.min(100).saturating_sub(indent));
    for line in wrap(text, room) {
        out.line(format_args!("{:indent$}{}", "", out.printable(&line)));
    }
}
