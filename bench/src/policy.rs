//! What a decision costs with a thousand rules.

use std::collections::HashMap;
use std::hint::black_box;

use brush_parser::{Parser, ParserOptions, SourceInfo};
use convoke::core::policy::{Facts, Layer, Policy, Rule, RuleSpec, Scope, World};
use convoke::core::{Category, Kind, Mode, Permission, ToolSpec};
use serde_json::{Value, json};

use crate::Result;
use crate::measure::{in_turns, time_many};
use crate::table::Table;

const RULES: usize = 1_000;
const SAMPLES: usize = 21;
const DECISIONS: u32 = 2_000;

const LINE: &str =
    "cd crates/core && git status --short | grep -v '^ M' && cargo test -p core 2>&1";

pub(crate) fn measure(table: &mut Table) -> Result<()> {
    let policy = policy()?;
    let home = Some("/home/u".to_owned());
    let world = World { directory: "/work".into(), home, roots: Vec::new() };
    let mut read = ToolSpec::new("read_file", "Reads.", Kind::Read);
    read.effects.reads = vec!["path".into()];
    let read = Call { spec: read, arguments: json!({ "path": "src/deep/er/file.rs" }) };
    let mut fetch = ToolSpec::new("http_get", "Fetches.", Kind::Fetch);
    fetch.effects.urls = vec!["url".into()];
    let fetch = Call { spec: fetch, arguments: json!({ "url": "https://docs.example.org/x" }) };
    let mut run = ToolSpec::new("run_command", "Runs.", Kind::Execute);
    run.category = Category::Code;
    let command = |line: &str| Call { spec: run.clone(), arguments: json!({ "command": line }) };

    let names: HashMap<String, usize> =
        (0..RULES).map(|number| (format!("tool_{number}"), number)).collect();
    let lookup = || {
        time_many(DECISIONS, || {
            black_box(names.get(black_box("tool_500")));
            Ok(())
        })
    };
    for (what, call) in [("a path", &read), ("a host", &fetch)] {
        let pair = in_turns(SAMPLES, || call.decide(&policy, &world), lookup)?;
        table.pair(
            &format!("a decision on {what}, 1,000 rules"),
            "HashMap look-up",
            pair,
            "≤ 10 µs",
        );
    }
    for (what, line) in [("one command", "git log --oneline -n 10"), ("four commands", LINE)] {
        let call = command(line);
        let parse = || {
            time_many(DECISIONS, || {
                let options = ParserOptions::default();
                let parsed =
                    Parser::new(line.as_bytes(), &options, &SourceInfo::default()).parse_program();
                black_box(parsed?);
                Ok(())
            })
        };
        let pair = in_turns(SAMPLES, || call.decide(&policy, &world), parse)?;
        table.pair(&format!("a decision on {what}, 1,000 rules"), "parsing alone", pair, "≤ 50 µs");
    }
    Ok(())
}

struct Call {
    spec: ToolSpec,
    arguments: Value,
}

impl Call {
    fn decide(&self, policy: &Policy, world: &World) -> Result<std::time::Duration> {
        time_many(DECISIONS, || {
            let effects = self.spec.effects.apply(&self.arguments);
            let facts = Facts::new(&self.spec, &self.arguments, &effects, "main", world);
            black_box(policy.decide(&facts));
            Ok(())
        })
    }
}

/// A thousand rules of every sort, a third of them each allowing, asking and denying.
fn policy() -> Result<Policy> {
    let mut rules = Vec::new();
    for number in 0..RULES {
        let effect = *Permission::ALL.get(number / 8 % 3).ok_or("no permission")?;
        let spec = match number % 8 {
            0 => RuleSpec::command(effect, format!("program{number} *")),
            1 => RuleSpec::command(effect, format!("git sub{number} * --force")),
            2 => RuleSpec::tool(effect, format!("tool_{number}")),
            3 => RuleSpec::tool(effect, format!("mcp__server{number}__*")),
            4 => RuleSpec::path(effect, format!("/srv/project{number}/**")),
            5 => RuleSpec::path(effect, format!("**/*.secret{number}")),
            6 => RuleSpec::host(effect, format!("host{number}.example.com")),
            _ => RuleSpec::host(effect, format!("*.zone{number}.example.com")),
        };
        rules.push(Rule::new(spec, Some("/home/u"), None)?);
    }
    for pattern in ["git *", "cargo *", "grep *", "cd *"] {
        rules.push(Rule::new(RuleSpec::command(Permission::Allow, pattern), None, None)?);
    }
    Ok(Policy::new(Mode::Default).layer(Layer::new(Scope::User, rules)))
}
