//! An attacker who swaps a directory for a link, and back, as fast as the machine can, against every
//! tool that takes a path. The same attacker is shown to win against a tool that checks and then opens.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;

use convoke_core::ToolResult;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::Workspace;

const ROUNDS: usize = 2_000;
/// Fewer, since the ways in are the same.
const HOME_ROUNDS: usize = 300;
const SECRET: &str = "the secret nobody may see";
/// A size no other file here has.
const SECRET_BYTES: usize = 4_242;

/// Inside, `slot` is a directory with `file.txt`; outside there is one of the same shape.
struct Arena {
    workspace: Workspace,
    outside: TempDir,
    stop: Arc<AtomicBool>,
    swaps: Arc<AtomicUsize>,
    attacker: Option<JoinHandle<()>>,
}

impl Arena {
    fn new() -> Self {
        let workspace = Workspace::new();
        let outside = TempDir::new().unwrap();
        let secret = format!("{SECRET}{}", "!".repeat(SECRET_BYTES - SECRET.len()));
        fs::write(outside.path().join("file.txt"), &secret).unwrap();
        fs::write(outside.path().join("only-outside.txt"), &secret).unwrap();
        workspace.write("slot/file.txt", "fine");
        symlink(outside.path(), workspace.path("swap")).unwrap();
        workspace.write("leaf.txt", "fine");
        symlink(outside.path().join("file.txt"), workspace.path("leaf.swap")).unwrap();
        Self { workspace, outside, stop: Arc::default(), swaps: Arc::default(), attacker: None }
    }

    /// Lets the attacker loose.
    fn attack(mut self) -> Self {
        let (stop, swaps) = (Arc::clone(&self.stop), Arc::clone(&self.swaps));
        let pairs = [("slot", "swap"), ("leaf.txt", "leaf.swap")]
            .map(|(one, other)| (self.workspace.path(one), self.workspace.path(other)));
        self.attacker = Some(std::thread::spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                for (one, other) in &pairs {
                    exchange(one, other);
                }
                swaps.fetch_add(1, Ordering::Relaxed);
            }
        }));
        self
    }

    /// Asserts that nothing outside was changed.
    fn assert_outside_untouched(&self, tool: &str) {
        let mut names: Vec<_> =
            fs::read_dir(self.outside.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["file.txt", "only-outside.txt"], "{tool} changed what is outside");
        let content = fs::read_to_string(self.outside.path().join("file.txt")).unwrap();
        assert!(
            content.starts_with(SECRET) && content.len() == SECRET_BYTES,
            "{tool} wrote outside"
        );
    }
}

/// The same, but what nobody may see lies inside, hidden.
struct Home(Arena);

impl Home {
    fn new() -> Self {
        let workspace = Workspace::hiding(&["keys"]);
        let secret = format!("{SECRET}{}", "!".repeat(SECRET_BYTES - SECRET.len()));
        workspace.write("keys/file.txt", &secret);
        workspace.write("keys/only-outside.txt", &secret);
        workspace.write("slot/file.txt", "fine");
        symlink("keys", workspace.path("swap")).unwrap();
        workspace.write("leaf.txt", "fine");
        symlink("keys/file.txt", workspace.path("leaf.swap")).unwrap();
        let outside = TempDir::new().unwrap();
        let (stop, swaps) = (Arc::default(), Arc::default());
        Self(Arena { workspace, outside, stop, swaps, attacker: None }.attack())
    }

    async fn race(tool: &str, arguments: Value, prepare: impl Fn(&Workspace)) {
        let Self(arena) = Self::new();
        let (mut worked, mut refused) = (0, 0);
        for _ in 0..HOME_ROUNDS {
            prepare(&arena.workspace);
            let result = arena.workspace.call(tool, arguments.clone()).await;
            assert!(!leaks(&result, &arguments), "{tool} leaked: {}", result.text());
            if result.success() { worked += 1 } else { refused += 1 }
        }
        assert!(
            arena.swaps.load(Ordering::Relaxed) > HOME_ROUNDS / 10,
            "{tool}: the attacker slept"
        );
        assert!(worked > 0 && worked + refused == HOME_ROUNDS, "{tool}: {worked} worked");
        let keys = arena.workspace.path("keys");
        let mut names: Vec<_> =
            fs::read_dir(&keys).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["file.txt", "only-outside.txt"], "{tool} changed what is hidden");
        let content = fs::read_to_string(keys.join("file.txt")).unwrap();
        assert!(content.starts_with(SECRET), "{tool} wrote what is hidden");
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(attacker) = self.attacker.take() {
            attacker.join().unwrap();
        }
    }
}

