//! Says that something could not be read or was kept back: an answer with a hole in it has to show it.

use crate::walk::Missed;

/// Tells whether there is nothing to say.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
pub(crate) const fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// Adds a line about what is missing to a text, if there is anything to say.
pub(crate) fn note(mut text: String, missed: Missed) -> String {
    let how_many = |number: u64| match number {
        1 => "1 file or directory".to_owned(),
        more => format!("{more} files or directories"),
    };
    let notes = [
        (missed.unreadable, "could not be read; something may be missing here"),
        (missed.forbidden, "left out: the policy keeps that from this call"),
    ];
    for (number, what) in notes.into_iter().filter(|(number, _)| *number > 0) {
        if !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(&format!("[{} {what}]\n", how_many(number)));
    }
    text
}
