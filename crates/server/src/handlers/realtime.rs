//! `thread/realtime/*`

use loomd_agent::parse_id;
use loomd_protocol::{
    ThreadRealtimeAppendAudioParams, ThreadRealtimeAppendAudioResponse, ThreadRealtimeAppendTextParams,
    ThreadRealtimeAppendTextResponse, ThreadRealtimeStartParams, ThreadRealtimeStartResponse, ThreadRealtimeStopParams,
    ThreadRealtimeStopResponse, call,
};

use crate::answer::Handled;
use crate::context::Context;
use crate::refusals::wire_error;

/// `thread/realtime/start`
pub(crate) async fn start(cx: &Context, params: ThreadRealtimeStartParams) -> Handled<call::ThreadRealtimeStart> {
    let id = parse_id(&params.thread_id).map_err(wire_error)?;
    let (reply, answer) = cx.answer.reply(|()| ThreadRealtimeStartResponse {});
    cx.app.threads().start_realtime(id, params.prompt, params.session_id, reply).await;
    Ok(answer)
}

/// `thread/realtime/appendText`
pub(crate) async fn append_text(
    cx: &Context,
    params: ThreadRealtimeAppendTextParams,
) -> Handled<call::ThreadRealtimeAppendText> {
    let id = parse_id(&params.thread_id).map_err(wire_error)?;
    let (reply, answer) = cx.answer.reply(|()| ThreadRealtimeAppendTextResponse {});
    cx.app.threads().append_realtime_text(id, params.text, reply).await;
    Ok(answer)
}

/// `thread/realtime/appendAudio`
pub(crate) async fn append_audio(
    cx: &Context,
    params: ThreadRealtimeAppendAudioParams,
) -> Handled<call::ThreadRealtimeAppendAudio> {
    let id = parse_id(&params.thread_id).map_err(wire_error)?;
    let (reply, answer) = cx.answer.reply(|()| ThreadRealtimeAppendAudioResponse {});
    cx.app.threads().append_realtime_audio(id, params.audio.data, reply).await;
    Ok(answer)
}

/// `thread/realtime/stop`
pub(crate) async fn stop(cx: &Context, params: ThreadRealtimeStopParams) -> Handled<call::ThreadRealtimeStop> {
    let id = parse_id(&params.thread_id).map_err(wire_error)?;
    let (reply, answer) = cx.answer.reply(|()| ThreadRealtimeStopResponse {});
    cx.app.threads().stop_realtime(id, reply).await;
    Ok(answer)
}
