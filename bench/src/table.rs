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

    /// Adds two measurements of the same thing beside their peers.
    pub(crate) fn pairs(&mut self, what: &str, peer: &str, pairs: [Pair; 2], aim: &str) {
        let both = |shown: &dyn Fn(&Pair) -> String| pairs.each_ref().map(shown).join(" / ");
        let ratio = |pair: &Pair| pair.ours.as_secs_f64() / pair.theirs.as_secs_f64().max(1e-9);
        self.0.push(Row {
            what: what.into(),
            ours: both(&|pair| human(pair.ours)),
            peer: peer.into(),
            theirs: both(&|pair| human(pair.theirs)),
            ratio: both(&|pair| format!("{:.2}", ratio(pair))),
            aim: aim.into(),
        });
    }

    /// Adds how often something can be done in a second beside its peer's; more is better.
    pub(crate) fn rates(&mut self, what: &str, peer: &str, (ours, theirs): (f64, f64), aim: &str) {
        self.0.push(Row {
            what: what.into(),
            ours: format!("{ours:.0}"),
            peer: peer.into(),
            theirs: format!("{theirs:.0}"),
            ratio: format!("{:.2}", ours / theirs.max(1e-9)),
            aim: aim.into(),
        });
    }

    /// Adds a number of bytes beside its peer's.
    pub(crate) fn sizes(&mut self, what: &str, peer: &str, (ours, theirs): (u64, u64), aim: &str) {
        #[expect(clippy::cast_precision_loss, reason = "a ratio with two digits")]
        let ratio = ours as f64 / theirs.max(1) as f64;
        self.0.push(Row {
            what: what.into(),
            ours: bytes(ours),
            peer: peer.into(),
            theirs: bytes(theirs),
            ratio: format!("{ratio:.2}"),
            aim: aim.into(),
        });
    }

    /// Adds a number beside its peer's; neither is better.
    pub(crate) fn counts(&mut self, what: &str, peer: &str, (ours, theirs): (usize, usize)) {
        self.0.push(Row {
            what: what.into(),
            ours: ours.to_string(),
            peer: peer.into(),
            theirs: theirs.to_string(),
            ratio: "-".into(),
            aim: String::new(),
        });
    }

    /// Adds a time without a peer.
    pub(crate) fn time(&mut self, what: &str, time: Duration, aim: &str) {
        self.fact(what, human(time), aim);
    }

    /// Adds a number of bytes without a peer.
    pub(crate) fn size(&mut self, what: &str, size: u64, aim: &str) {
        self.fact(what, bytes(size), aim);
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

fn bytes(count: u64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "a size for people")]
    let count = count as f64;
    match count {
        _ if count < 1e4 => format!("{count} B"),
        _ if count < 1e6 => format!("{:.1} KB", count / 1e3),
        _ => format!("{:.1} MB", count / 1e6),
    }
}
