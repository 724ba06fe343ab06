//! Reads a server's lists, page by page, and never without an end.

use std::collections::HashSet;
use std::time::Duration;

use rmcp::model::{
    ClientRequest, ListPromptsRequest, ListResourceTemplatesRequest, ListResourcesRequest,
    ListToolsRequest, PaginatedRequestParams,
};
use serde_json::Value;

use super::connection::{Connection, Terms};
use super::failure::Failure;

const MAX_PAGES: usize = 100;
const MAX_ENTRIES: usize = 2_000;
/// How much of a list is read, in bytes of its entries.
const MAX_BYTES: usize = 8 * 1024 * 1024;
/// A cursor is the server's own, and sent back as it is.
const MAX_CURSOR_BYTES: usize = 8 * 1024;

/// A list of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Listed {
    Tools,
    Resources,
    Templates,
    Prompts,
}

impl Listed {
    /// What the list is called in its answers.
    const fn key(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Resources => "resources",
            Self::Templates => "resourceTemplates",
            Self::Prompts => "prompts",
        }
    }

    fn request(self, cursor: Option<String>) -> ClientRequest {
        // Some servers do not take empty parameters.
        let params =
            cursor.map(|cursor| PaginatedRequestParams::default().with_cursor(Some(cursor)));
        match self {
            Self::Tools => ClientRequest::ListToolsRequest(ListToolsRequest {
                method: rmcp::model::ListToolsRequestMethod,
                params,
                extensions: rmcp::model::Extensions::default(),
            }),
            Self::Resources => ClientRequest::ListResourcesRequest(ListResourcesRequest {
                method: rmcp::model::ListResourcesRequestMethod,
                params,
                extensions: rmcp::model::Extensions::default(),
            }),
            Self::Templates => {
                ClientRequest::ListResourceTemplatesRequest(ListResourceTemplatesRequest {
                    method: rmcp::model::ListResourceTemplatesRequestMethod,
                    params,
                    extensions: rmcp::model::Extensions::default(),
                })
            }
            Self::Prompts => ClientRequest::ListPromptsRequest(ListPromptsRequest {
                method: rmcp::model::ListPromptsRequestMethod,
                params,
                extensions: rmcp::model::Extensions::default(),
            }),
        }
    }
}

/// A list as it was read.
#[derive(Debug, Default)]
pub(super) struct Listing {
    pub(super) entries: Vec<Value>,
    /// How long the server says that it holds; the shortest of its pages.
    pub(super) lifetime: Option<Duration>,
    /// Why it is not whole, if it is not.
    pub(super) cut: Option<String>,
}

/// Reads a list.
pub(super) async fn list(
    connection: &Connection,
    listed: Listed,
    terms: Terms<'_>,
) -> Result<Listing, Failure> {
    let mut listing = Listing::default();
    let mut seen = HashSet::new();
    let mut cursor = None;
    let mut bytes = 0;
    for _ in 0..MAX_PAGES {
        let mut page = connection.request(listed.request(cursor.take()), terms).await?;
        let lifetime = page.get("ttlMs").and_then(Value::as_u64).map(Duration::from_millis);
        listing.lifetime = match (listing.lifetime, lifetime) {
            (Some(known), Some(new)) => Some(known.min(new)),
            (known, new) => known.or(new),
        };
        if let Some(Value::Array(entries)) = page.get_mut(listed.key()).map(Value::take) {
            for entry in entries {
                bytes += size(&entry);
                if bytes > MAX_BYTES {
                    listing.cut = Some(format!("it has more than {MAX_BYTES} bytes"));
                    return Ok(listing);
                }
                listing.entries.push(entry);
            }
        }
        if let Some(more @ 1..) = listing.entries.len().checked_sub(MAX_ENTRIES) {
            listing.entries.truncate(MAX_ENTRIES);
            let why =
                format!("it has more than {MAX_ENTRIES} entries, and {more} or more are left out");
            listing.cut = Some(why);
            return Ok(listing);
        }
        let next = page.get("nextCursor").and_then(Value::as_str).map(str::to_owned);
        let Some(next) = next.filter(|next| !next.is_empty()) else {
            return Ok(listing);
        };
        if next.len() > MAX_CURSOR_BYTES {
            listing.cut = Some("where it goes on is too long to be said".to_owned());
            return Ok(listing);
        }
        if !seen.insert(next.clone()) {
            listing.cut = Some("its pages go round in a circle".to_owned());
            return Ok(listing);
        }
        cursor = Some(next);
    }
    let read = listing.entries.len();
    listing.cut = Some(format!("it has more than {MAX_PAGES} pages, and {read} entries were read"));
    Ok(listing)
}

/// Counts about how many bytes a value takes.
fn size(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len() + 2,
        Value::Array(items) => items.iter().map(size).sum::<usize>() + 2,
        Value::Object(map) => {
            map.iter().map(|(key, value)| key.len() + 4 + size(value)).sum::<usize>() + 2
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => 8,
    }
}
