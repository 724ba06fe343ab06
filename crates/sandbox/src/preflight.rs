//! What can be enforced on this machine, and whether that is enough for what is asked.
//!
//! The answer is never "almost": [`Preflight::check`] refuses a confinement if any part of it would not
//! hold, and says which part, why, and what would help.

use serde::Serialize;
use thiserror::Error;

use crate::confinement::{Confinement, Network};

/// With this version Landlock also covers truncating files and moving them between directories.
const ABI_FILES: u32 = 3;
/// With this version Landlock also covers signals.
const ABI_SIGNALS: u32 = 6;

/// What was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Preflight {
    /// The version of Landlock; 0 where there is none.
    pub landlock: u32,
    /// Whether system calls can be filtered.
    pub seccomp: bool,
    /// Whether the kernel tells which children a process has, so that all of them can be ended.
    pub children: bool,
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
}

impl Preflight {
    /// Asks the kernel.
    pub fn look() -> Self {
        #[cfg(target_os = "linux")]
        return Self {
            landlock: crate::linux::files::version(),
            seccomp: crate::linux::calls::available(),
            children: crate::linux::guard::sees_children(),
        };
        #[cfg(not(target_os = "linux"))]
        Self { landlock: 0, seccomp: false, children: false }
    }

    /// Lists what can be enforced, one by one.
    pub fn features(&self) -> Vec<Feature> {
        let landlock = |needs: u32| match self.landlock {
            0 => (false, "this kernel has no Landlock, or it is off".to_owned()),
            found if found < needs => (false, format!("Landlock {found} found, {needs} needed")),
            found => (true, format!("Landlock {found}")),
        };
        let by = |there: bool, how: &str, missing: &str| {
            (there, if there { how } else { missing }.to_owned())
        };
        let seccomp = by(self.seccomp, "seccomp", "system calls cannot be filtered here");
        let missing = "the kernel does not list the children of a process";
        let guard = by(self.children, "the guard", missing);
        let hosts = (false, "needs a network of its own with a proxy".to_owned());
        let feature = |name, (enforced, how)| Feature { name, enforced, how };
        vec![
            feature("files", landlock(ABI_FILES)),
            feature("signals", landlock(ABI_SIGNALS)),
            feature("no network", seccomp.clone()),
            feature("no local sockets", seccomp),
            feature("allowed hosts only", hosts),
            feature("number of processes", guard.clone()),
            feature("ends with us", guard),
        ]
    }

    /// Tells whether all of a confinement can be enforced here.
    pub fn check(&self, confinement: &Confinement) -> Result<(), NotEnforceable> {
        let asked = |name: &str| match name {
            "signals" => !confinement.signals,
            "no network" => confinement.network == Network::None,
            "no local sockets" => !confinement.local_sockets,
            "allowed hosts only" => matches!(confinement.network, Network::Hosts(_)),
            "number of processes" => confinement.limits.processes.is_some(),
            _ => true,
        };
        match self.features().into_iter().find(|feature| !feature.enforced && asked(feature.name)) {
            None => Ok(()),
            Some(feature) if feature.name == "allowed hosts only" => Err(NotEnforceable::new(
                "a list of allowed hosts",
                feature.how,
                "allow `none` or `all` instead",
            )),
            Some(feature) => Err(NotEnforceable::new(
                format!("`{}`", feature.name),
                feature.how,
                "use a newer kernel, or turn the sandbox off in your own configuration",
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVERYTHING: Preflight = Preflight { landlock: 7, seccomp: true, children: true };

    #[test]
    fn what_can_be_enforced_is_accepted() {
        assert_eq!(EVERYTHING.check(&Confinement::default()), Ok(()));
    }

    #[test]
    fn each_missing_part_is_refused_by_its_name() {
        let cases = [
            (Preflight { landlock: 0, ..EVERYTHING }, "`files`"),
            (Preflight { landlock: 2, ..EVERYTHING }, "`files`"),
            (Preflight { landlock: 5, ..EVERYTHING }, "`signals`"),
            (Preflight { seccomp: false, ..EVERYTHING }, "`no network`"),
            (Preflight { children: false, ..EVERYTHING }, "`ends with us`"),
        ];
        for (preflight, what) in cases {
            assert_eq!(preflight.check(&Confinement::default()).unwrap_err().what, what);
        }
    }

    #[test]
    fn what_was_not_asked_for_is_not_missed() {
        let open = Confinement { signals: true, ..Confinement::default() };
        assert_eq!(Preflight { landlock: 5, ..EVERYTHING }.check(&open), Ok(()));
    }

    #[test]
    fn a_list_of_hosts_is_refused() {
        let hosts = Confinement::default().network(Network::Hosts(vec!["example.org".to_owned()]));
        let refused = EVERYTHING.check(&hosts).unwrap_err();
        assert!(refused.to_string().contains("a list of allowed hosts"), "{refused}");
    }
}
