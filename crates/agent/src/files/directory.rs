//! Where files of agents lie.

use std::path::{Path, PathBuf};

/// How a file is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum AgentFormat {
    /// Our own form: Markdown with keys, or YAML.
    Convoke,
    /// Markdown as Gemini CLI has it.
    Gemini,
    /// Markdown as Claude Code has it.
    Claude,
    /// Markdown as `OpenCode` has it.
    OpenCode,
}

impl AgentFormat {
    /// Every format, in the order in which they are looked at.
    pub const ALL: &'static [Self] = &[Self::Convoke, Self::Gemini, Self::Claude, Self::OpenCode];

    /// Returns the word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Convoke => "convoke",
            Self::Gemini => "gemini",
            Self::Claude => "claude",
            Self::OpenCode => "opencode",
        }
    }

    /// Returns the format that a directory's name stands for: our own, unless it is called as another
    /// tool calls its directory.
    pub fn of_directory(path: &Path) -> Self {
        let mut names = path.components().rev().map(|name| name.as_os_str().to_string_lossy());
        let last = names.next().unwrap_or_default();
        let above = names.next().unwrap_or_default();
        match (above.as_ref(), last.as_ref()) {
            (".gemini", "agents") => Self::Gemini,
            (".claude", "agents") => Self::Claude,
            (".opencode" | "opencode", "agent" | "agents") => Self::OpenCode,
            _ => Self::Convoke,
        }
    }

    /// Tells whether files in directories below count too.
    pub(super) const fn is_deep(self) -> bool {
        matches!(self, Self::Claude | Self::OpenCode)
    }

    /// Tells whether a file with this ending can be an agent.
    pub(super) fn takes(self, path: &Path) -> bool {
        let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
        ending == "md" || (self == Self::Convoke && matches!(ending, "yml" | "yaml"))
    }
}

/// Whose a directory is. They count in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum AgentOrigin {
    /// The project's, which has to be trusted.
    Project,
    /// The user's.
    User,
    /// Another one that settings name.
    Extra,
}

/// Whether the project's agents may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProjectTrust {
    /// They may.
    Trusted,
    /// They may not, until somebody says so.
    Untrusted,
}

impl From<bool> for ProjectTrust {
    fn from(trusted: bool) -> Self {
        if trusted { Self::Trusted } else { Self::Untrusted }
    }
}

/// A directory with files of agents. It need not be there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentDirectory {
    /// The directory.
    pub path: PathBuf,
    /// How its files are written.
    pub format: AgentFormat,
    /// Whose it is.
    pub origin: AgentOrigin,
    /// Links in it may lead anywhere in here, and nowhere else.
    pub root: PathBuf,
}

impl AgentDirectory {
    /// Makes a directory that settings name. Links in it stay in it.
    pub fn extra(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        let format = AgentFormat::of_directory(&path);
        Self { root: path.clone(), path, format, origin: AgentOrigin::Extra }
    }
}

/// Lists the directories in which agents usually lie: the project's, then the user's. `config` is where
/// the user's settings are.
pub fn usual_directories(
    project: Option<&Path>,
    home: Option<&Path>,
    config: Option<&Path>,
) -> Vec<AgentDirectory> {
    use AgentFormat::{Claude, Convoke, Gemini, OpenCode};
    const PROJECT: &[(&str, AgentFormat)] = &[
        (".convoke/agents", Convoke),
        (".gemini/agents", Gemini),
        (".claude/agents", Claude),
        (".opencode/agent", OpenCode),
        (".opencode/agents", OpenCode),
    ];
    const HOME: &[(&str, AgentFormat)] = &[
        (".gemini/agents", Gemini),
        (".claude/agents", Claude),
        (".config/opencode/agent", OpenCode),
        (".config/opencode/agents", OpenCode),
    ];
    let below = |root: &Path, names: &[(&str, AgentFormat)], origin| {
        let directory = |(name, format): &(&str, AgentFormat)| AgentDirectory {
            path: root.join(name),
            format: *format,
            origin,
            root: root.to_owned(),
        };
        names.iter().map(directory).collect::<Vec<_>>()
    };
    let mut all =
        project.map(|root| below(root, PROJECT, AgentOrigin::Project)).unwrap_or_default();
    all.extend(config.map(|config| AgentDirectory {
        path: config.join("agents"),
        format: Convoke,
        origin: AgentOrigin::User,
        // A user's settings are often links into another directory at home.
        root: home.filter(|home| config.starts_with(home)).unwrap_or(config).to_owned(),
    }));
    all.extend(home.map(|home| below(home, HOME, AgentOrigin::User)).unwrap_or_default());
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_directories_are_the_projects_and_then_the_users() {
        let listed = |project, home, config| {
            let paths = usual_directories(project, home, config);
            paths.iter().map(|one| one.path.display().to_string()).collect::<Vec<_>>()
        };
        let project = Path::new("/code/app");
        let home = Path::new("/home/ann");
        let config = Path::new("/home/ann/.config/convoke");
        assert_eq!(
            listed(Some(project), Some(home), Some(config)),
            [
                "/code/app/.convoke/agents",
                "/code/app/.gemini/agents",
                "/code/app/.claude/agents",
                "/code/app/.opencode/agent",
                "/code/app/.opencode/agents",
                "/home/ann/.config/convoke/agents",
                "/home/ann/.gemini/agents",
                "/home/ann/.claude/agents",
                "/home/ann/.config/opencode/agent",
                "/home/ann/.config/opencode/agents",
            ]
        );
        assert_eq!(listed(None, None, None), [""; 0]);
        let own = usual_directories(None, Some(home), Some(config));
        assert_eq!(own[0].root, home);
        let elsewhere = usual_directories(None, Some(home), Some(Path::new("/etc/convoke")));
        assert_eq!(elsewhere[0].root, Path::new("/etc/convoke"));
    }

    #[test]
    fn a_directory_may_say_how_its_files_are_written() {
        for (path, format) in [
            ("/x/.claude/agents", AgentFormat::Claude),
            ("/x/.gemini/agents/", AgentFormat::Gemini),
            ("/x/.opencode/agent", AgentFormat::OpenCode),
            ("/x/.config/opencode/agents", AgentFormat::OpenCode),
            ("/x/agents", AgentFormat::Convoke),
            ("/x/.claude", AgentFormat::Convoke),
        ] {
            assert_eq!(AgentDirectory::extra(path).format, format, "{path}");
        }
    }
}
