//! Agents below the main one: what they may do is what both may.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use convoke::agent::definition::ToolConfig;
use convoke::agent::files::{ProjectTrust, usual_directories};
use convoke::config::{Config, Sources};
use convoke::core::policy::RuleSpec;
use convoke::core::{Kind, Permission, WorkspaceKind};
use convoke::model::RequestSnapshot;
use convoke::prelude::*;
use convoke::tools::{Answer, Approver, Question};
use convoke::{AgentCallError, Origin, Programs, RuntimeBuilder, Workspaces};
use serde::Deserialize;

/// A project with a file, in a home.
struct Scene {
    _directory: tempfile::TempDir,
    root: PathBuf,
}

impl Scene {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("home/project")).unwrap();
        fs::write(root.join("home/project/a.txt"), "one\n").unwrap();
        Self { _directory: directory, root }
    }

    fn project(&self) -> PathBuf {
        self.root.join("home/project")
    }

    fn variables(&self) -> BTreeMap<String, String> {
        let home = self.root.join("home").to_str().unwrap().to_owned();
        [("PATH".to_owned(), "/usr/local/bin:/usr/bin:/bin".to_owned()), ("HOME".to_owned(), home)]
            .into()
    }

    fn config(&self, text: &str) -> Config {
        let file = self.root.join("user.yml");
        fs::write(&file, text).unwrap();
        let mut sources = Sources::new(self.project());
        sources.user_file = Some(file);
        sources.project_directory = None;
        convoke::config::load(&sources).unwrap().config
    }

    fn builder(&self, config: &str) -> RuntimeBuilder {
        let workspaces = Workspaces::at(self.root.join("data/workspaces"))
            .environment(self.variables())
            .home(Some(self.root.join("home")));
        Runtime::builder(self.project())
            .config(self.config(config))
            .home(Some(self.root.join("home")))
            .environment(self.variables())
            .workspaces(Some(workspaces))
    }

    fn git(&self, arguments: &[&str]) -> String {
        let ran = std::process::Command::new("git")
            .args(["-c", "user.name=t", "-c", "user.email=t@localhost"])
            .args(arguments)
            .current_dir(self.project())
            .env_clear()
            .envs(self.variables())
            .output()
            .unwrap();
        assert!(ran.status.success(), "{ran:?}");
        String::from_utf8(ran.stdout).unwrap()
    }
}

/// Plays several agents: each says in turn what is written for it. Agents are told `You are NAME.` first.
fn cast<const N: usize>(parts: [(&str, Vec<Turn>); N]) -> Arc<ScriptedModel> {
    let parts: HashMap<String, VecDeque<Turn>> =
        parts.into_iter().map(|(who, turns)| (who.to_owned(), turns.into())).collect();
    let parts = Mutex::new(parts);
    Arc::new(ScriptedModel::from_fn(move |request: &RequestSnapshot| {
        let who = who(request);
        let next = parts.lock().unwrap().get_mut(&who).and_then(VecDeque::pop_front);
        next.unwrap_or_else(|| done("nothing more"))
    }))
}

fn who(request: &RequestSnapshot) -> String {
    let named = request.system.strip_prefix("You are ").and_then(|rest| rest.split_once('.'));
    named.map_or_else(|| "main".to_owned(), |(name, _)| name.to_owned())
}

fn done(result: &str) -> Turn {
    Turn::call("complete_task", json!({ "result": result }))
}

fn ask(agent: &str) -> Turn {
    Turn::call("delegate_to_agent", json!({ "agent_name": agent, "prompt": "Do it." }))
}

fn agent(name: &str, tools: &[&str]) -> AgentDefinition {
    let mut definition = AgentDefinition::new(name, format!("Does what {name} does."));
    definition.prompt.system_prompt = Some(format!("You are {name}."));
    definition.tools = ToolConfig::only(tools.iter().copied());
    definition
}

/// Runs the main agent, and returns the events with the report.
async fn run(runtime: &Runtime, model: &Arc<ScriptedModel>) -> (Vec<Arc<Event>>, RunReport) {
    let main = runtime.main_agent(model.clone()).system("The main agent.").build().unwrap();
    let mut run = main.start("Go.");
    let mut events = Vec::new();
    while let Some(event) = run.next().await {
        events.push(event);
    }
    (events, run.report().unwrap().clone())
}

/// What the calls of an agent were answered.
fn answers(events: &[Arc<Event>], agent: &str) -> Vec<String> {
    let own = events.iter().filter(|event| event.agent.as_str() == agent);
    let content = own.filter_map(|event| match &event.body {
        EventBody::ToolCallCompleted { content, tool_name, .. }
        | EventBody::ToolCallFailed { content, tool_name, .. }
        | EventBody::ToolCallDenied { content, tool_name, .. }
            if tool_name != "complete_task" =>
        {
            let texts = content.iter().filter_map(|part| match part {
                convoke::core::Part::Text { text } => Some(text.as_str()),
                _ => None,
            });
            Some(texts.collect::<Vec<_>>().join("\n"))
        }
        _ => None,
    });
    content.collect()
}

fn write(path: &str) -> Turn {
    Turn::call("write_file", json!({ "path": path, "content": "x" }))
}

