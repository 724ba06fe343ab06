//! How a runtime starts programs: confined where that can be enforced, and never less confined than the
//! configuration says without somebody being asked.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use convoke_core::{Permission, ToolError};
use convoke_sandbox::{Backend, ConfinedSpawner, Confinement, GuardedSpawner, NotEnforceable};
use convoke_tool::{NoProcesses, Process, Program, Spawner};

use crate::config::{SandboxConfig, SandboxMode};
use crate::protect;

/// How programs are started.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Programs {
    /// They are not allowed.
    NotAllowed,
    /// Confined, by this backend.
    Confined(Confinement, Backend),
    /// Confined, by this backend, but without limits on what all processes of one use together, which cannot
    /// be held here; so each is asked about.
    Unlimited(Confinement, Backend, NotEnforceable),
    /// With all rights, because the user said so (`sandbox.mode: off`).
    Off,
    /// With all rights, each asked about, because they cannot be confined.
    Asked(NotEnforceable),
    /// Not at all, because they cannot be confined and have to be (`sandbox.mode: required`).
    Refused(NotEnforceable),
    /// By a spawner that was given to the runtime.
    Given,
}

impl Programs {
    /// Decides how programs start. What is `denied` is hidden from them where that can be done. Where it
    /// cannot, they are confined all the same: the policy asks before a command that may touch it.
    pub(crate) fn choose(
        settings: &SandboxConfig,
        execute: Option<Permission>,
        confinement: &Confinement,
        denied: &[PathBuf],
    ) -> (Self, Arc<dyn Spawner>) {
        if matches!(execute, Some(Permission::Deny) | None) {
            return (Self::NotAllowed, Arc::new(NoProcesses));
        }
        if settings.mode == SandboxMode::Off {
            return (Self::Off, Arc::new(GuardedSpawner));
        }
        match confine(settings, confinement, denied) {
            Ok(spawner) => {
                let confined = Self::Confined(spawner.confinement().clone(), spawner.backend());
                (confined, Arc::new(spawner))
            }
            Err(reason) if settings.mode == SandboxMode::Auto => {
                Self::asked(settings, confinement, denied, reason)
            }
            Err(reason) => (Self::Refused(reason.clone()), Arc::new(Refusing(reason))),
        }
    }

    /// Keeps the walls where only a limit cannot be held.
    fn asked(
        settings: &SandboxConfig,
        confinement: &Confinement,
        denied: &[PathBuf],
        reason: NotEnforceable,
    ) -> (Self, Arc<dyn Spawner>) {
        let mut alone = settings.clone();
        (alone.limits.memory, alone.limits.cpu) = (None, None);
        let confined = (alone != *settings).then(|| confine(&alone, confinement, denied).ok());
        match confined.flatten() {
            None => (Self::Asked(reason), Arc::new(GuardedSpawner)),
            Some(spawner) => {
                let (confinement, backend) = (spawner.confinement().clone(), spawner.backend());
                (Self::Unlimited(confinement, backend, reason), Arc::new(spawner))
            }
        }
    }

    /// Returns the permission to start one, at most as free as was decided.
    pub(crate) fn limit(&self, execute: Permission) -> Permission {
        match self {
            Self::Asked(_) | Self::Unlimited(..) => execute.max(Permission::Ask),
            _ => execute,
        }
    }

    /// Returns what starts the hooks of a project: what starts programs, but nothing that would be asked
    /// about, since nobody is asked about a hook.
    pub(crate) fn of_project_hooks(&self, programs: &Arc<dyn Spawner>) -> Arc<dyn Spawner> {
        match self {
            Self::Asked(reason) | Self::Unlimited(_, _, reason) => {
                Arc::new(Refusing(reason.clone()))
            }
            _ => Arc::clone(programs),
        }
    }

