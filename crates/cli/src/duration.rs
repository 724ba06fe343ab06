//! Durations as people write and read them: `500ms`, `2s`, `1.5m`, `1h30m`.

use std::time::Duration;

use convoke::config::Timeout;

/// Reads a duration between a millisecond and a day.
pub(crate) fn parse(text: &str) -> Result<Timeout, String> {
    text.parse().map_err(|error: convoke::config::DurationError| error.to_string())
}

/// Reads how long ago something was, or how old: `90s`, `2h`, `30d`, `2w`, `1d12h`.
pub(crate) fn parse_age(text: &str) -> Result<Duration, String> {
    const UNITS: [(&str, u64); 5] =
        [("w", 604_800), ("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1)];
    let wrong = || "write numbers and units, as 90s, 2h, 30d or 1d12h".to_owned();
    let mut units = UNITS.iter();
    let mut seconds: u64 = 0;
    let mut rest = text.trim();
    if rest.is_empty() {
        return Err(wrong());
    }
    while !rest.is_empty() {
        let digits = rest.find(|letter: char| !letter.is_ascii_digit()).ok_or_else(wrong)?;
        let (number, after) = rest.split_at(digits);
        let number: u64 = number.parse().map_err(|_| wrong())?;
        let length = after.chars().next().map_or(0, char::len_utf8);
        let (unit, after) = after.split_at(length);
        let (_, each) = units.find(|(name, _)| *name == unit).ok_or_else(wrong)?;
        seconds = seconds.saturating_add(number.saturating_mul(*each));
        rest = after.trim_start();
    }
    Ok(Duration::from_secs(seconds))
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
    fn ages_can_be_longer_than_a_day() {
        for (text, seconds) in [
            ("90s", 90),
            ("2h", 7_200),
            ("30d", 2_592_000),
            ("2w", 1_209_600),
            ("1d 12h", 129_600),
            ("0s", 0),
        ] {
            assert_eq!(parse_age(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        for text in ["", " ", "5", "d", "1x", "-1d", "1.5d", "1h1d", "1é", "99999999999999999999d"]
        {
            assert!(parse_age(text).unwrap_err().contains("as 90s, 2h, 30d"), "{text}");
        }
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
