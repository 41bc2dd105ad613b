//! Where a request is carried out when several nodes share the threads: here, or by the node that owns its thread.

use std::sync::Arc;
use std::time::Duration;

use loomd_ownership::{Answer, Need, NodeId};
use loomd_protocol::{Call, ClientRequest, RpcError, call};
use loomd_store::{RequestKey, ThreadId};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::json;
use serde_json::value::RawValue;
use tokio::time::{Instant, sleep, timeout};
use uuid::Uuid;

use crate::context::Context;
use crate::dispatch::dispatch;
use crate::link::{Links, Outcome};
use crate::nodes::{NOT_OWNER, Requester, Ticket, Verdict, refusal};
use crate::refusals::OWNER_LOST;

/// Methods that name a thread and concern what this node keeps beside it, or what every node reads from the store.
const LOCAL: [&str; 12] = [
    "approval/list",
    "feedback/upload",
    "thread/attachment/add",
    "thread/attachment/list",
    "thread/attachmentOwner/list",
    "thread/attachment/remove",
    "thread/list",
    "thread/memory/read",
    "thread/memoryMode/set",
    "thread/readState/update",
    "thread/search",
    "thread/section/move",
];

/// Methods that may be carried out twice.
const REPEATABLE: [&str; 16] = [
    "thread/backgroundTerminals/list",
    "thread/goal/clear",
    "thread/goal/get",
    "thread/items/list",
    "thread/items/read",
    "thread/loaded/list",
    "thread/name/set",
    "thread/queue/list",
    "thread/read",
    "thread/resume",
    "thread/searchOccurrences",
    "thread/settings/update",
    "thread/timeline/list",
    "thread/turns/list",
    "thread/unsubscribe",
    "turn/interrupt",
];

/// How often a request that may be carried out twice is begun here, when this node loses the thread before it has answered.
const TRIES: usize = 5;

/// The pause before it is begun again.
const PAUSE: Duration = Duration::from_millis(100);

/// A request that another node may have to carry out.
pub(crate) struct Route {
    by: Requester,
    target: Target,
    need: Need,
    repeatable: bool,
    method: &'static str,
    params: Option<Box<RawValue>>,
    /// Labels that the node of a new thread must have.
    placement: Vec<String>,
}

enum Target {
    Thread(ThreadId),
    /// The thread of an approval.
    Approval(Uuid),
    /// The thread that an earlier request with the same key has started.
    Claimed(RequestKey),
    /// A node with the labels of the placement.
    Placed,
}

/// The params that decide where a request is carried out.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Routed {
    thread_id: Option<String>,
    path: Option<IgnoredAny>,
    history: Option<IgnoredAny>,
    idempotency_key: Option<IgnoredAny>,
    client_user_message_id: Option<IgnoredAny>,
}

impl Route {
    /// `None` when the request is carried out here whoever owns what.
    pub fn of(by: Requester, request: &ClientRequest, params: Option<&RawValue>, event_ids: bool) -> Option<Self> {
        let method = request.method();
        let route = |target, need, repeatable| {
            let placement = match request {
                ClientRequest::ThreadStart(start) => start.placement.clone(),
                _ => Vec::new(),
            };
            Some(Self { by, target, need, repeatable, method, params: params.map(ToOwned::to_owned), placement })
        };
        match request {
            ClientRequest::ThreadStart(start) => {
                if let Some(key) = start.idempotency_key.as_deref()
                    && let Ok(key) = loomd_agent::request_key(call::ThreadStart::METHOD, key, start)
                {
                    return route(Target::Claimed(key), Need::Owner, true);
                }
                let is_placed = by == Requester::Client && !start.placement.is_empty();
                is_placed.then(|| route(Target::Placed, Need::Owner, false)).flatten()
            }
            ClientRequest::ApprovalDecide(decide) => {
                route(Target::Approval(decide.approval_id.parse().ok()?), Need::OwnerIfAny, false)
            }
            _ if LOCAL.contains(&method) => None,
            request => {
                let routed: Routed = serde_json::from_str(params?.get()).ok()?;
                let thread = routed.thread_id?.parse().ok()?;
                let need = match request {
                    ClientRequest::ThreadResume(_) if routed.path.is_some() || routed.history.is_some() => return None,
                    ClientRequest::ThreadResume(_) => Need::Owner,
                    _ => Need::OwnerIfAny,
                };
                let has_key =
                    routed.idempotency_key.is_some() || (event_ids && routed.client_user_message_id.is_some());
                route(Target::Thread(thread), need, has_key || REPEATABLE.contains(&method))
            }
        }
    }
}

