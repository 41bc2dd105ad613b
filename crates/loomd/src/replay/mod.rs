//! `loomd replay`: runs a stored thread again in a temporary home, with the model's answers and the tools' results
//! taken from its rollout, and reports the first difference.

mod report;

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Args;
use loomd_client::protocol::{ServerNotification, ThreadResumeParams};
use loomd_client::{Client, Events, Thread, resume};
use loomd_model::Scenario;
use loomd_server::replay::{CompareOptions, ReplaySession, Script, Segment, Turn, compare};
use tempfile::TempDir;
use tokio::time::timeout;

use crate::cli::{Overrides, TopOverrides, UsageError};
use crate::find::find;
use crate::run::{self, Color, Screen};
use crate::setup::{Setup, block_on, close_client};
use report::ReplayReport;

/// Longest time without an event. A replayed turn waits only for itself and for the pauses between failed calls of a
/// recording.
const IDLE_TIMEOUT: Duration = Duration::from_secs(150);

/// Retries of a broken stream, if the rollout does not record their number.
const RETRIES: u64 = 100;

/// Instructions for all projects; copied to the replay's home.
const HOME_DOCS: [&str; 2] = ["AGENTS.override.md", "AGENTS.md"];

#[derive(Args)]
#[command(after_help = "Exit status: 0 if nothing differs, 1 if something does, 2 if the thread cannot be replayed.")]
pub struct Replay {
    /// The thread: its id, a prefix of its id, its name, or `last`
    pub thread: String,
    /// Take the model's answers from a recording of the thread (see LOOMD_RECORD), which is more complete than the
    /// rollout
    #[arg(long, value_name = "FILE")]
    pub recording: Option<PathBuf>,
    /// Do not compare the context messages about permissions, the folder and AGENTS.md
    #[arg(long)]
    pub without_situation: bool,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub overrides: Overrides,
}

pub fn run(top: TopOverrides, arguments: Replay) -> Result<ExitCode> {
    let json = arguments.json;
    let report = replay(top, arguments).map_err(|error| match error.is::<UsageError>() {
        true => error,
        false => UsageError::new(format!("{error:#}")),
    })?;
    report.print(&mut Screen::stdout(Color::Auto), json)?;
    Ok(match report.difference {
        Some(_) => ExitCode::FAILURE,
        None if report.replayed == 0 => ExitCode::from(2),
        None => ExitCode::SUCCESS,
    })
}

fn replay(top: TopOverrides, arguments: Replay) -> Result<ReplayReport> {
    let cwd = run::folder(None)?;
    let overrides = top.with(arguments.overrides);
    let recording = arguments.recording.as_deref().map(read).transpose()?;
    block_on(async {
        let path = rollout_path(Setup::new(&overrides)?, &arguments.thread, &cwd).await?;
        let rollout = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let script = Script::read(rollout)?;
        let setup = Setup::new(&overrides)?;
        let home = setup.sources.home.to_path_buf();
        let replay_home = ReplayHome::new(&home, &path)?;
        let compare_options =
            CompareOptions { skip_context: arguments.without_situation, home: (text(&replay_home.home), text(&home)) };
        let replayed = ReplaySession::new(&script, compare_options.clone());
        let scenario = recording.as_deref().unwrap_or(&script.scenario);
        let scenario = Scenario::of_thread(scenario, &script.meta.id.to_string());
        let replay = loomd_server::Replay {
            home: replay_home.home.clone(),
            replayed: replayed.clone(),
            scenario: scenario.map_err(|problem| UsageError::new(format!("invalid recording: {problem}")))?,
            retries: recording.is_none().then_some(RETRIES),
        };
        let options = run::options("loomd-replay").experimental_api(true);
        let (client, events) = setup.replay(replay, options).await?;
        // Without a reader, the queue of events would grow.
        drop(events);
        let report = play(&client, script, &replayed, &replay_home, &compare_options).await;
        close_client(&client).await;
        report
    })
}

/// Returns the path of a thread's rollout.
async fn rollout_path(setup: Setup, name: &str, cwd: &str) -> Result<PathBuf> {
    let (client, events) = setup.connect(run::options("loomd-replay")).await?;
    drop(events);
    let found = async {
        let id = find(&client, name, Some(cwd)).await?;
        let thread = client.read_thread(&id, false).await?;
        thread.path.map(PathBuf::from).context("this thread has no rollout")
    };
    let found = found.await;
    close_client(&client).await;
    found
}

