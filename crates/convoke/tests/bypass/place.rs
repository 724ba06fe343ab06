//! A world with a runtime in it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use convoke::Programs;
use convoke::config::{self, Sources};
use convoke::prelude::*;
use convoke::sandbox::{ConfinedSpawner, Confinement, Limits, Network};
use convoke::tools::{Authorizer, Decision, ExecutorBuilder, Request};
use convoke_testkit::bypass::{Call, Case, World};
use serde_json::Value;
use tempfile::TempDir;

use crate::{below, foreign, served};

/// Where programs are looked for.
pub(crate) const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// What the user wrote: a few programs are allowed, some things are denied, and programs are confined.
pub(crate) const USER: &str = "\
policy:
  rules:
    - { effect: allow, command: 'git *' }
    - { effect: allow, command: 'ls *' }
    - { effect: allow, command: 'cat *' }
    - { effect: allow, command: 'echo *' }
    - { effect: allow, tool: 'mcp__*' }
    - { effect: deny, command: 'rm *' }
    - { effect: deny, command: 'curl *' }
    - { effect: deny, path: '~/.ssh/**' }
    - { effect: deny, path: '~/private/**' }
    - { effect: deny, host: '127.0.0.1' }
    - { effect: deny, tool: 'mcp__forbidden__*' }
sandbox: { mode: required }
";

const SANDBOX: &str = "sandbox: { mode: required }\n";

/// What stops attempts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Guard {
    Everything,
    /// Everything but the policy.
    NoPolicy,
    /// Neither the policy nor the sandbox, but for a fence around the world, so that what is tried harms
    /// nobody: in it everything may be read, written and talked to.
    Nothing,
}

pub(crate) struct Place {
    pub(crate) world: World,
    /// Whether the user wrote what users write here.
    is_usual: bool,
    _directory: TempDir,
}

impl Place {
    pub(crate) fn new(case: &Case) -> Self {
        Self::with_user_file(case, USER)
    }

