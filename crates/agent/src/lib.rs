//! Drives the run machine: asks the model, runs its tools, keeps the limits, records what happens.
//!
//! [`convoke_core::Run`] decides; this crate carries out. An [`AgentExecutor`] holds what the runs of
//! one agent share (model, tools, instructions, settings) and starts [`Running`] runs, each of which is a
//! stream of events that ends with a [`RunReport`]. The main agent and every subagent are driven by
//! the same code; what differs is data.
//!
//! | module | owns |
//! | --- | --- |
//! | [`definition`] | what an agent is, as it is written down |
//! | [`template`] | texts with gaps for inputs |
//! | [`check`], [`outline`] | whether a definition holds together; how it reads |
//! | `only_commands` | keeps an agent to the commands its definition names |
//! | `acting` | whose calls are judged, where an agent is the first of its run |
//! | [`files`] | agents from files: our own form, and those of other tools |
//! | [`registry`] | the agents there are, and how they change |
//! | [`shipped`] | the agents that come with the crate |
//! | [`executor`] | what the runs of an agent share, and how one starts |
//! | [`running`] | a run under way: its events, a handle to talk to it, its report |
//! | [`resume`] | taking a run up again |
//! | `keeper`, `journaled` | where the events of runs are kept, and that this is a journal |
//! | `drive` | the loop: decide, carry out, record |
//! | `equip` | what an agent gets of what its caller has |
//! | `manner` | how an agent is called, beside what goes into it |
//! | `settle` | what is recorded where nothing has to be carried out |
//! | `replay` | doing a recorded run again and comparing |
//! | `ask` | one use of the model: deltas, deadline, cancellation, cost |
//! | `completion` | `complete_task` and answers that have to have a shape |
//! | `compact`, `look_back` | summing up, planning, looking back |
//! | `workplace` | the place of its own in which a run works |
//! | `surroundings` | what an agent is told about where it works |
//! | [`prompts`] | every text a model is told, from files beside the source |

mod absent;
mod acting;
pub mod agent_tool;
mod ask;
pub mod background;
pub mod check;
mod compact;
mod completion;
mod counsel;
pub mod definition;
pub mod delegate;
mod desk;
pub mod direct;
mod drive;
mod equip;
pub mod executor;
pub mod files;
mod handover;
mod journaled;
mod keeper;
mod look_back;
mod manner;
mod member;
mod offer;
mod only_commands;
pub mod outline;
pub mod prompts;
pub mod registry;
mod replay;
pub mod resume;
mod rights;
pub mod running;
mod seat;
mod session;
mod settle;
pub mod shipped;
mod state;
mod subagent;
mod surroundings;
pub mod team;
pub mod template;
pub mod toolbox;
mod tree;
mod workplace;

pub use agent_tool::AgentTool;
pub use background::BACKGROUND_AGENTS;
pub use check::AGENT_NAME;
pub use convoke_core::run::OutputSpec;
pub use counsel::{Consultation, Counsel, consult};
pub use definition::{AgentDefinition, InputConfig, InputType};
pub use delegate::{DELEGATE_TO_AGENT, DelegateTool};
pub use desk::{LeaveResult, Letter};
pub use direct::{AgentReport, DirectError};
pub use executor::{AgentBuilder, AgentExecutor, AgentSetupError, Task, new_run_id};
pub use journaled::{Journaled, Journals, Reopened};
pub use keeper::{Keeper, Place};
pub use offer::ManyTools;
pub use only_commands::{CommandLimit, OnlyCommands};
pub use registry::{AgentOverride, AgentRegistry, RegistryChange};
pub use replay::{Difference, Replayed, replay};
pub use resume::{NotResumable, Paused, last_said};
pub use rights::AgentRights;
pub use running::{NotHeard, RunHandle, RunReport, Running};
pub use surroundings::{Saying, Surroundings};
pub use team::{Delegation, NoSupplier, Premises, Supplier, Team, TeamBuilder};
pub use toolbox::{ToolKind, Toolbox};
pub use tree::TreeLimits;
pub use workplace::Workplace;

/// The main agent is driven like any other; what makes it the main one is how it is set up.
pub type MainAgent = AgentExecutor;
