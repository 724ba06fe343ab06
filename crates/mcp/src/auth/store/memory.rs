//! Logins that end with the process.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;

use super::{StoreError, StoreLock, TokenStore};
use crate::auth::record::Record;

/// Keeps logins in memory. Cheap to clone; clones share what they keep.
#[derive(Clone, Debug, Default)]
pub struct MemoryStore {
    records: Arc<Mutex<Vec<Record>>>,
    busy: Arc<tokio::sync::Mutex<()>>,
}

impl MemoryStore {
    fn with<T>(&self, change: impl FnOnce(&mut Vec<Record>) -> T) -> T {
        change(&mut self.records.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[async_trait]
impl TokenStore for MemoryStore {
    async fn load(&self, server: &str, url: &str) -> Result<Option<Record>, StoreError> {
        let fits = |record: &&Record| record.server == server && record.url == url;
        Ok(self.with(|records| records.iter().find(fits).cloned()))
    }

    async fn save(&self, record: &Record) -> Result<(), StoreError> {
        self.with(|records| {
            records.retain(|known| known.server != record.server || known.url != record.url);
            records.push(record.clone());
        });
        Ok(())
    }

    async fn forget(&self, server: &str) -> Result<usize, StoreError> {
        Ok(self.with(|records| {
            let before = records.len();
            records.retain(|known| known.server != server);
            before - records.len()
        }))
    }

    async fn lock(
        &self,
        server: &str,
        _url: &str,
        patience: Duration,
    ) -> Result<StoreLock, StoreError> {
        let held = tokio::time::timeout(patience, Arc::clone(&self.busy).lock_owned()).await;
        held.map(StoreLock::new)
            .map_err(|_| StoreError::Busy { server: server.to_owned(), waited: patience })
    }
}
