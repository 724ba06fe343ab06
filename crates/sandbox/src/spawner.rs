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
        let prepared = self.cages.prepare(program)?;
        Ok(Box::new(crate::linux::process::Guarded::start(prepared)?))
    }

    #[cfg(not(target_os = "linux"))]
    async fn spawn(&self, _: Program) -> Result<Box<dyn Process>, ToolError> {
        Err(ToolError::permission("programs cannot be confined on this system"))
    }
}
