//! [`Question`]: a server request as shown in the terminal, and how a typed line answers it.
//! [`handler`](super::handler) makes questions, [`show`](crate::show) renders them.

use loomd_client::protocol::{Secret, ToolRequestUserInputOption};
use tokio::sync::oneshot;

use super::form::{Field, FieldValue};
use crate::show::QuestionView;

/// A question that is answered by one line.
pub struct Question {
    pub title: String,
    pub details: Vec<String>,
    pub reason: Option<String>,
    pub item_id: Option<String>,
    pub answers: AnswerKind,
    pub reply: oneshot::Sender<Answer>,
}

pub enum AnswerKind {
    /// An approval.
    Permission(Vec<Choice>),
    /// One of the options, or free text; a secret is not echoed.
    Words { options: Vec<ToolRequestUserInputOption>, secret: bool },
    /// The value of a form's field.
    Field(Field),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    Accept,
    AcceptForSession,
    AcceptAlways,
    Decline,
    Cancel,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    Choice(Choice),
    /// Typed text, which may be a secret.
    Words(Secret),
    FieldValue(FieldValue),
    Refused,
}

impl Question {
    /// Whether echo must be off for the answer.
    pub fn is_secret(&self) -> bool {
        matches!(self.answers, AnswerKind::Words { secret: true, .. })
    }

    /// Calls `show` with the parts to render.
    pub fn show<R>(&self, show: impl FnOnce(&QuestionView<'_>) -> R) -> R {
        let choices: Vec<String> = match &self.answers {
            AnswerKind::Permission(choices) => choices.iter().map(|choice| choice.line().to_owned()).collect(),
            AnswerKind::Words { options, .. } => {
                options.iter().zip(1..).map(|(option, number)| line(number, option)).collect()
            }
            AnswerKind::Field(field) => field.choices(),
        };
        show(&QuestionView {
            title: &self.title,
            details: &self.details,
            reason: self.reason.as_deref(),
            choices: &choices,
            item_id: self.item_id.as_deref(),
        })
    }

    /// Shown after an invalid line.
    pub fn hint(&self) -> String {
        match &self.answers {
            AnswerKind::Permission(choices) => {
                let keys: Vec<_> = choices.iter().map(|choice| choice.names()[0]).collect();
                format!("Please type one of {}.", keys.join(", "))
            }
            AnswerKind::Words { .. } => "Please type an answer.".to_owned(),
            AnswerKind::Field(_) => "Invalid value.".to_owned(),
        }
    }

    /// A one-line message for a question that cannot be asked.
    pub fn refusal(&self) -> String {
        let about = self.details.first().and_then(|detail| detail.lines().next()).unwrap_or_default();
        let hint = match self.answers {
            AnswerKind::Permission(_) => "; see --ask and --sandbox",
            AnswerKind::Words { .. } | AnswerKind::Field(_) => "",
        };
        let what = format!("{} {about}", self.title);
        format!("{} (no terminal for approval{hint})", what.trim_end())
    }

    /// Returns the answer of a typed line, or of the end of the input (`None`). Returns `None` if the line is
    /// invalid.
    pub fn parse(&self, line: Option<&str>) -> Option<Answer> {
        let Some(line) = line.map(str::trim) else { return Some(Answer::Refused) };
        match &self.answers {
            AnswerKind::Permission(choices) => {
                let named = |choice: &&Choice| choice.names().contains(&line.to_lowercase().as_str());
                choices.iter().find(named).map(|choice| Answer::Choice(*choice))
            }
            AnswerKind::Words { options, .. } => {
                let option = line.parse().ok().and_then(|number: usize| options.get(number.checked_sub(1)?));
                let words = option.map_or(line, |option| option.label.as_str());
                (!words.is_empty()).then(|| Answer::Words(words.to_owned().into()))
            }
            AnswerKind::Field(field) => field.parse(line).map(Answer::FieldValue),
        }
    }

    pub fn answer(self, answer: Answer) {
        // The server may have resolved the request.
        _ = self.reply.send(answer);
    }

    /// Resolves when the server has resolved the request.
    pub async fn resolved(&mut self) {
        self.reply.closed().await;
    }
}

impl Answer {
    /// Whether the request is declined.
    pub fn is_refusal(&self) -> bool {
        matches!(self, Self::Refused | Self::Choice(Choice::Decline | Choice::Cancel))
    }
}

impl Choice {
    fn line(self) -> &'static str {
        match self {
            Self::Accept => "y  yes",
            Self::AcceptForSession => "s  yes, also for the rest of the session",
            Self::AcceptAlways => "a  yes, always",
            Self::Decline => "n  no",
            Self::Cancel => "c  no, and stop",
        }
    }

    fn names(self) -> &'static [&'static str] {
        match self {
            Self::Accept => &["y", "yes"],
            Self::AcceptForSession => &["s", "session"],
            Self::AcceptAlways => &["a", "always"],
            Self::Decline => &["n", "no"],
            Self::Cancel => &["c", "cancel", "stop"],
        }
    }
}

fn line(number: usize, option: &ToolRequestUserInputOption) -> String {
    match option.description.trim() {
        "" => format!("{number}  {}", option.label),
        description => format!("{number}  {} — {description}", option.label),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(answers: AnswerKind) -> Question {
        let (reply, _) = oneshot::channel();
        let title = "May it?".to_owned();
        Question { title, details: vec!["rm x\nrm y".into()], reason: None, item_id: None, answers, reply }
    }

    #[test]
    fn approvals_take_their_choices_and_reject_other_lines() {
        let choices = vec![Choice::Accept, Choice::AcceptForSession, Choice::AcceptAlways, Choice::Decline];
        let may = question(AnswerKind::Permission(choices));
        for (line, meant) in [
            (Some("y"), Some(Answer::Choice(Choice::Accept))),
            (Some(" Yes "), Some(Answer::Choice(Choice::Accept))),
            (Some("s"), Some(Answer::Choice(Choice::AcceptForSession))),
            (Some("a"), Some(Answer::Choice(Choice::AcceptAlways))),
            (Some("n"), Some(Answer::Choice(Choice::Decline))),
            (Some("c"), None),
            (Some(""), None),
            (Some("yesterday"), None),
            (None, Some(Answer::Refused)),
        ] {
            assert_eq!(may.parse(line), meant, "{line:?}");
        }
        assert_eq!(may.refusal(), "May it? rm x (no terminal for approval; see --ask and --sandbox)");
    }

    #[test]
    fn questions_take_an_option_number_or_free_text() {
        let option = |label: &str| ToolRequestUserInputOption { label: label.into(), description: String::new() };
        let which =
            question(AnswerKind::Words { options: vec![option("red"), option("blue — dark")], secret: false });
        let words = |text: &str| Some(Answer::Words(text.to_owned().into()));
        for (line, meant) in [
            ("1", words("red")),
            ("2", words("blue — dark")),
            ("3", words("3")),
            ("green", words("green")),
            (" ", None),
        ] {
            assert_eq!(which.parse(Some(line)), meant, "{line:?}");
        }
        assert_eq!(which.refusal(), "May it? rm x (no terminal for approval)");
    }
}