fn exchange(one: &Path, other: &Path) {
    // A tool under test may have moved one of them away for a moment.
    renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE).ok();
}

/// Looks at what the model and a program would see, the path that was asked for aside.
fn leaks(result: &ToolResult, arguments: &Value) -> bool {
    let asked = arguments["path"].as_str().unwrap_or("\0");
    let seen = json!([result.value(), result.text()]).to_string().replace(asked, "");
    seen.contains(SECRET) || seen.contains("only-outside") || seen.contains("4242")
}

/// Races one tool. `prepare` puts things in order before each round.
async fn race(tool: &str, arguments: Value, rounds: usize, prepare: impl Fn(&Workspace)) {
    let arena = Arena::new().attack();
    let (mut worked, mut refused) = (0, 0);
    for _ in 0..rounds {
        prepare(&arena.workspace);
        let result = arena.workspace.call(tool, arguments.clone()).await;
        assert!(!leaks(&result, &arguments), "{tool} leaked: {}", result.text());
        if result.success() { worked += 1 } else { refused += 1 }
    }
    assert!(arena.swaps.load(Ordering::Relaxed) > rounds / 10, "{tool}: the attacker slept");
    assert!(worked + refused == rounds && worked > 0, "{tool}: {worked} worked, {refused} refused");
    arena.assert_outside_untouched(tool);
}

