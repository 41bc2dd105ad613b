//! `account/*` and `getAuthStatus`

use loomd_accounts::AccountError;
use loomd_protocol::{GetAccountParams, GetAccountResponse, LoginAccountParams, RpcError, call};

use crate::dispatch::{Context, not_available};
use crate::responder::Responder;

/// `account/read`
pub(crate) fn read(cx: &Context, _: GetAccountParams) -> Result<GetAccountResponse, RpcError> {
    cx.app.accounts.read().map_err(failed)
}

/// `account/login/start`
pub(crate) async fn login(cx: &Context, params: LoginAccountParams, responder: Responder<call::AccountLoginStart>) {
    let LoginAccountParams::ApiKey { api_key } = params else {
        return responder.answer(Err(not_available("this kind of account/login/start")));
    };
    cx.app.accounts.login_with_key(api_key, |outcome| responder.answer(outcome.map_err(failed))).await;
}

/// `account/logout`
pub(crate) async fn logout(cx: &Context, responder: Responder<call::AccountLogout>) {
    cx.app.accounts.logout(|outcome| responder.answer(outcome.map_err(failed))).await;
}

fn failed(error: AccountError) -> RpcError {
    if error.is_refusal() {
        RpcError::invalid_request(error.to_string())
    } else {
        RpcError::internal(error.to_string())
    }
}
