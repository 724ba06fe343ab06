//! All tools there are, from every source, and how they have fared.
//!
//! A registry is a handle: clones share the tools. Tools may come and go while calls run; a call that
//! has begun keeps its tool. What models are told is sorted by name, so the same tools always make the
//! same bytes.
//!
//! Some tools come and go by themselves: those of a server that starts, changes and stops. They form a group,
//! whose names all begin alike, so that one can say beforehand which of them may be used.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock, Weak};
use std::time::Duration;

use convoke_core::{Category, Declaration, Millis, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::watch;

use crate::catalogue::{Arrivals, Words};
use crate::tool::Tool;
use crate::validate::ArgumentCheck;

/// A tool that cannot be registered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RegistryError {
    /// Another tool has that name.
    #[error("a tool named `{0}` is already registered")]
    Duplicate(String),
    /// The name does not fit what providers accept.
    #[error(
        "`{0}` is not a tool name: it takes 1 to 64 letters, digits, `_` or `-`, and starts with a letter or `_`"
    )]
    InvalidName(String),
    /// The name is not one of those of its group.
    #[error("`{name}` does not begin with `{group}`, as the tools of that group do")]
    NotOfTheGroup {
        /// The name.
        name: String,
        /// How the names of the group begin.
        group: String,
    },
    /// The parameters are not a schema of an object.
    #[error("the parameters of tool `{0}` are not a JSON Schema of an object")]
    InvalidParameters(String),
}

/// All tools there are. Cheap to clone; clones are the same registry.
#[derive(Clone, Default)]
pub struct ToolRegistry(Arc<RwLock<Tools>>);

#[derive(Default)]
struct Tools {
    by_name: HashMap<String, Arc<Entry>>,
    /// How the names of tools begin that come and go.
    groups: BTreeSet<Arc<str>>,
    /// Who brings them, by group.
    arrivals: BTreeMap<String, Weak<dyn Arrivals>>,
    declarations: Option<Arc<[Arc<Declaration>]>>,
    generation: watch::Sender<u64>,
}

/// A registered tool with what is kept about it.
pub(crate) struct Entry {
    /// Tells this registration from a later one of the same name.
    pub(crate) registration: u64,
    pub(crate) tool: Arc<dyn Tool>,
    /// The group that it comes and goes with.
    pub(crate) group: Option<Arc<str>>,
    /// Most tools are not offered to anybody, so it is made when somebody asks.
    declaration: OnceLock<Arc<Declaration>>,
    check: OnceLock<Result<ArgumentCheck, ToolError>>,
    /// What a search sees of it.
    words: OnceLock<Words>,
    counters: Arc<Counters>,
}

#[derive(Default)]
struct Counters {
    calls: AtomicU64,
    failures: AtomicU64,
    micros: AtomicU64,
}

impl Counters {
    /// Returns how the tool has fared, if it was ever called.
    fn stats(&self) -> Option<CallStats> {
        let count = self.calls.load(Ordering::Relaxed);
        let average = self.micros.load(Ordering::Relaxed).checked_div(count)?;
        Some(CallStats {
            count,
            failures: self.failures.load(Ordering::Relaxed),
            avg_duration: Millis::new(Duration::from_micros(average)),
        })
    }
}

impl Entry {
    fn new(registration: u64, tool: Arc<dyn Tool>, counters: Arc<Counters>) -> Self {
        let (declaration, check, words) = (OnceLock::new(), OnceLock::new(), OnceLock::new());
        Self { registration, tool, group: None, declaration, check, words, counters }
    }

    /// Keeps a tool that is in no registry.
    pub(crate) fn private(tool: Arc<dyn Tool>) -> Self {
        Self::new(0, tool, Arc::default())
    }

    pub(crate) fn check(&self) -> Result<&ArgumentCheck, ToolError> {
        let made = self.check.get_or_init(|| ArgumentCheck::new(self.tool.spec()));
        made.as_ref().map_err(Clone::clone)
    }

    pub(crate) fn count(&self, success: bool, duration: Duration) {
        self.counters.calls.fetch_add(1, Ordering::Relaxed);
        self.counters.failures.fetch_add(u64::from(!success), Ordering::Relaxed);
        let micros = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        self.counters.micros.fetch_add(micros, Ordering::Relaxed);
    }

