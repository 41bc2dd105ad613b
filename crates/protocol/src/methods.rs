//! The table of methods. Each method of the protocol is declared here once; the request and notification enums,
//! decoding, the experimental gate, the typed calls, the JSON Schemas and the TypeScript types are derived from these
//! rows.
//!
//! A client request is `stable`, `experimental` (refused without the `experimentalApi` capability and omitted from the
//! stable schemas) or `unlisted` (a deprecated method that is served but in no JSON Schema). Below a row are the uses
//! of its params that count as experimental: the name in the refusal, the condition, and the field that the stable
//! schemas omit.

use crate::table::{client_requests, is_granular, present, server_notifications, server_requests};
use crate::*;

// The dollar sign lets the table define a macro of its own.
client_requests! {
    ($)
    stable Initialize "initialize" (InitializeParams) -> InitializeResponse;
    stable ThreadStart "thread/start" (ThreadStartParams) -> ThreadStartResponse {
        "askForApproval.granular" if |p| is_granular(&p.approval_policy);
        "thread/start.dynamicTools" if |p| present(&p.dynamic_tools), hides "dynamicTools";
        "thread/start.mockExperimentalField" if |p| present(&p.mock_experimental_field), hides "mockExperimentalField";
        "thread/start.experimentalRawEvents" if |p| p.experimental_raw_events, hides "experimentalRawEvents";
        "thread/start.persistFullHistory" if |p| p.persist_extended_history, hides "persistExtendedHistory";
    };
    stable ThreadResume "thread/resume" (ThreadResumeParams) -> ThreadResumeResponse {
        "thread/resume.history" if |p| present(&p.history), hides "history";
        "thread/resume.path" if |p| present(&p.path), hides "path";
        "askForApproval.granular" if |p| is_granular(&p.approval_policy);
        "thread/resume.persistFullHistory" if |p| p.persist_extended_history, hides "persistExtendedHistory";
    };
    stable ThreadFork "thread/fork" (ThreadForkParams) -> ThreadForkResponse {
        "thread/fork.path" if |p| present(&p.path), hides "path";
        "askForApproval.granular" if |p| is_granular(&p.approval_policy);
        "thread/fork.persistFullHistory" if |p| p.persist_extended_history, hides "persistExtendedHistory";
    };
    stable ThreadArchive "thread/archive" (ThreadArchiveParams) -> ThreadArchiveResponse;
    stable ThreadUnsubscribe "thread/unsubscribe" (ThreadUnsubscribeParams) -> ThreadUnsubscribeResponse;
    experimental ThreadIncrementElicitation "thread/increment_elicitation" (ThreadIncrementElicitationParams) -> ThreadIncrementElicitationResponse;
    experimental ThreadDecrementElicitation "thread/decrement_elicitation" (ThreadDecrementElicitationParams) -> ThreadDecrementElicitationResponse;
    stable ThreadNameSet "thread/name/set" (ThreadSetNameParams) -> ThreadSetNameResponse;
    stable ThreadMetadataUpdate "thread/metadata/update" (ThreadMetadataUpdateParams) -> ThreadMetadataUpdateResponse;
    stable ThreadUnarchive "thread/unarchive" (ThreadUnarchiveParams) -> ThreadUnarchiveResponse;
    stable ThreadCompactStart "thread/compact/start" (ThreadCompactStartParams) -> ThreadCompactStartResponse;
    stable ThreadShellCommand "thread/shellCommand" (ThreadShellCommandParams) -> ThreadShellCommandResponse;
    experimental ThreadBackgroundTerminalsClean "thread/backgroundTerminals/clean" (ThreadBackgroundTerminalsCleanParams) -> ThreadBackgroundTerminalsCleanResponse;
    stable ThreadRollback "thread/rollback" (ThreadRollbackParams) -> ThreadRollbackResponse;
    stable ThreadList "thread/list" (ThreadListParams) -> ThreadListResponse;
    stable ThreadLoadedList "thread/loaded/list" (ThreadLoadedListParams) -> ThreadLoadedListResponse;
    stable ThreadRead "thread/read" (ThreadReadParams) -> ThreadReadResponse;
    stable ThreadTurnsList "thread/turns/list" (ThreadTurnsListParams) -> ThreadTurnsListResponse;
    stable ThreadItemsList "thread/items/list" (ThreadItemsListParams) -> ThreadItemsListResponse;
    stable ThreadDelete "thread/delete" (ThreadDeleteParams) -> ThreadDeleteResponse;
    stable SkillsList "skills/list" (SkillsListParams) -> SkillsListResponse;
    stable PluginList "plugin/list" (PluginListParams) -> PluginListResponse;
    stable PluginRead "plugin/read" (PluginReadParams) -> PluginReadResponse;
    stable AppList "app/list" (AppsListParams) -> AppsListResponse;
    stable FsReadFile "fs/readFile" (FsReadFileParams) -> FsReadFileResponse;
    stable FsWriteFile "fs/writeFile" (FsWriteFileParams) -> FsWriteFileResponse;
    stable FsCreateDirectory "fs/createDirectory" (FsCreateDirectoryParams) -> FsCreateDirectoryResponse;
    stable FsGetMetadata "fs/getMetadata" (FsGetMetadataParams) -> FsGetMetadataResponse;
    stable FsReadDirectory "fs/readDirectory" (FsReadDirectoryParams) -> FsReadDirectoryResponse;
    stable FsRemove "fs/remove" (FsRemoveParams) -> FsRemoveResponse;
    stable FsCopy "fs/copy" (FsCopyParams) -> FsCopyResponse;
    stable FsWatch "fs/watch" (FsWatchParams) -> FsWatchResponse;
    stable FsUnwatch "fs/unwatch" (FsUnwatchParams) -> FsUnwatchResponse;
    stable SkillsConfigWrite "skills/config/write" (SkillsConfigWriteParams) -> SkillsConfigWriteResponse;
    stable PluginInstall "plugin/install" (PluginInstallParams) -> PluginInstallResponse;
    stable PluginUninstall "plugin/uninstall" (PluginUninstallParams) -> PluginUninstallResponse;
    stable TurnStart "turn/start" (TurnStartParams) -> TurnStartResponse {
        "askForApproval.granular" if |p| is_granular(&p.approval_policy);
        "turn/start.collaborationMode" if |p| p.collaboration_mode.is_some(), hides "collaborationMode";
    };
    stable TurnSteer "turn/steer" (TurnSteerParams) -> TurnSteerResponse;
    stable TurnInterrupt "turn/interrupt" (TurnInterruptParams) -> TurnInterruptResponse;
    experimental ThreadRealtimeStart "thread/realtime/start" (ThreadRealtimeStartParams) -> ThreadRealtimeStartResponse;
    experimental ThreadRealtimeAppendAudio "thread/realtime/appendAudio" (ThreadRealtimeAppendAudioParams) -> ThreadRealtimeAppendAudioResponse;
    experimental ThreadRealtimeAppendText "thread/realtime/appendText" (ThreadRealtimeAppendTextParams) -> ThreadRealtimeAppendTextResponse;
    experimental ThreadRealtimeStop "thread/realtime/stop" (ThreadRealtimeStopParams) -> ThreadRealtimeStopResponse;
    stable ReviewStart "review/start" (ReviewStartParams) -> ReviewStartResponse;
    stable ModelList "model/list" (ModelListParams) -> ModelListResponse;
    stable ExperimentalFeatureList "experimentalFeature/list" (ExperimentalFeatureListParams) -> ExperimentalFeatureListResponse;
    stable ExperimentalFeatureEnablementSet "experimentalFeature/enablement/set" (ExperimentalFeatureEnablementSetParams) -> ExperimentalFeatureEnablementSetResponse;
    experimental CollaborationModeList "collaborationMode/list" (CollaborationModeListParams) -> CollaborationModeListResponse;
    experimental MockExperimentalMethod "mock/experimentalMethod" (MockExperimentalMethodParams) -> MockExperimentalMethodResponse;
    stable McpServerOauthLogin "mcpServer/oauth/login" (McpServerOauthLoginParams) -> McpServerOauthLoginResponse;
    stable ConfigMcpServerReload "config/mcpServer/reload" (NoParams) -> McpServerRefreshResponse;
    stable McpServerStatusList "mcpServerStatus/list" (ListMcpServerStatusParams) -> ListMcpServerStatusResponse;
    stable WindowsSandboxSetupStart "windowsSandbox/setupStart" (WindowsSandboxSetupStartParams) -> WindowsSandboxSetupStartResponse;
    stable AccountLoginStart "account/login/start" (LoginAccountParams) -> LoginAccountResponse {
        "account/login/start.chatgptAuthTokens" if |p| matches!(p, LoginAccountParams::ChatgptAuthTokens { .. });
    };
    stable AccountLoginCancel "account/login/cancel" (CancelLoginAccountParams) -> CancelLoginAccountResponse;
    stable AccountLogout "account/logout" (NoParams) -> LogoutAccountResponse;
    stable AccountRateLimitsRead "account/rateLimits/read" (IgnoredParams) -> GetAccountRateLimitsResponse;
    stable FeedbackUpload "feedback/upload" (FeedbackUploadParams) -> FeedbackUploadResponse;
    stable CommandExec "command/exec" (CommandExecParams) -> CommandExecResponse;
    stable CommandExecWrite "command/exec/write" (CommandExecWriteParams) -> CommandExecWriteResponse;
    stable CommandExecTerminate "command/exec/terminate" (CommandExecTerminateParams) -> CommandExecTerminateResponse;
    stable CommandExecResize "command/exec/resize" (CommandExecResizeParams) -> CommandExecResizeResponse;
    stable ConfigRead "config/read" (ConfigReadParams) -> ConfigReadResponse;
    stable ExternalAgentConfigDetect "externalAgentConfig/detect" (ExternalAgentConfigDetectParams) -> ExternalAgentConfigDetectResponse;
    stable ExternalAgentConfigImport "externalAgentConfig/import" (ExternalAgentConfigImportParams) -> ExternalAgentConfigImportResponse;
    stable ConfigValueWrite "config/value/write" (ConfigValueWriteParams) -> ConfigWriteResponse;
    stable ConfigBatchWrite "config/batchWrite" (ConfigBatchWriteParams) -> ConfigWriteResponse;
    stable ConfigRequirementsRead "configRequirements/read" (NoParams) -> ConfigRequirementsReadResponse;
    stable AccountRead "account/read" (GetAccountParams) -> GetAccountResponse;
    unlisted GetConversationSummary "getConversationSummary" (GetConversationSummaryParams) -> GetConversationSummaryResponse;
    unlisted GitDiffToRemote "gitDiffToRemote" (GitDiffToRemoteParams) -> GitDiffToRemoteResponse;
    unlisted GetAuthStatus "getAuthStatus" (GetAuthStatusParams) -> GetAuthStatusResponse;
    stable FuzzyFileSearch "fuzzyFileSearch" (FuzzyFileSearchParams) -> FuzzyFileSearchResponse;
    experimental FuzzyFileSearchSessionStart "fuzzyFileSearch/sessionStart" (FuzzyFileSearchSessionStartParams) -> FuzzyFileSearchSessionStartResponse;
    experimental FuzzyFileSearchSessionUpdate "fuzzyFileSearch/sessionUpdate" (FuzzyFileSearchSessionUpdateParams) -> FuzzyFileSearchSessionUpdateResponse;
    experimental FuzzyFileSearchSessionStop "fuzzyFileSearch/sessionStop" (FuzzyFileSearchSessionStopParams) -> FuzzyFileSearchSessionStopResponse;
}

