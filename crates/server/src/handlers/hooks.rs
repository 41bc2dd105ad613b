//! `hooks/list`

use loomd_agent::{parse_id, working_directory};
use loomd_protocol::{HooksListParams, HooksListResponse, RpcError, call};

use crate::answer::{Handled, answer};
use crate::context::Context;
use crate::refusals::wire_error;

/// The most folders of one request.
const MAX_FOLDERS: usize = 256;

/// `hooks/list`: an entry per folder, in the order of the request.
pub(crate) async fn list(cx: &Context, params: HooksListParams) -> Handled<call::HooksList> {
    let cwds = match (params.thread_id, params.cwds) {
        (Some(_), cwds) if !cwds.is_empty() => {
            return Err(RpcError::invalid_request("specify either threadId or cwds"));
        }
        (Some(id), _) => {
            let id = parse_id(&id).map_err(wire_error)?;
            let cwd = cx.app.threads().cwd(id).await;
            vec![cwd.ok_or_else(|| RpcError::invalid_request(format!("thread not found: {id}")))?]
        }
        (None, cwds) if cwds.is_empty() => {
            vec![working_directory().map_err(wire_error)?.to_string_lossy().into_owned()]
        }
        (None, cwds) => cwds,
    };
    if cwds.len() > MAX_FOLDERS {
        return Err(RpcError::invalid_request(format!("cwds must be at most {MAX_FOLDERS}")));
    }
    answer(HooksListResponse { data: cwds.iter().map(|cwd| cx.app.agent.list_hooks(cwd)).collect() })
}
