//! What commands share: where they work, the configuration that holds there, and the runtime.
//!
//! Nothing is done before a command asks for it.

use std::cell::OnceCell;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use convoke::agent::files::{self, AgentDirectory, AgentOrigin, ProjectTrust, usual_directories};
use convoke::config::{
    Config, EntryTrust, Loaded, MoreTools, ProjectEntry, Sources, Trust, TrustedEntries, load,
};
use convoke::journal::Store;
use convoke::{McpPlaces, PROJECT_SERVERS, Runtime, Workspace, Workspaces};
use convoke_core::{Cause, Mode};

use crate::cli::Global;
use crate::environment::{self, CONFIG, Environment, STATE};
use crate::failure::{self, Failure};
use crate::output::Output;
use crate::trust::{self, TrustFile};
use crate::view::amounts;

/// The name of the user's file in the directory of the user's configuration.
const USER_FILE_NAME: &str = "convoke.yml";
/// The name of the file for rules that were saved.
const RULES_FILE_NAME: &str = "rules.yml";

/// Where a command works, and what it was told.
#[derive(Debug)]
pub(crate) struct Session<'a> {
    global: &'a Global,
    environment: Environment,
    working_directory: PathBuf,
    /// Found out when the configuration is loaded.
    project: OnceCell<Project>,
}

/// The project that is worked on, as far as its agents are concerned.
#[derive(Clone, Debug)]
struct Project {
    root: Option<PathBuf>,
    trust: ProjectTrust,
    /// The entries that are trusted, where each is trusted by itself.
    entries: Option<Arc<TrustedEntries>>,
}

/// What a user sees who looks at a project before trusting it.
#[derive(Debug)]
pub(crate) struct Look {
    pub(crate) loaded: Loaded,
    pub(crate) entries: Vec<ProjectEntry>,
    /// Warnings about MCP servers.
    pub(crate) servers: Vec<String>,
}

/// Whether a command only looks at the agents of a project, so that all of them count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Looking {
    Yes,
    No,
}

impl<'a> Session<'a> {
    /// Finds out where the command works.
    pub(crate) fn open(global: &'a Global, environment: Environment) -> Result<Self, Failure> {
        let start = environment::current_directory().map_err(|error| {
            Failure::failed("there is no working directory")
                .because(&error)
                .hint("it may have been removed; change to another one")
        })?;
        let wanted = global.cwd.as_ref().map_or(start.clone(), |directory| start.join(directory));
        let working_directory = wanted.canonicalize().map_err(|error| {
            Failure::usage(format!("the directory `{}` cannot be used", wanted.display()))
                .because(&error)
        })?;
        if !working_directory.is_dir() {
            let shown = working_directory.display();
            return Err(Failure::usage(format!("`{shown}` is not a directory")));
        }
        Ok(Self { global, environment, working_directory, project: OnceCell::new() })
    }

    /// Returns the directory the command works in, links followed.
    pub(crate) fn working_directory(&self) -> &Path {
        &self.working_directory
    }

    /// Returns what was read from the process.
    pub(crate) const fn environment(&self) -> &Environment {
        &self.environment
    }

    /// Returns the full path of what was named on the command line.
    pub(crate) fn absolute(&self, path: &Path) -> PathBuf {
        self.working_directory.join(path)
    }

    /// Returns where configuration comes from, with whether the project is trusted.
    pub(crate) fn sources(&self) -> Result<Sources, Failure> {
        let mut sources = Sources::new(&self.working_directory);
        sources.more_tools = MoreTools::None;
        sources.user_file = self.user_file()?;
        sources.rules_file = self.rules_file();
        sources.home = self.environment.home();
        sources.environment = self.environment.variables();
        sources.flags.clone_from(&self.global.set);
        sources.trust = self.trust(&sources)?;
        Ok(sources)
    }

    /// Loads the configuration, and says what in it was ignored.
    pub(crate) fn load(&self, output: &mut Output) -> Result<Loaded, Failure> {
        let sources = self.sources()?;
        let loaded = load(&sources)?;
        failure::warn(output, loaded.warnings());
        self.learn(&sources);
        Ok(loaded)
    }

    /// Finds out about the project from the sources of a configuration that was loaded.
    pub(crate) fn learn(&self, sources: &Sources) {
        self.project.get_or_init(|| {
            let entries = match &sources.trust {
                Trust::Entries(entries) => Some(Arc::clone(entries)),
                _ => None,
            };
            let trust = sources.trust.is_given().into();
            Project { root: sources.project_root(), trust, entries }
        });
    }

