//! A question of the server, and what a typed line means for it. Who asks it is left to [`prompt_handler`](super::asker), how it
//! looks to [`show`](crate::show).

use loomd_client::protocol::{Secret, ToolRequestUserInputOption};
use tokio::sync::oneshot;

use super::form::{FieldValue, Field};
use crate::show::QuestionView;

/// One question that one line answers.
pub struct Question {
    pub title: String,
    pub details: Vec<String>,
    pub reason: Option<String>,
    pub item_id: Option<String>,
    pub answers: AnswerKind,
    pub reply: oneshot::Sender<Answer>,
}

pub enum AnswerKind {
    /// Whether something may be done.
    Permission(Vec<Choice>),
    /// One of these, or words of one's own; a secret must not be seen while it is typed.
    Words { options: Vec<ToolRequestUserInputOption>, secret: bool },
    /// A value for a field of a form.
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
    /// Whatever is typed may be a secret.
    Words(Secret),
    FieldValue(FieldValue),
    Refused,
}

impl Question {
    /// Whether what is typed must not be seen.
    pub fn is_secret(&self) -> bool {
        matches!(self.answers, AnswerKind::Words { secret: true, .. })
    }

    /// Gives it to be shown.
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

    /// For whoever typed something else.
    pub fn hint(&self) -> String {
        match &self.answers {
            AnswerKind::Permission(choices) => {
                let keys: Vec<_> = choices.iter().map(|choice| choice.names()[0]).collect();
                format!("Please type one of {}.", keys.join(", "))
            }
            AnswerKind::Words { .. } => "Please type an answer.".to_owned(),
            AnswerKind::Field(_) => "That does not fit.".to_owned(),
        }
    }

    /// What it is about and why it is not asked, on one line: for a refusal.
    pub fn refusal(&self) -> String {
        let about = self.details.first().and_then(|detail| detail.lines().next()).unwrap_or_default();
        let hint = match self.answers {
            AnswerKind::Permission(_) => "; see --ask and --sandbox",
            AnswerKind::Words { .. } | AnswerKind::Field(_) => "",
        };
        let what = format!("{} {about}", self.title);
        format!("{} (there is nobody to ask{hint})", what.trim_end())
    }

    /// What a typed line means; `None` when it means nothing. The end of the input is no line.
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
        // The server may have withdrawn it.
        _ = self.reply.send(answer);
    }

    /// Resolves when nobody waits for the answer any more.
    pub async fn resolved(&mut self) {
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
    fn a_typed_line_is_an_answer_or_means_nothing() {
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
        assert_eq!(may.refusal(), "May it? rm x (there is nobody to ask; see --ask and --sandbox)");
    }

    #[test]
    fn a_question_for_words_takes_a_number_or_words() {
        let option = |label: &str| ToolRequestUserInputOption { label: label.into(), description: String::new() };
        let which = question(AnswerKind::Words { options: vec![option("red"), option("blue — dark")], secret: false });
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
        assert_eq!(which.refusal(), "May it? rm x (there is nobody to ask)");
    }
}
