//! `thread/backgroundTerminals/list` and `/terminate`

use loomd_agent::parse_id;
use loomd_protocol::{
    RpcError, ThreadBackgroundTerminal, ThreadBackgroundTerminalsListParams, ThreadBackgroundTerminalsListResponse,
    ThreadBackgroundTerminalsTerminateParams, ThreadBackgroundTerminalsTerminateResponse, call,
};

use crate::answer::Handled;
use crate::context::Context;
use crate::refusals::wire_error;

/// `thread/backgroundTerminals/list`: by process id, which is also the cursor.
pub(crate) async fn list(
    cx: &Context,
    params: ThreadBackgroundTerminalsListParams,
) -> Handled<call::ThreadBackgroundTerminalsList> {
    let id = parse_id(&params.thread_id).map_err(wire_error)?;
    let after: Option<u32> = params
        .cursor
        .map(|cursor| cursor.parse())
        .transpose()
        .map_err(|error| RpcError::invalid_request(format!("invalid cursor: {error}")))?;
    let limit = params.limit.map_or(usize::MAX, |limit| limit.max(1) as usize);
    let (reply, answer) = cx.answer.reply(move |mut data: Vec<ThreadBackgroundTerminal>| {
        data.retain(|terminal| after.is_none_or(|after| terminal.process_id.parse().is_ok_and(|id: u32| id > after)));
        let more = data.len() > limit;
        data.truncate(limit);
        let next_cursor = data.last().filter(|_| more).map(|terminal| terminal.process_id.clone());
        ThreadBackgroundTerminalsListResponse { data, next_cursor }
    });
    cx.app.threads().list_terminals(id, reply).await;
    Ok(answer)
}

/// `thread/backgroundTerminals/terminate`
pub(crate) async fn terminate(
    cx: &Context,
    params: ThreadBackgroundTerminalsTerminateParams,
) -> Handled<call::ThreadBackgroundTerminalsTerminate> {
    let id = parse_id(&params.thread_id).map_err(wire_error)?;
    let process_id = params
        .process_id
        .parse()
        .map_err(|error| RpcError::invalid_request(format!("invalid background terminal process id: {error}")))?;
    let (reply, answer) = cx.answer.reply(|terminated| ThreadBackgroundTerminalsTerminateResponse { terminated });
    cx.app.threads().end_terminal(id, process_id, reply).await;
    Ok(answer)
}
