//! The flags of every command that lets an agent work.

use std::path::PathBuf;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use convoke::config::{Config, OnAsk, Timeout};
use convoke::journal::Store;
use convoke::{Runtime, Workspace};
use convoke_core::{Mode, Money, Strategy, WorkspaceKind};

use super::choose::{self, Chosen};
use super::overrides;
use crate::cli::one_of;
use crate::duration;
use crate::failure::Failure;
use crate::output::Output;
use crate::session::Session;
use crate::view::Detail;

/// Which model works, with which tools, how freely and for how long.
#[derive(Debug, Args)]
pub(in crate::commands) struct AgentFlags {
    /// The model, as provider/model or an alias
    #[arg(long, short, value_name = "NAME")]
    pub(in crate::commands) model: Option<String>,
    #[command(flatten)]
    pub(in crate::commands) limits: LimitFlags,
    /// The tools it may use, with * for any text; separated by commas
    #[arg(long, value_name = "NAMES", value_delimiter = ',', conflicts_with = "no_tools")]
    pub(in crate::commands) tools: Option<Vec<String>>,
    /// Give it no tools
    #[arg(long)]
    pub(in crate::commands) no_tools: bool,
    /// How freely it may act
    #[arg(long, value_name = "MODE", value_parser = mode_parser())]
    pub(in crate::commands) mode: Option<Mode>,
    /// What becomes of a question that nobody answers: the answer is no, or the run ends and waits; what a server asks
    /// in the middle of a call is cancelled
    #[arg(long, value_name = "WHAT", value_parser = on_ask_parser())]
    pub(in crate::commands) on_ask: Option<OnAsk>,
    /// How long an answer of yours is waited for
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    pub(in crate::commands) approval_timeout: Option<Timeout>,
    /// Whether it starts at once or makes a plan first
    #[arg(long, value_name = "STRATEGY", value_parser = strategy_parser())]
    pub(in crate::commands) strategy: Option<Strategy>,
    /// Show it a file: text, an image or a PDF; may be repeated
    #[arg(long, value_name = "FILE")]
    pub(in crate::commands) file: Vec<PathBuf>,
    /// Keep the model's answers in this file
    #[arg(long, value_name = "FILE", conflicts_with = "replay")]
    pub(in crate::commands) record: Option<PathBuf>,
    /// Take the model's answers from this file; a request that differs fails, an answer left over is told
    #[arg(long, value_name = "FILE", conflicts_with = "model")]
    pub(in crate::commands) replay: Option<PathBuf>,
    /// Keep nothing of it on disk; it can then not be resumed
    #[arg(long)]
    pub(in crate::commands) no_journal: bool,
    /// Show thoughts, arguments and decisions too
    #[arg(long, short, conflicts_with = "quiet")]
    pub(in crate::commands) verbose: bool,
}

/// Where a run that begins works.
#[derive(Debug, Args)]
pub(in crate::commands) struct WorkspaceFlag {
    /// Where it works: with your files, with your files but without changing any, in a git worktree of its
    /// own, or in a copy of the directory
    #[arg(long, value_name = "KIND", value_parser = workspace_parser())]
    pub(in crate::commands) workspace: Option<WorkspaceKind>,
}

/// The limits of a run.
#[derive(Debug, Args)]
pub(in crate::commands) struct LimitFlags {
    /// How many times the model may answer; the last time is kept for the end
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(in crate::commands) max_turns: Option<u32>,
    /// How much it may cost, in US dollars
    #[arg(long, value_name = "DOLLARS", value_parser = money)]
    pub(in crate::commands) max_cost: Option<Money>,
    /// How many tokens it may use, sent and received
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(in crate::commands) max_tokens: Option<u64>,
    /// How many calls of tools it may make
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(in crate::commands) max_tool_calls: Option<u32>,
    /// How long it may take, as 30s, 5m or 1h30m, without waiting for you
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    pub(in crate::commands) timeout: Option<Timeout>,
    /// How long one answer of the model may take
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    pub(in crate::commands) turn_timeout: Option<Timeout>,
}

impl AgentFlags {
    /// Puts what was said on the command line before what is configured.
    pub(in crate::commands) fn apply(&self, config: &mut Config) {
        overrides::apply(self, config);
    }

    /// Makes a runtime with the tools that were asked for, which keeps runs in this store.
    pub(in crate::commands) fn runtime(
        &self,
        session: &Session<'_>,
        mode: Mode,
        config: Config,
        store: Option<Store>,
        workspace: Option<Workspace>,
    ) -> Result<Runtime, Failure> {
        session.runtime_in(mode, config, store, workspace).map_err(|failure| match self.tools {
            Some(_) => failure.into_usage(),
            None => failure,
        })
    }

    /// Finds the model that answers.
    pub(in crate::commands) fn choose(
        &self,
        session: &Session<'_>,
        runtime: &Runtime,
        threads: &tokio::runtime::Runtime,
        output: &Output,
    ) -> Result<Chosen, Failure> {
        self.choose_or(None, session, runtime, threads, output)
    }

    /// Finds the model that answers: this one, unless another is named.
    pub(in crate::commands) fn choose_or(
        &self,
        usual: Option<&str>,
        session: &Session<'_>,
        runtime: &Runtime,
        threads: &tokio::runtime::Runtime,
        output: &Output,
    ) -> Result<Chosen, Failure> {
        let record = self.record.as_ref().map(|path| session.absolute(path));
        let placeholders = choose::placeholders(runtime);
        if let Some(path) = &self.replay {
            return choose::replay(&session.absolute(path), placeholders);
        }
        let chosen = choose::model(self.model.as_deref().or(usual), runtime, threads, output)?;
        match record {
            Some(path) => choose::record(chosen, &path, placeholders),
            None => Ok(chosen),
        }
    }

    /// Says how much is told beside the answer.
    pub(in crate::commands) fn detail(&self, output: &Output) -> Detail {
        match self.verbose {
            true => Detail::Verbose,
            false if output.is_quiet() => Detail::Quiet,
            false => Detail::Usual,
        }
    }
}

pub(in crate::commands) fn mode_parser() -> impl TypedValueParser<Value = Mode> {
    one_of(Mode::ALL.iter().map(|mode| mode.as_str()))
}

fn on_ask_parser() -> impl TypedValueParser<Value = OnAsk> {
    PossibleValuesParser::new(OnAsk::WORDS.iter().map(|(word, _)| *word)).map(|word| {
        let known = OnAsk::WORDS.iter().find(|(known, _)| *known == word);
        known.map_or(OnAsk::Deny, |(_, on_ask)| *on_ask)
    })
}

fn workspace_parser() -> impl TypedValueParser<Value = WorkspaceKind> {
    one_of(["shared", "readonly", "worktree", "copy"])
}

fn strategy_parser() -> impl TypedValueParser<Value = Strategy> {
    one_of(Strategy::ALL.iter().map(|strategy| strategy.as_str()))
}

fn money(text: &str) -> Result<Money, String> {
    let money: Money = text.parse().map_err(|_| "write dollars, as 0.50".to_owned())?;
    if money > Money::default() { Ok(money) } else { Err("it has to be more than 0".to_owned()) }
}
