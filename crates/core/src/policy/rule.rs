//! One rule: what it says, and whether it holds for a call.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::descent::{Descent, Walked};
use super::facts::{Base, Facts, Part};
use super::pattern::{Below, CommandPattern, Holds, HostPattern, PathPattern, plain, wildcard};
use super::shell::{self, Place, Role};
use super::touch::{Reach, Touch};
use crate::endpoint::Endpoint;
use crate::permission::Permission;
use crate::spec::{Category, Kind};

/// A rule as it is written. All of its conditions have to hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct RuleSpec {
    /// What happens to calls it holds for.
    pub effect: Permission,
    /// Name of the tool; `*` stands for any run of characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// Family of the tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub category: Option<Category>,
    /// What the call does to the world.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<Kind>,
    /// Path of the agent that calls, such as `main/reviewer`; `*` stands for any run of characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// A simple command, such as `git push *`; `*` alone stands for any number of words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Paths that the call touches, as a glob: absolute, from `~/`, or from the working directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Where the call is made, as a glob: the directory that a command runs in, or the one that is worked
    /// in. It is written like `path`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    /// A host the call talks to: `example.com`, `*.example.com`, `host:port`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Arguments by name, with `*` for any run of characters.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub args: BTreeMap<String, String>,
    /// Why, for whoever is told about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Commands, paths, hosts or tool names that it has to hold for; checked when it is loaded.
    #[serde(default, rename = "match", skip_serializing_if = "Vec::is_empty")]
    pub matches: Vec<String>,
    /// Commands, paths, hosts or tool names that it must not hold for; checked when it is loaded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_match: Vec<String>,
}

impl RuleSpec {
    /// Starts a rule without conditions.
    pub const fn new(effect: Permission) -> Self {
        Self {
            effect,
            tool: None,
            category: None,
            kind: None,
            agent: None,
            command: None,
            path: None,
            directory: None,
            host: None,
            args: BTreeMap::new(),
            reason: None,
            matches: Vec::new(),
            not_match: Vec::new(),
        }
    }

    /// Starts a rule on a command.
    pub fn command(effect: Permission, pattern: impl Into<String>) -> Self {
        Self { command: Some(pattern.into()), ..Self::new(effect) }
    }

    /// Starts a rule on a path.
    pub fn path(effect: Permission, pattern: impl Into<String>) -> Self {
        Self { path: Some(pattern.into()), ..Self::new(effect) }
    }

    /// Starts a rule on a tool.
    pub fn tool(effect: Permission, pattern: impl Into<String>) -> Self {
        Self { tool: Some(pattern.into()), ..Self::new(effect) }
    }

    /// Starts a rule on a host.
    pub fn host(effect: Permission, pattern: impl Into<String>) -> Self {
        Self { host: Some(pattern.into()), ..Self::new(effect) }
    }

    /// Returns its conditions for people.
    pub fn shown(&self) -> String {
        let texts = [
            ("tool", self.tool.as_deref()),
            ("category", self.category.map(Category::as_str)),
            ("kind", self.kind.map(Kind::as_str)),
            ("agent", self.agent.as_deref()),
            ("command", self.command.as_deref()),
            ("path", self.path.as_deref()),
            ("directory", self.directory.as_deref()),
            ("host", self.host.as_deref()),
        ];
        let named =
            texts.into_iter().filter_map(|(name, text)| Some(format!("{name} `{}`", text?)));
        let args = self.args.iter().map(|(name, pattern)| format!("argument {name} `{pattern}`"));
        named.chain(args).collect::<Vec<_>>().join(", ")
    }
}

/// A mistake in a rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {message}")]
pub struct RuleError {
    /// Which key of the rule it is about.
    pub key: &'static str,
    /// Which item of that key, if it is a list.
    pub item: Option<usize>,
    /// What is wrong.
    pub message: String,
}

/// What a rule cannot hold without.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Key {
    /// This tool.
    Tool(String),
    /// A tool whose name starts like this.
    ToolStart(String),
    /// This program; any, if there is none.
    Program(Option<String>),
    /// This host, or one that ends like this; any, if there is none.
    Host(Option<String>),
    /// A path in this directory, or the directory.
    Directory(String),
    /// A path with this name, or one that ends like this.
    Name(String),
    /// Some path.
    AnyPath,
    /// There is no such thing.
    Nothing,
}

