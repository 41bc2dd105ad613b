//! What the server asks while a turn runs, on its way to whoever can answer. The [`Asker`] is the client's handler;
//! it passes each question on and waits. A question that nobody answers any more is refused.

use std::collections::BTreeMap;

use loomd_client::Handler;
use loomd_client::protocol::{
    CommandExecutionApprovalDecision, CommandExecutionRequestApprovalParams, FileChangeApprovalDecision,
    FileChangeRequestApprovalParams, GrantedPermissionProfile, McpServerElicitationAction,
    McpServerElicitationRequestParams, McpServerElicitationRequestResponse, PermissionGrantScope,
    PermissionsRequestApprovalParams, PermissionsRequestApprovalResponse, RequestPermissionProfile,
    ToolRequestUserInputAnswer, ToolRequestUserInputOption, ToolRequestUserInputParams, ToolRequestUserInputQuestion,
    ToolRequestUserInputResponse,
};
use tokio::sync::{mpsc, oneshot};

use crate::show::Asked;

/// Questions that wait while another is being answered.
const WAITING: usize = 64;

/// Where questions come out.
pub type Questions = mpsc::Receiver<Question>;

/// An asker, and where its questions come out.
pub fn asker() -> (Asker, Questions) {
    let (sender, questions) = mpsc::channel(WAITING);
    (Asker(sender), questions)
}

pub struct Asker(mpsc::Sender<Question>);

/// One question that one line answers.
pub struct Question {
    title: String,
    details: Vec<String>,
    reason: Option<String>,
    item_id: Option<String>,
    answers: Answers,
    reply: oneshot::Sender<Answer>,
}

enum Answers {
    /// Whether something may be done.
    Permission(Vec<Choice>),
    /// One of these, or words of one's own.
    Words(Vec<ToolRequestUserInputOption>),
    /// It cannot be answered here.
    None,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    Accept,
    AcceptForSession,
    Decline,
    Cancel,
}

const ALL: [Choice; 4] = [Choice::Accept, Choice::AcceptForSession, Choice::Decline, Choice::Cancel];

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    Choice(Choice),
    Words(String),
    Refused,
}

impl Question {
    /// Whether there is anything to choose from.
    pub fn can_be_answered(&self) -> bool {
        !matches!(self.answers, Answers::None)
    }

    /// Gives it to be shown.
    pub fn show<R>(&self, show: impl FnOnce(&Asked<'_>) -> R) -> R {
        let choices: Vec<String> = match &self.answers {
            Answers::Permission(choices) => choices.iter().map(|choice| choice.line().to_owned()).collect(),
            Answers::Words(options) => options.iter().zip(1..).map(|(option, number)| line(number, option)).collect(),
            Answers::None => Vec::new(),
        };
        show(&Asked {
            title: &self.title,
            details: &self.details,
            reason: self.reason.as_deref(),
            choices: &choices,
            item_id: self.item_id.as_deref(),
        })
    }

    /// What it is about, on one line: for a refusal.
    pub fn summary(&self) -> String {
        let about = self.details.first().and_then(|detail| detail.lines().next()).unwrap_or_default();
        format!("{} {about}", self.title).trim_end().to_owned()
    }

    /// What a typed line means; `None` when it means nothing. The end of the input is no line.
    pub fn understand(&self, line: Option<&str>) -> Option<Answer> {
        let Some(line) = line.map(str::trim) else { return Some(Answer::Refused) };
        match &self.answers {
            Answers::Permission(choices) => {
                let named = |choice: &&Choice| choice.names().contains(&line.to_lowercase().as_str());
                choices.iter().find(named).map(|choice| Answer::Choice(*choice))
            }
            Answers::Words(options) => {
                let option = line.parse().ok().and_then(|number: usize| options.get(number.checked_sub(1)?));
                let words = option.map_or(line, |option| option.label.as_str());
                (!words.is_empty()).then(|| Answer::Words(words.to_owned()))
            }
            Answers::None => Some(Answer::Refused),
        }
    }

    pub fn answer(self, answer: Answer) {
        // The server may have withdrawn it.
        _ = self.reply.send(answer);
    }

    /// Resolves when nobody waits for the answer any more.
    pub async fn withdrawn(&mut self) {
        self.reply.closed().await;
    }
}

impl Answer {
    /// Whether the agent does not get what it asked for.
    pub fn is_refusal(&self) -> bool {
        matches!(self, Self::Refused | Self::Choice(Choice::Decline | Choice::Cancel))
    }
}

impl Choice {
    fn line(self) -> &'static str {
        match self {
            Self::Accept => "y  yes",
            Self::AcceptForSession => "s  yes, also for the rest of the session",
            Self::Decline => "n  no",
            Self::Cancel => "c  no, and stop",
        }
    }

    fn names(self) -> &'static [&'static str] {
        match self {
            Self::Accept => &["y", "yes"],
            Self::AcceptForSession => &["s", "session", "always"],
            Self::Decline => &["n", "no"],
            Self::Cancel => &["c", "cancel", "stop"],
        }
    }
}

