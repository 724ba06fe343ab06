//! Which models a provider has: for listing them, for checking a key, and for finding out whether a
//! local server is running.

use std::time::Duration;

use convoke_core::ModelFacts;
use reqwest::header::{ACCEPT, HeaderValue};
use serde_json::Value;
use tokio::time::timeout;

use crate::endpoint::Endpoint;
use crate::error::{ModelError, ModelErrorKind};
use crate::exchange::refused;
use crate::provider::{Provider, WireFormat};
use crate::retry::seconds;
use crate::transport::Transport;
use crate::wire::Wire;

/// The longest list that is read.
const LONGEST_LIST: usize = 8 * 1024 * 1024;

/// A model a provider offers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedModel {
    /// What the provider calls it.
    pub name: String,
    /// How many tokens it can take in, where the provider says so.
    pub window: Option<u64>,
    /// The longest answer it gives, where the provider says so.
    pub max_output: Option<u64>,
    /// Whether it can hold a conversation, where the provider says so.
    pub chats: Option<bool>,
    /// When it was made or fetched, in seconds since 1970, where the provider says so.
    pub created: Option<u64>,
}

/// Words in the names of models that turn texts into numbers, sounds or pictures.
const OTHER_TRADES: &[&str] =
    &["bge", "clip", "e5", "gte", "minilm", "moderation", "ocr", "sd", "sdxl", "tts", "whisper"];

impl ListedModel {
    /// Tells whether it can hold a conversation, by what its provider says or else by its name.
    pub fn can_chat(&self) -> bool {
        let name = self.name.to_ascii_lowercase();
        let mut words = name.split(|letter: char| !letter.is_ascii_alphanumeric());
        let does_other = |word: &str| {
            word.contains("embed") || word.contains("rerank") || OTHER_TRADES.contains(&word)
        };
        self.chats.unwrap_or_else(|| !words.any(does_other))
    }

    /// Returns what the provider says about it.
    pub fn facts(&self) -> ModelFacts {
        ModelFacts { window: self.window, max_output: self.max_output, ..ModelFacts::default() }
    }
}

/// Returns the model to talk to where nobody says which: one that is said to hold conversations before
/// one that only might, then the one that was fetched last, then the first by name.
pub fn model_to_chat_with(models: &[ListedModel]) -> Option<&ListedModel> {
    let rank = |model: &ListedModel| (model.chats, model.created);
    models
        .iter()
        .filter(|model| model.can_chat())
        .min_by(|one, other| rank(other).cmp(&rank(one)).then_with(|| one.name.cmp(&other.name)))
}

/// Asks a provider for its models, once, and waits for at most `patience`. They come sorted by name.
pub async fn list_models(
    provider: Provider,
    transport: &Transport,
    patience: Duration,
) -> Result<Vec<ListedModel>, ModelError> {
    let wire = provider.wire.wire();
    list(provider, wire, transport, patience).await
}

async fn list(
    provider: Provider,
    wire: &'static dyn Wire,
    transport: &Transport,
    patience: Duration,
) -> Result<Vec<ListedModel>, ModelError> {
    let path = match provider.wire {
        WireFormat::Gemini => "v1beta/models?pageSize=1000",
        WireFormat::Anthropic => "v1/models?limit=1000",
        WireFormat::OpenAiChat | WireFormat::OpenAiResponses => "models",
    };
    let endpoint = Endpoint::new(provider, wire)?;
    let body = timeout(patience, get(&endpoint, transport, path)).await.unwrap_or_else(|_| {
        let message = format!("{} did not answer within {}", endpoint.place(), seconds(patience));
        Err(endpoint.error(ModelErrorKind::Silent, message))
    })?;
    let list: Value = serde_json::from_slice(&body).unwrap_or_default();
    let entries = list.get("data").or_else(|| list.get("models")).and_then(Value::as_array);
    let Some(entries) = entries else {
        return Err(endpoint
            .error(ModelErrorKind::Malformed, "the answer is not a list of models")
            .hint(format!("is {} the right address?", endpoint.shown())));
    };
    let mut models: Vec<_> = entries.iter().filter_map(read_model).collect();
    models.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(models)
}

