//! Requests that a server answers with a question first.
//!
//! Since revision 2026-07-28 a server that needs something from a person or a model does not ask on its
//! own; it answers with what it needs, and is asked again with the answers. That may happen a few times,
//! not for ever.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use convoke_tool::ToolContext;
use rmcp::model::ClientRequest;
use serde_json::{Value, json};

use super::config::Sampling;
use super::connection::{Connection, Terms};
use super::elicit::{self, Elicitor};
use super::failure::Failure;
use super::in_call::Asker;
use super::sample::{self, ForCall};

pub(super) const MAX_ROUNDS: u32 = 10;
/// In revision 2025-11-25: a page has to be visited first. The request is then made again.
const PAGE_FIRST: i64 = -32042;
const MAX_PAGES: usize = 5;
/// How long a server that only wants to be asked again is left alone.
const BREATH: Duration = Duration::from_millis(250);

/// What a server is told when it is asked again.
#[derive(Debug, Default)]
pub(super) struct Answers {
    pub(super) responses: Option<BTreeMap<String, Value>>,
    pub(super) state: Option<String>,
}

/// Asks until there is a result.
pub(super) async fn ask(
    connection: &Connection,
    terms: Terms<'_>,
    request: impl Fn(Answers) -> ClientRequest,
) -> Result<Value, Failure> {
    let mut answers = Answers::default();
    let asker = Asker::of(terms.context);
    for round in 0..MAX_ROUNDS {
        let result = match connection.request(request(answers), terms).await {
            Err(refusal) => {
                visited(connection, terms.context, asker.as_ref(), refusal).await?;
                answers = Answers::default();
                continue;
            }
            Ok(result) => result,
        };
        match result.get("resultType").and_then(Value::as_str) {
            None | Some("complete") => return Ok(result),
            Some("input_required") => {}
            Some(other) => {
                return Err(refused(format!("its result is of a kind that nobody knows: {other}")));
            }
        }
        let state = result.get("requestState").and_then(Value::as_str).map(str::to_owned);
        let responses = match result.get("inputRequests").and_then(Value::as_object) {
            None => {
                tokio::time::sleep(BREATH * (round + 1)).await;
                None
            }
            Some(requests) => {
                let mut responses = BTreeMap::new();
                for (key, request) in requests {
                    let response =
                        respond(connection, terms.context, asker.as_ref(), request).await?;
                    responses.insert(key.clone(), response);
                }
                Some(responses)
            }
        };
        answers = Answers { responses, state };
    }
    Err(too_many())
}

/// What is said of a server that always has something more to be done first.
pub(super) fn too_many() -> Failure {
    refused(format!("it asked for more after {MAX_ROUNDS} rounds of answers"))
}

/// Has the pages visited that a refusal is about. Any other stands, and so does this if nobody visits them.
pub(super) async fn visited(
    connection: &Connection,
    context: Option<&ToolContext>,
    asker: Option<&Arc<Asker>>,
    refusal: Failure,
) -> Result<(), Failure> {
    match refusal {
        Failure::Refused { code: PAGE_FIRST, message, data } => {
            visit(connection, context, asker, message, data).await
        }
        other => Err(other),
    }
}

/// A server wants a page to be visited before it is asked again. If nobody does, the refusal stands, and says which.
async fn visit(
    connection: &Connection,
    context: Option<&ToolContext>,
    asker: Option<&Arc<Asker>>,
    message: String,
    data: Option<Value>,
) -> Result<(), Failure> {
    let pages = data.as_ref().and_then(|data| data.get("elicitations")?.as_array());
    let pages: Vec<&Value> = pages.into_iter().flatten().take(MAX_PAGES).collect();
    let mut visited = !pages.is_empty();
    for page in &pages {
        let request = json!({ "method": "elicitation/create", "params": page });
        let answer = respond(connection, context, asker, &request).await?;
        visited &= answer.get("action").is_some_and(|action| action == "accept");
    }
    if visited {
        return Ok(());
    }
    let addresses = pages.iter().filter_map(|page| page.get("url")?.as_str());
    let addresses = addresses.collect::<Vec<_>>().join(", ");
    let message = format!("{message}; first somebody has to visit: {addresses}");
    Err(Failure::Refused { code: PAGE_FIRST, message, data })
}

async fn respond(
    connection: &Connection,
    context: Option<&ToolContext>,
    asker: Option<&Arc<Asker>>,
    request: &Value,
) -> Result<Value, Failure> {
    let handler = connection.handler();
    let params = request.get("params").cloned().unwrap_or_default();
    let answering = async {
        match request.get("method").and_then(Value::as_str).unwrap_or_default() {
            "elicitation/create" => {
                let elicitor = asker.cloned().map(|asker| asker as Arc<dyn Elicitor>);
                let answered = elicit::answer(&handler.server, &params, &[], elicitor).await;
                answered.map_err(|unaskable| {
                    refused(format!("it asked what cannot be asked: {}", unaskable.0))
                })
            }
            "sampling/createMessage" if handler.sampling == Sampling::Granted => {
                let sampling = ForCall::of(context);
                let answered = sample::answer(&handler.server, &params, sampling).await;
                answered.map_err(|why| refused(format!("it wants the answer of a model: {why}")))
            }
            "sampling/createMessage" => {
                Err(refused("it wants the answer of a model, which it is not granted".to_owned()))
            }
            "roots/list" => Ok(json!({ "roots": [] })),
            other => Err(refused(format!("it asked for something that nobody knows: {other}"))),
        }
    };
    match context {
        None => answering.await,
        Some(context) => tokio::select! {
            // Whoever asks hears as well that the call ends, and records that nobody answered.
            biased;
            answer = answering => answer,
            () = context.cancelled() => Err(Failure::Cancelled),
        },
    }
}

fn refused(message: String) -> Failure {
    Failure::Refused { code: -1, message, data: None }
}
