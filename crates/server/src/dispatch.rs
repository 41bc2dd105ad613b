//! From a decoded request to the function that answers it. The match has one arm per row of the protocol's method
//! table; a row without a handler below does not compile.

use loomd_protocol::{Call, ClientRequest, RpcError, call, for_each_client_request};

use crate::answer::Handled;
use crate::context::Context;
use crate::handlers::{
    account, approval, apps, attachments, command_exec, config, diagnostics, external_agent, features, feedback, fs,
    git, goals, history, hooks, marketplace, mcp, mcp_direct, mcp_login, memory, mock, model, plugin, process,
    projects, queue, read_state, realtime, sample, search, sections, services, settings, skills, summary, terminals,
    thread, thread_list, thread_search, turn, usage, windows,
};

/// A method that this server answers.
trait Handler: Call + Sized {
    fn handle(cx: &Context, params: Self::Params) -> impl Future<Output = Handled<Self>> + Send;
}

macro_rules! handlers {
    ($($call:ident => $handler:path;)*) => {
        $(impl Handler for call::$call {
            fn handle(cx: &Context, params: Self::Params) -> impl Future<Output = Handled<Self>> + Send {
                $handler(cx, params)
            }
        })*
    };
}

macro_rules! refused {
    ($($call:ident => $error:expr;)*) => {
        $(impl Handler for call::$call {
            async fn handle(_: &Context, _: Self::Params) -> Handled<Self> {
                Err($error)
            }
        })*
    };
}

macro_rules! dispatch {
    ($($call:ident $method:literal ($params:ty) -> $result:ty;)*) => {
        /// Answers a request; resolves when the answer is in the outbound queue.
        pub(crate) async fn dispatch(cx: &Context, request: ClientRequest) {
            let counted = cx.app.requests.begin(request.method());
            match request {
                $(ClientRequest::$call(params) => {
                    cx.answer.finish(<call::$call as Handler>::handle(cx, params).await).await;
                })*
            }
            counted.end(cx.answer.succeeded());
        }
    };
}

for_each_client_request!(dispatch);

