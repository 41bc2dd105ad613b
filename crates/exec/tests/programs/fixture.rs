//! A program for tests: the sandbox's helper when it is called by that name, one that tries to get out of a
//! sandbox, or the owner of a command, to be killed while the command runs.

#[cfg(target_os = "linux")]
mod attempt;

use std::path::Path;

use loomd_exec::sandbox::{Sandbox, Surroundings};
use loomd_exec::{Command, Environment, Limits, run};
use loomd_protocol::SandboxPolicy;
use tokio_util::sync::CancellationToken;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    loomd_exec::run_if_helper();
    let mut argv: Vec<String> = std::env::args().skip(1).collect();
    #[cfg(target_os = "linux")]
    if argv.first().is_some_and(|word| word == "--attempt") {
        return Ok(attempt::attempt(&argv[1..])?);
    }
    let sandboxed = argv.first().is_some_and(|word| word == "--sandboxed");
    argv.drain(..usize::from(sandboxed));
    let mut command = Command::new(argv, "/", Environment::of_this_process());
    if sandboxed {
        let policy = SandboxPolicy::WorkspaceWrite {
            writable_roots: vec![],
            read_only_access: Default::default(),
            network_access: false,
            exclude_tmpdir_env_var: true,
            exclude_slash_tmp: false,
        };
        let surroundings = Surroundings::new(Path::new("/tmp"));
        command = Sandbox::new(&policy, surroundings).ok_or("no sandbox")?.wrap(&command, None)?;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let limits = Limits { timeout: None, ..Limits::default() };
    runtime.block_on(run(&command, limits, &CancellationToken::new(), |_, _| {}))?;
    Ok(())
}
