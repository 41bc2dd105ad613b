//! `externalAgentConfig/*`: imports the user's configuration of another agent.

use std::path::PathBuf;

use loomd_agent::working_directory;
use loomd_config::external_agent::{self, ImportPaths};
use loomd_protocol::{
    ExternalAgentConfigDetectParams, ExternalAgentConfigDetectResponse, ExternalAgentConfigImportParams,
    ExternalAgentConfigImportResponse, RpcError, call,
};
use tokio::task::spawn_blocking;
use uuid::Uuid;

use crate::answer::{Handled, answer};
use crate::context::Context;

/// `externalAgentConfig/detect`
pub(crate) async fn detect(
    cx: &Context,
    params: ExternalAgentConfigDetectParams,
) -> Handled<call::ExternalAgentConfigDetect> {
    let places = places(cx);
    let cwds = params.cwds.unwrap_or_default();
    let work = move || external_agent::detect(&places, params.include_home, &cwds);
    let items = blocking(work).await?;
    answer(ExternalAgentConfigDetectResponse { items })
}

/// `externalAgentConfig/import`
pub(crate) async fn import(
    cx: &Context,
    params: ExternalAgentConfigImportParams,
) -> Handled<call::ExternalAgentConfigImport> {
    let places = places(cx);
    blocking(move || external_agent::import(&places, &params.migration_items)).await?;
    answer(ExternalAgentConfigImportResponse { import_id: Uuid::now_v7().to_string() })
}

fn places(cx: &Context) -> ImportPaths {
    ImportPaths {
        home: cx.app.sources.home.clone(),
        user_home: cx.app.sources.user_home.clone(),
        cwd: working_directory().map_or_else(|_| PathBuf::from("/"), |cwd| cwd.into_path_buf()),
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, external_agent::ImportError> + Send + 'static,
) -> Result<T, RpcError> {
    match spawn_blocking(work).await {
        Ok(done) => done.map_err(|error| RpcError::internal(error.to_string())),
        Err(error) => Err(RpcError::internal(error.to_string())),
    }
}
