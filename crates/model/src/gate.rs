//! One rate limiter for each key at each address, shared by everything in the process that uses it.
//!
//! While a provider is content, the gate costs two atomic loads. Once the provider has asked to be left
//! alone (429), everybody waits until the time it named has passed, and then goes through a **door** that
//! lets one request through at a time; the first that succeeds opens the gate for all. So many agents that
//! share a key make one request to find out whether the provider is content again, not one each.
//!
//! A request may wait in vain, but a request that is dropped while it waits leaves nothing behind: neither
//! the door, nor a place among those under way, nor one of the requests of a minute.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep_until};

use crate::retry::Chance;

/// How long everybody waits when a provider does not say how long.
const UNSAID_WAIT: Duration = Duration::from_secs(1);
/// The most that chance adds to a wait.
const SPREAD: Duration = Duration::from_millis(250);
const MINUTE: Duration = Duration::from_mins(1);

/// How much may be asked of a provider with one key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// How many requests may be under way at the same time.
    pub max_concurrent: Option<NonZeroU32>,
    /// How many requests may be made in any minute.
    pub requests_per_minute: Option<NonZeroU32>,
}

/// The gates of a process.
#[derive(Default)]
pub(crate) struct Gates {
    chance: Chance,
    known: Mutex<HashMap<GateKey, Weak<Gate>>>,
}

/// An address and a key.
type GateKey = (String, Option<String>);

/// The keys are secret, so only their number is shown.
impl fmt::Debug for Gates {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = lock(&self.known).len();
        formatter.debug_struct("Gates").field("known", &known).finish_non_exhaustive()
    }
}

impl Gates {
    pub(crate) fn new(chance: Chance) -> Self {
        Self { chance, known: Mutex::default() }
    }

    /// Returns the gate of an address and a key. The limits are those of whoever asks first.
    pub(crate) fn gate(&self, base_url: &str, key: Option<&str>, limits: Limits) -> Arc<Gate> {
        let mut known = lock(&self.known);
        let id = (base_url.to_owned(), key.map(str::to_owned));
        if let Some(gate) = known.get(&id).and_then(Weak::upgrade) {
            return gate;
        }
        known.retain(|_, gate| gate.strong_count() > 0);
        let gate = Arc::new(Gate::new(limits, self.chance.clone()));
        known.insert(id, Arc::downgrade(&gate));
        gate
    }
}

/// The rate limiter of one key.
#[derive(Debug)]
pub(crate) struct Gate {
    /// Even while the gate is open, odd while only the door is; grows with each change. Written only
    /// under the lock of `not_before`.
    epoch: AtomicU64,
    /// Until when the provider wants to be left alone.
    not_before: Mutex<Instant>,
    door: Arc<Semaphore>,
    places: Option<Arc<Semaphore>>,
    minute: Option<Mutex<LastMinute>>,
    /// Whether the provider has ever answered, so that connections to it may be open.
    answered: AtomicBool,
    chance: Chance,
}

/// A provider wants to be left alone for longer than anybody here would wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ClosedFor(pub(crate) Duration);

/// The right to make one request; given back when dropped.
#[derive(Debug)]
pub(crate) struct Pass {
    gate: Arc<Gate>,
    epoch: u64,
    door: Option<OwnedSemaphorePermit>,
    _place: Option<OwnedSemaphorePermit>,
}

impl Gate {
    fn new(limits: Limits, chance: Chance) -> Self {
        Self {
            epoch: AtomicU64::new(0),
            not_before: Mutex::new(Instant::now()),
            door: Arc::new(Semaphore::new(1)),
            places: limits.max_concurrent.map(|count| {
                Arc::new(Semaphore::new(usize::try_from(count.get()).unwrap_or(usize::MAX >> 4)))
            }),
            minute: limits.requests_per_minute.map(|count| Mutex::new(LastMinute::new(count))),
            answered: AtomicBool::new(false),
            chance,
        }
    }

    /// Tells whether a request may travel on a connection that was kept from an earlier one.
    pub(crate) fn may_reuse(&self) -> bool {
        self.answered.load(Ordering::Relaxed)
    }

    /// Returns how long the provider still wants to be left alone; nothing, where it does not.
    pub(crate) fn closed_now(&self) -> Option<Duration> {
        let until = *lock(&self.not_before);
        (!self.is_open()).then(|| until.saturating_duration_since(Instant::now()))
    }

