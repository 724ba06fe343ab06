//! Keeps what is known of a server's offer in step with the server, for as long as it is connected.
//!
//! A change that the server announces is waited out for a moment, since changes come in groups. A server
//! that announces changes all the time is asked less and less often.

use std::sync::{Arc, PoisonError, Weak};
use std::time::Duration;

use rmcp::model::{ServerNotification, SubscriptionFilter};
use tokio::time::Instant;

use super::{Offer, Server};
use crate::client::connection::Connection;
use crate::client::failure::Failure;
use crate::client::handler::List;
use crate::client::list::{Listed, Listing, list};
use crate::client::manifest::{Capability, Manifest};
use crate::client::offer::{ToolEntry, read_all};
use crate::client::state::OUTPUT;
use crate::client::task::Background;

const SHORTEST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_mins(1);

impl Server {
    /// Watches over a connection until it ends.
    pub(super) async fn watch(self: Arc<Self>, connection: Arc<Connection>) {
        let _subscription = subscription(&connection);
        let keep_in_step = async {
            // The other lists may take long, or never come.
            self.keep(&self.offer().manifest).await;
            // What went wrong is told as a warning.
            drop(self.refresh(&connection, &[List::Resources, List::Prompts]).await);
            let mut pause = SHORTEST_PAUSE;
            loop {
                connection.dirty().changed().await;
                tokio::time::sleep(pause).await;
                let changed = connection.dirty().take();
                let begun = Instant::now();
                drop(self.refresh(&connection, &changed).await);
                // Whatever changed while it was read shows that it changes all the time.
                let quiet = tokio::time::timeout(2 * pause, connection.dirty().changed()).await;
                pause = match quiet {
                    Err(_) => SHORTEST_PAUSE,
                    Ok(()) => (2 * pause).max(begun.elapsed()).min(LONGEST_PAUSE),
                };
            }
        };
        tokio::select! {
            _ = connection.ended() => {}
            () = keep_in_step => {}
        }
        let mut slot = self.slot();
        self.notice_end(&mut slot);
    }

    /// Reads lists again and takes note of what is new. One that cannot be read leaves what was known of it,
    /// and does not keep the others from being read.
    pub(super) async fn refresh(
        self: &Arc<Self>,
        connection: &Connection,
        lists: &[List],
    ) -> Result<(), Failure> {
        // One at a time: what was read last is what counts.
        let _alone = self.refreshing.lock().await;
        let before = self.offer();
        let mut manifest = before.manifest.clone();
        let mut failed = None;
        for one in lists {
            let read = match one {
                List::Tools => {
                    manifest.at = self.surroundings.clock.now();
                    self.read_tools(connection, &mut manifest).await
                }
                List::Resources => self.read_resources(connection, &mut manifest).await,
                List::Prompts => self.read_prompts(connection, &mut manifest).await,
            };
            if let Err(failure) = read {
                failed.get_or_insert((*one, failure));
            }
        }
        match &failed {
            None => self.news.settle(self.name(), "refresh"),
            Some((list, failure)) => {
                let why = failure.clone().about(self.name()).message;
                let what = format!("its list of {} could not be read: {why}", list.as_str());
                self.warn("refresh", &what);
            }
        }
        let asked = std::mem::replace(&mut manifest.at, before.manifest.at);
        let changed = before.manifest != manifest;
        manifest.at = asked;
        if changed || !before.whole || asked != before.manifest.at {
            self.keep(&manifest).await;
        }
        let now = Some(Instant::now());
        let listed = if lists.contains(&List::Tools) { now } else { before.listed };
        let whole = before.whole || (failed.is_none() && lists.len() > 1);
        if changed {
            self.offers(manifest, listed, whole);
        } else {
            let same = Offer { manifest, tools: before.tools.clone(), listed, whole };
            *self.offer.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(same);
        }
        failed.map_or(Ok(()), |(_, failure)| Err(failure))
    }

    /// Keeps it for the next run. If that is not possible, the next run asks again.
    async fn keep(&self, manifest: &Manifest) {
        let (cache, manifest) = (self.cache.clone(), manifest.clone());
        let written = tokio::task::spawn_blocking(move || cache.write(&manifest)).await;
        if let Ok(Err(error)) = written {
            self.warn("cache", &format!("what it offers could not be kept: {error}"));
        } else {
            self.news.settle(self.name(), "cache");
        }
    }

    async fn read_tools(
        &self,
        connection: &Connection,
        manifest: &mut Manifest,
    ) -> Result<(), Failure> {
        if manifest.facts.tools != Capability::Absent {
            let listing = list(connection, Listed::Tools, self.own_terms(None)).await?;
            self.take_tools(manifest, listing);
        }
        Ok(())
    }

    /// Puts a list of tools into a manifest. Of several tools of one name the first counts.
    pub(super) fn take_tools(&self, manifest: &mut Manifest, listing: Listing) {
        self.note_cut("tools", listing.cut);
        manifest.lifetime_ms =
            listing.lifetime.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
        let all = listing.entries.len();
        let mut seen = std::collections::HashSet::new();
        manifest.tools = listing.entries.iter().filter_map(ToolEntry::read).collect();
        manifest.tools.retain(|entry| seen.insert(entry.name.clone()));
        self.note_lost("tools", "lost tools", all - manifest.tools.len());
        let unusable: Vec<String> = manifest
            .tools
            .iter()
            .filter_map(|entry| {
                entry.unusable.as_ref().map(|why| format!("`{}` ({why})", entry.name))
            })
            .collect();
        if unusable.is_empty() {
            self.news.settle(self.name(), "unusable");
        } else {
            let shown: Vec<&str> = unusable.iter().take(5).map(String::as_str).collect();
            let count = unusable.len();
            let what = format!("{count} of its tools cannot be used: {}", shown.join(", "));
            self.warn("unusable", &what);
        }
    }

