use std::collections::VecDeque;

use tokio::time::Instant;

use super::*;
use crate::error::ModelErrorKind;

type Script = Vec<Vec<Result<Chunk, ModelError>>>;

#[expect(clippy::unnecessary_wraps, reason = "what a stream gives is a result")]
fn text(text: &str) -> Result<Chunk, ModelError> {
    Ok(Chunk::Text(text.to_owned()))
}

fn error(kind: ModelErrorKind) -> ModelError {
    ModelError::new(kind, "fake", "no luck")
}

/// Plays one attempt after the other and returns what came, and when.
async fn play(policy: RetryPolicy, script: Script) -> Vec<(Duration, Result<Chunk, ModelError>)> {
    let mut attempts: VecDeque<_> = script.into();
    let attempt = move || -> ModelStream {
        Box::pin(stream::iter(attempts.pop_front().expect("no attempt was left")))
    };
    let start = Instant::now();
    repeating(policy, Chance::new(|| 0.5), attempt)
        .map(|item| (start.elapsed(), item))
        .collect()
        .await
}

#[expect(clippy::unnecessary_wraps, reason = "what a stream gives is a result")]
fn retry(attempt: u32, delay: u64) -> Result<Chunk, ModelError> {
    let (delay, reason) = (Duration::from_millis(delay), "fake: no luck".to_owned());
    Ok(Chunk::Retry(Retry { attempt, delay, reason, accepted: false, received_bytes: 0 }))
}

fn after(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

#[tokio::test(start_paused = true)]
async fn a_kept_connection_that_was_closed_is_worth_one_repeat_at_once() {
    let stale = || vec![Err(ModelError { stale: true, ..error(ModelErrorKind::Cut) })];
    let items = play(RetryPolicy::default(), vec![stale(), stale(), vec![text("a")]]).await;
    assert_eq!(
        items,
        [(after(0), retry(2, 0)), (after(0), retry(3, 1_000)), (after(1_000), text("a"))]
    );
    let items = play(RetryPolicy::never(), vec![stale()]).await;
    assert!(items[0].1.is_err(), "who wants no repeats gets none");
}

#[tokio::test(start_paused = true)]
async fn a_wait_for_the_rate_limit_is_counted_with_its_attempt() {
    let script = vec![vec![Err(error(ModelErrorKind::Server))], vec![retry(1, 3_000), text("a")]];
    let items = play(RetryPolicy::default(), script).await;
    let expected =
        [(after(0), retry(2, 500)), (after(500), retry(2, 3_000)), (after(500), text("a"))];
    assert_eq!(items, expected);
}

#[tokio::test(start_paused = true)]
async fn waits_grow_and_each_repeat_is_announced_before_its_wait() {
    let failed = || vec![Err(error(ModelErrorKind::Server))];
    let items = play(RetryPolicy::default(), vec![failed(), failed(), vec![text("a")]]).await;
    assert_eq!(
        items,
        [(after(0), retry(2, 500)), (after(500), retry(3, 1_000)), (after(1_500), text("a")),]
    );
}

#[tokio::test(start_paused = true)]
async fn the_provider_is_left_alone_for_as_long_as_it_asks() {
    let limited = ModelError {
        retry_after: Some(Duration::from_secs(17)),
        ..error(ModelErrorKind::RateLimited)
    };
    let items = play(RetryPolicy::default(), vec![vec![Err(limited)], vec![text("a")]]).await;
    assert_eq!(items, [(after(0), retry(2, 17_000)), (after(17_000), text("a"))]);
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_is_too_long_fails_at_once_and_says_so() {
    let limited = ModelError {
        retry_after: Some(Duration::from_mins(5)),
        ..error(ModelErrorKind::RateLimited)
    };
    let items = play(RetryPolicy::default(), vec![vec![Err(limited)]]).await;
    let [(when, Err(error))] = items.as_slice() else { panic!("{items:?}") };
    assert_eq!(*when, after(0));
    assert_eq!(error.message, "no luck; it asks to wait 300 s, longer than the 60 s allowed");
}

#[tokio::test(start_paused = true)]
async fn nothing_is_repeated_once_something_was_shown() {
    for shown in [text("a"), Ok(Chunk::Thought("hm".to_owned()))] {
        let cut = Err(error(ModelErrorKind::Cut));
        let items = play(RetryPolicy::default(), vec![vec![shown.clone(), cut.clone()]]).await;
        assert_eq!(items, [(after(0), shown), (after(0), cut)]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_was_only_begun_is_begun_again() {
    let begun = || Ok(Chunk::ToolCall { name: "ls".to_owned() });
    let first = vec![begun(), Err(error(ModelErrorKind::Cut))];
    let items = play(RetryPolicy::default(), vec![first, vec![begun(), text("a")]]).await;
    let items: Vec<_> = items.into_iter().map(|(_, item)| item).collect();
    assert_eq!(items, [begun(), retry(2, 500), begun(), text("a")]);
}

#[tokio::test(start_paused = true)]
async fn an_empty_chunk_shows_nothing() {
    let first = vec![text(""), Err(error(ModelErrorKind::Cut))];
    let items = play(RetryPolicy::default(), vec![first, vec![text("a")]]).await;
    assert_eq!(items.last(), Some(&(after(500), text("a"))));
}

#[tokio::test(start_paused = true)]
async fn only_what_may_pass_is_repeated() {
    use ModelErrorKind as Kind;
    for kind in [
        Kind::Authentication,
        Kind::NotFound,
        Kind::Quota,
        Kind::ContextTooLong,
        Kind::Rejected,
        Kind::Malformed,
        Kind::NotRecorded,
    ] {
        let items = play(RetryPolicy::default(), vec![vec![Err(error(kind))]]).await;
        assert_eq!(items, [(after(0), Err(error(kind)))]);
    }
    for kind in [Kind::RateLimited, Kind::Server, Kind::Unreachable, Kind::Silent, Kind::Cut] {
        let items =
            play(RetryPolicy::default(), vec![vec![Err(error(kind))], vec![text("a")]]).await;
        assert_eq!(items.last(), Some(&(after(500), text("a"))), "{kind:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn it_gives_up_after_the_last_attempt_and_says_so() {
    let failed = || vec![Err(error(ModelErrorKind::Server))];
    let items = play(RetryPolicy::default(), (0..5).map(|_| failed()).collect()).await;
    assert_eq!(items.len(), 5);
    let Some((when, Err(error))) = items.last() else { panic!("{items:?}") };
    assert_eq!(*when, after(500 + 1_000 + 2_000 + 4_000));
    assert_eq!(error.message, "no luck; gave up after 5 attempts");
}

#[test]
fn chance_moves_a_wait_by_a_quarter_and_the_cap_holds() {
    let policy = RetryPolicy::default();
    assert_eq!(policy.own_wait(1, 0.0), after(375));
    assert_eq!(policy.own_wait(1, 1.0), after(625));
    assert_eq!(policy.own_wait(40, 0.5), after(30_000));
}
