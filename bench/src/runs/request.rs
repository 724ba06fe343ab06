//! How much is sent before the model has said a word.

use convoke::core::ModelFacts;
use convoke_model::{Provider, ProviderModel, Transport, WireFormat};
use convoke_testkit::{ModelServer, Reply, Wire};
use serde_json::Value;

use super::{LAST_WORDS, PROMPT, World, agent_of, answer_of, expected};
use crate::Result;
use crate::search::run;
use crate::table::Table;

/// About how many bytes of a prompt make a token.
const BYTES_PER_TOKEN: usize = 4;

pub(super) fn measure(table: &mut Table, world: &World) -> Result<()> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let server = runtime.block_on(ModelServer::start(Reply::text(LAST_WORDS)))?;
    let base_url = server.base_url(Wire::OpenAiChat);
    let first = || runtime.block_on(server.next_request());

    expected(run(&mut world.convoke_run(&base_url, 1))?)?;
    let ours = first();
    expected(run(&mut world.bare_run(&base_url)?)?)?;
    let theirs = first();
    if tools(ours.json()) != tools(theirs.json()) {
        return Err("`convoke run` and the bare client do not offer the same tools".into());
    }
    let bytes = (ours.body.len() as u64, theirs.body.len() as u64);
    table.sizes("first request of `convoke run`, chat", "bare client", bytes, "≤ 8 KB");
    let fixed = serde_json::to_vec(tools(ours.json()))?.len() + system(ours.json()).len();
    let tokens = format!("about {}", fixed / BYTES_PER_TOKEN);
    table.fact("tokens of its instructions and tools", tokens, "< 1,500");

    for (name, format, wire) in [
        ("responses", WireFormat::OpenAiResponses, Wire::OpenAiResponses),
        ("anthropic", WireFormat::Anthropic, Wire::Anthropic),
        ("gemini", WireFormat::Gemini, Wire::Gemini),
    ] {
        let provider = Provider::new(name, format, server.base_url(wire)).key(super::KEY);
        let model = ProviderModel::new("m", ModelFacts::default(), provider, Transport::default())?;
        let agent = agent_of(model, &world.files())?;
        answer_of(&runtime.block_on(agent.start(PROMPT).finish()))?;
        table.size(&format!("first request of a run, {name}"), first().body.len() as u64, "≤ 8 KB");
    }
    Ok(())
}

fn tools(body: &Value) -> &Value {
    body.get("tools").unwrap_or(&Value::Null)
}

fn system(body: &Value) -> &str {
    body.pointer("/messages/0/content").and_then(Value::as_str).unwrap_or_default()
}
