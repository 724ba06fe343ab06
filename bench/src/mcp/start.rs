//! Twenty servers, some slow and one that never answers: nobody waits for them before there is need.

use serde_json::Value;

use super::asked::{AskedModel, Place, pretender};
use super::fake::{LAZY, MUTE, QUICK};
use crate::Result;
use crate::measure::in_turns;
use crate::table::Table;

const SERVERS: usize = 20;
const SLOW: usize = 5;
const SAMPLES: usize = 21;

pub(super) fn measure(table: &mut Table) -> Result<()> {
    let model = AskedModel::start()?;
    let (directory, cache) = (tempfile::tempdir()?, tempfile::tempdir()?);
    let servers = (0..SERVERS).map(|number| {
        let habit = match number {
            0 => MUTE,
            _ if number <= SLOW => LAZY,
            _ => QUICK,
        };
        pretender(&format!("server{number}"), habit, number * 10, 10)
    });
    let servers = servers.collect::<Result<Vec<_>>>()?;
    let place = |servers, cache| Place {
        directory: directory.path(),
        servers,
        cache,
        max_listed_tokens: None,
    };
    let none = place(Vec::new(), None);
    let unknown = place(servers.clone(), None);
    let first = |place: &Place<'_>| Ok(model.first_request(place)?.after);
    let pair = in_turns(SAMPLES, || first(&unknown), || first(&none))?;
    let what = "start to first request, 20 MCP servers: one never answers, five are slow";
    table.pair(what, "no servers", pair, "the same");

    let known = place(servers, Some(cache.path()));
    remember(&known)?;
    let pair = in_turns(SAMPLES, || first(&known), || first(&none))?;
    table.pair("the same, 19 of them known from earlier", "no servers", pair, "the same");
    Ok(())
}

fn is_mute(server: &Value) -> bool {
    server.pointer("/args/1").is_some_and(|habit| habit == MUTE)
}

/// Has it kept what the servers offer that answer.
pub(super) fn remember(place: &Place<'_>) -> Result<()> {
    let threads = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let runtime = place.runtime(place.config()?)?;
    let servers = runtime.mcp().ok_or("there are no servers")?.servers().clone();
    threads.block_on(async {
        servers.start_all();
        let patience = std::time::Duration::from_secs(10);
        // One that never answers is not waited for.
        drop(tokio::time::timeout(patience, servers.settled()).await);
        let known = servers.status().iter().filter(|status| status.known).count();
        servers.stop().await;
        let mute = place.servers.iter().filter(|server| is_mute(server)).count();
        if known + mute == place.servers.len() {
            Ok(())
        } else {
            Err(format!("only {known} servers are known").into())
        }
    })
}
