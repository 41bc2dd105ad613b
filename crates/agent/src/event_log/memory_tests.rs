//! The memory that the event logs of many streaming threads take, measured in a process of its own.

use std::env;
use std::process::Command;
use std::sync::Arc;

use loomd_protocol::{AgentMessageDeltaNotification, ServerNotification};

use super::testing::Received;
use super::{EventBudget, EventLog};
use crate::event::next_epoch;
use crate::event_sink::EventSink;

/// Set in the process that measures.
const MEASURES: &str = "LOOMD_TEST_MEASURES_EVENT_LOGS";

const THREADS: usize = 1000;
/// More than are kept: the logs drop the oldest all the time, as those of threads that stream do.
const DELTAS: usize = 120;

fn delta(text: String) -> ServerNotification {
    ServerNotification::AgentMessageDelta(AgentMessageDeltaNotification {
        thread_id: uuid::Uuid::now_v7().to_string(),
        turn_id: uuid::Uuid::now_v7().to_string(),
        item_id: uuid::Uuid::now_v7().to_string(),
        delta: text,
    })
}

/// The memory of this process that is not shared with others, in bytes.
fn memory() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    line.split_whitespace().next().unwrap().parse::<usize>().unwrap() * 1024
}

/// Fills the logs and prints how much memory they take, and how much they count.
fn measure() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let budget: Arc<EventBudget> = Arc::default();
        let received: Arc<Received> = Arc::default();
        let sink = || Arc::clone(&received) as Arc<dyn EventSink>;
        let logs: Vec<EventLog> =
            (0..THREADS).map(|_| EventLog::new(sink(), Vec::new(), next_epoch(), Arc::clone(&budget))).collect();
        let before = memory();
        for round in 0..DELTAS {
            for log in &logs {
                log.publish(delta("x".repeat(8 + round))).await;
            }
        }
        println!("logs: {} {} {}", memory() - before, budget.used(), EventBudget::TOTAL);
        drop(logs);
        assert_eq!(budget.used(), 0);
    });
}

#[test]
fn the_event_logs_of_a_thousand_streaming_threads_take_no_more_memory_than_their_constant() {
    if env::var_os(MEASURES).is_some() {
        return measure();
    }
    let this = "event_log::memory_tests::\
        the_event_logs_of_a_thousand_streaming_threads_take_no_more_memory_than_their_constant";
    let measured = Command::new(env::current_exe().unwrap())
        .args(["--exact", this, "--nocapture", "--test-threads=1"])
        .env(MEASURES, "1")
        .output()
        .unwrap();
    let output = String::from_utf8_lossy(&measured.stdout);
    let line = output.lines().find_map(|line| line.split_once("logs: ")).expect(&output).1;
    let figures: Vec<usize> = line.split(' ').map(|figure| figure.parse().unwrap()).collect();
    let [memory, counted, bound] = figures[..] else { panic!("{line}") };
    assert!(memory <= bound && counted <= bound, "memory {memory}, counted {counted}, bound {bound}");
    assert!(counted > bound / 2, "the bound was not reached: {counted} of {bound}");
}
