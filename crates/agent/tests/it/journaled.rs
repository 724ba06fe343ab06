//! What is read back from the disk is what happened, whatever happened.

use std::sync::Arc;

use convoke_agent::{Journals, replay};
use convoke_core::run::Budget;
use convoke_core::{Event, ReflectionMode, Run, RunId, StopReason};
use convoke_journal::Store;
use convoke_model::scripted::{ScriptedModel, Turn};
use convoke_model::{ModelError, ModelErrorKind};
use convoke_tool::SystemClock;
use futures_util::StreamExt;
use proptest::prelude::*;
use serde_json::json;

use crate::support::{durable, with};

/// One answer of the model: words, calls of tools that work, fail or do not exist, an error, an end that
/// comes too early.
fn turn() -> impl Strategy<Value = Turn> {
    let call = prop_oneof![
        any::<u8>().prop_map(|word| ("echo", json!({ "word": word.to_string() }))),
        Just(("fail", json!({ "word": "x" }))),
        Just(("nap", json!({ "millis": 1 }))),
        Just(("nap", json!({ "millis": "wrong" }))),
        Just(("unheard_of", json!({}))),
    ];
    let calls = prop::collection::vec(call, 0..4);
    let ends = prop_oneof![
        8 => Just(None),
        1 => Just(Some(Err(()))),
        1 => Just(Some(Ok(StopReason::Length))),
    ];
    (calls, prop::option::of("[a-zé\"\\\\\n]{0,40}"), ends).prop_map(|(calls, words, end)| {
        let mut turn = words.map_or_else(Turn::empty, Turn::text);
        for (name, arguments) in calls {
            turn = turn.and_call(name, arguments);
        }
        match end {
            None => turn,
            Some(Ok(stop)) => turn.stop(stop),
            Some(Err(())) => {
                turn.and_error(ModelError::new(ModelErrorKind::Malformed, "scripted", "it broke"))
            }
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_journal_of_a_run_is_the_run(
        turns in prop::collection::vec(turn(), 0..6),
        planned in any::<bool>(),
        looks_back in any::<bool>(),
        limit in 1u32..6,
    ) {
        let state = tempfile::tempdir().unwrap();
        let journals = Journals::new(Store::at(state.path()), Arc::new(SystemClock));
        let model = Arc::new(ScriptedModel::new(turns.into_iter().chain([Turn::text("done")])));
        let agent = with(&model)
            .strategy(if planned { convoke_core::Strategy::Planned } else { convoke_core::Strategy::Direct })
            .reflection(if looks_back { ReflectionMode::Always } else { ReflectionMode::Off })
            .budget(Budget { turns: limit, ..Budget::default() })
            .keeper(Arc::new(journals.clone()))
            .build()
            .unwrap();
        let threads = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let id = RunId::new("r");
        let (live, report) = threads.block_on(async {
            let mut run = agent.start_as(id.clone(), "Go.");
            let mut events = Vec::new();
            while let Some(event) = run.next().await {
                events.push(event);
            }
            let report = run.report().unwrap().clone();
            (durable(&events), report)
        });
        let kept: Vec<Event> = journals.store().read(&id).unwrap().events;
        prop_assert_eq!(&kept, &live, "what was kept is what was shown");
        let run = Run::replay(id.clone(), &kept);
        prop_assert_eq!(run.outcome(), Some(&report.outcome));
        prop_assert_eq!((run.turns(), run.spent()), (report.turns, &report.usage));
        let again = replay(&id, &kept).map(|again| again.run).map_err(|difference| difference.to_string());
        prop_assert_eq!(again, Ok(run));
    }
}
