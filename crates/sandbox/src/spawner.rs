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
use crate::preflight::{NotEnforceable, Preflight};

/// Starts programs that can do no more than a confinement says.
#[derive(Clone, Debug)]
pub struct ConfinedSpawner {
    #[cfg(target_os = "linux")]
    cages: Arc<Cages>,
    #[cfg(not(target_os = "linux"))]
    confinement: Arc<Confinement>,
}

impl ConfinedSpawner {
    /// Makes a spawner, if all of the confinement can be enforced here.
    pub fn new(confinement: Confinement) -> Result<Self, NotEnforceable> {
        Preflight::look().check(&confinement)?;
        Ok(Self {
            #[cfg(target_os = "linux")]
            cages: Arc::new(Cages::new(confinement)?),
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
}

#[async_trait]
impl Spawner for ConfinedSpawner {
    #[cfg(target_os = "linux")]
    async fn spawn(&self, program: Program) -> Result<Box<dyn Process>, ToolError> {
        let refused = |error: NotEnforceable| ToolError::permission(error.to_string());
        let cage = self.cages.next().map_err(refused)?;
        Ok(Box::new(crate::linux::process::Guarded::start(&program, cage)?))
    }

    #[cfg(not(target_os = "linux"))]
    async fn spawn(&self, _: Program) -> Result<Box<dyn Process>, ToolError> {
        Err(ToolError::permission("programs cannot be confined on this system"))
    }
}
