//! `getConversationSummary`, of the first protocol generation.

use loomd_agent::{Source, parse_id};
use loomd_protocol::{
    AbsolutePathBuf, ConversationGitInfo, ConversationSummary, GetConversationSummaryParams,
    GetConversationSummaryResponse, RpcError, call,
};
use loomd_store::Error;

use crate::answer::{Handled, answer};
use crate::context::Context;
use crate::refusals::wire_error;

pub(crate) async fn conversation(
    cx: &Context,
    params: GetConversationSummaryParams,
) -> Handled<call::GetConversationSummary> {
    let source = match params {
        GetConversationSummaryParams::ByPath { rollout_path } => {
            Source::Path(AbsolutePathBuf::resolve(&cx.app.sources.home, rollout_path).into_path_buf())
        }
        GetConversationSummaryParams::ById { conversation_id } => {
            Source::Id(parse_id(&conversation_id.0).map_err(wire_error)?)
        }
    };
    let thread = cx.app.threads().find(&source).await.map_err(|error| match (&source, error) {
        (Source::Id(id), Error::NotFound { .. }) => {
            RpcError::invalid_request(format!("no rollout found for conversation id {id}"))
        }
        (Source::Path(path), error) => {
            RpcError::internal(format!("failed to load conversation summary from {}: {error}", path.display()))
        }
        (Source::Id(_), error) => RpcError::internal(error.to_string()),
    })?;
    let provider = cx.app.agent.default_provider();
    let wire = thread.to_wire(&provider);
    let updated = jiff::Timestamp::from_second(thread.updated_at).map(|time| time.to_string()).ok();
    let summary = ConversationSummary {
        conversation_id: thread.id().into(),
        path: wire.path.unwrap_or_default(),
        preview: wire.preview,
        timestamp: Some(thread.meta.timestamp.clone()),
        updated_at: updated,
        model_provider: wire.model_provider,
        cwd: wire.cwd,
        cli_version: wire.cli_version,
        source: serde_json::to_value(&thread.meta.source).unwrap_or_default(),
        git_info: wire.git_info.map(|git| ConversationGitInfo {
            sha: git.sha,
            branch: git.branch,
            origin_url: git.origin_url,
        }),
    };
    answer(GetConversationSummaryResponse { summary })
}
