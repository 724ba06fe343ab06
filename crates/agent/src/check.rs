//! Whether a definition holds together, found out before anybody calls the agent.
//!
//! What is checked here holds for every registered agent, wherever it comes from: it has a name that
//! providers take, a description, inputs that can be told apart, schemas that are schemas, rules that can
//! be read, and texts whose gaps are inputs.

use convoke_core::policy::Rule;
use convoke_core::run::COMPLETE_TASK;
use convoke_core::{SERVER_TOOL_PREFIX, USE_TOOL};
use convoke_tool::catalogue::TOOL_SEARCH;
use serde_json::Value;

use crate::background::BACKGROUND_AGENTS;
use crate::definition::{AgentDefinition, Commands, InputConfig};
use crate::delegate::DELEGATE_TO_AGENT;
use crate::template::{Gap, PromptTemplate, UnfilledGaps, is_gap_name};

/// The argument that says which agent is called. No input of an agent can have this name.
pub const AGENT_NAME: &str = "agent_name";

/// The argument that says which agent goes on. No input of an agent can have this name.
pub const AGENT_ID: &str = "agent_id";

/// What the first agent of a run is called in paths and rules; no other can have its name.
pub const MAIN: &str = "main";

/// The tools by which agents are called and tools are found: nobody else can have their names.
const TAKEN: &[&str] = &[DELEGATE_TO_AGENT, BACKGROUND_AGENTS, TOOL_SEARCH, USE_TOOL];

/// The longest name of an agent.
pub const MAX_NAME_BYTES: usize = 64;

/// Something about a definition that does not hold.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct DefinitionProblem {
    /// The key it is about, as it is called in a file.
    pub key: &'static str,
    /// Which part of it: the name of an input.
    pub item: Option<String>,
    /// The line of that text, from 1, where it is about one.
    pub line: Option<usize>,
    /// What is wrong, and what to write instead.
    pub message: String,
}

/// Checks a definition, and returns its texts, taken apart; or everything that is wrong with it.
pub fn check<T>(definition: &AgentDefinition<T>) -> Result<PromptTemplate, Vec<DefinitionProblem>> {
    let mut problems = Vec::new();
    let mut wrong =
        |key, message| problems.push(DefinitionProblem { key, item: None, line: None, message });
    if let Err(message) = check_name(&definition.name) {
        wrong("name", message);
    }
    if definition.description.trim().is_empty() {
        wrong(
            "description",
            "there is no description; say in a sentence what the agent is good for: models choose \
             by it"
                .to_owned(),
        );
    }
    // It is shown on terminals and told to models: what cannot be seen there has no place in it.
    if let Some(unseen) = definition.description.chars().find(|one| is_unseen(*one)) {
        let code = u32::from(unseen);
        wrong(
            "description",
            format!("it has a character that is not seen (U+{code:04X}); leave it out"),
        );
    }
    if let Some(output) = &definition.output {
        if output.name.trim().is_empty() {
            wrong("output", "the output has no name; write `name: report`".to_owned());
        }
        if let Err(error) = jsonschema::validator_for(&output.schema) {
            wrong("output", format!("the schema of the output is not valid: {error}"));
        }
    }
    for (index, spec) in definition.policy.rules.iter().enumerate() {
        let checked = Rule::new(spec.clone(), None, None);
        let mistakes = match &checked {
            Ok(rule) => rule.check_examples(),
            Err(error) => vec![error.clone()],
        };
        for error in mistakes {
            wrong("rules", format!("rule {}: {error}", index + 1));
        }
    }
    for pattern in definition.policy.commands.iter().flatten() {
        if let Err(error) = Commands::new([pattern]) {
            wrong("commands", format!("`{pattern}`: {}", error.message));
        }
    }
    problems.extend(input_problems(&definition.name, &definition.input));
    match PromptTemplate::of(definition) {
        Ok(template) if problems.is_empty() => return Ok(template),
        Ok(_) => {}
        Err(gaps) => problems.extend(gap_problems(&gaps)),
    }
    Err(problems)
}

