//! Decisions about hosts that no list of a thread mentions: those for the rest of the thread, and the open approvals.
//! Requests for the same host share one approval.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use jiff::Timestamp;
use loomd_policy::rules::{NetworkDecision, NetworkProtocol, NetworkRule, append_network_rule};
use loomd_protocol::{
    ApprovalsReviewer, AskForApproval, CommandExecutionApprovalDecision, CommandExecutionRequestApprovalParams,
    NetworkApprovalContext, NetworkApprovalProtocol, NetworkPolicyAmendment, NetworkPolicyRuleAction,
};
use loomd_proxy::{Host, Protocol, Request};
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::watch;

use super::reviewer::judge;
use crate::services::Services;
use crate::turn_cx::TurnCx;

/// The decisions of a thread about hosts.
#[derive(Default)]
pub(crate) struct Hosts(Mutex<HostDecisions>);

#[derive(Default)]
struct HostDecisions {
    /// Allowed for the session, with their protocol and port.
    allowed: HashSet<Key>,
    /// Allowed (true) or denied by an amendment, for every protocol and port.
    rules: HashMap<Host, bool>,
    /// The open approvals, with the channels of their decisions.
    open: HashMap<Key, Arc<watch::Sender<Option<HostDecision>>>>,
}

/// The subject of one approval.
type Key = (Protocol, Host, u16);

fn key(request: &Request) -> Key {
    (request.protocol, request.host.clone(), request.port)
}

/// The outcome of an approval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HostDecision {
    Yes,
    No,
    /// No decision, or a denial by the reviewer.
    Nothing,
}

impl Hosts {
    /// An earlier decision about a request.
    pub fn known(&self, request: &Request) -> Option<bool> {
        let state = self.lock();
        let rule = state.rules.get(&request.host).copied();
        rule.or_else(|| state.allowed.contains(&key(request)).then_some(true))
    }

    /// Requests an approval, or waits for the open one of the same protocol, host and port. The approval is withdrawn
    /// when the last caller is dropped.
    pub async fn ask(self: Arc<Self>, turn: &Arc<TurnCx>, services: &Arc<Services>, request: &Request) -> HostDecision {
        let mut answer = {
            let mut state = self.lock();
            match state.open.get(&key(request)) {
                Some(question) => question.subscribe(),
                None => {
                    let (question, answer) = watch::channel(None);
                    let question = Arc::new(question);
                    state.open.insert(key(request), Arc::clone(&question));
                    let (turn, services) = (Arc::clone(turn), Arc::clone(services));
                    tokio::spawn(Arc::clone(&self).settle(turn, services, request.clone(), question));
                    answer
                }
            }
        };
        match answer.wait_for(Option::is_some).await {
            Ok(said) => said.unwrap_or(HostDecision::Nothing),
            Err(_) => HostDecision::Nothing,
        }
    }

    /// Obtains a decision and sends it to all callers of [`Hosts::ask`].
    async fn settle(
        self: Arc<Self>,
        turn: Arc<TurnCx>,
        services: Arc<Services>,
        request: Request,
        question: Arc<watch::Sender<Option<HostDecision>>>,
    ) {
        let key = key(&request);
        let pointless = async {
            tokio::select! {
                () = question.closed() => {}
                () = turn.over.cancelled() => {}
            }
            // Later requests open an approval of their own.
            self.lock().open.remove(&key);
        };
        let settings = &turn.settings;
        let said = if turn.over.is_cancelled() {
            HostDecision::Nothing
        } else if settings.approvals_reviewer == ApprovalsReviewer::GuardianSubagent
            && settings.approval_policy == AskForApproval::OnRequest
        {
            let judged = judge(&turn, &services, &item_id(&request), action(&request)).await;
            if judged.is_ok() { HostDecision::Yes } else { HostDecision::Nothing }
        } else {
            self.put_to_user(&turn, &services, &request, pointless).await
        };
        self.lock().open.remove(&key);
        question.send_replace(Some(said));
    }

