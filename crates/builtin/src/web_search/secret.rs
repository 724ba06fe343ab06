//! A key that is sent and never shown.

use std::fmt;

use convoke_core::ToolError;
use serde_json::Value;
use url::form_urlencoded::byte_serialize;

/// What stands where the key stood.
const MASK: &str = "***";

/// A key for a search engine.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Secret(String);

impl Secret {
    /// Takes a key; an empty one is none.
    pub(super) fn new(text: &str) -> Option<Self> {
        let text = text.trim();
        (!text.is_empty()).then(|| Self(text.to_owned()))
    }

    /// Returns the key, for the request that needs it.
    pub(super) fn expose(&self) -> &str {
        &self.0
    }

    /// Takes the key out of a text, as it is and as it stands in a URL.
    pub(super) fn hide(&self, text: &mut String) {
        let encoded: String = byte_serialize(self.0.as_bytes()).collect();
        for form in [&self.0, &encoded] {
            if text.contains(form) {
                *text = text.replace(form, MASK);
            }
        }
    }

    /// Takes the key out of everything an error says.
    pub(super) fn scrub(&self, mut error: ToolError) -> ToolError {
        self.hide(&mut error.message);
        error.causes.iter_mut().for_each(|cause| self.hide(cause));
        if let Some(details) = &mut error.details {
            each_text(details, &|text| self.hide(text));
        }
        error
    }
}

fn each_text(value: &mut Value, change: &impl Fn(&mut String)) {
    match value {
        Value::String(text) => change(text),
        Value::Array(items) => items.iter_mut().for_each(|item| each_text(item, change)),
        Value::Object(map) => map.values_mut().for_each(|item| each_text(item, change)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(MASK)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_key_is_taken_out_of_all_parts_of_an_error() {
        let secret = Secret::new(" k/1 2 ").unwrap();
        let mut error = ToolError::failed("bad key k/1 2 in ?key=k%2F1+2&q=x")
            .with_details(json!({ "seen": ["k/1 2"], "status": 400 }));
        error.causes.push("k/1 2".into());
        let error = secret.scrub(error);
        assert_eq!(error.message, "bad key *** in ?key=***&q=x");
        assert_eq!(error.details, Some(json!({ "seen": ["***"], "status": 400 })));
        assert_eq!(error.causes, ["***"]);
        assert_eq!(format!("{secret:?}"), "***");
        assert_eq!(Secret::new("  "), None);
    }
}
