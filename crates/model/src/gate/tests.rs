use std::sync::atomic::AtomicUsize;

use tokio::task::JoinSet;

use super::*;

const LONG: Duration = Duration::from_mins(1);

fn gate(limits: Limits) -> Arc<Gate> {
    Arc::new(Gate::new(limits, Chance::new(|| 0.0)))
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[tokio::test(start_paused = true)]
async fn an_open_gate_lets_everybody_through_at_once() {
    let gate = gate(Limits::default());
    let start = Instant::now();
    let mut passes = Vec::new();
    for _ in 0..100 {
        passes.push(gate.enter(LONG).await.unwrap());
    }
    assert!(passes.iter().all(|pass| pass.door.is_none()));
    assert_eq!(start.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn thirty_two_agents_make_one_request_at_a_time_after_a_refusal() {
    let gate = gate(Limits::default());
    let mut passes = Vec::new();
    for _ in 0..32 {
        passes.push(gate.enter(LONG).await.unwrap());
    }
    let start = Instant::now();
    for mut pass in passes {
        pass.refused(Some(seconds(10)));
    }

    let (under_way, most, tries) = Default::default();
    let (under_way, most, tries): (Arc<AtomicUsize>, Arc<AtomicUsize>, Arc<AtomicUsize>) =
        (under_way, most, tries);
    let mut agents = JoinSet::new();
    for _ in 0..32 {
        let (gate, under_way) = (gate.clone(), under_way.clone());
        let (most, tries) = (most.clone(), tries.clone());
        agents.spawn(async move {
            loop {
                let mut pass = gate.enter(LONG).await.unwrap();
                let number = tries.fetch_add(1, Ordering::Relaxed);
                if pass.door.is_some() {
                    let now = under_way.fetch_add(1, Ordering::Relaxed) + 1;
                    most.fetch_max(now, Ordering::Relaxed);
                    tokio::time::sleep(seconds(1)).await;
                    under_way.fetch_sub(1, Ordering::Relaxed);
                }
                // The provider is content from the fourth request on.
                if number < 3 {
                    pass.refused(Some(seconds(5)));
                } else {
                    pass.accepted();
                    return start.elapsed();
                }
            }
        });
    }
    let mut ends = agents.join_all().await;
    ends.sort();
    assert_eq!(most.load(Ordering::Relaxed), 1);
    assert_eq!(tries.load(Ordering::Relaxed), 3 + 32);
    // 10 s, then four requests of 1 s with 5 s between them; then all the others at once.
    assert_eq!(ends, vec![seconds(10 + 4 + 3 * 5); 32]);
}

#[tokio::test(start_paused = true)]
async fn a_wait_longer_than_allowed_is_refused_at_once() {
    let gate = gate(Limits::default());
    gate.enter(LONG).await.unwrap().refused(Some(seconds(3600)));
    assert_eq!(gate.enter(LONG).await.unwrap_err(), ClosedFor(seconds(3600)));
    tokio::time::advance(seconds(3600)).await;
    assert!(gate.enter(LONG).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn whoever_leaves_the_queue_leaves_nothing_behind() {
    let gate = gate(Limits::default());
    gate.enter(LONG).await.unwrap().refused(Some(seconds(10)));
    let gave_up = tokio::time::timeout(seconds(1), gate.enter(LONG)).await;
    assert!(gave_up.is_err());
    let pass = gate.enter(LONG).await.unwrap();
    assert!(pass.door.is_some());
    drop(pass);
    assert!(gate.enter(LONG).await.unwrap().door.is_some(), "the door stays until one succeeds");
}

#[tokio::test(start_paused = true)]
async fn an_old_refusal_does_not_close_a_gate_that_was_opened_since() {
    let gate = gate(Limits::default());
    let mut early = gate.enter(LONG).await.unwrap();
    gate.enter(LONG).await.unwrap().refused(Some(seconds(1)));
    gate.enter(LONG).await.unwrap().accepted();
    early.refused(Some(seconds(30)));
    assert!(gate.enter(LONG).await.unwrap().door.is_none());
}

#[tokio::test(start_paused = true)]
async fn an_old_success_does_not_open_a_closed_gate() {
    let gate = gate(Limits::default());
    let mut early = gate.enter(LONG).await.unwrap();
    gate.enter(LONG).await.unwrap().refused(Some(seconds(1)));
    early.accepted();
    assert!(gate.enter(LONG).await.unwrap().door.is_some());
}

#[tokio::test(start_paused = true)]
async fn no_more_requests_are_under_way_than_allowed() {
    let limits = Limits { max_concurrent: NonZeroU32::new(2), ..Limits::default() };
    let gate = gate(limits);
    let first = gate.enter(LONG).await.unwrap();
    let _second = gate.enter(LONG).await.unwrap();
    assert!(tokio::time::timeout(seconds(5), gate.enter(LONG)).await.is_err());
    drop(first);
    assert!(tokio::time::timeout(seconds(5), gate.enter(LONG)).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn no_more_requests_are_made_in_a_minute_than_allowed() {
    let limits = Limits { requests_per_minute: NonZeroU32::new(3), ..Limits::default() };
    let gate = gate(limits);
    let start = Instant::now();
    let mut times = Vec::new();
    for _ in 0..7 {
        drop(gate.enter(LONG).await.unwrap());
        times.push(start.elapsed().as_secs());
    }
    assert_eq!(times, [0, 0, 0, 60, 60, 60, 120]);
}

#[tokio::test]
async fn models_share_the_gate_of_their_key_and_no_other() {
    let gates = Gates::default();
    let one = gates.gate("https://a", Some("key"), Limits::default());
    assert!(Arc::ptr_eq(&one, &gates.gate("https://a", Some("key"), Limits::default())));
    assert!(!Arc::ptr_eq(&one, &gates.gate("https://a", Some("other"), Limits::default())));
    assert!(!Arc::ptr_eq(&one, &gates.gate("https://b", Some("key"), Limits::default())));
    drop(one);
    let _again = gates.gate("https://c", None, Limits::default());
    assert_eq!(lock(&gates.known).len(), 1, "gates nobody uses are forgotten");
}

#[tokio::test(start_paused = true)]
async fn whoever_stops_waiting_for_a_turn_uses_none() {
    let limits = Limits { requests_per_minute: NonZeroU32::new(1), ..Limits::default() };
    let gate = gate(limits);
    let start = Instant::now();
    drop(gate.enter(LONG).await.unwrap());
    for _ in 0..5 {
        assert!(tokio::time::timeout(seconds(1), gate.enter(LONG)).await.is_err());
    }
    drop(gate.enter(LONG).await.unwrap());
    assert_eq!(start.elapsed(), seconds(60));
}

#[tokio::test(start_paused = true)]
async fn a_closed_gate_uses_up_no_turn() {
    let limits = Limits { requests_per_minute: NonZeroU32::new(2), ..Limits::default() };
    let gate = gate(limits);
    gate.enter(LONG).await.unwrap().refused(Some(seconds(90)));
    for _ in 0..5 {
        assert_eq!(gate.enter(LONG).await.unwrap_err(), ClosedFor(seconds(90)));
    }
    tokio::time::advance(seconds(90)).await;
    let start = Instant::now();
    gate.enter(LONG).await.unwrap().accepted();
    drop(gate.enter(LONG).await.unwrap());
    assert_eq!(start.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn nobody_holds_a_place_while_waiting_for_a_turn() {
    let (one, two) = (NonZeroU32::new(1), NonZeroU32::new(2));
    let gate = gate(Limits { max_concurrent: one, requests_per_minute: two });
    drop(gate.enter(LONG).await.unwrap());
    drop(gate.enter(LONG).await.unwrap());
    let waiting = gate.enter(LONG);
    tokio::pin!(waiting);
    assert!(tokio::time::timeout(seconds(1), &mut waiting).await.is_err());
    assert_eq!(gate.places.as_ref().unwrap().available_permits(), 1);
    let start = Instant::now();
    assert!(waiting.await.is_ok());
    assert_eq!(start.elapsed(), seconds(59));
}

#[tokio::test(start_paused = true)]
async fn a_gate_that_closes_while_a_place_is_waited_for_is_closed() {
    let gate = gate(Limits { max_concurrent: NonZeroU32::new(1), ..Limits::default() });
    let mut first = gate.enter(LONG).await.unwrap();
    let waiting = gate.enter(LONG);
    tokio::pin!(waiting);
    assert!(tokio::time::timeout(seconds(1), &mut waiting).await.is_err());
    let start = Instant::now();
    first.refused(Some(seconds(10)));
    drop(first);
    assert!(waiting.await.unwrap().door.is_some());
    assert_eq!(start.elapsed(), seconds(10));
}

/// A provider may refuse in the middle of an answer that it had begun to give.
#[tokio::test(start_paused = true)]
async fn whoever_opened_the_gate_can_close_it_again() {
    let gate = gate(Limits::default());
    gate.enter(LONG).await.unwrap().refused(Some(seconds(1)));
    let mut pass = gate.enter(LONG).await.unwrap();
    pass.accepted();
    pass.refused(Some(seconds(7)));
    let start = Instant::now();
    assert!(gate.enter(LONG).await.unwrap().door.is_some());
    assert_eq!(start.elapsed(), seconds(7));
}
