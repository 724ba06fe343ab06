//! The agents that runs of a runtime can call: those of the program, those in files, those that come with
//! Convoke.
//!
//! Files are read when agents are first needed. Before that, a runtime knows only where they would be.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

use convoke_agent::definition::{AgentDefinition, ToolChoice};
use convoke_agent::files::{
    self, AgentDirectory, AgentOrigin, FileNote, LoadReport, ProjectTrust, Untrusted, load_admitted,
};
use convoke_agent::registry::{AgentLayer, RegistryError};
use convoke_agent::{
    AgentOverride, AgentRegistry, BACKGROUND_AGENTS, DELEGATE_TO_AGENT, Delegation, Team, Toolbox,
    shipped,
};
use convoke_core::nearest::{did_you_mean, nearest};
use convoke_core::policy::wildcard;
use convoke_core::{Budget, Mode};
use convoke_tool::ToolView;
use serde_json::{Value, json};

use super::Runtime;
use super::known::NotOffered;
use super::review::replaces_shipped;
use super::supply::Supply;
use crate::config::{CommandWords, EntryContent, EntryTrust, ProjectEntry, left_out_warning};

/// Those that come with Convoke and are there without anybody saying so. The others change files.
const ON_BY_DEFAULT: &[&str] = &["codebase_investigator", "generalist"];

/// The tools by which agents are called.
pub(super) const AGENT_TOOLS: &[&str] = &[DELEGATE_TO_AGENT, BACKGROUND_AGENTS];

/// The agents of a runtime, as far as they were needed.
#[derive(Debug)]
pub(super) struct Agents {
    registry: AgentRegistry,
    directories: Vec<AgentDirectory>,
    trust: ProjectTrust,
    entry_trust: Option<EntryTrust>,
    found: OnceLock<Found>,
}

/// What came of looking for agents.
#[derive(Debug)]
struct Found {
    team: Team,
    report: LoadReport,
    /// What settings made unusable.
    unusable: Vec<RegistryError>,
    /// What settings say about agents and servers that there are not, with the key.
    unknown: Vec<String>,
    /// Agents whose models cannot be asked here.
    without_model: BTreeSet<String>,
    /// Agents that cannot be started for tools that they name and cannot have.
    without_tools: BTreeSet<String>,
    /// The agents of the project, where each is trusted by itself.
    entries: Vec<ProjectEntry>,
}

impl Agents {
    pub(super) fn new(
        of_program: Vec<AgentDefinition>,
        directories: Vec<AgentDirectory>,
        trust: ProjectTrust,
        entry_trust: Option<EntryTrust>,
    ) -> Result<Self, RegistryError> {
        let registry = AgentRegistry::new();
        for definition in of_program {
            registry.replace(definition)?;
        }
        Ok(Self { registry, directories, trust, entry_trust, found: OnceLock::new() })
    }

    /// No agents.
    pub(super) fn none() -> Self {
        let registry = AgentRegistry::new();
        let (directories, trust) = (Vec::new(), ProjectTrust::Untrusted);
        Self { registry, directories, trust, entry_trust: None, found: OnceLock::new() }
    }

    fn look(&self, runtime: &Runtime) -> Found {
        let config = &runtime.config.agents;
        let mut overrides = config.overrides();
        let missing = runtime.settle_overrides(&mut overrides);
        let (_, mut unusable) = self.registry.load_shipped(&with_defaults(&overrides));
        let mut entries = Vec::new();
        let mut report = load_admitted(&self.directories, self.trust, &mut |agent| {
            self.is_trusted_entry(agent, &mut entries)
        });
        runtime.settle_servers(&mut report);
        unusable.extend(self.registry.replace_all(&mut report, &overrides).1);
        let unknown = self.registry.unknown_overrides(&overrides).into_iter().chain(missing);
        let unknown = unknown.map(|text| format!("agents.overrides: {text}"));
        let unknown = unknown.chain(self.allowed_for_nothing(runtime, &report)).collect();
        let without_model = self.without_model(runtime);
        let without_tools = self.without_tools(runtime);
        let excluded = config.exclude.iter().chain(&without_model).chain(&without_tools).cloned();
        let team = Team::builder(self.registry.clone())
            .supplier(Supply::of(runtime))
            .delegation(config.delegation())
            .limits(config.limits())
            .background(config.background)
            .exclude(excluded.collect::<Vec<_>>());
        let team = match &config.allow {
            Some(names) => team.allow(names.clone()),
            None => team,
        };
        let team = team.build();
        Found { team, report, unusable, unknown, without_model, without_tools, entries }
    }

