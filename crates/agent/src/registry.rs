//! The agents there are, and how they change.
//!
//! A registry is a handle: clones share the agents. Agents lie in three layers, by where they come from: a
//! program, files, what comes with the crate. The first layer that has a name decides what it stands for;
//! a file that takes the name of a shipped agent hides it, and when the file goes the shipped one is back.
//!
//! Every agent in here passed the same [check](crate::check). Whoever depends on the agents there are
//! subscribes to their changes; a change says which names it is about.

mod change;
mod overrides;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, PoisonError, RwLock};

use convoke_core::nearest::{did_you_mean, nearest};
use tokio::sync::broadcast;

pub use change::{Changed, RegistryChange};
pub use overrides::AgentOverride;

use crate::check::{DefinitionProblem, check};
use crate::definition::AgentDefinition;
use crate::files::{AgentFormat, FileNote, LoadReport};
use crate::outline::Outline;
use crate::shipped;
use crate::template::PromptTemplate;

/// How many changes a subscriber can be behind before it misses some, which it is then told.
const CHANGES_KEPT: usize = 64;

/// All agents there are. Cheap to clone; clones are the same registry.
#[derive(Clone)]
pub struct AgentRegistry(Arc<Shared>);

struct Shared {
    state: RwLock<State>,
    changes: broadcast::Sender<Arc<RegistryChange>>,
}

#[derive(Default)]
struct State {
    layers: [BTreeMap<String, Arc<Registered>>; LAYERS],
    /// Those that settings switched off or made unusable: known, but not there.
    disabled: [BTreeSet<String>; LAYERS],
    version: u64,
}

const LAYERS: usize = 3;

/// Where an agent comes from; the first one that has a name counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AgentLayer {
    /// A program registered it.
    Program,
    /// It was read from a file.
    File,
    /// It comes with the crate.
    Shipped,
}

/// An agent in a registry: its definition, and its texts taken apart.
#[derive(Clone, Debug)]
pub struct Registered {
    definition: AgentDefinition,
    template: PromptTemplate,
    outline: Outline,
    layer: AgentLayer,
    /// What its file says and is not used.
    warnings: Vec<String>,
}

impl Registered {
    /// Checks a definition, and takes its texts apart.
    pub fn of<T>(definition: AgentDefinition<T>) -> Result<Self, RegistryError> {
        Self::new(definition.untyped(), AgentLayer::Program)
    }

    fn new(definition: AgentDefinition, layer: AgentLayer) -> Result<Self, RegistryError> {
        let template = check(&definition).map_err(|problems| RegistryError::Invalid {
            agent: definition.name.clone(),
            problems,
        })?;
        let outline = Outline::of(&definition);
        Ok(Self { definition, template, outline, layer, warnings: Vec::new() })
    }

    /// Takes one that comes with the crate as it is: that it holds together is tested, and checking its
    /// schemas would take longer than everything else before the first request of a run.
    fn shipped(definition: AgentDefinition) -> Result<Self, RegistryError> {
        match PromptTemplate::of(&definition) {
            Ok(template) => {
                let outline = Outline::of(&definition);
                let (layer, warnings) = (AgentLayer::Shipped, Vec::new());
                Ok(Self { definition, template, outline, layer, warnings })
            }
            Err(_) => Self::new(definition, AgentLayer::Shipped),
        }
    }

    /// Returns its definition.
    pub const fn definition(&self) -> &AgentDefinition {
        &self.definition
    }

    /// Returns its texts.
    pub const fn template(&self) -> &PromptTemplate {
        &self.template
    }

    /// Returns what it says, by name.
    pub const fn outline(&self) -> &Outline {
        &self.outline
    }

    /// Returns where it comes from.
    pub const fn layer(&self) -> AgentLayer {
        self.layer
    }

    /// Returns what whoever runs it should know about its file: what is written there in our own form and not
    /// used. What files of other tools have beside that is no news to anybody.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }
}

impl Deref for Registered {
    type Target = AgentDefinition;

    fn deref(&self) -> &AgentDefinition {
        &self.definition
    }
}

