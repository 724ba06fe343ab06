use std::collections::VecDeque;

use rmcp::model::{DiscoverResult, InitializeResult, JsonRpcMessage, ServerCapabilities};
use tokio::sync::mpsc;

use super::*;

/// The other side of the talk, as a test plays it.
struct Scripted {
    sent: mpsc::UnboundedSender<String>,
    answers: mpsc::UnboundedReceiver<ServerJsonRpcMessage>,
}

impl Transport<RoleClient> for Scripted {
    type Error = std::io::Error;

    fn send(
        &mut self,
        message: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), std::io::Error>> + Send + 'static {
        let text = serde_json::to_value(&message).unwrap()["method"]
            .as_str()
            .unwrap_or("answer")
            .to_owned();
        self.sent.send(text).ok();
        async { Ok(()) }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        self.answers.recv().await
    }

    async fn close(&mut self) -> Result<(), std::io::Error> {
        Ok(())
    }
}

/// What a server says, and how long it takes for it.
enum Says {
    Discovered,
    Refuses(RequestId, ErrorCode),
    /// It does not speak this revision, but these.
    Speaks(RequestId, &'static str),
    Initialized,
    After(Duration),
}

async fn talk(opening: Opening, script: Vec<Says>) -> (Result<String, Disagreement>, Vec<String>) {
    let (sent, mut asked) = mpsc::unbounded_channel();
    let (answer, answers) = mpsc::unbounded_channel();
    let mut transport = Scripted { sent, answers };
    let mut script: VecDeque<Says> = script.into();
    let server = async move {
        while let Some(step) = script.pop_front() {
            let message = match step {
                Says::After(time) => {
                    tokio::time::sleep(time).await;
                    continue;
                }
                Says::Discovered => ServerJsonRpcMessage::response(
                    ServerResult::DiscoverResult(DiscoverResult::new(
                        vec![ProtocolVersion::V_2026_07_28],
                        ServerCapabilities::default(),
                    )),
                    DISCOVER,
                ),
                Says::Initialized => ServerJsonRpcMessage::response(
                    ServerResult::InitializeResult(
                        InitializeResult::new(ServerCapabilities::default())
                            .with_protocol_version(ProtocolVersion::V_2025_11_25),
                    ),
                    INITIALIZE,
                ),
                Says::Speaks(id, revision) => {
                    let data = serde_json::json!({ "supported": [revision] });
                    let code = ErrorCode::UNSUPPORTED_PROTOCOL_VERSION;
                    JsonRpcMessage::error(ErrorData::new(code, "no", Some(data)), Some(id))
                }
                Says::Refuses(id, code) => {
                    JsonRpcMessage::error(ErrorData::new(code, "no", None), Some(id))
                }
            };
            answer.send(message).ok();
        }
        std::future::pending::<()>().await;
    };
    let own = ClientConfig::new(
        rmcp::model::ClientCapabilities::default(),
        rmcp::model::Implementation::new("test", "0"),
    );
    let agreed = tokio::select! {
        agreed = negotiate(&mut transport, opening, &own) => agreed,
        () = server => unreachable!("it never ends"),
    };
    let mut methods = Vec::new();
    while let Ok(method) = asked.try_recv() {
        methods.push(method);
    }
    (agreed.map(|agreed| agreed.protocol_version.to_string()), methods)
}

const PATIENCE: Opening = Opening::Probe(Duration::from_secs(2));

#[tokio::test(start_paused = true)]
async fn a_new_server_is_asked_once() {
    let (agreed, asked) = talk(PATIENCE, vec![Says::Discovered]).await;
    assert_eq!(agreed.unwrap(), "2026-07-28");
    assert_eq!(asked, ["server/discover"]);
}

#[tokio::test(start_paused = true)]
async fn an_old_server_refuses_and_is_greeted() {
    let refuses = Says::Refuses(DISCOVER, ErrorCode::METHOD_NOT_FOUND);
    let (agreed, asked) = talk(PATIENCE, vec![refuses, Says::Initialized]).await;
    assert_eq!(agreed.unwrap(), "2025-11-25");
    assert_eq!(asked, ["server/discover", "initialize", "notifications/initialized"]);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_refuses_our_revision_and_then_names_it_is_asked_once_more() {
    let script = vec![Says::Speaks(DISCOVER, "2026-07-28"), Says::Discovered];
    let (agreed, asked) = talk(PATIENCE, script).await;
    assert_eq!(agreed.unwrap(), "2026-07-28");
    assert_eq!(asked, ["server/discover", "server/discover"]);

    let always = [DISCOVER, DISCOVER_AGAIN].map(|id| Says::Speaks(id, "2026-07-28"));
    let (refused, asked) = talk(Opening::OnlyDiscover, always.into()).await;
    assert!(matches!(refused, Err(Disagreement::Refused(_))), "{refused:?}");
    assert_eq!(asked, ["server/discover", "server/discover"]);

    let script = vec![Says::Speaks(DISCOVER, "2025-11-25"), Says::Initialized];
    let (agreed, asked) = talk(PATIENCE, script).await;
    assert_eq!(agreed.unwrap(), "2025-11-25");
    assert_eq!(asked[..2], ["server/discover", "initialize"]);
}

#[tokio::test(start_paused = true)]
async fn the_late_answer_of_a_slow_old_server_breaks_nothing() {
    let script = vec![
        Says::After(Duration::from_secs(11)),
        Says::Refuses(DISCOVER, ErrorCode::METHOD_NOT_FOUND),
        Says::Initialized,
    ];
    let (agreed, _) = talk(PATIENCE, script).await;
    assert_eq!(agreed.unwrap(), "2025-11-25");
}

#[tokio::test(start_paused = true)]
async fn a_slow_new_server_that_refuses_the_greeting_is_understood() {
    let script = vec![
        Says::After(Duration::from_secs(11)),
        Says::Discovered,
        Says::Refuses(INITIALIZE, ErrorCode::UNSUPPORTED_PROTOCOL_VERSION),
    ];
    let (agreed, asked) = talk(PATIENCE, script).await;
    assert_eq!(agreed.unwrap(), "2026-07-28");
    assert_eq!(asked, ["server/discover", "initialize"]);
    // Also the other way round.
    let script = vec![
        Says::After(Duration::from_secs(11)),
        Says::Refuses(INITIALIZE, ErrorCode::UNSUPPORTED_PROTOCOL_VERSION),
        Says::Discovered,
    ];
    assert_eq!(talk(PATIENCE, script).await.0.unwrap(), "2026-07-28");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_ignores_the_question_is_greeted() {
    let script = vec![Says::After(Duration::from_secs(5)), Says::Initialized];
    let (agreed, asked) = talk(PATIENCE, script).await;
    assert_eq!(agreed.unwrap(), "2025-11-25");
    assert_eq!(asked.len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_has_grown_is_asked_what_it_speaks_now() {
    let refuses = Says::Refuses(INITIALIZE, ErrorCode::UNSUPPORTED_PROTOCOL_VERSION);
    let (agreed, asked) = talk(Opening::Greet, vec![refuses, Says::Discovered]).await;
    assert_eq!(agreed.unwrap(), "2026-07-28");
    assert_eq!(asked, ["initialize", "server/discover"]);
}

#[tokio::test(start_paused = true)]
async fn what_is_configured_is_kept_to() {
    let refuses = Says::Refuses(DISCOVER, ErrorCode::METHOD_NOT_FOUND);
    let (agreed, asked) = talk(Opening::OnlyDiscover, vec![refuses]).await;
    assert!(matches!(agreed, Err(Disagreement::Refused(_))));
    assert_eq!(asked, ["server/discover"]);
    let refuses = Says::Refuses(INITIALIZE, ErrorCode::UNSUPPORTED_PROTOCOL_VERSION);
    let (agreed, asked) = talk(Opening::OnlyInitialize, vec![refuses]).await;
    assert!(matches!(agreed, Err(Disagreement::Refused(_))));
    assert_eq!(asked, ["initialize"]);
}
