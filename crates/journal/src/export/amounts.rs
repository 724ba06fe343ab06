//! Times, tokens, money and sizes, as short as a glance wants them.

use std::time::Duration;

pub use convoke_core::count::count;
use convoke_core::{Money, Timestamp, Usage};

/// Writes how long something took: `2 ms`, `8.2 s`, `3 m 05 s`, `1 h 02 m`.
pub fn time(duration: Duration) -> String {
    let (millis, seconds) = (duration.as_millis(), duration.as_secs());
    match seconds {
        0 if millis == 0 && !duration.is_zero() => "<1 ms".to_owned(),
        0 => format!("{millis} ms"),
        1..60 => format!("{seconds}.{} s", (millis % 1000) / 100),
        60..3600 => format!("{} m {:02} s", seconds / 60, seconds % 60),
        _ => format!("{} h {:02} m", seconds / 3600, seconds % 3600 / 60),
    }
}

/// Writes a number of tokens: `512`, `12.4k`, `1.2M`.
pub fn tokens(count: u64) -> String {
    let tenths = |unit: u64, letter: char| {
        let tenths = count.saturating_add(unit / 20) / (unit / 10);
        format!("{}.{}{letter}", tenths / 10, tenths % 10)
    };
    match count {
        0..1000 => count.to_string(),
        1000..99_950 => tenths(1000, 'k'),
        99_950..999_500 => format!("{}k", (count + 500) / 1000),
        _ => tenths(1_000_000, 'M'),
    }
}

/// Writes money, rounded: cents from a dollar on, hundredths of a cent below.
pub fn money(money: Money) -> String {
    let amount = money.amount();
    let rounded = amount.round_dp(4);
    if amount.is_zero() {
        "$0".to_owned()
    } else if !amount.trunc().is_zero() {
        format!("${:.2}", amount.round_dp(2))
    } else if rounded.is_zero() {
        "<$0.0001".to_owned()
    } else {
        format!("${rounded:.4}")
    }
}

/// Writes what was used: `1.5k in (1.0k cached) · 20 out · $0.0123`. Nothing, if nothing was used.
pub(super) fn usage(usage: &Usage) -> Option<String> {
    if usage.is_empty() && usage.cost.is_none_or(|cost| cost.amount().is_zero()) {
        return None;
    }
    let cached = match usage.cached_tokens {
        0 => String::new(),
        cached => format!(" ({} cached)", tokens(cached)),
    };
    let about = if usage.estimated { "about " } else { "" };
    let mut text = format!(
        "{about}{} in{cached} · {} out",
        tokens(usage.input_tokens),
        tokens(usage.output_tokens)
    );
    if let Some(cost) = usage.cost {
        text.push_str(" · ");
        text.push_str(&money(cost));
    }
    Some(text)
}

/// Writes a size: `512 bytes`, `12 KiB`, `3 MiB`.
pub fn size(bytes: usize) -> String {
    match bytes {
        1 => "1 byte".to_owned(),
        0..1024 => format!("{bytes} bytes"),
        1024..1_048_576 => format!("{} KiB", bytes / 1024),
        _ => format!("{} MiB", bytes / 1_048_576),
    }
}

/// Writes a moment: `2026-03-01 09:30:00 UTC`.
pub(super) fn moment(moment: Timestamp) -> String {
    let seconds = moment.as_millis().rem_euclid(86_400_000) / 1000;
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!("{} {hours:02}:{minutes:02}:{seconds:02} UTC", moment.date())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_at_a_glance() {
        for (micros, shown) in [
            (0, "0 ms"),
            (300, "<1 ms"),
            (2_000, "2 ms"),
            (999_999, "999 ms"),
            (1_000_000, "1.0 s"),
            (8_250_000, "8.2 s"),
            (59_990_000, "59.9 s"),
            (185_000_000, "3 m 05 s"),
            (3_720_000_000, "1 h 02 m"),
        ] {
            assert_eq!(time(Duration::from_micros(micros)), shown);
        }
        assert_eq!(moment(Timestamp::from_millis(1_772_357_400_000)), "2026-03-01 09:30:00 UTC");
        assert_eq!(moment(Timestamp::from_millis(-1)), "1969-12-31 23:59:59 UTC");
    }

    #[test]
    fn numbers_are_short() {
        for (number, shown) in [
            (0, "0"),
            (999, "999"),
            (1000, "1.0k"),
            (12_449, "12.4k"),
            (9_790, "9.8k"),
            (99_949, "99.9k"),
            (99_999, "100k"),
            (100_000, "100k"),
            (999_500, "1.0M"),
            (1_250_000, "1.3M"),
        ] {
            assert_eq!(tokens(number), shown);
        }
        assert_eq!([size(1), size(900), size(4_096)], ["1 byte", "900 bytes", "4 KiB"]);
        assert_eq!([count(1, "turn"), count(0, "turn")], ["1 turn", "0 turns"]);
    }

    #[test]
    fn money_is_rounded_only_for_the_eye() {
        for (exact, shown) in [
            ("0", "$0"),
            ("0.00001", "<$0.0001"),
            ("0.00034", "$0.0003"),
            ("0.01234567", "$0.0123"),
            ("0.1", "$0.1000"),
            ("12.345", "$12.34"),
            ("1234.5", "$1234.50"),
        ] {
            assert_eq!(money(exact.parse().unwrap()), shown);
        }
    }

    #[test]
    fn an_unknown_price_is_not_shown_as_nothing() {
        let mut used = Usage { input_tokens: 1500, output_tokens: 20, ..Usage::default() };
        assert_eq!(usage(&used).as_deref(), Some("1.5k in · 20 out"));
        used.cached_tokens = 1000;
        used.cost = Some("0.5".parse().unwrap());
        assert_eq!(usage(&used).as_deref(), Some("1.5k in (1.0k cached) · 20 out · $0.5000"));
        assert_eq!(usage(&Usage::default()), None);
    }
}