    /// Waits until a request may be made; not at all if the provider wants to be left alone for longer
    /// than `longest`.
    ///
    /// Nothing is taken that others could use before the request can be made: neither a place nor a turn
    /// of the minute is held through a wait.
    pub(crate) async fn enter(self: &Arc<Self>, longest: Duration) -> Result<Pass, ClosedFor> {
        let mut door = None;
        loop {
            if door.is_none() && !self.is_open() {
                door = self.wait_at_door(longest).await?;
            }
            let place = match &self.places {
                // A semaphore that is never closed always gives a permit.
                Some(places) => places.clone().acquire_owned().await.ok(),
                None => None,
            };
            let epoch = self.epoch.load(Ordering::Acquire);
            if door.is_none() && !is_open(epoch) {
                // It was closed while we waited for a place.
                continue;
            }
            let Err(turn) = self.take_turn() else {
                return Ok(Pass { gate: self.clone(), epoch, door, _place: place });
            };
            drop(place);
            sleep_until(turn).await;
        }
    }

    fn is_open(&self) -> bool {
        is_open(self.epoch.load(Ordering::Acquire))
    }

    /// Takes a turn of this minute, or returns when to look for one again.
    fn take_turn(&self) -> Result<(), Instant> {
        self.minute.as_ref().map_or(Ok(()), |minute| lock(minute).take(Instant::now()))
    }

    /// Returns the door, or nothing if the gate was opened in the meantime.
    async fn wait_at_door(
        &self,
        longest: Duration,
    ) -> Result<Option<OwnedSemaphorePermit>, ClosedFor> {
        self.closed_for(longest)?;
        let door = self.door.clone().acquire_owned().await.ok();
        loop {
            if self.is_open() {
                return Ok(None);
            }
            let until = self.closed_for(longest)?;
            if until <= Instant::now() {
                return Ok(door);
            }
            sleep_until(until + SPREAD.mul_f64(self.chance.next())).await;
        }
    }

    fn closed_for(&self, longest: Duration) -> Result<Instant, ClosedFor> {
        let until = *lock(&self.not_before);
        let wait = until.saturating_duration_since(Instant::now());
        if wait > longest { Err(ClosedFor(wait)) } else { Ok(until) }
    }
}

impl Pass {
    /// Tells the gate that the provider took the request.
    pub(crate) fn accepted(&mut self) {
        self.gate.answered.store(true, Ordering::Relaxed);
        if self.door.is_none() {
            return;
        }
        let guard = lock(&self.gate.not_before);
        // Only whoever has the door opens the gate, and only this holder has it. What the provider says
        // of this request from now on is said about the gate it opened.
        self.epoch = self.gate.epoch.fetch_add(1, Ordering::AcqRel) + 1;
        drop(guard);
        self.door = None;
    }

    /// Tells the gate that the provider wants to be left alone.
    pub(crate) fn refused(&mut self, retry_after: Option<Duration>) {
        let until = Instant::now() + retry_after.unwrap_or(UNSAID_WAIT);
        let mut not_before = lock(&self.gate.not_before);
        let epoch = self.gate.epoch.load(Ordering::Acquire);
        if !is_open(epoch) {
            *not_before = until.max(*not_before);
        } else if epoch == self.epoch {
            *not_before = until;
            self.gate.epoch.fetch_add(1, Ordering::AcqRel);
        }
        // Otherwise a later request has succeeded since, and this refusal is old news.
        drop(not_before);
        self.door = None;
    }
}

const fn is_open(epoch: u64) -> bool {
    epoch.is_multiple_of(2)
}

/// When the last requests were made.
#[derive(Debug)]
struct LastMinute {
    count: usize,
    turns: VecDeque<Instant>,
}

impl LastMinute {
    fn new(count: NonZeroU32) -> Self {
        Self { count: usize::try_from(count.get()).unwrap_or(usize::MAX), turns: VecDeque::new() }
    }

    /// Takes a turn if there is one, or returns when there will be.
    fn take(&mut self, now: Instant) -> Result<(), Instant> {
        if self.turns.len() >= self.count
            && let Some(earliest) = self.turns.front()
        {
            let next = *earliest + MINUTE;
            if next > now {
                return Err(next);
            }
            self.turns.pop_front();
        }
        self.turns.push_back(now);
        Ok(())
    }
}

/// Nothing here can be left half done by a panic, so a poisoned lock is as good as any.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
