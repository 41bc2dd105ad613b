//! Servers written as shell scripts, and a caller that records what reaches it.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use loomd_exec::Environment;
use loomd_mcp::{
    BoxFuture, Caller, ClientInfo, Elicitation, ElicitationAnswer, Endpoint, HttpServer, NoCredentials, Progress,
    ServerConfig, Servers, ServersOptions, StdioServer, ToolCall,
};
use loomd_model::Http;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

/// Answers the handshake and `tools/list`; `$CALL` is run for a call with `$id`, `$LIST` prints the tools.
const SCRIPT: &str = r#"
while IFS= read -r line; do
  id=${line#*'"id":'}; id=${id%%,*}
  case "$line" in
    *'"method":"initialize"'*) eval "$INIT" ;;
    *'"method":"tools/list"'*) eval "$LIST" ;;
    *'"method":"tools/call"'*) eval "$CALL" ;;
    *'"method":"notifications/cancelled"'*) echo "$line" >> "$LOG" ;;
  esac
done
"#;

const INIT: &str = r#"printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}\n' "$id""#;
const LIST: &str = r#"printf '{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"t"}]}}\n' "$id""#;

/// A script that is a server.
pub struct Script {
    parts: BTreeMap<&'static str, String>,
}

/// Prints a text result of the call.
pub const ANSWER: &str =
    r#"printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"done"}]}}\n' "$id""#;

impl Script {
    pub fn new(call: &str) -> Self {
        let parts = [("INIT", INIT), ("LIST", LIST), ("CALL", call), ("LOG", "/dev/null")];
        Self { parts: parts.map(|(name, text)| (name, text.to_owned())).into() }
    }

    pub fn with(mut self, part: &'static str, text: impl Into<String>) -> Self {
        self.parts.insert(part, text.into());
        self
    }

    pub fn config(&self) -> ServerConfig {
        ServerConfig {
            name: "srv".into(),
            endpoint: Endpoint::Stdio(StdioServer {
                command: "/bin/sh".into(),
                args: vec!["-c".into(), SCRIPT.into()],
                env: self.parts.iter().map(|(name, text)| ((*name).to_owned(), text.clone().into())).collect(),
                env_vars: Vec::new(),
                cwd: None,
            }),
            startup_timeout: Duration::from_secs(20),
            openai_form: false,
        }
    }
}

pub fn http_config(url: String) -> ServerConfig {
    let server = HttpServer {
        url,
        bearer_token_env_var: None,
        headers: BTreeMap::new(),
        env_headers: BTreeMap::new(),
        oauth_resource: None,
        scopes: None,
        authorization: loomd_mcp::Authorization::OAuth,
    };
    ServerConfig {
        name: "web".into(),
        endpoint: Endpoint::Http(server),
        startup_timeout: Duration::from_secs(20),
        openai_form: false,
    }
}

pub fn servers() -> Servers {
    Servers::new(ServersOptions {
        http: Http::new(&|_| None),
        environment: Environment::of_this_process(),
        client: ClientInfo { name: "test".into(), title: "Test".into(), version: "1".into() },
        oauth: Arc::new(NoCredentials),
        account: Arc::new(NoCredentials),
    })
}

/// A thread that declines elicitations.
pub struct Thread {
    pub name: String,
    pub progress: Mutex<Vec<String>>,
    pub elicitations: Mutex<Vec<String>>,
}

impl Thread {
    pub fn new(name: &str) -> Arc<Self> {
        Arc::new(Self { name: name.into(), progress: Mutex::default(), elicitations: Mutex::default() })
    }
}

impl Caller for Thread {
    fn thread(&self) -> &str {
        &self.name
    }

    fn elicit(&self, elicitation: Elicitation, _: CancellationToken) -> BoxFuture<'_, ElicitationAnswer> {
        self.elicitations.lock().push(elicitation.message);
        Box::pin(std::future::ready(ElicitationAnswer::accept(Some(json!({ "thread": self.name })), None)))
    }

    fn progress(&self, progress: Progress) {
        self.progress.lock().push(progress.message.unwrap_or_default());
    }
}

pub fn call(tool: &str) -> ToolCall {
    ToolCall {
        tool: tool.into(),
        arguments: None,
        meta: Default::default(),
        timeout: Duration::from_secs(20),
        sandbox_state: None,
    }
}

/// The text of the first block.
pub fn text(content: &[Value]) -> &str {
    content[0]["text"].as_str().unwrap_or_default()
}

/// Waits until a file has a line with this text.
pub async fn logged(file: &Path, wanted: &str) {
    let wait = async {
        while !std::fs::read_to_string(file).unwrap_or_default().contains(wanted) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), wait).await.expect("it is logged");
}
