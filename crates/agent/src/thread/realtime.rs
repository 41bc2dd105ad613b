//! What a thread does with its realtime session: it publishes what the session reports, and runs turns for its handoffs.

use std::sync::Arc;
use std::time::Duration;

use loomd_config::Feature;
use loomd_ledger::Purpose;
use loomd_model::{CallOutcome, CallReport, TokenUsage};
use loomd_protocol::{
    CodexErrorInfo, ErrorNotification, ServerNotification, ThreadRealtimeClosedNotification,
    ThreadRealtimeErrorNotification, ThreadRealtimeItemAddedNotification, ThreadRealtimeOutputAudioDeltaNotification,
    ThreadRealtimeStartedNotification, ThreadRealtimeTranscriptUpdatedNotification, TurnError, UserInput,
};
use loomd_realtime::{Closing, Event, Input, InputQueue, Session, Usage};

use super::launching::new_turn_id;
use super::op::{RealtimeRequest, Reply};
use super::state::Thread;
use crate::realtime::{ConnectCx, RealtimeSession};
use crate::refusal::{MAX_INPUT_CHARS, Refusal};
use crate::turn_origin::TurnOrigin;
use crate::view::Persistence;

impl Thread {
    pub(super) async fn realtime_request(&mut self, request: RealtimeRequest, reply: Reply<()>) {
        if !self.profile.config.features.enabled(Feature::RealtimeConversation) {
            let message = format!("thread {} does not support realtime conversation", self.id);
            return reply(Err(Refusal::invalid(message)));
        }
        reply(Ok(()));
        match request {
            RealtimeRequest::Start { prompt, session_id } => self.start_realtime(prompt, session_id),
            RealtimeRequest::AppendText(text) => match &self.realtime {
                Some(realtime) => {
                    if realtime.session.inputs().put(Input::Text(text)).is_err() {
                        self.publish_realtime_error("too much text waits to be sent: the text was dropped".into())
                            .await;
                    }
                }
                None => self.publish_not_running().await,
            },
            RealtimeRequest::AppendAudio(data) => match &self.realtime {
                Some(realtime) => realtime.session.append_audio(data),
                None => self.publish_not_running().await,
            },
            RealtimeRequest::Stop => {
                self.forget_realtime();
                self.publish_realtime_closed("requested").await;
            }
        }
    }

    /// Opens a session. The one before ends without a notification.
    fn start_realtime(&mut self, prompt: String, session_id: Option<String>) {
        self.forget_realtime();
        let session_id = session_id.unwrap_or_else(|| self.id.to_string());
        let cx = ConnectCx {
            thread: self.id,
            profile: Arc::clone(&self.profile),
            environment: self.services.environment.clone(),
            store: Arc::clone(&self.store),
            reader: self.reader.clone().filter(|_| self.view.persistence() == Persistence::Stored),
            cwd: self.settings.cwd.clone(),
            prompt,
            session_id: session_id.clone(),
        };
        let version = cx.version();
        let session = Session::open(Arc::clone(&self.services.http), cx.connection());
        self.realtime = Some(RealtimeSession { session, session_id, version });
    }

    pub(super) async fn realtime_event(&mut self, event: Option<Event>) {
        let Some(realtime) = &self.realtime else { return };
        let thread_id = self.id.to_string();
        let notification = match event {
            Some(Event::Started) => {
                self.realtime_link.set_active();
                ServerNotification::ThreadRealtimeStarted(ThreadRealtimeStartedNotification {
                    thread_id,
                    session_id: Some(realtime.session_id.clone()),
                    version: realtime.version,
                })
            }
            Some(Event::Audio(audio)) => {
                ServerNotification::ThreadRealtimeOutputAudioDelta(ThreadRealtimeOutputAudioDeltaNotification {
                    thread_id,
                    audio,
                })
            }
            Some(Event::Transcript { role, text }) => {
                let role = role.into();
                ServerNotification::ThreadRealtimeTranscriptUpdated(ThreadRealtimeTranscriptUpdatedNotification {
                    thread_id,
                    role,
                    text,
                })
            }
            Some(Event::Item(item)) => {
                ServerNotification::ThreadRealtimeItemAdded(ThreadRealtimeItemAddedNotification { thread_id, item })
            }
            Some(Event::Usage(usage)) => return self.meter_realtime(usage),
            Some(Event::Handoff { item, text }) => {
                let inputs = realtime.session.inputs().clone();
                let added = ThreadRealtimeItemAddedNotification { thread_id, item };
                self.events.publish(ServerNotification::ThreadRealtimeItemAdded(added)).await;
                return self.run_handoff(text, inputs).await;
            }
            Some(Event::NotStarted(message)) => {
                self.forget_realtime();
                return self.publish_realtime_error(message).await;
            }
            Some(Event::Closed(Closing::Transport)) | None => {
                self.forget_realtime();
                return self.publish_realtime_closed("transport_closed").await;
            }
            Some(Event::Closed(Closing::Error(message))) => {
                self.forget_realtime();
                self.publish_realtime_error(message).await;
                return self.publish_realtime_closed("error").await;
            }
        };
        self.events.publish(notification).await;
    }

