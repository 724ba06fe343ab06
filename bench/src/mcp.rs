//! MCP in both directions, beside the official libraries and the reference servers.
//!
//! What others wrote is taken from the directory that `CONVOKE_MCP_PEERS` names, with packages of npm in
//! `node_modules` and of Python in `venv`. What is not installed there is said in the table and left out.

mod asked;
mod calls;
mod driver;
mod fake;
mod figures;
mod many;
mod peers;
mod serving;
mod start;

use self::peers::Peers;
use crate::Result;
use crate::table::Table;

pub(crate) use fake::pretend;
pub(crate) use serving::serve;

/// Measures everything about MCP.
pub(crate) fn measure(table: &mut Table) -> Result<()> {
    match Peers::find() {
        Ok(peers) => {
            calls::measure(table, &peers)?;
            serving::measure(table, &peers)?;
        }
        Err(why) => table.fact("calls over MCP beside others", format!("not measured: {why}"), ""),
    }
    start::measure(table)?;
    many::measure(table)
}
