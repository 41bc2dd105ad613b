//! `fs/*`: files on behalf of clients, with the rights of the server. Operations on a path run in the order of
//! their requests; operations on other paths do not wait for them.

use std::path::PathBuf;

use loomd_files::{Access, FsError, Owner};
use loomd_protocol::{
    AbsolutePathBuf, FsCopyParams, FsCopyResponse, FsCreateDirectoryParams, FsCreateDirectoryResponse,
    FsGetMetadataParams, FsReadDirectoryParams, FsReadDirectoryResponse, FsReadFileParams, FsReadFileResponse,
    FsRemoveParams, FsRemoveResponse, FsUnwatchParams, FsUnwatchResponse, FsWatchParams, FsWriteFileParams,
    FsWriteFileResponse, Level, RpcError, call,
};
use serde_json::json;
use tokio::task::spawn_blocking;

use crate::answer::{Handled, answer};
use crate::context::Context;
use crate::limits;

/// `fs/readFile`
pub(crate) async fn read_file(cx: &Context, params: FsReadFileParams) -> Handled<call::FsReadFile> {
    let path = params.path;
    let turn = cx.app.files.order.enter(vec![(path.to_path_buf(), Access::Read)]).await;
    let size = blocking({
        let path = path.clone();
        move || Ok(std::fs::metadata(&path).map_or((0, false), |metadata| (metadata.len(), metadata.is_dir())))
    });
    let (size, is_folder) = size.await.unwrap_or((0, false));
    if is_folder && cx.client.level >= Level::V0_166 {
        return Err(RpcError::invalid_request(format!("path `{}` is not a file", path.display())));
    }
    let _permit = if size > limits::LARGE_FILE {
        let permit = cx.app.files.large.acquire().await.ok();
        cx.outbound.has_room().await;
        permit
    } else {
        None
    };
    let named = path.clone();
    let read = blocking(move || {
        let data_base64 = loomd_files::read_file(&path);
        drop(turn);
        data_base64
    });
    let data_base64 = read.await.map_err(|error| wire_error(&named, &error))?;
    answer(FsReadFileResponse { data_base64 })
}

/// `fs/writeFile`
pub(crate) async fn write_file(cx: &Context, params: FsWriteFileParams) -> Handled<call::FsWriteFile> {
    let FsWriteFileParams { path, data_base64 } = params;
    run(cx, &path.clone(), Access::Write, move || loomd_files::write_file(&path, &data_base64)).await?;
    answer(FsWriteFileResponse {})
}

/// `fs/createDirectory`
pub(crate) async fn create_directory(
    cx: &Context,
    params: FsCreateDirectoryParams,
) -> Handled<call::FsCreateDirectory> {
    let FsCreateDirectoryParams { path, recursive } = params;
    let recursive = recursive.unwrap_or(true);
    run(cx, &path.clone(), Access::Write, move || loomd_files::create_directory(&path, recursive)).await?;
    answer(FsCreateDirectoryResponse {})
}

/// `fs/getMetadata`
pub(crate) async fn get_metadata(cx: &Context, params: FsGetMetadataParams) -> Handled<call::FsGetMetadata> {
    let path = params.path;
    answer(run(cx, &path.clone(), Access::Read, move || loomd_files::metadata(&path)).await?)
}

/// `fs/readDirectory`
pub(crate) async fn read_directory(cx: &Context, params: FsReadDirectoryParams) -> Handled<call::FsReadDirectory> {
    let path = params.path;
    let entries = run(cx, &path.clone(), Access::Read, move || loomd_files::read_directory(&path)).await?;
    answer(FsReadDirectoryResponse { entries })
}

/// `fs/remove`
pub(crate) async fn remove(cx: &Context, params: FsRemoveParams) -> Handled<call::FsRemove> {
    let FsRemoveParams { path, recursive, force } = params;
    let (recursive, force) = (recursive.unwrap_or(true), force.unwrap_or(true));
    run(cx, &path.clone(), Access::Write, move || loomd_files::remove(&path, recursive, force)).await?;
    answer(FsRemoveResponse {})
}

/// `fs/copy`
pub(crate) async fn copy(cx: &Context, params: FsCopyParams) -> Handled<call::FsCopy> {
    let FsCopyParams { source_path, destination_path, recursive } = params;
    let touches = vec![(source_path.to_path_buf(), Access::Read), (destination_path.to_path_buf(), Access::Write)];
    let named = source_path.clone();
    run_all(cx, touches, &named, move || loomd_files::copy(&source_path, &destination_path, recursive)).await?;
    answer(FsCopyResponse {})
}

/// `fs/watch`
pub(crate) async fn watch(cx: &Context, params: FsWatchParams) -> Handled<call::FsWatch> {
    let FsWatchParams { path, watch_id } = params;
    let named = path.clone();
    let watched = cx.app.watches.watch(owner(cx), path, watch_id).await;
    answer(watched.map_err(|error| wire_error(&named, &error))?)
}

/// `fs/unwatch`: answered when no more notifications will follow.
pub(crate) async fn unwatch(cx: &Context, params: FsUnwatchParams) -> Handled<call::FsUnwatch> {
    cx.app.watches.unwatch(owner(cx), params.watch_id).await;
    answer(FsUnwatchResponse {})
}

fn owner(cx: &Context) -> Owner {
    Owner(cx.connection.0)
}

async fn run<T: Send + 'static>(
    cx: &Context,
    path: &AbsolutePathBuf,
    access: Access,
    work: impl FnOnce() -> Result<T, FsError> + Send + 'static,
) -> Result<T, RpcError> {
    run_all(cx, vec![(path.to_path_buf(), access)], path, work).await
}

/// `named` is the path that an error is about.
async fn run_all<T: Send + 'static>(
    cx: &Context,
    touches: Vec<(PathBuf, Access)>,
    named: &AbsolutePathBuf,
    work: impl FnOnce() -> Result<T, FsError> + Send + 'static,
) -> Result<T, RpcError> {
    let turn = cx.app.files.order.enter(touches).await;
    let done = blocking(move || {
        let done = work();
        // Here, because the work goes on after its request was dropped.
        drop(turn);
        done
    });
    done.await.map_err(|error| wire_error(named, &error))
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T, FsError> + Send + 'static) -> Result<T, FsError> {
    spawn_blocking(work).await.unwrap_or_else(|error| Err(FsError::Io(std::io::Error::other(error))))
}

fn wire_error(path: &AbsolutePathBuf, error: &FsError) -> RpcError {
    let kind = error.kind();
    let rpc = match kind {
        std::io::ErrorKind::InvalidInput => RpcError::invalid_request(error.to_string()),
        _ => RpcError::internal(error.to_string()),
    };
    rpc.with_data(json!({ "path": path, "kind": format!("{kind:?}"), "osError": error.os_error() }))
}
