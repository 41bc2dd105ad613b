//! The account as a source of bearer tokens for model calls.

use loomd_model::{Bearer, BearerKind, BoxFuture, Credentials, ModelError};

use crate::identity::Identity;
use crate::{AccountError, Accounts};

impl Credentials for Accounts {
    fn bearer(&self) -> BoxFuture<'_, Result<Option<Bearer>, ModelError>> {
        let bearer = self.current().identity.as_ref().map(Identity::bearer).transpose();
        Box::pin(std::future::ready(bearer.map_err(|error: AccountError| ModelError::Credentials(error.to_string()))))
    }

    fn recover<'a>(&'a self, refused: &'a Bearer, refusals: u32) -> BoxFuture<'a, Result<bool, ModelError>> {
        Box::pin(std::future::ready(Ok(refusals == 1 && self.reload(refused))))
    }
}

impl Accounts {
    /// Takes over what another program wrote, if it is for the same account. True for a sign-in.
    fn reload(&self, refused: &Bearer) -> bool {
        let BearerKind::Chatgpt { account_id } = &refused.kind else { return false };
        let found = self.stored();
        if let Some(Identity::Chatgpt(sign_in)) = &found.identity
            && sign_in.account_id == *account_id
        {
            self.adopt(found);
        }
        true
    }
}
