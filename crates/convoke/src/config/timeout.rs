//! How long something may take: a number of milliseconds, or words such as `90s` and `1h30m`.

use std::borrow::Cow;
use std::str::FromStr;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserializer, Visitor};
use serde::{Deserialize, Serialize};

/// The units, the largest first, and how many milliseconds they have.
const UNITS: [(&str, f64); 5] =
    [("d", 86_400_000.0), ("h", 3_600_000.0), ("m", 60_000.0), ("s", 1_000.0), ("ms", 1.0)];

/// How long one call may take: from a millisecond to a day.
///
/// Zero would fail every call and no limit would hang, so neither can be written down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct Timeout(u64);

impl Timeout {
    /// The longest timeout: a day.
    pub const MAX: Self = Self(86_400_000);

    /// Makes a timeout, moved into the range where it is outside.
    pub const fn from_millis(millis: u64) -> Self {
        match millis {
            0 => Self(1),
            1..=86_400_000 => Self(millis),
            _ => Self::MAX,
        }
    }

    /// Returns the timeout in milliseconds.
    pub const fn as_millis(self) -> u64 {
        self.0
    }

    /// Returns the timeout as a duration.
    pub const fn duration(self) -> Duration {
        Duration::from_millis(self.0)
    }

    fn exactly(millis: u64) -> Result<Self, DurationError> {
        let timeout = Self::from_millis(millis);
        if timeout.0 == millis { Ok(timeout) } else { Err(DurationError::Range) }
    }
}

/// A text that is no duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DurationError {
    /// It is not made of numbers and units.
    #[error("write numbers and units, as 250ms, 90s or 1h30m")]
    Form,
    /// It is too short or too long.
    #[error("it has to lie between 1ms and 24h")]
    Range,
}

/// Reads `250ms`, `90s`, `1.5h` or `1h 30m`: larger units first, each once.
impl FromStr for Timeout {
    type Err = DurationError;

    fn from_str(text: &str) -> Result<Self, DurationError> {
        let mut rest = text.trim();
        let mut units = UNITS.iter();
        let mut millis = 0.0;
        while !rest.is_empty() {
            let (number, unit, after) = piece(rest).ok_or(DurationError::Form)?;
            let number: f64 = number.parse().map_err(|_| DurationError::Form)?;
            let found = units.find(|(name, _)| *name == unit);
            millis += number * found.ok_or(DurationError::Form)?.1;
            rest = after;
        }
        if text.trim().is_empty() {
            return Err(DurationError::Form);
        }
        #[expect(clippy::cast_precision_loss, reason = "a day of milliseconds is exact")]
        let range = 1.0..=Self::MAX.0 as f64;
        if !range.contains(&millis) {
            return Err(DurationError::Range);
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "it was found to be in the range"
        )]
        Self::exactly(millis.round() as u64)
    }
}

/// Takes a number and a unit from the beginning of a text.
fn piece(text: &str) -> Option<(&str, &str, &str)> {
    let number = text.find(|letter: char| !letter.is_ascii_digit() && letter != '.')?;
    let (number, rest) = text.split_at(number);
    let rest = rest.trim_start();
    let unit = rest.find(|letter: char| !letter.is_ascii_alphabetic()).unwrap_or(rest.len());
    let (unit, rest) = rest.split_at(unit);
    let whole = number.starts_with(|letter: char| letter.is_ascii_digit());
    (whole && !number.ends_with('.')).then_some((number, unit, rest.trim_start()))
}

impl<'de> Deserialize<'de> for Timeout {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader)
    }
}

struct Reader;

impl Visitor<'_> for Reader {
    type Value = Timeout;

    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("a duration, as 1h30m, or a number of milliseconds")
    }

    fn visit_u64<E: de::Error>(self, millis: u64) -> Result<Timeout, E> {
        Timeout::exactly(millis).map_err(E::custom)
    }

    fn visit_i64<E: de::Error>(self, millis: i64) -> Result<Timeout, E> {
        let millis = u64::try_from(millis).map_err(|_| E::custom(DurationError::Range))?;
        self.visit_u64(millis)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Timeout, E> {
        text.parse().map_err(E::custom)
    }
}

impl JsonSchema for Timeout {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Timeout".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": ["integer", "string"],
            "minimum": 1,
            "maximum": Self::MAX.0,
            "pattern": r"^\s*([0-9]+(\.[0-9]+)?\s*(ms|s|m|h|d)\s*)+$",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_range_is_accepted() {
        for (json, millis) in [
            ("0", None),
            ("1", Some(1)),
            ("86400000", Some(86_400_000)),
            ("86400001", None),
            ("-1", None),
            ("1.5", None),
            ("\"1h30m\"", Some(5_400_000)),
            ("\"5000\"", None),
        ] {
            let read = serde_json::from_str::<Timeout>(json).ok().map(Timeout::as_millis);
            assert_eq!(read, millis, "{json}");
        }
        assert_eq!(Timeout::from_millis(0).duration(), Duration::from_millis(1));
        assert_eq!(Timeout::from_millis(u64::MAX), Timeout::MAX);
    }

    #[test]
    fn durations_are_numbers_with_units() {
        for (text, millis) in [
            ("1ms", 1),
            ("250ms", 250),
            ("90s", 90_000),
            ("1.5h", 5_400_000),
            ("1h30m", 5_400_000),
            ("1h 30m", 5_400_000),
            (" 1 h 30 m ", 5_400_000),
            ("1m0.5s", 60_500),
            ("24h", 86_400_000),
            ("1d", 86_400_000),
        ] {
            assert_eq!(text.parse().map(Timeout::as_millis), Ok(millis), "{text}");
        }
        for text in [
            "", " ", "5", "s", "-1s", "1e9s", "NaNs", "infs", "é", "1x", "1h1h", "30m1h", "1.s",
            ".5s", "1..5s", "1h30",
        ] {
            assert_eq!(text.parse::<Timeout>(), Err(DurationError::Form), "{text}");
        }
        for text in ["0s", "0.4ms", "25h", "1d1ms", "99999999999999999999h"] {
            assert_eq!(text.parse::<Timeout>(), Err(DurationError::Range), "{text}");
        }
    }
}
