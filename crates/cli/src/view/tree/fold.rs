//! One event at a time: what it changes in the tree, and what it gives to tell.

mod notes;

use std::time::Duration;

use convoke_core::event::Progress;
use convoke_core::hook::Moment;
use convoke_core::run::COMPLETE_TASK;
use convoke_core::{
    Cause, Display, DisplayFormat, Ending, Event, EventBody, Limit, Message, Millis, Money,
    Outcome, Part, RunId, StopReason, Timestamp, ToolError, Usage,
};
use convoke_tool::UNANSWERED_IN_TIME;
use serde_json::Value;

use super::activity::{Activity, Tail, retry};
use super::agent::{Agent, CallState, OpenCall};
use super::between;
use super::entry::{CallEnd, End, Entry, Said, Weight};
use super::{AgentReport, Ended, MAX_AGENTS, MAX_LABELS, MAX_NAMES, ModelFailure, Tree};
use crate::view::amounts;
use crate::view::brief::{self, REMARK, one_line};

/// How long the name of a tool is shown, in columns.
const NAME: usize = 64;

/// What an event gives to tell about the agent that acts.
type Told = Vec<(Weight, Said)>;

pub(super) fn fold(tree: &mut Tree, event: &Event) -> Vec<Entry> {
    if let EventBody::AgentEnded { child, outcome, usage, .. } = &event.body {
        return tree.end(child, outcome, *usage, event.ts).into_iter().collect();
    }
    if let EventBody::RunEnded { outcome, usage, answer } = &event.body
        && tree.is_root(event)
    {
        tree.totals.usage = larger(tree.totals.usage, since(&tree.before.usage, usage));
        tree.ended = Some(Ended { outcome: outcome.clone(), answer: answer.clone() });
        tree.agents.clear();
        return Vec::new();
    }
    if let EventBody::RunEnded { outcome, usage, .. } = &event.body {
        return tree.end(&event.run, outcome, *usage, event.ts).into_iter().collect();
    }
    tree.count(event);
    let agent = tree.agent(event);
    let told = agent.fold(event);
    let who = agent.who.clone();
    told.into_iter().map(|(weight, said)| Entry { who: who.clone(), weight, said }).collect()
}

impl Tree {
    /// Returns the agent an event is about, which begins if it is new.
    fn agent(&mut self, event: &Event) -> &mut Agent {
        let Self { agents, names, labels, begun, .. } = self;
        agents.entry(event.run.clone()).or_insert_with(|| {
            *begun += 1;
            let known = labels.get(&event.run).cloned();
            let label = known.unwrap_or_else(|| label(names, Agent::name_in(event)));
            if labels.len() < MAX_LABELS {
                labels.insert(event.run.clone(), label.clone());
            }
            Agent::new(event, label, *begun)
        })
    }

