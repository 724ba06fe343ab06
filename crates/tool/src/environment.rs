//! The environment of a session: what `get_env` reads, `set_env` changes and child processes inherit.
//!
//! It is a copy handed in at the start; changing it never touches the process. Variables whose names
//! look like credentials are neither shown nor inherited unless they were granted by name.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

const SECRET_WORDS: [&str; 9] =
    ["KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL", "AUTH", "COOKIE", "PRIVATE"];

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
pub struct SessionEnvironment {
    variables: Arc<RwLock<BTreeMap<String, String>>>,
    granted: Arc<BTreeSet<String>>,
}

impl SessionEnvironment {
    /// Starts with these variables.
    pub fn new(variables: impl IntoIterator<Item = (String, String)>) -> Self {
        Self {
            variables: Arc::new(RwLock::new(variables.into_iter().collect())),
            granted: Arc::default(),
        }
    }

    /// Lets tools and child processes see these variables although they look like credentials.
    #[must_use]
    pub fn granting(mut self, names: impl IntoIterator<Item = String>) -> Self {
        self.granted = Arc::new(names.into_iter().collect());
        self
    }

    /// Returns a variable as a tool may see it.
    pub fn get(&self, name: &str) -> Variable {
        let variables = self.variables.read().unwrap_or_else(PoisonError::into_inner);
        match variables.get(name) {
            None => Variable::Unset,
            Some(_) if self.hides(name) => Variable::Masked,
            Some(value) => Variable::Visible(value.clone()),
        }
    }

    /// Sets a variable and returns what it was, as a tool may see it.
    pub fn set(&self, name: String, value: String) -> Variable {
        let previous = self.get(&name);
        let mut variables = self.variables.write().unwrap_or_else(PoisonError::into_inner);
        variables.insert(name, value);
        previous
    }

    /// Returns what a child process inherits.
    pub fn inherited(&self) -> BTreeMap<String, String> {
        let variables = self.variables.read().unwrap_or_else(PoisonError::into_inner);
        let visible = variables.iter().filter(|(name, _)| !self.hides(name));
        visible.map(|(name, value)| (name.clone(), value.clone())).collect()
    }

    fn hides(&self, name: &str) -> bool {
        let upper = name.to_uppercase();
        SECRET_WORDS.iter().any(|word| upper.contains(word)) && !self.granted.contains(name)
    }
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
    fn clones_share_changes() {
        let environment = environment();
        let other = environment.clone();
        assert_eq!(environment.set("A".into(), "1".into()), Variable::Unset);
        assert_eq!(other.get("A"), Variable::Visible("1".into()));
    }
}
