//! Which tools an agent may call.

use std::fmt;
use std::sync::Arc;

use convoke_core::Declaration;
use convoke_tool::Tool;

/// The tools of an agent: those of its caller, where nothing is said.
#[derive(Clone, Debug, Default)]
pub struct ToolConfig {
    /// Those it has; the ones its caller has, where absent.
    pub allow: Option<Vec<ToolChoice>>,
    /// Those it does not have all the same: names, patterns with `*`, or families as `category:file`.
    pub exclude: Vec<String>,
}

impl ToolConfig {
    /// These tools and no others.
    pub fn only<N: Into<String>>(names: impl IntoIterator<Item = N>) -> Self {
        let allow = names.into_iter().map(|name| ToolChoice::Named(name.into())).collect();
        Self { allow: Some(allow), exclude: Vec::new() }
    }
}

/// A tool that an agent has.
#[derive(Clone)]
#[non_exhaustive]
pub enum ToolChoice {
    /// A name, a pattern with `*`, or a family as `category:file`.
    Named(String),
    /// A tool there is, which this agent's model is told about in these words.
    Declared(Declaration),
    /// A tool that only this agent has.
    Given(Arc<dyn Tool>),
}

impl ToolChoice {
    /// Returns the name or pattern.
    pub fn name(&self) -> &str {
        match self {
            Self::Named(name) => name,
            Self::Declared(declaration) => &declaration.name,
            Self::Given(tool) => &tool.spec().name,
        }
    }
}

impl fmt::Debug for ToolChoice {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}