    /// Counts what an event adds to the totals.
    fn count(&mut self, event: &Event) {
        if let Some(call) = &event.call {
            let call = (event.run.clone(), call.clone());
            if event.body.ends_call() {
                self.calls.remove(&call);
            } else if matches!(event.body, EventBody::ToolCallStarted { .. }) {
                // One that is made again after a restart counts once.
                self.totals.tool_calls += u32::from(self.calls.insert(call));
            }
        }
        match &event.body {
            EventBody::ModelResponse { usage, .. } | EventBody::ModelFailed { usage, .. } => {
                self.totals.usage += *usage;
            }
            EventBody::Warning { message } => self.totals.warn(message),
            EventBody::ApprovalAnswered { approved: false, by: Some(_), .. } => {
                self.totals.refused += 1;
            }
            EventBody::ApprovalAnswered { approved: false, message: Some(message), .. }
                if message.ends_with(UNANSWERED_IN_TIME) =>
            {
                self.totals.unanswered += 1;
            }
            EventBody::HookActed { moment: Moment::BeforeTool, action, .. }
                if action == "denied" =>
            {
                self.totals.refused += 1;
            }
            EventBody::ToolCallDenied { .. } => {
                // One that was only left out, at a limit for instance, has not been judged.
                let agent = self.agents.get_mut(&event.run);
                let call = agent.and_then(|agent| agent.call(event.call.as_ref()));
                self.totals.denied += u32::from(call.is_some_and(|call| call.was_judged));
            }
            _ => {}
        }
        match &event.body {
            EventBody::WorkspaceChanged(report) if !self.is_root(event) => {
                self.changed.insert(event.run.clone(), report.clone());
            }
            _ if !self.is_root(event) => {}
            EventBody::ModelRequest { .. } => self.totals.error = None,
            EventBody::ModelFailed { cause, error, message, status, hint, .. } => {
                let timeout = (*cause == Cause::Timeout).then_some(Limit::TurnTime);
                self.totals.exceeded = self.totals.exceeded.or(timeout);
                let provider = self.totals.model.split('/').next().unwrap_or_default();
                self.totals.error = Some(ModelFailure {
                    kind: error.clone(),
                    provider: provider.to_owned(),
                    status: *status,
                    message: message.clone(),
                    hint: hint.clone(),
                });
            }
            EventBody::WorkspaceChanged(report) => self.totals.workspace = Some(report.clone()),
            EventBody::BudgetExceeded { budget, .. } => {
                self.totals.exceeded.get_or_insert(*budget);
            }
            EventBody::RunStarted { model, settings, .. } => {
                self.totals.model = one_line(model, NAME);
                self.totals.budget = settings.budget.clone();
            }
            EventBody::RunResumed { model, settings, .. } => {
                self.ended = None;
                self.agents.clear();
                (self.totals.exceeded, self.totals.error) = (None, None);
                if let Some(model) = model {
                    self.totals.model = one_line(model, NAME);
                }
                if let Some(settings) = settings {
                    self.totals.budget = settings.budget.clone();
                }
            }
            EventBody::TurnStarted { turn } => {
                self.totals.turns = turn.saturating_sub(self.before.turns);
            }
            // A run that goes on after a restart has used more than is seen here.
            EventBody::Usage(usage) => {
                self.totals.usage = larger(self.totals.usage, since(&self.before.usage, usage));
            }
            _ => {}
        }
    }

    /// Takes an agent out: it ended.
    fn end(
        &mut self,
        run: &RunId,
        outcome: &Outcome,
        usage: Usage,
        at: Timestamp,
    ) -> Option<Entry> {
        let agent = self.agents.remove(run)?;
        // Turns and tokens are those of all its parts, and so is the time.
        let earlier = self.totals.agents.iter().find(|known| known.run == run.as_str());
        let earlier = earlier.map(|known| known.duration_ms.get()).unwrap_or_default();
        let duration = earlier.saturating_add(between(agent.started, at));
        if self.root.as_ref() != Some(run) && self.totals.agents.len() < MAX_AGENTS {
            // One that goes on after its end is told of once.
            self.totals.agents.retain(|known| known.run != run.as_str());
            self.totals.agents.push(AgentReport {
                agent: agent.who.label.clone(),
                run: run.to_string(),
                status: outcome.status,
                cause: outcome.cause,
                turns: agent.turn,
                usage,
                duration_ms: Millis::new(duration),
                workspace: self.changed.remove(run),
            });
        }
        let weight = Weight::Usual;
        let said = Said::Ends {
            cause: outcome.cause,
            recovered: outcome.recovered,
            message: outcome.message.as_ref().map(|message| one_line(message, REMARK)),
            turns: agent.turn,
            usage,
            duration,
        };
        Some(Entry { who: agent.who, weight, said })
    }
}

/// Numbers agents that have the same name.
fn label(names: &mut std::collections::BTreeMap<String, u32>, name: String) -> String {
    if names.len() >= MAX_NAMES && !names.contains_key(&name) {
        return name;
    }
    let count = names.entry(name.clone()).or_default();
    *count += 1;
    if *count == 1 { name } else { format!("{name} {count}") }
}

