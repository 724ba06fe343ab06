//! What the programs and tools of a run may do in its workspace.

use std::fs;

use convoke::prelude::*;
use convoke::{Programs, Workspace};
use convoke_core::{RunId, WorkspaceKind};
use serde_json::Value;

use super::{Scene, changes, files};

fn runtime(scene: &Scene, workspace: &Workspace) -> Runtime {
    Runtime::builder(scene.project())
        .mode(Mode::Full)
        .home(Some(scene.root.join("home")))
        .environment(scene.variables())
        .workspace(Some(workspace.clone()))
        .build()
        .unwrap()
}

fn confined(runtime: &Runtime) -> bool {
    matches!(runtime.programs(), Programs::Confined(..))
}

async fn call(runtime: &Runtime, tool: &str, arguments: Value) -> ToolResult {
    runtime.executor().build().execute(ToolCall::new("c", tool, arguments)).await
}

/// Runs a command, and tells whether it worked.
async fn works(runtime: &Runtime, command: &str) -> bool {
    let result = call(runtime, "run_command", json!({ "command": command })).await;
    result.text().contains("WORKED")
}

#[tokio::test]
async fn a_program_commits_to_its_own_branch_and_reaches_nothing_else() {
    let scene = Scene::repository();
    let workspace = scene.worktree("r1").await.unwrap();
    let runtime = runtime(&scene, &workspace);
    if !confined(&runtime) {
        return;
    }
    let project = scene.project();
    let original = project.display();
    let git = "git -c user.name=t -c user.email=t@localhost";
    let may = [
        "echo new > new.txt && echo WORKED".to_owned(),
        format!("echo two > c.txt && git add -A && {git} commit -qm c && echo WORKED"),
        "echo x > \"${TMPDIR:-/tmp}/scratch\" && echo WORKED".to_owned(),
        "git log --oneline | grep -q c && echo WORKED".to_owned(),
    ];
    for command in may {
        assert!(works(&runtime, &command).await, "{command}");
    }
    let may_not = [
        format!("echo x > {original}/a.txt && echo WORKED"),
        format!("echo x > {original}/new.txt && echo WORKED"),
        "echo x > ../escaped && echo WORKED".to_owned(),
        "echo x > ../r1.json && echo WORKED".to_owned(),
        "echo x > ../r1.index && echo WORKED".to_owned(),
        "git config core.fsmonitor /bin/true && echo WORKED".to_owned(),
        "git config --worktree core.hooksPath /tmp && git config core.hooksPath && echo WORKED"
            .to_owned(),
        format!("echo x > {original}/.git/hooks/pre-commit && echo WORKED"),
        format!("echo x >> {original}/.git/config && echo WORKED"),
        "git update-ref refs/heads/main HEAD && echo WORKED".to_owned(),
        "git branch other && echo WORKED".to_owned(),
        "git tag t && echo WORKED".to_owned(),
        "echo x >> a.txt && git stash && echo WORKED".to_owned(),
        format!("git --git-dir={original}/.git --work-tree={original} checkout -f && echo WORKED"),
        format!("rm -rf {original}/.git/refs/heads/main && echo WORKED"),
        format!("ln {original}/a.txt hard && echo x >> hard && echo WORKED"),
        format!("ln -s {original} link && echo x > link/a.txt && echo WORKED"),
    ];
    for command in may_not {
        assert!(!works(&runtime, &command).await, "{command}");
    }
    assert_eq!(scene.read("a.txt"), "one\ntwo\nthree\n");
    assert_eq!(scene.git(&["status", "--porcelain"]), "");
    assert_eq!(
        scene.git(&["for-each-ref", "--format=%(refname)"]).lines().collect::<Vec<_>>(),
        ["refs/heads/convoke/r1", "refs/heads/main",]
    );
    let changed = changes(&workspace).await;
    assert!(changed.contains(&"added c.txt +1 -0".to_owned()), "{changed:?}");
}

