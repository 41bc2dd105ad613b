//! The calls of one answer: which run at once, which wait, and what the model is told of each, in the order
//! in which it made them.

use std::time::{Duration, Instant};

use loomd_protocol::{FunctionCallOutputBody, FunctionCallOutputContentItem};
use loomd_store::rollout::TruncationPolicy;
use tokio::time::{Instant as Deadline, timeout_at};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::{Call, Output, SHELLS, ToolResult};
use crate::settings::truncation;
use crate::truncate::{truncate, widened};
use crate::turn::{GRACE, TurnTask};

/// The calls that were made and not yet answered.
#[derive(Default)]
pub(crate) struct Calls {
    running: Vec<RunningCall>,
    /// Done when the last call that runs alone is.
    alone: Option<CancellationToken>,
    /// Done when those are that run at the same time, since then.
    beside: Vec<CancellationToken>,
}

struct RunningCall {
    call: Call,
    begun: Instant,
    work: AbortOnDropHandle<Done>,
}

/// A call that is over.
enum Done {
    Answered(ToolResult),
    /// The turn was stopped before it was.
    Stopped,
    /// It was not made again; this is what the model was told of it.
    Replayed(Output),
}

/// What a call waits for, and what waits for it.
struct CallOrder {
    before: Vec<CancellationToken>,
    done: CancellationToken,
}

impl Calls {
    fn line_up(&mut self, parallel: bool) -> CallOrder {
        let done = CancellationToken::new();
        let mut before: Vec<_> = self.alone.iter().cloned().collect();
        if parallel {
            self.beside.push(done.clone());
        } else {
            before.append(&mut self.beside);
            self.alone = Some(done.clone());
        }
        CallOrder { before, done }
    }
}

impl TurnTask {
    /// Starts a call. It runs while the rest of the answer comes in.
    pub(crate) fn launch(&mut self, call: Call) {
        let tool = self.toolbox.find(&call.name);
        let parallel = tool.is_some_and(|tool| tool.parallel()) && self.toolbox.names.contains(&call.name);
        let CallOrder { before, done } = self.progress.calls.line_up(parallel);
        let (cx, called) = (std::sync::Arc::clone(&self.toolbox.cx), call.clone());
        let replayed = cx.services.replayed.clone().filter(|_| !tool.is_some_and(|tool| tool.harmless()));
        let work = tokio::spawn(async move {
            // Also when it panics or is stopped.
            let _done = done.drop_guard();
            for before in before {
                before.cancelled().await;
            }
            if let Some(replayed) = replayed {
                return Done::Replayed(replayed.call(&cx.turn, &called).await);
            }
            let answer = match tool {
                _ if cx.turn.cancel.is_cancelled() => Err("aborted".into()),
                Some(tool) => tool.run(&cx, &called).await,
                None => Err(called.unsupported()),
            };
            if cx.turn.cancel.is_cancelled() { Done::Stopped } else { Done::Answered(answer) }
        });
        self.progress.calls.running.push(RunningCall {
            call,
            begun: Instant::now(),
            work: AbortOnDropHandle::new(work),
        });
    }

    /// Waits for all calls and tells the model what came out, in the order of the calls. True when there
    /// were any.
    pub(crate) async fn collect_outputs(&mut self) -> bool {
        let running = std::mem::take(&mut self.progress.calls).running;
        let called = !running.is_empty();
        let mut deadline = None;
        for RunningCall { call, begun, work } in running {
            let policy = widened(truncation(&self.cx.model));
            let Output { body, notes } = match self.wait_for(work, &mut deadline).await {
                Done::Stopped => fit(aborted(&call.name, begun.elapsed()).into(), policy),
                Done::Answered(Ok(output)) => fit(output, policy),
                Done::Answered(Err(text)) => fit(text.into(), policy),
                // It was made to fit when it was made.
                Done::Replayed(output) => output,
            };
            self.remember(&call.output(body)).await;
            for note in &notes {
                self.remember(note).await;
            }
        }
        called
    }

    /// All calls together have until `deadline` once the turn is stopped.
    async fn wait_for(&self, mut work: AbortOnDropHandle<Done>, deadline: &mut Option<Deadline>) -> Done {
        let done = tokio::select! {
            biased;
            done = &mut work => done,
            () = self.cx.cancel.cancelled() => {
                let deadline = *deadline.get_or_insert_with(|| Deadline::now() + GRACE);
                match timeout_at(deadline, work).await {
                    Ok(done) => done,
                    Err(_) => return Done::Stopped,
                }
            }
        };
        done.unwrap_or_else(|_| match self.cx.cancel.is_cancelled() {
            true => Done::Stopped,
            false => Done::Answered(Err("the tool failed inside; nothing more is known".into())),
        })
    }
}

/// What the model is told of a call that the user stopped.
fn aborted(name: &str, after: Duration) -> String {
    let seconds = after.as_secs_f64().max(0.1);
    if SHELLS.contains(&name) {
        format!("Wall time: {seconds:.1} seconds\naborted by user")
    } else {
        format!("aborted by user after {seconds:.1}s")
    }
}

fn fit(output: Output, policy: TruncationPolicy) -> Output {
    Output { body: fit_body(output.body, policy), ..output }
}

/// Cuts an output to the size that the history takes. Images are kept.
fn fit_body(body: FunctionCallOutputBody, policy: TruncationPolicy) -> FunctionCallOutputBody {
    use FunctionCallOutputContentItem::{InputImage, InputText};
    match body {
        FunctionCallOutputBody::Text(text) => FunctionCallOutputBody::Text(truncate(&text, policy).text),
        FunctionCallOutputBody::Items(items) => {
            let mut room = crate::truncate::bytes(policy);
            let mut omitted = 0;
            let mut kept = Vec::with_capacity(items.len());
            for item in items {
                match item {
                    InputText { text } if room == 0 => omitted += usize::from(!text.is_empty()),
                    InputText { text } => {
                        let cut = truncate(&text, TruncationPolicy::Bytes(room as u64));
                        room = if cut.cut { 0 } else { room - text.len() };
                        kept.push(InputText { text: cut.text });
                    }
                    image @ InputImage { .. } => kept.push(image),
                }
            }
            if omitted > 0 {
                kept.push(InputText { text: format!("[omitted {omitted} text items ...]") });
            }
            FunctionCallOutputBody::Items(kept)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stopped_call_says_how_long_it_ran() {
        assert_eq!(aborted("shell", Duration::from_millis(420)), "Wall time: 0.4 seconds\naborted by user");
        assert_eq!(aborted("exec_command", Duration::ZERO), "aborted by user after 0.1s");
    }

    #[test]
    fn texts_are_charged_in_order_and_images_are_kept() {
        use FunctionCallOutputContentItem::{InputImage, InputText};
        let text = |text: &str| InputText { text: text.into() };
        let image = || InputImage { image_url: "data:".into(), detail: None };
        let items = vec![text("abcd"), image(), text("efghijkl"), text("gone"), image()];
        let fitted = fit_body(FunctionCallOutputBody::Items(items), TruncationPolicy::Bytes(8));
        let kept =
            vec![text("abcd"), image(), text("ef…4 chars truncated…kl"), image(), text("[omitted 1 text items ...]")];
        assert_eq!(fitted, FunctionCallOutputBody::Items(kept));
    }

    #[test]
    fn calls_that_run_alone_wait_for_all_before_them() {
        let mut calls = Calls::default();
        let waits: Vec<usize> =
            [true, true, false, true, false, false].map(|parallel| calls.line_up(parallel).before.len()).into();
        assert_eq!(waits, [0, 0, 2, 1, 2, 1]);
    }
}
