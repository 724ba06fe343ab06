//! The stale-file guard: what a run may replace, move and delete.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use convoke_builtin::{Settings, tools};
use convoke_core::event::FileSeen;
use convoke_core::{EventBody, ToolCall, ToolResult};
use convoke_tool::files::SeenFiles;
use convoke_tool::testing::{AllowAll, CollectedEvents};
use convoke_tool::{
    Answer, Approver, Authorizer, Decision, Question, Request, Roots, SystemClock, ToolContext,
    ToolExecutor, ToolRegistry, ToolView, UnconfinedSpawner, ask_with,
};
use serde_json::{Value, json};
use tempfile::TempDir;

/// A run in an empty directory.
struct Run {
    directory: TempDir,
    root: PathBuf,
    executor: ToolExecutor,
    events: CollectedEvents,
}

#[derive(Debug)]
struct AskAll;

impl Authorizer for AskAll {
    fn decide(&self, _: &Request<'_>) -> Decision {
        Decision::Ask { rule: "all".into(), reason: "it is asked about".into(), proposal: vec![] }
    }
}

/// Makes an executor for a directory. `seen` are the files of its run, if it has one.
fn executor(root: &PathBuf, seen: Option<SeenFiles>, events: &CollectedEvents) -> ToolExecutor {
    asking(root, seen, events, AllowAll, ask_with(|_| async { Answer::yes() }))
}

fn asking(
    root: &PathBuf,
    seen: Option<SeenFiles>,
    events: &CollectedEvents,
    authorizer: impl Authorizer + 'static,
    approver: impl Approver + 'static,
) -> ToolExecutor {
    let registry = ToolRegistry::new();
    for tool in tools(&Settings::default()) {
        registry.register(tool).unwrap();
    }
    let clock = Arc::new(SystemClock);
    let context = ToolContext::builder("t")
        .roots(Roots::open([root]).unwrap())
        .working_directory(root)
        .spawner(Arc::new(UnconfinedSpawner))
        .build();
    let context = match seen {
        Some(seen) => context.guarding(seen),
        None => context,
    };
    ToolExecutor::builder(ToolView::of(registry), context)
        .authorizer(authorizer)
        .approver(approver)
        .recorder(events.recorder(clock))
        .build()
}

impl Run {
    fn new() -> Self {
        let directory = TempDir::new().unwrap();
        let root = directory.path().canonicalize().unwrap().join("project");
        std::fs::create_dir(&root).unwrap();
        let events = CollectedEvents::default();
        let keep = root.with_file_name("replaced");
        let executor = executor(&root, Some(SeenFiles::new([], Some(keep))), &events);
        Self { directory, root, executor, events }
    }

    /// The same run in another process: only its events are left.
    fn resumed(self) -> Self {
        let mut files = std::collections::BTreeMap::new();
        for FileSeen { path, hash, .. } in self.noted() {
            match hash {
                Some(hash) => files.insert(path, hash),
                None => files.remove(&path),
            };
        }
        let events = CollectedEvents::default();
        let seen = SeenFiles::new(&files, Some(self.root.with_file_name("replaced")));
        Self { executor: executor(&self.root, Some(seen), &events), events, ..self }
    }

    fn noted(&self) -> Vec<FileSeen> {
        let events = self.events.all();
        let files = events.iter().filter_map(|event| match &event.body {
            EventBody::ToolCallCompleted { files, .. }
            | EventBody::ToolCallFailed { files, .. } => Some(files.clone()),
            _ => None,
        });
        files.flatten().collect()
    }

    fn write(&self, name: &str, content: &str) {
        std::fs::write(self.root.join(name), content).unwrap();
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.root.join(name)).unwrap()
    }

    fn kept(&self) -> Vec<String> {
        let Ok(entries) = std::fs::read_dir(self.root.with_file_name("replaced")) else {
            return Vec::new();
        };
        let mut kept: Vec<String> =
            entries.map(|entry| std::fs::read_to_string(entry.unwrap().path()).unwrap()).collect();
        kept.sort_unstable();
        kept
    }

    async fn call(&self, tool: &str, arguments: Value) -> ToolResult {
        call(&self.executor, tool, arguments).await
    }

    async fn put(&self, name: &str, content: &str) -> ToolResult {
        self.call("write_file", json!({ "path": name, "content": content })).await
    }

    async fn look(&self, name: &str) {
        assert!(self.call("read_file", json!({ "path": name })).await.success());
    }
}

