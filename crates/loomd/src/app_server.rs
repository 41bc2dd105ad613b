//! `loomd app-server`: from the command line to a running server.

use std::env;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result, anyhow};
use loomd_config::{Loaded, OverrideError, Overrides, find_home, load_or_default, system_file};
use loomd_protocol::{AbsolutePathBuf, ConfigWarningNotification};
use loomd_server::{App, Cloud, ConfigSources, ListenUrl, LiveSources};
use tokio::io::AsyncWriteExt;
use tokio::runtime::{Builder, Runtime};

use crate::cli::{self, AppServer, Tool};
use crate::{generate, logging, memory};

/// Turns are mostly waiting; more threads than this only cost memory.
const MAX_WORKERS: usize = 8;

pub fn run(top: cli::TopOverrides, arguments: AppServer) -> Result<()> {
    match arguments.tool {
        Some(Tool::GenerateTs { out, prettier, experimental }) => generate::ts(&out, prettier.as_deref(), experimental),
        Some(Tool::GenerateJsonSchema { out, experimental }) => generate::json_schema(&out, experimental),
        Some(Tool::Proxy { sock }) => proxy(sock),
        None => serve(top, arguments),
    }
}

fn serve(top: cli::TopOverrides, arguments: AppServer) -> Result<()> {
    let listen = if arguments.stdio { ListenUrl::Stdio } else { arguments.listen };
    let policy = loomd_server::auth::Flags::from(arguments.auth).policy()?;
    let sources = sources(top.with(arguments.overrides))?;
    let start = load_or_default(&sources.request()).context("error loading default config after config error")?;
    memory::keep_small();
    let warnings = machine_warnings(&start.loaded);
    let cloud = Cloud::new(&sources.home, start.settings.config.chatgpt_base_url());
    logging::init();
    raise_file_limit();
    if listen == ListenUrl::Stdio {
        widen_stdout();
    }
    let runtime = runtime()?;
    if cloud.applies() {
        sources.live.managed.set(runtime.block_on(cloud.load()));
    }
    let app = Arc::new(App::new(sources, &start.loaded, warnings));
    runtime.spawn(cloud.keep_up(Arc::clone(&app)));
    let served = runtime.block_on(loomd_server::serve(app, listen, policy));
    // A thread may still be blocked on stdin; it ends with the process.
    runtime.shutdown_background();
    Ok(served?)
}

/// Where configuration comes from, with what the command line says over it.
pub fn sources(overrides: cli::Overrides) -> Result<ConfigSources> {
    let cli::Overrides { config, enable, disable } = overrides;
    let flags = Overrides::parse(&config, &enable, &disable).map_err(|error| match error {
        unknown @ OverrideError::UnknownFeature(_) => anyhow!(unknown),
        other => anyhow!("error parsing -c overrides: {other}"),
    })?;
    Ok(ConfigSources {
        home: home()?,
        system_file: system_file(|name| env::var_os(name)),
        user_home: env::var_os("HOME").map(PathBuf::from),
        flags,
        live: LiveSources::default(),
    })
}

/// What there is to say that is in no configuration file.
fn machine_warnings(config: &Loaded) -> Vec<ConfigWarningNotification> {
    let set = env::var_os("OPENAI_BASE_URL").is_some_and(|value| !value.is_empty());
    let summary = "The variable OPENAI_BASE_URL is deprecated. Set `openai_base_url` in config.toml instead.";
    let warning = ConfigWarningNotification { summary: summary.into(), details: None, path: None, range: None };
    if set && config.config.openai_base_url.is_none() { vec![warning] } else { Vec::new() }
}

fn home() -> Result<AbsolutePathBuf> {
    Ok(find_home(|name| env::var_os(name))?)
}

pub fn runtime() -> Result<Runtime> {
    let workers = std::thread::available_parallelism().map_or(1, |cores| cores.get().min(MAX_WORKERS));
    Ok(Builder::new_multi_thread().worker_threads(workers).enable_all().build()?)
}

/// Each client, process and watch takes descriptors; the usual soft limit is for small programs.
fn raise_file_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum {
        _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
    }
}

/// Room for a large answer, which then passes in few pieces: with the usual 64 KiB, writer and reader wake each
/// other a hundred times for a long history. The kernel takes memory for what is in the pipe, not for its size.
const STDOUT_PIPE: usize = 1 << 20;

/// Does nothing when stdout is no pipe or the user has no pages left for pipes.
fn widen_stdout() {
    #[cfg(target_os = "linux")]
    {
        _ = rustix::pipe::fcntl_setpipe_size(io::stdout(), STDOUT_PIPE);
    }
}

/// Bytes from stdin to the socket and from the socket to stdout. The end of stdin is passed on; the
/// server's end is the end.
fn proxy(sock: Option<PathBuf>) -> Result<()> {
    let path = match sock {
        Some(path) => path,
        None => home()?.join(loomd_server::CONTROL_SOCKET),
    };
    let runtime = runtime()?;
    let done = runtime.block_on(async {
        let connected = tokio::net::UnixStream::connect(&path).await;
        let stream = connected.with_context(|| format!("failed to connect to socket at {}", path.display()))?;
        let (mut from_server, mut to_server) = stream.into_split();
        tokio::spawn(async move {
            _ = tokio::io::copy(&mut tokio::io::stdin(), &mut to_server).await;
            _ = to_server.shutdown().await;
        });
        let mut stdout = tokio::io::stdout();
        match tokio::io::copy(&mut from_server, &mut stdout).await {
            // The server went away before it had read everything.
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => {}
            copied => _ = copied?,
        }
        Ok(stdout.flush().await?)
    });
    // Stdin may still be open, and the thread that reads it cannot be woken.
    runtime.shutdown_background();
    done
}
