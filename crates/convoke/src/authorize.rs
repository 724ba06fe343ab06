//! Puts the question of the tool pipeline to the policy.

use std::path::{Path, PathBuf};

use convoke_core::policy::{self, Authority, Facts, Forbidden, World};
use convoke_core::{Effects, Permission, ToolSpec};
use convoke_tool::{Authorizer, Decision, Request, ToolContext};
use serde_json::Value;

/// Decides by an [`Authority`]: rules, the table by kind, and those of all agents above.
#[derive(Clone, Debug)]
pub struct PolicyAuthorizer {
    authority: Authority,
    home: Option<String>,
}

impl PolicyAuthorizer {
    /// Decides by this authority. `home` is what `~` stands for in commands.
    pub fn new(authority: Authority, home: Option<PathBuf>) -> Self {
        let home = home.and_then(|home| home.into_os_string().into_string().ok());
        Self { authority, home }
    }

    /// Says what holds for a call, and which rule says so.
    pub fn judge(
        &self,
        spec: &ToolSpec,
        arguments: &Value,
        effects: &Effects,
        agent: &str,
        context: &ToolContext,
    ) -> policy::Decision {
        let world = self.world(context);
        let mut facts = Facts::new(spec, arguments, effects, agent, &world);
        facts.paths.extend(linked(effects, context));
        facts.session_variables = context.environment().set_for_programs();
        self.authority.decide(&facts)
    }

    fn world(&self, context: &ToolContext) -> World {
        World {
            directory: context.working_directory().to_owned(),
            home: self.home.clone(),
            roots: context.roots().paths().map(Path::to_owned).collect(),
        }
    }
}

impl Authorizer for PolicyAuthorizer {
    fn decide(&self, request: &Request<'_>) -> Decision {
        let granted = request.granted;
        let world = self.world(request.context);
        let facts = facts(request, &world);
        let mut decided = self.authority.decide(&facts);
        if decided.permission == Permission::Ask && !granted.is_empty() {
            decided = self.authority.granting(granted).decide(&facts);
        }
        let (rule, reason) = (decided.source.to_string(), decided.reason);
        match decided.permission {
            Permission::Allow => Decision::Allow { rule },
            Permission::Ask => {
                let proposal = self.authority.granting(granted).propose(&facts);
                Decision::Ask { rule, reason, proposal }
            }
            Permission::Deny => Decision::Deny { rule, reason },
        }
    }

    fn forbidden(&self, request: &Request<'_>) -> Forbidden {
        let world = self.world(request.context);
        self.authority.forbidden(&facts(request, &world))
    }
}

fn facts<'a>(request: &Request<'a>, world: &'a World) -> Facts<'a> {
    let Request { call, spec, effects, agent, linked, context, .. } = request;
    let mut facts = Facts::new(spec, &call.arguments, effects, agent.as_str(), world);
    facts.paths.extend(linked.iter().map(|path| path.to_string_lossy().into_owned()));
    facts.session_variables = context.environment().set_for_programs();
    facts
}

/// Returns where the paths of a call lead to through links: a rule on a file holds for its other names.
fn linked(effects: &Effects, context: &ToolContext) -> Vec<String> {
    let place = |path| context.locate(path).ok();
    let places = effects.paths().filter_map(|(_, path)| place(path));
    let linked = places.filter_map(|place| {
        let (absolute, resolved) = (place.absolute(), place.resolved());
        (absolute != resolved).then(|| resolved.to_string_lossy().into_owned())
    });
    linked.collect()
}
