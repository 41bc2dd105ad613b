//! Threads that several processes share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use loomd_agent::{Opened, Ownership, Owning, Refusal, Source, Subscriber};
use loomd_protocol::{ThreadStatus, ThreadUnsubscribeStatus, TurnStatus};
use loomd_store::{Store, ThreadId};
use serde_json::json;

use crate::world::{ME, World, answered, until};

/// The ownership of one thread.
#[derive(Default)]
struct Owner {
    epoch: AtomicU64,
    /// Another process has the thread between any two looks at it.
    moves: AtomicBool,
    is_owned: AtomicBool,
    /// This process was paused for too long.
    is_late: AtomicBool,
    gave_up: AtomicBool,
}

impl Ownership for Owner {
    fn own(&self, _: ThreadId) -> Owning<'_> {
        if self.moves.load(Ordering::Relaxed) {
            self.epoch.fetch_add(1, Ordering::Relaxed);
        }
        self.is_owned.store(true, Ordering::Relaxed);
        Box::pin(std::future::ready(Ok(self.epoch.load(Ordering::Relaxed))))
    }

    fn is_live(&self) -> bool {
        !self.is_late.load(Ordering::Relaxed)
    }

    fn gave_up(&self, _: ThreadId, subscribers: Vec<Subscriber>) {
        assert_eq!(subscribers, [ME]);
        self.gave_up.store(true, Ordering::Relaxed);
    }

    fn unloaded(&self, _: ThreadId) {
        self.is_owned.store(false, Ordering::Relaxed);
    }

    fn status_elsewhere(&self, _: ThreadId) -> Option<ThreadStatus> {
        None
    }
}

/// A stored thread of a world that is not loaded.
async fn unloaded_thread(owner: &Arc<Owner>) -> (World, ThreadId) {
    let world = World::shared("", Some(Arc::clone(owner) as Arc<dyn Ownership>)).await;
    let id = world.start(false).await;
    world.ask(id, "first").await;
    let left = answered(async |reply| world.threads.unsubscribe(id, ME, true, reply).await).await;
    assert_eq!(left, Ok(ThreadUnsubscribeStatus::Unsubscribed));
    until("unloading", async || !world.threads.is_loaded(id)).await;
    (world, id)
}

async fn resume(world: &World, id: ThreadId) -> Result<Opened, Refusal> {
    answered(async |reply| world.threads.resume(Source::Id(id), true, world.resolve(), ME, reply).await).await
}

#[tokio::test]
async fn a_thread_that_moves_while_it_is_read_is_not_loaded_and_not_kept() {
    let owner = Arc::new(Owner::default());
    let (world, id) = unloaded_thread(&owner).await;
    owner.moves.store(true, Ordering::Relaxed);
    assert!(matches!(resume(&world, id).await, Err(Refusal::LeaseLost(_))), "another process may have added to it");
    assert!(!owner.is_owned.load(Ordering::Relaxed));
    owner.moves.store(false, Ordering::Relaxed);
    assert_eq!(resume(&world, id).await.expect("a thread").thread.turns.len(), 1);
    assert!(owner.is_owned.load(Ordering::Relaxed));
}

#[tokio::test]
async fn a_thread_with_an_unfinished_turn_is_not_loaded_without_it() {
    let owner = Arc::new(Owner::default());
    let (world, id) = unloaded_thread(&owner).await;
    let notes = world.store.turn_notes().expect("a store with notes");
    notes.replace(id, b"a turn of another process\n".to_vec()).await.expect("notes");
    assert!(matches!(resume(&world, id).await, Err(Refusal::LeaseLost(_))), "its next turn would replace the notes");
    assert!(!owner.is_owned.load(Ordering::Relaxed));
    notes.remove(id).await.expect("notes");
    assert!(resume(&world, id).await.is_ok());
}

#[tokio::test]
async fn a_thread_that_cannot_be_read_is_not_kept() {
    let owner = Arc::new(Owner::default());
    let (world, _) = unloaded_thread(&owner).await;
    assert!(resume(&world, ThreadId::new()).await.is_err());
    assert!(!owner.is_owned.load(Ordering::Relaxed));
}

#[tokio::test]
async fn a_process_that_was_paused_for_too_long_does_not_show_what_another_may_have_written() {
    let owner = Arc::new(Owner::default());
    let (world, id) = unloaded_thread(&owner).await;
    assert!(resume(&world, id).await.is_ok());
    owner.is_late.store(true, Ordering::Relaxed);
    assert!(matches!(resume(&world, id).await, Err(Refusal::LeaseLost(_))));
    assert!(matches!(world.threads.read(id, true, "").await, Err(Refusal::LeaseLost(_))));
}

#[tokio::test]
async fn subscribers_are_notified_of_a_thread_that_gives_itself_up() {
    let owner = Arc::new(Owner::default());
    let (world, id) = unloaded_thread(&owner).await;
    assert!(resume(&world, id).await.is_ok());
    world.store.is_away.store(true, Ordering::Relaxed);
    _ = world.say(id, "second").await;
    until("unloading", async || !world.threads.is_loaded(id)).await;
    assert!(owner.gave_up.load(Ordering::Relaxed));
    assert!(!owner.is_owned.load(Ordering::Relaxed));
}

#[tokio::test]
async fn a_turn_that_is_about_to_be_taken_up_is_shown_in_progress() {
    let owner = Arc::new(Owner::default());
    let (world, id) = unloaded_thread(&owner).await;
    let note = json!({
        "note": "started", "turnId": "left", "startedAtMs": 5000, "work": { "kind": "compact" },
        "thread": {
            "settings": {
                "cwd": "/w", "approval_policy": "never", "model": "m",
                "sandbox_policy": { "type": "danger-full-access" },
            },
            "rawEvents": false, "hasEnvironment": true, "onDisconnect": "continue",
            "client": {
                "name": "c", "userAgent": "u", "originator": "o", "protocolVersion": "1", "newer": false,
                "openaiForm": false,
            },
        },
    });
    let notes = world.store.turn_notes().expect("a store with notes");
    notes.replace(id, format!("{note}\n").into_bytes()).await.expect("notes");
    let turns = world.threads.read(id, true, "").await.expect("a thread").turns;
    let shown: Vec<_> = turns.iter().map(|turn| (turn.status, turn.started_at == Some(5))).collect();
    assert_eq!(shown, [(TurnStatus::Completed, false), (TurnStatus::InProgress, true)]);
}
