//! Configuration: from what the user wrote to a [`Config`] that knows where every value comes from.
//!
//! Five layers, the later one wins: built in, the user's file, the project's file, `CONVOKE__…`
//! variables, `--set` flags. Mappings are merged key by key; anything else, lists included, is
//! replaced as a whole.
//!
//! What always holds:
//!
//! - Every mistake is reported, each with its place, its key and what was expected; nothing is
//!   silently dropped. What is ignored is in [`Loaded::warnings`].
//! - A project's file never allows more than the user does, and one that is not trusted sets only the keys of
//!   a short list of harmless ones. Of one that is trusted, an entry that the user has not seen is left out.
//! - A secret, and text taken from the environment, is in no message and no listing.
//! - There is one list of keys: the Rust types. The schema is made from them, and everything else
//!   goes by the schema.
//!
//! What it does not do: read the process environment, look for the home directory, write files.
//!
//! ```
//! use convoke::config::{Sources, load};
//!
//! let mut sources = Sources::new("/");
//! sources.project_directory = None;
//! sources.environment.insert("CONVOKE__TOOLS__TIMEOUT".into(), "5000".into());
//! let loaded = load(&sources)?;
//! assert_eq!(loaded.config.tools.timeout.as_millis(), 5000);
//! let why = loaded.explain("tools.timeout").expect("the key exists");
//! let origin = why.origin.expect("it has a value");
//! assert_eq!(origin.to_string(), "environment (environment variable CONVOKE__TOOLS__TIMEOUT)");
//! # Ok::<(), convoke::config::ConfigError>(())
//! ```

mod agent;
mod agents;
mod amount;
mod budget;
mod check;
mod coerce;
mod command;
mod digest;
mod discreet;
pub(crate) mod disk;
mod entry;
mod expand;
mod explain;
mod facts;
mod hook;
pub(crate) mod interpolate;
mod key;
mod load;
mod loaded;
mod mcp;
mod model;
mod narrow;
mod network;
mod node;
mod origin;
mod overrides;
mod paths;
mod pattern;
mod permission;
mod problem;
mod provider;
mod sandbox;
mod schema;
mod secret;
mod servers;
mod settings;
mod size;
mod sources;
mod timeout;
mod tools;
mod trust;
mod trust_store;
mod walk;
mod yaml;

pub use agent::AgentConfig;
pub use agents::{AgentOverrideConfig, AgentsConfig, ContextWord, DelegationWord};
pub use amount::Dollars;
pub use budget::BudgetConfig;
pub use command::CommandConfig;
pub use digest::{Digest, NotADigest};
pub use discreet::{address_without_keys, words_without_keys};
pub use entry::{EntryContent, EntryState, EntryTrust, ProjectEntry, TrustedEntries};
pub use explain::{ExplainError, Explanation, Overridden};
pub use facts::{FactsConfig, PriceConfig};
pub use hook::{Author, HookConfig};
pub use load::{load, parse_file};
pub use loaded::{ConfigFile, Entry, FileState, Loaded};
pub use mcp::{McpAuthConfig, McpRevision, McpServerConfig};
pub use model::ModelConfig;
pub use network::{HttpConfig, WebSearchConfig, WebSearchProvider};
pub use origin::{Layer, Origin, Place, Position};
pub use overrides::VARIABLE_PREFIX;
pub use paths::WORKSPACE;
pub use permission::{OnAsk, PolicyConfig};
pub use problem::{ConfigError, Problem};
pub use provider::{ProviderConfig, WireWord};
pub use sandbox::{SandboxBackend, SandboxConfig, SandboxLimits, SandboxMode, SandboxNetwork};
pub use schema::config_schema;
pub use secret::{MASK, Secret};
pub use settings::Config;
pub use size::{Size, SizeError, parse_bytes};
pub use sources::{MoreTools, PROJECT_FILE_NAMES, Sources, Trust};
pub use timeout::{DurationError, Timeout};
pub use tools::{TimeoutsConfig, ToolsConfig};
pub use trust_store::{TrustError, TrustStore};

pub(crate) use entry::{CommandWords, left_out_warning};
pub(crate) use pattern::covers;
pub(crate) use problem::printable;
