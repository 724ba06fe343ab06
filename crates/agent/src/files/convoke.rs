//! Our own form: all that a definition can say, in Markdown with keys or in YAML alone.

use std::collections::BTreeMap;
use std::time::Duration;

use convoke_core::policy::RuleSpec;
use convoke_core::run::{OnStuck, OutputSpec};
use convoke_core::{Message, Mode, Money, Role, WorkspaceKind};
use convoke_model::Effort;
use serde_json::Value;

use super::field::{Fields, Unknown};
use super::note::Findings;
use super::read::{Context, Verdict};
use super::yaml::{Body, Entry, Node};
use crate::check::{MAIN, is_name};
use crate::definition::{
    AgentDefinition, Inherit, Input, InputConfig, InputType, ToolConfig, UnknownInputType,
};

/// Every key.
const KEYS: &[&str] = &[
    "name",
    "display_name",
    "description",
    "model",
    "temperature",
    "top_p",
    "thinking_budget",
    "reasoning_effort",
    "max_turns",
    "max_time_minutes",
    "timeout_mins",
    "tools",
    "exclude_tools",
    "agents",
    "inputs",
    "input_schema",
    "output",
    "output_schema",
    "query",
    "initial_messages",
    "context",
    "background",
    "at_most_once",
    "on_stuck",
    "budget",
    "workspace",
    "mode",
    "rules",
    "permissions",
    "commands",
    "system_prompt",
];

const INPUT_KEYS: &[&str] = &["type", "description", "required"];
const OUTPUT_KEYS: &[&str] = &["name", "description", "schema"];
const BUDGET_KEYS: &[&str] = &["turns", "time", "tokens", "cost", "tool_calls"];

/// Reads the keys of a file.
pub(super) fn read(
    fields: &mut Fields,
    context: &Context<'_>,
    findings: &mut Findings,
) -> (Verdict, &'static [&'static str]) {
    let name = fields.text("name", findings).unwrap_or_else(|| context.place.to_owned());
    let description = fields.description(findings).unwrap_or_default();
    let mut definition = AgentDefinition::new(name, description);
    definition.display_name = fields.text("display_name", findings);
    read_prompt(&mut definition, fields, context, findings);
    read_model(&mut definition, fields, findings);
    read_run(&mut definition, fields, findings);
    read_tools(&mut definition, fields, findings);
    if let Some(inputs) = read_inputs(&definition.name, fields, findings) {
        definition.input = inputs;
    }
    definition.output = read_output(fields, findings);
    read_policy(&mut definition, fields, findings);
    (Verdict::Agent(Box::new(definition)), KEYS)
}

fn read_prompt(
    definition: &mut AgentDefinition,
    fields: &mut Fields,
    context: &Context<'_>,
    findings: &mut Findings,
) {
    let line = fields.line("system_prompt");
    let written = fields.text("system_prompt", findings).map(|text| text.trim_end().to_owned());
    let body = context.body();
    if let (Some(_), Some(_), Some(line)) = (&written, &body, line) {
        let message = "the text below the keys is the system prompt; keep one of them";
        findings.problem(line, "system_prompt", message);
    }
    definition.prompt.system_prompt = body.or(written);
    definition.prompt.query = fields.text("query", findings).map(|text| text.trim_end().to_owned());
    let Some(field) = fields.take("initial_messages") else { return };
    let Body::List(items) = &field.node.body else {
        field.wrong::<()>("a list of `{role: user, content: …}`", findings);
        return;
    };
    for item in items {
        match message(item) {
            Some(message) => definition.prompt.initial_messages.push(message),
            None => findings.problem(
                item.line,
                &field.key,
                format!(
                    "expected `role: user` or `role: assistant`, and `content: …`, found {}",
                    item.shown()
                ),
            ),
        }
    }
}

fn message(item: &Node) -> Option<Message> {
    let value = item.value();
    let map = value.as_object().filter(|map| map.len() == 2)?;
    let role = match map.get("role")?.as_str()? {
        "user" => Role::User,
        "assistant" => Role::Assistant,
        _ => return None,
    };
    Some(Message::text(role, map.get("content")?.as_str()?))
}

fn read_model(definition: &mut AgentDefinition, fields: &mut Fields, findings: &mut Findings) {
    definition.model.model = fields.text("model", findings).filter(|model| model != "inherit");
    let settings = &mut definition.model.settings;
    settings.temperature = fields.number("temperature", (0.0, 2.0), findings);
    settings.top_p = fields.number("top_p", (0.0, 1.0), findings);
    settings.thinking_budget = fields.take("thinking_budget").and_then(|field| {
        let number = field.node.value().as_i64().filter(|number| *number >= -1);
        match number {
            Some(number) => Some(number),
            None => field.wrong("a number of tokens, or -1 to let the model decide", findings),
        }
    });
    settings.reasoning_effort = read_effort("reasoning_effort", fields, findings);
}

