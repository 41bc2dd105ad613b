//! One model call on top of an idle thread, of which the thread keeps nothing: no items, turns, status or usage.

use std::collections::BTreeMap;
use std::sync::Arc;

use loomd_ledger::Purpose;
use loomd_model::{ModelEvent, Request, Session};
use loomd_protocol::{ResponseItem, ThreadSampleParams, ThreadSampleResponse};
use loomd_store::Position;
use loomd_telemetry::SpanStatus;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::op::Reply;
use super::state::Thread;
use crate::conversation::Conversation;
use crate::guard::ActionCx;
use crate::history;
use crate::inbox::Inbox;
use crate::message::{message, text_of};
use crate::recorder::Recorder;
use crate::refusal::Refusal;
use crate::tools::{ToolCx, ToolSource, Toolbox};
use crate::turn::{Progress, TurnLabels, TurnTask};
use crate::turn_cx::TurnCx;
use crate::turn_origin::TurnOrigin;
use crate::view::Persistence;

/// The name of samples among the sources of threads, for the provider.
const SOURCE: &str = "thread_sample";

impl Thread {
    /// Starts a sample. The reply is called when the model has answered, or `cancel` is cancelled.
    pub(crate) async fn sample(
        &mut self,
        params: ThreadSampleParams,
        cancel: CancellationToken,
        reply: Reply<ThreadSampleResponse>,
    ) {
        match self.prepare_sample(params).await {
            Ok(sample) => _ = tokio::spawn(sample.run(cancel, reply)),
            Err(refusal) => reply(Err(refusal)),
        }
    }

    async fn prepare_sample(&mut self, params: ThreadSampleParams) -> Result<Sample, Refusal> {
        if self.running.is_some() || !self.queued.is_empty() {
            return Err(Refusal::invalid("sample source must be idle"));
        }
        let last_turn = match (&self.last_turn, &self.reader, self.view.persistence()) {
            (Some(turn_id), ..) => Some(turn_id.clone()),
            (None, Some(reader), Persistence::Stored) => history::last_turn_id(&**reader).await?,
            _ => None,
        };
        if last_turn.as_deref() != Some(params.expected_turn_id.as_str()) {
            return Err(Refusal::invalid("sample source turn must be the latest finished turn"));
        }
        let conversation = match (&self.memory, &self.reader) {
            (Some(memory), _) if memory.conversation.is_some() => memory.conversation.clone().unwrap_or_default(),
            (_, Some(reader)) => Conversation::load(&**reader).await?,
            _ => Conversation::default(),
        };
        let source_turn_id = params.expected_turn_id.clone();
        let task = self.sample_task(params, conversation);
        if let Some(error) = task.cx.spending.check().await.exceeded {
            return Err(Refusal::failed(error.message));
        }
        let mut request = task.request(task.conversation.input(task.sees_images()));
        // The provider has the beginning of the conversation cached under the thread's own key.
        request.prompt_cache_key = self.id.to_string();
        Ok(Sample { source_turn_id, request, session: task.session, cx: task.cx })
    }

    /// A turn that is never run, for the request that it would send.
    fn sample_task(&mut self, params: ThreadSampleParams, mut conversation: Conversation) -> TurnTask {
        conversation.push(&message("user", params.prompt));
        let mut settings = self.settings.clone();
        settings.reasoning_effort = params.effort.or(settings.reasoning_effort);
        let sample_id = Uuid::now_v7().to_string();
        let trace = self.trace("sample", &sample_id, &TurnOrigin::default());
        let spending = self.spending(sample_id.clone(), None, TurnOrigin::default());
        let cx = Arc::new(TurnCx::new(
            self.id,
            sample_id,
            settings,
            Arc::clone(&self.profile),
            self.profile.model(&self.settings.model),
            Arc::clone(&self.events),
            Arc::clone(&self.view),
            CancellationToken::new(),
            Recorder::new(None, Position::START, Arc::default()),
            Arc::clone(&self.realtime_link),
            Arc::clone(&self.guard.denials),
            spending,
            trace,
            None,
            Arc::default(),
        ));
        let action =
            ActionCx { turn: Arc::clone(&cx), services: Arc::clone(&self.services), guard: Arc::clone(&self.guard) };
        let tools = Arc::new(ToolCx::new(action, Arc::clone(&self.tools)));
        let sources: Arc<[Arc<dyn ToolSource>]> = match params.disable_mcp {
            true => self.tool_sources.iter().filter(|source| !source.is_mcp()).cloned().collect(),
            false => Arc::clone(&self.tool_sources),
        };
        let mut scope = self.scope(&cx);
        scope.session_id = Uuid::now_v7().to_string();
        let mut metadata: BTreeMap<String, String> = params.responsesapi_client_metadata.unwrap_or_default();
        metadata.insert("thread_source".into(), params.thread_source.unwrap_or_else(|| SOURCE.into()));
        let labels = TurnLabels {
            trigger: params.turn_trigger.filter(|trigger| !trigger.is_empty()),
            metadata,
            ..TurnLabels::default()
        };
        let progress = Progress::labelled(labels);
        TurnTask {
            toolbox: Arc::new(Toolbox::new(tools, sources)),
            scope,
            cx,
            services: Arc::clone(&self.services),
            view: Arc::clone(&self.view),
            conversation,
            session: Session::new(
                Arc::clone(&self.profile.provider),
                Arc::clone(&self.services.http),
                self.profile.identity.clone(),
            ),
            inbox: Arc::new(Inbox::default()),
            meta: None,
            subagents: Vec::new(),
            rate_limits: crate::turn::usage::no_limits(),
            goals: Arc::clone(&self.goals),
            replaced: Arc::default(),
            progress,
        }
    }
}

/// A model call that is about to be made.
struct Sample {
    source_turn_id: String,
    request: Request,
    session: Session,
    cx: Arc<TurnCx>,
}

impl Sample {
    async fn run(mut self, cancel: CancellationToken, reply: Reply<ThreadSampleResponse>) {
        let answered = tokio::select! {
            biased;
            () = cancel.cancelled() => Err(Refusal::failed("sample canceled")),
            answered = self.ask() => answered,
        };
        self.cx.trace.end(match &answered {
            Ok(_) => SpanStatus::Completed,
            Err(_) if cancel.is_cancelled() => SpanStatus::Cancelled,
            Err(_) => SpanStatus::Failed("the sample failed".into()),
        });
        reply(answered);
    }

    async fn ask(&mut self) -> Result<ThreadSampleResponse, Refusal> {
        let failed = |error: loomd_model::ModelError| Refusal::failed(error.message());
        let meter = self.cx.begin_model_call(Purpose::Sample, &mut self.request);
        let mut events = self.session.stream(&self.request, meter).await.map_err(failed)?;
        let mut text = None;
        while let Some(event) = events.next().await {
            match event.map_err(failed)? {
                ModelEvent::ItemDone { item: item @ ResponseItem::Message { .. }, .. } => text = Some(text_of(&item)),
                ModelEvent::Completed { response_id, usage } => {
                    return Ok(ThreadSampleResponse {
                        source_turn_id: self.source_turn_id.clone(),
                        response_id,
                        text,
                        input_tokens: usage.as_ref().map(|usage| usage.input_tokens),
                        cached_input_tokens: usage.as_ref().map(|usage| usage.cached_input_tokens),
                        output_tokens: usage.as_ref().map(|usage| usage.output_tokens),
                    });
                }
                _ => {}
            }
        }
        Err(Refusal::failed("stream disconnected before completion: stream closed before response.completed"))
    }
}
