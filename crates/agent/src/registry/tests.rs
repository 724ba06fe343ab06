//! Agents come, change and go.

use std::sync::Arc;
use std::time::Duration;

use convoke_core::Declaration;
use serde_json::json;

use super::*;
use crate::definition::{InputConfig, InputType, ToolChoice, ToolConfig};

fn agent(name: &str) -> AgentDefinition {
    AgentDefinition::new(name, format!("What {name} does."))
}

fn off() -> AgentOverride {
    AgentOverride { enabled: Some(false), ..AgentOverride::default() }
}

fn report(definitions: impl IntoIterator<Item = AgentDefinition>) -> LoadReport {
    LoadReport::of(definitions)
}

#[test]
fn r150_registering_checks_a_name_and_a_description() {
    let registry = AgentRegistry::new();
    registry.register(agent("reader")).unwrap();
    assert_eq!(registry.get("reader").unwrap().description, "What reader does.");
    assert_eq!(registry.get("writer").map(|agent| agent.name.clone()), None);
    let error = registry.register(AgentDefinition::new("a b", "")).unwrap_err();
    let RegistryError::Invalid { agent, problems } = &error else { panic!("{error}") };
    assert_eq!((agent.as_str(), problems.len()), ("a b", 2));
    assert_eq!(registry.names(), ["reader"]);
}

#[test]
fn c20_a_name_is_taken_once_unless_it_is_replaced() {
    let registry = AgentRegistry::new();
    registry.register(agent("reader")).unwrap();
    let error = registry.register(agent("reader")).unwrap_err();
    assert_eq!(error, RegistryError::Duplicate("reader".into()));
    let mut other = agent("reader");
    other.model.model = Some("a/b".to_owned());
    registry.replace(other).unwrap();
    assert_eq!(registry.get("reader").unwrap().model.model.as_deref(), Some("a/b"));
    assert!(registry.remove("reader"));
    assert!(!registry.remove("reader"));
}

#[test]
fn a_bad_text_is_found_when_an_agent_is_registered() {
    let mut definition = agent("reader");
    definition.prompt.query = Some("Do ${taks}".to_owned());
    let error = AgentRegistry::new().register(definition).unwrap_err();
    assert!(error.to_string().contains("did you mean `task`?"), "{error}");
}

#[test]
fn a_registered_agent_has_its_texts_ready() {
    let mut definition = agent("reader");
    definition.input = InputConfig::none().required("file", InputType::String, "Which.");
    definition.prompt.query = Some("Read ${file}".to_owned());
    let registry = AgentRegistry::new();
    registry.register(definition).unwrap();
    let inputs = json!({ "file": "a.rs" });
    let rendered = registry.get("reader").unwrap().template().render(inputs.as_object().unwrap());
    assert_eq!(rendered.unwrap().query.as_deref(), Some("Read a.rs"));
}

#[test]
fn g9_who_listens_is_told_which_names_changed() {
    let registry = AgentRegistry::new();
    let mut changes = registry.subscribe();
    registry.clone().register(agent("b")).unwrap();
    registry.register(agent("a")).unwrap();
    assert!(registry.register(agent("a")).is_err());
    registry.replace(agent("a")).unwrap();
    let mut changed = agent("a");
    changed.description = "Else.".to_owned();
    changed.run.max_turns = Some(3);
    registry.replace(changed).unwrap();
    registry.remove("b");
    let told: Vec<String> = std::iter::from_fn(|| changes.try_recv().ok())
        .map(|change| format!("{} {change}", change.version))
        .collect();
    assert_eq!(
        told,
        [
            "1 added b; 0 unchanged",
            "2 added a; 1 unchanged",
            "3 changed a (description, max_turns); 1 unchanged",
            "4 removed b; 1 unchanged",
        ]
    );
    assert_eq!(registry.version(), 4);
}

#[test]
fn r152_shipped_agents_are_there_unless_they_are_switched_off() {
    let registry = AgentRegistry::new();
    let overrides = BTreeMap::from([
        ("generalist".to_owned(), off()),
        (
            "test_generator".to_owned(),
            AgentOverride { max_turns: Some(7), ..AgentOverride::default() },
        ),
    ]);
    let (change, errors) = registry.load_shipped(&overrides);
    assert_eq!(errors, []);
    assert_eq!(change.added, ["codebase_investigator", "document_generator", "test_generator"]);
    assert_eq!(registry.get("test_generator").unwrap().run.max_turns, Some(7));
    let (change, _) = registry.load_shipped(&BTreeMap::new());
    assert_eq!(
        change.to_string(),
        "added generalist; changed test_generator (max_turns); 2 unchanged"
    );
}

/// Overriding the tools of an agent once broke loading it, and dropped what nobody had overridden.
/// gemini-cli 4.11.
#[test]
fn pitfall_4_11_overriding_tools_works_and_keeps_everything_else() {
    let words = Declaration {
        name: "grep".to_owned(),
        description: "Finds.".to_owned(),
        parameters: json!({ "type": "object" }).into(),
    };
    let mut definition = agent("reader");
    definition.tools = ToolConfig {
        allow: Some(vec![ToolChoice::Declared(words), ToolChoice::Named("ls".to_owned())]),
        exclude: vec!["http_*".to_owned()],
    };
    definition.run.max_time = Some(Duration::from_mins(1));
    definition.policy.commands = Some(vec!["git diff *".to_owned()]);
    let own = AgentOverride {
        tools: Some(vec!["grep".to_owned(), "read_file".to_owned()]),
        ..AgentOverride::default()
    };
    let changed = own.apply(&definition);
    assert_eq!(format!("{:?}", changed.tools.allow), "Some([grep, read_file])");
    let kept = changed.tools.allow.as_ref().and_then(|allow| allow.first());
    assert!(matches!(kept, Some(ToolChoice::Declared(_))), "its own words stay");
    assert_eq!(Outline::of(&definition).differences(&Outline::of(&changed)), ["tools"]);
}

