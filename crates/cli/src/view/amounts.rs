//! Times, tokens and money, as short as a glance wants them.

use std::time::Duration;

use convoke_core::{Money, Usage};

use crate::view::look::Look;

/// Writes how long something took: `2 ms`, `8.2 s`, `3 m 05 s`, `1 h 02 m`.
pub(crate) fn time(duration: Duration) -> String {
    let (millis, seconds) = (duration.as_millis(), duration.as_secs());
    match seconds {
        0 if millis == 0 && !duration.is_zero() => "<1 ms".to_owned(),
        0 => format!("{millis} ms"),
        1..60 => format!("{seconds}.{} s", (millis % 1000) / 100),
        60..3600 => format!("{} m {:02} s", seconds / 60, seconds % 60),
        _ => format!("{} h {:02} m", seconds / 3600, seconds % 3600 / 60),
    }
}

/// Writes how long is left, in whole seconds, rounded up.
pub(crate) fn countdown(left: Duration) -> String {
    match left.as_millis().div_ceil(1000) {
        seconds @ 0..60 => format!("{seconds} s"),
        seconds => format!("{} m {:02} s", seconds / 60, seconds % 60),
    }
}

/// Writes how long ago something was: `now`, `40s ago`, `3m ago`, `5h ago`, `12d ago`.
pub(crate) fn ago(age: Duration) -> String {
    match age.as_secs() {
        0 => "now".to_owned(),
        seconds @ 1..60 => format!("{seconds}s ago"),
        seconds @ 60..3_600 => format!("{}m ago", seconds / 60),
        seconds @ 3_600..172_800 => format!("{}h ago", seconds / 3_600),
        seconds => format!("{}d ago", seconds / 86_400),
    }
}

/// Writes a number of tokens: `512`, `12.4k`, `1.2M`.
pub(crate) fn tokens(count: u64) -> String {
    let tenths = |unit: u64, letter: char| {
        let tenths = count / (unit / 10);
        format!("{}.{}{letter}", tenths / 10, tenths % 10)
    };
    match count {
        0..1000 => count.to_string(),
        1000..100_000 => tenths(1000, 'k'),
        100_000..1_000_000 => format!("{}k", count / 1000),
        _ => tenths(1_000_000, 'M'),
    }
}

/// Writes money, rounded: cents from a dollar on, hundredths of a cent below.
pub(crate) fn money(money: Money) -> String {
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

/// Writes what was used in full: tokens each way, how many of them were cached, and money.
pub(crate) fn usage(usage: &Usage, look: Look) -> String {
    let cached = match usage.cached_tokens {
        0 => String::new(),
        cached => format!(" ({} cached)", tokens(cached)),
    };
    let input = format!("{} in{cached}", tokens(usage.input_tokens));
    let output = format!("{} out", tokens(usage.output_tokens));
    look.joined([Some(input), Some(output), usage.cost.map(money)])
}

/// Writes what an agent used, shortly: `2 turns · 1.3k tokens · $0.0020 · 5.1 s`.
pub(crate) fn facts(turns: u32, usage: &Usage, duration: Duration, look: Look) -> String {
    let both = usage.input_tokens.saturating_add(usage.output_tokens);
    look.joined([
        (turns > 0).then(|| count(turns.into(), "turn")),
        (both > 0).then(|| format!("{} tokens", tokens(both))),
        usage.cost.map(money),
        Some(time(duration)),
    ])
}

/// Writes `1 turn`, `2 turns`.
pub(crate) fn count(number: u64, thing: &str) -> String {
    if number == 1 { format!("1 {thing}") } else { format!("{number} {thing}s") }
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
        for (seconds, shown) in [
            (0, "now"),
            (59, "59s ago"),
            (60, "1m ago"),
            (7_199, "1h ago"),
            (172_799, "47h ago"),
            (172_800, "2d ago"),
        ] {
            assert_eq!(ago(Duration::from_secs(seconds)), shown);
        }
        assert_eq!(countdown(Duration::from_millis(2001)), "3 s");
        assert_eq!(countdown(Duration::ZERO), "0 s");
        assert_eq!(countdown(Duration::from_secs(61)), "1 m 01 s");
    }

    #[test]
    fn tokens_have_three_digits_or_so() {
        for (number, shown) in [
            (0, "0"),
            (999, "999"),
            (1000, "1.0k"),
            (12_449, "12.4k"),
            (99_999, "99.9k"),
            (100_000, "100k"),
            (1_250_000, "1.2M"),
        ] {
            assert_eq!(tokens(number), shown);
        }
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
        let look = Look { unicode: true };
        let mut used = Usage { input_tokens: 1500, output_tokens: 20, ..Usage::default() };
        assert_eq!(usage(&used, look), "1.5k in · 20 out");
        used.cached_tokens = 1000;
        used.cost = Some("0.5".parse().unwrap());
        assert_eq!(usage(&used, look), "1.5k in (1.0k cached) · 20 out · $0.5000");
    }
}
