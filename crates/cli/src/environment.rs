//! Everything the command reads from its process: variables, home and working directory.
//!
//! | variable | meaning |
//! | --- | --- |
//! | `CONVOKE_CONFIG` | the user's configuration file, in place of the usual one |
//! | `CONVOKE_TRUST_PROJECT` | `1` trusts the project's file, for CI |
//! | `CONVOKE_STATE` | where what is to be remembered is kept, in place of the usual directory |
//! | `CONVOKE__…` | one setting each: `CONVOKE__TOOLS__TIMEOUT=5000` |
//! | `XDG_CONFIG_HOME` | where configuration lives, if not in `~/.config` |
//! | `XDG_STATE_HOME` | where state lives, if not in `~/.local/state` |
//! | `XDG_DATA_HOME` | where workspaces of runs live, if not in `~/.local/share` |
//! | `HOME` | the home directory |
//! | `PATH` | where `convoke doctor` looks for programs |
//! | `NO_COLOR`, `CLICOLOR_FORCE`, `TERM` | no colour, colour always, a terminal without (`dumb`) |
//! | `LC_ALL`, `LC_CTYPE`, `LANG` | whether the terminal shows UTF-8 |
//!
//! All variables are handed to the session as well: tools read them with `get_env`, and programs that
//! tools start inherit them, except those whose names look like credentials.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

use crate::failure::Failure;

/// The user's configuration file, in place of the usual one.
pub(crate) const CONFIG: &str = "CONVOKE_CONFIG";
/// Whether the project's file is trusted.
pub(crate) const TRUST_PROJECT: &str = "CONVOKE_TRUST_PROJECT";

/// Where what is to be remembered is kept.
pub(crate) const STATE: &str = "CONVOKE_STATE";

/// The environment of the process, as it was when it started.
#[derive(Clone, Debug, Default)]
pub(crate) struct Environment(BTreeMap<OsString, OsString>);

impl Environment {
    /// Reads it.
    #[expect(clippy::disallowed_methods, reason = "this is the one place that reads it")]
    pub(crate) fn read() -> Self {
        Self(std::env::vars_os().collect())
    }

    /// Returns the variables that are text.
    pub(crate) fn variables(&self) -> BTreeMap<String, String> {
        let text = |(name, value): (&OsString, &OsString)| {
            Some((name.to_str()?.to_owned(), value.to_str()?.to_owned()))
        };
        self.0.iter().filter_map(text).collect()
    }

    /// Returns the home directory.
    pub(crate) fn home(&self) -> Option<PathBuf> {
        self.directory("HOME")
    }

    /// Returns the directory of the user's configuration.
    pub(crate) fn config_directory(&self) -> Option<PathBuf> {
        let base = self.directory("XDG_CONFIG_HOME");
        Some(base.or_else(|| Some(self.home()?.join(".config")))?.join("convoke"))
    }

    /// Returns the directory of what is to be remembered from one time to the next.
    pub(crate) fn state_directory(&self) -> Option<PathBuf> {
        let usual = || {
            let base = self.directory("XDG_STATE_HOME");
            Some(base.or_else(|| Some(self.home()?.join(".local/state")))?.join("convoke"))
        };
        self.directory(STATE).or_else(usual)
    }

    /// Returns the directory of what is made for the user, beside state that is hidden from programs.
    pub(crate) fn data_directory(&self) -> Option<PathBuf> {
        let base = self.directory("XDG_DATA_HOME");
        Some(base.or_else(|| Some(self.home()?.join(".local/share")))?.join("convoke"))
    }

    /// Returns the directory of what can be found out again.
    pub(crate) fn cache_directory(&self) -> Option<PathBuf> {
        let base = self.directory("XDG_CACHE_HOME");
        Some(base.or_else(|| Some(self.home()?.join(".cache")))?.join("convoke"))
    }

    /// Returns the configuration file that is named in place of the usual one.
    pub(crate) fn config_file(&self) -> Option<PathBuf> {
        self.value(CONFIG).map(PathBuf::from)
    }

    /// Tells whether the project's file is to be trusted.
    pub(crate) fn trusts_project(&self) -> Result<bool, Failure> {
        match self.text(TRUST_PROJECT) {
            None | Some("0" | "false") => Ok(false),
            Some("1" | "true") => Ok(true),
            Some(_) => Err(Failure::usage(format!("the variable {TRUST_PROJECT} is not 0 or 1"))),
        }
    }

