//! `convoke tools call`: one call through the same pipeline every agent uses.

pub(in crate::commands) mod arguments;
mod consent;
mod live;
mod report;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use convoke::config::Timeout;
use convoke::{Runtime, masked};
use convoke_core::{Category, Cause, ExitCode, Kind, ToolCall, ToolResult, ToolSpec};
use convoke_tool::{CallOptions, Recorder, ToolExecutor};
use tokio::time::Instant;

use self::consent::{AskAtTerminal, Consent, OpenInquiry};
use self::live::Live;
use super::super::mcp::end_all;
use super::super::run::watch::threads;
use super::{kind_parser, servers};
use crate::duration;
use crate::failure::Failure;
use crate::output::Output;
use crate::session::Session;
use crate::signals::{Declined, Signals};

const AFTER_HELP: &str = "\
Arguments come from a JSON object, from standard input (-), or from --arg, which wins over JSON. \
A value of --arg becomes what the tool's schema asks for: a number, true or false, a list (repeat \
the flag, or give JSON) or an object (JSON). KEY=@FILE takes the text of a file, KEY=@@x is the \
text @x.

Whoever types this command consents to what the tool does, with two exceptions: programs run only \
if policy.kinds.execute allows it or asks and is answered, and what the configuration denies stays \
denied. --allow KIND lifts both for this call.

A tool of an MCP server is named as SERVER.TOOL, or as models know it; only that server is started. What the \
server asks meanwhile is asked here, field by field; --yes does not answer it, and where there is no terminal \
it is cancelled.

Secrets in the result are shown by name, as in a run: variables that look like credentials, settings \
marked as secret, and tokens that are known by their shape.

Examples:
  convoke tools call ls
  convoke tools call read_file --arg path=README.md --arg limit=20
  convoke tools call grep '{\"pattern\": \"fn main\", \"include\": \"*.rs\"}'
  echo '{\"text\": \"hello\"}' | convoke tools call base64_encode -
  convoke tools call run_command --arg command='git status' --allow execute
  convoke tools call files.read_text_file --arg path=README.md

Exit codes:
  0 it worked, 1 it failed, 2 tool or arguments wrong, 3 not allowed,
  4 out of time, 7 configuration wrong, 130 interrupted, 143 terminated";

/// Call a tool
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Call {
    /// The tool
    name: String,
    /// The arguments as a JSON object; - reads them from standard input
    #[arg(value_name = "JSON | -")]
    json_arguments: Option<String>,
    /// One argument; may be repeated
    #[arg(long = "arg", value_name = "KEY=VALUE", value_parser = crate::cli::key_and_value)]
    arguments: Vec<(String, String)>,
    /// How long it may take, as 500ms, 30s or 1m30s
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    timeout: Option<Timeout>,
    /// Print the whole result as JSON, also if the call fails; one that cannot be made is told on stderr
    #[arg(long)]
    json: bool,
    /// Permit this kind of call, whatever the configuration says; may be repeated
    #[arg(long, value_name = "KIND", value_parser = kind_parser())]
    allow: Vec<Kind>,
    /// Answer yes to the question whether a program may run; what a server asks is cancelled where nobody is
    #[arg(long, short)]
    yes: bool,
}