    pub(crate) fn declaration(&self) -> &Arc<Declaration> {
        self.declaration.get_or_init(|| Arc::new(self.tool.declaration()))
    }

    /// Returns the words that the tool is found by, as long as it is the same tool.
    pub(crate) fn words(&self) -> &Words {
        self.words.get_or_init(|| Words::of(self.tool.spec()))
    }
}

impl ToolRegistry {
    /// Makes an empty registry.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a tool. Its name must be free.
    pub fn register(&self, tool: impl IntoTool) -> Result<(), RegistryError> {
        self.register_many([tool.into_tool()])
    }

    /// Adds tools: all of them, or none.
    pub fn register_many(
        &self,
        tools: impl IntoIterator<Item = Arc<dyn Tool>>,
    ) -> Result<(), RegistryError> {
        let tools: Vec<Arc<dyn Tool>> = tools.into_iter().collect();
        let mut registered = self.write();
        let mut names: Vec<&str> = Vec::with_capacity(tools.len());
        for tool in &tools {
            check_spec(tool.as_ref())?;
            let name = tool.spec().name.as_str();
            if registered.by_name.contains_key(name) {
                return Err(RegistryError::Duplicate(name.to_owned()));
            }
            names.push(name);
        }
        names.sort_unstable();
        if let Some([name, _]) = names.array_windows().find(|[left, right]| left == right) {
            return Err(RegistryError::Duplicate((*name).to_owned()));
        }
        for tool in tools {
            registered.insert(tool);
        }
        Ok(())
    }

    /// Adds a tool, or puts it in the place of the one that has its name. Views that show the old one
    /// show the new one; statistics go on.
    pub fn replace(&self, tool: impl IntoTool) -> Result<(), RegistryError> {
        let tool = tool.into_tool();
        check_spec(tool.as_ref())?;
        self.write().insert(tool);
        Ok(())
    }

    /// Announces tools whose names begin with this, and that come and go. Views that were asked for such
    /// names show them when they are there.
    pub fn announce(&self, group: &str) {
        self.write().groups.insert(group.into());
    }

    /// Says who brings the tools of a group that are called and are not here. It is held on to by nobody: tools
    /// come for as long as whoever brings them lasts.
    pub fn brought_by(&self, group: &str, arrivals: Weak<dyn Arrivals>) {
        let mut tools = self.write();
        tools.groups.insert(group.into());
        tools.arrivals.insert(group.to_owned(), arrivals);
    }

    /// Makes these the tools of a group, in place of those it had. One that cannot be registered is left out
    /// and returned with the reason; a name that another tool has is never taken from it. A tool that is in the
    /// group already stays as it is, and where all do, nothing has changed.
    pub fn set_group(&self, group: &str, tools: Vec<Arc<dyn Tool>>) -> Vec<RegistryError> {
        if self.read().has_just(group, &tools) {
            return Vec::new();
        }
        let group: Arc<str> = group.into();
        let mut registered = self.write();
        registered.groups.insert(Arc::clone(&group));
        let old: Vec<String> = {
            let entries = registered.by_name.iter();
            let of_group = entries.filter(|(_, entry)| entry.group.as_ref() == Some(&group));
            of_group.map(|(name, _)| name.clone()).collect()
        };
        let mut before: HashMap<String, Arc<Entry>> = HashMap::new();
        for name in old {
            if let Some(entry) = registered.by_name.remove(&name) {
                before.insert(name, entry);
            }
        }
        registered.changed();
        let mut problems = Vec::new();
        for tool in tools {
            let name = tool.spec().name.clone();
            let problem = check_spec(tool.as_ref()).err().or_else(|| {
                let taken = registered.by_name.contains_key(&name);
                if taken {
                    Some(RegistryError::Duplicate(name.clone()))
                } else if name.starts_with(&*group) {
                    None
                } else {
                    let group = group.to_string();
                    Some(RegistryError::NotOfTheGroup { name: name.clone(), group })
                }
            });
            if let Some(problem) = problem {
                problems.push(problem);
                continue;
            }
            let entry = match before.remove(&name) {
                Some(same) if Arc::ptr_eq(&same.tool, &tool) => same,
                before => {
                    let counters = before.map(|entry| Arc::clone(&entry.counters));
                    let counters = counters.unwrap_or_default();
                    let mut entry = Entry::new(registered.generation(), tool, counters);
                    entry.group = Some(Arc::clone(&group));
                    Arc::new(entry)
                }
            };
            registered.by_name.insert(name, entry);
        }
        problems
    }

