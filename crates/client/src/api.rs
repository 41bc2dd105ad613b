//! Short methods of [`Client`] for common requests.

use loomd_protocol::{
    self as protocol, CommandExecParams, CommandExecResponse, ModelListParams, ModelListResponse, ReviewStartParams,
    ThreadArchiveParams, ThreadCompactStartParams, ThreadForkParams, ThreadListParams, ThreadListResponse,
    ThreadReadParams, ThreadResumeParams, ThreadStartParams, TurnInterruptParams, TurnStartParams, TurnSteerParams,
};

use crate::client::Client;
use crate::collect::CompletedTurn;
use crate::error::Error;
use crate::events::Filter;
use crate::review::{CompletedReview, Review};
use crate::thread::Thread;
use crate::turn::Turn;

/// Threads.
impl Client {
    /// Starts a thread. Fields that `params` leaves out are taken from [`Options::thread`](crate::Options::thread).
    pub async fn start_thread(&self, params: ThreadStartParams) -> Result<Thread, Error> {
        let params = self.options().thread.fill(params);
        Ok((self.clone(), self.thread_start(params).await?).into())
    }

    /// Resumes a stored thread; [`resume`](crate::resume) makes the params from an id.
    pub async fn resume_thread(&self, params: ThreadResumeParams) -> Result<Thread, Error> {
        Ok((self.clone(), self.thread_resume(params).await?).into())
    }

    /// Starts a thread with the history of another; [`fork`](crate::fork) makes the params from an id.
    pub async fn fork_thread(&self, params: ThreadForkParams) -> Result<Thread, Error> {
        Ok((self.clone(), self.thread_fork(params).await?).into())
    }

    pub async fn read_thread(&self, thread_id: &str, include_turns: bool) -> Result<protocol::Thread, Error> {
        let params = ThreadReadParams { thread_id: thread_id.to_owned(), include_turns };
        Ok(self.thread_read(params).await?.thread)
    }

    /// Returns one page of threads.
    pub async fn list_threads(&self, params: ThreadListParams) -> Result<ThreadListResponse, Error> {
        self.thread_list(params).await
    }

    pub async fn archive_thread(&self, thread_id: &str) -> Result<(), Error> {
        self.thread_archive(ThreadArchiveParams { thread_id: thread_id.to_owned() }).await.map(drop)
    }

    /// Starts a turn that shortens the thread's history. Does not wait for that turn.
    pub async fn compact_thread(&self, thread_id: &str) -> Result<(), Error> {
        self.thread_compact_start(ThreadCompactStartParams { thread_id: thread_id.to_owned(), idempotency_key: None })
            .await
            .map(drop)
    }
}

/// Turns and reviews.
impl Client {
    pub async fn start_turn(&self, params: TurnStartParams) -> Result<Turn, Error> {
        let thread_id = params.thread_id.clone();
        let events = self.events(Filter::thread(&thread_id));
        let before = self.hub().running(&thread_id);
        let started = self.turn_start(params).await?.turn;
        Ok(Turn::new(self.clone(), thread_id, started, before, events))
    }

    /// Starts a turn and waits for its end.
    pub async fn run_turn(&self, params: TurnStartParams) -> Result<CompletedTurn, Error> {
        self.start_turn(params).await?.finish().await
    }

    /// Adds input to a running turn and returns the turn's id.
    pub async fn steer_turn(&self, params: TurnSteerParams) -> Result<String, Error> {
        Ok(self.turn_steer(params).await?.turn_id)
    }

    pub async fn interrupt_turn(&self, thread_id: &str, turn_id: &str) -> Result<(), Error> {
        let params = TurnInterruptParams { thread_id: thread_id.to_owned(), turn_id: turn_id.to_owned() };
        self.turn_interrupt(params).await.map(drop)
    }

    pub async fn start_review(&self, params: ReviewStartParams) -> Result<Review, Error> {
        // A detached review has a thread of its own, whose id is not known yet.
        let mut events = self.events(Filter::default());
        let started = self.review_start(params).await?;
        let thread_id = started.review_thread_id;
        events.narrow(Filter::thread(&thread_id));
        let turn = Turn::new(self.clone(), thread_id.clone(), started.turn, None, events);
        Ok(Review { thread_id, turn })
    }

    /// Starts a review and waits for its end.
    pub async fn run_review(&self, params: ReviewStartParams) -> Result<CompletedReview, Error> {
        self.start_review(params).await?.finish().await
    }
}

/// Models and commands.
impl Client {
    /// Returns one page of models.
    pub async fn list_models(&self, params: ModelListParams) -> Result<ModelListResponse, Error> {
        self.model_list(params).await
    }

    /// Runs a command in the server's sandbox and waits for its end.
    pub async fn exec_command(&self, params: CommandExecParams) -> Result<CommandExecResponse, Error> {
        self.command_exec(params).await
    }
}
