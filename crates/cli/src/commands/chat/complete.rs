//! What Tab offers: commands of the chat, their arguments, prompts of MCP servers, and agents, MCP servers with what they
//! have and files after `@`.

use convoke_core::Mode;
use reedline::{Completer, CompletionResult, Span, Suggestion};

use super::find::{files, find};
use super::line::COMMANDS;
use super::mention::Places;
use super::prompt::Served;

/// Completes the line that is being written.
#[derive(Clone, Debug)]
pub(super) struct Complete {
    places: Places,
    models: Vec<String>,
    /// What servers have.
    served: Vec<Served>,
    /// The files of the project, once somebody asked for them. A clone that never asked looks again.
    project: Option<Vec<String>>,
}

/// Something that can take the place of what stands from `start` to the cursor.
#[derive(Debug, PartialEq, Eq)]
struct Offer {
    start: usize,
    value: String,
    about: Option<String>,
    /// Whether it is whole, so that the next word may begin.
    whole: bool,
}

impl Complete {
    pub(super) const fn new(places: Places, models: Vec<String>) -> Self {
        Self { places, models, served: Vec::new(), project: None }
    }

    /// Learns what servers have.
    pub(super) fn know(&mut self, served: Vec<Served>) {
        self.served = served;
    }

    /// Returns what can stand at the end of this text.
    fn offers(&mut self, text: &str) -> Vec<Offer> {
        if let Some((start, wanted)) = mention(text) {
            if let Some(offers) = self.resources(start, wanted) {
                return offers;
            }
            let mut offers = self.agents(text, start, wanted);
            offers.extend(self.servers(start, wanted));
            offers.extend(self.files(start, wanted));
            return offers;
        }
        let Some(rest) = text.strip_prefix('/').filter(|rest| !rest.contains('\n')) else {
            return Vec::new();
        };
        match rest.split_once(' ') {
            None => {
                let mut offers = commands(rest);
                offers.extend(self.prompts(rest));
                offers
            }
            Some((name, argument)) => self.arguments(name, argument.trim_start(), text.len()),
        }
    }

    fn arguments(&self, name: &str, wanted: &str, end: usize) -> Vec<Offer> {
        let words: Vec<String> = match name {
            "mode" => Mode::ALL.iter().map(|mode| mode.as_str().to_owned()).collect(),
            "model" => self.models.clone(),
            _ => return Vec::new(),
        };
        let start = end - wanted.len();
        let offer = |word: &str| Offer { start, value: word.to_owned(), about: None, whole: true };
        let begins = |word: &str| word.starts_with(wanted);
        let fits = |word: &&String| begins(word) || word.split('/').any(begins);
        words.iter().filter(fits).map(|word| offer(word)).collect()
    }

    /// Agents are named where a line begins.
    fn agents(&self, text: &str, start: usize, wanted: &str) -> Vec<Offer> {
        let before = text.get(..start).unwrap_or_default();
        if !before.is_empty() && !before.ends_with('\n') {
            return Vec::new();
        }
        let fits = self.places.agents.iter().filter(|name| name.starts_with(wanted));
        let offer = |name: &String| Offer {
            start,
            value: format!("@{name}"),
            about: Some("agent".to_owned()),
            whole: true,
        };
        fits.map(offer).collect()
    }

    /// Servers are named anywhere; what they have comes after the colon.
    fn servers(&self, start: usize, wanted: &str) -> Vec<Offer> {
        let fits = self.places.servers.iter().filter(|name| name.starts_with(wanted));
        let offer = |name: &String| Offer {
            start,
            value: format!("@{name}:"),
            about: Some("MCP server".to_owned()),
            whole: false,
        };
        fits.map(offer).collect()
    }

