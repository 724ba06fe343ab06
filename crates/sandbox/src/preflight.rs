//! What can be enforced on this machine, and whether that is enough for what is asked.
//!
//! The answer is never "almost": [`Preflight::check`] refuses a confinement if any part of it would not
//! hold, and says which part, why, and what would help.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::confinement::{Confinement, Network};
use crate::host::NotAHost;

/// With this version Landlock also covers truncating files and moving them between directories.
const ABI_FILES: u32 = 3;
/// With this version Landlock also covers signals.
const ABI_SIGNALS: u32 = 6;
const HOSTS: &str = "allowed hosts only";

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Preflight {
    /// The version of Landlock; 0 where there is none.
    pub landlock: u32,
    /// Whether system calls can be filtered.
    pub seccomp: bool,
    /// Whether the kernel tells which children a process has, so that all of them can be ended.
    pub children: bool,
    /// Whether a program can have a network of its own.
    pub own_network: Tried,
    /// Whether bubblewrap is there and works.
    pub bubblewrap: Tried,
}

/// Who makes the walls. What both need, the filter on system calls and the guard, is ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Backend {
    /// The kernel, by Landlock.
    Landlock,
    /// The program `bwrap`, with mounts and namespaces.
    Bubblewrap,
}

impl Backend {
    /// Both, the one that is preferred first.
    pub const ALL: [Self; 2] = [Self::Landlock, Self::Bubblewrap];
}

/// What came of trying something.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Tried {
    /// It was not needed, so it was not tried.
    Not,
    /// It works.
    Works,
    /// It does not, and this is why.
    Fails(String),
}

impl Tried {
    #[cfg(target_os = "linux")]
    fn from_result<T, E: std::fmt::Display>(tried: Result<T, E>) -> Self {
        tried.map_or_else(|error| Self::Fails(error.to_string()), |_| Self::Works)
    }

    fn as_feature(&self, how: &str) -> (bool, String) {
        match self {
            Self::Works => (true, how.to_owned()),
            Self::Fails(why) => (false, why.clone()),
            Self::Not => (false, "it was not tried".to_owned()),
        }
    }
}

/// One thing that may be asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Feature {
    /// What it is.
    pub name: &'static str,
    /// Whether it can be enforced here.
    pub enforced: bool,
    /// By what, or what is missing.
    pub how: String,
}

/// Something was asked for that cannot be enforced here.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("the sandbox cannot enforce {what} here: {why}; {hint}")]
pub struct NotEnforceable {
    /// What was asked for.
    pub what: String,
    /// Why it does not work.
    pub why: String,
    /// What would help.
    pub hint: String,
}

impl NotEnforceable {
    pub(crate) fn new(
        what: impl Into<String>,
        why: impl Into<String>,
        hint: impl Into<String>,
    ) -> Self {
        Self { what: what.into(), why: why.into(), hint: hint.into() }
    }

    /// Says that bubblewrap, which was asked next, cannot do it either.
    pub(crate) fn or(mut self, bubblewrap: &Self) -> Self {
        if self.why != bubblewrap.why {
            self.why.push_str(&format!("; nor does bubblewrap help: {}", bubblewrap.why));
        }
        self
    }
}

impl From<NotAHost> for NotEnforceable {
    fn from(error: NotAHost) -> Self {
        Self::new("a list of allowed hosts", error.to_string(), "correct it")
    }
}

impl Preflight {
    /// Asks the kernel, and tries what can only be tried.
    pub fn look() -> Self {
        let mut found = Self::ask();
        found.try_own_network();
        found.try_bubblewrap(&Confinement::for_commands([], "/tmp".into(), None));
        found
    }

    /// Does the same, and leaves out what this confinement does not need from this backend.
    pub fn for_confinement(confinement: &Confinement, backend: Backend) -> Self {
        let mut found = Self::ask();
        if matches!(confinement.network, Network::Hosts(_)) {
            found.try_own_network();
        }
        if backend == Backend::Bubblewrap {
            found.try_bubblewrap(confinement);
        }
        found
    }

    fn ask() -> Self {
        let nothing = Self {
            landlock: 0,
            seccomp: false,
            children: false,
            own_network: Tried::Not,
            bubblewrap: Tried::Not,
        };
        #[cfg(target_os = "linux")]
        return Self {
            landlock: crate::linux::files::version(),
            seccomp: crate::linux::calls::available(),
            children: crate::linux::guard::sees_children(),
            ..nothing
        };
        #[cfg(not(target_os = "linux"))]
        nothing
    }

    fn try_own_network(&mut self) {
        #[cfg(target_os = "linux")]
        {
            self.own_network = Tried::from_result(crate::linux::network::try_out());
        }
    }

    fn try_bubblewrap(&mut self, confinement: &Confinement) {
        #[cfg(target_os = "linux")]
        {
            self.bubblewrap = Tried::from_result(crate::linux::try_bubblewrap(confinement));
        }
        #[cfg(not(target_os = "linux"))]
        let _ = confinement;
    }

