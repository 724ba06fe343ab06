//! What holds for every project file there could be.

use convoke::config::{Config, Loaded, Trust};
use convoke::sandbox::AllowedHost;
use convoke_core::{Kind, Permission};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::Scene;

/// The keys an untrusted project may change, written a second time on purpose: a key that slips
/// into the table of the library fails this test until it is thought about here as well.
const MAY_CHANGE: &[&str] = &[
    "/tools/timeout",
    "/tools/timeouts",
    "/tools/maxConcurrent",
    "/tools/exclude",
    "/tools/maxOutputBytes",
    "/tools/maxArgumentBytes",
    "/tools/maxReadBytes",
    "/tools/readCache",
    "/tools/webSearch/maxResults",
    "/tools/allowedPaths",
    "/policy/kinds",
    "/policy/rules",
    "/sandbox/mode",
    "/sandbox/network",
    "/sandbox/hosts",
    "/sandbox/limits/processes",
    "/sandbox/limits/memoryPerProcess",
    "/sandbox/limits/cpuPerProcess",
    "/sandbox/limits/fileSize",
    "/budget",
    "/agent/strategy",
    "/agent/reflection",
    "/agent/maxRepeats",
    "/agent/compactAt",
    "/model/default",
    "/model/aliases",
    "/model/temperature",
    "/model/topP",
    "/model/thinkingBudget",
    "/model/reasoningEffort",
    "/model/maxOutputTokens",
    "/model/idleTimeout",
    "/model/retries",
];

fn permission() -> impl Strategy<Value = Permission> {
    prop::sample::select(Permission::ALL)
}

fn kinds() -> impl Strategy<Value = Value> {
    let kind = prop::sample::select(Kind::ALL);
    prop::collection::btree_map(kind, permission(), 0..6).prop_map(|kinds| json!(kinds))
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof!["[a-z_*]{1,8}", Just("${HOME}".to_owned()), Just("../..".to_owned())]
}

fn texts() -> impl Strategy<Value = Value> {
    prop::collection::vec(text(), 0..4).prop_map(|texts| json!(texts))
}

/// An amount of money.
const AMOUNT: &str = "[0-9]{1,3}(\\.[0-9]{1,3})?";

type Setting = (Vec<&'static str>, Value);

fn at(
    path: &'static [&'static str],
    value: impl Strategy<Value = Value>,
) -> impl Strategy<Value = Setting> {
    value.prop_map(move |value| (path.to_vec(), value))
}

fn number(least: u64, most: u64) -> impl Strategy<Value = Value> {
    (least..most).prop_map(|number| json!(number))
}

/// One valid key with a valid value.
fn setting() -> impl Strategy<Value = Setting> {
    prop_oneof![tool_setting(), model_setting(), sandbox_setting()]
}

fn word(words: &'static [&'static str]) -> impl Strategy<Value = Value> {
    prop::sample::select(words).prop_map(Value::from)
}

const NETWORKS: &[&str] = &["all", "hosts", "none"];
const HOSTS: &[&str] = &["a.example.com", "*.example.com", "example.com:8080", "evil.org"];

fn hosts() -> impl Strategy<Value = Value> {
    prop::collection::vec(prop::sample::select(HOSTS), 0..4).prop_map(|hosts| json!(hosts))
}

/// What a user may let programs write.
const WRITABLE: &[&[&str]] = &[&[], &["/usr"], &["/etc", "/usr/bin"]];

fn directories() -> impl Strategy<Value = Value> {
    let there = prop::sample::select(&["/", "/usr", "/usr/bin", "/etc", "."][..]);
    prop::collection::vec(there, 0..3).prop_map(|paths| json!(paths))
}

fn sandbox_setting() -> impl Strategy<Value = Setting> {
    prop_oneof![
        at(&["sandbox", "mode"], word(&["off", "auto", "required"])),
        at(&["sandbox", "backend"], word(&["auto", "landlock", "bubblewrap"])),
        at(&["sandbox", "network"], word(NETWORKS)),
        at(&["sandbox", "hosts"], hosts()),
        at(&["sandbox", "hidden"], texts()),
        at(&["sandbox", "read"], directories()),
        at(&["sandbox", "write"], directories()),
        at(&["sandbox", "limits", "processes"], number(1, 1_000_000)),
        at(&["sandbox", "limits", "memory"], number(1 << 10, 1 << 40)),
    ]
}

