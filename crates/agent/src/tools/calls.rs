//! The tool calls of one answer of the model: which run side by side, which wait, how long they may take, and their
//! outputs in the order of the calls.

use std::sync::Arc;
use std::time::{Duration, Instant};

use loomd_protocol::{FunctionCallOutputBody, FunctionCallOutputContentItem, ResponseItem};
use loomd_store::rollout::TruncationPolicy;
use tokio::time::{Instant as Deadline, timeout, timeout_at};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use tracing::Instrument;
use tracing::field::Empty;

use super::cx::ToolCx;
use super::tool::Tool;
use super::toolbox::Toolbox;
use crate::metering::CountedOutcome;
use crate::settings::truncation;
use crate::tool_call::{Call, CallInput, Output, ToolResult};
use crate::truncate::{truncate, widened};
use crate::turn_cx::{GRACE, TurnCx};

/// Tools whose output begins with a line about the wall time when they are interrupted.
const SHELLS: &[&str] = &["shell", "container.exec", "local_shell", "shell_command"];

/// The calls that have no output yet.
#[derive(Default)]
pub(crate) struct Calls {
    running: Vec<RunningCall>,
    /// Cancelled when the last call that runs alone has ended.
    alone: Option<CancellationToken>,
    /// Cancelled when the calls that run in parallel since then have ended.
    beside: Vec<CancellationToken>,
}

struct RunningCall {
    call: Call,
    begun: Instant,
    task: AbortOnDropHandle<CallEnd>,
}

/// How a call ended.
enum CallEnd {
    Answered(ToolResult),
    /// The turn was interrupted before it ended.
    Stopped,
    /// The output comes from the recording that is replayed.
    Replayed(Output),
}

/// What a call waits for, and what waits for it.
struct CallOrder {
    before: Vec<CancellationToken>,
    done: CancellationToken,
}

impl Calls {
    /// Starts a call. It runs while the rest of the answer comes in.
    pub fn launch(&mut self, toolbox: &Toolbox, call: Call) {
        let tool = toolbox.find(&call).cloned();
        let parallel = tool.as_ref().is_some_and(|tool| tool.parallel()) && toolbox.offers(&call.name);
        let order = self.line_up(parallel);
        let span = tracing::debug_span!("tool_call", tool = %call.name, call_id = %call.id, outcome = Empty);
        let work = run(Arc::clone(toolbox.cx()), tool, call.clone(), order).instrument(span);
        let task = AbortOnDropHandle::new(tokio::spawn(work));
        self.running.push(RunningCall { call, begun: Instant::now(), task });
    }

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

    /// The outputs of all calls so far.
    pub fn take(&mut self) -> Outputs {
        Outputs { running: std::mem::take(self).running.into_iter(), deadline: None }
    }
}

async fn run(cx: Arc<ToolCx>, tool: Option<Arc<dyn Tool>>, call: Call, order: CallOrder) -> CallEnd {
    // Also when the tool panics or is aborted.
    let _done = order.done.drop_guard();
    for before in order.before {
        before.cancelled().await;
    }
    let turn = &cx.action.turn;
    let replayed = cx.action.services.replayed.as_ref();
    if let Some(replayed) = replayed.filter(|_| !tool.as_ref().is_some_and(|tool| tool.harmless())) {
        return CallEnd::Replayed(replayed.call(turn, &call).await);
    }
    let traced = turn.trace.tool_call(&call);
    let result = match &tool {
        _ if turn.cancel.is_cancelled() => Err("aborted".into()),
        Some(tool) => match turn.spending.begin_tool_call() {
            Ok(()) => loomd_telemetry::within(traced.context(), run_tool(&**tool, &cx, &call)).await,
            Err(exceeded) => Err(exceeded),
        },
        None => Err(call.unsupported()),
    };
    let (outcome, counted) = match &result {
        _ if turn.cancel.is_cancelled() => ("interrupted", CountedOutcome::Cancelled),
        Ok(_) => ("completed", CountedOutcome::Completed),
        Err(_) => ("failed", CountedOutcome::Failed),
    };
    tracing::Span::current().record("outcome", outcome);
    cx.action.services.metering.counts.tool_call(counted);
    traced.end(&call, &result, counted == CountedOutcome::Cancelled);
    if turn.cancel.is_cancelled() { CallEnd::Stopped } else { CallEnd::Answered(result) }
}

