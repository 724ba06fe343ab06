//! Asking what is allowed.

use insta::assert_snapshot;

use crate::support::Scene;

const RULES: &str = "\
policy:
  rules:
    - {effect: allow, command: 'git *', match: [git status], not_match: ['git status; rm x']}
    - effect: deny
      command: rm *
      reason: use `git clean`
    - {effect: deny, path: '~/.ssh/**'}
    - {effect: ask, agent: 'main/*', tool: write_file}
    - {effect: allow, host: example.com}
";

fn check(scene: &Scene, words: &[&str]) -> String {
    scene.run(&[&["policy", "check"], words].concat()).shown()
}

#[test]
fn a_decision_has_its_rule_its_line_and_its_exit_code() {
    let scene = Scene::new().user(RULES);
    assert_snapshot!(check(&scene, &["--", "git", "status"]), @"
    allow: `git status` is allowed by the rule on command `git *`
      by user rule 1 ([root]/home/.config/convoke/convoke.yml:3:7)
    --- stderr
    --- exit 0
    ");
    assert_snapshot!(check(&scene, &["--", "git status && bash -c 'rm x'"]), @"
    deny: use `git clean`
      for `rm x`
      by user rule 2 ([root]/home/.config/convoke/convoke.yml:4:7)
    --- stderr
    --- exit 3
    ");
    assert_snapshot!(check(&scene, &["--", "make"]), @"
    ask: tools of kind `execute` need a person's consent
      by kind execute
    --- stderr
    --- exit 3
    ");
    assert_snapshot!(check(&scene, &["http_get", r#"{"url": "https://example.com/x"}"#]), @"
    allow: `http_get` is allowed by the rule on host `example.com`
      by user rule 5 ([root]/home/.config/convoke/convoke.yml:9:7)
      but the main agent is not offered `http_get`, and its runs do not find it: it is not one of those that are offered unless `tools.enabled` says so
    --- stderr
    --- exit 0
    ");
    let decision = scene.run(&["policy", "check", "--json", "--", "cat ~/.ssh/id"]);
    assert_eq!(decision.code, Some(3));
    let decision: serde_json::Value = serde_json::from_str(&decision.stdout).unwrap();
    assert_eq!(decision["decision"], "deny");
    assert_eq!(decision["place"], "[root]/home/.config/convoke/convoke.yml:7:7");
}

#[test]
fn hooks_that_would_have_a_say_are_named() {
    let hooks = "\
hooks:
  - {on: [before_tool], tool: 'run_*', guard: true, name: careful, command: [true]}
  - {on: [before_tool, after_tool], command: [/usr/bin/logger]}
  - {on: [approval], guard: true, name: night, command: [true]}
  - {on: [before_tool], tool: read_file, guard: true, name: other, command: [true]}
  - {on: [after_tool], name: later, command: [true]}
";
    let scene = Scene::new().user(&format!("{RULES}{hooks}").replace("[true]", "['true']"));
    assert_snapshot!(check(&scene, &["--", "git", "status"]), @"
    allow: `git status` is allowed by the rule on command `git *`
      by user rule 1 ([root]/home/.config/convoke/convoke.yml:3:7)
      then the hook `careful` may refuse it, ask, or change it
      then the hook `logger` is told
    --- stderr
    --- exit 0
    ");
    assert_snapshot!(check(&scene, &["--", "make"]), @"
    ask: tools of kind `execute` need a person's consent
      by kind execute
      then the hook `careful` may refuse it, ask, or change it
      then the hook `logger` is told
      then the hook `night` may refuse before a person is asked
    --- stderr
    --- exit 3
    ");
    let denied = check(&scene, &["--", "rm", "x"]);
    assert!(!denied.contains("hook"), "nobody is called about what is denied: {denied}");
    let json = scene.json(&["policy", "check", "--json", "--", "git", "status"]);
    let said: Vec<_> = json["hooks"].as_array().unwrap().iter().collect();
    assert_eq!(said.len(), 2);
    assert_eq!((&said[0]["name"], &said[0]["guards"]), (&"careful".into(), &true.into()));
    assert_eq!((&said[1]["name"], &said[1]["guards"]), (&"logger".into(), &false.into()));
}

#[test]
fn words_that_were_quoted_are_not_commands() {
    let scene = Scene::new().user(RULES);
    let ran = scene.run(&["policy", "check", "--", "git", "commit", "-m", "x; rm y"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
}

#[test]
fn what_cannot_be_checked_is_a_usage_error() {
    let scene = Scene::new();
    for words in [
        &["no_such_tool"][..],
        &["read_file", "{"],
        &["read_file", "[]"],
        &["read_file", r#"{"path": 5}"#],
        &[],
    ] {
        let ran = scene.run(&[&["policy", "check"], words].concat());
        assert_eq!(ran.code, Some(2), "{words:?}: {ran:?}");
    }
}

#[test]
fn rules_are_shown_by_agent() {
    let scene = Scene::new().user(RULES);
    let all = scene.stdout(&["policy", "show"]);
    assert!(all.contains("user 4   ask") && all.contains("execute  ask"), "{all}");
    let main = scene.stdout(&["policy", "show", "--agent", "main", "--mode", "full"]);
    assert!(!main.contains("write_file") && main.contains("execute  allow"), "{main}");
    let json = scene.json(&["policy", "show", "--json", "--agent", "main/generalist"]);
    assert_eq!(json["rules"][3]["rule"]["tool"], "write_file");
}

#[test]
fn examples_that_do_not_hold_are_reported_where_they_are_written() {
    assert_snapshot!(Scene::new().user(RULES).stdout(&["policy", "test"]), @"ok: rules 5, examples 2");
    let wrong = "policy:\n  rules:\n    - {effect: deny, command: rm *, match: [ls]}\n";
    assert_snapshot!(Scene::new().user(wrong).run(&["policy", "test"]).shown(), @"
    --- stderr
    error: the configuration has a mistake
    cause: [root]/home/.config/convoke/convoke.yml:3:45: policy.rules[0].match[0]: the rule does not hold for `ls`, but says it does
    --- exit 7
    ");
}

#[test]
fn a_project_adds_denials_and_cannot_allow() {
    let scene = Scene::new().user(RULES).file(
        "convoke.yml",
        "policy:\n  rules:\n    - {effect: allow, command: make *}\n    - {effect: deny, command: git push *}\n",
    );
    assert_snapshot!(check(&scene, &["--", "git", "push"]), @"
    deny: `git push` is forbidden by the rule on command `git push *`
      by project rule 1 ([root]/home/project/convoke.yml:4:7)
    --- stderr
    warning: [root]/home/project/convoke.yml:3:7: policy.rules[0]: the rule is ignored: a project cannot allow what you did not
    hint: only your own file, variables and flags can allow more
    --- exit 3
    ");
    assert_eq!(scene.run(&["policy", "check", "--", "make"]).code, Some(3));
    assert_eq!(scene.run(&["policy", "check", "--", "rm", "x"]).code, Some(3));
    assert_eq!(scene.run(&["policy", "check", "--", "git", "status"]).code, Some(0));
}

#[test]
fn a_path_outside_is_said_to_be_refused_whatever_the_policy_says() {
    let scene = Scene::new().user(RULES);
    let ran = scene.run(&["policy", "check", "read_file", r#"{"path": "/etc/passwd"}"#]);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    assert!(ran.stdout.contains("`/etc/passwd` is outside the allowed paths"), "{ran:?}");
    assert!(ran.stdout.contains("by the allowed paths (tools.allowedPaths)"), "{ran:?}");
    let json = scene.run(&["policy", "check", "--json", "read_file", r#"{"path": "/etc/passwd"}"#]);
    let json: serde_json::Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!((&json["decision"], &json["place"]), (&"deny".into(), &serde_json::Value::Null));
}

#[test]
fn a_command_without_dashes_is_told_where_they_go() {
    let scene = Scene::new();
    let ran = scene.run(&["policy", "check", "raed_file"]);
    assert!(ran.stderr.contains("did you mean `read_file`"), "{ran:?}");
    for words in [&["git", "status"][..], &["git", "push", "origin", "main"]] {
        let ran = scene.run(&[&["policy", "check"], words].concat());
        let hint = format!("convoke policy check -- {}", words.join(" "));
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(ran.stderr.contains(&hint), "{ran:?}");
    }
}

#[test]
fn the_part_of_a_line_that_decides_is_named() {
    let scene = Scene::new().user(RULES);
    assert_snapshot!(check(&scene, &["--", "git log | tee x"]), @"
    ask: tools of kind `execute` need a person's consent
      for `tee x`
      by kind execute
    --- stderr
    --- exit 3
    ");
}

#[test]
fn the_mode_is_named_where_it_is_the_reason() {
    let scene = Scene::new();
    let plan = scene.run(&["policy", "check", "--mode", "plan", "--", "make"]);
    assert!(plan.stdout.contains("tools of kind `execute` are not allowed in mode `plan`"));
    let full = scene.run(&["policy", "check", "--mode", "full", "--", "make"]);
    assert!(full.stdout.contains("tools of kind `execute` are allowed in mode `full`"));
}

#[test]
fn a_denial_that_only_may_hold_says_so_with_its_reason() {
    let scene = Scene::new().user(RULES);
    let ran = scene.run(&["policy", "check", "--", "$CMD x"]);
    assert!(ran.stdout.contains("may be something that the rule on command `rm *` forbids: use"));
    let ran = scene.run(&["policy", "check", "--", "tar c ~"]);
    assert!(ran.stdout.contains("may touch what the rule on path `~/.ssh/**` forbids"), "{ran:?}");
}

#[test]
fn rules_that_can_never_hold_are_told() {
    let rules = "policy:\n  rules:\n    - {effect: deny, tool: raed_file}\n    - {effect: deny, command: '^rm'}\n";
    let ran = Scene::new().user(rules).run(&["policy", "check", "--", "ls"]);
    assert!(ran.stderr.contains("convoke.yml:3:28: policy.rules[0].tool: "), "{ran:?}");
    assert!(ran.stderr.contains("convoke.yml:4:31: policy.rules[1].command: "), "{ran:?}");
}

/// Such a pattern was taken and made the first decision panic.
#[test]
fn a_pattern_that_is_too_much_is_refused_with_its_line() {
    let deep = format!("{}a{}", "{".repeat(300), "}".repeat(300));
    for (pattern, problem) in [
        (deep, "more than 16 braces inside each other"),
        (format!("{{{}}}", "a?,".repeat(10_000)), "16384 is the most; write several shorter ones"),
    ] {
        for key in ["path", "directory"] {
            let rules = format!("policy:\n  rules:\n    - {{effect: deny, {key}: '{pattern}'}}\n");
            let ran = Scene::new().user(&rules).run(&["policy", "check", "--", "ls"]);
            assert_eq!(ran.code, Some(7), "{key}: {}", &ran.stderr[..200]);
            let place = format!("convoke.yml:3:{}: policy.rules[0].{key}: ", 24 + key.len());
            assert!(ran.stderr.contains(&place), "{place} {}", &ran.stderr[..200]);
            assert!(ran.stderr.contains(problem), "{}", &ran.stderr[..200]);
        }
        let agent = format!(
            "---\nname: a\ndescription: Is a.\nrules:\n  - {{effect: deny, path: '{pattern}'}}\n---\nWork.\n"
        );
        let scene =
            Scene::new().variable("CONVOKE_TRUST_PROJECT", "1").file(".convoke/agents/a.md", agent);
        let ran = scene.run(&["agents", "check"]);
        assert!(ran.stdout.contains(problem) || ran.stderr.contains(problem), "{:?}", ran.code);
    }
}