    async fn read_resources(
        &self,
        connection: &Connection,
        manifest: &mut Manifest,
    ) -> Result<(), Failure> {
        if manifest.facts.resources == Capability::Absent {
            manifest.resources.clear();
            manifest.templates.clear();
            return Ok(());
        }
        let listing = list(connection, Listed::Resources, self.own_terms(None)).await?;
        self.note_cut("resources", listing.cut);
        let (resources, bad) = read_all(listing.entries);
        self.note_lost("resources", "lost resources", bad);
        manifest.resources = resources;
        let listing = match list(connection, Listed::Templates, self.own_terms(None)).await {
            // Not every server that has resources knows of templates.
            Err(Failure::Refused { .. }) => Listing::default(),
            listing => listing?,
        };
        self.note_cut("templates", listing.cut);
        let (templates, bad) = read_all(listing.entries);
        self.note_lost("templates", "lost templates", bad);
        manifest.templates = templates;
        Ok(())
    }

    async fn read_prompts(
        &self,
        connection: &Connection,
        manifest: &mut Manifest,
    ) -> Result<(), Failure> {
        if manifest.facts.prompts == Capability::Absent {
            manifest.prompts.clear();
            return Ok(());
        }
        let listing = list(connection, Listed::Prompts, self.own_terms(None)).await?;
        self.note_cut("prompts", listing.cut);
        let (prompts, bad) = read_all(listing.entries);
        self.note_lost("prompts", "lost prompts", bad);
        manifest.prompts = prompts;
        Ok(())
    }

    /// Tells of what a program writes beside its messages.
    pub(super) fn note_output(&self, connection: &Connection) {
        if let Some(what) = connection.untold_nonsense() {
            self.warn(OUTPUT, &format!("{what}; such things belong on its standard error"));
        }
    }

    fn warn(&self, kind: &'static str, message: &str) {
        let message = format!("MCP server `{}`: {message}", self.name());
        self.news.warn(self.name(), kind, message);
    }

    fn note_cut(&self, list: &'static str, cut: Option<String>) {
        match cut {
            Some(why) => self.warn(list, &format!("its list of {list} was cut: {why}")),
            None => self.news.settle(self.name(), list),
        }
    }

    fn note_lost(&self, list: &str, kind: &'static str, lost: usize) {
        if lost == 0 {
            self.news.settle(self.name(), kind);
        } else {
            self.warn(kind, &format!("{lost} entries of its list of {list} cannot be used"));
        }
    }
}

/// Without a handshake there are no announcements unless they are asked for.
fn subscription(connection: &Arc<Connection>) -> Option<Background> {
    let facts = connection.facts();
    if !facts.is_stateless() {
        return None;
    }
    let mut filter = SubscriptionFilter::new();
    let announced = |capability| (capability == Capability::Announced).then_some(true);
    filter.tools_list_changed = announced(facts.tools);
    filter.resources_list_changed = announced(facts.resources);
    filter.prompts_list_changed = announced(facts.prompts);
    if filter == SubscriptionFilter::new() {
        return None;
    }
    let connection = Arc::downgrade(connection);
    Some(Background::spawn(async move {
        let mut pause = SHORTEST_PAUSE;
        let mut heard_before = false;
        while let Some(listened) = listen(&connection, filter.clone(), heard_before).await {
            // Streams end, for whoever stands between, or when too much came at once. What was announced
            // meanwhile is lost. One that never lasts is asked for less and less often.
            heard_before |= listened >= SHORTEST_PAUSE;
            pause = if listened >= LONGEST_PAUSE {
                SHORTEST_PAUSE
            } else {
                (2 * pause).min(LONGEST_PAUSE)
            };
            tokio::time::sleep(pause).await;
        }
    }))
}

/// Listens once, and tells for how long; nothing, if there is nobody to listen to, or no use in it.
async fn listen(
    connection: &Weak<Connection>,
    filter: SubscriptionFilter,
    again: bool,
) -> Option<Duration> {
    let peer = connection.upgrade().map(|open| open.peer().clone())?;
    let mut subscription = match peer.listen(filter).await {
        Ok(subscription) => subscription,
        // A server that announces changes and then does not is like one that never did.
        Err(_) if !again => return None,
        Err(_) => return Some(Duration::ZERO),
    };
    let begun = Instant::now();
    if again {
        connection.upgrade()?.dirty().mark_all();
    }
    while let Ok(Some(notice)) = subscription.next().await {
        let open = connection.upgrade()?;
        match notice {
            ServerNotification::ToolListChangedNotification(_) => open.dirty().mark(List::Tools),
            ServerNotification::ResourceListChangedNotification(_) => {
                open.dirty().mark(List::Resources);
            }
            ServerNotification::PromptListChangedNotification(_) => {
                open.dirty().mark(List::Prompts);
            }
            _ => {}
        }
    }
    Some(begun.elapsed())
}