    /// Notes what a response of the session used. It belongs to the thread and to none of its turns.
    fn meter_realtime(&self, usage: Usage) {
        let Usage { input, cached_input, output } = usage;
        let spending = self.spending(String::new(), None, TurnOrigin::default());
        spending.call_ended(
            Purpose::Realtime,
            CallReport {
                provider: self.profile.provider.id().into(),
                model: self.profile.config.config.experimental_realtime_ws_model.clone().unwrap_or_default(),
                usage: Some(TokenUsage {
                    total_tokens: input.saturating_add(output),
                    input_tokens: input,
                    cached_input_tokens: cached_input,
                    cache_write_input_tokens: 0,
                    output_tokens: output,
                    reasoning_output_tokens: 0,
                }),
                duration: Duration::ZERO,
                outcome: CallOutcome::Completed,
                http_status: None,
            },
        );
    }

    /// Starts a turn for a handoff, or adds its text to the running one.
    async fn run_handoff(&mut self, text: Option<String>, inputs: InputQueue) {
        let done = |inputs: &InputQueue, error: Option<String>| _ = inputs.put(Input::HandoffDone { error });
        let Some(text) = text else { return };
        let chars = text.chars().count();
        if chars > MAX_INPUT_CHARS {
            return done(&inputs, Some(Refusal::InputTooLarge { chars }.to_string()));
        }
        let link = Arc::clone(&self.realtime_link);
        // Called before the turn runs, so no message of it is missed.
        let reply: Reply<_> = Box::new(move |turn: Result<loomd_protocol::Turn, Refusal>| match turn {
            Ok(turn) => link.delegate(turn.id, inputs),
            Err(refusal) => done(&inputs, Some(refusal.to_string())),
        });
        self.submit(vec![UserInput::Text { text, text_elements: Vec::new() }], reply).await;
    }

    /// Ends the session of a thread that is being unloaded.
    pub(super) async fn end_realtime(&mut self) {
        if self.realtime.is_some() {
            self.forget_realtime();
            self.publish_realtime_closed("requested").await;
        }
    }

    fn forget_realtime(&mut self) {
        self.realtime = None;
        self.realtime_link.clear();
    }

    async fn publish_realtime_closed(&self, reason: &str) {
        let (thread_id, reason) = (self.id.to_string(), Some(reason.into()));
        let closed = ThreadRealtimeClosedNotification { thread_id, reason };
        self.events.publish(ServerNotification::ThreadRealtimeClosed(closed)).await;
    }

    async fn publish_realtime_error(&self, message: String) {
        let error = ThreadRealtimeErrorNotification { thread_id: self.id.to_string(), message };
        self.events.publish(ServerNotification::ThreadRealtimeError(error)).await;
    }

    /// Publishes that there is no session to send to. It is an error of the thread and of none of its turns.
    async fn publish_not_running(&self) {
        self.view.change(&self.events, |status| status.error = true).await;
        let error = TurnError {
            message: "conversation is not running".into(),
            codex_error_info: Some(CodexErrorInfo::BadRequest),
            additional_details: None,
        };
        let (thread_id, turn_id) = (self.id.to_string(), new_turn_id());
        let error = ErrorNotification { error, will_retry: false, thread_id, turn_id };
        self.events.publish(ServerNotification::Error(error)).await;
    }
}
