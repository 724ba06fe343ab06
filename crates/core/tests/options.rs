//! Options of everyday programs: which commands a rule on program and subcommand allows, and which it
//! does not.

#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

use convoke_core::policy::{
    Authority, Decision, Facts, Layer, Policy, Rule, RuleSpec, Scope, World,
};
use convoke_core::{Category, Effects, Kind, Mode, Permission, ToolSpec};
use serde_json::json;

/// One command a line; `\n` and `\t` stand for a line break and a tab.
const BENIGN: &str = include_str!("data/policy/options-benign.txt");
const ATTACKS: &str = include_str!("data/policy/options-attacks.txt");

fn lines(text: &str) -> Vec<String> {
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with("# "));
    lines.map(|line| line.replace("\\n", "\n").replace("\\t", "\t")).collect()
}

fn authority(patterns: impl IntoIterator<Item = String>) -> Authority {
    let rule = |pattern| Rule::new(RuleSpec::command(Permission::Allow, pattern), None, None);
    let rules = patterns.into_iter().map(|pattern: String| rule(pattern).unwrap());
    let layer = Layer::new(Scope::User, rules.collect());
    Authority::new(Policy::new(Mode::Default).layer(layer))
}

fn decide(authority: &Authority, line: &str) -> (Decision, Vec<RuleSpec>) {
    let home = Some("/home/u".to_owned());
    let world = World { directory: "/home/u/project".into(), home, roots: Vec::new() };
    let mut spec = ToolSpec::new("run_command", "Runs.", Kind::Execute);
    spec.category = Category::Code;
    let arguments = json!({ "command": line });
    let facts = Facts::new(&spec, &arguments, &Effects::NONE, "main", &world);
    (authority.decide(&facts), authority.propose(&facts))
}

/// Rules on every program that the lines use, with its first word where that is a subcommand.
fn rules(lines: &[String]) -> Authority {
    let subcommands = [
        "git",
        "cargo",
        "npm",
        "pnpm",
        "yarn",
        "pip",
        "pip3",
        "docker",
        "kubectl",
        "go",
        "ruff",
        "uv",
        "gh",
        "rustup",
        "poetry",
        "terraform",
        "helm",
    ];
    let mut patterns = Vec::new();
    for line in lines {
        let words: Vec<&str> = line
            .split(|c: char| c.is_whitespace() || "|;&()`\"'$".contains(c))
            .filter(|word| !word.is_empty())
            .collect();
        for (at, word) in words.iter().enumerate() {
            let name = word.chars().all(|c| c.is_ascii_alphanumeric() || "_-.[/".contains(c));
            let is_canary = matches!(*word, "canary" | "sh" | "victim");
            if !name || is_canary || word.starts_with(['-', '.']) || word.contains('/') {
                continue;
            }
            let subcommand = words.get(at + 1..).unwrap_or_default().iter();
            let mut subcommand = subcommand.filter(|word| !word.starts_with(['-', '+']));
            if subcommands.contains(word) {
                patterns.extend(subcommand.by_ref().take(2).map(|sub| format!("{word} {sub} *")));
            } else {
                patterns.push(format!("{word} *"));
            }
        }
    }
    patterns.sort();
    patterns.dedup();
    authority(patterns)
}

#[test]
fn everyday_commands_are_allowed_by_rules_on_program_and_subcommand() {
    let lines = lines(BENIGN);
    assert!(lines.len() >= 250, "{}", lines.len());
    let authority = rules(&lines);
    let refused: Vec<String> = lines
        .iter()
        .map(|line| (line, decide(&authority, line).0))
        .filter(|(_, decision)| decision.permission != Permission::Allow)
        .map(|(line, decision)| format!("{line}: {}", decision.reason))
        .collect();
    assert!(refused.is_empty(), "{} of {} refused: {refused:#?}", refused.len(), lines.len());
}

/// Returns the program and subcommand that a line begins with.
fn first_words(line: &str) -> String {
    let words = line.split([' ', '\n']).filter(|word| !word.contains(['=', '$', '<', '`']));
    words.filter(|word| !word.starts_with('-')).take(2).collect::<Vec<_>>().join(" ")
}

