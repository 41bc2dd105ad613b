//! The servers under test, and macros that run a test on each.

use std::path::PathBuf;
use std::sync::Arc;

use loomd_client::server::{App, ConfigSources};
use loomd_client::{Client, Endpoint, Options, Program};
use loomd_config::{Overrides, load_or_default};
use loomd_protocol::AbsolutePathBuf;
use loomd_testkit::{Home, Launch};

/// A server program.
#[derive(Clone, Debug)]
pub struct Server(PathBuf);

impl Server {
    pub fn loomd() -> Self {
        Self(env!("CARGO_BIN_EXE_loomd").into())
    }

    /// `None`, with a line on stderr, if the reference is not installed.
    pub fn reference() -> Option<Self> {
        loomd_testkit::reference(env!("CARGO_TARGET_TMPDIR")).map(Self)
    }

    /// The program on stdio, without environment variables that would change its behaviour.
    pub fn program(&self, home: &Home) -> Program {
        let mut program = Program::new(&self.0)
            .arg("app-server")
            .cwd(home.work())
            .env("CODEX_HOME", home.path())
            .env("HOME", home.user())
            .env("RUST_LOG", "warn");
        let proxies = ["ALL_PROXY", "HTTPS_PROXY", "HTTP_PROXY", "all_proxy", "http_proxy", "https_proxy"];
        for name in proxies.into_iter().chain(["CODEX_API_KEY", "LOOMD_HOME", "OPENAI_API_KEY"]) {
            program = program.env_remove(name);
        }
        program
    }

    /// The program as a listener.
    pub fn launch(&self) -> Launch {
        Launch::new(&self.0).args(["app-server"])
    }

    pub async fn connect(&self, home: &Home, options: Options) -> Client {
        Client::connect(self.program(home), options).await.expect("a connection")
    }
}

/// loomd in this process.
pub fn in_process(home: &Home) -> Endpoint {
    let sources = ConfigSources {
        home: AbsolutePathBuf::new(home.path()).unwrap(),
        system_file: None,
        user_home: Some(home.user()),
        flags: Overrides::default(),
        live: loomd_server::LiveSources::default(),
    };
    let start = load_or_default(&sources.request()).expect("a configuration");
    Endpoint::in_process(Arc::new(App::new(sources, &start.loaded, start.warnings)))
}

/// Runs tests that take a [`Server`] on loomd, and on the reference if it is installed.
macro_rules! on_each_server {
    ($($test:ident)*) => {
        crate::servers::on_loomd! { $($test)* }
        crate::servers::on_the_reference! { $($test)* }
    };
}

macro_rules! on_loomd {
    ($($test:ident)*) => {
        mod on_loomd {
            $(
                #[tokio::test]
                async fn $test() {
                    super::$test(crate::servers::Server::loomd()).await;
                }
            )*
        }
    };
}

macro_rules! on_the_reference {
    ($($test:ident)*) => {
        mod on_the_reference {
            $(
                #[tokio::test]
                async fn $test() {
                    if let Some(server) = crate::servers::Server::reference() {
                        super::$test(server).await;
                    }
                }
            )*
        }
    };
}

pub(crate) use {on_each_server, on_loomd, on_the_reference};
