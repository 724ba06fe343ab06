//! A definition as a list of named texts: what people are shown of it, and what two are compared by.
//!
//! Everything that a definition says is in its outline, except what a function does. What is not said is
//! not there, so an outline is short where a definition is.

use std::fmt;
use std::time::Duration;

use convoke_core::policy::RuleSpec;
use convoke_core::run::OutputSpec;
use serde_json::Value;

use crate::definition::{AgentDefinition, Inherit, InputConfig, ToolChoice};

/// What a definition says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outline {
    fields: Vec<(&'static str, String)>,
}

impl Outline {
    /// Makes the outline of a definition.
    pub fn of<T>(definition: &AgentDefinition<T>) -> Self {
        let mut outline = Self { fields: Vec::new() };
        outline.add("name", Some(definition.name.clone()));
        outline.add("display_name", definition.display_name.clone());
        outline.add("description", Some(definition.description.clone()));
        outline.add_model(definition);
        outline.add_run(definition);
        outline.add_tools(definition);
        outline.add_policy(definition);
        outline.add("inputs", Some(inputs(&definition.input)));
        outline.add("output", definition.output.as_ref().map(output));
        outline
            .add("process_output", definition.process_output.as_ref().map(|_| "true".to_owned()));
        outline.add_list("agents", &definition.agents);
        let messages = &definition.prompt.initial_messages;
        let message = |message| serde_json::to_string(message).unwrap_or_default();
        outline.add_list("initial_messages", &messages.iter().map(message).collect::<Vec<_>>());
        outline.add("query", definition.prompt.query.clone());
        outline.add("system_prompt", definition.prompt.system_prompt.clone());
        outline
    }

    /// Returns what it says, by name.
    pub fn fields(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.fields.iter().map(|(name, text)| (*name, text.as_str()))
    }

    /// Returns what it says under a name.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.fields().find(|(known, _)| *known == name).map(|(_, text)| text)
    }

    /// Returns the names under which two say something different, in order.
    pub fn differences(&self, other: &Self) -> Vec<&'static str> {
        let mut names: Vec<&'static str> = self.fields.iter().map(|(name, _)| *name).collect();
        for (name, _) in &other.fields {
            if !names.contains(name) {
                names.push(name);
            }
        }
        names.retain(|name| self.get(name) != other.get(name));
        names
    }

    fn add(&mut self, name: &'static str, text: Option<String>) {
        self.fields.extend(text.map(|text| (name, text)));
    }

    fn add_list<S: AsRef<str>>(&mut self, name: &'static str, items: &[S]) {
        let text = items.iter().map(AsRef::as_ref).collect::<Vec<_>>().join("\n");
        self.add(name, (!items.is_empty()).then_some(text));
    }

    fn add_model<T>(&mut self, definition: &AgentDefinition<T>) {
        let settings = &definition.model.settings;
        self.add("model", definition.model.model.clone());
        self.add("temperature", settings.temperature.map(|value| value.to_string()));
        self.add("top_p", settings.top_p.map(|value| value.to_string()));
        self.add("thinking_budget", settings.thinking_budget.map(|value| value.to_string()));
        let effort = settings.reasoning_effort.map(|effort| effort.as_str().to_owned());
        self.add("reasoning_effort", effort);
        self.add("max_output_tokens", settings.max_output_tokens.map(|value| value.to_string()));
    }

    fn add_run<T>(&mut self, definition: &AgentDefinition<T>) {
        let run = &definition.run;
        self.add("max_turns", run.max_turns.map(|turns| turns.to_string()));
        self.add("max_time", run.max_time.map(time));
        self.add("max_tokens", run.max_tokens.map(|tokens| tokens.to_string()));
        self.add("max_cost", run.max_cost.map(|cost| cost.to_string()));
        self.add("max_tool_calls", run.max_tool_calls.map(|calls| calls.to_string()));
        let context = Some(run.context).filter(|context| *context != Inherit::Fresh);
        self.add("context", context.map(|context| context.as_str().to_owned()));
        self.add("workspace", run.workspace.map(|kind| kind.to_string()));
        self.add("background", run.background.then(|| "true".to_owned()));
        self.add("at_most_once", run.at_most_once.then(|| "true".to_owned()));
        self.add("on_stuck", run.on_stuck.map(|word| word.to_string()));
    }

    fn add_tools<T>(&mut self, definition: &AgentDefinition<T>) {
        let choice = |choice: &ToolChoice| match choice {
            ToolChoice::Named(name) => name.clone(),
            ToolChoice::Declared(declaration) => {
                format!("{} (told as: {})", declaration.name, declaration.description)
            }
            ToolChoice::Given(tool) => format!("{} (its own)", tool.spec().name),
        };
        let allow = definition.tools.allow.as_ref();
        self.add(
            "tools",
            allow.map(|allow| match allow.as_slice() {
                [] => "none".to_owned(),
                allow => allow.iter().map(choice).collect::<Vec<_>>().join(", "),
            }),
        );
        let exclude = &definition.tools.exclude;
        self.add("exclude_tools", (!exclude.is_empty()).then(|| exclude.join(", ")));
    }

    fn add_policy<T>(&mut self, definition: &AgentDefinition<T>) {
        let policy = &definition.policy;
        self.add("mode", policy.mode.map(|mode| mode.to_string()));
        self.add(
            "commands",
            policy.commands.as_ref().map(|commands| match commands.as_slice() {
                [] => "none".to_owned(),
                commands => commands.join("\n"),
            }),
        );
        self.add_list("rules", &policy.rules.iter().map(rule).collect::<Vec<_>>());
    }
}

