//! What is done to nodes, the database and the network, by seeded schedules: one for each node, and one for the
//! database, so that faults overlap.

use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use loomd_testkit::{ClusterNode, Postgres, Signal};
use tokio::sync::watch;

use crate::history::History;
use crate::world;

/// How long a node may take to start while the database comes and goes.
const START: Duration = Duration::from_secs(120);

pub struct Schedule {
    pub history: Arc<History>,
    pub random: Rng,
    pub session_ttl: Duration,
    pub stopping: watch::Receiver<bool>,
}

impl Schedule {
    /// Something to wait before the next fault; false when the run stops.
    async fn wait(&mut self) -> bool {
        let pause = self.between(0.2, 3.0);
        self.pause(pause).await
    }

    /// A random time, in lifetimes of a session.
    fn between(&mut self, least: f64, most: f64) -> Duration {
        self.session_ttl.mul_f64(least + (most - least) * self.random.f64())
    }

    async fn pause(&mut self, time: Duration) -> bool {
        tokio::select! {
            () = tokio::time::sleep(time) => true,
            _ = self.stopping.wait_for(|stopping| *stopping) => false,
        }
    }

    /// Disturbs a node until the run stops. What was done last is undone.
    pub async fn of_node(mut self, number: usize, node: Arc<ClusterNode>, has_database: bool) {
        while self.wait().await {
            // Without other nodes, a node that drains waits for its turns, and these for approvals.
            let kinds = if has_database { 6 } else { 2 };
            let kind = self.random.u8(0..kinds);
            let time = self.between(0.1, 2.0);
            let ms = time.as_millis();
            match kind {
                0 => {
                    self.history.fault(format!("kill -9 of node {number}, started again after {ms} ms"));
                    node.kill().await;
                    self.pause(time).await;
                    self.start(number, &node).await;
                }
                1 => {
                    self.history.fault(format!("node {number} is paused for {ms} ms"));
                    node.signal(Signal::STOP).await;
                    self.pause(time).await;
                    node.signal(Signal::CONT).await;
                    self.history.fault(format!("node {number} goes on"));
                }
                2 => {
                    self.history.fault(format!("node {number} drains"));
                    node.drained().await;
                    self.history.fault(format!("node {number} has drained"));
                    self.start(number, &node).await;
                }
                3 => {
                    self.history.fault(format!("node {number} hears nothing of the database for {ms} ms"));
                    node.database().silence();
                    self.pause(time).await;
                    node.database().heal();
                    self.history.fault(format!("node {number} hears the database again"));
                }
                4 => {
                    self.history.fault(format!("node {number} is cut off from the database for {ms} ms"));
                    node.database().cut();
                    self.pause(time).await;
                    node.database().heal();
                    self.history.fault(format!("node {number} can reach the database again"));
                }
                _ => {
                    let silent = self.random.bool();
                    let how = if silent { "silent" } else { "cut" };
                    self.history.fault(format!("the link of others to node {number} is {how} for {ms} ms"));
                    if silent {
                        node.peers().silence()
                    } else {
                        node.peers().cut()
                    };
                    self.pause(time).await;
                    node.peers().heal();
                    self.history.fault(format!("others can reach node {number} again"));
                }
            }
        }
    }

    async fn start(&self, number: usize, node: &ClusterNode) {
        match world::start(node, START).await {
            Ok(()) => self.history.fault(format!("node {number} runs again")),
            Err(error) => self.history.fault(format!("node {number}: {error}")),
        }
    }

    /// Stops or crashes the database until the run stops.
    pub async fn of_database(mut self, postgres: Arc<Postgres>) {
        loop {
            let pause = self.between(2.0, 8.0);
            if !self.pause(pause).await {
                return;
            }
            let crash = self.random.bool();
            let time = self.between(0.0, 0.8);
            let how = if crash { "crashes" } else { "is stopped" };
            self.history.fault(format!("the database {how}, for {} ms", time.as_millis()));
            blocking(&postgres, move |postgres| if crash { postgres.crash() } else { postgres.stop() }).await;
            self.pause(time).await;
            blocking(&postgres, Postgres::start).await;
            self.history.fault("the database runs again");
        }
    }
}

async fn blocking(postgres: &Arc<Postgres>, work: impl FnOnce(&Postgres) + Send + 'static) {
    let postgres = Arc::clone(postgres);
    tokio::task::spawn_blocking(move || work(&postgres)).await.expect("the database can be stopped and started");
}
