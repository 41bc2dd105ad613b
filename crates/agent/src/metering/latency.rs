//! How long operations of the store take, counted in buckets.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use loomd_store::Durability;

/// The upper bounds of the buckets but the last, in seconds.
pub const LATENCY_BOUNDS: &[f64] = &[0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0];

const BUCKETS: usize = LATENCY_BOUNDS.len() + 1;

/// How long one kind of operation takes.
#[derive(Default)]
pub struct Latency {
    counts: [AtomicU64; BUCKETS],
    nanos: AtomicU64,
}

/// The latencies of one kind of operation at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct LatencySnapshot {
    pub operation: &'static str,
    /// By bucket.
    pub counts: Vec<u64>,
    pub sum: Duration,
}

impl Latency {
    fn add(&self, time: Duration) {
        let seconds = time.as_secs_f64();
        let bucket = LATENCY_BOUNDS.iter().position(|bound| seconds <= *bound).unwrap_or(BUCKETS - 1);
        self.counts[bucket].fetch_add(1, Relaxed);
        self.nanos.fetch_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX), Relaxed);
    }

    fn snapshot(&self, operation: &'static str) -> LatencySnapshot {
        LatencySnapshot {
            operation,
            counts: self.counts.iter().map(|count| count.load(Relaxed)).collect(),
            sum: Duration::from_nanos(self.nanos.load(Relaxed)),
        }
    }
}

/// How long appends to rollouts take: those that are passed to the operating system, and those that are on the disk when
/// they end.
#[derive(Default)]
pub struct StoreLatencies {
    append: Latency,
    sync: Latency,
}

impl StoreLatencies {
    /// Runs an append and notes how long it took, also when it failed.
    pub(crate) async fn measure<T>(&self, durability: Durability, append: impl Future<Output = T>) -> T {
        let begun = Instant::now();
        let done = append.await;
        match durability {
            Durability::Synced => self.sync.add(begun.elapsed()),
            Durability::Flushed => self.append.add(begun.elapsed()),
        }
        done
    }

    pub fn snapshot(&self) -> [LatencySnapshot; 2] {
        [self.append.snapshot("append"), self.sync.snapshot("sync")]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_latency_is_counted_in_the_bucket_of_its_bound() {
        let latencies = StoreLatencies::default();
        assert_eq!(latencies.measure(Durability::Synced, async { 7 }).await, 7);
        let [append, sync] = latencies.snapshot();
        assert_eq!((append.counts.iter().sum::<u64>(), sync.counts.iter().sum::<u64>()), (0, 1));
        let latency = Latency::default();
        for micros in [100, 101, 1_000_000, 1_000_001] {
            latency.add(Duration::from_micros(micros));
        }
        let snapshot = latency.snapshot("x");
        assert_eq!(snapshot.counts, [1, 1, 0, 0, 0, 0, 0, 0, 1, 1]);
        assert_eq!(snapshot.sum, Duration::from_micros(2_000_202));
    }
}
