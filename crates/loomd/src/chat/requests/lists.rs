//! Models, efforts, MCP servers and skills as lists, and the account for the status.

use anyhow::Result;
use loomd_client::Client;
use loomd_client::protocol::{
    Account, GetAccountParams, ListMcpServerStatusParams, McpAuthStatus, McpServerStatusDetail, Model, ModelListParams,
    SkillScope, SkillsListParams,
};
use loomd_editor::MenuItem;

use super::Outcome;
use crate::chat::commands::Command;
use crate::chat::picker::Picker;
use crate::show::lines;

/// The most models that are listed.
const MODELS: u32 = 100;

/// The most MCP servers that are listed.
const SERVERS: u32 = 100;

pub async fn models(client: Client, current: String) -> Result<Outcome> {
    let items = list_models(&client).await?.into_iter().map(|model| MenuItem {
        label: plain(&model.model),
        detail: plain(&model.description),
        value: model.model,
    });
    let picker = Picker::new("Model", items.collect(), &current, |model| Command::Model(Some(model)));
    Ok(Outcome::Pick(Box::new(picker)))
}

/// The efforts that the model supports; all usual ones if it is not listed.
pub async fn efforts(client: Client, model: String, current: String) -> Result<Outcome> {
    let listed = list_models(&client).await?.into_iter().find(|listed| listed.model == model);
    let items = match listed {
        Some(listed) => listed
            .supported_reasoning_efforts
            .into_iter()
            .map(|option| item(option.reasoning_effort.as_str(), &option.description))
            .collect(),
        None => ["minimal", "low", "medium", "high"].map(|effort| item(effort, "")).into(),
    };
    let picker = Picker::new("Effort", items, &current, |effort| Command::Effort(Some(effort)));
    Ok(Outcome::Pick(Box::new(picker)))
}

pub async fn mcp(client: Client) -> Result<Outcome> {
    let params = ListMcpServerStatusParams {
        limit: Some(SERVERS),
        detail: Some(McpServerStatusDetail::ToolsAndAuthOnly),
        ..ListMcpServerStatusParams::default()
    };
    // A server that is slow to start has a timeout of its own.
    let servers = client.with_timeout(None).mcp_server_status_list(params).await?.data;
    if servers.is_empty() {
        return Ok(Outcome::Text("no MCP servers; `loomd mcp add` adds one\n".to_owned()));
    }
    let mut text = String::new();
    for server in servers {
        let auth = match server.auth_status {
            McpAuthStatus::Unsupported => "",
            McpAuthStatus::NotLoggedIn => ", not logged in",
            McpAuthStatus::BearerToken => ", bearer token",
            McpAuthStatus::OAuth => ", logged in",
        };
        let tools: Vec<String> = server.tools.keys().map(|name| plain(name)).collect();
        text += &format!("{} ({} tools{auth})\n", plain(&server.name), tools.len());
        if !tools.is_empty() {
            text += &format!("  {}\n", tools.join(", "));
        }
    }
    Ok(Outcome::Text(text))
}

pub async fn skills(client: Client, cwd: String) -> Result<Outcome> {
    let params = SkillsListParams { cwds: vec![cwd], ..SkillsListParams::default() };
    let mut text = String::new();
    for entry in client.skills_list(params).await?.data {
        for skill in &entry.skills {
            let scope = match skill.scope {
                SkillScope::User => "user",
                SkillScope::Repo => "repo",
                SkillScope::System => "system",
                SkillScope::Admin => "admin",
            };
            let state = if skill.enabled { "" } else { ", disabled" };
            let about = skill.short_description.as_ref().unwrap_or(&skill.description);
            text += &format!("{} ({scope}{state})\n  {}\n", plain(&skill.name), plain(about));
        }
        for error in &entry.errors {
            text += &format!("not usable: {}: {}\n", plain(&error.path), plain(&error.message));
        }
    }
    Ok(Outcome::Text(if text.is_empty() { "no skills\n".to_owned() } else { text }))
}

/// The status as lines of names and values, and the account.
pub async fn status_lines(client: Client, mut facts: Vec<(&'static str, String)>) -> Result<Outcome> {
    let account = match client.account_read(GetAccountParams { refresh_token: false }).await?.account {
        Some(Account::ApiKey) => "API key".to_owned(),
        Some(Account::Chatgpt { email, plan_type }) => format!("{email} ({plan_type})"),
        None => "none".to_owned(),
    };
    facts.push(("account", account));
    let widest = facts.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    Ok(Outcome::Text(facts.iter().map(|(name, value)| format!("{name:widest$}  {}\n", plain(value))).collect()))
}

async fn list_models(client: &Client) -> Result<Vec<Model>> {
    let params = ModelListParams { limit: Some(MODELS), ..ModelListParams::default() };
    Ok(client.list_models(params).await?.data)
}

fn item(value: &str, detail: &str) -> MenuItem {
    MenuItem { value: value.to_owned(), label: plain(value), detail: plain(detail) }
}

/// A text in one line and without control characters.
fn plain(text: &str) -> String {
    lines(text).join(" ")
}