    /// Tells whether the user has seen the tools and rights of an agent of the project as they are now, and
    /// notes them either way.
    fn is_trusted_entry(&self, agent: &files::Loaded, entries: &mut Vec<ProjectEntry>) -> bool {
        let Some(trust) = &self.entry_trust else { return true };
        let files::Loaded { definition, source, .. } = agent;
        let path = source.path.canonicalize().unwrap_or_else(|_| source.path.clone());
        // Settings may name a directory of the project.
        let is_projects = source.origin == AgentOrigin::Project
            || (source.origin == AgentOrigin::Extra && path.starts_with(trust.root()));
        if !is_projects {
            return true;
        }
        let label = format!("agent `{}` of {}", definition.name, trust.relative(&path).display());
        let rights = rights_of(definition);
        let content = EntryContent::Agent {
            file: source.path.clone(),
            name: definition.name.clone(),
            rights: rights.clone(),
        };
        let entry = trust.entry(&label, &rights, &CommandWords::default(), content);
        let is_trusted = trust.admits(&entry);
        entries.push(entry);
        is_trusted
    }

    /// Returns the agents whose models cannot be asked here: there is no key, for instance. Whoever called one
    /// would get nothing of it. What a program registered is its own business.
    fn without_model(&self, runtime: &Runtime) -> BTreeSet<String> {
        let models = runtime.models();
        let agents = self.registry.list().into_iter();
        let agents = agents.filter(|agent| agent.layer() != AgentLayer::Program);
        let without = agents.filter(|agent| {
            let model = agent.model.model.as_deref();
            model.is_some_and(|name| models.resolve(Some(name)).is_err())
        });
        without.map(|agent| agent.name.clone()).collect()
    }

    /// Returns the agents that cannot be started for their tools, as those that name ones which there are not and
    /// which no server may bring: a call of one would only fail. What a program registered is its own business.
    fn without_tools(&self, runtime: &Runtime) -> BTreeSet<String> {
        let agents = self.registry.list().into_iter();
        let agents = agents.filter(|agent| agent.layer() != AgentLayer::Program);
        let without = agents.filter(|agent| runtime.tools_of(agent).is_err());
        without.map(|agent| agent.name.clone()).collect()
    }

    /// Returns what of the agents that the main one may call is none.
    fn allowed_for_nothing(&self, runtime: &Runtime, report: &LoadReport) -> Vec<String> {
        let Some(allow) = &runtime.config.agents.allow else { return Vec::new() };
        let mut names = self.registry.names();
        names.extend(shipped::all().into_iter().map(|agent| agent.name));
        names.extend(report.loaded.iter().map(|loaded| loaded.definition.name.clone()));
        let fits_none = |pattern: &&String| !names.iter().any(|name| wildcard(pattern, name));
        let unknown = allow.iter().filter(fits_none).map(|pattern| {
            let close = did_you_mean(&nearest(pattern, names.iter().map(String::as_str)));
            format!("agents.allow: there is no agent `{pattern}`{close}")
        });
        unknown.collect()
    }
}

/// Returns what an agent may use and do. Its prompt, its description, its model and its limits are no part of
/// that: none of them gives it more than its caller has.
fn rights_of(definition: &AgentDefinition) -> Value {
    let AgentDefinition { tools, policy, run, agents, .. } = definition;
    let names = |allow: &Vec<ToolChoice>| allow.iter().map(ToolChoice::name).collect::<Value>();
    let mut rights = json!({
        "tools": tools.allow.as_ref().map_or_else(|| json!("those of its caller"), names),
        "excluded": tools.exclude,
        "mode": policy.mode.map(Mode::as_str),
        "rules": policy.rules,
        "commands": policy.commands,
        "agents": agents,
        "workspace": run.workspace.map(|kind| kind.to_string()),
    });
    // A key that says nothing is left out, for whoever reads this. No commands is not the same as any.
    if let Some(rights) = rights.as_object_mut() {
        let is_said = |key: &str, value: &Value| match value {
            Value::Null => false,
            Value::Array(items) => !items.is_empty() || matches!(key, "tools" | "commands"),
            _ => true,
        };
        rights.retain(|key, value| is_said(key, value));
    }
    rights
}

/// Switches those off that are there only if somebody says so. A file may take the name of such a one: it is
/// then what the file says, and there.
fn with_defaults(overrides: &BTreeMap<String, AgentOverride>) -> BTreeMap<String, AgentOverride> {
    let mut all = overrides.clone();
    for definition in shipped::all() {
        let is_on = ON_BY_DEFAULT.contains(&definition.name.as_str());
        all.entry(definition.name).or_default().enabled.get_or_insert(is_on);
    }
    all
}

