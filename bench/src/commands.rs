//! Whole commands: how long they take to start, and how large they are.

use std::collections::BTreeSet;
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
    table.size("release binary", std::fs::metadata(convoke)?.len(), "");
    packages(table)
}

/// Counts what the command is built from.
fn packages(table: &mut Table) -> Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut tree = Command::new("cargo");
    tree.args(["tree", "--locked", "--offline", "-p", "convoke-cli", "-e", "normal"]);
    let tree = run(tree.args(["--prefix", "none"]).current_dir(&root))?;
    // A package that was listed before is marked.
    let lines = tree.lines().map(|line| line.trim_end_matches(" (*)"));
    let built: BTreeSet<&str> = lines.filter(|line| !line.is_empty()).collect();
    table.fact("packages in the command, ours included", built.len().to_string(), "");
    let lock = std::fs::read_to_string(root.join("Cargo.lock"))?;
    let locked = lock.lines().filter(|line| *line == "[[package]]").count();
    table.fact("packages in the lock file, tests included", locked.to_string(), "");
    Ok(())
}
