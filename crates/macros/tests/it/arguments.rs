//! How arguments reach the function.

use convoke_core::ErrorKind;
use convoke_macros::tool;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::call;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Order {
    Name,
    Size,
}

/// Says what it was given.
#[tool(kind = think, alias(label = name), crate = convoke_tool)]
fn say(
    /// The name.
    name: String,
    /// How many.
    count: Option<u32>,
    /// In which order.
    order: Option<Order>,
    /// A default of its type.
    #[serde(default)]
    mut tags: Vec<String>,
    /// A default of ours.
    #[serde(default = "seven")]
    limit: u8,
    /// Another name in JSON.
    #[serde(rename = "type")]
    kind: Option<String>,
    /// A word of Rust.
    r#ref: Option<bool>,
    /// A name that the attribute might use too.
    arguments: Option<Value>,
) -> String {
    tags.sort();
    let reference = r#ref;
    format!("{name} {count:?} {order:?} {tags:?} {limit} {kind:?} {reference:?} {arguments:?}")
}

fn seven() -> u8 {
    7
}

#[tokio::test]
async fn what_is_left_out_is_none_or_the_default() {
    let result = call(say(), json!({ "name": "a" })).await;
    assert_eq!(result.text(), "a None None [] 7 None None None");
    let result = call(say(), json!({ "label": "a", "count": null, "tags": null })).await;
    assert_eq!(result.text(), "a None None [] 7 None None None");
}

#[tokio::test]
async fn what_is_given_arrives_under_its_json_name() {
    let arguments = json!({
        "name": "a", "count": 2, "order": "size", "tags": ["y", "x"], "limit": 9, "type": "t",
        "ref": true, "arguments": 1,
    });
    let result = call(say(), arguments).await;
    assert_eq!(
        result.text(),
        r#"a Some(2) Some(Size) ["x", "y"] 9 Some("t") Some(true) Some(Number(1))"#
    );
}

#[tokio::test]
async fn what_does_not_fit_is_refused() {
    for (arguments, says) in [
        (json!({}), "`name` is missing"),
        (json!({ "name": 1 }), "`name` has to be of type string, not 1"),
        (json!({ "name": "a", "nam": "b" }), "`nam` is not a parameter; did you mean `name`?"),
        (json!({ "name": "a", "kind": "t" }), "`kind` is not a parameter"),
        (json!({ "name": "a", "limit": 256 }), "`limit`"),
        (json!({ "name": "a", "order": "date" }), "`order`"),
    ] {
        let result = call(say(), arguments.clone()).await;
        assert_eq!(result.error_kind(), Some(ErrorKind::Validation), "{arguments}");
        assert!(result.text().contains(says), "{arguments}: {}", result.text());
    }
}
