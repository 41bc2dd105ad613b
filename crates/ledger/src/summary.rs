//! The whole ledger in a few numbers.

use std::collections::BTreeMap;

use jiff::civil::Date;

use crate::Entry;
use crate::file::day_of;

/// Tokens by day, and what follows from them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// The days on which tokens were used.
    pub days: BTreeMap<Date, u64>,
    pub longest_turn_ms: u64,
}

impl Summary {
    pub fn of(entries: impl IntoIterator<Item = Entry>) -> Self {
        let mut summary = Self::default();
        for entry in entries {
            match &entry {
                Entry::Call(call) => {
                    let tokens = call.tokens.total();
                    if tokens > 0 {
                        let day = summary.days.entry(day_of(call.at_ms)).or_default();
                        *day = day.saturating_add(tokens);
                    }
                }
                Entry::Turn(turn) => summary.longest_turn_ms = summary.longest_turn_ms.max(turn.elapsed_ms),
                Entry::Approval(_) => {}
            }
        }
        summary
    }

    pub fn tokens(&self) -> u64 {
        self.days.values().fold(0, |sum, tokens| sum.saturating_add(*tokens))
    }

    /// The most tokens of a day.
    pub fn peak(&self) -> u64 {
        self.days.values().copied().max().unwrap_or_default()
    }

    /// The most days in a row on which tokens were used.
    pub fn longest_streak(&self) -> u64 {
        self.streaks().map(|(_, days)| days).max().unwrap_or_default()
    }

    /// The days in a row up to today, or up to yesterday as long as nothing was used today.
    pub fn current_streak(&self, today: Date) -> u64 {
        let is_current = |last: Date| last == today || last.tomorrow().is_ok_and(|next| next == today);
        self.streaks().filter(|(last, _)| is_current(*last)).map(|(_, days)| days).last().unwrap_or_default()
    }

    /// The last day and the length of each row of days, oldest first.
    fn streaks(&self) -> impl Iterator<Item = (Date, u64)> {
        let mut streaks: Vec<(Date, u64)> = Vec::new();
        for day in self.days.keys() {
            match streaks.last_mut() {
                Some((last, days)) if last.tomorrow().is_ok_and(|next| next == *day) => {
                    (*last, *days) = (*day, *days + 1)
                }
                _ => streaks.push((*day, 1)),
            }
        }
        streaks.into_iter()
    }
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;
    use jiff::tz::TimeZone;

    use super::*;
    use crate::{ModelCall, Tokens, TurnWork};

    #[test]
    fn days_without_calls_end_a_streak() {
        let call = |day: Date, input| {
            let at_ms = day.at(1, 0, 0, 0).to_zoned(TimeZone::UTC).unwrap().timestamp().as_millisecond();
            Entry::Call(ModelCall { at_ms, tokens: Tokens { input, ..Tokens::default() }, ..ModelCall::default() })
        };
        let days = [(1, 5), (2, 1), (2, 1), (3, 4), (4, 0), (6, 7), (7, 2)];
        let turn = Entry::Turn(TurnWork { duration_ms: 3, elapsed_ms: 9, ..TurnWork::default() });
        let summary = Summary::of(days.map(|(day, input)| call(date(2026, 11, day), input)).into_iter().chain([turn]));
        assert_eq!((summary.tokens(), summary.peak(), summary.longest_turn_ms), (20, 7, 9));
        assert_eq!(summary.longest_streak(), 3);
        let current = |day| summary.current_streak(date(2026, 11, day));
        assert_eq!([current(7), current(8), current(9), current(3)], [2, 2, 0, 3]);
        assert_eq!(Summary::default().current_streak(date(2026, 11, 7)), 0);
    }
}