#[test]
fn options_that_run_write_or_load_are_asked_about() {
    let lines = lines(ATTACKS);
    assert!(lines.len() >= 300, "{}", lines.len());
    let benign = self::lines(BENIGN);
    // Of the attacks, the program that is named first has its rule too.
    let all: Vec<String> = lines.iter().map(|line| first_words(line)).chain(benign).collect();
    let authority = rules(&all);
    let allowed: Vec<&String> = lines
        .iter()
        .filter(|line| decide(&authority, line).0.permission == Permission::Allow)
        .collect();
    assert!(allowed.is_empty(), "{} of {} allowed: {allowed:#?}", allowed.len(), lines.len());
}

#[test]
fn a_question_names_the_option_and_always_saves_it() {
    for (rule, line, option, saved, also, not) in [
        (
            "git rebase *",
            "git rebase -x ./check main",
            "`git rebase -x`",
            "git rebase * -x *",
            "git rebase --autosquash -x ./check other",
            "git rebase --exec ./check main",
        ),
        (
            "git log *",
            "git log --output=x",
            "`git log --output`",
            "git log * --output=* *",
            "git log --oneline --output=y",
            "git log --ext-diff",
        ),
        (
            "cargo test *",
            "cargo test --config x",
            "`cargo test --config`",
            "cargo test * --config *",
            "cargo test -p core --config y",
            "cargo test -Zx",
        ),
    ] {
        let authority = authority([rule.to_owned()]);
        let (decision, rules) = decide(&authority, line);
        assert_eq!(decision.permission, Permission::Ask, "{line}");
        assert!(decision.reason.contains(option), "{}", decision.reason);
        let commands: Vec<_> = rules.iter().filter_map(|rule| rule.command.as_deref()).collect();
        assert_eq!(commands, [saved], "{line}");
        let granted = authority.granting(&rules);
        assert_eq!(decide(&granted, line).0.permission, Permission::Allow, "{line}");
        assert_eq!(decide(&granted, also).0.permission, Permission::Allow, "{also}");
        assert_eq!(decide(&granted, not).0.permission, Permission::Ask, "{not}");
    }
    // Where nothing was allowed before, only the very line is.
    let (_, rules) = decide(&authority(["ls".to_owned()]), "git rebase -x ./check main");
    let commands: Vec<_> = rules.iter().filter_map(|rule| rule.command.as_deref()).collect();
    assert_eq!(commands, ["git rebase -x ./check main"]);
}

#[test]
fn a_rule_on_a_program_of_the_users_own_covers_all_its_words() {
    let authority = authority(["./build.sh *".to_owned(), "mytool *".to_owned()]);
    for line in ["./build.sh --exec x", "mytool --weird $X -c y"] {
        assert_eq!(decide(&authority, line).0.permission, Permission::Allow, "{line}");
    }
}

#[test]
fn words_that_are_written_are_judged_as_paths() {
    let patterns = ["cp *", "sort *", "tee *", "rm *", "mv *", "sed *", "curl *", "tar *"];
    let authority = authority(patterns.map(str::to_owned));
    for (line, expected) in [
        ("cp a b", Permission::Allow),
        ("cp a ~/.bashrc", Permission::Ask),
        ("cp a /etc/x", Permission::Ask),
        ("cp a ../../other", Permission::Ask),
        ("sort -o sorted x", Permission::Allow),
        ("sort -o ~/.profile x", Permission::Ask),
        ("echo x | tee /etc/y", Permission::Ask),
        ("rm -rf build/*.o", Permission::Allow),
        ("rm -rf /", Permission::Ask),
        ("rm -rf $X", Permission::Ask),
        ("mv a /tmp/x", Permission::Ask),
        ("sed -i s/a/b/ ~/.bashrc", Permission::Ask),
        ("sed -n 1p ~/.bashrc", Permission::Allow),
        ("curl -o /etc/x https://example.com", Permission::Ask),
        ("tar xf a.tar -C /", Permission::Ask),
        ("cd / && rm -rf x", Permission::Ask),
    ] {
        assert_eq!(decide(&authority, line).0.permission, expected, "{line}");
    }
}
