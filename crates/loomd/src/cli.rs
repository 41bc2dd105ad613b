//! The command line.

use std::fmt;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use loomd_server::ListenUrl;
use loomd_server::auth;

use crate::{doctor, exec, replay, run, threads};

/// An agent server for the app-server protocol.
#[derive(Parser)]
#[command(name = "loomd", version)]
pub struct Cli {
    #[command(flatten)]
    pub overrides: TopOverrides,
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand)]
pub enum Command {
    /// Serve clients over stdio, a websocket or a unix socket
    AppServer(Box<AppServer>),
    /// List the providers that can be used here, and their models
    Models,
    /// Run one turn from the terminal
    Run(Box<run::Run>),
    /// Run one turn for a program, such as the TypeScript SDK
    Exec(Box<exec::Exec>),
    /// Look at threads, and tidy them up
    Threads(threads::Threads),
    /// Run a stored thread again, with what was recorded of it, and report the first difference
    Replay(replay::Replay),
    /// Find out what is configured, what the sandbox can enforce, and whether the model answers
    Doctor(doctor::Doctor),
    /// About the configuration file
    Config {
        #[command(subcommand)]
        tool: ConfigTool,
    },
}

#[derive(Subcommand)]
pub enum ConfigTool {
    /// Print the JSON Schema of config.toml
    Schema,
}

/// A command line that can be parsed and still makes no sense.
#[derive(Debug)]
pub struct UsageError(String);

impl UsageError {
    #[allow(clippy::new_ret_no_self, reason = "it is only ever an error")]
    pub fn new(problem: impl Into<String>) -> anyhow::Error {
        anyhow::Error::new(Self(problem.into()))
    }
}

impl fmt::Display for UsageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for UsageError {}

/// Changes to the configuration, as any level of the command line takes them.
#[derive(Args, Clone, Default)]
pub struct Overrides {
    /// Set a configuration value: a dotted path, and a value in TOML or else taken as it is
    #[arg(short = 'c', long = "config", value_name = "KEY=VALUE")]
    pub config: Vec<String>,
    /// Turn a feature on
    #[arg(long, value_name = "FEATURE")]
    pub enable: Vec<String>,
    /// Turn a feature off
    #[arg(long, value_name = "FEATURE")]
    pub disable: Vec<String>,
}

/// Changes that only the program itself takes, before its subcommand: shorter names for common keys.
#[derive(Args, Clone, Default)]
pub struct TopOverrides {
    #[command(flatten)]
    pub overrides: Overrides,
    /// The model to use
    #[arg(short, long)]
    pub model: Option<String>,
    /// The profile of config.toml to use
    #[arg(short, long)]
    pub profile: Option<String>,
    /// The sandbox for commands
    #[arg(short, long, value_name = "MODE", value_parser = ["read-only", "workspace-write", "danger-full-access"])]
    pub sandbox: Option<String>,
    /// When to ask for approval
    #[arg(short, long, value_name = "POLICY", value_parser = ["untrusted", "on-failure", "on-request", "never"])]
    pub ask_for_approval: Option<String>,
    #[command(flatten)]
    _unused: IgnoredFlags,
}

/// Flags of other programs with this protocol. They mean nothing to a server and are accepted, so that
/// whoever starts one need not know which it is.
#[derive(Args, Clone, Default)]
struct IgnoredFlags {
    #[arg(long, hide = true)]
    search: bool,
    #[arg(long, hide = true)]
    oss: bool,
    #[arg(long, hide = true)]
    full_auto: bool,
    #[arg(long, hide = true)]
    no_alt_screen: bool,
    #[arg(long, hide = true, alias = "yolo")]
    dangerously_bypass_approvals_and_sandbox: bool,
    #[arg(short = 'C', long, hide = true)]
    cd: Option<PathBuf>,
    #[arg(long, hide = true)]
    add_dir: Vec<PathBuf>,
    #[arg(short, long, hide = true)]
    image: Vec<PathBuf>,
    #[arg(long, hide = true)]
    local_provider: Option<String>,
}

