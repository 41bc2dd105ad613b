//! The state of a loaded thread, which its task alone owns.

use std::collections::VecDeque;
use std::sync::Arc;

use loomd_store::rollout::SessionMeta;
use loomd_store::{Reader, Store, ThreadId};
use tokio::sync::oneshot;

use super::memory::{Memory, Unwritten};
use super::running_turn::{Queued, RunningTurn};
use crate::busy::Busy;
use crate::event_log::EventLog;
use crate::guard::Guard;
use crate::host::ThreadHost;
use crate::services::Services;
use crate::settings::{Profile, Settings};
use crate::tools::{ThreadTools, ToolSource};
use crate::view::View;

pub(crate) struct Thread {
    pub id: ThreadId,
    pub settings: Settings,
    pub profile: Arc<Profile>,
    /// What it says of itself when its first record is written.
    pub meta: Box<SessionMeta>,
    /// What it has been allowed.
    pub guard: Arc<Guard>,
    pub tools: Arc<ThreadTools>,
    pub tool_sources: Arc<[Arc<dyn ToolSource>]>,
    pub host: Arc<dyn ThreadHost>,
    pub view: Arc<View>,
    pub store: Arc<dyn Store>,
    /// Its records; `None` when it is ephemeral.
    pub reader: Option<Arc<dyn Reader>>,
    pub services: Arc<Services>,
    pub events: Arc<EventLog>,
    /// What the last turn left behind.
    pub memory: Option<Box<Memory>>,
    /// The instructions that the last turn's model was given, and its name. They stay as they are for as long as the
    /// model does, so that the provider can keep what it has cached.
    pub instructions: Option<(String, Arc<str>)>,
    pub running: Option<RunningTurn>,
    /// What ended while the thread could not be written to.
    pub unwritten: Vec<Unwritten>,
    /// Turns that wait for the running one.
    pub queued: VecDeque<Queued>,
    pub busy: Arc<Busy>,
    /// The number of open elicitations outside of the protocol, as clients count them.
    pub elicitations: u64,
    /// Whoever waits for the thread to be unloaded. Dropped with it.
    pub left: Option<oneshot::Sender<()>>,
}
