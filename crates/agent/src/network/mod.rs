//! Approvals of hosts: the proxy of a command on a managed network requests one for a host that no list mentions. A
//! proxy serves one command, from its start to its end.

mod decider;

use std::sync::Arc;
use std::time::Duration;

use loomd_exec::Command;
use tokio::sync::watch;
use tokio::time::{Instant, timeout};
use tokio_util::task::AbortOnDropHandle;

use crate::confinement::Launch;
use crate::guard::ActionCx;
use decider::ApprovalDecider;

/// Returns a command of the model as it is started and, on a managed network, its proxy.
pub(crate) fn launch(
    cx: &ActionCx,
    launch: Launch,
    command: Command,
) -> Result<(Command, Option<CommandProxy>), String> {
    let (asking, pending_approvals) = watch::channel(0);
    let mut decider = None;
    let (command, serving) = launch.wrap(
        command,
        || cx.guard.rules(&cx.turn.profile.config_folders),
        |network| {
            let new = ApprovalDecider::new(cx, network.may_request_approval, asking);
            Arc::clone(decider.insert(Arc::new(new))) as _
        },
    )?;
    let proxy = decider.zip(serving);
    Ok((command, proxy.map(|(decider, serving)| CommandProxy { decider, pending_approvals, serving })))
}

/// The proxy of one command; closed when dropped.
pub(crate) struct CommandProxy {
    decider: Arc<ApprovalDecider>,
    pending_approvals: watch::Receiver<usize>,
    serving: AbortOnDropHandle<()>,
}

impl CommandProxy {
    /// Keeps the proxy open until the command ends.
    pub fn detach(self) {
        self.serving.detach();
    }

    /// Returns why the last refused connection was refused, as a message for the model.
    pub fn refusal(&self) -> Option<String> {
        self.decider.refusal()
    }

    /// Resolves after `timeout`, not counting the time in which an approval is pending.
    pub async fn time_is_up(&self, timeout: Duration) {
        time_is_up(self.pending_approvals.clone(), timeout).await;
    }
}

async fn time_is_up(mut pending: watch::Receiver<usize>, after: Duration) {
    let mut left = after;
    loop {
        let none_pending = pending.wait_for(|pending| *pending == 0).await.is_ok();
        let begun = Instant::now();
        let requested = pending.wait_for(|pending| *pending > 0);
        if !none_pending || timeout(left, requested).await.is_err() {
            return;
        }
        left = left.saturating_sub(begun.elapsed());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_pending_approval_does_not_count_towards_the_timeout() {
        let (asking, open) = watch::channel(0);
        let begun = Instant::now();
        let approvals = async {
            for _ in 0..3 {
                tokio::time::sleep(Duration::from_secs(2)).await;
                asking.send_replace(1);
                tokio::time::sleep(Duration::from_secs(100)).await;
                asking.send_replace(0);
            }
        };
        tokio::join!(time_is_up(open, Duration::from_secs(10)), approvals);
        assert_eq!(begun.elapsed().as_secs(), 310);
    }
}