/// An agent that cannot be registered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RegistryError {
    /// Another agent has that name.
    #[error("an agent named `{0}` is already registered; replace it, or use another name")]
    Duplicate(String),
    /// Its definition does not hold together.
    #[error("the agent `{agent}` cannot be used: {}", listed(problems))]
    Invalid {
        /// Its name.
        agent: String,
        /// Everything that is wrong with it.
        problems: Vec<DefinitionProblem>,
    },
}

fn listed(problems: &[DefinitionProblem]) -> String {
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

impl AgentRegistry {
    /// Makes an empty registry.
    pub fn new() -> Self {
        let state = RwLock::new(State::default());
        Self(Arc::new(Shared { state, changes: broadcast::Sender::new(CHANGES_KEPT) }))
    }

    /// Adds an agent of a program. A name that is taken, whoever has it, is refused.
    pub fn register<T>(&self, definition: AgentDefinition<T>) -> Result<(), RegistryError> {
        let agent = Registered::new(definition.untyped(), AgentLayer::Program)?;
        self.change(|state| {
            if state.find(&agent.name).is_some() {
                return Err(RegistryError::Duplicate(agent.name.clone()));
            }
            state.put(agent);
            Ok(())
        })
        .1
    }

    /// Adds an agent of a program, in the place of any that has its name.
    pub fn replace<T>(&self, definition: AgentDefinition<T>) -> Result<(), RegistryError> {
        let agent = Registered::new(definition.untyped(), AgentLayer::Program)?;
        self.change(|state| state.put(agent));
        Ok(())
    }

    /// Takes an agent out, wherever it comes from. Returns whether it was there.
    pub fn remove(&self, name: &str) -> bool {
        let remove = |state: &mut State| {
            let mut found = false;
            for layer in &mut state.layers {
                found |= layer.remove(name).is_some();
            }
            found
        };
        self.change(remove).1
    }

    /// Returns the agent of a name.
    pub fn get(&self, name: &str) -> Option<Arc<Registered>> {
        self.read(|state| state.find(name).cloned())
    }

    /// Returns all agents, sorted by name.
    pub fn list(&self) -> Vec<Arc<Registered>> {
        self.read(|state| state.effective().into_values().collect())
    }

    /// Returns the names of all agents, sorted.
    pub fn names(&self) -> Vec<String> {
        self.read(|state| state.effective().into_keys().collect())
    }

    /// Returns a number that is greater after every change.
    pub fn version(&self) -> u64 {
        self.read(|state| state.version)
    }

    /// Returns the changes from now on. Whoever falls far behind is told so, and reads the list.
    pub fn subscribe(&self) -> broadcast::Receiver<Arc<RegistryChange>> {
        self.0.changes.subscribe()
    }

    /// Sets the agents that come with the crate, as settings have them: one that is switched off is not
    /// there. Returns what changed, and what settings made unusable.
    pub fn load_shipped(
        &self,
        overrides: &BTreeMap<String, AgentOverride>,
    ) -> (Arc<RegistryChange>, Vec<RegistryError>) {
        self.set_layer(AgentLayer::Shipped, shipped::all(), overrides, &BTreeMap::new())
    }

    /// Sets the agents that come from files to those of a report, as settings have them. Returns what
    /// changed, and what settings made unusable; a name that a program has stays the program's, which is
    /// added to the warnings of the report.
    pub fn replace_all(
        &self,
        report: &mut LoadReport,
        overrides: &BTreeMap<String, AgentOverride>,
    ) -> (Arc<RegistryChange>, Vec<RegistryError>) {
        let taken = self.read(|state| {
            let layer = state.layers.first();
            layer.map(|layer| layer.keys().cloned().collect::<BTreeSet<_>>()).unwrap_or_default()
        });
        for loaded in &report.loaded {
            if taken.contains(&loaded.definition.name) {
                let message = format!(
                    "the agent `{}` is not used: the program has one of that name",
                    loaded.definition.name
                );
                report.warnings.push(FileNote::new(&loaded.source.path, message));
            }
        }
        let definitions = report.loaded.iter().map(|loaded| loaded.definition.clone());
        let ours = report.loaded.iter().filter(|one| one.source.format == AgentFormat::Convoke);
        let warnings: BTreeMap<&str, &[FileNote]> =
            ours.map(|one| (one.definition.name.as_str(), one.warnings.as_slice())).collect();
        self.set_layer(AgentLayer::File, definitions.collect(), overrides, &warnings)
    }

    /// Returns what settings say about agents that there are not, with the names that come close.
    pub fn unknown_overrides(&self, overrides: &BTreeMap<String, AgentOverride>) -> Vec<String> {
        let known = self.read(|state| {
            let mut known: BTreeSet<String> = state.effective().into_keys().collect();
            known.extend(state.disabled.iter().flatten().cloned());
            known
        });
        let unknown = overrides.keys().filter(|name| !known.contains(*name));
        let shown = |name: &String| {
            let close = nearest(name, known.iter().map(String::as_str));
            format!("there is no agent `{name}`{}", did_you_mean(&close))
        };
        unknown.map(shown).collect()
    }

    fn set_layer(
        &self,
        layer: AgentLayer,
        definitions: Vec<AgentDefinition>,
        overrides: &BTreeMap<String, AgentOverride>,
        warnings: &BTreeMap<&str, &[FileNote]>,
    ) -> (Arc<RegistryChange>, Vec<RegistryError>) {
        let (mut agents, mut disabled, mut errors) = (BTreeMap::new(), BTreeSet::new(), Vec::new());
        for definition in definitions {
            let own = overrides.get(&definition.name);
            if own.is_some_and(|own| own.enabled == Some(false)) {
                disabled.insert(definition.name);
                continue;
            }
            let is_changed = own.is_some_and(AgentOverride::changes);
            let definition = own.map_or_else(|| definition.clone(), |own| own.apply(&definition));
            let name = definition.name.clone();
            let registered = match layer {
                AgentLayer::Shipped if !is_changed => Registered::shipped(definition),
                _ => Registered::new(definition, layer),
            };
            match registered {
                Ok(mut agent) => {
                    let notes = warnings.get(name.as_str()).copied().unwrap_or_default();
                    agent.warnings = notes.iter().map(ToString::to_string).collect();
                    drop(agents.insert(name, Arc::new(agent)));
                }
                Err(error) => {
                    disabled.insert(name);
                    errors.push(error);
                }
            }
        }
        let set = |state: &mut State| {
            if let Some(slot) = state.layers.get_mut(layer as usize) {
                *slot = agents;
            }
            if let Some(slot) = state.disabled.get_mut(layer as usize) {
                *slot = disabled;
            }
        };
        (self.change(set).0, errors)
    }

    fn read<R>(&self, read: impl FnOnce(&State) -> R) -> R {
        read(&self.0.state.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Changes the agents, and tells who listens, if anything is different.
    fn change<R>(&self, change: impl FnOnce(&mut State) -> R) -> (Arc<RegistryChange>, R) {
        let mut state = self.0.state.write().unwrap_or_else(PoisonError::into_inner);
        let before = state.effective();
        let result = change(&mut state);
        let mut difference = RegistryChange::between(&before, &state.effective());
        if !difference.is_empty() {
            state.version += 1;
        }
        difference.version = state.version;
        let difference = Arc::new(difference);
        // Told under the lock, so that changes are told in the order in which they happen.
        if !difference.is_empty() {
            drop(self.0.changes.send(Arc::clone(&difference)));
        }
        (difference, result)
    }
}

impl Default for AgentRegistry {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for AgentRegistry {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("AgentRegistry").field(&self.names()).finish()
    }
}

impl State {
    fn find(&self, name: &str) -> Option<&Arc<Registered>> {
        self.layers.iter().find_map(|layer| layer.get(name))
    }

    fn effective(&self) -> BTreeMap<String, Arc<Registered>> {
        let mut all = BTreeMap::new();
        for layer in self.layers.iter().rev() {
            all.extend(layer.iter().map(|(name, agent)| (name.clone(), Arc::clone(agent))));
        }
        all
    }

    fn put(&mut self, agent: Registered) {
        if let Some(layer) = self.layers.get_mut(agent.layer as usize) {
            layer.insert(agent.name.clone(), Arc::new(agent));
        }
    }
}

#[cfg(test)]
mod tests;
