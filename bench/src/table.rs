//! The table that is printed.

use std::io::Write;
use std::time::Duration;

use crate::Result;
use crate::measure::Pair;

/// Rows, in the order they were measured.
#[derive(Debug, Default)]
pub(crate) struct Table(Vec<Row>);

#[derive(Debug)]
struct Row {
    what: String,
    ours: String,
    peer: String,
    theirs: String,
    ratio: String,
    aim: String,
}

impl Table {
    /// Adds a measurement beside its peer.
    pub(crate) fn pair(&mut self, what: &str, peer: &str, pair: Pair, aim: &str) {
        let ratio = pair.ours.as_secs_f64() / pair.theirs.as_secs_f64().max(1e-9);
        self.0.push(Row {
            what: what.into(),
            ours: human(pair.ours),
            peer: peer.into(),
            theirs: human(pair.theirs),
            ratio: format!("{ratio:.2}"),
            aim: aim.into(),
        });
    }

    /// Adds a fact without a peer.
    pub(crate) fn fact(&mut self, what: &str, value: String, aim: &str) {
        let none = || "-".to_owned();
        self.0.push(Row {
            what: what.into(),
            ours: value,
            peer: none(),
            theirs: none(),
            ratio: none(),
            aim: aim.into(),
        });
    }

    /// Prints the table as Markdown.
    pub(crate) fn print(&self) -> Result<()> {
        let mut out = std::io::stdout().lock();
        writeln!(out, "| what | convoke | peer | peer's | ratio | aim |")?;
        writeln!(out, "| --- | ---: | --- | ---: | ---: | --- |")?;
        for row in &self.0 {
            let Row { what, ours, peer, theirs, ratio, aim } = row;
            writeln!(out, "| {what} | {ours} | {peer} | {theirs} | {ratio} | {aim} |")?;
        }
        Ok(())
    }
}

fn human(duration: Duration) -> String {
    match duration.as_nanos() {
        nanos if nanos < 10_000 => format!("{nanos} ns"),
        nanos if nanos < 10_000_000 => format!("{:.1} µs", duration.as_secs_f64() * 1e6),
        _ => format!("{:.1} ms", duration.as_secs_f64() * 1e3),
    }
}