async fn call(executor: &ToolExecutor, tool: &str, arguments: Value) -> ToolResult {
    static NEXT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
    let number = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    executor.execute(ToolCall::new(format!("c{number}"), tool, arguments)).await
}

#[tokio::test]
async fn write_file_refuses_an_unread_file_once_with_its_content() {
    let run = Run::new();
    run.write("a", "the user's words\n");
    let refused = run.put("a", "mine").await;
    assert!(!refused.success());
    for said in ["cannot write `a`", "has not read it", "the user's words", "counts as a read"] {
        assert!(refused.text().contains(said), "{said}: {}", refused.text());
    }
    assert_eq!(run.read("a"), "the user's words\n");
    assert!(run.put("a", "mine").await.success());
    assert_eq!((run.read("a"), run.kept()), ("mine".into(), vec!["the user's words\n".into()]));
    assert!(run.put("a", "mine again").await.success(), "its own write counts as seen");
    assert!(run.put("new/b", "b").await.success(), "nothing was there");
}

#[tokio::test]
async fn write_file_refuses_a_file_that_changed_since_the_read_with_the_diff() {
    let run = Run::new();
    run.write("a", "one\ntwo\n");
    run.look("a").await;
    run.write("a", "one\ntwo\nthree\n");
    let refused = run.put("a", "mine").await;
    assert!(refused.text().contains("changed after this run last read"), "{}", refused.text());
    assert!(refused.text().contains("+three") && !refused.text().contains("+two"));
    assert_eq!(run.read("a"), "one\ntwo\nthree\n");
    assert!(run.put("a", "mine").await.success());
}

#[tokio::test]
async fn any_range_of_read_file_counts_as_a_read() {
    let run = Run::new();
    run.write("a", &"line\n".repeat(100));
    assert!(run.call("read_file", json!({ "path": "a", "offset": 7, "limit": 1 })).await.success());
    assert!(run.put("a", "mine").await.success());
}

#[tokio::test]
async fn delete_and_move_need_a_read_of_every_file_they_take_away() {
    let run = Run::new();
    for name in ["a", "b", "c"] {
        run.write(name, name);
    }
    assert!(!run.call("delete_file", json!({ "path": "a" })).await.success());
    assert!(run.call("delete_file", json!({ "path": "a" })).await.success());
    let over = json!({ "from": "b", "to": "c", "overwrite": true });
    assert!(run.call("move_file", over.clone()).await.text().contains("cannot move `b`"));
    assert!(run.call("move_file", over.clone()).await.text().contains("cannot replace `c`"));
    assert_eq!((run.read("b"), run.read("c")), ("b".into(), "c".into()));
    assert!(run.call("move_file", over).await.success());
    assert_eq!((run.read("c"), run.kept()), ("b".into(), vec!["a".to_owned(), "c".to_owned()]));
    assert!(run.put("c", "mine").await.success(), "the moved file is known under its new name");
}

#[tokio::test]
async fn link_is_deleted_only_after_it_was_told() {
    let run = Run::new();
    run.write("a", "a");
    std::os::unix::fs::symlink("a", run.root.join("l")).unwrap();
    assert!(!run.call("delete_file", json!({ "path": "l" })).await.success());
    assert!(run.call("delete_file", json!({ "path": "l" })).await.success());
    assert_eq!(run.read("a"), "a");
}

