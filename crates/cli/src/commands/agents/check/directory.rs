//! Which directories somebody means who names one, and which files in it are agents.
//!
//! A directory that is not there for agents has other files too. What does not look like an agent is passed over,
//! and counted, so that a file that was meant to be one is missed.

use std::path::{Path, PathBuf};

use convoke::agent::files::{
    AgentDirectory, AgentOrigin, Draft, FileNote, LoadReport, usual_directories,
};
use convoke::config::PROJECT_FILE_NAMES;

use crate::files;

/// Directories of tools, in which a folder has the agents.
const OF_TOOLS: &[&str] = &[".convoke", ".claude", ".gemini", ".opencode", "opencode"];
/// What such a folder is called.
const FOLDERS: &[&str] = &["agents", "agent"];

/// Returns the directories that are meant by one: itself, and the folders below it where agents usually are.
pub(super) fn meant(path: &Path, usual: &[AgentDirectory]) -> Vec<AgentDirectory> {
    if let Some(usual) = usual.iter().find(|usual| is_same(&usual.path, path)) {
        return vec![usual.clone()];
    }
    let path: PathBuf = path.components().collect();
    let mut all = usual_directories(Some(&path), None, None);
    if is_called(&path, OF_TOOLS) {
        all.extend(FOLDERS.iter().map(|folder| AgentDirectory::extra(path.join(folder))));
    }
    all.push(AgentDirectory::extra(path));
    all
}

/// Takes the files out of a report that are no agents, and returns how many these are.
pub(super) fn without_others(report: &mut LoadReport) -> usize {
    let others: Vec<PathBuf> = report
        .drafts
        .iter()
        .filter(|draft| draft.source.origin == AgentOrigin::Extra && !looks_like_agent(draft))
        .map(|draft| draft.source.path.clone())
        .collect();
    let is_other = |path: &Path| others.iter().any(|other| other == path);
    report.drafts.retain(|draft| !is_other(&draft.source.path));
    for notes in [&mut report.problems, &mut report.warnings] {
        notes.retain(|note: &FileNote| !is_other(&note.path));
    }
    others.len()
}

/// Tells whether a file that is no agent was meant to be one.
fn looks_like_agent(draft: &Draft) -> bool {
    let path = &draft.source.path;
    if path.parent().is_some_and(|directory| is_called(directory, FOLDERS)) {
        return true;
    }
    let is_text = path.extension().is_some_and(|ending| ending == "md");
    if is_called(path, PROJECT_FILE_NAMES) {
        false
    } else if draft.definition.is_none() {
        // Keys that cannot be read are keys all the same.
        !is_text || files::read_regular(path).is_ok_and(|text| text.starts_with("---"))
    } else {
        let has = |keys: &[&str]| draft.lines.first(keys).is_some();
        has(&["description", "system_prompt"]) || (is_text && has(&["name"]))
    }
}

/// Says where agents are, for whoever looked elsewhere.
pub(super) fn where_agents_are(path: &Path) -> String {
    if is_called(path, OF_TOOLS) {
        return format!("its agents would be in {}", path.join("agents").display());
    }
    "agents of a project are in .convoke/agents, .claude/agents, .gemini/agents and .opencode/agent"
        .to_owned()
}

fn is_called(path: &Path, names: &[&str]) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    name.is_some_and(|name| names.contains(&name))
}

/// Tells whether two paths lead to the same place.
pub(in crate::commands::agents) fn is_same(one: &Path, other: &Path) -> bool {
    match (one.canonicalize(), other.canonicalize()) {
        (Ok(one), Ok(other)) => one == other,
        _ => false,
    }
}
