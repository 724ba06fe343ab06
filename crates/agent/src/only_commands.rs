//! Keeps an agent to the only commands it may run.
//!
//! Rules cannot say "all but these": what denies wins. So this stands before whoever decides otherwise,
//! denies what starts a program that is not one of the patterns, and leaves the rest to the other one. It
//! never allows anything itself.

use std::sync::Arc;

use convoke_core::policy::{Forbidden, RuleError};
use convoke_core::{Kind, ToolSpec};
use convoke_tool::{Authorizer, Decision, Request};
use serde_json::Value;

use crate::definition::{Commands, PolicyConfig};

/// The only commands an agent may run.
#[derive(Clone, Debug)]
pub struct CommandLimit {
    patterns: Vec<String>,
    commands: Commands,
}

impl CommandLimit {
    /// What says no where a command is none of the patterns.
    pub const RULE: &'static str = "the commands of the agent";

    /// Makes the limit of a policy, if it has one.
    pub fn of(policy: &PolicyConfig) -> Result<Option<Self>, RuleError> {
        let Some(patterns) = policy.commands.clone() else { return Ok(None) };
        let commands = Commands::new(patterns.iter())?;
        Ok(Some(Self { patterns, commands }))
    }

    /// Says why a call is refused, if it starts a program that is none of the patterns.
    pub fn refuses(&self, spec: &ToolSpec, arguments: &Value) -> Option<String> {
        if spec.kind != Kind::Execute && !spec.starts_programs {
            return None;
        }
        let line = arguments.get("command").and_then(Value::as_str);
        // What is run without a line that can be read is none of the patterns.
        let is_covered = line.is_some_and(|line| self.commands.covers(line));
        (!is_covered).then(|| self.reason())
    }

    fn reason(&self) -> String {
        let patterns: Vec<String> = self.patterns.iter().map(|one| format!("`{one}`")).collect();
        match patterns.as_slice() {
            [] => "this agent may not run commands".to_owned(),
            patterns => format!("this agent may run only {}", patterns.join(", ")),
        }
    }
}

/// Denies commands that are none of the patterns of an agent; another decides about the others.
#[derive(Debug)]
pub struct OnlyCommands {
    limit: CommandLimit,
    next: Arc<dyn Authorizer>,
}

impl OnlyCommands {
    /// Puts the limit of an agent, if it has one, before whoever decides.
    pub fn limit(
        policy: &PolicyConfig,
        next: Arc<dyn Authorizer>,
    ) -> Result<Arc<dyn Authorizer>, RuleError> {
        match CommandLimit::of(policy)? {
            Some(limit) => Ok(Arc::new(Self { limit, next })),
            None => Ok(next),
        }
    }
}

impl Authorizer for OnlyCommands {
    fn decide(&self, request: &Request<'_>) -> Decision {
        match self.limit.refuses(request.spec, &request.call.arguments) {
            Some(reason) => Decision::Deny { rule: CommandLimit::RULE.to_owned(), reason },
            None => self.next.decide(request),
        }
    }

    fn forbidden(&self, request: &Request<'_>) -> Forbidden {
        self.next.forbidden(request)
    }
}

#[cfg(test)]
mod tests {
    use convoke_core::ToolCall;
    use convoke_tool::testing::AllowAll;
    use convoke_tool::{FunctionTool, ToolContext, ToolExecutor, ToolRegistry, ToolView};
    use serde_json::json;

    use super::*;

    #[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
    struct Run {
        command: String,
    }

    async fn may_run(commands: Option<&[&str]>, kind: Kind, line: &str) -> bool {
        let registry = ToolRegistry::new();
        let run = async |run: Run, _: ToolContext| Ok::<_, String>(run.command);
        registry.register(FunctionTool::new("run", "Runs.", run).kind(kind)).unwrap();
        let policy = PolicyConfig {
            commands: commands.map(|all| all.iter().map(|one| (*one).to_owned()).collect()),
            ..PolicyConfig::default()
        };
        let authorizer = OnlyCommands::limit(&policy, Arc::new(AllowAll)).unwrap();
        let tools =
            ToolExecutor::builder(ToolView::of(registry), ToolContext::builder("t").build());
        let tools = tools.authorizer(authorizer).build();
        let call = ToolCall::new("1", "run", json!({ "command": line }));
        tools.execute(call).await.success()
    }

    #[tokio::test]
    async fn commands_that_are_none_of_the_patterns_are_denied() {
        let only: Option<&[&str]> = Some(&["git diff *", "cargo test"]);
        for (line, may) in [
            ("git diff --stat", true),
            ("cargo test", true),
            ("git push", false),
            ("git diff; rm x", false),
            ("git diff $(rm x)", false),
            ("git diff 'unfinished", false),
        ] {
            assert_eq!(may_run(only, Kind::Execute, line).await, may, "{line}");
        }
        assert!(!may_run(Some(&[]), Kind::Execute, "ls").await, "none at all");
    }

    #[tokio::test]
    async fn what_runs_no_command_and_an_agent_without_a_limit_are_left_alone() {
        assert!(may_run(Some(&["git diff *"]), Kind::Read, "rm x").await);
        assert!(may_run(None, Kind::Execute, "rm x").await);
    }
}
