//! Servers as text and as JSON. The text hides the values of variables and headers.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Result;
use loomd_config::config_toml::{McpServer, McpTransport};
use loomd_protocol::{JsonValue, McpAuthStatus, Secret};
use serde_json::json;
use unicode_width::UnicodeWidthStr;

use crate::show::lines;

pub struct ListedServer {
    pub name: String,
    pub config: McpServer,
    pub auth: McpAuthStatus,
}

/// A table of programs and a table of URLs.
pub fn tables(servers: &[ListedServer]) -> String {
    if servers.is_empty() {
        return "No MCP servers configured yet. Try `loomd mcp add my-tool -- my-command`.\n".into();
    }
    let mut programs = vec![row(["Name", "Command", "Args", "Env", "Cwd", "Status", "Auth"])];
    let mut urls = vec![row(["Name", "Url", "Bearer Token Env Var", "Status", "Auth"])];
    for ListedServer { name, config, auth } in servers {
        let status = if config.enabled { "enabled" } else { "disabled" };
        match &config.transport {
            McpTransport::Stdio { command, args, env, env_vars, cwd } => {
                let cwd = cwd.as_ref().map(|cwd| cwd.display().to_string());
                programs.push(row([
                    name,
                    command,
                    &or_dash(&args.join(" ")),
                    &variables(env.as_ref(), env_vars),
                    &or_dash(&cwd.unwrap_or_default()),
                    status,
                    auth_text(*auth),
                ]));
            }
            McpTransport::StreamableHttp { url, bearer_token_env_var, .. } => urls.push(row([
                name,
                url,
                &or_dash(bearer_token_env_var.as_deref().unwrap_or_default()),
                status,
                auth_text(*auth),
            ])),
        }
    }
    let filled = [programs, urls].into_iter().filter(|rows| rows.len() > 1);
    filled.map(|rows| table(&rows)).collect::<Vec<_>>().join("\n")
}

/// One server, a line per setting.
pub fn server(name: &str, config: &McpServer) -> String {
    if !config.enabled {
        return format!("{} (disabled)\n", plain(name));
    }
    let mut facts = vec![("enabled", "true".to_owned())];
    match &config.transport {
        McpTransport::Stdio { command, args, env, env_vars, cwd } => facts.extend([
            ("transport", "stdio".into()),
            ("command", command.clone()),
            ("args", or_dash(&args.join(" "))),
            ("cwd", or_dash(&cwd.as_ref().map(|cwd| cwd.display().to_string()).unwrap_or_default())),
            ("env", variables(env.as_ref(), env_vars)),
        ]),
        McpTransport::StreamableHttp { url, bearer_token_env_var, http_headers, env_http_headers, .. } => {
            let named = env_http_headers.iter().flatten().map(|(name, variable)| format!("{name}={variable}"));
            facts.extend([
                ("transport", "streamable_http".into()),
                ("url", url.clone()),
                ("bearer_token_env_var", or_dash(bearer_token_env_var.as_deref().unwrap_or_default())),
                ("http_headers", variables(http_headers.as_ref(), &[])),
                ("env_http_headers", or_dash(&named.collect::<Vec<_>>().join(", "))),
            ]);
        }
    }
    let lists = [("enabled_tools", &config.enabled_tools), ("disabled_tools", &config.disabled_tools)];
    facts.extend(lists.into_iter().filter_map(|(name, tools)| Some((name, tools.as_ref()?.join(", ")))));
    let limits = [("startup_timeout_sec", config.startup_timeout), ("tool_timeout_sec", config.tool_timeout)];
    facts.extend(limits.into_iter().filter_map(|(name, limit)| Some((name, limit?.as_secs_f64().to_string()))));
    facts.push(("remove", format!("loomd mcp remove {name}")));
    let shown = facts.into_iter().map(|(name, value)| format!("  {name}: {}\n", plain(&value)));
    format!("{}\n{}", plain(name), shown.collect::<String>())
}

pub fn list_json(servers: &[ListedServer]) -> Result<String> {
    let list = servers.iter().map(|ListedServer { name, config, auth }| {
        let mut server = common(name, config);
        server["startup_timeout_sec"] = seconds(config.startup_timeout);
        server["tool_timeout_sec"] = seconds(config.tool_timeout);
        server["auth_status"] = match auth {
            McpAuthStatus::Unsupported => "unsupported",
            McpAuthStatus::NotLoggedIn => "not_logged_in",
            McpAuthStatus::BearerToken => "bearer_token",
            McpAuthStatus::OAuth => "o_auth",
        }
        .into();
        server
    });
    Ok(serde_json::to_string_pretty(&list.collect::<JsonValue>())? + "\n")
}

pub fn server_json(name: &str, config: &McpServer) -> Result<String> {
    let mut server = common(name, config);
    server["enabled_tools"] = json!(config.enabled_tools);
    server["disabled_tools"] = json!(config.disabled_tools);
    server["startup_timeout_sec"] = seconds(config.startup_timeout);
    server["tool_timeout_sec"] = seconds(config.tool_timeout);
    Ok(serde_json::to_string_pretty(&server)? + "\n")
}

fn common(name: &str, config: &McpServer) -> JsonValue {
    let transport = match &config.transport {
        McpTransport::Stdio { command, args, env, env_vars, cwd } => json!({
            "type": "stdio", "command": command, "args": args, "env": revealed(env.as_ref()), "env_vars": env_vars,
            "cwd": cwd,
        }),
        McpTransport::StreamableHttp { url, bearer_token_env_var, http_headers, env_http_headers, .. } => json!({
            "type": "streamable_http", "url": url, "bearer_token_env_var": bearer_token_env_var,
            "http_headers": revealed(http_headers.as_ref()), "env_http_headers": env_http_headers,
        }),
    };
    json!({ "name": name, "enabled": config.enabled, "disabled_reason": null, "transport": transport })
}

fn revealed(values: Option<&BTreeMap<String, Secret>>) -> JsonValue {
    values.map_or(JsonValue::Null, |values| {
        values.iter().map(|(name, value)| (name.clone(), JsonValue::from(value.reveal()))).collect()
    })
}

fn seconds(limit: Option<Duration>) -> JsonValue {
    limit.map_or(JsonValue::Null, |limit| limit.as_secs_f64().into())
}

fn auth_text(auth: McpAuthStatus) -> &'static str {
    match auth {
        McpAuthStatus::Unsupported => "Unsupported",
        McpAuthStatus::NotLoggedIn => "Not logged in",
        McpAuthStatus::BearerToken => "Bearer token",
        McpAuthStatus::OAuth => "OAuth",
    }
}

/// The names of variables, with their values hidden.
fn variables(values: Option<&BTreeMap<String, Secret>>, passed_on: &[String]) -> String {
    let names = values.into_iter().flat_map(BTreeMap::keys).chain(passed_on);
    or_dash(&names.map(|name| format!("{name}=*****")).collect::<Vec<_>>().join(", "))
}

fn or_dash(text: &str) -> String {
    if text.is_empty() { "-".into() } else { text.to_owned() }
}

/// A text on one line, without control characters.
fn plain(text: &str) -> String {
    lines(text).join(" ")
}

fn row<const N: usize>(cells: [&str; N]) -> Vec<String> {
    cells.map(plain).to_vec()
}

fn table(rows: &[Vec<String>]) -> String {
    let width =
        |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.width()).max().unwrap_or(0);
    let line = |row: &Vec<String>| {
        let cells =
            row.iter().enumerate().map(|(column, cell)| cell.clone() + &" ".repeat(width(column) - cell.width()));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned() + "\n"
    };
    rows.iter().map(line).collect()
}
