//! Failures by the names that prompts use.

use serde_json::json;

use crate::{ModelError, event_json};

/// Names in prompts (letters and digits only, lower case) and kinds in scenarios.
const NAMES: &[(&str, &str)] = &[
    ("badrequest", "bad_request"),
    ("invalidimage", "invalid_image"),
    ("ratelimit", "too_many_requests"),
    ("ratelimited", "too_many_requests"),
    ("toomanyrequests", "too_many_requests"),
    ("responsetoomanyfailedattempts", "too_many_requests"),
    ("usagelimit", "usage_limit"),
    ("usagelimitexceeded", "usage_limit"),
    ("usagenotincluded", "usage_not_included"),
    ("quota", "quota_exceeded"),
    ("quotaexceeded", "quota_exceeded"),
    ("highdemand", "high_demand"),
    ("servererror", "high_demand"),
    ("internalservererror", "high_demand"),
    ("overloaded", "overloaded"),
    ("serveroverloaded", "overloaded"),
    ("contextwindow", "context_window_exceeded"),
    ("contextwindowexceeded", "context_window_exceeded"),
    ("invalidprompt", "invalid_prompt"),
    ("connect", "connect"),
    ("connection", "connect"),
    ("noconnection", "connect"),
    ("httpconnectionfailed", "connect"),
    ("responsestreamconnectionfailed", "connect"),
    ("unreachable", "unreachable"),
    ("refused", "unreachable"),
    ("connectionrefused", "unreachable"),
    ("notastream", "not_a_stream"),
    ("incomplete", "incomplete"),
    ("disconnect", "disconnected"),
    ("disconnected", "disconnected"),
    ("responsestreamdisconnected", "disconnected"),
    ("missingkey", "missing_key"),
    ("unauthorized", "unauthorized"),
    ("credentials", "credentials"),
    ("unsupported", "unsupported"),
    ("other", "unsupported"),
];

/// Returns the failure of this name; a number is an HTTP status.
pub(super) fn by_name(words: &str) -> Option<ModelError> {
    let name: String =
        words.chars().filter(char::is_ascii_alphanumeric).map(|char| char.to_ascii_lowercase()).collect();
    let name = ["an", "a", "the"].iter().fold(name.as_str(), |name, article| {
        // An article counts only as a word of its own.
        if words.to_ascii_lowercase().starts_with(&format!("{article} ")) { &name[article.len()..] } else { name }
    });
    let name = name.strip_suffix("error").filter(|rest| NAMES.iter().any(|(known, _)| known == rest)).unwrap_or(name);
    let digits = name.trim_start_matches(|char: char| !char.is_ascii_digit());
    if let Ok(status) = digits.parse::<u16>()
        && (100..600).contains(&status)
    {
        return Some(match status {
            400 => event_json::read_error(&json!({ "kind": "bad_request" }))?,
            429 => event_json::read_error(&json!({ "kind": "too_many_requests" }))?,
            500 => event_json::read_error(&json!({ "kind": "high_demand" }))?,
            status => event_json::read_error(&json!({ "kind": "status", "status": status }))?,
        });
    }
    let (_, kind) = NAMES.iter().find(|(known, _)| *known == name)?;
    event_json::read_error(&json!({ "kind": kind }))
}

/// Splits off a trailing count: "once", "twice", "3 times".
pub(super) fn times(words: &str) -> (&str, Option<u32>) {
    let words = words.trim();
    for (end, times) in [("once", 1), ("twice", 2)] {
        if let Some(rest) = words.strip_suffix(end) {
            return (rest.trim_end(), Some(times));
        }
    }
    let Some(rest) = words.strip_suffix("times").map(str::trim_end) else { return (words, None) };
    let digits = rest.len() - rest.trim_end_matches(|char: char| char.is_ascii_digit()).len();
    let (rest, number) = rest.split_at(rest.len() - digits);
    match number.parse() {
        Ok(number) => (rest.trim_end(), Some(number)),
        Err(_) => (words, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_found_by_name_or_status() {
        for (words, expected) in [
            ("rate limit", Some(429)),
            ("a rate limit error", Some(429)),
            ("429", Some(429)),
            ("status 502", Some(502)),
            ("HTTP 401", Some(401)),
            ("server error", Some(500)),
            ("bad request", Some(400)),
            ("contextWindowExceeded", None),
            ("an overloaded error", None),
        ] {
            let error = by_name(words).unwrap_or_else(|| panic!("no failure is called {words}"));
            assert_eq!(error.http_status(), expected, "{words}");
        }
        assert_eq!(by_name("joy"), None);
    }

    #[test]
    fn every_listed_name_resolves_to_a_failure() {
        for (name, _) in NAMES {
            assert!(by_name(name).is_some(), "{name}");
        }
    }

    #[test]
    fn a_trailing_count_is_split_off() {
        for (words, expected) in [
            ("overloaded", ("overloaded", None)),
            ("disconnect twice", ("disconnect", Some(2))),
            ("status 502 3 times", ("status 502", Some(3))),
            ("many times", ("many times", None)),
        ] {
            assert_eq!(times(words), expected);
        }
    }
}
