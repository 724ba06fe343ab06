//! Agents by their names, those included that are switched off, and by what.
//!
//! One that is switched off is known and can be looked at. Nothing here runs it.

use std::fmt;
use std::sync::Arc;

use convoke_agent::definition::AgentDefinition;
use convoke_agent::files::AgentSource;
use convoke_agent::registry::{AgentLayer, Registered};
use convoke_agent::{AgentOverride, DELEGATE_TO_AGENT, shipped};
use convoke_core::nearest::nearest;
use convoke_core::policy::wildcard;

use super::{AgentCallError, Runtime};

/// An agent that there is, whether it can be called or not.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct KnownAgent {
    /// The agent, with what settings change about it.
    pub agent: Arc<Registered>,
    /// The file it was read from, if it was.
    pub source: Option<AgentSource>,
    /// What switches it off, if something does.
    pub off: Option<AgentOff>,
}

/// What switches an agent off.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AgentOff {
    /// All agents are off.
    All,
    /// The settings exclude it, by this name or pattern.
    Excluded(String),
    /// The settings for this agent say so.
    Overridden(String),
    /// It comes with Convoke, and is there only if the settings say so.
    Unasked(String),
}

impl AgentOff {
    /// Returns the setting that does it, or would undo it.
    pub fn key(&self) -> String {
        match self {
            Self::All => "agents.enabled".to_owned(),
            Self::Excluded(_) => "agents.exclude".to_owned(),
            Self::Overridden(name) | Self::Unasked(name) => {
                format!("agents.overrides.{name}.enabled")
            }
        }
    }
}

impl fmt::Display for AgentOff {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = self.key();
        match self {
            Self::All | Self::Overridden(_) => write!(formatter, "`{key}` is `false`"),
            Self::Excluded(pattern) => write!(formatter, "`{key}` has `{pattern}`"),
            Self::Unasked(_) => {
                write!(formatter, "it changes files, and is there once `{key}` is `true`")
            }
        }
    }
}

/// What keeps an agent from the main agent that could be called otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NotOffered {
    /// The main agent calls nobody.
    Delegation,
    /// The tools were chosen, and the one for calling agents is none of them.
    NotEnabled,
    /// The tool for calling agents is excluded.
    Excluded,
    /// The agents were chosen, and it is none of them.
    NotAllowed,
    /// Its model cannot be asked here: there is no key for it, for instance.
    NoModel,
    /// It cannot have tools that it names, and cannot be started: there are none, or all of them are excluded.
    NoTool,
}

impl NotOffered {
    /// Returns the setting that does it.
    pub const fn key(self) -> &'static str {
        match self {
            Self::Delegation => "agents.delegation",
            Self::NotEnabled => "tools.enabled",
            Self::Excluded => "tools.exclude",
            Self::NotAllowed => "agents.allow",
            Self::NoModel => "model",
            Self::NoTool => "tools",
        }
    }
}

impl fmt::Display for NotOffered {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = self.key();
        match self {
            Self::Delegation => write!(formatter, "`{key}` is `off`"),
            Self::NotEnabled => write!(formatter, "`{key}` does not have `{DELEGATE_TO_AGENT}`"),
            Self::Excluded => write!(formatter, "`{key}` has `{DELEGATE_TO_AGENT}`"),
            Self::NotAllowed => write!(formatter, "`{key}` does not name it"),
            Self::NoModel => formatter.write_str("its model cannot be asked here"),
            Self::NoTool => formatter.write_str("it cannot have tools that it names"),
        }
    }
}

impl Runtime {
    /// Returns what keeps an agent from the main agent, if something does. One that is switched off is kept from
    /// everybody, which this does not say.
    pub fn not_offered(&self, name: &str) -> Option<NotOffered> {
        let is_offered = || self.team().offered().iter().any(|agent| agent.name == name);
        match self.no_delegation() {
            Some(nobody) => Some(nobody),
            None if self.is_off(name) => None,
            None if self.lacks_model(name) => Some(NotOffered::NoModel),
            None if self.lacks_tools(name) => Some(NotOffered::NoTool),
            None => (!is_offered()).then_some(NotOffered::NotAllowed),
        }
    }

