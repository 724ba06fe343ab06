//! What is known about a call before it is made.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::arguments::{self, Certainty, Text};
use super::descent::{Descent, Walked, walked};
use super::mention::{Mentions, decoded, only_reads, words_are_data};
use super::pattern::plain;
use super::shell::{self, Line, Place, Role, Unlisted, Word};
use super::touch::{Bases, Reach, Touch, hosts_in, paths_in};
use crate::effect::{Effects, Resource};
use crate::endpoint::Endpoint;
use crate::spec::{Category, Kind, ToolSpec};
use crate::variable;

/// Where a call is made.
#[derive(Clone, Debug, Default)]
pub struct World {
    /// The working directory, absolute.
    pub directory: PathBuf,
    /// The home directory, where it is known.
    pub home: Option<String>,
    /// The directories that may be changed; the working directory if empty.
    pub roots: Vec<PathBuf>,
}

/// A call, as far as policy is concerned.
#[derive(Clone, Debug)]
pub struct Facts<'a> {
    /// The tool's name.
    pub tool: &'a str,
    /// Its family.
    pub category: Category,
    /// What the call does to the world.
    pub kind: Kind,
    /// The path of the agent that makes it.
    pub agent: &'a str,
    /// Its arguments.
    pub arguments: &'a Value,
    /// Whether it starts programs.
    pub starts_programs: bool,
    /// The paths it touches, as they were spelled.
    pub paths: Vec<String>,
    /// The hosts it talks to, as an [`Endpoint`] is written. A text that is none stands for any host.
    pub hosts: Vec<String>,
    /// The servers it asks beside their tools, as the names of those begin.
    pub servers: Vec<String>,
    /// The variables it sets that can change what programs do.
    pub sets: Vec<String>,
    /// The variables that the session has set and that can change what programs do.
    pub session_variables: Vec<String>,
    /// Where it is made.
    pub world: &'a World,
}

/// The most directories in arguments that paths in other arguments may start at.
const MAX_ENTERED: usize = 4;
/// Arguments that say where a command runs.
const DIRECTORY_ARGUMENTS: &[&str] = &["working_directory", "workingDirectory", "cwd", "directory"];

impl<'a> Facts<'a> {
    /// Gathers what is known about a call of a tool.
    pub fn new(
        spec: &'a ToolSpec,
        arguments: &'a Value,
        effects: &Effects,
        agent: &'a str,
        world: &'a World,
    ) -> Self {
        let hosts = effects.iter().filter_map(|(_, resource)| match resource {
            Resource::Host(host) => Some(host.clone()),
            _ => None,
        });
        let sets = effects.iter().filter_map(|(_, resource)| match resource {
            Resource::Variable(name) => Some(name.clone()),
            _ => None,
        });
        Self {
            tool: &spec.name,
            category: spec.category,
            kind: spec.kind,
            starts_programs: spec.starts_programs || spec.kind == Kind::Execute,
            agent,
            arguments,
            paths: effects.paths().map(|(_, path)| path.to_owned()).collect(),
            hosts: hosts.collect(),
            servers: effects.servers().map(str::to_owned).collect(),
            sets: sets.filter(|name| !variable::is_harmless(name)).collect(),
            session_variables: Vec::new(),
            world,
        }
    }

    /// Tells whether its arguments can hold a command.
    fn may_run(&self) -> bool {
        matches!(self.kind, Kind::Execute | Kind::Other)
            || matches!(self.category, Category::Mcp | Category::Code)
    }

    /// Tells whether it is not known which of its arguments are paths and hosts.
    fn is_foreign(&self) -> bool {
        self.may_run() && self.category != Category::Code
    }

    /// Tells whether the tool leaves out of what it finds what is denied. Those that only look do, as
    /// far as they are not somebody else's.
    fn leaves_out(&self) -> bool {
        self.kind.only_looks() && !self.starts_programs && self.category != Category::Mcp
    }

