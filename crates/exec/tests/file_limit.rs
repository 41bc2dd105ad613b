//! The limit of open descriptors, ours and that of the programs we start.

use loomd_exec::{Command, Environment, Limits, raise_file_limit, run};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio_util::sync::CancellationToken;

#[tokio::test]
async fn commands_get_the_descriptor_limit_from_before_it_was_raised() {
    let before = Rlimit { current: Some(200), ..getrlimit(Resource::Nofile) };
    setrlimit(Resource::Nofile, before).unwrap();
    raise_file_limit();
    assert_eq!(getrlimit(Resource::Nofile).current, before.maximum);
    let command = Command::new(["sh", "-c", "ulimit -n"], "/", Environment::of_this_process());
    let done = run(&command, Limits::default(), &CancellationToken::new(), |_, _| {}).await.unwrap();
    assert_eq!(String::from_utf8_lossy(&done.stdout), "200\n");
}
