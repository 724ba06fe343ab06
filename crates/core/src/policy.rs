//! Policy: whether a call may be made, and which rule says so. Pure: the same facts get the same answer.
//!
//! A [`Policy`] has a table by kind of call, which the [mode](Mode) reads, and rules in layers. For a
//! call, each thing it would do is judged on its own, and the strictest judgement counts:
//!
//! 1. a rule that denies, in any layer, denies; so does a kind that is denied;
//! 2. a rule that asks, or a rule that denies and perhaps holds, asks;
//! 3. a command that cannot be read asks;
//! 4. a rule of the user that allows, allows;
//! 5. else the table decides.
//!
//! Nothing here depends on the order of rules or layers, and there is no rule by which adding a
//! denial could allow more. A project's rules that allow are not looked at: its layer can only narrow.
//! Commands are judged by what they would run (`shell`), never as text.
//!
//! An [`Authority`] is a chain of policies, one for each agent on the way down: a child may do what
//! all of them allow.

mod arguments;
mod authority;
mod descent;
mod doubt;
mod facts;
mod forbidden;
mod index;
mod mention;
mod pattern;
mod propose;
mod rule;
mod runs_later;
mod shell;
mod touch;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::OnceLock;

use serde::Serialize;

pub use self::pattern::wildcard;
pub use authority::Authority;
pub use doubt::KnownTools;
pub use facts::{Facts, World};
pub use forbidden::Forbidden;
pub use rule::{Rule, RuleError, RuleSpec};
pub use runs_later::{RunsLater, decides_what_runs_later, runs_later};

use crate::permission::{Mode, Permission};
use crate::spec::Kind;
use facts::{Base, Part};
use index::Index;
use pattern::Holds;

/// Who wrote a layer of rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// The user: these rules can allow.
    User,
    /// The project that is worked on: these rules can only narrow.
    Project,
    /// Somebody who was asked, for the rest of a run: these rules can allow.
    Granted,
    /// An agent that others call: these rules can allow what everybody above it may do.
    Agent,
}

impl fmt::Display for Scope {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::User => "user",
            Self::Project => "project",
            Self::Granted => "granted",
            Self::Agent => "agent",
        })
    }
}

/// Rules that were written together.
#[derive(Clone, Debug)]
pub struct Layer {
    scope: Scope,
    rules: Vec<Rule>,
}

impl Layer {
    /// Makes a layer of rules.
    pub const fn new(scope: Scope, rules: Vec<Rule>) -> Self {
        Self { scope, rules }
    }

    /// Returns who wrote it.
    pub const fn scope(&self) -> Scope {
        self.scope
    }

    /// Returns its rules.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }
}

/// What may happen: a table by kind, the mode that reads it, and rules.
#[derive(Clone, Debug)]
pub struct Policy {
    mode: Mode,
    kinds: BTreeMap<Kind, Permission>,
    layers: Vec<Layer>,
    /// Made with the first decision.
    index: OnceLock<Index>,
}

/// A rule with who wrote it, and which of that layer's rules it is.
type Written<'a> = (Scope, usize, &'a Rule);

/// What a policy says about a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Decision {
    /// Whether it may be made.
    pub permission: Permission,
    /// Who says so.
    pub source: Source,
    /// Why, for people and models.
    pub reason: String,
    /// What of the call it is about, where the call does several things.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
}

/// What decided.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// The table by kind.
    Kind(Kind),
    /// The table by kind, as a mode changes it.
    Mode {
        /// Which kind.
        kind: Kind,
        /// In which mode; the table alone says something else.
        mode: Mode,
    },
    /// That a command could not be read: nothing allows such a one without a question.
    Unread,
    /// A rule.
    Rule {
        /// Who wrote it.
        layer: Scope,
        /// Which of the layer's rules it is, from 0.
        index: usize,
        /// Where it is written, if somewhere.
        #[serde(skip_serializing_if = "Option::is_none")]
        place: Option<String>,
    },
}

impl fmt::Display for Source {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kind(kind) => write!(formatter, "kind {kind}"),
            Self::Mode { kind, mode } => write!(formatter, "kind {kind} in mode {mode}"),
            Self::Unread => formatter.write_str("a command that cannot be read"),
            Self::Rule { layer, index, place } => {
                write!(formatter, "{layer} rule {}", index + 1)?;
                place.iter().try_for_each(|place| write!(formatter, " ({place})"))
            }
        }
    }
}

impl Policy {
    /// A policy with the built-in table and no rules.
    pub fn new(mode: Mode) -> Self {
        Self { mode, kinds: BTreeMap::new(), layers: Vec::new(), index: OnceLock::new() }
    }

    /// Sets what kinds of calls get; one that is not named keeps what is built in.
    #[must_use]
    pub fn kinds(mut self, kinds: impl IntoIterator<Item = (Kind, Permission)>) -> Self {
        self.kinds.extend(kinds);
        self
    }

