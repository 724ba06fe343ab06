//! Times, tokens and money, as short as a glance wants them.

use std::time::Duration;

pub(crate) use convoke::journal::export::amounts::{count, money, time, tokens};
use convoke_core::Usage;

use crate::view::look::Look;

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

/// Writes what was used in full: tokens each way, how many of them were cached, and money.
pub(crate) fn usage(usage: &Usage, look: Look) -> String {
    let cached = match usage.cached_tokens {
        0 => String::new(),
        cached => format!(" ({} cached)", tokens(cached)),
    };
    let about = about(usage);
    let input = format!("{about}{} in{cached}", tokens(usage.input_tokens));
    let output = format!("{about}{} out", tokens(usage.output_tokens));
    look.joined([Some(input), Some(output), cost(usage)])
}

/// Writes how many tokens were used, both ways.
pub(crate) fn all_tokens(usage: &Usage) -> String {
    let both = usage.input_tokens.saturating_add(usage.output_tokens);
    format!("{}{}", about(usage), tokens(both))
}

/// Writes what it cost, where that is known.
pub(crate) fn cost(usage: &Usage) -> Option<String> {
    usage.cost.map(|cost| format!("{}{}", about(usage), money(cost)))
}

/// Numbers that a provider did not say are marked.
const fn about(usage: &Usage) -> &'static str {
    if usage.estimated { "~" } else { "" }
}

/// Writes what an agent used, shortly: `2 turns · 1.3k tokens · $0.0020 · 5.1 s`.
pub(crate) fn facts(turns: u32, usage: &Usage, duration: Duration, look: Look) -> String {
    let both = usage.input_tokens.saturating_add(usage.output_tokens);
    look.joined([
        (turns > 0).then(|| count(turns.into(), "turn")),
        (both > 0).then(|| format!("{} tokens", all_tokens(usage))),
        cost(usage),
        Some(time(duration)),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_read_at_a_glance() {
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
    fn an_unknown_price_is_not_shown_as_nothing() {
        let look = Look { unicode: true };
        let mut used = Usage { input_tokens: 1500, output_tokens: 20, ..Usage::default() };
        assert_eq!(usage(&used, look), "1.5k in · 20 out");
        used.cached_tokens = 1000;
        used.cost = Some("0.5".parse().unwrap());
        assert_eq!(usage(&used, look), "1.5k in (1.0k cached) · 20 out · $0.5000");
    }

    #[test]
    fn what_nobody_said_is_marked_as_an_estimate() {
        let look = Look { unicode: true };
        let used = Usage {
            input_tokens: 2_900,
            output_tokens: 20,
            cost: Some("0.0301".parse().unwrap()),
            estimated: true,
            ..Usage::default()
        };
        assert_eq!(usage(&used, look), "~2.9k in · ~20 out · ~$0.0301");
        let took = Duration::from_millis(5);
        assert_eq!(facts(1, &used, took, look), "1 turn · ~2.9k tokens · ~$0.0301 · 5 ms");
    }
}