/// Says what is wrong in each text on its own, so that each has its place.
fn gap_problems(all: &UnfilledGaps) -> Vec<DefinitionProblem> {
    let key = |gap: &Gap| match gap.text.as_str() {
        "system prompt" => "system_prompt",
        "query" => "query",
        _ => "initial_messages",
    };
    let texts = all.gaps.chunk_by(|one, next| key(one) == key(next));
    let problem = |gaps: &[Gap]| {
        let message = UnfilledGaps { gaps: gaps.to_vec(), ..all.clone() }.to_string();
        let first = gaps.first()?;
        Some(DefinitionProblem { key: key(first), item: None, line: Some(first.line), message })
    };
    texts.filter_map(problem).collect()
}

/// Tells whether a character changes how a text looks, and is not seen itself.
fn is_unseen(character: char) -> bool {
    let turns = matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    turns || (character.is_control() && !matches!(character, '\n' | '\r' | '\t'))
}

/// Tells whether a text can be the name of an agent.
pub fn is_name(name: &str) -> bool {
    check_name(name).is_ok()
}

/// Checks a name; what is wrong with it comes with one that would do.
pub fn check_name(name: &str) -> Result<(), String> {
    let starts = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    let plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
    if name.is_empty() {
        return Err("there is no name; write for instance `name: code-reviewer`".to_owned());
    }
    if name == COMPLETE_TASK {
        return Err(format!("`{name}` is the tool by which every agent ends; use another name"));
    }
    if name == MAIN {
        return Err(format!("`{name}` is the first agent of every run; use another name"));
    }
    if TAKEN.contains(&name) {
        return Err(format!("`{name}` is a tool that models know by this name; use another name"));
    }
    if name.starts_with(SERVER_TOOL_PREFIX) {
        return Err(format!(
            "`{name}` would be taken for a tool of an MCP server; write `name: {}`",
            suggest_name(name.trim_start_matches(SERVER_TOOL_PREFIX))
        ));
    }
    if starts && plain && name.len() <= MAX_NAME_BYTES {
        return Ok(());
    }
    Err(format!(
        "`{name}` is not a name of an agent: it takes 1 to {MAX_NAME_BYTES} letters, digits, `_` or \
         `-`, and starts with a letter or `_`; write `name: {}`",
        suggest_name(name)
    ))
}

/// Makes a name that would do of one that does not.
pub fn suggest_name(text: &str) -> String {
    let mut name = String::new();
    for character in text.chars() {
        if character.is_ascii_alphanumeric() || character == '_' {
            name.push(character.to_ascii_lowercase());
        } else if !name.is_empty() && !name.ends_with('-') {
            name.push('-');
        }
    }
    if name.starts_with(|c: char| c.is_ascii_digit()) {
        name.insert_str(0, "agent-");
    }
    name.truncate(MAX_NAME_BYTES);
    let name = name.trim_end_matches('-');
    if name.is_empty() { "my-agent".to_owned() } else { name.to_owned() }
}

