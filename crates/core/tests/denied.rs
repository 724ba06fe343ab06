//! Rules that deny, against every way to spell what they deny; and everyday calls, which they leave alone.

#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

use convoke_core::policy::{Facts, Layer, Policy, Rule, RuleSpec, Scope, World, runs_later};
use convoke_core::{Category, Effects, Kind, Mode, Permission, Resource, ToolSpec};
use serde_json::{Value, json};

fn corpus(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Reads a corpus of command lines: one JSON text for each.
fn lines(text: &str) -> Vec<String> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn world() -> World {
    World { directory: "/srv".into(), home: Some("/home/u".into()), roots: Vec::new() }
}

fn policy(mode: Mode, specs: impl IntoIterator<Item = RuleSpec>) -> Policy {
    let rules = specs.into_iter().map(|spec| Rule::new(spec, Some("/home/u"), None).unwrap());
    Policy::new(mode).layer(Layer::new(Scope::User, rules.collect()))
}

fn denying() -> Policy {
    policy(
        Mode::Full,
        [
            RuleSpec::path(Permission::Deny, ".env"),
            RuleSpec::path(Permission::Deny, "~/.ssh/**"),
            RuleSpec::command(Permission::Deny, "rm *"),
            RuleSpec::host(Permission::Deny, "evil.example"),
        ],
    )
}

/// Decides about a tool that fetches the URL in its argument.
fn fetched(policy: &Policy, url: &str) -> Permission {
    let mut spec = ToolSpec::new("http_get", "Fetches.", Kind::Fetch);
    spec.category = Category::Network;
    spec.effects.urls.push("url".to_owned());
    let arguments = json!({ "url": url });
    let (world, effects) = (world(), spec.effects.apply(&arguments));
    policy.decide(&Facts::new(&spec, &arguments, &effects, "main", &world)).permission
}

fn shell_spec() -> ToolSpec {
    let mut spec = ToolSpec::new("run_command", "Runs.", Kind::Execute);
    spec.category = Category::Code;
    spec
}

fn on_command(policy: &Policy, line: &str) -> Permission {
    let (spec, world, arguments) = (shell_spec(), world(), json!({ "command": line }));
    policy.decide(&Facts::new(&spec, &arguments, &Effects::NONE, "main", &world)).permission
}

fn on_arguments(policy: &Policy, arguments: &Value) -> Permission {
    let mut spec = ToolSpec::new("mcp__box__act", "Acts.", Kind::Other);
    spec.category = Category::Mcp;
    let world = world();
    policy.decide(&Facts::new(&spec, arguments, &Effects::NONE, "main", &world)).permission
}

#[test]
fn host_rules_judge_every_spelling_of_a_url_as_the_client_does() {
    let cases = corpus(include_str!("data/policy/hosts.jsonl"));
    let denies = ["evil.example", "127.0.0.1"].map(|host| RuleSpec::host(Permission::Deny, host));
    let denying = policy(Mode::Full, denies);
    let mut rule = RuleSpec::tool(Permission::Allow, "http_*");
    rule.host = Some("good.example".to_owned());
    let allowing = policy(Mode::Default, [rule]);
    let mut wrong = Vec::new();
    let (mut denied, mut kept) = (0, 0);
    for case in &cases {
        let (kind, url) = (case["kind"].as_str().unwrap(), case["url"].as_str().unwrap());
        let (by_denial, by_allowance) = (fetched(&denying, url), fetched(&allowing, url));
        let holds = match kind {
            "denied" => {
                denied += 1;
                by_denial != Permission::Allow && by_allowance == Permission::Ask
            }
            "other" => by_denial == Permission::Allow,
            "not_allowed" => {
                kept += 1;
                by_allowance == Permission::Ask
            }
            _ => by_allowance == Permission::Allow && by_denial == Permission::Allow,
        };
        if !holds {
            wrong.push(format!("{kind} {url:?}: {by_denial:?} {by_allowance:?}"));
        }
    }
    assert!(denied >= 60 && kept >= 25, "{denied} {kept}");
    assert!(wrong.is_empty(), "{} wrong: {wrong:#?}", wrong.len());
}

#[test]
fn host_rules_believe_the_tool_and_not_the_text() {
    let deny = policy(Mode::Full, [RuleSpec::host(Permission::Deny, "evil.example")]);
    let mut spec = ToolSpec::new("http_get", "Fetches.", Kind::Fetch);
    spec.effects.urls.push("url".to_owned());
    let arguments = json!({ "url": "http://good.example/" });
    let effects =
        Effects { reads: vec![Resource::Host("evil.example:80".into())], writes: Vec::new() };
    let world = world();
    let decision = deny.decide(&Facts::new(&spec, &arguments, &effects, "main", &world));
    assert_eq!(decision.permission, Permission::Deny, "{decision:?}");
}

#[test]
fn deny_rules_notice_denied_things_in_any_part_of_a_command() {
    let cases = lines(include_str!("data/policy/deny_words.jsonl"));
    assert!(cases.len() >= 100, "{}", cases.len());
    let passed: Vec<&String> =
        cases.iter().filter(|line| on_command(&denying(), line) == Permission::Allow).collect();
    assert!(passed.is_empty(), "{} passed: {passed:#?}", passed.len());
    for line in ["cat .env", "ls; rm x", "cat ~/.ssh/id", "ping evil.example"] {
        assert_eq!(on_command(&denying(), line), Permission::Deny, "{line}");
    }
}

#[test]
fn deny_rules_leave_everyday_commands_alone_in_mode_full() {
    let cases = lines(include_str!("data/policy/benign_full.jsonl"));
    assert!(cases.len() >= 90, "{}", cases.len());
    let stopped: Vec<&String> =
        cases.iter().filter(|line| on_command(&denying(), line) != Permission::Allow).collect();
    assert!(stopped.is_empty(), "{} stopped: {stopped:#?}", stopped.len());
}

#[test]
fn deny_rules_notice_denied_things_in_any_argument_of_a_foreign_tool() {
    let cases = corpus(include_str!("data/policy/deny_arguments.jsonl"));
    assert!(cases.len() >= 140, "{}", cases.len());
    let passed: Vec<&Value> =
        cases.iter().filter(|case| on_arguments(&denying(), case) == Permission::Allow).collect();
    assert!(passed.is_empty(), "{} passed: {passed:#?}", passed.len());
}

#[test]
fn deny_rules_leave_everyday_arguments_alone() {
    let cases = corpus(include_str!("data/policy/benign_arguments.jsonl"));
    assert!(cases.len() >= 60, "{}", cases.len());
    let stopped: Vec<&Value> =
        cases.iter().filter(|case| on_arguments(&denying(), case) != Permission::Allow).collect();
    assert!(stopped.is_empty(), "{} stopped: {stopped:#?}", stopped.len());
}

#[test]
fn a_variable_that_changes_programs_is_asked_about_in_every_mode() {
    let spec = ToolSpec::new("set_env", "Sets.", Kind::Edit);
    let decide = |policy: &Policy, name: &str| {
        let arguments = json!({ "key": name, "value": "x" });
        let writes = vec![Resource::Variable(name.to_owned())];
        let effects = Effects { reads: Vec::new(), writes };
        let world = world();
        policy.decide(&Facts::new(&spec, &arguments, &effects, "main", &world)).permission
    };
    for mode in [Mode::Default, Mode::AutoEdit, Mode::Full] {
        for name in ["HOME", "XDG_CONFIG_HOME", "RUSTC_WRAPPER", "LESSOPEN", "MY_OWN"] {
            assert_eq!(decide(&Policy::new(mode), name), Permission::Ask, "{mode:?} {name}");
            let broad = policy(mode, [RuleSpec::tool(Permission::Allow, "*")]);
            assert_eq!(decide(&broad, name), Permission::Ask, "{mode:?} {name}");
        }
    }
    assert_eq!(decide(&Policy::new(Mode::AutoEdit), "NO_COLOR"), Permission::Allow);
    let mut named = RuleSpec::tool(Permission::Allow, "set_env");
    named.args.insert("key".to_owned(), "MY_*".to_owned());
    assert_eq!(decide(&policy(Mode::Default, [named]), "MY_OWN"), Permission::Allow);
}

#[test]
fn a_variable_that_was_set_makes_later_commands_opaque() {
    let allow = policy(Mode::Default, [RuleSpec::command(Permission::Allow, "git *")]);
    let (spec, world, arguments) = (shell_spec(), world(), json!({ "command": "git status" }));
    let mut facts = Facts::new(&spec, &arguments, &Effects::NONE, "main", &world);
    assert_eq!(allow.decide(&facts).permission, Permission::Allow);
    facts.session_variables.push("XDG_CONFIG_HOME".to_owned());
    let decision = allow.decide(&facts);
    assert_eq!(decision.permission, Permission::Ask);
    assert!(decision.reason.contains("`XDG_CONFIG_HOME`"), "{decision:?}");
}

#[test]
fn files_that_run_later_are_asked_about_for_every_change() {
    let rule = |file: convoke_core::policy::RunsLater| {
        Rule::on_changes(&file.glob(), file.reason, "built in".to_owned()).unwrap()
    };
    let full =
        Policy::new(Mode::Full).layer(Layer::new(Scope::User, runs_later().map(rule).collect()));
    for file in runs_later() {
        let path = file.example();
        let path = path.trim_start_matches('/');
        for line in [
            format!("echo x > {path}"),
            format!("echo x >> sub/{path}"),
            format!("echo x | tee {path}"),
            format!("cp x {path}"),
            format!("mv x ./{}", path.to_uppercase()),
            format!("sed -i s/a/b/ {path}"),
            format!("dd of={path}"),
            format!("mytool --output={path}"),
        ] {
            assert_eq!(on_command(&full, &line), Permission::Ask, "{line}");
        }
        let arguments = json!({ "path": path, "content": "x" });
        assert_eq!(on_arguments(&full, &arguments), Permission::Ask, "{arguments}");
        for line in [format!("cat {path}"), format!("git diff {path}"), format!("ls -l {path}")] {
            assert_eq!(on_command(&full, &line), Permission::Allow, "{line}");
        }
    }
    for line in lines(include_str!("data/policy/benign_full.jsonl")) {
        assert_eq!(on_command(&full, &line), Permission::Allow, "{line}");
    }
    for line in ["sort a > $OUT", "for f in *.txt; do sort $f > $f.sorted; done", "rm *.o"] {
        assert_eq!(on_command(&full, line), Permission::Allow, "{line}");
    }
}
