//! What servers that speak OpenAI's wires say when something is wrong, before an answer and in the
//! middle of one.

use serde_json::Value;

use crate::error::ModelErrorKind;
use crate::wire::{Complaint, json, kind_of_status};

/// How much of a message is kept. Providers repeat the input in some.
const MESSAGE_LIMIT: usize = 2_000;
/// How much is quoted of an event that is not JSON.
const QUOTE_LIMIT: usize = 300;

const CONTEXT: [&str; 7] = [
    "context_length_exceeded",
    "exceed_context_size_error",
    "maximum context length",
    "exceeds the available context size",
    "exceeds the context window",
    "context length exceeded",
    "prompt is too long",
];
const QUOTA: [&str; 5] = [
    "insufficient_quota",
    "billing",
    "exceeded your current quota",
    "insufficient balance",
    "insufficient credits",
];
const RATE: [&str; 3] = ["rate_limit", "rate limit", "too many requests"];

/// Reads the body of an error answer.
pub(in crate::wire) fn of_answer(status: u16, body: &[u8]) -> Complaint {
    let words = match serde_json::from_slice::<Value>(body) {
        Ok(value) => Words::of(&value),
        Err(_) => Words { message: json::gist(body), ..Words::default() },
    };
    Complaint::new(words.kind(Some(status)), words.message)
}

/// Reads an error that came as an event, where there is no status.
pub(in crate::wire) fn of_event(value: &Value) -> Complaint {
    let words = Words::of(value);
    let status = words.code.parse().ok().filter(|code| (400..600).contains(code));
    Complaint::new(words.kind(status), words.message)
}

/// Returns the complaint about data that is not what it should be.
pub(in crate::wire) fn unreadable(data: &str) -> Complaint {
    Complaint::malformed(format!("an event cannot be read: {}", cut(data, QUOTE_LIMIT)))
}

/// Returns the complaint about an answer without an end.
pub(in crate::wire) fn unfinished() -> Complaint {
    Complaint::new(ModelErrorKind::Cut, "the answer ended before it was complete")
}

/// The parts of a complaint that mean something.
#[derive(Default)]
struct Words {
    message: String,
    code: String,
    /// What OpenAI calls the type.
    class: String,
}

impl Words {
    /// Finds them: `{"error":{"message",…}}` is OpenAI's shape, `{"error":"…"}` Ollama's,
    /// `{"message":…}` and `{"detail":…}` what many frameworks say. Google wraps it in a list.
    fn of(value: &Value) -> Self {
        let value = value.get(0).unwrap_or(value);
        let inner = match value.get("error") {
            Some(error @ Value::Object(_)) => error,
            _ => value,
        };
        let first = |keys: &[&str]| {
            let mut found = keys.iter().filter_map(|key| inner.get(*key)).map(plain);
            found.find(|text| !text.is_empty())
        };
        let message = first(&["message", "error", "detail"]).unwrap_or_else(|| plain(value));
        Self {
            message: cut(&message, MESSAGE_LIMIT),
            code: first(&["code"]).unwrap_or_default(),
            class: first(&["type"]).unwrap_or_default(),
        }
    }

    /// Says what they mean. Providers agree neither on codes nor on types, so all the words count.
    fn kind(&self, status: Option<u16>) -> ModelErrorKind {
        let all = format!("{} {} {}", self.code, self.class, self.message).to_ascii_lowercase();
        let says = |words: &[&str]| words.iter().any(|word| all.contains(word));
        let limited = matches!(status, Some(429)) || (status.is_none() && says(&RATE));
        match status {
            _ if says(&CONTEXT) => ModelErrorKind::ContextTooLong,
            _ if self.code == "model_not_found" => ModelErrorKind::NotFound,
            _ if self.code == "insufficient_quota" || self.class == "insufficient_quota" => {
                ModelErrorKind::Quota
            }
            Some(402) => ModelErrorKind::Quota,
            Some(429) if says(&QUOTA) => ModelErrorKind::Quota,
            _ if limited => ModelErrorKind::RateLimited,
            Some(status) => kind_of_status(status),
            None if says(&["invalid_api_key", "authentication"]) => ModelErrorKind::Authentication,
            None if says(&["invalid_", "policy"]) => ModelErrorKind::Rejected,
            None => ModelErrorKind::Server,
        }
    }
}

