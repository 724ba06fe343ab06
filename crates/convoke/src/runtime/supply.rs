//! What agents of a runtime need when they are called: a model, their own policy, a place to work.
//!
//! Everything here narrows. A policy stands beside the caller's and is the user's own with the mode of the
//! agent and its rules; a place has no directory that the caller does not have, or is a copy of one.

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use convoke_agent::definition::PolicyConfig;
use convoke_agent::{Premises, Supplier, Workplace};
use convoke_core::policy::{Authority, Layer, Policy, Rule, RuleError, Scope};
use convoke_core::{Permission, RunId, WorkspaceKind, WorkspacePlace, WorkspaceReport, causes};
use convoke_model::Model;
use convoke_tool::{Authorizer, ToolContext};

use super::agents::Agents;
use super::place::{Footing, Ground};
use super::{ModelSetupError, Runtime};
use crate::authorize::PolicyAuthorizer;
use crate::programs::Programs;
use crate::workspace::Workspace;

/// Makes what agents need.
#[derive(Debug)]
pub(super) struct Supply(Runtime);

impl Supply {
    /// Makes what agents of a runtime need.
    pub(super) fn of(runtime: &Runtime) -> Self {
        // Without the agents themselves, which hold this.
        let none = Agents::none();
        Self(Runtime { agents: Arc::new(none), ..runtime.clone() })
    }
}

impl Runtime {
    /// Returns what an agent may do below the main one: what that may, and its own policy allows.
    pub fn authority_of(&self, policy: &PolicyConfig) -> Result<Authority, RuleError> {
        let own = self.own_policy(policy, None)?;
        Ok(own.map_or_else(|| self.authority.clone(), |own| self.authority.child(own)))
    }

    /// Makes the policy of an agent: the user's, in the mode of the agent, with its own rules. What the user
    /// allowed by a rule need not be allowed again. Whose rules they are is said, where that is known.
    pub(super) fn own_policy(
        &self,
        policy: &PolicyConfig,
        agent: Option<&str>,
    ) -> Result<Option<Policy>, RuleError> {
        if *policy == PolicyConfig::default() {
            return Ok(None);
        }
        let home = self.setup.home.as_deref().and_then(Path::to_str);
        let mode = policy.mode.unwrap_or(self.setup.mode);
        let written = self.config.policy.policy(mode, home)?;
        let place = agent.map(|name| format!("the agent `{name}`"));
        let rule = |spec: &_| Rule::new(Clone::clone(spec), home, place.clone());
        let rules = policy.rules.iter().map(rule).collect::<Result<_, _>>()?;
        Ok(Some(written.layer(Layer::new(Scope::Agent, rules))))
    }

    fn decides_by(&self, policy: Policy) -> Arc<dyn Authorizer> {
        Arc::new(PolicyAuthorizer::new(Authority::new(policy), self.setup.home.clone()))
    }

    /// Finds the workspace of a run, or makes one of the files that its caller works with.
    async fn workspace_of(
        &self,
        kind: WorkspaceKind,
        run: &RunId,
        start: &Path,
        footing: &Footing,
    ) -> Result<Workspace, String> {
        let Some(workspaces) = &self.workspaces else {
            return Err(format!("there is no place for workspaces, so none of the kind `{kind}`"));
        };
        let made = async {
            if kind.is_own() {
                if workspaces.is_complete(run) {
                    return workspaces.open(run);
                }
                // A process that was lost while it made one left something that is of no use.
                workspaces.remove(run).await?;
            }
            let workspaces = workspaces.clone().keep_back(footing.kept_back().cloned());
            workspaces.prepare(kind, run, start).await
        };
        made.await.map_err(|error| said(&error))
    }
}

#[async_trait]
impl Supplier for Supply {
    fn model(&self, name: &str) -> Result<Arc<dyn Model>, String> {
        self.0.model(name).map_err(|error| match &error {
            ModelSetupError::Choice(choice) => format!("{error} ({})", choice.hint()),
            ModelSetupError::Provider(_) => error.to_string(),
        })
    }

    fn authorizer(&self, policy: &PolicyConfig) -> Result<Option<Arc<dyn Authorizer>>, String> {
        let wrong = |error: RuleError| error.to_string();
        let own = self.0.own_policy(policy, None).map_err(wrong)?;
        Ok(own.map(|own| self.0.decides_by(own)))
    }

    async fn premises(
        &self,
        kind: WorkspaceKind,
        run: &RunId,
        caller: &ToolContext,
    ) -> Result<Premises, String> {
        // Who may change nothing cannot let others change something, not even a copy.
        let kind = match Footing::kind(caller) {
            WorkspaceKind::Readonly => WorkspaceKind::Readonly,
            _ => kind,
        };
        // One that works by itself may have files of its own already, because its user said so.
        if kind.is_own() && self.0.workspace.as_ref().is_some_and(|own| own.is_of(run)) {
            return Ok(Premises { context: caller.clone(), authorizer: None, workplace: None });
        }
        let start = caller.working_directory();
        let footing = self.0.setup.footing(Some(caller), start).map_err(|error| said(&error))?;
        let workspace = match (kind, &self.0.workspaces) {
            (WorkspaceKind::Readonly, None) => Workspace::readonly(start),
            _ => self.0.workspace_of(kind, run, start, &footing).await?,
        };
        let allowed = caller.roots().paths().map(Path::to_owned).collect();
        let ground =
            self.0.setup.ground(start.to_owned(), Some(allowed), Some(&workspace), footing);
        let Ground { context, programs, mut policy, .. } = ground.map_err(|error| said(&error))?;
        let is_held = matches!(
            programs,
            Programs::Confined(..) | Programs::Unlimited(..) | Programs::NotAllowed
        );
        if kind == WorkspaceKind::Readonly && !is_held {
            let why = "nothing may be changed here, and programs cannot be kept from it";
            let rule = Rule::on_programs(Permission::Deny, why, "workspace".to_owned());
            policy = policy.layer(Layer::new(Scope::User, vec![rule]));
        }
        let workplace =
            kind.is_own().then(|| -> Arc<dyn Workplace> { Arc::new(Borrowed(workspace.clone())) });
        let context = context.with_extension(Arc::new(Tidied(workspace)));
        Ok(Premises { context, authorizer: Some(self.0.decides_by(policy)), workplace })
    }

    fn situate(&self, instructions: &str, place: &ToolContext) -> String {
        self.0.surroundings_of(place).with(instructions)
    }
}

/// Returns an error and what led to it in a line.
fn said(error: &(dyn std::error::Error + 'static)) -> String {
    causes::chain(error).map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

/// Removes what is needed only while somebody works in a workspace, when nobody does any more.
#[derive(Debug)]
struct Tidied(Workspace);

impl Drop for Tidied {
    fn drop(&mut self) {
        self.0.tidy();
    }
}

/// The workspace of an agent. At its end, one in which nothing was changed goes: the agent gets another if it
/// has more to do.
#[derive(Debug)]
struct Borrowed(Workspace);

#[async_trait]
impl Workplace for Borrowed {
    fn place(&self) -> WorkspacePlace {
        Workplace::place(&self.0)
    }

    fn notes(&self) -> Vec<String> {
        Workplace::notes(&self.0)
    }

    async fn changes(&self) -> Result<WorkspaceReport, String> {
        let report = Workplace::changes(&self.0).await?;
        if report.files.is_empty() && matches!(self.0.is_needed().await, Ok(false)) {
            // What cannot be removed now is found by whoever makes room.
            self.0.discard().await.ok();
        }
        Ok(report)
    }
}
