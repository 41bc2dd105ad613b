//! `get_goal`, `create_goal` and `update_goal`: how the model reads, sets and ends the goal of its thread. They make no
//! items; what they change is published as `thread/goal/updated`.

use loomd_config::Feature;
use loomd_model::ToolSpec;
use loomd_protocol::ThreadGoalStatus;
use loomd_store::Goal;
use serde::Deserialize;
use serde_json::{Value, json};

use super::cx::ToolCx;
use super::scope::{Role, ToolScope};
use super::spec::{function, number, one_of, string};
use super::tool::{Tool, ToolFuture, ToolName};
use crate::goals::{self, budget_report, remaining};
use crate::tool_call::{Call, ToolResult};
use crate::view::Persistence;

pub(super) struct GetGoal;
pub(super) struct CreateGoal;
pub(super) struct UpdateGoal;

/// Whether the model has the tools of goals.
fn offered(scope: &ToolScope<'_>) -> bool {
    scope.has(Feature::Goals) && scope.role != Role::Reviewer && scope.turn.profile.has_newer_tools()
}

/// Refuses threads that cannot keep a goal.
fn check(cx: &ToolCx) -> Result<(), String> {
    match cx.action.turn.view.persistence() {
        Persistence::Ephemeral => Err("goals need a persistent thread, and this one is ephemeral".into()),
        Persistence::Pending | Persistence::Stored => Ok(()),
    }
}

fn now_ms() -> i64 {
    jiff::Timestamp::now().as_millisecond()
}

/// What all three tools answer.
fn answer(cx: &ToolCx, goal: Option<&Goal>) -> ToolResult {
    let report = goal.filter(|goal| goal.status == ThreadGoalStatus::Complete).and_then(budget_report);
    let shown = goal.map(|goal| {
        let mut shown = serde_json::to_value(goal.to_wire(cx.action.turn.thread)).unwrap_or(Value::Null);
        if let Some(fields) = shown.as_object_mut().filter(|_| goal.token_budget.is_none()) {
            fields.shift_remove("tokenBudget");
        }
        shown
    });
    let answer = json!({
        "goal": shown, "remainingTokens": goal.and_then(remaining), "completionBudgetReport": report,
    });
    Ok(answer.to_string().into())
}

impl Tool for GetGoal {
    fn name(&self) -> ToolName<'_> {
        ToolName::plain("get_goal")
    }

    fn spec(&self, scope: &ToolScope<'_>) -> Option<ToolSpec> {
        let description =
            "Returns the goal of this thread: its objective, its status, its budget and what it has used.";
        offered(scope).then(|| function("get_goal", description, &[], &[]))
    }

    fn callable(&self, scope: &ToolScope<'_>) -> bool {
        offered(scope)
    }

    fn run<'a>(&'a self, cx: &'a ToolCx, _: &'a Call) -> ToolFuture<'a> {
        Box::pin(async {
            check(cx)?;
            let goal = cx.thread.goals.read().await.map_err(|refusal| refusal.to_string())?;
            answer(cx, goal.as_ref())
        })
    }
}

#[derive(Deserialize)]
struct CreateArgs {
    objective: String,
    token_budget: Option<i64>,
}

impl Tool for CreateGoal {
    fn name(&self) -> ToolName<'_> {
        ToolName::plain("create_goal")
    }

    fn spec(&self, scope: &ToolScope<'_>) -> Option<ToolSpec> {
        offered(scope).then(|| {
            function(
                "create_goal",
                "Gives this thread a goal that is worked on, turn after turn, until it is complete. Only when the user \
                 asks for one; not for ordinary tasks. Fails while there is a goal that is not complete.",
                &[
                    ("objective", string("What is to be reached, and how one can tell that it is.")),
                    ("token_budget", number("The most tokens to spend on it, if the user gave a limit.")),
                ],
                &["objective"],
            )
        })
    }

    fn callable(&self, scope: &ToolScope<'_>) -> bool {
        offered(scope)
    }

    fn run<'a>(&'a self, cx: &'a ToolCx, call: &'a Call) -> ToolFuture<'a> {
        Box::pin(async {
            check(cx)?;
            let CreateArgs { objective, token_budget } = call.arguments()?;
            let goals = &cx.thread.goals;
            let limits = goals.limits();
            let created = goals.change_in_turn(&cx.action.turn.turn_id, move |goal| {
                goals::create(goal, &objective, token_budget, limits, now_ms())
            });
            answer(cx, Some(&created.await?))
        })
    }
}

#[derive(Deserialize)]
struct UpdateArgs {
    status: String,
}

impl Tool for UpdateGoal {
    fn name(&self) -> ToolName<'_> {
        ToolName::plain("update_goal")
    }

    fn spec(&self, scope: &ToolScope<'_>) -> Option<ToolSpec> {
        offered(scope).then(|| {
            function(
                "update_goal",
                "Ends the goal of this thread. `complete` only when all of it is done and checked; `blocked` when you \
                 cannot go on without the user; `paused` when the user asks for a pause.",
                &[("status", one_of(&["complete", "blocked", "paused"], "What becomes of the goal."))],
                &["status"],
            )
        })
    }

    fn callable(&self, scope: &ToolScope<'_>) -> bool {
        offered(scope)
    }

    fn run<'a>(&'a self, cx: &'a ToolCx, call: &'a Call) -> ToolFuture<'a> {
        Box::pin(async {
            check(cx)?;
            let UpdateArgs { status } = call.arguments()?;
            let status = match status.as_str() {
                "complete" => ThreadGoalStatus::Complete,
                "blocked" => ThreadGoalStatus::Blocked,
                "paused" => ThreadGoalStatus::Paused,
                // Refused with a text that says which ones there are.
                _ => ThreadGoalStatus::Active,
            };
            let updated = cx
                .thread
                .goals
                .change_in_turn(&cx.action.turn.turn_id, move |goal| goals::update(goal, status, now_ms()));
            answer(cx, Some(&updated.await?))
        })
    }
}
