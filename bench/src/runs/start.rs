//! From the start of a process to the moment its first request has arrived at the model.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use convoke_testkit::{Authority, ModelServer, Options, Reply, Wire};

use super::{LAST_WORDS, World, expected};
use crate::Result;
use crate::measure::in_turns;
use crate::table::Table;

const SAMPLES: usize = 41;

pub(super) fn measure(table: &mut Table, world: &World) -> Result<()> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let authority = Authority::new()?;
    std::fs::write(world.directory.path().join("ca.pem"), authority.ca_pem())?;
    for (scheme, options) in
        [("http", Options::default()), ("https", Options::default().tls(&authority))]
    {
        // The server is in this process, which has nothing else to do, because the clock is here.
        let server = runtime.block_on(options.start(Reply::text(LAST_WORDS)))?;
        let base_url = server.base_url(Wire::OpenAiChat);
        let pair = in_turns(
            SAMPLES,
            || {
                first_request(
                    &runtime,
                    &server,
                    world.convoke_run(&base_url, 1).arg("--no-journal"),
                )
            },
            || first_request(&runtime, &server, &mut world.bare_run(&base_url)?),
        )?;
        let what = format!("`convoke run`, start to first request, {scheme}");
        table.pair(&what, "bare client", pair, "≤ 1.5 ×");
    }
    Ok(())
}

pub(crate) fn first_request(
    runtime: &tokio::runtime::Runtime,
    server: &ModelServer,
    command: &mut Command,
) -> Result<Duration> {
    let started = Instant::now();
    let process = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let arrived = runtime.block_on(async {
        let patience = Duration::from_secs(10);
        tokio::time::timeout(patience, server.next_request()).await
    });
    let output = process.wait_with_output()?;
    let Ok(request) = arrived else {
        let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(format!("{command:?} asked nothing: {complaint}").into());
    };
    expected(String::from_utf8(output.stdout)?)?;
    Ok(request.at.into_std().duration_since(started))
}
