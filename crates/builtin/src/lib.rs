//! The built-in tools of Convoke, one module a family.
//!
//! | family | tools |
//! | --- | --- |
//! | [`system`] | `current_time`, `sleep`, `get_env`, `set_env` |
//! | [`file`](mod@file) | `read_file`, `write_file`, `list_files`, `ls`, `delete_file`, `move_file`, `get_file_info` |
//! | [`search`] | `grep`, `glob` |
//! | [`edit`] | `edit_file` |
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
pub mod search;
pub mod shell;
pub mod system;
mod walk;

use std::sync::Arc;

use convoke_tool::Tool;

/// The tools a model is offered unless something else is said: few, because each costs attention.
pub const OFFERED_BY_DEFAULT: [&str; 7] =
    ["edit_file", "glob", "grep", "ls", "read_file", "run_command", "write_file"];

/// What the built-in tools can be told.
#[derive(Clone, Debug)]
pub struct Settings {
    /// How many bytes `read_file` reads at most.
    pub max_read_bytes: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self { max_read_bytes: 16 * 1024 * 1024 }
    }
}

/// Returns every built-in tool.
pub fn tools(settings: &Settings) -> Vec<Arc<dyn Tool>> {
    let families = [
        system::tools(),
        file::tools(settings.max_read_bytes),
        search::tools(),
        edit::tools(),
        data::tools(),
        shell::tools(),
    ];
    families.into_iter().flatten().collect()
}