    /// Returns the directories in which programs are looked for.
    pub(crate) fn program_directories(&self) -> Vec<PathBuf> {
        self.value("PATH").map(|path| std::env::split_paths(path).collect()).unwrap_or_default()
    }

    /// Tells whether colour is not wanted.
    pub(crate) fn no_color(&self) -> bool {
        self.value("NO_COLOR").is_some()
    }

    /// Tells whether colour is wanted anywhere.
    pub(crate) fn forces_color(&self) -> bool {
        self.value("CLICOLOR_FORCE").is_some_and(|value| value != "0")
    }

    /// Tells whether the terminal can show nothing but text.
    pub(crate) fn is_dumb_terminal(&self) -> bool {
        self.text("TERM") == Some("dumb")
    }

    /// Tells whether the terminal shows more than ASCII.
    pub(crate) fn shows_unicode(&self) -> bool {
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"].iter().find_map(|name| self.text(name));
        let locale = locale.unwrap_or_default().to_ascii_lowercase();
        !self.is_dumb_terminal() && (locale.contains("utf-8") || locale.contains("utf8"))
    }

    /// A relative or empty directory is as good as none.
    fn directory(&self, name: &str) -> Option<PathBuf> {
        self.value(name).map(PathBuf::from).filter(|path| path.is_absolute())
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.value(name).map(|value| value.to_str().unwrap_or("?"))
    }

    fn value(&self, name: &str) -> Option<&OsString> {
        self.0.get(&OsString::from(name)).filter(|value| !value.is_empty())
    }

    /// An environment of these variables.
    #[cfg(test)]
    pub(crate) fn of(pairs: &[(&str, &str)]) -> Self {
        Self(pairs.iter().map(|(name, value)| (name.into(), value.into())).collect())
    }
}

/// Returns the directory the command was started in.
#[expect(clippy::disallowed_methods, reason = "this is the one place that reads it")]
pub(crate) fn current_directory() -> io::Result<PathBuf> {
    std::env::current_dir()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn configuration_lives_where_the_user_says() {
        let at = |pairs: &[(&str, &str)]| Environment::of(pairs).config_directory();
        assert_eq!(at(&[]), None);
        assert_eq!(at(&[("HOME", "/h")]), Some("/h/.config/convoke".into()));
        assert_eq!(at(&[("HOME", "/h"), ("XDG_CONFIG_HOME", "/x")]), Some("/x/convoke".into()));
        let relative = [("HOME", "/h"), ("XDG_CONFIG_HOME", "x")];
        assert_eq!(at(&relative), Some("/h/.config/convoke".into()));
    }

    #[test]
    fn state_lives_where_the_user_says() {
        let at = |pairs: &[(&str, &str)]| Environment::of(pairs).state_directory();
        assert_eq!(at(&[]), None);
        assert_eq!(at(&[("HOME", "/h")]), Some("/h/.local/state/convoke".into()));
        let both = [("HOME", "/h"), ("XDG_STATE_HOME", "/x")];
        assert_eq!(at(&both), Some("/x/convoke".into()));
        assert_eq!(at(&[(STATE, "/s"), ("XDG_STATE_HOME", "/x")]), Some("/s".into()));
        assert_eq!(at(&[(STATE, "s"), ("HOME", "/h")]), Some("/h/.local/state/convoke".into()));
    }

    #[test]
    fn trust_has_to_be_said_clearly() {
        let trusts = |value| Environment::of(&[(TRUST_PROJECT, value)]).trusts_project().ok();
        assert_eq!([trusts("1"), trusts("true")], [Some(true); 2]);
        assert_eq!([trusts(""), trusts("0"), trusts("false")], [Some(false); 3]);
        assert_eq!([trusts("yes please"), trusts("2")], [None; 2]);
    }

    #[test]
    fn the_first_locale_that_is_set_counts() {
        let shows = |pairs: &[(&str, &str)]| Environment::of(pairs).shows_unicode();
        assert!(shows(&[("LANG", "en_GB.UTF-8")]));
        assert!(!shows(&[("LANG", "en_GB.UTF-8"), ("LC_ALL", "C")]));
        assert!(!shows(&[("LANG", "en_GB.utf8"), ("TERM", "dumb")]));
        assert!(!shows(&[]));
    }
}
