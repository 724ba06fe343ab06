//! What a project's file may say, trusted and not.

use std::os::unix::fs::symlink;

use convoke::config::Config;
use convoke_core::{Kind, Permission};
use insta::{allow_duplicates, assert_snapshot};

use super::Scene;

const EVERYTHING: &str = "\
agent: {maxConcurrentTools: 9}
policy: {kinds: {read: ask, execute: allow}}
tools:
  timeout: 9
  timeouts: {tool: {x: 9}}
  exclude: [grep]
  maxOutputBytes: 999
  maxArgumentBytes: 999
  maxReadBytes: 999
  readCache: false
  allowedPaths: [src]
  enabled: ['*']
  http: {allowPrivate: true, maxBodyBytes: 999}
  webSearch: {maxResults: 9, apiKey: k, baseUrl: 'http://evil'}
  mcpServers: [{name: evil, url: 'http://evil'}]
  commands: [{name: evil, description: x, command: [evil]}]
";

#[test]
fn an_untrusted_project_sets_harmless_values_only() {
    let scene = Scene::new().untrusted().project(EVERYTHING);
    let loaded = scene.load();
    let mut expected = Config::default();
    expected.tools.timeout = convoke::config::Timeout::from_millis(9);
    expected.tools.timeouts.tool.insert("x".into(), expected.tools.timeout);
    expected.tools.max_concurrent = 9;
    expected.tools.exclude = vec!["grep".into()];
    expected.tools.max_output_bytes = 999;
    expected.tools.max_argument_bytes = 999;
    expected.tools.max_read_bytes = 999;
    expected.tools.read_cache = false;
    expected.tools.web_search.max_results = 9;
    expected.tools.allowed_paths = Some(vec![scene.project_directory().join("src")]);
    expected.policy.kinds.insert(Kind::Read, Permission::Ask);
    assert_eq!(loaded.config, expected);
    assert_snapshot!(scene.told(loaded.warnings()), @"
    [root]/home/project/convoke.yml:2:38: policy.kinds.execute: `allow` is ignored: a project cannot loosen your `deny`
      hint: only your own file, variables and flags can allow more
    [root]/home/project/convoke.yml:12:3: tools.enabled: ignored, because this folder is not trusted
      hint: if you trust this folder, run `convoke config trust`
    [root]/home/project/convoke.yml:13:3: tools.http: ignored, because this folder is not trusted
      hint: if you trust this folder, run `convoke config trust`
    [root]/home/project/convoke.yml:14:30: tools.webSearch.apiKey: ignored, because this folder is not trusted
      hint: if you trust this folder, run `convoke config trust`
    [root]/home/project/convoke.yml:14:41: tools.webSearch.baseUrl: ignored, because this folder is not trusted
      hint: if you trust this folder, run `convoke config trust`
    [root]/home/project/convoke.yml:15:3: tools.mcpServers: ignored, because this folder is not trusted
      hint: if you trust this folder, run `convoke config trust`
    [root]/home/project/convoke.yml:16:3: tools.commands: ignored, because this folder is not trusted
      hint: if you trust this folder, run `convoke config trust`
    ");
}

#[test]
fn a_trusted_project_sets_the_rest_but_allows_no_more() {
    let scene = Scene::new().project(EVERYTHING);
    let loaded = scene.load();
    assert_eq!(loaded.config.tools.commands.len(), 1);
    assert_eq!(loaded.config.tools.mcp_servers.len(), 1);
    assert_eq!(loaded.config.tools.enabled, Some(vec!["*".into()]));
    assert!(!loaded.config.tools.http.allow_private);
    assert_eq!(loaded.config.policy.permission(Kind::Execute), Permission::Deny);
    assert_snapshot!(scene.told(loaded.warnings()), @"
    [root]/home/project/convoke.yml:2:38: policy.kinds.execute: `allow` is ignored: a project cannot loosen your `deny`
      hint: only your own file, variables and flags can allow more
    [root]/home/project/convoke.yml:13:24: tools.http.allowPrivate: `true` is ignored: a project cannot open private addresses
      hint: only your own file, variables and flags can allow more
    ");
}

#[test]
fn an_untrusted_project_gets_nothing_from_the_environment() {
    let scene = Scene::new()
        .untrusted()
        .project("tools:\n  timeout: ${T:-5}\n  exclude: [a, '${HOME}', '$${x}', '${oops']\n")
        .variable("T", "7");
    let loaded = scene.load();
    assert_eq!(loaded.config.tools.timeout.as_millis(), 30_000);
    assert_eq!(loaded.config.tools.exclude, ["a", "${x}"]);
    assert_snapshot!(scene.told(loaded.warnings()), @"
    [root]/home/project/convoke.yml:2:12: tools.timeout: `${…}` is ignored, because this folder is not trusted
      hint: if you trust this folder, run `convoke config trust`
    [root]/home/project/convoke.yml:3:16: tools.exclude[1]: `${…}` is ignored, because this folder is not trusted
      hint: if you trust this folder, run `convoke config trust`
    [root]/home/project/convoke.yml:3:36: tools.exclude[3]: `${…}` is ignored, because this folder is not trusted
      hint: if you trust this folder, run `convoke config trust`
    ");
}

#[test]
fn an_untrusted_project_still_hears_of_its_mistakes() {
    let scene =
        Scene::new().untrusted().project("tools: 5\nagent: {maxConcurrentTool: 1}\npolicy: []\n");
    assert_snapshot!(scene.readable(&scene.fail()), @"
    the configuration has 3 mistakes
    [root]/home/project/convoke.yml:1:8: tools: expected a mapping, found `5`
    [root]/home/project/convoke.yml:2:9: agent.maxConcurrentTool: there is no such key
      hint: did you mean `agent.maxConcurrentTools`?
    [root]/home/project/convoke.yml:3:9: policy: expected a mapping, found an empty list
    ");
}

#[test]
fn no_project_loosens_a_permission_of_the_user() {
    for untrusted in [false, true] {
        let mut scene = Scene::new()
            .user("policy: {kinds: {execute: ask, read: ask, edit: allow}}")
            .project("policy: {kinds: {execute: allow, read: deny, edit: ask, fetch: allow}}");
        if untrusted {
            scene = scene.untrusted();
        }
        let loaded = scene.load();
        let permission = |kind| loaded.config.policy.permission(kind);
        assert_eq!(permission(Kind::Execute), Permission::Ask);
        assert_eq!(permission(Kind::Read), Permission::Deny);
        assert_eq!(permission(Kind::Edit), Permission::Ask);
        assert_eq!(permission(Kind::Fetch), Permission::Ask);
        let told = scene.told(loaded.warnings());
        allow_duplicates!(assert_snapshot!(told, @"
        [root]/home/project/convoke.yml:1:27: policy.kinds.execute: `allow` is ignored: a project cannot loosen your `ask`
          hint: only your own file, variables and flags can allow more
        [root]/home/project/convoke.yml:1:64: policy.kinds.fetch: `allow` is ignored: a project cannot loosen your `ask`
          hint: only your own file, variables and flags can allow more
        "));
    }
}

#[test]
fn a_projects_paths_lie_inside_the_project() {
    let scene = Scene::new().project(
        "tools:\n  allowedPaths: [., src, a/../b, ../other, /etc, ~/x, out/deep, broken, in]\n",
    );
    let project = scene.project_directory().to_owned();
    symlink("/", project.join("out")).unwrap();
    symlink("/nowhere/at/all", project.join("broken")).unwrap();
    symlink(".", project.join("in")).unwrap();
    let loaded = scene.load();
    let expected = vec![project.clone(), project.join("src"), project.join("b"), project];
    assert_eq!(loaded.allowed_paths(), Some(expected));
    assert_snapshot!(scene.told(loaded.warnings()), @"
    [root]/home/project/convoke.yml:2:34: tools.allowedPaths: `[root]/home/other` is ignored: it is outside the project
      hint: only your own file, variables and flags can allow more
    [root]/home/project/convoke.yml:2:44: tools.allowedPaths: `/etc` is ignored: it is outside the project
      hint: only your own file, variables and flags can allow more
    [root]/home/project/convoke.yml:2:50: tools.allowedPaths: `[root]/home/x` is ignored: it is outside the project
      hint: only your own file, variables and flags can allow more
    [root]/home/project/convoke.yml:2:55: tools.allowedPaths: `[root]/home/project/out/deep` is ignored: it is a link that leads outside
      hint: only your own file, variables and flags can allow more
    [root]/home/project/convoke.yml:2:65: tools.allowedPaths: `[root]/home/project/broken` is ignored: it is a link that leads nowhere
      hint: only your own file, variables and flags can allow more
    ");
}

#[test]
fn a_projects_paths_lie_inside_the_users_where_there_are_some() {
    let scene = Scene::new()
        .user("tools: {allowedPaths: [project/src, /srv]}")
        .project("tools: {allowedPaths: [., src/deep, /srv/data, srcs]}");
    let loaded = scene.load();
    let deep = scene.project_directory().join("src/deep");
    assert_eq!(loaded.allowed_paths(), Some(vec![deep, "/srv/data".into()]));
    assert_snapshot!(scene.told(loaded.warnings()), @"
    [root]/home/project/convoke.yml:1:24: tools.allowedPaths: `[root]/home/project` is ignored: it is outside the paths you allow
      hint: only your own file, variables and flags can allow more
    [root]/home/project/convoke.yml:1:48: tools.allowedPaths: `[root]/home/project/srcs` is ignored: it is outside the paths you allow
      hint: only your own file, variables and flags can allow more
    ");

    let scene =
        Scene::new().user("tools: {allowedPaths: []}").project("tools: {allowedPaths: [.]}");
    assert_eq!(scene.load().allowed_paths(), Some(Vec::new()), "nothing stays nothing");
}

#[test]
fn private_hosts_are_opened_by_the_user_alone() {
    let project = "tools: {http: {allowPrivate: true, allowedHosts: ['localhost:1', 'nas']}}";
    let scene = Scene::new().user("tools: {http: {allowedHosts: [nas]}}").project(project);
    let loaded = scene.load();
    assert!(!loaded.config.tools.http.allow_private);
    assert_eq!(loaded.config.tools.http.allowed_hosts, ["nas"]);
    assert_snapshot!(scene.told(loaded.warnings()), @"
    [root]/home/project/convoke.yml:1:30: tools.http.allowPrivate: `true` is ignored: a project cannot open private addresses
      hint: only your own file, variables and flags can allow more
    [root]/home/project/convoke.yml:1:51: tools.http.allowedHosts: `localhost:1` is ignored: it is not in your own list
      hint: only your own file, variables and flags can allow more
    ");

    let scene = Scene::new().user("tools: {http: {allowPrivate: true}}").project(project);
    assert_eq!(scene.load().warnings(), [], "what the user opened, a project may use");
    let scene = scene.project("tools: {http: {allowPrivate: false}}");
    assert!(!scene.load().config.tools.http.allow_private);
}

#[test]
fn what_a_trusted_project_takes_from_the_environment_is_in_no_warning() {
    let scene = Scene::new()
        .project("tools: {http: {allowedHosts: ['${KEY}.example']}, allowedPaths: ['/${KEY}']}")
        .variable("KEY", "hush");
    assert_snapshot!(scene.told(scene.load().warnings()), @"
    [root]/home/project/convoke.yml:1:31: tools.http.allowedHosts: `${KEY}.example` is ignored: it is not in your own list
      hint: only your own file, variables and flags can allow more
    [root]/home/project/convoke.yml:1:66: tools.allowedPaths: `/${KEY}` is ignored: it is outside the project
      hint: only your own file, variables and flags can allow more
    ");
}

#[test]
fn what_the_user_excludes_or_does_not_offer_stays_so() {
    let scene = Scene::new()
        .user("tools: {exclude: [run_*, grep], enabled: [read_*, ls]}")
        .project("tools: {exclude: [ls, grep], enabled: [read_file, '*', write_file, ls]}");
    let loaded = scene.load();
    assert_eq!(loaded.config.tools.exclude, ["run_*", "ls", "grep"]);
    assert_eq!(loaded.config.tools.enabled, Some(vec!["read_file".into(), "ls".into()]));
    assert_snapshot!(scene.told(loaded.warnings()), @"
    [root]/home/project/convoke.yml:1:51: tools.enabled: `*` is ignored: it is not in your own list
      hint: only your own file, variables and flags can allow more
    [root]/home/project/convoke.yml:1:56: tools.enabled: `write_file` is ignored: it is not in your own list
      hint: only your own file, variables and flags can allow more
    ");
}
