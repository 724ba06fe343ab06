//! How much of a glob is still read.
//!
//! A glob becomes a regular expression, and what makes it one goes down into braces by calling itself: one
//! that is long or deep enough takes more memory than anybody has, or more stack, which ends the process.
//! Whoever takes a glob from a file or from a model asks here first.

/// A glob may have this many bytes: a path of the greatest length, each of its characters escaped, fits.
pub const MAX_BYTES: usize = 16 * 1024;
/// Braces may be this deep inside each other.
pub const MAX_DEPTH: usize = 16;

/// Says what is too much about a glob, and what to do about it.
pub fn check(glob: &str) -> Result<(), String> {
    if glob.len() > MAX_BYTES {
        return Err(format!(
            "the pattern has {} bytes, and {MAX_BYTES} is the most; write several shorter ones",
            glob.len()
        ));
    }
    if depth(glob) > MAX_DEPTH {
        return Err(format!(
            "the pattern has more than {MAX_DEPTH} braces inside each other; write several simpler ones"
        ));
    }
    Ok(())
}

/// Returns how deep braces are inside each other. Within brackets a brace is a character like others.
fn depth(glob: &str) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    let mut rest = glob.as_bytes();
    // Where brackets are not closed, none after them are.
    let mut closed = true;
    while let Some((byte, after)) = rest.split_first() {
        rest = match byte {
            b'\\' => after.get(1..).unwrap_or_default(),
            b'[' if closed => after_brackets(after).unwrap_or_else(|| {
                closed = false;
                after
            }),
            _ => after,
        };
        match byte {
            b'{' => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

/// Returns what follows brackets, if they are closed; the first character in them cannot do that.
fn after_brackets(inside: &[u8]) -> Option<&[u8]> {
    let from = 1 + usize::from(matches!(inside.first(), Some(b'!' | b'^')));
    let rest = inside.get(from..)?;
    let end = rest.iter().position(|byte| *byte == b']')?;
    rest.get(end + 1..)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_much_is_said_with_a_way_out() {
        assert_eq!(check("src/**/*.{rs,toml}"), Ok(()));
        assert_eq!(check(&"{a,b}".repeat(500)), Ok(()), "side by side is not deep");
        assert_eq!(check(&"\\{".repeat(500)), Ok(()), "these are characters");
        let long = check(&"a".repeat(MAX_BYTES + 1)).unwrap_err();
        assert_eq!(
            long,
            "the pattern has 16385 bytes, and 16384 is the most; write several shorter ones"
        );
        let deep = check(&format!("{}a{}", "{".repeat(17), "}".repeat(17))).unwrap_err();
        let hidden = "{[}]".repeat(17);
        assert_eq!(check(&format!("{hidden}{}", "}".repeat(17))), Err(deep.clone()));
        assert_eq!(check(&"[{]".repeat(500)), Ok(()));
        assert!(deep.contains("more than 16 braces inside each other"), "{deep}");
    }
}