fn tool_setting() -> impl Strategy<Value = Setting> {
    let switch = || any::<bool>().prop_map(|switch| json!(switch));
    let server = json!([{ "name": "evil", "url": "http://evil" }]);
    let command = json!([{ "name": "evil", "description": "x", "command": ["evil"] }]);
    prop_oneof![
        at(&["agent", "maxConcurrentTools"], number(1, 1024)),
        at(&["policy", "kinds"], kinds()),
        at(&["tools", "timeout"], number(1, 86_400_000)),
        at(&["tools", "timeouts", "tool", "x"], number(1, 86_400_000)),
        at(&["tools", "maxConcurrent"], number(1, 1024)),
        at(&["tools", "allowedPaths"], texts()),
        at(&["tools", "enabled"], texts()),
        at(&["tools", "exclude"], texts()),
        at(&["tools", "maxReadBytes"], number(256, 1 << 30)),
        at(&["tools", "readCache"], switch()),
        at(&["tools", "http", "allowPrivate"], switch()),
        at(&["tools", "http", "allowedHosts"], texts()),
        at(&["tools", "http", "maxBodyBytes"], number(256, 1 << 30)),
        at(&["tools", "webSearch", "maxResults"], number(1, 100)),
        at(&["tools", "webSearch", "apiKey"], text().prop_map(Value::from)),
        at(&["tools", "webSearch", "baseUrl"], Just(json!("http://evil"))),
        at(&["tools", "mcpServers"], Just(server)),
        at(&["tools", "commands"], Just(command)),
    ]
}

fn model_setting() -> impl Strategy<Value = Setting> {
    let provider =
        json!({ "baseUrl": "http://evil", "keyVariable": "HOME", "headers": { "a": "b" } });
    let facts = json!({ "*/*": { "price": { "input": "0", "output": "0" } } });
    prop_oneof![
        at(&["model", "default"], text().prop_map(Value::from)),
        at(&["model", "aliases", "fast"], text().prop_map(Value::from)),
        at(&["model", "temperature"], number(0, 2)),
        at(&["model", "retries"], number(0, 20)),
        at(&["model", "providers", "openai"], Just(provider.clone())),
        at(&["model", "providers", "evil"], Just(provider)),
        at(&["model", "facts"], Just(facts)),
        at(&["budget", "turns"], number(1, 100_000)),
        at(&["budget", "time"], number(1, 86_400_000)),
        at(&["budget", "tokens"], number(1, 1000)),
        at(&["budget", "cost"], AMOUNT.prop_map(Value::from)),
        at(&["agent", "maxRepeats"], number(2, 100)),
    ]
}

fn file() -> impl Strategy<Value = Value> {
    prop::collection::vec(setting(), 0..8).prop_map(|settings| {
        settings.into_iter().fold(json!({}), |mut file, (path, value)| {
            let place = path.iter().fold(&mut file, |node, name| &mut node[*name]);
            *place = value;
            file
        })
    })
}

/// A user's file, which has nothing to do with trust.
fn user() -> impl Strategy<Value = Value> {
    let lists = prop::option::of(prop::collection::vec("[a-z]{1,3}", 0..3));
    let budget = (1..1000_u32, prop::option::of(1..1000_u64), prop::option::of(AMOUNT));
    let write = prop::sample::select(WRITABLE);
    let sandbox = (word(NETWORKS), hosts(), prop::option::of(1..1000_u32), write);
    (kinds(), lists.clone(), lists, budget, sandbox).prop_map(
        |(kinds, paths, exclude, budget, sandbox)| {
            let (turns, tokens, cost) = budget;
            let (network, hosts, processes, write) = sandbox;
            let limits = json!({ "processes": processes, "memory": "1GiB" });
            json!({
                "sandbox": { "network": network, "hosts": hosts, "limits": limits, "write": write,
                    "hidden": ["/private"] },
                "budget": { "turns": turns, "tokens": tokens, "cost": cost },
                "policy": { "kinds": kinds },
                "tools": { "allowedPaths": paths, "exclude": exclude },
            })
        },
    )
}

/// Keys without a value are mistakes, and told as such.
fn without_nothing(mut value: Value) -> Value {
    if let Value::Object(fields) = &mut value {
        let said = std::mem::take(fields).into_iter().filter(|(_, value)| !value.is_null());
        *fields = said.map(|(key, value)| (key, without_nothing(value))).collect();
    }
    value
}

fn load(user: &Value, project: &Value, trust: Trust) -> Loaded {
    let [user, project] = [user, project].map(|file| without_nothing(file.clone()).to_string());
    let mut scene = Scene::new().user(&user).project(&project);
    scene.sources.trust = trust;
    scene.sources.environment.insert("HOME".into(), "hush".into());
    scene.load()
}