fn nothing(_: &Workspace) {}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_naive_tool_loses_to_this_attacker() {
    let arena = Arena::new().attack();
    let root = arena.workspace.root().canonicalize().unwrap();
    let path = root.join("slot/file.txt");
    let naive = |path: &PathBuf| -> Option<String> {
        let checked = path.canonicalize().ok()?;
        if !checked.starts_with(&root) {
            return None;
        }
        fs::read_to_string(path).ok()
    };
    let won = (0..500_000).any(|_| naive(&path).is_some_and(|content| content.contains(SECRET)));
    assert!(won, "the attacker is too weak to prove anything");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reading_is_not_raced() {
    race("read_file", json!({ "path": "slot/file.txt" }), ROUNDS, nothing).await;
    race("read_file", json!({ "path": "leaf.txt" }), ROUNDS, nothing).await;
    race("get_file_info", json!({ "path": "slot/file.txt" }), ROUNDS, nothing).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writing_is_not_raced() {
    race("write_file", json!({ "path": "slot/file.txt", "content": "fine" }), ROUNDS, nothing)
        .await;
    race("write_file", json!({ "path": "leaf.txt", "content": "fine" }), ROUNDS, nothing).await;
    race("write_file", json!({ "path": "slot/new/deep.txt", "content": "fine" }), ROUNDS, nothing)
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn editing_is_not_raced() {
    let arguments = json!({ "path": "slot/file.txt", "old_string": "i", "new_string": "ii", "replace_all": true });
    let reset = |workspace: &Workspace| {
        // Whichever of the two is the directory now.
        for name in ["slot", "swap"] {
            if fs::symlink_metadata(workspace.path(name)).is_ok_and(|metadata| metadata.is_dir()) {
                let directory = rustix::fs::open(
                    workspace.path(name),
                    rustix::fs::OFlags::DIRECTORY | rustix::fs::OFlags::NOFOLLOW,
                    rustix::fs::Mode::empty(),
                );
                if let Ok(directory) = directory {
                    let path = format!(
                        "/proc/self/fd/{}/file.txt",
                        std::os::fd::AsRawFd::as_raw_fd(&directory)
                    );
                    fs::write(path, "fine").unwrap();
                }
            }
        }
    };
    race("edit_file", arguments, ROUNDS, reset).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn listing_and_searching_are_not_raced() {
    race(
        "list_files",
        json!({ "path": ".", "recursive": true, "pattern": "only-*" }),
        ROUNDS,
        nothing,
    )
    .await;
    race("list_files", json!({ "path": "slot" }), ROUNDS, nothing).await;
    race("ls", json!({ "path": "slot" }), ROUNDS, nothing).await;
    race("glob", json!({ "pattern": "only-*" }), ROUNDS, nothing).await;
    race("glob", json!({ "pattern": "*", "path": "slot" }), ROUNDS, nothing).await;
    race("grep", json!({ "pattern": "secret" }), ROUNDS, nothing).await;
    race("grep", json!({ "pattern": "secret", "path": "slot" }), ROUNDS, nothing).await;
    race("grep", json!({ "pattern": "secret", "path": "leaf.txt" }), ROUNDS, nothing).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deleting_and_moving_are_not_raced() {
    race("delete_file", json!({ "path": "slot/gone.txt" }), ROUNDS, nothing).await;
    race("delete_file", json!({ "path": "slot/only-outside.txt" }), ROUNDS, |_| {}).await;
    let put = |workspace: &Workspace| workspace.write("plain.txt", "fine");
    race(
        "move_file",
        json!({ "from": "plain.txt", "to": "slot/moved.txt", "overwrite": true }),
        ROUNDS,
        put,
    )
    .await;
    race(
        "move_file",
        json!({ "from": "slot/file.txt", "to": "taken.txt", "overwrite": true }),
        ROUNDS,
        restore_taken,
    )
    .await;
}

/// Looks at what was moved out in the round before, and puts it back.
fn restore_taken(workspace: &Workspace) {
    if let Ok(content) = fs::read_to_string(workspace.path("taken.txt")) {
        assert_eq!(content, "fine", "a file from outside was moved in");
        for name in ["slot/file.txt", "swap/file.txt"] {
            let parent = workspace.path(name).parent().unwrap().to_path_buf();
            if fs::symlink_metadata(&parent).is_ok_and(|metadata| metadata.is_dir()) {
                let flags = rustix::fs::OFlags::DIRECTORY | rustix::fs::OFlags::NOFOLLOW;
                if let Ok(directory) = rustix::fs::open(&parent, flags, rustix::fs::Mode::empty()) {
                    rustix::fs::renameat(CWD, workspace.path("taken.txt"), &directory, "file.txt")
                        .ok();
                    return;
                }
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn starting_a_command_is_not_raced() {
    race(
        "run_command",
        json!({ "command": "cat file.txt", "working_directory": "slot" }),
        1_000,
        nothing,
    )
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_hidden_inside_is_not_raced() {
    let put = |workspace: &Workspace| workspace.write("plain.txt", "fine");
    for (tool, arguments) in [
        ("read_file", json!({ "path": "slot/file.txt" })),
        ("read_file", json!({ "path": "leaf.txt" })),
        ("get_file_info", json!({ "path": "slot/file.txt" })),
        ("write_file", json!({ "path": "slot/file.txt", "content": "fine" })),
        ("write_file", json!({ "path": "leaf.txt", "content": "fine" })),
        ("write_file", json!({ "path": "slot/new/deep.txt", "content": "fine" })),
        ("list_files", json!({ "path": ".", "recursive": true, "pattern": "only-*" })),
        ("ls", json!({ "path": "slot" })),
        ("glob", json!({ "pattern": "only-*" })),
        ("grep", json!({ "pattern": "secret", "path": "slot" })),
        ("grep", json!({ "pattern": "secret" })),
        ("delete_file", json!({ "path": "slot/only-outside.txt" })),
        ("move_file", json!({ "from": "plain.txt", "to": "slot/moved.txt", "overwrite": true })),
    ] {
        Home::race(tool, arguments, put).await;
    }
}