fn command(line: &str) -> Turn {
    Turn::call("run_command", json!({ "command": line }))
}

fn names(request: &RequestSnapshot) -> Vec<&str> {
    request.tools.iter().map(|tool| tool.name.as_str()).collect()
}

#[tokio::test]
async fn the_main_agent_can_call_the_agents_that_are_on_by_default() {
    let scene = Scene::new();
    let model = cast([("main", vec![Turn::text("Nothing to do.")])]);
    let runtime = scene.builder("").build().unwrap();
    run(&runtime, &model).await;
    let request = &model.requests()[0];
    let tool = request.tools.iter().find(|tool| tool.name == "delegate_to_agent").unwrap();
    assert!(tool.description.contains("- codebase_investigator: "), "{}", tool.description);
    assert!(tool.description.contains("- generalist: "), "{}", tool.description);
    assert!(!tool.description.contains("test_generator"), "it writes: {}", tool.description);
    let off = runtime.known_agents().into_iter().filter(|known| known.off.is_some());
    let off: Vec<String> = off.map(|known| known.agent.name.clone()).collect();
    assert_eq!(off, ["document_generator", "test_generator"]);
    assert_eq!(runtime.agent_warnings(), [""; 0]);
}

#[tokio::test]
async fn agents_are_offered_only_where_nobody_says_otherwise() {
    let scene = Scene::new();
    let offers = async |config: &str| {
        let model = cast([("main", vec![Turn::text("ok")])]);
        run(&scene.builder(config).build().unwrap(), &model).await;
        names(&model.requests()[0]).contains(&"delegate_to_agent")
    };
    assert!(offers("").await);
    assert!(!offers("agents: { enabled: false }").await);
    assert!(!offers("agents: { delegation: 'off' }").await);
    assert!(!offers("agents: { exclude: ['*'] }").await);
    assert!(!offers("tools: { enabled: [grep] }").await, "its tools were chosen");
    assert!(!offers("tools: { enabled: [] }").await);
    assert!(offers("tools: { enabled: [grep, delegate_to_agent] }").await);
    assert!(!offers("tools: { exclude: ['delegate_*'] }").await);
}

/// Who was given few tools cannot let an agent use others.
#[tokio::test]
async fn agents_get_no_tools_beside_those_that_were_chosen() {
    let scene = Scene::new();
    let model = cast([
        ("main", vec![ask("reader"), ask("both"), Turn::text("ok")]),
        ("both", vec![done("searched")]),
    ]);
    let config = "tools: { enabled: [grep, delegate_to_agent] }";
    let runtime = scene
        .builder(config)
        .agent(agent("reader", &["read_file"]))
        .agent(agent("both", &["read_file", "grep"]))
        .build()
        .unwrap();
    let (events, _) = run(&runtime, &model).await;
    let told = answers(&events, "main");
    assert!(told[0].contains("its caller can have none of its tools (read_file)"), "{told:?}");
    assert!(told[1].contains("searched"), "{told:?}");
    let both = model.requests().into_iter().find(|request| request.system.contains("You are both"));
    assert_eq!(
        names(&both.unwrap()),
        ["grep", "complete_task"],
        "what its caller has not is left out"
    );
}

/// goose#11778: an agent that asks for more than its caller may does not get it.
#[tokio::test]
async fn what_is_denied_to_the_main_agent_is_denied_to_its_agents() {
    let scene = Scene::new();
    let model = cast([
        ("main", vec![ask("writer"), Turn::text("ok")]),
        ("writer", vec![write("secret/x"), write("open.txt"), command("rm a.txt"), done("tried")]),
    ]);
    let mut writer = agent("writer", &["write_file", "run_command"]);
    writer.policy.mode = Some(Mode::Full);
    writer.policy.rules = vec![RuleSpec::path(Permission::Allow, "**")];
    let config = "policy: { kinds: { edit: allow }, rules: [
        { effect: deny, path: 'secret/**', reason: that is secret },
        { effect: deny, command: 'rm *', reason: nothing goes } ] }";
    let runtime = scene.builder(config).agent(writer).build().unwrap();
    let (events, report) = run(&runtime, &model).await;
    let told = answers(&events, "main/writer");
    assert!(told[0].contains("that is secret"), "{told:?}");
    assert!(!told[1].contains("denied"), "{told:?}");
    assert!(told[2].contains("nothing goes"), "{told:?}");
    assert!(scene.project().join("open.txt").exists() && scene.project().join("a.txt").exists());
    assert_eq!(report.outcome.cause, Cause::Denied, "what its agent was denied, it did not do");
}

