//! The first half: look up, validate, authorise. Nothing has happened to the world yet.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use convoke_core::policy::Forbidden;
use convoke_core::{
    Access, Concurrency, Display, Effects, EventBody, Kind, Repeat, ToolCall, ToolError,
    ToolResult, ToolSpec, USE_TOOL,
};
use serde_json::Value;

use super::absent::Absent;
use super::end::{Stopped, Ticket, bounded_display};
use super::{CallOptions, ToolExecutor};
use crate::approve::Question;
use crate::authorize::{Authorizer, Decision, Request};
use crate::context::ToolContext;
use crate::files::CallFiles;
use crate::roots::Place;
use crate::schedule::Footprint;
use crate::task::Uncontained;
use crate::tool::{Invocation, Tool};
use crate::truncate::{cut_middle, floor_char_boundary};

/// A call that passed the checks. Dropping it records it as cancelled.
pub struct PreparedCall {
    pub(super) ticket: Ticket,
    pub(super) invocation: Held,
    pub(super) effects: Effects,
    places: Vec<(Access, Place)>,
    /// Where the places led to when it was decided.
    led_to: Vec<PathBuf>,
    pub(super) concurrency: Concurrency,
    pub(super) description: String,
    pub(super) timeout: Duration,
    pub(super) kind: Kind,
    pub(super) repeat: Repeat,
    pub(super) options: CallOptions,
    /// What it was asked with, where hooks have a say about it.
    pub(super) arguments: Option<Arc<Value>>,
    /// What it was asked with.
    pub(super) called_with: Arc<Value>,
    pub(super) question: Option<Question>,
    /// What it must not see.
    pub(super) forbidden: Forbidden,
    /// The files that its preview showed.
    pub(super) files: Arc<CallFiles>,
    /// The arguments that the model gave, where a person changed them.
    pub(super) changed_from: Option<Arc<Value>>,
}

impl PreparedCall {
    /// Says what the call will do.
    pub fn description(&self) -> &str {
        &self.description
    }

    /// Says what it will touch.
    pub const fn effects(&self) -> &Effects {
        &self.effects
    }

    /// Works out which paths it touches, links resolved.
    pub(super) fn footprint(&self) -> impl Future<Output = Footprint> + use<> {
        let (reads, writes) = (self.places(Access::Read), self.places(Access::Write));
        let alone = self.wants_to_be_alone();
        async move { Footprint { reads: resolve(reads).await, writes: resolve(writes).await, alone } }
    }

    /// Returns the places it writes.
    pub(super) fn written_places(&self) -> Vec<Place> {
        self.places(Access::Write)
    }

    fn places(&self, wanted: Access) -> Vec<Place> {
        let places = self.places.iter().filter(|(access, _)| *access == wanted);
        places.map(|(_, place)| place.clone()).collect()
    }

    /// Returns a path that leads elsewhere now than when the call was decided about.
    pub(super) fn redirected(&self) -> Option<&str> {
        let mut places = self.places.iter().zip(&self.led_to);
        let moved = places.find(|((_, place), before)| place.resolved() != **before);
        moved.map(|((_, place), _)| place.spelled())
    }

    /// Tells whether any number of such calls can run side by side.
    pub(super) fn only_reads(&self) -> bool {
        !self.wants_to_be_alone() && self.places.iter().all(|(access, _)| *access == Access::Read)
    }

    fn wants_to_be_alone(&self) -> bool {
        self.concurrency == Concurrency::Exclusive
    }

    /// Returns what to ask about it, if somebody has to be asked.
    pub const fn question(&self) -> Option<&Question> {
        self.question.as_ref()
    }
}

impl std::fmt::Debug for PreparedCall {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("PreparedCall")
            .field("description", &self.description)
            .finish_non_exhaustive()
    }
}

