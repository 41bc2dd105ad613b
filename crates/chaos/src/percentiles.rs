//! Percentiles of durations, for reports.

use std::time::Duration;

pub struct Percentiles(Vec<Duration>);

impl Percentiles {
    pub fn of(mut times: Vec<Duration>) -> Self {
        times.sort_unstable();
        Self(times)
    }

    /// The time that this share of all is not above. Zero without any.
    pub fn at(&self, share: f64) -> Duration {
        let last = self.0.len().saturating_sub(1);
        self.0.get((last as f64 * share).ceil() as usize).copied().unwrap_or_default()
    }

    /// `p50 / p99 / max` in seconds.
    pub fn text(&self) -> String {
        let [middle, high, max] = [0.5, 0.99, 1.0].map(|share| self.at(share).as_secs_f64());
        format!("{middle:.2} s / {high:.2} s / {max:.2} s")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_of_the_sorted_times() {
        let times = Percentiles::of((1..=100).rev().map(Duration::from_secs).collect());
        assert_eq!([0.0, 0.5, 0.99, 1.0].map(|share| times.at(share).as_secs()), [1, 51, 100, 100]);
        assert_eq!(Percentiles::of(Vec::new()).at(0.5), Duration::ZERO);
    }
}
