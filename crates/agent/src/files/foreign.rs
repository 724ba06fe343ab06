//! What other tools call things, as a table: tools, models, providers.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde::Deserialize;

use super::directory::AgentFormat;

const TABLES: &str = include_str!("foreign.json");

/// What one of the other tools calls things.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Names {
    tools: BTreeMap<String, Counterpart>,
    /// What is taken away with a tool, where that is more than what comes with it.
    #[serde(default)]
    without: BTreeMap<String, Vec<String>>,
    models: BTreeMap<String, Option<String>>,
    #[serde(default)]
    providers: BTreeMap<String, String>,
    /// Whether tools of servers are called `server_tool`, as no others are.
    #[serde(default)]
    plain_servers: bool,
}

/// What a foreign tool is here.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub(super) enum Counterpart {
    /// These tools.
    Tools(Vec<String>),
    /// Leave to call other agents.
    Agents(CalledAgents),
    /// Nothing.
    Nothing,
}

/// The word for agents in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum CalledAgents {
    Agents,
}

/// Returns what a tool is called here that another program calls so.
pub fn tool_here(name: &str) -> Option<String> {
    let found = AgentFormat::ALL.iter().find_map(|format| Names::of(*format).tool(name))?;
    match found {
        Counterpart::Tools(tools) => tools.into_iter().next(),
        _ => None,
    }
}