    /// Returns how programs are confined, in a word.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::NotAllowed => "no programs",
            Self::Confined(_, Backend::Landlock) => "landlock",
            Self::Confined(_, Backend::Bubblewrap) => "bubblewrap",
            Self::Unlimited(_, Backend::Landlock, _) => "landlock without limits, each asked about",
            Self::Unlimited(_, Backend::Bubblewrap, _) => {
                "bubblewrap without limits, each asked about"
            }
            Self::Off => "off",
            Self::Asked(_) => "none, each asked about",
            Self::Refused(_) => "none, so no programs",
            Self::Given => "given",
        }
    }

    /// Says which directories that all share programs cannot write, and why: Landlock cannot hide what lies
    /// in a directory that may be written.
    pub fn closed(&self) -> Option<String> {
        let (Self::Confined(confinement, backend) | Self::Unlimited(confinement, backend, _)) =
            self
        else {
            return None;
        };
        let closed = confinement.closed(*backend);
        let (first, hidden) = closed.first()?;
        let (first, hidden) = (first.display(), hidden.display());
        Some(format!(
            "programs cannot write in `{first}`, since `{hidden}` lies there and is hidden; they have \
             another directory for temporary files (TMPDIR)"
        ))
    }

    /// Says what a user should know: nothing, if programs are confined or do not run.
    pub fn warning(&self) -> Option<String> {
        match self {
            Self::NotAllowed | Self::Confined(..) | Self::Given => None,
            Self::Unlimited(_, _, reason) => Some(format!(
                "programs run confined but without a limit, each after a question: {reason}"
            )),
            Self::Off => Some("programs run without the sandbox (`sandbox.mode: off`)".to_owned()),
            Self::Asked(reason) => {
                Some(format!("programs run without the sandbox, each after a question: {reason}"))
            }
            Self::Refused(reason) => Some(format!("programs do not run: {reason}")),
        }
    }
}

/// Makes a spawner of confined programs that hides what is denied, or one that does not where that cannot be
/// done.
fn confine(
    settings: &SandboxConfig,
    confinement: &Confinement,
    denied: &[PathBuf],
) -> Result<ConfinedSpawner, NotEnforceable> {
    let hiding = (!denied.is_empty())
        .then(|| denied.iter().fold(confinement.clone(), Confinement::hide))
        .and_then(|confinement| settings.spawner(confinement).ok());
    hiding.map_or_else(|| settings.spawner(confinement.clone()), Ok)
}

/// The directory for temporary files, if nobody names another.
const TEMPORARY: &str = "/tmp";

/// What programs of a runtime may do: read all but secrets, write where tools may and in the directory
/// for temporary files; not the files that MCP servers come from.
pub(crate) fn confinement(
    roots: Vec<PathBuf>,
    temporary: Option<&String>,
    home: Option<&Path>,
    hidden: Vec<PathBuf>,
    untouched: &[PathBuf],
    servers: &[PathBuf],
) -> Confinement {
    let temporary = temporary.map_or_else(|| PathBuf::from(TEMPORARY), PathBuf::from);
    // Git writes its configuration in daily work; what it wrote is judged when a program has ended.
    let mut protected = protect::from_programs(&roots, servers);
    protected.retain(|path| !path.ends_with(".git/config"));
    protected.extend(roots.iter().map(|root| root.join(".convoke")));
    let mut confinement = Confinement::for_commands(roots, temporary, home).protect(protected);
    confinement.scratch.retain(|scratch| !holds(scratch, untouched));
    hidden.into_iter().fold(confinement, Confinement::hide)
}

/// Tells whether programs need another directory for temporary files, since something lies in the usual one
/// that they must not write.
pub(crate) fn needs_own_temporary(temporary: Option<&String>, untouched: &[PathBuf]) -> bool {
    holds(Path::new(temporary.map_or(TEMPORARY, String::as_str)), untouched)
}

fn holds(directory: &Path, untouched: &[PathBuf]) -> bool {
    let real = directory.canonicalize().unwrap_or_else(|_| directory.to_owned());
    untouched.iter().any(|path| path.starts_with(&real) || real.starts_with(path))
}

/// Settings of git that hold for every program of a tool: a directory that looks like a repository is none, and
/// nothing is started to watch files.
const ALWAYS: [(&str, &str); 2] =
    [("safe.bareRepository", "explicit"), ("core.fsmonitor", "false")];
/// Settings of git that hold where the project is not trusted as well: it brings no hooks along.
const UNTRUSTED: [(&str, &str); 1] = [("core.hooksPath", "/dev/null")];
const GIT_COUNT: &str = "GIT_CONFIG_COUNT";