async fn get(
    endpoint: &Endpoint,
    transport: &Transport,
    path: &str,
) -> Result<Vec<u8>, ModelError> {
    let url = endpoint.url(path)?;
    let client = transport.client(&url).await.map_err(|error| endpoint.unusable(&error))?;
    let mut headers = endpoint.headers.clone();
    headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
    let proxy = transport.proxy_for(&url);
    let request = client.get(url).headers(headers).send();
    let fail = |error| endpoint.fail_through(error, proxy.as_deref());
    let mut response = request.await.map_err(fail)?;
    if !response.status().is_success() {
        return Err(refused(endpoint, response).await);
    }
    let mut body = Vec::new();
    while let Some(bytes) = response.chunk().await.map_err(|error| endpoint.fail(error))? {
        body.extend_from_slice(&bytes);
        if body.len() > LONGEST_LIST {
            let message = format!("the list of models is longer than {LONGEST_LIST} bytes");
            return Err(endpoint.error(ModelErrorKind::Malformed, message));
        }
    }
    Ok(body)
}

/// Reads an entry of any of the lists; leaves out what cannot answer.
fn read_model(entry: &Value) -> Option<ListedModel> {
    let methods = entry.get("supportedGenerationMethods").and_then(Value::as_array);
    if methods.is_some_and(|methods| !methods.iter().any(|method| method == "generateContent")) {
        return None;
    }
    let name = entry.get("id").or_else(|| entry.get("name"))?.as_str()?;
    let number = |paths: &[&str]| paths.iter().find_map(|path| entry.pointer(path)?.as_u64());
    Some(ListedModel {
        name: name.strip_prefix("models/").unwrap_or(name).to_owned(),
        window: number(WINDOWS),
        max_output: number(&["/outputTokenLimit", "/max_tokens"]),
        chats: chats(entry),
        created: number(&["/created"]),
    })
}

/// Where servers say how much a model can take in; what is loaded goes before what would be possible.
const WINDOWS: &[&str] = &[
    "/inputTokenLimit",
    "/loaded_context_length",
    "/context_length",
    "/max_model_len",
    "/max_input_tokens",
    "/max_context_length",
    "/context_window",
    "/meta/n_ctx",
    "/meta/n_ctx_train",
];

