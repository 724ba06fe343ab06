//! A JSON Schema that is made when somebody looks at it, and written once.
//!
//! Most tools of a process are never offered to a model, and those that are, are offered with every
//! request: making a schema is put off, and its text is kept.

use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

/// A JSON Schema. Cheap to clone; reads like the [`Value`] it is.
#[derive(Clone)]
pub struct Schema(Arc<Inner>);

struct Inner {
    /// Works it out; where there is nothing for that, it is read from its text.
    make: Option<fn() -> Value>,
    value: OnceLock<Value>,
    text: OnceLock<Box<RawValue>>,
}

impl Schema {
    /// Makes a schema that is worked out when it is first looked at.
    pub fn deferred(make: fn() -> Value) -> Self {
        Self(Arc::new(Inner { make: Some(make), value: OnceLock::new(), text: OnceLock::new() }))
    }

    /// Takes a schema as it is written. It is read when it is first looked at.
    pub fn written(text: Box<RawValue>) -> Self {
        Self(Arc::new(Inner { make: None, value: OnceLock::new(), text: OnceLock::from(text) }))
    }

    /// Returns it, if nobody has to work it out first.
    pub fn known(&self) -> Option<&Value> {
        self.0.value.get()
    }

    /// Changes it. Copies of it stay as they are.
    pub fn edit(&mut self, change: impl FnOnce(&mut Value)) {
        let mut value = Value::clone(self);
        change(&mut value);
        *self = value.into();
    }

    /// Returns it as text, which is the same at every time.
    pub fn text(&self) -> &RawValue {
        self.0.text.get_or_init(|| {
            // A value can always be written; if ever it could not, it would allow nothing.
            serde_json::value::to_raw_value(&**self)
                .unwrap_or_else(|_| RawValue::from_string("false".to_owned()).unwrap_or_default())
        })
    }
}

impl Deref for Schema {
    type Target = Value;

    fn deref(&self) -> &Value {
        self.0.value.get_or_init(|| match (self.0.make, self.0.text.get()) {
            (Some(make), _) => make(),
            // What cannot be read, since it is too deep, allows nothing.
            (None, text) => text
                .and_then(|text| serde_json::from_str(text.get()).ok())
                .unwrap_or(Value::Bool(false)),
        })
    }
}

impl From<Value> for Schema {
    fn from(value: Value) -> Self {
        let made = Self::deferred(Value::default);
        // It is new, so nobody has looked at it.
        drop(made.0.value.set(value));
        made
    }
}

impl From<Schema> for Value {
    fn from(schema: Schema) -> Self {
        Self::clone(&schema)
    }
}

impl PartialEq for Schema {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || **self == **other
    }
}

impl PartialEq<Value> for Schema {
    fn eq(&self, other: &Value) -> bool {
        **self == *other
    }
}

impl fmt::Debug for Schema {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(formatter)
    }
}

impl fmt::Display for Schema {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.text().get())
    }
}

impl Serialize for Schema {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (**self).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Schema {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Value::deserialize(deserializer).map(Self::from)
    }
}

impl JsonSchema for Schema {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        Value::schema_name()
    }

    fn inline_schema() -> bool {
        Value::inline_schema()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        Value::json_schema(generator)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn it_is_worked_out_when_it_is_looked_at() {
        let schema = Schema::deferred(|| json!({ "type": "object" }));
        assert_eq!(schema.known(), None);
        assert_eq!(schema["type"], "object");
        assert_eq!(schema.clone().known(), Some(&json!({ "type": "object" })));
        assert_eq!(schema.text().get(), r#"{"type":"object"}"#);
        assert_eq!(schema, Schema::from(json!({ "type": "object" })));
    }

    #[test]
    fn what_is_written_is_read_when_it_is_looked_at() {
        let text = RawValue::from_string(r#"{"type":"object","b":1,"a":2}"#.to_owned()).unwrap();
        let schema = Schema::written(text.clone());
        assert_eq!(schema.text().get(), text.get());
        assert_eq!(schema.known(), None, "its text is enough for a model");
        assert_eq!(schema["a"], 2);
        let deep = format!("{}{}", "[".repeat(1_000), "]".repeat(1_000));
        let schema = Schema::written(RawValue::from_string(deep).unwrap());
        assert_eq!(schema, json!(false));
    }

    #[test]
    fn in_json_it_is_the_schema_itself() {
        let schema = Schema::from(json!({ "type": "string" }));
        let text = serde_json::to_string(&schema).unwrap();
        assert_eq!(text, r#"{"type":"string"}"#);
        assert_eq!(serde_json::from_str::<Schema>(&text).unwrap(), schema);
    }
}
