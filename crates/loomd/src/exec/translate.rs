//! Translates notifications to events of `exec`. Items are numbered in the order of their first event; types that the
//! SDK does not know are left out.

use std::collections::HashMap;

use loomd_protocol::{
    CommandExecutionStatus, FileUpdateChange, McpToolCallStatus, PatchApplyStatus, PatchChangeKind, ServerNotification,
    ThreadItem, TokenUsageBreakdown, Turn, TurnPlanStep, TurnPlanStepStatus, TurnStatus,
};

use super::events::{Change, ChangeKind, Details, Item, McpResult, Message, Status, ThreadEvent, Todo, Usage};

#[derive(Default)]
pub struct Translator {
    next: usize,
    /// `item_N` by item id.
    numbers: HashMap<String, String>,
    /// The item of the plan, until the end of the turn.
    plan: Option<Item>,
    usage: Usage,
    /// The error of the last failed attempt.
    error: Option<String>,
}

impl Translator {
    pub fn events(&mut self, notification: &ServerNotification) -> Vec<ThreadEvent> {
        use ServerNotification as N;
        match notification {
            N::TurnStarted(_) => vec![ThreadEvent::TurnStarted {}],
            N::ItemStarted(started) => match &started.item {
                // Sent only when complete.
                ThreadItem::AgentMessage { .. } | ThreadItem::Reasoning { .. } => Vec::new(),
                item => self.item(item).map(|item| ThreadEvent::ItemStarted { item }).into_iter().collect(),
            },
            N::ItemCompleted(completed) => {
                self.item(&completed.item).map(|item| ThreadEvent::ItemCompleted { item }).into_iter().collect()
            }
            N::TurnPlanUpdated(updated) => vec![self.plan(&updated.plan)],
            N::ThreadTokenUsageUpdated(updated) => {
                self.usage = usage(&updated.token_usage.total);
                Vec::new()
            }
            N::Error(error) => {
                let message = error.error.message.clone();
                self.error = Some(message.clone());
                vec![ThreadEvent::Error { message }]
            }
            N::ConfigWarning(warning) => vec![self.warning(&warning.summary)],
            N::DeprecationNotice(notice) => vec![self.warning(&notice.summary)],
            N::TurnCompleted(completed) => self.end(&completed.turn),
            _ => Vec::new(),
        }
    }

    fn item(&mut self, item: &ThreadItem) -> Option<Item> {
        let (id, details) = details(item)?;
        let number = match self.numbers.get(id) {
            Some(number) => number.clone(),
            None => {
                let number = self.number();
                self.numbers.insert(id.to_owned(), number.clone());
                number
            }
        };
        Some(Item { id: number, details })
    }

    fn number(&mut self) -> String {
        let number = format!("item_{}", self.next);
        self.next += 1;
        number
    }

    /// Updates the plan, which is one item from the first update to the end of the turn.
    fn plan(&mut self, steps: &[TurnPlanStep]) -> ThreadEvent {
        let todo = |step: &TurnPlanStep| Todo {
            text: step.step.clone(),
            completed: step.status == TurnPlanStepStatus::Completed,
        };
        let details = Details::TodoList { items: steps.iter().map(todo).collect() };
        let before = self.plan.take();
        let is_new = before.is_none();
        let id = before.map_or_else(|| self.number(), |item| item.id);
        let item = Item { id, details };
        self.plan = Some(item.clone());
        if is_new { ThreadEvent::ItemStarted { item } } else { ThreadEvent::ItemUpdated { item } }
    }

    fn warning(&mut self, text: &str) -> ThreadEvent {
        let item = Item { id: self.number(), details: Details::Error { message: text.to_owned() } };
        ThreadEvent::ItemCompleted { item }
    }

    fn end(&mut self, turn: &Turn) -> Vec<ThreadEvent> {
        let mut events: Vec<_> = self.plan.take().map(|item| ThreadEvent::ItemCompleted { item }).into_iter().collect();
        let failed = |message: String| ThreadEvent::TurnFailed { error: Message { message } };
        match turn.status {
            TurnStatus::Completed | TurnStatus::InProgress => {
                events.push(ThreadEvent::TurnCompleted { usage: self.usage.clone() });
            }
            TurnStatus::Interrupted => events.push(failed("the turn was interrupted".to_owned())),
            TurnStatus::Failed => {
                let told = turn.error.as_ref().map(|error| error.message.clone());
                let message = told.or_else(|| self.error.clone()).unwrap_or_else(|| "the turn failed".to_owned());
                if self.error.as_ref() != Some(&message) {
                    events.push(ThreadEvent::Error { message: message.clone() });
                }
                events.push(failed(message));
            }
        }
        events
    }
}

