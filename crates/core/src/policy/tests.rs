mod below;
mod leave;

use serde_json::{Value, json};

use super::*;
use crate::effect::Effects;
use crate::spec::{Category, ToolSpec};

fn world() -> World {
    World { directory: "/srv".into(), home: Some("/home/u".into()), roots: Vec::new() }
}

fn rule(spec: RuleSpec) -> Rule {
    Rule::new(spec, Some("/home/u"), None).unwrap()
}

fn user(specs: impl IntoIterator<Item = RuleSpec>) -> Layer {
    Layer::new(Scope::User, specs.into_iter().map(rule).collect())
}

fn shell_spec() -> ToolSpec {
    let mut spec = ToolSpec::new("run_command", "Runs.", Kind::Execute);
    spec.category = Category::Code;
    spec
}

fn on_command(policy: &Policy, line: &str) -> Decision {
    call(policy, &shell_spec(), &json!({ "command": line }))
}

fn call(policy: &Policy, spec: &ToolSpec, arguments: &Value) -> Decision {
    let (world, effects) = (world(), spec.effects.apply(arguments));
    policy.decide(&Facts::new(spec, arguments, &effects, "main", &world))
}

fn example() -> Policy {
    use Permission::{Allow, Deny};
    Policy::new(Mode::Default).layer(user([
        RuleSpec::command(Allow, "git *"),
        RuleSpec::command(Allow, "ls *"),
        RuleSpec::command(Allow, "cat *"),
        RuleSpec::command(Deny, "rm *"),
        RuleSpec::path(Deny, "~/.ssh/**"),
    ]))
}

/// claude-code#36637, #37662: what is chained or nested is judged command by command.
#[test]
fn every_command_of_a_line_has_to_be_allowed() {
    use Permission::{Allow, Ask, Deny};
    for (line, expected) in [
        ("git status", Allow),
        ("git status && ls -la | cat", Allow),
        ("git status && make", Ask),
        ("git status; rm -rf x", Deny),
        ("ls $(rm x)", Deny),
        ("cat ~/.ssh/id_rsa", Deny),
        ("cat /srv/../home/u/.ssh/id", Deny),
        ("cd ~/.ssh && cat id", Deny),
        ("cat $X", Ask),
        ("cat ~/.ss*/id", Ask),
        ("cat *.rs", Allow),
        ("ls > out", Ask),
        ("ls 2>/dev/null", Allow),
        ("ls > ~/.ssh/x", Deny),
        ("$X", Ask),
        ("timeout 5 git status", Allow),
        ("bash -c 'git status'", Allow),
        ("sudo git status", Ask),
        ("x=1", Ask),
        ("", Ask),
    ] {
        let decision = on_command(&example(), line);
        assert_eq!(decision.permission, expected, "{line}: {decision:?}");
    }
}

#[test]
fn no_mode_and_no_rule_lifts_a_denial() {
    let allow = user([RuleSpec::tool(Permission::Allow, "*")]);
    let plan = Policy::new(Mode::Plan).layer(allow.clone());
    assert_eq!(on_command(&plan, "ls").permission, Permission::Deny);
    let denied = Policy::new(Mode::Full).kinds([(Kind::Execute, Permission::Deny)]).layer(allow);
    assert_eq!(on_command(&denied, "ls").permission, Permission::Deny);
    let full = Policy::new(Mode::Full).layer(user([RuleSpec::command(Permission::Deny, "rm *")]));
    assert_eq!(on_command(&full, "rm x").permission, Permission::Deny);
    assert_eq!(on_command(&full, "ls").permission, Permission::Allow);
    assert_eq!(on_command(&full, "$X").permission, Permission::Ask);
}

#[test]
fn a_project_can_only_narrow() {
    let rules = || {
        let specs = [
            RuleSpec::command(Permission::Allow, "make *"),
            RuleSpec::command(Permission::Deny, "git push *"),
        ];
        Layer::new(Scope::Project, specs.into_iter().map(rule).collect())
    };
    let policy = example().layer(rules());
    assert_eq!(on_command(&policy, "make").permission, Permission::Ask);
    assert_eq!(on_command(&policy, "git push").permission, Permission::Deny);
    assert_eq!(on_command(&policy, "git -C x push").permission, Permission::Deny);
    assert_eq!(on_command(&policy, "git status").permission, Permission::Allow);
}

