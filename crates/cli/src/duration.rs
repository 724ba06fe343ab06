//! Durations as people write and read them: `500ms`, `2s`, `1.5m`, `1h`.

use std::time::Duration;

const UNITS: [(&str, f64); 4] = [("ms", 0.001), ("s", 1.0), ("m", 60.0), ("h", 3600.0)];
const LONGEST_SECONDS: f64 = 86_400.0;

/// Reads a duration between a millisecond and a day.
pub(crate) fn parse(text: &str) -> Result<Duration, String> {
    let split = text.find(|letter: char| letter.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let Some((_, seconds)) = UNITS.iter().find(|(name, _)| *name == unit) else {
        return Err("write a number and a unit, as 500ms, 30s, 5m or 1h".to_owned());
    };
    let number: f64 = number.parse().map_err(|_| format!("`{number}` is not a number"))?;
    let total = number * seconds;
    if (0.001..=LONGEST_SECONDS).contains(&total) {
        Ok(Duration::from_secs_f64(total))
    } else {
        Err("it has to lie between 1ms and 24h".to_owned())
    }
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
    fn durations_have_a_number_and_a_unit() {
        for (text, millis) in
            [("1ms", 1), ("500ms", 500), ("2s", 2000), ("1.5m", 90_000), ("24h", 86_400_000)]
        {
            assert_eq!(parse(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        for text in ["", "5", "s", "-1s", "0s", "25h", "1 s", "1d", "1e9s", "NaNs", "infs", "é"] {
            assert!(parse(text).is_err(), "{text}");
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
