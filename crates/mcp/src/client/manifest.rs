//! What a server offers, as it is kept from one run to the next.
//!
//! One file a server, whole or not there, for its owner alone. A file that cannot be read, that is of
//! another form, that was made for a server reached differently, or that is too old is as good as none.

use std::fs::OpenOptions;
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use convoke_core::Timestamp;
use convoke_tool::floor_char_boundary;
use rmcp::model::{ProtocolVersion, ServerPeerInfo};
use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};

use sha2::{Digest, Sha256};

use super::config::{ServerConfig, Transport};
use super::message::TASKS;
use super::name::{file_name, hex};
use super::offer::{Prompt, Resource, ResourceTemplate, ToolEntry};
use super::setback::SetbackFile;
use super::surroundings::Surroundings;

/// The form of the file. Another one is not read.
const FORM: u32 = 1;
const MAX_FILE_BYTES: u64 = 32 * 1024 * 1024;
/// A server need not be asked again sooner, however short the life of its lists is.
const SHORTEST_LIFETIME: Duration = Duration::from_mins(1);
/// How long the lists of a server hold that does not say how long they do.
const USUAL_LIFETIME: Duration = Duration::from_hours(24);
/// A server that was not seen for so long may offer anything by now.
pub(super) const OLDEST: Duration = Duration::from_hours(24 * 30);
const MAX_INSTRUCTIONS_BYTES: usize = 16 * 1024;
const MAX_NAME_BYTES: usize = 200;
/// How many digits tell directories apart in the name of a file.
const PLACE_DIGITS: usize = 8;

/// What a server said about itself when it was last spoken to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Facts {
    /// The revision of the protocol.
    pub(super) revision: String,
    /// Its own name.
    pub(super) name: Option<String>,
    /// Its version.
    pub(super) version: Option<String>,
    /// What it says about its use, or the beginning of it.
    pub(super) instructions: Option<String>,
    /// How many bytes that had before it was cut.
    #[serde(default)]
    pub(super) instructions_bytes: usize,
    /// What there is to be asked for.
    pub(super) tools: Capability,
    pub(super) resources: Capability,
    pub(super) prompts: Capability,
    /// Whether its tools may be called as tasks, as revision 2025-11-25 has them.
    #[serde(default)]
    pub(super) takes_tasks: bool,
}

/// Whether a server offers something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Capability {
    /// It does not.
    #[default]
    Absent,
    /// It does.
    Offered,
    /// It does, and says when the list changes.
    Announced,
}

impl Capability {
    const fn offered(announces: Option<bool>) -> Self {
        match announces {
            Some(true) => Self::Announced,
            _ => Self::Offered,
        }
    }
}

impl Facts {
    pub(super) fn of(agreed: &ServerPeerInfo) -> Self {
        let cut = |text: &str, limit: usize| {
            text.get(..floor_char_boundary(text, limit)).unwrap_or_default().to_owned()
        };
        let instructions =
            agreed.instructions.as_deref().map(|text| cut(text, MAX_INSTRUCTIONS_BYTES));
        let capabilities = &agreed.capabilities;
        let tasks = capabilities.experimental.as_ref().and_then(|all| all.get(TASKS));
        Self {
            takes_tasks: tasks.is_some_and(|tasks| {
                tasks.get("requests").is_some_and(|all| all.pointer("/tools/call").is_some())
            }),
            revision: agreed.protocol_version.to_string(),
            name: agreed.server_info.as_ref().map(|info| cut(&info.name, MAX_NAME_BYTES)),
            version: agreed.server_info.as_ref().map(|info| cut(&info.version, MAX_NAME_BYTES)),
            instructions,
            instructions_bytes: agreed.instructions.as_ref().map_or(0, String::len),
            tools: capabilities
                .tools
                .as_ref()
                .map_or(Capability::Absent, |all| Capability::offered(all.list_changed)),
            resources: capabilities
                .resources
                .as_ref()
                .map_or(Capability::Absent, |all| Capability::offered(all.list_changed)),
            prompts: capabilities
                .prompts
                .as_ref()
                .map_or(Capability::Absent, |all| Capability::offered(all.list_changed)),
        }
    }

    /// Tells whether the server is spoken to without a handshake.
    pub(super) fn is_stateless(&self) -> bool {
        self.revision == ProtocolVersion::V_2026_07_28.as_str()
    }
}

/// All that is known of what a server offers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Manifest {
    form: u32,
    /// What it was made for.
    fingerprint: String,
    /// When the server was asked.
    pub(super) at: Timestamp,
    /// How long the server said that this holds.
    pub(super) lifetime_ms: Option<u64>,
    pub(super) facts: Facts,
    pub(super) tools: Vec<ToolEntry>,
    pub(super) resources: Vec<Resource>,
    pub(super) templates: Vec<ResourceTemplate>,
    pub(super) prompts: Vec<Prompt>,
}

