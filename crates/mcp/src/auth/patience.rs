//! When to give up on a server that is never content.
//!
//! A server that turns away every new token at once, or asks for the same scopes again after they were
//! granted, would send a person to the browser without end, and a program in a circle.

use std::collections::HashMap;
use std::time::Duration;

use tokio::time::Instant;

/// A token that is turned away within this time was never taken.
const AT_ONCE: Duration = Duration::from_secs(10);
/// How often in a row that may happen.
const MOST_AT_ONCE: u32 = 3;
/// How many requests may have been under way with an older token.
const MOST_UNDER_WAY: u32 = 64;
/// After this time a server may ask for the same scopes anew.
const FORGIVEN: Duration = Duration::from_mins(10);

/// Remembers what was tried with one server.
#[derive(Debug, Default)]
pub(super) struct Patience {
    last: Option<Instant>,
    at_once: u32,
    under_way: u32,
    step_ups: HashMap<Vec<String>, (u32, Instant)>,
}

impl Patience {
    /// Takes note that a token was given.
    pub(super) fn granted(&mut self) {
        self.last = Some(Instant::now());
        self.under_way = 0;
    }

    /// Takes note of a request that was turned away and did not have the last token; tells whether that
    /// can be. A caller that never says what it sent would go in a circle.
    pub(super) fn was_under_way(&mut self) -> bool {
        self.under_way += 1;
        self.under_way <= MOST_UNDER_WAY
    }

    /// Takes note that a token was turned away; tells whether to go on.
    pub(super) fn turned_away(&mut self) -> bool {
        let at_once = self.last.is_some_and(|last| last.elapsed() < AT_ONCE);
        self.at_once = if at_once { self.at_once + 1 } else { 0 };
        self.at_once <= MOST_AT_ONCE
    }

    /// Takes note that more scopes are wanted. Tells how often the same were granted already, if that is
    /// as often as they may be.
    pub(super) fn step_up(&mut self, scopes: &[String], most: u32) -> Result<(), u32> {
        let mut scopes = scopes.to_vec();
        scopes.sort();
        self.step_ups.retain(|_, (_, last)| last.elapsed() < FORGIVEN);
        let (times, last) = self.step_ups.entry(scopes).or_insert((0, Instant::now()));
        if *times >= most {
            return Err(*times);
        }
        *times += 1;
        *last = Instant::now();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_server_that_takes_no_token_is_given_up() {
        let mut patience = Patience::default();
        for _ in 0..=MOST_AT_ONCE {
            assert!(patience.turned_away());
            patience.granted();
        }
        assert!(!patience.turned_away());
        tokio::time::advance(AT_ONCE).await;
        assert!(patience.turned_away(), "a token that lived is no sign of trouble");
    }

    #[tokio::test(start_paused = true)]
    async fn the_same_scopes_are_asked_for_only_so_often() {
        let mut patience = Patience::default();
        let scopes =
            |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        assert_eq!(patience.step_up(&scopes(&["a", "b"]), 2), Ok(()));
        assert_eq!(patience.step_up(&scopes(&["b", "a"]), 2), Ok(()));
        assert_eq!(patience.step_up(&scopes(&["a", "b"]), 2), Err(2));
        assert_eq!(patience.step_up(&scopes(&["c"]), 2), Ok(()));
        tokio::time::advance(FORGIVEN).await;
        assert_eq!(patience.step_up(&scopes(&["a", "b"]), 2), Ok(()));
    }
}
