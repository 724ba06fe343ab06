//! What a server answered to a call, as the result of a tool.

use convoke_core::{Part, ToolError};
use convoke_tool::{Content, MAX_DEPTH, ToolOutput};
use jsonschema::Validator;
use serde_json::{Value, json};

use super::bounds::bounded;
use super::failure::names_an_unknown_tool;
use super::offer::is_deeper;

/// How many ways in which a value does not fit its schema are told.
const MAX_ISSUES: usize = 3;

/// Turns an answer into a result. `check` is what the server promised of its value.
pub(super) fn output(server: &str, mut answer: Value, check: Option<&Validator>) -> ToolOutput {
    let structured = answer.get_mut("structuredContent").map(Value::take);
    let structured = structured.filter(|value| !value.is_null());
    let blocks = match answer.get_mut("content").map(Value::take) {
        Some(Value::Array(blocks)) => blocks,
        None | Some(Value::Null) if structured.is_some() => Vec::new(),
        odd => {
            if let (Some(odd), Some(answer)) = (odd, answer.as_object_mut()) {
                answer.insert("content".to_owned(), odd);
            }
            return no_result(server, answer);
        }
    };
    let failed = match answer.get("isError") {
        None | Some(Value::Null) => false,
        Some(Value::Bool(failed)) => *failed,
        Some(_) => true,
    };
    let parts = bounded(blocks.into_iter().flat_map(read).collect());
    if failed {
        return failure(server, structured, parts);
    }
    let problem = match (&structured, check) {
        (Some(value), Some(check)) => mismatch(value, check),
        (None, Some(_)) => Some("there is no structured content at all".to_owned()),
        _ => None,
    };
    let value = structured.unwrap_or_else(|| Value::String(words(&parts)));
    let content = if parts.is_empty() { Content::Value } else { Content::Parts(parts) };
    let output = ToolOutput { value, content, ..ToolOutput::default() };
    match problem {
        None => output,
        Some(problem) => output.failing(
            ToolError::failed(format!(
                "MCP server `{server}` does not keep to the output schema it gave: {problem}. What \
                 it answered is below, unchecked"
            ))
            .with_details(json!({ "server": server })),
        ),
    }
}

/// What was answered is not what a tool answers with: it must not pass for a success.
fn no_result(server: &str, answer: Value) -> ToolOutput {
    ToolOutput::new(answer).failing(
        ToolError::failed(format!(
            "MCP server `{server}` answered with what is no result of a tool; whether the call had an \
             effect is not known. What it answered is below"
        ))
        .with_details(json!({ "server": server })),
    )
}

fn failure(server: &str, structured: Option<Value>, parts: Vec<Part>) -> ToolOutput {
    let mut said = words(&parts);
    if said.trim().is_empty() {
        said = format!("MCP server `{server}` says that the call failed, and nothing more");
    }
    let error = if names_an_unknown_tool(&said) {
        ToolError::not_found(said)
    } else {
        ToolError::failed(said)
    };
    let error = error.with_details(json!({ "server": server }));
    // The words are in the error already.
    let rest: Vec<Part> = parts.into_iter().filter(|part| part.as_text().is_none()).collect();
    let output = match (structured, rest.is_empty()) {
        (Some(value), true) => ToolOutput::new(value),
        (Some(value), false) => {
            ToolOutput { value, content: Content::Parts(rest), ..ToolOutput::default() }
        }
        (None, true) => ToolOutput::default(),
        (None, false) => {
            ToolOutput { value: json!({}), content: Content::Parts(rest), ..ToolOutput::default() }
        }
    };
    output.failing(error)
}

fn mismatch(value: &Value, check: &Validator) -> Option<String> {
    let issue = |error: jsonschema::ValidationError<'_>| {
        let place = error.instance_path().as_str().to_owned();
        let text: String = error.to_string().chars().take(200).collect();
        if place.is_empty() { text } else { format!("`{place}`: {text}") }
    };
    if is_deeper(value, MAX_DEPTH) {
        return Some(format!("it is nested more than {MAX_DEPTH} levels deep"));
    }
    if check.is_valid(value) {
        return None;
    }
    let issues: Vec<String> = check.iter_errors(value).take(MAX_ISSUES).map(issue).collect();
    (!issues.is_empty()).then(|| issues.join("; "))
}

fn words(parts: &[Part]) -> String {
    parts.iter().filter_map(Part::as_text).collect::<Vec<_>>().join("\n")
}

/// Reads one block of content.
pub(super) fn read(mut block: Value) -> Vec<Part> {
    let has = |name: &str| block.get(name).is_some_and(Value::is_string);
    match block.get("type").and_then(Value::as_str) {
        Some("text") if has("text") => return vec![Part::text(taken(&mut block, "text"))],
        Some("image" | "audio") if has("data") && has("mimeType") => {
            let mime = taken(&mut block, "mimeType");
            return vec![Part::Media { mime, data: taken(&mut block, "data") }];
        }
        Some("resource") => {
            if let Some(parts) = block.get("resource").and_then(contents) {
                return parts;
            }
        }
        Some("resource_link") => return vec![Part::text(link(&block))],
        _ => {}
    }
    // What nobody knows is shown as it came: a model may understand it.
    vec![Part::text(block.to_string())]
}