    async fn put_to_user(
        &self,
        turn: &TurnCx,
        services: &Services,
        request: &Request,
        pointless: impl Future<Output = ()>,
    ) -> HostDecision {
        use CommandExecutionApprovalDecision as D;
        let Some(decision) = turn.request_unless(approval(turn, request), pointless).await else {
            return HostDecision::Nothing;
        };
        match decision {
            D::Accept | D::AcceptWithExecpolicyAmendment { .. } => HostDecision::Yes,
            D::AcceptForSession => {
                self.lock().allowed.insert(key(request));
                HostDecision::Yes
            }
            D::ApplyNetworkPolicyAmendment { network_policy_amendment } => {
                self.amend(services, request, &network_policy_amendment).await
            }
            D::Cancel => {
                turn.cancel.cancel();
                HostDecision::No
            }
            D::Decline => HostDecision::No,
        }
    }

    /// Adds the user's rule about a host, for the thread and in the rules file.
    async fn amend(&self, services: &Services, request: &Request, amendment: &NetworkPolicyAmendment) -> HostDecision {
        let allow = amendment.action == NetworkPolicyRuleAction::Allow;
        let said = if allow { HostDecision::Yes } else { HostDecision::No };
        let Ok(host) = Host::parse(&amendment.host) else { return said };
        self.lock().rules.insert(host.clone(), allow);
        let (decision, verb) = if allow { (NetworkDecision::Allow, "Allow") } else { (NetworkDecision::Deny, "Deny") };
        let protocol = match request.protocol {
            Protocol::Http => NetworkProtocol::Http,
            Protocol::Https => NetworkProtocol::Https,
            Protocol::Socks5Tcp => NetworkProtocol::Socks5Tcp,
        };
        let justification = Some(format!("{verb} {} access to {host}", protocol.name()));
        let rule = NetworkRule { host: host.to_string(), protocol, decision, justification };
        let file = services.home.join("rules").join("default.rules");
        let written = tokio::task::spawn_blocking(move || append_network_rule(&file, &rule)).await;
        match written {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%error, "an approved rule could not be saved"),
            Err(error) => tracing::warn!(%error, "an approved rule could not be saved"),
        }
        said
    }

    fn lock(&self) -> MutexGuard<'_, HostDecisions> {
        self.0.lock()
    }
}

/// The `item_id` of an approval of a host, which belongs to no item.
fn item_id(request: &Request) -> String {
    format!("network#{}#{}#{}", request.protocol.name(), request.host, request.port)
}

/// The action as the reviewer is sent it.
fn action(request: &Request) -> serde_json::Value {
    let (protocol, host, port) = (request.protocol.name(), request.host.as_str(), request.port);
    serde_json::json!({
        "type": "networkAccess", "tool": "network_access", "target": format!("{protocol}://{host}:{port}"), "host": host, "protocol": protocol,
        "port": port,
    })
}

fn approval(turn: &TurnCx, request: &Request) -> CommandExecutionRequestApprovalParams {
    use CommandExecutionApprovalDecision as D;
    let host = request.host.to_string();
    let amendment = |action| NetworkPolicyAmendment { host: host.clone(), action };
    let allow = D::ApplyNetworkPolicyAmendment { network_policy_amendment: amendment(NetworkPolicyRuleAction::Allow) };
    CommandExecutionRequestApprovalParams {
        thread_id: turn.thread_id.clone(),
        turn_id: turn.turn_id.clone(),
        item_id: item_id(request),
        approval_id: None,
        reason: Some(format!("{host} is not in the allowed_domains")),
        network_approval_context: Some(NetworkApprovalContext {
            host: host.clone(),
            protocol: match request.protocol {
                Protocol::Http => NetworkApprovalProtocol::Http,
                Protocol::Https => NetworkApprovalProtocol::Https,
                Protocol::Socks5Tcp => NetworkApprovalProtocol::Socks5Tcp,
            },
        }),
        command: None,
        cwd: None,
        command_actions: None,
        additional_permissions: None,
        proposed_execpolicy_amendment: None,
        proposed_network_policy_amendments: Some(vec![
            amendment(NetworkPolicyRuleAction::Allow),
            amendment(NetworkPolicyRuleAction::Deny),
        ]),
        available_decisions: Some(vec![D::Accept, D::AcceptForSession, allow, D::Cancel]),
        started_at_ms: Timestamp::now().as_millisecond(),
    }
}