/// The temporary home of a replay, with the rollout of the replayed thread.
struct ReplayHome {
    home: PathBuf,
    file: PathBuf,
    _folder: TempDir,
}

impl ReplayHome {
    fn new(home: &Path, rollout: &Path) -> Result<Self> {
        let folder = TempDir::with_prefix("loomd-replay-").context("cannot create a temporary folder")?;
        let replay_home = folder.path().canonicalize()?;
        for name in HOME_DOCS {
            if home.join(name).is_file() {
                fs::copy(home.join(name), replay_home.join(name))?;
            }
        }
        let file = replay_home.join(rollout.file_name().context("the rollout has no file name")?);
        Ok(Self { home: replay_home, file, _folder: folder })
    }

    fn append(&self, lines: &[u8]) -> Result<()> {
        let mut file = OpenOptions::new().append(true).create(true).open(&self.file)?;
        Ok(file.write_all(lines)?)
    }
}

async fn play(
    client: &Client,
    mut script: Script,
    replayed: &ReplaySession,
    replay_home: &ReplayHome,
    compare_options: &CompareOptions,
) -> Result<ReplayReport> {
    let segments = std::mem::take(&mut script.segments);
    let mut report = ReplayReport::new(&script.meta.id.to_string());
    let mut numbers = Vec::new();
    let mut thread = None;
    for segment in segments {
        match segment {
            Segment::Copied(copied) => {
                replay_home.append(&script.text(&copied))?;
                if let Some((turn, why)) = copied.turn {
                    report.copied(turn, why);
                }
            }
            Segment::Turn(turn) => {
                numbers.push((turn.id.clone(), turn.number));
                let (thread, events) = match &mut thread {
                    Some(open) => open,
                    none => none.insert(open(client, &script, replay_home, &turn).await?),
                };
                report.replayed += 1;
                run_turn(thread, events, replayed, *turn).await?;
                report.difference = replayed.end();
                if report.difference.is_some() {
                    break;
                }
            }
        }
    }
    let now = fs::read(&replay_home.file)?;
    let number = |id: &str| numbers.iter().find(|(known, _)| known == id).map(|(_, number)| *number);
    let shown = compare(script.meta.id, script.rollout(), &now, compare_options, number);
    // A difference in the context is found at once, one in the items only at the end, but the latter may be of an
    // earlier turn.
    report.difference = match (report.difference.take(), shown) {
        (Some(told), Some(shown)) => Some(if shown.turn < told.turn { shown } else { told }),
        (told, shown) => told.or(shown),
    };
    Ok(report)
}

/// Resumes the thread from the part copied so far.
async fn open(client: &Client, script: &Script, replay_home: &ReplayHome, first: &Turn) -> Result<(Thread, Events)> {
    let meta = &script.meta;
    let params = |provider: Option<String>| ThreadResumeParams {
        path: Some(text(&replay_home.file)),
        cwd: Some(meta.cwd.clone()),
        model_provider: provider,
        developer_instructions: first.context.as_ref().and_then(|context| context.developer_instructions.clone()),
        exclude_turns: true,
        ..resume(meta.id.to_string())
    };
    let thread = match client.resume_thread(params(meta.model_provider.clone())).await {
        Ok(thread) => thread,
        // Its provider may no longer be configured, and is not called anyway.
        Err(_) => client.resume_thread(params(None)).await?,
    };
    let events = thread.events();
    Ok((thread, events))
}

async fn run_turn(thread: &Thread, events: &mut Events, replayed: &ReplaySession, turn: Turn) -> Result<()> {
    let (params, number) = (turn.params(thread.id().to_owned()), turn.number);
    replayed.begin(turn);
    match params {
        Some(params) => _ = thread.client().turn_start(params).await?,
        // Compaction is the only other task that is replayed.
        None => thread.compact().await?,
    }
    loop {
        match timeout(IDLE_TIMEOUT, events.next()).await {
            Ok(Some(event)) => {
                if let Some(ServerNotification::TurnCompleted(_)) = event?.notification() {
                    return Ok(());
                }
            }
            Ok(None) => bail!("the connection to the server ended"),
            Err(_) => bail!("turn {number} does not end"),
        }
    }
}

fn read(file: &Path) -> Result<String> {
    fs::read_to_string(file).map_err(|error| UsageError::new(format!("cannot read {}: {error}", file.display())))
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