/// A rule that is ready to be asked.
#[derive(Clone, Debug)]
pub struct Rule {
    spec: RuleSpec,
    command: Option<CommandPattern>,
    path: Option<PathPattern>,
    directory: Option<PathPattern>,
    host: Option<HostPattern>,
    place: Option<String>,
    /// Whether it holds for everything that starts programs, and for nothing else.
    on_programs: bool,
    /// Whether it holds for every change of files that are known to be those of its path, and for
    /// nothing else.
    on_changes: bool,
}

impl Rule {
    /// Makes a rule ready. `home` is what `~/` in its path stands for; `place` is where it is written.
    pub fn new(
        spec: RuleSpec,
        home: Option<&str>,
        place: Option<String>,
    ) -> Result<Self, RuleError> {
        let error = |key| move |message| RuleError { key, item: None, message };
        let glob = |text: &Option<String>, key| {
            let pattern = text.as_deref().map(|path| match (path.strip_prefix('~'), home) {
                (Some(rest), Some(home)) if rest.is_empty() || rest.starts_with('/') => {
                    PathPattern::new(&format!("{}{rest}", globset::escape(home)))
                }
                _ => PathPattern::new(path),
            });
            pattern.transpose().map_err(error(key))
        };
        let rule = Self {
            command: spec
                .command
                .as_deref()
                .map(CommandPattern::new)
                .transpose()
                .map_err(error("command"))?,
            path: glob(&spec.path, "path")?,
            directory: glob(&spec.directory, "directory")?,
            host: spec.host.as_deref().map(HostPattern::new).transpose().map_err(error("host"))?,
            place,
            spec,
            on_programs: false,
            on_changes: false,
        };
        if !rule.has_conditions() {
            let message = "a rule needs a condition: `tool: \"*\"` holds for every call".into();
            return Err(error("effect")(message));
        }
        Ok(rule)
    }

    /// Makes a rule on every call that starts programs, whatever its kind is.
    pub fn on_programs(effect: Permission, reason: impl Into<String>, place: String) -> Self {
        let spec = RuleSpec { reason: Some(reason.into()), ..RuleSpec::new(effect) };
        let place = Some(place);
        Self {
            spec,
            command: None,
            path: None,
            directory: None,
            host: None,
            place,
            on_programs: true,
            on_changes: false,
        }
    }

    /// Makes a rule that asks before files are changed, by whatever tool, command or redirection. The
    /// path is compared without upper and lower case.
    pub fn on_changes(path: &str, reason: &str, place: String) -> Result<Self, RuleError> {
        let pattern = PathPattern::without_case(path).map_err(|message| RuleError {
            key: "path",
            item: None,
            message,
        })?;
        let mut spec = RuleSpec::path(Permission::Ask, path);
        spec.reason = Some(reason.to_owned());
        Ok(Self {
            spec,
            command: None,
            path: Some(pattern),
            directory: None,
            host: None,
            place: Some(place),
            on_programs: false,
            on_changes: true,
        })
    }

    /// Checks the examples that a rule carries. Returns every one that is not as it says.
    pub fn check_examples(&self) -> Vec<RuleError> {
        let wrong = |key, wanted: bool, examples: &[String]| {
            let wrong =
                examples.iter().enumerate().filter(|(_, text)| self.holds_for(text) != wanted);
            let error = |(item, text): (usize, &String)| {
                let message = if wanted {
                    format!("the rule does not hold for `{text}`, but says it does")
                } else {
                    format!("the rule holds for `{text}`, but says it does not")
                };
                RuleError { key, item: Some(item), message }
            };
            wrong.map(error).collect::<Vec<_>>()
        };
        let mut errors = wrong("match", true, &self.spec.matches);
        errors.extend(wrong("not_match", false, &self.spec.not_match));
        errors
    }

