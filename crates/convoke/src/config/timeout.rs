//! How long something may take, as a whole number of milliseconds.

use std::borrow::Cow;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize};

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
}

impl<'de> Deserialize<'de> for Timeout {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let millis = u64::deserialize(deserializer)?;
        let timeout = Self::from_millis(millis);
        if timeout.0 == millis {
            Ok(timeout)
        } else {
            let range = format!("a timeout must lie between 1 and {} ms", Self::MAX.0);
            Err(serde::de::Error::custom(range))
        }
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
        json_schema!({ "type": "integer", "minimum": 1, "maximum": Self::MAX.0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_range_is_accepted() {
        for (json, millis) in
            [("0", None), ("1", Some(1)), ("86400000", Some(86_400_000)), ("86400001", None)]
        {
            let read = serde_json::from_str::<Timeout>(json).ok().map(Timeout::as_millis);
            assert_eq!(read, millis, "{json}");
        }
        assert_eq!(Timeout::from_millis(0).duration(), Duration::from_millis(1));
        assert_eq!(Timeout::from_millis(u64::MAX), Timeout::MAX);
    }
}
