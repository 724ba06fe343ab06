//! What the chat says itself: where it is, what it can do, what was used.

use convoke::Runtime;
use convoke::agent::Paused;
use convoke::config::Config;
use convoke::mcp::client::ServerState;
use convoke_core::{Message, Mode, ModelFacts, Part, Role};

use super::line::COMMANDS;
use super::mention::Attached;
use crate::output::{Output, Style, Table, columns, cut, first_sentence, harmless};
use crate::view::amounts;
use crate::view::brief::one_line;
use crate::view::look::Look;
use crate::view::message::message;

/// How wide a line of a recap is.
const RECAP: usize = 70;

const KEYS: &[(&str, &str)] = &[
    ("@FILE", "Attach a file; Tab completes its name"),
    ("@SERVER:URI", "Attach what an MCP server lets be read"),
    ("/SERVER:PROMPT", "Say what an MCP server has prepared, filled in"),
    ("@AGENT …", "At the beginning of a line: hand what follows to an agent"),
    ("Enter", "Send; after a \\, or with Alt, begin a new line"),
    ("Up, Ctrl-R", "Go back in what was said, or search it"),
    ("Ctrl-C", "Stop the answer; at the prompt, clear the line; twice, leave"),
    ("Ctrl-D", "Leave"),
];

/// Says where the chat is and how to go on from there, in two lines.
pub(super) fn banner(model: &str, directory: &str, mode: Mode, output: &Output) {
    let err = &output.err;
    let (look, width) = (Look::of(err), err.width_now().unwrap_or(usize::MAX));
    let model = cut(&harmless(model), width, err.ellipsis());
    let place =
        look.joined([Some(String::new()), Some(harmless(directory)), Some(format!("mode {mode}"))]);
    let place = cut(&place, width.saturating_sub(columns(&model)), err.ellipsis());
    err.line(format_args!("{}{place}", err.paint(Style::Name, model)));
    let help = look.joined([
        Some("/help shows commands".to_owned()),
        Some("@file attaches a file".to_owned()),
        Some("Ctrl-D leaves".to_owned()),
    ]);
    err.line(err.paint(Style::Dim, cut(&help, width, err.ellipsis())));
}

/// Says where an earlier conversation stopped. `said` is what the person last said.
pub(super) fn recap(paused: &Paused, said: Option<&str>, output: &Output) {
    let err = &output.err;
    let (turns, usage) = (paused.turns(), paused.spent());
    let facts = Look::of(err).joined([
        Some(amounts::count(turns.into(), "turn")),
        Some(format!("{} tokens", amounts::all_tokens(&usage))),
        amounts::cost(&usage),
    ]);
    let id = err.paint(Style::Name, paused.id()).to_string();
    err.line(format_args!("going on with {id} ({facts})"));
    let answer = last_answer(&paused.messages());
    for (who, words) in [("you", said), ("it", answer.as_deref())] {
        if let Some(words) = words {
            let said = one_line(words, RECAP);
            err.line(err.paint(Style::Dim, format!("  {who}: {said}")));
        }
    }
}

fn last_answer(messages: &[Message]) -> Option<String> {
    let said = messages.iter().rev().filter(|message| message.role == Role::Assistant);
    let words = |message: &Message| {
        let text = message.parts.iter().rev().find_map(Part::as_text)?;
        (!text.trim().is_empty()).then(|| text.to_owned())
    };
    said.into_iter().find_map(words)
}

/// Lists what can be typed.
pub(super) fn help(output: &Output) {
    let mut table = Table::indented(2);
    for usage in COMMANDS {
        let written = format!("/{} {}", usage.name, usage.argument).trim_end().to_owned();
        table.row([(written, Some(Style::Name)), (usage.about.to_owned(), None)]);
    }
    for (keys, about) in KEYS {
        table.row([((*keys).to_owned(), Some(Style::Name)), ((*about).to_owned(), None)]);
    }
    table.row([
        ("//".to_owned(), Some(Style::Name)),
        ("Begin a message with a slash; \\@ is just an @".to_owned(), None),
    ]);
    table.print(&output.err);
}

/// Lists the tools, with what is allowed.
pub(super) fn tools(runtime: &Runtime, output: &Output) {
    let tools = runtime.offered().list();
    if tools.is_empty() {
        return output.err.line("there are no tools");
    }
    let mut table = Table::indented(2).cut();
    for tool in tools {
        let spec = tool.spec();
        let permission = runtime.permission_of(spec);
        table.row([
            (harmless(&spec.name), Some(Style::Name)),
            (permission.to_string(), Some(Style::of(permission))),
            (harmless(first_sentence(&spec.description)), None),
        ]);
    }
    table.print(&output.err);
}

