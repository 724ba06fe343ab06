//! Lists of models, for clients that look for some.

use serde_json::{Value, json};

use crate::render::CREATED;
use crate::seen::Seen;

/// Answers a request for a list of models, if it is one. Three providers have a list at `/v1/models`;
/// their clients are told apart by the header that carries the version or the key.
pub(crate) fn list(seen: &Seen, models: &[String]) -> Option<Value> {
    if seen.method != "GET" {
        return None;
    }
    let each =
        |entry: fn(&str) -> Value| models.iter().map(|model| entry(model)).collect::<Vec<_>>();
    let is_v1 = seen.path.ends_with("/v1/models");
    let is_googles = is_v1 && seen.header("x-goog-api-key").is_some();
    if is_googles || seen.path.ends_with("/v1beta/models") {
        Some(json!({ "models": each(gemini) }))
    } else if seen.path.ends_with("/api/tags") {
        Some(json!({ "models": each(ollama) }))
    } else if !is_v1 {
        None
    } else if seen.header("anthropic-version").is_some() {
        let (first, last) = (models.first(), models.last());
        let data = each(anthropic);
        Some(json!({ "data": data, "has_more": false, "first_id": first, "last_id": last }))
    } else {
        Some(json!({ "object": "list", "data": each(openai) }))
    }
}

fn openai(model: &str) -> Value {
    json!({ "id": model, "object": "model", "created": CREATED, "owned_by": "testkit" })
}

fn anthropic(model: &str) -> Value {
    let created = "2025-06-15T00:00:00Z";
    json!({ "type": "model", "id": model, "display_name": model, "created_at": created })
}

fn gemini(model: &str) -> Value {
    json!({
        "name": format!("models/{model}"),
        "displayName": model,
        "inputTokenLimit": 1_048_576,
        "outputTokenLimit": 65_536,
        "supportedGenerationMethods": ["generateContent", "countTokens"],
    })
}

fn ollama(model: &str) -> Value {
    json!({
        "name": model,
        "model": model,
        "modified_at": "2025-06-15T00:00:00Z",
        "size": 4_000_000_000_u64,
        "digest": "0".repeat(64),
        "details": { "format": "gguf", "family": "test", "parameter_size": "7B", "quantization_level": "Q4_K_M" },
    })
}
