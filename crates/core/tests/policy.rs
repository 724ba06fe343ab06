//! The policy as a whole: a corpus of attempts to get around it, and what must hold for any policy.

#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

use convoke_core::policy::{Authority, Facts, Layer, Policy, Rule, RuleSpec, Scope, World};
use convoke_core::{Category, Effects, Kind, Mode, Permission, ToolSpec};
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};

fn rules(specs: impl IntoIterator<Item = RuleSpec>) -> Vec<Rule> {
    specs.into_iter().map(|spec| Rule::new(spec, Some("/home/u"), None).unwrap()).collect()
}

fn layer(specs: impl IntoIterator<Item = RuleSpec>) -> Layer {
    Layer::new(Scope::User, rules(specs))
}

fn commands(effect: Permission, patterns: &[&str]) -> Vec<RuleSpec> {
    patterns.iter().map(|pattern| RuleSpec::command(effect, *pattern)).collect()
}

fn denials() -> Vec<RuleSpec> {
    let mut denied = commands(Permission::Deny, &["rm *", "curl *"]);
    denied.push(RuleSpec::path(Permission::Deny, "~/.ssh/**"));
    denied
}

fn decide(authority: &Authority, line: &str) -> Permission {
    let world =
        World { directory: "/work".into(), home: Some("/home/u".into()), roots: Vec::new() };
    let mut spec = ToolSpec::new("run_command", "Runs.", Kind::Execute);
    spec.category = Category::Code;
    let arguments = json!({ "command": line });
    authority.decide(&Facts::new(&spec, &arguments, &Effects::NONE, "main", &world)).permission
}

