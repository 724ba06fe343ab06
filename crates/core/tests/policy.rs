//! The policy as a whole: a corpus of attempts to get around it, and what must hold for any policy.

#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

use convoke_core::policy::{Authority, Facts, Layer, Policy, Rule, RuleSpec, Scope, World};
use convoke_core::{Category, Effects, Kind, Mode, Permission, Resource, ToolSpec};
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};

fn rules(specs: impl IntoIterator<Item = RuleSpec>) -> Vec<Rule> {
    specs.into_iter().map(|spec| Rule::new(spec, Some("/world/home"), None).unwrap()).collect()
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
    denied.push(RuleSpec::path(Permission::Deny, "~/private/**"));
    denied.push(RuleSpec::host(Permission::Deny, "127.0.0.1"));
    denied.push(RuleSpec::tool(Permission::Deny, "mcp__forbidden__*"));
    denied
}

fn world() -> World {
    World {
        directory: "/world/project".into(),
        home: Some("/world/home".into()),
        roots: Vec::new(),
    }
}

/// How many cases a property is tried with; `PROPTEST_CASES` (256 where it is not set) multiplies it.
fn cases(number: u32) -> ProptestConfig {
    ProptestConfig::with_cases(number * (ProptestConfig::default().cases / 256).max(1))
}

/// Decides about a call of the corpus: a command, or what a tool of somebody else is told.
fn decide_case(authority: &Authority, case: &Value) -> Permission {
    let fill = |text: String| {
        let text = text.replace("@HOME@", "/world/home").replace("@PROJECT@", "/world/project");
        text.replace("@PORT@", "80")
    };
    if let Some(line) = case["command"].as_str() {
        return decide(authority, &fill(line.to_owned()));
    }
    let name = case.pointer("/call/tool").and_then(Value::as_str).unwrap();
    let mut spec = ToolSpec::new(name, "Acts.", Kind::Other);
    spec.category = Category::Mcp;
    let arguments: Value =
        serde_json::from_str(&fill(case.pointer("/call/arguments").unwrap().to_string())).unwrap();
    let world = world();
    authority.decide(&Facts::new(&spec, &arguments, &Effects::NONE, "main", &world)).permission
}

fn decide(authority: &Authority, line: &str) -> Permission {
    let world = world();
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
    specs.push(RuleSpec::tool(Permission::Allow, "mcp__*"));
    specs.extend(denials());
    Policy::new(Mode::Default).layer(layer(specs))
}

/// claude-code#36637, #37662: ways around rules, one a line of the corpus.
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
        if case["layer"] != "policy" {
            continue;
        }
        for authority in [&first, &child, &grandchild] {
            if decide_case(authority, case) == Permission::Allow {
                passed.push(case);
            }
        }
    }
    assert!(passed.is_empty(), "{} passed: {passed:#?}", passed.len());
}

/// A rule on all tools of a server is one on the server: what is read from it is forbidden too, and never allowed by
/// that alone. A rule on one of its tools says nothing about it.
/// gemini-cli 4.20: every way to write all tools of a server is understood.
#[test]
fn a_rule_on_the_tools_of_a_server_holds_for_what_is_read_from_it() {
    use Permission::{Allow, Ask, Deny};
    let mut spec = ToolSpec::new("mcp_read_resource", "Reads.", Kind::Fetch);
    spec.category = Category::Mcp;
    let arguments = json!({ "server": "payroll", "uri": "book:1" });
    let server = Resource::Server("mcp__payroll__".to_owned());
    let effects = Effects { reads: vec![server], writes: Vec::new() };
    let world = world();
    let facts = Facts::new(&spec, &arguments, &effects, "main", &world);
    let only = |kind| {
        let mut rule = RuleSpec::tool(Deny, "mcp__payroll__*");
        rule.kind = Some(kind);
        rule
    };
    for (mode, rule, expected) in [
        (Mode::Full, RuleSpec::tool(Deny, "mcp__payroll__*"), Deny),
        (Mode::Full, RuleSpec::tool(Deny, "mcp__payroll__"), Deny),
        (Mode::Full, RuleSpec::tool(Deny, "mcp_*"), Deny),
        (Mode::Full, RuleSpec::tool(Ask, "mcp__*"), Ask),
        (Mode::Full, RuleSpec::tool(Deny, "mcp__payroll__delete"), Allow),
        (Mode::Full, RuleSpec::tool(Deny, "mcp__payroll__get_*"), Allow),
        (Mode::Full, RuleSpec::tool(Deny, "mcp__other__*"), Allow),
        (Mode::Full, only(Kind::Fetch), Deny),
        (Mode::Full, only(Kind::Delete), Allow),
        (Mode::Default, RuleSpec::tool(Allow, "mcp__payroll__*"), Ask),
        (Mode::Default, RuleSpec::tool(Allow, "mcp_read_resource"), Allow),
    ] {
        let policy = Policy::new(mode).layer(layer([rule.clone()]));
        let decision = Authority::new(policy).decide(&facts);
        assert_eq!(decision.permission, expected, "{rule:?}: {}", decision.reason);
    }
    let both =
        [RuleSpec::tool(Allow, "mcp_read_resource"), RuleSpec::tool(Deny, "mcp__payroll__*")];
    let policy = Policy::new(Mode::Default).layer(layer(both));
    assert_eq!(Authority::new(policy).decide(&facts).permission, Deny);
}

