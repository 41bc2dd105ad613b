//! `account/*` and `getAuthStatus`

use loomd_accounts::{AccountError, ClientId, ExternalTokens};
use loomd_protocol::{
    Call, CancelLoginAccountParams, GetAccountParams, GetAuthStatusParams, IgnoredParams, LoginAccountParams, NoParams,
    RpcError, call,
};

use crate::answer::{Handled, Responder, answer};
use crate::context::Context;

/// `account/read`
pub(crate) async fn read(cx: &Context, params: GetAccountParams) -> Handled<call::AccountRead> {
    answer(cx.app.accounts.read(&params, cx.client.level).await.map_err(failed)?)
}

/// `account/login/start`
pub(crate) async fn login(cx: &Context, params: LoginAccountParams) -> Handled<call::AccountLoginStart> {
    let accounts = &cx.app.accounts;
    let (responder, answer) = cx.answer.responder();
    match params {
        LoginAccountParams::ApiKey { api_key } => accounts.login_with_key(api_key, reply(responder)).await,
        LoginAccountParams::ChatgptAuthTokens { id_token, access_token, chatgpt_account_id, chatgpt_plan_type } => {
            let (account_id, plan) = (chatgpt_account_id, chatgpt_plan_type);
            let tokens = ExternalTokens { id_token, access_token, account_id, plan };
            accounts.login_with_tokens(tokens, ClientId(cx.connection.0), reply(responder)).await;
        }
        LoginAccountParams::Chatgpt => {
            accounts.login_in_browser(&cx.client.identity.originator, reply(responder)).await
        }
        LoginAccountParams::ChatgptDeviceCode => accounts.login_with_device_code(reply(responder)).await,
    }
    Ok(answer)
}

/// `account/login/cancel`
pub(crate) async fn cancel(cx: &Context, params: CancelLoginAccountParams) -> Handled<call::AccountLoginCancel> {
    let (responder, answer) = cx.answer.responder();
    cx.app.accounts.cancel(&params.login_id, reply(responder)).await;
    Ok(answer)
}

/// `account/logout`
pub(crate) async fn logout(cx: &Context, _: NoParams) -> Handled<call::AccountLogout> {
    let (responder, answer) = cx.answer.responder();
    cx.app.accounts.logout(reply(responder)).await;
    Ok(answer)
}

/// `account/rateLimits/read`
pub(crate) async fn rate_limits(cx: &Context, _: IgnoredParams) -> Handled<call::AccountRateLimitsRead> {
    answer(cx.app.accounts.rate_limits().await.map_err(failed)?)
}

/// `getAuthStatus`
pub(crate) async fn auth_status(cx: &Context, params: GetAuthStatusParams) -> Handled<call::GetAuthStatus> {
    answer(cx.app.accounts.auth_status(&params).await)
}

fn reply<C: Call>(responder: Responder<C>) -> impl FnOnce(Result<C::Result, AccountError>) + Send {
    |outcome| responder.send(outcome.map_err(failed))
}

fn failed(error: AccountError) -> RpcError {
    if error.is_refusal() {
        RpcError::invalid_request(error.to_string())
    } else {
        RpcError::internal(error.to_string())
    }
}
