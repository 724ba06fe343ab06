//! `convoke mcp serve`: tools and agents for other programs.

mod token;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use convoke::config::OnAsk;
use convoke::mcp::serve::{HttpSettings, ServeError, Service, serve_http, serve_stdio};
use convoke::model::Model;
use convoke::{Runtime, Serving};
use convoke_core::{Category, Cause, ExitCode, Mode, Permission};
use convoke_tool::{Selection, ToolView};
use serde_json::json;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::super::agents::explained;
use super::super::run::choose;
use super::super::run::flags::mode_parser;
use super::super::run::watch::threads;
use crate::failure::{self, Failure};
use crate::output::Output;
use crate::session::Session;
use crate::signals::Signals;

const AFTER_HELP: &str = "\
Without --http, the program that starts this is the client, over standard input and output: nothing else is \
written there. With --http, clients come over the network and send a token: for those of this machine one is made and \
printed, unless --token-file or --token-env names one; for those of others one of these has to be there.

Without --tool and --agent, the tools are served that models are offered and that only look at files. What is \
served is decided on by the same policy as everywhere; nobody can be asked, so what would be asked about is \
denied: --mode, or rules in your file, allow more. What clients called is kept as a run, which `convoke runs audit` \
shows; each call of an agent is another run, kept as any other.

Tools of MCP servers can be served as well. One that --tool names, as in 'mcp__files__*', and that was never asked for \
its tools is started at once; clients are told when its tools are there.

Web pages may send requests from an origin that --allow-origin names, and from this machine where only this machine is \
served. Behind a proxy, --allow-host says by which name clients reach it.

Examples:
  convoke mcp serve
  convoke mcp serve --tool read_file --tool grep --agent codebase_investigator
  convoke mcp serve --tool 'mcp__files__*'
  convoke mcp serve --http 127.0.0.1:8080
  convoke mcp serve --http 0.0.0.0:8080 --token-env SERVE_TOKEN --allow-origin https://app.example.com

Exit codes:
  0 the client hung up, 2 called wrongly, 3 all of it is denied, 7 configuration wrong,
  130 interrupted, 143 terminated";

/// Serve tools and agents to other programs
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Serve {
    /// Serve this tool, with * for any text; may be repeated
    #[arg(long, value_name = "NAME")]
    tool: Vec<String>,
    /// Serve this agent; may be repeated
    #[arg(long, value_name = "NAME")]
    agent: Vec<String>,
    /// The model of the agents, before their own
    #[arg(long, short, value_name = "NAME", requires = "agent")]
    model: Option<String>,
    /// Serve over HTTP, at this address and port
    #[arg(long, value_name = "ADDRESS:PORT")]
    http: Option<SocketAddr>,
    /// The file with the token that clients have to send
    #[arg(long, value_name = "FILE", requires = "http", conflicts_with = "token_env")]
    token_file: Option<PathBuf>,
    /// The variable with the token that clients have to send
    #[arg(long, value_name = "NAME", requires = "http")]
    token_env: Option<String>,
    /// Let web pages of this origin send requests; may be repeated
    #[arg(long, value_name = "ORIGIN", requires = "http")]
    allow_origin: Vec<String>,
    /// Let clients reach it by this name, with or without a port; may be repeated
    #[arg(long, value_name = "HOST", requires = "http")]
    allow_host: Vec<String>,
    /// How freely calls may act
    #[arg(long, value_name = "MODE", value_parser = mode_parser())]
    mode: Option<Mode>,
}

impl Serve {
    /// Runs the command.
    pub(super) fn run(
        &self,
        session: &Session<'_>,
        output: &mut Output,
    ) -> Result<ExitCode, Failure> {
        let mut config = session.load(output)?.config;
        // Nobody could answer later, either: the client waits.
        config.policy.on_ask = OnAsk::Deny;
        let token = self.token(session)?;
        let store = session.store(output);
        let mode = self.mode.unwrap_or(Mode::Default);
        let runtime = session.runtime_in(mode, config, store, None)?;
        Session::warn_of_programs(&runtime, output);
        session.warn_of_servers(&runtime, output);
        let threads = threads()?;
        let service = self.service(&runtime, session, &threads, output)?;
        let served = threads.block_on(async {
            if let Some(servers) = runtime.mcp() {
                servers.attach();
                servers.servers().start_unknown_of(&self.tool);
            }
            let served = self.until_the_end(service, token, output).await;
            if let Some(servers) = runtime.mcp() {
                super::end(servers).await;
            }
            served
        });
        // What does not end by itself, reading standard input for instance, ends with the process.
        threads.shutdown_timeout(Duration::from_millis(200));
        served
    }

    fn service(
        &self,
        runtime: &Runtime,
        session: &Session<'_>,
        threads: &tokio::runtime::Runtime,
        output: &mut Output,
    ) -> Result<Service, Failure> {
        let mut serving: Serving<'_> = runtime.serve().tools(self.tools(runtime, output)?);
        for name in &self.agent {
            let agent =
                runtime.find_agent(name).map_err(|error| explained(&error, runtime, session))?;
            let wanted = self.model.as_deref().or(agent.model.model.as_deref());
            let model: Arc<dyn Model> = choose::model(wanted, runtime, threads, output)?.model;
            let served = serving.agent_named(name, model);
            serving = served.map_err(|error| explained(&error, runtime, session))?;
        }
        Ok(serving.service().title("Convoke"))
    }