/// Returns what was used between two moments.
fn since(earlier: &Usage, later: &Usage) -> Usage {
    let cost = match (earlier.cost, later.cost) {
        (Some(earlier), Some(later)) => {
            later.amount().checked_sub(earlier.amount()).map(Money::new)
        }
        (None, later) if earlier.is_empty() => later,
        _ => None,
    };
    Usage {
        input_tokens: later.input_tokens.saturating_sub(earlier.input_tokens),
        cached_tokens: later.cached_tokens.saturating_sub(earlier.cached_tokens),
        cache_write_tokens: later.cache_write_tokens.saturating_sub(earlier.cache_write_tokens),
        output_tokens: later.output_tokens.saturating_sub(earlier.output_tokens),
        thought_tokens: later.thought_tokens.saturating_sub(earlier.thought_tokens),
        estimated: later.estimated,
        cost,
    }
}

fn larger(left: Usage, right: Usage) -> Usage {
    let sum = |usage: Usage| usage.input_tokens.saturating_add(usage.output_tokens);
    if sum(right) >= sum(left) { right } else { left }
}

impl Agent {
    fn fold(&mut self, event: &Event) -> Told {
        match &event.body {
            EventBody::RunStarted { prompt, settings, model, tools, .. } => {
                self.ends_by_text = settings.ending == Ending::Text;
                self.task = one_line(prompt, REMARK);
                if self.who.depth > 0 {
                    return vec![(Weight::Usual, Said::Begins { task: self.task.clone() })];
                }
                let model = one_line(model, NAME);
                let (run, tools) = (&event.run, amounts::count(tools.len() as u64, "tool"));
                detail(format!("run {run}, model {model}, {tools}"))
            }
            EventBody::TurnStarted { turn } => {
                self.turn = *turn;
                detail(format!("turn {turn}"))
            }
            // One that goes on after its end does so with something more to do.
            EventBody::UserMessage { message } if self.who.depth > 0 && self.task.is_empty() => {
                self.task = one_line(&message.words(), REMARK);
                vec![(Weight::Usual, Said::Note(format!("goes on: {}", self.task)))]
            }
            EventBody::AgentSpawned { .. } => {
                if let Some(call) = self.call(event.call.as_ref()) {
                    call.is_agent = true;
                }
                Told::new()
            }
            body => {
                let told = self.fold_model(event.ts, body);
                let told = told.or_else(|| self.fold_call(event));
                told.unwrap_or_else(|| notes::notes(body))
            }
        }
    }

    /// Takes in what the model does.
    fn fold_model(&mut self, at: Timestamp, body: &EventBody) -> Option<Told> {
        match body {
            EventBody::BudgetAwaited { tokens } => {
                self.turn_to(Activity::AwaitsBudget, at);
                let tokens = amounts::tokens(*tokens);
                let note = format!(
                    "waits: other agents hold what is left of the budget, and it needs {tokens} tokens"
                );
                return Some(vec![(Weight::Passing, Said::Note(note))]);
            }
            EventBody::ModelRequest { purpose, .. } => {
                self.turn_to(Activity::Asked(*purpose), at);
            }
            EventBody::ModelThought { text } => self.activity.think(text),
            EventBody::ModelDelta { text } => self.activity.write(text),
            EventBody::ModelToolCall { tool_name } => {
                self.activity = Activity::Calling(one_line(tool_name, NAME));
            }
            EventBody::ModelRetry { attempt, delay_ms, reason, .. } => {
                let (wait, reason) = (delay_ms.get(), one_line(reason, REMARK));
                let note = retry(wait, *attempt, &reason);
                let at = at.after(wait);
                self.turn_to(Activity::Retrying { at, attempt: *attempt, reason }, at);
                return Some(vec![(Weight::Passing, Said::Note(note))]);
            }
            EventBody::ModelResponse { purpose, message, usage, stop, dropped_calls } => {
                let duration = self.active_for(at);
                self.turn_to(Activity::None, at);
                let turn = purpose.is_turn();
                let mut told = self.answered(message, *usage, *stop, duration, turn);
                if *dropped_calls > 0 {
                    let all = message.calls().count() + *dropped_calls as usize;
                    let note =
                        format!("asked for {all} calls at once; {dropped_calls} were not run");
                    told.push((Weight::Caution, Said::Note(note)));
                }
                return Some(told);
            }
            EventBody::ModelFailed { .. } => {
                self.turn_to(Activity::None, at);
                return None;
            }
            _ => return None,
        }
        Some(Told::new())
    }

