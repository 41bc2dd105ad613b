//! The table of methods. Each method of the protocol is declared here once; the request and notification enums,
//! decoding, the experimental gate, the typed calls, the JSON Schemas and the TypeScript types are derived from these
//! rows.
//!
//! A client request is `stable`, `experimental` (refused without the `experimentalApi` capability and omitted from the
//! stable schemas) or `unlisted` (a deprecated method that is served but in no JSON Schema). Below a row are the uses
//! of its params that count as experimental: the name in the refusal, the level if only one has this rule, the
//! condition, and the field that the stable schemas omit.
//!
//! All methods are served to connections of both levels. Methods that are known and not served are in `unbuilt!`.

use crate::table::{client_requests, is_granular, present, server_notifications, server_requests, unbuilt};
use crate::*;

// The dollar sign lets the table define a macro of its own.
client_requests! {
    ($)
    stable Initialize "initialize" (InitializeParams) -> InitializeResponse;
    stable ThreadStart "thread/start" (ThreadStartParams) -> ThreadStartResponse {
        "askForApproval.granular" if |p| is_granular(&p.approval_policy);
        "thread/start.dynamicTools" at V0_118 if |p| present(&p.dynamic_tools), hides "dynamicTools";
        "thread/start.dynamicTools" at V0_166 if |p| p.dynamic_tools.is_some();
        "thread/start.mockExperimentalField" if |p| present(&p.mock_experimental_field), hides "mockExperimentalField";
        "thread/start.projectId" if |p| present(&p.project_id), hides "projectId";
        "thread/start.experimentalRawEvents" if |p| p.experimental_raw_events, hides "experimentalRawEvents";
        "thread/start.permissions" if |p| p.permissions.is_some(), hides "permissions";
        "thread/start.historyMode" if |p| p.history_mode.is_some(), hides "historyMode";
        "thread/start.environments" if |p| p.environments.is_some(), hides "environments";
        "thread/start.runtimeWorkspaceRoots" if |p| p.runtime_workspace_roots.is_some(), hides "runtimeWorkspaceRoots";
        "thread/start.multiAgentMode" if |p| p.multi_agent_mode.is_some(), hides "multiAgentMode";
        "thread/start.selectedCapabilityRoots" if |p| p.selected_capability_roots.is_some(), hides "selectedCapabilityRoots";
        "thread/start.allowProviderModelFallback" if |p| p.allow_provider_model_fallback, hides "allowProviderModelFallback";
        "thread/start.daybreakEnabled" if |p| p.daybreak_enabled.is_some(), hides "daybreakEnabled";
        "thread/start.persistFullHistory" at V0_118 if |p| p.persist_extended_history, hides "persistExtendedHistory";
    };
    stable ThreadResume "thread/resume" (ThreadResumeParams) -> ThreadResumeResponse {
        "thread/resume.history" at V0_118 if |p| present(&p.history), hides "history";
        "thread/resume.history" at V0_166 if |p| p.history.is_some();
        "thread/resume.path" if |p| present(&p.path), hides "path";
        "askForApproval.granular" if |p| is_granular(&p.approval_policy);
        "thread/resume.permissions" if |p| p.permissions.is_some(), hides "permissions";
        "thread/resume.initialTurnsPage" if |p| p.initial_turns_page.is_some(), hides "initialTurnsPage";
        "thread/resume.runtimeWorkspaceRoots" if |p| p.runtime_workspace_roots.is_some(), hides "runtimeWorkspaceRoots";
        "thread/resume.persistFullHistory" at V0_118 if |p| p.persist_extended_history, hides "persistExtendedHistory";
    };
    stable ThreadFork "thread/fork" (ThreadForkParams) -> ThreadForkResponse {
        "thread/fork.path" if |p| present(&p.path), hides "path";
        "thread/fork.deferGoalContinuation" if |p| p.defer_goal_continuation, hides "deferGoalContinuation";
        "thread/fork.attachToSource" if |p| p.attach_to_source, hides "attachToSource";
        "askForApproval.granular" if |p| is_granular(&p.approval_policy);
        "thread/fork.permissions" if |p| p.permissions.is_some(), hides "permissions";
        "thread/fork.beforeTurnId" if |p| p.before_turn_id.is_some(), hides "beforeTurnId";
        "thread/fork.runtimeWorkspaceRoots" if |p| p.runtime_workspace_roots.is_some(), hides "runtimeWorkspaceRoots";
        "thread/fork.persistFullHistory" at V0_118 if |p| p.persist_extended_history, hides "persistExtendedHistory";
    };
    stable ThreadArchive "thread/archive" (ThreadArchiveParams) -> ThreadArchiveResponse;
    stable ThreadUnsubscribe "thread/unsubscribe" (ThreadUnsubscribeParams) -> ThreadUnsubscribeResponse;
    experimental ThreadIncrementElicitation "thread/increment_elicitation" (ThreadIncrementElicitationParams) -> ThreadIncrementElicitationResponse;
    experimental ThreadDecrementElicitation "thread/decrement_elicitation" (ThreadDecrementElicitationParams) -> ThreadDecrementElicitationResponse;
    stable ThreadNameSet "thread/name/set" (ThreadSetNameParams) -> ThreadSetNameResponse;
    stable ThreadMetadataUpdate "thread/metadata/update" (ThreadMetadataUpdateParams) -> ThreadMetadataUpdateResponse {
        "thread/metadata/update.projectId" if |p| p.project_id.is_some(), hides "projectId";
    };
    stable ThreadUnarchive "thread/unarchive" (ThreadUnarchiveParams) -> ThreadUnarchiveResponse;
    stable ThreadCompactStart "thread/compact/start" (ThreadCompactStartParams) -> ThreadCompactStartResponse;
    stable ThreadShellCommand "thread/shellCommand" (ThreadShellCommandParams) -> ThreadShellCommandResponse;
    experimental ThreadBackgroundTerminalsClean "thread/backgroundTerminals/clean" (ThreadBackgroundTerminalsCleanParams) -> ThreadBackgroundTerminalsCleanResponse;
    stable ThreadRollback "thread/rollback" (ThreadRollbackParams) -> ThreadRollbackResponse;
    stable ThreadApproveGuardianDeniedAction "thread/approveGuardianDeniedAction" (ThreadApproveGuardianDeniedActionParams) -> ThreadApproveGuardianDeniedActionResponse;
    stable ThreadGoalSet "thread/goal/set" (ThreadGoalSetParams) -> ThreadGoalSetResponse;
    stable ThreadGoalGet "thread/goal/get" (ThreadGoalGetParams) -> ThreadGoalGetResponse;
    stable ThreadGoalClear "thread/goal/clear" (ThreadGoalClearParams) -> ThreadGoalClearResponse;
    experimental ThreadQueueAdd "thread/queue/add" (ThreadQueueAddParams) -> ThreadQueueAddResponse;
    experimental ThreadQueueList "thread/queue/list" (ThreadQueueListParams) -> ThreadQueueListResponse;
    experimental ThreadQueueUpdate "thread/queue/update" (ThreadQueueUpdateParams) -> ThreadQueueUpdateResponse;
    experimental ThreadQueueDelete "thread/queue/delete" (ThreadQueueDeleteParams) -> ThreadQueueDeleteResponse;
    experimental ThreadQueueReorder "thread/queue/reorder" (ThreadQueueReorderParams) -> ThreadQueueReorderResponse;
    experimental ThreadQueueStart "thread/queue/start" (ThreadQueueStartParams) -> ThreadQueueStartResponse;
    experimental ThreadSample "thread/sample" (ThreadSampleParams) -> ThreadSampleResponse;
    experimental ThreadSampleCancel "thread/sample/cancel" (ThreadSampleCancelParams) -> ThreadSampleCancelResponse;
    stable ApprovalList "approval/list" (ApprovalListParams) -> ApprovalListResponse;
    stable ApprovalDecide "approval/decide" (ApprovalDecideParams) -> ApprovalDecideResponse;
    stable ThreadList "thread/list" (ThreadListParams) -> ThreadListResponse {
        "thread/list.parentThreadId" if |p| present(&p.parent_thread_id), hides "parentThreadId";
        "thread/list.ancestorThreadId" if |p| present(&p.ancestor_thread_id), hides "ancestorThreadId";
        "thread/list.attachedToThreadId" if |p| present(&p.attached_to_thread_id), hides "attachedToThreadId";
        "thread/list.projectId" if |p| present(&p.project_id), hides "projectId";
    };
    stable ThreadLoadedList "thread/loaded/list" (ThreadLoadedListParams) -> ThreadLoadedListResponse;
    stable ThreadRead "thread/read" (ThreadReadParams) -> ThreadReadResponse;
    stable ThreadTurnsList "thread/turns/list" (ThreadTurnsListParams) -> ThreadTurnsListResponse;
    stable ThreadItemsList "thread/items/list" (ThreadItemsListParams) -> ThreadItemsListResponse;
    stable ThreadDelete "thread/delete" (ThreadDeleteParams) -> ThreadDeleteResponse;
    stable ThreadRevert "thread/revert" (ThreadRevertParams) -> ThreadRevertResponse;
    stable ThreadInjectItems "thread/inject_items" (ThreadInjectItemsParams) -> ThreadInjectItemsResponse;
    experimental ThreadSettingsUpdate "thread/settings/update" (ThreadSettingsUpdateParams) -> ThreadSettingsUpdateResponse;
    experimental TurnSettingsUpdate "turn/settings/update" (TurnSettingsUpdateParams) -> TurnSettingsUpdateResponse;
    experimental ThreadBackgroundTerminalsList "thread/backgroundTerminals/list" (ThreadBackgroundTerminalsListParams) -> ThreadBackgroundTerminalsListResponse;
    experimental ThreadBackgroundTerminalsTerminate "thread/backgroundTerminals/terminate" (ThreadBackgroundTerminalsTerminateParams) -> ThreadBackgroundTerminalsTerminateResponse;
    stable PermissionProfileList "permissionProfile/list" (PermissionProfileListParams) -> PermissionProfileListResponse;
    stable HooksList "hooks/list" (HooksListParams) -> HooksListResponse;
    stable ModelProviderCapabilitiesRead "modelProvider/capabilities/read" (ModelProviderCapabilitiesReadParams) -> ModelProviderCapabilitiesReadResponse;
    stable AccountUsageRead "account/usage/read" (GetAccountTokenUsageParams) -> GetAccountTokenUsageResponse;
    stable AccountWorkspaceMessagesRead "account/workspaceMessages/read" (IgnoredParams) -> GetWorkspaceMessagesResponse;
    experimental AccountBedrockCheckGovCloudRequirements "account/bedrock/checkGovCloudRequirements" (IgnoredParams) -> BedrockCheckGovCloudRequirementsResponse;
    experimental RemoteControlStatusRead "remoteControl/status/read" (IgnoredParams) -> RemoteControlStatusReadResponse;
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
        "turn/start.additionalContext" if |p| p.additional_context.is_some(), hides "additionalContext";
        "turn/start.responsesapiClientMetadata" if |p| p.responsesapi_client_metadata.is_some(), hides "responsesapiClientMetadata";
        "turn/start.permissions" if |p| p.permissions.is_some(), hides "permissions";
        "turn/start.environments" if |p| p.environments.is_some(), hides "environments";
        "turn/start.runtimeWorkspaceRoots" if |p| p.runtime_workspace_roots.is_some(), hides "runtimeWorkspaceRoots";
        "turn/start.multiAgentMode" if |p| p.multi_agent_mode.is_some(), hides "multiAgentMode";
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
    stable CommandExec "command/exec" (CommandExecParams) -> CommandExecResponse {
        "command/exec.permissionProfile" if |p| p.permission_profile.is_some(), hides "permissionProfile";
    };
    stable CommandExecWrite "command/exec/write" (CommandExecWriteParams) -> CommandExecWriteResponse;
    stable CommandExecTerminate "command/exec/terminate" (CommandExecTerminateParams) -> CommandExecTerminateResponse;
    stable CommandExecResize "command/exec/resize" (CommandExecResizeParams) -> CommandExecResizeResponse;
    experimental ProcessSpawn "process/spawn" (ProcessSpawnParams) -> ProcessSpawnResponse;
    experimental ProcessWriteStdin "process/writeStdin" (ProcessWriteStdinParams) -> ProcessWriteStdinResponse;
    experimental ProcessResizePty "process/resizePty" (ProcessResizePtyParams) -> ProcessResizePtyResponse;
    experimental ProcessKill "process/kill" (ProcessKillParams) -> ProcessKillResponse;
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
    stable ThreadAttachmentAdd "thread/attachment/add" (ThreadAttachmentAddParams) -> ThreadAttachmentAddResponse;
    stable ThreadAttachmentList "thread/attachment/list" (ThreadAttachmentListParams) -> ThreadAttachmentListResponse;
    stable ThreadAttachmentOwnerList "thread/attachmentOwner/list" (ThreadAttachmentOwnerListParams) -> ThreadAttachmentOwnerListResponse;
    stable ThreadAttachmentRemove "thread/attachment/remove" (ThreadAttachmentRemoveParams) -> ThreadAttachmentRemoveResponse;
    stable ThreadSectionMove "thread/section/move" (ThreadSectionMoveParams) -> ThreadSectionMoveResponse;
    experimental ThreadMemoryModeSet "thread/memoryMode/set" (ThreadMemoryModeSetParams) -> ThreadMemoryModeSetResponse;
    experimental ThreadMemoryRead "thread/memory/read" (ThreadMemoryReadParams) -> ThreadMemoryReadResponse;
    experimental MemoryStatus "memory/status" (MemoryStatusParams) -> MemoryStatusResponse;
    experimental MemoryReset "memory/reset" (NoParams) -> MemoryResetResponse;
    experimental RolloutCompress "rollout/compress" (NoParams) -> RolloutCompressResponse;
    experimental ProjectList "project/list" (ProjectListParams) -> ProjectListResponse;
    experimental ProjectRead "project/read" (ProjectReadParams) -> ProjectReadResponse;
    experimental ProjectCreate "project/create" (ProjectCreateParams) -> ProjectCreateResponse;
    experimental ProjectImport "project/import" (ProjectImportParams) -> ProjectImportResponse;
    experimental ProjectUpdate "project/update" (ProjectUpdateParams) -> ProjectUpdateResponse;
    experimental ProjectMove "project/move" (ProjectMoveParams) -> ProjectMoveResponse;
    experimental ProjectDelete "project/delete" (ProjectDeleteParams) -> ProjectDeleteResponse;
    stable ThreadSectionList "threadSection/list" (ThreadSectionListParams) -> ThreadSectionListResponse;
    stable ThreadSectionCreate "threadSection/create" (ThreadSectionCreateParams) -> ThreadSectionCreateResponse;
    stable ThreadSectionUpdate "threadSection/update" (ThreadSectionUpdateParams) -> ThreadSectionUpdateResponse;
    stable ThreadSectionDelete "threadSection/delete" (ThreadSectionDeleteParams) -> ThreadSectionDeleteResponse;
    experimental ThreadSearch "thread/search" (ThreadSearchParams) -> ThreadSearchResponse;
    experimental ThreadSearchOccurrences "thread/searchOccurrences" (ThreadSearchOccurrencesParams) -> ThreadSearchOccurrencesResponse;
    experimental ThreadReadStateUpdate "thread/readState/update" (ThreadReadStateUpdateParams) -> ThreadReadStateUpdateResponse;
    experimental ThreadItemsRead "thread/items/read" (ThreadItemsReadParams) -> ThreadItemsReadResponse;
    experimental ThreadTimelineList "thread/timeline/list" (ThreadTimelineListParams) -> ThreadTimelineListResponse;
    stable SkillsExtraRootsSet "skills/extraRoots/set" (SkillsExtraRootsSetParams) -> SkillsExtraRootsSetResponse;
    stable MarketplaceAdd "marketplace/add" (MarketplaceAddParams) -> MarketplaceAddResponse;
    stable MarketplaceRemove "marketplace/remove" (MarketplaceRemoveParams) -> MarketplaceRemoveResponse;
    stable MarketplaceUpgrade "marketplace/upgrade" (MarketplaceUpgradeParams) -> MarketplaceUpgradeResponse;
    stable PluginInstalled "plugin/installed" (PluginInstalledParams) -> PluginInstalledResponse;
    stable McpServerResourceRead "mcpServer/resource/read" (McpResourceReadParams) -> McpResourceReadResponse;
    stable McpServerToolCall "mcpServer/tool/call" (McpServerToolCallParams) -> McpServerToolCallResponse;
    experimental ServerDiagnostics "server/diagnostics" (ServerDiagnosticsParams) -> ServerDiagnosticsResponse;
}

