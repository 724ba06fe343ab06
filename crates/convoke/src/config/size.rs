//! How large something may be: a number of bytes, or words such as `500MB` and `2GiB`.

use std::borrow::Cow;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserializer, Visitor};
use serde::{Deserialize, Serialize};

/// An amount of memory or of a file: from a kibibyte to a pebibyte.
///
/// Less than the least leaves no program running, so it cannot be written down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct Size(u64);

/// A text that is no size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SizeError {
    /// It is not a number and a unit.
    #[error("write a number and a unit, as 500MB, 1GB or 2GiB")]
    Form,
    /// It is too small or too large.
    #[error("it has to lie between 1KiB and 1024TiB")]
    Range,
}

impl Size {
    /// The smallest size.
    pub const MIN: Self = Self(1 << 10);
    /// The largest size.
    pub const MAX: Self = Self(1 << 50);

    /// Returns it in bytes.
    pub const fn bytes(self) -> u64 {
        self.0
    }

    fn exactly(bytes: u64) -> Result<Self, SizeError> {
        let range = Self::MIN.0..=Self::MAX.0;
        if range.contains(&bytes) { Ok(Self(bytes)) } else { Err(SizeError::Range) }
    }
}

/// Reads an amount of bytes, of any size. `KB`, `MB`, `GB` and `TB` are powers of 1000; with an `i`, of
/// 1024.
pub fn parse_bytes(text: &str) -> Result<u64, SizeError> {
    let text = text.trim();
    let end = text.find(|letter: char| !letter.is_ascii_digit() && letter != '.');
    let (number, unit) = text.split_at(end.unwrap_or(text.len()));
    let unit = unit.trim().to_ascii_lowercase();
    let each: u64 = match unit.strip_suffix('b').unwrap_or(&unit) {
        "" => 1,
        "k" => 1000,
        "m" => 1_000_000,
        "g" => 1_000_000_000,
        "t" => 1_000_000_000_000,
        "ki" => 1 << 10,
        "mi" => 1 << 20,
        "gi" => 1 << 30,
        "ti" => 1 << 40,
        _ => return Err(SizeError::Form),
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let whole: u64 = whole.parse().map_err(|_| SizeError::Form)?;
    if fraction.is_empty() || !fraction.bytes().all(|letter| letter.is_ascii_digit()) {
        return Err(SizeError::Form);
    }
    // Three digits after the point say more than anybody means.
    let thousandths: String = fraction.chars().chain("000".chars()).take(3).collect();
    let thousandths: u64 = thousandths.parse().map_err(|_| SizeError::Form)?;
    let part = each / 1000 * thousandths + each % 1000 * thousandths / 1000;
    Ok(whole.saturating_mul(each).saturating_add(part))
}

impl FromStr for Size {
    type Err = SizeError;

    fn from_str(text: &str) -> Result<Self, SizeError> {
        parse_bytes(text).and_then(Self::exactly)
    }
}

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader)
    }
}

struct Reader;

impl Visitor<'_> for Reader {
    type Value = Size;

    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("a size, as 2GiB, or a number of bytes")
    }

    fn visit_u64<E: de::Error>(self, bytes: u64) -> Result<Size, E> {
        Size::exactly(bytes).map_err(E::custom)
    }

    fn visit_i64<E: de::Error>(self, bytes: i64) -> Result<Size, E> {
        let bytes = u64::try_from(bytes).map_err(|_| E::custom(SizeError::Range))?;
        self.visit_u64(bytes)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Size, E> {
        text.parse().map_err(E::custom)
    }
}

impl JsonSchema for Size {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Size".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": ["integer", "string"],
            "format": "bytes",
            "minimum": Self::MIN.0,
            "maximum": Self::MAX.0,
            "pattern": r"^\s*[0-9]+(\.[0-9]+)?\s*([KMGTkmgt][Ii]?)?[Bb]?\s*$",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_read_with_their_units() {
        for (text, bytes) in [
            ("0", 0),
            ("1500", 1500),
            ("12b", 12),
            ("500MB", 500_000_000),
            ("1 gb", 1_000_000_000),
            ("1.5G", 1_500_000_000),
            ("1.5GiB", 1_610_612_736),
            ("2KiB", 2048),
            ("0.25k", 250),
            ("99999999TB", u64::MAX),
        ] {
            assert_eq!(parse_bytes(text), Ok(bytes), "{text}");
        }
        for text in ["", "GB", "1.GB", ".5GB", "1..5G", "1.2.3G", "-1GB", "1 parsec", "1é"] {
            assert_eq!(parse_bytes(text), Err(SizeError::Form), "{text}");
        }
    }

    #[test]
    fn a_size_lies_in_its_range_by_the_type_and_by_the_schema() {
        let schema = schemars::schema_for!(Size).to_value();
        for (json, bytes) in [
            ("1023", None),
            ("1024", Some(1024)),
            ("-1", None),
            ("1.5", None),
            ("1125899906842624", Some(1 << 50)),
            ("1125899906842625", None),
            ("\"2 GiB\"", Some(1 << 31)),
            ("\"1.5kb\"", Some(1500)),
            ("\"soon\"", None),
        ] {
            let value: serde_json::Value = serde_json::from_str(json).unwrap();
            let read = serde_json::from_value::<Size>(value.clone()).ok().map(Size::bytes);
            assert_eq!(read, bytes, "{json}");
            assert_eq!(jsonschema::is_valid(&schema, &value), bytes.is_some(), "{json}");
        }
        assert_eq!("1".parse::<Size>(), Err(SizeError::Range));
    }
}