/// Takes a text out, since it may be long.
fn taken(block: &mut Value, name: &str) -> String {
    match block.get_mut(name).map(Value::take) {
        Some(Value::String(text)) => text,
        _ => String::new(),
    }
}

/// Reads the contents of a resource.
pub(super) fn contents(resource: &Value) -> Option<Vec<Part>> {
    let text = |name: &str| resource.get(name).and_then(Value::as_str);
    let uri = text("uri").unwrap_or_default();
    if let Some(body) = text("text") {
        return Some(vec![Part::text(format!("[resource {uri}]\n{body}"))]);
    }
    let data = text("blob")?.to_owned();
    let mime = text("mimeType").unwrap_or("application/octet-stream").to_owned();
    Some(vec![Part::text(format!("[resource {uri}] {mime}")), Part::Media { mime, data }])
}

/// Returns a pointer to a resource as a line.
fn link(resource: &Value) -> String {
    let text = |name: &str| resource.get(name).and_then(Value::as_str);
    let name = text("title").or_else(|| text("name")).unwrap_or_default();
    let mut line = format!("[resource {name}]({})", text("uri").unwrap_or_default());
    for extra in [text("mimeType"), text("description")].into_iter().flatten() {
        line.push(' ');
        line.push_str(extra);
    }
    if let Some(size) = resource.get("size").and_then(Value::as_u64) {
        line.push_str(&format!(" {size} bytes"));
    }
    line
}

#[cfg(test)]
mod tests {
    use convoke_core::ErrorKind;

    use super::*;

    #[test]
    fn every_kind_of_content_is_shown() {
        let answer = json!({ "content": [
            { "type": "text", "text": "hello" },
            { "type": "image", "data": "AAAA", "mimeType": "image/png" },
            { "type": "audio", "data": "BBBB", "mimeType": "audio/wav" },
            { "type": "resource", "resource": { "uri": "a:1", "text": "inside" } },
            { "type": "resource", "resource": { "uri": "a:2", "blob": "CCCC" } },
            { "type": "resource_link", "uri": "a:3", "name": "n", "mimeType": "text/plain", "size": 3 },
            { "type": "hologram", "depth": 3 },
        ] });
        let output = output("s", answer, None);
        let Content::Parts(parts) = &output.content else { panic!("{output:?}") };
        let media = |mime: &str, data: &str| Part::Media { mime: mime.into(), data: data.into() };
        assert_eq!(parts[0], Part::text("hello"));
        assert_eq!(parts[1], media("image/png", "AAAA"));
        assert_eq!(parts[2], media("audio/wav", "BBBB"));
        assert_eq!(parts[3], Part::text("[resource a:1]\ninside"));
        assert_eq!(parts[5], media("application/octet-stream", "CCCC"));
        assert_eq!(parts[6], Part::text("[resource n](a:3) text/plain 3 bytes"));
        assert!(parts[7].as_text().unwrap().contains("hologram"));
        assert!(output.failure.is_none());
    }

    #[test]
    fn what_is_no_result_is_no_success() {
        for answer in
            [json!("just a text"), json!({}), json!({ "content": "x" }), json!([1]), json!(null)]
        {
            let output = output("s", answer.clone(), None);
            let error = output.failure.unwrap_or_else(|| panic!("{answer}"));
            assert!(error.message.contains("no result of a tool"), "{error}");
            assert_eq!(output.value, answer);
        }
        let odd = json!({ "content": [{ "type": "text", "text": "no" }], "isError": "yes" });
        assert_eq!(output("s", odd, None).failure.unwrap().message, "no");
        assert!(output("s", json!({ "content": [] }), None).failure.is_none());
    }

    #[test]
    fn structured_content_is_the_value() {
        let answer = json!({ "structuredContent": { "n": 1 }, "content": [{ "type": "text", "text": "one" }] });
        let output = output("s", answer, None);
        assert_eq!(output.value, json!({ "n": 1 }));
        assert_eq!(output.content, Content::Parts(vec![Part::text("one")]));
    }

    #[test]
    fn a_server_that_breaks_its_promise_is_told_on_and_its_answer_is_kept() {
        let check = jsonschema::validator_for(
            &json!({ "type": "object", "properties": { "n": { "type": "integer" } } }),
        )
        .unwrap();
        let answer = json!({ "structuredContent": { "n": "one" } });
        let output_of = output("s", answer, Some(&check));
        let error = output_of.failure.unwrap();
        assert_eq!(error.kind, ErrorKind::Failed);
        assert!(error.message.contains("output schema") && error.message.contains("/n"), "{error}");
        assert_eq!(output_of.value, json!({ "n": "one" }));
        let nothing = output("s", json!({ "content": [] }), Some(&check));
        assert!(nothing.failure.unwrap().message.contains("no structured content"));
    }

    #[test]
    fn a_failed_call_says_why_and_an_unknown_tool_is_not_found() {
        let says = |text: &str| {
            let content = json!([{ "type": "text", "text": text }]);
            output("s", json!({ "isError": true, "content": content }), None).failure.unwrap()
        };
        assert_eq!(says("disk full").message, "disk full");
        assert_eq!(says("disk full").kind, ErrorKind::Failed);
        assert_eq!(says("MCP error -32602: Tool x not found").kind, ErrorKind::NotFound);
        assert!(says(" ").message.contains("`s`"));
    }
}
