//! Delays of retries: exponential, from a header, or from the text of a message.

use std::time::{Duration, SystemTime};

use hyper::HeaderMap;
use hyper::header::RETRY_AFTER;

const FIRST_DELAY: Duration = Duration::from_millis(200);
/// A longer silent wait would look like a hang.
pub(crate) const MAX_DELAY: Duration = Duration::from_secs(30);
/// Clients that failed together must not retry together.
const JITTER: f64 = 0.1;

/// The longest `retry-after` that is waited for. Beyond it the call fails, so that the user learns of it.
pub(crate) const MAX_RETRY_AFTER: Duration = Duration::from_secs(120);

/// The delay before the `retry`th retry, counted from 1.
pub fn retry_delay(retry: u64) -> Duration {
    let doublings = u32::try_from(retry.saturating_sub(1)).unwrap_or(u32::MAX);
    let delay = FIRST_DELAY.saturating_mul(2u32.saturating_pow(doublings)).min(MAX_DELAY);
    delay.mul_f64(1.0 - JITTER + 2.0 * JITTER * fastrand::f64())
}

/// Reads `Retry-After`, in seconds or as a date, or the more precise `retry-after-ms`.
pub(crate) fn retry_after_header(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let millis = headers.get("retry-after-ms").and_then(|value| value.to_str().ok()?.trim().parse::<f64>().ok());
    if let Some(delay) = millis.and_then(|millis| Duration::try_from_secs_f64(millis / 1000.0).ok()) {
        return Some(delay);
    }
    let value = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = value.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let date = jiff::fmt::rfc2822::parse(value).ok()?;
    Some(SystemTime::from(date.timestamp()).duration_since(now).unwrap_or_default())
}

/// Reads a delay from a message such as "try again in 1.5s".
pub(crate) fn retry_after_in_message(message: &str) -> Option<Duration> {
    const WORDS: &str = "try again in ";
    let message = message.to_ascii_lowercase();
    let mut rest = &message[message.find(WORDS)? + WORDS.len()..];
    let mut total = None;
    while let Some((part, after)) = amount(rest) {
        total = Some(total.unwrap_or(Duration::ZERO).saturating_add(part));
        rest = after;
    }
    total
}

/// Parses a number with its unit; returns the rest, too.
fn amount(text: &str) -> Option<(Duration, &str)> {
    let text = text.trim_start();
    let (number, rest) = text.split_at(text.find(|c: char| !c.is_ascii_digit() && c != '.')?);
    let number: f64 = number.parse().ok()?;
    let rest = rest.trim_start();
    let (unit, rest) = rest.split_at(rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len()));
    let seconds = match unit {
        "ms" | "millisecond" | "milliseconds" => 0.001,
        "s" | "sec" | "second" | "seconds" => 1.0,
        "m" | "min" | "minute" | "minutes" => 60.0,
        "h" | "hour" | "hours" => 3600.0,
        _ => return None,
    };
    Some((Duration::try_from_secs_f64(number * seconds).ok()?, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_from_200_ms_to_30_s_with_jitter() {
        for (retry, millis) in [(1, 200), (2, 400), (5, 3200), (8, 25_600), (9, 30_000), (u64::MAX, 30_000)] {
            let delay = retry_delay(retry).as_millis();
            assert!((millis * 9 / 10..=millis * 11 / 10).contains(&delay), "{retry}: {delay}");
        }
    }

    #[test]
    fn retry_after_is_read_as_seconds_or_date() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777);
        for (value, expected) in [
            ("7", Some(7.0)),
            (" 1.5 ", Some(1.5)),
            ("Sun, 06 Nov 1994 08:49:47 GMT", Some(10.0)),
            ("Sun, 06 Nov 1994 08:49:07 GMT", Some(0.0)),
            ("-1", None),
            ("nan", None),
            ("soon", None),
        ] {
            let headers = HeaderMap::from_iter([(RETRY_AFTER, value.parse().unwrap())]);
            assert_eq!(retry_after_header(&headers, now), expected.map(Duration::from_secs_f64), "{value}");
        }
        assert_eq!(retry_after_header(&HeaderMap::new(), now), None);
        let mut both = HeaderMap::from_iter([(RETRY_AFTER, "2".parse().unwrap())]);
        both.insert("retry-after-ms", "1250".parse().unwrap());
        assert_eq!(retry_after_header(&both, now), Some(Duration::from_millis(1250)));
    }

    #[test]
    fn delays_in_messages_are_read() {
        for (message, expected) in [
            ("Rate limit reached. Please try again in 11.054s. Visit", Some(11.054)),
            ("Please try again in 28ms.", Some(0.028)),
            ("please TRY AGAIN IN 35 Seconds", Some(35.0)),
            ("try again in 1 second", Some(1.0)),
            ("try again in 6m0s.", Some(360.0)),
            ("try again in 1h 2m", Some(3720.0)),
            ("try again in a while", None),
            ("try again in 5 parsecs", None),
            ("try again in 5", None),
            ("try again later", None),
        ] {
            assert_eq!(retry_after_in_message(message), expected.map(Duration::from_secs_f64), "{message}");
        }
    }
}
