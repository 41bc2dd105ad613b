//! `update_plan`: the model shares its plan; clients show it. Changes nothing else.

use loomd_model::ToolSpec;
use loomd_protocol::{ModeKind, ServerNotification, TurnPlanStep, TurnPlanStepStatus, TurnPlanUpdatedNotification};
use serde::Deserialize;

use super::cx::ToolCx;
use super::scope::ToolScope;
use super::spec::{array, function, object, one_of, string};
use super::tool::{Tool, ToolFuture, ToolName};
use crate::tool_call::Call;

pub(super) struct UpdatePlan;

#[derive(Deserialize)]
struct Args {
    explanation: Option<String>,
    plan: Vec<Step>,
}

#[derive(Deserialize)]
struct Step {
    step: String,
    status: Status,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Status {
    Pending,
    InProgress,
    Completed,
}

impl Tool for UpdatePlan {
    fn name(&self) -> ToolName<'_> {
        ToolName::plain("update_plan")
    }

    fn spec(&self, _: &ToolScope<'_>) -> Option<ToolSpec> {
        let step = object(
            &[
                ("step", string("What is to be done, in a few words.")),
                ("status", one_of(&["pending", "in_progress", "completed"], "How far it is.")),
            ],
            &["step", "status"],
        );
        Some(function(
            "update_plan",
            "Shares the plan for the current task with the user, or how far it is. Give all steps each time; at most \
             one is in progress.",
            &[
                ("plan", array(step, "The steps, in order.")),
                ("explanation", string("Why the plan is as it is, if that needs saying.")),
            ],
            &["plan"],
        ))
    }

    fn harmless(&self) -> bool {
        true
    }

    fn run<'a>(&'a self, cx: &'a ToolCx, call: &'a Call) -> ToolFuture<'a> {
        Box::pin(async {
            let args: Args = call.arguments()?;
            let turn = &cx.action.turn;
            if turn.settings.mode == ModeKind::Plan {
                return Err("update_plan is a TODO/checklist tool and is not allowed in Plan mode".into());
            }
            let plan = args.plan.into_iter().map(|Step { step, status }| TurnPlanStep {
                step,
                status: match status {
                    Status::Pending => TurnPlanStepStatus::Pending,
                    Status::InProgress => TurnPlanStepStatus::InProgress,
                    Status::Completed => TurnPlanStepStatus::Completed,
                },
            });
            let updated = TurnPlanUpdatedNotification {
                thread_id: turn.thread_id.clone(),
                turn_id: turn.turn_id.clone(),
                explanation: args.explanation,
                plan: plan.collect(),
            };
            turn.publish(ServerNotification::TurnPlanUpdated(updated)).await;
            Ok("Plan updated".into())
        })
    }
}