    /// Finds an agent that can be run, by its name.
    pub fn find_agent(&self, name: &str) -> Result<Arc<Registered>, AgentCallError> {
        let KnownAgent { agent, off, .. } = self.known_agent(name)?;
        match off {
            None => Ok(agent),
            Some(off) => Err(AgentCallError::SwitchedOff { name: name.to_owned(), off }),
        }
    }

    /// Finds an agent by its name, also one that is switched off.
    pub fn known_agent(&self, name: &str) -> Result<KnownAgent, AgentCallError> {
        let known = self.agents().get(name).map(|agent| {
            let source = self.agent_source(&agent).cloned();
            KnownAgent { agent, source, off: self.off(name) }
        });
        known.or_else(|| self.switched_off(name)).ok_or_else(|| {
            let names = self.agent_names();
            let close = nearest(name, names.iter().map(String::as_str));
            let close: Vec<String> = close.iter().map(|name| (*name).to_owned()).collect();
            let off = close.iter().filter(|name| self.is_off(name)).cloned().collect();
            AgentCallError::Unknown { name: name.to_owned(), close, off }
        })
    }

    /// Returns all agents there are: those that can be run, then those that are switched off, each sorted by
    /// name.
    pub fn known_agents(&self) -> Vec<KnownAgent> {
        let names = self.agent_names();
        let mut all: Vec<KnownAgent> =
            names.iter().filter_map(|name| self.known_agent(name).ok()).collect();
        all.sort_by(|one, other| {
            let key = |known: &KnownAgent| (known.off.is_some(), known.agent.name.clone());
            key(one).cmp(&key(other))
        });
        all
    }

    /// Returns the file that an agent was read from, if it was.
    pub fn agent_source(&self, agent: &Registered) -> Option<&AgentSource> {
        (agent.layer() == AgentLayer::File).then(|| self.file_of(&agent.name)).flatten()
    }

    fn file_of(&self, name: &str) -> Option<&AgentSource> {
        let mut loaded = self.agent_files().loaded.iter();
        loaded.find(|loaded| loaded.definition.name == name).map(|loaded| &loaded.source)
    }

    /// Returns the names of all agents there are, also of those that are switched off.
    fn agent_names(&self) -> Vec<String> {
        let mut names = self.agents().names();
        names.extend(shipped::all().into_iter().map(|agent| agent.name));
        names.extend(self.agent_files().loaded.iter().map(|one| one.definition.name.clone()));
        names.sort();
        names.dedup();
        names
    }

    /// Finds what the settings keep out of the registry: a file's agent before one that comes along.
    fn switched_off(&self, name: &str) -> Option<KnownAgent> {
        let of_file = self.agent_files().loaded.iter().map(|loaded| &loaded.definition);
        let of_file = of_file.into_iter().find(|agent| agent.name == name).cloned();
        let source = of_file.as_ref().and_then(|_| self.file_of(name)).cloned();
        let is_named = |agent: &AgentDefinition| agent.name == name;
        let definition = of_file.or_else(|| shipped::all().into_iter().find(is_named))?;
        let overrides = self.config.agents.overrides();
        let own = overrides.get(name);
        let definition = own.map_or_else(|| definition.clone(), |own| own.apply(&definition));
        let off = match own {
            Some(AgentOverride { enabled: Some(false), .. }) => {
                AgentOff::Overridden(name.to_owned())
            }
            _ => AgentOff::Unasked(name.to_owned()),
        };
        let agent = Arc::new(Registered::of(definition).ok()?);
        Some(KnownAgent { agent, source, off: self.off(name).or(Some(off)) })
    }

    /// Tells whether an agent that there is is switched off.
    fn is_off(&self, name: &str) -> bool {
        self.off(name).is_some() || self.agents().get(name).is_none()
    }

    /// Returns what switches agents off that are in the registry.
    fn off(&self, name: &str) -> Option<AgentOff> {
        let config = &self.config.agents;
        let excludes = config.exclude.iter().find(|pattern| wildcard(pattern, name));
        match excludes {
            _ if !config.enabled => Some(AgentOff::All),
            excludes => excludes.cloned().map(AgentOff::Excluded),
        }
    }
}