server_requests! {
    CommandExecutionApproval "item/commandExecution/requestApproval" (CommandExecutionRequestApprovalParams) -> CommandExecutionRequestApprovalResponse;
    FileChangeApproval "item/fileChange/requestApproval" (FileChangeRequestApprovalParams) -> FileChangeRequestApprovalResponse;
    ToolUserInput "item/tool/requestUserInput" (ToolRequestUserInputParams) -> ToolRequestUserInputResponse;
    McpServerElicitation "mcpServer/elicitation/request" (McpServerElicitationRequestParams) -> McpServerElicitationRequestResponse;
    PermissionsApproval "item/permissions/requestApproval" (PermissionsRequestApprovalParams) -> PermissionsRequestApprovalResponse;
    DynamicToolCall "item/tool/call" (DynamicToolCallParams) -> DynamicToolCallResponse;
    ChatgptAuthTokensRefresh "account/chatgptAuthTokens/refresh" (ChatgptAuthTokensRefreshParams) -> ChatgptAuthTokensRefreshResponse;
    ApplyPatchApproval "applyPatchApproval" (ApplyPatchApprovalParams) -> ApplyPatchApprovalResponse;
    ExecCommandApproval "execCommandApproval" (ExecCommandApprovalParams) -> ExecCommandApprovalResponse;
}

