//! Which calls of a batch have to wait for which. Pure.
//!
//! Calls of one turn run side by side unless that could be noticed: if one writes what another reads or
//! writes, or one wants to be alone, the later one waits for the earlier one. So a batch always does
//! the same thing, whatever the timing.

use std::path::{Path, PathBuf};

/// What one call of a batch touches, paths resolved.
#[derive(Clone, Debug, Default)]
pub(crate) struct Footprint {
    pub(crate) reads: Vec<PathBuf>,
    pub(crate) writes: Vec<PathBuf>,
    pub(crate) alone: bool,
}

impl Footprint {
    fn conflicts_with(&self, other: &Self) -> bool {
        self.alone || other.alone || self.shares_a_path_with(other)
    }

    /// Tells whether one of the two writes a path of the other: what a call would change is known when the other is
    /// over.
    pub(crate) fn shares_a_path_with(&self, other: &Self) -> bool {
        overlap(&self.writes, &other.writes)
            || overlap(&self.writes, &other.reads)
            || overlap(&self.reads, &other.writes)
    }
}

/// A directory overlaps with everything in it.
fn overlap(left: &[PathBuf], right: &[PathBuf]) -> bool {
    let related = |a: &Path, b: &Path| a.starts_with(b) || b.starts_with(a);
    left.iter().any(|a| right.iter().any(|b| related(a, b)))
}

/// Returns for each call the earlier ones it has to wait for.
pub(crate) fn waits(footprints: &[Footprint]) -> Vec<Vec<usize>> {
    let calls = footprints.iter().enumerate();
    calls.map(|(index, one)| waits_of(index, one, footprints)).collect()
}

/// Returns the earlier calls that one has to wait for.
pub(crate) fn waits_of(index: usize, one: &Footprint, footprints: &[Footprint]) -> Vec<usize> {
    let earlier = footprints.iter().take(index).enumerate();
    earlier.filter(|(_, other)| one.conflicts_with(other)).map(|(other, _)| other).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn touch(reads: &[&str], writes: &[&str]) -> Footprint {
        let paths = |texts: &[&str]| texts.iter().map(PathBuf::from).collect();
        Footprint { reads: paths(reads), writes: paths(writes), alone: false }
    }

    #[test]
    fn only_what_could_be_noticed_waits() {
        let batch = [
            touch(&["/a"], &[]),
            touch(&["/a"], &[]),
            touch(&[], &["/a"]),
            touch(&["/a"], &[]),
            touch(&["/"], &[]),
            touch(&[], &["/b"]),
            touch(&["/ab"], &[]),
            touch(&[], &["/b"]),
        ];
        assert_eq!(
            waits(&batch),
            [vec![], vec![], vec![0, 1], vec![2], vec![2], vec![4], vec![], vec![4, 5]]
        );
    }

    #[test]
    fn who_wants_to_be_alone_is_alone() {
        let alone = Footprint { alone: true, ..Footprint::default() };
        let batch = [touch(&["/a"], &[]), alone, touch(&["/b"], &[])];
        assert_eq!(waits(&batch), [vec![], vec![0], vec![1]]);
    }
}