/// Lists the agents that can be called.
pub(super) fn agents(agents: &[(String, String)], output: &Output) {
    if agents.is_empty() {
        return output.err.line("there are no agents to call");
    }
    let mut table = Table::indented(2).cut();
    for (name, description) in agents {
        let what = harmless(first_sentence(description));
        table.row([(harmless(name), Some(Style::Name)), (what, None)]);
    }
    table.print(&output.err);
}

/// Lists the MCP servers, and what they are doing.
pub(super) fn servers(runtime: &Runtime, output: &Output) {
    let Some(servers) = runtime.mcp() else {
        return output.err.line("there are no MCP servers");
    };
    let mut table = Table::indented(2).cut();
    for status in servers.servers().status() {
        let (state, style) = match &status.state {
            _ if !status.enabled => ("off".to_owned(), Style::Dim),
            ServerState::Failed { why, .. } => (format!("failed: {}", harmless(why)), Style::Bad),
            ServerState::Ready => ("ready".to_owned(), Style::Good),
            ServerState::Configured
                if status.setback.as_ref().is_some_and(|one| one.wants_login) =>
            {
                ("wants a login".to_owned(), Style::Bad)
            }
            ServerState::Configured if status.asked.is_some() => {
                ("known, not started".to_owned(), Style::Dim)
            }
            state => (state.as_str().to_owned(), Style::Dim),
        };
        let tools = amounts::count(status.tools as u64, "tool");
        table.row([(status.name, Some(Style::Name)), (tools, None), (state, Some(style))]);
    }
    table.print(&output.err);
}

/// Says what was used, and how full the window is.
pub(super) fn usage(paused: Option<&Paused>, facts: ModelFacts, output: &Output) {
    let err = &output.err;
    let Some(paused) = paused else { return err.line("nothing was used yet") };
    let (look, usage) = (Look::of(err), paused.spent());
    let cost = match usage.cost {
        Some(_) => None,
        None => Some("the price is not known".to_owned()),
    };
    err.line(look.joined([
        Some(amounts::count(paused.turns().into(), "turn")),
        Some(amounts::usage(&usage, look)),
        cost,
    ]));
    let tokens = paused.context_tokens();
    let shown = amounts::tokens(tokens);
    match share(tokens, facts) {
        Some(percent) => {
            let window = amounts::tokens(facts.window.unwrap_or_default());
            err.line(format_args!(
                "the window is {percent} % full: about {shown} of {window} tokens"
            ));
        }
        None => err.line(format_args!(
            "the conversation is about {shown} tokens long; how many the model takes is not known"
        )),
    }
}

/// Returns how full the window of a model is, in percent; nothing, if nobody knows how large it is.
pub(super) fn share(tokens: u64, facts: ModelFacts) -> Option<u64> {
    let window = facts.window.filter(|window| *window > 0)?;
    Some(tokens.saturating_mul(100) / window)
}

/// Says which model is asked, and which others are known without asking anybody.
pub(super) fn models(current: &str, runtime: &Runtime, config: &Config, output: &Output) {
    let err = &output.err;
    err.line(format_args!("{} is asked", err.paint(Style::Name, err.printable(current))));
    let mut table = Table::indented(2);
    for (alias, name) in &config.model.aliases {
        table.row([(alias.clone(), Some(Style::Name)), (name.clone(), None)]);
    }
    table.print(err);
    let providers = usable_providers(runtime);
    if !providers.is_empty() {
        err.line(format_args!("there are keys for {}", providers.join(", ")));
    }
    let hint = "`/model NAME` asks another; `convoke models list` says what there is";
    err.line(err.paint(Style::Dim, hint));
}

/// Returns the names that can be offered for a model.
pub(super) fn model_names(current: &str, runtime: &Runtime, config: &Config) -> Vec<String> {
    let mut names: Vec<String> = config.model.aliases.keys().cloned().collect();
    names.extend(config.model.default.clone());
    names.push(current.to_owned());
    names.extend(usable_providers(runtime).into_iter().map(|name| format!("{name}/")));
    let mut seen = std::collections::BTreeSet::new();
    names.retain(|name| seen.insert(name.clone()));
    names
}

fn usable_providers(runtime: &Runtime) -> Vec<String> {
    let sources = runtime.models();
    let usable = |name: &&str| sources.provider_named(name).is_ok_and(|found| found.key.is_some());
    sources.provider_names().into_iter().filter(usable).map(str::to_owned).collect()
}

