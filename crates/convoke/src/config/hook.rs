//! The `hooks` section: commands that are told what happens, and may have a say.

use convoke_core::hook::Moment;
use convoke_core::policy::wildcard;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::timeout::Timeout;

/// A command that is called at moments of a run, with the event as JSON on its standard input.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub struct HookConfig {
    /// Its name in messages; the program's, without the key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64))]
    pub name: Option<String>,
    /// When it is called.
    #[schemars(length(min = 1))]
    pub on: Vec<Moment>,
    /// Only for tools of this name; `*` stands for any run of characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The program and its arguments. No shell reads them.
    #[schemars(length(min = 1))]
    pub command: Vec<String>,
    /// Whether it decides: it may refuse or change what is about to happen, or have a person asked, and if
    /// it fails, nothing happens. Without the key it only watches.
    #[serde(default)]
    pub guard: bool,
    /// How long it may take.
    #[serde(default = "ten_seconds")]
    pub timeout: Timeout,
}

impl HookConfig {
    /// Tells whether it is called at a moment, for an event that is about this tool or about none.
    pub fn is_called(&self, moment: Moment, tool: Option<&str>) -> bool {
        let fits = |pattern: &str| tool.is_some_and(|name| wildcard(pattern, name));
        self.on.contains(&moment) && self.tool.as_deref().is_none_or(fits)
    }

    /// Returns its name in messages.
    pub fn title(&self) -> &str {
        let program = self.command.first().map(String::as_str).unwrap_or_default();
        let short = program.rsplit('/').next().unwrap_or(program);
        self.name.as_deref().unwrap_or(short)
    }
}

/// Who wrote something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Author {
    /// The user, in a file, a variable or a flag.
    User,
    /// The project that is worked on.
    Project,
}

const fn ten_seconds() -> Timeout {
    Timeout::from_millis(10_000)
}