/// Returns a string as it is, and anything else as JSON.
fn plain(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn cut(text: &str, limit: usize) -> String {
    match text.char_indices().nth(limit) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ModelErrorKind as Kind;

    #[test]
    fn bodies_of_many_servers_are_understood() {
        let table: &[(u16, &str, Kind, &str)] = &[
            (
                401,
                r#"{"error":{"message":"Incorrect API key","type":"invalid_request_error","code":"invalid_api_key"}}"#,
                Kind::Authentication,
                "Incorrect API key",
            ),
            (403, r#"{"error":{"message":"no"}}"#, Kind::Authentication, "no"),
            (404, r#"{"error":"model 'x' not found"}"#, Kind::NotFound, "model 'x' not found"),
            (
                403,
                r#"{"error":{"message":"no access","code":"model_not_found"}}"#,
                Kind::NotFound,
                "no access",
            ),
            (
                429,
                r#"{"error":{"message":"Rate limit reached","code":"rate_limit_exceeded"}}"#,
                Kind::RateLimited,
                "Rate limit reached",
            ),
            (
                429,
                r#"{"error":{"message":"You exceeded it","type":"insufficient_quota","code":"insufficient_quota"}}"#,
                Kind::Quota,
                "You exceeded it",
            ),
            (
                429,
                r#"{"error":{"message":"check your plan and billing details"}}"#,
                Kind::Quota,
                "check your plan and billing details",
            ),
            (
                402,
                r#"{"error":{"message":"Insufficient Balance"}}"#,
                Kind::Quota,
                "Insufficient Balance",
            ),
            (
                400,
                r#"{"error":{"message":"too many","code":"context_length_exceeded"}}"#,
                Kind::ContextTooLong,
                "too many",
            ),
            (
                400,
                r#"{"error":{"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error","n_ctx":8192}}"#,
                Kind::ContextTooLong,
                "the request exceeds the available context size",
            ),
            (
                400,
                r#"{"object":"error","message":"This model's maximum context length is 4096 tokens","type":"BadRequestError","code":400}"#,
                Kind::ContextTooLong,
                "This model's maximum context length is 4096 tokens",
            ),
            (400, r#"{"error":{"message":"bad","code":null}}"#, Kind::Rejected, "bad"),
            (
                422,
                r#"{"detail":[{"msg":"Field required"}]}"#,
                Kind::Rejected,
                r#"[{"msg":"Field required"}]"#,
            ),
            (422, r#"{"message":{"detail":"x"},"code":null}"#, Kind::Rejected, r#"{"detail":"x"}"#),
            (400, r#"[{"error":{"code":400,"message":"listed"}}]"#, Kind::Rejected, "listed"),
            (500, r#"{"error":{"message":"oops","type":"server_error"}}"#, Kind::Server, "oops"),
            (503, r#"{"unknown":true}"#, Kind::Server, r#"{"unknown":true}"#),
            (
                502,
                "<html>\n<head><title>502 Bad Gateway</title></head></html>",
                Kind::Server,
                "502 Bad Gateway",
            ),
            (502, "\n upstream is gone\nmore", Kind::Server, "upstream is gone"),
            (500, "", Kind::Server, ""),
            (500, "null", Kind::Server, ""),
        ];
        for (status, body, kind, message) in table {
            let complaint = of_answer(*status, body.as_bytes());
            assert_eq!((complaint.kind, complaint.message.as_str()), (*kind, *message), "{body}");
        }
    }

    #[test]
    fn events_have_no_status() {
        let table = [
            (
                r#"{"error":{"message":"slow down","code":"rate_limit_exceeded"}}"#,
                Kind::RateLimited,
            ),
            (r#"{"error":{"message":"x","code":429}}"#, Kind::RateLimited),
            (r#"{"error":{"message":"x","code":502}}"#, Kind::Server),
            (
                r#"{"error":{"message":"x","code":400,"type":"invalid_request_error"}}"#,
                Kind::Rejected,
            ),
            (r#"{"error":{"message":"x","code":"server_error"}}"#, Kind::Server),
            (r#"{"error":{"message":"x","type":"invalid_request_error"}}"#, Kind::Rejected),
            (r#"{"error":{"message":"x","code":"insufficient_quota"}}"#, Kind::Quota),
            (
                r#"{"type":"error","code":"context_length_exceeded","message":"x"}"#,
                Kind::ContextTooLong,
            ),
            (r#"{"error":"out of memory"}"#, Kind::Server),
        ];
        for (event, kind) in table {
            let complaint = of_event(&serde_json::from_str(event).unwrap());
            assert_eq!(complaint.kind, kind, "{event}");
        }
    }

    #[test]
    fn messages_are_bounded() {
        let page = of_answer(500, "ä".repeat(1_000).as_bytes());
        assert_eq!(page.message.chars().count(), 201);
        let long = format!(r#"{{"error":{{"message":"{}"}}}}"#, "x".repeat(10_000));
        assert_eq!(of_answer(500, long.as_bytes()).message.chars().count(), 2_001);
        assert_eq!(of_answer(500, &[0xff, 0xfe]).kind, Kind::Server);
    }
}