/// opencode#33223: an agent's own rules hold for it.
#[tokio::test]
async fn what_an_agent_denies_itself_is_denied_whatever_the_main_agent_may() {
    let scene = Scene::new();
    let calls = || vec![write("x.txt"), command("echo hi"), command("echo hi; ls"), done("tried")];
    let model = cast([
        (
            "main",
            vec![write("main.txt"), ask("planner"), ask("ruled"), ask("limited"), Turn::text("ok")],
        ),
        ("planner", calls()),
        ("ruled", calls()),
        ("limited", calls()),
    ]);
    let tools = ["write_file", "run_command"];
    let mut planner = agent("planner", &tools);
    planner.policy.mode = Some(Mode::Plan);
    let mut ruled = agent("ruled", &tools);
    ruled.policy.rules = vec![RuleSpec::path(Permission::Deny, "x.txt")];
    let mut limited = agent("limited", &tools);
    limited.policy.commands = Some(vec!["echo *".to_owned()]);
    let config = "policy: { kinds: { edit: allow, execute: allow } }";
    let runtime = scene.builder(config).agent(planner).agent(ruled).agent(limited).build().unwrap();
    let (events, _) = run(&runtime, &model).await;
    assert!(scene.project().join("main.txt").exists());
    let told = |who: &str| answers(&events, &format!("main/{who}"));
    let denied = |who: &str| -> Vec<bool> {
        told(who)
            .iter()
            .map(|text| text.contains("denied") || text.contains("may run only"))
            .collect()
    };
    assert_eq!(denied("planner"), [true, true, true], "{:?}", told("planner"));
    assert_eq!(denied("ruled"), [true, false, false], "{:?}", told("ruled"));
    assert_eq!(denied("limited"), [false, false, true], "{:?}", told("limited"));
    let authority = runtime.authority_of(&runtime.find_agent("planner").unwrap().policy).unwrap();
    let kinds: Vec<Permission> = authority.policies().map(|one| one.kind(Kind::Edit)).collect();
    assert_eq!(kinds, [Permission::Allow, Permission::Deny]);
}

/// A user's rule that allows something need not be written again for each agent.
#[tokio::test]
async fn what_the_user_allowed_by_a_rule_an_agent_in_default_mode_may_do() {
    let scene = Scene::new();
    let model = cast([
        ("main", vec![ask("builder"), Turn::text("ok")]),
        ("builder", vec![command("echo built"), done("ok")]),
    ]);
    let mut builder = agent("builder", &["run_command"]);
    builder.policy.mode = Some(Mode::Default);
    let config = "policy: { rules: [{ effect: allow, command: 'echo *' }] }";
    let runtime = scene.builder(config).agent(builder).build().unwrap();
    let (events, _) = run(&runtime, &model).await;
    assert_eq!(answers(&events, "main/builder"), ["built\n"]);
}

#[tokio::test]
async fn an_agent_that_only_looks_writes_neither_with_tools_nor_with_programs() {
    let scene = Scene::new();
    let mut looker = agent("looker", &["write_file", "run_command", "read_file"]);
    looker.run.workspace = Some(WorkspaceKind::Readonly);
    let config = "policy: { kinds: { edit: allow, execute: allow } }";
    for workspaces in [true, false] {
        let model = cast([
            ("main", vec![ask("looker"), write("main.txt"), Turn::text("ok")]),
            (
                "looker",
                vec![
                    write("x.txt"),
                    command("echo x > y.txt"),
                    command("cat a.txt; true"),
                    Turn::call("read_file", json!({ "path": "a.txt" })),
                    done("looked"),
                ],
            ),
        ]);
        let mut builder = scene.builder(config).agent(looker.clone());
        if !workspaces {
            builder = builder.workspaces(None);
        }
        let (events, report) = run(&builder.build().unwrap(), &model).await;
        assert_eq!(report.outcome.cause, Cause::Goal);
        for name in ["x.txt", "y.txt", ".tmp"] {
            assert!(!scene.project().join(name).exists(), "{name}");
        }
        if workspaces {
            let told = answers(&events, "main/looker");
            assert!(told[0].contains("nothing is changed here"), "{told:?}");
            assert!(told[3].contains("one"), "{told:?}");
            assert!(scene.project().join("main.txt").exists(), "its caller may");
            let system = &model.requests()[1].system;
            assert!(system.contains("Workspace: read-only"), "{system}");
        }
    }
}

/// An agent below one that changes nothing gets no files of its own to change.
#[tokio::test]
async fn nobody_changes_more_than_who_called_it() {
    let scene = Scene::new();
    let model = cast([
        ("main", vec![ask("looker"), Turn::text("ok")]),
        ("looker", vec![ask("copier"), done("looked")]),
        ("copier", vec![write("x.txt"), command("echo x > y.txt"), done("tried")]),
    ]);
    let mut looker = agent("looker", &["write_file", "run_command"]);
    looker.run.workspace = Some(WorkspaceKind::Readonly);
    looker.agents = vec!["copier".to_owned()];
    let mut copier = agent("copier", &["write_file", "run_command"]);
    copier.run.workspace = Some(WorkspaceKind::Copy);
    let config = "policy: { kinds: { edit: allow, execute: allow } }";
    let runtime = scene.builder(config).agent(looker).agent(copier).build().unwrap();
    let (events, _) = run(&runtime, &model).await;
    let told = answers(&events, "main/looker/copier");
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told[0].contains("nothing is changed here"), "{told:?}");
    assert!(!scene.project().join("y.txt").exists());
    assert_eq!(copies(&scene), 0);
}

/// How many workspaces there are.
fn copies(scene: &Scene) -> usize {
    Workspaces::at(scene.root.join("data/workspaces")).list().unwrap().len()
}