    /// Returns the entries of the project in this directory that start a program or widen rights, whether they
    /// are trusted or not. Mistakes of its file are among the warnings of the configuration.
    pub(crate) fn look_at(
        &self,
        sources: &Sources,
        entries: Arc<TrustedEntries>,
    ) -> Result<Look, Failure> {
        let loaded = load(sources)?;
        let root = Some(self.working_directory.clone());
        let (trust, entries) = (ProjectTrust::Trusted, Some(entries));
        self.project.get_or_init(|| Project { root, trust, entries });
        let mut config = loaded.config.clone();
        // A hook that cannot be used stops a runtime, and is to be seen here all the same.
        config.hooks.clear();
        let runtime = self.runtime(config)?;
        let entries = runtime.project_entries().into_iter().cloned().collect();
        let servers = runtime.mcp().map(|servers| servers.common_warnings()).unwrap_or_default();
        Ok(Look { loaded, entries, servers })
    }

    /// Returns where files of agents usually are: the project's, then the user's.
    pub(crate) fn agent_directories(&self) -> Vec<AgentDirectory> {
        let root = self.project.get().and_then(|project| project.root.as_deref());
        let config = self.environment.config_directory();
        usual_directories(root, self.environment.home().as_deref(), config.as_deref())
    }

    /// Returns where agents of the project go.
    pub(crate) fn project_agents(&self) -> PathBuf {
        self.project_directory().join(".convoke/agents")
    }

    /// Tells whether agents of the project may be used.
    fn project_trust(&self) -> ProjectTrust {
        self.project.get().map_or(ProjectTrust::Untrusted, |project| project.trust)
    }

    /// Says how the agents of the project come to be used, where it is not trusted.
    pub(crate) fn how_to_trust(&self) -> Option<String> {
        self.project.get().filter(|one| one.trust == ProjectTrust::Untrusted)?;
        let how = "look at what is in it, then run `convoke config trust`, or pass `--trust-project` for one run";
        Some(how.to_owned())
    }

    /// Returns the file of an agent that is there and cannot be used, because the project is not trusted.
    pub(crate) fn untrusted_agent(&self, name: &str) -> Option<PathBuf> {
        if self.project_trust() == ProjectTrust::Trusted {
            return None;
        }
        let mut directories = self.agent_directories();
        directories.retain(|directory| directory.origin == AgentOrigin::Project);
        let report = files::load(&directories, ProjectTrust::Trusted);
        let loaded = report.loaded.iter().map(|one| (&one.source, Some(&one.definition)));
        let drafts = report.drafts.iter().map(|one| (&one.source, one.definition.as_ref()));
        let mut all = loaded.chain(drafts);
        let found = all.find(|(_, agent)| agent.is_some_and(|agent| agent.name == name));
        found.map(|(source, _)| source.path.clone())
    }

    /// Makes a runtime that works here.
    pub(crate) fn runtime(&self, config: Config) -> Result<Runtime, Failure> {
        self.runtime_in(Mode::Default, config, None, None)
    }

    /// Makes a runtime that works here, as freely as the mode says, and keeps runs in the store.
    pub(crate) fn runtime_in(
        &self,
        mode: Mode,
        config: Config,
        store: Option<Store>,
        workspace: Option<Workspace>,
    ) -> Result<Runtime, Failure> {
        self.runtime_trusting(Looking::No, mode, config, store, workspace)
    }

    /// Makes a runtime that knows the project's agents, whether they may be used or not, for whoever only
    /// looks at them.
    pub(crate) fn runtime_looking(&self, config: Config) -> Result<Runtime, Failure> {
        self.runtime_trusting(Looking::Yes, Mode::Default, config, None, None)
    }

    fn runtime_trusting(
        &self,
        looking: Looking,
        mode: Mode,
        config: Config,
        store: Option<Store>,
        workspace: Option<Workspace>,
    ) -> Result<Runtime, Failure> {
        let trust = match looking {
            Looking::Yes => ProjectTrust::Trusted,
            Looking::No => self.project_trust(),
        };
        let entries = self.project.get().and_then(|project| project.entries.clone());
        let entries = entries.filter(|_| looking == Looking::No);
        let entry_trust = entries.map(|entries| {
            EntryTrust::new(&self.project_directory(), &self.working_directory, entries)
        });
        Ok(Runtime::builder(&self.working_directory)
            .entry_trust(entry_trust)
            .workspace(workspace)
            .workspaces(self.workspaces(&config))
            .agent_directories(self.agent_directories(), trust)
            .mcp(self.mcp_places(trust))
            .config(config)
            .mode(mode)
            .store(store)
            .hide(self.kept_from_tools()?)
            .home(self.environment.home())
            .environment(self.environment.variables())
            .build()?)
    }

