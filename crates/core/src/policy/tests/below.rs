//! Rules on paths, for what is given a directory above them.

use std::path::Path;

use super::*;

fn denying(pattern: &str) -> Policy {
    let allow = |pattern: &str| RuleSpec::command(Permission::Allow, pattern);
    Policy::new(Mode::Default).layer(user([
        allow("*"),
        RuleSpec::tool(Permission::Allow, "mcp__*"),
        RuleSpec::path(Permission::Deny, pattern),
    ]))
}

#[test]
fn a_program_that_walks_over_a_denied_path_is_asked_about() {
    for (pattern, line) in [
        ("~/.ssh/**", "grep -r KEY ~"),
        ("~/.ssh/**", "grep -r KEY /"),
        ("~/.ssh/**", "cp -r ~ x"),
        ("~/.ssh/**", "tar c /home"),
        ("~/.ssh/**", "rsync -a ~/ x"),
        ("~/.ssh/**", "mv ~ x"),
        ("~/.ssh/**", "ln -s ~ x"),
        ("~/.ssh/**", "./tool ~"),
        ("~/.ssh/**", "tool --directory=/home/u"),
        ("~/.ssh/**", "cd ~ && tar c ."),
        ("~/.ssh/**", "cd ~ && rg KEY"),
        (".env", "tar c ."),
        (".env", "grep -r KEY"),
        (".env", "grep -rn KEY ."),
        (".env", "rg --hidden KEY"),
        (".env", "git add ."),
        (".env", "git grep --no-index KEY"),
        (".env", "git clean -fdx"),
        (".env", "docker build ."),
        (".env", "bash -c 'cp -r . x'"),
        ("config/secret.yml", "cp -r config x"),
        ("**/*.pem", "grep -r KEY src"),
        ("**/.env", "tar c src"),
        ("*/secret.yml", "grep -r KEY config"),
    ] {
        let decision = on_command(&denying(pattern), line);
        assert_eq!(decision.permission, Permission::Ask, "{pattern}: {line}: {decision:?}");
        assert!(decision.reason.contains("may touch what the rule on path"), "{decision:?}");
    }
}

#[test]
fn everyday_commands_stay_allowed_where_the_denied_path_is_elsewhere() {
    let everyday = [
        "ls",
        "ls -la",
        "ls ~",
        "ls src/*.rs",
        "cat README.md",
        "grep -r x src",
        "grep -rn x src tests",
        "rg x src",
        "wc -l src/*.rs",
        "find . -name '*.rs'",
        "cargo test",
        "cargo build --release",
        "git status",
        "git diff",
        "git log --oneline",
        "git commit -m 'Say what it does'",
        "git add src/main.rs",
        "npm test",
        "make build",
        "python3 -m pytest tests",
        "jq . package.json",
        "cd src && ls",
        "tar xzf a.tgz",
        "cp a b",
    ];
    for pattern in [".env", "~/.ssh/**", "/etc/shadow", "config/secret.yml", "test/keys/**"] {
        for line in everyday {
            let decision = on_command(&denying(pattern), line);
            assert_eq!(decision.permission, Permission::Allow, "{pattern}: {line}: {decision:?}");
        }
    }
    for line in ["ls", "cargo test", "git status", "git add .", "make build", "find . -name x"] {
        let decision = on_command(&denying("**/*.pem"), line);
        assert_eq!(decision.permission, Permission::Allow, "{line}: {decision:?}");
    }
}

#[test]
fn a_tool_that_moves_or_is_somebody_elses_is_asked_about_too() {
    let mut moves = ToolSpec::new("move_file", "Moves.", Kind::Move);
    moves.effects.writes = vec!["from".into(), "to".into()];
    let policy = Policy::new(Mode::Full)
        .layer(user([RuleSpec::path(Permission::Deny, "config/secret.yml")]));
    let decision = call(&policy, &moves, &json!({ "from": "config", "to": "other" }));
    assert_eq!(decision.permission, Permission::Ask, "{decision:?}");
    let decision = call(&policy, &moves, &json!({ "from": "src", "to": "other" }));
    assert_eq!(decision.permission, Permission::Allow, "{decision:?}");
    let mut foreign = ToolSpec::new("mcp__files__read_tree", "Reads.", Kind::Other);
    foreign.category = Category::Mcp;
    let decision = call(&policy, &foreign, &json!({ "path": "config" }));
    assert_eq!(decision.permission, Permission::Ask, "{decision:?}");
}

fn forbidden(policy: Policy, spec: &ToolSpec, arguments: &Value) -> Forbidden {
    let (world, effects) = (world(), spec.effects.apply(arguments));
    Authority::new(policy).forbidden(&Facts::new(spec, arguments, &effects, "main", &world))
}

#[test]
fn what_a_search_must_not_see_is_told() {
    let mut search = ToolSpec::new("grep", "Searches.", Kind::Search);
    search.effects.reads = vec!["path".into()];
    let arguments = json!({ "path": "." });
    let rules = [
        RuleSpec::path(Permission::Deny, ".env"),
        RuleSpec::path(Permission::Deny, "~/.ssh/**"),
        RuleSpec::path(Permission::Ask, "private/**"),
        RuleSpec::path(Permission::Allow, "**"),
        RuleSpec { tool: Some("read_file".into()), ..RuleSpec::path(Permission::Deny, "a") },
        RuleSpec { kind: Some(Kind::Edit), ..RuleSpec::path(Permission::Deny, "b") },
        RuleSpec { agent: Some("main/*".into()), ..RuleSpec::path(Permission::Deny, "c") },
    ];
    let policy = || Policy::new(Mode::Default).layer(user(rules.clone()));
    assert_eq!(call(&policy(), &search, &arguments).permission, Permission::Allow);
    let found = forbidden(policy(), &search, &arguments);
    for (path, expected) in [
        ("/srv/.env", true),
        ("/home/u/.ssh/id", true),
        ("/srv/private/x", true),
        ("/srv/a", false),
        ("/srv/b", false),
        ("/srv/c", false),
        ("/srv/sub/.env", false),
    ] {
        assert_eq!(found.has(Path::new(path)), expected, "{path}");
    }
    let about_it = forbidden(policy(), &search, &json!({ "path": "private" }));
    assert!(!about_it.has(Path::new("/srv/private/x")), "somebody was asked about it");
    assert!(forbidden(Policy::new(Mode::Full), &search, &arguments).is_empty());
}

#[test]
fn paths_that_are_denied_to_everybody_can_be_told_without_looking() {
    let rules = [
        RuleSpec::path(Permission::Deny, ".env"),
        RuleSpec::path(Permission::Deny, "~/.ssh/**"),
        RuleSpec::path(Permission::Deny, "**/*.pem"),
        RuleSpec::path(Permission::Deny, "a/*"),
        RuleSpec::path(Permission::Ask, "b"),
        RuleSpec { kind: Some(Kind::Edit), ..RuleSpec::path(Permission::Deny, "c") },
        RuleSpec { agent: Some("x".into()), ..RuleSpec::path(Permission::Deny, "d") },
    ];
    let authority = Authority::new(Policy::new(Mode::Default).layer(user(rules)));
    let denied = authority.denied_paths(Path::new("/srv"));
    assert_eq!(denied, [Path::new("/home/u/.ssh"), Path::new("/srv/.env")]);
}
