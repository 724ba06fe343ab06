//! Where moments are drawn on a line, and which moments the line names.
//!
//! Times in which nothing was under way are left out: a run that went on the next day is not a thin line
//! at each end.

use std::time::Duration;

use crate::timeline::{Span, Timeline};

/// How many parts the line has: a place is a whole number of them, so that no rounding shows.
pub(super) const LENGTH: u64 = 10_000;
/// How long a bar is at least.
const LEAST: u64 = LENGTH / 125;
/// How many names the line has at most.
const TICKS: u128 = 5;

/// A line of time.
#[derive(Clone, Debug)]
pub struct Axis {
    total: Duration,
    gaps: Vec<Span>,
}

impl Axis {
    /// Makes the line of a run.
    pub fn of(timeline: &Timeline<'_>) -> Self {
        Self::new(timeline.working(), timeline.gaps.iter().map(|gap| gap.span).collect())
    }

    /// Makes a line as long as this, without these gaps, which come in their order.
    pub const fn new(total: Duration, gaps: Vec<Span>) -> Self {
        Self { total, gaps }
    }

    /// Returns how much of the run was over at a moment, without the gaps.
    pub(super) fn worked(&self, moment: Duration) -> Duration {
        let skipped = self.gaps.iter().take_while(|gap| gap.start < moment);
        let skipped = skipped.map(|gap| moment.min(gap.end()).saturating_sub(gap.start)).sum();
        moment.saturating_sub(skipped)
    }

    /// Returns where a moment is on a line with so many parts.
    pub fn place_on(&self, length: u64, moment: Duration) -> u64 {
        self.scale(length, self.worked(moment))
    }

    /// Returns where a moment is.
    pub(super) fn place(&self, moment: Duration) -> u64 {
        self.place_on(LENGTH, moment)
    }

    fn scale(&self, length: u64, worked: Duration) -> u64 {
        let place = worked.as_micros().saturating_mul(u128::from(length));
        let place = place.checked_div(self.total.as_micros()).unwrap_or_default();
        u64::try_from(place).unwrap_or(length).min(length)
    }

    /// Returns where something begins, and how long it is: at least a little, so that it can be seen.
    pub(super) fn bar(&self, span: Span) -> (u64, u64) {
        let (start, end) = (self.place(span.start), self.place(span.end()));
        let start = start.min(LENGTH - LEAST);
        (start, end.saturating_sub(start).max(LEAST))
    }

    /// Returns where a part of something begins and how long it is, if it can be told from the whole.
    pub(super) fn part(&self, span: Span) -> Option<(u64, u64)> {
        let (start, end) = (self.place(span.start), self.place(span.end()));
        Some((start, end.saturating_sub(start))).filter(|(_, length)| *length >= LEAST)
    }

    /// Returns the moments that are named, and where they are.
    pub(super) fn ticks(&self) -> Vec<(u64, Duration)> {
        let total = self.total.as_millis();
        let steps = (0..).flat_map(|power| [1, 2, 5].map(|digit| digit * 10_u128.pow(power)));
        let minutes = [15, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21_600, 86_400];
        let steps: Vec<u128> = match total {
            0..60_000 => steps.take(15).collect(),
            _ => minutes.iter().map(|seconds| seconds * 1000).collect(),
        };
        let Some(step) = steps.into_iter().find(|step| total / step < TICKS) else {
            return Vec::new();
        };
        let moments = (0..TICKS).map(|index| index * step).take_while(|moment| *moment <= total);
        let moments =
            moments.map(|moment| Duration::from_millis(u64::try_from(moment).unwrap_or(u64::MAX)));
        moments.map(|moment| (self.scale(LENGTH, moment), moment)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn span(start: u64, duration: u64) -> Span {
        Span {
            start: Duration::from_secs(start),
            duration: Duration::from_secs(duration),
            open: false,
        }
    }

    #[test]
    fn gaps_take_no_room() {
        let axis = Axis { total: Duration::from_secs(20), gaps: vec![span(10, 100)] };
        let at = |seconds| axis.place(Duration::from_secs(seconds));
        assert_eq!([at(0), at(5), at(10), at(60), at(110)], [0, 2_500, 5_000, 5_000, 5_000]);
        assert_eq!([at(115), at(120), at(9_999)], [7_500, 10_000, 10_000]);
        assert_eq!(axis.bar(span(5, 110)), (2_500, 5_000));
        assert_eq!(axis.bar(span(120, 0)), (9_920, 80));
        assert_eq!([axis.part(span(0, 5)), axis.part(span(5, 0))], [Some((0, 2_500)), None]);
    }

    #[test]
    fn the_line_names_round_moments() {
        for (millis, step, count) in
            [(5, 2, 3), (900, 200, 5), (31_000, 10_000, 4), (70_000, 15_000, 5), (0, 1, 1)]
        {
            let axis = Axis { total: Duration::from_millis(millis), gaps: Vec::new() };
            let ticks = axis.ticks();
            assert_eq!(ticks.len(), count, "{millis}");
            let second = ticks.get(1).map_or(1, |tick| tick.1.as_millis());
            assert_eq!(second, step, "{millis}");
        }
        let endless = Axis { total: Duration::MAX, gaps: Vec::new() };
        assert_eq!(endless.ticks(), []);
    }
}