fn corpus(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// What the attempts are made against: a few programs are allowed, two and a directory are denied.
fn guarded() -> Policy {
    let mut specs = commands(Permission::Allow, &["git *", "ls *", "cat *", "echo *"]);
    specs.extend(denials());
    Policy::new(Mode::Default).layer(layer(specs))
}

#[test]
fn no_attempt_to_get_around_the_policy_is_allowed() {
    let cases = corpus(include_str!("data/policy/bypass.jsonl"));
    assert!(cases.len() >= 250, "{}", cases.len());
    // The second is a child that may do anything, the third a grandchild.
    let first = Authority::new(guarded());
    let child = first.child(Policy::new(Mode::Full));
    let grandchild = child.child(Policy::new(Mode::Full));
    let mut passed = Vec::new();
    for case in &cases {
        let line = case["command"].as_str().unwrap();
        let stopped_here = match case["layer"].as_str().unwrap() {
            "policy" => true,
            "sandbox" => continue,
            other => panic!("there is no layer `{other}`"),
        };
        for authority in [&first, &child, &grandchild] {
            if stopped_here && decide(authority, line) == Permission::Allow {
                passed.push(line);
            }
        }
    }
    assert!(passed.is_empty(), "{} passed: {passed:#?}", passed.len());
}

/// In `full` everything is allowed that is not denied, so only what is denied can be told apart.
#[test]
fn what_is_denied_is_not_allowed_in_any_mode() {
    let policy = Policy::new(Mode::Full).layer(layer(denials()));
    let authority = Authority::new(policy);
    let cases = corpus(include_str!("data/policy/bypass.jsonl"));
    let about_rm = |line: &&str| {
        let words = line.split(|c: char| !c.is_ascii_alphanumeric());
        words.clone().any(|word| word == "rm")
            && !line.starts_with("ssh ")
            && !line.starts_with("awk")
    };
    let lines = cases.iter().filter(|case| case["layer"] == "policy");
    let lines = lines.filter_map(|case| case["command"].as_str()).filter(about_rm);
    let passed: Vec<&str> =
        lines.filter(|line| decide(&authority, line) == Permission::Allow).collect();
    assert!(passed.is_empty(), "{} passed: {passed:#?}", passed.len());
}

#[test]
fn everyday_commands_are_allowed() {
    let allowed = [
        "git *",
        "ls *",
        "cat *",
        "echo *",
        "head *",
        "tail *",
        "wc *",
        "grep *",
        "rg *",
        "find *",
        "printf *",
        "pwd",
        "true",
        "false",
        "test *",
        "[ *",
        "cargo *",
        "npm test",
        "npm run test* *",
        "npm run lint",
        "python3 -m pytest *",
        "sort *",
        "cut *",
        "tr *",
        "sed *",
        "awk *",
        "diff *",
        "date *",
        "which *",
        "uname *",
        "basename *",
        "dirname *",
        "file *",
        "stat *",
        "du *",
        "df *",
        "jq *",
        "uniq *",
        "cd *",
        "tree *",
        "sleep *",
    ];
    let mut specs = commands(Permission::Allow, &allowed);
    specs.extend(commands(Permission::Deny, &["rm *", "curl *"]));
    let authority = Authority::new(Policy::new(Mode::Default).layer(layer(specs)));
    let cases = corpus(include_str!("data/policy/benign.jsonl"));
    assert!(cases.len() >= 150, "{}", cases.len());
    let lines = cases.iter().filter_map(|case| case["command"].as_str());
    let refused: Vec<&str> =
        lines.filter(|line| decide(&authority, line) != Permission::Allow).collect();
    assert!(refused.is_empty(), "{} refused: {refused:#?}", refused.len());
}

/// The parser tries some nestings both ways on every level; what it is given has to stay small.
#[test]
fn deep_text_takes_no_time() {
    let authority = Authority::new(guarded());
    let openings =
        ["(", "((", "$(", "$((", "{ ", "<(", "${x:-", "\"$(", "if ", "[[ ", "`", "@(", "f() {"];
    let started = std::time::Instant::now();
    for opening in openings {
        for times in [1, 4, 7, 8, 24, 5_000] {
            let closing = if opening.contains('(') { ")" } else { "}" };
            for text in [
                opening.repeat(times),
                format!("{}ls{}", opening.repeat(times), closing.repeat(times)),
                format!("echo {}", opening.repeat(times)),
            ] {
                let begun = started.elapsed();
                assert_ne!(decide(&authority, &format!("{text}; rm x")), Permission::Allow);
                let took = started.elapsed().saturating_sub(begun);
                assert!(took.as_secs() < 2, "{took:?} for {times} times {opening}");
            }
        }
    }
}

fn permission() -> impl Strategy<Value = Permission> {
    select(Permission::ALL)
}

fn spec() -> impl Strategy<Value = RuleSpec> {
    let command = select(vec!["git *", "git push *", "ls *", "rm *", "* --force", "cat *", "*"]);
    let path = select(vec!["src/**", "~/.ssh/**", "/etc/**", "**/*.pem"]);
    let tool = select(vec!["*", "run_*", "read_file"]);
    prop_oneof![
        (permission(), command).prop_map(|(effect, text)| RuleSpec::command(effect, text)),
        (permission(), path).prop_map(|(effect, text)| RuleSpec::path(effect, text)),
        (permission(), tool).prop_map(|(effect, text)| RuleSpec::tool(effect, text)),
    ]
}

fn specs() -> impl Strategy<Value = Vec<RuleSpec>> {
    proptest::collection::vec(spec(), 0..6)
}

fn policy() -> impl Strategy<Value = Policy> {
    (select(Mode::ALL), specs(), specs()).prop_map(|(mode, user, project)| {
        let project = Layer::new(Scope::Project, rules(project));
        Policy::new(mode).layer(layer(user)).layer(project)
    })
}

fn line() -> impl Strategy<Value = String> {
    let word = select(vec![
        "git",
        "push",
        "ls",
        "rm",
        "--force",
        "cat",
        "src/a",
        "~/.ssh/id",
        "/etc/x",
        "$X",
        "*.rs",
        "&&",
        ";",
        "|",
        ">",
        "$(ls)",
        "bash -c 'rm x'",
        "env",
        "(",
        ")",
        "x=1",
        "sudo",
        "xargs",
    ]);
    proptest::collection::vec(word, 0..8).prop_map(|words| words.join(" "))
}

proptest! {
    #[test]
    fn adding_a_denial_never_allows_more(policy in policy(), spec in spec(), line in line()) {
        let mut denial = spec;
        denial.effect = Permission::Deny;
        let with = policy.clone().layer(layer([denial]));
        let (before, after) = (Authority::new(policy), Authority::new(with));
        prop_assert!(decide(&after, &line) >= decide(&before, &line));
    }

    #[test]
    fn the_order_of_rules_does_not_matter(
        mode in select(Mode::ALL),
        (first, second) in specs().prop_flat_map(|specs| (Just(specs.clone()), Just(specs).prop_shuffle())),
        line in line(),
    ) {
        let ask = |specs| decide(&Authority::new(Policy::new(mode).layer(layer(specs))), &line);
        prop_assert_eq!(ask(first), ask(second));
    }

    #[test]
    fn authority_never_grows_down_the_chain(
        first in policy(),
        below in proptest::collection::vec(policy(), 0..4),
        line in line(),
    ) {
        let mut authority = Authority::new(first);
        let mut before = decide(&authority, &line);
        for own in below {
            authority = authority.child(own);
            let now = decide(&authority, &line);
            prop_assert!(now >= before);
            before = now;
        }
    }

    #[test]
    fn a_project_never_allows_more(policy in policy(), specs in specs(), line in line()) {
        let with = policy.clone().layer(Layer::new(Scope::Project, rules(specs)));
        let (before, after) = (Authority::new(policy), Authority::new(with));
        prop_assert!(decide(&after, &line) >= decide(&before, &line));
    }

    #[test]
    fn any_text_is_judged(text in "\\PC{0,200}") {
        decide(&Authority::new(guarded()), &text);
    }

    #[test]
    fn text_made_of_the_shells_own_characters_is_judged(
        parts in proptest::collection::vec(
            select(vec![
                "(", ")", "{", "}", "$(", "`", "${", "$((", "))", "[[", "]]", "\"", "'", "\\", "<<E",
                "\n", ";", "|", "&", "<(", ">", "if", "then", "fi", "case", "in", "esac", "do", "done",
                "for", "while", " ", "a", "=", "*", "?", "~", "#", "!", "rm x", "E", "$'", "@(", "2>&1",
            ]),
            0..40,
        ),
    ) {
        decide(&Authority::new(guarded()), &parts.concat());
    }
}
