//! `windowsSandbox/setupStart`: accepted everywhere, and of no use anywhere but on Windows.

use loomd_protocol::{
    ServerNotification, WindowsSandboxSetupCompletedNotification, WindowsSandboxSetupMode,
    WindowsSandboxSetupStartParams, WindowsSandboxSetupStartResponse, call,
};

use crate::dispatch::Context;
use crate::responder::Responder;

/// `windowsSandbox/setupStart`: says that it has started, then that it has failed.
pub(crate) async fn setup_start(
    cx: &Context,
    params: WindowsSandboxSetupStartParams,
    responder: Responder<call::WindowsSandboxSetupStart>,
) {
    let kind = match params.mode {
        WindowsSandboxSetupMode::Elevated => "elevated",
        WindowsSandboxSetupMode::Unelevated => "legacy",
    };
    responder.answer(Ok(WindowsSandboxSetupStartResponse { started: true }));
    cx.notify(ServerNotification::WindowsSandboxSetupCompleted(WindowsSandboxSetupCompletedNotification {
        mode: params.mode,
        success: false,
        error: Some(format!("{kind} Windows sandbox setup is only supported on Windows")),
    }));
}
