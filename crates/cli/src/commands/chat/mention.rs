//! `@path` in a message: the file is shown to the model. `@agent` at the beginning of a line: what follows is for
//! that agent, also if there is a file of that name; `@./name` is the file. `@server:uri`: what can be read from
//! that MCP server is shown to the model.
//!
//! A mention begins a word. `@"a b.txt"` names a file with spaces; `\@` is just the letter, and so is one
//! inside a word, as in an address. Punctuation after a name is not part of it, unless there is such a
//! file, or the name is in quotes.

use std::path::{Path, PathBuf};

use convoke::agent::Task;
use convoke_core::Part;
use convoke_core::nearest::{did_you_mean, nearest};

use super::super::run::attach;
use crate::failure::Failure;

/// What comes before a mention, if anything does, and what may stand around a name.
const OPENING: &[char] = &['(', '[', '{', '<', '"', '\'', '`'];
/// What may come after a name without being part of it.
const CLOSING: &[char] = &['.', ',', ';', ':', '!', '?', ')', ']', '}', '>', '"', '\'', '`', '…'];

/// Where paths begin.
#[derive(Clone, Debug)]
pub(super) struct Places {
    /// Where relative ones do.
    pub(super) directory: PathBuf,
    /// Where those with `~` do.
    pub(super) home: Option<PathBuf>,
    /// The names that stand for agents.
    pub(super) agents: Vec<String>,
    /// The names of agents that cannot be asked here, with why.
    pub(super) other_agents: Vec<(String, String)>,
    /// The names that stand for MCP servers.
    pub(super) servers: Vec<String>,
}

impl Places {
    /// Returns the full path of what a person wrote.
    pub(super) fn path(&self, written: &str) -> PathBuf {
        match (written.strip_prefix("~/"), &self.home) {
            (Some(rest), Some(home)) => home.join(rest),
            _ => self.directory.join(written),
        }
    }
}

/// A message with what it mentions.
#[derive(Debug)]
pub(super) struct Mentioning {
    /// What is said.
    pub(super) text: String,
    /// The files, in order, each once.
    pub(super) files: Vec<Attached>,
    /// The agents it is for, in order, each once.
    pub(super) agents: Vec<String>,
    /// What is to be read from servers, in order, each once.
    pub(super) resources: Vec<Mentioned>,
}

/// Something that can be read from an MCP server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mentioned {
    /// The server.
    pub(super) server: String,
    /// What the server calls it.
    pub(super) uri: String,
}

/// A file that was read.
#[derive(Debug)]
pub(super) struct Attached {
    /// Its name, as it was written.
    pub(super) name: String,
    /// What the model is shown.
    pub(super) part: Part,
    /// How large it is, in bytes.
    pub(super) bytes: u64,
}

impl Attached {
    /// Reads a file.
    pub(super) fn read(name: &str, places: &Places) -> Result<Self, Failure> {
        let path = places.path(name);
        let part = attach::read(&path, Path::new(name))?;
        let bytes = path.metadata().map(|metadata| metadata.len()).unwrap_or_default();
        Ok(Self { name: name.to_owned(), part, bytes })
    }
}

impl Mentioning {
    /// Reads the files a message mentions.
    pub(super) fn read(text: &str, places: &Places) -> Result<Self, Failure> {
        let mut said = Self {
            text: String::new(),
            files: Vec::new(),
            agents: Vec::new(),
            resources: Vec::new(),
        };
        for piece in pieces(text) {
            match piece {
                Piece::Text(text) => said.text.push_str(text),
                Piece::Mention { name, written } => {
                    let begins_line = said.text.is_empty() || said.text.ends_with('\n');
                    said.text.push_str(written);
                    // Somebody who puts quotes around a name says where it ends.
                    let is_quoted = written.starts_with("@\"");
                    let exact = if is_quoted { name } else { without_closing(name) };
                    match (agent(name, places).filter(|_| begins_line), resource(exact, places)) {
                        (Some(agent), _) => said.call(agent),
                        (None, Some(resource)) => said.look_up(resource),
                        (None, None) => {
                            let attached = said.attach(existing(name, places), places);
                            let meant = |failure| not_there(failure, name, places, begins_line);
                            attached.map_err(meant)?;
                        }
                    }
                }
            }
        }
        said.refuse_nothing(text)?;
        Ok(said)
    }