#[tokio::test]
async fn an_agent_with_files_of_its_own_brings_back_what_it_changed_and_nothing_is_merged() {
    let scene = Scene::new();
    let model = cast([
        ("main", vec![ask("copier"), ask("idler"), Turn::text("ok")]),
        ("copier", vec![write("new.txt"), done("written")]),
        ("idler", vec![done("nothing to do")]),
    ]);
    let own = |name: &str| {
        let mut definition = agent(name, &["write_file"]);
        definition.run.workspace = Some(WorkspaceKind::Copy);
        definition
    };
    let config = "policy: { kinds: { edit: allow } }";
    let runtime = scene.builder(config).agent(own("copier")).agent(own("idler")).build().unwrap();
    let (events, _) = run(&runtime, &model).await;
    let told = answers(&events, "main");
    assert!(told[0].contains("It changed 1 file in") && told[0].contains("+x"), "{}", told[0]);
    assert!(told[1].contains("It changed no files"), "{}", told[1]);
    assert!(!scene.project().join("new.txt").exists(), "nothing was taken over");
    assert_eq!(copies(&scene), 1, "one in which nothing was changed goes");
    let system = &model.requests()[1].system;
    assert!(
        system.contains("data/workspaces/") && system.contains("a copy of your own"),
        "{system}"
    );
}

/// The files of a worktree are the committed ones and those that are not committed yet, and come back as a diff.
/// codex#23095, koda#595, gptme#3190, opencode#34872, claude-code#87643: it cannot write beside its worktree.
#[tokio::test]
async fn an_agent_in_a_worktree_brings_back_a_diff_and_the_repository_stays_as_it_is() {
    let scene = Scene::new();
    let git = |arguments: &[&str]| scene.git(arguments);
    git(&["init", "--quiet", "-b", "main"]);
    git(&["add", "-A"]);
    git(&["commit", "--quiet", "-m", "first"]);
    fs::write(scene.project().join("b.txt"), "not committed\n").unwrap();
    let edit = json!({ "path": "a.txt", "old_string": "one", "new_string": "two" });
    let model = cast([
        ("main", vec![ask("tinker"), Turn::text("ok")]),
        (
            "tinker",
            vec![
                Turn::call("edit_file", edit),
                Turn::call("read_file", json!({ "path": "b.txt" })),
                Turn::call("read_file", json!({ "path": scene.project().join("a.txt") })),
                done("changed"),
            ],
        ),
    ]);
    let mut tinker = agent("tinker", &["edit_file", "read_file"]);
    tinker.run.workspace = Some(WorkspaceKind::Worktree);
    let config = "policy: { kinds: { edit: allow } }";
    let runtime = scene.builder(config).agent(tinker).build().unwrap();
    let (events, _) = run(&runtime, &model).await;
    let told = answers(&events, "main/tinker");
    assert!(told[1].contains("not committed"), "{told:?}");
    assert!(told[2].contains("Access denied"), "its caller's files are not its own: {told:?}");
    let answer = &answers(&events, "main")[0];
    assert!(answer.contains("-one\n+two"), "{answer}");
    assert!(answer.contains("nothing of it was taken over"), "{answer}");
    assert_eq!(fs::read_to_string(scene.project().join("a.txt")).unwrap(), "one\n");
    assert_eq!(git(&["log", "--oneline", "main"]).lines().count(), 1);
}

