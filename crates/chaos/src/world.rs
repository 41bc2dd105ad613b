//! [`World`]: the nodes of a run, their database and their model.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use loomd_testkit::{Cluster, ClusterNode, Database, Postgres, ScriptedModel};

use crate::options::Options;
use crate::plan::Planner;
use crate::processes;

pub struct World {
    /// What the processes of this run have in their environment.
    pub run: String,
    pub cluster: Cluster,
    pub postgres: Option<Arc<Postgres>>,
    _model: ScriptedModel,
}

impl World {
    /// Starts the database, if there is one, and some nodes.
    pub async fn start(options: &Options, nodes: usize, quick: bool) -> Result<Self> {
        let postgres = match options.files {
            true => None,
            false => {
                let postgres = tokio::task::spawn_blocking(Postgres::private).await?;
                Some(Arc::new(postgres.context("PostgreSQL is not installed; --files does without it")?))
            }
        };
        let model = ScriptedModel::start().await;
        let database = postgres.clone().map(Database::Own);
        let run = format!("{}-{}", std::process::id(), fastrand::u32(..));
        let mut cluster = Cluster::new(&options.program, database, options.session_ttl).env(processes::VARIABLE, &run);
        let planner = Planner { quick, ..Planner::new(options.seed, cluster.work()) };
        model.answer_by(move |request| planner.answer(request));
        for _ in 0..nodes {
            cluster.add(&model, "").await;
        }
        Ok(Self { run, cluster, postgres, _model: model })
    }

    pub fn nodes(&self) -> &[Arc<ClusterNode>] {
        self.cluster.nodes()
    }

    /// The call ids of all commands that were run, once per run.
    pub fn command_runs(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.cluster.work().join("runs")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// Undoes every fault: nodes run, links are open, the database runs.
    pub async fn heal(&self) -> Result<()> {
        for node in self.nodes() {
            node.signal(loomd_testkit::Signal::CONT).await;
            node.peers().heal();
            if self.postgres.is_some() {
                node.database().heal();
            }
            if node.port().is_none() {
                start(node, Duration::from_secs(60)).await?;
            }
        }
        Ok(())
    }

    /// Ends all nodes, and returns the processes that are left.
    pub async fn end(self) -> Vec<(u32, String)> {
        for node in self.nodes() {
            node.kill().await;
        }
        processes::left(&self.run).await
    }
}

/// Starts a node, again and again while the database does not answer.
pub async fn start(node: &ClusterNode, limit: Duration) -> Result<()> {
    let tried = async {
        loop {
            match node.start().await {
                Ok(()) => return,
                Err(_) => tokio::time::sleep(Duration::from_millis(200)).await,
            }
        }
    };
    tokio::time::timeout(limit, tried).await.context("a node does not start")
}
