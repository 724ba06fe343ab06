//! Line ends of a file and of an edit. Pure.
//!
//! A file in which every line ends with CRLF stays one, whatever line ends an edit is written with.
//! Files with both kinds, and files with bare LF, are left to the edit.

use std::borrow::Cow;

use super::replace::Edit;

/// Returns the old and new text of an edit with the line ends of the file, if those are all CRLF. An
/// edit that changes nothing but line ends is taken as it is.
pub(super) fn fitted<'a>(text: &str, edit: &'a Edit) -> (Cow<'a, str>, Cow<'a, str>) {
    let (old, new) = (edit.old_string.as_str(), edit.new_string.as_str());
    if has_bare(old) || has_bare(new) {
        let (fitted_old, fitted_new) = (with_crlf(old), with_crlf(new));
        if fitted_old != fitted_new && text.contains('\n') && !has_bare(text) {
            return (fitted_old.into(), fitted_new.into());
        }
    }
    (old.into(), new.into())
}

/// Returns whether there is a newline that is not part of a CRLF.
fn has_bare(text: &str) -> bool {
    let mut before = 0;
    memchr::memchr_iter(b'\n', text.as_bytes()).any(|at| {
        let bare = !text.get(before..at).is_some_and(|line| line.ends_with('\r'));
        before = at + 1;
        bare
    })
}

fn with_crlf(text: &str) -> String {
    without_crlf(text).replace('\n', "\r\n")
}

/// Returns the text with every CRLF as a newline.
pub(super) fn without_crlf(text: &str) -> String {
    text.replace("\r\n", "\n")
}

/// Returns how a line ends: with CRLF, a newline, or nothing at the end of a file.
pub(super) fn of(line: &str) -> &str {
    if line.ends_with("\r\n") {
        "\r\n"
    } else if line.ends_with('\n') {
        "\n"
    } else {
        ""
    }
}

/// Returns a line without its end.
pub(super) fn strip(line: &str) -> &str {
    line.strip_suffix(of(line)).unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_that_are_all_crlf_decide() {
        for (text, fits) in [
            ("a\r\nb\r\n", ("a\r\nb", "c\r\nd")),
            ("a\r\nb\n", ("a\nb", "c\r\nd")),
            ("a\nb\n", ("a\nb", "c\r\nd")),
            ("a", ("a\nb", "c\r\nd")),
        ] {
            let edit =
                Edit { old_string: "a\nb".into(), new_string: "c\r\nd".into(), replace_all: None };
            let (old, new) = fitted(text, &edit);
            assert_eq!((&*old, &*new), fits, "{text:?}");
        }
    }

    #[test]
    fn lines_lose_their_end_only() {
        for (line, end, rest) in
            [("a\r\n", "\r\n", "a"), ("a \n", "\n", "a "), ("a\r", "", "a\r"), ("", "", "")]
        {
            assert_eq!((of(line), strip(line)), (end, rest));
        }
    }
}
