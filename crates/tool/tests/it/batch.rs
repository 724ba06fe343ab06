//! Several calls: order, overlap, balance.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use convoke_core::{Kind, ToolCall};
use convoke_tool::{FunctionTool, Limits, PathLocks, Roots, ToolContext};
use proptest::prelude::*;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::support::{Bench, Nothing, assert_balanced, bench, empty};

#[derive(Deserialize, JsonSchema)]
struct Work {
    path: String,
    millis: u64,
    number: usize,
}

/// What was under way on a path, at most, and in which order it began.
#[derive(Default)]
struct Observed {
    under_way: usize,
    most: usize,
    began: Vec<usize>,
}

type Log = Arc<Mutex<BTreeMap<String, Observed>>>;

fn work(name: &str, log: &Log) -> FunctionTool<Work> {
    let log = Arc::clone(log);
    FunctionTool::new(name, "Works on a path.", move |work: Work, _: ToolContext| {
        let log = Arc::clone(&log);
        async move {
            {
                let mut paths = log.lock().unwrap();
                for key in [work.path.clone(), "any".to_owned()] {
                    let observed = paths.entry(key).or_default();
                    observed.under_way += 1;
                    observed.most = observed.most.max(observed.under_way);
                    observed.began.push(work.number);
                }
            }
            tokio::time::sleep(Duration::from_millis(work.millis)).await;
            let mut paths = log.lock().unwrap();
            for key in [work.path.clone(), "any".to_owned()] {
                paths.get_mut(&key).unwrap().under_way -= 1;
            }
            Ok::<_, String>(work.number)
        }
    })
}

fn workbench(log: &Log, directory: &std::path::Path) -> Bench {
    let context = empty().roots(Roots::open([directory]).unwrap()).working_directory(directory);
    let bench = bench(context);
    bench.registry.register(work("write", log).kind(Kind::Edit).writes("path")).unwrap();
    bench.registry.register(work("read", log).kind(Kind::Read).reads("path")).unwrap();
    bench.registry.register(work("run", log).kind(Kind::Execute)).unwrap();
    bench
}

/// A batch: which tool, which path, how long. Some calls are wrong on purpose.
fn batches() -> impl Strategy<Value = Vec<(&'static str, &'static str, u64)>> {
    let tool = prop::sample::select(vec!["write", "read", "run", "missing"]);
    let path = prop::sample::select(vec!["a", "b", "c", "/outside"]);
    prop::collection::vec((tool, path, 0..20_u64), 0..12)
}

fn calls(batch: &[(&str, &str, u64)]) -> Vec<ToolCall> {
    let call = |(number, (tool, path, millis)): (usize, &(&str, &str, u64))| {
        let arguments = json!({ "path": path, "millis": millis, "number": number });
        ToolCall::new(format!("c{number}"), *tool, arguments)
    };
    batch.iter().enumerate().map(call).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn any_batch_is_answered_in_order_and_writers_never_overlap(batch in batches(), permits in 1..5_usize) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let log = Log::default();
            let directory = tempfile::tempdir().unwrap();
            let bench = workbench(&log, directory.path());
            let limits = Limits { max_concurrent: permits, ..Limits::default() };
            let results = bench.builder.limits(limits).build().execute_batch(calls(&batch)).await;

            let answered: Vec<&str> = results.iter().map(|result| result.call.as_str()).collect();
            let asked: Vec<String> = (0..batch.len()).map(|number| format!("c{number}")).collect();
            assert_eq!(answered, asked);
            for (number, result) in results.iter().enumerate() {
                let (tool, path, _) = batch[number];
                let possible = tool != "missing" && (tool == "run" || path != "/outside");
                assert_eq!(result.value().cloned(), possible.then(|| Value::from(number)));
            }
            assert_balanced(&bench.sink.events());

            let log = log.lock().unwrap();
            assert!(log.get("any").is_none_or(|any| any.most <= permits), "more at once than permits");
            for (path, observed) in log.iter().filter(|(path, _)| *path != "any") {
                let writes = |number: &&usize| batch[**number].0 == "write";
                let began: Vec<&usize> = observed.began.iter().filter(writes).collect();
                assert!(began.is_sorted(), "{path}: writes in call order");
                let only_writes = observed.began.iter().all(|number| batch[*number].0 == "write");
                assert!(!only_writes || observed.most <= 1, "{path}: writes overlap");
            }
        });
    }
}