/// What is hidden from a caller is hidden in the files its agents get, and in those that theirs get.
#[tokio::test]
async fn an_agent_with_files_of_its_own_cannot_read_what_is_hidden_from_its_caller() {
    for kind in [WorkspaceKind::Copy, WorkspaceKind::Worktree] {
        let scene = Scene::new();
        for (name, text) in [("private/key", "sesame"), ("denied/key", "sesame")] {
            let path = scene.project().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        scene.git(&["init", "--quiet", "-b", "main"]);
        scene.git(&["add", "-A"]);
        scene.git(&["commit", "--quiet", "-m", "first"]);
        fs::write(scene.project().join("private/new"), "open sesame").unwrap();
        let tries = || {
            let read = |path: &str| Turn::call("read_file", json!({ "path": path }));
            let hidden = ["private/key", "private/new", "denied/key"].map(read);
            let shown = ["cat private/key private/new; cat a.txt", "git show HEAD:private/new"];
            let shown = [shown[0], shown[1], "cat denied/key"].map(command);
            [vec![read("a.txt")], hidden.into(), shown.into()].concat()
        };
        let model = cast([
            ("main", vec![ask("outer"), Turn::text("ok")]),
            ("outer", [tries(), vec![ask("inner"), done("tried")]].concat()),
            ("inner", [tries(), vec![done("tried")]].concat()),
        ]);
        let own = |name: &str, kind| {
            let mut definition = agent(name, &["read_file", "run_command"]);
            definition.run.workspace = Some(kind);
            definition
        };
        let mut outer = own("outer", kind);
        outer.agents = vec!["inner".to_owned()];
        let config = "policy: { kinds: { execute: allow }, rules: [\
                      { effect: deny, path: 'PROJECT/denied/**' }] }\n\
                      sandbox: { hidden: ['PROJECT/private'] }\n";
        let config = config.replace("PROJECT", scene.project().to_str().unwrap());
        let runtime = scene.builder(&config).agent(outer);
        let runtime = runtime.agent(own("inner", WorkspaceKind::Copy)).build().unwrap();
        let (events, _) = run(&runtime, &model).await;
        for who in ["main/outer", "main/outer/inner"] {
            let told = answers(&events, who);
            assert!(told.len() >= 7 && told[0].contains("one"), "{kind} {who}: {told:?}");
            assert!(!told.concat().contains("sesame"), "{kind} {who}: {told:?}");
            let is_run = matches!(runtime.programs(), Programs::Confined(..));
            assert!(!is_run || told[4].contains("one"), "{kind} {who}: {told:?}");
        }
    }
}

/// Answers yes, and remembers who asked.
#[derive(Clone, Debug, Default)]
struct Yes(Arc<Mutex<Vec<String>>>);

#[async_trait]
impl Approver for Yes {
    async fn ask(&self, question: Question) -> Answer {
        self.0.lock().unwrap().push(question.agent.as_str().to_owned());
        Answer::yes()
    }
}

#[tokio::test]
async fn the_questions_of_an_agent_reach_the_person_with_its_path() {
    let scene = Scene::new();
    let model = cast([
        ("main", vec![ask("writer"), Turn::text("ok")]),
        ("writer", vec![write("x.txt"), done("written")]),
    ]);
    let runtime = scene.builder("").agent(agent("writer", &["write_file"])).build().unwrap();
    let yes = Yes::default();
    let main = runtime.main_agent_with(model.clone(), |tools| tools.approver(yes.clone()));
    let report = main.system("The main agent.").build().unwrap().start("Go.").finish().await;
    assert_eq!(report.outcome.cause, Cause::Goal);
    assert_eq!(*yes.0.lock().unwrap(), ["main/writer"]);
    assert!(scene.project().join("x.txt").exists());
}

#[tokio::test]
async fn a_model_that_there_is_not_fails_the_call_and_not_the_run() {
    let scene = Scene::new();
    let model = cast([("main", vec![ask("lost"), Turn::text("I could not.")])]);
    let mut lost = agent("lost", &["read_file"]);
    lost.model.model = Some("nobody/nothing".to_owned());
    let runtime = scene.builder("").agent(lost).build().unwrap();
    let (events, report) = run(&runtime, &model).await;
    assert_eq!(report.outcome.cause, Cause::Goal);
    let answer = &answers(&events, "main")[0];
    assert!(answer.contains("the agent `lost` cannot be started: "), "{answer}");
    assert!(answer.contains("nobody"), "{answer}");
}

#[tokio::test]
async fn settings_change_agents_and_switch_them_on_and_off() {
    let scene = Scene::new();
    let config = "agents: { maxDepth: 1, overrides: {
        test_generator: { enabled: true, maxTurns: 7 }, generalist: { enabled: false },
        generalits: { maxTurns: 1 } } }";
    let runtime = scene.builder(config).build().unwrap();
    let names: Vec<String> = runtime.team().offered().iter().map(|one| one.name.clone()).collect();
    assert_eq!(names, ["codebase_investigator", "test_generator"]);
    assert_eq!(runtime.find_agent("test_generator").unwrap().run.max_turns, Some(7));
    assert_eq!(runtime.team().limits().max_depth, 1);
    let warnings = runtime.agent_warnings();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(
        warnings[0].contains("no agent `generalits`; did you mean `generalist`?"),
        "{warnings:?}"
    );
}

fn agent_file(path: &Path, name: &str) {
    agent_file_with(path, name, "");
}

fn agent_file_with(path: &Path, name: &str, more: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let text = format!("---\nname: {name}\ndescription: Is {name}.\n{more}---\nYou are {name}.\n");
    fs::write(path, text).unwrap();
}

/// Writes agents whose files have one line more each, and returns where they are.
fn team_of<const N: usize>(scene: &Scene, agents: [(&str, &str); N]) -> PathBuf {
    let team = scene.root.join("team");
    for (name, line) in agents {
        agent_file_with(&team.join(format!("{name}.md")), name, &format!("{line}\n"));
    }
    team
}

#[tokio::test]
async fn agents_in_files_are_there_if_the_project_is_trusted() {
    let scene = Scene::new();
    agent_file(&scene.project().join(".convoke/agents/ours.md"), "ours");
    agent_file(&scene.project().join(".claude/agents/theirs.md"), "theirs");
    agent_file(&scene.root.join("home/.claude/agents/mine.md"), "mine");
    agent_file(&scene.root.join("team/extra.md"), "extra");
    // A file may be called as one that comes along and is switched off.
    agent_file(&scene.root.join("team/test_generator.md"), "test_generator");
    let config = format!("agents: {{ directories: ['{}'] }}", scene.root.join("team").display());
    let home = scene.root.join("home");
    let runtime = |trust| {
        let directories = usual_directories(Some(&scene.project()), Some(&home), None);
        scene.builder(&config).agent_directories(directories, trust).build().unwrap()
    };
    let trusted = runtime(ProjectTrust::Trusted);
    let usual = ["codebase_investigator", "extra", "generalist", "mine"];
    let mut all = [&usual[..], &["ours", "test_generator", "theirs"]].concat();
    all.sort_unstable();
    assert_eq!(trusted.agents().names(), all);
    assert_eq!(trusted.agent_warnings(), [""; 0]);
    let untrusted = runtime(ProjectTrust::Untrusted);
    assert_eq!(untrusted.agents().names(), [&usual[..], &["test_generator"]].concat());
    let warnings = untrusted.agent_warnings();
    assert!(warnings[0].contains("2 agents are left out, because this project is not trusted"));
}

