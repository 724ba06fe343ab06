//! How much of an id has to be typed.

use std::collections::{HashMap, HashSet};

/// Less than this is hard to tell from a word.
const SHORTEST: usize = 4;

/// Returns, for each id, how many bytes at its end are in no other id.
pub(super) fn endings<'i>(ids: &[&'i str]) -> HashMap<&'i str, usize> {
    let mut found = HashMap::with_capacity(ids.len());
    let mut open: Vec<&str> = ids.to_vec();
    let longest = ids.iter().map(|id| id.len()).max().unwrap_or_default();
    for length in SHORTEST..=longest {
        if open.is_empty() {
            break;
        }
        let shared = shared_pieces(ids, length);
        open.retain(|id| {
            let end = id.len().checked_sub(length).and_then(|start| id.get(start..));
            let enough = end.is_none_or(|end| !shared.contains(end));
            if enough {
                found.insert(*id, length.min(id.len()));
            }
            !enough
        });
    }
    found.extend(open.into_iter().map(|id| (id, id.len())));
    found
}

/// Returns the pieces of this length that more than one id has.
fn shared_pieces<'i>(ids: &[&'i str], length: usize) -> HashSet<&'i str> {
    let mut first: HashMap<&str, usize> = HashMap::new();
    let mut shared = HashSet::new();
    for (number, id) in ids.iter().enumerate() {
        for start in 0..=id.len().saturating_sub(length) {
            let Some(piece) = id.get(start..start + length) else { continue };
            if *first.entry(piece).or_insert(number) != number {
                shared.insert(piece);
            }
        }
    }
    shared
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_that_is_shown_names_one_run() {
        let ids = ["aaaa1111", "aaaa2222", "bbbb2222", "cc1111cc", "abc", "2222"];
        let endings = endings(&ids);
        for (id, length) in &endings {
            let end = &id[id.len() - length..];
            let others = ids.iter().filter(|other| other.contains(end)).count();
            assert!(others == 1 || end == *id, "`{end}` of `{id}` is in {others} ids");
        }
        assert_eq!(endings.len(), ids.len());
        assert_eq!([endings["aaaa1111"], endings["cc1111cc"], endings["abc"]], [5, 4, 3]);
        assert_eq!(super::endings(&[]), HashMap::new());
    }
}