#[test]
fn an_override_of_nothing_changes_nothing_and_of_all_changes_all() {
    for definition in shipped::all() {
        let same = AgentOverride::default().apply(&definition);
        assert_eq!(Outline::of(&definition), Outline::of(&same));
    }
    let text = || Some("x".to_owned());
    let names = || Some(vec!["x".to_owned()]);
    let all = AgentOverride {
        enabled: Some(true),
        display_name: text(),
        description: text(),
        system_prompt: text(),
        model: text(),
        temperature: Some(0.5),
        top_p: Some(0.5),
        thinking_budget: Some(1),
        reasoning_effort: Some(convoke_model::request::Effort::Low),
        max_turns: Some(1),
        max_time: Some(Duration::from_secs(1)),
        max_tokens: Some(1),
        max_cost: "1".parse().ok(),
        max_tool_calls: Some(1),
        tools: names(),
        exclude_tools: names(),
        agents: names(),
        mode: Some(convoke_core::Mode::Plan),
        context: Some(crate::definition::Inherit::Fork),
        workspace: Some(convoke_core::WorkspaceKind::Copy),
        background: Some(true),
        at_most_once: Some(true),
        on_stuck: Some(convoke_core::run::OnStuck::Ask),
    };
    let before = agent("reader");
    let names = Outline::of(&before).differences(&Outline::of(&all.apply(&before)));
    assert_eq!(names.len(), 22, "{names:?}");
}

#[test]
fn files_hide_shipped_agents_and_give_way_to_programs() {
    let registry = AgentRegistry::new();
    registry.load_shipped(&BTreeMap::new());
    registry.register(agent("mine")).unwrap();
    let mut files = report([agent("generalist"), agent("mine"), agent("extra")]);
    let (change, errors) = registry.replace_all(&mut files, &BTreeMap::new());
    assert_eq!(errors, []);
    assert_eq!(change.added, ["extra"]);
    assert_eq!(change.changed.iter().map(|one| &one.name).collect::<Vec<_>>(), ["generalist"]);
    assert_eq!(registry.get("mine").unwrap().layer(), AgentLayer::Program);
    assert_eq!(registry.get("generalist").unwrap().layer(), AgentLayer::File);
    assert!(files.warnings[0].to_string().contains("the agent `mine` is not used"));

    let (change, _) = registry.replace_all(&mut report([agent("extra")]), &BTreeMap::new());
    assert_eq!(change.changed.len(), 1, "the shipped one is back");
    assert_eq!(registry.get("generalist").unwrap().layer(), AgentLayer::Shipped);
    assert_eq!(change.removed, Vec::<String>::new());
}

#[test]
fn reading_files_again_says_what_changed() {
    let registry = AgentRegistry::new();
    let before = [agent("a"), agent("b"), agent("c")];
    registry.replace_all(&mut report(before), &BTreeMap::new());
    let mut changed = agent("b");
    changed.tools = ToolConfig::only(["grep"]);
    changed.prompt.system_prompt = Some("Be short.".to_owned());
    let mut changes = registry.subscribe();
    let after = [agent("a"), changed, agent("d")];
    let (change, _) = registry.replace_all(&mut report(after), &BTreeMap::new());
    assert_eq!(
        change.to_string(),
        "added d; changed b (tools, system_prompt); removed c; 1 unchanged"
    );
    assert_eq!(changes.try_recv().ok(), Some(change));
}

#[test]
fn settings_apply_to_agents_of_files_and_are_checked() {
    let registry = AgentRegistry::new();
    let overrides = BTreeMap::from([
        (
            "a".to_owned(),
            AgentOverride { model: Some("x/y".to_owned()), ..AgentOverride::default() },
        ),
        ("b".to_owned(), off()),
        (
            "c".to_owned(),
            AgentOverride { system_prompt: Some("${nope}".to_owned()), ..AgentOverride::default() },
        ),
        ("aa".to_owned(), off()),
    ]);
    let mut files = report([agent("a"), agent("b"), agent("c")]);
    let (_, errors) = registry.replace_all(&mut files, &overrides);
    assert_eq!(registry.names(), ["a"]);
    assert_eq!(registry.get("a").unwrap().model.model.as_deref(), Some("x/y"));
    assert!(matches!(&errors[..], [RegistryError::Invalid { agent, .. }] if agent == "c"));
    let unknown = registry.unknown_overrides(&overrides);
    assert_eq!(unknown, ["there is no agent `aa`; did you mean `a`?"], "not those switched off");
}

#[test]
fn a_registered_agent_stays_with_who_has_it() {
    let registry = AgentRegistry::new();
    registry.register(agent("a")).unwrap();
    let held = registry.get("a").unwrap();
    registry.remove("a");
    assert_eq!(held.name, "a");
    assert_eq!(Arc::strong_count(&held), 1);
}
