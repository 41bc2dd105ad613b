//! Checks whether the model answers, with a minimal turn in an ephemeral thread.

use std::time::{Duration, Instant};

use loomd_client::protocol::{AskForApproval, SandboxMode, ThreadStartParams};
use loomd_client::{Client, Error};
use tokio::time::timeout;

use super::Finding::{self, Fail, Pass, Warn};
use crate::show::problem;

/// How long the model may take for its one-word answer.
const TIMEOUT: Duration = Duration::from_secs(60);

const PROMPT: &str = "Reply with the one word: ready. Use no tools.";

pub async fn findings(client: &Client, cwd: &str, offline: bool) -> Vec<Finding> {
    let params = ThreadStartParams {
        cwd: Some(cwd.to_owned()),
        approval_policy: Some(AskForApproval::Never),
        sandbox: Some(SandboxMode::ReadOnly.into()),
        ephemeral: Some(true),
        ..ThreadStartParams::default()
    };
    let thread = match client.start_thread(params).await {
        Ok(thread) => thread,
        Err(error) => return vec![Fail(format!("cannot start a thread: {error}"))],
    };
    let settings = thread.settings();
    let which = format!("{} of {}", settings.model, settings.model_provider);
    if offline {
        return vec![Pass(which), Warn("not checked (--offline)".to_owned())];
    }
    let began = Instant::now();
    let answer = match timeout(TIMEOUT, thread.run(PROMPT)).await {
        Ok(Ok(done)) => {
            let took = began.elapsed().as_secs_f32();
            let tokens = done.usage.map_or(0, |usage| usage.total.total_tokens);
            Pass(format!("it answers in {took:.1}s, with {tokens} tokens"))
        }
        Ok(Err(Error::TurnFailed(done))) => {
            let error = done.turn.error.as_ref().map(problem).unwrap_or_default();
            Fail(format!("the turn failed: {error}"))
        }
        Ok(Err(error)) => Fail(format!("the turn failed: {error}")),
        Err(_) => Fail(format!("no answer within {TIMEOUT:?}")),
    };
    vec![Pass(which), answer]
}
