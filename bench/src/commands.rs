//! Whole commands: how long they take to start, and how large they are.

use std::path::Path;
use std::process::Command;

use crate::Result;
use crate::measure::{in_turns, time};
use crate::search::run;
use crate::table::Table;

pub(crate) fn measure(table: &mut Table, convoke: &Path) -> Result<()> {
    let directory = tempfile::tempdir()?;
    let list = || run(Command::new(convoke).args(["tools", "list"]).current_dir(directory.path()));
    let peer = || run(Command::new("rg").arg("--version").current_dir(directory.path()));
    let pair = in_turns(51, || time(list), || time(peer))?;
    table.pair("`convoke tools list`, whole process", "rg --version", pair, "≤ 10 ms");
    let bytes = std::fs::metadata(convoke)?.len();
    #[expect(clippy::cast_precision_loss, reason = "a size in megabytes, for people")]
    let megabytes = bytes as f64 / 1_000_000.0;
    table.fact("release binary", format!("{megabytes:.1} MB"), "");
    Ok(())
}
