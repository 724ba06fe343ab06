//! Which rules may hold for one thing that a call would do, without asking all of them.
//!
//! Every rule is kept under one thing that it cannot hold without: a tool, a program, a host, or a
//! directory. What is found is asked in the order in which the rules were written, so a decision is
//! the same as if all were asked; a test compares the two.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use super::descent::{Descent, Walked};
use super::facts::{Facts, Part};
use super::rule::{Key, Rule};
use super::touch::{Reach, Touch};

type Numbers = Vec<usize>;

/// Rules by what they cannot hold without. Each is a number: its place among all rules.
#[derive(Clone, Debug, Default)]
pub(super) struct Index {
    /// Where each rule is: which layer, and which rule of it.
    places: Vec<(usize, usize)>,
    /// Rules without such a thing.
    others: Numbers,
    tools: HashMap<String, Numbers>,
    tool_patterns: Vec<(String, usize)>,
    programs: HashMap<String, Numbers>,
    program_patterns: Numbers,
    hosts: HashMap<String, Numbers>,
    host_patterns: Numbers,
    /// By the directory that everything they cover lies in.
    directories: BTreeMap<String, Numbers>,
    /// By a name on the path, or the ending of the file's name after a dot; in lower case.
    names: HashMap<String, Numbers>,
    path_patterns: Numbers,
    /// All rules that look at what is done: for what is not known, each of them may hold.
    by_command: Numbers,
    by_host: Numbers,
    by_path: Numbers,
}

