//! A tool that does what a test tells it to.

use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use convoke_core::{Effects, Kind, ToolError, ToolSpec};
use serde_json::{Value, json};

use crate::context::ToolContext;
use crate::tool::{Invocation, Tool, ToolOutput};

type Prepare = dyn Fn(&Value) -> Result<Act, ToolError> + Send + Sync;

/// Says and does what it is told; left alone, it keeps every promise.
pub(super) struct Pretender {
    /// What it says about itself, in turn.
    specs: Vec<ToolSpec>,
    asked: AtomicUsize,
    prepare: Box<Prepare>,
}

/// One call, as a test wants it.
pub(super) struct Act {
    pub(super) effects: Option<Effects>,
    pub(super) answer: Result<Value, ToolError>,
    pub(super) panics_when_given_up: bool,
}

impl Act {
    pub(super) fn good() -> Self {
        let answer = Ok(json!({ "length": 3 }));
        Self { effects: None, answer, panics_when_given_up: false }
    }
}

impl Pretender {
    pub(super) fn good() -> Self {
        let mut spec = ToolSpec::new("pretend", "Pretends to read a file.", Kind::Read);
        spec.parameters = json!({
            "type": "object",
            "properties": {
                "path": { "type": "string", "description": "The file." },
                "limit": { "type": "integer", "description": "How many lines." },
                "tags": {
                    "type": "array", "items": { "type": "string" }, "description": "Labels.",
                },
                "extra": { "description": "Anything at all." },
            },
            "required": ["path"],
            "additionalProperties": false,
        })
        .into();
        spec.output = Some(
            json!({
                "type": "object",
                "properties": { "length": { "type": "integer" } },
                "required": ["length"],
            })
            .into(),
        );
        spec.aliases.insert("file".into(), "path".into());
        spec.effects.reads.push("path".into());
        Self {
            specs: vec![spec],
            asked: AtomicUsize::new(0),
            prepare: Box::new(|_| Ok(Act::good())),
        }
    }

    /// Returns the first thing it says, to be changed.
    pub(super) fn says(&mut self) -> &mut ToolSpec {
        &mut self.specs[0]
    }

    /// Says this too, every other time.
    pub(super) fn says_also(&mut self, spec: ToolSpec) {
        self.specs.push(spec);
    }

    /// Acts like this.
    pub(super) fn acts(
        &mut self,
        prepare: impl Fn(&Value) -> Result<Act, ToolError> + Send + Sync + 'static,
    ) {
        self.prepare = Box::new(prepare);
    }
}

impl Tool for Pretender {
    fn spec(&self) -> &ToolSpec {
        let turn = self.asked.fetch_add(1, Ordering::Relaxed);
        &self.specs[turn % self.specs.len()]
    }

    fn prepare(&self, arguments: Value) -> Result<Box<dyn Invocation>, ToolError> {
        (self.prepare)(&arguments).map(|act| Box::new(Prepared(Some(act))) as Box<dyn Invocation>)
    }
}

struct Prepared(Option<Act>);

#[async_trait]
impl Invocation for Prepared {
    fn effects(&self) -> Option<Effects> {
        self.0.as_ref().and_then(|act| act.effects.clone())
    }

    async fn run(mut self: Box<Self>, _: ToolContext) -> Result<ToolOutput, ToolError> {
        self.0.take().map_or_else(|| Ok(Value::Null), |act| act.answer).map(ToolOutput::new)
    }
}

impl Drop for Prepared {
    fn drop(&mut self) {
        let panics = self.0.as_ref().is_some_and(|act| act.panics_when_given_up);
        assert!(!panics, "given up");
    }
}
