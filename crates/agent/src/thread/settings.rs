//! Changes of a thread's settings: by requests of their own, and by overrides of turns.

use loomd_protocol::{ServerNotification, ThreadSettingsUpdatedNotification, TurnStartParams};
use loomd_store::Durability;
use loomd_store::rollout::{Event, Record, ThreadSettingsApplied};

use super::memory::Memory;
use super::op::Reply;
use super::state::Thread;
use crate::confinement::CommandPolicy;
use crate::recorder::Recorder;
use crate::refusal::Refusal;
use crate::settings::Settings;
use crate::turn_cx::StepSettings;
use crate::view::Persistence;

impl Thread {
    /// Changes settings for the next turn; the running one keeps its own. Published if they are other ones than before.
    pub(super) async fn update_settings(
        &mut self,
        params: TurnStartParams,
        chosen: Option<Box<CommandPolicy>>,
        reply: Reply<()>,
    ) {
        if let Some(disallowed) = self.disallowed(&params) {
            return reply(Err(Refusal::invalid(disallowed)));
        }
        let before = self.settings.clone();
        self.settings.change(&params, chosen.map(|chosen| *chosen));
        if self.settings == before {
            return reply(Ok(()));
        }
        if let Err(refusal) = self.record_settings().await {
            self.settings = before;
            return reply(Err(refusal));
        }
        reply(Ok(()));
        self.publish_settings().await;
    }

    /// Records the settings and publishes them, if they are other ones than `before`. A failed write does not keep a
    /// turn from starting with them: its own record has them.
    pub(super) async fn settings_changed(&mut self, before: &Settings) {
        if self.settings == *before {
            return;
        }
        if let Err(refusal) = self.record_settings().await {
            tracing::warn!(thread = %self.id, %refusal, "the settings could not be recorded");
        }
        self.publish_settings().await;
    }

    /// Like [`Self::settings_changed`], under the lease of a turn that is about to start.
    pub(super) async fn settings_changed_under(
        &mut self,
        before: &Settings,
        (mut recorder, mut memory): (Recorder, Memory),
    ) -> (Recorder, Memory) {
        if self.settings == *before {
            return (recorder, memory);
        }
        if self.view.persistence() == Persistence::Stored {
            let written = async {
                recorder.note(&self.settings_record())?;
                recorder.flush(Durability::Flushed).await
            };
            if let Err(error) = written.await {
                tracing::warn!(thread = %self.id, %error, "the settings could not be recorded");
            }
            if let Some(conversation) = &mut memory.conversation {
                conversation.end = recorder.end;
            }
        }
        self.publish_settings().await;
        (recorder, memory)
    }

    async fn publish_settings(&self) {
        self.view.show_settings(&self.settings);
        let (thread_id, thread_settings) = (self.id.to_string(), self.settings.to_wire());
        let updated = ThreadSettingsUpdatedNotification { thread_id, thread_settings };
        self.events.publish(ServerNotification::ThreadSettingsUpdated(updated)).await;
    }

    /// Writes the settings to the rollout. One that is not stored yet gets them with its first turn.
    async fn record_settings(&mut self) -> Result<(), Refusal> {
        if self.view.persistence() != Persistence::Stored {
            return Ok(());
        }
        let record = self.settings_record();
        if let Some(running) = &self.running {
            return match running.cx.record_while_open(std::slice::from_ref(&record)).await {
                true => Ok(()),
                false => Err(Refusal::failed("the settings could not be saved")),
            };
        }
        self.append_idle(&record).await
    }

    fn settings_record(&self) -> Record {
        let (thread_id, thread_settings) = (self.id.to_string(), self.settings.to_stored());
        Record::EventMsg(Event::ThreadSettingsApplied(ThreadSettingsApplied { thread_id, thread_settings }))
    }

    /// Changes settings for the later model calls of a turn; false when it is not running.
    pub(super) fn update_turn(&self, turn_id: &str, change: StepSettings) -> bool {
        match &self.running {
            Some(running) if running.turn_id() == turn_id => {
                running.cx.change_steps(change);
                true
            }
            _ => false,
        }
    }
}
