//! The environment of a session: what `get_env` reads, `set_env` changes and child processes inherit.
//!
//! It is a copy handed in at the start; changing it never touches the process. A child process inherits
//! the variables of a list that programs need to run and to build, those that the session set, and those
//! that were granted; no others. Variables that look like credentials are neither shown nor inherited
//! unless they were granted by their whole name; nor is the value of a usual variable inherited if it
//! holds a token, as the address of a proxy may.

mod allowed;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use convoke_core::policy::wildcard;
use convoke_core::secret::holds_token;
use convoke_core::variable::is_harmless;

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
    /// Names that the session itself has set.
    set: BTreeSet<String>,
    /// Patterns of names that are inherited unless they look like credentials.
    passed_on: Vec<String>,
}

impl SessionEnvironment {
    /// Starts with these variables.
    pub fn new(variables: impl IntoIterator<Item = (String, String)>) -> Self {
        let variables = variables.into_iter().collect();
        Self(Arc::new(RwLock::new(Inner { variables, ..Inner::default() })))
    }

    /// Lets child processes have these variables, with `*` for any text in a name. One that looks like a
    /// credential is shown and passed on only if it is named without `*`.
    #[must_use]
    pub fn granting(self, names: impl IntoIterator<Item = String>) -> Self {
        let (patterns, names): (Vec<String>, Vec<String>) =
            names.into_iter().partition(|name| name.contains('*'));
        let mut inner = self.0.write().unwrap_or_else(PoisonError::into_inner);
        inner.granted.extend(names);
        inner.passed_on.extend(patterns);
        drop(inner);
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
        inner.set.insert(name.clone());
        inner.variables.insert(name, value);
        previous
    }

    /// Returns the variables that the session has set and that can change what programs do.
    pub fn set_for_programs(&self) -> Vec<String> {
        let inner = self.0.read().unwrap_or_else(PoisonError::into_inner);
        inner.set.iter().filter(|name| !is_harmless(name)).cloned().collect()
    }

    /// Returns what a child process inherits.
    pub fn inherited(&self) -> BTreeMap<String, String> {
        let inner = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let inherited = inner.variables.iter().filter(|(name, value)| inner.passes_on(name, value));
        inherited.map(|(name, value)| (name.clone(), value.clone())).collect()
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

    fn passes_on(&self, name: &str, value: &str) -> bool {
        if self.granted.contains(name) {
            return true;
        }
        let is_named = self.passed_on.iter().any(|pattern| wildcard(pattern, name));
        (is_named || allowed::is_usual(name)) && !looks_like_credential(name) && !holds_token(value)
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
    fn a_program_gets_what_it_needs_and_nothing_else() {
        let pairs = [
            ("PATH", "/usr/bin"),
            ("LC_ALL", "C"),
            ("CARGO_HOME", "/c"),
            ("CARGO_REGISTRY_TOKEN", "t"),
            ("GOPATH", "/g"),
            ("NODE_OPTIONS", "--max-old-space-size=1"),
            ("npm_config_registry", "https://registry.example"),
            ("npm_config__authToken", "t"),
            ("CI", "true"),
            ("HTTPS_PROXY", "http://me:hunter2-and-4@proxy:3128"),
            ("http_proxy", "http://proxy:3128"),
            ("PIP_INDEX_URL", "https://ci:0a1b2c3d4e@pypi.example/simple"),
            ("MY_SERVICE", "internal"),
            ("MYAPP_MODE", "fast"),
            ("MYAPP_TOKEN", "t"),
            ("SSH_AUTH_SOCK", "/s"),
            ("KUBECONFIG", "/k"),
        ];
        let environment = || {
            SessionEnvironment::new(pairs.map(|(name, value)| (name.to_owned(), value.to_owned())))
        };
        let inherited: Vec<String> = environment().inherited().into_keys().collect();
        let usual = [
            "CARGO_HOME",
            "CI",
            "GOPATH",
            "LC_ALL",
            "NODE_OPTIONS",
            "PATH",
            "http_proxy",
            "npm_config_registry",
        ];
        assert_eq!(inherited, usual);
        let granted = ["MYAPP_*", "KUBECONFIG", "CARGO_REGISTRY_TOKEN"].map(str::to_owned);
        let more = environment().granting(granted).inherited();
        let more: Vec<&str> =
            more.keys().map(String::as_str).filter(|name| !usual.contains(name)).collect();
        assert_eq!(more, ["CARGO_REGISTRY_TOKEN", "KUBECONFIG", "MYAPP_MODE"]);
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
    fn variables_that_the_session_set_for_programs_are_known() {
        let environment = environment();
        assert_eq!(environment.set_for_programs(), [""; 0], "HOME was there before");
        environment.set("NO_COLOR".into(), "1".into());
        environment.set("XDG_CONFIG_HOME".into(), "cfg".into());
        assert_eq!(environment.set_for_programs(), ["XDG_CONFIG_HOME"]);
    }

    #[test]
    fn clones_share_changes() {
        let environment = environment();
        let other = environment.clone();
        assert_eq!(environment.set("A".into(), "1".into()), Variable::Unset);
        assert_eq!(other.get("A"), Variable::Visible("1".into()));
    }
}
