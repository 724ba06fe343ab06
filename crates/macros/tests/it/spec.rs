//! What a tool made by the attribute says about itself.

use std::time::Duration;

use convoke_core::{Category, Concurrency, EffectRules, Kind, Millis, Repeat};
use convoke_macros::tool;
use convoke_tool::{Tool, ToolContext};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

#[derive(Serialize, JsonSchema)]
struct Forecast {
    /// The city.
    city: String,
    /// Degrees.
    degrees: i32,
}

/// Tells the weather of a city.
///
/// It knows:
///   - today,
///   - tomorrow.
#[tool(kind = read, category = network, timeout_ms = 5000, repeat = idempotent,
    name = "weather-report", display_name = "Weather", version = "2", reads(cache), writes(output),
    fetches(url), alias(town = city, cache_path = cache), exclusive, streaming, markdown,
    crate = convoke_tool)]
async fn weather(
    /// The city.
    city: String,
    /// Days ahead.
    #[schemars(range(min = 1, max = 7))]
    days: Option<u8>,
    /// Where to look first.
    #[serde(default)]
    cache: String,
    /// Where to write it down.
    #[serde(rename = "out")]
    output: String,
    /// Whom to ask.
    url: String,
    context: ToolContext,
) -> Result<Forecast, String> {
    context.progress().text(format!("{days:?} {cache} {output} {url}"));
    Ok(Forecast { city, degrees: 20 })
}

/// Does nothing.
#[tool(crate = convoke_tool)]
fn idle() {}

#[test]
fn everything_that_was_said_is_in_the_spec() {
    let tool = weather();
    let spec = tool.spec();
    assert_eq!(spec.name, "weather-report");
    assert_eq!(spec.display_name.as_deref(), Some("Weather"));
    assert_eq!(
        spec.description,
        "Tells the weather of a city.\n\nIt knows:\n  - today,\n  - tomorrow."
    );
    assert_eq!(spec.version.as_deref(), Some("2"));
    assert_eq!((spec.kind, spec.category), (Kind::Read, Category::Network));
    assert_eq!((spec.repeat, spec.concurrency), (Repeat::Idempotent, Concurrency::Exclusive));
    assert_eq!(spec.timeout_ms, Some(Millis::new(Duration::from_secs(5))));
    assert!(spec.streaming && spec.markdown);
    assert_eq!(
        spec.effects,
        EffectRules {
            reads: vec!["cache".into()],
            writes: vec!["out".into()],
            urls: vec!["url".into()],
        }
    );
    let aliases: Vec<(&str, &str)> =
        spec.aliases.iter().map(|(other, name)| (other.as_str(), name.as_str())).collect();
    assert_eq!(aliases, [("cache_path", "cache"), ("town", "city")]);
}

#[test]
fn parameters_and_value_have_schemas() {
    let tool = weather();
    assert_eq!(
        tool.spec().parameters,
        json!({
            "type": "object",
            "properties": {
                "city": { "type": "string", "description": "The city." },
                "days": {
                    "type": "integer", "minimum": 1, "maximum": 7, "description": "Days ahead.",
                },
                "cache": {
                    "type": "string", "default": "", "description": "Where to look first.",
                },
                "out": { "type": "string", "description": "Where to write it down." },
                "url": { "type": "string", "description": "Whom to ask." },
            },
            "required": ["city", "out", "url"],
            "additionalProperties": false,
        })
    );
    assert_eq!(
        tool.spec().output.clone().map(Value::from),
        Some(json!({
            "type": "object",
            "properties": {
                "city": { "type": "string", "description": "The city." },
                "degrees": { "type": "integer", "description": "Degrees." },
            },
            "required": ["city", "degrees"],
        }))
    );
}

#[test]
fn what_is_not_said_is_the_careful_default() {
    let tool = idle();
    let spec = tool.spec();
    assert_eq!((spec.name.as_str(), spec.description.as_str()), ("idle", "Does nothing."));
    assert_eq!((spec.kind, spec.category), (Kind::Other, Category::Custom));
    assert_eq!((spec.repeat, spec.concurrency), (Repeat::Unsafe, Concurrency::Shared));
    assert_eq!(spec.timeout_ms, None);
    assert_eq!(
        spec.parameters,
        json!({ "type": "object", "properties": {}, "additionalProperties": false })
    );
}
