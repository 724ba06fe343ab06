//! The vocabulary of Convoke: what a tool is, what a call gives back, what happened and how it ended.
//!
//! Everything here is plain data that serialises with `serde` and describes itself with a JSON
//! Schema. The crate awaits nothing and never reads a clock, a file or a socket; ids and times come
//! in from outside. That is what lets a journal of these values rebuild a run exactly.
//!
//! | module | owns |
//! | --- | --- |
//! | [`id`] | ids as types that cannot be mixed up |
//! | [`time`] | wall time and durations as they appear in JSON |
//! | [`message`] | the conversation: messages and their parts |
//! | [`schema`] | JSON Schemas that are made when somebody looks |
//! | [`spec`] | what a tool says about itself |
//! | [`effect`] | what one call reads and writes |
//! | [`permission`] | allow, ask, deny |
//! | [`policy`] | rules: which call may be made, and which rule says so |
//! | [`result`], [`error`] | what one call gives back |
//! | [`event`], [`mission`] | the stream of everything that happens, and its older spelling |
//! | [`secret`] | values that nobody is to see |
//! | [`usage`] | tokens and money |
//! | [`ledger`] | what a tree of runs may use and has used |
//! | [`run`] | the run machine: what happened so far, and what to do next |
//! | [`outcome`] | how a run or a command ends, and its exit code |
//! | [`workspace`] | where a run works, and what it changed there |
//! | [`word`] | enums whose values are words |
//! | [`file_kind`] | what something is that is no file |
//! | [`glob`] | how much of a glob is still read |
//! | [`address`] | which addresses are not public |
//! | [`endpoint`] | the host and port that a URL leads to, as rules compare them |
//! | [`variable`] | environment variables that change nothing |
//! | [`causes`] | what led to an error |
//! | [`count`] | how many of something, in words |
//! | [`nearest`] | "did you mean" |

pub mod address;
pub mod causes;
pub mod count;
pub mod effect;
pub mod endpoint;
pub mod error;
pub mod event;
pub mod file_kind;
pub mod glob;
pub mod hook;
pub mod id;
pub mod ledger;
pub mod message;
pub mod mission;
pub mod nearest;
pub mod outcome;
pub mod permission;
pub mod policy;
pub mod result;
pub mod run;
pub mod schema;
pub mod secret;
pub mod spec;
pub mod time;
pub mod usage;
pub mod variable;
pub mod word;
pub mod workspace;

pub use effect::{Access, EffectRules, Effects, Resource};
pub use endpoint::Endpoint;
pub use error::{ErrorKind, ToolError};
pub use event::{Event, EventBody, Position};
pub use id::{AgentPath, CallId, RunId, TaskId, UserId};
pub use message::{Message, Part, Role, SERVER_TOOL_PREFIX, StopReason, ToolCall, USE_TOOL};
pub use outcome::{Cause, ExitCode, Outcome, Status};
pub use permission::{Mode, Permission};
pub use result::{Artifact, CallOutcome, Display, DisplayFormat, ToolResult, Truncation};
pub use run::{
    Budget, Effect, Ending, Limit, Purpose, ReflectionMode, Run, RunSettings, Strategy, TaskContext,
};
pub use schema::Schema;
pub use secret::{Secrets, Withheld};
pub use spec::{Category, Concurrency, Declaration, Kind, Repeat, ToolSpec};
pub use time::{Millis, Timestamp};
pub use usage::{ModelFacts, Money, Price, Usage};
pub use workspace::{Change, FileChange, WorkspaceKind, WorkspacePlace, WorkspaceReport};