/// Carries a request out where it belongs; resolves when it is answered.
pub(crate) async fn serve(cx: &Context, links: &Arc<Links>, route: Route, request: ClientRequest) {
    // Requests of a connection find their nodes in the order in which they came.
    let mut order = links.order().await;
    let thread = match &route.target {
        Target::Thread(thread) => Some(*thread),
        Target::Approval(id) => {
            let stored = cx.app.store().work().approval(*id).await;
            stored.ok().flatten().map(|approval| approval.thread_id)
        }
        // The claim names the thread, whichever node was first. One that cannot be made is refused by the handler.
        Target::Claimed(key) => cx.app.agent.claim(key).await.ok().map(|claimed| claimed.id),
        Target::Placed if links.nodes().has_labels(&route.placement) => None,
        Target::Placed => {
            drop(order);
            return serve_placed(cx, links, &route).await;
        }
    };
    let Some(thread) = thread else {
        drop(order);
        return dispatch(cx, request).await;
    };
    if links.is_moving(thread) {
        drop(order);
        if timeout(links.nodes().patience(), links.settled(thread)).await.is_err() {
            return cx.answer.refuse(&refused(Answer::Unavailable));
        }
        order = links.order().await;
    }
    let ticket = ticket(links, &route, thread).await;
    drop(order);
    carry_out(cx, links, &route, request, thread, ticket).await;
}

/// Looks for the node of a request. One that cannot run the thread does not take it.
async fn ticket(links: &Links, route: &Route, thread: ThreadId) -> Ticket {
    let mut need = route.need;
    if need == Need::Owner
        && route.by == Requester::Client
        && links.nodes().owned(thread).is_none()
        && !(links.nodes().has_labels(&route.placement) && links.nodes().can_run(thread).await)
    {
        need = Need::OwnerIfAny;
    }
    links.nodes().request(route.by, thread, need, route.repeatable)
}

async fn carry_out(
    cx: &Context,
    links: &Arc<Links>,
    route: &Route,
    mut request: ClientRequest,
    thread: ThreadId,
    mut looking: Ticket,
) {
    let mut unreached_since = None;
    let mut tries = 0;
    loop {
        match looking.next().await {
            Verdict::Run { epoch: Some(_) } => {
                let followed = match route.method == call::ThreadResume::METHOD {
                    true => links.unfollow(thread),
                    false => None,
                };
                cx.answer.stay_open();
                dispatch(cx, request).await;
                if let Some(followed) = followed
                    && !cx.answer.succeeded()
                {
                    links.follow_still(thread, followed);
                }
                if cx.answer.id().is_none() {
                    return;
                }
                // This node has lost the thread before it had answered.
                if !route.repeatable {
                    return refuse_open(cx);
                }
                if let Requester::Node(_) = route.by {
                    return cx.answer.refuse(&not_owner());
                }
                tries += 1;
                let again = ClientRequest::decode(route.method, route.params.as_deref());
                match again {
                    Ok(again) if tries < TRIES => request = again,
                    _ => return refuse_open(cx),
                }
                drop(looking);
                sleep(PAUSE).await;
                looking = ticket(links, route, thread).await;
            }
            // Nobody has it, and this node must not: another one has to.
            Verdict::Run { epoch: None } if route.need == Need::Owner => {
                drop(looking);
                if !route.placement.is_empty() {
                    return serve_placed(cx, links, route).await;
                }
                return match links.nodes().other_for(thread).await {
                    Some(node) => send(cx, links, route, node).await,
                    None => cx.answer.refuse(&unplaced(thread)),
                };
            }
            Verdict::Run { epoch: None } => {
                dispatch(cx, request).await;
                return refuse_open(cx);
            }
            Verdict::Forward(node) => {
                let Some(id) = cx.answer.id() else { return };
                match links.forward(node, id, route.method, route.params.as_deref().map(RawValue::get)).await {
                    Outcome::Answered => {
                        cx.answer.answered_elsewhere();
                        if route.method == call::ThreadUnsubscribe::METHOD {
                            links.unfollow(thread);
                        }
                        return looking.answered(node);
                    }
                    Outcome::NotOwner | Outcome::Refused(_) => looking.not_owner(node),
                    Outcome::Lost => looking.lost(),
                    Outcome::Unreached(Some(reason)) => return cx.answer.refuse(&unreached(&reason)),
                    Outcome::Unreached(None) => {
                        // A node that has died is replaced when its session has expired.
                        let since: Instant = *unreached_since.get_or_insert_with(Instant::now);
                        if since.elapsed() > links.nodes().patience() {
                            return cx.answer.refuse(&unreached("it does not answer"));
                        }
                        looking.not_owner(node);
                    }
                }
            }
            Verdict::NotOwner => return cx.answer.refuse(&not_owner()),
            Verdict::Refused(answer) => return cx.answer.refuse(&refused(answer)),
        }
    }
}

