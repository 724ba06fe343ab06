//! Rate limits: what the provider asks for is what is waited, by everybody who shares its key.

use std::time::Duration;

use convoke_model::{Chunk, Model, ModelErrorKind as Kind, Request, RetryPolicy, WireFormat};
use convoke_testkit::{Failure, ModelServer, Reaction, Reply, Seen};
use futures_util::StreamExt;
use futures_util::future::join_all;

use crate::support::{Case, Heard, model, on_every_wire, quick, user};

on_every_wire!(
    the_wait_is_the_one_the_provider_asks_for,
    a_wait_that_is_too_long_is_not_waited,
    many_models_of_one_key_find_out_one_at_a_time,
    another_key_does_not_wait,
    a_broken_server_may_say_when_to_come_back,
);

/// Refuses, and says when to come back, as the provider of a wire says it.
fn limited(case: Case, wait: Duration) -> Reaction {
    let refusal = Reaction::failure(Failure::RateLimited);
    match case.format {
        WireFormat::Gemini => refusal.retry_after(wait),
        _ => refusal.header("retry-after-ms", wait.as_millis().to_string()),
    }
}

async fn the_wait_is_the_one_the_provider_asks_for(case: Case) {
    // In whole seconds, as all of them do; nobody waits for it here.
    let refusal = Reaction::failure(Failure::RateLimited).retry_after(Duration::from_secs(17));
    let talk = case.serve(refusal).await;
    let mut stream = talk.model.stream(&Request::new(&[user("Hello")]));
    let Some(Ok(Chunk::Retry(retry))) = stream.next().await else { panic!("no repeat") };
    assert_eq!((retry.attempt, retry.delay), (2, Duration::from_secs(17)));
    assert!(retry.reason.starts_with("acme answered 429: "), "{}", retry.reason);

    let wait = Duration::from_millis(40);
    let talk = case.serve([limited(case, wait), Reply::text("there").into()]).await;
    let heard = talk.hello().await;
    assert_eq!(heard.repeats()[0].1, wait);
    assert_eq!(heard.answer().message.words(), "there");
    let seen = talk.server.requests();
    assert!(seen[1].at - seen[0].at >= wait);
}

async fn a_wait_that_is_too_long_is_not_waited(case: Case) {
    let refusal = Reaction::failure(Failure::RateLimited).retry_after(Duration::from_mins(10));
    let talk = case.serve(refusal).await;
    let heard = talk.hello().await;
    let error = heard.error();
    assert_eq!((error.kind, error.status, heard.0.len()), (Kind::RateLimited, Some(429), 1));
    assert_eq!(error.retry_after, Some(Duration::from_mins(10)));
    let end = "; it asks to wait 600 s, longer than the 60 s allowed";
    assert!(error.message.ends_with(end), "{error}");
    // The next one with this key does not even ask.
    let heard = talk.hello().await;
    assert_eq!((heard.error().kind, heard.error().status), (Kind::RateLimited, None));
    assert_eq!(talk.server.counts().requests, 1);
}

async fn many_models_of_one_key_find_out_one_at_a_time(case: Case) {
    const MODELS: usize = 20;
    let wait = Duration::from_millis(300);
    let script = move |_: &Seen, nth: usize| -> Reaction {
        // The whole first wave is refused, and so is the first that comes back.
        if nth <= MODELS { limited(case, wait) } else { Reply::text("there").into() }
    };
    let server = ModelServer::start(script).await.unwrap();
    let transport = quick().build();
    let url = server.base_url(case.wire);
    let models: Vec<_> = (0..MODELS).map(|_| case.model_at(&url, transport.clone())).collect();
    let messages = [user("Hello")];
    let request = Request::new(&messages);
    // All of them are under way before the first is refused.
    let answers = join_all(models.iter().map(|model| Heard::of(model, &request))).await;
    for heard in answers {
        let repeats = heard.repeats().len();
        assert!((1..=2).contains(&repeats), "{heard:?}");
        assert_eq!(heard.answer().message.words(), "there");
    }
    let seen = server.requests();
    assert_eq!(seen.len(), 2 * MODELS + 1, "nobody asked in vain but the one that had to find out");
    let last_of_the_wave = seen[..MODELS].iter().map(|seen| seen.at).max().unwrap();
    let (probe, after) = (seen[MODELS].at, seen[MODELS + 1].at);
    assert!(probe - last_of_the_wave >= wait);
    assert!(after - probe >= wait, "while one finds out, the others wait");
}

async fn another_key_does_not_wait(case: Case) {
    let script = move |seen: &Seen, _: usize| -> Reaction {
        let is_other = seen.headers.iter().any(|(_, value)| value.contains("another-key"));
        if is_other { Reply::text("there").into() } else { limited(case, Duration::from_secs(50)) }
    };
    let server = ModelServer::start(script).await.unwrap();
    let transport = quick().retry(RetryPolicy::never()).build();
    let url = server.base_url(case.wire);
    let limited = case.model_at(&url, transport.clone());
    let free = model(case.model, case.provider(&url).key("another-key"), transport);
    let messages = [user("Hello")];
    let request = Request::new(&messages);
    assert_eq!(Heard::of(&limited, &request).await.error().kind, Kind::RateLimited);
    assert_eq!(Heard::of(&free, &request).await.answer().message.words(), "there");
}

/// Not only those who limit us say when to come back.
async fn a_broken_server_may_say_when_to_come_back(case: Case) {
    let refusal = Reaction::failure(Failure::Overloaded).retry_after(Duration::from_secs(17));
    let talk = case.serve(refusal).await;
    let mut stream = talk.model.stream(&Request::new(&[user("Hello")]));
    let Some(Ok(Chunk::Retry(retry))) = stream.next().await else { panic!("no repeat") };
    assert_eq!(retry.delay, Duration::from_secs(17));
}
