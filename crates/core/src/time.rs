//! Wall time and durations, in the units the rest of the world reads: milliseconds.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A moment of wall time, in milliseconds since the Unix epoch.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(transparent)]
pub struct Timestamp(i64);

impl Timestamp {
    /// Wraps milliseconds since the Unix epoch.
    pub const fn from_millis(millis: i64) -> Self {
        Self(millis)
    }

    /// Returns milliseconds since the Unix epoch.
    pub const fn as_millis(self) -> i64 {
        self.0
    }

    /// Returns the day, as `2026-03-01` (UTC).
    pub fn date(self) -> String {
        // Days since 0000-03-01, in eras of 400 years; the year of the calculation begins in March.
        let days = self.0.div_euclid(86_400_000) + 719_468;
        let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
        let year_of_era =
            (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let month = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * month + 2) / 5 + 1;
        let month = if month < 10 { month + 3 } else { month - 9 };
        let year = year_of_era + era * 400 + i64::from(month <= 2);
        format!("{year:04}-{month:02}-{day:02}")
    }

    /// Returns the moment `duration` later.
    #[must_use]
    pub fn after(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)))
    }
}

/// A duration that is a number of milliseconds in JSON, with microseconds after the point.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Millis(Duration);

impl Millis {
    /// Wraps a duration. What is shorter than a microsecond is cut, so that it survives JSON.
    pub fn new(duration: Duration) -> Self {
        Self(Duration::from_micros(u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)))
    }

    /// Returns the duration.
    pub const fn get(self) -> Duration {
        self.0
    }

    /// Returns the duration in milliseconds, microseconds after the point.
    #[expect(
        clippy::cast_precision_loss,
        reason = "285 years of microseconds fit a double exactly"
    )]
    pub fn as_f64(self) -> f64 {
        self.0.as_micros() as f64 / 1000.0
    }
}

impl From<Duration> for Millis {
    fn from(duration: Duration) -> Self {
        Self::new(duration)
    }
}

impl Serialize for Millis {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let micros = self.0.as_micros();
        match u64::try_from(micros / 1000) {
            Ok(whole) if micros.is_multiple_of(1000) => serializer.serialize_u64(whole),
            _ => serializer.serialize_f64(self.as_f64()),
        }
    }
}

impl<'de> Deserialize<'de> for Millis {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let millis = f64::deserialize(deserializer)?;
        Duration::try_from_secs_f64(millis / 1000.0)
            .map(|exact| Self(Duration::from_micros(round_to_micros(exact))))
            .map_err(serde::de::Error::custom)
    }
}

fn round_to_micros(duration: Duration) -> u64 {
    u64::try_from((duration.as_nanos() + 500) / 1000).unwrap_or(u64::MAX)
}

impl JsonSchema for Millis {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Millis".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "number",
            "minimum": 0,
            "description": "A duration in milliseconds.",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_counted_as_the_calendar_does() {
        for (seconds, date) in [
            (0, "1970-01-01"),
            (951_782_400, "2000-02-29"),
            (1_709_251_199, "2024-02-29"),
            (1_709_251_200, "2024-03-01"),
            (1_798_761_599, "2026-12-31"),
            (-1, "1969-12-31"),
        ] {
            assert_eq!(Timestamp::from_millis(seconds * 1000).date(), date);
        }
    }

    #[test]
    fn whole_milliseconds_have_no_point_and_fractions_survive() {
        for (micros, text) in [(0, "0"), (1_000, "1"), (1_234, "1.234"), (30_000_000, "30000")] {
            let millis = Millis(Duration::from_micros(micros));
            assert_eq!(serde_json::to_string(&millis).unwrap(), text);
            assert_eq!(serde_json::from_str::<Millis>(text).unwrap(), millis);
        }
    }

    #[test]
    fn a_negative_duration_is_refused() {
        assert!(serde_json::from_str::<Millis>("-1").is_err());
    }
}
