//! Gathers what threads find, in the order of paths, and no more than was asked for.
//!
//! Which matches are kept does not depend on timing: always the first ones by path and line. Once
//! enough are known, files whose paths come later need not be searched.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::lines::FileMatches;
use crate::walk::Missed;

/// The first matches in the order of paths.
pub(super) struct Report {
    files: BTreeMap<PathBuf, FileMatches>,
    kept: u64,
    limit: u64,
    context_lines: usize,
    /// Whether anything was left out.
    pub(super) more: bool,
    /// What was not shown.
    pub(super) missed: Missed,
}

impl Report {
    /// Keeps so many matches, with so many lines around each.
    pub(super) const fn new(limit: u64, context_lines: usize) -> Self {
        let missed = Missed { unreadable: 0, forbidden: 0 };
        Self { files: BTreeMap::new(), kept: 0, limit, context_lines, more: false, missed }
    }

    /// Tells whether a file's matches could still be among the first.
    pub(super) fn wants(&self, path: &Path) -> bool {
        self.kept < self.limit
            || self.files.last_key_value().is_none_or(|(last, _)| path < last.as_path())
    }

    /// Takes the matches of one file; `weight` is how much of the limit they use.
    pub(super) fn add(
        &mut self,
        path: PathBuf,
        found: FileMatches,
        weight: fn(&FileMatches) -> u64,
    ) {
        self.more |= found.more;
        self.kept += weight(&found);
        self.files.insert(path, found);
        while self.kept > self.limit {
            let Some((path, mut last)) = self.files.pop_last() else { break };
            self.more = true;
            let surplus = self.kept - self.limit;
            self.kept -= weight(&last);
            let keep = weight(&last).saturating_sub(surplus);
            if keep > 0 {
                last.keep_first(keep, self.context_lines);
                self.kept += keep;
                self.files.insert(path, last);
            }
        }
    }

    /// Returns the files in order.
    pub(super) fn into_files(self) -> BTreeMap<PathBuf, FileMatches> {
        self.files
    }
}

impl FileMatches {
    /// Drops all but the first matches, and the lines that stood near the others.
    fn keep_first(&mut self, matches: u64, context_lines: usize) {
        let mut seen = 0;
        let end = self.lines.iter().position(|line| {
            seen += u64::from(line.is_match);
            seen > matches
        });
        self.lines.truncate(end.unwrap_or(self.lines.len()));
        self.drop_stray_lines(context_lines);
        self.matches = matches;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::lines::Line;
    use super::*;

    fn file(matches: u64) -> FileMatches {
        let line = |number| Line { number, text: "x".into(), is_match: true };
        FileMatches { lines: (0..matches).map(line).collect(), matches, more: false }
    }

    proptest! {
        #[test]
        fn the_first_matches_are_kept_in_whatever_order_they_come(
            counts in prop::collection::vec(1..9_u64, 0..12), limit in 1..20_u64, seed in any::<u64>()
        ) {
            let mut order: Vec<usize> = (0..counts.len()).collect();
            let length = order.len().max(1);
            for index in 0..order.len() {
                let other = usize::try_from(seed.rotate_left(u32::try_from(index).unwrap()) % length as u64).unwrap();
                order.swap(index, other);
            }
            let mut report = Report::new(limit, 0);
            for index in order {
                let path = PathBuf::from(format!("{index:03}"));
                let matches = if report.wants(&path) { counts[index] } else { 1 };
                report.add(path, file(matches), |found| found.matches);
            }
            let total: u64 = counts.iter().sum();
            prop_assert_eq!(report.more, total > limit);
            let mut left = limit;
            let expected: Vec<u64> = counts.iter().map(|count| { let take = left.min(*count); left -= take; take }).filter(|take| *take > 0).collect();
            let kept: Vec<u64> = report.into_files().values().map(|found| found.lines.len() as u64).collect();
            prop_assert_eq!(kept, expected);
        }
    }
}
