//! What was refused counts, whenever it is heard of.

use serde_json::json;

use super::asking_for;
use crate::error::ToolError;
use crate::event::EventBody;
use crate::message::{Part, ToolCall};
use crate::outcome::Cause;
use crate::time::Millis;

fn denied(tool_name: &str) -> EventBody {
    EventBody::ToolCallDenied {
        tool_name: tool_name.to_owned(),
        error: ToolError::permission("no"),
        content: vec![Part::text("no")],
        duration_ms: Millis::default(),
    }
}

/// Which of the calls of one answer ends last is chance; how the run ends is not.
#[test]
fn what_was_refused_counts_whatever_the_order_of_the_calls() {
    let calls = [ToolCall::new("a", "look", json!({})), ToolCall::new("b", "push", json!({}))];
    for (asked, first) in [([0, 1], 0), ([0, 1], 1), ([1, 0], 0), ([1, 0], 1)] {
        let mut world = asking_for(&asked.map(|index| calls[index].clone()));
        for which in [first, 1 - first] {
            match which {
                0 => world.end_call(&calls[0], Ok(json!(1))),
                _ => world.record(Some(&calls[1].id), denied("push")),
            }
        }
        world.go_on();
        assert_eq!(world.run.outcome().unwrap().cause, Cause::Goal, "{asked:?} {first}");
        assert_eq!(world.run.refused().get("push"), Some(&1));
    }
    let mut world = asking_for(&calls[1..]);
    world.record(Some(&calls[1].id), denied("push"));
    world.go_on();
    let outcome = world.run.outcome().unwrap();
    assert_eq!((outcome.cause, outcome.recovered), (Cause::Denied, true), "nothing was done");
}

/// An agent in the background that was refused counts when the run hears of it, not when it happens to end.
#[test]
fn what_an_agent_in_the_background_was_refused_counts_when_it_is_told() {
    for ends_first in [true, false] {
        let call = ToolCall::new("a", "look", json!({}));
        let mut world = asking_for(std::slice::from_ref(&call));
        world.spawn();
        if ends_first {
            world.end_children(1, Cause::Denied);
        }
        world.end_call(&call, Ok(json!(1)));
        if !ends_first {
            world.end_children(1, Cause::Denied);
        }
        world.go_on();
        assert_eq!(world.run.outcome().unwrap().cause, Cause::Denied, "{ends_first}");
    }
}
