//! What all runs of one tree share: the ledger, the seats, the locks, and what became of every agent.

mod calls;

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use convoke_core::ledger::{Allowance, BudgetLedger, Reservation, Verdict, Wish};
use convoke_core::run::{Child, Ledger};
use convoke_core::{
    Budget, CallId, Event, EventBody, Limit, Money, Run, RunId, Usage, WorkspaceReport,
};
use convoke_journal::Inbox;
use convoke_tool::{Grants, PathLocks};
use serde_json::{Map, Value};
use tokio::sync::{Notify, Semaphore};

use self::calls::CallCount;
use crate::resume::origin;
use crate::state::RunState;

/// How often the model of a tree answers servers. What that costs has limits of its own.
pub(crate) const MAX_COUNSELS: u32 = 1_000;
/// What the origin of such an answer has, and that of an agent has not.
pub(crate) const ASKED_BY: &str = "askedBy";
/// How the names begin that runs have which answer servers.
pub(crate) const COUNSEL_PREFIX: &str = "for_";
/// What the definition of an agent let it do when it began stands under this name in its origin.
pub(crate) const RIGHTS: &str = "rights";

/// How large a tree of agents may get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TreeLimits {
    /// How many levels there may be below the first agent.
    pub max_depth: u32,
    /// How many agents work at once; more than that wait for their turn.
    pub max_parallel: usize,
    /// How many agents there may be in the life of one tree.
    pub max_agents: u32,
}

impl Default for TreeLimits {
    fn default() -> Self {
        Self { max_depth: 3, max_parallel: 16, max_agents: 200 }
    }
}

/// What became of the agents of a tree, as far as it is known when the tree is taken up again.
#[derive(Clone, Debug, Default)]
pub(crate) struct Family {
    runs: HashMap<RunId, Arc<RunState>>,
    /// Which agent a call began or went on with.
    by_call: HashMap<(RunId, CallId), RunId>,
    /// What every run has used.
    ledger: BudgetLedger,
    /// How many calls of tools count for every run, with all runs below it.
    calls: HashMap<RunId, u32>,
    born: u32,
    /// Those of its runs that answered servers, and are no agents.
    counsels: HashSet<RunId>,
    /// What the definition of every agent let it do when it began, as it was recorded.
    rights: HashMap<RunId, Value>,
    /// Those that were to go on after their end, and had not when the process was lost.
    to_go_on: HashSet<RunId>,
    /// What those were given that had not begun, or not gone on.
    given: HashMap<RunId, Map<String, Value>>,
    /// Those that somebody works on, or is about to.
    claimed: HashSet<RunId>,
    /// The names of those about whose files everything was said.
    told_of: HashSet<String>,
}