    /// An agent that is called has to be told what to do.
    fn refuse_nothing(&self, text: &str) -> Result<(), Failure> {
        let [agent] = self.agents.as_slice() else { return Ok(()) };
        let rest = text.trim().trim_start_matches('@').trim_start_matches(agent.as_str());
        let has_more = !self.files.is_empty() || !self.resources.is_empty();
        if has_more || !rest.trim_matches(CLOSING).trim().is_empty() {
            return Ok(());
        }
        Err(Failure::usage(format!("nothing is said to the agent `{agent}`"))
            .hint(format!("write what it is to do: `@{agent} …`")))
    }

    /// Adds a file, unless it is there already.
    fn attach(&mut self, name: &str, places: &Places) -> Result<(), Failure> {
        if self.files.iter().any(|file| file.name == name) {
            return Ok(());
        }
        if !places.path(name).exists() {
            let server = name.split_once("://").and_then(|(before, _)| before.split_once(':'));
            let nor = server.map_or_else(String::new, |(server, _)| {
                let close = nearest(server, places.servers.iter().map(String::as_str));
                format!(", and no MCP server `{server}`{}", did_you_mean(&close))
            });
            return Err(Failure::usage(format!("there is no file `{name}`{nor}"))
                .hint(format!("write `\\@{name}` if no file is meant")));
        }
        self.files.push(Attached::read(name, places)?);
        Ok(())
    }

    /// Adds an agent, unless it is there already.
    fn call(&mut self, agent: &str) {
        if !self.agents.iter().any(|known| known == agent) {
            self.agents.push(agent.to_owned());
        }
    }

    /// Adds something to be read from a server, unless it is there already.
    fn look_up(&mut self, resource: Mentioned) {
        if !self.resources.contains(&resource) {
            self.resources.push(resource);
        }
    }

    /// Returns it as a task.
    pub(super) fn into_task(self) -> Task {
        let wish = |agent: &String| {
            Part::text(format!(
                "What follows `@{agent}` is for the agent `{agent}`. Hand it over with all the agent has to \
                 know, and do not do it yourself."
            ))
        };
        let task = Task::new(self.text);
        let task = self.agents.iter().map(wish).fold(task, Task::attach);
        self.files.into_iter().fold(task, |task, file| task.attach(file.part))
    }
}

/// A part of a message.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Piece<'a> {
    Text(&'a str),
    Mention {
        /// What is named.
        name: &'a str,
        /// All of it, as it was written.
        written: &'a str,
    },
}

/// Splits a message. A backslash before `@` is left out.
pub(super) fn pieces(text: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut from = 0;
    for (at, _) in text.match_indices('@') {
        let (Some(before), Some(after)) = (text.get(from..at), text.get(at + 1..)) else {
            // Inside of a quoted name.
            continue;
        };
        if let Some(before) = before.strip_suffix('\\') {
            pieces.push(Piece::Text(before));
            from = at;
            continue;
        }
        let begins_word = text.get(..at).is_none_or(|all| {
            all.chars()
                .next_back()
                .is_none_or(|last| last.is_whitespace() || OPENING.contains(&last))
        });
        let Some((name, length)) = name(after).filter(|_| begins_word) else { continue };
        let Some(written) = text.get(at..at + 1 + length) else { continue };
        pieces.push(Piece::Text(before));
        pieces.push(Piece::Mention { name, written });
        from = at + written.len();
    }
    pieces.push(Piece::Text(text.get(from..).unwrap_or_default()));
    pieces.retain(|piece| *piece != Piece::Text(""));
    pieces
}

/// Returns the name after an `@`, and how long it is as it was written.
fn name(after: &str) -> Option<(&str, usize)> {
    if let Some(rest) = after.strip_prefix('"') {
        let (name, _) = rest.split_once('"')?;
        return (!name.is_empty()).then_some((name, name.len() + 2));
    }
    let end = after.find(char::is_whitespace).unwrap_or(after.len());
    let name = after.get(..end)?;
    let is_name = !name.trim_end_matches(CLOSING).is_empty() && !name.starts_with('@');
    is_name.then_some((name, end))
}

