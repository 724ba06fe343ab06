//! Which layer wins, and how values of several layers come together.

use convoke::config::Timeout;
use convoke_core::{Category, Kind, Permission};
use insta::{allow_duplicates, assert_snapshot};

use super::Scene;

#[test]
fn nothing_anywhere_gives_what_is_built_in() {
    let loaded = Scene::new().load();
    assert_eq!(loaded.config, convoke::config::Config::default());
    assert_eq!(loaded.warnings(), []);
    assert_eq!(loaded.allowed_paths(), None);
    assert_eq!(loaded.project_root(), None);
}

#[test]
fn the_later_layer_wins() {
    let mut scene = Scene::new();
    let mut expected = vec![30_000];
    let timeout = |scene: &Scene| scene.load().config.tools.timeout.as_millis();
    let mut seen = vec![timeout(&scene)];
    scene = scene.user("tools: {timeout: 1}");
    seen.push(timeout(&scene));
    scene = scene.project("tools: {timeout: 2}");
    seen.push(timeout(&scene));
    scene = scene.variable("CONVOKE__TOOLS__TIMEOUT", "3");
    seen.push(timeout(&scene));
    scene = scene.flag("tools.timeout", "4");
    seen.push(timeout(&scene));
    expected.extend([1, 2, 3, 4]);
    assert_eq!(seen, expected);
}

#[test]
fn mappings_are_merged_and_lists_are_replaced_but_for_servers() {
    let scene = Scene::new()
        .user(
            "tools:\n  timeouts:\n    category: {file: 5}\n    tool: {a: 1, b: 2}\n  \
             mcpServers:\n  - {name: one, url: 'http://localhost:1'}\n",
        )
        .project(
            "tools:\n  timeouts:\n    tool: {b: 3}\n  \
             mcpServers:\n  - {name: two, url: 'http://localhost:2', enabled: false}\n",
        );
    let tools = scene.load().config.tools;
    let millis = Timeout::from_millis;
    assert_eq!(tools.timeouts.category[&Category::Network], millis(60_000));
    assert_eq!(tools.timeouts.category[&Category::File], millis(5));
    assert_eq!(tools.timeouts.tool["a"], millis(1));
    assert_eq!(tools.timeouts.tool["b"], millis(3));
    let servers: Vec<(&str, bool)> =
        tools.mcp_servers.iter().map(|server| (server.name.as_str(), server.enabled)).collect();
    assert_eq!(servers, [("one", true), ("two", false)]);
}

/// A server of a later layer changes the one of its name, key by key, or takes its place.
#[test]
fn a_server_is_changed_by_its_name() {
    let user = "tools:\n  mcpServers:\n  - {name: git, command: mcp-git, args: [-v], env: {A: x}}\n  \
                - {name: web, url: 'http://localhost:1', headers: {h: v}}\n";
    let project = "tools:\n  mcpServers:\n  - {name: git, enabled: false, timeout: 5s}\n  \
                   - {name: db, command: mcp-db}\n";
    let change = r#"[{"name": "web", "command": "mcp-web"}, {"name": "db", "args": ["x"]}]"#;
    let scene = Scene::new().user(user).project(project).flag("tools.mcpServers", change);
    let tools = scene.load().config.tools;
    let [git, web, db] = tools.mcp_servers.as_slice() else { panic!("{tools:?}") };
    assert_eq!((db.command.as_deref(), db.args.len()), (Some("mcp-db"), 1));
    assert_eq!(
        (git.command.as_deref(), git.args.as_slice()),
        (Some("mcp-git"), &["-v".into()][..])
    );
    assert_eq!((git.enabled, git.timeout), (false, Some(Timeout::from_millis(5_000))));
    assert_eq!((web.command.as_deref(), &web.url), (Some("mcp-web"), &None));
    assert!(web.headers.is_empty());
}