    /// Makes one where this is what the user wrote.
    pub(crate) fn with_user_file(case: &Case, text: &str) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        // Not below the directory for temporary files, which may be written.
        let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let is_usual = text == USER;
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let world = World::new(case, directory.path(), number).unwrap();
        let text =
            if text.contains("sandbox:") { text.to_owned() } else { format!("{text}{SANDBOX}") };
        std::fs::write(world.path("user.yml"), text).unwrap();
        let mentions = |name: &str| format!("{case:?}").contains(name);
        if mentions("git") {
            copy(repository(), &world.path("project/.git"));
        }
        if mentions("evil.git") {
            copy(repository(), &world.path("project/evil.git"));
            let config = "[core]\n\tfsmonitor = \"rm x;\"\n\tworktree = ..\n";
            std::fs::write(world.path("project/evil.git/config"), config).unwrap();
        }
        for (name, text) in &case.project {
            std::fs::write(world.path("project").join(name), world.fill(text)).unwrap();
        }
        Self { world, is_usual, _directory: directory }
    }

    /// Makes a call, and returns all that was said about it.
    pub(crate) async fn call(&self, guard: Guard, call: Call) -> String {
        match self.result(guard, call).await {
            Ok(result) => format!("{}\n{:?}", result.text(), result.value()),
            Err(error) => error,
        }
    }

    /// Has an agent make a call that is so many levels below the main one, and returns all that was said
    /// about it.
    pub(crate) async fn call_below(&self, depth: u32, guard: Guard, call: Call) -> String {
        let executor = match self.executor(guard) {
            Ok(executor) => executor,
            Err(error) => return error,
        };
        let (tool, arguments) = limited(call);
        below::call(depth, executor, ToolCall::new("c", tool, arguments)).await
    }

    /// Makes a call from elsewhere, over MCP, and returns all that was said about it.
    pub(crate) async fn call_served(&self, guard: Guard, call: Call) -> String {
        let executor = match self.executor(guard) {
            Ok(executor) => executor,
            Err(error) => return error,
        };
        let (tool, arguments) = limited(call);
        served::call(executor, ToolCall::new("c", tool, arguments)).await
    }

    /// Makes a call, and returns how it ended: the exit code of a program, or whether it succeeded.
    pub(crate) async fn status(&self, guard: Guard, call: Call) -> String {
        let result = self.result(guard, call).await.unwrap();
        let code = result.value().and_then(|value| value.get("exitCode"));
        code.map_or_else(|| result.success().to_string(), ToString::to_string)
    }

    async fn result(&self, guard: Guard, call: Call) -> Result<ToolResult, String> {
        let (tool, arguments) = limited(call);
        Ok(self.executor(guard)?.build().execute(ToolCall::new("c", tool, arguments)).await)
    }

    fn executor(&self, guard: Guard) -> Result<ExecutorBuilder, String> {
        let runtime = self.runtime(guard)?;
        Ok(match guard {
            Guard::Everything => runtime.executor(),
            Guard::NoPolicy | Guard::Nothing => runtime.executor().authorizer(AllowsAll),
        })
    }

    pub(crate) fn runtime(&self, guard: Guard) -> Result<Runtime, String> {
        let (project, home) = (self.world.path("project"), self.world.path("home"));
        let config = self.config()?;
        let builder = Runtime::builder(&project)
            .config(config)
            .home(Some(home.clone()))
            .hide([self.world.path("state")])
            .environment(self.environment())
            .tool(foreign::tool("mcp__box__act", home.clone(), project.clone()))
            .tool(foreign::tool("mcp__forbidden__act", home, project));
        let builder = match guard {
            Guard::Nothing => builder.spawner(Arc::new(self.fence()?)),
            Guard::Everything | Guard::NoPolicy => builder,
        };
        let runtime = builder.build().map_err(|error| error.to_string())?;
        let confined = matches!(runtime.programs(), Programs::Confined(..));
        assert!(confined || guard == Guard::Nothing, "{:?}", runtime.programs());
        Ok(runtime)
    }

    fn fence(&self) -> Result<ConfinedSpawner, String> {
        let confinement = Confinement {
            read: vec!["/".into()],
            write: vec![self.world.path("")],
            network: Network::All,
            local_sockets: true,
            signals: true,
            limits: Limits { processes: Some(256), ..Limits::default() },
            ..Confinement::default()
        };
        ConfinedSpawner::new(confinement).map_err(|reason| reason.to_string())
    }

    /// Loads the files. Where the project has none, they are the same everywhere, and read once.
    fn config(&self) -> Result<Config, String> {
        static USERS: OnceLock<Config> = OnceLock::new();
        let project = self.world.path("project");
        let plain = self.is_usual && !project.join("convoke.yml").exists();
        if let Some(config) = USERS.get().filter(|_| plain) {
            return Ok(config.clone());
        }
        let mut sources = Sources::new(project);
        sources.user_file = Some(self.world.path("user.yml"));
        sources.home = Some(self.world.path("home"));
        let config = config::load(&sources).map_err(|error| format!("{error:?}"))?.config;
        Ok(if plain { USERS.get_or_init(|| config).clone() } else { config })
    }

    fn environment(&self) -> BTreeMap<String, String> {
        let path = |name: &str| self.world.path(name).display().to_string();
        let variables = [
            ("PATH", PATH.to_owned()),
            ("HOME", path("home")),
            ("PROJECT", path("project")),
            ("TMPDIR", path("temporary")),
        ];
        variables.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }

    /// Says why programs cannot be confined here, if they cannot.
    pub(crate) fn unconfined(&self) -> Option<String> {
        let home = self.world.path("home");
        let write = [self.world.path("project")];
        let confinement =
            Confinement::for_commands(write, self.world.path("temporary"), Some(&home));
        ConfinedSpawner::new(confinement).err().map(|reason| reason.to_string())
    }
}

/// Gives programs eight seconds.
fn limited(call: Call) -> (String, Value) {
    let mut arguments = call.arguments;
    if call.tool == "run_command" {
        arguments["timeout_ms"] = json!(8_000);
    }
    (call.tool, arguments)
}

#[derive(Debug)]
pub(crate) struct AllowsAll;

impl Authorizer for AllowsAll {
    fn decide(&self, _: &Request<'_>) -> Decision {
        Decision::Allow { rule: "everything".to_owned() }
    }
}

/// Returns a repository with two commits, made once.
fn repository() -> &'static Path {
    static MADE: OnceLock<PathBuf> = OnceLock::new();
    MADE.get_or_init(|| {
        let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("bypass-repository");
        // Left by an earlier run, or not there.
        drop(std::fs::remove_dir_all(&directory));
        std::fs::create_dir_all(&directory).unwrap();
        let git = |words: &[&str]| {
            let ran = Command::new("git")
                .args(["-c", "init.defaultBranch=main", "-c", "init.templateDir="])
                .args(words)
                .current_dir(&directory)
                .output();
            assert!(ran.is_ok_and(|ran| ran.status.success()), "{words:?}");
        };
        git(&["init", "-q"]);
        git(&["config", "user.name", "Somebody"]);
        git(&["config", "user.email", "somebody@example.com"]);
        for text in ["nothing\n", "first\n"] {
            std::fs::write(directory.join("first"), text).unwrap();
            git(&["add", "first"]);
            git(&["commit", "-q", "-m", text.trim()]);
        }
        directory.join(".git")
    })
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}
