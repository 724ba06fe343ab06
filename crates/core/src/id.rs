//! Ids as types: a call id cannot be passed where a run id is wanted.
//!
//! An id is a shared string: cloning one into an event costs a reference count. Nothing here makes
//! up an id; whoever starts a run or a call brings it.

use std::fmt;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

macro_rules! id_type {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
        #[serde(transparent)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Wraps the text of an id.
            pub fn new(id: impl Into<Arc<str>>) -> Self {
                Self(id.into())
            }

            /// Returns the text of the id.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(formatter, "{}({})", stringify!($name), self.0)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str(&self.0)
            }
        }

        impl From<&str> for $name {
            fn from(id: &str) -> Self {
                Self::new(id)
            }
        }

        impl From<String> for $name {
            fn from(id: String) -> Self {
                Self::new(id)
            }
        }
    };
}

id_type! {
    /// Names one run: the main agent's or a subagent's.
    RunId
}
id_type! {
    /// Names one tool call within a run.
    CallId
}
id_type! {
    /// Names the task a tool works for.
    TaskId
}
id_type! {
    /// Names the person on whose behalf a tool works; permission decisions may depend on it.
    UserId
}
id_type! {
    /// Says which agent acts, from the root down: `main`, `main/investigator`.
    AgentPath
}

impl AgentPath {
    /// Returns the path of a child of this agent.
    #[must_use]
    pub fn child(&self, name: &str) -> Self {
        Self::new(format!("{}/{name}", self.0))
    }

    /// Tells whether this is the root of a tree of agents.
    pub fn is_root(&self) -> bool {
        !self.0.contains('/')
    }
}

impl Default for AgentPath {
    fn default() -> Self {
        Self::new("main")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_a_plain_string_in_json() {
        let id = CallId::new("c-1");
        let json = serde_json::to_string(&id).unwrap();
        assert_eq!(json, "\"c-1\"");
        assert_eq!(serde_json::from_str::<CallId>(&json).unwrap(), id);
    }

    #[test]
    fn a_path_knows_its_root() {
        let main = AgentPath::default();
        let child = main.child("investigator");
        assert!(main.is_root());
        assert!(!child.is_root());
        assert_eq!(child.as_str(), "main/investigator");
    }
}
