//! The built-in tools of Convoke, one module a family.
//!
//! | family | tools |
//! | --- | --- |
//! | [`system`] | `current_time`, `sleep`, `get_env`, `set_env` |
//! | [`file`](mod@file) | `read_file`, `write_file`, `list_files`, `ls`, `delete_file`, `move_file`, `get_file_info` |
//! | [`search`] | `grep`, `glob` |
//! | [`edit`] | `edit_file` |
//! | [`network`] | `http_get`, `http_post`, `http_request` |
//! | [`web_search`] | `web_search` |
//! | [`data`] | `json_parse`, `json_stringify`, `base64_encode`, `base64_decode` |
//! | [`shell`] | `run_command` |
//!
//! No tool here decides whether it may do something: permission, roots, time and processes come from
//! the pipeline and the [`ToolContext`](convoke_tool::ToolContext).

mod atomic;
pub mod data;
mod diff;
pub mod edit;
mod encoding;
pub mod file;
pub mod network;
mod refusal;
pub mod search;
pub mod shell;
pub mod system;
mod walk;
pub mod web_search;

use std::sync::Arc;

use convoke_tool::Tool;

use network::{HttpClient, HttpSettings};
use web_search::WebSearchSettings;

/// The tools a model is offered unless something else is said: few, because each costs attention.
pub const OFFERED_BY_DEFAULT: [&str; 7] =
    ["edit_file", "glob", "grep", "ls", "read_file", "run_command", "write_file"];

/// What the built-in tools can be told.
#[derive(Clone, Debug)]
pub struct Settings {
    /// How many bytes `read_file` reads at most.
    pub max_read_bytes: usize,
    /// How HTTP requests are made.
    pub http: HttpSettings,
    /// How the web is searched.
    pub web_search: WebSearchSettings,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            max_read_bytes: 16 * 1024 * 1024,
            http: HttpSettings::default(),
            web_search: WebSearchSettings::default(),
        }
    }
}

/// Returns every built-in tool.
pub fn tools(settings: &Settings) -> Vec<Arc<dyn Tool>> {
    let client = HttpClient::new(settings.http.clone());
    let families = [
        system::tools(),
        file::tools(settings.max_read_bytes),
        search::tools(),
        edit::tools(),
        network::tools(client.clone()),
        vec![web_search::tool(client, settings.web_search.clone())],
        data::tools(),
        shell::tools(),
    ];
    families.into_iter().flatten().collect()
}