/// How the first half ended.
#[derive(Debug)]
pub enum Decided {
    /// It may run.
    Ready(PreparedCall),
    /// Somebody has to be asked first.
    Ask(PreparedCall),
    /// It is over already: unknown, wrong or not allowed.
    Answered(Box<ToolResult>),
    /// It waits: somebody was asked about it, and its tool is not here now. It has no end yet.
    Deferred(Box<ToolResult>),
}

impl From<Stopped> for Decided {
    fn from(stopped: Stopped) -> Self {
        match stopped {
            Stopped::Deferred(result) => Self::Deferred(result),
            Stopped::Ended(result) => Self::Answered(result),
        }
    }
}

impl Decided {
    /// Returns the call, unless it is over.
    pub(super) const fn prepared(&self) -> Option<&PreparedCall> {
        match self {
            Self::Ready(prepared) | Self::Ask(prepared) => Some(prepared),
            Self::Answered(_) | Self::Deferred(_) => None,
        }
    }
}

impl ToolExecutor {
    /// Looks up, validates and authorises a call, and lets hooks have their say. From here on the stream
    /// knows it as requested. A tool that is not here yet is waited for.
    pub async fn prepare(&self, call: ToolCall, options: CallOptions) -> Decided {
        let decided = self.when_here(self.decide_first(call, options)).await;
        self.hooked(decided).await
    }

    /// Decides about a call, before hooks have had their say; not yet, if its tool is not here.
    pub(crate) fn decide_first(
        &self,
        call: ToolCall,
        options: CallOptions,
    ) -> Result<Decided, Box<Absent>> {
        // Whoever may use others through it sees, decides and records what is meant.
        let call = if self.0.view.entry(USE_TOOL).is_some() { call.meant() } else { call };
        let opened =
            Ticket::open(&self.0, call.id.clone(), recorded_name(&call.name), &call.arguments);
        let ticket = match opened {
            Ok(ticket) => ticket,
            Err(result) => return Ok(Decided::Answered(result)),
        };
        if self.0.view.entry(&call.name).is_none() {
            let arrivals = self.0.view.arrivals_of(&call.name);
            return Err(Box::new(Absent { ticket, call, options, arrivals }));
        }
        Ok(settled(self.decide(ticket, call, options)))
    }