    /// Returns everything the call would do, each to be judged on its own.
    pub(super) fn parts(&self) -> Vec<Part> {
        let directory = self.directory();
        let mut parts = Vec::new();
        let mut guessed = None;
        if self.may_run() {
            let named = arguments::search(self.arguments, self.is_foreign());
            for command in &named.commands {
                self.run(command, &directory, &mut parts);
            }
            guessed = self.guessed(named);
        }
        // Where a program runs is touched too, but nothing more has to be allowed for it.
        if !parts.is_empty() && directory != self.world.directory {
            let paths = vec![Touch::At(plain(&directory, Path::new("/")))];
            parts.push(Part { paths, ..Part::new(Base::None) });
        }
        let judged = parts.iter().any(|part| part.base.decides());
        if !judged || !self.paths.is_empty() || !self.hosts.is_empty() {
            parts.push(self.whole());
        }
        parts.extend(guessed);
        parts.extend(self.sets.iter().map(|name| Part {
            variable: Some(name.clone()),
            directories: Bases::new(&self.world.directory, &[]).here(),
            ..Part::new(Base::Variable(self.kind))
        }));
        // A rule on all tools of a server is one on the server: it can forbid what is asked beside them.
        parts.extend(self.servers.iter().map(|start| {
            let directories = Bases::new(&self.world.directory, &[]).here();
            let server = Some(start.clone());
            Part { server, directories, ..Part::new(Base::None) }
        }));
        parts
    }

    /// Returns everything that the arguments of a foreign tool may name. It can be forbidden, and nothing
    /// more has to be allowed for it.
    fn guessed(&self, named: arguments::Named) -> Option<Part> {
        let home = self.world.home.as_deref();
        let bases = Bases::new(&self.world.directory, &[]).home(home);
        let mut paths: Vec<Touch> =
            named.paths.iter().flat_map(|path| bases.resolve(path)).collect();
        let mut hosts = named.hosts;
        if named.more {
            paths.push(Touch::Anywhere);
            hosts.push(Reach::Anywhere);
        }
        if !self.is_foreign() {
            return None;
        }
        // A relative path in one argument may start at the directory in another.
        let absolute = named.texts.iter().filter(|text| text.starts_with(['/', '~']));
        let entered: Vec<Word> = absolute.take(MAX_ENTERED).map(Word::literal).collect();
        let starts = Bases::new(&self.world.directory, &entered).home(home);
        let decoded: Vec<String> = named.texts.iter().flat_map(|text| decoded(text)).collect();
        let texts = named.texts.into_iter().chain(decoded).collect();
        let mentions = Mentions::of_texts(texts, &named.lists, false, &starts);
        let walked = walked_by_tool(&paths);
        let directories = bases.here();
        let base = if self.kind.only_looks() { Base::None } else { Base::Changes };
        Some(Part { paths, walked, directories, hosts, mentions, ..Part::new(base) })
    }

    fn whole(&self) -> Part {
        let bases = Bases::new(&self.world.directory, &[]);
        let paths: Vec<Touch> = self.paths.iter().flat_map(|path| bases.resolve(path)).collect();
        let walked = if self.leaves_out() { Vec::new() } else { walked_by_tool(&paths) };
        Part {
            paths,
            walked,
            directories: bases.here(),
            hosts: self.hosts.iter().map(|host| reach(host)).collect(),
            ..Part::new(Base::Kind(self.kind))
        }
    }

    fn directory(&self) -> PathBuf {
        let named = DIRECTORY_ARGUMENTS.iter().find_map(|name| self.arguments.get(name)?.as_str());
        self.world.directory.join(named.unwrap_or_default())
    }

    fn run(&self, command: &arguments::Command, directory: &Path, parts: &mut Vec<Part>) {
        let shown = directory.to_string_lossy();
        let place = Place { home: self.world.home.as_deref(), directory: &shown };
        let line = match &command.text {
            Text::Line(text) => shell::read(text, place),
            Text::Words(words) => shell::read_words(words, place),
        };
        let from = parts.len();
        self.line(line, directory, parts);
        if command.certainty == Certainty::Guess && self.category != Category::Code {
            for part in parts.iter_mut().skip(from) {
                (part.base, part.unread) = (Base::None, false);
            }
        }
    }

