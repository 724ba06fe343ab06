//! Whose calls these are, to whoever decides, where an agent is the first of its run.
//!
//! Rules name agents by where they are below the main one. An agent that nobody called has no main agent above
//! it, and rules for it hold all the same: it is judged as if the main agent had called it. So are its own
//! agents.
//!
//! What is recorded stays as it is, and so the path in its events is `main`. A path says where in the tree of its
//! run an agent is, and `main` is the first of any run: `main/NAME` would tell of a caller that there was none of,
//! and take the root from everything that finds it by its path (timelines, reports, journals that were begun
//! before). Who it is stands in the origin of the run, from where it is resumed and shown.

use std::sync::Arc;

use convoke_core::AgentPath;
use convoke_core::policy::Forbidden;
use convoke_tool::{Authorizer, Decision, Request};

/// Lets another decide, as if the main agent had called the agent.
#[derive(Debug)]
pub(crate) struct Acting {
    path: AgentPath,
    next: Arc<dyn Authorizer>,
}

impl Acting {
    pub(crate) fn new(name: &str, next: Arc<dyn Authorizer>) -> Self {
        Self { path: AgentPath::default().child(name), next }
    }

    fn path_of(&self, agent: &AgentPath) -> AgentPath {
        let below = agent.as_str().strip_prefix(AgentPath::default().as_str());
        AgentPath::new(format!("{}{}", self.path, below.unwrap_or_default()))
    }
}

impl Authorizer for Acting {
    fn decide(&self, request: &Request<'_>) -> Decision {
        self.next.decide(&request.of(&self.path_of(request.agent)))
    }

    fn forbidden(&self, request: &Request<'_>) -> Forbidden {
        self.next.forbidden(&request.of(&self.path_of(request.agent)))
    }
}

#[cfg(test)]
mod tests {
    use convoke_tool::testing::AllowAll;

    use super::*;

    #[test]
    fn it_and_its_agents_are_where_they_would_be_below_the_main_agent() {
        let acting = Acting::new("solo", Arc::new(AllowAll));
        let main = AgentPath::default();
        assert_eq!(acting.path_of(&main).as_str(), "main/solo");
        assert_eq!(acting.path_of(&main.child("helper")).as_str(), "main/solo/helper");
    }
}