#[test]
fn redirections_follow_the_table_for_files() {
    use Permission::{Allow, Ask, Deny};
    let rules = || user([RuleSpec::command(Allow, "echo *")]);
    let policy = |mode| Policy::new(mode).layer(rules());
    for (policy, line, expected) in [
        (policy(Mode::Default), "echo x > a", Ask),
        (policy(Mode::AutoEdit), "echo x > a", Allow),
        (policy(Mode::AutoEdit), "echo x > /etc/a", Ask),
        (policy(Mode::AutoEdit), "echo x > $A", Ask),
        (policy(Mode::Full), "echo x > /etc/a", Allow),
        (policy(Mode::Full).kinds([(Kind::Edit, Deny)]), "echo x > a", Deny),
        (policy(Mode::Default).kinds([(Kind::Execute, Allow)]), "echo x > a", Allow),
    ] {
        assert_eq!(on_command(&policy, line).permission, expected, "{line}");
    }
}

#[test]
fn all_conditions_of_a_rule_have_to_hold() {
    let mut spec = RuleSpec::tool(Permission::Deny, "http_*");
    spec.host = Some("*.example.com".into());
    spec.kind = Some(Kind::Fetch);
    spec.agent = Some("main*".into());
    spec.args.insert("method".into(), "P*".into());
    let policy = Policy::new(Mode::Full).layer(user([spec]));
    let mut tool = ToolSpec::new("http_request", "Asks.", Kind::Fetch);
    tool.effects.urls = vec!["url".into()];
    let ask = |url: &str, method: &str| {
        call(&policy, &tool, &json!({ "url": url, "method": method })).permission
    };
    assert_eq!(ask("https://a.example.com/x", "POST"), Permission::Deny);
    assert_eq!(ask("https://a.example.com/x", "GET"), Permission::Allow);
    assert_eq!(ask("https://example.org/x", "POST"), Permission::Allow);
    let other = ToolSpec::new("fetch", "Asks.", Kind::Fetch);
    let arguments = json!({ "url": "https://a.example.com", "method": "POST" });
    assert_eq!(call(&policy, &other, &arguments).permission, Permission::Allow);
}

#[test]
fn a_rule_that_allows_has_to_cover_every_path() {
    let policy =
        Policy::new(Mode::Default).layer(user([RuleSpec::path(Permission::Allow, "src/**")]));
    let mut tool = ToolSpec::new("move", "Moves.", Kind::Move);
    tool.effects.writes = vec!["from".into(), "to".into()];
    let ask =
        |from: &str, to: &str| call(&policy, &tool, &json!({ "from": from, "to": to })).permission;
    assert_eq!(ask("src/a", "src/b"), Permission::Allow);
    assert_eq!(ask("src/a", "/srv/src/b"), Permission::Allow);
    assert_eq!(ask("src/a", "b"), Permission::Ask);
    assert_eq!(ask("src/a", "src/../b"), Permission::Ask);
}

#[test]
fn commands_of_other_tools_are_judged_too() {
    let policy = Policy::new(Mode::Full).layer(user([RuleSpec::command(Permission::Deny, "rm *")]));
    let mut tool = ToolSpec::new("mcp_box_exec", "Runs.", Kind::Other);
    tool.category = Category::Mcp;
    let ask = |arguments| call(&policy, &tool, &arguments).permission;
    assert_eq!(ask(json!({ "cmd": "ls && rm x" })), Permission::Deny);
    assert_eq!(ask(json!({ "command": ["rm", "x"] })), Permission::Deny);
    assert_eq!(ask(json!({ "command": ["bash", "-c", "rm x"] })), Permission::Deny);
    assert_eq!(ask(json!({ "script": "ls" })), Permission::Allow);
}

fn foreign_tool() -> ToolSpec {
    let mut tool = ToolSpec::new("mcp__box__act", "Acts.", Kind::Other);
    tool.category = Category::Mcp;
    tool
}