fn usage(total: &TokenUsageBreakdown) -> Usage {
    Usage {
        input_tokens: total.input_tokens,
        cached_input_tokens: total.cached_input_tokens,
        cache_write_input_tokens: total.cache_write_input_tokens,
        output_tokens: total.output_tokens,
        reasoning_output_tokens: total.reasoning_output_tokens,
    }
}

fn details(item: &ThreadItem) -> Option<(&str, Details)> {
    Some(match item {
        ThreadItem::AgentMessage { id, text, .. } | ThreadItem::Plan { id, text } => {
            (id, Details::AgentMessage { text: text.clone() })
        }
        ThreadItem::Reasoning { id, summary, .. } if !summary.is_empty() => {
            (id, Details::Reasoning { text: summary.join("\n") })
        }
        ThreadItem::CommandExecution { id, command, status, aggregated_output, exit_code, .. } => {
            let status = match status {
                CommandExecutionStatus::InProgress => Status::InProgress,
                CommandExecutionStatus::Completed => Status::Completed,
                CommandExecutionStatus::Failed | CommandExecutionStatus::Declined => Status::Failed,
            };
            let aggregated_output = aggregated_output.clone().unwrap_or_default();
            let command = command.clone();
            (id, Details::CommandExecution { command, aggregated_output, exit_code: *exit_code, status })
        }
        ThreadItem::FileChange { id, changes, status } => {
            let status = match status {
                PatchApplyStatus::InProgress => Status::InProgress,
                PatchApplyStatus::Completed => Status::Completed,
                PatchApplyStatus::Failed | PatchApplyStatus::Declined => Status::Failed,
            };
            (id, Details::FileChange { changes: changes.iter().map(change).collect(), status })
        }
        ThreadItem::McpToolCall { id, server, tool, status, arguments, result, error, .. } => {
            let status = match status {
                McpToolCallStatus::InProgress => Status::InProgress,
                McpToolCallStatus::Completed => Status::Completed,
                McpToolCallStatus::Failed => Status::Failed,
            };
            let result = result.as_ref().map(|result| McpResult {
                content: result.content.clone(),
                structured_content: result.structured_content.clone(),
            });
            let error = error.as_ref().map(|error| Message { message: error.message.clone() });
            let (server, tool, arguments) = (server.clone(), tool.clone(), arguments.clone());
            (id, Details::McpToolCall { server, tool, arguments, result, error, status })
        }
        ThreadItem::WebSearch { id, query, action } => {
            (id, Details::WebSearch { query: query.clone(), action: action.clone() })
        }
        _ => return None,
    })
}

fn change(change: &FileUpdateChange) -> Change {
    let kind = match change.kind {
        PatchChangeKind::Add => ChangeKind::Add,
        PatchChangeKind::Delete => ChangeKind::Delete,
        PatchChangeKind::Update { .. } => ChangeKind::Update,
    };
    Change { path: change.path.clone(), kind }
}

#[cfg(test)]
mod tests {
    use serde_json::value::to_raw_value;
    use serde_json::{Value, json};

    use super::*;

    /// The lines printed for these notifications.
    fn printed(notifications: &[(&str, Value)]) -> Vec<Value> {
        let mut translator = Translator::default();
        let events = notifications.iter().flat_map(|(method, params)| {
            let mut params = params.clone();
            params["threadId"] = "t".into();
            params["turnId"] = "u".into();
            let params = to_raw_value(&params).unwrap();
            translator.events(&ServerNotification::decode(method, Some(&params)).unwrap())
        });
        events.map(|event| serde_json::to_value(event).unwrap()).collect()
    }

    fn command(id: &str, status: &str, output: Value, code: Value) -> Value {
        json!({ "item": { "type": "commandExecution", "id": id, "command": "ls", "cwd": "/w", "processId": null,
            "status": status, "commandActions": [], "aggregatedOutput": output, "exitCode": code, "durationMs": 1 } })
    }

    fn message(id: &str, text: &str) -> Value {
        json!({ "item": { "type": "agentMessage", "id": id, "text": text, "phase": null, "memoryCitation": null } })
    }

    fn plan(first: &str) -> Value {
        json!({ "explanation": null, "plan": [{ "step": "a", "status": first }, { "step": "b", "status": "pending" }] })
    }

    fn turn(status: &str, error: Value) -> Value {
        json!({ "turn": { "id": "u", "items": [], "status": status, "error": error } })
    }