    /// Lists what a backend can enforce, one by one.
    pub fn features(&self, backend: Backend) -> Vec<Feature> {
        let landlock = |needs: u32| match self.landlock {
            0 => (false, "this kernel has no Landlock, or it is off".to_owned()),
            found if found < needs => (false, format!("Landlock {found} found, {needs} needed")),
            found => (true, format!("Landlock {found}")),
        };
        let (files, signals) = match backend {
            Backend::Landlock => (landlock(ABI_FILES), landlock(ABI_SIGNALS)),
            Backend::Bubblewrap => {
                let walls = self.bubblewrap.as_feature("bubblewrap");
                (walls.clone(), walls)
            }
        };
        let by = |there: bool, how: &str, missing: &str| {
            (there, if there { how } else { missing }.to_owned())
        };
        let seccomp = by(self.seccomp, "seccomp", "system calls cannot be filtered here");
        let missing = "the kernel does not list the children of a process";
        let guard = by(self.children, "the guard", missing);
        let hosts = self.own_network.as_feature("a network of its own, with a proxy");
        let feature = |name, (enforced, how)| Feature { name, enforced, how };
        vec![
            feature("files", files),
            feature("signals", signals),
            feature("no network", seccomp.clone()),
            feature("no local sockets", seccomp),
            feature(HOSTS, hosts),
            feature("number of processes", guard.clone()),
            feature("ends with us", guard),
        ]
    }

    /// Tells whether a backend can enforce all of a confinement here.
    pub fn check(&self, confinement: &Confinement, backend: Backend) -> Result<(), NotEnforceable> {
        let asked = |name: &str| match name {
            "signals" => !confinement.signals,
            "no network" => confinement.network == Network::None,
            "no local sockets" => !confinement.local_sockets,
            HOSTS => matches!(confinement.network, Network::Hosts(_)),
            "number of processes" => confinement.limits.processes.is_some(),
            _ => true,
        };
        let missing = |feature: &Feature| !feature.enforced && asked(feature.name);
        match self.features(backend).into_iter().find(missing) {
            None => Ok(()),
            Some(feature) if feature.name == HOSTS => Err(NotEnforceable::new(
                "a list of allowed hosts",
                format!("a program gets no network of its own: {}", feature.how),
                "allow user namespaces, or the network `none` or `all`",
            )),
            Some(feature) => Err(NotEnforceable::new(
                format!("`{}`", feature.name),
                feature.how,
                "use a newer kernel, install bubblewrap, or turn the sandbox off in your own \
                 configuration",
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVERYTHING: Preflight = Preflight {
        landlock: 7,
        seccomp: true,
        children: true,
        own_network: Tried::Works,
        bubblewrap: Tried::Works,
    };

    fn fails(why: &str) -> Tried {
        Tried::Fails(why.to_owned())
    }

    #[test]
    fn what_can_be_enforced_is_accepted() {
        for backend in Backend::ALL {
            assert_eq!(EVERYTHING.check(&Confinement::default(), backend), Ok(()));
        }
    }

    #[test]
    fn each_missing_part_is_refused_by_its_name() {
        use Backend::{Bubblewrap, Landlock};
        let cases = [
            (Preflight { landlock: 0, ..EVERYTHING }, Landlock, "`files`"),
            (Preflight { landlock: 2, ..EVERYTHING }, Landlock, "`files`"),
            (Preflight { landlock: 5, ..EVERYTHING }, Landlock, "`signals`"),
            (Preflight { seccomp: false, ..EVERYTHING }, Landlock, "`no network`"),
            (Preflight { children: false, ..EVERYTHING }, Landlock, "`ends with us`"),
            (Preflight { bubblewrap: fails("gone"), ..EVERYTHING }, Bubblewrap, "`files`"),
            (Preflight { bubblewrap: Tried::Not, ..EVERYTHING }, Bubblewrap, "`files`"),
            (Preflight { seccomp: false, ..EVERYTHING }, Bubblewrap, "`no network`"),
            (Preflight { children: false, ..EVERYTHING }, Bubblewrap, "`ends with us`"),
        ];
        for (preflight, backend, what) in cases {
            let refused = preflight.check(&Confinement::default(), backend).unwrap_err();
            assert_eq!(refused.what, what);
        }
    }

    #[test]
    fn bubblewrap_needs_no_landlock_and_landlock_no_bubblewrap() {
        let old = Preflight { landlock: 0, ..EVERYTHING };
        assert_eq!(old.check(&Confinement::default(), Backend::Bubblewrap), Ok(()));
        let alone = Preflight { bubblewrap: fails("gone"), ..EVERYTHING };
        assert_eq!(alone.check(&Confinement::default(), Backend::Landlock), Ok(()));
    }

    #[test]
    fn what_was_not_asked_for_is_not_missed() {
        let open = Confinement { signals: true, ..Confinement::default() };
        let old = Preflight { landlock: 5, ..EVERYTHING };
        assert_eq!(old.check(&open, Backend::Landlock), Ok(()));
    }

    #[test]
    fn a_list_of_hosts_needs_a_network_of_its_own() {
        let hosts = Confinement::default().network(Network::Hosts(vec!["example.org".to_owned()]));
        let without = Preflight { own_network: fails("not permitted"), ..EVERYTHING };
        for backend in Backend::ALL {
            assert_eq!(EVERYTHING.check(&hosts, backend), Ok(()));
            let refused = without.check(&hosts, backend).unwrap_err().to_string();
            assert!(refused.contains("a list of allowed hosts here"), "{refused}");
            assert!(refused.contains("not permitted"), "{refused}");
            assert_eq!(without.check(&Confinement::default(), backend), Ok(()));
        }
    }
}
