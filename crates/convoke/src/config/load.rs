//! From sources to a configuration: read, expand, check, narrow, merge.
//!
//! Each layer is made right on its own before layers meet, and every problem of every layer is
//! collected before loading gives up.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use serde_json::Value;

use super::check::Checker;
use super::check::doubts::{self, WrittenRule};
use super::disk;
use super::entry::{EntryTrust, ProjectEntry};
use super::expand;
use super::key::Key;
use super::loaded::{ConfigFile, FileState, LayerTree, Loaded};
use super::narrow::{keep_directories, narrow};
use super::node::{Body, Field, Node};
use super::origin::{Layer, Origin, Place};
use super::overrides;
use super::paths::{self, Base};
use super::problem::{ConfigError, Problem};
use super::schema::{Schema, config_schema};
use super::servers;
use super::settings::{ALIASES, Config};
use super::sources::{Sources, Trust};
use super::trust;
use super::yaml;

/// Loads the configuration from its sources.
///
/// # Errors
///
/// Returns every mistake in every layer, each with the place where it was written.
pub fn load(sources: &Sources) -> Result<Loaded, ConfigError> {
    let wrong = match load_layers(sources, ProjectFile::Read) {
        Err(wrong) if !sources.trust.minds_mistakes() => wrong,
        loaded => return loaded,
    };
    // If it works without the project's file, the mistakes are that file's.
    let mut loaded = load_layers(sources, ProjectFile::LeftOut)?;
    let left_out = |problem: &Problem| Problem {
        message: format!("{} (the file is left out, because it is not trusted)", problem.message),
        ..problem.clone()
    };
    loaded.warnings.extend(wrong.problems().iter().map(left_out));
    loaded.warnings.sort_by(|left, right| left.place.cmp(&right.place));
    Ok(loaded)
}

/// Whether the project's file counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ProjectFile {
    Read,
    LeftOut,
}

fn load_layers(sources: &Sources, project_file: ProjectFile) -> Result<Loaded, ConfigError> {
    let schema: MadeSchema = LazyLock::new(config_schema);
    let mut loader = Loader {
        sources,
        schema: &schema,
        checker: Checker::new(&schema),
        problems: Vec::new(),
        warnings: Vec::new(),
        files: Vec::new(),
        project_file,
        entries: Vec::new(),
        rules: Vec::new(),
        left_out: BTreeSet::new(),
        switched_off: BTreeSet::new(),
    };
    loader.check_directories();
    let layers = loader.layers();
    let Loader {
        mut problems, mut warnings, files, entries, rules, left_out, switched_off, ..
    } = loader;
    let mut effective = merged(&layers);
    servers::leave_out(&mut effective, &left_out);
    servers::check(&effective, &mut problems);
    if problems.is_empty() {
        match serde_json::from_value::<Config>(effective.to_json()) {
            Ok(mut config) => {
                config.policy.origins =
                    item_origins(&effective, &Key::default().name("policy").name("rules"));
                config.hook_origins = item_origins(&effective, &Key::default().name("hooks"));
                let tools = Key::default().name("tools");
                config.server_origins = item_origins(&effective, &tools.name("mcpServers"));
                config.server_file_origins = item_origins(&effective, &tools.name("mcpFiles"));
                config.servers_left_out = left_out;
                config.servers_switched_off = switched_off;
                config.project_entries = entries;
                warnings.extend(doubts::doubts(&rules, &config, sources.more_tools));
                warnings.sort_by(|left, right| left.place.cmp(&right.place));
                let trust = sources.trust.clone();
                return Ok(Loaded { config, layers, effective, schema, warnings, files, trust });
            }
            Err(error) => problems.push(Problem::of_place(Place::Caller, error.to_string())),
        }
    }
    Err(ConfigError::new(problems))
}

/// Reads the text of a configuration file as it is written: no key is checked, no variable is replaced.
///
/// # Errors
///
/// Returns why it is no YAML, or no mapping.
pub fn parse_file(text: &str, path: &Path) -> Result<Value, Problem> {
    yaml::parse(text, &path.into(), Layer::User).map(|root| root.to_json())
}

/// Returns where each item of a list was written.
fn item_origins(effective: &Node, list: &Key) -> Vec<Origin> {
    match effective.get(list).map(|node| &node.body) {
        Some(Body::List(items)) => items.iter().map(|item| item.origin.clone()).collect(),
        _ => Vec::new(),
    }
}

