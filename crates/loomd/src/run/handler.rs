//! [`PromptHandler`]: turns server requests into [`Question`]s for the terminal, and their answers into responses. A
//! question that cannot be shown is declined.

use std::collections::BTreeMap;

use loomd_client::Handler;
use loomd_client::protocol::{
    CommandExecutionApprovalDecision, CommandExecutionRequestApprovalParams, FileChangeApprovalDecision,
    FileChangeRequestApprovalParams, GrantedPermissionProfile, JsonValue, McpElicitationSchema,
    McpServerElicitationAction, McpServerElicitationRequest, McpServerElicitationRequestParams,
    McpServerElicitationRequestResponse, PermissionGrantScope, PermissionsRequestApprovalParams,
    PermissionsRequestApprovalResponse, RequestPermissionProfile, ToolRequestUserInputAnswer,
    ToolRequestUserInputParams, ToolRequestUserInputQuestion, ToolRequestUserInputResponse,
};
use serde_json::json;
use tokio::sync::{mpsc, oneshot};

use super::form::{Field, fields};
use super::question::{Answer, AnswerKind, Choice, Question};

/// Capacity of the queue of questions.
const WAITING: usize = 64;

/// The receiving end of the queue of questions.
pub type Questions = mpsc::Receiver<Question>;

/// Returns a handler and the queue of its questions.
pub fn prompt_handler() -> (PromptHandler, Questions) {
    let (sender, questions) = mpsc::channel(WAITING);
    (PromptHandler(sender), questions)
}

pub struct PromptHandler(mpsc::Sender<Question>);

const USUAL: [Choice; 4] = [Choice::Accept, Choice::AcceptForSession, Choice::Decline, Choice::Cancel];

impl PromptHandler {
    async fn ask(&self, question: impl FnOnce(oneshot::Sender<Answer>) -> Question) -> Answer {
        let (reply, answer) = oneshot::channel();
        if self.0.send(question(reply)).await.is_err() {
            return Answer::Refused;
        }
        answer.await.unwrap_or(Answer::Refused)
    }

    async fn choose(&self, question: impl FnOnce(oneshot::Sender<Answer>) -> Question) -> Choice {
        match self.ask(question).await {
            Answer::Choice(choice) => choice,
            Answer::Words(_) | Answer::FieldValue(_) | Answer::Refused => Choice::Decline,
        }
    }

    /// Asks for the fields of a form one after the other; `None` if the user cancels.
    async fn fill_in(&self, server: &str, schema: McpElicitationSchema) -> Option<JsonValue> {
        let mut content = serde_json::Map::new();
        for field in fields(schema) {
            let name = field.name.clone();
            match self.ask(|reply| field_question(server, field, reply)).await {
                Answer::FieldValue(Some(value)) => _ = content.insert(name, value),
                Answer::FieldValue(None) => {}
                Answer::Choice(_) | Answer::Words(_) | Answer::Refused => return None,
            }
        }
        Some(content.into())
    }
}

impl Handler for PromptHandler {
    async fn approve_command(
        &self,
        request: CommandExecutionRequestApprovalParams,
    ) -> CommandExecutionApprovalDecision {
        match self.choose(|reply| command_question(request, reply)).await {
            Choice::Accept => CommandExecutionApprovalDecision::Accept,
            Choice::AcceptForSession | Choice::AcceptAlways => CommandExecutionApprovalDecision::AcceptForSession,
            Choice::Decline => CommandExecutionApprovalDecision::Decline,
            Choice::Cancel => CommandExecutionApprovalDecision::Cancel,
        }
    }

    async fn approve_file_change(&self, request: FileChangeRequestApprovalParams) -> FileChangeApprovalDecision {
        let details = request.grant_root.map(|root| format!("and everything else below {root}"));
        let choice = self.choose(|reply| Question {
            title: "Make this change?".to_owned(),
            details: details.into_iter().collect(),
            reason: request.reason,
            item_id: Some(request.item_id),
            answers: AnswerKind::Permission(USUAL.into()),
            reply,
        });
        match choice.await {
            Choice::Accept => FileChangeApprovalDecision::Accept,
            Choice::AcceptForSession | Choice::AcceptAlways => FileChangeApprovalDecision::AcceptForSession,
            Choice::Decline => FileChangeApprovalDecision::Decline,
            Choice::Cancel => FileChangeApprovalDecision::Cancel,
        }
    }

