//! `windowsSandbox/setupStart`: accepted everywhere, useful on Windows.

use loomd_protocol::{
    ServerNotification, WindowsSandboxSetupCompletedNotification, WindowsSandboxSetupMode,
    WindowsSandboxSetupStartParams, WindowsSandboxSetupStartResponse, call,
};

use crate::answer::Handled;
use crate::context::Context;
use crate::outbound::Notification;

pub(crate) async fn start_setup(
    cx: &Context,
    params: WindowsSandboxSetupStartParams,
) -> Handled<call::WindowsSandboxSetupStart> {
    let (responder, answer) = cx.answer.responder();
    responder.send(Ok(WindowsSandboxSetupStartResponse { started: true }));
    let kind = match params.mode {
        WindowsSandboxSetupMode::Elevated => "elevated",
        WindowsSandboxSetupMode::Unelevated => "legacy",
    };
    let completed = WindowsSandboxSetupCompletedNotification {
        mode: params.mode,
        success: false,
        error: Some(format!("{kind} Windows sandbox setup is only supported on Windows")),
    };
    let notification = Notification::new(ServerNotification::WindowsSandboxSetupCompleted(completed));
    cx.app.connections.send_to([cx.connection], &notification).await;
    Ok(answer)
}
