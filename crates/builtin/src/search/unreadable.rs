//! Says that something could not be read: an answer with a hole in it has to show it.

/// Tells whether there is nothing to say.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
pub(crate) const fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// Adds a line about it to a text, if there is anything to say.
pub(crate) fn note(mut text: String, unreadable: u64) -> String {
    let what = match unreadable {
        0 => return text,
        1 => "1 file or directory".to_owned(),
        more => format!("{more} files or directories"),
    };
    if !text.ends_with('\n') {
        text.push('\n');
    }
    text.push_str(&format!("[{what} could not be read; something may be missing here]\n"));
    text
}
