//! `loomd console`: serves the console on the loopback, and manages its links.

use std::io::{Write, stdout};
use std::net::{SocketAddr, TcpListener};
use std::process::{Command, Stdio};

use anyhow::{Context, Result};
use clap::{Args, Subcommand};
use loomd_console::{Access, Origin, Role, qr_code};
use loomd_server::auth::Policy;
use loomd_server::{ConsoleRequest, ListenUrl, Upstream, UpstreamAddress};

use crate::app_server;
use crate::cli::{Overrides, TopOverrides};
use crate::setup::{home, runtime};

/// The usual port, so that a browser finds the same page again. If it is taken, any other.
const PORT: u16 = 4737;

#[derive(Args)]
pub struct Console {
    #[command(subcommand)]
    tool: Option<Tool>,
    #[command(flatten)]
    overrides: Overrides,
    /// The port [default: 4737, or any if that is taken]
    #[arg(long, value_name = "N")]
    port: Option<u16>,
    /// Serve the page for a server that runs already, at `ws://HOST:PORT`, `wss://HOST:PORT` or `unix:///PATH`
    #[arg(long, value_name = "URL")]
    attach: Option<UpstreamAddress>,
    /// The environment variable that holds the token for --attach
    #[arg(long, value_name = "VARIABLE", requires = "attach")]
    attach_token_env: Option<String>,
    /// Do not open a browser
    #[arg(long)]
    no_open: bool,
}

#[derive(Subcommand)]
enum Tool {
    /// Make a link for another browser, and print it with a QR code; it can be opened once, within an hour
    Link {
        /// What its session may do: `view`, `approve` (also answer approvals) or `drive` (everything)
        #[arg(long, default_value = "drive")]
        role: Role,
        /// The origin of the console
        #[arg(long, value_name = "URL", default_value_t = format!("http://127.0.0.1:{PORT}"))]
        origin: String,
        /// Print the link only
        #[arg(long)]
        no_qr: bool,
    },
    /// List the sessions, and the links that were not opened yet
    Links,
    /// End a session, or make a link useless
    Revoke {
        /// An id that `loomd console links` lists
        #[arg(required_unless_present = "all")]
        id: Option<String>,
        /// End all sessions and links
        #[arg(long, conflicts_with = "id")]
        all: bool,
    },
}

pub fn run(top: TopOverrides, arguments: Console) -> Result<()> {
    match arguments.tool {
        None => serve(top, arguments),
        Some(Tool::Link { role, origin, no_qr }) => link(role, &origin, !no_qr),
        Some(Tool::Links) => list(),
        Some(Tool::Revoke { id, all: _ }) => revoke(id.as_deref()),
    }
}

fn serve(top: TopOverrides, arguments: Console) -> Result<()> {
    let open = !arguments.no_open;
    let port = arguments.port.unwrap_or_else(|| if is_free(PORT) { PORT } else { 0 });
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    let on_ready = move |link: &str| {
        _ = writeln!(stdout(), "{link}");
        _ = stdout().flush();
        if open {
            open_browser(link);
        }
    };
    let console = ConsoleRequest { origins: Vec::new(), on_ready: Box::new(on_ready), quiet: true };
    let Some(address_of_server) = arguments.attach else {
        let listen = ListenUrl::Websocket(address);
        return app_server::serve_at(
            &top.with(arguments.overrides),
            listen,
            Policy::Open,
            Some(console),
            Default::default(),
        );
    };
    let token = arguments.attach_token_env.map(|variable| {
        std::env::var(&variable)
            .with_context(|| format!("--attach-token-env: there is no token in the environment variable {variable}"))
    });
    let upstream = Upstream { address: address_of_server, token: token.transpose()? };
    Ok(runtime()?.block_on(loomd_server::serve_attached(&home()?, address, upstream, console))?)
}

fn is_free(port: u16) -> bool {
    TcpListener::bind(("127.0.0.1", port)).is_ok()
}

/// Opens the link with the desktop's program. Without one, the printed link is all there is.
fn open_browser(link: &str) {
    let program = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let child =
        Command::new(program).arg(link).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    if let Ok(mut child) = child {
        std::thread::spawn(move || _ = child.wait());
    }
}

fn link(role: Role, origin: &str, qr: bool) -> Result<()> {
    _ = origin.parse::<Origin>()?;
    let code = Access::new(home()?).create_link(role)?;
    let link = format!("{origin}/#{code}");
    let mut out = stdout().lock();
    if qr && let Some(drawn) = qr_code(&link) {
        write!(out, "{drawn}")?;
    }
    writeln!(out, "{link}")?;
    Ok(())
}

fn list() -> Result<()> {
    let mut out = stdout().lock();
    for grant in Access::new(home()?).list()? {
        let at = grant.opened_at.unwrap_or(grant.created_at);
        let at = jiff::Timestamp::from_second(i64::try_from(at)?).context("invalid time")?;
        let state = if grant.opened_at.is_some() { "session since" } else { "link of" };
        writeln!(out, "{:<10} {:<8} {state} {at}", grant.id, grant.role.to_string())?;
    }
    Ok(())
}

fn revoke(id: Option<&str>) -> Result<()> {
    let access = Access::new(home()?);
    match id {
        Some(id) => access.revoke(id)?,
        None => writeln!(stdout(), "revoked {}", access.revoke_all()?)?,
    }
    Ok(())
}