// Methods of release 0.166.0 that are not served. A row moves into the table above when its method is built.
unbuilt! {
    experimental "userVerification/status";
    experimental "userVerification/enroll";
    experimental "userVerification/delete";
    experimental "userVerification/verify";
    experimental "userVerification/cancel";
    experimental "thread/prediction/request";
    experimental "plugin/search";
    stable "plugin/reconcile";
    stable "plugin/skill/read";
    stable "plugin/share/save";
    stable "plugin/share/updateTargets";
    stable "plugin/share/list";
    stable "plugin/share/checkout";
    stable "plugin/share/delete";
    stable "app/read";
    stable "app/installed";
    experimental "thread/realtime/appendSpeech";
    experimental "thread/realtime/listVoices";
    stable "account/gatewayOAuth/read";
    stable "account/gatewayOAuth/login";
    stable "account/gatewayOAuth/cancel";
    experimental "remoteControl/enable";
    experimental "remoteControl/disable";
    experimental "remoteControl/pairing/start";
    experimental "remoteControl/pairing/status";
    experimental "remoteControl/client/list";
    experimental "remoteControl/client/revoke";
    experimental "environment/add";
    experimental "environment/info";
    experimental "environment/status";
    experimental "mcpServer/event/stream/start";
    experimental "mcpServer/event/stream/stop";
    stable "windowsSandbox/readiness";
    experimental "account/bedrock/discover";
    experimental "account/bedrock/setup";
    experimental "account/gcp/setup";
    experimental "accountSession/list";
    experimental "accountSession/switch";
    stable "account/rateLimitResetCredit/consume";
    stable "account/sendAddCreditsNudgeEmail";
    stable "feedback/save";
    stable "externalAgentConfig/import/recordHistory";
    stable "externalAgentConfig/import/readHistories";
}

