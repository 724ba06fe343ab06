//! A tool from a typed function: arguments and value describe themselves.

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use convoke_core::{
    Category, Concurrency, Display, Effects, Kind, Millis, Part, Repeat, Schema, ToolError,
    ToolSpec,
};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::context::ToolContext;
use crate::schema::{parameters_of, schema_of};
use crate::tool::{Content, Invocation, Tool, ToolOutput};

type Answer = Pin<Box<dyn Future<Output = Result<ToolOutput, ToolError>> + Send>>;
type Body<A> = dyn Fn(A, ToolContext) -> Answer + Send + Sync;
type Previewed = Result<Option<Display>, ToolError>;
type Preview<A> = Option<Arc<dyn Fn(&A, &ToolContext) -> Previewed + Send + Sync>>;
type About<A, T> = Option<Arc<dyn Fn(&A) -> T + Send + Sync>>;

/// A tool whose body is a function from typed arguments.
///
/// ```
/// use convoke_core::Kind;
/// use convoke_tool::{FunctionTool, ToolContext, ToolError};
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Add {
///     /// The first number.
///     left: i64,
///     /// The second number.
///     right: i64,
/// }
///
/// let add = FunctionTool::new("add", "Adds two numbers.", async |numbers: Add, _: ToolContext| {
///     numbers.left.checked_add(numbers.right).ok_or("the sum is too large")
/// })
/// .kind(Kind::Think);
/// # drop(add);
/// ```
pub struct FunctionTool<A> {
    spec: ToolSpec,
    body: Arc<Body<A>>,
    describe: About<A, String>,
    effects: About<A, Effects>,
    timeout: About<A, Option<Duration>>,
    preview: Preview<A>,
    variable: About<A, (String, String)>,
}

impl<A: DeserializeOwned + JsonSchema + Send + 'static> FunctionTool<A> {
    /// Makes a tool from a function. Its kind is `other` until it is said: then nobody may call it
    /// without being asked.
    pub fn new<F, Fut, R, E>(
        name: impl Into<String>,
        description: impl Into<String>,
        function: F,
    ) -> Self
    where
        F: Fn(A, ToolContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, E>> + Send + 'static,
        R: Reply,
        E: Into<Box<dyn Error + Send + Sync>>,
    {
        let mut spec = ToolSpec::new(name, description, Kind::Other);
        spec.parameters = Schema::deferred(parameters_of::<A>);
        spec.output = R::schema();
        let body = move |arguments: A, context: ToolContext| -> Answer {
            let answer = function(arguments, context);
            Box::pin(async move {
                answer.await.map_err(|e| ToolError::from_any(e.into()))?.into_output()
            })
        };
        Self {
            spec,
            body: Arc::new(body),
            describe: None,
            effects: None,
            timeout: None,
            preview: None,
            variable: None,
        }
    }

    /// Sets what a call does to the world, and with it how it is repeated and scheduled.
    #[must_use]
    pub fn kind(mut self, kind: Kind) -> Self {
        self.spec.kind = kind;
        self.spec.repeat = kind.default_repeat();
        self.spec.concurrency = kind.default_concurrency();
        self
    }

    /// Sets the family.
    #[must_use]
    pub fn category(mut self, category: Category) -> Self {
        self.spec.category = category;
        self
    }

    /// Sets the name for people.
    #[must_use]
    pub fn display_name(mut self, name: impl Into<String>) -> Self {
        self.spec.display_name = Some(name.into());
        self
    }

    /// Says what happens when a call is repeated.
    #[must_use]
    pub fn repeat(mut self, repeat: Repeat) -> Self {
        self.spec.repeat = repeat;
        self
    }

    /// Says whether other calls may be under way at the same time.
    #[must_use]
    pub fn concurrency(mut self, concurrency: Concurrency) -> Self {
        self.spec.concurrency = concurrency;
        self
    }

    /// Says which variable of the session's environment a call sets, and to what.
    #[must_use]
    pub fn sets_variable(
        mut self,
        variable: impl Fn(&A) -> (String, String) + Send + Sync + 'static,
    ) -> Self {
        self.variable = Some(Arc::new(variable));
        self
    }

    /// Says that an argument is a path the call reads.
    #[must_use]
    pub fn reads(mut self, argument: impl Into<String>) -> Self {
        self.spec.effects.reads.push(argument.into());
        self
    }

    /// Says that an argument is a path the call writes.
    #[must_use]
    pub fn writes(mut self, argument: impl Into<String>) -> Self {
        self.spec.effects.writes.push(argument.into());
        self
    }

    /// Says that an argument is a URL the call fetches.
    #[must_use]
    pub fn fetches(mut self, argument: impl Into<String>) -> Self {
        self.spec.effects.urls.push(argument.into());
        self
    }

    /// Accepts another spelling of an argument.
    #[must_use]
    pub fn alias(mut self, alias: impl Into<String>, argument: impl Into<String>) -> Self {
        self.spec.aliases.insert(alias.into(), argument.into());
        self
    }

    /// Gives every call this long.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.spec.timeout_ms = Some(Millis::new(timeout));
        self
    }

    /// Says that the tool tells what it does while it runs.
    #[must_use]
    pub fn streaming(mut self) -> Self {
        self.spec.streaming = true;
        self
    }

    /// Says that the tool gets secrets where its arguments name them: it writes them into files, and they
    /// come out nowhere else.
    #[must_use]
    pub fn takes_secrets(mut self) -> Self {
        self.spec.takes_secrets = true;
        self
    }

    /// Says that the tool starts programs on this machine.
    #[must_use]
    pub fn starts_programs(mut self) -> Self {
        self.spec.starts_programs = true;
        self
    }

    /// Says that the tool's text is Markdown.
    #[must_use]
    pub fn markdown(mut self) -> Self {
        self.spec.markdown = true;
        self
    }

    /// Sets the version.
    #[must_use]
    pub fn version(mut self, version: impl Into<String>) -> Self {
        self.spec.version = Some(version.into());
        self
    }

    /// Says that the value has this type, where the function gives back a [`ToolOutput`].
    #[must_use]
    pub fn output<T: JsonSchema>(mut self) -> Self {
        self.spec.output = Some(Schema::deferred(schema_of::<T>));
        self
    }

    /// Describes a call from its arguments.
    #[must_use]
    pub fn describe(mut self, describe: impl Fn(&A) -> String + Send + Sync + 'static) -> Self {
        self.describe = Some(Arc::new(describe));
        self
    }

    /// Works out what a call touches, where that is more than an argument each.
    #[must_use]
    pub fn effects(mut self, effects: impl Fn(&A) -> Effects + Send + Sync + 'static) -> Self {
        self.effects = Some(Arc::new(effects));
        self
    }

    /// Shows what a call would change, before anybody is asked about it. An error ends the call.
    #[must_use]
    pub fn preview(
        mut self,
        preview: impl Fn(&A, &ToolContext) -> Previewed + Send + Sync + 'static,
    ) -> Self {
        self.preview = Some(Arc::new(preview));
        self
    }

    /// Works out how long a call may take from its arguments, where they decide that.
    #[must_use]
    pub fn timeout_from(
        mut self,
        timeout: impl Fn(&A) -> Option<Duration> + Send + Sync + 'static,
    ) -> Self {
        self.timeout = Some(Arc::new(timeout));
        self
    }
}