impl Names {
    /// Returns the table of a format. Our own has none.
    pub(super) fn of(format: AgentFormat) -> &'static Self {
        static ALL: OnceLock<BTreeMap<String, Names>> = OnceLock::new();
        static NONE: OnceLock<Names> = OnceLock::new();
        // A test reads every entry, so nothing is lost here.
        let all = ALL.get_or_init(|| serde_json::from_str(TABLES).unwrap_or_default());
        all.get(format.as_str()).unwrap_or_else(|| NONE.get_or_init(Self::default))
    }

    /// Returns what a tool is here. Our own names are known too. Case does not matter.
    pub(super) fn tool(&self, name: &str) -> Option<Counterpart> {
        if let Some((_, found)) =
            self.tools.iter().find(|(known, _)| known.eq_ignore_ascii_case(name))
        {
            return Some(found.clone());
        }
        let own = self.tools.values().any(|found| match found {
            Counterpart::Tools(tools) => tools.iter().any(|tool| tool == name),
            _ => false,
        });
        own.then(|| Counterpart::Tools(vec![name.to_owned()]))
    }

    /// Returns the name, marked as that of a tool of a server, where it can only be one.
    pub(super) fn of_server(&self, name: &str) -> Option<String> {
        let may_be = self.plain_servers && name.contains('_') && self.tool(name).is_none();
        // `web_fetch` is `webfetch`, and no tool of a server.
        let is_slip = || self.tool(&name.replace('_', "")).is_some();
        (may_be && !is_slip()).then(|| format!("mcp_{name}"))
    }

    /// Returns a pattern for all tools of servers that are called so, or more of them.
    pub(super) fn all_of_server(&self, name: &str) -> Option<String> {
        let pieces: Vec<&str> = name.split(['_', '*']).filter(|piece| !piece.is_empty()).collect();
        let any = |is_open: bool| if is_open { "*" } else { "" };
        let start = any(name.starts_with(['_', '*']));
        let end = any(name.ends_with(['_', '*']));
        self.of_server(name).map(|_| format!("mcp__{start}{}{end}", pieces.join("*")))
    }

    /// Returns the names of tools that are known.
    pub(super) fn tool_names(&self) -> impl Iterator<Item = &str> {
        self.tools.keys().map(String::as_str)
    }

    /// Returns what is taken away with a tool; a name that is not known stands for itself.
    pub(super) fn without(&self, name: &str) -> Vec<String> {
        let listed = self.without.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        match (listed, self.tool(name)) {
            (Some((_, tools)), _) => tools.clone(),
            (None, Some(Counterpart::Tools(tools))) => tools,
            (None, Some(_)) => Vec::new(),
            (None, None) => vec![name.to_owned()],
        }
    }

    /// Returns what a model is here; nothing for the caller's. A name that is not known stays as it is.
    pub(super) fn model(&self, name: &str) -> Option<String> {
        if let Some(found) = self.models.get(&name.to_ascii_lowercase()) {
            return found.clone();
        }
        match name.split_once('/') {
            Some((provider, model)) => {
                let provider = self.providers.get(provider).map_or(provider, String::as_str);
                Some(format!("{provider}/{model}"))
            }
            None => Some(name.to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use convoke_model::{Catalogue, ModelName};

    use super::*;

    /// Tools that are built in; a name that is none of them would be a tool that nobody has.
    const OURS: [&str; 13] = [
        "delete_file",
        "edit_file",
        "glob",
        "grep",
        "http_get",
        "http_post",
        "http_request",
        "ls",
        "move_file",
        "read_file",
        "run_command",
        "web_search",
        "write_file",
    ];

    #[test]
    fn every_entry_is_read_and_leads_to_a_tool_of_ours() {
        let all: BTreeMap<String, Names> = serde_json::from_str(TABLES).unwrap();
        assert_eq!(all.keys().collect::<Vec<_>>(), ["claude", "gemini", "opencode"]);
        for (format, names) in &all {
            let granted = names.tools.values().filter_map(|found| match found {
                Counterpart::Tools(tools) => Some(tools),
                _ => None,
            });
            for tool in granted.chain(names.without.values()).flatten() {
                assert!(OURS.contains(&tool.as_str()), "{format}: {tool}");
            }
            for name in names.without.keys() {
                assert!(names.tools.contains_key(name), "{format}: {name}");
            }
        }
    }

    #[test]
    fn every_model_is_one_whose_price_is_known() {
        let catalogue = Catalogue::new();
        for format in [AgentFormat::Claude, AgentFormat::Gemini] {
            for (alias, model) in &Names::of(format).models {
                let Some(model) = model else { continue };
                let name: ModelName = model.parse().unwrap();
                assert!(catalogue.facts(&name).price.is_some(), "{alias}: {model}");
            }
        }
    }

    #[test]
    fn names_are_translated_and_unknown_ones_kept() {
        let claude = Names::of(AgentFormat::Claude);
        for (name, model) in [
            ("inherit", None),
            ("Haiku", Some("anthropic/claude-haiku-4-5")),
            ("claude-opus-5-5", Some("claude-opus-5-5")),
            ("opusplan", Some("opusplan")),
        ] {
            assert_eq!(claude.model(name).as_deref(), model, "{name}");
        }
        let opencode = Names::of(AgentFormat::OpenCode);
        let model = opencode.model("google/gemini-2.5-pro");
        assert_eq!(model.as_deref(), Some("gemini/gemini-2.5-pro"));
        assert_eq!(claude.tool("bash"), Some(Counterpart::Tools(vec!["run_command".into()])));
        assert_eq!(claude.tool("Task"), Some(Counterpart::Agents(CalledAgents::Agents)));
        assert_eq!(claude.tool("TodoWrite"), Some(Counterpart::Nothing));
        assert_eq!(claude.tool("Telepathy"), None);
        assert_eq!(claude.without("Telepathy"), ["Telepathy"]);
        assert_eq!(claude.without("TodoWrite"), [""; 0]);
        assert_eq!(Names::of(AgentFormat::Convoke).tool("Bash"), None);
        for (name, marked, all) in [
            ("github_*", Some("mcp_github_*"), Some("mcp__github*")),
            ("my_db_query", Some("mcp_my_db_query"), Some("mcp__my*db*query")),
            ("*_query", Some("mcp_*_query"), Some("mcp__*query")),
            ("github_list", Some("mcp_github_list"), Some("mcp__github*list")),
            ("web_fetch", None, None),
            ("bash", None, None),
            ("doom_loop", None, None),
        ] {
            assert_eq!(opencode.of_server(name).as_deref(), marked, "{name}");
            assert_eq!(opencode.all_of_server(name).as_deref(), all, "{name}");
        }
        assert_eq!(claude.of_server("github_*"), None);
    }
}
