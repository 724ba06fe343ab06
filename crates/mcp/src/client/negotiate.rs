//! How the two sides find out which form of the protocol they speak.
//!
//! A server of revision 2026-07-28 answers `server/discover`; an older one wants `initialize` first. Which
//! it is cannot be seen from outside, and a program may need half a minute before it says anything. So a
//! server that is not known is asked to discover, and if it stays silent it is asked to initialise *as
//! well*: whichever answer comes is good, however late it comes, and the other is dropped. This is done
//! here and not by the library, which drops the first question when it asks the second, and then takes the
//! late answer to it for a broken connection.
//!
//! A server that refuses the revision it is asked in says which ones it speaks. If ours is among them all
//! the same, it is asked once more in that one, and not in an older one.

use std::time::Duration;

use rmcp::RoleClient;
use rmcp::model::{
    ClientConfig, ClientJsonRpcMessage, ClientNotification, ClientRequest, ClientResult,
    DiscoverRequest, DiscoverRequestParams, ErrorCode, ErrorData, InitializeRequest,
    InitializedNotification, ProtocolVersion, RequestId, RequestMetaObject, ServerJsonRpcMessage,
    ServerPeerInfo, ServerRequest, ServerResult,
};
use rmcp::transport::Transport;
use tokio::time::Instant;

/// Far from where the numbers of ordinary requests begin, so that a late answer is nobody else's.
const DISCOVER: RequestId = RequestId::Number(1_000_000_001);
const INITIALIZE: RequestId = RequestId::Number(1_000_000_002);
const DISCOVER_AGAIN: RequestId = RequestId::Number(1_000_000_003);

/// What is asked, and in which order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Opening {
    /// To discover first; to initialise if that is refused, or not answered for so long.
    Probe(Duration),
    /// To initialise first; to discover if that is refused.
    Greet,
    /// To discover, and nothing else.
    OnlyDiscover,
    /// To initialise, and nothing else.
    OnlyInitialize,
}

/// Why nothing was agreed on.
#[derive(Debug, thiserror::Error)]
pub(super) enum Disagreement {
    /// The other side closed the connection.
    #[error("it closed the connection before it had answered")]
    Closed,
    /// A question could not be sent.
    #[error("{0}")]
    Unsent(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The other side refused.
    #[error("it refused to begin: {} (code {})", .0.message, .0.code.0)]
    Refused(ErrorData),
    /// No revision is spoken by both.
    #[error("it speaks none of the revisions that are spoken here, but {0}")]
    Foreign(String),
    /// The answer was no answer to what was asked.
    #[error("it answered something else than it was asked")]
    Odd,
}

/// Agrees on a form of the protocol. Waits for as long as it takes.
pub(super) async fn negotiate<T: Transport<RoleClient>>(
    transport: &mut T,
    opening: Opening,
    own: &ClientConfig,
) -> Result<ServerPeerInfo, Disagreement> {
    let mut talk = Talk { transport, own, asked: Asked::default(), refusal: None };
    match opening {
        Opening::Greet | Opening::OnlyInitialize => talk.initialize().await?,
        Opening::OnlyDiscover => talk.discover(DISCOVER).await?,
        Opening::Probe(patience) => {
            let deadline = Instant::now() + patience;
            let asking = async {
                // Sending may take as long as the answer: over HTTP it is one exchange.
                talk.discover(DISCOVER).await?;
                talk.listen(opening).await
            };
            if let Ok(settled) = tokio::time::timeout_at(deadline, asking).await {
                return settled;
            }
            talk.initialize().await?;
        }
    }
    talk.listen(opening).await
}

struct Talk<'a, T> {
    transport: &'a mut T,
    own: &'a ClientConfig,
    asked: Asked,
    refusal: Option<ErrorData>,
}

#[derive(Default)]
struct Asked {
    discover: Question,
    initialize: Question,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Question {
    #[default]
    Unasked,
    Open,
    Answered,
}

impl<T: Transport<RoleClient>> Talk<'_, T> {
    async fn send(&mut self, message: ClientJsonRpcMessage) -> Result<(), Disagreement> {
        let sent = self.transport.send(message).await;
        sent.map_err(|error| Disagreement::Unsent(Box::new(error)))
    }

    async fn discover(&mut self, id: RequestId) -> Result<(), Disagreement> {
        self.asked.discover = Question::Open;
        let mut request = DiscoverRequest::new(DiscoverRequestParams {});
        request.extensions.insert(RequestMetaObject::with_client_context(
            ProtocolVersion::V_2026_07_28,
            self.own.client_info.clone(),
            self.own.capabilities.clone(),
        ));
        let request = ClientRequest::DiscoverRequest(request);
        self.send(ClientJsonRpcMessage::request(request, id)).await
    }

    async fn initialize(&mut self) -> Result<(), Disagreement> {
        self.asked.initialize = Question::Open;
        let request = InitializeRequest::new(self.own.clone());
        let request = ClientRequest::InitializeRequest(request);
        self.send(ClientJsonRpcMessage::request(request, INITIALIZE)).await
    }

