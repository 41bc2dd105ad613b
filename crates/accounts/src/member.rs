//! Members of managed organisations.

use loomd_protocol::PlanType;

use crate::Accounts;
use crate::identity::Identity;

/// A user whose organisation may impose requirements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    pub account: String,
    pub user: Option<String>,
}

impl Accounts {
    /// Returns the member; `None` if the plan has no managed organisation.
    pub fn member(&self) -> Option<Member> {
        let current = self.current();
        let Some(Identity::Chatgpt(sign_in)) = &current.identity else { return None };
        let is_managed =
            matches!(sign_in.plan, PlanType::Business | PlanType::EnterpriseCbpUsageBased | PlanType::Enterprise);
        let account = sign_in.account_id.as_ref().or(sign_in.claims.auth.chatgpt_account_id.as_ref());
        let account = account.filter(|_| is_managed)?.clone();
        Some(Member { account, user: sign_in.claims.user_id().map(str::to_owned) })
    }
}