/// In `full` everything is allowed that is not denied, so only what is denied can be told apart.
#[test]
fn what_is_denied_is_not_allowed_in_any_mode() {
    let policy = Policy::new(Mode::Full).layer(layer(denials()));
    let authority = Authority::new(policy);
    let cases = corpus(include_str!("data/policy/bypass.jsonl"));
    // Copies and links of a program have another name, scripts and makefiles are not read, and what
    // writes a file is not denied here.
    let known = [
        "./other",
        "sh line",
        "sh ./line",
        "-f evil.mk",
        "run-parts",
        "PERL5LIB",
        "NODE_OPTIONS",
        "PYTHONSTARTUP",
    ];
    let denied =
        cases.iter().filter(|case| case["layer"] == "policy" && case["family"] != "redirect");
    let denied = denied.filter(|case| {
        let line = case["command"].as_str().unwrap_or_default();
        !known.iter().any(|text| line.contains(text))
    });
    let passed: Vec<&Value> =
        denied.filter(|case| decide_case(&authority, case) == Permission::Allow).collect();
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
        "set *",
        "read *",
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

/// A rule with one condition, or several.
fn spec() -> impl Strategy<Value = RuleSpec> {
    let some = |of: &'static [&'static str]| proptest::option::weighted(0.35, select(of));
    let command = some(&["git *", "git push *", "ls *", "rm *", "* --force", "cat *", "*"]);
    let path = some(&["src/**", "~/.ssh/**", "/etc/**", "**/*.pem", "/world/**"]);
    let tool = some(&["*", "run_*", "read_file", "mcp__*"]);
    let host = some(&["example.com", "*.example.com", "*", "h:80"]);
    let agent = some(&["main", "main/*", "*"]);
    let argument = some(&["*", "P*", "rm x"]);
    let rule = (permission(), command, path, tool, host, agent, argument);
    rule.prop_filter_map(
        "it needs a condition",
        |(effect, command, path, tool, host, agent, argument)| {
            let mut spec = RuleSpec::new(effect);
            spec.command = command.map(str::to_owned);
            spec.path = path.map(str::to_owned);
            spec.tool = tool.map(str::to_owned);
            spec.host = host.map(str::to_owned);
            spec.agent = agent.map(str::to_owned);
            spec.args.extend(argument.map(|pattern| ("command".to_owned(), pattern.to_owned())));
            Rule::new(spec.clone(), None, None).is_ok().then_some(spec)
        },
    )
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

/// A call, as a property sees it.
#[derive(Clone, Debug)]
struct Asked {
    tool: &'static str,
    kind: Kind,
    category: Category,
    agent: &'static str,
    line: String,
    paths: Vec<String>,
    hosts: Vec<String>,
}

fn asked() -> impl Strategy<Value = Asked> {
    let path =
        select(&["src/a", "/world/home/.ssh/id", "/etc/x", "k.pem", "../x", "/proc/self/root"][..]);
    let host = select(&["example.com", "a.example.com:443", "h:80", "h"][..]);
    (
        select(&["run_command", "read_file", "mcp__a__b"][..]),
        select(Kind::ALL),
        select(Category::ALL),
        select(&["main", "main/child", "main/child/grandchild"][..]),
        line(),
        proptest::collection::vec(path.prop_map(str::to_owned), 0..3),
        proptest::collection::vec(host.prop_map(str::to_owned), 0..3),
    )
        .prop_map(|(tool, kind, category, agent, line, paths, hosts)| Asked {
            tool,
            kind,
            category,
            agent,
            line,
            paths,
            hosts,
        })
}

impl Asked {
    fn of(&self, authority: &Authority) -> Permission {
        let mut spec = ToolSpec::new(self.tool, "Acts.", self.kind);
        spec.category = self.category;
        let arguments = json!({ "command": self.line, "path": self.paths.first() });
        let world = world();
        let mut facts = Facts::new(&spec, &arguments, &Effects::NONE, self.agent, &world);
        facts.paths.clone_from(&self.paths);
        facts.hosts.clone_from(&self.hosts);
        authority.decide(&facts).permission
    }
}

/// Lines of the corpus, damaged.
fn damaged() -> impl Strategy<Value = String> {
    let lines: Vec<String> = corpus(include_str!("data/policy/bypass.jsonl"))
        .iter()
        .chain(&corpus(include_str!("data/policy/benign.jsonl")))
        .filter_map(|case| case["command"].as_str().map(str::to_owned))
        .collect();
    let text = select(
        &["(", ")", "'", "\"", "`", "$(", "${", "}", "<<E\n", "\n", ";", "|", "\\", " #", "[["][..],
    );
    let changes =
        proptest::collection::vec((any::<proptest::sample::Index>(), text, any::<bool>()), 0..4);
    (select(lines), changes).prop_map(|(line, changes)| {
        let mut characters: Vec<char> = line.chars().collect();
        for (at, text, replaces) in changes {
            let at = at.index(characters.len() + 1);
            let end = (at + usize::from(replaces)).min(characters.len());
            characters.splice(at..end, text.chars());
        }
        characters.into_iter().collect()
    })
}

/// Judges a line, which has to take less than it takes to notice.
fn judged_at_once(authority: &Authority, line: &str) -> Permission {
    // The fastest of three: somebody else may use the machine.
    let once = || {
        let started = std::time::Instant::now();
        let decided = decide(authority, line);
        (started.elapsed(), decided)
    };
    let (took, decided) = once();
    if took.as_millis() >= 50 {
        let took = once().0.min(once().0);
        assert!(took.as_millis() < 50, "{took:?} for {line:?}");
    }
    decided
}

proptest! {
    #![proptest_config(cases(500))]
    #[test]
    fn adding_a_denial_never_allows_more(policy in policy(), spec in spec(), asked in asked()) {
        let mut denial = spec;
        denial.effect = Permission::Deny;
        let with = policy.clone().layer(layer([denial]));
        let (before, after) = (Authority::new(policy), Authority::new(with));
        prop_assert!(asked.of(&after) >= asked.of(&before));
    }

    #[test]
    fn the_order_of_rules_does_not_matter(
        mode in select(Mode::ALL),
        (first, second) in specs().prop_flat_map(|specs| (Just(specs.clone()), Just(specs).prop_shuffle())),
        asked in asked(),
    ) {
        let ask = |specs| asked.of(&Authority::new(Policy::new(mode).layer(layer(specs))));
        prop_assert_eq!(ask(first), ask(second));
    }

    #[test]
    fn the_order_of_layers_does_not_matter(
        mode in select(Mode::ALL),
        user in specs(),
        more in specs(),
        project in specs(),
        asked in asked(),
    ) {
        let project = Layer::new(Scope::Project, rules(project));
        let there = Policy::new(mode).layer(layer(user.clone())).layer(project.clone()).layer(layer(more.clone()));
        let back = Policy::new(mode).layer(layer(more)).layer(project).layer(layer(user));
        prop_assert_eq!(asked.of(&Authority::new(there)), asked.of(&Authority::new(back)));
    }

    #[test]
    fn authority_never_grows_down_the_chain(
        first in policy(),
        below in proptest::collection::vec(policy(), 0..4),
        asked in asked(),
    ) {
        let mut authority = Authority::new(first);
        let mut before = asked.of(&authority);
        for own in below {
            authority = authority.child(own);
            let now = asked.of(&authority);
            prop_assert!(now >= before);
            before = now;
        }
    }

    #[test]
    fn a_project_never_allows_more(policy in policy(), specs in specs(), asked in asked()) {
        let with = policy.clone().layer(Layer::new(Scope::Project, rules(specs)));
        let (before, after) = (Authority::new(policy), Authority::new(with));
        prop_assert!(asked.of(&after) >= asked.of(&before));
    }

    #[test]
    fn any_text_is_judged(text in "\\PC{0,200}", bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let authority = Authority::new(guarded());
        judged_at_once(&authority, &text);
        judged_at_once(&authority, &String::from_utf8_lossy(&bytes));
    }

    /// Whatever stands before it, what is forbidden is not allowed.
    #[test]
    fn a_forbidden_command_at_the_end_is_noticed(line in damaged()) {
        let forbids = Policy::new(Mode::Full).layer(layer(commands(Permission::Deny, &["rm *"])));
        let authority = Authority::new(forbids);
        judged_at_once(&authority, &line);
        // A comment hides what follows on its line, an open here-document too, and an escape takes the mark.
        if !line.contains(['#', '<']) && !line.ends_with('\\') {
            prop_assert_ne!(judged_at_once(&authority, &format!("{line}; rm x")), Permission::Allow);
            prop_assert_ne!(judged_at_once(&authority, &format!("{line}\nrm x")), Permission::Allow);
        }
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
        judged_at_once(&Authority::new(guarded()), &parts.concat());
    }
}
