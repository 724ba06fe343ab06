//! The contract: what every tool is, whoever wrote it and wherever its body runs.
//!
//! A call has two steps. [`Tool::prepare`] turns checked arguments into an [`Invocation`], which can say
//! what it will do and touch, without doing any of it. [`Invocation::run`] does it. Between the two
//! lies everything that can still stop the call.

use std::time::Duration;

use async_trait::async_trait;
use convoke_core::{Artifact, Declaration, Display, Effects, Part, Repeat, ToolError, ToolSpec};
use serde_json::Value;

use crate::context::ToolContext;

/// Something an agent can do.
///
/// ```
/// use async_trait::async_trait;
/// use convoke_core::{Kind, ToolError, ToolSpec};
/// use convoke_tool::{Invocation, Tool, ToolContext, ToolOutput};
/// use serde_json::{Value, json};
///
/// struct Echo(ToolSpec);
///
/// impl Tool for Echo {
///     fn spec(&self) -> &ToolSpec {
///         &self.0
///     }
///
///     fn prepare(&self, arguments: Value) -> Result<Box<dyn Invocation>, ToolError> {
///         Ok(Box::new(Said(arguments)))
///     }
/// }
///
/// struct Said(Value);
///
/// #[async_trait]
/// impl Invocation for Said {
///     async fn run(self: Box<Self>, _: ToolContext) -> Result<ToolOutput, ToolError> {
///         Ok(ToolOutput::new(self.0))
///     }
/// }
///
/// let echo = Echo(ToolSpec::new("echo", "Says the same again.", Kind::Think));
/// assert!(echo.prepare(json!({ "text": "hi" })).is_ok());
/// ```
pub trait Tool: Send + Sync + 'static {
    /// Returns what the tool says about itself. Always the same.
    fn spec(&self) -> &ToolSpec;

    /// Returns what a model is told about the tool. By default what the spec says; a tool that can check more
    /// than its schema may tell the model more.
    fn declaration(&self) -> Declaration {
        self.spec().declaration()
    }

    /// Returns the variable of the session's environment that a call with these arguments sets, and to what. It is
    /// set anew when a run goes on in another process; everything else that a tool keeps there is lost.
    fn variable(&self, _arguments: &Value) -> Option<(String, String)> {
        None
    }

    /// Prepares one call. The arguments already fit the spec's schema. Nothing happens yet.
    fn prepare(&self, arguments: Value) -> Result<Box<dyn Invocation>, ToolError>;
}

/// One prepared call.
#[async_trait]
pub trait Invocation: Send {
    /// Says what the call will do, for logs and for the person who is asked. By default its name and
    /// arguments.
    fn describe(&self) -> Option<String> {
        None
    }

    /// Says what the call will touch. By default what the spec's rules find in its arguments.
    fn effects(&self) -> Option<Effects> {
        None
    }

    /// Says how long this very call may take, where its arguments decide that.
    fn timeout(&self) -> Option<Duration> {
        None
    }

    /// Says what happens when this very call is made a second time. By default what the spec says.
    fn repeat(&self) -> Option<Repeat> {
        None
    }

    /// Shows a person what the call would change, where that can be known: a diff, for instance. This may
    /// read what the call would touch, but changes nothing. It is asked only before a person is.
    ///
    /// # Errors
    ///
    /// A call that cannot succeed: it ends with this error, and nobody is asked.
    fn preview(&self, _: &ToolContext) -> Result<Option<Display>, ToolError> {
        Ok(None)
    }

    /// Does it. When the context's token is cancelled, the call has a moment to return what it has;
    /// that is then kept as the partial result.
    async fn run(self: Box<Self>, context: ToolContext) -> Result<ToolOutput, ToolError>;
}

/// What a tool's body gives back.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolOutput {
    /// The value, for programs.
    pub value: Value,
    /// What the model sees.
    pub content: Content,
    /// What a person sees, where that differs.
    pub display: Option<Display>,
    /// Files kept beside the run.
    pub artifacts: Vec<Artifact>,
    /// Set when the call did not work although there is something to show for it.
    pub failure: Option<ToolError>,
}

/// What the model sees of a value.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Content {
    /// The value itself: a text as it is, anything else as JSON.
    #[default]
    Value,
    /// This text field of the value. A long one is cut without being copied first.
    Field(&'static str),
    /// Something else.
    Parts(Vec<Part>),
}

impl ToolOutput {
    /// Gives back a value.
    pub fn new(value: Value) -> Self {
        Self { value, ..Self::default() }
    }

    /// Shows the model this text instead of the value.
    #[must_use]
    pub fn with_text(mut self, text: impl Into<String>) -> Self {
        self.content = Content::Parts(vec![Part::text(text)]);
        self
    }

    /// Shows the model one text field of the value.
    #[must_use]
    pub fn with_text_field(mut self, name: &'static str) -> Self {
        self.content = Content::Field(name);
        self
    }

    /// Shows a person this instead.
    #[must_use]
    pub fn with_display(mut self, display: Display) -> Self {
        self.display = Some(display);
        self
    }

    /// Says that the call did not work; the value is what there is all the same.
    #[must_use]
    pub fn failing(mut self, error: ToolError) -> Self {
        self.failure = Some(error);
        self
    }
}
