//! A build without the feature `postgres`: threads are kept in files.

use anyhow::Result;
use clap::Args;
use loomd_config::LoadedConfig;
use loomd_server::SharedThreads;

/// There are none.
#[derive(Args, Clone, Default)]
pub struct NodeArguments {}

impl NodeArguments {
    /// Fails when a shared store is configured, which this build does not have.
    pub async fn open(&self, config: &LoadedConfig) -> Result<Option<SharedThreads>> {
        match config.config.loomd.as_ref().and_then(|own| own.store.as_ref()) {
            Some(_) => anyhow::bail!("`[loomd] store` needs a program that was built with the feature `postgres`"),
            None => Ok(None),
        }
    }
}