    /// Returns the tools that were asked for; without any, those that only look at files. What is denied whatever
    /// a client sends is not served, which is said.
    fn tools(&self, runtime: &Runtime, output: &mut Output) -> Result<ToolView, Failure> {
        let offered = || {
            let tools = runtime.offered().list();
            let looks = tools
                .iter()
                .map(|tool| tool.spec())
                .filter(|spec| spec.kind.only_looks() && spec.category == Category::File);
            looks.map(|spec| spec.name.clone()).collect::<Vec<_>>()
        };
        let names = match (self.tool.is_empty(), self.agent.is_empty()) {
            (true, true) => offered(),
            _ => self.tool.clone(),
        };
        let callable = runtime.callable();
        let wanted = callable.select(&Selection::only(names.clone())).map_err(|error| {
            let is_unknown = |name: &&String| !name.contains('*') && callable.get(name).is_none();
            let unknown = names.iter().find(is_unknown);
            let message = unknown.map(|name| callable.unknown(name).message);
            Failure::usage(message.unwrap_or_else(|| error.to_string()))
                .hint("`convoke tools list` shows the tools there are")
        })?;
        let tools = wanted.list();
        let specs = tools.iter().map(|tool| tool.spec());
        let denied = specs.filter(|spec| runtime.permission_of(spec) == Permission::Deny);
        let denied: Vec<String> = denied.map(|spec| spec.name.clone()).collect();
        if denied.is_empty() {
            return Ok(wanted);
        }
        let these = denied.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        failure::doubt(output, &format!("{these}: not served, every call would be denied"));
        failure::hint(output, "`convoke policy check` says by what");
        let rest = wanted.select(&Selection::all().without(denied));
        let rest = rest.map_err(|error| Failure::usage(error.to_string()))?;
        // Tools of servers may still come where a pattern stands for them.
        let may_come = !self.agent.is_empty() || names.iter().any(|name| name.contains('*'));
        if rest.list().is_empty() && !may_come {
            return Err(Failure::new(Cause::Denied, "there is nothing left to serve"));
        }
        Ok(rest)
    }

    async fn until_the_end(
        &self,
        service: Service,
        token: Option<String>,
        output: &Output,
    ) -> Result<ExitCode, Failure> {
        let mut signals = Signals::listen()
            .map_err(|error| Failure::failed("signals cannot be heard").because(&error))?;
        let stop = CancellationToken::new();
        let serving = self.serve(service, token, stop.clone(), output);
        tokio::pin!(serving);
        let mut stopped: Option<Cause> = None;
        loop {
            tokio::select! {
                ended = &mut serving => {
                    ended?;
                    return Ok(stopped.map_or(ExitCode::Done, Cause::exit_code));
                }
                cause = signals.next() => match stopped {
                    None => {
                        stopped = Some(cause);
                        stop.cancel();
                    }
                    Some(_) => return Err(Failure::new(cause, "calls under way were given up")),
                },
            }
        }
    }

    async fn serve(
        &self,
        service: Service,
        token: Option<String>,
        stop: CancellationToken,
        output: &Output,
    ) -> Result<(), Failure> {
        let Some(address) = self.http else {
            let (reader, writer) = (tokio::io::stdin(), tokio::io::stdout());
            return serve_stdio(service, reader, writer, stop)
                .await
                .map_err(|error| failed(&error));
        };
        let listener = TcpListener::bind(address).await.map_err(|error| {
            Failure::failed(format!("{address} cannot be listened on")).because(&error)
        })?;
        let address = listener.local_addr().unwrap_or(address);
        let mut settings = HttpSettings::default();
        let made = token.clone().filter(|_| self.token_file.is_none() && self.token_env.is_none());
        (settings.token, settings.stop) = (token, stop);
        settings.origins.clone_from(&self.allow_origin);
        settings.hosts.clone_from(&self.allow_host);
        settings.check(address).map_err(|error| failed(&error))?;
        let url = format!("http://{address}{}", settings.path);
        output.err.line(format_args!("serving at {url}"));
        if let Some(token) = made {
            let header = format!("Bearer {token}");
            let server =
                json!({ "type": "http", "url": url, "headers": { "Authorization": header } });
            output
                .err
                .line(format_args!("clients send the header `Authorization: {header}`, as in"));
            output.err.line(json!({ "mcpServers": { "convoke": server } }));
        }
        serve_http(service, listener, settings).await.map_err(|error| failed(&error))
    }

    /// Reads what clients have to send.
    fn token(&self, session: &Session<'_>) -> Result<Option<String>, Failure> {
        match (&self.token_file, &self.token_env) {
            (Some(file), _) => token::of_file(&session.absolute(file)).map(Some),
            (None, Some(name)) => token::of_variable(name, session.environment()).map(Some),
            (None, None) => {
                // Other machines are served only with a token that somebody chose and handed on.
                let is_local = self.http.is_some_and(|address| address.ip().is_loopback());
                is_local.then(token::new).transpose()
            }
        }
    }
}

fn failed(error: &ServeError) -> Failure {
    match error {
        ServeError::TokenMissing { address } => Failure::usage(format!(
            "{address} can be reached from other machines, and there is no token"
        ))
        .hint("`--token-file FILE` or `--token-env NAME` sets one, or serve at 127.0.0.1"),
        ServeError::WeakToken { .. }
        | ServeError::BadOrigin { .. }
        | ServeError::BadHost { .. } => Failure::usage(error.to_string()),
        _ => Failure::failed(error.to_string()),
    }
}
