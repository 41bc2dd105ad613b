//! Checks the database that keeps the threads: whether it is reached, and can be used.

use anyhow::Result;
use loomd_store_postgres::{Options, PostgresStore, SCHEMA_VERSION, StoreProbe};

use super::Finding::{self, Fail, Pass, Warn};
use crate::setup::{Setup, block_on};
use crate::store::{find_address, node_state};

/// `None` when the threads are in files.
pub fn findings(flag: Option<String>, setup: &Setup) -> Result<Option<Vec<Finding>>> {
    let configured = setup.start.loaded.config.loomd.as_ref().and_then(|own| own.store.as_deref());
    let address = match find_address(flag, configured) {
        Ok(Some(address)) => address,
        Ok(None) => return Ok(None),
        Err(error) => return Ok(Some(vec![Fail(error.to_string())])),
    };
    block_on(async {
        let store = PostgresStore::new(Options::new(address));
        Ok(Some(match store.probe().await {
            Ok(probe) => described(&store.place(), &probe),
            Err(error) => vec![Fail(error.to_string())],
        }))
    })
}

fn described(place: &str, probe: &StoreProbe) -> Vec<Finding> {
    let mut findings = vec![Pass(format!("{place}, PostgreSQL {}", probe.server))];
    findings.push(match probe.schema {
        0 => Warn("no tables yet; the server makes them when it starts, or `loomd store migrate`".to_owned()),
        SCHEMA_VERSION => Pass(format!("the tables have version {SCHEMA_VERSION}")),
        older => Warn(format!(
            "the tables have version {older}; the server updates them to {SCHEMA_VERSION} when it starts, or `loomd store \
             migrate`"
        )),
    });
    findings.push(match &probe.lacking {
        None => Pass("the user has the rights that are needed".to_owned()),
        Some(lacking) => Fail(lacking.clone()),
    });
    let count = |state: &str| probe.nodes.iter().filter(|node| node_state(node) == state).count();
    let (live, draining, expired) = (count("live"), count("draining"), count("expired"));
    findings.push(match (live, draining, expired) {
        (0, 0, 0) => Pass("no node is registered".to_owned()),
        _ => Pass(format!("nodes: {live} live, {draining} draining, {expired} expired; see `loomd nodes`")),
    });
    findings
}
