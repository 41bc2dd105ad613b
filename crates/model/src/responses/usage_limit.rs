//! The messages about a reached usage limit, which depend on the plan and on the time of the reset.

use jiff::{Timestamp, Zoned};
use loomd_protocol::PlanType;

const USAGE_PAGE: &str = "https://chatgpt.com/codex/settings/usage";

/// What is known about the reached limit.
#[derive(Debug, Default)]
pub(super) struct UsageLimit<'a> {
    pub plan: Option<PlanType>,
    pub resets_at: Option<i64>,
    /// The name of a limit other than the main one.
    pub limit_name: Option<&'a str>,
    pub promo: Option<&'a str>,
}

impl UsageLimit<'_> {
    /// Returns the message for the user. `now` also gives the time zone.
    pub fn message(&self, now: &Zoned) -> String {
        let start = "You've hit your usage limit";
        let when = self.resets_at.and_then(|seconds| local_time(seconds, now));
        let or_later = match &when {
            Some(time) => format!(" or try again at {time}."),
            None => " or try again later.".into(),
        };
        if let Some(name) = self.limit_name.filter(|name| !name.eq_ignore_ascii_case("codex")) {
            return format!("{start} for {name}. Switch to another model now,{or_later}");
        }
        if let Some(promo) = self.promo {
            return format!("{start}. {promo},{or_later}");
        }
        match &self.plan {
            Some(PlanType::Plus) => format!(
                "{start}. Upgrade to Pro (https://chatgpt.com/explore/pro), visit {USAGE_PAGE} to purchase more credits{or_later}"
            ),
            Some(
                PlanType::Team
                | PlanType::Business
                | PlanType::SelfServeBusinessUsageBased
                | PlanType::EnterpriseCbpUsageBased,
            ) => format!("{start}. To get more access now, send a request to your admin{or_later}"),
            Some(PlanType::Free | PlanType::Go) => format!(
                "{start}. Upgrade to Plus to continue using Codex (https://chatgpt.com/explore/plus),{or_later}"
            ),
            Some(PlanType::Pro) => format!("{start}. Visit {USAGE_PAGE} to purchase more credits{or_later}"),
            _ => match when {
                Some(time) => format!("{start}. Try again at {time}."),
                None => format!("{start}. Try again later."),
            },
        }
    }
}

/// Formats the time of day, with the date if it is not today.
fn local_time(seconds: i64, now: &Zoned) -> Option<String> {
    let time = Timestamp::from_second(seconds).ok()?.to_zoned(now.time_zone().clone());
    let clock = time.strftime("%-I:%M %p");
    if time.date() == now.date() {
        return Some(clock.to_string());
    }
    let day = time.day();
    let ordinal = match (day % 10, day) {
        (_, 11..=13) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    };
    Some(format!("{} {day}{ordinal}, {} {clock}", time.strftime("%b"), time.year()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(limit: UsageLimit, expected: &str) {
        let now: Zoned = "2026-01-01T12:00:00+01:00[+01:00]".parse().unwrap();
        assert_eq!(limit.message(&now), format!("You've hit your usage limit{expected}"), "{limit:?}");
    }

    fn plan(plan: &str) -> UsageLimit<'_> {
        UsageLimit { plan: Some(plan.to_owned().into()), ..UsageLimit::default() }
    }

    #[test]
    fn the_message_advises_by_plan() {
        let credits = "https://chatgpt.com/codex/settings/usage to purchase more credits or try again later.";
        check(plan("plus"), &format!(". Upgrade to Pro (https://chatgpt.com/explore/pro), visit {credits}"));
        check(plan("pro"), &format!(". Visit {credits}"));
        for name in ["team", "business", "self_serve_business_usage_based", "enterprise_cbp_usage_based"] {
            check(plan(name), ". To get more access now, send a request to your admin or try again later.");
        }
        for name in ["free", "go"] {
            let advice = ". Upgrade to Plus to continue using Codex (https://chatgpt.com/explore/plus),";
            check(plan(name), &format!("{advice} or try again later."));
        }
        for name in ["enterprise", "edu", "unknown", "new"] {
            check(plan(name), ". Try again later.");
        }
        check(UsageLimit::default(), ". Try again later.");
    }

    #[test]
    fn a_limit_name_takes_precedence_over_a_promo_and_that_over_the_plan() {
        let promo = UsageLimit { promo: Some("Get two for one"), ..plan("plus") };
        check(promo, ". Get two for one, or try again later.");
        let named = UsageLimit { limit_name: Some("Big"), promo: Some("Get two for one"), ..plan("plus") };
        check(named, " for Big. Switch to another model now, or try again later.");
        let main = UsageLimit { limit_name: Some("codex"), ..plan("edu") };
        check(main, ". Try again later.");
    }

    #[test]
    fn the_reset_time_is_local_with_a_date_on_other_days() {
        let at = |seconds| UsageLimit { resets_at: Some(seconds), ..UsageLimit::default() };
        check(at(1_767_276_420), ". Try again at 3:07 PM.");
        check(at(1_893_452_400), ". Try again at Jan 1st, 2030 12:00 AM.");
        check(at(1_767_304_800 + 86_400), ". Try again at Jan 2nd, 2026 11:00 PM.");
        check(at(1_768_168_800), ". Try again at Jan 11th, 2026 11:00 PM.");
        check(at(i64::MAX), ". Try again later.");
        check(
            UsageLimit { resets_at: Some(1_767_276_420), ..plan("pro") },
            ". Visit https://chatgpt.com/codex/settings/usage to purchase more credits or try again at 3:07 PM.",
        );
    }
}
