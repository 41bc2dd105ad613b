//! `loomd threads`: lists, shows, names, archives, deletes and exports stored threads.

mod args;
mod list;
mod markdown;

use std::fs::{self, File};
use std::io::{self, BufRead, IsTerminal, Write, stdin, stdout};
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use loomd_client::Client;
use loomd_client::protocol::{
    ItemCompletedNotification, ServerNotification, Thread, ThreadDeleteParams, ThreadItem, ThreadListParams,
    ThreadSetNameParams, ThreadUnarchiveParams, UserInput,
};

pub use args::Threads;
use args::{Format, ThreadsCommand};
pub use list::{about, age, now};
pub use markdown::markdown;

use crate::cli::{TopOverrides, UsageError};
use crate::find::{find, find_only, list, newest};
use crate::run::{self, Color, Screen};
use crate::setup::{Setup, block_on, close_client};
use crate::show::{Paint, Renderer};

pub fn run(top: TopOverrides, arguments: Threads) -> Result<ExitCode> {
    let cwd = run::folder(None)?;
    let setup = Setup::new(&top.with(arguments.overrides))?;
    block_on(async {
        let (client, events) = setup.connect(run::options("loomd-threads")).await?;
        // Without a reader, the queue of events would grow.
        drop(events);
        let done = execute(&client, arguments.command, &cwd).await;
        close_client(&client).await;
        done.map(|()| ExitCode::SUCCESS)
    })
}

async fn execute(client: &Client, command: ThreadsCommand, cwd: &str) -> Result<()> {
    match command {
        ThreadsCommand::List { all, archived, search, limit, json } => {
            let query =
                ThreadListParams { archived: Some(archived), search_term: search, ..newest((!all).then_some(cwd)) };
            let threads = list(client, query, Some(limit)).await?;
            if json { print_json(&threads) } else { print_list(&threads, all) }
        }
        ThreadsCommand::Show { thread } => show(&read(client, &thread, cwd).await?),
        ThreadsCommand::Rename { thread, name } => {
            let thread_id = find(client, &thread, Some(cwd)).await?;
            client.thread_name_set(ThreadSetNameParams { thread_id, name }).await?;
            Ok(())
        }
        ThreadsCommand::Archive { threads } => {
            for id in find_all(client, &threads, cwd).await? {
                client.archive_thread(&id).await?;
            }
            Ok(())
        }
        ThreadsCommand::Unarchive { threads } => {
            for thread_id in find_all(client, &threads, cwd).await? {
                client.thread_unarchive(ThreadUnarchiveParams { thread_id }).await?;
            }
            Ok(())
        }
        ThreadsCommand::Delete { threads, yes } => {
            let ids = find_all(client, &threads, cwd).await?;
            if !yes && !confirmed(&ids)? {
                bail!("nothing was deleted");
            }
            for thread_id in ids {
                client.thread_delete(ThreadDeleteParams { thread_id }).await?;
            }
            Ok(())
        }
        ThreadsCommand::Export { thread, format, output } => {
            export(&read(client, &thread, cwd).await?, format, output.as_deref())
        }
    }
}

/// Resolves all names before any thread is changed.
async fn find_all(client: &Client, names: &[String], cwd: &str) -> Result<Vec<String>> {
    let mut ids = Vec::new();
    for name in names {
        ids.push(find_only(client, name, Some(cwd)).await?);
    }
    ids.sort();
    ids.dedup();
    Ok(ids)
}

async fn read(client: &Client, name: &str, cwd: &str) -> Result<Thread> {
    let id = find(client, name, Some(cwd)).await?;
    // Reading a long thread may take longer than the request timeout.
    Ok(client.with_timeout(None).read_thread(&id, true).await?)
}

fn print_json(threads: &[Thread]) -> Result<()> {
    let mut out = stdout().lock();
    for thread in threads {
        serde_json::to_writer(&mut out, thread)?;
        out.write_all(b"\n")?;
    }
    Ok(out.flush()?)
}

fn print_list(threads: &[Thread], all: bool) -> Result<()> {
    let mut screen = Screen::stdout(Color::Auto);
    if threads.is_empty() {
        let hint = if all { "" } else { " in this folder; --all shows those of all folders" };
        return Ok(screen.print(&format!("no threads{hint}\n"))?);
    }
    let text = list::table(screen.style(), threads, all, list::now());
    Ok(screen.print(&text)?)
}

fn show(thread: &Thread) -> Result<()> {
    let mut screen = Screen::stdout(Color::Auto);
    let style = screen.style();
    screen.print(&list::heading(style, thread, list::now()))?;
    for turn in &thread.turns {
        let mut renderer = Renderer::new(style);
        for item in &turn.items {
            if let ThreadItem::UserMessage { content, .. } = item {
                let text = format!("\n{} {}\n\n", style.paint(Paint::Cyan, ">"), words(content));
                screen.print(&text)?;
                continue;
            }
            let completed = ItemCompletedNotification {
                item: item.clone(),
                thread_id: thread.id.clone(),
                turn_id: turn.id.clone(),
                started_at_ms: None,
                completed_at_ms: 0,
            };
            screen.print(&renderer.show(&ServerNotification::ItemCompleted(completed)))?;
        }
        if let Some(error) = &turn.error {
            screen.print(&renderer.warn("error", &error.message))?;
        }
    }
    Ok(())
}

/// The user's input as text.
fn words(content: &[UserInput]) -> String {
    let part = |input: &UserInput| match input {
        UserInput::Text { text, .. } => crate::show::lines(text).join("\n  "),
        UserInput::Image { .. } => "[an image]".to_owned(),
        UserInput::Audio { .. } => "[a sound]".to_owned(),
        UserInput::LocalImage { path } | UserInput::LocalAudio { path } => format!("[{path}]"),
        UserInput::Skill { name, .. } | UserInput::Mention { name, .. } => format!("[{name}]"),
    };
    content.iter().map(part).collect::<Vec<_>>().join(" ")
}

fn confirmed(ids: &[String]) -> Result<bool> {
    if !stdin().is_terminal() {
        return Err(UsageError::new("deleting needs --yes without a terminal"));
    }
    let mut out = stdout();
    for id in ids {
        writeln!(out, "{id}")?;
    }
    write!(out, "Delete permanently? [y/N] ")?;
    out.flush()?;
    let mut line = String::new();
    stdin().lock().read_line(&mut line)?;
    Ok(matches!(line.trim(), "y" | "Y" | "yes"))
}

fn export(thread: &Thread, format: Format, output: Option<&Path>) -> Result<()> {
    let mut out: Box<dyn Write> = match output {
        Some(file) => Box::new(File::create(file).with_context(|| format!("cannot write {}", file.display()))?),
        None => Box::new(stdout().lock()),
    };
    match format {
        Format::Markdown => out.write_all(markdown(thread).as_bytes())?,
        Format::Json => {
            serde_json::to_writer_pretty(&mut out, thread)?;
            out.write_all(b"\n")?;
        }
        Format::Rollout => {
            let path = thread.path.as_deref().context("this thread has no rollout")?;
            let mut file = fs::File::open(path).with_context(|| format!("cannot read {path}"))?;
            io::copy(&mut file, &mut out)?;
        }
    }
    Ok(out.flush()?)
}
