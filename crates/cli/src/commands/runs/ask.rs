//! A question before something is gone for good.

use std::io::{self, BufRead, IsTerminal};

use crate::output::Output;

/// Tells whether somebody can be asked.
pub(super) fn can_be_asked(output: &Output) -> bool {
    output.err.is_terminal() && io::stdin().is_terminal()
}

/// Asks whether to go on. There is no answer where nobody can be asked.
pub(super) fn yes(question: &str, output: &Output) -> Option<bool> {
    if !can_be_asked(output) {
        return None;
    }
    output.err.text(format_args!("{question} [y/N] "));
    output.err.flush();
    let mut line = String::new();
    let said = io::stdin().lock().read_line(&mut line).is_ok();
    Some(said && matches!(line.trim().to_lowercase().as_str(), "y" | "yes"))
}
