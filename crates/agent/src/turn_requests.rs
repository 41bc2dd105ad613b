//! Requests about turns. Each is sent to the thread's task, which replies.

use loomd_protocol::{ReviewTarget, Turn, TurnStartParams, TurnSteerParams, UserInput};
use loomd_store::ThreadId;
use tokio::sync::oneshot;

use crate::event_sink::Subscriber;
use crate::refusal::{MAX_INPUT_CHARS, Refusal};
use crate::settings::Resolve;
use crate::thread::{Op, Opened, Reply};
use crate::threads::{Source, Threads};
use crate::turn::Work;
use crate::working_directory::absolute;
use crate::{git, prompts};

impl Threads {
    /// Starts a turn, or gives its input to the running one. A relative `cwd` starts in the working directory of the
    /// process.
    pub async fn start_turn(&self, mut params: TurnStartParams, reply: Reply<Turn>) {
        let id = match check_turn_start(&mut params) {
            Ok(id) => id,
            Err(refusal) => return reply(Err(refusal)),
        };
        let _lane = self.lanes.enter(id).await;
        let op = Op::StartTurn { params: Box::new(params), reply };
        if let Err(Op::StartTurn { reply, .. }) = self.send(id, op).await {
            reply(Err(Refusal::not_found(id)));
        }
    }

    /// Gives input to the running turn.
    pub async fn steer(&self, params: TurnSteerParams, reply: Reply<String>) {
        let id = match self.check_steer(&params) {
            Ok(id) => id,
            Err(refusal) => return reply(Err(refusal)),
        };
        let TurnSteerParams { expected_turn_id: expected, input, .. } = params;
        let _lane = self.lanes.enter(id).await;
        if let Err(Op::Steer { reply, .. }) = self.send(id, Op::Steer { expected, input, reply }).await {
            reply(Err(Refusal::not_found(id)));
        }
    }

    /// Interrupts the running turn.
    pub async fn interrupt(&self, id: ThreadId, turn_id: String, reply: Reply<()>) {
        let _lane = self.lanes.enter(id).await;
        if let Err(Op::Interrupt { reply, .. }) = self.send(id, Op::Interrupt { turn_id, reply }).await {
            reply(Err(Refusal::not_found(id)));
        }
    }

    /// Replaces a thread's conversation by a summary.
    pub async fn compact(&self, id: ThreadId, reply: Reply<Turn>) {
        self.replace(id, Work::Compact, reply).await;
    }

    /// Runs a command of the user in a thread, without the model.
    pub async fn shell_command(&self, id: ThreadId, command: String, reply: Reply<()>) {
        let _lane = self.lanes.enter(id).await;
        if let Err(Op::ShellCommand { reply, .. }) = self.send(id, Op::ShellCommand { command, reply }).await {
            reply(Err(Refusal::not_found(id)));
        }
    }

    /// Ends all commands that a thread runs in the background.
    pub async fn clean_terminals(&self, id: ThreadId, reply: Reply<()>) {
        let _lane = self.lanes.enter(id).await;
        if let Err(Op::CleanTerminals(reply)) = self.send(id, Op::CleanTerminals(reply)).await {
            reply(Err(Refusal::not_found(id)));
        }
    }

    async fn replace(&self, id: ThreadId, work: Work, reply: Reply<Turn>) {
        let _lane = self.lanes.enter(id).await;
        if let Err(Op::Replace { reply, .. }) = self.send(id, Op::Replace { work, reply }).await {
            reply(Err(Refusal::not_found(id)));
        }
    }

    /// Starts a review in the thread itself.
    pub async fn review(&self, id: ThreadId, target: ReviewTarget, reply: Reply<Turn>) {
        match self.review_work(id, target).await {
            Ok(work) => self.replace(id, work, reply).await,
            Err(refusal) => reply(Err(refusal)),
        }
    }

    /// Forks a thread for a review, and starts the review in the fork.
    pub async fn fork_for_review(
        &self,
        source: Source,
        resolve: Resolve,
        subscriber: Subscriber,
    ) -> Result<ThreadId, Refusal> {
        let (answer, answered) = oneshot::channel();
        let reply: Reply<Opened> = Box::new(|opened| _ = answer.send(opened));
        self.fork(source, false, resolve, subscriber, reply).await;
        let opened = answered.await.map_err(|_| Refusal::failed("the thread could not be copied"))??;
        opened.thread.id.parse().map_err(|_| Refusal::failed("the thread could not be copied"))
    }

    async fn review_work(&self, id: ThreadId, target: ReviewTarget) -> Result<Work, Refusal> {
        let loaded = self.get(id).ok_or_else(|| Refusal::not_found(id))?;
        let merge_base = match &target {
            ReviewTarget::BaseBranch { branch } => {
                let cwd = loaded.view.thread().cwd;
                if !git::is_repository(&cwd).await {
                    return Err(Refusal::invalid(format!("{cwd:?} is not a git repository")));
                }
                git::merge_base(&cwd, branch).await
            }
            _ => None,
        };
        let (hint, prompt) = (prompts::review_hint(&target), prompts::review_prompt(&target, merge_base.as_deref()));
        Ok(Work::Review { target, hint, prompt })
    }

    fn check_steer(&self, params: &TurnSteerParams) -> Result<ThreadId, Refusal> {
        let id = parse_id(&params.thread_id)?;
        if !self.is_loaded(id) {
            return Err(Refusal::not_found(id));
        }
        if params.expected_turn_id.is_empty() {
            return Err(Refusal::invalid("expectedTurnId must not be empty"));
        }
        check_size(&params.input)?;
        if params.input.is_empty() {
            return Err(Refusal::invalid("input must not be empty"));
        }
        Ok(id)
    }
}

/// Returns the id that a client names a thread by.
pub fn parse_id(text: &str) -> Result<ThreadId, Refusal> {
    text.parse().map_err(|error| Refusal::invalid(format!("invalid thread id: {error}")))
}

fn check_turn_start(params: &mut TurnStartParams) -> Result<ThreadId, Refusal> {
    check_size(&params.input)?;
    let id = parse_id(&params.thread_id)?;
    if let Some(cwd) = &mut params.cwd {
        *cwd = absolute(cwd)?.to_string_lossy().into_owned();
    }
    Ok(id)
}

fn check_size(input: &[UserInput]) -> Result<(), Refusal> {
    let chars = |part: &UserInput| match part {
        UserInput::Text { text, .. } => text.chars().count(),
        _ => 0,
    };
    match input.iter().map(chars).sum() {
        chars if chars > MAX_INPUT_CHARS => Err(Refusal::InputTooLarge { chars }),
        _ => Ok(()),
    }
}

/// Returns the target of a review with its texts trimmed; an empty one is refused.
pub(crate) fn review_target(target: ReviewTarget) -> Result<ReviewTarget, Refusal> {
    let filled = |name: &str, text: String| match text.trim() {
        "" => Err(Refusal::invalid(format!("{name} must not be empty"))),
        text => Ok(text.to_owned()),
    };
    Ok(match target {
        ReviewTarget::UncommittedChanges => ReviewTarget::UncommittedChanges,
        ReviewTarget::BaseBranch { branch } => ReviewTarget::BaseBranch { branch: filled("branch", branch)? },
        ReviewTarget::Commit { sha, title } => {
            let title = title.map(|title| title.trim().to_owned()).filter(|title| !title.is_empty());
            ReviewTarget::Commit { sha: filled("sha", sha)?, title }
        }
        ReviewTarget::Custom { instructions } => {
            ReviewTarget::Custom { instructions: filled("instructions", instructions)? }
        }
    })
}