    async fn approve_permissions(
        &self,
        request: PermissionsRequestApprovalParams,
    ) -> PermissionsRequestApprovalResponse {
        let RequestPermissionProfile { network, file_system } = request.permissions.clone();
        let choice = self.choose(|reply| Question {
            title: "Give these permissions?".to_owned(),
            details: permission_lines(&request.permissions),
            reason: request.reason,
            item_id: None,
            answers: AnswerKind::Permission(vec![Choice::Accept, Choice::AcceptForSession, Choice::Decline]),
            reply,
        });
        let (granted, scope) = match choice.await {
            Choice::Accept => (true, PermissionGrantScope::Turn),
            Choice::AcceptForSession | Choice::AcceptAlways => (true, PermissionGrantScope::Session),
            Choice::Decline | Choice::Cancel => (false, PermissionGrantScope::Turn),
        };
        let permissions = GrantedPermissionProfile {
            network: network.filter(|_| granted),
            file_system: file_system.filter(|_| granted),
        };
        PermissionsRequestApprovalResponse { permissions, scope }
    }

    async fn answer_questions(&self, request: ToolRequestUserInputParams) -> ToolRequestUserInputResponse {
        let mut answers = BTreeMap::new();
        for question in request.questions {
            let id = question.id.clone();
            if let Answer::Words(words) = self.ask(|reply| words_question(question, reply)).await {
                answers.insert(id, ToolRequestUserInputAnswer { answers: vec![words.reveal().to_owned()] });
            }
        }
        ToolRequestUserInputResponse { answers }
    }

    async fn answer_elicitation(
        &self,
        request: McpServerElicitationRequestParams,
    ) -> McpServerElicitationRequestResponse {
        let McpServerElicitationRequestParams { server_name: server, request, .. } = request;
        let choice = self.choose(|reply| elicitation_question(&server, &request, reply)).await;
        let persist = match choice {
            Choice::Accept => None,
            Choice::AcceptForSession => Some("session"),
            Choice::AcceptAlways => Some("always"),
            Choice::Decline | Choice::Cancel => return refused(),
        };
        let content = match request {
            McpServerElicitationRequest::Form { requested_schema, .. } if !requested_schema.properties.is_empty() => {
                let Some(content) = self.fill_in(&server, requested_schema).await else { return refused() };
                Some(content)
            }
            // Only sent to clients that announced it.
            McpServerElicitationRequest::OpenaiForm { .. } => return refused(),
            McpServerElicitationRequest::Form { .. } | McpServerElicitationRequest::Url { .. } => None,
        };
        let meta = persist.map(|persist| json!({ "persist": persist }));
        McpServerElicitationRequestResponse { action: McpServerElicitationAction::Accept, content, meta }
    }
}

fn refused() -> McpServerElicitationRequestResponse {
    McpServerElicitationRequestResponse { action: McpServerElicitationAction::Decline, content: None, meta: None }
}

fn command_question(request: CommandExecutionRequestApprovalParams, reply: oneshot::Sender<Answer>) -> Question {
    let (title, mut details) = match (&request.network_approval_context, &request.command) {
        (Some(network), _) => ("Let a command reach this host?", vec![network.host.clone()]),
        (None, Some(command)) => ("Run this command?", vec![command.clone()]),
        (None, None) => ("Run a command?", Vec::new()),
    };
    details.extend(request.cwd.map(|cwd| format!("(in {cwd})")));
    if let Some(more) = request.additional_permissions {
        let more = RequestPermissionProfile { network: more.network, file_system: more.file_system };
        details.extend(permission_lines(&more).into_iter().map(|line| format!("(with {line})")));
    }
    Question {
        title: title.to_owned(),
        details,
        reason: request.reason,
        item_id: Some(request.item_id),
        // Servers offer fewer decisions, and accept all of these.
        answers: AnswerKind::Permission(USUAL.into()),
        reply,
    }
}

