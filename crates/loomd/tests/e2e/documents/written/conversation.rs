//! A conversation with a server on stdio, line by line, as a document shows it: ids, times and paths are replaced by
//! constant ones, and large objects show some of their members.

use std::collections::BTreeMap;

use loomd_testkit::Home;
use serde_json::{Map, Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout};

use crate::common::{in_time, loomd};

/// The widest line of a message in a document.
const WIDTH: usize = 120;

/// Members that are shown of objects with more; the rest is an ellipsis.
const SHOWN: &[(&str, &[&str])] = &[
    ("thread", &["id", "preview", "modelProvider", "createdAt", "status", "cwd", "name", "turns"]),
    ("turn", &["id", "items", "status", "error"]),
    ("result", &["thread", "turn", "turnId", "model", "modelProvider", "cwd", "approvalPolicy", "sandbox"]),
];

/// A notification about a thread that is left out: its numbers depend on the machine.
const TOKEN_USAGE: &str = "thread/tokenUsage/updated";

pub struct Conversation {
    _child: Child,
    stdin: ChildStdin,
    stdout: Lines<BufReader<ChildStdout>>,
    replace: Vec<(String, &'static str)>,
    ids: BTreeMap<String, String>,
    shown: String,
    next_id: u64,
}

impl Conversation {
    pub fn start(home: &Home) -> Self {
        let mut command = loomd(home);
        command.arg("app-server").env("SHELL", "/bin/bash").env_remove("TERM_PROGRAM");
        command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
        let mut child = command.spawn().expect("loomd starts");
        let (stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let path = |path: std::path::PathBuf| path.to_str().unwrap().to_owned();
        let replace = vec![
            (path(home.work()), "/home/me/project"),
            (path(home.path()), "/home/me/.codex"),
            (path(home.user()), "/home/me"),
        ];
        let stdout = BufReader::new(stdout).lines();
        Self { _child: child, stdin, stdout, replace, ids: BTreeMap::new(), shown: String::new(), next_id: 1 }
    }

    /// Sends a request and returns its result or error. The messages before its answer are shown, too.
    pub async fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.next_id;
        self.next_id += 1;
        self.send(json!({ "id": id, "method": method, "params": params })).await;
        let answer = self.until(|message| message["id"] == id && message.get("method").is_none()).await;
        answer.get("result").or(answer.get("error")).unwrap().clone()
    }

    pub async fn send(&mut self, message: Value) {
        self.show("→", &message);
        self.stdin.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }

    /// Reads and shows messages until one is wanted, and returns it.
    pub async fn until(&mut self, wanted: impl Fn(&Value) -> bool) -> Value {
        loop {
            let line = in_time("message", self.stdout.next_line()).await.unwrap();
            let line = line.expect("the server does not end");
            let message: Value = serde_json::from_str(&line).unwrap();
            self.show("←", &message);
            if wanted(&message) {
                return message;
            }
        }
    }

    /// Everything that was shown since the last call.
    pub fn take(&mut self) -> String {
        std::mem::take(&mut self.shown)
    }

    fn show(&mut self, arrow: &str, message: &Value) {
        // Notifications that are not about a thread come at any time.
        let params = &message["params"];
        let is_notification = arrow == "←" && message.get("id").is_none();
        if is_notification && params.get("threadId").or(params.get("thread")).is_none()
            || message["method"] == TOKEN_USAGE
        {
            return;
        }
        let mut message = message.clone();
        self.settle("", &mut message);
        let text = pretty(&message, WIDTH - 2).replace('\n', "\n  ");
        self.shown += &format!("{arrow} {text}\n");
    }

