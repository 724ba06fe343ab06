//! Starts confined programs.
//!
//! One confinement serves many programs. Directories that appeared meanwhile are judged as they are when
//! a program starts. A program that cannot be confined is not started.

use std::sync::Arc;

use async_trait::async_trait;
use convoke_core::ToolError;
use convoke_tool::{Process, Program, Spawner};

use crate::confinement::Confinement;
#[cfg(target_os = "linux")]
use crate::linux::Cages;
use crate::preflight::{Backend, NotEnforceable, Preflight};

/// Starts programs that can do no more than a confinement says.
#[derive(Clone, Debug)]
pub struct ConfinedSpawner {
    #[cfg(target_os = "linux")]
    cages: Arc<Cages>,
    #[cfg(not(target_os = "linux"))]
    confinement: Arc<Confinement>,
}

impl ConfinedSpawner {
    /// Makes a spawner, with the first backend that can enforce all of the confinement here.
    pub fn new(confinement: Confinement) -> Result<Self, NotEnforceable> {
        Self::with_backend(confinement.clone(), Backend::Landlock).or_else(|first| {
            Self::with_backend(confinement, Backend::Bubblewrap).map_err(|second| first.or(&second))
        })
    }

    /// Makes a spawner, if this backend can enforce all of the confinement here.
    pub fn with_backend(
        confinement: Confinement,
        backend: Backend,
    ) -> Result<Self, NotEnforceable> {
        Preflight::for_confinement(&confinement, backend).check(&confinement, backend)?;
        Ok(Self {
            #[cfg(target_os = "linux")]
            cages: Arc::new(Cages::new(confinement, backend)?),
            #[cfg(not(target_os = "linux"))]
            confinement: Arc::new(confinement),
        })
    }

    /// Returns what its programs may do.
    pub fn confinement(&self) -> &Confinement {
        #[cfg(target_os = "linux")]
        return self.cages.confinement();
        #[cfg(not(target_os = "linux"))]
        &self.confinement
    }

    /// Returns who enforces it.
    pub fn backend(&self) -> Backend {
        #[cfg(target_os = "linux")]
        return self.cages.backend();
        #[cfg(not(target_os = "linux"))]
        Backend::Landlock
    }
}

#[async_trait]
impl Spawner for ConfinedSpawner {
    #[cfg(target_os = "linux")]
    async fn spawn(&self, program: Program) -> Result<Box<dyn Process>, ToolError> {
        let cages = Arc::clone(&self.cages);
        let prepared = tokio::task::spawn_blocking(move || cages.prepare(program)).await;
        let prepared = prepared.map_err(|error| {
            ToolError::failed("the program's confinement could not be prepared").caused_by(&error)
        })??;
        Ok(Box::new(crate::linux::process::Guarded::start(prepared)?))
    }

    #[cfg(not(target_os = "linux"))]
    async fn spawn(&self, _: Program) -> Result<Box<dyn Process>, ToolError> {
        Err(ToolError::permission("programs cannot be confined on this system"))
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;

    /// Rules are made from whole directories; on a slow disk everything else stood still meanwhile.
    #[tokio::test]
    async fn others_go_on_while_a_confinement_is_prepared() {
        let Ok(spawner) = ConfinedSpawner::with_backend(Confinement::default(), Backend::Landlock)
        else {
            convoke_testkit::skip("Landlock", "programs cannot be confined here");
            return;
        };
        let (held, is_held) = mpsc::channel();
        let (go_on, others_went_on) = mpsc::channel();
        let cages = Arc::clone(&spawner.cages);
        let holder = std::thread::spawn(move || {
            let hold = cages.hold();
            held.send(()).unwrap();
            let went_on = others_went_on.recv_timeout(Duration::from_secs(10));
            drop(hold);
            went_on
        });
        is_held.recv().unwrap();
        let program = Program::new(vec!["/bin/true".to_owned()], "/".into());
        let others = async { go_on.send(()) };
        // It may not start, as nothing may be read; how long others wait for it is what counts.
        let (_started, sent) = tokio::join!(spawner.spawn(program), others);
        let went_on = holder.join().unwrap();
        assert!(sent.is_ok() && went_on.is_ok(), "nobody else came to work: {went_on:?}");
    }
}

/// Starts programs with all the rights of this one, which end when it does, however that happens: what a user
/// set up to run beside us. Where there is no guard, they end with us unless we are killed.
#[derive(Clone, Copy, Debug, Default)]
pub struct GuardedSpawner;

#[async_trait]
impl Spawner for GuardedSpawner {
    #[cfg(target_os = "linux")]
    async fn spawn(&self, program: Program) -> Result<Box<dyn Process>, ToolError> {
        if !crate::linux::guard::sees_children() {
            return convoke_tool::UnconfinedSpawner.spawn(program).await;
        }
        Ok(Box::new(crate::linux::process::Guarded::start(crate::linux::guarded(program))?))
    }

    #[cfg(not(target_os = "linux"))]
    async fn spawn(&self, program: Program) -> Result<Box<dyn Process>, ToolError> {
        convoke_tool::UnconfinedSpawner.spawn(program).await
    }
}