fn without_what_may_change(config: &Config) -> Value {
    let mut json = serde_json::to_value(config).unwrap();
    for pointer in MAY_CHANGE {
        let (section, key) = pointer.rsplit_once('/').unwrap();
        json.pointer_mut(section).unwrap().as_object_mut().unwrap().remove(key);
    }
    json
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn an_untrusted_project_changes_nothing_beyond_the_harmless(user in user(), project in file()) {
        let alone = load(&user, &json!({}), Trust::Untrusted);
        let with = load(&user, &project, Trust::Untrusted);
        prop_assert_eq!(
            without_what_may_change(&with.config),
            without_what_may_change(&alone.config)
        );
        let told = format!("{:?} {:?}", with.config, with.warnings());
        prop_assert!(!told.contains("hush"), "{}", told);
    }

    #[test]
    fn no_project_allows_more_than_the_user(
        user in user(),
        project in file(),
        trusted in any::<bool>(),
    ) {
        let trust = if trusted { Trust::Trusted } else { Trust::Untrusted };
        let alone = load(&user, &json!({}), trust.clone()).config;
        let with = load(&user, &project, trust).config;
        for kind in Kind::ALL {
            prop_assert!(with.policy.permission(*kind) >= alone.policy.permission(*kind));
        }
        prop_assert!(!with.tools.http.allow_private);
        prop_assert!(with.tools.http.allowed_hosts.is_empty());
        for pattern in &alone.tools.exclude {
            prop_assert!(with.tools.exclude.contains(pattern));
        }
        let (own, set) = (alone.budget.budget(), with.budget.budget());
        prop_assert!(set.turns <= own.turns && set.time_ms <= own.time_ms);
        prop_assert!(own.tokens.is_none_or(|own| set.tokens.is_some_and(|set| set <= own)));
        prop_assert!(own.cost.is_none_or(|own| set.cost.is_some_and(|set| set <= own)));
        prop_assert!(alone.tools.allowed_paths.is_none() || with.tools.allowed_paths.is_some());
        let (own, set) = (&alone.sandbox, &with.sandbox);
        prop_assert!(set.mode >= own.mode && set.network >= own.network);
        prop_assert_eq!(set.backend, own.backend);
        let read = |host: &String| host.parse::<AllowedHost>().unwrap();
        for host in set.hosts.iter().map(read) {
            prop_assert!(own.hosts.iter().map(read).any(|allowed| allowed.includes(&host)));
        }
        for path in &set.write {
            prop_assert!(own.write.iter().any(|allowed| path.starts_with(allowed)));
        }
        prop_assert!(own.hidden.iter().all(|path| set.hidden.contains(path)));
        prop_assert!(set.limits.processes <= own.limits.processes);
        prop_assert!(set.limits.memory <= own.limits.memory && set.limits.memory.is_some());
    }
}

/// Anything that can stand under a key: what is right, what is nearly right, and what is not.
fn anything() -> impl Strategy<Value = Value> {
    let word = prop_oneof![
        "[ -~]{0,12}",
        Just("git *".to_owned()),
        Just("a[".to_owned()),
        Just("~/.ssh/**".to_owned()),
        Just("*.example.com".to_owned()),
        Just("deny".to_owned()),
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        word.prop_map(Value::from),
    ];
    let key = prop_oneof![
        "[a-z_]{0,8}",
        prop::sample::select(
            &[
                "rules",
                "kinds",
                "effect",
                "tool",
                "command",
                "path",
                "host",
                "args",
                "match",
                "not_match",
                "kind"
            ][..]
        )
        .prop_map(str::to_owned),
    ];
    leaf.prop_recursive(4, 24, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(key.clone(), inner, 0..5).prop_map(|map| json!(map)),
        ]
    })
}

/// A rule in which one thing may be wrong.
fn nearly_a_rule() -> impl Strategy<Value = Value> {
    let key = prop::sample::select(
        &[
            "effect", "tool", "category", "kind", "agent", "command", "path", "host", "args",
            "reason", "match", "x",
        ][..],
    );
    (key, anything()).prop_map(|(key, value)| {
        let mut rule = serde_json::Map::new();
        rule.insert("effect".to_owned(), json!("deny"));
        rule.insert("command".to_owned(), json!("rm *"));
        rule.insert(key.to_owned(), value);
        json!({ "rules": [rule] })
    })
}

/// Loads it as the user's policy. What is wrong with it has to be said with its key and its line.
fn loads_or_names_what_is_wrong(text: &str) -> Result<(), TestCaseError> {
    let scene = Scene::new().user(text);
    if let Err(error) = convoke::config::load(&scene.sources) {
        prop_assert!(!error.problems().is_empty());
        for problem in error.problems() {
            let place = problem.place.to_string();
            prop_assert!(place.contains("user.yml"), "{problem:?} in {text}");
            let in_policy = problem.key.as_deref().is_some_and(|key| key.starts_with("policy"));
            let has_line = place.rsplit(':').next().is_some_and(|last| last.parse::<u32>().is_ok());
            prop_assert!(has_line && (in_policy || problem.key.is_none()), "{problem:?} in {text}");
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300 * (ProptestConfig::default().cases / 256).max(1)))]
    #[test]
    fn a_policy_loads_or_its_mistakes_are_named(policy in prop_oneof![anything(), nearly_a_rule()]) {
        loads_or_names_what_is_wrong(&json!({ "policy": policy }).to_string())?;
    }

    #[test]
    fn any_text_under_policy_is_read(text in "[ -~\n]{0,80}") {
        let scene = Scene::new().user(&format!("policy:\n  {}\n", text.replace('\n', "\n  ")));
        if let Err(error) = convoke::config::load(&scene.sources) {
            prop_assert!(error.problems().iter().all(|problem| !problem.message.is_empty()));
        }
    }
}