fn words_question(question: ToolRequestUserInputQuestion, reply: oneshot::Sender<Answer>) -> Question {
    let options = question.options.unwrap_or_default();
    Question {
        title: format!("{}: {}", question.header, question.question),
        details: Vec::new(),
        reason: None,
        item_id: None,
        answers: AnswerKind::Words { options, secret: question.is_secret },
        reply,
    }
}

/// The first question of an elicitation: whether to answer it. A form without fields is an approval of a tool call,
/// and this is its only question.
fn elicitation_question(
    server: &str,
    request: &McpServerElicitationRequest,
    reply: oneshot::Sender<Answer>,
) -> Question {
    let (message, details, reason, meta) = match request {
        McpServerElicitationRequest::Url { message, url, meta, .. } => {
            (message, vec![url.clone()], Some("Open the link, then type yes."), meta)
        }
        McpServerElicitationRequest::Form { message, requested_schema, meta } => {
            let fields: Vec<String> = fields(requested_schema.clone()).into_iter().map(|field| field.title).collect();
            let details = if fields.is_empty() { tool_lines(meta.as_ref()) } else { vec![fields.join(", ")] };
            (message, details, (!fields.is_empty()).then_some("Fill in this form?"), meta)
        }
        McpServerElicitationRequest::OpenaiForm { message, meta, .. } => {
            (message, Vec::new(), Some("This form cannot be shown here."), meta)
        }
    };
    let kept = meta.as_ref().and_then(|meta| meta["persist"].as_array()).into_iter().flatten();
    let mut choices = vec![Choice::Accept];
    choices.extend(kept.filter_map(|word| match word.as_str()? {
        "session" => Some(Choice::AcceptForSession),
        "always" => Some(Choice::AcceptAlways),
        _ => None,
    }));
    choices.push(Choice::Decline);
    Question {
        title: format!("{server}: {message}"),
        details,
        reason: reason.map(str::to_owned),
        item_id: None,
        answers: AnswerKind::Permission(choices),
        reply,
    }
}

/// The description of a tool and its arguments.
fn tool_lines(meta: Option<&JsonValue>) -> Vec<String> {
    let Some(meta) = meta else { return Vec::new() };
    let params = meta["tool_params_display"].as_array().into_iter().flatten().map(|param| {
        let name = param["display_name"].as_str().or(param["name"].as_str()).unwrap_or_default();
        format!("{name}: {}", param["value"])
    });
    meta["tool_description"].as_str().map(str::to_owned).into_iter().chain(params).collect()
}

fn field_question(server: &str, field: Field, reply: oneshot::Sender<Answer>) -> Question {
    Question {
        title: format!("{server}: {}", field.title),
        details: field.details(),
        reason: None,
        item_id: None,
        answers: AnswerKind::Field(field),
        reply,
    }
}