/// Reads how hard a model thinks.
pub(super) fn read_effort(
    name: &str,
    fields: &mut Fields,
    findings: &mut Findings,
) -> Option<Effort> {
    const ALL: [Effort; 6] =
        [Effort::None, Effort::Minimal, Effort::Low, Effort::Medium, Effort::High, Effort::Xhigh];
    let words = ALL.map(Effort::as_str);
    let read = |word: &str| match word {
        "max" => Some(Effort::Xhigh),
        word => ALL.into_iter().find(|effort| effort.as_str() == word),
    };
    fields.word(name, read, &words, findings)
}

fn read_run(definition: &mut AgentDefinition, fields: &mut Fields, findings: &mut Findings) {
    let run = &mut definition.run;
    run.max_turns = fields.small("max_turns", findings);
    run.max_time = read_minutes("max_time_minutes", fields, findings);
    if let Some(time) = read_minutes("timeout_mins", fields, findings) {
        run.max_time = Some(run.max_time.map_or(time, |known| known.min(time)));
    }
    if let Some(mut budget) = fields.map("budget", findings) {
        let turns = budget.small("turns", findings);
        run.max_turns = smaller(run.max_turns, turns);
        run.max_time = smaller(run.max_time, read_time("time", &mut budget, findings));
        run.max_tokens = budget.count("tokens", findings);
        run.max_cost = read_cost(&mut budget, findings);
        run.max_tool_calls = budget.small("tool_calls", findings);
        budget.finish(BUDGET_KEYS, Unknown::Wrong, findings);
    }
    let words: Vec<&str> = Inherit::WORDS.iter().map(|(word, _)| *word).collect();
    let inherit = |word: &str| {
        Inherit::WORDS.iter().find(|(known, _)| *known == word).map(|(_, inherit)| *inherit)
    };
    run.context = fields.word("context", inherit, &words, findings).unwrap_or_default();
    run.workspace =
        fields.word("workspace", |word| word.parse().ok(), WorkspaceKind::ALL, findings);
    run.background = fields.flag("background", findings).unwrap_or_default();
    run.at_most_once = fields.flag("at_most_once", findings).unwrap_or_default();
    run.on_stuck = fields.word("on_stuck", |word| word.parse().ok(), OnStuck::ALL, findings);
}

fn smaller<T: Ord>(one: Option<T>, other: Option<T>) -> Option<T> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

/// Reads a time in minutes.
pub(super) fn read_minutes(
    name: &str,
    fields: &mut Fields,
    findings: &mut Findings,
) -> Option<Duration> {
    let minutes = fields.number(name, (0.01, 10_080.0), findings)?;
    Some(Duration::from_millis(
        Duration::from_secs_f64(minutes * 60.0).as_millis().try_into().ok()?,
    ))
}

/// Reads a time as `1h30m`, or in milliseconds.
fn read_time(name: &str, fields: &mut Fields, findings: &mut Findings) -> Option<Duration> {
    let field = fields.take(name)?;
    let read = match &field.node.body {
        Body::Scalar(Value::Number(number)) => number.as_u64().map(Duration::from_millis),
        Body::Scalar(Value::String(text)) => duration(text),
        _ => None,
    };
    match read.filter(|time| !time.is_zero()) {
        Some(time) => Some(time),
        None => field.wrong("a time such as `90s` or `1h30m`", findings),
    }
}

fn duration(text: &str) -> Option<Duration> {
    let mut rest = text.trim();
    let mut total = Duration::ZERO;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit())?;
        let (number, after) = rest.split_at(digits);
        let number: u64 = number.parse().ok()?;
        let units = after.find(|c: char| c.is_ascii_digit()).unwrap_or(after.len());
        let (unit, after) = after.split_at(units);
        let seconds = match unit.trim() {
            "ms" => {
                total = total.checked_add(Duration::from_millis(number))?;
                0
            }
            "s" => 1,
            "m" => 60,
            "h" => 3600,
            "d" => 86_400,
            _ => return None,
        };
        total = total.checked_add(Duration::from_secs(number.checked_mul(seconds)?))?;
        rest = after;
    }
    Some(total)
}

fn read_cost(fields: &mut Fields, findings: &mut Findings) -> Option<Money> {
    let field = fields.take("cost")?;
    let text = match &field.node.body {
        Body::Scalar(Value::String(text)) => text.clone(),
        Body::Scalar(Value::Number(number)) => number.to_string(),
        _ => String::new(),
    };
    let plain = text.trim_start_matches('$');
    let decimal = plain.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    match plain.parse().ok().filter(|_| decimal && !plain.is_empty()) {
        Some(money) => Some(money),
        None => field.wrong("an amount of US dollars such as `\"1.50\"`", findings),
    }
}

fn read_tools(definition: &mut AgentDefinition, fields: &mut Fields, findings: &mut Findings) {
    let names = |list: Vec<(String, u64)>| list.into_iter().map(|(name, _)| name);
    if let Some(tools) = fields.texts("tools", findings) {
        definition.tools = ToolConfig::only(names(tools));
    }
    if let Some(exclude) = fields.texts("exclude_tools", findings) {
        definition.tools.exclude = names(exclude).collect();
    }
    for (name, line) in fields.texts("agents", findings).unwrap_or_default() {
        // That nobody can call the first agent is said where agents are looked up.
        if is_name(&name) || name == MAIN {
            definition.agents.push(name);
        } else {
            let message = format!("`{name}` is not a name of an agent; write them as `[one, two]`");
            findings.problem(line, "agents", message);
        }
    }
}