impl Asker {
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
            Answer::Words(_) | Answer::Refused => Choice::Decline,
        }
    }
}

impl Handler for Asker {
    async fn approve_command(
        &self,
        request: CommandExecutionRequestApprovalParams,
    ) -> CommandExecutionApprovalDecision {
        match self.choose(|reply| command_question(request, reply)).await {
            Choice::Accept => CommandExecutionApprovalDecision::Accept,
            Choice::AcceptForSession => CommandExecutionApprovalDecision::AcceptForSession,
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
            answers: Answers::Permission(ALL.into()),
            reply,
        });
        match choice.await {
            Choice::Accept => FileChangeApprovalDecision::Accept,
            Choice::AcceptForSession => FileChangeApprovalDecision::AcceptForSession,
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
            answers: Answers::Permission(vec![Choice::Accept, Choice::AcceptForSession, Choice::Decline]),
            reply,
        });
        let (granted, scope) = match choice.await {
            Choice::Accept => (true, PermissionGrantScope::Turn),
            Choice::AcceptForSession => (true, PermissionGrantScope::Session),
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
                answers.insert(id, ToolRequestUserInputAnswer { answers: vec![words] });
            }
        }
        ToolRequestUserInputResponse { answers }
    }

    async fn answer_elicitation(&self, _: McpServerElicitationRequestParams) -> McpServerElicitationRequestResponse {
        let refused = self.ask(|reply| Question {
            title: "An MCP server wants to know something.".to_owned(),
            details: Vec::new(),
            reason: None,
            item_id: None,
            answers: Answers::None,
            reply,
        });
        refused.await;
        let action = McpServerElicitationAction::Decline;
        McpServerElicitationRequestResponse { action, content: None, meta: None }
    }
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
        // Servers propose fewer, and take all of them.
        answers: Answers::Permission(ALL.into()),
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
        // What is typed can be seen.
        answers: if question.is_secret { Answers::None } else { Answers::Words(options) },
        reply,
    }
}

fn line(number: usize, option: &ToolRequestUserInputOption) -> String {
    match option.description.trim() {
        "" => format!("{number}  {}", option.label),
        description => format!("{number}  {} — {description}", option.label),
    }
}

fn permission_lines(wanted: &RequestPermissionProfile) -> Vec<String> {
    let network = wanted.network.as_ref().is_some_and(|network| network.enabled != Some(false));
    let paths = |word: &str, paths: Option<&Vec<_>>| -> Vec<String> {
        let path = |path: &loomd_protocol::AbsolutePathBuf| format!("{word} {}", path.display());
        paths.into_iter().flatten().map(path).collect()
    };
    let files = wanted.file_system.as_ref();
    let mut lines = paths("read", files.and_then(|files| files.read.as_ref()));
    lines.extend(paths("write", files.and_then(|files| files.write.as_ref())));
    lines.extend(network.then(|| "the network".to_owned()));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(answers: Answers) -> (Question, oneshot::Receiver<Answer>) {
        let (reply, answer) = oneshot::channel();
        let title = "May it?".to_owned();
        (Question { title, details: vec!["rm x\nrm y".into()], reason: None, item_id: None, answers, reply }, answer)
    }

    #[test]
    fn a_typed_line_is_an_answer_or_means_nothing() {
        let (may, _) = question(Answers::Permission(ALL.into()));
        for (line, meant) in [
            (Some("y"), Some(Answer::Choice(Choice::Accept))),
            (Some(" Yes "), Some(Answer::Choice(Choice::Accept))),
            (Some("s"), Some(Answer::Choice(Choice::AcceptForSession))),
            (Some("n"), Some(Answer::Choice(Choice::Decline))),
            (Some("c"), Some(Answer::Choice(Choice::Cancel))),
            (Some(""), None),
            (Some("yesterday"), None),
            (None, Some(Answer::Refused)),
        ] {
            assert_eq!(may.understand(line), meant, "{line:?}");
        }
        assert_eq!(may.summary(), "May it? rm x");
    }

    #[test]
    fn a_question_for_words_takes_a_number_or_words() {
        let option = |label: &str| ToolRequestUserInputOption { label: label.into(), description: String::new() };
        let (which, _) = question(Answers::Words(vec![option("red"), option("blue — dark")]));
        let words = |text: &str| Some(Answer::Words(text.into()));
        for (line, meant) in [
            ("1", words("red")),
            ("2", words("blue — dark")),
            ("3", words("3")),
            ("green", words("green")),
            (" ", None),
        ] {
            assert_eq!(which.understand(Some(line)), meant, "{line:?}");
        }
    }

    #[tokio::test]
    async fn a_question_that_nobody_takes_is_refused() {
        let (asker, questions) = asker();
        drop(questions);
        assert_eq!(asker.ask(|reply| Question { reply, ..question(Answers::None).0 }).await, Answer::Refused);
    }
}