#[tokio::test(start_paused = true)]
async fn independent_calls_run_side_by_side_up_to_the_limit() {
    let log = Log::default();
    let directory = tempfile::tempdir().unwrap();
    let executor = workbench(&log, directory.path()).builder.build();
    let started = tokio::time::Instant::now();
    let batch: Vec<_> = ["a", "b", "c", "d", "e", "f"].map(|path| ("read", path, 100)).into();
    executor.execute_batch(calls(&batch)).await;
    assert_eq!(started.elapsed().as_millis(), 200, "six calls, three at once");
}

#[tokio::test(start_paused = true)]
async fn a_program_runs_alone() {
    let log = Log::default();
    let directory = tempfile::tempdir().unwrap();
    let executor = workbench(&log, directory.path()).builder.build();
    let batch = [("read", "a", 50), ("run", "b", 50), ("read", "c", 50)];
    let started = tokio::time::Instant::now();
    executor.execute_batch(calls(&batch)).await;
    assert_eq!(started.elapsed().as_millis(), 150);
    assert_eq!(log.lock().unwrap()["any"].most, 1);
}

#[tokio::test(start_paused = true)]
async fn two_runs_of_one_tree_do_not_write_one_path_at_once() {
    let log = Log::default();
    let directory = tempfile::tempdir().unwrap();
    let locks = PathLocks::default();
    let run = || workbench(&log, directory.path()).builder.locks(locks.clone()).build();
    std::fs::create_dir(directory.path().join("real")).unwrap();
    std::os::unix::fs::symlink("real", directory.path().join("alias")).unwrap();
    let (one, two) = (run(), run());
    let left = [("write", "real/x", 30)];
    let right = [("write", "alias/x", 30)];
    let started = tokio::time::Instant::now();
    tokio::join!(one.execute_batch(calls(&left)), two.execute_batch(calls(&right)));
    assert_eq!(started.elapsed().as_millis(), 60, "one after the other");
}

#[tokio::test(start_paused = true)]
async fn a_read_through_a_link_waits_for_the_write_before_it() {
    let log = Log::default();
    let directory = tempfile::tempdir().unwrap();
    std::fs::create_dir(directory.path().join("real")).unwrap();
    std::os::unix::fs::symlink("real", directory.path().join("alias")).unwrap();
    let executor = workbench(&log, directory.path()).builder.build();
    let started = tokio::time::Instant::now();
    executor.execute_batch(calls(&[("write", "real/x", 30), ("read", "alias/x", 30)])).await;
    assert_eq!(started.elapsed().as_millis(), 60);
}

#[tokio::test(start_paused = true)]
async fn agents_hold_no_permit_so_their_own_calls_can_run() {
    let log = Log::default();
    let directory = tempfile::tempdir().unwrap();
    let bench = workbench(&log, directory.path());
    let limits = Limits { max_concurrent: 1, ..Limits::default() };
    let executor = bench.builder.limits(limits).build();
    let inner = executor.clone();
    let agent = FunctionTool::new("agent", "Delegates.", move |_: Nothing, _: ToolContext| {
        let inner = inner.clone();
        async move {
            let arguments = json!({ "path": "a", "millis": 5, "number": 0 });
            let result = inner.execute(ToolCall::new("inner", "read", arguments)).await;
            Ok::<_, String>(result.success())
        }
    });
    bench.registry.register(agent.kind(Kind::Agent)).unwrap();
    let result = executor.execute(ToolCall::new("outer", "agent", json!({}))).await;
    assert_eq!(result.value(), Some(&json!(true)));
}
