//! `read_file` and the stale-file guard beside the standard library, with the file in the page cache.

use std::ffi::OsStr;
use std::time::Duration;

use cap_std::ambient_authority;
use cap_std::fs::Dir;
use convoke::prelude::*;
use convoke_tool::files::{Changed, FileHash, FileState, NewFile, Target};

use crate::Result;
use crate::measure::{in_turns, time};
use crate::table::Table;

pub(crate) fn measure(table: &mut Table) -> Result<()> {
    let directory = tempfile::tempdir()?;
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    for (name, bytes, samples) in [("1 KB", 1024, 2_001), ("10 MB", 10 * 1024 * 1024, 41)] {
        let path = directory.path().join(name.replace(' ', ""));
        let line = "All work and no play makes a dull file.\n";
        let content: String = line.chars().cycle().take(bytes).collect();
        std::fs::write(&path, content)?;
        // A file that was changed a moment ago is not remembered.
        std::thread::sleep(Duration::from_millis(3_100));
        for cache in [true, false] {
            let mut config = Config::default();
            config.tools.read_cache = cache;
            let convoke = Runtime::builder(directory.path()).config(config).build()?;
            let executor = convoke.executor().build();
            let call = || ToolCall::new("c", "read_file", json!({ "path": path }));
            let executor = &executor;
            let pair = runtime.block_on(async {
                tokio::task::block_in_place(|| {
                    let handle = tokio::runtime::Handle::current();
                    in_turns(
                        samples,
                        || {
                            time(|| {
                                let result = handle.block_on(executor.execute(call()));
                                if result.success() {
                                    Ok(result)
                                } else {
                                    Err(result.text().into())
                                }
                            })
                        },
                        || time(|| Ok(std::fs::read(&path)?)),
                    )
                })
            })?;
            let cached = if cache { "cache on" } else { "cache off" };
            table.pair(&format!("read_file of {name}, {cached}"), "std::fs::read", pair, "");
        }
    }
    guard(table)
}

/// The stale-file guard: the exchange, the look at the file that came out, and its way to the kept contents. The new
/// content is written before, as it is without a guard.
fn guard(table: &mut Table) -> Result<()> {
    let directory = tempfile::tempdir()?;
    let (project, keep) = (directory.path().join("project"), directory.path().join("kept"));
    std::fs::create_dir(&project)?;
    let handle = Dir::open_ambient_dir(&project, ambient_authority())?;
    let path = project.join("f");
    let target = Target { directory: &handle, name: OsStr::new("f"), keep: Some(&keep) };
    for (name, bytes, samples) in [("10 KB", 10 * 1024, 501), ("10 MB", 10 * 1024 * 1024, 21)] {
        let content = "All work and no play makes a dull file.\n".repeat(bytes / 40);
        let known = FileState::File(FileHash::of(content.as_bytes()));
        std::fs::write(&path, &content)?;
        let mut exchange = || {
            let mut new = NewFile::write(&handle, content.as_bytes(), None)?;
            time(|| match target.replace(&mut new, &|state| *state == known)? {
                Changed::Done(kept) => Ok(kept),
                Changed::Refused(state) => Err(format!("refused: {state}").into()),
            })
        };
        if bytes > 1024 * 1024 {
            let pair = in_turns(samples, &mut exchange, || time(|| Ok(std::fs::read(&path)?)))?;
            table.pair(&format!("write guard, {name}"), "std::fs::read", pair, "≤ 1.2");
        } else {
            let rename = || {
                let beside = project.join("beside");
                std::fs::write(&beside, &content)?;
                time(|| Ok(std::fs::rename(&beside, &path)?))
            };
            let pair = in_turns(samples, &mut exchange, rename)?;
            let added = pair.ours.saturating_sub(pair.theirs);
            table.time(&format!("write guard, {name}, beyond a rename"), added, "≤ 20 µs");
        }
    }
    Ok(())
}