impl Manifest {
    pub(super) fn new(fingerprint: String, at: Timestamp, facts: Facts) -> Self {
        Self { form: FORM, fingerprint, at, facts, ..Self::default() }
    }

    /// Tells whether anything is known.
    pub(super) const fn is_known(&self) -> bool {
        !self.facts.revision.is_empty()
    }

    /// Returns how long it holds.
    pub(super) fn lifetime(&self) -> Duration {
        let said = self.lifetime_ms.map(Duration::from_millis);
        said.map_or(USUAL_LIFETIME, |said| said.max(SHORTEST_LIFETIME))
    }

    /// Tells whether it holds at this moment. What was asked in the future was not.
    pub(super) fn holds_at(&self, now: Timestamp) -> bool {
        self.is_known() && self.at <= now && now < self.at.after(self.lifetime())
    }
}

/// Where manifests are kept.
#[derive(Clone, Debug)]
pub(super) struct Cache {
    path: Option<PathBuf>,
    fingerprint: String,
}

impl Cache {
    /// The place for what is known of a server. Programs of the same words are other ones in another directory,
    /// and for another spawner, which is a project's.
    pub(super) fn of(config: &ServerConfig, surroundings: &Surroundings) -> Self {
        let name = file_name(&config.name);
        let (file, fingerprint) = match &config.transport {
            Transport::Http { .. } => (format!("{name}.json"), config.fingerprint(None)),
            Transport::Program { cwd, .. } => {
                let place =
                    surroundings.working_directory.join(cwd.as_deref().unwrap_or(Path::new("")));
                let mut whole = place.as_os_str().as_encoded_bytes().to_vec();
                whole.push(u8::from(surroundings.spawners.contains_key(&config.name)));
                let digest = hex(&Sha256::digest(&whole));
                let short = digest.get(..PLACE_DIGITS).unwrap_or_default();
                (format!("{name}-{short}.json"), config.fingerprint(Some(&whole)))
            }
        };
        let path = surroundings.cache_directory.as_ref().map(|place| place.join(file));
        Self { path, fingerprint }
    }

    pub(super) fn fingerprint(&self) -> String {
        self.fingerprint.clone()
    }

    /// Returns what was kept, if it still means anything.
    pub(super) fn read(&self, now: Timestamp) -> Option<Manifest> {
        let text = read_file(self.path.as_deref()?, MAX_FILE_BYTES)?;
        let kept: Manifest = serde_json::from_slice(&text).ok()?;
        let usable = kept.form == FORM
            && kept.fingerprint == self.fingerprint
            // A clock may have been wrong.
            && (kept.at..=kept.at.after(OLDEST)).contains(&now);
        usable.then_some(kept)
    }

    /// Keeps it, whole or not at all.
    pub(super) fn write(&self, manifest: &Manifest) -> io::Result<()> {
        let Some(path) = &self.path else {
            return Ok(());
        };
        let text = serde_json::to_vec(manifest)?;
        if text.len() as u64 > MAX_FILE_BYTES {
            return Err(io::Error::other("it is too long to be kept"));
        }
        write_file(path, &text)
    }

    /// Returns where it is kept that the server could not be started.
    pub(super) fn setbacks(&self) -> SetbackFile {
        let path = self.path.as_ref().map(|path| path.with_extension("failed.json"));
        SetbackFile { path, fingerprint: self.fingerprint.clone() }
    }
}

/// Reads a file that is not longer than this.
pub(super) fn read_file(path: &Path, limit: u64) -> Option<Vec<u8>> {
    let mut options = OpenOptions::new();
    // A pipe is not waited for.
    options.read(true).custom_flags(OFlags::NONBLOCK.bits().cast_signed());
    let mut file = options.open(path).ok()?;
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    let mut text = Vec::new();
    let length = (&mut file).take(limit + 1).read_to_end(&mut text).ok()?;
    (length as u64 <= limit).then_some(text)
}

