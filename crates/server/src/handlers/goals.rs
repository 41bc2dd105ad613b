//! `thread/goal/*`

use loomd_agent::{GoalChange, parse_id};
use loomd_protocol::{
    ThreadGoalClearParams, ThreadGoalClearResponse, ThreadGoalGetParams, ThreadGoalGetResponse, ThreadGoalSetParams,
    ThreadGoalSetResponse, call,
};

use crate::answer::{Handled, answer};
use crate::context::Context;
use crate::refusals::wire_error;

/// `thread/goal/set`
pub(crate) async fn set(cx: &Context, params: ThreadGoalSetParams) -> Handled<call::ThreadGoalSet> {
    let id = parse_id(&params.thread_id).map_err(wire_error)?;
    let limits = cx.app.agent.goal_limits(id).map_err(wire_error)?;
    let ThreadGoalSetParams { objective, status, token_budget, .. } = params;
    let (reply, answer) = cx.answer.reply(|goal| ThreadGoalSetResponse { goal });
    cx.app.threads().set_goal(id, GoalChange { objective, status, token_budget }, limits, reply).await;
    Ok(answer)
}

/// `thread/goal/get`
pub(crate) async fn get(cx: &Context, params: ThreadGoalGetParams) -> Handled<call::ThreadGoalGet> {
    let id = parse_id(&params.thread_id).map_err(wire_error)?;
    cx.app.agent.goal_limits(id).map_err(wire_error)?;
    answer(ThreadGoalGetResponse { goal: cx.app.threads().goal(id).await.map_err(wire_error)? })
}

/// `thread/goal/clear`
pub(crate) async fn clear(cx: &Context, params: ThreadGoalClearParams) -> Handled<call::ThreadGoalClear> {
    let id = parse_id(&params.thread_id).map_err(wire_error)?;
    cx.app.agent.goal_limits(id).map_err(wire_error)?;
    let (reply, answer) = cx.answer.reply(|cleared| ThreadGoalClearResponse { cleared });
    cx.app.threads().clear_goal(id, reply).await;
    Ok(answer)
}
