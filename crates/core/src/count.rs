//! How many of something, in words.

/// Writes `1 turn`, `2 turns`.
pub fn count(number: u64, thing: &str) -> String {
    if number == 1 { format!("1 {thing}") } else { format!("{number} {thing}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_one() {
        assert_eq!([0, 1, 2].map(|number| count(number, "turn")), ["0 turns", "1 turn", "2 turns"]);
    }
}
