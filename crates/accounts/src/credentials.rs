//! The account as [`Credentials`] of model calls, and the recovery from a 401.

use loomd_model::{Bearer, BoxFuture, Credentials, ModelError};

use crate::identity::{Identity, Renewal};
use crate::{AccountError, AccountState, Accounts};

/// How often a call is retried because the credentials changed while it ran.
const MAX_CHANGES: u32 = 3;

impl Credentials for Accounts {
    fn bearer(&self) -> BoxFuture<'_, Result<Option<Bearer>, ModelError>> {
        Box::pin(async move {
            self.with_fresh_tokens().await.bearer().map_err(|error| ModelError::Credentials(error.to_string()))
        })
    }

    fn recover<'a>(&'a self, refused: &'a Bearer, refusals: u32) -> BoxFuture<'a, Result<bool, ModelError>> {
        Box::pin(async move {
            let current = self.current();
            if current.bearer().ok().flatten().as_ref() != Some(refused) {
                return Ok(refusals <= MAX_CHANGES);
            }
            let Some(Identity::Chatgpt(sign_in)) = &current.identity else { return Ok(false) };
            match (sign_in.renewal, refusals) {
                (Renewal::Issuer, 1) => self.reload(&current).await?,
                (Renewal::Issuer, 2) | (Renewal::Client(_), 1) => self.renew(current).await?,
                _ => return Ok(false),
            }
            Ok(true)
        })
    }
}

impl AccountState {
    pub(crate) fn bearer(&self) -> Result<Option<Bearer>, AccountError> {
        self.identity.as_ref().map(Identity::bearer).transpose()
    }

    pub(crate) fn account_id(&self) -> Option<&str> {
        match &self.identity {
            Some(Identity::Chatgpt(sign_in)) => sign_in.account_id.as_deref(),
            _ => None,
        }
    }
}
