//! `loomd mcp`: lists, shows, adds and removes MCP servers, and logs in to them.

mod args;
mod edit;
mod show;

use std::io::{IsTerminal, Write, stdin, stdout};
use std::process::ExitCode;

use anyhow::{Context, Result, anyhow, bail};
use loomd_config::config_toml::McpServer;
use loomd_config::{LoadRequest, LoadedConfig, load};
use loomd_mcp_oauth::{CallbackSettings, McpOauth, OauthServer};
use loomd_model::Http;
use loomd_protocol::{AbsolutePathBuf, McpAuthStatus};
use tokio::task::JoinSet;

pub use args::Mcp;
use args::{AddServer, McpCommand};
use show::ListedServer;

use crate::cli::TopOverrides;
use crate::run;
use crate::setup::{Setup, block_on};

pub fn run(top: TopOverrides, arguments: Mcp) -> Result<ExitCode> {
    let setup = Setup::new(&top.with(arguments.overrides))?;
    block_on(async {
        match arguments.command {
            McpCommand::List { json } => list(&setup, json).await,
            McpCommand::Get { name, json } => get(&setup, &name, json),
            McpCommand::Add(server) => add(&setup, server).await,
            McpCommand::Remove { name } => remove(&setup, &name),
            McpCommand::Login { name, scopes } => login(&setup, &name, scopes).await,
            McpCommand::Logout { name } => logout(&setup, &name).await,
        }
        .map(|()| ExitCode::SUCCESS)
    })
}

/// The configuration of this folder. Unlike that of a server, it must be valid.
fn loaded(setup: &Setup) -> Result<LoadedConfig> {
    let cwd = AbsolutePathBuf::new(run::folder(None)?);
    Ok(load(&LoadRequest { cwd: cwd.as_ref(), ..setup.sources.request() })?)
}

fn configured<'a>(loaded: &'a LoadedConfig, name: &str) -> Result<&'a McpServer> {
    loaded.config.mcp_servers.get(name).ok_or_else(|| anyhow!("No MCP server named '{name}' found."))
}

fn oauth(setup: &Setup, loaded: &LoadedConfig) -> McpOauth {
    McpOauth::new(&setup.sources.home, &loaded.config, Http::new(&environment), environment)
}

async fn list(setup: &Setup, json: bool) -> Result<()> {
    let loaded = loaded(setup)?;
    let oauth = oauth(setup, &loaded);
    let mut looks = JoinSet::new();
    for (name, config) in &loaded.config.mcp_servers {
        let (name, config, oauth) = (name.clone(), config.clone(), oauth.clone());
        looks.spawn(async move {
            let auth = match OauthServer::configured(&name, &config, &environment) {
                Some(server) => oauth.status(&server).await,
                None => McpAuthStatus::Unsupported,
            };
            ListedServer { name, config, auth }
        });
    }
    let mut servers = looks.join_all().await;
    servers.sort_by(|one, other| one.name.cmp(&other.name));
    print(&if json { show::list_json(&servers)? } else { show::tables(&servers) })
}

fn get(setup: &Setup, name: &str, json: bool) -> Result<()> {
    let loaded = loaded(setup)?;
    let config = configured(&loaded, name)?;
    print(&if json { show::server_json(name, config)? } else { show::server(name, config) })
}

async fn add(setup: &Setup, server: AddServer) -> Result<()> {
    let name = server.name.clone();
    edit::add(setup, server)?;
    print(&format!("Added MCP server '{name}'.\n"))?;
    let loaded = loaded(setup)?;
    let Some(server) = OauthServer::configured(&name, configured(&loaded, &name)?, &environment) else { return Ok(()) };
    if oauth(setup, &loaded).status(&server).await != McpAuthStatus::NotLoggedIn {
        return Ok(());
    }
    if stdin().is_terminal() && stdout().is_terminal() {
        return log_in(setup, &loaded, &server, None).await;
    }
    print(&format!("It supports OAuth; log in with `loomd mcp login {name}`.\n"))
}

fn remove(setup: &Setup, name: &str) -> Result<()> {
    if edit::remove(setup, name)? {
        return print(&format!("Removed MCP server '{name}'.\n"));
    }
    if loaded(setup)?.config.mcp_servers.contains_key(name) {
        bail!("the MCP server '{name}' is not configured in config.toml of the home, so it is not removed");
    }
    print(&format!("No MCP server named '{name}' found.\n"))
}

async fn login(setup: &Setup, name: &str, scopes: Option<Vec<String>>) -> Result<()> {
    let loaded = loaded(setup)?;
    let server = OauthServer::configured(name, configured(&loaded, name)?, &environment)
        .context("OAuth login is only supported for streamable HTTP servers.")?;
    log_in(setup, &loaded, &server, scopes).await
}

async fn log_in(setup: &Setup, loaded: &LoadedConfig, server: &OauthServer, scopes: Option<Vec<String>>) -> Result<()> {
    let callback = CallbackSettings::new(&loaded.config);
    let login = oauth(setup, loaded).login(server, scopes, None, &callback).await?;
    let name = &server.name;
    print(&format!("Authorize `{name}` by opening this URL in your browser:\n{}\n\n", login.authorization_url))?;
    login.completed().await?;
    print(&format!("Logged in to MCP server '{name}'.\n"))
}

async fn logout(setup: &Setup, name: &str) -> Result<()> {
    let loaded = loaded(setup)?;
    let server = OauthServer::configured(name, configured(&loaded, name)?, &environment)
        .context("OAuth logout is only supported for streamable HTTP servers.")?;
    print(&if oauth(setup, &loaded).logout(&server).await? {
        format!("Removed OAuth credentials for '{name}'.\n")
    } else {
        format!("No OAuth credentials stored for '{name}'.\n")
    })
}

fn print(text: &str) -> Result<()> {
    let mut out = stdout().lock();
    out.write_all(text.as_bytes())?;
    Ok(out.flush()?)
}

fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok()
}
