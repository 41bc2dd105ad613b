//! `feedback/upload`: stores reports in the home. Nothing is sent anywhere.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use loomd_agent::{Source, parse_id};
use loomd_protocol::{FeedbackUploadParams, FeedbackUploadResponse, RpcError, call};
use serde_json::json;
use tokio::task::spawn_blocking;
use tracing::warn;
use uuid::Uuid;

use crate::answer::{Handled, answer};
use crate::context::Context;
use crate::refusals::wire_error;

/// The most reports that are kept; the oldest are removed.
const MAX_KEPT: usize = 50;

/// The most bytes of an attached file, from its end.
const MAX_ATTACHMENT: u64 = 16 << 20;
const MAX_ATTACHMENTS: usize = 32;

pub(crate) async fn upload(cx: &Context, params: FeedbackUploadParams) -> Handled<call::FeedbackUpload> {
    let enabled = loomd_config::load(&cx.app.sources.request()).map_or(true, |loaded| loaded.config.feedback_enabled());
    if !enabled {
        return Err(RpcError::invalid_request("sending feedback is disabled by configuration"));
    }
    let id = params.thread_id.as_deref().map(parse_id).transpose().map_err(wire_error)?;
    let mut attachments = Vec::new();
    if params.include_logs {
        if let Some(id) = id
            && let Ok(thread) = cx.app.threads().find(&Source::Id(id)).await
        {
            attachments.extend(thread.path);
        }
        attachments.extend(params.extra_log_files.iter().flatten().map(PathBuf::from));
        attachments.truncate(MAX_ATTACHMENTS);
    }
    let thread_id = params.thread_id.clone().unwrap_or_else(|| format!("no-active-thread-{}", Uuid::now_v7()));
    let report = json!({
        "threadId": thread_id,
        "classification": params.classification,
        "reason": params.reason,
        "client": { "name": cx.client.identity.name, "version": cx.client.version },
        "server": env!("CARGO_PKG_VERSION"),
        "time": jiff::Timestamp::now().to_string(),
    });
    let folder = cx.app.sources.home.join("loomd/feedback");
    let kept = spawn_blocking(move || keep(&folder, &format!("{report:#}\n"), &attachments)).await;
    if let Ok(Err(error)) = kept {
        // Best effort: the request succeeds also when the report cannot be stored.
        warn!(%error, "cannot keep feedback");
    }
    answer(FeedbackUploadResponse { thread_id })
}

/// Each report is a folder, named so that the latest is the last.
fn keep(folder: &Path, report: &str, attachments: &[PathBuf]) -> io::Result<()> {
    let own = folder.join(Uuid::now_v7().to_string());
    loomd_private::create_dir_all(&own)?;
    create(&own.join("report.json"))?.write_all(report.as_bytes())?;
    for (number, path) in attachments.iter().enumerate() {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        // Files that cannot be read are left out.
        _ = attach(path, &own.join(format!("{number}-{name}")));
    }
    forget_oldest(folder)
}

fn attach(from: &Path, to: &Path) -> io::Result<()> {
    let (mut source, metadata) = loomd_regular::open(from)?;
    source.seek(SeekFrom::Start(metadata.len().saturating_sub(MAX_ATTACHMENT)))?;
    io::copy(&mut source.take(MAX_ATTACHMENT), &mut create(to)?)?;
    Ok(())
}

fn create(path: &Path) -> io::Result<File> {
    loomd_private::options().write(true).create_new(true).open(path)
}

fn forget_oldest(folder: &Path) -> io::Result<()> {
    let mut reports: Vec<PathBuf> = fs::read_dir(folder)?.flatten().map(|entry| entry.path()).collect();
    reports.sort();
    let surplus = reports.len().saturating_sub(MAX_KEPT);
    reports.iter().take(surplus).try_for_each(fs::remove_dir_all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stored_report_has_the_last_bytes_of_its_attachments() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("a.log");
        fs::write(&log, "line").unwrap();
        let folder = dir.path().join("feedback");
        for _ in 0..MAX_KEPT + 3 {
            keep(&folder, "{}", &[dir.path().join("none"), log.clone()]).unwrap();
        }
        let reports: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert_eq!(reports.len(), MAX_KEPT);
        let mut files: Vec<_> = fs::read_dir(&reports[0]).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        files.sort();
        assert_eq!(files, ["1-a.log", "report.json"]);
    }
}