#[tokio::test]
async fn edit_file_follows_a_formatter_without_a_refusal() {
    let run = Run::new();
    assert!(run.put("a.rs", "fn main( ) {}\n").await.success());
    let formatted = run.call("run_command", json!({ "command": "sed -i 's/( )/()/' a.rs" })).await;
    assert!(formatted.success(), "{}", formatted.text());
    let edit = json!({ "path": "a.rs", "old_string": "main()", "new_string": "start()" });
    let edited = run.call("edit_file", edit).await;
    assert!(edited.success(), "{}", edited.text());
    assert_eq!(run.read("a.rs"), "fn start() {}\n");
    assert!(run.put("a.rs", "mine").await.success(), "the edit's own result is known");
}

#[tokio::test]
async fn file_that_a_command_changed_is_refused_once_with_the_diff() {
    let run = Run::new();
    assert!(run.put("a", "old\n").await.success());
    run.call("run_command", json!({ "command": "echo generated >> a" })).await;
    let refused = run.put("a", "mine").await;
    assert!(refused.text().contains("+generated"), "{}", refused.text());
    assert!(run.put("a", "mine").await.success());
}

#[tokio::test]
async fn file_that_a_command_made_counts_as_seen() {
    let run = Run::new();
    run.write("there", "the user's");
    let command = "echo a > made; mkdir -p d/e; echo b > d/e/made; echo c > there";
    assert!(run.call("run_command", json!({ "command": command })).await.success());
    assert!(run.put("made", "mine").await.success());
    assert!(run.put("d/e/made", "mine").await.success());
    assert!(!run.put("there", "mine").await.success(), "it was there before");
    let run = run.resumed();
    assert!(run.call("delete_file", json!({ "path": "d/e/made" })).await.success());
}

#[tokio::test]
async fn guard_survives_resume_and_nothing_of_it_is_told_to_the_model() {
    let run = Run::new();
    run.write("a", "a");
    run.write("b", "b");
    run.look("a").await;
    run.look("b").await;
    assert!(run.noted().iter().all(|file| file.hash.is_some()));
    let run = run.resumed();
    run.write("b", "changed");
    assert!(run.put("a", "mine").await.success());
    let refused = run.put("b", "mine").await;
    assert!(refused.text().contains("changed after this run last read"), "{}", refused.text());
    assert!(!refused.text().contains("xxh3"));
    let run = run.resumed();
    assert!(run.put("b", "mine").await.success(), "a refusal counts as a read after resume too");
}

#[tokio::test]
async fn caller_without_a_run_needs_no_read() {
    let run = Run::new();
    run.write("a", "a");
    let executor = executor(&run.root, None, &CollectedEvents::default());
    let arguments = json!({ "path": "a", "content": "b" });
    assert!(call(&executor, "write_file", arguments).await.success());
    assert!(call(&executor, "delete_file", json!({ "path": "a" })).await.success());
}

/// Approves every call, after it changed the file that the preview showed.
async fn approved_while_it_changes(
    seen: Option<SeenFiles>,
    run: &Run,
    tool: &str,
    arguments: Value,
    becomes: &'static str,
) -> (ToolResult, Option<String>) {
    let path = run.root.join("a");
    let shown = Arc::new(Mutex::new(None));
    let (kept, times) = (Arc::clone(&shown), Mutex::new(0));
    let approver = ask_with(move |question: Question| {
        let mut times = times.lock().unwrap();
        *times += 1;
        if *times == 1 {
            std::fs::write(&path, becomes).unwrap();
        }
        *kept.lock().unwrap() = question.preview.map(|preview| preview.text);
        async { Answer::yes() }
    });
    let executor = asking(&run.root, seen, &CollectedEvents::default(), AskAll, approver);
    let result = call(&executor, tool, arguments).await;
    let shown = shown.lock().unwrap().clone();
    (result, shown)
}

