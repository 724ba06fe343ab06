//! The texts of one agent, with gaps for its inputs.

use std::fmt;

use convoke_core::message::Part;
use convoke_core::nearest::{did_you_mean, nearest};
use convoke_core::{Message, Role};
use serde_json::{Map, Value};

use super::Template;
use crate::definition::{AgentDefinition, InputConfig};

/// The texts of an agent, taken apart and checked against the inputs that it has.
#[derive(Clone, Debug, PartialEq)]
pub struct PromptTemplate {
    agent: String,
    inputs: Vec<(String, bool)>,
    system_prompt: Option<Template>,
    query: Option<Template>,
    initial_messages: Vec<(Role, Vec<PartTemplate>)>,
}

#[derive(Clone, Debug, PartialEq)]
enum PartTemplate {
    Text(Template),
    /// Something that is not a text, and has no gaps.
    Other(Part),
}

/// The texts of an agent, with its inputs in their places.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rendered {
    /// Its standing instructions.
    pub system_prompt: Option<String>,
    /// The conversation it begins with.
    pub initial_messages: Vec<Message>,
    /// What it is asked to do.
    pub query: Option<String>,
}

/// A gap for which there is nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gap {
    /// Its name.
    pub name: String,
    /// The text it stands in.
    pub text: String,
    /// The line of that text, from 1.
    pub line: usize,
}

/// Gaps for which there is nothing: all of them, with what there is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct UnfilledGaps {
    /// The agent.
    pub agent: String,
    /// The gaps, in the order of the texts.
    pub gaps: Vec<Gap>,
    /// The inputs that the agent has.
    pub inputs: Vec<String>,
}

impl fmt::Display for UnfilledGaps {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = || self.inputs.iter().map(String::as_str);
        write!(formatter, "agent `{}`: ", self.agent)?;
        for (index, gap) in self.gaps.iter().enumerate() {
            let between = if index == 0 { "" } else { ", and " };
            let Gap { name, text, line } = gap;
            write!(formatter, "{between}nothing is there for `${{{name}}}` ({text}, line {line})")?;
            if !self.inputs.contains(name) {
                formatter.write_str(&did_you_mean(&nearest(name, known())))?;
            }
        }
        if self.inputs.is_empty() {
            formatter.write_str("; it has no inputs")?;
        } else {
            let names: Vec<String> = known().map(|name| format!("`{name}`")).collect();
            write!(formatter, "; its inputs are {}", names.join(", "))?;
        }
        formatter.write_str("; a literal `${` is written `$${`")
    }
}

impl PromptTemplate {
    /// Takes the texts of an agent apart. A gap that is none of its inputs is a mistake in the
    /// definition.
    pub fn of<T>(definition: &AgentDefinition<T>) -> Result<Self, UnfilledGaps> {
        let prompt = &definition.prompt;
        let part = |part: &Part| match part {
            Part::Text { text } => PartTemplate::Text(Template::parse(text)),
            other => PartTemplate::Other(other.clone()),
        };
        let message = |message: &Message| (message.role, message.parts.iter().map(part).collect());
        let template = Self {
            agent: definition.name.clone(),
            inputs: InputConfig::names(&definition.input),
            system_prompt: prompt.system_prompt.as_deref().map(Template::parse),
            query: prompt.query.as_deref().map(Template::parse),
            initial_messages: prompt.initial_messages.iter().map(message).collect(),
        };
        template.refuse_gaps(|name| !template.inputs.iter().any(|(input, _)| input == name))?;
        Ok(template)
    }

    /// Puts inputs in their places. One that may be left out and is leaves an empty text.
    pub fn render(&self, inputs: &Map<String, Value>) -> Result<Rendered, UnfilledGaps> {
        self.refuse_gaps(|name| {
            let given = inputs.get(name).is_some_and(|value| !value.is_null());
            let required = self.inputs.iter().any(|(input, required)| input == name && *required);
            !given && required
        })?;
        let part = |part: &PartTemplate| match part {
            PartTemplate::Text(template) => Part::text(template.fill(inputs)),
            PartTemplate::Other(part) => part.clone(),
        };
        let message = |(role, parts): &(Role, Vec<PartTemplate>)| Message {
            role: *role,
            parts: parts.iter().map(part).collect(),
        };
        Ok(Rendered {
            system_prompt: self.system_prompt.as_ref().map(|template| template.fill(inputs)),
            initial_messages: self.initial_messages.iter().map(message).collect(),
            query: self.query.as_ref().map(|template| template.fill(inputs)),
        })
    }

