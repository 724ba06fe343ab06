//! Why a value is what it is.

use std::fmt::Write as _;

use convoke::config::{Explanation, config_schema};
use insta::assert_snapshot;
use serde_json::json;

use super::Scene;

fn scene() -> Scene {
    Scene::new()
        .user(
            "tools:\n  timeout: 1000\n  exclude: [a]\n  webSearch:\n    apiKey: ${KEY}\n    \
             engineId: id-${KEY}\n  mcpServers:\n  - name: files\n    url: http://x/${KEY}\n",
        )
        .project("tools:\n  timeout: ${T}\n  exclude: [b]\n  webSearch: {apiKey: k2}\n")
        .variable("KEY", "hush")
        .variable("T", "2000")
        .flag("tools.timeout", "3000")
}

fn told(scene: &Scene, explanation: &Explanation) -> String {
    let mut text = String::new();
    let value = explanation.value.as_ref().map(ToString::to_string);
    let origin = explanation.origin.as_ref().map(ToString::to_string);
    let default = explanation.default.as_ref().map(ToString::to_string);
    writeln!(text, "{} = {value:?} from {origin:?}", explanation.key).unwrap();
    writeln!(text, "{:?} (default {default:?})", explanation.description).unwrap();
    for lower in &explanation.overridden {
        writeln!(text, "over {} from {}", lower.value, lower.origin).unwrap();
    }
    for entry in &explanation.entries {
        writeln!(text, "- {} = {} from {}", entry.key, entry.value, entry.origin).unwrap();
    }
    scene.readable(&text)
}