#[tokio::test]
async fn approved_change_is_refused_if_the_file_changed_while_a_person_was_asked() {
    let calls = [
        ("write_file", json!({ "path": "a", "content": "mine" })),
        ("edit_file", json!({ "path": "a", "old_string": "old", "new_string": "mine" })),
        ("delete_file", json!({ "path": "a" })),
        ("move_file", json!({ "from": "a", "to": "b" })),
        ("move_file", json!({ "from": "c", "to": "a", "overwrite": true })),
    ];
    for (tool, arguments) in calls {
        let run = Run::new();
        run.write("a", "old\n");
        run.write("c", "c");
        let (refused, _) =
            approved_while_it_changes(None, &run, tool, arguments, "old\nthe user's\n").await;
        assert!(!refused.success(), "{tool}");
        assert!(refused.text().contains("the user's"), "{tool}: {}", refused.text());
        assert_eq!(
            (run.read("a"), run.read("c")),
            ("old\nthe user's\n".into(), "c".into()),
            "{tool}"
        );
    }
}

#[tokio::test]
async fn approved_new_file_does_not_replace_one_that_appeared() {
    let run = Run::new();
    let arguments = json!({ "path": "a", "content": "mine" });
    let (refused, shown) =
        approved_while_it_changes(None, &run, "write_file", arguments, "the user's").await;
    assert!(!refused.success() && shown.unwrap().contains("+mine"));
    assert_eq!(run.read("a"), "the user's");
}

#[tokio::test]
async fn person_is_not_asked_about_a_call_that_the_guard_refuses() {
    let run = Run::new();
    run.write("a", "old");
    let approver = ask_with(|_| async { panic!("nobody is asked") });
    let seen = Some(SeenFiles::default());
    let executor = asking(&run.root, seen, &run.events, AskAll, approver);
    for (tool, arguments) in [
        ("write_file", json!({ "path": "a", "content": "mine" })),
        ("edit_file", json!({ "path": "a", "old_string": "not there", "new_string": "x" })),
    ] {
        let refused = call(&executor, tool, arguments).await;
        assert!(refused.text().starts_with("Error (failed)"), "{}", refused.text());
    }
    assert_eq!(run.noted().len(), 1, "the refusal counts as a read");
}

#[tokio::test]
async fn repeated_write_after_a_kill_finds_its_own_content() {
    let run = Run::new();
    run.write("a", "mine");
    assert!(run.put("a", "mine").await.success(), "nothing is lost");
    assert!(run.directory.path().exists());
}

/// The directory in which the child of the kill test writes.
const CHILD: &str = "CONVOKE_TEST_WRITES_IN";

/// Not a test of its own: the writer that the next test kills.
#[tokio::test]
async fn writer_that_is_killed() {
    let Some(root) = std::env::var_os(CHILD).map(PathBuf::from) else { return };
    let seen = SeenFiles::new([], Some(root.with_file_name("replaced")));
    let executor = executor(&root, Some(seen), &CollectedEvents::default());
    call(&executor, "read_file", json!({ "path": "a" })).await;
    for number in 0_u64.. {
        let content = format!("{number}\n").repeat(2_000);
        call(&executor, "write_file", json!({ "path": "a", "content": content })).await;
    }
}

#[tokio::test]
async fn killed_writer_leaves_no_temporary_file_after_the_next_write() {
    let run = Run::new();
    for round in 0..30 {
        run.write("a", "the user's\n");
        let mut child = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "guard::writer_that_is_killed"])
            .env(CHILD, &run.root)
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        let writes = |text: &str| text.lines().next().and_then(|line| line.parse::<u64>().ok());
        while writes(&run.read("a")).is_none_or(|number| number < round % 7) {
            assert!(child.try_wait().unwrap().is_none(), "the writer ended");
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let text = run.read("a");
        assert!(text.lines().count() == 2_000, "a file is whole: {}", text.len());
        let temporary = || {
            let entries = std::fs::read_dir(&run.root).unwrap();
            let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
            names.filter(|name| name != "a" && name != "b").collect::<Vec<_>>()
        };
        // Another process writes into the directory.
        let seen = SeenFiles::new([], Some(run.root.with_file_name("replaced")));
        let executor = executor(&run.root, Some(seen), &run.events);
        let next = call(&executor, "write_file", json!({ "path": "b", "content": "b" })).await;
        assert!(next.success() || next.text().contains("has not read it"), "{}", next.text());
        assert!(temporary().is_empty(), "{:?}", temporary());
    }
}
