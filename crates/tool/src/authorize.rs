//! Who may do what: the question the pipeline asks before every call, and the smallest answer.
//!
//! Whatever an [`Authorizer`] says, a call whose paths lie outside the allowed roots is refused before
//! it is asked: authority can be narrowed here, never widened.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::path::PathBuf;
use std::sync::Arc;

use convoke_core::policy::{Forbidden, RuleSpec};
use convoke_core::{AgentPath, Effects, Kind, Permission, ToolCall, ToolSpec};

use crate::context::ToolContext;

/// A call that wants to run.
#[derive(Debug)]
#[non_exhaustive]
pub struct Request<'a> {
    /// The call.
    pub call: &'a ToolCall,
    /// What its tool says about itself.
    pub spec: &'a ToolSpec,
    /// What it would touch.
    pub effects: &'a Effects,
    /// What it would do, in words.
    pub description: &'a str,
    /// Which agent makes it.
    pub agent: &'a AgentPath,
    /// Where those of its paths really lead that go through links: a rule on a file holds for its other
    /// names too.
    pub linked: &'a [PathBuf],
    /// What people allowed for the rest of the run.
    pub granted: &'a [RuleSpec],
    /// For whom, and where.
    pub context: &'a ToolContext,
}

impl Request<'_> {
    /// Returns the same request as if another agent made it.
    #[must_use]
    pub const fn of<'a>(&'a self, agent: &'a AgentPath) -> Request<'a> {
        Request { agent, ..*self }
    }
}

/// The answer to a [`Request`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It may run.
    Allow {
        /// The rule that says so.
        rule: String,
    },
    /// Somebody has to be asked.
    Ask {
        /// The rule that says so.
        rule: String,
        /// Why.
        reason: String,
        /// The rules that would allow it from now on; none, if no rule could.
        proposal: Vec<RuleSpec>,
    },
    /// It may not run.
    Deny {
        /// The rule that says so.
        rule: String,
        /// Why, in words the model can act on.
        reason: String,
    },
}

impl Decision {
    /// Returns `allow`, `ask` or `deny`.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Allow { .. } => "allow",
            Self::Ask { .. } => "ask",
            Self::Deny { .. } => "deny",
        }
    }

    const fn strictness(&self) -> u8 {
        match self {
            Self::Allow { .. } => 0,
            Self::Ask { .. } => 1,
            Self::Deny { .. } => 2,
        }
    }

    /// Returns the rule that decided.
    pub fn rule(&self) -> &str {
        match self {
            Self::Allow { rule } | Self::Ask { rule, .. } | Self::Deny { rule, .. } => rule,
        }
    }
}

/// Decides whether a call may run. Pure: the same request gets the same answer.
pub trait Authorizer: Send + Sync + Debug {
    /// Decides.
    fn decide(&self, request: &Request<'_>) -> Decision;

    /// Says what a call that may run must not see of what it finds itself: nothing, where nobody says
    /// otherwise. Tools ask with [`ToolContext::forbids`].
    fn forbidden(&self, request: &Request<'_>) -> Forbidden {
        let _ = request;
        Forbidden::default()
    }
}

impl<T: Authorizer + ?Sized> Authorizer for Arc<T> {
    fn decide(&self, request: &Request<'_>) -> Decision {
        (**self).decide(request)
    }

    fn forbidden(&self, request: &Request<'_>) -> Forbidden {
        (**self).forbidden(request)
    }
}

/// Decides for an agent that somebody called: what its caller may do, and what its own policy allows, the
/// stricter of both.
#[derive(Debug)]
pub(crate) struct Narrowed {
    pub(crate) caller: Arc<dyn Authorizer>,
    pub(crate) own: Arc<dyn Authorizer>,
}

impl Authorizer for Narrowed {
    fn decide(&self, request: &Request<'_>) -> Decision {
        let (caller, own) = (self.caller.decide(request), self.own.decide(request));
        if own.strictness() > caller.strictness() { own } else { caller }
    }

    fn forbidden(&self, request: &Request<'_>) -> Forbidden {
        self.caller.forbidden(request).and(self.own.forbidden(request))
    }
}

/// Decides by the kind of a tool alone.
///
/// By default, what only looks may run, what changes something or leaves the machine is asked about,
/// and programs do not run.
#[derive(Clone, Debug)]
pub struct KindAuthorizer(BTreeMap<Kind, Permission>);

impl KindAuthorizer {
    /// Uses these permissions; a kind that is not named is denied.
    pub fn new(permissions: impl IntoIterator<Item = (Kind, Permission)>) -> Self {
        Self(permissions.into_iter().collect())
    }

    /// Sets the permission of one kind.
    #[must_use]
    pub fn with(mut self, kind: Kind, permission: Permission) -> Self {
        self.0.insert(kind, permission);
        self
    }

    /// Returns the permission of a kind.
    pub fn permission(&self, kind: Kind) -> Permission {
        self.0.get(&kind).copied().unwrap_or(Permission::Deny)
    }
}

impl Default for KindAuthorizer {
    fn default() -> Self {
        Self::new(Kind::ALL.iter().map(|kind| (*kind, Permission::default_for(*kind))))
    }
}

impl Authorizer for KindAuthorizer {
    fn decide(&self, request: &Request<'_>) -> Decision {
        let kind = request.spec.kind;
        let permission = self.permission(kind);
        let rule = format!("kind {kind}");
        match permission {
            Permission::Allow => Decision::Allow { rule },
            Permission::Ask => Decision::Ask {
                rule,
                reason: format!("tools of kind `{kind}` need a person's consent"),
                proposal: Vec::new(),
            },
            Permission::Deny => Decision::Deny {
                rule,
                reason: format!("tools of kind `{kind}` are not allowed here"),
            },
        }
    }
}