/// Runs a tool once its call is approved, for as long as its deadline allows.
async fn run_tool(tool: &dyn Tool, cx: &ToolCx, call: &Call) -> ToolResult {
    if let Some(approval) = tool.approve(cx, call) {
        approval.await?;
    }
    if !tool.notes_effects() {
        cx.action.turn.begin_effects(&call.id).await?;
    }
    match tool.deadline() {
        None => tool.run(cx, call).await,
        Some(limit) => within(limit, tool.run(cx, call)).await,
    }
}

async fn within(limit: Duration, work: impl Future<Output = ToolResult>) -> ToolResult {
    let late = |_| Err(format!("tool call timed out after {} seconds", limit.as_secs_f64()));
    timeout(limit, work).await.unwrap_or_else(late)
}

/// The outputs of the calls of one answer, in the order of the calls.
pub(crate) struct Outputs {
    running: std::vec::IntoIter<RunningCall>,
    /// All calls together have until then once the turn is interrupted.
    deadline: Option<Deadline>,
}

impl Outputs {
    pub fn is_empty(&self) -> bool {
        self.running.as_slice().is_empty()
    }

    /// The items that the next call adds to the conversation; `None` after the last call.
    pub async fn next(&mut self, turn: &TurnCx) -> Option<Vec<ResponseItem>> {
        let RunningCall { call, begun, task } = self.running.next()?;
        let policy = widened(truncation(&turn.model));
        let Output { body, notes } = match self.wait_for(turn, task).await {
            CallEnd::Stopped => fit(aborted(&call.name, begun.elapsed()).into(), policy),
            // A list of tools is bounded by their number, and of no use if it is cut.
            CallEnd::Answered(Ok(output)) if matches!(call.input, CallInput::Search(_)) => output,
            CallEnd::Answered(Ok(output)) => fit(output, policy),
            CallEnd::Answered(Err(text)) => fit(text.into(), policy),
            // Truncated when it was recorded.
            CallEnd::Replayed(output) => output,
        };
        let mut items = Vec::with_capacity(1 + notes.len());
        items.push(call.output(body));
        items.extend(notes);
        Some(items)
    }

    async fn wait_for(&mut self, turn: &TurnCx, mut task: AbortOnDropHandle<CallEnd>) -> CallEnd {
        let done = tokio::select! {
            biased;
            done = &mut task => done,
            () = turn.cancel.cancelled() => {
                let deadline = *self.deadline.get_or_insert_with(|| Deadline::now() + GRACE);
                match timeout_at(deadline, task).await {
                    Ok(done) => done,
                    Err(_) => return CallEnd::Stopped,
                }
            }
        };
        done.unwrap_or_else(|_| match turn.cancel.is_cancelled() {
            true => CallEnd::Stopped,
            false => CallEnd::Answered(Err("the tool failed inside; nothing more is known".into())),
        })
    }
}

/// The output of a call that was interrupted.
fn aborted(name: &str, after: Duration) -> String {
    let seconds = after.as_secs_f64().max(0.1);
    let text = format!("aborted by user after {seconds:.1}s");
    match name {
        _ if SHELLS.contains(&name) => format!("Wall time: {seconds:.1} seconds\naborted by user"),
        // Outputs of MCP tools are lists of blocks.
        _ if name.starts_with("mcp__") => serde_json::json!([{ "type": "text", "text": text }]).to_string(),
        _ => text,
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

    #[tokio::test(start_paused = true)]
    async fn a_tool_that_exceeds_its_deadline_is_dropped_and_its_output_says_so() {
        let limit = Duration::from_millis(1500);
        let never = within(limit, std::future::pending());
        assert_eq!(never.await, Err("tool call timed out after 1.5 seconds".into()));
        let in_time = within(limit, async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            Ok("done".into())
        });
        assert_eq!(in_time.await, Ok("done".into()));
    }

    #[test]
    fn calls_that_run_alone_wait_for_all_before_them() {
        let mut calls = Calls::default();
        let waits: Vec<usize> =
            [true, true, false, true, false, false].map(|parallel| calls.line_up(parallel).before.len()).into();
        assert_eq!(waits, [0, 0, 2, 1, 2, 1]);
    }
}
