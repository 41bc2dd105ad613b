//! From a decoded request to the function that answers it: one match.

use std::sync::Arc;

use loomd_protocol::{Call, ClientRequest, RequestId, RpcError, call, encode_error};

use crate::context::Context;
use crate::handlers::{
    account, command_exec, config, external_agent, features, feedback, fs, git, mock, model, search, summary, thread,
    turn, windows,
};
use crate::responder::{Responder, encode_answer};

/// Answers a request with one message; `None` when it has been answered already, in order with its news.
pub(crate) async fn dispatch(cx: Context, id: RequestId, request: ClientRequest) -> Option<Vec<u8>> {
    use ClientRequest as R;
    Some(match request {
        R::ThreadStart(p) => return later(&cx, id, |r| thread::start(&cx, p, r)).await,
        R::ThreadResume(p) => return later(&cx, id, |r| thread::resume(&cx, p, r)).await,
        R::ThreadFork(p) => return later(&cx, id, |r| thread::fork(&cx, p, r)).await,
        R::ThreadArchive(p) => return later(&cx, id, |r| thread::archive(&cx, p, r)).await,
        R::ThreadUnarchive(p) => return later(&cx, id, |r| thread::unarchive(&cx, p, r)).await,
        R::ThreadUnsubscribe(p) => return later(&cx, id, |r| thread::unsubscribe(&cx, p, r)).await,
        R::ThreadNameSet(p) => return later(&cx, id, |r| thread::set_name(&cx, p, r)).await,
        R::ThreadRollback(p) => return later(&cx, id, |r| thread::roll_back(&cx, p, r)).await,
        R::ThreadDelete(p) => return later(&cx, id, |r| thread::delete(&cx, p, r)).await,
        R::ThreadCompactStart(p) => return later(&cx, id, |r| turn::compact(&cx, p, r)).await,
        R::ThreadShellCommand(p) => return later(&cx, id, |r| turn::shell_command(&cx, p, r)).await,
        R::ThreadBackgroundTerminalsClean(p) => return later(&cx, id, |r| turn::clean_terminals(&cx, p, r)).await,
        R::TurnStart(p) => return later(&cx, id, |r| turn::start(&cx, p, r)).await,
        R::TurnSteer(p) => return later(&cx, id, |r| turn::steer(&cx, p, r)).await,
        R::TurnInterrupt(p) => return later(&cx, id, |r| turn::interrupt(&cx, p, r)).await,
        R::ReviewStart(p) => return later(&cx, id, |r| turn::review(&cx, p, r)).await,
        R::CommandExec(p) => encode_answer::<call::CommandExec>(&id, command_exec::exec(&cx, p).await),
        R::CommandExecWrite(p) => encode_answer::<call::CommandExecWrite>(&id, command_exec::write(&cx, p).await),
        R::CommandExecResize(p) => encode_answer::<call::CommandExecResize>(&id, command_exec::resize(&cx, p).await),
        R::CommandExecTerminate(p) => encode_answer::<call::CommandExecTerminate>(&id, command_exec::terminate(&cx, p)),
        R::ModelList(p) => encode_answer::<call::ModelList>(&id, model::list(&cx, p)),
        R::CollaborationModeList(_) => {
            encode_answer::<call::CollaborationModeList>(&id, Ok(model::collaboration_modes()))
        }
        R::ThreadTurnsList(p) => encode_answer::<call::ThreadTurnsList>(&id, thread::list_turns(&cx, p).await),
        R::ThreadItemsList(p) => encode_answer::<call::ThreadItemsList>(&id, thread::list_items(&cx, p).await),
        R::ThreadList(p) => encode_answer::<call::ThreadList>(&id, thread::list(&cx, p).await),
        R::ThreadLoadedList(p) => encode_answer::<call::ThreadLoadedList>(&id, thread::loaded_list(&cx, p)),
        R::ThreadRead(p) => encode_answer::<call::ThreadRead>(&id, thread::read(&cx, p).await),
        R::ThreadMetadataUpdate(p) => {
            encode_answer::<call::ThreadMetadataUpdate>(&id, thread::update_metadata(&cx, p).await)
        }
        R::ThreadIncrementElicitation(p) => {
            encode_answer::<call::ThreadIncrementElicitation>(&id, thread::increment_elicitation(&cx, p).await)
        }
        R::ThreadDecrementElicitation(p) => {
            encode_answer::<call::ThreadDecrementElicitation>(&id, thread::decrement_elicitation(&cx, p).await)
        }
        R::AccountRead(p) => encode_answer::<call::AccountRead>(&id, account::read(&cx, p).await),
        R::AccountLoginStart(p) => return later(&cx, id, |r| account::login(&cx, p, r)).await,
        R::AccountLoginCancel(p) => return later(&cx, id, |r| account::cancel(&cx, p, r)).await,
        R::AccountLogout(_) => return later(&cx, id, |r| account::logout(&cx, r)).await,
        R::AccountRateLimitsRead(_) => {
            encode_answer::<call::AccountRateLimitsRead>(&id, account::rate_limits(&cx).await)
        }
        R::GetAuthStatus(p) => encode_answer::<call::GetAuthStatus>(&id, Ok(cx.app.accounts.auth_status(&p).await)),
        R::GetConversationSummary(p) => {
            encode_answer::<call::GetConversationSummary>(&id, summary::conversation(&cx, p).await)
        }
        R::ConfigRead(p) => encode_answer::<call::ConfigRead>(&id, config::read(&cx, p).await),
        R::ConfigRequirementsRead(_) => {
            encode_answer::<call::ConfigRequirementsRead>(&id, config::requirements(&cx).await)
        }
        R::FsReadFile(p) => encode_answer::<call::FsReadFile>(&id, fs::read_file(&cx, p).await),
        R::FsWriteFile(p) => encode_answer::<call::FsWriteFile>(&id, fs::write_file(&cx, p).await),
        R::FsCreateDirectory(p) => encode_answer::<call::FsCreateDirectory>(&id, fs::create_directory(&cx, p).await),
        R::FsGetMetadata(p) => encode_answer::<call::FsGetMetadata>(&id, fs::get_metadata(&cx, p).await),
        R::FsReadDirectory(p) => encode_answer::<call::FsReadDirectory>(&id, fs::read_directory(&cx, p).await),
        R::FsRemove(p) => encode_answer::<call::FsRemove>(&id, fs::remove(&cx, p).await),
        R::FsCopy(p) => encode_answer::<call::FsCopy>(&id, fs::copy(&cx, p).await),
        R::FsWatch(p) => encode_answer::<call::FsWatch>(&id, fs::watch(&cx, p).await),
        R::FsUnwatch(p) => return later(&cx, id, |r| fs::unwatch(&cx, p, r)).await,
        R::ConfigValueWrite(p) => encode_answer::<call::ConfigValueWrite>(&id, config::write_value(&cx, p).await),
        R::ConfigBatchWrite(p) => encode_answer::<call::ConfigBatchWrite>(&id, config::write_batch(&cx, p).await),
        R::ExperimentalFeatureList(p) => encode_answer::<call::ExperimentalFeatureList>(&id, features::list(&cx, p)),
        R::ExperimentalFeatureEnablementSet(p) => {
            encode_answer::<call::ExperimentalFeatureEnablementSet>(&id, features::set_enablement(&cx, p))
        }
        R::ExternalAgentConfigDetect(p) => {
            encode_answer::<call::ExternalAgentConfigDetect>(&id, external_agent::detect(&cx, p).await)
        }
        R::ExternalAgentConfigImport(p) => {
            encode_answer::<call::ExternalAgentConfigImport>(&id, external_agent::import(&cx, p).await)
        }
        R::FeedbackUpload(p) => encode_answer::<call::FeedbackUpload>(&id, feedback::upload(&cx, p).await),
        R::GitDiffToRemote(p) => encode_answer::<call::GitDiffToRemote>(&id, git::diff_to_remote(p).await),
        R::WindowsSandboxSetupStart(p) => return later(&cx, id, |r| windows::start_setup(&cx, p, r)).await,
        R::FuzzyFileSearch(p) => encode_answer::<call::FuzzyFileSearch>(&id, search::once(&cx, p).await),
        R::FuzzyFileSearchSessionStart(p) => return later(&cx, id, |r| search::start(&cx, p, r)).await,
        R::FuzzyFileSearchSessionUpdate(p) => return later(&cx, id, |r| search::update(&cx, p, r)).await,
        R::FuzzyFileSearchSessionStop(p) => return later(&cx, id, |r| search::stop(&cx, p, r)).await,
        R::MockExperimentalMethod(p) => encode_answer::<call::MockExperimentalMethod>(&id, mock::experimental(p)),
        other => encode_error(&id, &not_available(other.method())),
    })
}

/// Runs a handler that answers by itself, and waits until it has.
async fn later<C: Call, F: Future<Output = ()>>(
    cx: &Context,
    id: RequestId,
    handler: impl FnOnce(Responder<C>) -> F,
) -> Option<Vec<u8>> {
    let (responder, answered) = Responder::new(id, Arc::clone(&cx.outbox));
    handler(responder).await;
    _ = answered.await;
    None
}

/// The method is part of the protocol but not of this release.
pub(crate) fn not_available(method: &str) -> RpcError {
    RpcError::internal(format!("{method} is not available yet"))
}
