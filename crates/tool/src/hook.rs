//! Others who have a say: before and after a tool, before the model is asked, when a person is, at the end.
//!
//! A hook that **guards** decides: it may refuse what is about to happen, want a person to be asked about a
//! call, or change the arguments of one, which then is checked and decided about like any other; what it has
//! changed it has to leave so when it is asked again. If it fails or takes too long, the answer is no. A hook that **watches** is told, and whatever becomes of it changes nothing; that it failed is
//! said. What a hook did is part of the stream.

use std::fmt::Debug;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use convoke_core::hook::Moment;
use convoke_core::{CallId, Event, EventBody};
use serde_json::Value;

use crate::executor::for_event;
use crate::record::Recorder;
use crate::task::Contained;
use crate::truncate::cut_middle;

/// How much of what a hook says is told.
const MAX_TEXT_BYTES: usize = 4 * 1024;
/// How much of the arguments it leaves an event carries.
const MAX_ARGUMENT_BYTES: usize = 64 * 1024;

/// Somebody who has a say.
#[async_trait]
pub trait Hook: Send + Sync + Debug {
    /// Returns its name, for people.
    fn name(&self) -> &str;

    /// Tells whether it wants to be called.
    fn wants(&self, moment: Moment, event: &Event) -> bool;

    /// Tells whether it decides, where something can still be decided.
    fn guards(&self) -> bool;

    /// Returns how long it may take.
    fn timeout(&self) -> Duration {
        Duration::from_secs(10)
    }

    /// Is told, and says what it thinks of it. The error is for people and for the model.
    async fn call(&self, moment: Moment, event: &Event) -> Result<Verdict, String>;
}

/// What a hook thinks of what is about to happen.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Verdict {
    /// It may go on.
    #[default]
    Go,
    /// It may not.
    Deny {
        /// Why, in words the model can act on.
        reason: String,
    },
    /// A person has to be asked, as if the policy had said so. No rule that is granted answers in the
    /// person's place, and what nobody can be asked about does not happen.
    Ask {
        /// Why, for that person.
        reason: String,
    },
    /// It may, with these arguments. Only calls of tools have arguments.
    Change {
        /// The arguments.
        arguments: Value,
    },
}

/// A function that has a say.
///
/// ```
/// use convoke_core::hook::Moment;
/// use convoke_tool::{FunctionHook, Hooks, Verdict};
///
/// let careful = FunctionHook::new("careful", [Moment::BeforeTool], |_, event| async move {
///     match Moment::tool(&event.body) {
///         Some("run_command") => Ok(Verdict::Deny { reason: "not today".to_owned() }),
///         _ => Ok(Verdict::Go),
///     }
/// });
/// let hooks = Hooks::default().and(careful.guarding());
/// # assert!(!hooks.is_empty());
/// ```
pub struct FunctionHook<F> {
    name: String,
    moments: Vec<Moment>,
    guards: bool,
    timeout: Duration,
    function: F,
}

impl<F, A> FunctionHook<F>
where
    F: Fn(Moment, Event) -> A + Send + Sync,
    A: Future<Output = Result<Verdict, String>> + Send,
{
    /// Makes a hook that watches these moments.
    pub fn new(
        name: impl Into<String>,
        moments: impl IntoIterator<Item = Moment>,
        function: F,
    ) -> Self {
        Self {
            name: name.into(),
            moments: moments.into_iter().collect(),
            guards: false,
            timeout: Duration::from_secs(10),
            function,
        }
    }

    /// Lets it decide, and nothing happens if it fails.
    #[must_use]
    pub const fn guarding(mut self) -> Self {
        self.guards = true;
        self
    }

    /// Gives it this long.
    #[must_use]
    pub const fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }
}

impl<F> Debug for FunctionHook<F> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("FunctionHook").field("name", &self.name).finish_non_exhaustive()
    }
}