fn permission_lines(request: &RequestPermissionProfile) -> Vec<String> {
    let network = request.network.as_ref().is_some_and(|network| network.enabled != Some(false));
    let paths = |word: &str, paths: Option<&Vec<_>>| -> Vec<String> {
        let path = |path: &loomd_protocol::AbsolutePathBuf| format!("{word} {}", path.display());
        paths.into_iter().flatten().map(path).collect()
    };
    let files = request.file_system.as_ref();
    let mut lines = paths("read", files.and_then(|files| files.read.as_ref()));
    lines.extend(paths("write", files.and_then(|files| files.write.as_ref())));
    lines.extend(network.then(|| "the network".to_owned()));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The response of the handler when these lines are typed, and the questions shown.
    async fn elicit(request: JsonValue, lines: &[&str]) -> (McpServerElicitationRequestResponse, Vec<String>) {
        let mut params = json!({ "threadId": "t", "turnId": "u", "serverName": "alpha", "_meta": null });
        params.as_object_mut().unwrap().extend(request.as_object().unwrap().clone());
        let (prompt_handler, mut questions) = prompt_handler();
        let mut lines = lines.iter();
        let answering = async {
            let mut asked = Vec::new();
            while let Some(question) = questions.recv().await {
                asked.push(question.show(|shown| format!("{} {:?} {:?}", shown.title, shown.details, shown.choices)));
                let answer = question.parse(lines.next().copied()).expect("the line is an answer");
                question.answer(answer);
            }
            asked
        };
        let asking = async move { prompt_handler.answer_elicitation(serde_json::from_value(params).unwrap()).await };
        tokio::join!(asking, answering)
    }

    fn accepted(content: Option<JsonValue>, meta: Option<JsonValue>) -> McpServerElicitationRequestResponse {
        McpServerElicitationRequestResponse { action: McpServerElicitationAction::Accept, content, meta }
    }

    #[tokio::test]
    async fn a_form_is_filled_in_field_by_field() {
        let schema = json!({ "type": "object", "required": ["name"], "properties": {
            "name": { "type": "string", "title": "Your name" }, "sure": { "type": "boolean" } } });
        let form = json!({ "mode": "form", "message": "Who?", "requestedSchema": schema });
        let (answer, asked) = elicit(form.clone(), &["y", "Ada", ""]).await;
        assert_eq!(answer, accepted(Some(json!({ "name": "Ada" })), None));
        assert_eq!(
            asked,
            [
                r#"alpha: Who? ["Your name, sure"] ["y  yes", "n  no"]"#,
                "alpha: Your name [] []",
                r#"alpha: sure ["(y or n)", "(Enter to leave it empty)"] []"#,
            ]
        );
        for lines in [&["n"][..], &["y", "Ada"], &[]] {
            assert_eq!(elicit(form.clone(), lines).await.0, refused(), "{lines:?}");
        }
    }

    #[tokio::test]
    async fn links_are_shown_in_full() {
        let link = json!({ "mode": "url", "message": "Sign in.", "url": "https://x.test/a?b", "elicitationId": "e" });
        let (answer, asked) = elicit(link, &["y"]).await;
        assert_eq!(answer, accepted(None, None));
        assert_eq!(asked, [r#"alpha: Sign in. ["https://x.test/a?b"] ["y  yes", "n  no"]"#]);
    }

    #[tokio::test]
    async fn a_tool_call_can_be_accepted_for_longer() {
        let meta = json!({ "persist": ["session", "always"], "tool_description": "Wipes.",
            "tool_params_display": [{ "name": "p", "value": 1, "display_name": "p" }] });
        let schema = json!({ "type": "object", "properties": {} });
        let tool = json!({ "mode": "form", "message": "Allow it?", "requestedSchema": schema, "_meta": meta });
        let (answer, asked) = elicit(tool.clone(), &["y"]).await;
        assert_eq!(answer, accepted(None, None));
        let choices = r#"["y  yes", "s  yes, also for the rest of the session", "a  yes, always", "n  no"]"#;
        assert_eq!(asked, [format!(r#"alpha: Allow it? ["Wipes.", "p: 1"] {choices}"#)]);
        let persist = |word: &str| accepted(None, Some(json!({ "persist": word })));
        assert_eq!(elicit(tool.clone(), &["s"]).await.0, persist("session"));
        assert_eq!(elicit(tool, &["a"]).await.0, persist("always"));
    }

    #[tokio::test]
    async fn a_question_without_receiver_is_declined() {
        let (prompt_handler, questions) = prompt_handler();
        drop(questions);
        let form = json!({ "threadId": "t", "turnId": null, "serverName": "s", "mode": "url", "message": "m",
            "url": "u", "elicitationId": "e", "_meta": null });
        assert_eq!(prompt_handler.answer_elicitation(serde_json::from_value(form).unwrap()).await, refused());
    }
}
