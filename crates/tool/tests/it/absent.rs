//! Tools that are called before they are here.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use convoke_core::{CallId, ErrorKind, Kind, RunId, ToolCall};
use convoke_tool::catalogue::{Arrivals, Source, SourceChange, UseTool};
use convoke_tool::{
    Answer, Approver, AskedBefore, FunctionTool, Objection, Question, Selection, Tool, ToolContext,
    ToolError, ToolRegistry, ToolView,
};
use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::support::{Bench, Nothing, assert_balanced, bench, call, empty, types};

const GROUP: &str = "far__";
const NAME: &str = "far__greet";

/// A source that takes five seconds, and then has a tool, or a reason why not.
#[derive(Debug)]
struct Far {
    registry: ToolRegistry,
    why_not: Option<&'static str>,
    asked: AtomicUsize,
}

#[async_trait]
impl Arrivals for Far {
    fn expect(&self, _: &RunId) {}

    fn sources(&self) -> Vec<Source> {
        Vec::new()
    }

    async fn settled(&self) {}

    async fn bring(&self, _: &str) -> Result<(), ToolError> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        tokio::time::sleep(Duration::from_secs(5)).await;
        if let Some(why) = self.why_not {
            return Err(ToolError::unavailable(why));
        }
        let greet = async |_: Nothing, _: ToolContext| Ok::<_, String>("hello");
        let greet: Arc<dyn Tool> = Arc::new(FunctionTool::new(NAME, "Greets.", greet));
        assert_eq!(self.registry.set_group(GROUP, vec![greet]), []);
        Ok(())
    }

    fn changes(&self) -> BoxStream<'static, SourceChange> {
        stream::pending().boxed()
    }
}

fn far(bench: &Bench, why_not: Option<&'static str>) -> Arc<Far> {
    let far = Far { registry: bench.registry.clone(), why_not, asked: AtomicUsize::new(0) };
    let far = Arc::new(far);
    let own = Arc::downgrade(&far);
    bench.registry.brought_by(GROUP, own);
    far
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_is_called_before_it_is_here_is_waited_for() {
    let bench = bench(empty());
    let far = far(&bench, None);
    let result = bench.builder.build().execute(call(NAME, json!({}))).await;
    assert_eq!(result.text(), "hello");
    let events = bench.sink.events();
    assert_eq!(
        types(&events),
        ["tool_call_requested", "policy_decision", "tool_call_started", "tool_call_completed"]
    );
    assert_balanced(&events);
    assert_eq!(far.asked.load(Ordering::Relaxed), 1);
}

#[tokio::test(start_paused = true)]
async fn so_is_one_of_a_batch_and_one_that_is_called_through_another() {
    let bench = bench(empty());
    let far = far(&bench, None);
    let through: Arc<dyn Tool> = Arc::new(UseTool::new());
    let view = ToolView::of(bench.registry.clone()).and([through]);
    let meant = ToolCall::new("c1", "use_tool", json!({ "name": NAME, "args": {} }));
    let unknown = ToolCall::new("c2", "far__other", json!({}));
    let executor = bench.builder.view(view).build();
    let results = executor.execute_batch(vec![meant, unknown]).await;
    assert_eq!((results[0].tool_name.as_str(), results[0].text().as_str()), (NAME, "hello"));
    assert_eq!(results[1].error_kind(), Some(ErrorKind::NotFound));
    assert_eq!(far.asked.load(Ordering::Relaxed), 2);
    assert_balanced(&bench.sink.events());
}

/// Regression: every call of a batch began only when the last server had come.
#[tokio::test(start_paused = true)]
async fn a_tool_that_is_not_here_holds_up_no_other_call_of_the_batch() {
    let bench = bench(empty());
    let _far = far(&bench, None);
    let begun = tokio::time::Instant::now();
    let ended = Arc::new(Mutex::new(Vec::new()));
    let tell = |name: &'static str, kind: Kind| {
        let ended = Arc::clone(&ended);
        let work = move |_: Nothing, _: ToolContext| {
            let ended = Arc::clone(&ended);
            async move {
                ended.lock().unwrap().push((name, begun.elapsed().as_secs()));
                Ok::<_, String>(name)
            }
        };
        bench.registry.register(FunctionTool::new(name, "Works.", work).kind(kind)).unwrap();
    };
    tell("look", Kind::Read);
    tell("run", Kind::Execute);
    let calls = [NAME, "look", "run", "far__other", "look"];
    let calls = calls.iter().enumerate();
    let calls = calls.map(|(at, name)| ToolCall::new(format!("c{at}"), *name, json!({}))).collect();
    let results = bench.builder.build().execute_batch(calls).await;
    let answered: Vec<&str> = results.iter().map(|result| result.call.as_str()).collect();
    assert_eq!(answered, ["c0", "c1", "c2", "c3", "c4"]);
    assert_eq!(results[0].text(), "hello");
    assert_eq!(results[3].error_kind(), Some(ErrorKind::NotFound));
    // Who wants to be alone comes after those before it, and before those after it.
    assert_eq!(*ended.lock().unwrap(), [("look", 0), ("run", 5), ("look", 5)]);
    assert_balanced(&bench.sink.events());
}

