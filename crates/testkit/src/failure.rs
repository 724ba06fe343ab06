//! Errors, shaped as each provider shapes them: status, JSON, and the event that ends a stream.
//!
//! The statuses are the providers' own, which differ: a wrong key is a 401 for most and a 400 for
//! Gemini; an account without money is a 429 for most and a 400 for Anthropic. Where a provider has no
//! code for something, a client can only go by the words, so those are kept close to the provider's.

use std::time::Duration;

use serde_json::{Value, json};

use crate::event::{Event, Piece};
use crate::render::{Context, failed_response};
use crate::wire::Wire;

/// What a provider refuses or fails to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Failure {
    /// Too many requests or tokens in a short time.
    RateLimited,
    /// The account, or the day's allowance, has nothing left.
    QuotaExhausted,
    /// The key is not valid.
    WrongKey,
    /// There is no such model.
    NoSuchModel,
    /// The conversation does not fit into the model's window.
    ContextTooLong,
    /// The provider has too much to do.
    Overloaded,
    /// The provider is broken.
    Internal,
}

/// An error before it is written: a status, the provider's word for it, and what is said.
struct Shape {
    status: u16,
    kind: &'static str,
    code: Option<&'static str>,
    message: String,
}

const fn shape(
    status: u16,
    kind: &'static str,
    code: Option<&'static str>,
    message: String,
) -> Shape {
    Shape { status, kind, code, message }
}