    #[expect(
        clippy::result_large_err,
        reason = "both ways out carry the ticket; neither is stored"
    )]
    pub(super) fn decide(
        &self,
        mut ticket: Ticket,
        mut call: ToolCall,
        options: CallOptions,
    ) -> Result<(PreparedCall, Decision), (Ticket, ToolError)> {
        let Some(entry) = self.0.view.entry(&call.name) else {
            return Err((ticket, self.0.view.unknown(&call.name)));
        };
        ticket.belongs_to(entry.clone());
        let limits = &self.0.limits;
        let arguments = std::mem::take(&mut call.arguments);
        let arguments =
            match entry.check().and_then(|check| check.check(arguments, limits.max_argument_bytes))
            {
                Ok(arguments) => arguments,
                Err(error) => return Err((ticket, error)),
            };
        let spec = entry.tool.spec();
        call.arguments = arguments.clone();
        let planned = self.revealed(spec, arguments);
        let planned = match planned.and_then(|arguments| plan(entry.tool.as_ref(), arguments)) {
            Ok(planned) => planned,
            Err(error) => return Err((ticket, error)),
        };
        let Planned { invocation, effects, description, timeout, repeat } = planned;
        let places = match self.locate(&effects) {
            Ok(places) => places,
            Err(error) => return Err((ticket, error)),
        };
        let led_to: Vec<PathBuf> = places.iter().map(|(_, place)| place.resolved()).collect();
        let granted = self.0.granted.0.borrow().clone();
        let request = Request {
            call: &call,
            spec,
            effects: &effects,
            description: &description,
            agent: self.0.recorder.agent(),
            linked: &linked(&places, &led_to),
            granted: &granted,
            context: &self.0.context,
        };
        let (decision, forbidden) = decide_contained(self.0.authorizer.as_ref(), &request);
        let recorded = ticket.record(EventBody::PolicyDecision {
            tool_name: call.name.clone(),
            decision: decision.word().to_owned(),
            rule: decision.rule().to_owned(),
        });
        let arguments = Arc::new(std::mem::take(&mut call.arguments));
        let question = match (&decision, recorded) {
            (_, Err(error)) => return Err((ticket, error)),
            (Decision::Deny { reason, .. }, _) => {
                return Err((ticket, ToolError::permission(reason)));
            }
            (Decision::Allow { .. }, _) => None,
            (Decision::Ask { reason, proposal, .. }, _) => Some(Question {
                call: call.id,
                agent: self.0.recorder.agent().clone(),
                run: self.0.recorder.run().clone(),
                tool_name: call.name,
                kind: spec.kind,
                arguments: Arc::clone(&arguments),
                description: description.clone(),
                preview: None,
                reason: reason.clone(),
                rules: proposal.clone(),
                until: self.0.context.clock().now().after(limits.approval_timeout),
                fingerprint: String::new(),
                inquiry: None,
            }),
        };
        let timeout = limits.timeout_of(spec, options.timeout, timeout);
        let (kind, repeat) = (spec.kind, repeat.unwrap_or(spec.repeat));
        Ok((
            PreparedCall {
                ticket,
                invocation,
                effects,
                places,
                led_to,
                concurrency: spec.concurrency,
                description,
                timeout,
                kind,
                repeat,
                options,
                called_with: Arc::clone(&arguments),
                arguments: Some(arguments).filter(|_| !self.0.hooks.is_empty()),
                question,
                forbidden,
                files: Arc::default(),
                changed_from: None,
            },
            decision,
        ))
    }

    /// Puts secrets in the place of their names, for a tool that says it takes them. Any other is refused.
    fn revealed(&self, spec: &ToolSpec, arguments: Value) -> Result<Value, ToolError> {
        let secrets = self.0.recorder.secrets();
        let revealed = if spec.takes_secrets {
            secrets.reveal_in_value(arguments)
        } else {
            secrets.named_in(&arguments).map_or(Ok(arguments), Err)
        };
        revealed.map_err(|withheld| ToolError::permission(withheld.to_string()))
    }

    /// Finds the paths a call touches. One outside the allowed roots ends it here, whatever any
    /// authorizer would say.
    pub(super) fn locate(&self, effects: &Effects) -> Result<Vec<(Access, Place)>, ToolError> {
        effects.paths().map(|(access, path)| Ok((access, self.0.context.locate(path)?))).collect()
    }
}

/// Returns how the first half ended for a call that was decided about.
pub(super) fn settled(decided: Result<(PreparedCall, Decision), (Ticket, ToolError)>) -> Decided {
    match decided {
        Ok((prepared, Decision::Ask { .. })) => Decided::Ask(prepared),
        Ok((prepared, _)) => Decided::Ready(prepared),
        Err((ticket, error)) => Decided::Answered(ticket.answered(error)),
    }
}

/// Returns where places lead that are reached through links.
pub(super) fn linked(places: &[(Access, Place)], led_to: &[PathBuf]) -> Vec<PathBuf> {
    let both = places.iter().zip(led_to);
    let linked = both.filter(|((_, place), led_to)| !place.is_at(led_to));
    linked.map(|(_, led_to)| led_to.clone()).collect()
}

/// An authorizer that breaks down has not allowed anything.
pub(super) fn decide_contained(
    authorizer: &dyn Authorizer,
    request: &Request<'_>,
) -> (Decision, Forbidden) {
    let decide = || (authorizer.decide(request), authorizer.forbidden(request));
    catch_unwind(AssertUnwindSafe(decide)).unwrap_or_else(|_| {
        let denied = Decision::Deny {
            rule: "the authorizer broke down".into(),
            reason: "permission could not be decided".into(),
        };
        (denied, Forbidden::default())
    })
}