// Below a row are the fields of its params that only clients with the `experimentalApi` capability are sent.
server_requests! {
    CommandExecutionApproval "item/commandExecution/requestApproval" (CommandExecutionRequestApprovalParams) -> CommandExecutionRequestApprovalResponse {
        experimental additional_permissions "additionalPermissions";
    };
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
// the same item are merged. `unlisted` ones are in no JSON Schema. `newer` ones go to connections of level 0.166.0 only,
// `gated` ones to those of them that have the `experimentalApi` capability.
server_notifications! {
    plain Error "error" (ErrorNotification);
    plain ThreadStarted "thread/started" (ThreadStartedNotification);
    plain ThreadStatusChanged "thread/status/changed" (ThreadStatusChangedNotification);
    plain ThreadArchived "thread/archived" (ThreadArchivedNotification);
    plain ThreadUnarchived "thread/unarchived" (ThreadUnarchivedNotification);
    plain ThreadDeleted "thread/deleted" (ThreadDeletedNotification);
    gated ThreadSettingsUpdated "thread/settings/updated" (ThreadSettingsUpdatedNotification);
    newer ThreadReverted "thread/reverted" (ThreadRevertedNotification);
    plain ThreadClosed "thread/closed" (ThreadClosedNotification);
    plain ServerDraining "server/draining" (ServerDrainingNotification);
    plain SkillsChanged "skills/changed" (SkillsChangedNotification);
    plain ThreadNameUpdated "thread/name/updated" (ThreadNameUpdatedNotification);
    newer ThreadGoalUpdated "thread/goal/updated" (ThreadGoalUpdatedNotification);
    newer ThreadGoalCleared "thread/goal/cleared" (ThreadGoalClearedNotification);
    newer Warning "warning" (WarningNotification);
    newer GuardianWarning "guardianWarning" (GuardianWarningNotification);
    newer TurnModerationMetadata "turn/moderationMetadata" (TurnModerationMetadataNotification);
    newer FileChangePatchUpdated "item/fileChange/patchUpdated" (FileChangePatchUpdatedNotification);
    newer ThreadQueueChanged "thread/queue/changed" (ThreadQueueChangedNotification);
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
    newer ProcessOutputDelta "process/outputDelta" (ProcessOutputDeltaNotification);
    newer ProcessExited "process/exited" (ProcessExitedNotification);
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
    gated ProjectChanged "project/changed" (ProjectChangedNotification);
    gated ThreadProjectUpdated "thread/project/updated" (ThreadProjectUpdatedNotification);
    newer ThreadAttachmentUpdated "thread/attachment/updated" (ThreadAttachmentUpdatedNotification);
    gated ThreadReadStateChanged "thread/readState/changed" (ThreadReadStateChangedNotification);
}

/// The only notification that clients send. The server does not wait for it.
pub const INITIALIZED: &str = "initialized";

/// Fields that the stable schemas omit, beside those of the rows above. They are sent to all clients.
pub const EXPERIMENTAL_FIELDS: &[(&str, &[&str])] = &[
    ("CommandExecutionRequestApprovalParams", &["availableDecisions"]),
    ("Config", &["apps"]),
    ("Thread", &["canAcceptDirectInput", "environments"]),
    ("ThreadForkResponse", &["activePermissionProfile", "multiAgentMode", "runtimeWorkspaceRoots"]),
    (
        "ThreadResumeResponse",
        &["activePermissionProfile", "initialTurnsPage", "multiAgentMode", "runtimeWorkspaceRoots"],
    ),
    ("ThreadListResponse", &["readStates"]),
    ("ThreadReadResponse", &["readState"]),
    ("ThreadSettings", &["multiAgentMode"]),
    ("ThreadStartResponse", &["activePermissionProfile", "multiAgentMode", "runtimeWorkspaceRoots"]),
    ("ConfigRequirements", &["network"]),
];