fn input_problems(agent: &str, inputs: &InputConfig) -> Vec<DefinitionProblem> {
    let key = match inputs {
        InputConfig::Named(_) => "inputs",
        InputConfig::Schema(_) => "input_schema",
    };
    let problem = |item, message| DefinitionProblem { key, item, line: None, message };
    let mut problems = Vec::new();
    if let InputConfig::Schema(schema) = inputs {
        let of_object = schema.get("type").is_some_and(|kind| kind == "object");
        let properties = schema.get("properties").is_none_or(Value::is_object);
        if !of_object || !properties {
            let message = "the schema of the inputs is not one of an object; write `type: object` \
                           and `properties:`";
            problems.push(problem(None, message.to_owned()));
        } else if let Err(error) = jsonschema::validator_for(schema) {
            let message = format!("the schema of the inputs is not valid: {error}");
            problems.push(problem(None, message));
        }
    }
    for (name, _) in inputs.names() {
        if name == AGENT_NAME || name == AGENT_ID {
            let does = if name == AGENT_NAME { "is called" } else { "goes on" };
            let message = format!(
                "agent `{agent}`: no input can be called `{name}`, which says which agent {does}; use \
                 another name"
            );
            problems.push(problem(Some(name), message));
        } else if matches!(inputs, InputConfig::Named(_)) && !is_gap_name(&name) {
            let message = format!(
                "agent `{agent}`: `{name}` is not a name of an input: it takes letters, digits and \
                 `_`, so that `${{name}}` can stand for it; write `{}`",
                suggest_name(&name).replace('-', "_")
            );
            problems.push(problem(Some(name), message));
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use convoke_core::run::OutputSpec;
    use serde_json::json;

    use super::*;
    use crate::definition::InputType;

    fn problems(change: impl FnOnce(&mut AgentDefinition)) -> Vec<String> {
        let mut definition = AgentDefinition::new("reader", "Reads.");
        change(&mut definition);
        let problems = check(&definition).err().unwrap_or_default();
        problems.iter().map(|problem| format!("{}: {problem}", problem.key)).collect()
    }

    #[test]
    fn a_plain_definition_holds() {
        assert_eq!(problems(|_| {}), [""; 0]);
    }

    #[test]
    fn names_are_those_that_providers_take() {
        for name in ["a", "_x", "code-reviewer", "A_1", &"x".repeat(64)] {
            assert_eq!(check_name(name), Ok(()), "{name}");
        }
        for (name, suggested) in [
            ("Code Reviewer", "code-reviewer"),
            ("  spaced  out ", "spaced-out"),
            ("team/reviewer", "team-reviewer"),
            ("2fast", "agent-2fast"),
            ("-x", "x"),
            ("änderung", "nderung"),
            ("日本", "my-agent"),
            (&"x".repeat(65), &"x".repeat(64)),
        ] {
            let error = check_name(name).unwrap_err();
            assert!(error.contains(&format!("write `name: {suggested}`")), "{error}");
            assert_eq!(check_name(suggested), Ok(()), "{suggested}");
        }
        assert!(check_name("").is_err());
        for taken in ["delegate_to_agent", "background_agents", "use_tool", "mcp__files__read"] {
            assert!(check_name(taken).is_err(), "{taken}");
        }
        assert!(check_name("complete_task").is_err());
        assert!(check_name("main").unwrap_err().contains("the first agent"));
    }

    #[test]
    fn r173_no_input_can_be_called_agent_name() {
        let found = problems(|definition| {
            definition.input = InputConfig::none().required("agent_name", InputType::String, "");
        });
        assert!(
            found[0].starts_with("inputs: agent `reader`: no input can be called `agent_name`")
        );
        let found = problems(|definition| {
            let schema = json!({ "type": "object", "properties": { "agent_name": {} } });
            definition.input = InputConfig::Schema(schema);
        });
        assert!(found[0].starts_with("input_schema: "), "{found:?}");
        let found = problems(|definition| {
            definition.input = InputConfig::none().required("agent_id", InputType::String, "");
        });
        assert!(found[0].contains("`agent_id`, which says which agent goes on"), "{found:?}");
    }

    #[test]
    fn everything_that_is_wrong_is_said_at_once() {
        let found = problems(|definition| {
            definition.name = "a b".to_owned();
            definition.description = "  ".to_owned();
            definition.input = InputConfig::Schema(json!({ "type": "array" }));
            definition.output = Some(OutputSpec {
                name: String::new(),
                description: String::new(),
                schema: json!({ "type": "nonsense" }),
            });
            definition.prompt.system_prompt = Some("${y}".to_owned());
            definition.prompt.query = Some("${x}".to_owned());
            definition.policy.commands = Some(vec!["a; b".to_owned(), "c".into(), "d; e".into()]);
        });
        let keys: Vec<&str> = found.iter().filter_map(|text| text.split(':').next()).collect();
        assert_eq!(
            keys,
            [
                "name",
                "description",
                "output",
                "output",
                "commands",
                "commands",
                "input_schema",
                "system_prompt",
                "query"
            ]
        );
    }

    #[test]
    fn an_input_has_to_be_a_name_that_a_gap_can_have() {
        let found = problems(|definition| {
            definition.input = InputConfig::none().required("file-path", InputType::String, "");
        });
        assert!(found[0].ends_with("write `file_path`"), "{found:?}");
    }
}