    /// What can be read from a server comes after its name and a colon.
    fn resources(&self, start: usize, wanted: &str) -> Option<Vec<Offer>> {
        let (server, wanted) = wanted.split_once(':')?;
        self.places.servers.iter().find(|known| *known == server)?;
        let served = self.served.iter().filter(|served| served.server == server);
        let resources = served.flat_map(|served| &served.resources);
        let fits = resources.filter(|(uri, name)| {
            uri.contains(wanted) || name.as_ref().is_some_and(|name| name.contains(wanted))
        });
        let offer = |(uri, name): &(String, Option<String>)| Offer {
            start,
            value: format!("@{server}:{uri}"),
            about: name.clone(),
            // What stands in braces is to be filled in.
            whole: !uri.contains('{'),
        };
        let mut offers: Vec<Offer> = fits.map(offer).collect();
        if offers.is_empty() {
            // It stays as it is, and nobody is told in capitals that there is nothing.
            let (value, about) = (format!("@{server}:{wanted}"), None);
            offers.push(Offer { start, value, about, whole: false });
        }
        Some(offers)
    }

    /// Prompts of servers are written like commands.
    fn prompts(&self, wanted: &str) -> Vec<Offer> {
        let all = self.served.iter().flat_map(|served| {
            served
                .prompts
                .iter()
                .map(move |(name, about)| (format!("{}:{name}", served.server), about))
        });
        let fits = all.filter(|(name, _)| name.starts_with(wanted));
        let offer = |(name, about): (String, &Option<String>)| Offer {
            start: 0,
            value: format!("/{name}"),
            about: about.clone(),
            whole: true,
        };
        fits.map(offer).collect()
    }

    fn files(&mut self, start: usize, wanted: &str) -> Vec<Offer> {
        let wanted = wanted.strip_prefix('"').unwrap_or(wanted);
        let outside = ["/", "~/", "./", "../"].iter().any(|begin| wanted.starts_with(begin));
        let offer = |path: String| {
            let whole = !path.ends_with('/');
            let value = match path.contains(char::is_whitespace) {
                true if whole => format!("@\"{path}\""),
                true => format!("@\"{path}"),
                false => format!("@{path}"),
            };
            Offer { start, value, about: None, whole }
        };
        if outside {
            let (above, wanted) = wanted.split_at(wanted.rfind('/').map_or(0, |at| at + 1));
            let names = files(&self.places.path(above), Some(1));
            return find(wanted, &names)
                .into_iter()
                .map(|name| offer(format!("{above}{name}")))
                .collect();
        }
        let names = self.project.get_or_insert_with(|| files(&self.places.directory, None));
        find(wanted, names).into_iter().map(|name| offer(name.to_owned())).collect()
    }
}

/// Returns where a mention begins that the cursor stands in, and what is written of it.
fn mention(text: &str) -> Option<(usize, &str)> {
    let at = match text.rfind("@\"") {
        // A quoted name that is not closed yet.
        Some(at) if !text.get(at + 2..)?.contains('"') => at,
        _ => text.rfind('@')?,
    };
    let (before, after) = (text.get(..at)?, text.get(at + 1..)?);
    let begins = before.chars().next_back().is_none_or(|last| last.is_whitespace() || last == '(');
    let goes_on = after.starts_with('"') || !after.contains(char::is_whitespace);
    (begins && goes_on).then_some((at, after))
}

fn commands(wanted: &str) -> Vec<Offer> {
    let fits = COMMANDS.iter().filter(|usage| usage.name.starts_with(wanted));
    fits.map(|usage| Offer {
        start: 0,
        value: format!("/{}", usage.name),
        about: Some(usage.about.to_owned()),
        whole: true,
    })
    .collect()
}

