//! Who decides what the server does.

use crate::prepared::Prepared;
use crate::reaction::Reaction;
use crate::reply::Reply;
use crate::seen::Seen;

/// Decides how each request is answered.
///
/// A closure `|seen: &Seen, nth: usize| …` is one, and so is a list of reactions, of which each request
/// takes the next (a request too many gets a 500 that says so). A single reaction, reply or prepared
/// reply answers every request.
pub trait Script: Send + Sync + 'static {
    /// Decides about the `nth` request to a model, counted from 0 in the order of arrival.
    fn react(&self, seen: &Seen, nth: usize) -> Reaction;
}

impl<F: Fn(&Seen, usize) -> Reaction + Send + Sync + 'static> Script for F {
    fn react(&self, seen: &Seen, nth: usize) -> Reaction {
        self(seen, nth)
    }
}

impl Script for Vec<Reaction> {
    fn react(&self, _: &Seen, nth: usize) -> Reaction {
        self.get(nth).cloned().unwrap_or_else(|| {
            let message = format!("the script has only {} reactions", self.len());
            Reaction::status(500, format!(r#"{{"error":{{"message":"{message}"}}}}"#))
        })
    }
}

impl<const N: usize> Script for [Reaction; N] {
    fn react(&self, seen: &Seen, nth: usize) -> Reaction {
        self.get(nth).cloned().unwrap_or_else(|| self.to_vec().react(seen, nth))
    }
}

impl Script for Reaction {
    fn react(&self, _: &Seen, _: usize) -> Reaction {
        self.clone()
    }
}

impl Script for Reply {
    fn react(&self, _: &Seen, _: usize) -> Reaction {
        Reaction::answer(self.clone())
    }
}

impl Script for Prepared {
    fn react(&self, _: &Seen, _: usize) -> Reaction {
        self.clone().into()
    }
}