    /// Tells whether it holds for an example: a command line, a path, a host or URL, or the name of a
    /// tool, by the first of these that the rule has a condition on.
    pub fn holds_for(&self, example: &str) -> bool {
        let root = Path::new("/");
        if let Some(pattern) = &self.command {
            let line = shell::read(example, Place { home: Some("~"), directory: "/" });
            let loosely = self.effect() != Permission::Allow;
            let covers = |command: &shell::Simple| {
                let unlisted = command.unlisted.as_ref().filter(|_| !loosely);
                pattern.covers(&command.words, loosely) == Holds::Yes
                    && unlisted.is_none_or(|unlisted| pattern.spells(unlisted))
            };
            return if loosely {
                line.commands.iter().any(covers)
            } else {
                let mut acts = line.commands.iter().filter(|command| command.role == Role::Acts);
                line.opaque.is_none()
                    && line.unread.is_none()
                    && !line.commands.is_empty()
                    && acts.all(covers)
            };
        }
        if let Some(pattern) = &self.path {
            return pattern.covers(&plain(Path::new(example), root), root);
        }
        if let Some(pattern) = &self.host {
            let endpoint = Endpoint::of_url(example).or_else(|| Endpoint::parse(example));
            return endpoint.is_some_and(|endpoint| pattern.covers(&endpoint) == Holds::Yes);
        }
        self.spec.tool.as_deref().is_none_or(|pattern| wildcard(pattern, example))
    }

    /// Returns what it does.
    pub const fn effect(&self) -> Permission {
        self.spec.effect
    }

    /// Returns it as it was written.
    pub const fn spec(&self) -> &RuleSpec {
        &self.spec
    }

    /// Returns why it is there, if somebody said so.
    pub fn reason(&self) -> Option<&str> {
        self.spec.reason.as_deref()
    }

    /// Returns where it is written.
    pub fn place(&self) -> Option<&str> {
        self.place.as_deref()
    }

    /// Tells whether it can hold for calls of an agent.
    pub fn concerns(&self, agent: &str) -> bool {
        self.spec.agent.as_deref().is_none_or(|pattern| wildcard(pattern, agent))
    }

    /// Tells whether it holds for every call of a kind that an agent makes.
    pub fn covers_kind(&self, kind: Kind, agent: &str) -> bool {
        if self.on_programs {
            return kind == Kind::Execute;
        }
        let RuleSpec { tool, category, command, path, directory, host, args, .. } = &self.spec;
        let on_some_calls = category.is_some()
            || [command, path, directory, host].into_iter().any(Option::is_some)
            || tool.as_deref().is_some_and(|tool| tool != "*")
            || !args.is_empty();
        !on_some_calls && self.spec.kind.is_none_or(|own| own == kind) && self.concerns(agent)
    }

    /// Returns its conditions for people.
    pub fn shown(&self) -> String {
        if self.on_programs { "all that starts programs".to_owned() } else { self.spec.shown() }
    }

    /// Returns the path that it keeps from everybody and everything, if it is a rule like that.
    pub(super) fn denied_path(&self, directory: &Path) -> Option<PathBuf> {
        let spec = &self.spec;
        let only = RuleSpec {
            path: spec.path.clone(),
            reason: spec.reason.clone(),
            matches: spec.matches.clone(),
            not_match: spec.not_match.clone(),
            ..RuleSpec::new(Permission::Deny)
        };
        self.path.as_ref().filter(|_| *spec == only)?.plain(directory)
    }

    /// Returns what it cannot hold without: of several things, the one that fewest calls have.
    pub(super) fn key(&self) -> Key {
        let tool = self.spec.tool.as_deref();
        if let Some(name) = tool.filter(|name| !name.contains('*')) {
            return Key::Tool(name.to_owned());
        }
        if let Some(pattern) = &self.command {
            return Key::Program(pattern.program().map(str::to_owned));
        }
        if let Some(pattern) = &self.host {
            return Key::Host(pattern.ending());
        }
        if let Some(pattern) = &self.path {
            return match (pattern.directory(), pattern.name()) {
                (Some(directory), _) => Key::Directory(directory.to_owned()),
                (None, Some(name)) => Key::Name(name),
                (None, None) => Key::AnyPath,
            };
        }
        match tool.and_then(|name| name.split('*').next()) {
            Some(start) if !start.is_empty() => Key::ToolStart(start.to_owned()),
            _ => Key::Nothing,
        }
    }