/// Returns the agent that is named, if it is one.
fn agent<'a>(name: &str, places: &'a Places) -> Option<&'a str> {
    let name = name.trim_end_matches(CLOSING);
    places.agents.iter().map(String::as_str).find(|agent| *agent == name)
}

/// Says what else was meant where there is no file: an agent that cannot be asked, or one of a name that is near.
fn not_there(failure: Failure, name: &str, places: &Places, begins_line: bool) -> Failure {
    let name = name.trim_end_matches(CLOSING);
    if let Some((agent, why)) = places.other_agents.iter().find(|(agent, _)| agent == name) {
        return Failure::usage(format!("the agent `{agent}` cannot be asked here: {why}"))
            .hint(format!("write `\\@{name}` if no agent is meant"));
    }
    let is_name = name.chars().all(|one| one.is_alphanumeric() || "_-".contains(one));
    if !begins_line || !is_name {
        return failure;
    }
    let agents = places.agents.iter().map(String::as_str);
    let close = did_you_mean(&nearest(name, agents));
    Failure::usage(format!("there is no agent and no file `{name}`{close}"))
        .hint(format!("write `\\@{name}` if neither is meant; /agents lists the agents"))
}

/// Returns what is to be read from a server, if that is what is named.
fn resource(name: &str, places: &Places) -> Option<Mentioned> {
    let (server, uri) = name.split_once(':')?;
    let is_known = places.servers.iter().any(|known| known == server);
    let mentioned = Mentioned { server: server.to_owned(), uri: uri.to_owned() };
    (is_known && !uri.is_empty()).then_some(mentioned)
}

/// Returns the name without the punctuation after it. A brace that closes one of the name's own is part of it.
fn without_closing(name: &str) -> &str {
    let mut shorter = name;
    while let Some(next) = shorter.strip_suffix(CLOSING) {
        if shorter.ends_with('}') && next.matches('{').count() > next.matches('}').count() {
            break;
        }
        shorter = next;
    }
    shorter
}

