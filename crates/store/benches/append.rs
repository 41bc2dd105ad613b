//! Appends of a turn: a small batch, which is written on the calling thread, and a large one, which is not; beside them
//! the hop to a blocking thread alone, which a small batch does not pay.

#![allow(clippy::unwrap_used, reason = "a benchmark that fails may stop")]

use std::sync::Arc;

use divan::Bencher;
use loomd_store::rollout::{AgentMessage, Event, Record};
use loomd_store::{Batch, Durability, FileStore, Options, Reader, Store, ThreadId};
use tokio::runtime::Runtime;

fn main() {
    divan::main();
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap()
}

fn open() -> (tempfile::TempDir, Arc<dyn Reader>) {
    let home = tempfile::tempdir().unwrap();
    let store = FileStore::new(Options { home: home.path().to_owned(), sqlite_home: None });
    let reader = store.create(ThreadId::new(), jiff::Timestamp::now());
    (home, reader)
}

fn batch(size: usize) -> Batch {
    let message = AgentMessage { message: "x".repeat(size), ..Default::default() };
    std::iter::once(Record::EventMsg(Event::AgentMessage(message))).collect()
}

#[divan::bench(args = [300, 4_000, 60_000, 70_000, 1_000_000])]
fn flushed(bencher: Bencher, size: usize) {
    let (runtime, (_home, reader)) = (runtime(), open());
    let (batch, handle) = (batch(size), runtime.handle().clone());
    let mut writer = runtime.block_on(reader.writer()).unwrap();
    bencher.bench_local(|| handle.block_on(writer.append(batch.clone(), Durability::Flushed)).unwrap());
}

#[divan::bench]
fn lease(bencher: Bencher) {
    let (runtime, (_home, reader)) = (runtime(), open());
    bencher.bench_local(|| runtime.block_on(reader.writer()).unwrap().epoch());
}

#[divan::bench]
fn end_of_an_unchanged_thread(bencher: Bencher) {
    let (runtime, (_home, reader)) = (runtime(), open());
    let mut writer = runtime.block_on(reader.writer()).unwrap();
    runtime.block_on(writer.append(batch(300), Durability::Flushed)).unwrap();
    bencher.bench_local(|| runtime.block_on(reader.end()).unwrap());
}

#[divan::bench]
fn hop_to_a_blocking_thread(bencher: Bencher) {
    let runtime = runtime();
    bencher.bench_local(|| runtime.block_on(async { tokio::task::spawn_blocking(|| ()).await.unwrap() }));
}