    fn refuse_gaps(&self, is_empty: impl Fn(&str) -> bool) -> Result<(), UnfilledGaps> {
        let mut gaps: Vec<Gap> = Vec::new();
        for (text, template) in self.texts() {
            for (name, line) in template.gaps().filter(|(name, _)| is_empty(name)) {
                if !gaps.iter().any(|gap| gap.name == name) {
                    gaps.push(Gap { name: name.to_owned(), text: text.clone(), line });
                }
            }
        }
        if gaps.is_empty() {
            return Ok(());
        }
        let inputs = self.inputs.iter().map(|(name, _)| name.clone()).collect();
        Err(UnfilledGaps { agent: self.agent.clone(), gaps, inputs })
    }

    fn texts(&self) -> impl Iterator<Item = (String, &Template)> {
        let messages = self.initial_messages.iter().enumerate().flat_map(|(index, (_, parts))| {
            parts.iter().filter_map(move |part| match part {
                PartTemplate::Text(template) => {
                    Some((format!("initial message {}", index + 1), template))
                }
                PartTemplate::Other(_) => None,
            })
        });
        let system = self.system_prompt.iter().map(|text| ("system prompt".to_owned(), text));
        let query = self.query.iter().map(|text| ("query".to_owned(), text));
        system.chain(query).chain(messages)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::definition::InputType;

    fn investigator() -> AgentDefinition {
        let mut definition = AgentDefinition::new("finder", "Finds things.");
        definition.input = InputConfig::none()
            .required("objective", InputType::String, "What to find.")
            .optional("max_files", InputType::Integer, "How many files to read.");
        definition.prompt.system_prompt = Some("Find it.\nRead ${max_files} files.".to_owned());
        definition.prompt.query = Some("Find ${objective}.".to_owned());
        definition.prompt.initial_messages =
            vec![Message::text(Role::User, "For example: ${objective}")];
        definition
    }

    fn inputs(value: Value) -> Map<String, Value> {
        let Value::Object(map) = value else { panic!("inputs are an object") };
        map
    }

    #[test]
    fn r209_all_texts_are_filled() {
        let template = PromptTemplate::of(&investigator()).unwrap();
        let rendered = template.render(&inputs(json!({ "objective": "x", "max_files": 3 })));
        let rendered = rendered.unwrap();
        assert_eq!(rendered.system_prompt.as_deref(), Some("Find it.\nRead 3 files."));
        assert_eq!(rendered.query.as_deref(), Some("Find x."));
        assert_eq!(rendered.initial_messages, [Message::text(Role::User, "For example: x")]);
    }

    #[test]
    fn an_optional_input_that_is_absent_is_an_empty_text() {
        let template = PromptTemplate::of(&investigator()).unwrap();
        for given in [json!({ "objective": "x" }), json!({ "objective": "x", "max_files": null })] {
            let rendered = template.render(&inputs(given)).unwrap();
            assert_eq!(rendered.system_prompt.as_deref(), Some("Find it.\nRead  files."));
        }
    }

    #[test]
    fn r208_what_is_missing_is_listed_once_with_its_place() {
        let template = PromptTemplate::of(&investigator()).unwrap();
        let error = template.render(&Map::new()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "agent `finder`: nothing is there for `${objective}` (query, line 1); its inputs are \
             `max_files`, `objective`; a literal `${` is written `$${`"
        );
    }

    #[test]
    fn a_gap_that_is_no_input_is_a_mistake_of_the_definition() {
        let mut definition = investigator();
        definition.prompt.system_prompt = Some("a\n${objectve} ${HOME} ${objectve}".to_owned());
        let error = PromptTemplate::of(&definition).unwrap_err();
        assert_eq!(error.gaps.len(), 2);
        assert_eq!(
            error.to_string(),
            "agent `finder`: nothing is there for `${objectve}` (system prompt, line 2); did you mean \
             `objective`?, and nothing is there for `${HOME}` (system prompt, line 2); its inputs are \
             `max_files`, `objective`; a literal `${` is written `$${`"
        );
        definition.input = InputConfig::none();
        let error = PromptTemplate::of(&definition).unwrap_err();
        assert!(error.to_string().contains("it has no inputs"), "{error}");
    }
}
