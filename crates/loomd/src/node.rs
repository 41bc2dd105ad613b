//! The store that several servers share, and this server as one of its nodes.

use std::env;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use loomd_config::LoadedConfig;
use loomd_server::{NodeOptions, NodeToken, SharedThreads, UpstreamAddress};
use loomd_store_postgres::{Options, PostgresStore};

use crate::cli::UsageError;
use crate::store;

/// Shortens the sessions of nodes, in milliseconds. For tests: all nodes must have the same.
const SESSION_TTL: &str = "LOOMD_SESSION_TTL_MS";

/// Where threads are kept, and how other nodes reach this one.
#[derive(Args, Clone, Default)]
pub struct NodeArguments {
    /// Keep threads in a PostgreSQL database that several servers share: postgres://USER@HOST:PORT/DATABASE [default: LOOMD_STORE, `[loomd] store`]
    #[arg(long, value_name = "URL")]
    pub store: Option<String>,
    /// Where the other servers of the store reach this one, as ws://HOST:PORT [default: the address it listens on]
    #[arg(long, value_name = "URL")]
    pub node_url: Option<UpstreamAddress>,
    /// The file with the secret that servers of one store authenticate to each other with; without it this one neither takes their requests nor sends them any
    #[arg(long, value_name = "PATH")]
    pub node_token_file: Option<PathBuf>,
}

impl NodeArguments {
    /// The shared store; `None` when threads are kept in files. Fails when the database cannot be used.
    pub async fn open(&self, config: &LoadedConfig) -> Result<Option<SharedThreads>> {
        let own = config.config.loomd.as_ref();
        let named = own.and_then(|own| own.store.as_deref());
        let Some(address) = store::find_address(self.store.clone(), named)? else {
            return match self.node_url.is_some() || self.node_token_file.is_some() {
                true => Err(UsageError::new("`--node-url` and `--node-token-file` need `--store`")),
                false => Ok(None),
            };
        };
        let token = self.node_token_file.as_deref().map(NodeToken::read).transpose()?;
        let mut options = Options::new(address);
        if let Some(ttl) = env::var(SESSION_TTL).ok().and_then(|ttl| ttl.parse().ok()) {
            options.session_ttl = Duration::from_millis(ttl);
        }
        let threads = PostgresStore::new(options);
        threads.connect().await?;
        let url = self.node_url.as_ref().map(ToString::to_string).or_else(|| own.and_then(|own| own.node_url.clone()));
        let labels = own.and_then(|own| own.node_labels.clone()).unwrap_or_default();
        Ok(Some(SharedThreads { store: Arc::new(threads), node: NodeOptions { url, labels, token } }))
    }
}