    fn answered(
        &self,
        message: &Message,
        usage: Usage,
        stop: StopReason,
        duration: Duration,
        in_turn: bool,
    ) -> Told {
        let mut told = Told::new();
        for part in &message.parts {
            if let Part::Thought { text } = part {
                let said = Said::Block { title: "thought".into(), text: text.clone() };
                told.push((Weight::Detail, said));
            }
        }
        let words = message.words();
        let is_answer = self.ends_by_text && message.calls().next().is_none();
        if in_turn && !words.trim().is_empty() && !is_answer {
            let weight = if self.who.depth == 0 { Weight::Usual } else { Weight::Detail };
            told.push((weight, Said::Words(words)));
        }
        told.push((Weight::Detail, Said::Answered { usage, duration }));
        if stop == StopReason::Length {
            told.push((Weight::Usual, Said::Note("the answer reached its maximum length".into())));
        }
        told
    }

    /// Takes in what happens to a call.
    fn fold_call(&mut self, event: &Event) -> Option<Told> {
        let at = event.ts;
        match &event.body {
            EventBody::ToolCallRequested { tool_name, params } => {
                let name = one_line(tool_name, NAME);
                let told = arguments(&name, params);
                self.calls.push(OpenCall {
                    id: event.call.clone()?,
                    name,
                    summary: brief::arguments(params),
                    state: CallState::Waiting,
                    since: at,
                    tail: Tail::default(),
                    fraction: None,
                    is_agent: false,
                    was_judged: false,
                });
                return Some(vec![(Weight::Detail, told)]);
            }
            EventBody::ToolCallStarted { .. } => {
                self.call(event.call.as_ref())?.enter(CallState::Running, at);
            }
            EventBody::ToolCallProgress { update, .. } => {
                self.call(event.call.as_ref())?.progress(update);
            }
            EventBody::PolicyDecision { .. } => {
                if let Some(call) = self.call(event.call.as_ref()) {
                    call.was_judged = true;
                }
                return None;
            }
            EventBody::ApprovalAsked { tool_name, reason, .. } => {
                let call = self.call(event.call.as_ref());
                let what = call.map(|call| {
                    call.enter(CallState::Asking, at);
                    format!("{} {}", call.name, call.summary)
                });
                let what = what.unwrap_or_else(|| one_line(tool_name, NAME));
                let note = format!("{} asks: {}", what.trim_end(), one_line(reason, REMARK));
                return Some(vec![(Weight::Passing, Said::Note(note))]);
            }
            EventBody::InquiryAsked { who, message, .. } => {
                if let Some(call) = self.call(event.call.as_ref()) {
                    call.enter(CallState::Asking, at);
                }
                let note = format!("{} asks: {}", one_line(who, NAME), one_line(message, REMARK));
                return Some(vec![(Weight::Passing, Said::Note(note))]);
            }
            EventBody::InquiryAnswered { .. } => {
                if let Some(call) = self.call(event.call.as_ref()) {
                    call.enter(CallState::Running, at);
                }
                return None;
            }
            EventBody::HookActed { arguments: Some(changed), .. }
            | EventBody::ApprovalAnswered { arguments: Some(changed), .. } => {
                if let Some(call) = self.call(event.call.as_ref()) {
                    call.summary = brief::arguments(changed);
                    call.enter(CallState::Waiting, at);
                }
                return None;
            }
            EventBody::ToolCallDeferred { reason, .. } => {
                let call = self.call(event.call.as_ref())?;
                call.enter(CallState::Waiting, at);
                // An agent says itself that it was stopped, or what it waits for.
                return call
                    .is_agent
                    .then(|| detail(format!("{}: {}", call.name, one_line(reason, REMARK))));
            }
            EventBody::ApprovalAnswered { .. } => {
                if let Some(call) = self.call(event.call.as_ref()) {
                    call.enter(CallState::Waiting, at);
                }
                return None;
            }
            EventBody::ToolCallCompleted { tool_name, content, display, duration_ms, .. } => {
                let end = CallEnd {
                    end: End::Ok,
                    remark: brief::result(content, display.as_ref()),
                    diff: display.as_ref().and_then(diff_of),
                    ..self.ending(event, tool_name, duration_ms.get())
                };
                return Some(self.ended(event, end));
            }
            EventBody::ToolCallFailed { tool_name, error, duration_ms, content, .. } => {
                let end = self.ending(event, tool_name, duration_ms.get());
                let end = with_error(end, End::Failed, error);
                return Some(self.ended(event, with_last_line(end, content)));
            }
            EventBody::ToolCallDenied { tool_name, error, duration_ms, .. } => {
                let end = self.ending(event, tool_name, duration_ms.get());
                return Some(self.ended(event, with_error(end, End::Denied, error)));
            }
            _ => return None,
        }
        Some(Told::new())
    }

