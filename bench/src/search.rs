//! `grep` and `glob` beside `rg` and `find`, over the same warm tree, with the same answers.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use convoke::prelude::*;

use crate::Result;
use crate::measure::{in_turns, time};
use crate::table::Table;
use crate::tree::{FILES, RARE, generate};

const SAMPLES: usize = 15;

pub(crate) fn measure(table: &mut Table, convoke: &Path) -> Result<()> {
    let directory = tempfile::tempdir()?;
    let root = directory.path();
    generate(root)?;
    let inside = Runtime::builder(root).build()?;
    let executor = inside.executor().build();
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let execute = |tool: &str, arguments: serde_json::Value| {
        let result = runtime.block_on(executor.execute(ToolCall::new("c", tool, arguments)));
        if result.success() { Ok(result) } else { Err(result.text()) }
    };

    let grep = json!({ "pattern": RARE, "max_matches": 100_000 });
    let rg = || {
        run(Command::new("rg")
            .args(["--hidden", "--line-number", "--no-heading", "--color=never", RARE])
            .current_dir(root))
    };
    let ours = execute("grep", grep.clone())?;
    let found =
        ours.value().and_then(|value| value["files"].as_array()).map(Vec::len).unwrap_or_default();
    let theirs: BTreeSet<String> =
        rg()?.lines().filter_map(|line| line.split(':').next()).map(str::to_owned).collect();
    if found != theirs.len() || found != FILES / 500 {
        return Err(format!("grep found {found} files, rg {}", theirs.len()).into());
    }
    let pair = in_turns(SAMPLES, || time(|| Ok(execute("grep", grep.clone())?)), || time(rg))?;
    table.pair("grep, 20,000 files, full scan, rare pattern, in process", "rg", pair, "≤ 1.1");

    let arguments = grep.to_string();
    let whole =
        || run(Command::new(convoke).args(["tools", "call", "grep", &arguments]).current_dir(root));
    let pair = in_turns(SAMPLES, || time(whole), || time(rg))?;
    table.pair("the same, `convoke tools call grep`", "rg", pair, "≤ 1.1");

    let glob = json!({ "pattern": "*.rs", "limit": 100_000 });
    let find =
        || run(Command::new("find").args([".", "-name", "*.rs", "-type", "f"]).current_dir(root));
    let ours = execute("glob", glob.clone())?
        .value()
        .and_then(|value| value["files"].as_array())
        .map(Vec::len);
    let theirs = find()?.lines().count();
    if ours != Some(theirs) {
        return Err(format!("glob found {ours:?} files, find {theirs}").into());
    }
    let pair = in_turns(SAMPLES, || time(|| Ok(execute("glob", glob.clone())?)), || time(find))?;
    table.pair("glob `*.rs`, 20,000 files, in process", "find -name", pair, "");
    let rg_files =
        || run(Command::new("rg").args(["--files", "--hidden", "-g", "*.rs"]).current_dir(root));
    let pair =
        in_turns(SAMPLES, || time(|| Ok(execute("glob", glob.clone())?)), || time(rg_files))?;
    table.pair("the same", "rg --files -g", pair, "");
    Ok(())
}

/// Runs a command and returns what it wrote.
pub(crate) fn run(command: &mut Command) -> Result<String> {
    let output = command.output()?;
    if !output.status.success() {
        let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(format!("{command:?} ended with {}: {complaint}", output.status).into());
    }
    Ok(String::from_utf8(output.stdout)?)
}
