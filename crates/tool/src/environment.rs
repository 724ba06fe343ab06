//! The environment of a session: what `get_env` reads, `set_env` changes and child processes inherit.
//!
//! It is a copy handed in at the start; changing it never touches the process. Variables whose names
//! look like credentials are neither shown nor inherited unless they were granted by name.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

/// Words that make a name look like a credential; `GIT_AUTHOR_NAME` and `KEYBOARD` have none of them.
const SECRET_WORDS: [&str; 15] = [
    "KEY",
    "KEYS",
    "TOKEN",
    "TOKENS",
    "SECRET",
    "SECRETS",
    "PASSWORD",
    "PASSWD",
    "PASSPHRASE",
    "PASSFILE",
    "CREDENTIAL",
    "CREDENTIALS",
    "AUTH",
    "COOKIE",
    "DSN",
];
/// Words that end like one: `GITHUBTOKEN`, `APIKEY`.
const SECRET_ENDINGS: [&str; 5] = ["TOKEN", "SECRET", "PASSWORD", "APIKEY", "PASSFILE"];
/// Names that hold a credential without looking like it.
const SECRET_NAMES: [&str; 3] = ["DATABASE_URL", "MYSQL_PWD", "REDIS_URL"];

/// A variable as a tool may see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Variable {
    /// Not set.
    Unset,
    /// Set, and free to be seen.
    Visible(String),
    /// Set, but its name looks like a credential and was not granted.
    Masked,
}

/// The shared, changeable environment of one session.
#[derive(Clone, Default)]
pub struct SessionEnvironment(Arc<RwLock<Inner>>);

#[derive(Default)]
struct Inner {
    variables: BTreeMap<String, String>,
    /// Shown and inherited although they look like credentials.
    granted: BTreeSet<String>,
}

impl SessionEnvironment {
    /// Starts with these variables.
    pub fn new(variables: impl IntoIterator<Item = (String, String)>) -> Self {
        let variables = variables.into_iter().collect();
        Self(Arc::new(RwLock::new(Inner { variables, granted: BTreeSet::new() })))
    }

    /// Lets tools and child processes see these variables although they look like credentials.
    #[must_use]
    pub fn granting(self, names: impl IntoIterator<Item = String>) -> Self {
        self.0.write().unwrap_or_else(PoisonError::into_inner).granted.extend(names);
        self
    }

    /// Returns a variable as a tool may see it.
    pub fn get(&self, name: &str) -> Variable {
        self.0.read().unwrap_or_else(PoisonError::into_inner).get(name)
    }

    /// Sets a variable and returns what it was, as a tool may see it. What a session sets itself it may
    /// also see.
    pub fn set(&self, name: String, value: String) -> Variable {
        let mut inner = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let previous = inner.get(&name);
        inner.granted.insert(name.clone());
        inner.variables.insert(name, value);
        previous
    }

    /// Returns what a child process inherits.
    pub fn inherited(&self) -> BTreeMap<String, String> {
        let inner = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let visible = inner.variables.iter().filter(|(name, _)| !inner.hides(name));
        visible.map(|(name, value)| (name.clone(), value.clone())).collect()
    }
}

impl Inner {
    fn get(&self, name: &str) -> Variable {
        match self.variables.get(name) {
            None => Variable::Unset,
            Some(_) if self.hides(name) => Variable::Masked,
            Some(value) => Variable::Visible(value.clone()),
        }
    }

    fn hides(&self, name: &str) -> bool {
        looks_like_credential(name) && !self.granted.contains(name)
    }
}

/// Tells whether the name of a variable looks like that of a credential.
pub fn looks_like_credential(name: &str) -> bool {
    let upper = name.to_uppercase();
    let secret = |word: &str| {
        SECRET_WORDS.contains(&word) || SECRET_ENDINGS.iter().any(|ending| word.ends_with(ending))
    };
    SECRET_NAMES.contains(&upper.as_str())
        || upper.split(|letter: char| !letter.is_alphanumeric()).any(secret)
}

impl fmt::Debug for SessionEnvironment {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_set().entries(self.inherited().keys()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment() -> SessionEnvironment {
        let pairs = [("HOME", "/h"), ("GITHUB_TOKEN", "t"), ("OPENAI_API_KEY", "k")];
        SessionEnvironment::new(pairs.map(|(name, value)| (name.to_owned(), value.to_owned())))
    }

    #[test]
    fn credentials_are_neither_shown_nor_inherited() {
        let environment = environment();
        assert_eq!(environment.get("HOME"), Variable::Visible("/h".into()));
        assert_eq!(environment.get("OPENAI_API_KEY"), Variable::Masked);
        assert_eq!(environment.get("NOPE"), Variable::Unset);
        assert_eq!(environment.inherited().keys().collect::<Vec<_>>(), ["HOME"]);
        assert!(!format!("{environment:?}").contains("TOKEN"));
    }

    #[test]
    fn a_grant_shows_one_by_name() {
        let environment = environment().granting(["GITHUB_TOKEN".to_owned()]);
        assert_eq!(environment.get("GITHUB_TOKEN"), Variable::Visible("t".into()));
        assert_eq!(environment.get("OPENAI_API_KEY"), Variable::Masked);
    }

    #[test]
    fn names_are_judged_by_their_words() {
        for name in [
            "MY_API_KEY",
            "githubtoken",
            "AWS_SECRET_ACCESS_KEY",
            "PGPASSFILE",
            "MYSQL_PWD",
            "SENTRY_DSN",
        ] {
            assert!(looks_like_credential(name), "{name}");
        }
        for name in
            ["GIT_AUTHOR_NAME", "KEYBOARD_LAYOUT", "PWD", "MONKEY", "PATH", "TOKENIZER_PATH"]
        {
            assert!(!looks_like_credential(name), "{name}");
        }
    }

    #[test]
    fn what_the_session_sets_it_may_see() {
        let environment = environment();
        assert_eq!(environment.set("MY_API_KEY".into(), "k".into()), Variable::Unset);
        assert_eq!(environment.get("MY_API_KEY"), Variable::Visible("k".into()));
        assert!(environment.inherited().contains_key("MY_API_KEY"));
        assert_eq!(environment.set("OPENAI_API_KEY".into(), "new".into()), Variable::Masked);
    }

    #[test]
    fn clones_share_changes() {
        let environment = environment();
        let other = environment.clone();
        assert_eq!(environment.set("A".into(), "1".into()), Variable::Unset);
        assert_eq!(other.get("A"), Variable::Visible("1".into()));
    }
}