/// Writes a file for its owner alone, whole or not at all.
pub(super) fn write_file(path: &Path, text: &[u8]) -> io::Result<()> {
    let directory = path.parent().unwrap_or(Path::new("."));
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    // Such a file is for its owner alone from the beginning.
    let mut file = tempfile::NamedTempFile::new_in(directory)?;
    file.write_all(text)?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn cache(directory: &Path, fingerprint: &str) -> Cache {
        let path = Some(directory.join("files.json"));
        Cache { path, fingerprint: fingerprint.to_owned() }
    }

    /// `python3 server.py` is another program in every directory.
    #[test]
    fn the_same_words_in_another_directory_are_another_server() {
        let place = tempfile::tempdir().unwrap();
        let of = |directory: &str, config: &ServerConfig| {
            let mut surroundings = Surroundings::new(directory);
            surroundings.cache_directory = Some(place.path().to_owned());
            Cache::of(config, &surroundings)
        };
        let program = ServerConfig::program("s", "python3", ["server.py"]);
        let (here, there) = (of("/a", &program), of("/b", &program));
        assert_ne!((&here.path, &here.fingerprint), (&there.path, &there.fingerprint));
        assert_ne!(here.fingerprint, there.fingerprint);
        let remote = ServerConfig::http("s", "https://x.example/");
        assert_eq!(of("/a", &remote).fingerprint, of("/b", &remote).fingerprint);
    }

    #[test]
    fn what_was_written_tomorrow_is_not_believed() {
        let directory = tempfile::tempdir().unwrap();
        let cache = cache(directory.path(), "f");
        let later = Timestamp::from_millis(2_000);
        cache.write(&Manifest::new("f".into(), later, Facts::default())).unwrap();
        assert_eq!(cache.read(Timestamp::from_millis(1_999)), None);
        assert!(cache.read(later).is_some());
    }

    #[test]
    fn what_could_not_be_read_again_is_not_written() {
        let directory = tempfile::tempdir().unwrap();
        let cache = cache(directory.path(), "f");
        let mut manifest = Manifest::new("f".into(), Timestamp::from_millis(1), Facts::default());
        manifest.facts.instructions = Some("x".repeat(33 << 20));
        assert!(cache.write(&manifest).is_err());
        assert_eq!(cache.read(Timestamp::from_millis(1)), None);
    }

    #[test]
    fn what_was_kept_is_read_again_by_its_owner_alone() {
        let directory = tempfile::tempdir().unwrap();
        let cache = cache(&directory.path().join("deep/down"), "f");
        let now = Timestamp::from_millis(1_000);
        let manifest = Manifest::new("f".into(), now, Facts::default());
        cache.write(&manifest).unwrap();
        assert_eq!(cache.read(now), Some(manifest));
        let path = directory.path().join("deep/down/files.json");
        assert_eq!(std::fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn it_holds_for_as_long_as_the_server_says_or_for_a_day() {
        let at = Timestamp::from_millis(1_700_000_000_000);
        let facts = Facts { revision: "2025-11-25".to_owned(), ..Facts::default() };
        for (said, lifetime) in [
            (None, USUAL_LIFETIME),
            (Some(0), SHORTEST_LIFETIME),
            (Some(600_000), Duration::from_mins(10)),
            (Some(u64::MAX), Duration::from_millis(u64::MAX)),
        ] {
            let manifest =
                Manifest { lifetime_ms: said, ..Manifest::new("f".into(), at, facts.clone()) };
            assert_eq!(manifest.lifetime(), lifetime);
            assert!(manifest.holds_at(at));
            assert!(!manifest.holds_at(Timestamp::from_millis(at.as_millis() - 1)));
            let end = at.after(lifetime);
            assert!(manifest.holds_at(Timestamp::from_millis(end.as_millis() - 1)), "{said:?}");
            assert!(!manifest.holds_at(end), "{said:?}");
        }
        assert!(!Manifest::new("f".into(), at, Facts::default()).holds_at(at), "nothing is known");
    }

    /// A schema is most of a file, and most are never looked at.
    #[test]
    fn schemas_are_kept_as_they_are_written() {
        let directory = tempfile::tempdir().unwrap();
        let cache = cache(directory.path(), "f");
        let now = Timestamp::from_millis(1_000);
        let schema = serde_json::json!({ "type": "object", "properties": { "z": {}, "a": {} } });
        let entry =
            serde_json::json!({ "name": "t", "inputSchema": schema, "outputSchema": schema });
        let entry = ToolEntry::read(&entry).unwrap();
        let plain = ToolEntry::read(&serde_json::json!({ "name": "p", "inputSchema": schema }));
        let mut manifest = Manifest::new("f".into(), now, Facts::default());
        manifest.tools = vec![entry.clone(), plain.unwrap()];
        cache.write(&manifest).unwrap();
        let read = cache.read(now).unwrap();
        let known = &read.tools[0].input;
        assert_eq!((known.known(), known.text().get()), (None, entry.input.text().get()));
        assert_eq!(read, manifest);
    }

    #[test]
    fn what_is_broken_old_or_made_for_another_server_is_ignored() {
        let directory = tempfile::tempdir().unwrap();
        let own = cache(directory.path(), "f");
        let now = Timestamp::from_millis(1_000);
        assert_eq!(own.read(now), None);
        own.write(&Manifest::new("f".into(), now, Facts::default())).unwrap();
        assert!(own.read(now.after(OLDEST)).is_some());
        assert_eq!(own.read(now.after(OLDEST + Duration::from_millis(1))), None);
        assert_eq!(cache(directory.path(), "g").read(now), None);

        let other_form = Manifest { form: 0, ..Manifest::new("f".into(), now, Facts::default()) };
        own.write(&other_form).unwrap();
        assert_eq!(own.read(now), None);
        let path = directory.path().join("files.json");
        for broken in ["", "{", "[]", "{\"form\":1}"] {
            let mut file = OpenOptions::new().write(true).truncate(true).open(&path).unwrap();
            file.write_all(broken.as_bytes()).unwrap();
            assert_eq!(own.read(now), None, "{broken}");
        }
    }
}
