//! Where a runtime works, and what its calls and its programs may use there.
//!
//! A run with files of its own, and an agent with some, works in another place than the runtime was made for.
//! What does not depend on the place is in [`Setup`]; it makes a [`Ground`] for any place.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use convoke_core::policy::{Authority, Policy, RuleError};
use convoke_core::{Kind, Mode, Permission, TaskId, WorkspaceKind};
use convoke_sandbox::secrets_of;
use convoke_tool::{Clock, ReadCache, RealPlaces, Roots, SessionEnvironment, Spawner, ToolContext};

use super::RuntimeError;
use super::rules::{denied_inside, nothing_there, permissions, sandbox, with_built_in_rules};
use crate::config::Config;
use crate::later::{LaterFiles, WatchingSpawner};
use crate::programs::{self, GitSettings, Programs};
use crate::workspace::Workspace;

/// How many bytes of unchanged files are remembered.
const READ_CACHE_BYTES: usize = 64 * 1024 * 1024;

/// What of a runtime does not depend on where it works.
#[derive(Debug)]
pub(super) struct Setup {
    pub(super) config: Arc<Config>,
    pub(super) task: TaskId,
    pub(super) variables: BTreeMap<String, String>,
    pub(super) clock: Arc<dyn Clock>,
    /// What starts programs, where somebody gave it.
    pub(super) spawner: Option<Arc<dyn Spawner>>,
    pub(super) mode: Mode,
    pub(super) home: Option<PathBuf>,
    /// What is kept from tools and programs.
    pub(super) hidden: Vec<PathBuf>,
    /// Where changes of files that run later are kept.
    pub(super) aside: Option<PathBuf>,
    /// Whether the project is trusted.
    pub(super) is_trusted: bool,
}

/// Where a run works: what its calls may use, and what holds there.
#[derive(Debug)]
pub(super) struct Ground {
    pub(super) context: ToolContext,
    pub(super) programs: Programs,
    pub(super) permissions: BTreeMap<Kind, Permission>,
    pub(super) policy: Policy,
    pub(super) variables: BTreeMap<String, String>,
}

/// What is special about the files in a context. Its calls do not need it; whoever makes a place for an agent
/// below does.
#[derive(Clone, Debug)]
pub(super) struct Footing {
    kind: WorkspaceKind,
    /// What is kept from tools and programs there.
    hidden: Vec<PathBuf>,
    /// What rules deny to everybody there.
    denied: Vec<PathBuf>,
}

impl Footing {
    /// Finds out what kind of files a context has.
    pub(super) fn kind(context: &ToolContext) -> WorkspaceKind {
        context.extension::<Self>().map_or(WorkspaceKind::Shared, |footing| footing.kind)
    }

    /// Lists what nobody may see there.
    pub(super) fn kept_back(&self) -> impl Iterator<Item = &PathBuf> {
        self.hidden.iter().chain(&self.denied)
    }

    /// What is kept from somebody is kept from him in a workspace that is made of the same files.
    fn seen_from(mut self, workspace: Option<&Workspace>) -> Self {
        let Some(workspace) = workspace else { return self };
        let mut places = RealPlaces::default();
        let mut own = |paths: &[PathBuf]| -> Vec<PathBuf> {
            let spelled = paths.iter().flat_map(|path| [places.of(path), path.clone()]);
            spelled.filter_map(|path| workspace.own_path(&path)).collect()
        };
        let (hidden, mut denied) = (own(&self.hidden), own(&self.denied));
        // A rule on the directory above may be about its name alone.
        denied.retain(|path| Some(path.as_path()) != workspace.root());
        for (paths, own) in [(&mut self.hidden, hidden), (&mut self.denied, denied)] {
            paths.extend(own);
            paths.sort();
            paths.dedup();
        }
        self
    }
}

impl Setup {
    /// Returns what holds in a directory of the user, or in what a caller has.
    pub(super) fn footing(
        &self,
        caller: Option<&ToolContext>,
        directory: &Path,
    ) -> Result<Footing, RuleError> {
        if let Some(known) = caller.and_then(ToolContext::extension::<Footing>) {
            return Ok(known.as_ref().clone());
        }
        let home = self.home.as_deref();
        let mut hidden = secrets_of(home);
        hidden.extend(self.hidden.iter().chain(&self.config.sandbox.hidden).cloned());
        let written = self.config.policy.policy(self.mode, home.and_then(Path::to_str))?;
        let denied = Authority::new(written).denied_paths(directory);
        Ok(Footing { kind: WorkspaceKind::Shared, hidden, denied })
    }