fn merged(layers: &[LayerTree]) -> Node {
    let mut effective = Node::empty(Origin { layer: Layer::BuiltIn, place: Place::BuiltIn });
    for layer in layers {
        let mut above = layer.root.clone();
        servers::keep(&effective, &mut above);
        effective.overlay(above);
    }
    effective
}

/// The schema, made when something is there to be held against it.
pub(super) type MadeSchema = LazyLock<Value>;

struct Loader<'a> {
    sources: &'a Sources,
    schema: &'a MadeSchema,
    checker: Checker<'a>,
    problems: Vec<Problem>,
    warnings: Vec<Problem>,
    files: Vec<ConfigFile>,
    project_file: ProjectFile,
    /// The entries of the project's file, where each is trusted by itself.
    entries: Vec<ProjectEntry>,
    rules: Vec<WrittenRule>,
    /// Names of servers for which a variable is not set.
    left_out: BTreeSet<String>,
    /// Names of servers that the user does not want, whoever wrote them down.
    switched_off: BTreeSet<String>,
}

impl<'a> Loader<'a> {
    fn schema(&self) -> Schema<'a> {
        Schema::new(self.schema)
    }

    /// A relative directory would make what is allowed depend on where the process happens to be.
    fn check_directories(&mut self) {
        let sources = self.sources;
        let directories = [&sources.user_file, &sources.project_directory, &sources.home];
        let directories = directories.into_iter().flatten().chain([&sources.working_directory]);
        for directory in directories.filter(|directory| !directory.is_absolute()) {
            let message = format!("the path `{}` is not absolute", directory.display());
            self.problems.push(Problem::of_place(Place::Caller, message));
        }
    }

    /// Makes the layers, lowest first.
    fn layers(&mut self) -> Vec<LayerTree> {
        let mut layers = vec![self.built_in()];
        layers.extend(self.user());
        if let Some((mut project, directory)) = self.project() {
            let allowed = merged(&layers);
            self.warnings.extend(narrow(&mut project.root, &allowed, &directory));
            if !self.sources.trust.minds_mistakes() {
                self.warnings.extend(keep_directories(&mut project.root, &allowed));
            }
            layers.push(project);
        }
        let mut problems = Vec::new();
        let schema = || self.schema();
        let environment =
            overrides::from_environment(&self.sources.environment, schema, &mut problems);
        let flags = overrides::from_flags(&self.sources.flags, schema, &mut problems);
        self.problems.append(&mut problems);
        for (layer, root) in [(Layer::Environment, environment), (Layer::Flags, flags)] {
            let directory = &self.sources.working_directory;
            layers.push(LayerTree { layer, root: self.finish(root, directory) });
        }
        layers
    }

    fn built_in(&mut self) -> LayerTree {
        let origin = Origin { layer: Layer::BuiltIn, place: Place::BuiltIn };
        let defaults = serde_json::to_value(Config::default()).unwrap_or_else(|error| {
            self.problems.push(Problem::of_place(Place::BuiltIn, error.to_string()));
            Value::Null
        });
        LayerTree { layer: Layer::BuiltIn, root: Node::from_json(defaults, &origin) }
    }

    fn user(&mut self) -> Option<LayerTree> {
        let own = self.user_layer(self.sources.user_file.as_deref());
        let saved = self.user_layer(self.sources.rules_file.as_deref());
        match (own, saved) {
            (Some(mut own), Some(saved)) => {
                add_rules(&mut own.root, saved.root);
                Some(own)
            }
            (own, saved) => own.or(saved),
        }
    }

    fn user_layer(&mut self, path: Option<&Path>) -> Option<LayerTree> {
        let path = path?;
        let mut root = self.read(path, Layer::User)?;
        // The head of that file stays when somebody deletes the last rule that was saved.
        let rules = Key::default().name("policy").name("rules");
        let is_saved = self.sources.rules_file.as_deref() == Some(path);
        if is_saved && root.get(&rules).is_some_and(Node::is_null) {
            drop(root.take(&rules));
        }
        Some(self.file_layer(root, Layer::User, path))
    }

    fn project(&mut self) -> Option<(LayerTree, PathBuf)> {
        let search = self.sources.search_project_file();
        for path in search.missing {
            self.files.push(ConfigFile { layer: Layer::Project, path, state: FileState::Missing });
        }
        let path = search.found?;
        if let Some(shadowed) = search.shadowed {
            let place = Place::File { path: shadowed.as_path().into(), position: None };
            let message = format!("ignored, because `{}` is there too", path.display());
            self.warnings.push(Problem::of_place(place, message));
            let state = FileState::Ignored;
            self.files.push(ConfigFile { layer: Layer::Project, path: shadowed, state });
        }
        if self.project_file == ProjectFile::LeftOut {
            self.files.push(ConfigFile { layer: Layer::Project, path, state: FileState::LeftOut });
            return None;
        }
        let mut root = self.read(&path, Layer::Project)?;
        match &self.sources.trust {
            Trust::Trusted => {}
            Trust::Entries(trusted) => {
                let (directory, start) = (directory_of(&path), &self.sources.working_directory);
                let trust = EntryTrust::new(directory, start, Arc::clone(trusted));
                let file = trust.root().join(path.file_name().unwrap_or_default());
                let environment = &self.sources.environment;
                let schema = self.schema();
                self.entries = trust::keep_trusted(&mut root, schema, &file, &trust, environment);
            }
            trust @ (Trust::Lapsed | Trust::Untrusted) => {
                self.warnings.extend(trust::keep_harmless(&mut root, self.schema(), trust));
            }
        }
        let layer = self.file_layer(root, Layer::Project, &path);
        Some((layer, directory_of(&path).to_owned()))
    }

    fn read(&mut self, path: &Path, layer: Layer) -> Option<Node> {
        let shared: Arc<Path> = path.into();
        let read = disk::read_file(path).map_err(|unreadable| {
            let place = Place::File { path: Arc::clone(&shared), position: unreadable.position };
            Problem::of_place(place, unreadable.message)
        });
        let parsed =
            read.and_then(|text| text.map(|text| yaml::parse(&text, &shared, layer)).transpose());
        let state = match &parsed {
            Ok(None) => FileState::Missing,
            _ => FileState::Read,
        };
        self.files.push(ConfigFile { layer, path: path.to_owned(), state });
        match parsed {
            Ok(None) => None,
            Ok(Some(mut root)) => {
                expand::drop_empty(&mut root, self.schema());
                Some(root)
            }
            Err(problem) => {
                self.problems.push(problem);
                None
            }
        }
    }

    fn file_layer(&mut self, mut root: Node, layer: Layer, path: &Path) -> LayerTree {
        self.problems.extend(expand::refuse_empty(&mut root, self.schema()));
        let environment = &self.sources.environment;
        let warnings = servers::take_unset(&mut root, environment, &mut self.left_out);
        self.warnings.extend(warnings);
        let mut problems =
            expand::replace_variables(&mut root, self.schema(), &self.sources.environment);
        self.problems.append(&mut problems);
        if layer == Layer::User {
            servers::take_switches(&mut root, &mut self.switched_off);
        }
        LayerTree { layer, root: self.finish(root, directory_of(path)) }
    }

    /// Does what is common to all layers: paths, checking, other spellings of keys.
    fn finish(&mut self, mut root: Node, directory: &Path) -> Node {
        if root.is_empty() {
            return root;
        }
        let base = Base { directory, home: self.sources.home.as_deref() };
        self.problems.extend(paths::resolve_all(&mut root, self.schema(), base));
        self.problems.extend(self.checker.check(&root));
        self.rules.extend(doubts::rules_of(&root));
        for (alias, name) in ALIASES {
            if let (Ok(alias), Ok(name)) = (Key::parse(alias), Key::parse(name)) {
                self.warnings.extend(rename(&mut root, &alias, &name));
            }
        }
        root
    }
}

