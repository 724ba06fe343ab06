//! What can be enforced on this machine, and whether that is enough for what is asked.
//!
//! The answer is never "almost": [`Preflight::check`] refuses a confinement if any part of it would not
//! hold, and says which part, why, and what would help.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::confinement::{Confinement, Limits, Network};
use crate::host::NotAHost;

/// With this version Landlock also covers truncating files and moving them between directories.
const ABI_FILES: u32 = 3;
/// With this version Landlock also covers signals.
const ABI_SIGNALS: u32 = 6;
const HOSTS: &str = "allowed hosts only";
const MEMORY: &str = "memory of all processes together";
const TIME: &str = "processor time of all together";
const GROUP: &str = "a control group";

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
    /// Whether a program can have a control group of its own, which is enough to count processor time.
    pub group: Tried,
    /// Whether such a group can limit memory.
    pub group_memory: Tried,
    /// Whether such a group can limit the number of processes.
    pub group_processes: Tried,
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

    /// Says that limits on all processes of a program together cannot be held.
    pub(crate) fn together(limits: &Limits, why: impl Into<String>) -> Self {
        let (what, instead) = match limits.memory {
            Some(_) => (MEMORY, "`memory_per_process` (`sandbox.limits.memoryPerProcess`)"),
            None => (TIME, "`cpu_per_process` (`sandbox.limits.cpuPerProcess`)"),
        };
        let hint = format!(
            "limit each process alone with {instead}, or start where control groups may be made: \
             `systemd-run --user --scope -p Delegate=yes convoke …`"
        );
        Self::new(format!("`{what}`"), why, hint)
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
    /// Asks the kernel, and tries what can only be tried. A control group is made for that and removed; a
    /// controller that had to be switched on for it stays on.
    pub fn look() -> Self {
        let mut found = Self::ask();
        found.try_own_network();
        found.try_bubblewrap(&Confinement::for_commands([], "/tmp".into(), None));
        found.try_groups(true, true);
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
        let limits = &confinement.limits;
        if limits.are_together() {
            found.try_groups(limits.memory.is_some(), limits.processes.is_some());
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
            group: Tried::Not,
            group_memory: Tried::Not,
            group_processes: Tried::Not,
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

    fn try_groups(&mut self, memory: bool, processes: bool) {
        #[cfg(target_os = "linux")]
        {
            use crate::linux::group::{Controllers, Groups};
            let find = |memory, processes| {
                Tried::from_result(Groups::find(Controllers { memory, processes }))
            };
            self.group = find(false, false);
            if memory {
                self.group_memory = find(true, false);
            }
            if processes {
                self.group_processes = find(memory && self.group_memory == Tried::Works, true);
            }
        }
        #[cfg(not(target_os = "linux"))]
        let _ = (memory, processes);
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
        let number = match self.group_processes {
            Tried::Works => by(self.children, "the guard, or a control group", missing),
            _ => guard.clone(),
        };
        let hosts = self.own_network.as_feature("a network of its own, with a proxy");
        let feature = |name, (enforced, how)| Feature { name, enforced, how };
        vec![
            feature("files", files),
            feature("signals", signals),
            feature("no network", seccomp.clone()),
            feature("no local sockets", seccomp),
            feature(HOSTS, hosts),
            feature("number of processes", number),
            feature("ends with us", guard),
            feature(MEMORY, self.group_memory.as_feature(GROUP)),
            feature(TIME, self.group.as_feature(GROUP)),
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
            MEMORY => confinement.limits.memory.is_some(),
            TIME => confinement.limits.cpu.is_some(),
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
            Some(feature) if [MEMORY, TIME].contains(&feature.name) => {
                Err(NotEnforceable::together(&confinement.limits, feature.how))
            }
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
        group: Tried::Works,
        group_memory: Tried::Works,
        group_processes: Tried::Works,
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
    fn what_all_use_together_needs_a_group() {
        use std::time::Duration;
        let memory = Limits { memory: Some(1 << 30), ..Limits::default() };
        let time = Limits { cpu: Some(Duration::from_mins(1)), ..Limits::default() };
        let alone = Limits {
            memory_per_process: Some(1 << 30),
            cpu_per_process: Some(Duration::from_mins(1)),
            ..Limits::default()
        };
        let without = Preflight {
            group: fails("not mounted"),
            group_memory: fails("no controller"),
            ..EVERYTHING
        };
        let cases = [(&memory, "memoryPerProcess"), (&time, "cpuPerProcess")];
        for backend in Backend::ALL {
            for (limits, instead) in cases {
                let confinement = Confinement::default().limits(limits.clone());
                assert_eq!(EVERYTHING.check(&confinement, backend), Ok(()));
                let refused = without.check(&confinement, backend).unwrap_err();
                assert!(refused.hint.contains(instead), "{refused}");
                assert!(refused.hint.contains("systemd-run --user --scope"), "{refused}");
            }
            let confinement = Confinement::default().limits(alone.clone());
            assert_eq!(without.check(&confinement, backend), Ok(()));
        }
        let only_time = Preflight { group_memory: fails("no controller"), ..EVERYTHING };
        let refused = only_time.check(&Confinement::default().limits(memory), Backend::Landlock);
        assert_eq!(refused.unwrap_err().why, "no controller");
        let allowed = only_time.check(&Confinement::default().limits(time), Backend::Landlock);
        assert_eq!(allowed, Ok(()));
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
