//! Money in a configuration file: an exact decimal, written as text.

use std::borrow::Cow;

use convoke_core::Money;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize};

/// An amount of US dollars that is not negative, such as `"1.50"`.
///
/// It is text because a number would be rounded, and short enough that sums stay exact.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct Dollars(Money);

/// How many digits there may be before and after the point.
const WHOLE_DIGITS: usize = 9;
const FRACTION_DIGITS: usize = 12;

impl From<Money> for Dollars {
    fn from(money: Money) -> Self {
        Self(money)
    }
}

impl Dollars {
    /// Reads an amount, or nothing where the text is not one.
    pub fn parse(text: &str) -> Option<Self> {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
        let digits = |part: &str, most: usize| {
            (1..=most).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit())
        };
        let right = digits(whole, WHOLE_DIGITS) && digits(fraction, FRACTION_DIGITS);
        text.parse().ok().filter(|_| right).map(Self)
    }

    /// Returns the amount.
    pub const fn money(self) -> Money {
        self.0
    }
}

impl<'de> Deserialize<'de> for Dollars {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<str>::deserialize(deserializer)?;
        let wrong = "an amount is digits, with at most 12 after a point";
        Self::parse(&text).ok_or_else(|| serde::de::Error::custom(wrong))
    }
}

impl JsonSchema for Dollars {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Dollars".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let pattern = format!(r"^[0-9]{{1,{WHOLE_DIGITS}}}(\.[0-9]{{1,{FRACTION_DIGITS}}})?$");
        json_schema!({ "type": "string", "pattern": pattern })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_amount_is_a_short_decimal() {
        let schema = schemars::schema_for!(Dollars).to_value();
        for (text, right) in [
            ("1.50", true),
            ("0", true),
            ("999999999.123456789012", true),
            ("1000000000", false),
            ("0.1234567890123", false),
            ("-1", false),
            ("+1", false),
            ("$1", false),
            ("1.", false),
            (".5", false),
            ("1e3", false),
            ("1_000", false),
            (" 1", false),
            ("", false),
        ] {
            let json = serde_json::json!(text);
            assert_eq!(Dollars::parse(text).is_some(), right, "{text:?}");
            assert_eq!(serde_json::from_value::<Dollars>(json.clone()).is_ok(), right, "{text:?}");
            assert_eq!(jsonschema::is_valid(&schema, &json), right, "{text:?} by the schema");
        }
        let amount = Dollars::parse("1.50").unwrap();
        assert_eq!(serde_json::to_string(&amount).unwrap(), "\"1.50\"");
        assert_eq!(amount.money().to_string(), "$1.50");
    }
}
