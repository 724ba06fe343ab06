//! Many tools: what a model is told of them, and how fast they are found.

use std::sync::Arc;

use convoke::prelude::*;
use convoke::tools::catalogue::ToolSearch;

use super::asked::{AskedModel, Place, pretender};
use super::fake::{QUICK, tools};
use super::start::remember;
use crate::Result;
use crate::measure::{in_turns, time};
use crate::table::Table;

const SERVERS: usize = 10;
const TOOLS_EACH: usize = 20;
const SAMPLES: usize = 101;
/// About how many bytes of a prompt make a token.
const BYTES_PER_TOKEN: usize = 4;
const QUERY: &str = "archive a payment";

pub(super) fn measure(table: &mut Table) -> Result<()> {
    tokens(table)?;
    for count in [200, 2_000] {
        searching(table, count)?;
    }
    Ok(())
}

/// How much the first request of a run says, with tools that are looked for and with all of them told.
fn tokens(table: &mut Table) -> Result<()> {
    let model = AskedModel::start()?;
    let (directory, cache) = (tempfile::tempdir()?, tempfile::tempdir()?);
    let servers = (0..SERVERS).map(|number| {
        pretender(&format!("server{number}"), QUICK, number * TOOLS_EACH, TOOLS_EACH)
    });
    let servers = servers.collect::<Result<Vec<_>>>()?;
    let told = |servers: &[serde_json::Value], max_listed_tokens| -> Result<usize> {
        let (directory, cache) = (directory.path(), Some(cache.path()));
        let place = Place { directory, servers: servers.to_vec(), cache, max_listed_tokens };
        if !servers.is_empty() {
            remember(&place)?;
        }
        Ok(model.first_request(&place)?.bytes)
    };
    let searched = told(&servers, None)?;
    let all = told(&servers, Some(1_000_000))?;
    let none = told(&[], None)?;
    let what = "first request, 200 tools of 10 MCP servers";
    table.sizes(what, "all tools told", (searched as u64, all as u64), "");
    table.sizes("the same", "no servers", (searched as u64, none as u64), "");
    let tokens = format!("about {}", searched / BYTES_PER_TOKEN);
    table.fact("its tokens", tokens, "≤ 3,000");
    Ok(())
}

/// A tool that is only looked for.
struct Declared(ToolSpec);

impl Tool for Declared {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn prepare(&self, _: serde_json::Value) -> std::result::Result<Box<dyn Invocation>, ToolError> {
        Err(ToolError::failed("never called"))
    }
}

/// How long one search takes, beside looking for its words in every text.
fn searching(table: &mut Table, count: usize) -> Result<()> {
    let registry = ToolRegistry::new();
    let specs: Vec<ToolSpec> = tools(0, count)
        .map(|(name, description, schema)| {
            let mut spec = ToolSpec::new(format!("mcp__s__{name}"), description, Kind::Other);
            spec.category = Category::Mcp;
            spec.parameters = schema.into();
            spec
        })
        .collect();
    let declared = specs.iter().map(|spec| Arc::new(Declared(spec.clone())) as Arc<dyn Tool>);
    registry.register_many(declared)?;
    let search = ToolSearch::new(ToolView::of(registry), None);
    let context = ToolContext::builder("bench").build();
    let threads = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let ours = || {
        time(|| {
            let invocation = search.prepare(json!({ "query": QUERY }))?;
            let output = threads.block_on(invocation.run(context.clone()))?;
            let found = output.value.pointer("/tools/0/name");
            let found = found.and_then(serde_json::Value::as_str).unwrap_or_default();
            if found.contains("archive_payment") {
                Ok(())
            } else {
                Err(format!("`{found}` was found").into())
            }
        })
    };
    let theirs = || {
        time(|| {
            let fits = |text: &str| {
                let text = text.to_lowercase();
                QUERY.split(' ').filter(|word| text.contains(word)).count()
            };
            let mut ranked: Vec<(usize, &ToolSpec)> = specs
                .iter()
                .map(|spec| (fits(&spec.name) + fits(&spec.description), spec))
                .collect();
            ranked.sort_by_key(|(fitting, _)| std::cmp::Reverse(*fitting));
            Ok(ranked.len())
        })
    };
    let pair = in_turns(SAMPLES, ours, theirs)?;
    table.pair(&format!("`tool_search` over {count} tools"), "counting words", pair, "");
    Ok(())
}