#[test]
fn commands_cannot_be_smuggled_in_other_arguments() {
    use Permission::{Allow, Ask, Deny};
    let full = Policy::new(Mode::Full)
        .layer(user([RuleSpec::command(Deny, "rm *"), RuleSpec::command(Deny, "git push *")]));
    for (arguments, expected) in [
        (json!({ "options": { "cmd": "rm x" } }), Deny),
        (json!({ "steps": [{ "run": "ls" }, { "run": "rm x" }] }), Deny),
        (json!({ "commands": ["ls", "rm x"] }), Deny),
        (json!({ "command": "git", "args": ["push"] }), Deny),
        (json!({ "Command-Line": "rm x" }), Deny),
        (json!({ "payload": "{\"command\": \"rm x\"}" }), Deny),
        (json!({ "command": ["sh", "-c", "rm x"] }), Deny),
        (json!({ "command": "echo 'unfinished" }), Ask),
        (json!({ "script": "() => 'not a shell" }), Ask),
        (json!({ "script": "ls" }), Allow),
        (json!({ "title": "about rm x" }), Ask),
        (json!({ "title": "about the farm" }), Allow),
    ] {
        assert_eq!(call(&full, &foreign_tool(), &arguments).permission, expected, "{arguments}");
    }
    let free = Policy::new(Mode::Full);
    let script = json!({ "script": "() => 'not a shell" });
    assert_eq!(call(&free, &foreign_tool(), &script).permission, Allow);
}

/// A command that is allowed does not allow the tool that runs it to do other things.
#[test]
fn a_guess_never_allows() {
    use Permission::{Allow, Ask};
    let policy = Policy::new(Mode::Default).layer(user([
        RuleSpec::command(Allow, "ls *"),
        RuleSpec::path(Allow, "src/**"),
        RuleSpec::host(Allow, "example.com"),
    ]));
    for (arguments, expected) in [
        (json!({ "script": "ls" }), Ask),
        (json!({ "path": "src/a" }), Ask),
        (json!({ "url": "https://example.com/x" }), Ask),
        (json!({ "command": "ls", "args": ["src"] }), Allow),
        (json!({ "commands": ["ls", "rm x"] }), Ask),
    ] {
        assert_eq!(call(&policy, &foreign_tool(), &arguments).permission, expected, "{arguments}");
    }
}

/// gemini-cli 4.20: patterns for the tools of a server hold for them.
#[test]
fn rules_on_paths_and_hosts_hold_for_tools_of_others() {
    use Permission::{Allow, Ask, Deny};
    let policy = Policy::new(Mode::Full).layer(user([
        RuleSpec::path(Deny, "~/.ssh/**"),
        RuleSpec::path(Deny, "secret/**"),
        RuleSpec::host(Deny, "*.evil.example"),
        RuleSpec::tool(Deny, "mcp__other__*"),
    ]));
    for (arguments, expected) in [
        (json!({ "path": "/home/u/.ssh/id" }), Deny),
        (json!({ "path": "~/.ssh/id" }), Deny),
        (json!({ "files": ["a", "secret/key"] }), Deny),
        (json!({ "x": { "y": [{ "z": "/home/u/./x/../.ssh/id" }] } }), Deny),
        (json!({ "uri": "file:///home/u/.ssh/id" }), Deny),
        (json!({ "uri": "file://localhost/home/u/%2essh/id" }), Deny),
        (json!({ "fileName": "secret/key" }), Deny),
        (json!({ "url": "https://a.evil.example/x" }), Deny),
        (json!({ "text": "get https://a.evil.example/x" }), Ask),
        (json!({ "host": "a.evil.example" }), Deny),
        (json!({ "path": "src/a" }), Allow),
        (json!({ "note": "nothing about secrets" }), Allow),
    ] {
        assert_eq!(call(&policy, &foreign_tool(), &arguments).permission, expected, "{arguments}");
    }
    let mut other = foreign_tool();
    other.name = "mcp__other__act".into();
    assert_eq!(call(&policy, &other, &json!({})).permission, Deny);
}

#[test]
fn where_a_command_runs_counts() {
    let policy = example();
    let ask = |line: &str, directory: &str| {
        let arguments = json!({ "command": line, "working_directory": directory });
        call(&policy, &shell_spec(), &arguments).permission
    };
    assert_eq!(ask("cat id", "/home/u/.ssh"), Permission::Deny);
    assert_eq!(ask("ls", "../home/u/.ssh"), Permission::Deny);
    assert_eq!(ask("ls", "src"), Permission::Allow);
}