impl Family {
    /// Finds what became of the agents of a tree in its events. What the root did is somebody else's
    /// business.
    pub(crate) fn of<'a>(root: &RunId, events: impl IntoIterator<Item = &'a Event>) -> Self {
        let mut family = Self::default();
        let mut runs: HashMap<RunId, Run> = HashMap::new();
        let mut calls = CallCount::default();
        let mut changed: HashMap<RunId, WorkspaceReport> = HashMap::new();
        for event in events {
            if let (EventBody::AgentSpawned { child, name, continued, inputs, .. }, Some(call)) =
                (&event.body, &event.call)
            {
                family.told_of.insert(name.clone());
                family.by_call.insert((event.run.clone(), call.clone()), child.clone());
                family.born += u32::from(!continued);
                family.given.insert(child.clone(), inputs.clone());
                if *continued {
                    family.to_go_on.insert(child.clone());
                }
            }
            if let Some(origin) = origin(event).filter(|_| event.run != *root) {
                family.note_rights(&event.run, origin);
                if origin.get(ASKED_BY).is_some() && family.counsels.insert(event.run.clone()) {
                    family.born = family.born.saturating_sub(1);
                }
            }
            // One that goes on has something to do when it was told what.
            let begins = match event.body {
                EventBody::RunStarted { .. } => true,
                EventBody::UserMessage { .. } => family.to_go_on.contains(&event.run),
                _ => false,
            };
            if begins {
                family.to_go_on.remove(&event.run);
                family.given.remove(&event.run);
            }
            if let (true, Some(call)) = (event.body.ends_call(), &event.call) {
                family.by_call.remove(&(event.run.clone(), call.clone()));
            }
            if let Some(usage) = own_use(&event.body) {
                family.ledger.open(&event.run, event.parent.as_ref(), Allowance::default());
                family.ledger.charge(&event.run, usage);
            }
            calls.take(root, event);
            if let EventBody::WorkspaceChanged(report) = &event.body {
                changed.insert(event.run.clone(), report.clone());
            }
            // What its agents were in the middle of goes on in the run that it is a copy of.
            if let EventBody::RunForked { .. } = event.body {
                for run in runs.values_mut() {
                    run.apply(event);
                }
            }
            if event.run != *root {
                let run =
                    runs.entry(event.run.clone()).or_insert_with(|| Run::new(event.run.clone()));
                run.apply(event);
            }
        }
        family.runs = runs
            .into_iter()
            .map(|(id, run)| {
                let state = RunState::of(run);
                if let Some(report) = changed.remove(&id) {
                    state.note_changes(report);
                }
                (id, Arc::new(state))
            })
            .collect();
        family.calls = calls.finish();
        family
    }

    /// Lets a tree that begins anew make its calls of tools anew.
    pub(crate) fn renew_calls(&mut self) {
        self.calls.clear();
    }

    /// Notes what an agent may do, as the origin of its run says it, unless that is known from its beginning.
    fn note_rights(&mut self, run: &RunId, origin: &Value) {
        if let Some(rights) = origin.get(RIGHTS).filter(|_| !self.rights.contains_key(run)) {
            self.rights.insert(run.clone(), rights.clone());
        }
    }

    /// Returns what is known of an agent.
    pub(crate) fn run(&self, child: &RunId) -> Option<Arc<RunState>> {
        self.runs.get(child).cloned()
    }

    /// Tells whether a child answered a server, and is no agent. One that had not begun is known by its name alone.
    pub(crate) fn is_counsel(&self, id: &RunId, child: &Child, begun: bool) -> bool {
        self.counsels.contains(id) || (!begun && child.name.starts_with(COUNSEL_PREFIX))
    }

    /// Returns what people allowed in any of its runs.
    pub(crate) fn granted(&self) -> Vec<convoke_core::policy::RuleSpec> {
        self.runs.values().flat_map(|run| run.lock().granted().to_vec()).collect()
    }
}

/// Returns what a run itself used, as an event says it.
pub(crate) const fn own_use(body: &EventBody) -> Option<Usage> {
    match body {
        EventBody::ModelResponse { usage, .. }
        | EventBody::ModelFailed { usage, .. }
        | EventBody::ModelRetry { usage, .. }
        | EventBody::RunResumed { lost: usage, .. } => Some(*usage),
        _ => None,
    }
}

/// What all runs of one tree share.
#[derive(Debug)]
pub(crate) struct Tree {
    pub(crate) limits: TreeLimits,
    pub(crate) locks: PathLocks,
    pub(crate) grants: Grants,
    pub(crate) inbox: Option<Inbox>,
    /// The directory for contents that file tools replaced.
    pub(crate) replaced: Option<PathBuf>,
    pub(crate) seats: Arc<Semaphore>,
    ledger: Mutex<BudgetLedger>,
    /// Somebody used less than was set aside.
    settled: Notify,
    family: Mutex<Family>,
}

impl Tree {
    pub(crate) fn new(
        limits: TreeLimits,
        locks: PathLocks,
        grants: Grants,
        (inbox, replaced): (Option<Inbox>, Option<PathBuf>),
        mut family: Family,
    ) -> Self {
        let mut ledger = std::mem::take(&mut family.ledger);
        for (run, calls) in &family.calls {
            ledger.note_calls(run, *calls);
        }
        Self {
            locks,
            grants,
            inbox,
            replaced,
            seats: Arc::new(Semaphore::new(limits.max_parallel.clamp(1, Semaphore::MAX_PERMITS))),
            limits,
            ledger: Mutex::new(ledger),
            settled: Notify::new(),
            family: Mutex::new(family),
        }
    }

    /// Returns what is known of all agents, for whoever takes the tree up again: nobody works on anything.
    pub(crate) fn at_rest(&self, root: &Run) -> Family {
        let mut ledger = self.ledger().clone();
        let mut family = Family { claimed: HashSet::new(), ..self.family().clone() };
        // Those that are made again are counted then.
        let mut give_back = |run: &Run| {
            let calls = u32::try_from(run.calls_to_make()).unwrap_or(u32::MAX);
            ledger.give_back_calls(run.id(), calls);
        };
        give_back(root);
        family.runs.values().for_each(|state| give_back(&state.lock()));
        family.calls = ledger.calls().map(|(run, calls)| (run.clone(), calls)).collect();
        family.ledger = ledger.at_rest();
        family
    }

