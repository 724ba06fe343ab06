//! Runs that are kept in journals, with a tool that a person has to allow.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use convoke_agent::Journals;
use convoke_core::{Kind, Permission};
use convoke_journal::Store;
use convoke_tool::{
    Approver, Authorizer, Decision, ExecutorBuilder, FunctionTool, KindAuthorizer, Limits, Request,
    SystemClock, ToolContext, ToolExecutor, ToolRegistry, ToolView, Unanswered,
};
use tempfile::TempDir;

use crate::support::{Word, echo, nap};

/// Asks about `hit`, unless something was granted.
#[derive(Debug)]
pub(crate) struct AsksAboutHit;

impl Authorizer for AsksAboutHit {
    fn decide(&self, request: &Request<'_>) -> Decision {
        let asks = KindAuthorizer::default().with(Kind::Execute, Permission::Ask).decide(request);
        match asks {
            Decision::Ask { rule, .. } if !request.granted.is_empty() => Decision::Allow { rule },
            other => other,
        }
    }
}

/// A place for the journals of runs, and a tool `hit` that counts.
pub(crate) struct World {
    state: TempDir,
    hits: Arc<AtomicU32>,
}

impl World {
    pub(crate) fn new() -> Self {
        Self { state: tempfile::tempdir().unwrap(), hits: Arc::default() }
    }

    pub(crate) fn journals(&self) -> Journals {
        Journals::new(Store::at(self.state.path()), Arc::new(SystemClock))
    }

    /// Tools of which `hit` is asked about. Where nobody answers, the run waits.
    pub(crate) fn tools(&self, approver: impl Approver + 'static) -> ExecutorBuilder {
        let registry = ToolRegistry::new();
        let hits = Arc::clone(&self.hits);
        let hit = FunctionTool::new("hit", "Hits.", move |word: Word, _: ToolContext| {
            hits.fetch_add(1, Ordering::Relaxed);
            async move { Ok::<_, String>(format!("hit {}", word.word)) }
        });
        registry.register(hit.kind(Kind::Execute)).unwrap();
        registry.register(echo()).unwrap();
        registry.register(nap()).unwrap();
        ToolExecutor::builder(ToolView::of(registry), ToolContext::builder("t").build())
            .authorizer(AsksAboutHit)
            .approver(approver)
            .limits(Limits { unanswered: Unanswered::Park, ..Limits::default() })
    }

    /// How often something was hit.
    pub(crate) fn hits(&self) -> u32 {
        self.hits.load(Ordering::Relaxed)
    }
}
