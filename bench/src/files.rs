//! `read_file` beside the standard library, with the file in the page cache.

use std::time::Duration;

use convoke::prelude::*;

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
    Ok(())
}
