//! One evaluation, from the prompt to its result: connect, sign in, open a thread, run a turn, decode.

mod handler;
mod native;
mod open;
mod turn;

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use loomd_client::{Client, Endpoint, Options};
use tokio::time::{Instant, timeout, timeout_at};

use crate::adapter::{Adapter, Response};
use crate::error::{EvaluateError, Failure, FailureKind, Phase};
use crate::event::{Event, PromptRendered};
use crate::limits::Limits;
use crate::output::Output;
use crate::prompt::{Prompt, Rendered};
use crate::session::{Epoch, EpochGuard, Session};
use handler::{EvaluationHandler, ToolCalls};
use turn::{Finished, TurnRequest};

/// What closing may take beyond the grace for a process: for pipes, and for a server that does not close its side.
const CLOSE_SLACK: Duration = Duration::from_secs(3);

/// Bytes of an output that an error repeats.
const MAX_QUOTED: usize = 500;

pub(crate) async fn evaluate<O: Output>(
    adapter: &Adapter,
    prompt: &Prompt,
    session: &mut Session,
    limits: &Limits,
) -> Result<Response<O>, EvaluateError> {
    let deadline = limits.earliest();
    let name = prompt.name();
    let named = |failure: Box<Failure>| EvaluateError::from(failure.of_prompt(&name));
    if deadline.is_some_and(|at| at <= Instant::now()) {
        let message = "the deadline passed before the evaluation";
        return Err(named(Failure::new(Phase::Request, FailureKind::Deadline, message)));
    }
    if let Some(exceeded) = limits.budget.as_ref().and_then(|budget| budget.exceeded()) {
        return Err(named(Failure::new(Phase::Budget, FailureKind::Budget, exceeded)));
    }
    let settings = |message: String| named(Failure::new(Phase::Request, FailureKind::Settings, message));
    let schema = O::output_schema().map_err(|error| settings(error.to_string()))?;
    let place = open::Place::of(adapter).map_err(&settings)?;

    let epoch = EpochGuard::begin(session);
    let rendered = prompt.render();
    publish_rendered(&epoch.0, &name, &rendered);
    let calls = Arc::new(ToolCalls::new(adapter, name.clone(), &rendered, epoch.0.clone(), limits));

    let client = connect(adapter, &calls, deadline).await.map_err(&named)?;
    let finished = async {
        let opening = open::open(adapter, &client, session, &epoch.0, &place, &rendered);
        let opened = before(deadline, "the thread was opened", opening).await?;
        let request = TurnRequest { adapter, client: &client, opened: &opened, text: rendered.text, schema, deadline };
        turn::run(request, &calls).await
    };
    let finished = finished.await;
    // A process has ended after this, and its stderr is known.
    let ended = timeout(CLOSE_SLACK + 2 * adapter.interrupt_grace, client.close()).await.unwrap_or_default();
    let finished = finished.map_err(|mut failure| {
        failure.add_stderr(&ended);
        named(failure)
    })?;
    let expansion = calls.take_expansion();
    if !expansion.requests.is_empty() {
        return Err(EvaluateError::Expansion(expansion));
    }
    decode(name.clone(), finished).map_err(named)
}

fn publish_rendered(epoch: &Epoch, prompt: &str, rendered: &Rendered) {
    epoch.publish(Event::PromptRendered(PromptRendered {
        prompt: prompt.to_owned(),
        text: rendered.text.clone(),
        tools: rendered.tools.iter().map(|tool| tool.name().to_owned()).collect(),
        at: SystemTime::now(),
    }));
}

/// Connects and makes the handshake.
async fn connect(adapter: &Adapter, calls: &Arc<ToolCalls>, deadline: Option<Instant>) -> Result<Client, Box<Failure>> {
    let mut options = Options::default()
        .handler(EvaluationHandler(Arc::clone(calls)))
        .request_timeout(adapter.startup_timeout)
        .turn_timeout(adapter.silence_timeout);
    options.client = adapter.client.clone();
    let endpoint = match adapter.endpoint.clone() {
        Endpoint::Program(program) => Endpoint::Program(program.close_grace(adapter.interrupt_grace)),
        other => other,
    };
    let connecting = async {
        let connected = Client::connect(endpoint, options).await;
        connected.map_err(|error| Failure::request(FailureKind::Connect, &error))
    };
    let client = before(deadline, "the server answered", connecting).await?;
    Ok(client.with_timeout(open::REQUEST_TIMEOUT))
}

/// Awaits a step before the turn, or fails at the deadline.
async fn before<R>(
    deadline: Option<Instant>,
    what: &str,
    step: impl Future<Output = Result<R, Box<Failure>>>,
) -> Result<R, Box<Failure>> {
    let Some(deadline) = deadline else { return step.await };
    timeout_at(deadline, step).await.unwrap_or_else(|_| {
        let message = format!("the deadline passed before {what}");
        Err(Failure::new(Phase::Request, FailureKind::Deadline, message))
    })
}

fn decode<O: Output>(prompt: String, finished: Finished) -> Result<Response<O>, Box<Failure>> {
    let Finished { text, usage, thread_id, turn_id, diff } = finished;
    let failed = |message: String| {
        let failure = Failure::new(Phase::Response, FailureKind::Output, message);
        failure.in_turn(&thread_id, &turn_id, usage.map(|usage| usage.turn))
    };
    let text = text.ok_or_else(|| failed("the turn ended without a message".to_owned()))?;
    let output = O::parse(&text).map_err(|reason| {
        failed(format!(
            "the output does not fit its type: {reason}; it is: {}",
            &text[..text.floor_char_boundary(MAX_QUOTED)]
        ))
    })?;
    let (usage, thread_usage) = (usage.map(|usage| usage.turn), usage.map(|usage| usage.thread));
    Ok(Response { prompt, output, text, usage, thread_usage, thread_id, turn_id, diff })
}
