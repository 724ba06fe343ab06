//! Agents of a run that are not done when it is taken up again, and cannot be made any more: their files are gone or
//! wrong or not trusted, or settings forbid them. Those that found no model, as the run did then, are not done either.
//!
//! Their calls would be answered with an error, and what they did until then would be lost. Whoever takes the run up
//! is told before anything happens.

use std::sync::Arc;

use convoke_core::RunId;
use convoke_core::run::Child;

use crate::executor::Agent;
use crate::registry::Registered;
use crate::state::RunState;
use crate::team::Granted;
use crate::tree::Family;

/// An agent that is not done and cannot go on.
#[derive(Debug)]
pub(crate) struct Absent {
    pub(crate) name: String,
    pub(crate) why: String,
}

/// Finds an agent, anywhere below a run, that would be taken up with it and cannot be.
pub(crate) fn absent(agent: &Agent, root: &Arc<RunState>, family: &Family) -> Option<Absent> {
    let mut callers: Vec<(Arc<RunState>, Granted, Vec<String>)> =
        vec![(Arc::clone(root), agent.granted.clone(), Vec::new())];
    while let Some((caller, granted, lineage)) = callers.pop() {
        let unfinished: Vec<(RunId, Child)> = {
            let run = caller.lock();
            let once = |name: &str| agent.registered(name).is_some_and(|it| it.run.at_most_once);
            let found_no_model = run.without_model().filter(|(_, child)| !once(&child.name));
            let all = run.unfinished().chain(found_no_model);
            all.map(|(id, child)| (id.clone(), child.clone())).collect()
        };
        for (id, child) in unfinished {
            let state = family.run(&id);
            if family.is_counsel(&id, &child, state.is_some()) {
                continue;
            }
            match found(agent, &child, &granted, &lineage) {
                Err(why) => return Some(Absent { name: child.name, why }),
                Ok(found) => callers.extend(state.map(|state| {
                    let lineage: Vec<String> =
                        lineage.iter().cloned().chain([child.name.clone()]).collect();
                    (state, Granted::Only(found.agents.clone().into()), lineage)
                })),
            }
        }
    }
    None
}

/// Finds the agent that goes on as one that was called, or says why there is none.
fn found(
    agent: &Agent,
    child: &Child,
    granted: &Granted,
    lineage: &[String],
) -> Result<Arc<Registered>, String> {
    let Some(team) = &agent.team else { return Err("no agents can be called here".to_owned()) };
    let found = team.registry().get(&child.name);
    let found = found.ok_or_else(|| "there is no agent of that name".to_owned())?;
    if let Some(model) = &found.model.model {
        let asked = team.supplier().model(model);
        asked.map_err(|why| format!("its model cannot be asked here: {why}"))?;
    }
    // What worked in the background is taken up without another call.
    let is_callable = || team.callable(granted, lineage).iter().any(|one| one.name == child.name);
    if !child.background && !is_callable() {
        return Err(match lineage.last() {
            Some(caller) => format!(
                "`{caller}`, which called it, may not call it any more: its `agents` do not name it"
            ),
            None => "it may not be called here any more".to_owned(),
        });
    }
    Ok(found)
}
