//! Many tools: found by what they do instead of being told one by one.
//!
//! What a model is told about tools is paid for with every request, and changing it makes the provider forget
//! what it knew of the conversation. So where there are many, or some come later, the model is told of two tools
//! that stay the same: one that searches ([`ToolSearch`]) and one through which what was found is called
//! ([`UseTool`]). Whoever decides, records and runs a call sees the tool that is meant.

mod rank;
mod search;
mod use_tool;

use std::fmt::Debug;

use async_trait::async_trait;
use convoke_core::{Declaration, RunId, ToolError};
use futures_util::stream::BoxStream;

pub(crate) use self::rank::Words;
pub use self::search::{TOOL_SEARCH, ToolSearch};
pub use self::use_tool::UseTool;

/// About how many bytes of a declaration a model reads as one token.
const BYTES_A_TOKEN: usize = 4;

/// Returns about how many tokens a model is charged for being told of a tool.
pub fn tokens(declaration: &Declaration) -> usize {
    let Declaration { name, description, parameters } = declaration;
    (name.len() + description.len() + parameters.text().get().len()).div_ceil(BYTES_A_TOKEN)
}

/// Tools that come from elsewhere and may not be here yet: those of servers that start.
#[async_trait]
pub trait Arrivals: Send + Sync + Debug {
    /// Says that a run will want tools: what is not known is asked for. Waits for nothing.
    fn expect(&self, run: &RunId);

    /// Says where tools come from, and how it stands with each.
    fn sources(&self) -> Vec<Source>;

    /// Returns what the source of a tool says of the use of its tools, if it says anything.
    fn instructions(&self, _tool: &str) -> Option<Instructions> {
        None
    }

    /// Waits until nothing is on its way any more: it is here, or will not come.
    async fn settled(&self);

    /// Waits for the source of a tool that is called and is not here, and for no other. Afterwards the tool is
    /// here if there is one; the error says why its source does not bring anything, and what to do about it.
    async fn bring(&self, _tool: &str) -> Result<(), ToolError> {
        Ok(())
    }

    /// Follows what becomes of the sources, from now on.
    fn changes(&self) -> BoxStream<'static, SourceChange>;
}

/// A source does something else now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceChange {
    /// Its name.
    pub name: String,
    /// What it does, in one word.
    pub state: String,
    /// Why, where there is a reason.
    pub reason: Option<String>,
}

impl SourceChange {
    /// What a source does that goes on as before: there is something to know about it, which is the reason.
    pub const WARNING: &'static str = "warning";

    /// Says what there is to know about a source that goes on as before.
    pub fn warning(name: String, message: String) -> Self {
        Self { name, state: Self::WARNING.to_owned(), reason: Some(message) }
    }
}

/// What a source says of the use of its tools. It is the source's own text, which may say anything, at any length.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instructions {
    /// The name of the source.
    pub source: String,
    /// What it says.
    pub text: String,
}

/// Where tools come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// Its name.
    pub name: String,
    /// How it stands.
    pub standing: Standing,
}

/// How it stands with the tools of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// They are known.
    Here {
        /// How many there are.
        count: usize,
    },
    /// They are on their way.
    Coming,
    /// They will not come, for this reason.
    Missing {
        /// Why.
        reason: String,
    },
}
