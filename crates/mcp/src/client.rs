//! MCP servers as configured: started when needed, watched, and their tools as ordinary tools.
//!
//! [`Servers`] is the handle of all of them. Each is described by a [`ServerConfig`] and reached over the
//! standard streams of a program that is started here, or over HTTP. A tool of a server is an [`McpTool`];
//! a program that calls it need not know that it is one. What a server wants from a person or a model in
//! the middle of a call goes to the [`Elicitor`] and the [`Sampler`] of that call. A remote server that wants
//! to know who asks is told by an [`Authorization`]; [`Logins`] is the one that logs in.
//!
//! A server is a stranger. What it says about its tools is believed only where the configuration says so;
//! its lists, texts, schemas and answers are bounded; and whatever it does, or does not do, the calls of
//! other servers go on.

mod address;
mod attach;
mod authorization;
mod backoff;
mod bounds;
mod calls;
mod complaint;
mod config;
mod connection;
mod elicit;
mod failure;
mod handler;
mod http;
mod import;
mod in_call;
mod last_words;
mod lines;
mod list;
mod logins;
mod manifest;
mod message;
mod name;
mod negotiate;
mod offer;
mod read;
mod reading_tools;
mod result;
mod rounds;
mod sample;
mod server;
mod servers;
mod setback;
mod state;
mod stderr;
mod surroundings;
mod task;
mod tool;

pub use address::{address_problem, plain_address};
pub use authorization::{Authorization, Refusal, Remote};
pub use config::{Revision, Sampling, ServerConfig, Transport, Trust};
pub use elicit::{ConcernedCall, Elicitation, Elicited, Elicitor, ElicitorHandle, Wanted};
pub use import::{
    Imported, ImportedLogin, Problem, Severity, USER_HOME, WORKSPACE_FOLDER, WORKSPACE_FOLDER_NAME,
    import, import_in,
};
pub use logins::Logins;
pub use name::names_begin;
pub use offer::{Prompt, PromptArgument, Resource, ResourceTemplate};
pub use sample::{Sample, SampleRequest, Sampler, SamplerHandle};
pub use servers::{ServerStanding, ServerStatus, Servers};
pub use setback::Setback;
pub use state::{Change, Changes, ServerState, Warning};
pub use surroundings::Surroundings;
pub use tool::McpTool;