    /// Returns how the names of tools begin that come and go.
    pub(crate) fn groups(&self) -> Vec<Arc<str>> {
        self.read().groups.iter().cloned().collect()
    }

    /// Tells whether a name is one that a group may bring.
    pub fn may_come(&self, name: &str) -> bool {
        self.read().groups.iter().any(|group| name.starts_with(&**group))
    }

    /// Returns who may bring the tool of a name that is not here.
    pub(crate) fn arrivals_of(&self, name: &str) -> Option<Arc<dyn Arrivals>> {
        let tools = self.read();
        if tools.by_name.contains_key(name) {
            return None;
        }
        let mut brought =
            tools.arrivals.iter().filter(|(group, _)| name.starts_with(group.as_str()));
        brought.find_map(|(_, arrivals)| arrivals.upgrade())
    }

    /// Takes a tool away. Calls that have begun go on.
    pub fn remove(&self, name: &str) -> Option<Arc<dyn Tool>> {
        let mut tools = self.write();
        let removed = tools.by_name.remove(name)?;
        tools.changed();
        Some(Arc::clone(&removed.tool))
    }

    /// Returns the tool of that name.
    pub fn get(&self, name: &str) -> Option<Arc<dyn Tool>> {
        self.entry(name).map(|entry| Arc::clone(&entry.tool))
    }

    /// Tells whether there is a tool of that name.
    pub fn has(&self, name: &str) -> bool {
        self.read().by_name.contains_key(name)
    }

    /// Returns all tools, sorted by name.
    pub fn list(&self) -> Vec<Arc<dyn Tool>> {
        self.entries().iter().map(|entry| Arc::clone(&entry.tool)).collect()
    }

    /// Returns the tools of a family, sorted by name.
    pub fn by_category(&self, category: Category) -> Vec<Arc<dyn Tool>> {
        self.list().into_iter().filter(|tool| tool.spec().category == category).collect()
    }

    /// Returns what a model is told about all tools, sorted by name: the same tools make the same bytes.
    pub fn declarations(&self) -> Arc<[Arc<Declaration>]> {
        if let Some(known) = &self.read().declarations {
            return Arc::clone(known);
        }
        let mut tools = self.write();
        let sorted: Arc<[Arc<Declaration>]> =
            tools.sorted().iter().map(|entry| Arc::clone(entry.declaration())).collect();
        tools.declarations = Some(Arc::clone(&sorted));
        sorted
    }

    /// Returns how many tools there are and how they have fared.
    pub fn stats(&self) -> ToolStats {
        let entries = self.entries();
        let mut stats = ToolStats { total: entries.len(), ..ToolStats::default() };
        for entry in entries {
            let spec = entry.tool.spec();
            *stats.by_category.entry(spec.category).or_default() += 1;
            if let Some(call_stats) = entry.counters.stats() {
                stats.call_stats.insert(spec.name.clone(), call_stats);
            }
        }
        stats
    }

    /// Returns a number that grows with every change.
    pub fn generation(&self) -> u64 {
        self.read().generation()
    }

