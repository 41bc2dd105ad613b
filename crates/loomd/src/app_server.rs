//! `loomd app-server`: runs a server from the command line.

use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::{Context, Result};
use loomd_server::auth::Policy;
use loomd_server::{ConsoleRequest, ListenUrl};
use tokio::io::AsyncWriteExt;

use crate::cli::{self, AppServer, Tool};
use crate::node::NodeArguments;
use crate::setup::{Setup, home, runtime};
use crate::{config, generate, logging, memory};

pub fn run(top: cli::TopOverrides, arguments: AppServer) -> Result<()> {
    match arguments.tool {
        Some(Tool::GenerateTs { out, prettier, level, experimental }) => {
            generate::ts(&out, prettier.as_deref(), level, experimental)
        }
        Some(Tool::GenerateJsonSchema { out, level, experimental }) => generate::json_schema(&out, level, experimental),
        Some(Tool::Proxy { sock }) => proxy(sock),
        None => serve(top, arguments),
    }
}

fn serve(top: cli::TopOverrides, arguments: AppServer) -> Result<()> {
    let listen = if arguments.stdio { ListenUrl::Stdio } else { arguments.listen };
    let policy = loomd_server::auth::Flags::from(arguments.auth).policy()?;
    let console = arguments.console.then(|| ConsoleRequest {
        origins: arguments.console_origin,
        on_ready: Box::new(|link| _ = writeln!(io::stderr(), "  console: {link}")),
        quiet: false,
    });
    serve_at(&top.with(arguments.overrides), listen, policy, console, arguments.node)
}

/// Serves clients until the end of stdin or a signal.
pub fn serve_at(
    overrides: &cli::Overrides,
    listen: ListenUrl,
    policy: Policy,
    console: Option<ConsoleRequest>,
    node: NodeArguments,
) -> Result<()> {
    let setup = Setup { node, ..Setup::new(overrides)? };
    config::print_flag_warnings(&setup);
    memory::start_trimming();
    logging::init();
    // Each client, process and watch takes file descriptors; the default soft limit is too low for many of them.
    loomd_exec::raise_file_limit();
    if listen == ListenUrl::Stdio {
        widen_stdout();
    }
    let runtime = runtime()?;
    let served: Result<()> =
        runtime.block_on(async { Ok(loomd_server::serve(setup.app().await?, listen, policy, console).await?) });
    // A thread may still be blocked reading stdin; it ends with the process.
    runtime.shutdown_background();
    served
}

/// Capacity of the stdout pipe. With the default of 64 KiB, writer and reader wake each other a hundred times for a
/// long history. The kernel takes memory for what is in the pipe, not for its capacity.
const STDOUT_PIPE: usize = 1 << 20;

/// Sets the capacity of stdout. Does nothing if stdout is no pipe or the user's limit of pipe pages is reached.
fn widen_stdout() {
    #[cfg(target_os = "linux")]
    {
        _ = rustix::pipe::fcntl_setpipe_size(io::stdout(), STDOUT_PIPE);
    }
}

/// Copies stdin to the socket and the socket to stdout. The end of stdin closes the writing side of the socket; the
/// end of the socket ends the process.
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
            // The server closed before it had read everything.
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => {}
            copied => _ = copied?,
        }
        Ok(stdout.flush().await?)
    });
    // Stdin may still be open, and the thread that reads it cannot be woken.
    runtime.shutdown_background();
    done
}
