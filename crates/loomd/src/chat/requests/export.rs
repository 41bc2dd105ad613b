//! Writes a thread to a file.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use loomd_client::Thread;

use super::Outcome;
use crate::show::lines;
use crate::threads::markdown;

/// Writes the thread as Markdown, or as JSON if the name ends with `.json`. An existing file is not replaced.
pub async fn export(thread: Thread, file: Option<String>, cwd: String) -> Result<Outcome> {
    // Reading a long thread may take longer than the request timeout.
    let stored = thread.client().with_timeout(None).read_thread(thread.id(), true).await?;
    let name = file.unwrap_or_else(|| format!("thread-{}.md", thread.id()));
    let path: PathBuf = Path::new(&cwd).join(name);
    let shown = lines(&path.to_string_lossy()).join(" ");
    tokio::task::spawn_blocking(move || {
        let is_json = path.extension().is_some_and(|extension| extension == "json");
        let text = if is_json { serde_json::to_string_pretty(&stored)? + "\n" } else { markdown(&stored) };
        let mut file = std::fs::File::create_new(&path).with_context(|| format!("cannot write {}", path.display()))?;
        file.write_all(text.as_bytes()).with_context(|| format!("cannot write {}", path.display()))
    })
    .await??;
    Ok(Outcome::Text(format!("written to {shown}\n")))
}
