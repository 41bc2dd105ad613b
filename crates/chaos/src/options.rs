//! The arguments of the program.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

pub const USAGE: &str = "\
loomd-chaos --program PATH [--seed N] [--minutes M] [--nodes K] [--clients C] [--ttl-ms T] [--files]
    The history test: random clients on K nodes, with kills, pauses, drains, restarts of the database and network cuts.
    With --files one node that keeps its threads in files, without PostgreSQL.
loomd-chaos kills --program PATH [--rounds R] [--seed N] [--ttl-ms T]
    Kills the owner of turns R times, and measures how long it takes another node to take them over.
loomd-chaos figures --program PATH [--threads N] [--seconds S] [--ttl-ms T]
    Memory of idle threads, throughput of 1, 2 and 4 nodes, appends per turn, take-over times, as a table.";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Task {
    History,
    Kills { rounds: usize },
    Figures { threads: usize, seconds: u64 },
}

#[derive(Clone, Debug)]
pub struct Options {
    pub task: Task,
    pub program: PathBuf,
    pub seed: u64,
    pub time: Duration,
    pub nodes: usize,
    pub clients: usize,
    pub session_ttl: Duration,
    /// One node without a database.
    pub files: bool,
}

impl Options {
    pub fn parse(arguments: impl IntoIterator<Item = String>) -> Result<Self> {
        let mut arguments = arguments.into_iter().peekable();
        let name = arguments.next_if(|argument| !argument.starts_with("--"));
        let (mut rounds, mut threads, mut seconds) = (200, 5_000, 20);
        let mut options = Self {
            task: Task::History,
            program: PathBuf::new(),
            seed: fastrand::u64(..1_000_000),
            time: Duration::from_secs(60),
            nodes: 3,
            clients: 6,
            session_ttl: Duration::from_millis(2_000),
            files: false,
        };
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().with_context(|| format!("{argument} needs a value\n{USAGE}"));
            match argument.as_str() {
                "--program" => options.program = PathBuf::from(value()?),
                "--seed" => options.seed = number(&argument, &value()?)?,
                "--minutes" => {
                    let minutes: f64 = number(&argument, &value()?)?;
                    ensure!(minutes > 0.0 && minutes < 100_000.0, "invalid value for --minutes: {minutes}");
                    options.time = Duration::from_secs_f64(minutes * 60.0);
                }
                "--nodes" => options.nodes = number(&argument, &value()?)?,
                "--clients" => options.clients = number(&argument, &value()?)?,
                "--ttl-ms" => options.session_ttl = Duration::from_millis(number(&argument, &value()?)?),
                "--rounds" => rounds = number(&argument, &value()?)?,
                "--threads" => threads = number(&argument, &value()?)?,
                "--seconds" => seconds = number(&argument, &value()?)?,
                "--files" => options.files = true,
                // The default.
                "--postgres" => options.files = false,
                _ => bail!("unknown argument {argument}\n{USAGE}"),
            }
        }
        options.task = match name.as_deref() {
            None => Task::History,
            Some("kills") => Task::Kills { rounds },
            Some("figures") => Task::Figures { threads, seconds },
            Some(name) => bail!("unknown task {name}\n{USAGE}"),
        };
        ensure!(!options.program.as_os_str().is_empty(), "--program is missing\n{USAGE}");
        ensure!((1..=16).contains(&options.nodes), "invalid value for --nodes: expected 1 to 16");
        ensure!((1..=64).contains(&options.clients), "invalid value for --clients: expected 1 to 64");
        ensure!(options.session_ttl >= Duration::from_millis(300), "invalid value for --ttl-ms: expected at least 300");
        ensure!(!options.files || options.task == Task::History, "--files is for the history test");
        if options.files {
            options.nodes = 1;
        }
        // The working directory of nodes is another one.
        options.program = options.program.canonicalize().with_context(|| format!("{}", options.program.display()))?;
        Ok(options)
    }
}

fn number<T: FromStr>(name: &str, text: &str) -> Result<T> {
    text.parse().ok().with_context(|| format!("invalid value for {name}: expected a number, got {text:?}"))
}