impl Runtime {
    fn found(&self) -> &Found {
        self.agents.found.get_or_init(|| self.agents.look(self))
    }

    /// Returns the agents there are.
    pub fn agents(&self) -> &AgentRegistry {
        self.found().team.registry()
    }

    /// Returns the agents that runs can call, and how.
    pub fn team(&self) -> &Team {
        &self.found().team
    }

    /// Returns tools and agents side by side.
    pub fn toolbox(&self) -> Toolbox {
        Toolbox::new(self.callable.clone(), Some(self.team().clone()))
    }

    /// Returns what came of reading the files of agents.
    pub fn agent_files(&self) -> &LoadReport {
        &self.found().report
    }

    /// Returns the entries of the project that start a program or widen rights, where each is trusted by itself.
    pub fn project_entries(&self) -> Vec<&ProjectEntry> {
        let servers = self.mcp.iter().flat_map(|servers| servers.entries());
        let is_judged = self.agents.entry_trust.is_some();
        let agents = is_judged.then(|| self.found().entries.iter()).into_iter().flatten();
        self.config.project_entries.iter().chain(servers).chain(agents).collect()
    }

    /// Says in one line which entries of a trusted project are left out, because they are new or changed since
    /// the user looked at them.
    pub fn entries_warning(&self) -> Option<String> {
        left_out_warning(self.project_entries())
    }

    /// Returns what people should know about agents that are not there or not what one would think: files that
    /// are wrong or not trusted, names that are taken, settings that cannot be used.
    pub fn agent_warnings(&self) -> Vec<String> {
        let untrusted = self.agent_files().untrusted.as_ref().map(not_trusted);
        let others = self.warnings_by_agent().into_iter().map(|(_, message)| message);
        untrusted.into_iter().chain(others).collect()
    }

    /// Returns the same for whoever begins a run: what is left out and what settings have wrong, and how many
    /// files there is something to say about.
    pub fn agent_warnings_in_short(&self) -> Vec<String> {
        let untrusted = self.agent_files().untrusted.as_ref().map(not_trusted);
        let mut files = self.warnings_of_files();
        let files = match files.len() {
            0 | 1 => files.pop().map(|(_, message)| message),
            several => {
                Some(format!("{several} warnings about agents; `convoke agents check` says which"))
            }
        };
        let settings = self.warnings_of_settings().into_iter().map(|(_, message)| message);
        untrusted.into_iter().chain(settings).chain(files).chain(self.lacking()).collect()
    }

    /// Says which agents the main agent would be offered if their models could be asked here, and their tools were
    /// there.
    fn lacking(&self) -> impl Iterator<Item = String> {
        let Found { without_model, without_tools, .. } = self.found();
        let models = ("its model cannot be asked here", "their models cannot be asked here");
        let tools = ("it cannot have tools that it names", "they cannot have tools that they name");
        [self.kept_back(without_model, models), self.kept_back(without_tools, tools)]
            .into_iter()
            .flatten()
    }

    /// Says which of these agents the main agent would be offered otherwise, and why it is not.
    fn kept_back(&self, names: &BTreeSet<String>, (one, all): (&str, &str)) -> Option<String> {
        let config = &self.config.agents;
        let fits = |patterns: &[String], name: &str| patterns.iter().any(|one| wildcard(one, name));
        let is_wanted = |name: &&String| {
            let is_allowed = config.allow.as_deref().is_none_or(|allow| fits(allow, name));
            is_allowed && !fits(&config.exclude, name)
        };
        let wanted = names.iter().filter(is_wanted);
        let names: Vec<String> = wanted.map(|name| format!("`{name}`")).collect();
        let (are, why) = match names.len() {
            0 => return None,
            1 => ("is", one),
            _ => ("are", all),
        };
        let names = names.join(", ");
        Some(format!(
            "{names} {are} not offered to the main agent: {why}; `convoke agents check` says more"
        ))
    }

    /// Returns what of that is about one agent, with what its own file says and is not used; and how much there is
    /// about others.
    pub fn warnings_about(&self, agent: &str) -> (Vec<String>, usize) {
        let (own, others): (Vec<_>, Vec<_>) =
            self.warnings_by_agent().into_iter().partition(|(of, _)| of.as_deref() == Some(agent));
        let mut own: Vec<String> = own.into_iter().map(|(_, message)| message).collect();
        let file = self.agent_files().loaded.iter().find(|one| one.definition.name == agent);
        own.extend(file.into_iter().flat_map(|one| &one.warnings).map(ToString::to_string));
        (own, others.len())
    }

