//! Tools that are called while nothing is known of what their server offers.

use convoke::agent::Letter;
use convoke::core::{CallId, RunId};

use super::*;

fn servers(server: &str) -> String {
    format!("tools:\n  mcpServers: [{server}]\npolicy:\n  onAsk: park\n")
}

fn switched_off(server: &str) -> String {
    server.replace("name: calc,", "name: calc, enabled: false,")
}

fn direct() -> Turn {
    Turn::call("mcp__calc__add", json!({ "a": 2, "b": 3 }))
}

fn model<const N: usize>(turns: [Turn; N]) -> Arc<ScriptedModel> {
    Arc::new(ScriptedModel::new(turns))
}

impl Scene {
    /// Forgets what servers offer.
    fn forget(&self) {
        let cache = self.root.join("cache");
        if cache.exists() {
            fs::remove_dir_all(cache).unwrap();
        }
    }

    /// Starts a run whose call waits for an answer, and returns what an answer has to name.
    async fn parked(&self) -> (RunId, CallId, String) {
        let runtime = self.builder(&servers(&self.server(""))).build().unwrap();
        let (events, report) = run(&runtime, &model([direct()]), Answer::Nobody).await;
        assert_eq!(report.outcome.status, Status::Parked, "{:?}", report.outcome);
        let asked = events.iter().find_map(|event| match &event.body {
            EventBody::ApprovalAsked { fingerprint, .. } => {
                Some((event.call.clone()?, fingerprint.clone()))
            }
            _ => None,
        });
        let (call, fingerprint) = asked.unwrap();
        (report.run, call, fingerprint)
    }

    /// Goes on with a run, as a process does that knows nothing of the servers, and to which nobody answers.
    async fn go_on(
        &self,
        id: &RunId,
        server: &str,
        model: &Arc<ScriptedModel>,
    ) -> (Vec<Arc<Event>>, RunReport) {
        self.forget();
        let runtime = self.builder(&servers(server)).build().unwrap();
        let paused = runtime.journals().unwrap().reopen(id).unwrap().paused;
        let nobody = ask_with(|_: Question| std::future::ready(Answer::Nobody));
        let agent = runtime.main_agent_with(model.clone(), |tools| tools.approver(nobody));
        let mut run = agent.build().unwrap().resume(paused, None).unwrap();
        let mut events = Vec::new();
        while let Some(event) = run.next().await {
            events.push(event);
        }
        (events, run.report().unwrap().clone())
    }

    /// Leaves an answer, as another process does.
    fn leave(&self, letter: Letter) {
        let at = letter.at;
        let inbox = Store::at(self.root.join("state")).inbox(&letter.run).unwrap();
        inbox.put(&letter.into_item(), at).unwrap();
    }

    fn letters(&self, run: &RunId) -> usize {
        let inbox = Store::at(self.root.join("state")).inbox(run).unwrap();
        Letter::lying_in(&inbox).len()
    }
}

/// Returns why a call waits.
fn waits(events: &[Arc<Event>]) -> Option<String> {
    events.iter().find_map(|event| match &event.body {
        EventBody::ToolCallDeferred { reason, .. } => Some(reason.clone()),
        _ => None,
    })
}

fn now(scene: &Scene) -> convoke::core::Timestamp {
    scene.builder("").build().unwrap().context().clock().now()
}

#[tokio::test]
async fn a_tool_is_called_before_anything_is_known_of_its_server() {
    let Some(scene) = Scene::new() else { return };
    for call in [direct(), add()] {
        scene.forget();
        let runtime = scene.builder(&servers(&scene.server(""))).build().unwrap();
        let model = model([call, Turn::text("5")]);
        let (_, report) = run(&runtime, &model, Answer::yes()).await;
        assert_eq!(report.outcome.cause, Cause::Goal, "{:?}", report.outcome);
        assert!(last_answer(&model).contains("\"5\""), "{}", last_answer(&model));
        let first = told(&model, 0);
        assert_eq!(told(&model, 1), first, "what was told stays the same");
    }
}

/// Regression: the approval was used up, the call was never made, and the run ended as if all were well.
#[tokio::test]
async fn an_approved_call_waits_for_its_server_and_is_made_once() {
    let Some(scene) = Scene::new() else { return };
    let server = scene.server("");
    let (id, call, fingerprint) = scene.parked().await;

    // Nobody has answered yet: the question is not dropped.
    let (events, report) = scene.go_on(&id, &server, &model([])).await;
    assert_eq!(report.outcome.status, Status::Parked, "{:?}", report.outcome);
    let asked = |event: &Arc<Event>| matches!(event.body, EventBody::ApprovalAsked { .. });
    assert!(events.iter().any(asked), "it is asked again");

    scene.leave(Letter::yes(id.clone(), call, fingerprint, now(&scene)));
    let broken = server.replace("server.py", "nowhere.py");
    let unset = server.replace("name: calc,", "name: calc, env: {KEY: '${NOWHERE_SET}'},");
    for (server, why) in [
        (switched_off(&server), "`convoke mcp enable calc` switches it on"),
        (broken, "MCP server `calc` could not be started"),
        (unset, "`convoke mcp get calc` says which"),
    ] {
        let (events, report) = scene.go_on(&id, &server, &model([])).await;
        assert_eq!(report.outcome.status, Status::Parked, "{why}: {:?}", report.outcome);
        let told = waits(&events).unwrap();
        assert!(told.contains("is not here") && told.contains(why), "{told}");
        assert_eq!(scene.letters(&id), 1, "the answer is kept");
    }

    let model = model([Turn::text("5")]);
    let (events, report) = scene.go_on(&id, &server, &model).await;
    assert_eq!(report.outcome.cause, Cause::Goal, "{:?}", report.outcome);
    let started = |event: &&Arc<Event>| matches!(event.body, EventBody::ToolCallStarted { .. });
    assert_eq!(events.iter().filter(started).count(), 1);
    assert!(last_answer(&model).contains("\"5\""), "{}", last_answer(&model));
}

/// Who said no need not switch the server on for it.
#[tokio::test]
async fn a_refused_call_does_not_wait_for_its_server() {
    let Some(scene) = Scene::new() else { return };
    let (id, call, fingerprint) = scene.parked().await;
    scene.leave(Letter::no(id.clone(), call, fingerprint, now(&scene)));
    let model = model([Turn::text("Then not.")]);
    let (_, report) = scene.go_on(&id, &switched_off(&scene.server("")), &model).await;
    assert_ne!(report.outcome.status, Status::Parked, "{:?}", report.outcome);
    assert!(last_answer(&model).contains("the user said no"), "{}", last_answer(&model));
}

#[tokio::test]
async fn a_model_is_told_that_a_server_is_switched_off() {
    let Some(scene) = Scene::new() else { return };
    let config = servers(&switched_off(&scene.server("")));
    let model = model([direct(), Turn::text("No.")]);
    run(&scene.builder(&config).build().unwrap(), &model, Answer::yes()).await;
    let said = last_answer(&model);
    for part in ["the MCP server `calc` is switched off", "`convoke mcp enable calc`"] {
        assert!(said.contains(part), "{part}: {said}");
    }
}