    /// Follows that number.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.read().generation.subscribe()
    }

    pub(crate) fn entry(&self, name: &str) -> Option<Arc<Entry>> {
        self.read().by_name.get(name).cloned()
    }

    pub(crate) fn entries(&self) -> Vec<Arc<Entry>> {
        self.read().sorted()
    }

    /// Returns the tools that come and go and are here now.
    pub(crate) fn passing(&self) -> Vec<Arc<Entry>> {
        let tools = self.read();
        if tools.groups.is_empty() {
            return Vec::new();
        }
        tools.by_name.values().filter(|entry| entry.group.is_some()).cloned().collect()
    }

    fn read(&self) -> std::sync::RwLockReadGuard<'_, Tools> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> std::sync::RwLockWriteGuard<'_, Tools> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Tools {
    fn insert(&mut self, tool: Arc<dyn Tool>) {
        self.changed();
        let name = tool.spec().name.clone();
        let previous = self.by_name.get(&name);
        let registration = previous.map_or(self.generation(), |entry| entry.registration);
        let counters = previous.map(|entry| Arc::clone(&entry.counters)).unwrap_or_default();
        self.by_name.insert(name, Arc::new(Entry::new(registration, tool, counters)));
    }

    /// Tells whether these very tools are all that a group has.
    fn has_just(&self, group: &str, tools: &[Arc<dyn Tool>]) -> bool {
        let is_of_group = |entry: &Entry| entry.group.as_deref() == Some(group);
        let has = |tool: &Arc<dyn Tool>| {
            let known = self.by_name.get(&tool.spec().name);
            known.is_some_and(|entry| is_of_group(entry) && Arc::ptr_eq(&entry.tool, tool))
        };
        self.groups.contains(group)
            && tools.iter().all(has)
            && self.by_name.values().filter(|entry| is_of_group(entry)).count() == tools.len()
    }

    /// Whoever follows looks when the change has been made: until then the tools are locked.
    fn changed(&mut self) {
        self.generation.send_modify(|generation| *generation += 1);
        self.declarations = None;
    }

    fn generation(&self) -> u64 {
        *self.generation.borrow()
    }

    fn sorted(&self) -> Vec<Arc<Entry>> {
        let mut entries: Vec<Arc<Entry>> = self.by_name.values().cloned().collect();
        entries.sort_unstable_by(|left, right| left.tool.spec().name.cmp(&right.tool.spec().name));
        entries
    }
}

fn check_spec(tool: &dyn Tool) -> Result<(), RegistryError> {
    let spec = tool.spec();
    if !is_tool_name(&spec.name) {
        return Err(RegistryError::InvalidName(spec.name.clone()));
    }
    // One that is made from a type is right or wrong for good: it is enough to find out while developing.
    let parameters =
        if cfg!(debug_assertions) { Some(&*spec.parameters) } else { spec.parameters.known() };
    let is_object =
        |parameters: &Value| parameters.get("type").is_some_and(|kind| kind == "object");
    if !parameters.is_none_or(is_object) {
        return Err(RegistryError::InvalidParameters(spec.name.clone()));
    }
    Ok(())
}

/// Tells whether every provider accepts the name.
fn is_tool_name(name: &str) -> bool {
    let starts_well = name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
    let allowed = |letter: char| letter.is_ascii_alphanumeric() || letter == '_' || letter == '-';
    starts_well && name.len() <= 64 && name.chars().all(allowed)
}

/// Something that can be registered: a tool, or a shared one.
pub trait IntoTool {
    /// Returns it as a shared tool.
    fn into_tool(self) -> Arc<dyn Tool>;
}

impl<T: Tool> IntoTool for T {
    fn into_tool(self) -> Arc<dyn Tool> {
        Arc::new(self)
    }
}

impl IntoTool for Arc<dyn Tool> {
    fn into_tool(self) -> Arc<dyn Tool> {
        self
    }
}

impl fmt::Debug for ToolRegistry {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let entries = self.entries();
        formatter.debug_set().entries(entries.iter().map(|entry| &entry.tool.spec().name)).finish()
    }
}

/// How many tools there are and how they have fared.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolStats {
    /// How many tools.
    pub total: usize,
    /// How many of each family.
    pub by_category: BTreeMap<Category, usize>,
    /// How the tools that were called have fared.
    pub call_stats: BTreeMap<String, CallStats>,
}

/// How one tool has fared.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CallStats {
    /// How often it was called.
    pub count: u64,
    /// How often it failed.
    pub failures: u64,
    /// How long it took on average, failures included, in milliseconds.
    pub avg_duration: Millis,
}

#[cfg(test)]
mod tests;