#[tokio::test(start_paused = true)]
async fn nobody_waits_for_what_may_not_be_used_or_does_not_last() {
    let bench = bench(empty());
    let far = far(&bench, None);
    let view = ToolView::of(bench.registry.clone());
    let view = view.select(&Selection::all().without([NAME])).unwrap();
    let executor = bench.builder.clone().view(view).build();
    let begun = tokio::time::Instant::now();
    let result = executor.execute(call(NAME, json!({}))).await;
    assert_eq!(result.error_kind(), Some(ErrorKind::NotFound));
    assert_eq!(far.asked.load(Ordering::Relaxed), 0);
    drop(far);
    let gone = bench.builder.build().execute(ToolCall::new("c2", NAME, json!({}))).await;
    assert_eq!(gone.error_kind(), Some(ErrorKind::NotFound));
    assert_eq!(begun.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_stopped_waits_no_longer() {
    let stop = CancellationToken::new();
    let bench = bench(empty().cancellation(stop.clone()));
    let _far = far(&bench, None);
    let executor = bench.builder.build();
    let begun = tokio::time::Instant::now();
    let stopping = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        stop.cancel();
    };
    let (result, ()) = tokio::join!(executor.execute(call(NAME, json!({}))), stopping);
    assert_eq!(result.error_kind(), Some(ErrorKind::Cancelled));
    assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
    assert_balanced(&bench.sink.events());
}

/// Somebody who was asked before, or not.
#[derive(Debug)]
struct Before(AskedBefore);

#[async_trait]
impl Approver for Before {
    async fn ask(&self, _: Question) -> Answer {
        Answer::Nobody
    }

    async fn asked_before(&self, _: &CallId) -> AskedBefore {
        self.0.clone()
    }
}

/// An answer is not used up by a call that cannot be made.
#[tokio::test(start_paused = true)]
async fn a_tool_that_does_not_come_ends_the_call_unless_somebody_was_asked_about_it() {
    let no = Objection { message: Some("not today".into()), by: None };
    for (before, expected, said) in [
        (AskedBefore::No, vec!["tool_call_requested", "tool_call_failed"], "it is off"),
        (AskedBefore::Open, vec!["tool_call_requested", "tool_call_deferred"], "it is off"),
        (
            AskedBefore::Refused(no),
            vec!["tool_call_requested", "approval_answered", "tool_call_denied"],
            "the user said no: not today",
        ),
    ] {
        // Bug: where nobody was there to bring it, as in a folder that is not trusted any more, the answer was used up.
        for is_far in [true, false] {
            let bench = bench(empty());
            let _far = is_far.then(|| far(&bench, Some("it is off")));
            let executor = bench.builder.approver(Before(before.clone())).build();
            let results = executor.execute_batch(vec![call(NAME, json!({}))]).await;
            let said = if is_far { said } else { said.strip_prefix("it is off").unwrap_or(said) };
            let said = if said.is_empty() { "not found" } else { said };
            assert!(results[0].text().contains(said), "{}", results[0].text());
            assert_eq!(types(&bench.sink.events()), expected);
        }
    }
}