impl Index {
    pub(super) fn new<'a>(rules: impl Iterator<Item = (usize, usize, &'a Rule)>) -> Self {
        let mut index = Self::default();
        for (number, (layer, at, rule)) in rules.enumerate() {
            index.places.push((layer, at));
            index.add(number, rule.key());
        }
        index
    }

    fn add(&mut self, number: usize, key: Key) {
        let keep = |map: &mut HashMap<String, Numbers>, key: String| {
            map.entry(key).or_default().push(number);
        };
        match key {
            Key::Tool(name) => keep(&mut self.tools, name),
            Key::ToolStart(start) => self.tool_patterns.push((start, number)),
            Key::Program(name) => {
                self.by_command.push(number);
                match name {
                    Some(name) => keep(&mut self.programs, name),
                    None => self.program_patterns.push(number),
                }
            }
            Key::Host(name) => {
                self.by_host.push(number);
                match name {
                    Some(name) => keep(&mut self.hosts, name),
                    None => self.host_patterns.push(number),
                }
            }
            Key::Directory(directory) => {
                self.by_path.push(number);
                self.directories.entry(directory).or_default().push(number);
            }
            Key::Name(name) => {
                self.by_path.push(number);
                keep(&mut self.names, name);
            }
            Key::AnyPath => {
                self.by_path.push(number);
                self.path_patterns.push(number);
            }
            Key::Nothing => self.others.push(number),
        }
    }

    /// Returns where all rules are that may hold, in their order.
    pub(super) fn candidates(
        &self,
        facts: &Facts<'_>,
        part: &Part,
    ) -> impl Iterator<Item = (usize, usize)> {
        let numbers = self.numbers(facts, part);
        numbers.into_iter().filter_map(|number| self.places.get(number).copied())
    }

    fn numbers(&self, facts: &Facts<'_>, part: &Part) -> Numbers {
        let mut found = self.others.clone();
        let tool = part.tool(facts);
        found.extend(self.tools.get(tool).into_iter().flatten());
        let fitting = self.tool_patterns.iter().filter(|(start, _)| tool.starts_with(start));
        found.extend(fitting.map(|(_, number)| *number));
        if part.opaque.is_some() || part.hides() {
            found.extend(&self.by_command);
            found.extend(&self.by_host);
            found.extend(&self.by_path);
        } else {
            self.commands(part, &mut found);
            self.hosts(part, &mut found);
            self.paths(facts, part, &mut found);
        }
        found.sort_unstable();
        found.dedup();
        found
    }

    fn commands(&self, part: &Part, found: &mut Numbers) {
        if self.by_command.is_empty() {
            return;
        }
        let own = part.command.iter().flatten().take(1);
        let mentioned = part.mentions.commands().iter().flatten();
        let mut words = own.chain(mentioned).peekable();
        if words.peek().is_some() {
            found.extend(&self.program_patterns);
        }
        for word in words {
            let Some(text) = word.text() else { return found.extend(&self.by_command) };
            let bare = text.rsplit('/').next().unwrap_or(text);
            let lower = bare.to_ascii_lowercase();
            for name in [text, bare, &lower] {
                found.extend(self.programs.get(name).into_iter().flatten());
            }
        }
    }

    fn hosts(&self, part: &Part, found: &mut Numbers) {
        if self.by_host.is_empty() {
            return;
        }
        found.extend(&self.host_patterns);
        for reach in part.hosts.iter().chain(&part.mentions.found().hosts) {
            let Reach::Known(endpoint) = reach else { return found.extend(&self.by_host) };
            let name = endpoint.name();
            found.extend(self.hosts.get(&name).into_iter().flatten());
            for (dot, _) in name.match_indices('.') {
                let below = name.get(dot..).unwrap_or_default();
                found.extend(self.hosts.get(below).into_iter().flatten());
            }
        }
    }

    fn paths(&self, facts: &Facts<'_>, part: &Part, found: &mut Numbers) {
        if self.by_path.is_empty() {
            return;
        }
        found.extend(&self.path_patterns);
        for touch in part.paths.iter().chain(&part.mentions.found().paths) {
            let Touch::At(path) = touch else { return found.extend(&self.by_path) };
            self.path(path, found);
            if let Ok(relative) = path.strip_prefix(&facts.world.directory) {
                self.path(relative, found);
            }
        }
        for walked in &part.walked {
            self.below(walked, facts, found);
        }
    }

    /// Finds what may hold for something below a path.
    fn below(&self, walked: &Walked, facts: &Facts<'_>, found: &mut Numbers) {
        let directory = &facts.world.directory;
        let Some(text) = walked.path.to_str() else { return found.extend(&self.by_path) };
        self.path(&walked.path, found);
        self.directories_from(text, found);
        let holds_all = directory.starts_with(&walked.path);
        if let Ok(relative) = walked.path.strip_prefix(directory) {
            self.path(relative, found);
            self.directories_from(relative.to_str().unwrap_or_default(), found);
        } else if holds_all {
            self.directories_from("", found);
        }
        // Names that are not in a directory are those of files in the working directory, or anywhere.
        if holds_all || walked.descent == Descent::Sure {
            found.extend(self.names.values().flatten());
        }
    }

    fn directories_from(&self, start: &str, found: &mut Numbers) {
        let from = self.directories.range(start.to_owned()..);
        let below = from.take_while(|(directory, _)| directory.starts_with(start));
        found.extend(below.flat_map(|(_, numbers)| numbers));
    }

    fn path(&self, path: &Path, found: &mut Numbers) {
        let Some(text) = path.to_str() else { return found.extend(&self.by_path) };
        found.extend(self.directories.get(text).into_iter().flatten());
        for (slash, _) in text.match_indices('/') {
            let directory = text.get(..slash).unwrap_or_default();
            found.extend(self.directories.get(directory).into_iter().flatten());
        }
        if self.names.is_empty() {
            return;
        }
        let lower = text.to_lowercase();
        for name in lower.split('/') {
            found.extend(self.names.get(name).into_iter().flatten());
        }
        let name = lower.rsplit('/').next().unwrap_or(&lower);
        for (dot, _) in name.match_indices('.') {
            let ending = name.get(dot..).unwrap_or_default();
            found.extend(self.names.get(ending).into_iter().flatten());
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::sample::select;
    use serde_json::json;

    use super::super::*;
    use crate::effect::Effects;
    use crate::spec::{Category, ToolSpec};

    const COMMANDS: &[&str] = &[
        "git *",
        "git push *",
        "GIT *",
        "*",
        "g* x",
        "/bin/ls *",
        "./x",
        "rm *",
        "* --force",
        "ls",
    ];
    const PATHS: &[&str] = &[
        "/a/**",
        "/a/b",
        "/a/*.pem",
        "/a",
        "/**",
        "/",
        "/{a,b}/c",
        "/a[bc]/x",
        "b/**",
        "./b/c",
        "b/*/d",
        "*",
        "**",
        "**/*.pem",
        "*.pem",
        "**/id",
        "id",
        "/home/ann/project/**",
        "/home/ann/project/b/**",
        "b",
        "**/b/**",
        "/a/**/id",
        ".e/**",
        "*.tar.gz",
        "/a/\\*",
    ];
    const TOOLS: &[&str] =
        &["*", "run_*", "read_file", "mcp__a__*", "*_file", "other", "run_command"];
    const HOSTS: &[&str] = &["h", "*.h", "*", "a.h:80", "*.a.h", "[::1]", "h:443"];
    const TOUCHED: &[&str] = &[
        "/a/b",
        "/a/x.pem",
        "/a",
        "/",
        "b/c",
        "b",
        "/home/ann/project/b/c",
        "../a/b",
        "id",
        "/a/q/id",
        "/b/c",
        "/ab/x",
        "x",
        "k.pem",
        "/proc/self/root/a",
        "~/x",
        ".e/f",
        "/x.tar.gz",
        "/a/*",
        "b/x/d",
        "/q/b/z",
    ];
    const REACHED: &[&str] =
        &["h", "a.h:80", "a.h.", "b.a.h", "H:443", "[::1]:80", "xh", "", "a.h"];
    const LINES: &[&str] = &[
        "git push x",
        "GIT push",
        "/usr/bin/git status",
        "ls",
        "/bin/ls x",
        "$X",
        "rm /a/b; ls b/c",
        "cat /a/*",
        "curl http://a.h/x",
        "nc h 80",
        "x --force",
        "./x",
        "ls )",
        "cat b/c > /a/b",
        "env rm x",
        "cd /a && cat b",
        "python3 -c x",
        "cat $X",
        "grep -r x /a",
        "grep -r x /a/q",
        "cp -r b y",
        "tar c .",
        "tar c /",
        "./tool /",
        "./tool ..",
        "rg x",
        "tool b",
        "cd b && rg x",
        "mv /home/ann/project/b y",
        "",
    ];

    fn rule() -> impl Strategy<Value = Rule> {
        let some = |of: &'static [&'static str]| proptest::option::weighted(0.4, select(of));
        let agent = proptest::option::weighted(0.1, select(&["main", "main/*"][..]));
        let kind = proptest::option::weighted(0.1, select(Kind::ALL));
        let rule = (
            select(Permission::ALL),
            some(TOOLS),
            some(COMMANDS),
            some(PATHS),
            some(HOSTS),
            agent,
            kind,
        );
        rule.prop_filter_map(
            "a rule needs a condition",
            |(effect, tool, command, path, host, agent, kind)| {
                let mut spec = RuleSpec::new(effect);
                spec.tool = tool.map(str::to_owned);
                spec.command = command.map(str::to_owned);
                spec.path = path.map(str::to_owned);
                spec.host = host.map(str::to_owned);
                spec.agent = agent.map(str::to_owned);
                spec.kind = kind;
                Rule::new(spec, Some("/home/ann"), None).ok()
            },
        )
    }

    fn cases() -> ProptestConfig {
        ProptestConfig::with_cases(2_000 * (ProptestConfig::default().cases / 256).max(1))
    }

    proptest! {
        #![proptest_config(cases())]
        #[test]
        fn the_index_finds_every_rule_that_holds(
            user in proptest::collection::vec(rule(), 0..12),
            project in proptest::collection::vec(rule(), 0..4),
            mode in select(Mode::ALL),
            tool in select(&["run_command", "read_file", "mcp__a__b", "z"][..]),
            category in select(Category::ALL),
            kind in select(Kind::ALL),
            line in select(LINES),
            paths in proptest::collection::vec(select(TOUCHED), 0..3),
            hosts in proptest::collection::vec(select(REACHED), 0..3),
            servers in proptest::collection::vec(select(&["mcp__a__", "mcp__b__"][..]), 0..2),
        ) {
            let policy = Policy::new(mode)
                .layer(Layer::new(Scope::User, user))
                .layer(Layer::new(Scope::Project, project));
            let mut spec = ToolSpec::new(tool, "Acts.", kind);
            spec.category = category;
            let world = World {
                directory: "/home/ann/project".into(), home: Some("/home/ann".into()), roots: Vec::new(),
            };
            let arguments = json!({ "command": line, "path": paths.first(), "host": hosts.first() });
            let mut facts = Facts::new(&spec, &arguments, &Effects::NONE, "main", &world);
            facts.paths = paths.iter().map(ToString::to_string).collect();
            facts.hosts = hosts.iter().map(ToString::to_string).collect();
            facts.servers = servers.iter().map(ToString::to_string).collect();
            prop_assert_eq!(policy.decide(&facts), policy.decide_by_all_rules(&facts));
        }
    }
}