/// Resolves the links of paths, where that holds up nobody.
pub(super) async fn resolve(places: Vec<Place>) -> Vec<PathBuf> {
    if places.is_empty() {
        return Vec::new();
    }
    let unresolved: Vec<PathBuf> = places.iter().map(Place::absolute).collect();
    let resolved =
        tokio::task::spawn_blocking(move || places.iter().map(Place::resolved).collect());
    resolved.await.unwrap_or(unresolved)
}

/// A call and what it says about itself.
struct Planned {
    invocation: Held,
    effects: Effects,
    description: String,
    timeout: Option<Duration>,
    repeat: Option<Repeat>,
}

/// Lets the tool prepare the call. That is the tool's own code, so it may break down here already.
fn plan(tool: &dyn Tool, arguments: Value) -> Result<Planned, ToolError> {
    let planned = catch_unwind(AssertUnwindSafe(|| {
        let spec = tool.spec();
        let effects = spec.effects.apply(&arguments);
        let description = describe(spec.title(), &arguments);
        let invocation = tool.prepare(arguments)?;
        Ok(Planned {
            effects: invocation.effects().unwrap_or(effects),
            description: bounded(invocation.describe().unwrap_or(description)),
            timeout: invocation.timeout(),
            repeat: invocation.repeat(),
            invocation: Held(Some(invocation)),
        })
    }));
    planned.unwrap_or_else(|panic| Err(Uncontained::panicked(panic.as_ref()).into()))
}

/// An invocation whose end is contained too, also if it never runs.
pub(super) struct Held(Option<Box<dyn Invocation>>);

impl Held {
    /// Returns the invocation, to be run.
    pub(super) const fn take(&mut self) -> Option<Box<dyn Invocation>> {
        self.0.take()
    }

    /// Asks the tool what the call would change. That may read files, so it holds up nobody; a tool that
    /// breaks down over it will not run either.
    pub(super) async fn preview(
        &mut self,
        context: ToolContext,
    ) -> Result<Option<Display>, ToolError> {
        let Some(invocation) = self.0.take() else { return Ok(None) };
        let previewed = tokio::task::spawn_blocking(move || {
            let preview = invocation.preview(&context);
            (invocation, preview)
        });
        let Ok((invocation, preview)) = previewed.await else { return Ok(None) };
        self.0 = Some(invocation);
        preview.map(|preview| preview.map(bounded_display))
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // A tool that cannot even be dropped must not take the pipeline with it.
        drop(catch_unwind(AssertUnwindSafe(|| drop(self.0.take()))));
    }
}

/// Returns the name of a called tool as events have it: one that no tool can have is not repeated in full.
pub fn recorded_name(name: &str) -> String {
    const MAX_BYTES: usize = 128;
    name.get(..floor_char_boundary(name, MAX_BYTES)).unwrap_or_default().to_owned()
}

/// Cuts what a call says about itself to what a person can read.
fn bounded(description: String) -> String {
    const MAX_BYTES: usize = 4 * 1024;
    cut_middle(&description, MAX_BYTES).unwrap_or(description)
}

/// Describes a call that does not describe itself: its name and its arguments, cut short.
fn describe(title: &str, arguments: &Value) -> String {
    const MAX_BYTES: usize = 240;
    let mut text = title.to_owned();
    for (name, value) in arguments.as_object().into_iter().flatten() {
        if text.len() > MAX_BYTES {
            text.push_str(" …");
            break;
        }
        text.push(' ');
        text.push_str(name);
        text.push('=');
        text.push_str(&brief(value));
    }
    text
}

fn brief(value: &Value) -> String {
    const MAX_BYTES: usize = 80;
    match value {
        Value::String(string) if string.len() > MAX_BYTES => {
            let cut = floor_char_boundary(string, MAX_BYTES);
            format!("{:?}…", string.get(..cut).unwrap_or_default())
        }
        Value::Array(items) => format!("[{} items]", items.len()),
        Value::Object(_) => "{…}".to_owned(),
        value => value.to_string(),
    }
}
