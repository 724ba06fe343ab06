use serde_json::{Value, json};

use super::super::World;
use super::*;
use crate::effect::{EffectRules, Effects};
use crate::permission::Mode;
use crate::spec::{Category, ToolSpec};

fn world() -> World {
    World { directory: "/srv".into(), home: Some("/home/u".into()), roots: Vec::new() }
}

fn shell() -> ToolSpec {
    let mut spec = ToolSpec::new("run_command", "Runs.", Kind::Execute);
    spec.category = Category::Code;
    spec
}

fn writer(name: &str) -> ToolSpec {
    let mut spec = ToolSpec::new(name, "Writes.", Kind::Edit);
    spec.category = Category::File;
    spec.effects = EffectRules { writes: vec!["path".into()], ..EffectRules::default() };
    spec
}

/// Proposes rules for a call, and says what they decide about others.
fn after(policy: Policy, spec: &ToolSpec, call: &Value) -> (Vec<RuleSpec>, Authority) {
    let (world, effects) = (world(), spec.effects.apply(call));
    let authority = Authority::new(policy);
    let facts = Facts::new(spec, call, &effects, "main", &world);
    let rules = authority.propose(&facts);
    let granted = authority.granting(&rules);
    if !rules.is_empty() {
        assert_eq!(granted.decide(&facts).permission, Permission::Allow, "{call}: {rules:?}");
    }
    (rules, granted)
}

fn decided(authority: &Authority, spec: &ToolSpec, call: &Value) -> Permission {
    let (world, effects) = (world(), spec.effects.apply(call));
    authority.decide(&Facts::new(spec, call, &effects, "main", &world)).permission
}

fn proposed(policy: Policy, command: &str) -> Vec<String> {
    let (rules, _) = after(policy, &shell(), &json!({ "command": command }));
    rules.into_iter().filter_map(|rule| rule.command.or(rule.path)).collect()
}

#[test]
fn a_proposal_is_narrow_and_would_help() {
    let default = || Policy::new(Mode::Default);
    for (command, expected) in [
        ("cargo test --workspace", &["cargo test *"][..]),
        ("git push origin main && ls -l", &["git push origin main", "ls -l"]),
        ("npm test", &["npm test"]),
        ("rm -rf build", &["rm -rf build"]),
        ("git -C /elsewhere push", &[]),
        ("ls > out.txt", &["ls", "/srv/out.txt"]),
        ("echo 'two words'", &[]),
        ("rm $X", &[]),
        ("ls *", &[]),
        ("$CMD x", &[]),
        ("echo (", &[]),
        ("cd sub && make", &[]),
    ] {
        assert_eq!(proposed(default(), command), expected, "{command}");
    }
}

/// Whoever agrees has seen one text, and would agree to any other.
#[test]
fn programs_that_run_what_they_read_are_not_proposed() {
    for command in [
        "python3 - <<E\nprint(1)\nE",
        "python3 <<E\nprint(1)\nE",
        "echo 'print(1)' | python3",
        "echo ls | bash",
        "echo ls | sh -s",
        "bash <<E\nls\nE",
        "cat list | xargs rm",
        "ssh host <<E\nls\nE",
        "kubectl apply -f -",
        "psql base < file",
    ] {
        assert_eq!(proposed(Policy::new(Mode::Default), command), [""; 0], "{command}");
    }
}