    /// Adds a layer of rules.
    #[must_use]
    pub fn layer(mut self, layer: Layer) -> Self {
        self.layers.push(layer);
        self.index = OnceLock::new();
        self
    }

    /// Returns its layers.
    pub fn layers(&self) -> &[Layer] {
        &self.layers
    }

    /// Returns what a kind of call gets where no rule says anything.
    pub fn kind(&self, kind: Kind) -> Permission {
        let configured = self.kinds.get(&kind).copied();
        self.mode.permission(kind, configured.unwrap_or(Permission::default_for(kind)))
    }

    /// Returns what every call of a kind gets when this agent makes it: by the table, and by the rules that hold
    /// for all of them. Rules on some calls only are not looked at.
    pub fn whole_kind(&self, kind: Kind, agent: &str) -> Permission {
        let rules = self.places().map(|(_, _, rule)| rule);
        let effects = rules.filter(|rule| rule.covers_kind(kind, agent)).map(Rule::effect);
        match (self.kind(kind), effects.max()) {
            (Permission::Deny, _) => Permission::Deny,
            (by_table, by_rules) => by_rules.unwrap_or(by_table),
        }
    }

    /// Decides about a call.
    pub fn decide(&self, facts: &Facts<'_>) -> Decision {
        self.strictest(facts, |part| self.decide_part(facts, part))
    }

    /// Decides about one thing that a call would do, by the rules that may concern it.
    fn decide_part(&self, facts: &Facts<'_>, part: &Part) -> Option<Decision> {
        let index = self.index.get_or_init(|| Index::new(self.places()));
        let candidates = index.candidates(facts, part).filter_map(|(layer, at)| {
            let layer = self.layers.get(layer)?;
            Some((layer.scope, at, layer.rules.get(at)?))
        });
        self.judge(facts, part, candidates)
    }

    /// Decides without the index.
    #[cfg(test)]
    fn decide_by_all_rules(&self, facts: &Facts<'_>) -> Decision {
        let all = || {
            let scope = |layer: usize| self.layers.get(layer).map_or(Scope::User, Layer::scope);
            self.places().map(move |(layer, at, rule)| (scope(layer), at, rule))
        };
        self.strictest(facts, |part| self.judge(facts, part, all()))
    }

    fn strictest(&self, facts: &Facts<'_>, judge: impl Fn(&Part) -> Option<Decision>) -> Decision {
        let parts = facts.parts();
        let several = parts.iter().filter(|part| part.base.decides()).count() > 1;
        let judged = parts.iter().filter_map(|part| {
            let subject = || several.then(|| part.subject(facts));
            judge(part).map(|decision| Decision { subject: subject(), ..decision })
        });
        let strictest = judged.reduce(stricter);
        strictest.unwrap_or_else(|| self.by_kind(facts.kind, self.kind(facts.kind)))
    }

