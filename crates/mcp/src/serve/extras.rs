//! What a server answers beyond calls of tools: prompts, resources, or a tool that has to speak with
//! its client in the protocol's own words.
//!
//! Requests and answers are JSON as the protocol writes it, so that no type of the library behind this
//! crate becomes part of its interface. An answer that is not what the protocol wants is an error of
//! the server, and its client is told so.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use rmcp::model::{
    CustomNotification, CustomRequest, ErrorCode, ErrorData, ServerNotification, ServerRequest,
};
use rmcp::service::{Peer, PeerRequestOptions, RequestContext, RoleServer, ServiceError};
use serde::Serialize;
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

/// How long a client may take to answer.
const CLIENT_ANSWERS_WITHIN: Duration = Duration::from_mins(5);

/// Answers requests of clients before the tools do.
#[async_trait]
pub trait Extras: Send + Sync + 'static {
    /// Returns what the server says it can do, beside tools: `{ "prompts": {} }`, for instance.
    fn capabilities(&self) -> Map<String, Value>;

    /// Answers a request, or leaves it to the server.
    async fn answer(
        &self,
        method: &str,
        params: Value,
        asker: &Asker,
    ) -> Option<Result<Value, RequestError>>;
}

/// Why a request is not answered.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{message} ({code})")]
pub struct RequestError {
    /// The protocol's number for it.
    pub code: i32,
    /// What is wrong, and what to do.
    pub message: String,
    /// More, for programs.
    pub data: Option<Value>,
}

impl RequestError {
    /// Makes an error without data.
    pub fn new(code: i32, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    /// Adds data.
    #[must_use]
    pub fn with_data(mut self, data: Value) -> Self {
        self.data = Some(data);
        self
    }
}

impl RequestError {
    /// Returns it as the library wants it.
    pub(super) fn into_error(self) -> ErrorData {
        ErrorData::new(ErrorCode(self.code), self.message, self.data)
    }

    fn of(error: ServiceError) -> Self {
        match error {
            ServiceError::McpError(error) => {
                let message = error.message.into_owned();
                Self { code: error.code.0, message, data: error.data }
            }
            other => Self::new(ErrorCode::INTERNAL_ERROR.0, other.to_string()),
        }
    }
}

/// The client that asks.
pub struct Asker {
    peer: Peer<RoleServer>,
    meta: Value,
    capabilities: Value,
    cancellation: CancellationToken,
}

impl Asker {
    pub(super) fn of(context: &RequestContext<RoleServer>) -> Self {
        Self {
            peer: context.peer.clone(),
            meta: json(&context.meta),
            capabilities: context.client_capabilities().map_or(Value::Null, |known| json(&known)),
            cancellation: context.ct.clone(),
        }
    }

    /// Returns what came with the request, `_meta` in the protocol.
    pub const fn meta(&self) -> &Value {
        &self.meta
    }

    /// Returns what the client says it can do.
    pub const fn capabilities(&self) -> &Value {
        &self.capabilities
    }

    /// Returns the token that is cancelled when the client takes its request back, or is gone.
    pub const fn cancellation(&self) -> &CancellationToken {
        &self.cancellation
    }

    /// Asks the client something. Clients of revisions without a handshake cannot be asked.
    pub async fn request(&self, method: &str, params: Value) -> Result<Value, RequestError> {
        let request = ServerRequest::CustomRequest(CustomRequest::new(method, Some(params)));
        let options = PeerRequestOptions::with_timeout(CLIENT_ANSWERS_WITHIN);
        let asked = self.peer.send_request_with_option(request, options).await;
        let answered = asked.map_err(RequestError::of)?.await_response().await;
        answered.map(|answer| json(&answer)).map_err(RequestError::of)
    }

    /// Tells the client something.
    pub async fn notify(&self, method: &str, params: Value) -> Result<(), RequestError> {
        let told = CustomNotification::new(method, Some(params));
        let told = ServerNotification::CustomNotification(told);
        self.peer.send_notification(told).await.map_err(RequestError::of)
    }
}

impl fmt::Debug for Asker {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Asker").field("meta", &self.meta).finish_non_exhaustive()
    }
}

/// Returns a value of the protocol as JSON. All of them can be written.
pub(super) fn json(value: &impl Serialize) -> Value {
    serde_json::to_value(value).unwrap_or_default()
}
