//! What the suite found.

use std::collections::BTreeSet;
use std::fmt;

use super::check::Check;

/// A promise that was not kept, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// The promise.
    pub check: Check,
    /// What happened instead.
    pub message: String,
}

/// Findings so far.
#[derive(Debug, Default)]
pub(super) struct Findings(Vec<Finding>);

impl Findings {
    pub(super) fn add(&mut self, check: Check, message: impl Into<String>) {
        self.0.push(Finding { check, message: message.into() });
    }

    /// Adds what a judge found, if it found anything.
    pub(super) fn note(&mut self, check: Check, found: Option<String>) {
        if let Some(message) = found {
            self.add(check, message);
        }
    }

    pub(super) fn has(&self, check: Check) -> bool {
        self.0.iter().any(|finding| finding.check == check)
    }
}

/// What the suite found out about one tool.
#[derive(Clone, Debug)]
#[must_use]
pub struct Report {
    tool: String,
    findings: Vec<Finding>,
    excused: Vec<(Check, String)>,
    called: bool,
}

impl Report {
    pub(super) fn new(
        tool: &str,
        findings: Findings,
        excused: Vec<(Check, String)>,
        called: bool,
    ) -> Self {
        let is_excused = |check| excused.iter().any(|(other, _)| *other == check);
        let mut findings = findings.0;
        findings.retain(|finding| !is_excused(finding.check));
        findings.sort_by_key(|finding| finding.check);
        Self { tool: tool.to_owned(), findings, excused, called }
    }

    /// Tells whether every promise was kept.
    pub const fn passed(&self) -> bool {
        self.findings.is_empty()
    }

    /// Returns what was found, in the order of [`Check::ALL`].
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// Returns the promises that were not kept.
    pub fn failed(&self) -> BTreeSet<Check> {
        self.findings.iter().map(|finding| finding.check).collect()
    }

    /// Ends the test unless every promise was kept.
    ///
    /// # Panics
    ///
    /// Panics with the list of findings if there are any.
    #[track_caller]
    pub fn assert(&self) {
        assert!(self.passed(), "{self}");
    }
}

impl fmt::Display for Report {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (tool, failed, all) = (&self.tool, self.failed().len(), Check::ALL.len());
        if failed == 0 {
            write!(formatter, "tool `{tool}` keeps its promises")?;
        } else {
            write!(formatter, "tool `{tool}` fails {failed} of {all} checks:")?;
        }
        for finding in &self.findings {
            let message = finding.message.replace('\n', "\n    ");
            write!(formatter, "\n  - {}: {message}", finding.check)?;
        }
        for (check, reason) in &self.excused {
            write!(formatter, "\n  ({check} was left out: {reason})")?;
        }
        if !self.called {
            write!(formatter, "\n  (no calls were made)")?;
        }
        Ok(())
    }
}