    fn has_conditions(&self) -> bool {
        !self.shown().is_empty()
    }

    /// Tells whether it is about paths, and all else that it says is so for a call.
    pub(super) fn is_on_paths_of(&self, facts: &Facts<'_>) -> bool {
        let changes = matches!(facts.kind, Kind::Edit | Kind::Delete | Kind::Move);
        (!self.on_changes || changes)
            && self.path.is_some()
            && self.command.is_none()
            && self.host.is_none()
            && self.spec.kind.is_none_or(|kind| kind == facts.kind)
            && self.fits(facts, facts.tool)
    }

    /// Tells whether a path is what it is about.
    pub(super) fn is_about(&self, path: &Path, directory: &Path) -> bool {
        self.path.as_ref().is_some_and(|pattern| pattern.covers(path, directory))
    }

    /// Tells whether what it says about the call as a whole is so, taken for one of this tool.
    fn fits(&self, facts: &Facts<'_>, tool: &str) -> bool {
        let spec = &self.spec;
        let fits =
            |pattern: &Option<String>, text| pattern.as_deref().is_none_or(|p| wildcard(p, text));
        let argument =
            |(name, pattern): (&String, &String)| argument_fits(facts.arguments, name, pattern);
        fits(&spec.tool, tool)
            && spec.category.is_none_or(|category| category == facts.category)
            && (!self.on_programs || facts.starts_programs)
            && fits(&spec.agent, facts.agent)
            && spec.args.iter().all(argument)
    }

    /// Tells whether it holds for one thing that a call would do.
    pub(super) fn holds(&self, facts: &Facts<'_>, part: &Part) -> Holds {
        if let (true, Some(pattern)) = (self.on_changes, &self.path) {
            let is_one = |touch: &Touch| match touch {
                Touch::At(path) => pattern.covers(path, &facts.world.directory),
                Touch::Below(start) => pattern.covers(Path::new(start), &facts.world.directory),
                Touch::Anywhere => false,
            };
            return (part.changes_files(facts.kind) && part.paths.iter().any(is_one)).into();
        }
        // Who allows a tool has not thought of every variable.
        if part.variable.is_some() && self.allows() && self.spec.args.is_empty() {
            return Holds::No;
        }
        let of_kind = self.spec.kind.is_none_or(|kind| part.is_kind(kind, facts.kind));
        if !of_kind || !self.fits(facts, part.tool(facts)) {
            return Holds::No;
        }
        let looks_inside = self.has_inner_conditions();
        let found = self.command(facts, part).min(self.paths(facts, part)).min(self.hosts(part));
        let mut found = found.min(self.directory(facts, part));
        // Of a program it is not known whether it changes the files that it names.
        if matches!(part.base, Base::Changes)
            && self.spec.kind.is_some_and(|kind| kind != facts.kind)
        {
            found = found.min(Holds::Perhaps);
        }
        if looks_inside && part.opaque.is_some() { found.max(Holds::Perhaps) } else { found }
    }

    fn has_inner_conditions(&self) -> bool {
        self.command.is_some() || self.path.is_some() || self.host.is_some()
    }

    /// Tells whether it is about commands, paths or hosts, and all else that it says is so for a part.
    pub(super) fn looks_inside(&self, facts: &Facts<'_>, part: &Part) -> bool {
        // A rule on changes of files judges the files that are named.
        if self.on_changes {
            return false;
        }
        self.has_inner_conditions()
            && self.spec.kind.is_none_or(|kind| part.is_kind(kind, facts.kind))
            && self.fits(facts, part.tool(facts))
    }

    fn allows(&self) -> bool {
        self.effect() == Permission::Allow
    }

    /// Tells whether it would allow a program for what it names only: `cat notes` and `bash notes` name
    /// the same.
    fn is_no_leave_to_run(&self, part: &Part) -> bool {
        self.allows() && part.command.is_some() && self.command.is_none()
    }

