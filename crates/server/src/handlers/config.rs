//! `config/*` and `configRequirements/read`. Configuration is read and written where a request starts, in the
//! order of requests: one that follows a write must see it, and the files are small.

use std::path::Path;

use loomd_agent::{absolute, working_directory};
use loomd_config::{ConfigError, Edit, LoadRequest, WriteError, WriteRequest};
use loomd_protocol::{
    ConfigBatchWriteParams, ConfigReadParams, ConfigRequirementsReadResponse, ConfigValueWriteParams,
    ConfigWriteResponse, NoParams, RpcError, call,
};
use serde_json::json;

use crate::answer::{Handled, answer};
use crate::context::Context;
use crate::refusals::wire_error;

/// `config/read`
pub(crate) async fn read(cx: &Context, params: ConfigReadParams) -> Handled<call::ConfigRead> {
    let cwd = params.cwd.map(|cwd| absolute(&cwd)).transpose().map_err(wire_error)?;
    let request = LoadRequest { cwd: cwd.as_ref(), ..cx.app.sources.request() };
    let read = loomd_config::load(&request).and_then(|loaded| loomd_config::read(&loaded, params.include_layers));
    let read = read.map_err(|error| match (&error, &cwd) {
        (ConfigError::UnknownProfile(_), Some(_)) => {
            RpcError::internal(format!("failed to read configuration layers: {error}"))
        }
        _ => failed(&error, error.read_message()),
    })?;
    answer(read)
}

/// `config/value/write`
pub(crate) async fn write_value(cx: &Context, params: ConfigValueWriteParams) -> Handled<call::ConfigValueWrite> {
    let ConfigValueWriteParams { key_path, value, merge_strategy, file_path, expected_version } = params;
    answer(write(cx, &[Edit { key_path, value, merge_strategy }], file_path, expected_version)?)
}

/// `config/batchWrite`
pub(crate) async fn write_batch(cx: &Context, params: ConfigBatchWriteParams) -> Handled<call::ConfigBatchWrite> {
    answer(write(cx, &params.edits, params.file_path, params.expected_version)?)
}

/// `configRequirements/read`: null when no administrator requires anything.
pub(crate) async fn requirements(cx: &Context, _: NoParams) -> Handled<call::ConfigRequirementsRead> {
    let loaded = loomd_config::load(&cx.app.sources.request()).map_err(|error| {
        let message = format!("failed to read configuration layers: {error}");
        failed(&error, message)
    })?;
    answer(ConfigRequirementsReadResponse { requirements: loaded.requirements.to_wire() })
}

fn write(
    cx: &Context,
    edits: &[Edit],
    file_path: Option<String>,
    expected_version: Option<String>,
) -> Result<ConfigWriteResponse, RpcError> {
    let cwd = working_directory().ok();
    let write = WriteRequest {
        edits,
        file_path: file_path.as_deref(),
        expected_version: expected_version.as_deref(),
        cwd: cwd.as_deref().unwrap_or(Path::new("/")),
    };
    loomd_config::write(&cx.app.sources.request(), &write).map_err(|error| {
        let Some(code) = error.code() else { return RpcError::internal(error.to_string()) };
        let mut data = json!({ "config_write_error_code": code });
        if let WriteError::Conflict { version } = &error {
            data["version"] = version.as_str().into();
        }
        RpcError::invalid_request(error.to_string()).with_data(data)
    })
}

fn failed(error: &ConfigError, message: String) -> RpcError {
    match error {
        ConfigError::Cloud(cloud) => RpcError::internal(message).with_data(cloud.data()),
        _ => RpcError::internal(message),
    }
}
