//! Whims and settings of every kind.

use std::time::Duration;

use proptest::prelude::*;

use super::{Left, Whim};
use crate::run::{Budget, Ending, ReflectionMode, RunSettings};
use crate::time::Millis;
use crate::usage::{ModelFacts, Price};

pub(super) fn whim() -> impl Strategy<Value = Whim> {
    let calls = prop::collection::vec((0u8..4, any::<bool>()), 0..4);
    let rare = || prop::bool::weighted(0.03);
    (
        (calls, any::<bool>(), prop::bool::weighted(0.2), 0u8..8, rare(), rare()),
        ((0u16..4_000, 0u16..2_000), any::<u64>(), any::<bool>(), 0u32..30_000),
        (rare(), rare(), 0u8..3, 0u16..4_000),
        (left(), rare()),
    )
        .prop_map(|(model, tools, rest, (left, breaks_off))| {
            let (calls, words, complete, stop, fails, too_long) = model;
            let (tokens, order, asks, pause_ms) = tools;
            let (cancel, user, verdict, summary_bytes) = rest;
            Whim {
                calls,
                words,
                complete,
                stop,
                fails,
                too_long,
                tokens,
                order,
                asks,
                pause_ms,
                cancel,
                user,
                verdict,
                summary_bytes,
                left,
                breaks_off,
            }
        })
}

fn left() -> impl Strategy<Value = Left> {
    prop_oneof![60 => Just(Left::Enough), 1 => Just(Left::TooLittle), 1 => Just(Left::NotInTime)]
}

pub(super) fn settings() -> impl Strategy<Value = RunSettings> {
    let budget = (
        1u32..8,
        1_000u64..400_000,
        prop::option::of(500u64..60_000),
        prop::option::of(1u32..400),
        prop::option::of(1u32..6),
    )
        .prop_map(|(turns, time, tokens, cents, tool_calls)| Budget {
            turns,
            time_ms: Millis::new(Duration::from_millis(time)),
            tokens,
            cost: cents.map(|cents| format!("0.{cents:03}").parse().unwrap()),
            tool_calls,
            ..Budget::default()
        });
    let ending = prop::sample::select(Ending::ALL);
    let strategy = prop::sample::select(crate::Strategy::ALL);
    let reflection = prop::sample::select(ReflectionMode::ALL);
    let priced = prop::bool::weighted(0.8);
    let window = prop::option::of(2_000u64..50_000);
    (budget, ending, strategy, reflection, priced, window).prop_map(
        |(budget, ending, strategy, reflection, priced, window)| RunSettings {
            budget,
            ending,
            strategy,
            reflection,
            model: ModelFacts {
                window,
                max_output: Some(4_000),
                max_calls: None,
                price: priced.then(|| Price {
                    input: "3".parse().unwrap(),
                    cached_input: None,
                    cache_write: None,
                    output: "15".parse().unwrap(),
                }),
            },
            ..RunSettings::default()
        },
    )
}
