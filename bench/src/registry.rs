//! A registry of ten thousand tools beside a plain map.

use std::collections::HashMap;
use std::sync::Arc;

use convoke::prelude::*;

use crate::Result;
use crate::measure::{in_turns, time_many};
use crate::table::Table;

const TOOLS: usize = 10_000;

struct Declared(ToolSpec);

impl Tool for Declared {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn prepare(&self, _: serde_json::Value) -> std::result::Result<Box<dyn Invocation>, ToolError> {
        Err(ToolError::failed("never called"))
    }
}

fn tools() -> impl Iterator<Item = Arc<dyn Tool>> {
    (0..TOOLS).map(|number| {
        let mut spec = ToolSpec::new(format!("tool_{number:05}"), "Does one of many things.", Kind::Read);
        spec.parameters = json!({ "type": "object", "properties": { "path": { "type": "string" } }, "required": ["path"] }).into();
        Arc::new(Declared(spec)) as Arc<dyn Tool>
    })
}

pub(crate) fn measure(table: &mut Table) -> Result<()> {
    let registry = ToolRegistry::new();
    registry.register_many(tools())?;
    let map: HashMap<String, Arc<dyn Tool>> =
        tools().map(|tool| (tool.spec().name.clone(), tool)).collect();
    let names: Vec<String> =
        (0..TOOLS).step_by(7).map(|number| format!("tool_{number:05}")).collect();
    let count = u32::try_from(names.len())?;

    let mut next = 0;
    let mut wanted = || {
        next = (next + 1) % names.len();
        names.get(next).map(String::as_str).unwrap_or_default()
    };
    let mut other = 0;
    let mut wanted_too = || {
        other = (other + 1) % names.len();
        names.get(other).map(String::as_str).unwrap_or_default()
    };
    let pair = in_turns(
        41,
        || time_many(count, || registry.get(wanted()).map(drop).ok_or_else(|| "missing".into())),
        || {
            time_many(count, || {
                map.get(wanted_too()).cloned().map(drop).ok_or_else(|| "missing".into())
            })
        },
    )?;
    table.pair("look up one of 10,000 tools", "HashMap + Arc clone", pair, "");

    let pair = in_turns(
        11,
        || {
            registry.remove("tool_00000");
            registry.register_many(tools().take(1))?;
            time_many(1, || {
                std::hint::black_box(registry.declarations());
                Ok(())
            })
        },
        || {
            time_many(1, || {
                let mut sorted: Vec<Arc<dyn Tool>> = map.values().cloned().collect();
                sorted.sort_by(|left, right| left.spec().name.cmp(&right.spec().name));
                std::hint::black_box(sorted);
                Ok(())
            })
        },
    )?;
    table.pair("declarations of 10,000 tools after a change", "sort 10,000 names", pair, "");
    let unchanged = time_many(1_000, || {
        std::hint::black_box(registry.declarations());
        Ok(())
    })?;
    table.fact(
        "declarations of 10,000 tools, unchanged",
        format!("{} ns", unchanged.as_nanos()),
        "",
    );
    Ok(())
}
