//! What the user's login shell is like, remembered for a thread, so that its commands need not run the
//! start-up files each time. It is found out beside the first command and used from then on.
//!
//! Only commands in the thread's own sandbox take part. One that the user lets out of it runs the start-up files
//! itself: what a sandboxed shell says of them is not to be trusted there.

use std::path::PathBuf;
use std::sync::Arc;

use loomd_config::Feature;
use loomd_exec::sandbox::Sandbox;
use loomd_exec::{Command, Snapshot, SnapshotRequest, snapshot_folder};
use parking_lot::Mutex;

use crate::confinement::{ALLOW_LOCAL_BINDING, Launch};
use crate::guard::{self, ActionCx};

#[derive(Default)]
pub(crate) struct ShellMemory(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    /// Where, and in which sandbox, the shell was looked at, or is being looked at.
    place: Option<Place>,
    snapshot: Option<Snapshot>,
}

#[derive(Clone, PartialEq)]
struct Place {
    cwd: PathBuf,
    sandbox: Option<Sandbox>,
}

impl ShellMemory {
    /// The command with the start-up files replaced by what is known of them, if anything is.
    pub fn apply(&self, cx: &ActionCx, launch: &Launch, command: Command) -> Command {
        let turn = &cx.turn;
        if !turn.profile.config.features.enabled(Feature::ShellSnapshot) || !is_login(&command) || !is_own(cx, launch) {
            return command;
        }
        let place = Place { cwd: command.cwd.clone(), sandbox: launch.sandbox().cloned() };
        let mut state = self.0.lock();
        if state.place.as_ref() != Some(&place) {
            *state = State { place: Some(place.clone()), snapshot: None };
            drop(state);
            self.look(cx, place);
            return command;
        }
        let mut set = turn.profile.config.config.shell_environment_policy.set.clone().unwrap_or_default();
        if command.env.get(ALLOW_LOCAL_BINDING).is_some() {
            // What start-up files say of proxies must not lead past the one that the command has.
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