    #[test]
    fn a_turn_becomes_sdk_events() {
        let counts = json!({ "totalTokens": 15, "inputTokens": 10, "cachedInputTokens": 3, "outputTokens": 5,
            "reasoningOutputTokens": 2 });
        let reasoning = json!({ "item": { "type": "reasoning", "id": "r", "summary": ["one", "two"], "content": [] } });
        let change = |status| {
            json!({ "item": { "type": "fileChange", "id": "f", "status": status, "changes": [
                { "path": "/w/x", "kind": { "type": "add" }, "diff": "hi" },
                { "path": "/w/y", "kind": { "type": "update", "move_path": null }, "diff": "hi" },
            ] } })
        };
        let events = printed(&[
            ("turn/started", turn("inProgress", Value::Null)),
            ("item/started", message("m", "")),
            ("item/completed", reasoning),
            ("item/agentMessage/delta", json!({ "itemId": "m", "delta": "hel" })),
            ("item/completed", message("m", "hello")),
            ("item/started", command("c", "inProgress", Value::Null, Value::Null)),
            ("turn/plan/updated", plan("inProgress")),
            ("item/completed", command("c", "declined", json!("no"), json!(1))),
            ("turn/plan/updated", plan("completed")),
            ("item/started", change("inProgress")),
            ("item/completed", change("completed")),
            ("item/completed", json!({ "item": { "type": "webSearch", "id": "w", "query": "cats", "action": null } })),
            ("item/completed", json!({ "item": { "type": "contextCompaction", "id": "x" } })),
            (
                "thread/tokenUsage/updated",
                json!({ "tokenUsage": { "total": counts, "last": counts, "modelContextWindow": null } }),
            ),
            ("turn/completed", turn("completed", Value::Null)),
        ]);
        let changes = json!([{ "path": "/w/x", "kind": "add" }, { "path": "/w/y", "kind": "update" }]);
        let todo = |first: bool| json!([{ "text": "a", "completed": first }, { "text": "b", "completed": false }]);
        assert_eq!(
            events,
            [
                json!({ "type": "turn.started" }),
                json!({ "type": "item.completed", "item": { "id": "item_0", "type": "reasoning", "text": "one\ntwo" } }),
                json!({ "type": "item.completed", "item": { "id": "item_1", "type": "agent_message", "text": "hello" } }),
                json!({ "type": "item.started", "item": { "id": "item_2", "type": "command_execution", "command": "ls",
                    "aggregated_output": "", "exit_code": null, "status": "in_progress" } }),
                json!({ "type": "item.started", "item": { "id": "item_3", "type": "todo_list", "items": todo(false) } }),
                json!({ "type": "item.completed", "item": { "id": "item_2", "type": "command_execution", "command": "ls",
                    "aggregated_output": "no", "exit_code": 1, "status": "failed" } }),
                json!({ "type": "item.updated", "item": { "id": "item_3", "type": "todo_list", "items": todo(true) } }),
                json!({ "type": "item.started", "item": { "id": "item_4", "type": "file_change", "changes": changes,
                    "status": "in_progress" } }),
                json!({ "type": "item.completed", "item": { "id": "item_4", "type": "file_change", "changes": changes,
                    "status": "completed" } }),
                json!({ "type": "item.completed", "item": { "id": "item_5", "type": "web_search", "query": "cats" } }),
                json!({ "type": "item.completed", "item": { "id": "item_3", "type": "todo_list", "items": todo(true) } }),
                json!({ "type": "turn.completed", "usage": { "input_tokens": 10, "cached_input_tokens": 3,
                    "cache_write_input_tokens": 0, "output_tokens": 5, "reasoning_output_tokens": 2 } }),
            ]
        );
    }

    #[test]
    fn a_failed_turn_becomes_error_and_turn_failed() {
        let error = |message: &str| json!({ "message": message, "codexErrorInfo": null, "additionalDetails": null });
        let told = |message: &str, again: bool| ("error", json!({ "error": error(message), "willRetry": again }));
        let failed = ("turn/completed", turn("failed", error("gone")));
        let ends = [
            json!({ "type": "error", "message": "gone" }),
            json!({ "type": "turn.failed", "error": { "message": "gone" } }),
        ];
        assert_eq!(printed(&[told("gone", false), failed.clone()]), ends);
        assert_eq!(printed(std::slice::from_ref(&failed)), ends);
        assert_eq!(printed(&[told("again", true), failed])[1..], ends);
        assert_eq!(
            printed(&[("turn/completed", turn("interrupted", Value::Null))]),
            [json!({ "type": "turn.failed", "error": { "message": "the turn was interrupted" } })]
        );
    }

    #[test]
    fn a_warning_becomes_an_error_item() {
        let warning = json!({ "summary": "look here", "details": null });
        assert_eq!(
            printed(&[("configWarning", warning)]),
            [json!({ "type": "item.completed", "item": { "id": "item_0", "type": "error", "message": "look here" } })]
        );
    }
}