#[test]
fn no_proposal_allows_a_near_neighbour() {
    let in_place = |command: &str| json!({ "command": command });
    for (command, neighbours) in [
        (
            "ls > out.txt",
            &[
                "bash out.txt",
                "rm out.txt",
                "sh < out.txt",
                "cat out.txt",
                "./out.txt",
                "ls > other.txt",
                "ls > /etc/out.txt",
                "ls > out.txt; bash out.txt",
                "ls -l > out.txt",
                "make > out.txt",
            ][..],
        ),
        (
            "cat > run.sh <<E\nls\nE",
            &["cat run.sh", "bash run.sh", "cat > other.sh <<E\nls\nE", "sh -c 'cat > /srv/x'"],
        ),
        (
            "npm test",
            &[
                "npm test --script-shell=/tmp/x",
                "npm test --prefix /elsewhere",
                "npm run build",
                "yarn test",
                "cd /elsewhere && npm test",
                "PATH=/tmp npm test",
            ],
        ),
        (
            "cargo test -p core",
            &[
                "cargo run",
                "cargo test --config build.rustc-wrapper='x'",
                "cargo test --manifest-path /elsewhere/Cargo.toml",
                "cargo -C /elsewhere test",
                "cd /elsewhere && cargo test",
                "RUSTC_WRAPPER=x cargo test",
                "/tmp/cargo test",
                "cargo test > /etc/x",
                "cargo test; rm x",
            ],
        ),
        (
            "git status",
            &["git push", "git -C /elsewhere status", "git -c core.fsmonitor=x status", "git diff"],
        ),
        (
            "git push origin main",
            &["git push evil main", "git push --force origin main", "git push origin main:other"],
        ),
        (
            "bash build.sh",
            &["bash other.sh", "bash", "bash build.sh x", "cd /tmp && bash build.sh"],
        ),
        ("rm -rf build", &["rm -rf /", "rm -rf build src", "cd / && rm -rf build"]),
    ] {
        let call = in_place(command);
        let (rules, granted) = after(Policy::new(Mode::Default), &shell(), &call);
        assert!(!rules.is_empty(), "{command}");
        for neighbour in neighbours {
            let permission = decided(&granted, &shell(), &in_place(neighbour));
            assert_ne!(permission, Permission::Allow, "{command} allows {neighbour}: {rules:?}");
        }
        for directory in ["/elsewhere", "..", "sub"] {
            let elsewhere = json!({ "command": command, "working_directory": directory });
            let permission = decided(&granted, &shell(), &elsewhere);
            assert_ne!(permission, Permission::Allow, "{command} in {directory}: {rules:?}");
        }
    }
}

#[test]
fn a_file_tool_is_proposed_for_a_directory_and_not_as_a_whole() {
    let at = |path: &str| json!({ "path": path });
    for (path, expected, neighbours) in [
        ("src/a.rs", "src/**", &["a.rs", "tests/a.rs", "../src/a.rs", "/src/a.rs", ".env"][..]),
        ("README.md", "README.md", &["src/README.md", "Cargo.toml", "/README.md"]),
        ("/tmp/x/a", "/tmp/x/**", &["/tmp/a", "/etc/a", "a"]),
        ("/a", "/a", &["/b", "a"]),
        ("src/[a].rs", "src/**", &["a.rs"]),
    ] {
        let (rules, granted) = after(Policy::new(Mode::Default), &writer("write_file"), &at(path));
        let patterns: Vec<_> = rules.iter().map(|rule| rule.path.as_deref()).collect();
        assert_eq!(patterns, [Some(expected)], "{path}");
        for neighbour in neighbours {
            let permission = decided(&granted, &writer("write_file"), &at(neighbour));
            assert_ne!(permission, Permission::Allow, "{path} allows {neighbour}");
        }
        let other = decided(&granted, &writer("delete_everything"), &at(path));
        assert_ne!(other, Permission::Allow, "another tool on {path}");
    }
}

#[test]
fn nothing_is_proposed_where_it_would_not_help() {
    let rule = |spec| Rule::new(spec, None, None).unwrap();
    let asks = rule(RuleSpec::command(Permission::Ask, "git push *"));
    let policy = Policy::new(Mode::Default).layer(Layer::new(Scope::User, vec![asks]));
    assert!(proposed(policy, "git push").is_empty(), "somebody wants to be asked each time");
    let denies = rule(RuleSpec::command(Permission::Deny, "rm *"));
    let policy = Policy::new(Mode::Default).layer(Layer::new(Scope::User, vec![denies]));
    assert!(proposed(policy.clone(), "git push; rm x").is_empty());
    let authority = Authority::new(policy).granting(&[
        RuleSpec::command(Permission::Allow, "rm *"),
        RuleSpec::tool(Permission::Allow, "*"),
    ]);
    let world = World { directory: "/srv".into(), ..World::default() };
    let spec = ToolSpec::new("run_command", "Runs.", Kind::Execute);
    let arguments = json!({ "command": "rm x" });
    let facts = Facts::new(&spec, &arguments, &Effects::NONE, "main", &world);
    assert_eq!(authority.decide(&facts).permission, Permission::Deny, "a grant is no way out");
}
