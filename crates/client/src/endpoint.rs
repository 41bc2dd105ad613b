//! [`Endpoint`]: where a server is, or how to spawn one.

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use loomd_protocol::Secret;

use crate::error::ConnectError;
use crate::transport::{self, Transport};

/// A server to connect to, also again after the connection was lost.
#[derive(Clone)]
#[non_exhaustive]
pub enum Endpoint {
    /// A program to spawn, on its stdin and stdout; it ends with the connection.
    Program(Program),
    /// A websocket listener on a TCP port.
    Websocket(Websocket),
    /// A websocket listener on a unix socket.
    Unix(PathBuf),
    /// A server in this process.
    #[cfg(feature = "in-process")]
    InProcess(Arc<loomd_server::App>),
    /// Anything else.
    Custom(Custom),
}

impl Endpoint {
    /// A program that serves on its stdin and stdout when it is called with `app-server`.
    pub fn spawn(program: impl Into<PathBuf>) -> Self {
        Self::Program(Program::new(program).arg("app-server"))
    }

    /// A websocket listener without authentication, at `ws://` or `wss://`. [`Websocket`] has further options.
    pub fn websocket(url: impl Into<String>) -> Self {
        Self::Websocket(Websocket::new(url))
    }

    pub fn unix(path: impl Into<PathBuf>) -> Self {
        Self::Unix(path.into())
    }

    /// A server in this process. Its sandbox runs this executable as a helper, so `main` must call
    /// [`run_if_helper`](loomd_server::run_if_helper) first.
    #[cfg(feature = "in-process")]
    pub fn in_process(app: Arc<loomd_server::App>) -> Self {
        Self::InProcess(app)
    }

    /// A custom transport; `open` is called for every connection.
    pub fn custom<F>(open: impl Fn() -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = io::Result<Transport>> + Send + 'static,
    {
        Self::Custom(Custom(Arc::new(move || Box::pin(open()))))
    }

    pub(crate) async fn open(&self) -> Result<Transport, ConnectError> {
        match self {
            Self::Program(program) => Ok(transport::spawn(program)?),
            Self::Websocket(websocket) => transport::open_url(websocket).await,
            Self::Unix(path) => transport::open_unix(path).await,
            #[cfg(feature = "in-process")]
            Self::InProcess(app) => Ok(transport::serve(app)),
            Self::Custom(custom) => Ok((custom.0)().await?),
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Program(program) => write!(f, "{}", program.path.display()),
            Self::Websocket(websocket) => f.write_str(&websocket.url),
            Self::Unix(path) => write!(f, "unix://{}", path.display()),
            #[cfg(feature = "in-process")]
            Self::InProcess(_) => f.write_str("the server in this process"),
            Self::Custom(_) => f.write_str("the server"),
        }
    }
}

impl From<Program> for Endpoint {
    fn from(program: Program) -> Self {
        Self::Program(program)
    }
}

impl From<Websocket> for Endpoint {
    fn from(websocket: Websocket) -> Self {
        Self::Websocket(websocket)
    }
}

/// A program to spawn, with arguments, environment and working directory.
#[derive(Clone, PartialEq, Eq)]
pub struct Program {
    pub(crate) path: PathBuf,
    pub(crate) args: Vec<OsString>,
    pub(crate) env: Vec<(OsString, Option<OsString>)>,
    pub(crate) cwd: Option<PathBuf>,
    pub(crate) inherits_stderr: bool,
    pub(crate) close_grace: Duration,
}

impl Program {
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            args: Vec::new(),
            env: Vec::new(),
            cwd: None,
            inherits_stderr: false,
            close_grace: transport::CLOSE_GRACE,
        }
    }

    pub fn arg(mut self, arg: impl Into<OsString>) -> Self {
        self.args.push(arg.into());
        self
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

    /// Sets the working directory.
    pub fn cwd(mut self, folder: impl Into<PathBuf>) -> Self {
        self.cwd = Some(folder.into());
        self
    }

    /// Leaves stderr to this process, in place of logging it and keeping the end of it for
    /// [`Disconnect`](crate::Disconnect).
    pub fn inherit_stderr(mut self) -> Self {
        self.inherits_stderr = true;
        self
    }

    /// How long the program may take to exit after the client has closed its stdin, before it is killed; 10 seconds
    /// by default.
    pub fn close_grace(mut self, grace: Duration) -> Self {
        self.close_grace = grace;
        self
    }
}

/// Leaves out the values of environment variables, which may be secrets.
impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let env: Vec<_> = self.env.iter().map(|(name, _)| name).collect();
        f.debug_struct("Program")
            .field("path", &self.path)
            .field("args", &self.args)
            .field("env", &env)
            .field("cwd", &self.cwd)
            .field("inherits_stderr", &self.inherits_stderr)
            .field("close_grace", &self.close_grace)
            .finish()
    }
}

/// The URL of a websocket listener, with token and root certificates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Websocket {
    pub(crate) url: String,
    pub(crate) token: Option<Secret>,
    /// Additional root certificates, as PEM text.
    pub(crate) roots: Vec<Vec<u8>>,
}

impl Websocket {
    /// `ws://HOST:PORT`, or `wss://HOST:PORT` for TLS.
    pub fn new(url: impl Into<String>) -> Self {
        Self { url: url.into(), token: None, roots: Vec::new() }
    }

    /// Sets the token of `Authorization: Bearer …`.
    pub fn bearer(mut self, token: impl Into<String>) -> Self {
        self.token = Some(Secret::from(token.into()));
        self
    }

    /// Trusts the certificates in this PEM text in addition to the built-in and the system's roots.
    pub fn root_certificate(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.roots.push(pem.into());
        self
    }
}

type Opening = Pin<Box<dyn Future<Output = io::Result<Transport>> + Send>>;

/// See [`Endpoint::custom`].
#[derive(Clone)]
pub struct Custom(Arc<dyn Fn() -> Opening + Send + Sync>);
