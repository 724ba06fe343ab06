//! How a result of ours is told to clients: text and media for the model, the value for programs, and
//! an error that a model can act on.

use convoke_core::{CallOutcome, Part, ToolResult, ToolSpec};
use convoke_tool::cut_middle;
use rmcp::model::{CallToolResult, ContentBlock, Resource};
use serde_json::{Value, json};

use super::declare::{WRAPPED, is_wrapped};
use super::service::ServeLimits;

/// The provider of parts that are blocks of this protocol already.
const PROVIDER: &str = "mcp";

/// Tells a result.
pub(super) fn answer(result: ToolResult, spec: &ToolSpec, limits: &ServeLimits) -> CallToolResult {
    let ToolResult { outcome, llm_content, .. } = result;
    let mut content = blocks(llm_content, limits.max_content_bytes);
    let value = match outcome {
        CallOutcome::Failed { .. } => return CallToolResult::error(content),
        CallOutcome::Completed(value) => value,
    };
    let mut answer = match structured(value, spec) {
        None => CallToolResult::success(content),
        Some(value) => match too_large(&value, limits.max_structured_bytes) {
            None => {
                let mut answer = CallToolResult::success(content);
                answer.structured_content = Some(value);
                answer
            }
            // A client that was promised a value of some shape takes nothing less for a success.
            Some(note) if spec.output.is_some() => {
                content.insert(0, ContentBlock::text(format!("Error (failed): {note}")));
                CallToolResult::error(content)
            }
            Some(note) => {
                content.push(ContentBlock::text(format!("[{note}]")));
                CallToolResult::success(content)
            }
        },
    };
    if answer.content.is_empty() {
        // Some clients show nothing but this, and some refuse an answer without it.
        answer.content.push(ContentBlock::text("(no output)"));
    }
    answer
}

/// Returns the value as it was promised: an object.
fn structured(value: Value, spec: &ToolSpec) -> Option<Value> {
    match &spec.output {
        Some(schema) if is_wrapped(schema) => Some(json!({ WRAPPED: value })),
        _ => value.is_object().then_some(value),
    }
}

fn too_large(value: &Value, limit: usize) -> Option<String> {
    let length = serde_json::to_string(value).map_or(usize::MAX, |text| text.len());
    (length > limit).then(|| {
        format!(
            "the value of the result is left out: it has {length} bytes, and {limit} are served; \
             ask for less at once"
        )
    })
}

fn blocks(parts: Vec<Part>, limit: usize) -> Vec<ContentBlock> {
    let mut left = limit;
    parts.into_iter().filter_map(|part| block(part, &mut left)).collect()
}

/// Returns a part as a block, cut or replaced by a remark when there is no room for it.
fn block(part: Part, left: &mut usize) -> Option<ContentBlock> {
    let mut whole = |block: ContentBlock, length: usize, what: &str| {
        if length > *left {
            return ContentBlock::text(format!(
                "[{what} is left out: it has {length} bytes, and {left} more are served]"
            ));
        }
        *left -= length;
        block
    };
    Some(match part {
        Part::Text { text } => {
            let text = cut_middle(&text, *left).unwrap_or(text);
            *left = left.saturating_sub(text.len());
            ContentBlock::text(text)
        }
        Part::Media { mime, data } => {
            let (length, what) = (data.len(), mime.clone());
            let block = if mime.starts_with("image/") {
                ContentBlock::image(data, mime)
            } else if mime.starts_with("audio/") {
                ContentBlock::audio(data, mime)
            } else {
                document(&mime, &data)?
            };
            whole(block, length, &what)
        }
        Part::Link { uri, title } => {
            let name = title.unwrap_or_else(|| uri.clone());
            ContentBlock::resource_link(Resource::new(uri, name))
        }
        Part::Opaque { provider, data } if provider == PROVIDER => {
            let length = data.to_string().len();
            whole(serde_json::from_value(data).ok()?, length, "a part")
        }
        // What a model thinks, what it asks for and what only its provider reads is not a result.
        _ => return None,
    })
}

/// Returns bytes of any kind as a resource that is part of the answer.
fn document(mime: &str, data: &str) -> Option<ContentBlock> {
    let resource = json!({ "uri": "convoke:result", "mimeType": mime, "blob": data });
    serde_json::from_value(json!({ "type": "resource", "resource": resource })).ok()
}

#[cfg(test)]
mod tests {
    use convoke_core::{Kind, Millis, Timestamp, ToolError};

    use super::*;