/// Returns the name without the punctuation after it, unless there is a file whose name has it.
fn existing<'a>(name: &'a str, places: &Places) -> &'a str {
    if places.path(name).exists() {
        return name;
    }
    let mut shorter = name;
    while let Some(next) = shorter.strip_suffix(CLOSING) {
        shorter = next;
        if places.path(shorter).exists() {
            return shorter;
        }
    }
    name.trim_end_matches(CLOSING)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files;

    fn names(text: &str) -> Vec<&str> {
        let name = |piece| match piece {
            Piece::Mention { name, .. } => Some(name),
            Piece::Text(_) => None,
        };
        pieces(text).into_iter().filter_map(name).collect()
    }

    #[test]
    fn a_mention_begins_a_word() {
        assert_eq!(names("look at @src/main.rs, please"), ["src/main.rs,"]);
        assert_eq!(names("@a.txt\n(@b.txt)"), ["a.txt", "b.txt)"]);
        assert_eq!(names("@\"two words.txt\" and @x"), ["two words.txt", "x"]);
        assert_eq!(names("@\"mail@home.txt\""), ["mail@home.txt"]);
    }

    #[test]
    fn other_letters_are_letters() {
        for text in ["me@example.org", "a \\@b c", "@ home", "@", "@@x", "what @?", "@\"open"] {
            assert_eq!(names(text), Vec::<&str>::new(), "{text}");
        }
    }

    fn project() -> (tempfile::TempDir, Places) {
        let directory = tempfile::tempdir().unwrap();
        files::write(&directory.path().join("a.txt"), "one\n").unwrap();
        files::write(&directory.path().join("b?"), "two\n").unwrap();
        let agents = vec!["reviewer".to_owned(), "a".to_owned()];
        let servers = vec!["docs".to_owned()];
        let other_agents = vec![("off".to_owned(), "it is switched off".to_owned())];
        let directory_of = directory.path().to_owned();
        let places = Places { directory: directory_of, home: None, agents, other_agents, servers };
        (directory, places)
    }

    #[test]
    fn files_are_read_once_and_the_text_stays() {
        let (_directory, places) = project();
        let said = Mentioning::read("Is @a.txt like @b? or @a.txt? \\@me", &places).unwrap();
        assert_eq!(said.text, "Is @a.txt like @b? or @a.txt? @me");
        let files: Vec<(&str, u64)> =
            said.files.iter().map(|file| (file.name.as_str(), file.bytes)).collect();
        assert_eq!(files, [("a.txt", 4), ("b?", 4)]);
        assert_eq!(said.files[0].part, Part::text("The file a.txt:\none\n"));
    }

    #[test]
    fn a_file_that_is_not_there_is_told_by_name() {
        let (_directory, places) = project();
        let said = Mentioning::read("See @c.txt.", &places).unwrap_err().to_string();
        assert_eq!(said, "there is no file `c.txt`");
        assert!(Mentioning::read("See @.", &places).is_ok());
    }

    #[test]
    fn an_agent_is_named_where_a_line_begins() {
        let (directory, places) = project();
        let read = |text: &str| Mentioning::read(text, &places);
        let said = read("@reviewer look at @a.txt\n@reviewer, again\n@a: hello").unwrap();
        assert_eq!(said.agents, ["reviewer", "a"]);
        assert_eq!(said.files.len(), 1);
        assert!(format!("{:?}", said.into_task()).contains("is for the agent `reviewer`"));
        assert!(read("ask @reviewer").is_err(), "in the middle a file is meant");
        assert!(read("@reviewers look").is_err(), "that is another name");
        // Agents go before files of their names.
        files::write(&directory.path().join("reviewer"), "x").unwrap();
        assert_eq!(read("@reviewer look").unwrap().files.len(), 0);
        assert_eq!(read("@./reviewer look").unwrap().files.len(), 1);
    }

    #[test]
    fn who_is_no_agent_is_told_so_and_one_that_is_asked_is_told_something() {
        let (_directory, places) = project();
        let said = |text: &str| Mentioning::read(text, &places).unwrap_err().to_string();
        assert_eq!(
            said("@reviewr look"),
            "there is no agent and no file `reviewr`; did you mean `reviewer`?"
        );
        assert_eq!(said("@off look"), "the agent `off` cannot be asked here: it is switched off");
        assert_eq!(said("@src/nothing.rs"), "there is no file `src/nothing.rs`");
        for nothing in ["@reviewer", "@reviewer: ", "@reviewer."] {
            assert_eq!(said(nothing), "nothing is said to the agent `reviewer`", "{nothing}");
        }
        assert!(Mentioning::read("@reviewer @a.txt", &places).is_ok());
    }

    #[test]
    fn what_a_server_has_is_named_with_its_server() {
        let (_directory, places) = project();
        let read = |text: &str| Mentioning::read(text, &places);
        let said = read("Is @docs:file:///guide.md, like @docs:file:///guide.md? @a.txt").unwrap();
        let guide = Mentioned { server: "docs".into(), uri: "file:///guide.md".into() };
        assert_eq!(said.resources, [guide]);
        assert_eq!(said.files.len(), 1);
        assert!(said.text.contains("@docs:file:///guide.md,"), "{}", said.text);
        let said = read("@\"docs:file:///a_(b)\", or @docs:file:///a_(b)").unwrap();
        let uris: Vec<&str> = said.resources.iter().map(|one| one.uri.as_str()).collect();
        assert_eq!(uris, ["file:///a_(b)", "file:///a_(b"], "quotes say where it ends");
        let said = read("({@docs:note://{day}/{id}})").unwrap();
        assert_eq!(said.resources[0].uri, "note://{day}/{id}", "its own braces are part of it");
        assert!(read("see @docs:").is_err(), "a file is meant");
        assert!(read("see @other:x").is_err(), "there is no such server");
        let said = read("see @dosc:file:///guide.md").unwrap_err().to_string();
        assert_eq!(
            said,
            "there is no file `dosc:file:///guide.md`, and no MCP server `dosc`; did you mean `docs`?"
        );
    }

    #[test]
    fn home_is_home() {
        let home = Some("/h".into());
        let (agents, servers) = (Vec::new(), Vec::new());
        let other_agents = Vec::new();
        let places = Places { directory: "/w".into(), home, agents, other_agents, servers };
        assert_eq!(places.path("~/x"), Path::new("/h/x"));
        assert_eq!(places.path("x"), Path::new("/w/x"));
        assert_eq!(places.path("/x"), Path::new("/x"));
    }
}