impl Completer for Complete {
    fn complete(&mut self, line: &str, position: usize) -> CompletionResult {
        let text = line.get(..position).unwrap_or(line);
        let suggestion = |offer: Offer| Suggestion {
            value: offer.value,
            description: offer.about,
            span: Span { start: offer.start, end: text.len() },
            append_whitespace: offer.whole,
            ..Suggestion::default()
        };
        let offers: Vec<Suggestion> = self.offers(text).into_iter().map(suggestion).collect();
        CompletionResult::fresh(offers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::{make_directory, write};

    fn project() -> (tempfile::TempDir, Complete) {
        let directory = tempfile::tempdir().unwrap();
        make_directory(&directory.path().join("src/deep")).unwrap();
        for name in ["src/main.rs", "src/deep/mod.rs", "two words.txt", "README.md"] {
            write(&directory.path().join(name), "x").unwrap();
        }
        let agents = vec!["srcerer".to_owned()];
        let servers = vec!["tracker".to_owned()];
        let other_agents = Vec::new();
        let directory_of = directory.path().to_owned();
        let places = Places { directory: directory_of, home: None, agents, other_agents, servers };
        (directory, Complete::new(places, vec!["openai/one".into(), "ollama/two".into()]))
    }

    fn values(complete: &mut Complete, text: &str) -> Vec<String> {
        complete.offers(text).into_iter().map(|offer| offer.value).collect()
    }

    #[test]
    fn commands_and_their_arguments_are_offered() {
        let (_directory, mut complete) = project();
        assert_eq!(values(&mut complete, "/mo"), ["/model", "/mode"]);
        assert_eq!(values(&mut complete, "/").len(), COMMANDS.len());
        assert_eq!(values(&mut complete, "/mode au"), ["auto_edit"]);
        assert_eq!(values(&mut complete, "/model two"), ["ollama/two"]);
        assert_eq!(complete.offers("/model two")[0].start, 7);
        for text in ["", "say /mo", "/tools x", "//mo"] {
            assert_eq!(values(&mut complete, text), Vec::<String>::new(), "{text}");
        }
    }

    #[test]
    fn files_are_offered_after_an_at() {
        let (_directory, mut complete) = project();
        assert_eq!(values(&mut complete, "look at @mai"), ["@src/main.rs"]);
        assert_eq!(complete.offers("look at @mai")[0].start, 8);
        assert_eq!(values(&mut complete, "@two"), ["@\"two words.txt\""]);
        assert_eq!(values(&mut complete, "@\"two w"), ["@\"two words.txt\""]);
        assert_eq!(values(&mut complete, "me@mai"), Vec::<String>::new());
        assert_eq!(values(&mut complete, "@main.rs and"), Vec::<String>::new());
    }

    #[test]
    fn servers_are_offered_with_the_colon_after_their_name() {
        let (_directory, mut complete) = project();
        assert_eq!(values(&mut complete, "see @track")[0], "@tracker:");
        assert!(!complete.offers("see @track")[0].whole);
    }

    #[test]
    fn what_servers_have_is_offered_after_the_colon() {
        let (_directory, mut complete) = project();
        assert_eq!(values(&mut complete, "@tracker:is"), ["@tracker:is"], "nothing is known yet");
        complete.know(vec![Served {
            server: "tracker".into(),
            prompts: vec![("triage".into(), Some("Sort it".into()))],
            resources: vec![("issue://1".into(), Some("one".into())), ("user://{id}".into(), None)],
        }]);
        assert_eq!(values(&mut complete, "see @tracker:iss"), ["@tracker:issue://1"]);
        assert_eq!(complete.offers("see @tracker:iss")[0].start, 4);
        assert!(!complete.offers("@tracker:user")[0].whole);
        assert_eq!(values(&mut complete, "/tracker:"), ["/tracker:triage"]);
        assert_eq!(values(&mut complete, "/tr"), ["/tracker:triage"]);
    }

    #[test]
    fn paths_are_followed_step_by_step() {
        let (_directory, mut complete) = project();
        assert_eq!(values(&mut complete, "@./sr"), ["@./src/"]);
        assert!(!complete.offers("@./sr")[0].whole);
        assert_eq!(values(&mut complete, "@./src/m"), ["@./src/main.rs"]);
    }

    #[test]
    fn agents_are_offered_before_files_where_a_line_begins() {
        let (_directory, mut complete) = project();
        for text in ["@srce", "hello\n@srce"] {
            assert_eq!(values(&mut complete, text)[0], "@srcerer", "{text:?}");
        }
        let inside = values(&mut complete, "hello @srce");
        assert!(!inside.contains(&"@srcerer".to_owned()), "{inside:?}");
    }
}