/// Starts programs with settings of git that a repository cannot overrule.
#[derive(Debug)]
pub(crate) struct GitSettings {
    inner: Arc<dyn Spawner>,
    settings: Vec<(&'static str, &'static str)>,
}

impl GitSettings {
    pub(crate) fn new(inner: Arc<dyn Spawner>, is_trusted: bool) -> Self {
        let more = UNTRUSTED.into_iter().filter(|_| !is_trusted);
        Self { inner, settings: ALWAYS.into_iter().chain(more).collect() }
    }

    /// Adds the settings behind those that are there, so that these count.
    fn add(&self, environment: &mut BTreeMap<String, String>) {
        let there = environment.get(GIT_COUNT).and_then(|count| count.parse::<usize>().ok());
        let there = there.unwrap_or(0);
        for (number, (key, value)) in self.settings.iter().enumerate() {
            let number = there.saturating_add(number);
            environment.insert(format!("GIT_CONFIG_KEY_{number}"), (*key).to_owned());
            environment.insert(format!("GIT_CONFIG_VALUE_{number}"), (*value).to_owned());
        }
        let count = there.saturating_add(self.settings.len());
        environment.insert(GIT_COUNT.to_owned(), count.to_string());
    }
}

#[async_trait]
impl Spawner for GitSettings {
    async fn spawn(&self, mut program: Program) -> Result<Box<dyn Process>, ToolError> {
        self.add(&mut program.environment);
        self.inner.spawn(program).await
    }
}

/// Starts nothing, and says why.
#[derive(Debug)]
struct Refusing(NotEnforceable);

