//! What can be requested about the realtime session of a thread. Each request is handed to the thread's task, which
//! replies at once; problems are published.

use loomd_store::ThreadId;

use crate::refusal::Refusal;
use crate::thread::{Op, RealtimeRequest, Reply};
use crate::threads::Threads;

impl Threads {
    /// Opens a session in place of the one that is open, if any.
    pub async fn start_realtime(&self, id: ThreadId, prompt: String, session_id: Option<String>, reply: Reply<()>) {
        self.realtime(id, RealtimeRequest::Start { prompt, session_id }, reply).await;
    }

    /// Sends text of the user to the session.
    pub async fn append_realtime_text(&self, id: ThreadId, text: String, reply: Reply<()>) {
        self.realtime(id, RealtimeRequest::AppendText(text), reply).await;
    }

    /// Sends audio of the user to the session: 16 bit PCM in base64. Dropped when too much of it waits to be sent.
    pub async fn append_realtime_audio(&self, id: ThreadId, data: String, reply: Reply<()>) {
        self.realtime(id, RealtimeRequest::AppendAudio(data), reply).await;
    }

    /// Closes the session.
    pub async fn stop_realtime(&self, id: ThreadId, reply: Reply<()>) {
        self.realtime(id, RealtimeRequest::Stop, reply).await;
    }

    async fn realtime(&self, id: ThreadId, request: RealtimeRequest, reply: Reply<()>) {
        let _lane = self.lanes.enter(id).await;
        if let Err(Op::Realtime { reply, .. }) = self.send(id, Op::Realtime { request, reply }).await {
            reply(Err(Refusal::not_found(id)));
        }
    }
}
