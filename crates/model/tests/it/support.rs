//! What the tests share: one case for each wire, a server with a model that asks it, and the
//! conversations they have.

use std::time::Duration;

use convoke_core::{Declaration, Message, ModelFacts, Part, Role, ToolCall};
use convoke_model::{
    Answer, Chunk, Model, ModelError, Provider, ProviderModel, Request, RetryPolicy, Transport,
    TransportBuilder, WireFormat,
};
use convoke_testkit::{ModelServer, Script, Seen, Wire};
use futures_util::StreamExt;
use serde_json::{Value, json};

/// The key of every model here; must never be shown.
pub(crate) const KEY: &str = "sk-hush-0123456789";

/// Runs checks once for each wire, as tests of their own.
macro_rules! on_every_wire {
    ($($check:ident),+ $(,)?) => {$(
        mod $check {
            use crate::support::Case;

            #[tokio::test]
            async fn gemini() {
                super::$check(Case::GEMINI).await;
            }

            #[tokio::test]
            async fn responses() {
                super::$check(Case::RESPONSES).await;
            }

            #[tokio::test]
            async fn chat() {
                super::$check(Case::CHAT).await;
            }

            #[tokio::test]
            async fn anthropic() {
                super::$check(Case::ANTHROPIC).await;
            }
        }
    )+};
}
pub(crate) use on_every_wire;

/// A wire, and a model that makes use of all it can do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Case {
    pub(crate) format: WireFormat,
    pub(crate) wire: Wire,
    pub(crate) model: &'static str,
}

impl Case {
    pub(crate) const GEMINI: Self =
        Self { format: WireFormat::Gemini, wire: Wire::Gemini, model: "gemini-3-flash" };
    pub(crate) const RESPONSES: Self =
        Self { format: WireFormat::OpenAiResponses, wire: Wire::OpenAiResponses, model: "gpt-5" };
    pub(crate) const CHAT: Self =
        Self { format: WireFormat::OpenAiChat, wire: Wire::OpenAiChat, model: "deepseek-chat" };
    pub(crate) const ANTHROPIC: Self =
        Self { format: WireFormat::Anthropic, wire: Wire::Anthropic, model: "claude-sonnet-4-5" };

    pub(crate) const ALL: [Self; 4] = [Self::GEMINI, Self::RESPONSES, Self::CHAT, Self::ANTHROPIC];

    /// Starts a server with a script, and makes a model that asks it.
    pub(crate) async fn serve(self, script: impl Script) -> Talk {
        self.serve_with(script, quick()).await
    }

    pub(crate) async fn serve_with(self, script: impl Script, transport: TransportBuilder) -> Talk {
        let server = ModelServer::start(script).await.unwrap();
        let model = self.model_at(&server.base_url(self.wire), transport.build());
        Talk { server, model }
    }

    /// Returns the provider at an address.
    pub(crate) fn provider(self, url: &str) -> Provider {
        let mut provider = Provider::new("acme", self.format, url).key(KEY);
        provider.key_variable = Some("ACME_API_KEY".to_owned());
        provider
    }

    pub(crate) fn model_at(self, url: &str, transport: Transport) -> ProviderModel {
        model(self.model, self.provider(url), transport)
    }

    /// Returns the key under which the conversation is sent.
    pub(crate) const fn conversation(self) -> &'static str {
        match self.format {
            WireFormat::Gemini => "contents",
            WireFormat::OpenAiResponses => "input",
            WireFormat::OpenAiChat | WireFormat::Anthropic => "messages",
        }
    }
}

pub(crate) fn model(name: &str, provider: Provider, transport: Transport) -> ProviderModel {
    ProviderModel::new(name, ModelFacts::default(), provider, transport).unwrap()
}

/// Repeats as always, but does not wait long for it.
pub(crate) fn quick() -> TransportBuilder {
    let base = Duration::from_millis(1);
    Transport::builder().retry(RetryPolicy { base, ..RetryPolicy::default() })
}

/// Never repeats.
pub(crate) fn once() -> TransportBuilder {
    Transport::builder().retry(RetryPolicy::never())
}

/// A server and a model that asks it.
pub(crate) struct Talk {
    pub(crate) server: ModelServer,
    pub(crate) model: ProviderModel,
}