/// Bug: a switch whose word is a variable was taken for a server that is not reached by anything.
#[test]
fn a_server_is_switched_by_a_variable() {
    for (word, off) in [("false", &["s"][..]), ("true", &[])] {
        let scene = Scene::new()
            .user("tools: {mcpServers: [{name: s, enabled: '${USE_S}'}]}\n")
            .variable("USE_S", word);
        let config = scene.load().config;
        assert_eq!(config.tools.mcp_servers, [], "{word}");
        let runtime = convoke::Runtime::builder(scene.project_directory()).config(config);
        let runtime = runtime.build().unwrap();
        assert_eq!(runtime.servers_switched_off_elsewhere().collect::<Vec<_>>(), off, "{word}");
    }
}

#[test]
fn a_command_tool_has_sensible_defaults() {
    let scene = Scene::new().project(
        "tools:\n  commands:\n  - name: lint\n    description: Lints.\n    command: [make, lint]\n    \
         workingDirectory: sub\n    env: {TOKEN: '${T:-hush}'}\n",
    );
    let loaded = scene.load();
    let command = &loaded.config.tools.commands[0];
    assert_eq!((command.kind, command.category), (Kind::Execute, Category::Custom));
    assert_eq!(command.parameters["type"], "object");
    assert_eq!(command.working_directory, Some(scene.project_directory().join("sub")));
    assert_eq!(command.env["TOKEN"].expose(), "hush");
    assert!(!format!("{:?}", loaded.config).contains("hush"));
}

#[test]
fn paths_are_relative_to_the_file_that_names_them() {
    let scene = Scene::new().user("tools: {allowedPaths: [data, ~/docs, /srv]}");
    let (home, project) = (scene.home().to_owned(), scene.project_directory().to_owned());
    let expected = vec![home.join("data"), home.join("docs"), "/srv".into()];
    assert_eq!(scene.load().allowed_paths(), Some(expected));

    let scene = scene.variable("CONVOKE__TOOLS__ALLOWED_PATHS", "./src, ../x");
    assert_eq!(scene.load().allowed_paths(), Some(vec![project.join("src"), home.join("x")]));

    let scene = scene.flag("tools.allowedPaths", "");
    assert_eq!(scene.load().allowed_paths(), Some(Vec::new()));
}

#[test]
fn the_other_spelling_of_a_key_is_the_same_key() {
    let scene = Scene::new().user("agent: {maxConcurrentTools: 8}");
    let loaded = scene.load();
    assert_eq!(loaded.config.tools.max_concurrent, 8);
    assert_eq!(loaded.config.agent.max_concurrent_tools, None);
    assert_eq!(loaded.warnings(), []);

    let scene = scene.flag("tools.maxConcurrent", "9");
    assert_eq!(scene.load().config.tools.max_concurrent, 9, "a later layer wins all the same");
}

#[test]
fn of_two_spellings_in_one_layer_the_smaller_counts() {
    for (canonical, alias) in [(2, 5), (5, 2), (2, 2)] {
        let scene = Scene::new().user(&format!(
            "tools:\n  maxConcurrent: {canonical}\nagent:\n  maxConcurrentTools: {alias}\n"
        ));
        let loaded = scene.load();
        assert_eq!(loaded.config.tools.max_concurrent, 2, "{canonical} and {alias}");
        let told = scene.told(loaded.warnings());
        allow_duplicates!(assert_snapshot!(told, @"
        [root]/home/user.yml:4:23: agent.maxConcurrentTools: `tools.maxConcurrent` is set as well; the smaller value, 2, counts
          hint: `agent.maxConcurrentTools` is another spelling of `tools.maxConcurrent`: keep one of them
        "));
    }
}

#[test]
fn the_environment_and_flags_belong_to_the_user_and_may_allow_more() {
    let scene = Scene::new()
        .untrusted()
        .variable("CONVOKE__POLICY__KINDS__EXECUTE", "ask")
        .variable("CONVOKE__TOOLS__HTTP__ALLOW_PRIVATE", "true")
        .flag("policy.kinds.edit", "allow");
    let config = scene.load().config;
    assert_eq!(config.policy.permission(Kind::Execute), Permission::Ask);
    assert_eq!(config.policy.permission(Kind::Edit), Permission::Allow);
    assert!(config.tools.http.allow_private);
}
