//! The usage of the account's rate limits, from response headers and websocket events.

use hyper::HeaderMap;
use hyper::header::HeaderName;
use loomd_protocol::{CreditsSnapshot, PlanType, RateLimitSnapshot, RateLimitWindow};
use serde::Deserialize;

/// The limit that every call counts against.
const MAIN: &str = "codex";

/// Returns the main limit, even if no header mentions it, then the other limits in the headers, sorted.
pub(crate) fn from_headers(headers: &HeaderMap) -> Vec<RateLimitSnapshot> {
    let mut others: Vec<_> = headers.keys().filter_map(family).filter(|family| *family != MAIN).collect();
    others.sort_unstable();
    let others = others.into_iter().map(|family| snapshot(headers, family)).filter(|limit| limit.primary.is_some());
    std::iter::once(snapshot(headers, MAIN)).chain(others).collect()
}

/// Returns the limit that a refused call reached.
pub(crate) fn active(headers: &HeaderMap) -> RateLimitSnapshot {
    let name = text(headers, "x-codex-active-limit").map(|name| name.to_ascii_lowercase().replace('_', "-"));
    snapshot(headers, name.as_deref().unwrap_or(MAIN))
}

/// The websocket event `codex.rate_limits`.
#[derive(Deserialize)]
pub(crate) struct RateLimitsEvent {
    plan_type: Option<PlanType>,
    rate_limits: Option<Windows>,
    credits: Option<Credits>,
}

#[derive(Deserialize)]
struct Windows {
    primary: Option<Window>,
    secondary: Option<Window>,
}

#[derive(Deserialize)]
struct Window {
    used_percent: f64,
    window_minutes: Option<i64>,
    reset_at: Option<i64>,
}

#[derive(Deserialize)]
struct Credits {
    has_credits: bool,
    unlimited: bool,
    balance: Option<String>,
}

impl From<RateLimitsEvent> for RateLimitSnapshot {
    fn from(event: RateLimitsEvent) -> Self {
        let (primary, secondary) = event.rate_limits.map_or((None, None), |limits| (limits.primary, limits.secondary));
        let window = |window: Window| self::window(window.used_percent, window.window_minutes, window.reset_at);
        Self {
            limit_id: Some(MAIN.into()),
            limit_name: None,
            primary: primary.and_then(window),
            secondary: secondary.and_then(window),
            credits: event.credits.map(|Credits { has_credits, unlimited, balance }| CreditsSnapshot {
                has_credits,
                unlimited,
                balance,
            }),
            plan_type: event.plan_type,
        }
    }
}

/// Returns `<family>` of `x-<family>-primary-used-percent`.
fn family(header: &HeaderName) -> Option<&str> {
    header.as_str().strip_prefix("x-")?.strip_suffix("-primary-used-percent")
}

fn snapshot(headers: &HeaderMap, family: &str) -> RateLimitSnapshot {
    let window = |which: &str| {
        let part = |part: &str| text(headers, &format!("x-{family}-{which}-{part}"));
        window(
            part("used-percent")?.parse().ok()?,
            part("window-minutes").and_then(|minutes| minutes.parse().ok()),
            part("reset-at").and_then(|time| time.parse().ok()),
        )
    };
    RateLimitSnapshot {
        limit_id: Some(family.replace('-', "_")),
        limit_name: text(headers, &format!("x-{family}-limit-name")).map(Into::into),
        primary: window("primary"),
        secondary: window("secondary"),
        credits: credits(headers),
        plan_type: None,
    }
}

/// Returns `None` for a window without information.
fn window(used_percent: f64, minutes: Option<i64>, resets_at: Option<i64>) -> Option<RateLimitWindow> {
    let says = used_percent != 0.0 || minutes.is_some_and(|minutes| minutes != 0) || resets_at.is_some();
    (used_percent.is_finite() && says).then(|| RateLimitWindow {
        used_percent: used_percent.round() as i32,
        window_duration_mins: minutes,
        resets_at,
    })
}

fn credits(headers: &HeaderMap) -> Option<CreditsSnapshot> {
    Some(CreditsSnapshot {
        has_credits: flag(headers, "x-codex-credits-has-credits")?,
        unlimited: flag(headers, "x-codex-credits-unlimited")?,
        balance: text(headers, "x-codex-credits-balance").map(Into::into),
    })
}