/// Shows a line that was said while an answer came, now that it is its turn.
pub(super) fn said(line: &str, output: &Output) {
    output.err.gap();
    for line in message(line, &output.err) {
        output.err.line(line);
    }
}

/// Says which agents a message was for that nobody called. It is said each time: one remark is about one answer.
pub(super) fn not_called(agents: &[String], output: &Output) {
    let err = &output.err;
    for agent in agents {
        let label = err.paint(Style::Warn, "warning:");
        let said = format!(
            "{agent} was named, and the model did not call it; ask again, or run it yourself: `convoke agents run \
             {agent}`"
        );
        err.line(format_args!("{label} {}", err.printable(&said)));
    }
}

/// Says what was attached.
pub(super) fn attached(files: &[Attached], output: &Output) {
    for file in files {
        let err = &output.err;
        let name = err.printable(&file.name).to_string();
        let what = match &file.part {
            Part::Media { mime, .. } => format!("{}, ", err.printable(mime)),
            _ => String::new(),
        };
        let line = format!("  attached {name} ({what}{})", bytes(file.bytes));
        err.line(err.paint(Style::Dim, line));
    }
}

/// Writes how large a file is: `12 bytes`, `3.4 KiB`, `1.2 MiB`.
fn bytes(count: u64) -> String {
    let tenths = |unit: u64, name: &str| {
        let tenths = count.saturating_mul(10) / unit;
        format!("{}.{} {name}", tenths / 10, tenths % 10)
    };
    match count {
        0..1_024 => amounts::count(count, "byte"),
        1_024..1_048_576 => tenths(1_024, "KiB"),
        _ => tenths(1_048_576, "MiB"),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use convoke::model::scripted::{ScriptedModel, Turn};
    use convoke_core::RunId;
    use futures_util::StreamExt;

    use super::*;
    use crate::output::Stream;

    #[test]
    fn a_banner_is_two_lines_wherever_it_stands() {
        let shown = |width| {
            let stream = Stream::on_terminal(width).without_colour();
            let output = Output::of(stream.clone(), stream.clone());
            banner("acme/large", "~/a/project", Mode::Plan, &output);
            stream.contents()
        };
        assert_eq!(
            shown(80),
            "acme/large · ~/a/project · mode plan\n\
             /help shows commands · @file attaches a file · Ctrl-D leaves\n"
        );
        assert_eq!(shown(20), "acme/large · ~/a/pr…\n/help shows command…\n");
        assert_eq!(shown(6), "acme/…\n/help…\n");
    }

    #[test]
    fn sizes_are_read_at_a_glance() {
        let shown = [0, 1, 1_023, 1_024, 3_500, 1_048_576, 20_971_520].map(bytes);
        let expected =
            ["0 bytes", "1 byte", "1023 bytes", "1.0 KiB", "3.4 KiB", "1.0 MiB", "20.0 MiB"];
        assert_eq!(shown, expected);
    }

    #[test]
    fn a_window_nobody_knows_is_not_full_of_anything() {
        assert_eq!(share(500, ModelFacts::default()), None);
        let facts = ModelFacts { window: Some(2_000), ..ModelFacts::default() };
        assert_eq!(share(500, facts), Some(25));
    }

    #[test]
    fn an_answer_without_words_is_none() {
        let messages =
            [Message::text(Role::Assistant, "A letter."), Message::text(Role::Assistant, " ")];
        assert_eq!(last_answer(&messages).as_deref(), Some("A letter."));
    }

    #[test]
    fn a_recap_says_where_a_conversation_stopped() {
        let threads = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let paused = threads.block_on(async {
            let model = ScriptedModel::new([Turn::text("It is\nblue.")]);
            let runtime = Runtime::builder("/").build().unwrap();
            let agent = runtime.main_agent(Arc::new(model)).build().unwrap();
            let mut run = agent.start_as(RunId::new("r-1"), "What colour is the sky?");
            while run.next().await.is_some() {}
            run.pause()
        });
        let output = Output::in_memory();
        recap(&paused, Some("What colour is the sky?"), &output);
        let shown = output.err.contents();
        assert!(shown.starts_with("going on with r-1 (1 turn, "), "{shown}");
        assert!(shown.ends_with("  you: What colour is the sky?\n  it: It is blue.\n"), "{shown}");
    }

    #[test]
    fn help_names_every_command_once() {
        let output = Output::in_memory();
        help(&output);
        let shown = output.err.contents();
        for usage in COMMANDS {
            let rows = shown
                .lines()
                .filter(|line| line.split_whitespace().next() == Some(&format!("/{}", usage.name)));
            assert_eq!(rows.count(), 1, "{}", usage.name);
        }
    }
}