impl TopOverrides {
    /// Everything that was said, in one: later levels of the command line win.
    pub fn with(self, later: Overrides) -> Overrides {
        let mut all = Overrides::default();
        let named = [
            ("model", self.model),
            ("profile", self.profile),
            ("sandbox_mode", self.sandbox),
            ("approval_policy", self.ask_for_approval),
        ];
        all.config.extend(named.into_iter().filter_map(|(key, value)| Some(format!("{key}={}", quoted(&value?)))));
        for level in [self.overrides, later] {
            all.config.extend(level.config);
            all.enable.extend(level.enable);
            all.disable.extend(level.disable);
        }
        all
    }
}

/// As a TOML string: a model called `5` stays a name.
fn quoted(text: &str) -> String {
    format!("{text:?}")
}

#[derive(Args)]
pub struct AppServer {
    #[command(subcommand)]
    pub tool: Option<Tool>,
    #[command(flatten)]
    pub overrides: Overrides,
    /// Where clients connect: `stdio://`, `ws://IP:PORT`, `unix://PATH`, or `off`
    #[arg(long, value_name = "URL", default_value = "stdio://")]
    pub listen: ListenUrl,
    /// The same as `--listen stdio://`
    #[arg(long, conflicts_with = "listen")]
    pub stdio: bool,
    /// Accepted; nothing is collected
    #[arg(long)]
    pub analytics_default_enabled: bool,
    #[command(flatten)]
    pub auth: Auth,
}

#[derive(Args)]
pub struct Auth {
    /// How websocket clients prove that they may connect
    #[arg(long = "ws-auth", value_name = "MODE")]
    mode: Option<AuthMode>,
    /// The file that holds the capability token
    #[arg(long = "ws-token-file", value_name = "PATH")]
    token_file: Option<PathBuf>,
    /// The SHA-256 of the capability token, in place of the file
    #[arg(long = "ws-token-sha256", value_name = "HEX")]
    token_sha256: Option<String>,
    /// The file that holds the key of signed tokens
    #[arg(long = "ws-shared-secret-file", value_name = "PATH")]
    shared_secret_file: Option<PathBuf>,
    /// The issuer that signed tokens must name
    #[arg(long = "ws-issuer", value_name = "ISSUER")]
    issuer: Option<String>,
    /// The audience that signed tokens must name
    #[arg(long = "ws-audience", value_name = "AUDIENCE")]
    audience: Option<String>,
    /// How far clocks may differ when signed tokens are checked [default: 30]
    #[arg(long = "ws-max-clock-skew-seconds", value_name = "SECONDS")]
    max_clock_skew_seconds: Option<u64>,
    /// Let every websocket client in that can connect, also those of other users and, beyond the loopback, other
    /// machines
    #[arg(long)]
    allow_unauthenticated: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum AuthMode {
    CapabilityToken,
    SignedBearerToken,
}

impl From<Auth> for auth::Flags {
    fn from(auth: Auth) -> Self {
        Self {
            mode: auth.mode.map(|mode| match mode {
                AuthMode::CapabilityToken => auth::Mode::CapabilityToken,
                AuthMode::SignedBearerToken => auth::Mode::SignedBearerToken,
            }),
            token_file: auth.token_file,
            token_sha256: auth.token_sha256,
            shared_secret_file: auth.shared_secret_file,
            issuer: auth.issuer,
            audience: auth.audience,
            max_clock_skew_seconds: auth.max_clock_skew_seconds,
            allow_unauthenticated: auth.allow_unauthenticated,
        }
    }
}

#[derive(Subcommand)]
pub enum Tool {
    /// Write the protocol's TypeScript types
    GenerateTs {
        /// The folder to write to; it is created
        #[arg(short, long, value_name = "DIR")]
        out: PathBuf,
        /// Format the files with this prettier
        #[arg(short, long, value_name = "PRETTIER_BIN")]
        prettier: Option<PathBuf>,
        /// With what needs the experimentalApi capability
        #[arg(long)]
        experimental: bool,
    },
    /// Write the protocol's JSON Schemas
    GenerateJsonSchema {
        /// The folder to write to; it is created
        #[arg(short, long, value_name = "DIR")]
        out: PathBuf,
        /// With what needs the experimentalApi capability
        #[arg(long)]
        experimental: bool,
    },
    /// Connect stdin and stdout to the unix socket of a running server
    Proxy {
        /// The socket [default: the one in the home folder]
        #[arg(long, value_name = "PATH")]
        sock: Option<PathBuf>,
    },
}
