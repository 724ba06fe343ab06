//! When a request is made again, and after how long.
//!
//! One attempt is a stream. As long as it has shown nothing, an error that may pass ends only the
//! attempt: the repeat is announced, waited for and made. As soon as a word was shown, every error is
//! final, since an answer must not begin twice.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt, stream};

use crate::error::ModelError;
use crate::model::{Chunk, ModelStream, Retry};

/// When and how often a request is repeated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RetryPolicy {
    /// How many attempts there are in all; 1 never repeats.
    pub max_attempts: u32,
    /// How long to wait before the first repeat.
    pub base: Duration,
    /// How much longer each further wait is.
    pub factor: u32,
    /// The longest wait we choose on our own.
    pub cap: Duration,
    /// By which share a wait is made shorter or longer by chance.
    pub jitter: f64,
    /// The longest wait a provider may ask for; if it asks for more, the request fails at once.
    pub max_wait: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            max_attempts: 5,
            base: Duration::from_millis(500),
            factor: 2,
            cap: Duration::from_secs(30),
            jitter: 0.25,
            max_wait: Duration::from_mins(1),
        }
    }
}

/// What follows from a failed attempt.
#[derive(Debug, PartialEq)]
enum Verdict {
    Again(Duration),
    GiveUp(ModelError),
}

impl RetryPolicy {
    /// Never repeats anything.
    pub const fn never() -> Self {
        Self {
            max_attempts: 1,
            base: Duration::ZERO,
            factor: 1,
            cap: Duration::ZERO,
            jitter: 0.0,
            max_wait: Duration::ZERO,
        }
    }

    fn judge(&self, mut error: ModelError, attempt: u32, chance: f64) -> Verdict {
        if !error.repeatable {
            return Verdict::GiveUp(error);
        }
        let asked = error.retry_after.unwrap_or_default();
        if error.stale && attempt == 1 && self.max_attempts > 1 {
            // Nobody has seen the request, and nobody is too busy for it.
            return Verdict::Again(Duration::ZERO);
        }
        if attempt >= self.max_attempts {
            if attempt > 1 {
                add(&mut error, &format!("gave up after {attempt} attempts"));
            }
            return Verdict::GiveUp(error);
        }
        if asked > self.max_wait {
            let (asked, allowed) = (seconds(asked), seconds(self.max_wait));
            add(&mut error, &format!("it asks to wait {asked}, longer than the {allowed} allowed"));
            return Verdict::GiveUp(error);
        }
        Verdict::Again(asked.max(self.own_wait(attempt, chance)))
    }

    /// Returns the wait after an attempt, where the provider asks for none.
    fn own_wait(&self, attempt: u32, chance: f64) -> Duration {
        let growth = self.factor.saturating_pow(attempt.saturating_sub(1));
        let wait = self.base.saturating_mul(growth).min(self.cap);
        wait.mul_f64((1.0 + self.jitter * (2.0 * chance - 1.0)).max(0.0))
    }
}

/// Adds something to what an error says, which may be a sentence of the provider's.
fn add(error: &mut ModelError, more: &str) {
    let said = error.message.trim_end_matches('.').len();
    error.message.truncate(said);
    error.message.push_str("; ");
    error.message.push_str(more);
}

/// Writes a duration for people.
pub(crate) fn seconds(duration: Duration) -> String {
    format!("{} s", (duration.as_secs_f64() * 10.0).round() / 10.0)
}

/// Where chance comes from: numbers from 0 up to, but not, 1.
#[derive(Clone)]
pub(crate) struct Chance(Arc<dyn Fn() -> f64 + Send + Sync>);

impl Chance {
    pub(crate) fn new(source: impl Fn() -> f64 + Send + Sync + 'static) -> Self {
        Self(Arc::new(source))
    }

    pub(crate) fn next(&self) -> f64 {
        (self.0)().clamp(0.0, 1.0)
    }
}

impl Default for Chance {
    fn default() -> Self {
        Self::new(fastrand::f64)
    }
}

impl fmt::Debug for Chance {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Chance")
    }
}

/// Makes attempts until one shows something or an error is final.
pub(crate) fn repeating(
    policy: RetryPolicy,
    chance: Chance,
    attempt: impl FnMut() -> ModelStream + Send + 'static,
) -> ModelStream {
    let repeating = Repeating { policy, chance, attempt, count: 0, phase: Phase::Waiting(None) };
    Box::pin(stream::unfold(repeating, |mut repeating| async {
        let item = repeating.next().await?;
        Some((item, repeating))
    }))
}

struct Repeating<A> {
    policy: RetryPolicy,
    chance: Chance,
    attempt: A,
    /// How many attempts were begun.
    count: u32,
    phase: Phase,
}

enum Phase {
    /// Before an attempt.
    Waiting(Option<Duration>),
    /// Nothing was shown yet.
    Trying(ModelStream),
    /// Something was shown.
    Showing(ModelStream),
    Over,
}

impl<A: FnMut() -> ModelStream> Repeating<A> {
    async fn next(&mut self) -> Option<Result<Chunk, ModelError>> {
        loop {
            match std::mem::replace(&mut self.phase, Phase::Over) {
                Phase::Over => return None,
                Phase::Waiting(delay) => {
                    if let Some(delay) = delay {
                        tokio::time::sleep(delay).await;
                    }
                    self.count += 1;
                    self.phase = Phase::Trying((self.attempt)());
                }
                Phase::Showing(mut stream) => {
                    let item = stream.next().await?;
                    if item.as_ref().is_ok_and(|chunk| !matches!(chunk, Chunk::End(_))) {
                        self.phase = Phase::Showing(stream);
                    }
                    return Some(item);
                }
                Phase::Trying(mut stream) => match stream.next().await? {
                    Ok(mut chunk) => {
                        if let Chunk::Retry(wait) = &mut chunk {
                            wait.attempt = self.count;
                        }
                        self.phase = match &chunk {
                            Chunk::End(_) => Phase::Over,
                            chunk if shows(chunk) => Phase::Showing(stream),
                            _ => Phase::Trying(stream),
                        };
                        return Some(Ok(chunk));
                    }
                    Err(error) => {
                        // The connection is closed before the wait begins.
                        drop(stream);
                        return Some(self.fail(error));
                    }
                },
            }
        }
    }

    fn fail(&mut self, error: ModelError) -> Result<Chunk, ModelError> {
        let reason = error.to_string();
        let (accepted, received_bytes) = (error.accepted, error.received_bytes);
        match self.policy.judge(error, self.count, self.chance.next()) {
            Verdict::GiveUp(error) => Err(error),
            Verdict::Again(delay) => {
                self.phase = Phase::Waiting(Some(delay));
                let attempt = self.count + 1;
                Ok(Chunk::Retry(Retry { attempt, delay, reason, accepted, received_bytes }))
            }
        }
    }
}

/// Tells whether a chunk is part of an answer that must not begin twice. That a call was begun is only
/// news: most answers of an agent are calls and nothing else, and one that is cut in the middle of its
/// arguments has done nothing yet.
fn shows(chunk: &Chunk) -> bool {
    match chunk {
        Chunk::Text(text) | Chunk::Thought(text) => !text.is_empty(),
        Chunk::Retry(_) | Chunk::ToolCall { .. } => false,
        Chunk::End(_) => true,
    }
}

#[cfg(test)]
mod tests;
