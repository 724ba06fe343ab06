//! What one run may see of the registry.
//!
//! A view holds names, not tools: which tools it shows is settled when it is made, so a tool that is
//! registered later does not slip in, and one that is removed is gone at once. Tools of a group, which come
//! and go, are shown whenever they are there, if every selection on the way to the view covers them. A view of
//! a view can only show less. A view may have tools of its own beside, which are in no registry.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use convoke_core::nearest::{did_you_mean, nearest};
use convoke_core::{Category, Declaration, ToolError, ToolSpec};

use crate::catalogue::{Arrivals, TOOL_SEARCH};
use crate::pattern;
use crate::registry::{Entry, ToolRegistry};
use crate::tool::Tool;

/// A selection that names what does not exist.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ViewError {
    /// A name or pattern covers no tool.
    #[error("{}", unresolved_message(.unresolved, .existing))]
    Unresolved {
        /// The names and patterns.
        unresolved: Vec<String>,
        /// The tools there are.
        existing: Vec<String>,
    },
    /// A tool needs another that the selection leaves out.
    #[error("tool `{tool}` needs `{needs}`, which is not selected")]
    MissingRequirement {
        /// The tool.
        tool: String,
        /// What it needs.
        needs: String,
    },
}

fn unresolved_message(unresolved: &[String], existing: &[String]) -> String {
    let lines = unresolved.iter().map(|name| {
        let close = nearest(name, existing.iter().map(String::as_str));
        format!("no tool is named `{name}`{}", did_you_mean(&close))
    });
    let list = if existing.is_empty() { "none".into() } else { existing.join(", ") };
    format!("{} (there are: {list})", lines.collect::<Vec<_>>().join("; "))
}

/// Which tools to show: names, patterns with `*`, or families as `category:file`.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// What to show; everything where absent.
    pub allow: Option<Vec<String>>,
    /// What to leave out all the same.
    pub exclude: Vec<String>,
}

impl Selection {
    /// Shows everything.
    pub fn all() -> Self {
        Self::default()
    }

    /// Shows only these.
    pub fn only<N: Into<String>>(names: impl IntoIterator<Item = N>) -> Self {
        Self { allow: Some(names.into_iter().map(Into::into).collect()), exclude: Vec::new() }
    }

    /// Leaves these out.
    #[must_use]
    pub fn without<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.exclude.extend(names.into_iter().map(Into::into));
        self
    }

    fn covers(&self, spec: &ToolSpec) -> bool {
        let any = |patterns: &[String]| patterns.iter().any(|one| pattern::covers(one, spec));
        self.allow.as_deref().is_none_or(any) && !any(&self.exclude)
    }

    /// Tells whether any tool may be selected whose name begins like this.
    fn reaches(&self, start: &str, category: Option<Category>) -> bool {
        let may_be =
            |all: &[String]| all.iter().any(|one| pattern::may_cover(one, start, category));
        self.allow.as_deref().is_none_or(may_be)
            && !self.exclude.iter().any(|one| pattern::covers_all(one, start, category))
    }
}

/// A tool that a view shows.
#[derive(Clone)]
pub struct Shown(Arc<Entry>);

impl Shown {
    /// Returns what the tool says about itself.
    pub fn spec(&self) -> &ToolSpec {
        self.0.tool.spec()
    }

    /// Returns what a model is told of it. It is made once, when somebody asks.
    pub fn declaration(&self) -> &Declaration {
        self.0.declaration()
    }
}

impl fmt::Debug for Shown {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.spec().name)
    }
}

/// The tools one run may call. Cheap to clone.
#[derive(Clone)]
pub struct ToolView {
    registry: ToolRegistry,
    /// Name to registration; `None` shows everything there is at any time.
    shown: Option<Arc<BTreeMap<String, u64>>>,
    /// What was asked for on the way here: it decides about tools that come and go.
    selections: Arc<[Selection]>,
    /// Tools that only this view shows. They go before others of their name.
    own: Arc<BTreeMap<String, Arc<Entry>>>,
}

