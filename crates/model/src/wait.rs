//! How long a provider wants to be left alone: from the headers of its answer, or from its words.
//!
//! A date is measured against the provider's own `date`, not against a clock of ours: that is what the
//! provider meant, and nothing here has to know the time.

use std::time::Duration;

use reqwest::header::{DATE, HeaderMap, RETRY_AFTER};
use serde_json::Value;

/// What is longer than this is as good as never, and can still be added to a time.
const LONGEST: Duration = Duration::from_hours(366 * 24);

/// Returns what an answer asks for, if it asks.
pub(crate) fn wanted_wait(headers: &HeaderMap, body: &[u8]) -> Option<Duration> {
    from_headers(headers).or_else(|| from_body(body)).map(|wait| wait.min(LONGEST))
}

fn from_headers(headers: &HeaderMap) -> Option<Duration> {
    let text = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
    if let Some(millis) = text("retry-after-ms").and_then(|text| text.parse::<f64>().ok()) {
        return Duration::try_from_secs_f64(millis / 1000.0).ok();
    }
    let wait = text(RETRY_AFTER.as_str())?;
    if let Ok(seconds) = wait.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let (until, now) = (http_date(wait)?, http_date(text(DATE.as_str())?)?);
    Some(Duration::from_secs(until.saturating_sub(now)))
}

/// Reads `error.details[].retryDelay`, as in `"17.5s"`.
fn from_body(body: &[u8]) -> Option<Duration> {
    let body: Value = serde_json::from_slice(body).ok()?;
    // Some servers put the error into a list.
    let body = body.as_array().and_then(|list| list.first()).unwrap_or(&body);
    let details = body.pointer("/error/details")?.as_array()?;
    let delay = details.iter().find_map(|detail| detail.get("retryDelay")?.as_str())?;
    Duration::try_from_secs_f64(delay.strip_suffix('s')?.parse().ok()?).ok()
}

/// Reads `Sun, 06 Nov 1994 08:49:37 GMT` as seconds since 1970.
fn http_date(text: &str) -> Option<u64> {
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let mut words = text.split_once(", ")?.1.split(' ');
    let day: u64 = words.next()?.parse().ok()?;
    let name = words.next()?;
    let month = u64::try_from(MONTHS.iter().position(|month| *month == name)?).ok()? + 1;
    let year: u64 = words.next()?.parse().ok()?;
    let mut clock = words.next()?.split(':').map(|number| number.parse::<u64>().ok());
    let (hour, minute, second) = (clock.next()??, clock.next()??, clock.next()??);
    if words.next() != Some("GMT") || !(1970..=9999).contains(&year) || !(1..=31).contains(&day) {
        return None;
    }
    Some(days_since_1970(year, month, day) * 86_400 + hour * 3_600 + minute * 60 + second)
}

/// Counts days with years that begin in March, so that the leap day is the last of its year.
fn days_since_1970(year: u64, month: u64, day: u64) -> u64 {
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let before_year = year * 365 + year / 4 - year / 100 + year / 400;
    let before_month = (month * 153 + 2) / 5;
    before_year + before_month + day - 1 - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
    }

    fn wait(pairs: &[(&'static str, &str)]) -> Option<f64> {
        wanted_wait(&headers(pairs), b"").map(|wait| wait.as_secs_f64())
    }

    #[test]
    fn seconds_milliseconds_and_dates() {
        assert_eq!(wait(&[("retry-after", "17")]), Some(17.0));
        assert_eq!(wait(&[("retry-after", "9"), ("retry-after-ms", "250")]), Some(0.25));
        let date = ("date", "Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(wait(&[("retry-after", "Sun, 06 Nov 1994 08:50:00 GMT"), date]), Some(23.0));
        assert_eq!(wait(&[("retry-after", "Sun, 06 Nov 1994 08:00:00 GMT"), date]), Some(0.0));
        assert_eq!(wait(&[("retry-after", "1e18")]), Some(LONGEST.as_secs_f64()));
    }

    #[test]
    fn what_cannot_be_read_asks_for_nothing() {
        assert_eq!(wait(&[]), None);
        for text in ["soon", "-5", "inf", "Sun, 06 Nov 1994", "Sun, 06 Foo 1994 08:49:37 GMT"] {
            assert_eq!(wait(&[("retry-after", text)]), None, "{text}");
        }
        assert_eq!(wait(&[("retry-after", "Sun, 06 Nov 1994 08:50:00 GMT")]), None, "no date");
    }

    #[test]
    fn dates_are_counted_right() {
        for (text, seconds) in [
            ("Thu, 01 Jan 1970 00:00:00 GMT", 0),
            ("Sun, 06 Nov 1994 08:49:37 GMT", 784_111_777),
            ("Thu, 29 Feb 2024 12:00:00 GMT", 1_709_208_000),
            ("Fri, 01 Mar 2024 00:00:00 GMT", 1_709_251_200),
        ] {
            assert_eq!(http_date(text), Some(seconds), "{text}");
        }
    }

    #[test]
    fn a_delay_in_the_body_counts_where_no_header_says_one() {
        let body = br#"{"error":{"details":[{"reason":"x"},{"retryDelay":"17.5s"}]}}"#;
        assert_eq!(wanted_wait(&HeaderMap::new(), body), Some(Duration::from_millis(17_500)));
        let listed = br#"[{"error":{"details":[{"retryDelay":"3s"}]}}]"#;
        assert_eq!(wanted_wait(&HeaderMap::new(), listed), Some(Duration::from_secs(3)));
        let both = wanted_wait(&headers(&[("retry-after", "2")]), body);
        assert_eq!(both, Some(Duration::from_secs(2)));
        assert_eq!(wanted_wait(&HeaderMap::new(), b"<html>"), None);
    }
}