#[async_trait]
impl<F, A> Hook for FunctionHook<F>
where
    F: Fn(Moment, Event) -> A + Send + Sync,
    A: Future<Output = Result<Verdict, String>> + Send,
{
    fn name(&self) -> &str {
        &self.name
    }

    fn wants(&self, moment: Moment, _: &Event) -> bool {
        self.moments.contains(&moment)
    }

    fn guards(&self) -> bool {
        self.guards
    }

    fn timeout(&self) -> Duration {
        self.timeout
    }

    async fn call(&self, moment: Moment, event: &Event) -> Result<Verdict, String> {
        (self.function)(moment, event.clone()).await
    }
}

/// All who have a say. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Hooks(Arc<[Arc<dyn Hook>]>);

impl Default for Hooks {
    fn default() -> Self {
        Self(Arc::from([]))
    }
}

/// What the hooks made of what may go on.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Said {
    /// The arguments the call has now, if they are others.
    pub(crate) changed: Option<Value>,
    /// Why a person has to be asked, if one has to.
    pub(crate) asks: Option<String>,
}

/// What one hook made of it.
#[derive(Debug, PartialEq)]
enum One {
    Go,
    Asks(String),
    Changed(Value),
    Denied(String),
}

impl Hooks {
    /// These, asked in this order.
    pub fn new(hooks: impl IntoIterator<Item = Arc<dyn Hook>>) -> Self {
        Self(hooks.into_iter().collect())
    }

    /// Adds one that is asked after all others.
    #[must_use]
    pub fn and(self, hook: impl Hook + 'static) -> Self {
        Self(self.0.iter().cloned().chain([Arc::new(hook) as Arc<dyn Hook>]).collect())
    }

    /// Adds others that are asked after these.
    #[must_use]
    pub fn and_all(self, others: &Self) -> Self {
        Self(self.0.iter().chain(others.0.iter()).cloned().collect())
    }

    /// Tells whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Tells everybody, and returns why it must not happen, if it must not. For moments without arguments.
    pub async fn tell(
        &self,
        moment: Moment,
        call: Option<&CallId>,
        body: &EventBody,
        recorder: &Recorder,
    ) -> Result<(), String> {
        self.ask(moment, call, body, recorder).await.map(drop)
    }

    /// Asks one after the other; each sees the arguments as the one before left them. Where they were
    /// changed, all who guard are asked once more about what came of it, and have to leave it so: nobody's
    /// refusal, and nobody's wish that a person is asked, can be got around by whoever comes after. The error
    /// says why it does not happen.
    pub(crate) async fn ask(
        &self,
        moment: Moment,
        call: Option<&CallId>,
        body: &EventBody,
        recorder: &Recorder,
    ) -> Result<Said, String> {
        if self.is_empty() {
            return Ok(Said::default());
        }
        // Most runs have none: what asking takes is not part of every call.
        Box::pin(self.ask_each(About { moment, call, recorder }, body)).await
    }

    async fn ask_each(&self, about: About<'_>, body: &EventBody) -> Result<Said, String> {
        let About { call, recorder, .. } = about;
        let mut event = recorder.preview(call, body.clone());
        let (mut changed, mut reasons) = (None, Vec::new());
        for hook in self.0.iter() {
            match about.asked(hook, &event, false).await {
                One::Go => {}
                One::Asks(reason) => reasons.push(reason),
                One::Changed(arguments) => {
                    if let EventBody::ToolCallRequested { params, .. } = &mut event.body {
                        *params = Arc::new(arguments.clone());
                    }
                    changed = Some(arguments);
                }
                One::Denied(reason) => return Err(reason),
            }
        }
        if let Some(changed) = &changed {
            // What was asked about before is not what would run.
            reasons.clear();
            for hook in self.0.iter() {
                match about.asked(hook, &event, true).await {
                    One::Changed(arguments) if arguments != *changed => {
                        return Err("hooks do not agree about its arguments".to_owned());
                    }
                    One::Go | One::Changed(_) => {}
                    One::Asks(reason) => reasons.push(reason),
                    One::Denied(reason) => return Err(reason),
                }
            }
        }
        let asks = (!reasons.is_empty()).then(|| reasons.join("; "));
        Ok(Said { changed, asks })
    }
}