    /// Makes the ground for runs in a workspace, or in a directory as it is. Of the directories that are
    /// allowed, those that the workspace has count. What the footing keeps back is kept back here too.
    pub(super) fn ground(
        &self,
        working_directory: PathBuf,
        allowed: Option<Vec<PathBuf>>,
        workspace: Option<&Workspace>,
        footing: Footing,
    ) -> Result<Ground, RuntimeError> {
        let config = &self.config;
        let place = Place::of(workspace, working_directory, allowed, self.variables.clone())?;
        let Place { working_directory, roots, writable, untouched, variables } = place;
        let home = self.home.as_deref();
        let written = config.policy.policy(self.mode, home.and_then(Path::to_str))?;
        let kind = workspace.map_or(WorkspaceKind::Shared, Workspace::kind);
        let footing = Footing { kind, ..footing.seen_from(workspace) };
        let known = Authority::new(written.clone()).denied_paths(&working_directory);
        let moved: Vec<_> =
            footing.denied.iter().filter(|path| !known.contains(path)).cloned().collect();
        let written = written.layer(nothing_there(&moved)?);
        // What is not there need not be hidden, which not every sandbox can do.
        let (there, missing): (Vec<_>, Vec<_>) = footing
            .hidden
            .iter()
            .filter(|path| workspace.is_some() && roots.iter().any(|root| path.starts_with(root)))
            .cloned()
            .partition(|path| path.symlink_metadata().is_ok());
        let denied = denied_inside(&written, &roots, &working_directory);
        let is_readonly = kind == WorkspaceKind::Readonly;
        let mut permissions = permissions(config, self.mode, is_readonly);
        let servers = &config.tools.mcp_files;
        let later = LaterFiles::new(&writable, servers, self.aside.clone());
        let (programs, spawner) = match &self.spawner {
            Some(spawner) => (Programs::Given, Arc::clone(spawner)),
            None => Programs::choose(
                &sandbox(config, is_readonly),
                permissions.get(&Kind::Execute).copied(),
                &programs::confinement(
                    writable,
                    variables.get("TMPDIR"),
                    home,
                    [self.hidden.clone(), there].concat(),
                    &untouched,
                    &config.tools.mcp_files,
                ),
                &[denied, missing].concat(),
            ),
        };
        let spawner: Arc<dyn Spawner> = match programs {
            Programs::Confined(..) | Programs::Unlimited(..) => {
                Arc::new(WatchingSpawner::new(spawner, later))
            }
            _ => spawner,
        };
        let spawner: Arc<dyn Spawner> = match programs {
            Programs::Given => spawner,
            _ => Arc::new(GitSettings::new(spawner, self.is_trusted)),
        };
        permissions.entry(Kind::Execute).and_modify(|execute| *execute = programs.limit(*execute));
        let policy = with_built_in_rules(written, servers, &programs, is_readonly)?;
        let cache = config.tools.read_cache;
        let context = ToolContext::builder(self.task.clone())
            .roots(Roots::open(roots)?.hiding(footing.hidden.iter().chain(&moved)))
            .working_directory(working_directory)
            .environment(
                SessionEnvironment::new(variables.clone())
                    .granting(config.tools.environment.clone()),
            )
            .clock(Arc::clone(&self.clock))
            .spawner(spawner)
            .read_cache(if cache { ReadCache::new(READ_CACHE_BYTES) } else { ReadCache::off() })
            .build()
            .with_extension(Arc::new(footing));
        Ok(Ground { context, programs, permissions, policy, variables })
    }
}

/// Where a run works, and what may be written there.
struct Place {
    working_directory: PathBuf,
    roots: Vec<PathBuf>,
    /// Where programs may write.
    writable: Vec<PathBuf>,
    /// Where they must not, whatever else they may.
    untouched: Vec<PathBuf>,
    variables: BTreeMap<String, String>,
}

impl Place {
    fn of(
        workspace: Option<&Workspace>,
        working_directory: PathBuf,
        allowed: Option<Vec<PathBuf>>,
        mut variables: BTreeMap<String, String>,
    ) -> Result<Self, RuntimeError> {
        let wanted = workspace.map_or(working_directory, Workspace::working_directory);
        let working_directory = wanted
            .canonicalize()
            .map_err(|source| RuntimeError::WorkingDirectory { path: wanted, source })?;
        let roots = match workspace.and_then(|it| it.root().map(|root| (it, root))) {
            // What was allowed elsewhere is not part of the workspace.
            Some((own, root)) => match allowed {
                Some(paths) => paths.iter().filter_map(|path| own.own_path(path)).collect(),
                None => vec![root.to_owned()],
            },
            None => allowed.unwrap_or_else(|| vec![working_directory.clone()]),
        };
        let mut untouched = workspace.map(Workspace::untouched).unwrap_or_default();
        let mut writable = match workspace {
            Some(workspace) if workspace.kind() == WorkspaceKind::Readonly => {
                untouched.extend(roots.iter().cloned());
                Vec::new()
            }
            Some(workspace) => [roots.clone(), workspace.writable()].concat(),
            None => roots.clone(),
        };
        if let Some(workspace) = workspace
            && programs::needs_own_temporary(variables.get("TMPDIR"), &untouched)
        {
            let own = workspace.temporary().map_err(|source| RuntimeError::WorkingDirectory {
                path: working_directory.clone(),
                source,
            })?;
            if let Some(own) = own {
                variables.insert("TMPDIR".to_owned(), own.to_string_lossy().into_owned());
                writable.push(own);
            }
        }
        Ok(Self { working_directory, roots, writable, untouched, variables })
    }
}

/// Says what a model has to know about files of this kind.
pub(super) fn described(kind: WorkspaceKind) -> Option<String> {
    let said = match kind {
        WorkspaceKind::Shared => return None,
        WorkspaceKind::Readonly => "read-only; files cannot be changed",
        WorkspaceKind::Worktree => {
            "a git worktree of your own; your user decides later what is taken over, so do not merge or push"
        }
        WorkspaceKind::Copy => {
            "a copy of your own, without git; your user decides later what is taken over"
        }
    };
    Some(said.to_owned())
}