    /// Replaces what differs from run to run.
    fn settle(&mut self, key: &str, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.settled(key, text),
            Value::Number(number) if !number.is_f64() => match key {
                "createdAt" | "updatedAt" | "startedAt" | "completedAt" => *value = json!(1_763_280_000),
                "createdAtMs" | "updatedAtMs" | "startedAtMs" | "completedAtMs" => {
                    *value = json!(1_763_280_000_000_u64)
                }
                "durationMs" => *value = json!(24),
                _ => {}
            },
            Value::Array(items) => items.iter_mut().for_each(|item| self.settle("", item)),
            Value::Object(members) => {
                // Numbers of tokens depend on the machine.
                members.shift_remove("usage");
                if let Some((_, shown)) = SHOWN.iter().find(|(name, _)| *name == key) {
                    shorten(members, shown);
                }
                for (key, value) in members {
                    self.settle(key, value);
                }
            }
            _ => {}
        }
    }

    fn settled(&mut self, key: &str, text: &str) -> String {
        match key {
            "userAgent" => {
                let product = text.split(' ').next().unwrap_or_default();
                return format!("{product} (Linux 6.8; x86_64) unknown (my_client; 1.0)");
            }
            "processId" => return "4711".into(),
            _ => {}
        }
        // The list of all methods.
        let mut text = match text.split_once("`thread/start`") {
            Some((before, _)) if key == "message" => format!("{before}`thread/start`, …"),
            _ => text.to_owned(),
        };
        for (from, to) in &self.replace {
            text = text.replace(from, to);
        }
        for id in uuids(&text) {
            let number = self.ids.len() + 1;
            let constant = self.ids.entry(id.clone()).or_insert_with(|| format!("01a1-{number:04}"));
            text = text.replace(&id, constant);
        }
        text
    }
}

/// Keeps these members; an ellipsis stands for others.
fn shorten(members: &mut Map<String, Value>, shown: &[&str]) {
    let known = members.keys().filter(|key| shown.contains(&key.as_str())).count();
    if known == 0 || known == members.len() {
        return;
    }
    members.retain(|key, _| shown.contains(&key.as_str()));
    members.insert("…".into(), Value::Null);
}

/// The ids in a text: 36 hexadecimal digits and hyphens.
fn uuids(text: &str) -> Vec<String> {
    let is_id = |part: &&str| {
        part.len() == 36 && part.matches('-').count() == 4 && part.chars().all(|c| c.is_ascii_hexdigit() || c == '-')
    };
    let parts = text.split(|c: char| !c.is_ascii_hexdigit() && c != '-');
    parts.map(|part| part.trim_matches('-')).filter(is_id).map(str::to_owned).collect()
}

/// JSON on one line if it fits, else with a line per member.
fn pretty(value: &Value, width: usize) -> String {
    let line = one_line(value);
    if line.chars().count() <= width {
        return line;
    }
    let (open, close, parts) = match value {
        Value::Array(items) => {
            ("[", "]", items.iter().map(|item| pretty(item, width.saturating_sub(3))).collect::<Vec<_>>())
        }
        Value::Object(members) => {
            let parts =
                members.iter().map(|(key, value)| member(key, || pretty(value, width.saturating_sub(key.len() + 7))));
            ("{", "}", parts.collect())
        }
        _ => return line,
    };
    let parts: Vec<_> = parts.iter().map(|part| format!("  {}", part.replace('\n', "\n  "))).collect();
    format!("{open}\n{}\n{close}", parts.join(",\n"))
}

fn one_line(value: &Value) -> String {
    match value {
        Value::Array(items) => format!("[{}]", items.iter().map(one_line).collect::<Vec<_>>().join(", ")),
        Value::Object(members) if members.is_empty() => "{}".into(),
        Value::Object(members) => {
            let parts: Vec<_> = members.iter().map(|(key, value)| member(key, || one_line(value))).collect();
            format!("{{ {} }}", parts.join(", "))
        }
        plain => plain.to_string(),
    }
}

fn member(key: &str, value: impl FnOnce() -> String) -> String {
    if key == "…" { key.into() } else { format!("\"{key}\": {}", value()) }
}