#[async_trait]
impl Spawner for Refusing {
    async fn spawn(&self, _: Program) -> Result<Box<dyn Process>, ToolError> {
        Err(ToolError::permission(self.0.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{SandboxBackend, Timeout};

    /// A secret in the middle of the work cannot be hidden by Landlock.
    fn impossible() -> Confinement {
        Confinement {
            write: vec![PathBuf::from("/tmp")],
            hidden: vec![PathBuf::from("/tmp/secret")],
            ..Confinement::default()
        }
    }

    fn settings(mode: SandboxMode) -> SandboxConfig {
        SandboxConfig { mode, backend: SandboxBackend::Landlock, ..SandboxConfig::default() }
    }

    #[test]
    fn git_settings_stand_behind_those_that_are_there() {
        let inner: Arc<dyn Spawner> = Arc::new(NoProcesses);
        let variables = |is_trusted, there: &[(&str, &str)]| {
            let pairs = there.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
            let mut environment: BTreeMap<_, _> = pairs.collect();
            GitSettings::new(Arc::clone(&inner), is_trusted).add(&mut environment);
            environment
        };
        let trusted = variables(true, &[]);
        assert_eq!(trusted.get(GIT_COUNT).map(String::as_str), Some("2"));
        assert!(!trusted.values().any(|value| value == "core.hooksPath"), "{trusted:?}");
        let there =
            [(GIT_COUNT, "1"), ("GIT_CONFIG_KEY_0", "core.fsmonitor"), ("GIT_CONFIG_VALUE_0", "x")];
        let untrusted = variables(false, &there);
        assert_eq!(untrusted.get(GIT_COUNT).map(String::as_str), Some("4"));
        assert_eq!(untrusted.get("GIT_CONFIG_KEY_2").map(String::as_str), Some("core.fsmonitor"));
        assert_eq!(untrusted.get("GIT_CONFIG_VALUE_2").map(String::as_str), Some("false"));
        assert_eq!(untrusted.get("GIT_CONFIG_KEY_3").map(String::as_str), Some("core.hooksPath"));
    }

    #[test]
    fn what_is_not_allowed_does_not_start() {
        for execute in [None, Some(Permission::Deny)] {
            let (programs, _) = Programs::choose(
                &settings(SandboxMode::Off),
                execute,
                &Confinement::default(),
                &[],
            );
            assert_eq!((&programs, programs.warning()), (&Programs::NotAllowed, None));
        }
    }

    #[test]
    fn what_cannot_be_confined_is_asked_about_even_where_it_is_allowed() {
        let (programs, _) = Programs::choose(
            &settings(SandboxMode::Auto),
            Some(Permission::Allow),
            &impossible(),
            &[],
        );
        assert!(matches!(programs, Programs::Asked(_)), "{programs:?}");
        assert_eq!(programs.limit(Permission::Allow), Permission::Ask);
        assert_eq!(programs.limit(Permission::Deny), Permission::Deny);
        assert!(programs.warning().unwrap().contains("/tmp/secret"));
    }

    /// Where groups can be written by programs, nothing can be held in them, on any machine.
    #[test]
    fn a_limit_that_cannot_be_held_takes_no_wall_away() {
        let everything = Confinement { write: vec![PathBuf::from("/")], ..Confinement::default() };
        let choose = |mode| {
            let mut settings = settings(mode);
            settings.limits.cpu = Some(Timeout::from_millis(600_000));
            Programs::choose(&settings, Some(Permission::Allow), &everything, &[]).0
        };
        if settings(SandboxMode::Required).spawner(everything.clone()).is_err() {
            return;
        }
        let programs = choose(SandboxMode::Auto);
        assert!(matches!(programs, Programs::Unlimited(..)), "{programs:?}");
        assert_eq!(programs.limit(Permission::Allow), Permission::Ask);
        let said = programs.warning().unwrap();
        assert!(said.contains("confined but without a limit, each after a question"), "{said}");
        assert!(matches!(choose(SandboxMode::Required), Programs::Refused(_)));
    }

    /// What was hidden was once given up together with the limit.
    #[test]
    fn what_is_denied_stays_hidden_where_a_limit_cannot_be_held() {
        let elsewhere = tempfile::tempdir().unwrap();
        let denied = elsewhere.path().join("secret");
        let groups = PathBuf::from("/sys/fs/cgroup");
        let confinement = Confinement { write: vec![groups], ..Confinement::default() };
        let mut auto = settings(SandboxMode::Auto);
        if auto.spawner(confinement.clone()).is_err() {
            return;
        }
        auto.limits.cpu = Some(Timeout::from_millis(600_000));
        let denials = std::slice::from_ref(&denied);
        let allow = Some(Permission::Allow);
        let (programs, _) = Programs::choose(&auto, allow, &confinement, denials);
        let (Programs::Unlimited(confined, ..) | Programs::Confined(confined, _)) = &programs
        else {
            panic!("{programs:?}")
        };
        assert!(confined.hidden.contains(&denied), "{programs:?}");
    }

    #[test]
    fn what_cannot_be_confined_and_has_to_be_is_refused() {
        let (programs, _) = Programs::choose(
            &settings(SandboxMode::Required),
            Some(Permission::Allow),
            &impossible(),
            &[],
        );
        assert!(matches!(programs, Programs::Refused(_)), "{programs:?}");
    }

    /// Landlock cannot hide a file in a directory that may be written.
    #[test]
    fn a_denied_file_in_the_project_does_not_leave_programs_unconfined() {
        let work = tempfile::tempdir().unwrap();
        let confinement =
            Confinement { write: vec![work.path().to_owned()], ..Confinement::default() };
        let choose = |denied: &[PathBuf]| {
            let auto = settings(SandboxMode::Auto);
            Programs::choose(&auto, Some(Permission::Allow), &confinement, denied).0
        };
        let without = choose(&[]);
        assert_eq!(choose(&[work.path().join(".env")]), without);
    }

    #[test]
    fn a_shared_directory_that_is_closed_is_told_with_the_reason() {
        let mut confinement = impossible();
        confinement.scratch = std::mem::take(&mut confinement.write);
        let told = |backend| Programs::Confined(confinement.clone(), backend).closed();
        let said = told(Backend::Landlock).unwrap();
        assert!(said.contains("in `/tmp`, since `/tmp/secret` lies there"), "{said}");
        assert_eq!(told(Backend::Bubblewrap), None);
        assert_eq!(Programs::Off.closed(), None);
    }

    #[test]
    fn turning_it_off_is_told_and_leaves_programs_behind_a_guard() {
        let (programs, spawner) = Programs::choose(
            &settings(SandboxMode::Off),
            Some(Permission::Allow),
            &impossible(),
            &[],
        );
        assert_eq!(programs, Programs::Off);
        assert!(programs.warning().is_some());
        assert_eq!(format!("{spawner:?}"), "GuardedSpawner");
    }
}
