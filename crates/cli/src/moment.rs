//! Moments as people write and read them: `2d` ago, `2026-03-01`, `2026-03-01 09:30`.

use std::time::Duration;

use convoke_core::Timestamp;

use crate::duration;

const DAY_MILLIS: i64 = 86_400_000;

/// A moment as it was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moment {
    /// So long ago.
    Ago(Duration),
    /// A whole day: from its first to its last millisecond.
    Day(Timestamp),
    /// This moment.
    At(Timestamp),
}

impl Moment {
    /// Returns its beginning.
    pub(crate) fn begin(self, now: Timestamp) -> Timestamp {
        match self {
            Self::Ago(age) => {
                let age = i64::try_from(age.as_millis()).unwrap_or(i64::MAX);
                Timestamp::from_millis(now.as_millis().saturating_sub(age))
            }
            Self::Day(moment) | Self::At(moment) => moment,
        }
    }

    /// Returns its end.
    pub(crate) fn end(self, now: Timestamp) -> Timestamp {
        match self {
            Self::Day(first) => Timestamp::from_millis(first.as_millis() + DAY_MILLIS - 1),
            other => other.begin(now),
        }
    }
}

/// Reads a moment: an age, a day, or a day and a time (UTC).
pub(crate) fn parse(text: &str) -> Result<Moment, String> {
    if let Ok(age) = duration::parse_age(text) {
        return Ok(Moment::Ago(age));
    }
    let wrong = || {
        "write how long ago, as 90s, 2h or 3d, or a moment in UTC, as 2026-03-01 or 2026-03-01T09:30"
            .to_owned()
    };
    let (date, time) = match text.trim().split_once(['T', ' ']) {
        Some((date, time)) => (date, Some(time)),
        None => (text.trim(), None),
    };
    let day = numbers::<3>(date, '-').and_then(day_millis).ok_or_else(wrong)?;
    let Some(time) = time else { return Ok(Moment::Day(Timestamp::from_millis(day))) };
    let time = time.strip_suffix('Z').unwrap_or(time);
    let seconds = numbers::<3>(time, ':')
        .or_else(|| numbers::<2>(time, ':').map(|[hour, minute]| [hour, minute, 0]))
        .filter(|[hour, minute, second]| *hour < 24 && *minute < 60 && *second < 60)
        .map(|[hour, minute, second]| (hour * 60 + minute) * 60 + second)
        .ok_or_else(wrong)?;
    Ok(Moment::At(Timestamp::from_millis(day + seconds * 1000)))
}

/// Writes a moment: `2026-03-01 09:30:00`, in UTC.
pub(crate) fn show(at: Timestamp) -> String {
    let seconds = at.as_millis().div_euclid(1000).rem_euclid(86_400);
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!("{} {hour:02}:{minute:02}:{second:02}", at.date())
}

fn numbers<const N: usize>(text: &str, between: char) -> Option<[i64; N]> {
    let number = |part: &str| {
        let is_number = (1..=4).contains(&part.len()) && part.bytes().all(|b| b.is_ascii_digit());
        is_number.then(|| part.parse().ok()).flatten()
    };
    let numbers: Option<Vec<i64>> = text.split(between).map(number).collect();
    numbers?.try_into().ok()
}

/// Finds the day whose date is this by halving: the calendar itself is known in one place only.
fn day_millis([year, month, day]: [i64; 3]) -> Option<i64> {
    let date = format!("{year:04}-{month:02}-{day:02}");
    let written = |days: i64| Timestamp::from_millis(days * DAY_MILLIS).date();
    let (mut low, mut high) = (0_i64, 365 * 9_000);
    while low < high {
        let middle = low.midpoint(high);
        if written(middle) < date {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    (written(low) == date).then_some(low * DAY_MILLIS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_an_age_a_day_or_a_time() {
        let now = Timestamp::from_millis(1_772_357_400_000);
        assert_eq!(show(now), "2026-03-01 09:30:00");
        let at = |text: &str| {
            let moment = parse(text).unwrap();
            (show(moment.begin(now)), show(moment.end(now)))
        };
        let both = |text: &str| (text.to_owned(), text.to_owned());
        assert_eq!(at("2d"), both("2026-02-27 09:30:00"));
        let day = ("2024-02-29 00:00:00".to_owned(), "2024-02-29 23:59:59".to_owned());
        assert_eq!(at("2024-02-29"), day);
        assert_eq!(at("2024-02-29T07:05"), both("2024-02-29 07:05:00"));
        assert_eq!(at("1970-01-01 00:00:01Z"), both("1970-01-01 00:00:01"));
    }

    #[test]
    fn what_is_no_moment_is_met_with_examples() {
        for text in [
            "yesterday",
            "2026-02-30",
            "2026-13-01",
            "2026-03",
            "2026-03-01T25:00",
            "2026-03-01T9",
            "1969-12-31",
            "",
            "20260301",
        ] {
            assert!(parse(text).unwrap_err().contains("as 2026-03-01"), "{text}");
        }
    }
}
