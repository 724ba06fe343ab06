//! What flags say goes before what is configured.

use convoke::config::{Config, Dollars};

use super::flags::AgentFlags;

pub(super) fn apply(flags: &AgentFlags, config: &mut Config) {
    let limits = &flags.limits;
    if let Some(turns) = limits.max_turns {
        config.budget.turns = turns;
    }
    if let Some(cost) = limits.max_cost {
        config.budget.cost = Some(Dollars::from(cost));
    }
    if let Some(tokens) = limits.max_tokens {
        config.budget.tokens = Some(tokens);
    }
    if let Some(calls) = limits.max_tool_calls {
        config.budget.tool_calls = Some(calls);
    }
    if let Some(time) = limits.timeout {
        config.budget.time = time;
    }
    if let Some(time) = limits.turn_timeout {
        config.budget.turn_time = time;
    }
    if let Some(names) = &flags.tools {
        config.tools.enabled = Some(names.iter().map(|name| name.trim().to_owned()).collect());
    }
    if flags.no_tools {
        config.tools.enabled = Some(Vec::new());
    }
    if let Some(on_ask) = flags.on_ask {
        config.policy.on_ask = on_ask;
    }
    if let Some(timeout) = flags.approval_timeout {
        config.policy.approval_timeout = timeout;
    }
    if let Some(strategy) = flags.strategy {
        config.agent.strategy = strategy;
    }
}