    /// Opens the account of a run, with what it and all runs below it may use.
    pub(crate) fn open_account(&self, run: &RunId, parent: Option<&RunId>, budget: &Budget) {
        let Budget { tokens, cost, tool_calls, .. } = *budget;
        let allowance = Allowance { tokens, cost, tool_calls };
        self.ledger().open(run, parent, allowance);
    }

    /// Lets an agent that goes on after its end make its calls of tools anew, as its run does.
    pub(crate) fn renew_calls(&self, run: &RunId) {
        self.ledger().renew_calls(run);
    }

    /// Keeps a share of what a run may use for itself: nobody below it gets that.
    pub(crate) fn keep_for(&self, run: &RunId, (tokens, cost): (u64, Money)) {
        self.ledger().keep(run, tokens, cost);
    }

    /// Sets aside what a use of a model takes; waits where others may give something back, and says so once.
    /// Dropping the wait is fine.
    pub(crate) async fn reserve(
        &self,
        run: &RunId,
        wish: &Wish,
        waits: impl FnOnce(),
    ) -> Result<SetAside<'_>, Shortage> {
        let mut waits = Some(waits);
        loop {
            let settled = self.settled.notified();
            tokio::pin!(settled);
            // Whoever settles between the question and the wait is heard.
            settled.as_mut().enable();
            {
                let mut ledger = self.ledger();
                match ledger.reserve(run, wish) {
                    Verdict::Granted(reservation) => {
                        return Ok(SetAside { tree: self, reservation: Some(reservation) });
                    }
                    Verdict::Refused { limit, of } => {
                        let why = ledger.shortage((run, &of), limit, wish);
                        return Err(Shortage { limit, of, why });
                    }
                    Verdict::Wait => {}
                }
            }
            if let Some(waits) = waits.take() {
                waits();
            }
            settled.await;
        }
    }

    /// Returns what stands in the way of a run further up, where its own limit is what those above left to it.
    pub(crate) fn shortage_above(
        &self,
        run: &RunId,
        limit: Limit,
        wish: &Wish,
    ) -> Option<Shortage> {
        let ledger = self.ledger();
        let of = ledger.short_above(run, limit, wish)?;
        let why = ledger.shortage((run, &of), limit, wish)?;
        Some(Shortage { limit, of, why: Some(why) })
    }

    /// Tells whether nobody from this run up is limited.
    pub(crate) fn is_free(&self, run: &RunId) -> bool {
        self.ledger().is_free(run)
    }

    /// Takes room for calls of tools: as many of these as there is room for, or whose limit leaves none.
    pub(crate) fn take_calls(&self, run: &RunId, wanted: usize) -> Result<usize, RunId> {
        let wanted = u32::try_from(wanted).unwrap_or(u32::MAX);
        self.ledger().take_calls(run, wanted).map(|granted| granted as usize)
    }

    /// Notes what a run itself used.
    pub(crate) fn charge(&self, run: &RunId, usage: Usage) {
        self.ledger().charge(run, usage);
    }

    /// Counts one more agent, if there may be one.
    pub(crate) fn bear(&self) -> bool {
        let mut family = self.family();
        let has_room = family.born < self.limits.max_agents;
        family.born += u32::from(has_room);
        has_room
    }

    /// Counts one more answer for a server, if there may be one.
    pub(crate) fn counsel(&self, child: &RunId) -> bool {
        let mut family = self.family();
        let has_room = family.counsels.len() < MAX_COUNSELS as usize;
        // One that could not be made ready left its id to the next.
        family.counsels.extend(has_room.then(|| child.clone()));
        has_room
    }

    /// Tells whether a run answers a server, and is no agent.
    pub(crate) fn is_counsel(&self, child: &RunId) -> bool {
        self.family().counsels.contains(child)
    }

    /// Returns what the definition of an agent let it do when it began, as it was recorded.
    pub(crate) fn rights(&self, child: &RunId) -> Option<Value> {
        self.family().rights.get(child).cloned()
    }

    /// Tells whether something about the file of an agent is still to be said, and takes it as said.
    pub(crate) fn is_first_of(&self, name: &str) -> bool {
        self.family().told_of.insert(name.to_owned())
    }

    /// Returns the agent that a call began or went on with.
    pub(crate) fn called(&self, run: &RunId, call: &CallId) -> Option<RunId> {
        self.family().by_call.get(&(run.clone(), call.clone())).cloned()
    }

    /// Notes which agent a call began or went on with.
    pub(crate) fn note_call(&self, run: &RunId, call: &CallId, child: &RunId) {
        self.family().by_call.insert((run.clone(), call.clone()), child.clone());
    }

    /// Tells whether an agent was to go on after its end, and had not when the process was lost.
    pub(crate) fn waits_for_more(&self, child: &RunId) -> bool {
        self.family().to_go_on.contains(child)
    }

    /// Returns what an agent was given that had not begun, or not gone on, when the process was lost.
    pub(crate) fn given(&self, child: &RunId) -> Map<String, Value> {
        self.family().given.get(child).cloned().unwrap_or_default()
    }

    /// Adds the files that the agents below a run touched. What one did in a workspace of its own stays there.
    pub(crate) fn ledgers_below(&self, run: &RunId, ledger: &mut Ledger) {
        let below = format!("{run}-");
        let runs: Vec<Arc<RunState>> = {
            let family = self.family();
            let runs = family.runs.iter().filter(|(id, _)| id.as_str().starts_with(&below));
            runs.map(|(_, state)| Arc::clone(state)).collect()
        };
        for state in runs {
            if state.changes().is_none()
                && let Some(task) = state.lock().task()
            {
                ledger.take_in(&task.ledger);
            }
        }
    }

    /// Returns what is known of an agent.
    pub(crate) fn run(&self, child: &RunId) -> Option<Arc<RunState>> {
        self.family().runs.get(child).cloned()
    }

    /// Keeps what is known of an agent, and what it may do, as its origin says it.
    pub(crate) fn keep(&self, child: &RunId, state: Arc<RunState>, origin: &Value) {
        let mut family = self.family();
        family.note_rights(child, origin);
        family.to_go_on.remove(child);
        family.runs.insert(child.clone(), state);
    }

    /// Forgets which agent a call began with: it is answered, and another may have its id.
    pub(crate) fn forget_call(&self, run: &RunId, call: &CallId) {
        self.family().by_call.remove(&(run.clone(), call.clone()));
    }

    /// Claims an agent, so that nobody else works on it; nothing, if somebody does.
    pub(crate) fn claim(self: &Arc<Self>, child: &RunId) -> Option<Claim> {
        let is_free = self.family().claimed.insert(child.clone());
        is_free.then(|| Claim { tree: Arc::clone(self), child: child.clone() })
    }

    /// Claims an agent that is new: one that nobody knows.
    pub(crate) fn claim_new(self: &Arc<Self>, child: &RunId) -> Option<Claim> {
        let mut family = self.family();
        let is_known = family.runs.contains_key(child) || family.given.contains_key(child);
        let is_free = !is_known && family.claimed.insert(child.clone());
        drop(family);
        is_free.then(|| Claim { tree: Arc::clone(self), child: child.clone() })
    }

    fn family(&self) -> MutexGuard<'_, Family> {
        self.family.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ledger(&self) -> MutexGuard<'_, BudgetLedger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Nothing can be set aside.