    fn line(&self, line: Line, directory: &Path, parts: &mut Vec<Part>) {
        let bases = Bases::new(directory, &line.directories).home(self.world.home.as_deref());
        let acts = line.commands.iter().any(|command| command.role == Role::Acts);
        let unread = line.unread.is_some();
        let by_session = || {
            let name = self.session_variables.first()?;
            Some(format!("this session has set `{name}`, which can change what programs do"))
        };
        if let Some(reason) = line.unread.or(line.opaque).or_else(by_session) {
            let opaque = Some(format!("what the command does is not known: {reason}"));
            let directories = bases.here();
            parts.push(Part { directories, opaque, unread, ..Part::new(Base::Kind(self.kind)) });
        } else if !acts {
            let (command, directories) = (Some(Vec::new()), bases.here());
            parts.push(Part { command, directories, ..Part::new(Base::Kind(self.kind)) });
        }
        let inputs: Vec<String> =
            line.inputs.iter().filter_map(Word::text).map(str::to_owned).collect();
        if !inputs.is_empty() {
            let are_data = line.commands.iter().all(|command| words_are_data(&command.words));
            let mentions = Mentions::of_texts(inputs, &[], are_data, &bases);
            let directories = bases.here();
            parts.push(Part { directories, mentions, ..Part::new(Base::None) });
        }
        for command in line.commands {
            let base = match command.role {
                Role::Acts => Base::Kind(self.kind),
                Role::Stands => Base::None,
            };
            if command.role == Role::Acts && !only_reads(&command.words) {
                let (paths, directories) = (paths_in(&command.words, &bases), bases.here());
                parts.push(Part { paths, directories, ..Part::new(Base::Changes) });
            }
            let writes = command.writes.iter().filter_map(|word| self.written(word, &bases));
            let writes: Vec<Part> = writes.collect();
            parts.push(Part {
                unlisted: command.unlisted,
                plain: command.plain,
                walked: walked(&command.words, &bases),
                directories: bases.here(),
                paths: paths_in(&command.words, &bases),
                hosts: hosts_in(&command.words),
                mentions: Mentions::of_command(&command.words, &bases),
                command: Some(command.words),
                ..Part::new(base)
            });
            parts.extend(writes);
        }
        for (kind, words) in [(Kind::Edit, line.writes), (Kind::Read, line.reads)] {
            for word in words {
                let paths = bases.touched(&word);
                let inside = kind == Kind::Read || paths.iter().all(|path| self.is_inside(path));
                let directories = bases.here();
                let base = Base::Redirection { kind, inside };
                parts.push(Part { paths, directories, ..Part::new(base) });
            }
        }
    }

    /// A file that a program is told to write. Where the run works, allowing the program is enough.
    fn written(&self, word: &Word, bases: &Bases) -> Option<Part> {
        if word.text().is_some_and(shell::is_sink) {
            return None;
        }
        let (paths, directories) = (bases.touched(word), bases.here());
        let base = if paths.iter().all(|path| self.is_inside(path)) {
            Base::Write
        } else {
            Base::Redirection { kind: Kind::Edit, inside: false }
        };
        Some(Part { paths, directories, ..Part::new(base) })
    }

    fn is_inside(&self, touch: &Touch) -> bool {
        let within = |path: &Path| match self.world.roots.as_slice() {
            [] => path.starts_with(&self.world.directory),
            roots => roots.iter().any(|root| path.starts_with(root)),
        };
        match touch {
            Touch::At(path) => within(path),
            // A pattern for file names stays below the directory that it starts with.
            Touch::Below(start) => start.rfind('/').is_some_and(|at| {
                within(&plain(Path::new(start.get(..=at).unwrap_or("/")), Path::new("/")))
            }),
            Touch::Anywhere => false,
        }
    }
}

fn reach(host: &str) -> Reach {
    Endpoint::parse(host).map_or(Reach::Anywhere, Reach::Known)
}

/// A tool that is given a directory may go into it.
fn walked_by_tool(paths: &[Touch]) -> Vec<Walked> {
    let walked = |touch: &Touch| match touch {
        Touch::At(path) => Some(Walked { path: path.clone(), descent: Descent::Perhaps }),
        Touch::Below(_) | Touch::Anywhere => None,
    };
    paths.iter().filter_map(walked).collect()
}