// `text` marks notifications whose `delta` extends one text of one item: for a connection that lags, adjacent ones of
// the same item are merged. `unlisted` ones are in no JSON Schema.
server_notifications! {
    plain Error "error" (ErrorNotification);
    plain ThreadStarted "thread/started" (ThreadStartedNotification);
    plain ThreadStatusChanged "thread/status/changed" (ThreadStatusChangedNotification);
    plain ThreadArchived "thread/archived" (ThreadArchivedNotification);
    plain ThreadUnarchived "thread/unarchived" (ThreadUnarchivedNotification);
    plain ThreadDeleted "thread/deleted" (ThreadDeletedNotification);
    plain ThreadClosed "thread/closed" (ThreadClosedNotification);
    plain SkillsChanged "skills/changed" (SkillsChangedNotification);
    plain ThreadNameUpdated "thread/name/updated" (ThreadNameUpdatedNotification);
    plain ThreadTokenUsageUpdated "thread/tokenUsage/updated" (ThreadTokenUsageUpdatedNotification);
    plain TurnStarted "turn/started" (TurnStartedNotification);
    plain HookStarted "hook/started" (HookStartedNotification);
    plain TurnCompleted "turn/completed" (TurnCompletedNotification);
    plain HookCompleted "hook/completed" (HookCompletedNotification);
    plain TurnDiffUpdated "turn/diff/updated" (TurnDiffUpdatedNotification);
    plain TurnPlanUpdated "turn/plan/updated" (TurnPlanUpdatedNotification);
    plain ItemStarted "item/started" (ItemStartedNotification);
    plain AutoApprovalReviewStarted "item/autoApprovalReview/started" (ItemGuardianApprovalReviewStartedNotification);
    plain AutoApprovalReviewCompleted "item/autoApprovalReview/completed" (ItemGuardianApprovalReviewCompletedNotification);
    plain ItemCompleted "item/completed" (ItemCompletedNotification);
    unlisted RawResponseItemCompleted "rawResponseItem/completed" (RawResponseItemCompletedNotification);
    text AgentMessageDelta "item/agentMessage/delta" (AgentMessageDeltaNotification);
    text PlanDelta "item/plan/delta" (PlanDeltaNotification);
    plain CommandExecOutputDelta "command/exec/outputDelta" (CommandExecOutputDeltaNotification);
    text CommandExecutionOutputDelta "item/commandExecution/outputDelta" (CommandExecutionOutputDeltaNotification);
    plain CommandExecutionTerminalInteraction "item/commandExecution/terminalInteraction" (TerminalInteractionNotification);
    text FileChangeOutputDelta "item/fileChange/outputDelta" (FileChangeOutputDeltaNotification);
    plain ServerRequestResolved "serverRequest/resolved" (ServerRequestResolvedNotification);
    plain McpToolCallProgress "item/mcpToolCall/progress" (McpToolCallProgressNotification);
    plain McpServerOauthLoginCompleted "mcpServer/oauthLogin/completed" (McpServerOauthLoginCompletedNotification);
    plain McpServerStartupStatusUpdated "mcpServer/startupStatus/updated" (McpServerStatusUpdatedNotification);
    plain AccountUpdated "account/updated" (AccountUpdatedNotification);
    plain AccountRateLimitsUpdated "account/rateLimits/updated" (AccountRateLimitsUpdatedNotification);
    plain AppListUpdated "app/list/updated" (AppListUpdatedNotification);
    plain FsChanged "fs/changed" (FsChangedNotification);
    text ReasoningSummaryTextDelta "item/reasoning/summaryTextDelta" (ReasoningSummaryTextDeltaNotification);
    plain ReasoningSummaryPartAdded "item/reasoning/summaryPartAdded" (ReasoningSummaryPartAddedNotification);
    text ReasoningTextDelta "item/reasoning/textDelta" (ReasoningTextDeltaNotification);
    plain ThreadCompacted "thread/compacted" (ContextCompactedNotification);
    plain ModelRerouted "model/rerouted" (ModelReroutedNotification);
    plain DeprecationNotice "deprecationNotice" (DeprecationNoticeNotification);
    plain ConfigWarning "configWarning" (ConfigWarningNotification);
    plain FuzzyFileSearchSessionUpdated "fuzzyFileSearch/sessionUpdated" (FuzzyFileSearchSessionUpdatedNotification);
    plain FuzzyFileSearchSessionCompleted "fuzzyFileSearch/sessionCompleted" (FuzzyFileSearchSessionCompletedNotification);
    plain ThreadRealtimeStarted "thread/realtime/started" (ThreadRealtimeStartedNotification);
    plain ThreadRealtimeItemAdded "thread/realtime/itemAdded" (ThreadRealtimeItemAddedNotification);
    plain ThreadRealtimeTranscriptUpdated "thread/realtime/transcriptUpdated" (ThreadRealtimeTranscriptUpdatedNotification);
    plain ThreadRealtimeOutputAudioDelta "thread/realtime/outputAudio/delta" (ThreadRealtimeOutputAudioDeltaNotification);
    plain ThreadRealtimeError "thread/realtime/error" (ThreadRealtimeErrorNotification);
    plain ThreadRealtimeClosed "thread/realtime/closed" (ThreadRealtimeClosedNotification);
    plain WindowsWorldWritableWarning "windows/worldWritableWarning" (WindowsWorldWritableWarningNotification);
    plain WindowsSandboxSetupCompleted "windowsSandbox/setupCompleted" (WindowsSandboxSetupCompletedNotification);
    plain AccountLoginCompleted "account/login/completed" (AccountLoginCompletedNotification);
}

/// The only notification that clients send. The server does not wait for it.
pub const INITIALIZED: &str = "initialized";

/// Fields that the stable schemas omit, of types other than the params of client requests.
pub const EXPERIMENTAL_FIELDS: &[(&str, &[&str])] = &[
    ("CommandExecutionRequestApprovalParams", &["additionalPermissions", "availableDecisions"]),
    ("Config", &["apps"]),
    ("ConfigRequirements", &["network"]),
];