#[derive(Debug)]
pub(crate) struct Shortage {
    /// Which limit stands in the way.
    pub(crate) limit: Limit,
    /// Whose it is.
    pub(crate) of: RunId,
    /// What is left of it, and what would be needed, in words.
    pub(crate) why: Option<String>,
}

/// An agent that somebody works on, and nobody else may.
#[derive(Debug)]
pub(crate) struct Claim {
    tree: Arc<Tree>,
    child: RunId,
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.tree.family().claimed.remove(&self.child);
    }
}

/// Something set aside in the ledger. What was used is charged as it is recorded; dropping this gives
/// the rest back.
#[derive(Debug)]
pub(crate) struct SetAside<'a> {
    tree: &'a Tree,
    reservation: Option<Reservation>,
}

impl SetAside<'_> {
    /// Returns the longest answer that is paid for, where somebody is limited.
    pub(crate) fn max_output(&self) -> Option<u64> {
        self.reservation.as_ref().and_then(|reservation| reservation.max_output)
    }

    /// Returns how many tokens are set aside.
    pub(crate) fn tokens(&self) -> u64 {
        self.reservation.as_ref().map(Reservation::tokens).unwrap_or_default()
    }
}

impl Drop for SetAside<'_> {
    fn drop(&mut self) {
        if let Some(reservation) = self.reservation.take() {
            self.tree.ledger().settle(reservation, Usage::default());
            self.tree.settled.notify_waiters();
        }
    }
}