impl Talk {
    /// Asks, and returns all that came.
    pub(crate) async fn ask(&self, request: &Request<'_>) -> Heard {
        Heard::of(&self.model, request).await
    }

    /// Asks and returns the answer.
    pub(crate) async fn answer(&self, request: &Request<'_>) -> Answer {
        self.ask(request).await.answer()
    }

    /// Asks for nothing in particular.
    pub(crate) async fn hello(&self) -> Heard {
        self.ask(&Request::new(&[user("Hello")])).await
    }

    /// Returns the JSON of a request the server has seen.
    pub(crate) fn sent(&self, nth: usize) -> Value {
        self.seen(nth).json().clone()
    }

    pub(crate) fn seen(&self, nth: usize) -> std::sync::Arc<Seen> {
        self.server.requests()[nth].clone()
    }
}

/// All that came of one question.
#[derive(Debug)]
pub(crate) struct Heard(pub(crate) Vec<Result<Chunk, ModelError>>);

impl Heard {
    pub(crate) async fn of(model: &dyn Model, request: &Request<'_>) -> Self {
        Self(model.stream(request).collect().await)
    }

    pub(crate) fn texts(&self) -> Vec<&str> {
        let texts = self.0.iter().filter_map(|item| match item {
            Ok(Chunk::Text(text)) => Some(text.as_str()),
            _ => None,
        });
        texts.collect()
    }

    pub(crate) fn thoughts(&self) -> String {
        let thoughts = self.0.iter().map(|item| match item {
            Ok(Chunk::Thought(text)) => text.as_str(),
            _ => "",
        });
        thoughts.collect()
    }

    /// Returns the names of the calls that were begun.
    pub(crate) fn begun(&self) -> Vec<&str> {
        let begun = self.0.iter().filter_map(|item| match item {
            Ok(Chunk::ToolCall { name }) => Some(name.as_str()),
            _ => None,
        });
        begun.collect()
    }

    /// Returns the reasons and the waits of the repeats.
    pub(crate) fn repeats(&self) -> Vec<(&str, Duration)> {
        let repeats = self.0.iter().filter_map(|item| match item {
            Ok(Chunk::Retry(retry)) => Some((retry.reason.as_str(), retry.delay)),
            _ => None,
        });
        repeats.collect()
    }

    /// Returns the answer, with which everything has to end.
    pub(crate) fn answer(self) -> Answer {
        match self.0.into_iter().last() {
            Some(Ok(Chunk::End(answer))) => answer,
            other => panic!("this is not an answer: {other:?}"),
        }
    }

    /// Returns the error, with which everything has to end.
    pub(crate) fn error(&self) -> &ModelError {
        match self.0.last() {
            Some(Err(error)) => error,
            other => panic!("this is not an error: {other:?}"),
        }
    }
}

pub(crate) fn user(text: &str) -> Message {
    Message::text(Role::User, text)
}

/// Returns a message of results, one for each call, in order.
pub(crate) fn results<'a>(calls: impl IntoIterator<Item = &'a ToolCall>) -> Message {
    let result = |call: &ToolCall| Part::ToolResult {
        call: call.id.clone(),
        content: vec![Part::text(format!("the result of {}", call.name))],
        is_error: false,
    };
    Message { role: Role::Tool, parts: calls.into_iter().map(result).collect() }
}

/// Gives the calls ids where the provider gave none, as a run does.
pub(crate) fn with_ids(mut message: Message, turn: usize) -> Message {
    for (index, part) in message.parts.iter_mut().enumerate() {
        if let Part::ToolCall(call) = part
            && call.id.as_str().is_empty()
        {
            call.id = format!("call_{turn}_{index}").into();
        }
    }
    message
}

pub(crate) fn tools() -> Vec<Declaration> {
    let tool = |name: &str, property: &str| Declaration {
        name: name.to_owned(),
        description: format!("Does what {name} says."),
        parameters: json!({
            "type": "object",
            "properties": { property: { "type": "string", "minLength": 1, "default": "." } },
            "additionalProperties": false,
        })
        .into(),
    };
    vec![tool("read_file", "path"), tool("grep", "pattern")]
}