impl ToolView {
    /// Shows all tools of a registry, now and later.
    pub fn of(registry: ToolRegistry) -> Self {
        Self { registry, shown: None, selections: [].into(), own: Arc::default() }
    }

    /// Returns a view that shows these as well, in place of others of their names. They are in no registry.
    #[must_use]
    pub fn and(&self, tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Self {
        let mut own = BTreeMap::clone(&self.own);
        own.extend(tools.into_iter().map(|tool| {
            let name = tool.spec().name.clone();
            (name, Arc::new(Entry::private(tool)))
        }));
        Self { own: Arc::new(own), ..self.clone() }
    }

    /// Returns a view that shows the selected ones of what this one shows now.
    pub fn select(&self, selection: &Selection) -> Result<Self, ViewError> {
        let entries = self.entries();
        let grows = !self.registry.groups().is_empty();
        let may_come =
            |wanted: &str| self.registry.may_come(wanted) || (grows && pattern::is_family(wanted));
        let allow = selection.allow.as_deref();
        let unresolved: Vec<String> = allow
            .unwrap_or_default()
            .iter()
            .chain(selection.exclude.iter().filter(|name| pattern::is_plain(name)))
            .filter(|wanted| {
                !may_come(wanted)
                    && !entries.iter().any(|entry| pattern::covers(wanted, entry.tool.spec()))
            })
            .cloned()
            .collect();
        if !unresolved.is_empty() {
            let existing = entries.iter().map(|entry| entry.tool.spec().name.clone()).collect();
            return Err(ViewError::Unresolved { unresolved, existing });
        }
        let shown: BTreeMap<String, u64> = entries
            .iter()
            .filter(|entry| entry.group.is_none() && selection.covers(entry.tool.spec()))
            .map(|entry| (entry.tool.spec().name.clone(), entry.registration))
            .collect();
        let own = self.own.iter().filter(|(name, _)| shown.contains_key(*name));
        let own = own.map(|(name, entry)| (name.clone(), Arc::clone(entry))).collect();
        let (registry, shown) = (self.registry.clone(), Some(Arc::new(shown)));
        let before = self.selections.iter().cloned();
        let selections = before.chain([selection.clone()]).collect();
        let view = Self { registry, shown, selections, own: Arc::new(own) };
        view.check_requirements()?;
        Ok(view)
    }

    /// Returns the tool of that name, if this view shows it.
    pub fn get(&self, name: &str) -> Option<Arc<dyn Tool>> {
        self.entry(name).map(|entry| Arc::clone(&entry.tool))
    }

    /// Tells whether this view shows nothing now.
    pub fn is_empty(&self) -> bool {
        self.entries().is_empty()
    }

    /// Returns the tools this view shows, sorted by name.
    pub fn list(&self) -> Vec<Arc<dyn Tool>> {
        self.entries().iter().map(|entry| Arc::clone(&entry.tool)).collect()
    }

    /// Returns the tools this view shows, sorted by name, with what a model may be told of each.
    pub fn shown(&self) -> Vec<Shown> {
        self.entries().into_iter().map(Shown).collect()
    }

    /// Tells whether a tool would be shown, were it there.
    pub fn would_show(&self, spec: &ToolSpec) -> bool {
        self.selections.iter().all(|selection| selection.covers(spec))
    }

    /// Tells whether a tool whose name begins like this, of this family, may be shown: now, or when there is one.
    /// What stands behind tools (a server) is only for those who may use some of them, or were given the beginning
    /// of their names by itself.
    pub fn reaches(&self, start: &str, category: Category) -> bool {
        self.selections.iter().all(|selection| selection.reaches(start, Some(category)))
    }

    /// Tells whether tools may come later that this view would show.
    pub fn may_grow(&self) -> bool {
        let reaches = |group: &str| self.selections.iter().all(|one| one.reaches(group, None));
        self.registry.groups().iter().any(|group| reaches(group))
    }

    /// Returns what a model is told, sorted by name: the same tools make the same bytes.
    pub fn declarations(&self) -> Arc<[Arc<Declaration>]> {
        match self.shown {
            None if self.own.is_empty() => self.registry.declarations(),
            _ => self.entries().iter().map(|entry| Arc::clone(entry.declaration())).collect(),
        }
    }

    /// Returns the registry behind the view.
    pub const fn registry(&self) -> &ToolRegistry {
        &self.registry
    }

    /// Returns the error for a name this view does not show.
    pub fn unknown(&self, name: &str) -> ToolError {
        let why = format!(
            "its server may not have started yet, or does not offer it. `{TOOL_SEARCH}` waits for servers that \
             are starting"
        );
        self.missing(name, &why)
    }

    /// Returns the error for a name this view does not show, although whoever might bring it was waited for.
    pub(crate) fn not_brought(&self, name: &str) -> ToolError {
        let why = format!(
            "no server that is used here offers it. `{TOOL_SEARCH}` finds the tools there are"
        );
        self.missing(name, &why)
    }

    /// Returns who may bring a tool that is not here, if this view would show it then.
    pub(crate) fn arrivals_of(&self, name: &str) -> Option<Arc<dyn Arrivals>> {
        let may_pass = self.selections.iter().all(|selection| selection.reaches(name, None));
        may_pass.then(|| self.registry.arrivals_of(name)).flatten()
    }

    fn missing(&self, name: &str, why: &str) -> ToolError {
        let entries = self.entries();
        let names = || entries.iter().map(|entry| entry.tool.spec().name.as_str());
        if self.registry.may_come(name) && nearest(name, names()).is_empty() {
            return ToolError::not_found(format!("Tool \"{name}\" is not here: {why}"));
        }
        ToolError::unknown_tool(name, names())
    }

    pub(crate) fn entry(&self, name: &str) -> Option<Arc<Entry>> {
        if let Some(own) = self.own.get(name) {
            return Some(Arc::clone(own));
        }
        let entry = self.registry.entry(name)?;
        let is_shown = match &self.shown {
            None => true,
            Some(_) if entry.group.is_some() => self.lets_pass(&entry),
            Some(shown) => shown.get(name) == Some(&entry.registration),
        };
        is_shown.then_some(entry)
    }

    /// Tells whether a tool that comes and goes is one of those that were asked for.
    fn lets_pass(&self, entry: &Entry) -> bool {
        self.would_show(entry.tool.spec())
    }

    pub(crate) fn entries(&self) -> Vec<Arc<Entry>> {
        let entries: Vec<Arc<Entry>> = match &self.shown {
            None => self.registry.entries(),
            Some(shown) => {
                let settled = shown.keys().filter_map(|name| self.entry(name));
                let passing = self.registry.passing();
                let passing = passing.into_iter().filter(|entry| self.lets_pass(entry));
                let mut all: Vec<Arc<Entry>> = settled.chain(passing).collect();
                all.sort_by(|one, other| one.tool.spec().name.cmp(&other.tool.spec().name));
                all
            }
        };
        if self.own.is_empty() {
            return entries;
        }
        let others =
            entries.into_iter().filter(|entry| !self.own.contains_key(&entry.tool.spec().name));
        let mut all: Vec<Arc<Entry>> = others.chain(self.own.values().cloned()).collect();
        all.sort_by(|one, other| one.tool.spec().name.cmp(&other.tool.spec().name));
        all
    }

    fn check_requirements(&self) -> Result<(), ViewError> {
        let entries = self.entries();
        let names: BTreeSet<&str> =
            entries.iter().map(|entry| entry.tool.spec().name.as_str()).collect();
        for entry in &entries {
            let spec = entry.tool.spec();
            if let Some(needs) =
                spec.requires.iter().find(|needed| !names.contains(needed.as_str()))
            {
                return Err(ViewError::MissingRequirement {
                    tool: spec.name.clone(),
                    needs: needs.clone(),
                });
            }
        }
        Ok(())
    }
}

impl fmt::Debug for ToolView {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let entries = self.entries();
        formatter.debug_set().entries(entries.iter().map(|entry| &entry.tool.spec().name)).finish()
    }
}
