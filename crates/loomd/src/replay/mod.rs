//! `loomd replay`: runs a stored thread again, in a folder of its own, with what the model answered and what tools
//! gave back taken from its file, and reports where the agent now does something else.

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
use loomd_server::replay::{Aside, Part, Replayed, Script, Turn, compare};
use tempfile::TempDir;
use tokio::time::timeout;

use crate::cli::{Overrides, TopOverrides, UsageError};
use crate::find::find;
use crate::run::{self, Color, Screen};
use crate::setup::{Setup, block_on, close_client};
use report::ReplayReport;

/// A replayed turn waits for nothing but itself, and for the pauses between failed calls of a recording.
const IDLE_TIMEOUT: Duration = Duration::from_secs(150);

/// How often an answer that broke off is asked for again, where the thread's own file does not say how often it was.
const RETRIES: u64 = 100;

/// What holds in every project; the replay reads it where it works.
const HOME_DOCS: [&str; 2] = ["AGENTS.override.md", "AGENTS.md"];

#[derive(Args)]
#[command(after_help = "Exit status: 0 when nothing differs, 1 when something does, 2 when it cannot be replayed.")]
pub struct Replay {
    /// The thread: its id, the beginning of its id, its name, or `last`
    pub thread: String,
    /// Take the model's answers from a recording of the thread (see LOOMD_RECORD), which has more of them
    #[arg(long, value_name = "FILE")]
    pub recording: Option<PathBuf>,
    /// Leave aside what the model is told of its situation: permissions, the folder, AGENTS.md
    #[arg(long)]
    pub without_situation: bool,
    /// One JSON object
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
        let aside = Aside { situation: arguments.without_situation, home: (text(&replay_home.home), text(&home)) };
        let replayed = Replayed::new(&script, aside.clone());
        let scenario = recording.as_deref().unwrap_or(&script.scenario);
        let scenario = Scenario::of_thread(scenario, &script.meta.id.to_string());
        let replay = loomd_server::Replay {
            home: replay_home.home.clone(),
            replayed: replayed.clone(),
            scenario: scenario.map_err(|problem| UsageError::new(format!("the recording cannot be played: {problem}")))?,
            retries: recording.is_none().then_some(RETRIES),
        };
        let options = run::options("loomd-replay").experimental_api(true);
        let (client, events) = setup.replay(replay, options).await?;
        // Nobody reads them.
        drop(events);
        let report = play(&client, script, &replayed, &replay_home, &aside).await;
        close_client(&client).await;
        report
    })
}

/// The file of a thread.
async fn rollout_path(setup: Setup, name: &str, cwd: &str) -> Result<PathBuf> {
    let (client, events) = setup.connect(run::options("loomd-replay")).await?;
    drop(events);
    let found = async {
        let id = find(&client, name, Some(cwd)).await?;
        let thread = client.read_thread(&id, false).await?;
        thread.path.map(PathBuf::from).context("this thread has no file")
    };
    let found = found.await;
    close_client(&client).await;
    found
}

/// Where a replay takes place: a home that is gone afterwards, and the thread's file in it.
struct ReplayHome {
    home: PathBuf,
    file: PathBuf,
    _folder: TempDir,
}

impl ReplayHome {
    fn new(home: &Path, rollout: &Path) -> Result<Self> {
        let folder = TempDir::with_prefix("loomd-replay-").context("no temporary folder can be made")?;
        let replay_home = folder.path().canonicalize()?;
        for name in HOME_DOCS {
            if home.join(name).is_file() {
                fs::copy(home.join(name), replay_home.join(name))?;
            }
        }
        let file = replay_home.join(rollout.file_name().context("a rollout has a name")?);
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
    replayed: &Replayed,
    replay_home: &ReplayHome,
    aside: &Aside,
) -> Result<ReplayReport> {
    let parts = std::mem::take(&mut script.parts);
    let mut report = ReplayReport::new(&script.meta.id.to_string());
    let mut numbers = Vec::new();
    let mut thread = None;
    for part in parts {
        match part {
            Part::Copied(copied) => {
                replay_home.append(&script.text(&copied))?;
                if let Some((turn, why)) = copied.turn {
                    report.copied(turn, why);
                }
            }
            Part::Turn(turn) => {
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
    let shown = compare(script.meta.id, script.rollout(), &now, aside, number);
    // What is told is noticed at once; what is shown only in the end, but it may have come before.
    report.difference = match (report.difference.take(), shown) {
        (Some(told), Some(shown)) => Some(if shown.turn < told.turn { shown } else { told }),
        (told, shown) => told.or(shown),
    };
    Ok(report)
}

/// Takes up what has been copied so far.
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
        // Its provider may be configured no more, and is not called anyway.
        Err(_) => client.resume_thread(params(None)).await?,
    };
    let events = thread.events();
    Ok((thread, events))
}

async fn run_turn(thread: &Thread, events: &mut Events, replayed: &Replayed, turn: Turn) -> Result<()> {
    let (params, number) = (turn.params(thread.id().to_owned()), turn.number);
    replayed.begin(turn);
    match params {
        Some(params) => _ = thread.client().turn_start(params).await?,
        // The only other thing that is replayed.
        None => thread.compact().await?,
    }
    loop {
        match timeout(IDLE_TIMEOUT, events.next()).await {
            Ok(Some(event)) => {
                if let Some(ServerNotification::TurnCompleted(_)) = event?.notification() {
                    return Ok(());
                }
            }
            Ok(None) => bail!("the server is gone"),
            Err(_) => bail!("turn {number} does not come to its end"),
        }
    }
}

fn read(file: &Path) -> Result<String> {
    fs::read_to_string(file).map_err(|error| UsageError::new(format!("cannot read {}: {error}", file.display())))
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
