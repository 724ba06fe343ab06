//! What an agent is given of what its caller has: tools, permissions, a place, limits. Never more than that.

use std::sync::Arc;
use std::time::Duration;

use convoke_core::run::{Budget, RunSettings};
use convoke_core::{
    Ending, Millis, ModelFacts, Money, ReflectionMode, RunId, Strategy, WorkspaceKind,
};
use convoke_model::Settings;
use convoke_tool::{ExecutorBuilder, Selection, ToolView};

use crate::agent_tool::Redeclared;
use crate::definition::{AgentDefinition, ToolChoice};
use crate::only_commands::OnlyCommands;
use crate::rights::AgentRights;
use crate::team::{NoSupplier, Premises, Supplier, Team};

/// Returns who makes what agents need. Where there is no team, nobody does, and what asks for it is refused.
pub(crate) fn supplier(team: Option<&Team>) -> &dyn Supplier {
    match team {
        Some(team) => team.supplier(),
        None => &NoSupplier,
    }
}

/// Narrows what an agent may do to its own policy, and to what it had when its run began; and gives it the place to
/// work in that its definition asks for.
pub(crate) async fn equipped(
    definition: &AgentDefinition,
    then: Option<&AgentRights>,
    run: &RunId,
    supplier: &dyn Supplier,
    mut tools: ExecutorBuilder,
) -> Result<(ExecutorBuilder, Option<Premises>), String> {
    let own = definition.policy.clone();
    let before = then.map(AgentRights::policy).filter(|before| *before != own);
    for policy in [own].into_iter().chain(before) {
        if let Some(own) = supplier.authorizer(&policy)? {
            tools = tools.narrowed_by(own);
        }
        if policy.commands.is_some() {
            let caller = Arc::clone(tools.permission());
            let limited = OnlyCommands::limit(&policy, caller);
            tools = tools.authorizer(limited.map_err(|error| error.to_string())?);
        }
    }
    housed(definition, run, supplier, tools).await
}

/// Gives an agent the place to work in that its definition asks for.
async fn housed(
    definition: &AgentDefinition,
    child: &RunId,
    supplier: &dyn Supplier,
    tools: ExecutorBuilder,
) -> Result<(ExecutorBuilder, Option<Premises>), String> {
    let kind = definition.run.workspace.filter(|kind| *kind != WorkspaceKind::Shared);
    let Some(kind) = kind else { return Ok((tools, None)) };
    let premises = supplier.premises(kind, child, tools.used()).await?;
    let mut tools = tools.context(premises.context.clone());
    if let Some(own) = &premises.authorizer {
        tools = tools.narrowed_by(Arc::clone(own));
    }
    Ok((tools, Some(premises)))
}

/// Returns the tools of an agent: those it names of the ones its caller could have, or the ones its caller
/// has.
pub(crate) fn view_of(
    definition: &AgentDefinition,
    shown: &ToolView,
    ceiling: &ToolView,
) -> Result<ToolView, String> {
    let config = &definition.tools;
    let Some(choices) = &config.allow else {
        let exclude: Vec<&String> =
            config.exclude.iter().filter(|name| is_there(shown, name)).collect();
        let selection = Selection::all().without(exclude);
        return shown.select(&selection).map_err(|error| error.to_string());
    };
    let named = choices.iter().filter(|choice| !matches!(choice, ToolChoice::Given(_)));
    // What there is and its caller cannot have is left out; what there is not is a mistake.
    let withheld: Vec<&str> = {
        let names = choices.iter().map(ToolChoice::name);
        names.filter(|name| is_withheld(ceiling, name)).collect()
    };
    if !withheld.is_empty() && withheld.len() == choices.len() {
        return Err(format!("its caller can have none of its tools ({})", withheld.join(", ")));
    }
    let named = named.filter(|choice| !withheld.contains(&choice.name()));
    let mut selection = Selection::only(named.map(|choice| choice.name().to_owned()));
    let excluded = config.exclude.iter().filter(|name| is_there(ceiling, name));
    selection = selection.without(excluded);
    let view = ceiling.select(&selection).map_err(|error| error.to_string())?;
    let own = choices.iter().filter_map(|choice| match choice {
        ToolChoice::Given(tool) => Some(Arc::clone(tool)),
        ToolChoice::Declared(declaration) => {
            let tool = view.get(&declaration.name)?;
            Some(Redeclared::tool(tool, declaration.clone()))
        }
        ToolChoice::Named(_) => None,
    });
    Ok(view.and(own.collect::<Vec<_>>()))
}

/// Returns what an agent may use and how it ends: of everything, the less of what it asks for and what is
/// left.
pub(crate) fn settings_of(
    definition: &AgentDefinition,
    model: &ModelFacts,
    left: &Budget,
    caller: &RunSettings,
) -> RunSettings {
    let wanted = &definition.run;
    RunSettings {
        budget: Budget {
            turns: lesser(wanted.max_turns, Some(left.turns)).unwrap_or(left.turns).max(1),
            time_ms: Millis::new(shorter(wanted.max_time, left.time_ms.get())),
            turn_time_ms: left.turn_time_ms,
            tokens: lesser(wanted.max_tokens, left.tokens),
            cost: lesser::<Money>(wanted.max_cost, left.cost),
            tool_calls: lesser(wanted.max_tool_calls, left.tool_calls),
        },
        ending: Ending::CompleteTask,
        output: definition.output.clone(),
        strategy: Strategy::Direct,
        reflection: ReflectionMode::Off,
        model: *model,
        max_repeats: caller.max_repeats,
        on_stuck: wanted.on_stuck.unwrap_or(caller.on_stuck),
        max_rescues: caller.max_rescues,
        compact_at_percent: caller.compact_at_percent,
    }
}

/// Tells whether a tool is there, but not for this caller.
fn is_withheld(ceiling: &ToolView, name: &str) -> bool {
    ceiling.registry().has(name) && ceiling.get(name).is_none()
}

/// Tells whether something is excluded that there is, or that a server may bring; other names exclude nothing.
fn is_there(view: &ToolView, name: &str) -> bool {
    name.contains(['*', ':']) || view.get(name).is_some() || view.registry().may_come(name)
}

fn lesser<T: Ord>(wanted: Option<T>, left: Option<T>) -> Option<T> {
    match (wanted, left) {
        (Some(wanted), Some(left)) => Some(wanted.min(left)),
        (wanted, left) => wanted.or(left),
    }
}

fn shorter(wanted: Option<Duration>, left: Duration) -> Duration {
    wanted.map_or(left, |wanted| wanted.min(left))
}

/// Returns how a model is asked: as the agent says, and otherwise as its caller does.
pub(crate) fn over(own: &Settings, caller: &Settings) -> Settings {
    Settings {
        temperature: own.temperature.or(caller.temperature),
        top_p: own.top_p.or(caller.top_p),
        thinking_budget: own.thinking_budget.or(caller.thinking_budget),
        reasoning_effort: own.reasoning_effort.or(caller.reasoning_effort),
        max_output_tokens: own.max_output_tokens.or(caller.max_output_tokens),
    }
}
