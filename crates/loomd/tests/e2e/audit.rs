//! Invariants of all events about turns. [`audit`] checks all messages of one connection and returns the violations.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use loomd_testkit::{Peer, TIMEOUT};
use serde_json::Value;

/// The violations in a client's messages once no more are expected. Background terminals may end a little later than
/// their turns.
pub async fn settled(peer: &Peer) -> Vec<String> {
    let begun = Instant::now();
    loop {
        let violations = audit(&peer.messages());
        if violations.is_empty() || begun.elapsed() > TIMEOUT {
            return violations;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// The violations in these messages.
fn audit(messages: &[Value]) -> Vec<String> {
    let mut audit = Audit::default();
    for (at, message) in messages.iter().enumerate() {
        audit.at = at;
        audit.take(message);
    }
    audit.finish();
    audit.violations
}

#[derive(Default)]
struct Audit {
    at: usize,
    violations: Vec<String>,
    /// Number of responses by request id.
    answers: BTreeMap<String, usize>,
    threads: BTreeMap<String, ThreadState>,
}

#[derive(Default)]
struct ThreadState {
    status: Option<Value>,
    running: Option<String>,
    turns: BTreeMap<String, TurnState>,
}

#[derive(Default)]
struct TurnState {
    /// Items that were started and not completed: their names, and whether they may outlive the turn.
    open: BTreeMap<String, bool>,
}

impl Audit {
    fn take(&mut self, message: &Value) {
        let Some(method) = message["method"].as_str() else {
            let count = self.answers.entry(message["id"].to_string()).or_default();
            *count += 1;
            if *count > 1 {
                self.violation(format!("request {} was answered twice", message["id"]));
            }
            return;
        };
        let params = &message["params"];
        let Some(id) = params["threadId"].as_str() else { return };
        let mut thread = self.threads.remove(id).unwrap_or_default();
        match method {
            "thread/status/changed" => self.status(&mut thread, params),
            "turn/started" => self.turn_started(&mut thread, params),
            "turn/completed" => self.turn_completed(&mut thread, params),
            "item/started" => self.item_started(&mut thread, params),
            "item/completed" => self.item_completed(&mut thread, params),
            _ if params["itemId"].is_string() => self.about_item(&mut thread, method, params),
            _ if params["turnId"].is_string() => self.about_turn(&thread, method, params),
            _ => {}
        }
        self.threads.insert(id.to_owned(), thread);
    }

    fn status(&mut self, thread: &mut ThreadState, params: &Value) {
        let status = &params["status"];
        if thread.status.as_ref() == Some(status) {
            self.violation(format!("the status {status} was sent twice"));
        }
        thread.status = Some(status.clone());
    }

    fn turn_started(&mut self, thread: &mut ThreadState, params: &Value) {
        let id = text(&params["turn"]["id"]);
        if let Some(other) = &thread.running {
            self.violation(format!("turn {id} started while {other} was running"));
        }
        if thread.status.as_ref().is_some_and(|status| status["type"] != "active") {
            self.violation(format!("turn {id} started in a thread that is not active"));
        }
        if thread.turns.insert(id.clone(), TurnState::default()).is_some() {
            self.violation(format!("turn {id} started twice"));
        }
        thread.running = Some(id);
    }

    fn turn_completed(&mut self, thread: &mut ThreadState, params: &Value) {
        let (id, status) = (text(&params["turn"]["id"]), &params["turn"]["status"]);
        if thread.running.as_ref() != Some(&id) {
            self.violation(format!("turn {id} completed and was not running"));
        }
        let should_be = if status == "failed" { "systemError" } else { "idle" };
        if thread.status.as_ref().is_some_and(|status| status["type"] != should_be) {
            self.violation(format!("turn {id} is {status} in a thread that is not {should_be}"));
        }
        if (status == "failed") != params["turn"]["error"].is_object() {
            self.violation(format!("turn {id} is {status} with error {}", params["turn"]["error"]));
        }
        thread.running = None;
        let turn = thread.turns.entry(id.clone()).or_default();
        for (item, _) in turn.open.iter().filter(|(_, background)| !**background) {
            self.violation(format!("turn {id} completed before its item {item}"));
        }
    }

    fn item_started(&mut self, thread: &mut ThreadState, params: &Value) {
        let (item, turn) = (name(&params["item"]), text(&params["turnId"]));
        if thread.running.as_ref() != Some(&turn) {
            self.violation(format!("item {item} started in turn {turn}, which was not running"));
        }
        let background = params["item"]["source"] == "unifiedExecStartup";
        let turn = thread.turns.entry(turn).or_default();
        if turn.open.insert(item.clone(), background).is_some() {
            self.violation(format!("item {item} started twice"));
        }
    }

    fn item_completed(&mut self, thread: &mut ThreadState, params: &Value) {
        let (item, turn_id) = (name(&params["item"]), text(&params["turnId"]));
        let turn = thread.turns.entry(turn_id.clone()).or_default();
        if turn.open.remove(&item).is_none() {
            self.violation(format!("item {item} of turn {turn_id} completed and was not open"));
        }
        if params["item"]["status"] == "inProgress" {
            self.violation(format!("item {item} completed in progress"));
        }
    }

    fn about_item(&mut self, thread: &mut ThreadState, method: &str, params: &Value) {
        let (id, turn_id) = (text(&params["itemId"]), text(&params["turnId"]));
        let turn = thread.turns.entry(turn_id.clone()).or_default();
        let open = turn.open.keys().any(|item| item.ends_with(&format!(" {id}")));
        // Input to a background terminal belongs to the turn that writes it.
        if !open && method != "item/commandExecution/terminalInteraction" {
            self.violation(format!("{method} for item {id} of turn {turn_id}, which is not open"));
        }
    }

    fn about_turn(&mut self, thread: &ThreadState, method: &str, params: &Value) {
        let id = text(&params["turnId"]);
        // A rollback reports the remaining usage under a turn id of its own.
        let of_none = method == "thread/tokenUsage/updated" && !thread.turns.contains_key(&id);
        if thread.running.as_ref() != Some(&id) && !of_none {
            self.violation(format!("{method} for turn {}, which is not running", params["turnId"]));
        }
    }

    fn finish(&mut self) {
        for (id, thread) in std::mem::take(&mut self.threads) {
            if let Some(running) = thread.running {
                self.violation(format!("turn {running} of thread {id} never completed"));
            }
            for (turn, item) in thread.turns.iter().flat_map(|(id, turn)| turn.open.keys().map(move |item| (id, item)))
            {
                self.violation(format!("item {item} of turn {turn} never completed"));
            }
        }
    }

    fn violation(&mut self, what: String) {
        self.violations.push(format!("message {}: {what}", self.at));
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn name(item: &Value) -> String {
    format!("{} {}", text(&item["type"]), text(&item["id"]))
}