/// Shows an outline: a short value beside its name, a long one below it.
impl fmt::Display for Outline {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, text) in self.fields() {
            if text.contains('\n') {
                writeln!(formatter, "{name}:")?;
                for line in text.lines() {
                    writeln!(formatter, "{}", format!("  {line}").trim_end())?;
                }
            } else {
                writeln!(formatter, "{name}: {text}")?;
            }
        }
        Ok(())
    }
}

/// Describes a definition for people.
pub fn describe<T>(definition: &AgentDefinition<T>) -> String {
    Outline::of(definition).to_string()
}

fn time(time: Duration) -> String {
    let seconds = time.as_secs();
    let minutes = if seconds >= 60 { format!("{}m", seconds / 60) } else { String::new() };
    match (seconds % 60, time.subsec_millis()) {
        (0, 0) if seconds > 0 => minutes,
        (seconds, 0) => format!("{minutes}{seconds}s"),
        (seconds, millis) => format!("{minutes}{seconds}.{millis:03}s"),
    }
}

fn rule(rule: &RuleSpec) -> String {
    let why = rule.reason.as_ref().map(|why| format!(" ({why})")).unwrap_or_default();
    format!("{} {}{why}", rule.effect, rule.shown())
}

fn inputs(inputs: &InputConfig) -> String {
    let inputs = match inputs {
        InputConfig::Schema(schema) => return pretty(schema),
        InputConfig::Named(inputs) if inputs.is_empty() => return "none".to_owned(),
        InputConfig::Named(inputs) => inputs,
    };
    let line = |(name, input): (&String, &crate::definition::Input)| {
        let optional = if input.required { "" } else { ", optional" };
        let described = if input.description.is_empty() { "" } else { ": " };
        format!("{name} ({}{optional}){described}{}", input.kind.as_str(), input.description)
    };
    inputs.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn output(output: &OutputSpec) -> String {
    let described = if output.description.is_empty() { "" } else { ": " };
    let named = format!("{}{described}{}", output.name, output.description);
    // Where anything will do, nothing is said about the shape.
    if output.schema == Value::Bool(true) {
        named
    } else {
        format!("{named}\n{}", pretty(&output.schema))
    }
}

fn pretty(schema: &Value) -> String {
    serde_json::to_string_pretty(schema).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::ToolConfig;

    #[test]
    fn only_what_is_said_is_shown() {
        let definition = AgentDefinition::new("reader", "Reads.");
        assert_eq!(
            describe(&definition),
            "name: reader\ndescription: Reads.\ninputs: task (string): What the agent is to do, in \
             full.\n"
        );
    }

    #[test]
    fn long_texts_stand_below_their_names() {
        let mut definition = AgentDefinition::new("reader", "Reads.");
        definition.prompt.system_prompt = Some("One.\n\nTwo.".to_owned());
        assert!(describe(&definition).ends_with("system_prompt:\n  One.\n\n  Two.\n"));
    }

    #[test]
    fn two_outlines_name_what_differs() {
        let mut one = AgentDefinition::new("reader", "Reads.");
        let mut two = one.clone();
        assert_eq!(Outline::of(&one).differences(&Outline::of(&two)), [""; 0]);
        one.model.model = Some("a/b".to_owned());
        two.tools = ToolConfig::only(["grep"]);
        two.run.max_time = Some(Duration::from_secs(90));
        let names = Outline::of(&one).differences(&Outline::of(&two));
        assert_eq!(names, ["model", "max_time", "tools"]);
    }

    #[test]
    fn times_are_short() {
        for (millis, text) in
            [(500, "0.500s"), (0, "0s"), (1000, "1s"), (60_000, "1m"), (90_000, "1m30s")]
        {
            assert_eq!(time(Duration::from_millis(millis)), text);
        }
    }
}
