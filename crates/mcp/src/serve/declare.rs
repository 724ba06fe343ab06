//! How a tool of ours is told to clients: its schemas, its name for people, and what its calls do to
//! the world.

use std::sync::Arc;

use convoke_core::{Kind, Repeat, ToolSpec};
use rmcp::model::{ErrorData, JsonObject, ListToolsResult, Tool, ToolAnnotations};
use serde_json::{Map, Value, json};

/// Where the value is that a client is told as an object although it is none.
pub(super) const WRAPPED: &str = "result";

/// Tells a tool.
pub(super) fn declare(spec: &ToolSpec) -> Tool {
    let mut tool = Tool::new(
        spec.name.clone(),
        spec.description.clone(),
        Arc::new(object(&spec.parameters).unwrap_or_default()),
    );
    tool.title.clone_from(&spec.display_name);
    tool.output_schema = spec.output.as_ref().map(|schema| Arc::new(output_schema(schema)));
    tool.annotations = Some(annotations(spec));
    tool
}

/// Returns one page of the tools. A cursor is the name of the last tool of the page before: it stays
/// right when tools come and go.
pub(super) fn page(
    mut tools: Vec<ToolSpec>,
    cursor: Option<&str>,
    size: usize,
) -> Result<ListToolsResult, ErrorData> {
    tools.sort_by(|one, other| one.name.cmp(&other.name));
    if cursor.is_some_and(|cursor| cursor.is_empty() || cursor.len() > 256) {
        return Err(ErrorData::invalid_params(
            "the cursor is none that this server gave out; ask without one to start again",
            None,
        ));
    }
    let rest =
        tools.iter().skip_while(|spec| cursor.is_some_and(|last| spec.name.as_str() <= last));
    let mut listed: Vec<&ToolSpec> = rest.take(size.max(1) + 1).collect();
    let more = listed.len() > size.max(1);
    if more {
        listed.pop();
    }
    let next = listed.last().filter(|_| more).map(|spec| spec.name.clone());
    let mut page = ListToolsResult::with_all_items(listed.into_iter().map(declare).collect());
    page.next_cursor = next;
    Ok(page)
}

/// Tells whether a value has to be wrapped before it fits what clients are told about it.
pub(super) fn is_wrapped(schema: &Value) -> bool {
    schema.get("type").is_none_or(|kind| kind != "object")
}

/// Returns the schema of what is told beside the text: always of an object, as older clients want it.
fn output_schema(schema: &Value) -> JsonObject {
    if !is_wrapped(schema) {
        return object(schema).unwrap_or_default();
    }
    let mut inner = schema.clone();
    let mut outer = Map::new();
    outer.insert("type".into(), "object".into());
    if let Value::Object(map) = &mut inner {
        // References lead to the root, which is another one now.
        for key in ["$schema", "$defs", "definitions"] {
            if let Some(moved) = map.remove(key) {
                outer.insert(key.into(), moved);
            }
        }
    }
    outer.insert("properties".into(), json!({ WRAPPED: inner }));
    outer.insert("required".into(), json!([WRAPPED]));
    outer
}

fn annotations(spec: &ToolSpec) -> ToolAnnotations {
    let only_looks = spec.kind.only_looks();
    let mut annotations = ToolAnnotations::new().read_only(only_looks);
    if !only_looks {
        // What moves or changes something may take something away; only fetching and thinking do not.
        annotations = annotations
            .destructive(spec.kind != Kind::Fetch)
            .idempotent(spec.repeat != Repeat::Unsafe);
    }
    let open = matches!(spec.kind, Kind::Fetch | Kind::Execute | Kind::Agent | Kind::Other);
    annotations.open_world(open)
}

fn object(schema: &Value) -> Option<JsonObject> {
    schema.as_object().cloned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(name: &str, kind: Kind) -> ToolSpec {
        ToolSpec::new(name, "Does.", kind)
    }

    #[test]
    fn a_client_is_told_what_calls_do_to_the_world() {
        let hints = |spec: &ToolSpec| {
            let told = declare(spec).annotations.unwrap();
            (told.read_only_hint, told.destructive_hint, told.idempotent_hint, told.open_world_hint)
        };
        assert_eq!(hints(&spec("ls", Kind::Read)), (Some(true), None, None, Some(false)));
        let mut edit = spec("edit", Kind::Edit);
        assert_eq!(hints(&edit), (Some(false), Some(true), Some(false), Some(false)));
        edit.repeat = Repeat::Idempotent;
        assert_eq!(hints(&edit), (Some(false), Some(true), Some(true), Some(false)));
        let fetch = spec("get", Kind::Fetch);
        assert_eq!(hints(&fetch), (Some(false), Some(false), Some(false), Some(true)));
    }

    #[test]
    fn schemas_are_told_whole_and_outputs_are_objects() {
        let mut spec = spec("count", Kind::Read);
        spec.display_name = Some("Count".into());
        let parameters = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object", "additionalProperties": false, "$defs": { "A": { "$anchor": "a" } },
            "properties": { "n": { "type": "integer", "maximum": 9 } },
        });
        spec.parameters = parameters.clone().into();
        spec.output = Some(
            json!({ "type": "array", "items": { "$ref": "#/$defs/B" }, "$defs": { "B": {} } })
                .into(),
        );
        let tool = serde_json::to_value(declare(&spec)).unwrap();
        assert_eq!((&tool["title"], &tool["inputSchema"]), (&json!("Count"), &parameters));
        assert_eq!(
            tool["outputSchema"],
            json!({
                "type": "object", "required": ["result"], "$defs": { "B": {} },
                "properties": { "result": { "type": "array", "items": { "$ref": "#/$defs/B" } } },
            })
        );
        spec.output = Some(json!({ "type": "object" }).into());
        let tool = serde_json::to_value(declare(&spec)).unwrap();
        assert_eq!(tool["outputSchema"], json!({ "type": "object" }));
    }

    #[test]
    fn pages_follow_each_other_although_a_tool_goes() {
        let named = |names: &[&str]| -> Vec<ToolSpec> {
            names.iter().map(|name| spec(name, Kind::Read)).collect()
        };
        let names = |page: &ListToolsResult| -> Vec<String> {
            page.tools.iter().map(|tool| tool.name.to_string()).collect()
        };
        let first = page(named(&["d", "b", "a", "c"]), None, 2).unwrap();
        assert_eq!(
            (names(&first), first.next_cursor.as_deref()),
            (vec!["a".into(), "b".into()], Some("b"))
        );
        let second = page(named(&["d", "a", "c"]), Some("b"), 2).unwrap();
        assert_eq!((names(&second), second.next_cursor), (vec!["c".into(), "d".into()], None));
        assert!(page(named(&["a"]), Some("zzz"), 2).unwrap().tools.is_empty());
        assert_eq!(page(named(&["a"]), Some(""), 2).unwrap_err().code.0, -32602);
    }
}