#[tokio::test]
async fn file_tools_work_with_the_files_of_the_run() {
    let scene = Scene::repository();
    let workspace = scene.worktree("r1").await.unwrap();
    let runtime = runtime(&scene, &workspace);
    let own = json!({ "path": "a.txt", "content": "by the run\n" });
    assert!(call(&runtime, "write_file", own).await.success());
    assert_eq!(scene.read("a.txt"), "one\ntwo\nthree\n");
    assert_eq!(changes(&workspace).await, ["modified a.txt +1 -3"]);
    for path in [scene.project().join("a.txt").display().to_string(), "../r2/x".to_owned()] {
        let result = call(&runtime, "write_file", json!({ "path": path, "content": "x" })).await;
        assert!(result.text().contains("outside the allowed paths"), "{result:?}");
    }
}

#[tokio::test]
async fn a_workspace_that_is_only_looked_at_is_not_changed() {
    let scene = Scene::repository();
    let run = RunId::new("r1");
    let workspaces = scene.workspaces();
    let workspace = workspaces.prepare(WorkspaceKind::Readonly, &run, &scene.project()).await;
    let workspace = workspace.unwrap();
    let runtime = runtime(&scene, &workspace);
    let before = files(&scene.project());
    assert!(call(&runtime, "read_file", json!({ "path": "a.txt" })).await.success());
    let result = call(&runtime, "write_file", json!({ "path": "a.txt", "content": "x" })).await;
    assert!(result.text().contains("the workspace is `readonly`"), "{result:?}");
    if confined(&runtime) {
        assert!(!works(&runtime, "echo x > a.txt && echo WORKED").await);
        assert!(!works(&runtime, "touch new && echo WORKED").await);
        assert!(!works(&runtime, "rm a.txt && echo WORKED").await);
        assert!(works(&runtime, "cat a.txt && echo x > \"$TMPDIR/x\" && echo WORKED").await);
    }
    assert_eq!(files(&scene.project()), before);
    assert_eq!(scene.read("a.txt"), "one\ntwo\nthree\n");
    workspace.tidy();
    assert_eq!(workspaces.list().unwrap(), []);
}

#[tokio::test]
async fn a_run_tells_what_it_changed() {
    let scene = Scene::repository();
    let workspace = scene.worktree("r1").await.unwrap();
    let runtime = runtime(&scene, &workspace);
    let model = ScriptedModel::new([
        Turn::call("read_file", json!({ "path": "a.txt" })),
        Turn::call("write_file", json!({ "path": "a.txt", "content": "one\n" })),
        Turn::text("done"),
    ]);
    let agent = runtime.main_agent(std::sync::Arc::new(model)).build().unwrap();
    let mut run = agent.start_as("r1".into(), "Shorten it");
    let mut seen = Vec::new();
    while let Some(event) = run.next().await {
        seen.push(event);
    }
    let kinds: Vec<String> = seen
        .iter()
        .filter_map(|event| {
            serde_json::to_value(&event.body).unwrap()["type"].as_str().map(Into::into)
        })
        .filter(|kind: &String| kind.starts_with("workspace") || kind.starts_with("run_"))
        .collect();
    assert_eq!(kinds, ["run_started", "workspace_prepared", "workspace_changed", "run_ended"]);
    let report = run.report().unwrap().workspace.clone().unwrap();
    assert_eq!((report.files.len(), report.files[0].removed), (1, Some(2)));
    assert!(report.diff.contains("-two\n-three\n"), "{}", report.diff);
    assert_eq!(report.place.branch.as_deref(), Some("convoke/r1"));
    let durable = seen.iter().filter(|event| event.body.is_durable());
    let events: Vec<Event> = durable.map(|event| Event::clone(event)).collect();
    convoke::agent::replay(&"r1".into(), &events).unwrap();
    let origin = convoke::Origin::of(&events).unwrap();
    assert_eq!(origin.working_directory, scene.project());
    assert_eq!(origin.workspace.unwrap().kind, WorkspaceKind::Worktree);
    assert_eq!(fs::read_to_string(scene.project().join("a.txt")).unwrap(), "one\ntwo\nthree\n");
}
