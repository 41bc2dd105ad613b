//! The command line.

use std::fmt;
use std::io::{Write, stderr};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};
use loomd_protocol::Level;
use loomd_server::ListenUrl;
use loomd_server::auth;

use crate::node::NodeArguments;
use crate::{
    account, config, console, demo, doctor, exec, fork, generated_docs, mcp, replay, review, run, skills, threads,
    trust, usage,
};

/// An agent server for clients of the app-server protocol, and its commands for the terminal. Without a command it starts
/// a chat at a terminal
#[derive(Parser)]
#[command(name = "loomd", version)]
pub struct Cli {
    #[command(flatten)]
    pub overrides: TopOverrides,
    /// Without one, a chat at a terminal.
    #[command(subcommand)]
    pub command: Option<Command>,
}

fn level(version: &str) -> Result<Level, String> {
    Level::of_version(version).ok_or_else(|| format!("`{version}` is not a version such as {}", Level::LATEST))
}

/// Prints the help, as for every missing argument.
pub fn missing_command() -> ExitCode {
    let mut command = Cli::command();
    _ = write!(stderr(), "{}", command.render_help());
    ExitCode::from(2)
}

#[derive(Subcommand)]
pub enum Command {
    /// Serve clients over stdio, a websocket or a unix socket
    AppServer(Box<AppServer>),
    /// Serve a web page for people: threads, turns, approvals and changes
    Console(Box<console::Console>),
    /// List the usable providers and their models
    Models,
    /// Run one turn from the terminal
    Run(Box<run::Run>),
    /// Review uncommitted changes, a branch or a commit
    Review(Box<review::Review>),
    /// Start a thread with the history of another
    Fork(Box<fork::Fork>),
    /// Run a scripted turn of the built-in rehearsal model in a temporary folder; no key, no network
    Demo(demo::Demo),
    /// Run one turn for a program, such as the TypeScript SDK
    Exec(Box<exec::Exec>),
    /// List, show, name, archive, delete and export threads
    Threads(threads::Threads),
    /// List skills
    Skills(skills::Skills),
    /// Prepare and check a database that several servers share, and move threads in and out of it
    #[cfg(feature = "postgres")]
    Store(crate::store::Store),
    /// List the nodes that share a database
    #[cfg(feature = "postgres")]
    Nodes(crate::store::Nodes),
    /// Run a stored thread again with its recorded answers and tool results, and report the first difference
    Replay(replay::Replay),
    /// List, add, remove and log in to MCP servers
    Mcp(mcp::Mcp),
    /// Check the configuration, the sandbox, the MCP servers and whether the model answers
    Doctor(doctor::Doctor),
    /// Sign in to OpenAI
    Login(account::Login),
    /// Sign out, and delete the stored credentials
    Logout(account::Logout),
    /// Print the account that is signed in
    Whoami(account::Whoami),
    /// Print what model calls used and cost
    Usage(usage::Usage),
    /// Print, change and check config.toml
    Config(config::Config),
    /// Trust a project, so that its configuration applies and commands may write to it
    Trust(trust::Trust),
    /// Print a completion script for a shell
    Completions(generated_docs::Completions),
    /// Write the man pages
    #[command(hide = true)]
    Man(generated_docs::Man),
}

/// An invalid combination of arguments that clap does not check; exits with status 2.
#[derive(Debug)]
pub struct UsageError(String);

impl UsageError {
    #[allow(clippy::new_ret_no_self, reason = "only used as an error")]
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

/// Configuration overrides that every level of the command line accepts.
#[derive(Args, Clone, Default)]
pub struct Overrides {
    /// Set a configuration value: a dotted key, and a value as TOML or else as a string
    #[arg(short = 'c', long = "config", value_name = "KEY=VALUE")]
    pub config: Vec<String>,
    /// Enable a feature
    #[arg(long, value_name = "FEATURE")]
    pub enable: Vec<String>,
    /// Disable a feature
    #[arg(long, value_name = "FEATURE")]
    pub disable: Vec<String>,
}

/// Overrides before the subcommand: short names for common keys.
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
    /// When to request approval
    #[arg(short, long, value_name = "POLICY", value_parser = ["untrusted", "on-failure", "on-request", "never"])]
    pub ask_for_approval: Option<String>,
    #[command(flatten)]
    _unused: IgnoredFlags,
}

/// Flags of other programs with this protocol. They have no effect here and are accepted so that a caller can start
/// either program with the same command line.
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
    /// The folder of a chat.
    pub fn cd(&self) -> Option<&Path> {
        self._unused.cd.as_deref()
    }

    /// Merges all overrides; later levels of the command line win.
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

/// Quotes a text as a TOML string, so that a model named `5` stays a string.
fn quoted(text: &str) -> String {
    format!("{text:?}")
}

#[derive(Args)]
pub struct AppServer {
    #[command(subcommand)]
    pub tool: Option<Tool>,
    #[command(flatten)]
    pub overrides: Overrides,
    /// Where clients connect: `stdio://`, `ws://IP:PORT`, `unix://PATH`, `fd://` (a socket that a service manager passes), or `off`
    #[arg(long, value_name = "URL", default_value = "stdio://")]
    pub listen: ListenUrl,
    /// The same as `--listen stdio://`
    #[arg(long, conflicts_with = "listen")]
    pub stdio: bool,
    /// Also serve the console, a web page for people, and print a link to it; needs `--listen ws://IP:PORT`
    #[arg(long)]
    pub console: bool,
    /// A further origin under which browsers reach the console, such as that of a proxy that adds TLS
    #[arg(long, value_name = "URL", requires = "console")]
    pub console_origin: Vec<loomd_console::Origin>,
    /// Accepted; loomd collects no analytics
    #[arg(long)]
    pub analytics_default_enabled: bool,
    #[command(flatten)]
    pub auth: Auth,
    #[command(flatten)]
    pub node: NodeArguments,
}

#[derive(Args)]
pub struct Auth {
    /// How websocket clients authenticate
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
    /// The issuer that signed tokens must have
    #[arg(long = "ws-issuer", value_name = "ISSUER")]
    issuer: Option<String>,
    /// The audience that signed tokens must have
    #[arg(long = "ws-audience", value_name = "AUDIENCE")]
    audience: Option<String>,
    /// The largest accepted clock difference for signed tokens, in seconds [default: 30]
    #[arg(long = "ws-max-clock-skew-seconds", value_name = "SECONDS")]
    max_clock_skew_seconds: Option<u64>,
    /// Accept every websocket client without authentication, including those of other users and, beyond the loopback,
    /// of other machines
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
        /// The output folder; it is created
        #[arg(short, long, value_name = "DIR")]
        out: PathBuf,
        /// Format the files with this prettier
        #[arg(short, long, value_name = "PRETTIER_BIN")]
        prettier: Option<PathBuf>,
        /// The release to describe: 0.118.0 or 0.166.0; other versions count as one of them
        #[arg(long, value_name = "VERSION", default_value_t = Level::LATEST, value_parser = level)]
        level: Level,
        /// Include what needs the experimentalApi capability
        #[arg(long)]
        experimental: bool,
    },
    /// Write the protocol's JSON Schemas
    GenerateJsonSchema {
        /// The output folder; it is created
        #[arg(short, long, value_name = "DIR")]
        out: PathBuf,
        /// The release to describe: 0.118.0 or 0.166.0; other versions count as one of them
        #[arg(long, value_name = "VERSION", default_value_t = Level::LATEST, value_parser = level)]
        level: Level,
        /// Include what needs the experimentalApi capability
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
