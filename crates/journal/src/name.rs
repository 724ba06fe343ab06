//! Which ids may name a directory.
//!
//! An id becomes a file name below the state directory, so it must not be able to leave it, to hide,
//! or to mean something to a shell. What is left is letters, digits, `-`, `_` and `.`.

use convoke_core::RunId;

use crate::error::JournalError;

const MAX_BYTES: usize = 100;

/// Refuses an id that cannot be a file name.
pub(crate) fn check(run: &RunId) -> Result<(), JournalError> {
    match problem(run.as_str()) {
        None => Ok(()),
        Some(reason) => Err(JournalError::InvalidId { id: shown(run.as_str()), reason }),
    }
}

/// Tells whether a file name can be a run's.
pub(crate) fn is_valid(name: &str) -> bool {
    problem(name).is_none()
}

fn problem(id: &str) -> Option<&'static str> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if id.is_empty() {
        Some("it is empty")
    } else if id.len() > MAX_BYTES {
        Some("it is longer than 100 bytes")
    } else if !id.chars().all(plain) {
        Some("only letters, digits, `-`, `_` and `.` can be in it")
    } else if id.starts_with(['.', '-']) {
        Some("it has to begin with a letter, a digit or `_`")
    } else {
        None
    }
}

/// The id as it can be shown on a terminal, cut where nobody would read on.
fn shown(id: &str) -> String {
    id.chars().take(MAX_BYTES).flat_map(char::escape_debug).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_that_could_leave_the_directory_are_refused() {
        let long = "x".repeat(101);
        for id in [
            "", ".", "..", "../x", "a/b", "/etc", "a\\b", "a\0b", "a\nb", ".hidden", "-rf", "a b",
            "é", "~", "$HOME", &long,
        ] {
            let error = check(&RunId::new(id)).unwrap_err().to_string();
            assert!(error.contains("cannot name a run"), "{error}");
            assert!(!error.contains(['\0', '\n']), "{error:?}");
        }
    }

    #[test]
    fn ordinary_ids_are_fine() {
        for id in ["r", "2026-03-01T12.00.00-a1b2", "_x", "A.b-c_d", &"x".repeat(100)] {
            assert!(is_valid(id), "{id}");
        }
    }
}