    fn command(&self, facts: &Facts<'_>, part: &Part) -> Holds {
        match (&self.command, &part.command) {
            (None, _) => Holds::Yes,
            (Some(pattern), Some(words)) => {
                // What `./build` is depends on where that is.
                let elsewhere = self.allows()
                    && self.directory.is_none()
                    && pattern.is_relative()
                    && !part.is_in(&facts.world.directory);
                let unlisted = part.unlisted.as_ref().filter(|_| self.allows());
                if elsewhere || unlisted.is_some_and(|unlisted| !pattern.spells(unlisted)) {
                    return Holds::No;
                }
                let plain = part.plain.as_ref().filter(|_| self.allows());
                let plain = plain.map_or(Holds::No, |words| pattern.covers(words, false));
                let covered = pattern.covers(words, !self.allows()).max(plain);
                covered.max(self.mentioned(part, pattern))
            }
            (Some(pattern), None) => self.mentioned(part, pattern),
        }
    }

    fn mentioned(&self, part: &Part, pattern: &CommandPattern) -> Holds {
        let mut sequences = part.mentions.commands().iter();
        perhaps(!self.allows() && sequences.any(|sequence| pattern.covers_tail(sequence)))
    }

    fn directory(&self, facts: &Facts<'_>, part: &Part) -> Holds {
        let Some(pattern) = &self.directory else { return Holds::Yes };
        self.over(part.directories.iter().map(|touch| covers(pattern, touch, facts)))
    }

    fn paths(&self, facts: &Facts<'_>, part: &Part) -> Holds {
        let Some(pattern) = &self.path else { return Holds::Yes };
        if self.is_no_leave_to_run(part) {
            return Holds::No;
        }
        let named = self.over(part.paths.iter().map(|touch| covers(pattern, touch, facts)));
        let is_below = |walked: &Walked| match (
            pattern.below(&walked.path, &facts.world.directory),
            walked.descent,
        ) {
            (Below::Here, _) | (Below::Anywhere, Descent::Sure) => true,
            (Below::Nothing, _) | (Below::Anywhere, Descent::Perhaps) => false,
        };
        if self.allows() || named == Holds::Yes {
            return named;
        }
        let mut mentioned = part.mentions.found().paths.iter();
        if named == Holds::Perhaps
            || mentioned.any(|touch| covers(pattern, touch, facts) != Holds::No)
        {
            return Holds::Perhaps;
        }
        if part.walked.iter().any(is_below) { Holds::Below } else { Holds::No }
    }

    fn hosts(&self, part: &Part) -> Holds {
        let Some(pattern) = &self.host else { return Holds::Yes };
        if self.is_no_leave_to_run(part) {
            return Holds::No;
        }
        let covers = |reach: &Reach| match reach {
            Reach::Known(host) => pattern.covers(host),
            Reach::Anywhere => Holds::Perhaps,
        };
        let named = self.over(part.hosts.iter().map(covers));
        if self.allows() || named != Holds::No {
            return named;
        }
        perhaps(part.mentions.found().hosts.iter().any(|reach| covers(reach) != Holds::No))
    }

    /// A rule that allows has to cover everything a call touches, one that forbids only something.
    fn over(&self, each: impl Iterator<Item = Holds>) -> Holds {
        let found = if self.allows() { each.min() } else { each.max() };
        found.unwrap_or(Holds::No)
    }
}

fn perhaps(holds: bool) -> Holds {
    if holds { Holds::Perhaps } else { Holds::No }
}

fn covers(pattern: &PathPattern, touch: &Touch, facts: &Facts<'_>) -> Holds {
    let directory = &facts.world.directory;
    match touch {
        Touch::At(path) => pattern.covers(path, directory).into(),
        Touch::Below(start) if pattern.reaches(start, directory) => Holds::Perhaps,
        Touch::Below(_) => Holds::No,
        Touch::Anywhere => Holds::Perhaps,
    }
}

fn argument_fits(arguments: &Value, name: &str, pattern: &str) -> bool {
    match arguments.get(name) {
        None => false,
        Some(Value::String(text)) => wildcard(pattern, text),
        Some(other) => wildcard(pattern, &other.to_string()),
    }
}
