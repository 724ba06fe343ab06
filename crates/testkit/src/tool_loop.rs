//! A conversation for benchmarks, which needs no memory.

use serde_json::Value;

use crate::prepared::Prepared;
use crate::reaction::Reaction;
use crate::reply::{Reply, Say};
use crate::script::Script;
use crate::seen::Seen;

/// Asks for a tool in every turn but the last, and then answers with text.
///
/// Which turn it is follows from how often the model has spoken in the request, so any number of
/// conversations can go on at once, and each answer was written before the first request came.
#[derive(Clone, Debug)]
pub struct ToolLoop {
    turns: Vec<Prepared>,
    last: Prepared,
}

impl ToolLoop {
    /// Makes a conversation of so many turns, with so many parallel calls in each turn but the last.
    /// `{turn}` and `{call}` in the arguments become numbers, from 0, so that no call is like another.
    pub fn new(turns: usize, calls: usize, tool: &str, arguments: &Value) -> Self {
        let last = turns.saturating_sub(1);
        let arguments = arguments.to_string();
        let ask = |turn: usize| {
            let arguments = arguments.replace("{turn}", &turn.to_string());
            let say = |call: usize| Say::Call {
                id: None,
                name: tool.to_owned(),
                arguments: arguments.replace("{call}", &call.to_string()),
            };
            let calls = (0..calls).fold(Reply::default(), |reply, call| reply.say(say(call)));
            Prepared::nth(&calls, turn)
        };
        Self {
            turns: (0..last).map(ask).collect(),
            last: Prepared::nth(&Reply::text("Everything is done."), last),
        }
    }
}

impl Script for ToolLoop {
    fn react(&self, seen: &Seen, _: usize) -> Reaction {
        self.turns.get(seen.turns()).unwrap_or(&self.last).clone().into()
    }
}