/// A limit that is written under another name is no limit: such a file is wrong. What else is written there and not
/// used is told where the agent works, once.
#[tokio::test]
async fn what_is_not_used_of_a_file_is_told_where_its_agent_works() {
    let scene = Scene::new();
    let team = team_of(&scene, [("capped", "max_tokens: 100"), ("odd", "colour: blue")]);
    let config = format!("agents: {{ directories: ['{}'] }}", team.display());
    let runtime = scene.builder(&config).build().unwrap();
    assert!(runtime.agents().get("capped").is_none(), "it would work without its limit");
    let warnings = runtime.agent_warnings();
    assert!(
        warnings.iter().any(|one| one.contains("did you mean `budget.tokens`?")),
        "{warnings:?}"
    );
    let (own, _) = runtime.warnings_about("odd");
    assert!(own.iter().any(|one| one.contains("key `colour`: this key is not known")), "{own:?}");
    let model = cast([
        ("main", vec![ask("odd"), ask("odd"), Turn::text("ok")]),
        ("odd", vec![done("one"), done("two")]),
    ]);
    let (events, _) = run(&runtime, &model).await;
    let told = events.iter().filter(|event| {
        matches!(&event.body, EventBody::Warning { message } if message.contains("`colour`"))
    });
    assert_eq!(told.count(), 1);
}

/// What is called wrong is not offered, and what is offered is not called wrong.
#[tokio::test]
async fn an_agent_that_names_tools_that_there_are_not_is_not_offered() {
    let scene = Scene::new();
    let agents = [
        ("toolless", "tools: [read_fil]"),
        ("fitless", "tools: ['nosuch_*']"),
        ("kept", "tools: [glob]"),
        ("less", "tools: [glob, read_file]"),
        ("alone", "agents: [nosuch]"),
        ("grep", "max_turns: 3"),
    ];
    let team = team_of(&scene, agents);
    let config =
        format!("agents: {{ directories: ['{}'] }}\ntools: {{ exclude: [glob] }}", team.display());
    let runtime = scene.builder(&config).build().unwrap();
    let offered: Vec<String> =
        runtime.team().offered().iter().map(|agent| agent.name.clone()).collect();
    assert_eq!(offered, ["alone", "codebase_investigator", "generalist", "grep", "less"]);
    for name in ["toolless", "fitless", "kept"] {
        assert_eq!(runtime.not_offered(name), Some(convoke::NotOffered::NoTool), "{name}");
    }
    let warnings = runtime.agent_warnings_in_short();
    let [warning] = warnings.as_slice() else { panic!("{warnings:?}") };
    let expected = "`fitless`, `kept`, `toolless` are not offered to the main agent";
    assert!(warning.starts_with(expected), "{warning}");
    let wrong = ["toolless", "fitless", "kept"].map(|name| (name, true));
    let right = ["less", "alone", "grep"].map(|name| (name, false));
    for (name, wrong) in wrong.into_iter().chain(right) {
        let agent = runtime.known_agent(name).unwrap().agent;
        let remarks = runtime.review_agent(&agent, &std::collections::BTreeSet::new());
        assert!(!remarks.is_empty(), "{name}");
        assert_eq!(remarks.iter().any(|one| one.is_problem), wrong, "{name}: {remarks:?}");
    }
}

/// What is left out on purpose was once told in every run, because its model could not be asked.
#[tokio::test]
async fn only_agents_that_would_be_offered_are_told_to_lack_a_model() {
    let scene = Scene::new();
    let team = team_of(&scene, ["cheap", "dear"].map(|name| (name, "model: nosuch/thing")));
    for (more, expected) in [
        ("", "`cheap`, `dear` are not offered"),
        (", exclude: [dear]", "`cheap` is not offered"),
        (", allow: [cheap, generalist]", "`cheap` is not offered"),
    ] {
        let config = format!("agents: {{ directories: ['{}']{more} }}", team.display());
        let warnings = scene.builder(&config).build().unwrap().agent_warnings_in_short();
        let [warning] = warnings.as_slice() else { panic!("{more}: {warnings:?}") };
        assert!(warning.starts_with(expected), "{more}: {warning}");
    }
}

#[derive(Debug, Deserialize, schemars::JsonSchema, PartialEq)]
struct Verdict {
    good: bool,
}

