//! How the last try to start a server failed, kept beside what it offers until one works.
//!
//! What is known of a server's tools stays true for a while when it cannot be started; that it could not be is worth
//! knowing as well, also to another process. One small file a server, for its owner alone.

use std::cmp::Reverse;
use std::io;
use std::path::PathBuf;

use convoke_core::Timestamp;
use serde::{Deserialize, Serialize};

use super::config::{ServerConfig, Transport};
use super::manifest::{OLDEST, read_file, write_file};
use super::offer::cut;

/// How much of a reason is kept.
const MAX_WHY_BYTES: usize = 2 * 1024;
const MAX_FILE_BYTES: u64 = 16 * 1024;
/// A shorter value of a variable may be any word.
const SHORTEST_SECRET: usize = 6;

/// How the last try to start a server failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Setback {
    /// When.
    pub at: Timestamp,
    /// Why, for a person.
    pub why: String,
    /// Whether somebody has to log in first.
    pub wants_login: bool,
}

/// A setback as it is kept.
#[derive(Debug, Serialize, Deserialize)]
struct Kept {
    /// What it was made for.
    fingerprint: String,
    #[serde(flatten)]
    setback: Setback,
}

/// Where the last setback of one server is kept.
#[derive(Clone, Debug)]
pub(super) struct SetbackFile {
    pub(super) path: Option<PathBuf>,
    pub(super) fingerprint: String,
}

impl SetbackFile {
    /// Returns what was kept, if it is about this server and not too old.
    pub(super) fn read(&self, now: Timestamp) -> Option<Setback> {
        let text = read_file(self.path.as_deref()?, MAX_FILE_BYTES)?;
        let Kept { fingerprint, setback } =
            serde_json::from_slice::<Option<Kept>>(&text).ok()??;
        let is_usable = fingerprint == self.fingerprint
            && (setback.at..=setback.at.after(OLDEST)).contains(&now);
        is_usable.then_some(setback)
    }

    /// Keeps a setback; without one, forgets what was kept.
    pub(super) fn write(&self, setback: Option<&Setback>) -> io::Result<()> {
        let Some(path) = &self.path else { return Ok(()) };
        if setback.is_none() && !path.exists() {
            return Ok(());
        }
        let fingerprint = || self.fingerprint.clone();
        let kept =
            setback.map(|setback| Kept { fingerprint: fingerprint(), setback: setback.clone() });
        write_file(path, &serde_json::to_vec(&kept)?)
    }
}

/// Returns a reason as it may be kept: short, and without what the server was given in confidence.
pub(super) fn kept_reason(why: &str, config: &ServerConfig) -> String {
    let given = match &config.transport {
        Transport::Program { env, .. } => env,
        Transport::Http { headers, .. } => headers,
    };
    let words = given.values().flat_map(|value| value.split_whitespace().chain([value.as_str()]));
    let mut words: Vec<&str> = words.filter(|word| word.len() >= SHORTEST_SECRET).collect();
    // One may be the beginning of another, whose end would be left over.
    words.sort_unstable_by_key(|word| Reverse(word.len()));
    let why = words.iter().fold(why.to_owned(), |why, word| why.replace(*word, "…"));
    cut(&why, MAX_WHY_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_kept_is_read_again_and_forgotten() {
        let directory = tempfile::tempdir().unwrap();
        let path = Some(directory.path().join("deep/s.failed.json"));
        let file = SetbackFile { path, fingerprint: "f".into() };
        let now = Timestamp::from_millis(5_000);
        let setback = Setback { at: now, why: "it is gone".into(), wants_login: false };
        assert_eq!(file.read(now), None);
        file.write(None).unwrap();
        file.write(Some(&setback)).unwrap();
        assert_eq!(file.read(now), Some(setback));
        assert_eq!(file.read(Timestamp::from_millis(4_999)), None);
        let other = SetbackFile { fingerprint: "g".into(), ..file.clone() };
        assert_eq!(other.read(now), None, "it is about another server");
        file.write(None).unwrap();
        assert_eq!(file.read(now), None);
    }

    #[test]
    fn keys_are_not_kept() {
        let config = ServerConfig::http("s", "https://x.example").header("A", "Bearer sk-abcdef");
        let why = kept_reason("401: sk-abcdef is wrong, Bearer too", &config);
        assert_eq!(why, "401: … is wrong, … too");
        let config =
            ServerConfig::program("s", "x", ["-v"]).env("A", "secret").env("B", "secret-2");
        assert_eq!(kept_reason("no: secret-2 (secret)", &config), "no: … (…)");
    }
}
