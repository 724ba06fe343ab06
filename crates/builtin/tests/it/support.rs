//! A workspace with the built-in tools in it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use convoke_builtin::{Settings, tools};
use convoke_core::{ErrorKind, ToolCall, ToolResult};
pub(crate) use convoke_testkit::skip;
use convoke_tool::testing::AllowAll;
use convoke_tool::{
    CallOptions, ManualClock, ReadCache, Roots, SessionEnvironment, ToolContext, ToolExecutor,
    ToolRegistry, ToolView, UnconfinedSpawner,
};
use serde_json::Value;
use tempfile::TempDir;

pub(crate) struct Workspace {
    directory: TempDir,
    pub(crate) executor: ToolExecutor,
    pub(crate) clock: Arc<ManualClock>,
    calls: AtomicU64,
}

impl Workspace {
    /// An empty directory in which everything is allowed.
    pub(crate) fn new() -> Self {
        Self::with(&Settings::default())
    }

    pub(crate) fn with(settings: &Settings) -> Self {
        let directory = TempDir::new().unwrap();
        let clock = Arc::new(ManualClock::default());
        let executor = executor(&[directory.path()], settings, clock.clone());
        Self { directory, executor, clock, calls: AtomicU64::new(0) }
    }

    /// A directory in which everything is allowed but what has these names.
    pub(crate) fn hiding(names: &[&str]) -> Self {
        let directory = TempDir::new().unwrap();
        let clock = Arc::new(ManualClock::default());
        let hidden = names.iter().map(|name| directory.path().join(name));
        let roots = Roots::open([directory.path()]).unwrap().hiding(hidden);
        let executor = executor_in(roots, directory.path(), &Settings::default(), clock.clone());
        Self { directory, executor, clock, calls: AtomicU64::new(0) }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn root(&self) -> &Path {
        self.directory.path()
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> ToolResult {
        self.call_with(tool, arguments, CallOptions::default()).await
    }

    pub(crate) async fn call_with(
        &self,
        tool: &str,
        arguments: Value,
        options: CallOptions,
    ) -> ToolResult {
        let number = self.calls.fetch_add(1, Ordering::Relaxed);
        self.executor
            .execute_with(ToolCall::new(format!("c{number}"), tool, arguments), options)
            .await
    }

    /// The value of a call that has to work.
    pub(crate) async fn value(&self, tool: &str, arguments: Value) -> Value {
        let result = self.call(tool, arguments).await;
        match result.value() {
            Some(value) => value.clone(),
            None => unreachable!("{tool} failed: {}", result.text()),
        }
    }

    /// The error of a call that has to fail.
    pub(crate) async fn error(&self, tool: &str, arguments: Value) -> (ErrorKind, String) {
        let result = self.call(tool, arguments).await;
        match result.error() {
            Some(error) => (error.kind, error.message.clone()),
            None => unreachable!("{tool} worked: {}", result.text()),
        }
    }
}

pub(crate) fn executor(
    roots: &[&Path],
    settings: &Settings,
    clock: Arc<ManualClock>,
) -> ToolExecutor {
    executor_in(Roots::open(roots).unwrap(), roots[0], settings, clock)
}

fn executor_in(
    roots: Roots,
    directory: &Path,
    settings: &Settings,
    clock: Arc<ManualClock>,
) -> ToolExecutor {
    let registry = ToolRegistry::new();
    registry.register_many(tools(settings)).unwrap();
    let variables =
        [("PATH", "/usr/local/bin:/usr/bin:/bin"), ("LANG", "C.UTF-8"), ("SECRET_TOKEN", "x")];
    let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let context = ToolContext::builder("test")
        .roots(roots)
        .working_directory(directory.canonicalize().unwrap())
        .environment(SessionEnvironment::new(variables))
        .spawner(Arc::new(UnconfinedSpawner))
        .read_cache(ReadCache::new(1024 * 1024))
        .clock(clock)
        .build();
    ToolExecutor::builder(ToolView::of(registry), context).authorizer(AllowAll).build()
}

/// A small file system of its own, gone with the value.
pub(crate) struct SmallDisk(pub(crate) TempDir);

impl SmallDisk {
    pub(crate) fn mount(kilobytes: u32) -> Option<Self> {
        let directory = TempDir::new().unwrap();
        let mounted = std::process::Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={kilobytes}k"), "convoke-test"])
            .arg(directory.path())
            .output();
        match mounted {
            Ok(output) if output.status.success() => Some(Self(directory)),
            Ok(output) => {
                skip("a small disk", String::from_utf8_lossy(&output.stderr).trim());
                None
            }
            Err(error) => {
                skip("a small disk", &error.to_string());
                None
            }
        }
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        std::process::Command::new("umount").arg(self.0.path()).status().unwrap();
    }
}
