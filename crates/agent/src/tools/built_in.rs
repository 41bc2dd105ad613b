//! The tools of the agent itself.

use std::sync::{Arc, LazyLock};

use super::agents::{CloseAgent, InNamespace, Plain, ResumeAgent, SendInput, SpawnAgent, WaitAgent};
use super::apply_patch::ApplyPatch;
use super::collaboration::{self, Collaboration};
use super::exec_command::ExecCommand;
use super::goals::{CreateGoal, GetGoal, UpdateGoal};
use super::hosted::{ImageGeneration, WebSearch};
use super::request_permissions::RequestPermissions;
use super::request_user_input::RequestUserInput;
use super::shell::{Alias, Shell};
use super::shell_command::ShellCommand;
use super::source::{ToolList, ToolSource};
use super::update_plan::UpdatePlan;
use super::view_image::ViewImage;
use super::write_stdin::WriteStdin;

pub(crate) struct BuiltInTools;

impl ToolSource for BuiltInTools {
    fn snapshot(&self) -> ToolList {
        Arc::clone(&TOOLS)
    }
}

static TOOLS: LazyLock<ToolList> = LazyLock::new(|| {
    Arc::new([
        Arc::new(ExecCommand),
        Arc::new(WriteStdin),
        Arc::new(ShellCommand),
        Arc::new(Shell),
        Arc::new(Alias("container.exec")),
        Arc::new(Alias("local_shell")),
        Arc::new(UpdatePlan),
        Arc::new(GetGoal),
        Arc::new(CreateGoal),
        Arc::new(UpdateGoal),
        Arc::new(RequestUserInput),
        Arc::new(RequestPermissions),
        Arc::new(ApplyPatch),
        Arc::new(WebSearch),
        Arc::new(ImageGeneration),
        Arc::new(ViewImage),
        Arc::new(Plain(SpawnAgent)),
        Arc::new(Plain(SendInput)),
        Arc::new(Plain(ResumeAgent)),
        Arc::new(Plain(WaitAgent)),
        Arc::new(Plain(CloseAgent)),
        Arc::new(InNamespace(SpawnAgent)),
        Arc::new(InNamespace(SendInput)),
        Arc::new(InNamespace(ResumeAgent)),
        Arc::new(InNamespace(WaitAgent)),
        Arc::new(InNamespace(CloseAgent)),
        Arc::new(Collaboration(collaboration::SpawnAgent)),
        Arc::new(Collaboration(collaboration::SendMessage)),
        Arc::new(Collaboration(collaboration::FollowupTask)),
        Arc::new(Collaboration(collaboration::InterruptAgent)),
        Arc::new(Collaboration(collaboration::ListAgents)),
        Arc::new(Collaboration(collaboration::WaitAgent)),
    ])
});
