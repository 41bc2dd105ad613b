//! [`Launch`]: starts the program under test with a home, arguments and environment.

use std::ffi::OsString;
use std::path::PathBuf;

use tokio::process::Command;

use crate::{Home, Server, WsServer};

/// Environment variables of the test that would change the behaviour of the server.
const REMOVED: &[&str] = &[
    "ALL_PROXY",
    "CODEX_API_KEY",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "LOOMD_HOME",
    "LOOMD_RECORD",
    "LOOMD_SCENARIO",
    "OPENAI_API_KEY",
    "all_proxy",
    "http_proxy",
    "https_proxy",
];

/// A program and its arguments; can start any number of servers.
#[derive(Clone, Debug)]
pub struct Launch {
    program: PathBuf,
    args: Vec<OsString>,
    env: Vec<(OsString, Option<OsString>)>,
    cwd: Option<PathBuf>,
}

impl Launch {
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self { program: program.into(), args: Vec::new(), env: Vec::new(), cwd: None }
    }

    pub fn args<A: Into<OsString>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.env.push((name.into(), Some(value.into())));
        self
    }

    pub fn env_remove(mut self, name: impl Into<OsString>) -> Self {
        self.env.push((name.into(), None));
        self
    }

    /// Sets the working directory, in place of [`Home::work`].
    pub fn cwd(mut self, folder: impl Into<PathBuf>) -> Self {
        self.cwd = Some(folder.into());
        self
    }

    /// Starts a server on stdio.
    pub fn stdio(&self, home: &Home) -> Server {
        Server::spawn(self.command(home))
    }

    /// Starts a server that listens for websockets on a free port.
    pub async fn websocket(&self, home: &Home) -> WsServer {
        self.listen(home, "ws://127.0.0.1:0").await
    }

    /// Starts a server that listens for websockets on a unix socket.
    pub async fn unix(&self, home: &Home) -> WsServer {
        self.listen(home, &format!("unix://{}", home.socket().display())).await
    }

    /// Starts a server with `--listen url` and waits until it listens.
    pub async fn listen(&self, home: &Home, url: &str) -> WsServer {
        self.try_listen(home, url).await.unwrap_or_else(|reason| panic!("{reason}"))
    }

    /// Like [`listen`](Self::listen), for a server that may refuse to start. The error has the end of its stderr.
    pub async fn try_listen(&self, home: &Home, url: &str) -> Result<WsServer, String> {
        let mut command = self.command(home);
        command.args(["--listen", url]);
        WsServer::spawn(command, url).await
    }

    fn command(&self, home: &Home) -> Command {
        let program = &self.program;
        // A bare name is looked up in `PATH`.
        assert!(
            program.components().count() == 1 || program.exists(),
            "the program under test does not exist: {program:?}"
        );
        let mut command = Command::new(program);
        command.args(&self.args).current_dir(self.cwd.clone().unwrap_or_else(|| home.work()));
        for name in REMOVED {
            command.env_remove(name);
        }
        command.env("CODEX_HOME", home.path()).env("HOME", home.user()).env("RUST_LOG", "warn");
        for (name, value) in &self.env {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command
    }
}
