//! `account/*` and `getAuthStatus`

use loomd_accounts::{AccountError, ClientId, ExternalTokens};
use loomd_protocol::{
    Call, CancelLoginAccountParams, GetAccountParams, GetAccountRateLimitsResponse, GetAccountResponse,
    LoginAccountParams, RpcError, call,
};

use crate::context::Context;
use crate::responder::Responder;

/// `account/read`
pub(crate) async fn read(cx: &Context, params: GetAccountParams) -> Result<GetAccountResponse, RpcError> {
    cx.app.accounts.read(&params).await.map_err(failed)
}

/// `account/login/start`
pub(crate) async fn login(cx: &Context, params: LoginAccountParams, responder: Responder<call::AccountLoginStart>) {
    let accounts = &cx.app.accounts;
    match params {
        LoginAccountParams::ApiKey { api_key } => accounts.login_with_key(api_key, reply(responder)).await,
        LoginAccountParams::ChatgptAuthTokens { access_token, chatgpt_account_id, chatgpt_plan_type } => {
            let tokens = ExternalTokens { access_token, account_id: chatgpt_account_id, plan: chatgpt_plan_type };
            accounts.login_with_tokens(tokens, ClientId(cx.connection.0), reply(responder)).await;
        }
        LoginAccountParams::Chatgpt => {
            accounts.login_in_browser(&cx.client.identity.originator, reply(responder)).await
        }
        LoginAccountParams::ChatgptDeviceCode => accounts.login_with_device_code(reply(responder)).await,
    }
}

/// `account/login/cancel`
pub(crate) async fn cancel(
    cx: &Context,
    params: CancelLoginAccountParams,
    responder: Responder<call::AccountLoginCancel>,
) {
    cx.app.accounts.cancel(&params.login_id, reply(responder)).await;
}

/// `account/logout`
pub(crate) async fn logout(cx: &Context, responder: Responder<call::AccountLogout>) {
    cx.app.accounts.logout(reply(responder)).await;
}

/// `account/rateLimits/read`
pub(crate) async fn rate_limits(cx: &Context) -> Result<GetAccountRateLimitsResponse, RpcError> {
    cx.app.accounts.rate_limits().await.map_err(failed)
}

fn reply<C: Call>(responder: Responder<C>) -> impl FnOnce(Result<C::Result, AccountError>) + Send {
    |outcome| responder.answer(outcome.map_err(failed))
}

fn failed(error: AccountError) -> RpcError {
    if error.is_refusal() {
        RpcError::invalid_request(error.to_string())
    } else {
        RpcError::internal(error.to_string())
    }
}