impl<A: DeserializeOwned + Send + 'static> Tool for FunctionTool<A> {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn variable(&self, arguments: &Value) -> Option<(String, String)> {
        let variable = self.variable.as_ref()?;
        serde_json::from_value(arguments.clone()).ok().map(|arguments| variable(&arguments))
    }

    fn prepare(&self, arguments: Value) -> Result<Box<dyn Invocation>, ToolError> {
        let arguments: A = serde_json::from_value(arguments)
            .map_err(|error| ToolError::validation([error.to_string()]))?;
        Ok(Box::new(Prepared {
            describe: self.describe.as_ref().map(|describe| describe(&arguments)),
            effects: self.effects.as_ref().map(|effects| effects(&arguments)),
            timeout: self.timeout.as_ref().and_then(|timeout| timeout(&arguments)),
            preview: self.preview.clone(),
            body: Arc::clone(&self.body),
            arguments,
        }))
    }
}

impl<A> fmt::Debug for FunctionTool<A> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("FunctionTool").field(&self.spec.name).finish()
    }
}

struct Prepared<A> {
    describe: Option<String>,
    effects: Option<Effects>,
    timeout: Option<Duration>,
    preview: Preview<A>,
    body: Arc<Body<A>>,
    arguments: A,
}

#[async_trait]
impl<A: Send + 'static> Invocation for Prepared<A> {
    fn describe(&self) -> Option<String> {
        self.describe.clone()
    }

    fn effects(&self) -> Option<Effects> {
        self.effects.clone()
    }

    fn timeout(&self) -> Option<Duration> {
        self.timeout
    }

    fn preview(&self, context: &ToolContext) -> Previewed {
        self.preview.as_ref().map_or(Ok(None), |preview| preview(&self.arguments, context))
    }

    async fn run(self: Box<Self>, context: ToolContext) -> Result<ToolOutput, ToolError> {
        (self.body)(self.arguments, context).await
    }
}

/// What a function may give back: any value that can be written as JSON, or a [`Rendered`] one, or a
/// [`ToolOutput`] made by hand.
pub trait Reply: Send {
    /// Returns the schema of the value, where it is known.
    fn schema() -> Option<Schema>;

    /// Turns it into what the pipeline takes.
    fn into_output(self) -> Result<ToolOutput, ToolError>;
}

impl<T: Serialize + JsonSchema + Send> Reply for T {
    fn schema() -> Option<Schema> {
        Some(Schema::deferred(schema_of::<T>))
    }

    fn into_output(self) -> Result<ToolOutput, ToolError> {
        let value = serde_json::to_value(self).map_err(|error| {
            ToolError::failed("the value cannot be written as JSON").caused_by(&error)
        })?;
        Ok(ToolOutput::new(value))
    }
}

impl Reply for ToolOutput {
    fn schema() -> Option<Schema> {
        None
    }

    fn into_output(self) -> Result<ToolOutput, ToolError> {
        Ok(self)
    }
}

/// A value with a text for the model and, if that differs, one for people.
#[derive(Clone, Debug)]
pub struct Rendered<T> {
    /// The value.
    pub value: T,
    /// What the model sees.
    pub text: String,
    /// What a person sees, where that differs.
    pub display: Option<Display>,
}

impl<T> Rendered<T> {
    /// Shows the model `text` for this value.
    pub fn new(value: T, text: impl Into<String>) -> Self {
        Self { value, text: text.into(), display: None }
    }

    /// Shows a person this instead.
    #[must_use]
    pub fn with_display(mut self, display: Display) -> Self {
        self.display = Some(display);
        self
    }
}

impl<T: Serialize + JsonSchema + Send> Reply for Rendered<T> {
    fn schema() -> Option<Schema> {
        Some(Schema::deferred(schema_of::<T>))
    }

    fn into_output(self) -> Result<ToolOutput, ToolError> {
        let mut output = self.value.into_output()?;
        output.content = Content::Parts(vec![Part::text(self.text)]);
        output.display = self.display;
        Ok(output)
    }
}
