//! What a program may do. Plain data: nothing here asks the system or enforces anything.
//!
//! The defaults are the careful ones. What is hidden is hidden even below a root that may be read.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::host::{Host, Hosts, Reach};
use crate::preflight::Backend;

/// The places that hold credentials, one a line.
const CREDENTIALS: &str = include_str!("../data/credentials.txt");

/// Without these hardly any program starts.
const SYSTEM: &[&str] =
    &["/bin", "/etc", "/lib", "/lib32", "/lib64", "/opt", "/proc", "/sbin", "/sys", "/usr"];

/// Lists where credentials usually are: below this home directory, and in the system's own places.
pub fn secrets_of(home: Option<&Path>) -> Vec<PathBuf> {
    let place = |line: &str| {
        let path = line.split(" | ").next()?.trim();
        match (path, home) {
            ("", _) => None,
            (path, _) if path.starts_with('#') => None,
            (path, _) if path.starts_with('/') => Some(PathBuf::from(path)),
            (path, home) => Some(home?.join(path)),
        }
    };
    CREDENTIALS.lines().filter_map(place).collect()
}

/// Whom a program may talk to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Network {
    /// Nobody, not even this machine.
    #[default]
    None,
    /// Everybody.
    All,
    /// These hosts only.
    Hosts(Vec<String>),
}

impl Network {
    /// Says how far a program may follow a host, written as in a URL. A list with something in it that is
    /// no host leads nowhere.
    pub fn reach(&self, host: &str, port: u16) -> Reach {
        match self {
            Self::None => Reach::Nowhere,
            Self::All => Reach::Anywhere,
            Self::Hosts(list) => {
                let host = Host::parse(&format!("{host}:{port}"), None);
                let reach = Hosts::parse(list).ok().zip(host);
                reach.map_or(Reach::Nowhere, |(hosts, host)| hosts.reach(&host))
            }
        }
    }
}

/// How much a program may use. What is not given is not limited.
///
/// A program is what was started and everything that it starts. What all of that uses together only a
/// control group can hold, so these are refused where none can be made; the others hold everywhere.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// How many processes a program may be at a time. The guard counts them fifty times a second, and
    /// ends all of them when there are more. In a control group, which is made for `memory` or `cpu`
    /// alone, the kernel refuses the next one, and threads count as well.
    pub processes: Option<u32>,
    /// How many bytes of memory a program may take, what it keeps in files in memory included. One that
    /// needs more is ended. It needs a control group.
    pub memory: Option<u64>,
    /// How many bytes of address space each process may take. Not every runtime can live with that: some
    /// reserve far more than they use.
    pub memory_per_process: Option<u64>,
    /// How much processor time a program may take. One that takes more is ended. It needs a control group.
    pub cpu: Option<Duration>,
    /// How much processor time each process may take, in whole seconds.
    pub cpu_per_process: Option<Duration>,
    /// How large a file may grow.
    pub file_size: Option<u64>,
}

impl Limits {
    /// Tells whether something is limited that only a control group can hold.
    pub const fn are_together(&self) -> bool {
        self.memory.is_some() || self.cpu.is_some()
    }
}

/// What a program may do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Confinement {
    /// Below these it may read and run files.
    pub read: Vec<PathBuf>,
    /// Below these it may also write.
    pub write: Vec<PathBuf>,
    /// Below these it may write as well, unless something hidden lies there. For what is shared by all,
    /// as the directory for temporary files.
    pub scratch: Vec<PathBuf>,
    /// Below this a directory is made that only its programs use, with the first of them. They find it
    /// in `TMPDIR` and may write there, whatever else is hidden. It is removed with whoever starts them.
    pub temporary: Option<PathBuf>,
    /// These it can neither read nor write, wherever they are. Their names may still be listed.
    pub hidden: Vec<PathBuf>,
    /// These it cannot write, though they lie where it may, as long as they are there when it starts. Only
    /// bubblewrap can make it so: what Landlock allows at a directory holds for everything below.
    pub protected: Vec<PathBuf>,
    /// Whom it may talk to.
    pub network: Network,
    /// Whether it may talk to services of this machine through Unix sockets: agents that hold keys, the
    /// desktop, container engines.
    pub local_sockets: bool,
    /// Whether it may send signals to programs other than those it started.
    pub signals: bool,
    /// How much it may use.
    pub limits: Limits,
}