    /// Decides about one thing that a call would do; nothing if there is nothing to say.
    fn judge<'a>(
        &self,
        facts: &Facts<'_>,
        part: &Part,
        rules: impl Iterator<Item = Written<'a>>,
    ) -> Option<Decision> {
        let mut decision = self.judge_known(facts, part, rules)?;
        if part.unread && decision.permission == Permission::Allow {
            decision.permission = Permission::Ask;
            decision.source = Source::Unread;
            decision.reason = part.opaque.clone().unwrap_or_default();
        }
        Some(decision)
    }

    fn judge_known<'a>(
        &self,
        facts: &Facts<'_>,
        part: &Part,
        rules: impl Iterator<Item = Written<'a>>,
    ) -> Option<Decision> {
        let base = self.base(part);
        let (mut denies, mut asks, mut allows, mut hidden) = (None, None, None, None);
        let mut is_spelled = false;
        for (layer, index, rule) in rules {
            // An unlisted option may do the very thing that a rule forbids.
            if part.hides() && rule.effect() != Permission::Allow && rule.looks_inside(facts, part)
            {
                hidden = hidden.or(Some((layer, index, rule, Holds::Perhaps)));
            }
            match (rule.effect(), rule.holds(facts, part)) {
                (_, Holds::No) | (Permission::Allow, Holds::Below | Holds::Perhaps) => {}
                (Permission::Deny, Holds::Yes) => {
                    denies = denies.or(Some((layer, index, rule, Holds::Yes)));
                }
                (Permission::Deny | Permission::Ask, holds) => {
                    asks = asks.or(Some((layer, index, rule, holds)));
                }
                (Permission::Allow, Holds::Yes) => {
                    is_spelled |= rule.spec().command.is_some();
                    allows = allows.or(Some((layer, index, rule, Holds::Yes)));
                }
            }
        }
        let by_rule = |found: (Scope, usize, &Rule, Holds), permission| {
            let (layer, index, rule, holds) = found;
            let place = rule.place().map(str::to_owned);
            let source = Source::Rule { layer, index, place };
            let reason = reason(rule, permission, holds, &part.subject(facts));
            Decision { permission, source, reason, subject: None }
        };
        // A rule that allows such a command spells the option out.
        let asks = asks.or(hidden.filter(|_| !is_spelled));
        match (denies, base) {
            (Some(rule), _) => Some(by_rule(rule, Permission::Deny)),
            (None, Some((kind, Permission::Deny))) => Some(self.by_kind(kind, Permission::Deny)),
            (None, base) => match (asks, allows, base) {
                (Some(rule), ..) => Some(by_rule(rule, Permission::Ask)),
                (None, Some(rule), _) => Some(by_rule(rule, Permission::Allow)),
                (None, None, Some((kind, permission))) => {
                    let mut decision = self.by_kind(kind, permission);
                    if let (Permission::Ask, Some(name)) = (permission, &part.variable) {
                        decision.reason =
                            format!("`{name}` can change what programs do that are started later");
                    }
                    let unlisted = part.unlisted.as_ref().map(|unlisted| &unlisted.reason);
                    let why = part.opaque.as_ref().or(unlisted);
                    if let (Permission::Ask, Some(why)) = (permission, why) {
                        decision.reason = format!("{}; {why}", decision.reason);
                    }
                    Some(decision)
                }
                (None, None, None) => None,
            },
        }
    }

    /// Returns what the table says about one thing that a call would do.
    fn base(&self, part: &Part) -> Option<(Kind, Permission)> {
        match part.base {
            Base::None | Base::Changes | Base::Write => None,
            Base::Variable(kind) => Some((kind, self.kind(kind).max(Permission::Ask))),
            Base::Kind(kind) => Some((kind, self.kind(kind))),
            Base::Redirection { kind, inside } => {
                let (own, execute) = (self.kind(kind), self.kind(Kind::Execute));
                // Outside of where the run works, only who may run anything may write.
                let own = if inside { own } else { own.max(Permission::Ask) };
                match own {
                    Permission::Deny => Some((kind, Permission::Deny)),
                    own if own <= execute => Some((kind, own)),
                    _ => Some((Kind::Execute, execute)),
                }
            }
        }
    }

    /// Returns the rules that count, in their order: the layer, and which of its rules.
    fn places(&self) -> impl Iterator<Item = (usize, usize, &Rule)> {
        self.layers.iter().enumerate().flat_map(|(number, layer)| {
            let rules = layer.rules.iter().enumerate();
            let counts =
                |rule: &Rule| layer.scope != Scope::Project || rule.effect() != Permission::Allow;
            rules
                .filter(move |(_, rule)| counts(rule))
                .map(move |(index, rule)| (number, index, rule))
        })
    }

    fn by_kind(&self, kind: Kind, permission: Permission) -> Decision {
        let configured = self.kinds.get(&kind).copied();
        let by_mode = permission != configured.unwrap_or(Permission::default_for(kind));
        let here = if by_mode { format!(" in mode `{}`", self.mode) } else { String::new() };
        let reason = match permission {
            Permission::Allow => format!("tools of kind `{kind}` are allowed{here}"),
            Permission::Ask => format!("tools of kind `{kind}` need a person's consent{here}"),
            Permission::Deny if by_mode => format!("tools of kind `{kind}` are not allowed{here}"),
            Permission::Deny => format!("tools of kind `{kind}` are not allowed here"),
        };
        let source =
            if by_mode { Source::Mode { kind, mode: self.mode } } else { Source::Kind(kind) };
        Decision { permission, source, reason, subject: None }
    }
}

fn reason(rule: &Rule, permission: Permission, holds: Holds, subject: &str) -> String {
    let shown = rule.shown();
    let why = rule.reason();
    let text = match (permission, rule.effect(), holds) {
        // Who wrote a reason wrote it for what the rule is about, which this may not be.
        (Permission::Ask, Permission::Deny, Holds::Below) => {
            format!("{subject} may touch what the rule on {shown} forbids")
        }
        (Permission::Ask, Permission::Deny, _) => {
            format!("{subject} may be something that the rule on {shown} forbids")
        }
        (Permission::Ask, Permission::Ask, Holds::Below | Holds::Perhaps) => {
            format!("{subject} may be something that the rule on {shown} asks about")
        }
        _ if why.is_some() => return why.unwrap_or_default().to_owned(),
        (Permission::Allow, ..) => format!("{subject} is allowed by the rule on {shown}"),
        (Permission::Ask, ..) => {
            format!("{subject} needs a person's consent by the rule on {shown}")
        }
        (Permission::Deny, ..) => format!("{subject} is forbidden by the rule on {shown}"),
    };
    match why {
        Some(why) => format!("{text}: {why}"),
        None => text,
    }
}

/// Returns the stricter of two decisions, the first of two alike.
fn stricter(first: Decision, second: Decision) -> Decision {
    if second.permission > first.permission { second } else { first }
}

#[cfg(test)]
mod tests;
