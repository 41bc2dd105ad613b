//! Evaluations of prompts on real servers: this program spawned, in this process and at a websocket, and the reference
//! if it is installed.

mod examples;
mod limits;
mod mcp;
mod outputs;
mod tools;

use loomd_adapter::protocol::SandboxMode;
use loomd_adapter::{Adapter, Endpoint, Limits, Output, Prompt, Response, Section, Session};
use loomd_testkit::{Home, ScriptedModel};

use crate::servers::{Server, in_process};

/// Where evaluations run.
#[derive(Clone, Debug)]
pub enum Target {
    Spawned(Server),
    InProcess,
}

impl Target {
    fn endpoint(&self, home: &Home) -> Endpoint {
        match self {
            Self::Spawned(server) => server.program(home).into(),
            Self::InProcess => in_process(home),
        }
    }
}

/// A server with a scripted model, a home, and an adapter in its working directory.
struct Setup {
    model: ScriptedModel,
    home: Home,
    adapter: Adapter,
}

async fn setup(target: &Target) -> Setup {
    let model = ScriptedModel::start().await;
    let home = Home::new(&model);
    // The server in this process has the environment of the test.
    let user = home.user().display().to_string();
    let home = home.with(&format!("shell_environment_policy.set.HOME = {user:?}"));
    let adapter = Adapter::new(target.endpoint(&home)).cwd(home.work()).sandbox(SandboxMode::DangerFullAccess);
    Setup { model, home, adapter }
}

fn prompt(task: &str) -> Prompt {
    Prompt::new("test", "task").section(Section::literal("task", "Task", task)).build().unwrap()
}

async fn evaluate<O: Output>(adapter: &Adapter, prompt: &Prompt, session: &mut Session) -> Response<O> {
    adapter.evaluate(prompt, session, Limits::none()).await.unwrap_or_else(|error| panic!("{error:?}"))
}

/// Runs tests that take a [`Target`] on each of them.
macro_rules! on_each_target {
    ($($test:ident)*) => {
        mod spawned {
            $(
                #[tokio::test]
                async fn $test() {
                    super::$test($crate::adapter::Target::Spawned($crate::servers::Server::loomd())).await;
                }
            )*
        }
        mod in_process {
            $(
                #[tokio::test]
                async fn $test() {
                    super::$test($crate::adapter::Target::InProcess).await;
                }
            )*
        }
        mod on_the_reference {
            $(
                #[tokio::test]
                async fn $test() {
                    if let Some(server) = $crate::servers::Server::reference() {
                        super::$test($crate::adapter::Target::Spawned(server)).await;
                    }
                }
            )*
        }
    };
}

pub(crate) use on_each_target;
