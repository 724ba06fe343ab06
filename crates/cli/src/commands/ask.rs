//! A question to whoever sits at the terminal, that is answered with yes or no.

use std::io::{self, BufRead, IsTerminal};

use super::run::approve::Keys;
use crate::output::Output;

/// Tells whether somebody can be asked.
pub(super) fn can_be_asked(output: &Output) -> bool {
    output.err.is_terminal() && io::stdin().is_terminal()
}

/// Asks whether to go on. There is no answer where nobody can be asked; what was typed before is none.
pub(super) fn yes(question: &str, output: &Output) -> Option<bool> {
    if !can_be_asked(output) {
        return None;
    }
    Keys::Terminal.forget();
    output.err.text(format_args!("{} [y/N] ", output.err.printable(question)));
    output.err.flush();
    let mut line = String::new();
    let said = io::stdin().lock().read_line(&mut line).is_ok();
    Some(said && is_yes(&line))
}

/// Tells whether a line is a yes: nothing else is.
pub(super) fn is_yes(line: &str) -> bool {
    matches!(line.trim().to_lowercase().as_str(), "y" | "yes")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_yes_means_yes() {
        assert!(is_yes("y\n") && is_yes(" YES \n"));
        assert!(!is_yes("") && !is_yes("\n") && !is_yes("yeah\n") && !is_yes("no\n"));
    }
}