/// None of these was noticed where everything but `rm` and one directory is allowed.
#[test]
fn what_is_forbidden_is_not_allowed_by_another_way_to_write_it() {
    use Permission::Deny;
    let policy = Policy::new(Mode::Full)
        .layer(user([RuleSpec::command(Deny, "rm *"), RuleSpec::path(Deny, "~/.ssh/**")]));
    for line in [
        "env - rm x",
        "bash +x -c 'rm x'",
        "bash -co errexit 'rm x'",
        "eval -- 'rm x'",
        "trap -- 'rm x' EXIT",
        "echo 'rm x' | xargs -rI{} sh -c {}",
        "echo x | xargs -rI% rm %",
        "zsh -c '=rm x'",
        "tcsh -c 'rm x'",
        "/proc/self/exe -c 'rm x'",
        "x='a[$(rm y)]'; echo ${PATH:x}",
        "read H''OME <<< ~/.ssh; cat $HOME/id",
        "read PATH <<< .; ls",
        "printf -v PATH .; ls",
        "unset PATH; : ${PATH:=.}; ls",
        "cat <<E\nE\\\n\nrm x\nE",
        "dd if=~/.ssh/id",
        "env --chdir=/home/u cat .ssh/id",
        "tar -C /home/u -cf - .ssh",
        "git -C /home -C u diff --no-index /dev/null .ssh/id",
        "for i in 1 2; do cd ..; done; cat .ssh/id",
        "sed '1e rm x.txt' f",
        "sed 'sXaXrm yXe' f",
        "sed -nf f",
        "python3 -c 'import os; os.unlink(\"x\")'",
        "echo code | python3",
        "perl -e 'unlink \"x\"'",
        "node -e 'code'",
        "make SHELL=/tmp/x",
        "poetry run rm x",
        "npx -- rm x",
        "pkexec rm x",
        "tini -- rm x",
        "ssh-agent rm x",
        "bash rm x",
        "cat <<E<<<$(rm x)\nE",
        "cat <<E\t$(rm x)\nE",
        "case ~$(rm x) in *) :;; esac",
        "$! rm x",
    ] {
        let decision = on_command(&policy, line);
        assert_ne!(decision.permission, Permission::Allow, "{line}");
    }
    for line in
        ["python3 script.py", "make test", "git -C sub status", "sed s/a/b/ e.txt", "read x"]
    {
        assert_eq!(on_command(&policy, line).permission, Permission::Allow, "{line}");
    }
}

#[test]
fn nothing_allows_a_line_that_cannot_be_read() {
    let anything = || user([RuleSpec::tool(Permission::Allow, "*")]);
    for policy in [
        Policy::new(Mode::Full),
        Policy::new(Mode::Full).layer(anything()),
        Policy::new(Mode::Default).layer(anything()),
        Policy::new(Mode::AutoEdit).kinds([(Kind::Execute, Permission::Allow)]),
    ] {
        for line in ["echo 'unfinished", "if", "ls )", "a\0b", "bash -c '(('", "ls\rrm x"] {
            let decision = on_command(&policy, line);
            assert_eq!(decision.permission, Permission::Ask, "{line}: {decision:?}");
            assert!(decision.reason.contains("is not known"), "{decision:?}");
            assert_eq!(decision.source, Source::Unread);
        }
        assert_eq!(on_command(&policy, "echo $X; $Y").permission, Permission::Allow);
    }
    let denied = Policy::new(Mode::Full).layer(user([RuleSpec::tool(Permission::Deny, "*")]));
    assert_eq!(on_command(&denied, "if").permission, Permission::Deny);
}

/// Quotes in the middle of a list in braces hid the list.
#[test]
fn braces_with_quotes_in_them_are_lists() {
    assert_ne!(on_command(&example(), "cat ~/.{\"ssh\",x}/id").permission, Permission::Allow);
    let full = Policy::new(Mode::Full).layer(user([RuleSpec::command(Permission::Deny, "rm *")]));
    assert_ne!(on_command(&full, "{\"rm\",x}").permission, Permission::Allow);
}

/// A variable could hold an option that starts a program.
#[test]
fn options_cannot_be_smuggled_in_variables() {
    let policy =
        Policy::new(Mode::Default).layer(user([RuleSpec::command(Permission::Allow, "git *")]));
    assert_eq!(on_command(&policy, "git $X core.pager=rm log").permission, Permission::Ask);
    assert_eq!(on_command(&policy, "git log -- $X").permission, Permission::Allow);
}

#[test]
fn decisions_say_who_decided_and_why() {
    let mut spec = RuleSpec::command(Permission::Deny, "rm *");
    spec.reason = Some("use `git clean`".into());
    let rule = Rule::new(spec, None, Some("convoke.yml:4".into())).unwrap();
    let policy = Policy::new(Mode::Default).layer(Layer::new(Scope::User, vec![rule]));
    let denied = on_command(&policy, "rm x");
    assert_eq!(denied.source.to_string(), "user rule 1 (convoke.yml:4)");
    assert_eq!(denied.reason, "use `git clean`");
    let asked = on_command(&policy, "ls");
    assert_eq!(asked.source.to_string(), "kind execute");
    let unread = on_command(&Policy::new(Mode::Default), "$X");
    assert!(unread.reason.contains("which program it runs is not known"), "{}", unread.reason);
}

