//! `convoke completions`: what a shell needs to complete the command line.

use clap::Args;
use clap_complete::Shell;
use convoke_core::ExitCode;

use crate::cli;
use crate::output::Output;

const AFTER_HELP: &str = "\
Examples:
  convoke completions bash > ~/.local/share/bash-completion/completions/convoke
  convoke completions zsh > ~/.zfunc/_convoke
  convoke completions fish > ~/.config/fish/completions/convoke.fish";

/// Print a completion script for a shell
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Completions {
    /// The shell
    shell: Shell,
}

impl Completions {
    /// Runs the command.
    pub(super) fn run(&self, output: &mut Output) -> ExitCode {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut cli::definition(), "convoke", &mut script);
        output.out.text(String::from_utf8_lossy(&script));
        ExitCode::Done
    }
}