    /// Returns what MCP servers may use: a project's file is read only if the project is trusted.
    fn mcp_places(&self, trust: ProjectTrust) -> McpPlaces {
        let mut places = McpPlaces::default();
        places.cache = self.environment.cache_directory().map(|cache| cache.join("mcp"));
        places.logins = self.logins();
        places.project = (trust == ProjectTrust::Trusted).then(|| self.project_directory());
        places
    }

    /// Returns what no tool and no program may touch: what is remembered, and what the user configured.
    fn kept_from_tools(&self) -> Result<Vec<PathBuf>, Failure> {
        let own = [
            self.state_directory(),
            self.environment.config_directory(),
            self.user_file()?,
            self.logins(),
        ];
        Ok(own.into_iter().flatten().collect())
    }

    /// Says it where programs run with more rights than one would think.
    pub(crate) fn warn_of_programs(runtime: &Runtime, output: &mut Output) {
        if let Some(message) = runtime.programs().warning() {
            failure::doubt(output, &message);
        }
    }

    /// Says in one line which entries of the project are left out.
    pub(crate) fn warn_of_entries(runtime: &Runtime, output: &mut Output) {
        if let Some(message) = runtime.entries_warning() {
            failure::warning(output, &message);
        }
    }

    /// Says in a few lines which agents are not there, to whoever begins to work.
    pub(crate) fn warn_of_agents_in_short(runtime: &Runtime, output: &mut Output) {
        for message in runtime.agent_warnings_in_short() {
            failure::warning(output, &message);
        }
    }

    /// Says which agents are not there, and why.
    pub(crate) fn warn_of_agents(runtime: &Runtime, output: &mut Output) {
        Self::warn_of_entries(runtime, output);
        for message in runtime.agent_warnings() {
            failure::warning(output, &message);
        }
    }

    /// Says what there is to know about MCP servers that stops nothing, and which of the project are not used.
    /// Of servers that are confined here, only those are told that nothing is known of: they are started.
    pub(crate) fn warn_of_servers(&self, runtime: &Runtime, output: &mut Output) {
        self.warn_of_servers_in_common(runtime, output);
        let statuses = runtime.mcp().map(|servers| servers.servers().status()).unwrap_or_default();
        let is_started = |name: &str| {
            statuses.iter().any(|status| status.name == name && status.asked.is_none())
        };
        Self::warn_of_places(is_started, runtime, output);
    }

    /// Says which of some servers are confined for the folder that they start in.
    pub(crate) fn warn_of_places(
        concerns: impl Fn(&str) -> bool,
        runtime: &Runtime,
        output: &mut Output,
    ) {
        let servers = runtime.mcp();
        if let Some(message) = servers.and_then(|servers| servers.place_warning(concerns)) {
            failure::warning(output, &message);
        }
    }

    /// Says what there is to know whichever servers are used.
    pub(crate) fn warn_of_servers_in_common(&self, runtime: &Runtime, output: &mut Output) {
        Self::warn_of_entries(runtime, output);
        for message in runtime.mcp().into_iter().flat_map(|servers| servers.common_warnings()) {
            failure::warning(output, &message);
        }
        if let Some(file) = self.untrusted_servers() {
            let shown = file.display();
            failure::warning(output, &format!("{shown} is not used: this project is not trusted"));
            if let Some(how) = self.how_to_trust() {
                failure::hint(output, &how);
            }
        }
    }

    /// Says what there is to know about one agent, and how much about others. Whoever wants few words gets none.
    pub(crate) fn warn_of_agent(name: &str, runtime: &Runtime, output: &mut Output) {
        if output.is_quiet() {
            return;
        }
        let (own, others) = runtime.warnings_about(name);
        for message in own {
            failure::warning(output, &message);
        }
        if others > 0 {
            let warnings = amounts::count(others as u64, "warning");
            let message =
                format!("{warnings} about other agents; `convoke agents check` says which");
            failure::warning(output, &message);
        }
    }

