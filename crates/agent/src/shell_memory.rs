//! A snapshot of the user's login shell per thread, so that commands need not run its start-up files each time. It is
//! taken in the background when the first command runs, and used by later ones.
//!
//! Only for commands in the thread's own sandbox. A command outside of it runs the start-up files itself, because the
//! snapshot of a sandboxed shell is not trusted there.

use std::path::PathBuf;
use std::sync::Arc;

use loomd_config::Feature;
use loomd_exec::sandbox::Sandbox;
use loomd_exec::{Command, Snapshot, SnapshotRequest, snapshot_folder};
use parking_lot::Mutex;

use crate::confinement::{ALLOW_LOCAL_BINDING, Launch};
use crate::guard::{self, ActionCx};

#[derive(Default)]
pub(crate) struct ShellMemory(Arc<Mutex<ShellState>>);

#[derive(Default)]
struct ShellState {
    /// The working directory and sandbox of the snapshot that was or is being taken.
    place: Option<Place>,
    snapshot: Option<Snapshot>,
}

#[derive(Clone, PartialEq)]
struct Place {
    cwd: PathBuf,
    sandbox: Option<Sandbox>,
}

impl ShellMemory {
    /// Returns the command with the snapshot in place of the start-up files, once there is one.
    pub fn apply(&self, cx: &ActionCx, launch: &Launch, command: Command) -> Command {
        let turn = &cx.turn;
        if !turn.profile.config.features.enabled(Feature::ShellSnapshot) || !is_login(&command) || !is_own(cx, launch) {
            return command;
        }
        let place = Place { cwd: command.cwd.clone(), sandbox: launch.sandbox().cloned() };
        let mut state = self.0.lock();
        if state.place.as_ref() != Some(&place) {
            *state = ShellState { place: Some(place.clone()), snapshot: None };
            drop(state);
            self.look(cx, place);
            return command;
        }
        let mut set = turn.profile.config.config.shell_environment_policy.set.clone().unwrap_or_default();
        if command.env.get(ALLOW_LOCAL_BINDING).is_some() {
            // Proxy variables of start-up files must not replace those of the command's own proxy.
            set.extend(loomd_proxy::variables(0, None).into_iter().map(|(name, value)| (name.to_owned(), value)));
        }
        match &state.snapshot {
            Some(snapshot) => snapshot.apply(command, launch.sandbox(), &set),
            None => command,
        }
    }

    fn look(&self, cx: &ActionCx, place: Place) {
        let (state, services) = (Arc::downgrade(&self.0), Arc::clone(&cx.services));
        let (thread_id, profile) = (cx.turn.thread_id.clone(), Arc::clone(&cx.turn.profile));
        tokio::spawn(async move {
            let taken = Snapshot::take(SnapshotRequest {
                folder: &snapshot_folder(&services.home),
                thread_id: &thread_id,
                shell: services.shell(),
                cwd: place.cwd.clone(),
                environment: &services.environment,
                policy: &profile.config.config.shell_environment_policy,
                sandbox: place.sandbox.clone(),
                helper: None,
            })
            .await;
            if let Some(state) = state.upgrade() {
                let mut state = state.lock();
                if state.place.as_ref() == Some(&place) {
                    state.snapshot = taken;
                }
            }
        });
    }
}

/// Whether the command is confined as all commands of the thread are.
fn is_own(cx: &ActionCx, launch: &Launch) -> bool {
    let sandbox = guard::sandbox(&cx.turn, &cx.guard, &cx.services);
    cx.turn
        .settings
        .confinement(&cx.turn.profile)
        .launch(sandbox.as_ref())
        .is_ok_and(|own| own.sandbox() == launch.sandbox())
}

fn is_login(command: &Command) -> bool {
    matches!(&command.argv[..], [_, flag, _] if flag == "-lc")
}