handlers! {
    ThreadStart => thread::start;
    ThreadResume => thread::resume;
    ThreadFork => thread::fork;
    ThreadArchive => thread::archive;
    ThreadUnarchive => thread::unarchive;
    ThreadUnsubscribe => thread::unsubscribe;
    ThreadNameSet => thread::set_name;
    ThreadRollback => thread::roll_back;
    ThreadDelete => thread::delete;
    ThreadCompactStart => turn::compact;
    ThreadShellCommand => turn::shell_command;
    ThreadBackgroundTerminalsClean => turn::clean_terminals;
    TurnStart => turn::start;
    TurnSteer => turn::steer;
    TurnInterrupt => turn::interrupt;
    ReviewStart => turn::review;
    ThreadRealtimeStart => realtime::start;
    ThreadRealtimeAppendAudio => realtime::append_audio;
    ThreadRealtimeAppendText => realtime::append_text;
    ThreadRealtimeStop => realtime::stop;
    AppList => apps::list;
    CommandExec => command_exec::exec;
    CommandExecWrite => command_exec::write;
    CommandExecResize => command_exec::resize;
    CommandExecTerminate => command_exec::terminate;
    ProcessSpawn => process::spawn;
    ProcessWriteStdin => process::write_stdin;
    ProcessResizePty => process::resize_pty;
    ProcessKill => process::kill;
    ModelList => model::list;
    CollaborationModeList => model::collaboration_modes;
    ThreadTurnsList => thread::list_turns;
    ThreadRevert => history::revert;
    ThreadInjectItems => history::inject;
    ThreadSettingsUpdate => settings::update;
    TurnSettingsUpdate => settings::update_turn;
    PermissionProfileList => settings::list_profiles;
    ThreadBackgroundTerminalsList => terminals::list;
    ThreadBackgroundTerminalsTerminate => terminals::terminate;
    HooksList => hooks::list;
    ModelProviderCapabilitiesRead => services::provider_capabilities;
    AccountUsageRead => usage::read;
    AccountWorkspaceMessagesRead => services::workspace_messages;
    AccountBedrockCheckGovCloudRequirements => services::gov_cloud;
    RemoteControlStatusRead => services::remote_control;
    ThreadItemsList => thread::list_items;
    ThreadApproveGuardianDeniedAction => turn::approve_denied;
    ThreadGoalSet => goals::set;
    ThreadGoalGet => goals::get;
    ThreadGoalClear => goals::clear;
    ThreadQueueAdd => queue::add;
    ThreadQueueList => queue::list;
    ThreadQueueUpdate => queue::update;
    ThreadQueueDelete => queue::delete;
    ThreadQueueReorder => queue::reorder;
    ThreadQueueStart => queue::start;
    ApprovalList => approval::list;
    ApprovalDecide => approval::decide;
    ThreadList => thread_list::list;
    ThreadSample => sample::sample;
    ThreadSampleCancel => sample::cancel;
    ThreadLoadedList => thread::loaded_list;
    ThreadRead => thread::read;
    ThreadMetadataUpdate => thread::update_metadata;
    ThreadIncrementElicitation => thread::increment_elicitation;
    ThreadDecrementElicitation => thread::decrement_elicitation;
    AccountRead => account::read;
    AccountLoginStart => account::login;
    AccountLoginCancel => account::cancel;
    AccountLogout => account::logout;
    AccountRateLimitsRead => account::rate_limits;
    GetAuthStatus => account::auth_status;
    GetConversationSummary => summary::conversation;
    McpServerOauthLogin => mcp_login::login;
    ConfigRead => config::read;
    McpServerStatusList => mcp::list_status;
    ConfigMcpServerReload => mcp::reload;
    ConfigRequirementsRead => config::requirements;
    FsReadFile => fs::read_file;
    FsWriteFile => fs::write_file;
    FsCreateDirectory => fs::create_directory;
    FsGetMetadata => fs::get_metadata;
    FsReadDirectory => fs::read_directory;
    FsRemove => fs::remove;
    FsCopy => fs::copy;
    FsWatch => fs::watch;
    FsUnwatch => fs::unwatch;
    ConfigValueWrite => config::write_value;
    ConfigBatchWrite => config::write_batch;
    ExperimentalFeatureList => features::list;
    ExperimentalFeatureEnablementSet => features::set_enablement;
    ExternalAgentConfigDetect => external_agent::detect;
    ExternalAgentConfigImport => external_agent::import;
    FeedbackUpload => feedback::upload;
    GitDiffToRemote => git::diff_to_remote;
    WindowsSandboxSetupStart => windows::start_setup;
    FuzzyFileSearch => search::once;
    FuzzyFileSearchSessionStart => search::start;
    FuzzyFileSearchSessionUpdate => search::update;
    FuzzyFileSearchSessionStop => search::stop;
    SkillsList => skills::list;
    SkillsConfigWrite => skills::write_config;
    PluginList => plugin::list;
    PluginRead => plugin::read;
    PluginInstall => plugin::install;
    PluginUninstall => plugin::uninstall;
    MockExperimentalMethod => mock::experimental;
    ThreadAttachmentAdd => attachments::add;
    ThreadAttachmentList => attachments::list;
    ThreadAttachmentOwnerList => attachments::owners;
    ThreadAttachmentRemove => attachments::remove;
    ThreadSectionMove => sections::move_thread;
    ThreadSectionList => sections::list;
    ThreadSectionCreate => sections::create;
    ThreadSectionUpdate => sections::update;
    ThreadSectionDelete => sections::delete;
    ThreadMemoryModeSet => memory::set_mode;
    ThreadMemoryRead => memory::read;
    MemoryStatus => memory::status;
    MemoryReset => memory::reset;
    RolloutCompress => memory::compress;
    ProjectList => projects::list;
    ProjectRead => projects::read;
    ProjectCreate => projects::create;
    ProjectImport => projects::import;
    ProjectUpdate => projects::update;
    ProjectMove => projects::move_project;
    ProjectDelete => projects::delete;
    ThreadSearch => thread_search::search;
    ThreadSearchOccurrences => thread_search::occurrences;
    ThreadItemsRead => thread_search::read_items;
    ThreadTimelineList => thread_search::timeline;
    ThreadReadStateUpdate => read_state::update;
    SkillsExtraRootsSet => skills::set_extra_roots;
    MarketplaceAdd => marketplace::add;
    MarketplaceRemove => marketplace::remove;
    MarketplaceUpgrade => marketplace::upgrade;
    PluginInstalled => plugin::installed;
    McpServerToolCall => mcp_direct::call_tool;
    McpServerResourceRead => mcp_direct::read_resource;
    ServerDiagnostics => diagnostics::read;
}

refused! {
    // The connection answers the first one.
    Initialize => RpcError::invalid_request("Already initialized");
}