#[tokio::test]
async fn an_agent_can_be_run_by_itself_and_gives_a_type() {
    let scene = Scene::new();
    let mut definition =
        agent("judge", &["read_file"]).returning::<Verdict>("verdict", "What it is.");
    definition.policy.mode = Some(Mode::Plan);
    definition.run.max_turns = Some(5);
    let model = cast([(
        "judge",
        vec![
            Turn::call("read_file", json!({ "path": "a.txt" })),
            Turn::call("complete_task", json!({ "verdict": { "good": true } })),
        ],
    )]);
    let runtime = scene.builder("").build().unwrap();
    let given: Arc<dyn Model> = model.clone();
    let report = runtime.agent(&definition, given.clone(), "Is it good?").await.unwrap();
    assert_eq!(report.output, Some(Verdict { good: true }), "{:?}", report.unread);
    assert_eq!((report.status(), report.cause()), (Status::Completed, Cause::Goal));
    assert!(report.usage().input_tokens > 0);
    let request = &model.requests()[0];
    assert_eq!(names(request), ["read_file", "complete_task"]);
    assert_eq!(request.messages[0].words(), "Is it good?");
    assert!(request.system.contains("Working directory: "), "{}", request.system);
    let missing = runtime.agent(&definition, given.clone(), json!({})).await.unwrap_err();
    assert!(missing.to_string().contains("task"), "{missing}");
    let unknown = runtime.agent_named::<String>("jugde", given, "x").await.unwrap_err();
    assert!(matches!(unknown, AgentCallError::Unknown { .. }), "{unknown}");
}

#[tokio::test]
async fn the_origin_of_a_run_names_the_agent_that_works() {
    let scene = Scene::new();
    let model = cast([("judge", vec![done("fine")])]);
    let runtime = scene.builder("").agent(agent("judge", &["read_file"])).build().unwrap();
    let judge = runtime.find_agent("judge").unwrap();
    let inputs = judge.inputs_of(Some("Judge."), serde_json::Map::new());
    let run = convoke::agent::new_run_id(convoke::core::Timestamp::default());
    let made = runtime.acting_as(&judge, model, &inputs, &run, |tools| tools).await;
    let (builder, task) = made.unwrap();
    let mut running = builder.build().unwrap().start_as(run, task);
    let first = running.next().await.unwrap();
    let origin = Origin::of(std::slice::from_ref(first.as_ref())).unwrap();
    let named = origin.agent.unwrap();
    assert_eq!((named.name.as_str(), named.inputs), ("judge", inputs));
    assert_eq!(running.finish().await.text().as_deref(), Some("fine"));
}

/// A process that is killed while it makes a workspace leaves half of one; the agent gets another.
#[tokio::test]
async fn half_a_workspace_is_made_anew_and_a_whole_one_is_found_again() {
    let scene = Scene::new();
    let model = cast([(
        "copier",
        vec![
            write("new.txt"),
            done("written"),
            Turn::call("read_file", json!({ "path": "new.txt" })),
            done("read"),
        ],
    )]);
    let mut copier = agent("copier", &["write_file", "read_file"]);
    copier.run.workspace = Some(WorkspaceKind::Copy);
    let config = "policy: { kinds: { edit: allow } }";
    let runtime = scene.builder(config).agent(copier).build().unwrap();
    let copier = runtime.find_agent("copier").unwrap();
    let inputs = copier.inputs_of(Some("Copy."), serde_json::Map::new());
    let run = convoke::agent::new_run_id(convoke::core::Timestamp::default());
    let workspaces = scene.root.join("data/workspaces");
    fs::create_dir_all(workspaces.join(run.as_str())).unwrap();
    fs::write(workspaces.join(format!("{run}.json")), "").unwrap();
    for expected in ["written", "read"] {
        let made = runtime.acting_as(&copier, model.clone(), &inputs, &run, |tools| tools).await;
        let (builder, task) = made.unwrap();
        let mut running = builder.build().unwrap().start_as(run.clone(), task);
        let mut events = Vec::new();
        while let Some(event) = running.next().await {
            events.push(event);
        }
        assert_eq!(running.report().unwrap().text().as_deref(), Some(expected));
        if expected == "read" {
            assert_eq!(answers(&events, "main"), ["x"], "it found what it wrote");
        }
    }
}

/// Rules for an agent hold where nobody calls it, and so does its own list of commands.
#[tokio::test]
async fn an_agent_by_itself_is_held_by_its_commands_and_by_the_rules_for_it() {
    let scene = Scene::new();
    let mut solo = agent("solo", &["run_command", "write_file"]);
    solo.policy.commands = Some(vec!["echo *".to_owned()]);
    solo.agents = vec!["helper".to_owned()];
    let helper = agent("helper", &["write_file"]);
    let config = "policy: { kinds: { execute: allow, edit: allow }, rules: [\
                  { effect: deny, agent: main/solo, path: no.txt, reason: not for solo }, \
                  { effect: deny, agent: main/solo/helper, path: b.txt, reason: not for helper }] }";
    let turns =
        vec![command("ls"), write("no.txt"), write("yes.txt"), ask("helper"), done("tried")];
    let model = cast([("solo", turns), ("helper", vec![write("b.txt"), done("tried")])]);
    let runtime = scene.builder(config).agent(solo).agent(helper).build().unwrap();
    let found = runtime.find_agent("solo").unwrap();
    let inputs = found.definition().inputs_of(Some("Do it."), serde_json::Map::new());
    let id = "direct".into();
    let made = runtime.acting_as(&found, model.clone(), &inputs, &id, |tools| tools).await;
    let (builder, task) = made.unwrap();
    let mut run = builder.build().unwrap().start_as(id, task);
    let mut events = Vec::new();
    while let Some(event) = run.next().await {
        events.push(event);
    }
    let told = answers(&events, "main");
    assert!(told[0].contains("this agent may run only `echo *`"), "{told:?}");
    assert!(told[1].contains("not for solo"), "{told:?}");
    assert!(scene.project().join("yes.txt").exists(), "{told:?}");
    let told = answers(&events, "main/helper");
    assert!(told[0].contains("not for helper"), "{told:?}");
}