    fn result(outcome: CallOutcome, parts: Vec<Part>) -> ToolResult {
        ToolResult {
            tool_name: "t".into(),
            call: "c".into(),
            outcome,
            llm_content: parts,
            return_display: None,
            started_at: Timestamp::default(),
            completed_at: Timestamp::default(),
            duration: Millis::default(),
            truncated: None,
            artifacts: Vec::new(),
        }
    }

    fn told(
        outcome: CallOutcome,
        parts: Vec<Part>,
        output: Option<Value>,
        limits: &ServeLimits,
    ) -> Value {
        let mut spec = ToolSpec::new("t", "", Kind::Read);
        spec.output = output.map(Into::into);
        serde_json::to_value(answer(result(outcome, parts), &spec, limits)).unwrap()
    }

    #[test]
    fn every_kind_of_part_is_told() {
        let parts = vec![
            Part::text("hello"),
            Part::Media { mime: "image/png".into(), data: "aW1n".into() },
            Part::Media { mime: "audio/wav".into(), data: "c25k".into() },
            Part::Media { mime: "application/pdf".into(), data: "cGRm".into() },
            Part::Link { uri: "file:///a".into(), title: None },
            Part::Opaque {
                provider: "mcp".into(),
                data: json!({ "type": "resource", "resource": { "uri": "test://a", "text": "x" } }),
            },
            Part::Opaque { provider: "mcp".into(), data: json!({ "type": "unheard of" }) },
            Part::Thought { text: "hm".into() },
        ];
        let told = told(CallOutcome::Completed(Value::Null), parts, None, &ServeLimits::default());
        let kinds: Vec<&str> =
            told["content"].as_array().unwrap().iter().filter_map(|c| c["type"].as_str()).collect();
        assert_eq!(kinds, ["text", "image", "audio", "resource", "resource_link", "resource"]);
        assert_eq!(told["content"][3]["resource"]["blob"], "cGRm");
        assert_eq!(told["isError"], false);
        assert_eq!(told.get("structuredContent"), None);
    }

    #[test]
    fn values_are_told_as_objects() {
        let limits = ServeLimits::default();
        let value = |value, output| {
            told(CallOutcome::Completed(value), vec![], output, &limits)["structuredContent"]
                .clone()
        };
        assert_eq!(value(json!({ "a": 1 }), None), json!({ "a": 1 }));
        assert_eq!(value(json!([1]), None), Value::Null);
        assert_eq!(value(json!([1]), Some(json!({ "type": "array" }))), json!({ "result": [1] }));
        assert_eq!(value(json!({}), Some(json!({ "type": "object" }))), json!({}));
        assert_eq!(value(Value::Null, Some(json!({ "type": "null" }))), json!({ "result": null }));
    }

    #[test]
    fn a_failure_says_what_to_do_and_has_no_value() {
        let error = ToolError::validation(["`path` is required"]);
        let parts = vec![Part::text(format!("Error ({}): {}", error.kind, error.message))];
        let outcome = CallOutcome::Failed { error, partial: Some(json!({ "half": 1 })) };
        let told = told(outcome, parts, None, &ServeLimits::default());
        assert_eq!(told["isError"], true);
        assert!(told["content"][0]["text"].as_str().unwrap().contains("`path` is required"));
        assert_eq!(told.get("structuredContent"), None);
    }

    #[test]
    fn what_is_too_large_is_cut_and_said() {
        let mut limits = ServeLimits::default();
        (limits.max_content_bytes, limits.max_structured_bytes) = (300, 50);
        let parts = vec![
            Part::Media { mime: "image/png".into(), data: "x".repeat(301) },
            Part::text("y".repeat(1000)),
        ];
        let value = json!({ "text": "z".repeat(100) });
        let plain = told(CallOutcome::Completed(value.clone()), parts, None, &limits);
        let text = |index: usize| plain["content"][index]["text"].as_str().unwrap().to_owned();
        assert!(text(0).starts_with("[image/png is left out: it has 301 bytes"), "{}", text(0));
        assert!(text(1).contains("bytes are not shown") && text(1).len() < 400, "{}", text(1));
        assert!(text(2).contains("the value of the result is left out"), "{}", text(2));
        assert_eq!((&plain["isError"], plain.get("structuredContent")), (&json!(false), None));
        let promised =
            told(CallOutcome::Completed(value), vec![], Some(json!({ "type": "object" })), &limits);
        assert_eq!(promised["isError"], true);
        assert!(promised["content"][0]["text"].as_str().unwrap().contains("ask for less at once"));
    }
}