impl Failure {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::RateLimited,
        Self::QuotaExhausted,
        Self::WrongKey,
        Self::NoSuchModel,
        Self::ContextTooLong,
        Self::Overloaded,
        Self::Internal,
    ];

    /// Returns the status a provider answers with.
    pub fn status(self, wire: Wire) -> u16 {
        self.shape(wire, "").status
    }

    fn shape(self, wire: Wire, model: &str) -> Shape {
        match wire {
            Wire::OpenAiChat | Wire::OpenAiResponses => self.openai(model),
            Wire::Anthropic => self.anthropic(model),
            Wire::Gemini => self.gemini(model),
        }
    }

    /// Writes the body of the answer. Gemini says in it how long to wait; the others do so in a header.
    pub(crate) fn body(self, wire: Wire, model: &str, retry_after: Option<Duration>) -> Value {
        let shape = self.shape(wire, model);
        match wire {
            Wire::OpenAiChat => openai_body(&shape, "messages"),
            Wire::OpenAiResponses => openai_body(&shape, "input"),
            Wire::Anthropic => json!({
                "type": "error",
                "error": { "type": shape.kind, "message": shape.message },
                "request_id": "req_testkit",
            }),
            Wire::Gemini => {
                let mut error = json!({
                    "code": shape.status,
                    "message": shape.message,
                    "status": shape.kind,
                });
                let details = self.gemini_details(model, retry_after);
                if let (false, Some(error)) = (details.is_empty(), error.as_object_mut()) {
                    error.insert("details".to_owned(), details.into());
                }
                json!({ "error": error })
            }
        }
    }

    /// Writes the events that end a stream in which `sent` events came before.
    pub(crate) fn events(self, wire: Wire, context: Context<'_>, sent: usize) -> Vec<Event> {
        let shape = self.shape(wire, context.model);
        match wire {
            Wire::OpenAiChat | Wire::Gemini => {
                vec![Event::unnamed(&self.body(wire, context.model, None), Piece::Frame)]
            }
            Wire::Anthropic => {
                let error = json!({ "type": shape.kind, "message": shape.message });
                vec![Event::typed(&json!({ "type": "error", "error": error }), Piece::Frame)]
            }
            Wire::OpenAiResponses => {
                let code = shape.code.unwrap_or(shape.kind);
                let error = json!({
                    "type": "error",
                    "code": code,
                    "message": shape.message,
                    "param": null,
                    "sequence_number": sent,
                });
                let failed = failed_response(context, sent + 1, code, &shape.message);
                vec![Event::typed(&error, Piece::Frame), failed]
            }
        }
    }

    fn openai(self, model: &str) -> Shape {
        const REQUEST: &str = "invalid_request_error";
        match self {
            Self::RateLimited => {
                let message = format!("Rate limit reached for {model} on tokens per min (TPM).");
                shape(429, "tokens", Some("rate_limit_exceeded"), message)
            }
            Self::QuotaExhausted => {
                let message = "You exceeded your current quota; check plan and billing.".to_owned();
                shape(429, "insufficient_quota", Some("insufficient_quota"), message)
            }
            Self::WrongKey => {
                let message = "Incorrect API key provided: sk-…wrong.".to_owned();
                shape(401, REQUEST, Some("invalid_api_key"), message)
            }
            Self::NoSuchModel => {
                let message = format!("The model `{model}` does not exist.");
                shape(404, REQUEST, Some("model_not_found"), message)
            }
            Self::ContextTooLong => {
                let message = "This model's maximum context length is 128000 tokens, \
                               but the messages have 131072."
                    .to_owned();
                shape(400, REQUEST, Some("context_length_exceeded"), message)
            }
            Self::Overloaded => {
                let message = "The engine is currently overloaded.".to_owned();
                shape(503, "server_error", Some("server_error"), message)
            }
            Self::Internal => {
                let message = "The server had an error while processing the request.".to_owned();
                shape(500, "server_error", Some("server_error"), message)
            }
        }
    }

    fn anthropic(self, model: &str) -> Shape {
        const REQUEST: &str = "invalid_request_error";
        let (status, kind, message) = match self {
            Self::RateLimited => {
                let message =
                    "This request would exceed the rate limit of input tokens per minute.";
                (429, "rate_limit_error", message.to_owned())
            }
            Self::QuotaExhausted => (400, REQUEST, "Your credit balance is too low.".to_owned()),
            Self::WrongKey => (401, "authentication_error", "invalid x-api-key".to_owned()),
            Self::NoSuchModel => (404, "not_found_error", format!("model: {model}")),
            Self::ContextTooLong => {
                (400, REQUEST, "prompt is too long: 210000 tokens > 200000 maximum".to_owned())
            }
            Self::Overloaded => (529, "overloaded_error", "Overloaded".to_owned()),
            Self::Internal => (500, "api_error", "Internal server error".to_owned()),
        };
        shape(status, kind, None, message)
    }

    fn gemini(self, model: &str) -> Shape {
        let (status, kind, message) = match self {
            Self::RateLimited => {
                let message = "Resource has been exhausted (requests per minute).";
                (429, "RESOURCE_EXHAUSTED", message.to_owned())
            }
            Self::QuotaExhausted => {
                let message = "You exceeded your current quota; check plan and billing details.";
                (429, "RESOURCE_EXHAUSTED", message.to_owned())
            }
            Self::WrongKey => (400, "INVALID_ARGUMENT", "API key not valid.".to_owned()),
            Self::NoSuchModel => {
                let message = format!("models/{model} is not found for API version v1beta.");
                (404, "NOT_FOUND", message)
            }
            Self::ContextTooLong => {
                let message = "The input token count (1100000) exceeds the maximum number of tokens \
                               allowed (1048576).";
                (400, "INVALID_ARGUMENT", message.to_owned())
            }
            Self::Overloaded => (503, "UNAVAILABLE", "The model is overloaded.".to_owned()),
            Self::Internal => (500, "INTERNAL", "An internal error has occurred.".to_owned()),
        };
        shape(status, kind, None, message)
    }

    fn gemini_details(self, model: &str, retry_after: Option<Duration>) -> Vec<Value> {
        let mut details = Vec::new();
        let quota = match self {
            Self::RateLimited => Some("GenerateRequestsPerMinutePerProjectPerModel"),
            Self::QuotaExhausted => Some("GenerateRequestsPerDayPerProjectPerModel"),
            _ => None,
        };
        if let Some(quota) = quota {
            details.push(json!({
                "@type": "type.googleapis.com/google.rpc.QuotaFailure",
                "violations": [{ "quotaId": quota, "quotaDimensions": { "model": model } }],
            }));
        }
        if self == Self::WrongKey {
            details.push(json!({
                "@type": "type.googleapis.com/google.rpc.ErrorInfo",
                "reason": "API_KEY_INVALID",
                "domain": "googleapis.com",
            }));
        }
        if let Some(pause) = retry_after {
            details.push(json!({
                "@type": "type.googleapis.com/google.rpc.RetryInfo",
                "retryDelay": format!("{}s", pause.as_secs_f64()),
            }));
        }
        details
    }
}

fn openai_body(shape: &Shape, conversation: &str) -> Value {
    let param = (shape.code == Some("context_length_exceeded")).then_some(conversation);
    let (message, kind, code) = (&shape.message, shape.kind, shape.code);
    json!({ "error": { "message": message, "type": kind, "param": param, "code": code } })
}