/// Returns whether a model holds conversations, where the entry says so.
fn chats(entry: &Value) -> Option<bool> {
    if let Some(said) = entry.get("capabilities").and_then(Value::as_array) {
        let can = ["completion", "completions", "chat", "tools"];
        return Some(said.iter().filter_map(Value::as_str).any(|word| can.contains(&word)));
    }
    match entry.get("type")?.as_str()? {
        "llm" | "vlm" => Some(true),
        "embedding" | "embeddings" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::{FAKE_WIRE, Reply, Server};

    const PATIENCE: Duration = Duration::from_secs(20);

    async fn ask(wire: WireFormat, reply: Reply) -> (Result<Vec<ListedModel>, ModelError>, Server) {
        let server = Server::start([reply]).await;
        let provider = Provider::new("p", wire, server.url()).key("sesame-open-now");
        let models = list(provider, &FAKE_WIRE, &Transport::default(), PATIENCE).await;
        (models, server)
    }

    fn names(models: &[ListedModel]) -> Vec<&str> {
        models.iter().map(|model| model.name.as_str()).collect()
    }

    #[tokio::test]
    async fn the_lists_of_all_wires_are_read() {
        let list = r#"{"data":[{"id":"b"},{"id":"a/c","context_length":4096}]}"#;
        let (models, server) = ask(WireFormat::OpenAiChat, Reply::json(200, list)).await;
        let models = models.unwrap();
        assert_eq!(names(&models), ["a/c", "b"]);
        assert_eq!((models[0].window, models[1].window), (Some(4096), None));
        assert!(server.requests()[0].starts_with("GET /models HTTP/1.1\r\n"));
        assert!(server.requests()[0].contains("x-key: sesame-open-now\r\n"));

        let list = r#"{"models":[
            {"name":"models/gemini-x","inputTokenLimit":10,"outputTokenLimit":2,
             "supportedGenerationMethods":["generateContent"]},
            {"name":"models/embed","supportedGenerationMethods":["embedContent"]}]}"#;
        let (models, server) = ask(WireFormat::Gemini, Reply::json(200, list)).await;
        let models = models.unwrap();
        assert_eq!(names(&models), ["gemini-x"]);
        assert_eq!((models[0].window, models[0].max_output), (Some(10), Some(2)));
        assert!(server.requests()[0].starts_with("GET /v1beta/models?pageSize=1000 "));

        let list = r#"{"data":[{"type":"model","id":"claude-x"}]}"#;
        let (models, server) = ask(WireFormat::Anthropic, Reply::json(200, list)).await;
        assert_eq!(names(&models.unwrap()), ["claude-x"]);
        assert!(server.requests()[0].starts_with("GET /v1/models?limit=1000 "));
    }

    fn listed(entries: &Value) -> Vec<ListedModel> {
        entries.as_array().unwrap().iter().filter_map(read_model).collect()
    }

    #[test]
    fn local_servers_say_what_their_models_can_do() {
        let models = listed(&json!([
            { "id": "a", "capabilities": ["completion", "tools"], "meta": { "n_ctx_train": 4096 } },
            { "id": "b", "capabilities": ["embedding"], "created": 5 },
            { "id": "c", "type": "embeddings" },
            { "id": "d", "type": "vlm", "max_context_length": 8192, "loaded_context_length": 2048 },
            { "id": "e", "type": "model" },
        ]));
        let chats: Vec<_> = models.iter().map(|model| model.chats).collect();
        assert_eq!(chats, [Some(true), Some(false), Some(false), Some(true), None]);
        assert_eq!((models[0].window, models[3].window), (Some(4096), Some(2048)));
        assert_eq!(models[1].created, Some(5));
    }

    #[test]
    fn who_cannot_talk_is_not_talked_to() {
        let best = |entries: Value| {
            let models = listed(&entries);
            model_to_chat_with(&models).map(|model| model.name.clone())
        };
        for name in [
            "all-minilm:latest",
            "bge-m3",
            "mxbai-embed-large",
            "nomic-embed-text:v1.5",
            "jina-reranker-v2",
            "openai/whisper-large",
            "tts-1",
            "text-embedding-3-small",
            "clip-vit",
        ] {
            assert_eq!(best(json!([{ "id": name }])), None, "{name}");
            assert_eq!(
                best(json!([{ "id": name }, { "id": "z" }])).as_deref(),
                Some("z"),
                "{name}"
            );
        }
        assert_eq!(best(json!([{ "id": "b" }, { "id": "a" }])).as_deref(), Some("a"));
        let latest = json!([{ "id": "a", "created": 1 }, { "id": "b", "created": 2 }]);
        assert_eq!(best(latest).as_deref(), Some("b"), "what was fetched last");
        let said = json!([
            { "id": "a", "created": 9 },
            { "id": "eclipse", "capabilities": ["completion"], "created": 1 },
        ]);
        assert_eq!(best(said).as_deref(), Some("eclipse"), "what is said to talk");
        assert_eq!(best(json!([])), None);
    }

    #[tokio::test]
    async fn what_goes_wrong_is_said() {
        let (models, _server) = ask(WireFormat::OpenAiChat, Reply::json(401, "who are you")).await;
        let error = models.unwrap_err();
        assert_eq!((error.kind, error.status), (ModelErrorKind::Authentication, Some(401)));
        let (models, _server) = ask(WireFormat::OpenAiChat, Reply::json(200, "[]")).await;
        assert_eq!(models.unwrap_err().kind, ModelErrorKind::Malformed);
    }

    #[tokio::test]
    async fn a_redirect_is_refused_here_too() {
        let moved = Reply::new(302, "location: http://127.0.0.1:1/login\r\n", "");
        let (models, _server) = ask(WireFormat::Gemini, moved).await;
        let message = models.unwrap_err().message;
        assert_eq!(message, "a redirect to http://127.0.0.1:1/login, which is not followed");
    }
}