    /// Returns what there is to know, with the agent that each is about, where that is known.
    fn warnings_by_agent(&self) -> Vec<(Option<String>, String)> {
        let files = self.warnings_of_files().into_iter();
        files.chain(self.warnings_of_settings()).collect()
    }

    /// What a file says on purpose, that it is not for here, is no warning.
    fn warnings_of_files(&self) -> Vec<(Option<String>, String)> {
        let report = self.agent_files();
        let of_file = |note: &FileNote| {
            let draft = report.drafts.iter().find(|draft| draft.source.path == note.path);
            let agent = draft.and_then(|draft| draft.definition.as_ref());
            (agent.map(|agent| agent.name.clone()), note.to_string())
        };
        let files = report.problems.iter().map(of_file);
        let shadowed = report.shadowed.iter();
        let shadowed =
            shadowed.map(|one| (Some(one.left_out.definition.name.clone()), one.to_string()));
        let replacing = report.loaded.iter().filter_map(|loaded| {
            let message = replaces_shipped(&loaded.definition, &loaded.source)?;
            let note = FileNote::new(&loaded.source.path, message);
            Some((Some(loaded.definition.name.clone()), note.to_string()))
        });
        files.chain(shadowed).chain(replacing).collect()
    }

    fn warnings_of_settings(&self) -> Vec<(Option<String>, String)> {
        let Found { unusable, unknown, .. } = self.found();
        let unusable = unusable.iter().map(|error| {
            let agent = match error {
                RegistryError::Invalid { agent, .. } => Some(agent.clone()),
                _ => None,
            };
            (agent, format!("agents.overrides: {error}"))
        });
        unusable.chain(unknown.iter().map(|text| (None, text.clone()))).collect()
    }

    /// Returns the tools an agent has below the main one.
    pub fn tools_of(&self, agent: &AgentDefinition) -> Result<ToolView, String> {
        agent.tools_below(&self.offered, self.ceiling())
    }

    /// Returns the names of tools that an agent asks for and cannot have below the main one.
    pub fn tools_missing(&self, agent: &AgentDefinition) -> Vec<String> {
        agent.tools_missing(self.ceiling())
    }

    /// Returns what an agent may use below a main one that has used nothing yet.
    pub fn budget_of(&self, agent: &AgentDefinition) -> Budget {
        agent.budget_below(&self.config.budget.budget())
    }

    /// Tells whether the main agent may call agents: where its tools were chosen, only if the tool for that
    /// is one of them.
    pub fn calls_agents(&self) -> bool {
        self.no_delegation().is_none()
    }

    /// Tells whether the model of an agent cannot be asked here.
    pub(super) fn lacks_model(&self, agent: &str) -> bool {
        self.found().without_model.contains(agent)
    }

    /// Tells whether an agent cannot be started for tools that it names.
    pub(super) fn lacks_tools(&self, agent: &str) -> bool {
        self.found().without_tools.contains(agent)
    }

    /// Returns what keeps the main agent from calling agents at all, if something does.
    pub(super) fn no_delegation(&self) -> Option<NotOffered> {
        let tools = &self.config.tools;
        let names =
            |pattern: &String| pattern == "category:agent" || wildcard(pattern, DELEGATE_TO_AGENT);
        if self.config.agents.delegation() == Delegation::Off {
            return Some(NotOffered::Delegation);
        }
        if tools.enabled.as_ref().is_some_and(|enabled| !enabled.iter().any(names)) {
            return Some(NotOffered::NotEnabled);
        }
        tools.exclude.iter().any(names).then_some(NotOffered::Excluded)
    }

    /// Returns the tools that agents may ask for by name: where somebody chose the tools, those.
    pub(super) fn ceiling(&self) -> &ToolView {
        match self.config.tools.enabled {
            Some(_) => &self.offered,
            None => &self.callable,
        }
    }
}

/// Says that agents of a project are left out, and what to do.
fn not_trusted(left_out: &Untrusted) -> String {
    let Untrusted { root, files } = left_out;
    let agents = if *files == 1 { "1 agent is".to_owned() } else { format!("{files} agents are") };
    let message = format!(
        "{agents} left out, because this project is not trusted; look at them, then run `convoke config \
         trust`, or pass `--trust-project` for one run; in CI set `CONVOKE_TRUST_PROJECT=1`"
    );
    FileNote::new(root, message).to_string()
}