impl Default for Confinement {
    /// Nothing but a processor.
    fn default() -> Self {
        Self {
            read: Vec::new(),
            write: Vec::new(),
            scratch: Vec::new(),
            temporary: None,
            hidden: Vec::new(),
            protected: Vec::new(),
            network: Network::None,
            local_sockets: false,
            signals: false,
            limits: Limits::default(),
        }
    }
}

impl Confinement {
    /// What commands get: they read everything but secrets, write below `roots`, in the directory for
    /// temporary files, in one of their own there and in `/dev/shm`, and talk to nobody.
    pub fn for_commands(
        roots: impl IntoIterator<Item = PathBuf>,
        temporary: PathBuf,
        home: Option<&Path>,
    ) -> Self {
        Self {
            read: vec![PathBuf::from("/")],
            write: roots.into_iter().collect(),
            scratch: vec![temporary.clone(), PathBuf::from("/dev/shm")],
            temporary: Some(temporary),
            hidden: secrets_of(home),
            limits: Limits { processes: Some(2048), ..Limits::default() },
            ..Self::default()
        }
    }

    /// Lists the directories that are shared by all and stay closed, each with what is hidden below it.
    /// Only bubblewrap can hide what lies in a directory that may be written.
    pub fn closed(&self, backend: Backend) -> Vec<(&Path, &Path)> {
        if backend == Backend::Bubblewrap {
            return Vec::new();
        }
        let hidden_below = |root: &&PathBuf| self.hidden.iter().find(|path| path.starts_with(root));
        let closed = self.scratch.iter().filter_map(|root| Some((root, hidden_below(&root)?)));
        closed.map(|(root, hidden)| (root.as_path(), hidden.as_path())).collect()
    }

    /// Lets it read below these directories and the system's own only.
    #[must_use]
    pub fn reading_only(mut self, directories: impl IntoIterator<Item = PathBuf>) -> Self {
        self.read = directories.into_iter().chain(SYSTEM.iter().map(PathBuf::from)).collect();
        self
    }

    /// Hides one more path.
    #[must_use]
    pub fn hide(mut self, path: impl Into<PathBuf>) -> Self {
        self.hidden.push(path.into());
        self
    }

    /// Keeps these from being written, where that can be done.
    #[must_use]
    pub fn protect(mut self, paths: impl IntoIterator<Item = PathBuf>) -> Self {
        self.protected.extend(paths);
        self
    }

    /// Says whom it may talk to.
    #[must_use]
    pub fn network(mut self, network: Network) -> Self {
        self.network = network;
        self
    }

    /// Limits what it may use.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credential_list_names_each_place_once_with_its_contents_and_source() {
        let mut seen = std::collections::BTreeSet::new();
        for line in CREDENTIALS.lines().filter(|line| !line.starts_with('#')) {
            let fields: Vec<_> = line.split(" | ").collect();
            assert!(fields.len() == 3 && fields.iter().all(|field| !field.is_empty()), "{line}");
            assert!(seen.insert(fields[0]), "{line} is there twice");
        }
        let hidden = secrets_of(Some(Path::new("/home/me")));
        assert_eq!(hidden.len(), seen.len());
        for usual in [".git-credentials", ".claude/.credentials.json", ".bash_history", ".kube"] {
            assert!(hidden.contains(&Path::new("/home/me").join(usual)), "{usual}");
        }
        let of_system = secrets_of(None);
        assert!(of_system.contains(&PathBuf::from("/etc/shadow")));
        assert!(of_system.iter().all(|path| path.is_absolute()));
    }
}
