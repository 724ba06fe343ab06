//! A tree of agents against a real server, which counts for itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use convoke::agent::{AgentRegistry, Team, TreeLimits};
use convoke::core::run::Budget;
use convoke::core::{Cause, ModelFacts, Usage};
use convoke::model::{Provider, ProviderModel, Transport, WireFormat};
use convoke::prelude::*;
use convoke_testkit::{ModelServer, Reaction, Reply, Seen, Wire};

const AGENTS: usize = 32;

fn is_worker(seen: &Seen) -> bool {
    String::from_utf8_lossy(&seen.body).contains("You are a worker.")
}

/// Calls all agents in one answer.
fn call_all() -> Reply {
    (0..AGENTS).fold(Reply::default(), |reply, number| {
        let task = json!({ "agent_name": "worker", "prompt": format!("Part {number}.") });
        reply.call("delegate_to_agent", task)
    })
}

fn main_agent(server: &ModelServer, directory: &std::path::Path, budget: Budget) -> AgentExecutor {
    let provider =
        Provider::new("openai-chat", WireFormat::OpenAiChat, server.base_url(Wire::OpenAiChat));
    let facts = ModelFacts { max_output: Some(300), ..ModelFacts::default() };
    let model = ProviderModel::new("m", facts, provider.key("k"), Transport::default()).unwrap();
    let registry = AgentRegistry::new();
    let mut worker = AgentDefinition::new("worker", "Works.");
    worker.prompt.system_prompt = Some("You are a worker.".to_owned());
    registry.register(worker).unwrap();
    let mut limits = TreeLimits::default();
    limits.max_parallel = AGENTS;
    let runtime = Runtime::builder(directory).build().unwrap();
    let team = Team::builder(registry).limits(limits).build();
    let main = runtime.main_agent(Arc::new(model)).team(team);
    main.system("The main agent.").budget(budget).build().unwrap()
}

/// Promise 4: what all agents of a tree use together is what was allowed, as the server counts it.
#[tokio::test(flavor = "multi_thread")]
async fn many_agents_at_once_use_no_more_than_was_allowed() {
    const ALLOWED: u64 = 60_000;
    let counted = Arc::new(AtomicU64::new(0));
    let told = Arc::clone(&counted);
    let server = ModelServer::start(move |seen: &Seen, _: usize| -> Reaction {
        // What the server takes a request for: about as many tokens as a model would.
        let (input, output) = (seen.body.len() as u64 / 5, 150);
        told.fetch_add(input + output, Ordering::Relaxed);
        let reply = if is_worker(seen) {
            Reply::default().call("ls", json!({ "ignore": seen.body.len().to_string() }))
        } else if seen.turns() == 0 {
            call_all()
        } else {
            Reply::text("Nothing is left.")
        };
        let usage = Usage { input_tokens: input, output_tokens: output, ..Usage::default() };
        reply.usage(usage).into()
    })
    .await
    .unwrap();
    let directory = tempfile::tempdir().unwrap();
    let budget = Budget { tokens: Some(ALLOWED), ..Budget::default() };
    let report = main_agent(&server, directory.path(), budget).start("Go.").finish().await;
    let counted = counted.load(Ordering::Relaxed);
    assert!(counted <= ALLOWED, "the server counted {counted} tokens");
    assert!(counted > ALLOWED / 2, "they worked: {counted} tokens, {:?}", report.outcome);
    assert_eq!(report.usage.input_tokens + report.usage.output_tokens, counted, "and all is told");
    assert!(server.counts().requests > AGENTS, "{:?}", server.counts());
}

/// A caller that was stopped has stopped everybody below it: no request leaves after that.
#[tokio::test(flavor = "multi_thread")]
async fn no_request_leaves_after_a_tree_was_stopped() {
    let server = ModelServer::start(move |seen: &Seen, _: usize| -> Reaction {
        if is_worker(seen) {
            let again =
                Reply::default().call("ls", json!({ "ignore": seen.body.len().to_string() }));
            Reaction::from(again).delay(Duration::from_millis(5))
        } else {
            call_all().into()
        }
    })
    .await
    .unwrap();
    let directory = tempfile::tempdir().unwrap();
    let run = main_agent(&server, directory.path(), Budget::default()).start("Go.");
    let handle = run.handle();
    let running = tokio::spawn(run.finish());
    server.wait_until(|counts| counts.requests >= 2 * AGENTS).await;
    handle.cancel();
    let report = running.await.unwrap();
    assert_eq!(report.outcome.cause, Cause::Interrupted);
    // What had left before may still arrive, once for each; whoever went on would ask again and again.
    let asked = server.counts().requests;
    let is_quiet = async || {
        server.wait_closed().await;
        let before = server.counts().accepted;
        for _ in 0..1_000 {
            tokio::task::yield_now().await;
        }
        server.counts().accepted == before
    };
    let mut rounds = 0;
    while !is_quiet().await {
        rounds += 1;
        assert!(rounds < 100, "somebody goes on");
    }
    assert!(server.counts().requests <= asked + AGENTS, "somebody went on");
}