    /// Listens until one of the questions is answered well, or all of them badly.
    async fn listen(&mut self, opening: Opening) -> Result<ServerPeerInfo, Disagreement> {
        loop {
            match self.transport.receive().await.ok_or(Disagreement::Closed)? {
                ServerJsonRpcMessage::Response(answer) if is_discovery(&answer.id) => {
                    self.asked.discover = Question::Answered;
                    if let Some(agreed) = discovered(answer.result)? {
                        return Ok(agreed);
                    }
                    self.fall_back(opening).await?;
                }
                ServerJsonRpcMessage::Response(answer) if is(&INITIALIZE, &answer.id) => {
                    let ServerResult::InitializeResult(result) = answer.result else {
                        return Err(Disagreement::Odd);
                    };
                    return self.initialized(result.into()).await;
                }
                ServerJsonRpcMessage::Error(error) => {
                    let about_initialize = match &error.id {
                        Some(id) if is(&INITIALIZE, id) => true,
                        Some(id) if is_discovery(id) => false,
                        // Who cannot read a question cannot name it: the last one is meant.
                        None => self.asked.initialize == Question::Open,
                        Some(_) => continue,
                    };
                    if about_initialize {
                        self.asked.initialize = Question::Answered;
                        self.refusal = Some(error.error);
                    } else {
                        self.asked.discover = Question::Answered;
                        let first = !error.id.is_some_and(|id| is(&DISCOVER_AGAIN, &id));
                        if first && speaks_ours_after_all(&error.error) {
                            self.discover(DISCOVER_AGAIN).await?;
                            continue;
                        }
                        self.refusal.get_or_insert(error.error);
                    }
                    self.fall_back(opening).await?;
                }
                ServerJsonRpcMessage::Request(request)
                    if matches!(request.request, ServerRequest::PingRequest(_)) =>
                {
                    let pong = ClientJsonRpcMessage::response(ClientResult::empty(()), request.id);
                    self.send(pong).await?;
                }
                // Nothing else means anything before there is an agreement.
                _ => {}
            }
        }
    }

    /// One question was answered badly: asks the other, or waits for its answer, or gives up.
    async fn fall_back(&mut self, opening: Opening) -> Result<(), Disagreement> {
        let Asked { discover, initialize } = self.asked;
        let may_initialize = matches!(opening, Opening::Probe(_) | Opening::Greet);
        if discover == Question::Open || initialize == Question::Open {
            return Ok(());
        }
        if initialize == Question::Unasked && may_initialize {
            return self.initialize().await;
        }
        let unspoken = self.refusal.as_ref().is_some_and(is_about_the_revision);
        if discover == Question::Unasked && opening == Opening::Greet && unspoken {
            return self.discover(DISCOVER).await;
        }
        Err(self.refusal.take().map_or(Disagreement::Odd, Disagreement::Refused))
    }

    async fn initialized(
        &mut self,
        agreed: ServerPeerInfo,
    ) -> Result<ServerPeerInfo, Disagreement> {
        let version = &agreed.protocol_version;
        if !ProtocolVersion::KNOWN_VERSIONS.contains(version) || !version.has_initialize() {
            return Err(Disagreement::Foreign(agreed.protocol_version.to_string()));
        }
        let notice = InitializedNotification {
            method: rmcp::model::InitializedNotificationMethod,
            extensions: rmcp::model::Extensions::default(),
        };
        let notice = ClientNotification::InitializedNotification(notice);
        self.send(ClientJsonRpcMessage::notification(notice)).await?;
        Ok(agreed)
    }
}

/// Returns what was discovered, unless the server only speaks what wants a handshake.
fn discovered(result: ServerResult) -> Result<Option<ServerPeerInfo>, Disagreement> {
    let ServerResult::DiscoverResult(result) = result else {
        return Ok(None);
    };
    let version = ProtocolVersion::V_2026_07_28;
    if result.supported_versions.contains(&version) {
        return Ok(Some(ServerPeerInfo::from_discover_result(version, result)));
    }
    if result.supported_versions.iter().any(ProtocolVersion::has_initialize) {
        return Ok(None);
    }
    let spoken: Vec<String> = result.supported_versions.iter().map(ToString::to_string).collect();
    Err(Disagreement::Foreign(spoken.join(", ")))
}

/// Some servers answer with the number as text.
fn is(asked: &RequestId, answered: &RequestId) -> bool {
    asked == answered || asked.to_string() == answered.to_string()
}

fn is_discovery(answered: &RequestId) -> bool {
    is(&DISCOVER, answered) || is(&DISCOVER_AGAIN, answered)
}

/// Tells whether a server that does not take our revision names it among those it speaks.
fn speaks_ours_after_all(refusal: &ErrorData) -> bool {
    let spoken = refusal.data.as_ref().and_then(|data| data.get("supported")?.as_array());
    let ours = ProtocolVersion::V_2026_07_28;
    refusal.code == ErrorCode::UNSUPPORTED_PROTOCOL_VERSION
        && spoken.is_some_and(|all| all.iter().any(|one| one.as_str() == Some(ours.as_str())))
}

fn is_about_the_revision(refusal: &ErrorData) -> bool {
    refusal.code == ErrorCode::UNSUPPORTED_PROTOCOL_VERSION
        || refusal.code == ErrorCode::METHOD_NOT_FOUND
}

#[cfg(test)]
mod tests;
