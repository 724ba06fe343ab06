//! What may be said about agents, by whom.

use convoke::agent::Delegation;
use convoke::config::DelegationWord;
use insta::assert_snapshot;
use serde_json::json;

use super::Scene;

const EVERYTHING: &str = "\
agents:
  enabled: true
  delegation: per_agent
  maxDepth: 2
  maxParallel: 500
  maxTotal: 5
  background: true
  allow: ['*']
  exclude: [b]
  directories: [team]
  overrides:
    reviewer: {enabled: false, model: evil/model}
    writer: {enabled: true, tools: ['*']}
";

#[test]
fn an_untrusted_project_can_only_take_agents_away() {
    let scene = Scene::new().untrusted().user("agents: {exclude: [a]}").project(EVERYTHING);
    let loaded = scene.load();
    let agents = &loaded.config.agents;
    assert_eq!(agents.delegation, DelegationWord::Delegate);
    assert_eq!((agents.max_depth, agents.max_parallel, agents.max_total), (2, 16, 5));
    assert_eq!(agents.exclude, ["a", "b"]);
    assert_eq!((agents.allow.as_ref(), agents.directories.len()), (None, 0));
    let overrides = serde_json::to_value(&agents.overrides).unwrap();
    assert_eq!(overrides, json!({ "reviewer": { "enabled": false }, "writer": {} }));
    assert_snapshot!(scene.told(loaded.warnings()), @"
    [root]/home/project/convoke.yml:2:3: agents.enabled: ignored, because this folder is not trusted
      hint: if you trust this folder, run `convoke config trust`
    [root]/home/project/convoke.yml:3:3: agents.delegation: ignored, because this folder is not trusted
      hint: if you trust this folder, run `convoke config trust`
    [root]/home/project/convoke.yml:5:16: agents.maxParallel: `500` is ignored: a project cannot raise your `16`
      hint: only your own file, variables and flags can allow more
    [root]/home/project/convoke.yml:7:3: agents.background: ignored, because this folder is not trusted
      hint: if you trust this folder, run `convoke config trust`
    [root]/home/project/convoke.yml:8:3: agents.allow: ignored, because this folder is not trusted
      hint: if you trust this folder, run `convoke config trust`
    [root]/home/project/convoke.yml:10:3: agents.directories: ignored, because this folder is not trusted
      hint: if you trust this folder, run `convoke config trust`
    [root]/home/project/convoke.yml:12:32: agents.overrides.reviewer.model: ignored, because this folder is not trusted
      hint: if you trust this folder, run `convoke config trust`
    [root]/home/project/convoke.yml:13:14: agents.overrides.writer.enabled: ignored, because this folder is not trusted
      hint: if you trust this folder, run `convoke config trust`
    [root]/home/project/convoke.yml:13:29: agents.overrides.writer.tools: ignored, because this folder is not trusted
      hint: if you trust this folder, run `convoke config trust`
    ");
    let loaded = scene.looked_at().load();
    let entries = loaded.project_entries().iter();
    let keys: Vec<&str> = entries.map(|entry| entry.label.as_str()).collect();
    let keys: Vec<&str> = keys.iter().filter_map(|label| label.split(' ').next()).collect();
    assert!(keys.contains(&"agents.overrides.writer.enabled"), "{keys:?}");
    assert!(!keys.contains(&"agents.overrides.reviewer.enabled"), "{keys:?}");
}

#[test]
fn an_untrusted_project_can_switch_everything_off() {
    let off = "agents: {enabled: false, background: false, delegation: off}";
    let loaded = Scene::new().untrusted().project(off).load();
    assert_eq!(loaded.warnings(), []);
    let agents = &loaded.config.agents;
    assert_eq!((agents.enabled, agents.background), (false, false));
    assert_eq!(agents.delegation(), Delegation::Off);
}

#[test]
fn what_the_user_switched_off_stays_off_in_a_trusted_project() {
    let user = "agents: {enabled: false, delegation: off, background: false, allow: ['r*'], \
                overrides: {writer: {enabled: false}}}";
    let scene = Scene::new().user(user).project(
        "agents: {enabled: true, delegation: union, background: true, allow: [reviewer, writer], \
         directories: [team], overrides: {writer: {enabled: true, maxTurns: 5}}}",
    );
    let loaded = scene.load();
    let agents = &loaded.config.agents;
    assert_eq!((agents.enabled, agents.background), (false, false));
    assert_eq!(agents.delegation, DelegationWord::Off);
    assert_eq!(agents.allow, Some(vec!["reviewer".to_owned()]));
    assert_eq!(agents.directories, [scene.project_directory().join("team")]);
    let overrides = serde_json::to_value(&agents.overrides).unwrap();
    assert_eq!(overrides, json!({ "writer": { "enabled": false, "maxTurns": 5 } }));
    let told = scene.told(loaded.warnings());
    assert_eq!(
        told.matches("a project cannot switch on what you switched off").count(),
        4,
        "{told}"
    );
    assert!(
        told.contains("agents.allow: `writer` is ignored: it is not in your own list"),
        "{told}"
    );
}

#[test]
fn mistakes_about_agents_are_told_where_they_are() {
    let scene = Scene::new().user(
        "agents: {delegation: sometimes, maxDepth: 0, overrides: {'a b': {}, x: {maxTurn: 1}}}",
    );
    let told = scene.readable(&scene.fail());
    for expected in [
        "agents.delegation: expected one of `delegate`, `union`, `per_agent`, `off`",
        "agents.maxDepth: expected a whole number from 1 to 16",
        "agents.overrides.\"a b\": expected a name that matches",
        "agents.overrides.x.maxTurn: there is no such key\n  hint: did you mean `agents.overrides.x.maxTurns`,",
    ] {
        assert!(told.contains(expected), "{expected}\n{told}");
    }
}