/// Refuses a request that has stayed open, as its last try was refused. Nothing to do for one that was answered.
fn refuse_open(cx: &Context) {
    let refusal = cx.answer.refusal().unwrap_or_else(|| refused(Answer::Unknown));
    cx.answer.refuse(&refusal);
}

/// Sends a request that needs labels to a node that has them.
async fn serve_placed(cx: &Context, links: &Arc<Links>, route: &Route) {
    let labels = &route.placement;
    match links.nodes().other_with(labels) {
        Some(node) => send(cx, links, route, node).await,
        None => {
            let message = format!("placement: no live node has the labels {}", labels.join(", "));
            cx.answer.refuse(&RpcError::invalid_request(message).with_data(json!({ "reason": "noNode" })));
        }
    }
}

/// Sends a request to a node, once.
async fn send(cx: &Context, links: &Arc<Links>, route: &Route, node: NodeId) {
    let Some(id) = cx.answer.id() else { return };
    match links.forward(node, id, route.method, route.params.as_deref().map(RawValue::get)).await {
        Outcome::Answered => cx.answer.answered_elsewhere(),
        Outcome::NotOwner | Outcome::Refused(_) => cx.answer.refuse(&refused(Answer::Unavailable)),
        Outcome::Unreached(reason) => {
            cx.answer.refuse(&unreached(reason.as_deref().unwrap_or("it does not answer")));
        }
        Outcome::Lost => cx.answer.refuse(&refused(Answer::Unknown)),
    }
}

/// The answer to another node: it looks for the owner again.
fn not_owner() -> RpcError {
    RpcError::internal("the thread is not this node's").with_data(json!({ "reason": NOT_OWNER }))
}

/// The error of a request whose node cannot be asked. Nothing was done.
fn unreached(reason: &str) -> RpcError {
    let message = format!("the node that has the thread is not reached: {reason}");
    RpcError::internal(message).with_data(json!({ "reason": "ownerUnreachable" }))
}

fn unplaced(thread: ThreadId) -> RpcError {
    let message = format!("no live node has the labels and the working directory of thread {thread}");
    RpcError::invalid_request(message).with_data(json!({ "reason": "noNode" }))
}

/// The error of a request that was not carried out. Its data says why.
fn refused(answer: Answer) -> RpcError {
    let reason = match answer {
        Answer::Busy => return RpcError::overloaded(),
        Answer::Moved => "draining",
        Answer::Unavailable => "noOwner",
        Answer::Unknown => OWNER_LOST,
    };
    RpcError::internal(refusal(answer)).with_data(json!({ "reason": reason }))
}

#[cfg(test)]
mod tests {
    use loomd_protocol::ClientRequest;

    use super::*;

    fn route(method: &str, params: serde_json::Value, event_ids: bool) -> Option<(Need, bool)> {
        let params = serde_json::value::to_raw_value(&params).unwrap();
        let request = ClientRequest::decode(method, Some(&params)).unwrap();
        let route = Route::of(Requester::Client, &request, Some(&params), event_ids)?;
        Some((route.need, route.repeatable))
    }

    #[test]
    fn requests_about_a_thread_go_to_its_owner_and_others_stay() {
        let id = ThreadId::new().to_string();
        assert_eq!(route("thread/resume", json!({ "threadId": id }), false), Some((Need::Owner, true)));
        assert_eq!(route("thread/resume", json!({ "threadId": id, "path": "/a" }), false), None);
        assert_eq!(route("thread/read", json!({ "threadId": id }), false), Some((Need::OwnerIfAny, true)));
        assert_eq!(route("thread/archive", json!({ "threadId": id }), false), Some((Need::OwnerIfAny, false)));
        assert_eq!(route("thread/read", json!({ "threadId": "no id" }), false), None);
        for (method, params) in [("thread/list", json!({})), ("thread/start", json!({})), ("model/list", json!({}))] {
            assert_eq!(route(method, params, false), None, "{method}");
        }
    }

    #[test]
    fn a_turn_is_repeated_only_under_a_key() {
        let start = json!({ "threadId": ThreadId::new().to_string(), "input": [], "clientUserMessageId": "a" });
        assert_eq!(route("turn/start", start.clone(), true), Some((Need::OwnerIfAny, true)));
        assert_eq!(route("turn/start", start, false), Some((Need::OwnerIfAny, false)));
        let placed = json!({ "placement": ["gpu"] });
        assert_eq!(route("thread/start", placed, false), Some((Need::Owner, false)));
    }

    #[test]
    fn every_named_method_exists() {
        for method in LOCAL.iter().chain(&REPEATABLE) {
            assert!(ClientRequest::METHODS.contains(method), "{method}");
        }
    }
}