/// Puts the rules of one tree after those of another.
fn add_rules(own: &mut Node, mut saved: Node) {
    let key = Key::default().name("policy").name("rules");
    let Some(mut field) = saved.take(&key) else { return };
    if let Body::List(more) = &mut field.node.body
        && let Some(Body::List(rules)) = own.get(&key).map(|node| &node.body)
    {
        more.splice(0..0, rules.clone());
    }
    own.put(&key, field);
}

fn directory_of(file: &Path) -> &Path {
    file.parent().unwrap_or(file)
}

/// Moves a value to the key its key is another spelling of. Where both are set, the smaller counts
/// and a warning says so.
fn rename(root: &mut Node, alias: &Key, name: &Key) -> Option<Problem> {
    let other: Field = root.take(alias)?;
    let value = |node: &Node| node.to_json().as_u64();
    let Some(canonical) = root.get(name) else {
        root.put(name, other);
        return None;
    };
    let place = other.node.origin.place.clone();
    if value(&other.node) < value(canonical) {
        root.put(name, other);
    }
    let kept = root.get(name).map(Node::to_json).unwrap_or_default();
    let message = format!("`{name}` is set as well; the smaller value, {kept}, counts");
    let hint = format!("`{alias}` is another spelling of `{name}`: keep one of them");
    Some(Problem::new(&place, alias, message).with_hint(hint))
}
