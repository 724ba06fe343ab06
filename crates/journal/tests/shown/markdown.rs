//! Markdown, compared with what was read and found good.

use convoke_journal::export::markdown;
use convoke_journal::timeline::Timeline;

use crate::sample;

#[test]
fn a_run_reads_well() {
    let events = sample::continued();
    insta::assert_snapshot!(markdown(&Timeline::of(&events)));
}

#[test]
fn a_run_that_has_not_ended_says_so() {
    let events = sample::fixed();
    insta::assert_snapshot!(markdown(&Timeline::of(&events[..14])));
    assert_eq!(markdown(&Timeline::of(&[])), "There are no events.\n");
}