fn read_inputs(agent: &str, fields: &mut Fields, findings: &mut Findings) -> Option<InputConfig> {
    let inputs = fields.take("inputs");
    if let Some(schema) = fields.take("input_schema") {
        if inputs.is_some() {
            let message = "the inputs are given twice; keep `inputs` or `input_schema`";
            findings.problem(schema.line, &schema.key, message);
        }
        return Some(InputConfig::Schema(schema.node.value()));
    }
    let field = inputs?;
    let Body::Map(entries) = &field.node.body else {
        return field.wrong("names with their types, such as `file: string`", findings);
    };
    let mut inputs = BTreeMap::new();
    for entry in entries {
        let key = format!("{}.{}", field.key, entry.key);
        fields.add_line(format!("inputs.{}", entry.key), entry.line);
        if let Some(input) = read_input(agent, &key, entry, findings) {
            inputs.insert(entry.key.clone(), input);
        }
    }
    Some(InputConfig::Named(inputs))
}

fn read_input(agent: &str, key: &str, entry: &Entry, findings: &mut Findings) -> Option<Input> {
    let kind = |word: &str, line, key: &str, findings: &mut Findings| {
        let kind = InputType::from_word(word.trim());
        if kind.is_none() {
            let (agent, input) = (agent.to_owned(), entry.key.clone());
            let error = UnknownInputType { agent, input, given: word.to_owned() };
            findings.problem(line, key, error.to_string());
        }
        kind
    };
    match &entry.node.body {
        Body::Scalar(Value::String(word)) => {
            let kind = kind(word, entry.line, key, findings)?;
            Some(Input { description: String::new(), kind, required: true })
        }
        Body::Map(entries) => {
            let mut input = Fields::new(entries.clone(), &format!("{key}."), findings);
            let line = input.line("type").unwrap_or(entry.line);
            let word = input.text("type", findings).unwrap_or_else(|| "string".to_owned());
            let kind = kind(&word, line, &format!("{key}.type"), findings);
            let description = input.text("description", findings).unwrap_or_default();
            let required = input.flag("required", findings).unwrap_or(true);
            input.finish(INPUT_KEYS, Unknown::Told, findings);
            Some(Input { description, kind: kind?, required })
        }
        _ => {
            let message = format!(
                "expected a type such as `string`, or `{{type: string, description: …}}`, found {}",
                entry.node.shown()
            );
            findings.problem(entry.line, key, message);
            None
        }
    }
}

fn read_output(fields: &mut Fields, findings: &mut Findings) -> Option<OutputSpec> {
    let bare = fields.take("output_schema");
    let Some(mut output) = fields.map("output", findings) else {
        let schema = bare?.node.value();
        return Some(OutputSpec { name: "result".to_owned(), description: String::new(), schema });
    };
    let name = output.text("name", findings).unwrap_or_else(|| "result".to_owned());
    let description = output.text("description", findings).unwrap_or_default();
    let schema = output.take("schema").map(|field| field.node.value());
    output.finish(OUTPUT_KEYS, Unknown::Told, findings);
    if let (Some(_), Some(bare)) = (&schema, &bare) {
        let message = "the schema of the output is given twice; keep `output.schema`";
        findings.problem(bare.line, &bare.key, message);
    }
    let schema = schema.or_else(|| bare.map(|field| field.node.value()));
    // Without a schema, anything will do.
    Some(OutputSpec { name, description, schema: schema.unwrap_or(Value::Bool(true)) })
}

fn read_policy(definition: &mut AgentDefinition, fields: &mut Fields, findings: &mut Findings) {
    definition.policy.mode = fields.word("mode", |word| word.parse().ok(), Mode::ALL, findings);
    for name in ["rules", "permissions"] {
        let Some(field) = fields.take(name) else { continue };
        let Body::List(items) = &field.node.body else {
            field.wrong::<()>("a list of `{effect: deny, tool: …}`", findings);
            continue;
        };
        for item in items {
            match serde_json::from_value::<RuleSpec>(item.value()) {
                Ok(rule) => definition.policy.rules.push(rule),
                Err(error) => findings.problem(
                    item.line,
                    &field.key,
                    format!("{error}; a rule is written `{{effect: deny, command: git push *}}`"),
                ),
            }
        }
    }
    let commands = fields.texts("commands", findings);
    definition.policy.commands =
        commands.map(|commands| commands.into_iter().map(|(pattern, _)| pattern).collect());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        for (text, seconds) in [("90s", 90), ("1h30m", 5400), ("2d", 172_800), ("1m 5s", 65)] {
            assert_eq!(duration(text), Some(Duration::from_secs(seconds)), "{text}");
        }
        assert_eq!(duration("250ms"), Some(Duration::from_millis(250)));
        for wrong in ["10", "m", "1x", "-1s", "99999999999999999999s", "1h-"] {
            assert_eq!(duration(wrong), None, "{wrong}");
        }
    }
}
