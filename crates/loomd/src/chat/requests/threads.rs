//! Other threads: a new one, an earlier one, a copy.

use anyhow::{Result, bail};
use loomd_client::protocol::{
    ItemCompletedNotification, ServerNotification, ThreadForkParams, ThreadItem, ThreadResumeParams, ThreadStartParams,
    Turn, UserInput,
};
use loomd_client::{Client, Thread};
use loomd_editor::MenuItem;

use super::Outcome;
use crate::chat::commands::Command;
use crate::chat::picker::Picker;
use crate::find::{find, list, newest};
use crate::show::{Renderer, lines};
use crate::threads::{about, age, now};

/// How many threads are listed.
const LISTED: usize = 100;

/// How many turns of a resumed thread are shown.
const SHOWN_TURNS: usize = 3;

pub async fn start(client: Client, cwd: String) -> Result<Outcome> {
    let params = ThreadStartParams { cwd: Some(cwd), ..ThreadStartParams::default() };
    let thread = client.start_thread(params).await?;
    Ok(Outcome::Opened { thread: Box::new(thread), word: "new thread" })
}

pub async fn resume(client: Client, name: String, cwd: String) -> Result<Outcome> {
    let id = find(&client, &name, Some(&cwd)).await?;
    let params = ThreadResumeParams { ..loomd_client::resume(id) };
    let thread = client.with_timeout(None).resume_thread(params).await?;
    Ok(Outcome::Opened { thread: Box::new(thread), word: "resumed" })
}

pub async fn fork(thread: Thread) -> Result<Outcome> {
    let params = ThreadForkParams { exclude_turns: true, ..loomd_client::fork(thread.id()) };
    let fork = thread.client().with_timeout(None).fork_thread(params).await?;
    Ok(Outcome::Opened { thread: Box::new(fork), word: "forked" })
}

/// The threads of a folder, or of all with `None`.
pub async fn resume_picker(client: Client, cwd: Option<String>, current: String) -> Result<Outcome> {
    let threads = list(&client, newest(cwd.as_deref()), Some(LISTED)).await?;
    let now = now();
    let items: Vec<MenuItem> = threads
        .into_iter()
        .filter(|thread| thread.id != current)
        .map(|thread| {
            let folder = if cwd.is_none() { format!("  {}", lines(&thread.cwd).join(" ")) } else { String::new() };
            let age = age(now - thread.updated_at);
            MenuItem { label: format!("{age:>4}  {}", about(&thread)), detail: folder, value: thread.id }
        })
        .collect();
    match (items.is_empty(), &cwd) {
        (true, Some(_)) => bail!("no other threads in this folder; `/resume all` lists those of all folders"),
        (true, None) => bail!("no other threads"),
        (false, _) => {
            let picker = Picker::new("Resume", items, "", |id| Command::Resume(Some(id)));
            Ok(Outcome::Pick(Box::new(picker)))
        }
    }
}

/// The end of a thread's history as text.
pub fn past_turns(renderer: &mut Renderer, turns: &[Turn]) -> String {
    let hidden = turns.len().saturating_sub(SHOWN_TURNS);
    let mut text = String::new();
    if hidden > 0 {
        text += &renderer.remark(&format!("… {hidden} earlier turns; /export writes all of them to a file"));
    }
    for turn in &turns[hidden..] {
        for item in &turn.items {
            text += &match item {
                ThreadItem::UserMessage { content, .. } => renderer.input(&words(content)),
                item => renderer.show(&ServerNotification::ItemCompleted(ItemCompletedNotification {
                    item: item.clone(),
                    thread_id: String::new(),
                    turn_id: turn.id.clone(),
                    started_at_ms: None,
                    completed_at_ms: 0,
                })),
            };
        }
        if let Some(error) = &turn.error {
            text += &renderer.warn("error", &error.message);
        }
    }
    text
}

/// The user's input as text.
fn words(content: &[UserInput]) -> String {
    let part = |input: &UserInput| match input {
        UserInput::Text { text, .. } => text.clone(),
        UserInput::Image { .. } => "[an image]".to_owned(),
        UserInput::Audio { .. } => "[a sound]".to_owned(),
        UserInput::LocalImage { path } | UserInput::LocalAudio { path } => format!("[{path}]"),
        UserInput::Skill { name, .. } | UserInput::Mention { name, .. } => format!("[{name}]"),
    };
    content.iter().map(part).collect::<Vec<_>>().join(" ")
}