#[test]
fn a_value_has_a_layer_a_place_and_a_history() {
    let scene = scene();
    let loaded = scene.load();
    let explain = |key: &str| told(&scene, &loaded.explain(key).unwrap());
    assert_snapshot!(explain("tools.timeout"), @r#"
    tools.timeout = Some("3000") from Some("flags (--set tools.timeout)")
    Some("How long one call may take, as `90s` or in milliseconds, where nothing closer says otherwise.") (default Some("30000"))
    over 2000 from project ([root]/home/project/convoke.yml:2:12)
    over 1000 from user ([root]/home/user.yml:2:12)
    over 30000 from built-in
    "#);
    assert_snapshot!(explain("tools.exclude"), @r#"
    tools.exclude = Some("[\"a\",\"b\"]") from Some("project ([root]/home/project/convoke.yml:3:12)")
    Some("Names of tools that are never offered, with `*` for any text. A project's file adds to the user's list.") (default Some("[]"))
    over ["a"] from user ([root]/home/user.yml:3:12)
    over [] from built-in
    "#);
    assert_snapshot!(explain("tools.allowedPaths"), @r#"
    tools.allowedPaths = None from None
    Some("Directories that file tools may touch, relative to the directory of the file that lists them; `~/` is the home directory. An empty list allows nothing; without the key it is the workspace. A project's file can only narrow what the user allows.") (default None)
    "#);
    assert_snapshot!(explain("tools.mcpServers[0].enabled"), @r#"
    tools.mcpServers[0].enabled = None from None
    Some("Whether it is used.") (default Some("true"))
    "#);
    assert_snapshot!(explain("policy.kinds.execute"), @r#"
    policy.kinds.execute = Some("\"ask\"") from Some("built-in")
    Some("Whether a call may be made: `allow`, `ask` (a person decides) or `deny`.") (default Some("\"ask\""))
    "#);
}

#[test]
fn secrets_and_what_is_made_of_variables_stay_hidden() {
    let scene = scene();
    let loaded = scene.load();
    assert_snapshot!(told(&scene, &loaded.explain("tools.webSearch").unwrap()), @r#"
    tools.webSearch = Some("{\"apiKey\":\"***\",\"engineId\":\"id-${KEY}\",\"maxResults\":10}") from None
    Some("Web search.") (default Some("{\"maxResults\":10}"))
    - tools.webSearch.apiKey = "***" from project ([root]/home/project/convoke.yml:4:23)
    - tools.webSearch.engineId = "id-${KEY}" from user ([root]/home/user.yml:6:15)
    - tools.webSearch.maxResults = 10 from built-in
    "#);
    assert_snapshot!(told(&scene, &loaded.explain("tools.webSearch.apiKey").unwrap()), @r#"
    tools.webSearch.apiKey = Some("\"***\"") from Some("project ([root]/home/project/convoke.yml:4:23)")
    Some("The key for it; write `${NAME}` to take it from the environment.") (default None)
    over "***" from user ([root]/home/user.yml:5:13)
    "#);
    assert_eq!(
        loaded.explain("tools.mcpServers[0].url").unwrap().value,
        Some(json!("http://x/${KEY}"))
    );
    let listing: Vec<_> = loaded.entries().collect();
    let everything = format!(
        "{loaded:?}{}{:?}{}{:?}",
        loaded.to_json(),
        listing,
        serde_json::to_string(&loaded.explain("tools").unwrap()).unwrap(),
        loaded.config.tools.web_search.api_key,
    );
    assert!(!everything.contains("hush") && !everything.contains("k2"), "{everything}");
    assert_eq!(loaded.config.tools.web_search.api_key.as_ref().unwrap().expose(), "k2");
    assert_eq!(loaded.config.tools.mcp_servers[0].url.as_deref().unwrap(), "http://x/hush");
}

#[test]
fn the_other_spelling_explains_the_key_itself() {
    let explanation = scene().load().explain("agent.maxConcurrentTools").unwrap();
    assert_eq!(explanation.key, "tools.maxConcurrent");
    assert_eq!(explanation.alias.as_deref(), Some("agent.maxConcurrentTools"));
    assert_eq!(explanation.value, Some(json!(3)));
}

#[test]
fn an_unknown_key_has_a_nearest() {
    let loaded = scene().load();
    for (key, expected) in [
        (
            "tools.timout",
            "there is no key `tools.timout`; did you mean `tools.timeout` or `tools.timeouts`?",
        ),
        ("timeout", "there is no key `timeout`; did you mean `tools.timeout`?"),
        ("zzz", "there is no key `zzz`"),
        ("tools..x", "`tools..x` is not a key: a name is missing"),
    ] {
        assert_eq!(loaded.explain(key).unwrap_err().to_string(), expected);
    }
}

#[test]
fn every_leaf_is_listed_once_with_its_origin() {
    let scene = scene();
    let entries: Vec<_> = scene.load().entries().collect();
    let mut keys: Vec<&str> = entries.iter().map(|entry| entry.key.as_str()).collect();
    let count = keys.len();
    keys.dedup();
    assert_eq!(keys.len(), count);
    let lines: Vec<String> = entries
        .iter()
        .filter(|entry| !entry.key.starts_with("policy."))
        .map(|entry| format!("{} = {} ({})", entry.key, entry.value, entry.origin.layer))
        .collect();
    assert_snapshot!(lines.join("\n"), @r#"
    agent.compactAt = 50 (built-in)
    agent.maxRepeats = 3 (built-in)
    agent.maxRescues = 3 (built-in)
    agent.onStuck = "restart" (built-in)
    agent.strategy = "direct" (built-in)
    agent.workspace = "shared" (built-in)
    agents.background = false (built-in)
    agents.delegation = "delegate" (built-in)
    agents.directories = [] (built-in)
    agents.enabled = true (built-in)
    agents.exclude = [] (built-in)
    agents.maxDepth = 3 (built-in)
    agents.maxParallel = 16 (built-in)
    agents.maxTotal = 200 (built-in)
    budget.time = 600000 (built-in)
    budget.turnTime = 300000 (built-in)
    budget.turns = 30 (built-in)
    model.idleTimeout = 120000 (built-in)
    model.retries = 4 (built-in)
    sandbox.backend = "auto" (built-in)
    sandbox.hidden = [] (built-in)
    sandbox.hosts = [] (built-in)
    sandbox.limits.processes = 2048 (built-in)
    sandbox.mode = "auto" (built-in)
    sandbox.network = "none" (built-in)
    sandbox.write = [] (built-in)
    tools.commands = [] (built-in)
    tools.environment = [] (built-in)
    tools.exclude = ["a","b"] (project)
    tools.http.allowPrivate = false (built-in)
    tools.http.allowedHosts = [] (built-in)
    tools.http.maxBodyBytes = 10485760 (built-in)
    tools.http.maxRedirects = 10 (built-in)
    tools.maxArgumentBytes = 4194304 (built-in)
    tools.maxConcurrent = 3 (built-in)
    tools.maxListedTokens = 2000 (built-in)
    tools.maxOutputBytes = 65536 (built-in)
    tools.maxReadBytes = 16777216 (built-in)
    tools.mcpFiles = [] (built-in)
    tools.mcpServers[0].name = "files" (user)
    tools.mcpServers[0].url = "http://x/${KEY}" (user)
    tools.readCache = true (built-in)
    tools.timeout = 3000 (flags)
    tools.timeouts.category.network = 60000 (built-in)
    tools.webSearch.apiKey = "***" (project)
    tools.webSearch.engineId = "id-${KEY}" (user)
    tools.webSearch.maxResults = 10 (built-in)
    "#);
}

#[test]
fn what_is_shown_is_a_valid_configuration() {
    let shown = scene().load().to_json();
    assert!(jsonschema::is_valid(&config_schema(), &shown), "{shown}");
    assert_eq!(shown["tools"]["timeout"], 3000);
}

#[test]
fn models_and_budgets_are_explained() {
    let scene = Scene::new()
        .user(
            "model:\n  default: fast\n  providers:\n    work:\n      \
             baseUrl: https://${HOST}/v1\n      key: ${KEY}\n      headers: {X-Team: infra}\n\
             budget: {cost: '2.50'}\n",
        )
        .project("budget: {cost: '1.50'}\nmodel: {default: work/x}\n")
        .variable("HOST", "hush")
        .variable("KEY", "hush")
        .variable("CONVOKE__MODEL__ALIASES__FAST", "work/tiny")
        .variable("CONVOKE__MODEL__TOP_P", "0.5");
    let loaded = scene.load();
    let explain = |key: &str| told(&scene, &loaded.explain(key).unwrap());
    assert_snapshot!(explain("model.default"), @r#"
    model.default = Some("\"work/x\"") from Some("project ([root]/home/project/convoke.yml:2:18)")
    Some("The model that is asked where nobody names one: `provider/model`, or an alias.") (default None)
    over "fast" from user ([root]/home/user.yml:2:12)
    "#);
    assert_snapshot!(explain("budget.cost"), @r#"
    budget.cost = Some("\"1.50\"") from Some("project ([root]/home/project/convoke.yml:1:16)")
    Some("How many US dollars may be spent, as a decimal in quotes: `\"1.50\"`.") (default None)
    over "2.50" from user ([root]/home/user.yml:8:16)
    "#);
    assert_snapshot!(explain("budget.time"), @r#"
    budget.time = Some("600000") from Some("built-in")
    Some("How long a run may take, as `1h30m` or in milliseconds, without the time spent waiting for people.") (default Some("600000"))
    "#);
    assert_snapshot!(explain("model.providers"), @r#"
    model.providers = Some("{\"work\":{\"baseUrl\":\"https://${HOST}/v1\",\"headers\":{\"X-Team\":\"***\"},\"key\":\"***\"}}") from None
    Some("Providers by name: new ones, and what is different about known ones. A folder that is not trusted cannot set them.") (default Some("{}"))
    - model.providers.work.baseUrl = "https://${HOST}/v1" from user ([root]/home/user.yml:5:16)
    - model.providers.work.headers.X-Team = "***" from user ([root]/home/user.yml:7:25)
    - model.providers.work.key = "***" from user ([root]/home/user.yml:6:12)
    "#);
    assert_snapshot!(explain("model.aliases.fast"), @r#"
    model.aliases.fast = Some("\"work/tiny\"") from Some("environment (environment variable CONVOKE__MODEL__ALIASES__FAST)")
    None (default None)
    "#);
    assert_snapshot!(explain("model.topP"), @r#"
    model.topP = Some("0.5") from Some("environment (environment variable CONVOKE__MODEL__TOP_P)")
    Some("Only the likeliest words that make up this share are considered. Sent only if it is set.") (default None)
    "#);
    assert_snapshot!(explain("agent.reflection"), @r#"
    agent.reflection = None from None
    Some("When a run looks back: never, after a turn in which a call failed, or after every turn with calls. Without the key, one that plans looks back after failures, and any other never.") (default None)
    "#);
    assert_eq!(loaded.config.model.providers["work"].base_url.as_deref(), Some("https://hush/v1"));
    assert!(!format!("{loaded:?}").contains("hush"));
}
