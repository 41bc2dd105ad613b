//! The way of records to a collector: a bounded queue, and a task that sends them in batches.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use tokio::sync::mpsc::error::TryRecvError;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use crate::collector::{Collector, ExportError};
use crate::otlp;
use crate::record::Record;
use crate::settings::SharedResource;

/// Records that may wait, at most.
const MAX_QUEUED: usize = 4096;
/// Their memory, at most.
const MAX_QUEUED_BYTES: usize = 4 << 20;
/// Records of one export request, at most.
const BATCH: usize = 512;
/// How long a batch waits for more records.
const BATCH_DELAY: Duration = Duration::from_secs(1);
/// How often a batch is sent before it is dropped, with a growing delay between.
const ATTEMPTS: u32 = 4;
const RETRY_DELAY: Duration = Duration::from_secs(1);
/// Requests to flush that may wait.
const MAX_FLUSHES: usize = 16;

/// The queue of one kind of records. Pushing never waits.
pub(crate) struct Queue {
    records: mpsc::Sender<Record>,
    flushes: mpsc::Sender<oneshot::Sender<()>>,
    counts: Arc<Counts>,
}

#[derive(Default)]
struct Counts {
    /// The memory of the records that were pushed and not yet sent or dropped.
    bytes: AtomicUsize,
    dropped: AtomicU64,
}

impl Queue {
    /// Starts the task that sends the records. It ends when the queue is dropped.
    pub fn start(collector: Collector, resource: SharedResource) -> Arc<Self> {
        let (records, pending) = mpsc::channel(MAX_QUEUED);
        let (flushes, requested) = mpsc::channel(MAX_FLUSHES);
        let counts: Arc<Counts> = Arc::default();
        let sender = Sender {
            records: pending,
            flushes: requested,
            counts: Arc::clone(&counts),
            collector,
            resource,
            batch: Vec::new(),
            flushing: Vec::new(),
        };
        tokio::spawn(sender.run());
        Arc::new(Self { records, flushes, counts })
    }

    /// Adds a record, or drops it when the queue is full.
    pub fn push(&self, record: Record) {
        let size = record.size();
        let before = self.counts.bytes.fetch_add(size, Relaxed);
        if before + size > MAX_QUEUED_BYTES || self.records.try_send(record).is_err() {
            self.counts.bytes.fetch_sub(size, Relaxed);
            self.counts.dropped.fetch_add(1, Relaxed);
        }
    }

    /// Resolves when all records so far were sent or dropped. Failed exports are not repeated meanwhile.
    pub async fn flush(&self) {
        let (done, flushed) = oneshot::channel();
        if self.flushes.send(done).await.is_ok() {
            _ = flushed.await;
        }
    }

    /// Records that were dropped.
    pub fn dropped(&self) -> u64 {
        self.counts.dropped.load(Relaxed)
    }

    /// Records that wait to be sent.
    pub fn queued(&self) -> usize {
        self.records.max_capacity() - self.records.capacity()
    }
}

struct Sender {
    records: mpsc::Receiver<Record>,
    flushes: mpsc::Receiver<oneshot::Sender<()>>,
    counts: Arc<Counts>,
    collector: Collector,
    resource: SharedResource,
    batch: Vec<Record>,
    /// Answered when the queue is empty.
    flushing: Vec<oneshot::Sender<()>>,
}

impl Sender {
    async fn run(mut self) {
        while self.collect().await {
            if !self.batch.is_empty() {
                self.export().await;
            }
            if self.records.is_empty() {
                for done in self.flushing.drain(..) {
                    _ = done.send(());
                }
            }
        }
    }

    /// Fills the batch until it is full, its delay is over, or a flush does not let it wait. False when the queue was
    /// dropped and nothing is left.
    async fn collect(&mut self) -> bool {
        let mut until = None;
        while self.batch.len() < BATCH {
            let room = BATCH - self.batch.len();
            if !self.flushing.is_empty() {
                match self.records.try_recv() {
                    Ok(record) => self.batch.push(record),
                    Err(TryRecvError::Empty | TryRecvError::Disconnected) => return true,
                }
                continue;
            }
            let delay = async {
                match until {
                    Some(until) => tokio::time::sleep_until(until).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                count = self.records.recv_many(&mut self.batch, room) => match count {
                    0 => return !self.batch.is_empty(),
                    _ => _ = until.get_or_insert_with(|| Instant::now() + BATCH_DELAY),
                },
                Some(done) = self.flushes.recv() => self.flushing.push(done),
                () = delay => return true,
            }
        }
        true
    }

    /// Sends the batch, again after temporary failures. A flush ends the attempts.
    async fn export(&mut self) {
        let body = otlp::records(self.collector.protocol, &self.resource, &self.batch);
        let mut attempt = 0;
        loop {
            attempt += 1;
            match self.collector.export(body.clone()).await {
                Ok(()) => break,
                Err(ExportError::Temporary) if attempt < ATTEMPTS && self.flushing.is_empty() => {
                    tokio::select! {
                        () = tokio::time::sleep(RETRY_DELAY * 2_u32.pow(attempt - 1)) => {}
                        Some(done) = self.flushes.recv() => self.flushing.push(done),
                    }
                }
                Err(ExportError::Temporary | ExportError::Refused) => {
                    self.counts.dropped.fetch_add(self.batch.len() as u64, Relaxed);
                    break;
                }
            }
        }
        let bytes: usize = self.batch.iter().map(Record::size).sum();
        self.counts.bytes.fetch_sub(bytes, Relaxed);
        self.batch.clear();
    }
}
