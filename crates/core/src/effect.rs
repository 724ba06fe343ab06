//! What a call touches: the resources it reads and writes, known before it runs.
//!
//! Most tools can say it as data ([`EffectRules`]: "the argument `path` is a path that I write");
//! a tool whose effects depend on more computes [`Effects`] itself. Authorisation, scheduling and
//! cache invalidation all read the same answer.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::endpoint::Endpoint;

/// Something outside the process.
#[derive(
    Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Resource {
    /// A file or directory, as the caller spelled it.
    Path(String),
    /// A network host with its port where that is known, as an [`Endpoint`] is written; `*` for any.
    Host(String),
    /// A server whose tools are here too, as their names begin (`mcp__files__`): what holds for all of them
    /// holds for whatever else is asked of it.
    Server(String),
    /// An environment variable of the session, which programs that are started later see.
    Variable(String),
}

/// How a resource is touched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    /// Looked at.
    Read,
    /// Changed, created or removed.
    Write,
}

/// The resources one call touches.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Effects {
    /// What is looked at.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reads: Vec<Resource>,
    /// What is changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub writes: Vec<Resource>,
}

impl Effects {
    /// Touches nothing.
    pub const NONE: Self = Self { reads: Vec::new(), writes: Vec::new() };

    /// Returns every resource with how it is touched.
    pub fn iter(&self) -> impl Iterator<Item = (Access, &Resource)> {
        let reads = self.reads.iter().map(|resource| (Access::Read, resource));
        reads.chain(self.writes.iter().map(|resource| (Access::Write, resource)))
    }

    /// Returns the paths that are touched, with how.
    pub fn paths(&self) -> impl Iterator<Item = (Access, &str)> {
        self.iter().filter_map(|(access, resource)| match resource {
            Resource::Path(path) => Some((access, path.as_str())),
            _ => None,
        })
    }

    /// Returns the servers that are touched, as the names of their tools begin.
    pub fn servers(&self) -> impl Iterator<Item = &str> {
        self.iter().filter_map(|(_, resource)| match resource {
            Resource::Server(start) => Some(start.as_str()),
            _ => None,
        })
    }
}

/// Which arguments of a tool name the resources it touches.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EffectRules {
    /// Arguments that are paths it reads.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reads: Vec<String>,
    /// Arguments that are paths it writes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub writes: Vec<String>,
    /// Arguments that are URLs it fetches.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub urls: Vec<String>,
}

impl EffectRules {
    /// Works out what a call with these arguments touches. An argument that is absent, or not text,
    /// touches nothing.
    pub fn apply(&self, arguments: &Value) -> Effects {
        let texts = |names: &[String]| -> Vec<String> {
            names.iter().flat_map(|name| strings(arguments.get(name))).collect()
        };
        let mut reads: Vec<Resource> = texts(&self.reads).into_iter().map(Resource::Path).collect();
        reads.extend(texts(&self.urls).iter().map(|url| Resource::Host(host_of(url))));
        let writes = texts(&self.writes).into_iter().map(Resource::Path).collect();
        Effects { reads, writes }
    }
}

fn strings(value: Option<&Value>) -> Vec<String> {
    match value {
        Some(Value::String(text)) => vec![text.clone()],
        Some(Value::Array(items)) => {
            items.iter().filter_map(Value::as_str).map(str::to_owned).collect()
        }
        _ => Vec::new(),
    }
}

/// Returns where a URL leads. A text that is no URL may lead anywhere: the tool decides how to read it.
fn host_of(url: &str) -> String {
    Endpoint::of_url(url).map_or(Endpoint::ANYWHERE.to_owned(), |endpoint| endpoint.to_string())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn rules_turn_arguments_into_resources() {
        let rules = EffectRules {
            reads: vec!["from".into(), "missing".into(), "count".into()],
            writes: vec!["to".into(), "many".into()],
            urls: vec!["url".into()],
        };
        let effects = rules.apply(&json!({
            "from": "a", "count": 3, "to": "b", "many": ["c", "d"],
            "url": "https://user:secret@Example.COM:8443/x",
        }));
        let path = |text: &str| Resource::Path(text.into());
        assert_eq!(effects.reads, [path("a"), Resource::Host("example.com:8443".into())]);
        assert_eq!(effects.writes, [path("b"), path("c"), path("d")]);
    }

    #[test]
    fn effect_rules_take_a_text_that_is_no_url_for_any_host() {
        let rules = EffectRules { urls: vec!["url".into()], ..EffectRules::default() };
        for text in ["good.example", "http://", "://good.example/", "file:///x", ""] {
            let effects = rules.apply(&json!({ "url": text }));
            assert_eq!(effects.reads, [Resource::Host("*".into())], "{text}");
        }
    }
}