    /// Starts to tell about the end of a call.
    fn ending(&mut self, event: &Event, tool_name: &str, duration: Duration) -> CallEnd {
        let call = self.call(event.call.as_ref());
        CallEnd {
            name: one_line(tool_name, NAME),
            summary: call.map(|call| call.summary.clone()).unwrap_or_default(),
            end: End::Ok,
            duration,
            remark: None,
            diff: None,
        }
    }

    /// A call that was an agent has been told about already, and the end of a task is told by its answer.
    fn ended(&mut self, event: &Event, end: CallEnd) -> Told {
        let was_agent = self.close(event.call.as_ref()).is_some_and(|call| call.is_agent);
        let completed = end.end == End::Ok && end.name == COMPLETE_TASK;
        let weight = if was_agent || completed { Weight::Detail } else { Weight::Usual };
        vec![(weight, Said::Call(end))]
    }
}

impl OpenCall {
    fn progress(&mut self, update: &Progress) {
        if let Some(text) = &update.text {
            if update.fraction.is_some() {
                // How far it is, is said anew each time, and goes on from nothing.
                self.tail.push("\n");
            }
            self.tail.push(text);
        }
        self.fraction = update.fraction.or(self.fraction);
    }
}

/// Says with what a call was made: on the same line, if that is enough.
fn arguments(name: &str, params: &Value) -> Said {
    const SHORT: usize = 60;
    let text = params.to_string();
    if text.len() <= SHORT {
        return Said::Note(format!("arguments of {name}: {}", one_line(&text, SHORT)));
    }
    let text = serde_json::to_string_pretty(params).unwrap_or_default();
    Said::Block { title: format!("arguments of {name}"), text }
}

fn with_error(call: CallEnd, end: End, error: &ToolError) -> CallEnd {
    // That it was denied is said already.
    let message = error.message.strip_prefix("Permission denied: ").filter(|_| end == End::Denied);
    let message = message.unwrap_or(&error.message);
    CallEnd { end, remark: Some(one_line(message, REMARK)), ..call }
}

/// What a call said last before it failed says most about why.
fn with_last_line(call: CallEnd, content: &[Part]) -> CallEnd {
    let output = content.iter().skip(1).filter_map(Part::as_text).next_back();
    let line = output.and_then(|text| text.lines().rev().find(|line| !line.trim().is_empty()));
    match (line, &call.remark) {
        (Some(line), Some(remark)) => {
            let remark = one_line(&format!("{remark}: {}", line.trim()), REMARK);
            CallEnd { remark: Some(remark), ..call }
        }
        _ => call,
    }
}

fn diff_of(display: &Display) -> Option<String> {
    (display.format == DisplayFormat::Diff).then(|| display.text.clone())
}

fn detail(note: String) -> Told {
    vec![(Weight::Detail, Said::Note(note))]
}