/// One function says what an agent may do, to whoever shows it and to whoever judges a call.
#[tokio::test]
async fn what_an_agent_may_do_is_said_in_one_place() {
    let scene = Scene::new();
    let mut planner = agent("planner", &["write_file", "run_command"]);
    planner.policy.mode = Some(Mode::Plan);
    planner.agents = vec!["git".to_owned()];
    let mut git = agent("git", &["run_command"]);
    git.policy.commands = Some(vec!["git log *".to_owned()]);
    let config = "policy: { kinds: { edit: allow, execute: allow } }";
    let runtime = scene.builder(config).agent(planner).agent(git).build().unwrap();
    let decides = |path: &str, tool: &str, arguments: serde_json::Value| {
        let standing = runtime.standing(path).unwrap();
        let tool = runtime.callable().get(tool).unwrap();
        let decision = runtime.judge(tool.as_ref(), &arguments, &standing).unwrap();
        let refusal = runtime.refusal(tool.as_ref(), &arguments, &standing).unwrap();
        (decision.permission, refusal.map(|refusal| refusal.by))
    };
    let file = || json!({ "path": "b.txt", "content": "x" });
    assert_eq!(decides("main", "write_file", file()), (Permission::Allow, None));
    assert_eq!(decides("planner", "write_file", file()), (Permission::Deny, None));
    let log = || json!({ "command": "git log" });
    assert_eq!(decides("git", "run_command", log()), (Permission::Allow, None));
    let push = json!({ "command": "git push" });
    let (_, by) = decides("main/git", "run_command", push);
    assert_eq!(by.as_deref(), Some("the commands of the agent"));
    let (_, by) = decides("git", "write_file", file());
    assert_eq!(by.as_deref(), Some("the tools of the agent"));
    // Below the planner, git may no more than the planner.
    assert_eq!(decides("main/planner/git", "run_command", log()).0, Permission::Deny);
    let unknown = runtime.standing("main/gti").unwrap_err();
    assert_eq!(unknown.to_string(), "there is no agent `gti`; did you mean `git`?");
    for (path, why) in [
        ("main/git/planner", "`agents` of `git` does not name it"),
        ("main/planner/git/planner", "it is on the way there already"),
    ] {
        let error = runtime.standing(path).unwrap_err().to_string();
        assert!(error.ends_with(why), "{error}");
    }
}

#[tokio::test]
async fn an_agent_that_is_off_is_known_and_not_run() {
    let scene = Scene::new();
    let config = "agents: { exclude: ['sh*'], overrides: { generalist: { enabled: false } } }";
    let runtime = scene.builder(config).agent(agent("shy", &[])).build().unwrap();
    for (name, said) in [
        ("shy", "the agent `shy` is switched off: `agents.exclude` has `sh*`"),
        (
            "generalist",
            "the agent `generalist` is switched off: `agents.overrides.generalist.enabled` is `false`",
        ),
    ] {
        assert_eq!(runtime.find_agent(name).unwrap_err().to_string(), said);
        let known = runtime.known_agent(name).unwrap();
        assert!(known.off.is_some_and(|off| said.contains(&off.key())), "{name}");
        let given: Arc<dyn Model> = cast([(name, vec![done("x")])]);
        let ran = runtime.agent_named::<String>(name, given, "x").await;
        assert!(matches!(ran, Err(AgentCallError::SwitchedOff { .. })), "{ran:?}");
    }
}

#[tokio::test]
async fn an_agent_is_reviewed_against_the_configuration() {
    let scene = Scene::new();
    let mut wide = agent("wide", &["read_file", "reed_file", "delegate_to_agent", "nothing_*"]);
    wide.agents = ["wide", "main", "beside", "nobody"].map(str::to_owned).into();
    wide.run.max_turns = Some(80);
    wide.run.max_tokens = Some(5);
    let runtime = scene.builder("budget: { tokens: 10 }").build().unwrap();
    let beside = std::collections::BTreeSet::from(["beside".to_owned()]);
    let remarks = runtime.review_agent(&wide, &beside);
    let said: Vec<(bool, &str)> =
        remarks.iter().map(|one| (one.is_problem, one.message.as_str())).collect();
    assert_eq!(
        said,
        [
            (
                true,
                "there is no tool `reed_file` here; did you mean `read_file`, `edit_file` or `move_file`?"
            ),
            (
                true,
                "an agent that may call others names them, and not `delegate_to_agent`; write `agents: [NAME]`"
            ),
            (true, "no tool fits `nothing_*` here"),
            (false, "`wide` is left out: an agent cannot call itself"),
            (
                false,
                "`main` is left out: it is the first agent of every run, and nobody can call it"
            ),
            (false, "there is no agent `nobody`"),
            (false, "80 → 30 (budget.turns)"),
        ]
    );
}
