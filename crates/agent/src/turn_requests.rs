//! What can be asked about turns. Each request is handed to the thread's task, which answers it.

use loomd_protocol::{ReviewTarget, Turn, TurnStartParams, UserInput};
use loomd_store::ThreadId;
use tokio::sync::oneshot;

use crate::event_sink::Subscriber;
use crate::refusal::Refusal;
use crate::settings::Resolve;
use crate::thread::{Op, Opened, Reply};
use crate::threads::{Source, Threads};
use crate::turn::Work;
use crate::{git, prompts};

impl Threads {
    /// Says something in a thread.
    pub async fn start_turn(&self, id: ThreadId, params: TurnStartParams, reply: Reply<Turn>) {
        let _lane = self.lanes.enter(id).await;
        let op = Op::StartTurn { params: Box::new(params), reply };
        if let Err(Op::StartTurn { reply, .. }) = self.tell(id, op).await {
            reply(Err(Refusal::not_found(id)));
        }
    }

    /// Says something to the running turn.
    pub async fn steer(&self, id: ThreadId, expected: String, input: Vec<UserInput>, reply: Reply<String>) {
        let _lane = self.lanes.enter(id).await;
        if let Err(Op::Steer { reply, .. }) = self.tell(id, Op::Steer { expected, input, reply }).await {
            reply(Err(Refusal::not_found(id)));
        }
    }

    /// Stops the running turn.
    pub async fn interrupt(&self, id: ThreadId, turn_id: String, reply: Reply<()>) {
        let _lane = self.lanes.enter(id).await;
        if let Err(Op::Interrupt { reply, .. }) = self.tell(id, Op::Interrupt { turn_id, reply }).await {
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
        if let Err(Op::ShellCommand { reply, .. }) = self.tell(id, Op::ShellCommand { command, reply }).await {
            reply(Err(Refusal::not_found(id)));
        }
    }

    /// Ends all commands that a thread runs in the background.
    pub async fn clean_terminals(&self, id: ThreadId, reply: Reply<()>) {
        let _lane = self.lanes.enter(id).await;
        if let Err(Op::CleanTerminals(reply)) = self.tell(id, Op::CleanTerminals(reply)).await {
            reply(Err(Refusal::not_found(id)));
        }
    }

    async fn replace(&self, id: ThreadId, work: Work, reply: Reply<Turn>) {
        let _lane = self.lanes.enter(id).await;
        if let Err(Op::Replace { reply, .. }) = self.tell(id, Op::Replace { work, reply }).await {
            reply(Err(Refusal::not_found(id)));
        }
    }

    /// Has changes reviewed, in the thread itself.
    pub async fn review(&self, id: ThreadId, target: ReviewTarget, reply: Reply<Turn>) {
        match self.review_work(id, target).await {
            Ok(work) => self.replace(id, work, reply).await,
            Err(refusal) => reply(Err(refusal)),
        }
    }

    /// A new thread, with the past of another one, that a review takes place in.
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
}
