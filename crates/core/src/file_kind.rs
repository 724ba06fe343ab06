//! What something is that is no file, in words.
//!
//! A pipe that stands where a file is expected is waited for, for ever. Whoever opens files in places that
//! others can write to looks what they are, does not wait, and says it.

/// Names what it is: `a file`, `a named pipe`. `mode` is what the system says about it, with its kind in the
/// upper bits.
pub const fn name(mode: u32) -> &'static str {
    match mode & 0o170_000 {
        0o100_000 => "a file",
        0o040_000 => "a directory",
        0o120_000 => "a link",
        0o010_000 => "a named pipe",
        0o140_000 => "a socket",
        0o020_000 | 0o060_000 => "a device",
        _ => "something else",
    }
}

/// Says what it is, unless it is a file: `it is a named pipe, not a file`.
pub fn not_a_file(mode: u32) -> Option<String> {
    match name(mode) {
        "a file" => None,
        other => Some(format!("it is {other}, not a file")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_but_a_file_is_named() {
        assert_eq!(not_a_file(0o100_644), None);
        let said = |mode| not_a_file(mode).unwrap_or_default();
        assert_eq!(said(0o010_600), "it is a named pipe, not a file");
        assert_eq!(said(0o040_755), "it is a directory, not a file");
        assert_eq!(said(0o020_666), "it is a device, not a file");
    }
}
