//! `convoke mcp login` and `logout`: telling a remote server who asks.

use std::io::{self, BufRead};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use clap::Args;
use convoke::mcp::auth::{Consent, OAuth};
use convoke::{LoginError, Runtime};
use convoke_core::{Cause, ExitCode};

use super::super::run::watch::threads;
use super::look::unless_stopped;
use super::{browser, find, runtime};
use crate::failure::Failure;
use crate::output::{Output, Stream, Style};
use crate::session::Session;

const AFTER_LOGIN: &str = "\
An address is shown: open it in a browser, and say yes there. On a desktop the browser is opened, but not in CI nor \
over SSH. The browser then comes back to this machine. If it \
runs on another one, it ends at a page that cannot be shown: paste its address here.

What the server gives is kept in a file that only you can read, and that no tool and no program of an agent can.

Examples:
  convoke mcp login tracker
  convoke mcp test tracker

Exit codes:
  0 you are signed in, 1 that did not work, 2 there is nothing to sign in to";

const AFTER_LOGOUT: &str = "\
Examples:
  convoke mcp logout tracker";

/// Sign in to a server at an address
#[derive(Debug, Args)]
#[command(after_help = AFTER_LOGIN)]
pub(crate) struct Login {
    /// The server
    name: String,
}

/// Forget what a server gave when you signed in
#[derive(Debug, Args)]
#[command(after_help = AFTER_LOGOUT)]
pub(crate) struct Logout {
    /// The server
    name: String,
}

impl Login {
    /// Runs the command.
    pub(super) fn run(
        &self,
        session: &Session<'_>,
        output: &mut Output,
    ) -> Result<ExitCode, Failure> {
        let runtime = runtime(session, output)?;
        let opener = browser::opener(session.environment());
        let person = Arc::new(Person { stream: output.err.clone(), opener });
        let login = login(&self.name, Some(person), &runtime, session)?;
        let threads = threads()?;
        let (servers, _) = find(&self.name, &runtime)?;
        let done = threads.block_on(unless_stopped(async {
            let done = login.login().await;
            if done.is_ok() {
                servers.servers().forget_setback(&self.name).await;
            }
            let is_signed_in = done.is_ok() || is_signed_in(&login).await;
            (done, is_signed_in)
        }));
        // A line that nobody pasted is not waited for.
        threads.shutdown_timeout(Duration::from_millis(200));
        let (done, is_signed_in) = done?;
        done.map_err(|error| {
            let what_holds =
                if is_signed_in { "the earlier one is kept" } else { "you are not signed in" };
            // It says itself what led to it.
            let message = format!("the login to `{}` did not work; {what_holds}", self.name);
            Failure::failed(message).causes([error.to_string()])
        })?;
        say(&format!("signed in to {}", self.name), output);
        Ok(ExitCode::Done)
    }
}

impl Logout {
    /// Runs the command.
    pub(super) fn run(
        &self,
        session: &Session<'_>,
        output: &mut Output,
    ) -> Result<ExitCode, Failure> {
        let runtime = runtime(session, output)?;
        let login = login(&self.name, None, &runtime, session)?;
        let (servers, _) = find(&self.name, &runtime)?;
        let was = threads()?.block_on(async {
            let was = login.logout().await;
            if matches!(was, Ok(true)) {
                servers.servers().signed_out(&self.name).await;
            }
            was
        });
        let was = was.map_err(|error| {
            Failure::failed(format!("the login to `{}` cannot be forgotten", self.name))
                .because(&error)
        })?;
        let said = if was { "signed out of" } else { "you were not signed in to" };
        say(&format!("{said} {}", self.name), output);
        Ok(ExitCode::Done)
    }
}

/// Tells whether an earlier login still holds.
async fn is_signed_in(login: &OAuth) -> bool {
    const PATIENCE: Duration = Duration::from_secs(5);
    let headers = tokio::time::timeout(PATIENCE, login.headers()).await;
    matches!(headers, Ok(Ok(headers)) if !headers.is_empty())
}

fn say(text: &str, output: &Output) {
    if !output.is_quiet() {
        output.err.line(output.err.printable(text));
    }
}

fn login(
    name: &str,
    person: Option<Arc<Person>>,
    runtime: &Runtime,
    session: &Session<'_>,
) -> Result<OAuth, Failure> {
    let (servers, _) = find(name, runtime)?;
    let logins = session.logins().ok_or_else(|| {
        Failure::new(Cause::State, "there is no home directory, so no place for logins")
            .hint("set HOME or XDG_DATA_HOME to an absolute path")
    })?;
    let consent = person.map(|person| -> Arc<dyn Consent> { person });
    let clock = Arc::clone(runtime.context().clock());
    servers.login(name, &logins, consent, clock).map_err(|error| {
        let failure = Failure::usage(error.to_string());
        match error {
            LoginError::Program { .. } => failure.hint("most programs take a key from `env`"),
            _ => failure,
        }
    })
}

/// Whoever sits at the terminal.
#[derive(Debug)]
struct Person {
    stream: Stream,
    /// The program that opens pages, where there is a desktop.
    opener: Option<&'static str>,
}

#[async_trait]
impl Consent for Person {
    async fn show(&self, url: &str) {
        let shown = self.stream.printable(url).to_string();
        let is_open = self.opener.is_some_and(|opener| browser::show(url, opener));
        self.stream.line(if is_open {
            "your browser opens this address; say yes there:"
        } else {
            "open this address in a browser, and say yes there:"
        });
        self.stream.line(format_args!("  {}", self.stream.paint(Style::Name, shown)));
        self.stream.line("if the browser cannot come back here, paste the address it ended at:");
        self.stream.flush();
    }

    async fn pasted(&self) -> String {
        let line = tokio::task::spawn_blocking(|| {
            let mut line = String::new();
            io::stdin().lock().read_line(&mut line).map(|length| (length, line))
        });
        match line.await {
            Ok(Ok((1.., line))) => line.trim().to_owned(),
            // Nobody pastes anything any more.
            _ => std::future::pending().await,
        }
    }

    async fn unusable(&self, why: &str) {
        let why = self.stream.printable(why);
        self.stream.line(format_args!("what came back is of no use: {why}; the login still waits"));
    }
}
