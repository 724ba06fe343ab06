//! What holds for every project file there could be.

use convoke::config::{Config, Loaded, Trust};
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

/// One valid key with a valid value.
fn setting() -> impl Strategy<Value = (Vec<&'static str>, Value)> {
    let number = |least: u64, most: u64| (least..most).prop_map(|number| json!(number));
    let switch = || any::<bool>().prop_map(|switch| json!(switch));
    let at = |path: &'static [&'static str], value: BoxedStrategy<Value>| {
        value.prop_map(move |value| (path.to_vec(), value)).boxed()
    };
    let server = json!([{ "name": "evil", "url": "http://evil" }]);
    let command = json!([{ "name": "evil", "description": "x", "command": ["evil"] }]);
    prop_oneof![
        at(&["agent", "maxConcurrentTools"], number(1, 1024).boxed()),
        at(&["policy", "kinds"], kinds().boxed()),
        at(&["tools", "timeout"], number(1, 86_400_000).boxed()),
        at(&["tools", "timeouts", "tool", "x"], number(1, 86_400_000).boxed()),
        at(&["tools", "maxConcurrent"], number(1, 1024).boxed()),
        at(&["tools", "allowedPaths"], texts().boxed()),
        at(&["tools", "enabled"], texts().boxed()),
        at(&["tools", "exclude"], texts().boxed()),
        at(&["tools", "maxReadBytes"], number(256, 1 << 30).boxed()),
        at(&["tools", "readCache"], switch().boxed()),
        at(&["tools", "http", "allowPrivate"], switch().boxed()),
        at(&["tools", "http", "allowedHosts"], texts().boxed()),
        at(&["tools", "http", "maxBodyBytes"], number(256, 1 << 30).boxed()),
        at(&["tools", "webSearch", "maxResults"], number(1, 100).boxed()),
        at(&["tools", "webSearch", "apiKey"], text().prop_map(Value::from).boxed()),
        at(&["tools", "webSearch", "baseUrl"], Just(json!("http://evil")).boxed()),
        at(&["tools", "mcpServers"], Just(server).boxed()),
        at(&["tools", "commands"], Just(command).boxed()),
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
    (kinds(), lists.clone(), lists).prop_map(|(kinds, paths, exclude)| {
        json!({
            "policy": { "kinds": kinds },
            "tools": { "allowedPaths": paths, "exclude": exclude },
        })
    })
}

fn load(user: &Value, project: &Value, trust: Trust) -> Loaded {
    let mut scene = Scene::new().user(&user.to_string()).project(&project.to_string());
    scene.sources.trust = trust;
    scene.sources.environment.insert("HOME".into(), "hush".into());
    scene.load()
}

fn without_what_may_change(config: &Config) -> Value {
    let mut json = serde_json::to_value(config).unwrap();
    for pointer in MAY_CHANGE {
        if let Some(value) = json.pointer_mut(pointer) {
            *value = Value::Null;
        }
    }
    json["tools"].as_object_mut().unwrap().remove("allowedPaths");
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
        let alone = load(&user, &json!({}), trust).config;
        let with = load(&user, &project, trust).config;
        for kind in Kind::ALL {
            prop_assert!(with.policy.permission(*kind) >= alone.policy.permission(*kind));
        }
        prop_assert!(!with.tools.http.allow_private);
        prop_assert!(with.tools.http.allowed_hosts.is_empty());
        for pattern in &alone.tools.exclude {
            prop_assert!(with.tools.exclude.contains(pattern));
        }
        prop_assert!(alone.tools.allowed_paths.is_none() || with.tools.allowed_paths.is_some());
    }
}
