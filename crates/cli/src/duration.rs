//! Durations as people write and read them: `500ms`, `2s`, `1.5m`, `1h30m`.

use std::time::Duration;

use convoke::config::Timeout;

/// Reads a duration between a millisecond and a day.
pub(crate) fn parse(text: &str) -> Result<Timeout, String> {
    text.parse().map_err(|error: convoke::config::DurationError| error.to_string())
}

/// Writes a duration in the largest unit that needs no fraction.
pub(crate) fn show(duration: Duration) -> String {
    match duration.as_millis() {
        0 => "0s".to_owned(),
        millis if millis.is_multiple_of(3_600_000) => format!("{}h", millis / 3_600_000),
        millis if millis.is_multiple_of(60_000) => format!("{}m", millis / 60_000),
        millis if millis.is_multiple_of(1000) => format!("{}s", millis / 1000),
        millis => format!("{millis}ms"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_duration_is_met_with_examples() {
        assert_eq!(parse("1h 30m").map(Timeout::as_millis), Ok(5_400_000));
        assert!(parse("5").unwrap_err().contains("as 250ms, 90s or 1h30m"));
    }

    #[test]
    fn durations_are_shown_short() {
        for (millis, text) in
            [(0, "0s"), (1, "1ms"), (1500, "1500ms"), (30_000, "30s"), (120_000, "2m")]
        {
            assert_eq!(show(Duration::from_millis(millis)), text);
        }
    }
}
