//! A program for tests: the sandbox's helper when it is called by that name, one that tries to get out of a
//! sandbox, or the owner of a command, to be killed while the command runs.

mod attempt;

use std::path::Path;

use loomd_exec::sandbox::{Sandbox, Surroundings};
use loomd_exec::{Command, Environment, Limits, run};
use loomd_protocol::{ReadOnlyAccess, SandboxPolicy};
use tokio_util::sync::CancellationToken;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    loomd_exec::sandbox::run_if_helper();
    let argv: Vec<String> = std::env::args().skip(1).collect();
    if argv.first().is_some_and(|first| first == "--attempt") {
        return Ok(attempt::attempt(&argv[1..])?);
    }
    let confined = argv.first().is_some_and(|first| first == "--confined");
    let argv = argv.into_iter().skip(usize::from(confined));
    let mut command = Command::new(argv, "/", Environment::of_this_process());
    if confined {
        let policy = SandboxPolicy::ReadOnly { access: ReadOnlyAccess::FullAccess, network_access: false };
        let sandbox = Sandbox::new(&policy, Surroundings { cwd: Path::new("/"), tmpdir: None });
        command = sandbox.ok_or("nothing to confine")?.wrap(&command, None)?;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let limits = Limits { timeout: None, ..Limits::default() };
    runtime.block_on(run(&command, limits, &CancellationToken::new(), |_, _| {}))?;
    Ok(())
}