    /// Returns the project's file with servers that are not used, because the project is not trusted.
    pub(crate) fn untrusted_servers(&self) -> Option<PathBuf> {
        if self.project_trust() == ProjectTrust::Trusted {
            return None;
        }
        Some(self.project_directory().join(PROJECT_SERVERS)).filter(|file| file.is_file())
    }

    /// Returns the project's directory.
    pub(crate) fn project_directory(&self) -> PathBuf {
        let root = self.project.get().and_then(|project| project.root.clone());
        root.unwrap_or_else(|| self.working_directory.clone())
    }

    /// Returns the user's own file, which need not be there.
    pub(crate) fn own_file(&self) -> Result<PathBuf, Failure> {
        self.user_file()?.ok_or_else(|| {
            Failure::new(Cause::State, "there is no home directory, so no file of yours")
                .hint(format!("--config or {CONFIG} names one"))
        })
    }

    /// Returns where logins to MCP servers are kept.
    pub(crate) fn logins(&self) -> Option<PathBuf> {
        Some(self.environment.data_directory()?.join("mcp-tokens"))
    }

    /// Returns where runs are kept. Without a home directory there is no such place, which is said.
    pub(crate) fn store(&self, output: &mut Output) -> Option<Store> {
        let place = self.state_directory();
        if place.is_none() && !output.is_quiet() {
            let problem = "there is no home directory, so nothing of this run is kept";
            failure::warning(output, &format!("{problem}; --state or {STATE} names a place"));
        }
        place.map(Store::at)
    }

    /// Returns where runs were kept until now.
    pub(crate) fn existing_store(&self) -> Result<Store, Failure> {
        self.state_directory().map(Store::at).ok_or_else(|| {
            Failure::new(
                Cause::State,
                "there is no home directory, so no place where runs are kept",
            )
            .hint(format!("--state or {STATE} names one"))
        })
    }

    /// Returns where workspaces of runs are kept, if there is such a place.
    pub(crate) fn workspaces(&self, config: &Config) -> Option<Workspaces> {
        let directory = self.environment.data_directory()?.join("workspaces");
        Some(self.workspaces_at(&directory, config))
    }

    /// Returns workspaces that are kept in this directory.
    pub(crate) fn workspaces_at(&self, directory: &Path, config: &Config) -> Workspaces {
        Workspaces::at(directory)
            .environment(self.environment.variables())
            .home(self.environment.home())
            .sandbox(config.sandbox.clone())
    }

    fn state_directory(&self) -> Option<PathBuf> {
        let named = self.global.state.as_ref().map(|path| self.absolute(path));
        named.or_else(|| self.environment.state_directory())
    }

    /// Returns a session that works in another directory.
    pub(crate) fn moved_to(&self, directory: &Path) -> Session<'a> {
        Self {
            global: self.global,
            environment: self.environment.clone(),
            working_directory: directory.to_owned(),
            project: OnceCell::new(),
        }
    }

    /// The file that was named has to be there; the usual one need not.
    fn user_file(&self) -> Result<Option<PathBuf>, Failure> {
        let named = match (&self.global.config, self.environment.config_file()) {
            (Some(path), _) => Some(("--config", self.absolute(path))),
            (None, Some(path)) => Some((CONFIG, self.absolute(&path))),
            (None, None) => None,
        };
        match named {
            Some((how, path)) if !path.exists() => {
                let message = format!("the configuration file `{}` is not there", path.display());
                Err(Failure::configuration(message).hint(format!("it is named by {how}")))
            }
            Some((_, path)) => Ok(Some(path)),
            None => Ok(self.environment.config_directory().map(|path| path.join(USER_FILE_NAME))),
        }
    }

    /// Returns where rules are saved that were allowed for good: beside the usual file, for whoever uses it.
    pub(crate) fn rules_file(&self) -> Option<PathBuf> {
        let named = self.global.config.is_some() || self.environment.config_file().is_some();
        let directory = self.environment.config_directory().filter(|_| !named)?;
        Some(directory.join(RULES_FILE_NAME))
    }

    fn trust(&self, sources: &Sources) -> Result<Trust, Failure> {
        if self.global.trust_project || self.environment.trusts_project()? {
            return Ok(Trust::Trusted);
        }
        // Without a place for the list nothing is on it.
        match (trust::folder_of(sources), self.environment.config_directory()) {
            (Some(folder), Some(_)) => {
                Ok(TrustFile::read(&self.environment)?.store().trust(&folder))
            }
            _ => Ok(Trust::Untrusted),
        }
    }
}