fn flag(headers: &HeaderMap, name: &str) -> Option<bool> {
    match &*text(headers, name)?.to_ascii_lowercase() {
        "true" | "1" => Some(true),
        "false" | "0" => Some(false),
        _ => None,
    }
}

/// A header's value, trimmed; `None` if blank.
fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok().map(str::trim).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (HeaderName::from_static(name), value.parse().unwrap())).collect()
    }

    fn limit(id: &str) -> RateLimitSnapshot {
        RateLimitSnapshot {
            limit_id: Some(id.into()),
            limit_name: None,
            primary: None,
            secondary: None,
            credits: None,
            plan_type: None,
        }
    }

    fn window(used_percent: i32, minutes: Option<i64>, resets_at: Option<i64>) -> Option<RateLimitWindow> {
        Some(RateLimitWindow { used_percent, window_duration_mins: minutes, resets_at })
    }

    #[test]
    fn the_main_limit_is_reported_without_headers() {
        assert_eq!(from_headers(&HeaderMap::new()), [limit("codex")]);
    }

    #[test]
    fn windows_and_credits_are_read_from_headers() {
        let found = from_headers(&headers(&[
            ("x-codex-primary-used-percent", "12.5"),
            ("x-codex-primary-window-minutes", "300"),
            ("x-codex-primary-reset-at", "1900000000"),
            ("x-codex-secondary-used-percent", "80"),
            ("x-codex-secondary-window-minutes", "10080"),
            ("x-codex-credits-has-credits", "True"),
            ("x-codex-credits-unlimited", "0"),
            ("x-codex-credits-balance", " 5.5 "),
        ]));
        let credits = CreditsSnapshot { has_credits: true, unlimited: false, balance: Some("5.5".into()) };
        let expected = RateLimitSnapshot {
            primary: window(13, Some(300), Some(1_900_000_000)),
            secondary: window(80, Some(10_080), None),
            credits: Some(credits),
            ..limit("codex")
        };
        assert_eq!(found, [expected]);
    }

    #[test]
    fn windows_without_information_are_omitted() {
        for (percent, minutes, there) in
            [("0", "0", false), ("0", "5", true), ("nan", "5", false), ("x", "5", false), ("1e99", "0", true)]
        {
            let mut headers = HeaderMap::new();
            headers.insert("x-codex-primary-used-percent", percent.parse().unwrap());
            headers.insert("x-codex-primary-window-minutes", minutes.parse().unwrap());
            assert_eq!(from_headers(&headers)[0].primary.is_some(), there, "{percent} {minutes}");
        }
    }

    #[test]
    fn other_limits_follow_the_main_one_sorted() {
        let found = from_headers(&headers(&[
            ("x-zoo-primary-used-percent", "1"),
            ("x-codex-big-primary-used-percent", "70"),
            ("x-codex-big-primary-window-minutes", "60"),
            ("x-codex-big-limit-name", "Big Model"),
            ("x-none-primary-used-percent", "0"),
        ]));
        let big = RateLimitSnapshot {
            limit_name: Some("Big Model".into()),
            primary: window(70, Some(60), None),
            ..limit("codex_big")
        };
        let zoo = RateLimitSnapshot { primary: window(1, None, None), ..limit("zoo") };
        assert_eq!(found, [limit("codex"), big, zoo]);
    }

    #[test]
    fn a_refusal_reports_the_active_limit() {
        let found = active(&headers(&[
            ("x-codex-active-limit", "Codex_Big"),
            ("x-codex-big-primary-used-percent", "100"),
            ("x-codex-primary-used-percent", "5"),
        ]));
        assert_eq!(found, RateLimitSnapshot { primary: window(100, None, None), ..limit("codex_big") });
    }

    #[test]
    fn websocket_rate_limit_events_are_decoded() {
        let event: RateLimitsEvent = serde_json::from_str(
            r#"{"type":"codex.rate_limits","plan_type":"plus","rate_limits":{"allowed":true,"limit_reached":false,
            "primary":{"used_percent":42,"window_minutes":60,"reset_at":1700000000},"secondary":null},
            "credits":{"has_credits":true,"unlimited":false,"balance":"3"}}"#,
        )
        .unwrap();
        let expected = RateLimitSnapshot {
            primary: window(42, Some(60), Some(1_700_000_000)),
            credits: Some(CreditsSnapshot { has_credits: true, unlimited: false, balance: Some("3".into()) }),
            plan_type: Some(PlanType::Plus),
            ..limit("codex")
        };
        assert_eq!(RateLimitSnapshot::from(event), expected);
    }
}
