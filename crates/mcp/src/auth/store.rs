//! Where logins are kept.
//!
//! A store holds one record for each server, address and issuer. Whoever gets a new token takes the
//! store's lock first and looks again: of two processes that need a new token at once, one gets it and
//! the other finds it.

mod file;
mod memory;

use std::any::Any;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use async_trait::async_trait;

pub use self::file::FileStore;
pub use self::memory::MemoryStore;
use super::record::Record;

/// Keeps logins.
#[async_trait]
pub trait TokenStore: Send + Sync + fmt::Debug {
    /// Returns what was kept last for a server at an address.
    async fn load(&self, server: &str, url: &str) -> Result<Option<Record>, StoreError>;

    /// Keeps a record, whole or not at all. What other issuers gave for the same server and address is
    /// forgotten: the server does not name them any more.
    async fn save(&self, record: &Record) -> Result<(), StoreError>;

    /// Forgets everything about a server; tells how many records that were.
    async fn forget(&self, server: &str) -> Result<usize, StoreError>;

    /// Waits until nobody else gets a token for a server at an address, and holds the others off until
    /// the lock is dropped. Nothing else waits for it.
    async fn lock(
        &self,
        server: &str,
        url: &str,
        patience: Duration,
    ) -> Result<StoreLock, StoreError>;
}

/// Holds others off until it is dropped.
pub struct StoreLock(#[expect(dead_code, reason = "held for its drop")] Box<dyn Any + Send>);

impl StoreLock {
    /// Wraps whatever lets the others go on when it is dropped.
    pub fn new(held: impl Any + Send) -> Self {
        Self(Box::new(held))
    }
}

impl fmt::Debug for StoreLock {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("StoreLock")
    }
}

/// Logins could not be read or kept.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// Others can get at it.
    #[error(
        "`{path}` can be read or changed by others, so the tokens in it are not used; run `chmod {mode} \
         {path}`, and log in again if somebody may have seen them"
    )]
    Exposed {
        /// The file or directory.
        path: PathBuf,
        /// The mode it should have.
        mode: &'static str,
    },
    /// It belongs to somebody else.
    #[error(
        "`{path}` belongs to another user, so nothing in it is used; move it away and log in again"
    )]
    NotOurs {
        /// The file or directory.
        path: PathBuf,
    },
    /// It is not a file at all, or no login.
    #[error("`{path}` is not a login that was kept here; remove it and log in again")]
    Unreadable {
        /// The file.
        path: PathBuf,
    },
    /// The system said no.
    #[error("`{path}` could not be used: {source}")]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Somebody else holds the lock, and does not let go.
    #[error(
        "another process has been getting a token for `{server}` for {} s; try again when it is done",
        .waited.as_secs()
    )]
    Busy {
        /// The server.
        server: String,
        /// How long was waited.
        waited: Duration,
    },
    /// A store of another kind failed.
    #[error("the tokens could not be read or kept: {0}")]
    Other(String),
}
