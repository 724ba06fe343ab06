//! What a call of a tool made by the attribute gives back.

use std::fmt;

use convoke_core::{ErrorKind, Kind};
use convoke_macros::tool;
use convoke_tool::testing::Conformance;
use convoke_tool::{Rendered, Tool, ToolContext, ToolError, ToolOutput, ToolRegistry};
use serde_json::json;

use crate::call;

#[derive(Debug)]
struct TooMuch(std::num::TryFromIntError);

impl fmt::Display for TooMuch {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("that is too much")
    }
}

impl std::error::Error for TooMuch {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.0)
    }
}

/// Makes a number small.
#[tool(kind = think, crate = convoke_tool)]
fn shrink(
    /// The number.
    number: i64,
) -> Result<u8, TooMuch> {
    u8::try_from(number).map_err(TooMuch)
}

/// Never finds anything.
#[tool(kind = search, crate = convoke_tool)]
async fn seek(context: &ToolContext) -> Result<(), ToolError> {
    Err(ToolError::not_found(format!("nothing for {} in {}", context.task(), context.call())))
}

/// Counts down.
#[tool(kind = think, crate = convoke_tool)]
async fn countdown(
    /// Where to start.
    from: u8,
    context: ToolContext,
) -> Vec<u8> {
    context.progress().text("down");
    match from.checked_sub(1) {
        None => vec![0],
        // The name still means the function here, not the tool.
        Some(next) => [vec![from], Box::pin(countdown(next, context)).await].concat(),
    }
}

/// Shows one thing and means another.
#[tool(kind = think, crate = convoke_tool)]
async fn show() -> Rendered<u8> {
    Rendered::new(7, "seven")
}

/// Makes its output by hand.
#[tool(kind = think, crate = convoke_tool)]
fn by_hand() -> serde_json::Result<ToolOutput> {
    Ok(ToolOutput::new(serde_json::from_str("{\"a\":1}")?).with_text("a is 1"))
}

mod inner {
    /// Belongs to a module.
    #[super::tool(kind = think, crate = convoke_tool)]
    #[expect(unused_variables, reason = "lint levels reach the body")]
    pub(crate) async fn visible(_: convoke_tool::ToolContext) -> bool {
        let nobody_reads_this = 1;
        true
    }

    /// Is not there.
    #[super::tool(crate = convoke_tool)]
    #[cfg(any())]
    pub(crate) fn absent() {}
}

#[tokio::test]
async fn values_come_back() {
    assert_eq!(call(shrink(), json!({ "number": 7 })).await.value(), Some(&json!(7)));
    assert_eq!(call(countdown(), json!({ "from": 2 })).await.value(), Some(&json!([2, 1, 0])));
    assert_eq!(call(inner::visible(), json!({})).await.value(), Some(&json!(true)));
    let shown = call(show(), json!({})).await;
    assert_eq!((shown.value(), shown.text().as_str()), (Some(&json!(7)), "seven"));
    let made = call(by_hand(), json!({})).await;
    assert_eq!((made.value(), made.text().as_str()), (Some(&json!({ "a": 1 })), "a is 1"));
}

#[tokio::test]
async fn errors_keep_their_kind_and_their_causes() {
    let missing = call(seek(), json!({})).await;
    assert_eq!(missing.error_kind(), Some(ErrorKind::NotFound));
    assert_eq!(missing.text(), "Error (not_found): nothing for testing in c1");

    let failed = call(shrink(), json!({ "number": 256 })).await;
    let error = failed.error().unwrap();
    assert_eq!((error.kind, error.message.as_str()), (ErrorKind::Failed, "that is too much"));
    assert_eq!(error.causes, ["out of range integral type conversion attempted"]);
}

#[test]
fn tools_are_registered_like_any_other() {
    let registry = ToolRegistry::new();
    registry.register(shrink()).unwrap();
    registry.register(inner::visible()).unwrap();
    assert!(registry.register(shrink()).is_err());
    let kinds: Vec<Kind> = registry.list().iter().map(|tool| tool.spec().kind).collect();
    assert_eq!(kinds, [Kind::Think, Kind::Think]);
}

#[test]
fn a_tool_can_be_made_more_than_once() {
    assert_eq!(countdown().spec(), countdown().spec());
}

#[tokio::test]
async fn what_the_attribute_makes_conforms() {
    Conformance::new(shrink()).valid(json!({ "number": 7 })).run().await.assert();
    Conformance::new(countdown()).valid(json!({ "from": 3 })).run().await.assert();
    Conformance::new(show()).run().await.assert();
}
