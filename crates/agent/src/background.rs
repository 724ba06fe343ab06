//! Agents that work while their caller goes on: where they are, and the tool to look after them.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use async_trait::async_trait;
use convoke_core::{Category, Kind, Repeat, RunId, ToolError, ToolSpec};
use convoke_tool::{Invocation, Tool, ToolContext, ToolOutput};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::task::JoinSet;

use crate::member::Member;
use crate::running::RunHandle;

/// The name of the tool.
pub const BACKGROUND_AGENTS: &str = "background_agents";

/// How long is waited where nobody says, and at most.
const DEFAULT_WAIT: u64 = 60;
const MAX_WAIT: u64 = 600;

/// The agents of one run that work on their own. Dropping this stops them.
#[derive(Debug, Default)]
pub(crate) struct Background {
    tasks: Mutex<JoinSet<()>>,
    handles: Mutex<HashMap<RunId, RunHandle>>,
    ended: Notify,
    /// How many ended since somebody waited for any.
    unseen: AtomicUsize,
}

/// Says that an agent has ended, however it did.
struct Ending(Weak<Background>, RunId);

impl Drop for Ending {
    fn drop(&mut self) {
        if let Some(background) = self.0.upgrade() {
            background.handles().remove(&self.1);
            background.unseen.fetch_add(1, Ordering::AcqRel);
            background.ended.notify_waiters();
        }
    }
}

impl Background {
    /// Lets an agent work.
    pub(crate) fn add(
        self: &Arc<Self>,
        child: &RunId,
        handle: RunHandle,
        work: impl Future<Output = ()> + Send + 'static,
    ) {
        self.handles().insert(child.clone(), handle);
        let ending = Ending(Arc::downgrade(self), child.clone());
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        // Those that ended are not kept.
        while tasks.try_join_next().is_some() {}
        tasks.spawn(async move {
            let _ending = ending;
            work.await;
        });
    }

    /// Tells whether an agent works here.
    pub(crate) fn has(&self, child: &RunId) -> bool {
        self.handles().contains_key(child)
    }

    /// Waits until one of these has ended, or any where none is named; at once, if one has.
    pub(crate) async fn one_ended(&self, child: Option<&RunId>) {
        loop {
            let ended = self.ended.notified();
            tokio::pin!(ended);
            ended.as_mut().enable();
            let is_over = match child {
                Some(child) => !self.has(child),
                None => self.unseen.swap(0, Ordering::AcqRel) > 0 || self.handles().is_empty(),
            };
            if is_over {
                return;
            }
            ended.await;
        }
    }

    /// Stops one, or all, and waits until they have ended.
    pub(crate) async fn stop(&self, child: Option<&RunId>) {
        let children: Vec<(RunId, RunHandle)> = {
            let handles = self.handles();
            let wanted = |id: &RunId| child.is_none_or(|child| child == id);
            let wanted = handles.iter().filter(|(id, _)| wanted(id));
            wanted.map(|(id, handle)| (id.clone(), handle.clone())).collect()
        };
        for (_, handle) in &children {
            handle.cancel();
        }
        for (child, _) in &children {
            self.one_ended(Some(child)).await;
        }
    }

    fn handles(&self) -> MutexGuard<'_, HashMap<RunId, RunHandle>> {
        self.handles.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Looks after the agents that work in the background.
#[derive(Debug)]
pub struct BackgroundTool(ToolSpec);

impl BackgroundTool {
    pub(crate) fn new() -> Self {
        let mut spec = ToolSpec::new(
            BACKGROUND_AGENTS,
            include_str!("../prompts/background_tool.md").trim_end(),
            Kind::Agent,
        );
        spec.category = Category::Agent;
        spec.repeat = Repeat::Idempotent;
        spec.parameters = json!({
            "type": "object",
            "additionalProperties": false,
            "properties": {
                "action": { "type": "string", "enum": ["list", "wait", "collect", "cancel"] },
                "agent_id": { "type": "string", "description": "Which agent; for `wait`, any where absent." },
                "seconds": {
                    "type": "integer", "minimum": 1, "maximum": MAX_WAIT,
                    "description": "How long to wait at most.",
                },
            },
            "required": ["action"],
        })
        .into();
        Self(spec)
    }
}

impl Tool for BackgroundTool {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn prepare(&self, arguments: Value) -> Result<Box<dyn Invocation>, ToolError> {
        let wanted: Wanted = serde_json::from_value(arguments)
            .map_err(|error| ToolError::validation(vec![error.to_string()]))?;
        if wanted.agent_id.is_none() && matches!(wanted.action, Action::Collect | Action::Cancel) {
            return Err(ToolError::validation(vec!["`agent_id` is missing".to_owned()]));
        }
        Ok(Box::new(wanted))
    }
}

#[derive(Deserialize)]
struct Wanted {
    action: Action,
    agent_id: Option<String>,
    seconds: Option<u64>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Action {
    List,
    Wait,
    Collect,
    Cancel,
}

#[async_trait]
impl Invocation for Wanted {
    fn describe(&self) -> Option<String> {
        let action = match self.action {
            Action::List => "list agents in the background",
            Action::Wait => "wait for an agent",
            Action::Collect => "collect the result of an agent",
            Action::Cancel => "stop an agent",
        };
        let which = self.agent_id.as_ref().map(|id| format!(" `{id}`")).unwrap_or_default();
        Some(format!("{action}{which}"))
    }

    async fn run(self: Box<Self>, context: ToolContext) -> Result<ToolOutput, ToolError> {
        let member = Member::of(&context)?;
        let child = self.agent_id.as_deref().map(|id| member.child_of(id));
        if let Some(child) = &child {
            member.check_child(child)?;
        }
        match self.action {
            Action::List | Action::Collect => {}
            Action::Wait => {
                let seconds = self.seconds.unwrap_or(DEFAULT_WAIT).min(MAX_WAIT);
                let _away = member.seat.leave();
                tokio::select! {
                    () = member.background.one_ended(child.as_ref()) => {}
                    () = context.cancelled() => {}
                    () = tokio::time::sleep(Duration::from_secs(seconds)) => {}
                }
            }
            Action::Cancel => member.background.stop(child.as_ref()).await,
        }
        match child {
            Some(child) => Ok(member.standing(&child)),
            None => Ok(member.roll_call()),
        }
    }
}