/// What hooks are asked about.
struct About<'a> {
    moment: Moment,
    call: Option<&'a CallId>,
    recorder: &'a Recorder,
}

/// What a hook says about itself.
struct Known {
    name: String,
    wanted: bool,
    guards: bool,
    timeout: Duration,
}

impl About<'_> {
    /// Asks one hook, and records what it did. When asking again, only who guards is asked.
    async fn asked(&self, hook: &Arc<dyn Hook>, event: &Event, again: bool) -> One {
        let known = catch_unwind(AssertUnwindSafe(|| Known {
            name: cut(hook.name()),
            wanted: hook.wants(self.moment, event),
            guards: hook.guards() && self.moment.can_be_guarded(),
            timeout: hook.timeout(),
        }));
        let Ok(Known { name, wanted, guards, timeout }) = known else {
            // Nobody knows whether it guards.
            self.record("a hook", "failed", Some("it broke down"), None);
            let stops = self.moment.can_be_guarded();
            return if stops { One::Denied("a hook broke down".to_owned()) } else { One::Go };
        };
        if !wanted || (again && !guards) {
            return One::Go;
        }
        let is_call = self.moment == Moment::BeforeTool;
        match (heard(hook, self.moment, event, timeout).await, guards) {
            (Ok(Verdict::Go), _) => One::Go,
            // A person is asked already.
            (Ok(Verdict::Ask { .. }), true) if self.moment == Moment::Approval => One::Go,
            (Ok(Verdict::Ask { reason }), true) => {
                let reason = cut(&reason);
                self.record(&name, "asked", Some(&reason), None);
                if is_call {
                    One::Asks(format!("the hook `{name}` asks: {reason}"))
                } else {
                    One::Denied(format!(
                        "the hook `{name}` wants a person to be asked, which is not possible here: {reason}"
                    ))
                }
            }
            (Ok(Verdict::Change { arguments }), true) if is_call => {
                if !again {
                    self.record(&name, "changed", None, Some(&arguments));
                }
                One::Changed(arguments)
            }
            (Ok(Verdict::Deny { reason }), true) => {
                let reason = cut(&reason);
                self.record(&name, "denied", Some(&reason), None);
                One::Denied(format!("the hook `{name}` refused it: {reason}"))
            }
            // That somebody forgot to let it guard has to be seen.
            (Ok(Verdict::Deny { .. } | Verdict::Ask { .. } | Verdict::Change { .. }), _) => {
                self.record(&name, "ignored", Some("it only watches here"), None);
                One::Go
            }
            (Err(problem), guards) => {
                let problem = cut(&problem);
                self.record(&name, "failed", Some(&problem), None);
                if guards {
                    One::Denied(format!("the hook `{name}` that guards it failed: {problem}"))
                } else {
                    One::Go
                }
            }
        }
    }

    /// What cannot be recorded closes the stream, which the next event reports.
    fn record(&self, hook: &str, action: &str, message: Option<&str>, arguments: Option<&Value>) {
        let acted = EventBody::HookActed {
            hook: hook.to_owned(),
            moment: self.moment,
            action: action.to_owned(),
            message: message.map(str::to_owned),
            arguments: arguments.map(|arguments| for_event(arguments, MAX_ARGUMENT_BYTES)),
        };
        drop(self.recorder.record(self.call, acted));
    }
}

fn cut(text: &str) -> String {
    cut_middle(text, MAX_TEXT_BYTES).unwrap_or_else(|| text.to_owned())
}

/// Calls a hook so that its failure stays its own.
async fn heard(
    hook: &Arc<dyn Hook>,
    moment: Moment,
    event: &Event,
    timeout: Duration,
) -> Result<Verdict, String> {
    let (hook, event) = (Arc::clone(hook), event.clone());
    let asked = Contained::spawn(async move { hook.call(moment, &event).await });
    match tokio::time::timeout(timeout, asked).await {
        Ok(Ok(verdict)) => verdict,
        Ok(Err(_)) => Err("it broke down".to_owned()),
        Err(_) => Err(format!("it took longer than {} ms", timeout.as_millis())),
    }
}
