//! What the user's login shell is like, remembered for a thread, so that its commands need not run the
//! start-up files each time. It is found out beside the first command and used from then on.

use std::path::PathBuf;
use std::sync::Arc;

use loomd_config::Feature;
use loomd_exec::{Command, Snapshot, snapshot_folder};
use parking_lot::Mutex;

use crate::network::ALLOW_LOCAL_BINDING;
use crate::services::Services;
use crate::turn::TurnCx;

#[derive(Default)]
pub(crate) struct ShellMemory(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    /// Where it was looked at, or is being looked at.
    cwd: Option<PathBuf>,
    snapshot: Option<Snapshot>,
}

impl ShellMemory {
    /// The command with the start-up files replaced by what is known of them, if anything is.
    pub fn apply(&self, turn: &TurnCx, services: &Arc<Services>, command: Command) -> Command {
        if !turn.profile.config.features.enabled(Feature::ShellSnapshot) || !is_login(&command) {
            return command;
        }
        let mut state = self.0.lock();
        if state.cwd.as_ref() != Some(&command.cwd) {
            state.cwd = Some(command.cwd.clone());
            state.snapshot = None;
            drop(state);
            self.look(turn, services, command.cwd.clone());
            return command;
        }
        let mut set = turn.profile.config.config.shell_environment_policy.set.clone().unwrap_or_default();
        if command.env.get(ALLOW_LOCAL_BINDING).is_some() {
            // What start-up files say of proxies must not lead past the one that the command has.
            set.extend(loomd_proxy::variables(0, None).into_iter().map(|(name, value)| (name.to_owned(), value)));
        }
        match &state.snapshot {
            Some(snapshot) => snapshot.apply(command, &set),
            None => command,
        }
    }

    fn look(&self, turn: &TurnCx, services: &Arc<Services>, cwd: PathBuf) {
        let (state, services, thread_id) = (Arc::downgrade(&self.0), Arc::clone(services), turn.thread_id.clone());
        tokio::spawn(async move {
            let folder = snapshot_folder(&services.home);
            let taken = Snapshot::take(&folder, &thread_id, services.shell(), &cwd, &services.environment).await;
            if let Some(state) = state.upgrade() {
                let mut state = state.lock();
                if state.cwd.as_ref() == Some(&cwd) {
                    state.snapshot = taken;
                }
            }
        });
    }
}

fn is_login(command: &Command) -> bool {
    matches!(&command.argv[..], [_, flag, _] if flag == "-lc")
}