#[test]
fn examples_are_checked() {
    let mut spec = RuleSpec::command(Permission::Allow, "git push *");
    spec.matches = vec!["git push origin".into(), "git pull".into()];
    spec.not_match = vec!["git push; rm x".into(), "git push".into()];
    let errors = rule(spec).check_examples();
    let found: Vec<_> = errors.iter().map(|error| (error.key, error.item)).collect();
    assert_eq!(found, [("match", Some(1)), ("not_match", Some(1))]);
    let mut path = RuleSpec::path(Permission::Deny, "~/.ssh/**");
    path.matches = vec!["~/.ssh/id".into()];
    path.not_match = vec!["src/main.rs".into()];
    assert_eq!(Rule::new(path, None, None).unwrap().check_examples(), []);
    let empty = Rule::new(RuleSpec::new(Permission::Deny), None, None).unwrap_err();
    assert!(empty.message.contains("needs a condition"), "{empty}");
}

#[test]
fn a_child_may_do_what_all_above_it_allow() {
    let full = || Policy::new(Mode::Full);
    let parent = Authority::new(example());
    let child = parent.child(full());
    let grandchild = child.child(full().layer(user([RuleSpec::command(Permission::Deny, "ls *")])));
    let (world, spec) = (world(), shell_spec());
    let decide = |authority: &Authority, line: &str| {
        let arguments = json!({ "command": line });
        authority.decide(&Facts::new(&spec, &arguments, &Effects::NONE, "main", &world)).permission
    };
    assert_eq!(decide(&child, "rm x"), Permission::Deny);
    assert_eq!(decide(&child, "make"), Permission::Ask);
    assert_eq!(decide(&child, "ls"), Permission::Allow);
    assert_eq!(decide(&grandchild, "ls"), Permission::Deny);
    assert_eq!(decide(&grandchild, "git status"), Permission::Allow);
}

/// A question that a child's own rule asks was once laid to the table of the one above.
#[test]
fn a_rule_is_named_before_a_table_that_says_the_same() {
    let mut asks = RuleSpec::new(Permission::Ask);
    asks.kind = Some(Kind::Execute);
    let own =
        Layer::new(Scope::Agent, vec![rule(RuleSpec::tool(Permission::Deny, "x")), rule(asks)]);
    let child =
        Authority::new(Policy::new(Mode::Default)).child(Policy::new(Mode::Default).layer(own));
    let (spec, arguments, world) = (shell_spec(), json!({ "command": "make" }), world());
    let effects = spec.effects.apply(&arguments);
    let decision = child.decide(&Facts::new(&spec, &arguments, &effects, "main/a", &world));
    assert_eq!(decision.permission, Permission::Ask);
    assert_eq!(decision.source.to_string(), "agent rule 2");
}

#[test]
fn rules_on_a_whole_kind_count_for_it_and_rules_on_some_calls_do_not() {
    use Permission::{Allow, Ask, Deny};
    let on = |effect, kind| RuleSpec { kind: Some(kind), ..RuleSpec::new(effect) };
    let of_agent = RuleSpec { agent: Some("main/b".into()), ..on(Deny, Kind::Read) };
    let policy = Policy::new(Mode::Default).kinds([(Kind::Fetch, Deny)]).layer(user([
        on(Deny, Kind::Edit),
        on(Allow, Kind::Edit),
        on(Allow, Kind::Execute),
        on(Allow, Kind::Fetch),
        RuleSpec { path: Some("x/**".into()), ..on(Deny, Kind::Move) },
        RuleSpec::command(Deny, "rm *"),
        of_agent,
    ]));
    for (kind, agent, expected) in [
        (Kind::Edit, "main", Deny),
        (Kind::Execute, "main", Allow),
        (Kind::Fetch, "main", Deny),
        (Kind::Move, "main", Ask),
        (Kind::Read, "main/a", Allow),
        (Kind::Read, "main/b", Deny),
    ] {
        assert_eq!(policy.whole_kind(kind, agent), expected, "{kind} {agent}");
    }
    let all = Policy::new(Mode::Full).layer(user([RuleSpec::tool(Ask, "*")]));
    assert_eq!(all.whole_kind(Kind::Read, "main"), Ask);
}