/// One thing that a call would do.
#[derive(Clone, Debug)]
pub(super) struct Part {
    pub(super) base: Base,
    /// The server that is asked, if it is that, as the names of its tools begin.
    server: Option<String>,
    /// The variable that is set, if it is that.
    pub(super) variable: Option<String>,
    /// The simple command, if it is one.
    pub(super) command: Option<Vec<Word>>,
    /// Why the command is not known to be harmless.
    pub(super) unlisted: Option<Unlisted>,
    /// The same command without options before its subcommand.
    pub(super) plain: Option<Vec<Word>>,
    pub(super) paths: Vec<Touch>,
    /// What it may go into, to what lies below.
    pub(super) walked: Vec<Walked>,
    /// Where it may be done.
    pub(super) directories: Vec<Touch>,
    pub(super) hosts: Vec<Reach>,
    /// Texts that may name something in any of their parts.
    pub(super) mentions: Mentions,
    /// Why it is not known what it does.
    pub(super) opaque: Option<String>,
    /// Whether it could not even be read.
    pub(super) unread: bool,
}

/// What decides where no rule does.
#[derive(Clone, Copy, Debug)]
pub(super) enum Base {
    /// Nothing: it only stands for something that is judged beside it.
    None,
    /// The table by kind.
    Kind(Kind),
    /// The table, for a file that a shell opens: like a file that a tool opens, or like the command.
    Redirection { kind: Kind, inside: bool },
    /// Nothing, for a file that a program writes: the program is judged beside it.
    Write,
    /// Nothing: these are files that a program or tool may change, judged beside what it is.
    Changes,
    /// The table, but at least a question: it can change what programs do that are started later.
    Variable(Kind),
}

impl Base {
    /// Tells whether something has to be allowed here.
    pub(super) const fn decides(self) -> bool {
        !matches!(self, Self::None | Self::Changes | Self::Write)
    }
}

impl Part {
    fn new(base: Base) -> Self {
        Self {
            base,
            server: None,
            variable: None,
            command: None,
            unlisted: None,
            plain: None,
            paths: Vec::new(),
            walked: Vec::new(),
            directories: Vec::new(),
            hosts: Vec::new(),
            mentions: Mentions::default(),
            opaque: None,
            unread: false,
        }
    }

    /// Returns the tool that rules on tools are about: the one that is called, or any of a server.
    pub(super) fn tool<'a>(&'a self, facts: &Facts<'a>) -> &'a str {
        self.server.as_deref().unwrap_or(facts.tool)
    }

    /// Tells whether it is done in this directory and in no other.
    pub(super) fn is_in(&self, directory: &Path) -> bool {
        self.directories.iter().all(|touch| *touch == Touch::At(plain(directory, Path::new("/"))))
    }

    /// Tells whether it is of a kind. What a shell opens is done by a program.
    pub(super) fn is_kind(&self, kind: Kind, of_call: Kind) -> bool {
        match self.base {
            Base::None | Base::Kind(_) | Base::Variable(_) => kind == of_call,
            Base::Changes | Base::Write => kind == Kind::Edit || kind == of_call,
            Base::Redirection { kind: own, .. } => kind == own || kind == of_call,
        }
    }

    /// Tells whether it changes files, as far as that is known.
    pub(super) const fn changes_files(&self, of_call: Kind) -> bool {
        match self.base {
            Base::Changes | Base::Write => true,
            Base::Redirection { kind, .. } => matches!(kind, Kind::Edit),
            Base::Kind(_) => matches!(of_call, Kind::Edit | Kind::Delete | Kind::Move),
            Base::None | Base::Variable(_) => false,
        }
    }

    /// Tells whether it may do something that a rule forbids, by an option that is not known.
    pub(super) fn hides(&self) -> bool {
        self.unlisted.as_ref().is_some_and(|unlisted| unlisted.hides)
    }

    /// Says what it is, for people.
    pub(super) fn subject(&self, facts: &Facts<'_>) -> String {
        match &self.command {
            Some(words) if !words.is_empty() => {
                let shown: Vec<String> = words.iter().map(Word::shown).collect();
                format!("`{}`", shown.join(" "))
            }
            _ if self.opaque.is_some() => "a command that cannot be read".to_owned(),
            _ if self.variable.is_some() => {
                format!("setting `{}`", self.variable.as_deref().unwrap_or_default())
            }
            _ => match (self.base, self.paths.first()) {
                (Base::Redirection { .. } | Base::Write, Some(Touch::At(path))) => {
                    format!("the redirection to `{}`", path.display())
                }
                (Base::Redirection { .. } | Base::Write, _) => "a redirection".to_owned(),
                _ => format!("`{}`", facts.tool),
            },
        }
    }
}