impl Call {
    /// Runs the command.
    pub(super) fn run(
        self,
        session: &Session<'_>,
        output: &mut Output,
    ) -> Result<ExitCode, Failure> {
        let mut config = session.load(output)?.config;
        let consent = Consent::new(&config.policy, &self.allow);
        consent.apply(&mut config.policy);
        let runtime = session.runtime(config)?;
        session.warn_of_servers_in_common(&runtime, output);
        let threads = threads()?;
        // A server that was started for this ends as gently where nothing comes of it.
        let end = || end_all(&runtime, &threads);
        let name = servers::brought(&self.name, &runtime, &threads, output);
        let name = name.inspect_err(|_| end())?;
        let tool = runtime.callable().get(&name);
        let spec = tool.as_ref().map(|tool| tool.spec());
        let server = spec.and_then(|spec| servers::server_of(spec, &runtime));
        Session::warn_of_places(|one| server.as_deref() == Some(one), &runtime, output);
        let arguments = self.arguments(spec, session).inspect_err(|_| end())?;
        let call = ToolCall::new("call-1", &name, arguments);
        let live = self.live(spec, output);
        let open = Arc::new(OpenInquiry::default());
        let executor = self.executor(&runtime, &live, &open, output);
        let timeout = self.timeout.map(Timeout::duration);
        let ended = carry_out(&executor, call, timeout, &open, &threads);
        end();
        // What does not end by itself, reading from a terminal for instance, ends with the process.
        threads.shutdown_timeout(Duration::from_millis(200));
        let (result, stopped) = ended?;
        live.finish();
        let result = masked(result, executor.recorder().secrets());
        let ended =
            report::Ended { result: &result, stopped, spec, consent: &consent, runtime: &runtime };
        if self.json {
            output.json(&result);
        } else {
            ended.print(&live, output);
        }
        Ok(ended.code())
    }

    fn arguments(
        &self,
        spec: Option<&ToolSpec>,
        session: &Session<'_>,
    ) -> Result<serde_json::Value, Failure> {
        let json = match self.json_arguments.as_deref() {
            Some("-") => Some(arguments::from_stdin()?),
            Some(text) => Some(arguments::from_json(text)?),
            None => None,
        };
        let find = |path: PathBuf| session.absolute(&path);
        arguments::combine(json.unwrap_or_default(), &self.arguments, spec, find)
    }

    /// A person who looks sees what happens while it happens.
    fn live(&self, spec: Option<&ToolSpec>, output: &Output) -> Arc<Live> {
        let watched = output.err.is_terminal() && !self.json && !output.is_quiet();
        // A server tells how far it is; what comes of it, it says at the end.
        let is_output = spec.is_some_and(|spec| spec.streaming && spec.category != Category::Mcp);
        Arc::new(Live::new(watched.then(|| output.err.clone()), is_output))
    }

    fn executor(
        &self,
        runtime: &Runtime,
        live: &Arc<Live>,
        open: &Arc<OpenInquiry>,
        output: &Output,
    ) -> ToolExecutor {
        let mut limits = runtime.limits().clone();
        if !self.json {
            // The limit is for models. A person sees all of it.
            limits.max_output_bytes = usize::MAX;
        }
        let clock = Arc::clone(runtime.context().clock());
        runtime
            .executor()
            .limits(limits)
            .approver(AskAtTerminal::new(&output.err, self.yes, Arc::clone(open)))
            .recorder(
                Recorder::new("tools-call", Arc::<Live>::clone(live), clock)
                    .hiding(runtime.secrets()),
            )
            .build()
    }
}

/// Carries out the call. The first signal stops it and waits for what there is, the second does not
/// wait. While the call asks what it has to know, Ctrl-C says no to that, unless it just did.
fn carry_out(
    executor: &ToolExecutor,
    call: ToolCall,
    timeout: Option<Duration>,
    open: &OpenInquiry,
    threads: &tokio::runtime::Runtime,
) -> Result<(ToolResult, Option<Cause>), Failure> {
    threads.block_on(async {
        let mut signals = Signals::listen()
            .map_err(|error| Failure::failed("signals cannot be heard").because(&error))?;
        let options = timeout.map(CallOptions::timeout).unwrap_or_default();
        let work = executor.execute_with(call, options);
        tokio::pin!(work);
        let (mut stopped, mut declined) = (None, Declined::default());
        loop {
            tokio::select! {
                result = &mut work => return Ok((result, stopped)),
                cause = signals.next() => match stopped {
                    _ if cause == Cause::Interrupted
                        && !declined.is_insisted(Instant::now())
                        && open.decline() =>
                    {
                        declined.note(Instant::now());
                    }
                    None => {
                        stopped = Some(cause);
                        executor.context().cancellation().cancel();
                    }
                    Some(_) => return Err(Failure::new(cause, "the call was given up")),
                },
            }
        }
    })
}
