//! Items of tools that the provider runs itself: web searches and generated images.

use std::path::PathBuf;

use base64::Engine;
use loomd_protocol::{ResponseItem, ResponsesApiWebSearchAction, ThreadItem, WebSearchAction};
use loomd_store::rollout::{ImageGenerationEnd, Record, WebSearchEnd};
use uuid::Uuid;

use super::task::TurnTask;
use crate::message::message;

/// The item of `item/started`.
pub(super) fn started(item: &ResponseItem, id: &str) -> Option<ThreadItem> {
    Some(match item {
        ResponseItem::WebSearchCall { .. } => {
            ThreadItem::WebSearch { id: id.into(), query: String::new(), action: Some(WebSearchAction::Other) }
        }
        ResponseItem::ImageGenerationCall { .. } => ThreadItem::ImageGeneration {
            id: id.into(),
            status: "in_progress".into(),
            revised_prompt: None,
            result: String::new(),
            saved_path: None,
        },
        _ => return None,
    })
}

/// The item of `item/completed` when the stream ended before the tool did.
pub(super) fn given_up(item: ThreadItem) -> ThreadItem {
    match item {
        ThreadItem::ImageGeneration { id, revised_prompt, result, saved_path, .. } => {
            ThreadItem::ImageGeneration { id, status: "failed".into(), revised_prompt, result, saved_path }
        }
        other => other,
    }
}

impl TurnTask {
    pub(super) async fn hosted_done(&mut self, open: Option<String>, item: &ResponseItem, id: Option<String>) {
        let id = match open {
            Some(id) => id,
            None => {
                let id = id.unwrap_or_else(|| Uuid::new_v4().to_string());
                if let Some(started) = started(item, &id) {
                    self.cx.started(started).await;
                }
                id
            }
        };
        match item {
            ResponseItem::WebSearchCall { action, .. } => {
                let action = action.clone().unwrap_or(ResponsesApiWebSearchAction::Other);
                let query = query(&action);
                let end = WebSearchEnd { call_id: id.clone(), query: query.clone(), action: action.clone() };
                if self.scope.records {
                    self.cx.note(&[Record::EventMsg(end.into())]).await;
                }
                self.append(item).await;
                self.cx.completed(ThreadItem::WebSearch { id, query, action: Some(wire(action)) }, None).await;
            }
            ResponseItem::ImageGenerationCall { status, revised_prompt, result, .. } => {
                let saved_path = self.save_image(&id, result).await;
                let end = ImageGenerationEnd {
                    call_id: id.clone(),
                    status: status.clone(),
                    revised_prompt: revised_prompt.clone(),
                    result: result.clone(),
                    saved_path: saved_path.clone(),
                };
                if self.scope.records {
                    self.cx.note(&[Record::EventMsg(end.into())]).await;
                }
                self.append(item).await;
                if let Some(path) = &saved_path {
                    let note = format!("The generated image {id} was saved as {path}.");
                    self.append(&message("developer", note)).await;
                }
                let item = ThreadItem::ImageGeneration {
                    id,
                    status: status.clone(),
                    revised_prompt: revised_prompt.clone(),
                    result: result.clone(),
                    saved_path,
                };
                self.cx.completed(item, None).await;
            }
            _ => {}
        }
    }

    async fn save_image(&self, id: &str, result: &str) -> Option<String> {
        let bytes = base64::engine::general_purpose::STANDARD.decode(result).ok()?;
        let folder = self.services.home.join("generated_images").join(plain(&self.cx.thread_id));
        let path: PathBuf = folder.join(format!("{}.png", plain(id)));
        let target = path.clone();
        let kept = move || loomd_private::create_dir_all(folder).and_then(|()| loomd_private::write(target, bytes));
        tokio::task::spawn_blocking(kept).await.ok()?.ok()?;
        Some(path.to_string_lossy().into_owned())
    }
}

/// An id as a file name: only letters that are safe in a path.
fn plain(id: &str) -> String {
    let safe = |char: char| if char.is_ascii_alphanumeric() || matches!(char, '-' | '_') { char } else { '_' };
    id.chars().map(safe).collect()
}

/// The query of a web search, as clients show it.
fn query(action: &ResponsesApiWebSearchAction) -> String {
    use ResponsesApiWebSearchAction::*;
    match action {
        Search { query: Some(query), .. } if !query.is_empty() => query.clone(),
        Search { queries: Some(queries), .. } => match queries.as_slice() {
            [] => String::new(),
            [only] => only.clone(),
            [first, ..] => format!("{first} ..."),
        },
        OpenPage { url: Some(url) } => url.clone(),
        FindInPage { pattern, url } => match (pattern, url) {
            (Some(pattern), Some(url)) => format!("'{pattern}' in {url}"),
            (Some(pattern), None) => format!("'{pattern}'"),
            (None, Some(url)) => url.clone(),
            (None, None) => String::new(),
        },
        _ => String::new(),
    }
}

fn wire(action: ResponsesApiWebSearchAction) -> WebSearchAction {
    use ResponsesApiWebSearchAction as A;
    match action {
        A::Search { queries, query } => WebSearchAction::Search { query, queries },
        A::OpenPage { url } => WebSearchAction::OpenPage { url },
        A::FindInPage { pattern, url } => WebSearchAction::FindInPage { url, pattern },
        A::Other => WebSearchAction::Other,
    }
}
