//! A suite that finds out whether a tool keeps what every tool promises.
//!
//! Each promise is a [`Check`] and a small function. The suite looks at what the tool says about
//! itself, then makes calls through the real pipeline. Preparing comes first, while nothing has been
//! touched; then what has to be refused; the valid examples run last, each of them once, because they
//! may change things. All that is wrong is said at once.
//!
//! Some promises are kept by the pipeline for every tool. They are checked all the same: a tool is
//! only as good as what it does together with the pipeline.

mod arguments;
mod calls;
mod check;
mod paths;
mod report;
mod snapshot;
mod spec;
mod subject;

use std::sync::Arc;

use serde_json::{Value, json};

use self::report::Findings;
use self::subject::Subject;
use crate::context::ToolContext;
use crate::executor::Limits;
use crate::registry::IntoTool;
use crate::tool::Tool;

pub use check::Check;
pub use report::{Finding, Report};

/// Checks one tool.
#[must_use]
pub struct Conformance {
    tool: Arc<dyn Tool>,
    examples: Vec<Value>,
    context: Option<ToolContext>,
    limits: Limits,
    excused: Vec<(Check, String)>,
}

impl Conformance {
    /// Starts the suite for a tool.
    pub fn new(tool: impl IntoTool) -> Self {
        Self {
            tool: tool.into_tool(),
            examples: Vec::new(),
            context: None,
            limits: Limits::default(),
            excused: Vec::new(),
        }
    }

    /// Adds arguments with which a call works in the context. The suite varies them to make calls that
    /// have to be refused, so between them they should use every parameter. A tool that needs no
    /// arguments needs no example.
    pub fn valid(mut self, arguments: Value) -> Self {
        self.examples.push(arguments);
        self
    }

    /// Makes the calls in this context; without one, in an empty temporary directory. Its roots are
    /// read from end to end, so they should be small.
    pub fn in_context(mut self, context: ToolContext) -> Self {
        self.context = Some(context);
        self
    }

    /// Makes the calls within these limits.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Leaves out one check, for a reason that the report repeats.
    pub fn excuse(mut self, check: Check, reason: impl Into<String>) -> Self {
        self.excused.push((check, reason.into()));
        self
    }

    /// Makes all checks. Needs a tokio runtime with its clock.
    pub async fn run(mut self) -> Report {
        let mut findings = Findings::default();
        spec::check(self.tool.as_ref(), &mut findings);
        let callable = !findings.has(Check::Name) && !findings.has(Check::Parameters);
        let subject = if callable { self.subject(&mut findings) } else { None };
        let called = subject.is_some();
        if let Some(mut subject) = subject {
            calls::check_preparing(&mut subject, &mut findings).await;
            paths::check(&mut subject, &mut findings).await;
            arguments::check(&mut subject, &mut findings).await;
            calls::check(&mut subject, &mut findings).await;
            spec::check_still_the_same(&subject, &mut findings);
        }
        Report::new(&self.tool.spec().name, findings, self.excused, called)
    }

    /// Gathers what calls need, or says what is missing.
    fn subject(&mut self, findings: &mut Findings) -> Option<Subject> {
        if self.examples.is_empty() && needs_arguments(self.tool.as_ref()) {
            findings.add(Check::Setup, "there is no valid example; give one with `valid`");
            return None;
        }
        if self.examples.is_empty() {
            self.examples.push(json!({}));
        }
        let context = match self.context.take().map_or_else(super::context, Ok) {
            Ok(context) => context,
            Err(error) => {
                findings.add(Check::Setup, format!("there is no temporary directory: {error}"));
                return None;
            }
        };
        let examples = std::mem::take(&mut self.examples);
        match Subject::new(Arc::clone(&self.tool), examples, context, self.limits.clone()) {
            Ok(subject) => Some(subject),
            Err(error) => {
                findings.add(Check::Setup, error.to_string());
                None
            }
        }
    }
}

fn needs_arguments(tool: &dyn Tool) -> bool {
    let required = tool.spec().parameters.get("required").and_then(Value::as_array);
    required.is_some_and(|names| !names.is_empty())
}

impl std::fmt::Debug for Conformance {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Conformance")
            .field("tool", &self.tool.spec().name)
            .field("examples", &self.examples)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
