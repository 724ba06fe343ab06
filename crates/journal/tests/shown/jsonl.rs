//! Events as lines.

use convoke_core::Event;
use convoke_journal::export::jsonl;

use crate::sample;

#[test]
fn lines_give_the_same_events_back() {
    let events = sample::continued();
    let mut out = Vec::new();
    jsonl(&events, &mut out).unwrap();
    let lines = String::from_utf8(out).unwrap();
    assert_eq!(lines.lines().count(), events.len());
    let back: Vec<Event> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(back, events);
}
