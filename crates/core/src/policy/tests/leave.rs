//! What rules that allow do not allow, and how a decision is explained.

use super::*;

#[test]
fn to_allow_a_path_is_no_leave_to_run_a_program_on_it() {
    let mut spec = RuleSpec::path(Permission::Allow, "out.txt");
    spec.tool = Some("run_command".into());
    let policy = Policy::new(Mode::Default)
        .layer(user([spec, RuleSpec::command(Permission::Allow, "ls *")]));
    for line in ["bash out.txt", "rm out.txt", "cat out.txt", "./out.txt"] {
        assert_eq!(on_command(&policy, line).permission, Permission::Ask, "{line}");
    }
    assert_eq!(on_command(&policy, "ls > out.txt").permission, Permission::Allow);
    let deny = Policy::new(Mode::Full).layer(user([RuleSpec::path(Permission::Deny, "out.txt")]));
    assert_eq!(on_command(&deny, "bash out.txt").permission, Permission::Deny);
}

#[test]
fn to_allow_a_host_is_no_leave_to_run_a_program_with_its_name() {
    let policy =
        Policy::new(Mode::Default).layer(user([RuleSpec::host(Permission::Allow, "example.com")]));
    for line in ["bash example.com", "curl https://example.com/x -o y"] {
        assert_eq!(on_command(&policy, line).permission, Permission::Ask, "{line}");
    }
}

#[test]
fn a_relative_script_is_allowed_where_the_run_works_and_nowhere_else() {
    use Permission::{Allow, Ask};
    let allow = |pattern: &str| RuleSpec::command(Allow, pattern);
    let policy = Policy::new(Mode::Default).layer(user([
        allow("bash build.sh"),
        allow("./run *"),
        allow("bash /opt/build.sh"),
        allow("cargo *"),
        allow("cd *"),
    ]));
    for (line, directory, expected) in [
        ("bash build.sh", None, Allow),
        ("bash build.sh", Some("."), Allow),
        ("bash build.sh", Some("/srv"), Allow),
        ("bash build.sh", Some("/tmp"), Ask),
        ("bash build.sh", Some("sub"), Ask),
        ("cd /tmp && bash build.sh", None, Ask),
        ("./run x", None, Allow),
        ("./run x", Some("/tmp"), Ask),
        ("bash /opt/build.sh", Some("/tmp"), Allow),
        ("cargo test", Some("sub"), Allow),
    ] {
        let arguments = match directory {
            Some(directory) => json!({ "command": line, "working_directory": directory }),
            None => json!({ "command": line }),
        };
        let decision = call(&policy, &shell_spec(), &arguments);
        assert_eq!(decision.permission, expected, "{line} in {directory:?}: {decision:?}");
    }
}

#[test]
fn a_rule_can_say_where() {
    let spec = RuleSpec {
        directory: Some("/srv/a/**".into()),
        ..RuleSpec::command(Permission::Allow, "make")
    };
    let policy = Policy::new(Mode::Default).layer(user([spec]));
    for (directory, expected) in
        [("a", Permission::Allow), ("a/b", Permission::Allow), (".", Permission::Ask)]
    {
        let arguments = json!({ "command": "make", "working_directory": directory });
        assert_eq!(call(&policy, &shell_spec(), &arguments).permission, expected, "{directory}");
    }
}

#[test]
fn a_reason_is_not_said_of_what_only_may_be_meant() {
    let mut spec = RuleSpec::command(Permission::Deny, "rm *");
    spec.reason = Some("use `git clean`".into());
    let policy = Policy::new(Mode::Full).layer(user([spec]));
    assert_eq!(on_command(&policy, "rm x").reason, "use `git clean`");
    let perhaps = on_command(&policy, "$X y");
    assert_eq!(perhaps.permission, Permission::Ask);
    assert!(
        perhaps.reason.contains(" may be something that the rule on command `rm *` forbids: use")
    );
}

#[test]
fn a_decision_names_what_of_a_line_it_is_about() {
    let policy =
        Policy::new(Mode::Default).layer(user([RuleSpec::command(Permission::Allow, "git *")]));
    let decision = on_command(&policy, "git log | tee x");
    assert_eq!(decision.subject.as_deref(), Some("`tee x`"));
    assert_eq!(on_command(&policy, "tee x").subject, None, "there is nothing else");
}

#[test]
fn the_mode_is_named_where_it_decides() {
    let reason = |mode, line| on_command(&Policy::new(mode), line).reason;
    assert!(reason(Mode::Plan, "ls").contains("in mode `plan`"));
    assert!(reason(Mode::Full, "ls").contains("in mode `full`"));
    assert!(!reason(Mode::Default, "ls").contains("mode"));
}

#[test]
fn a_rule_on_programs_holds_for_whatever_starts_them() {
    let rule = Rule::on_programs(Permission::Ask, "no sandbox", "sandbox".into());
    let policy = Policy::new(Mode::Full).layer(Layer::new(Scope::User, vec![rule]));
    let mut reads = ToolSpec::new("lint", "Reads.", Kind::Read);
    assert_eq!(call(&policy, &reads, &json!({})).permission, Permission::Allow);
    reads.starts_programs = true;
    assert_eq!(call(&policy, &reads, &json!({})).permission, Permission::Ask);
    assert_eq!(on_command(&policy, "ls").permission, Permission::Ask);
}
