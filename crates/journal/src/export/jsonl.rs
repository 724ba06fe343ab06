//! Events as lines of JSON.

use std::io::{self, Write};

use convoke_core::Event;

/// Writes events as they are, one a line. Reading the lines gives the same events back.
pub fn jsonl<'e>(
    events: impl IntoIterator<Item = &'e Event>,
    out: &mut impl Write,
) -> io::Result<()> {
    for event in events {
        serde_json::to_writer(&mut *out, event)?;
        out.write_all(b"\n")?;
    }
    out.flush()
}
