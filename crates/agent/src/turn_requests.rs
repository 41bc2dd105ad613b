//! Requests about turns. Each is sent to the thread's task, which replies.

use loomd_protocol::{
    JsonValue, Level, ResponseItem, ReviewTarget, SessionSource, ThreadBackgroundTerminal, ThreadSampleParams,
    ThreadSampleResponse, ThreadSettingsUpdateParams, Turn, TurnEnvironmentParams, TurnSettingsUpdateParams,
    TurnStartParams, TurnSteerParams, UserInput,
};
use loomd_store::{RequestKey, ThreadId};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::additional_context;
use crate::confinement::CommandPolicy;
use crate::event_sink::Subscriber;
use crate::fork::ForkForm;
use crate::goal_requests::{direct_input, has_path};
use crate::inbox::UserMessageInput;
use crate::lanes::LaneGuard;
use crate::refusal::{MAX_INPUT_CHARS, Refusal};
use crate::settings::{Profile, Resolve};
use crate::thread::{Op, Opened, Reply, Reverted};
use crate::threads::{Source, Threads};
use crate::turn::Work;
use crate::turn_cx::StepSettings;
use crate::turn_origin::TurnOrigin;
use crate::view::LOCAL;
use crate::working_directory::absolute;
use crate::{git, prompts};

/// Finds out what a permission profile stands for: by its id, in a folder, for a thread.
pub(crate) type ChooseProfile<'a> = dyn Fn(&str, &str, &Profile) -> Result<CommandPolicy, Refusal> + Send + Sync + 'a;

impl Threads {
    /// Starts a turn, or gives its input to the running one. A relative `cwd` starts in the working directory of the
    /// process.
    pub async fn start_turn(&self, params: TurnStartParams, level: Level, reply: Reply<Turn>) {
        let unknown =
            |id: &str, _: &str, _: &Profile| Err(Refusal::invalid(format!("unknown permission profile `{id}`")));
        self.start_turn_with(params, &unknown, level, None, reply).await;
    }

    /// Like [`Self::start_turn`]; `choose` finds out what a permission profile stands for in the folder of a thread.
    pub(crate) async fn start_turn_with(
        &self,
        mut params: TurnStartParams,
        choose: &ChooseProfile<'_>,
        level: Level,
        key: Option<RequestKey>,
        reply: Reply<Turn>,
    ) {
        let checked = check_turn_start(&mut params).and_then(|id| {
            self.check_direct_input(id)?;
            Ok((id, self.chosen(id, &params, choose)?))
        });
        let (id, chosen) = match checked {
            Ok(checked) => checked,
            Err(refusal) => return reply(Err(refusal)),
        };
        self.send_turn(id, params, chosen, level, key, TurnOrigin::of_request(), reply).await;
    }

    /// Starts a turn of any thread, also of an agent that clients may not direct.
    #[expect(clippy::too_many_arguments, reason = "each is another part of the request")]
    pub(crate) async fn send_turn(
        &self,
        id: ThreadId,
        params: TurnStartParams,
        chosen: Option<Box<CommandPolicy>>,
        level: Level,
        key: Option<RequestKey>,
        origin: TurnOrigin,
        reply: Reply<Turn>,
    ) {
        let _lane = self.lanes.enter(id).await;
        let op = Op::StartTurn { params: Box::new(params), chosen, level, key, origin, reply };
        if let Err(Op::StartTurn { reply, .. }) = self.send(id, op).await {
            reply(Err(Refusal::not_found(id)));
        }
    }

    /// Changes settings of a loaded thread, without a turn.
    pub(crate) async fn update_settings(
        &self,
        params: ThreadSettingsUpdateParams,
        choose: &ChooseProfile<'_>,
        reply: Reply<()>,
    ) {
        let mut params = overrides_of(params);
        match check_settings(&mut params) {
            Ok(id) => {
                let lane = self.lanes.enter(id).await;
                self.update_settings_within(&lane, id, params, choose, reply).await;
            }
            Err(refusal) => reply(Err(refusal)),
        }
    }

    pub(crate) async fn update_settings_within(
        &self,
        _: &LaneGuard,
        id: ThreadId,
        params: TurnStartParams,
        choose: &ChooseProfile<'_>,
        reply: Reply<()>,
    ) {
        let chosen = match self.chosen(id, &params, choose) {
            Ok(chosen) => chosen,
            Err(refusal) => return reply(Err(refusal)),
        };
        let op = Op::UpdateSettings { params: Box::new(params), chosen, reply };
        if let Err(Op::UpdateSettings { reply, .. }) = self.send(id, op).await {
            reply(Err(Refusal::not_found(id)));
        }
    }

    /// Changes settings for the later model calls of a running turn; false when it is not running.
    pub async fn update_turn(&self, params: TurnSettingsUpdateParams, reply: Reply<bool>) {
        let id = match check_turn_settings(&params) {
            Ok(id) => id,
            Err(refusal) => return reply(Err(refusal)),
        };
        let change = StepSettings {
            model: params.model,
            effort: params.effort,
            summary: params.summary,
            service_tier: params.service_tier,
        };
        let _lane = self.lanes.enter(id).await;
        if let Err(Op::UpdateTurn { reply, .. }) =
            self.send(id, Op::UpdateTurn { turn_id: params.turn_id, change, reply }).await
        {
            reply(Err(Refusal::not_found(id)));
        }
    }

    /// Cuts off a turn of a loaded thread and all later ones.
    pub async fn revert(&self, id: ThreadId, before: String, reply: Reply<Reverted>) {
        let _lane = self.lanes.enter(id).await;
        if let Err(Op::Revert { reply, .. }) = self.send(id, Op::Revert { before, reply }).await {
            reply(Err(Refusal::not_found(id)));
        }
    }

    /// Adds items to the conversation of a loaded thread.
    pub async fn inject(&self, id: ThreadId, items: Vec<ResponseItem>, reply: Reply<()>) {
        let _lane = self.lanes.enter(id).await;
        if let Err(Op::Inject { reply, .. }) = self.send(id, Op::Inject { items, reply }).await {
            reply(Err(Refusal::not_found(id)));
        }
    }

    /// Lists the commands that a loaded thread runs in the background.
    pub async fn list_terminals(&self, id: ThreadId, reply: Reply<Vec<ThreadBackgroundTerminal>>) {
        let _lane = self.lanes.enter(id).await;
        if let Err(Op::ListTerminals(reply)) = self.send(id, Op::ListTerminals(reply)).await {
            reply(Err(Refusal::not_found(id)));
        }
    }

    /// Ends a command that a loaded thread runs in the background; false when there is none with this id.
    pub async fn end_terminal(&self, id: ThreadId, process_id: u32, reply: Reply<bool>) {
        let _lane = self.lanes.enter(id).await;
        if let Err(Op::EndTerminal { reply, .. }) = self.send(id, Op::EndTerminal { process_id, reply }).await {
            reply(Err(Refusal::not_found(id)));
        }
    }

    /// What the permission profile of a request stands for in the folder of its thread.
    fn chosen(
        &self,
        id: ThreadId,
        params: &TurnStartParams,
        choose: &ChooseProfile<'_>,
    ) -> Result<Option<Box<CommandPolicy>>, Refusal> {
        let Some(profile) = &params.permissions else { return Ok(None) };
        if params.sandbox_policy.is_some() {
            return Err(Refusal::invalid("`permissions` cannot be combined with `sandboxPolicy`"));
        }
        let loaded = self.get(id).ok_or_else(|| Refusal::not_found(id))?;
        let cwd = params.cwd.clone().unwrap_or_else(|| loaded.view.thread().cwd);
        choose(profile, &cwd, &loaded.profile).map(|chosen| Some(Box::new(chosen)))
    }

    /// Gives input to the running turn.
    pub async fn steer(&self, params: TurnSteerParams, key: Option<RequestKey>, reply: Reply<String>) {
        let id = match self.check_steer(&params) {
            Ok(id) => id,
            Err(refusal) => return reply(Err(refusal)),
        };
        let TurnSteerParams { expected_turn_id: expected, input: content, client_user_message_id: client_id, .. } =
            params;
        let input = UserMessageInput { id: None, content, client_id };
        let _lane = self.lanes.enter(id).await;
        if let Err(Op::Steer { reply, .. }) = self.send(id, Op::Steer { expected, input, key, reply }).await {
            reply(Err(Refusal::not_found(id)));
        }
    }

    /// Interrupts the running turn. Without one a newer client is refused.
    pub async fn interrupt(&self, id: ThreadId, turn_id: String, level: Level, reply: Reply<()>) {
        let strict = level >= Level::V0_166;
        let _lane = self.lanes.enter(id).await;
        if let Err(Op::Interrupt { reply, .. }) = self.send(id, Op::Interrupt { turn_id, strict, reply }).await {
            reply(Err(Refusal::not_found(id)));
        }
    }

    /// Replaces a thread's conversation by a summary.
    pub async fn compact(&self, id: ThreadId, key: Option<RequestKey>, reply: Reply<Turn>) {
        match self.check_direct_input(id) {
            Ok(()) => self.replace(id, Work::Compact, key, reply).await,
            Err(refusal) => reply(Err(refusal)),
        }
    }

    /// Refuses input for a loaded agent that only its parent may direct.
    fn check_direct_input(&self, id: ThreadId) -> Result<(), Refusal> {
        let Some(loaded) = self.get(id) else { return Ok(()) };
        direct_input(matches!(loaded.view.thread().source, SessionSource::SubAgent(agent) if has_path(&agent)))
    }

    /// Calls the model once on top of a loaded thread, which keeps nothing of it.
    pub async fn sample(
        &self,
        id: ThreadId,
        params: ThreadSampleParams,
        cancel: CancellationToken,
        reply: Reply<ThreadSampleResponse>,
    ) {
        let _lane = self.lanes.enter(id).await;
        let op = Op::Sample { params: Box::new(params), cancel, reply };
        if let Err(Op::Sample { reply, .. }) = self.send(id, op).await {
            reply(Err(Refusal::invalid("thread/sample requires a loaded source")));
        }
    }

    /// Lets the user allow an action that the reviewer denied.
    pub async fn approve_denied(&self, id: ThreadId, event: JsonValue, reply: Reply<()>) {
        let _lane = self.lanes.enter(id).await;
        if let Err(Op::ApproveDenied { reply, .. }) = self.send(id, Op::ApproveDenied { event, reply }).await {
            reply(Err(Refusal::not_found(id)));
        }
    }

    /// Runs a command of the user in a thread, without the model.
    pub async fn shell_command(&self, id: ThreadId, command: String, key: Option<RequestKey>, reply: Reply<()>) {
        let _lane = self.lanes.enter(id).await;
        if let Err(Op::ShellCommand { reply, .. }) = self.send(id, Op::ShellCommand { command, key, reply }).await {
            reply(Err(Refusal::not_found(id)));
        }
    }

    /// Ends all commands that a thread runs in the background.
    pub async fn clean_terminals(&self, id: ThreadId, reply: Reply<()>) {
        let _lane = self.lanes.enter(id).await;
        if let Err(Op::CleanTerminals(reply)) = self.send(id, Op::CleanTerminals(reply)).await {
            reply(Err(Refusal::not_found(id)));
        }
    }

    async fn replace(&self, id: ThreadId, work: Work, key: Option<RequestKey>, reply: Reply<Turn>) {
        let _lane = self.lanes.enter(id).await;
        if let Err(Op::Replace { reply, .. }) = self.send(id, Op::Replace { work, key, reply }).await {
            reply(Err(Refusal::not_found(id)));
        }
    }

    /// Starts a review in the thread itself.
    pub async fn review(&self, id: ThreadId, target: ReviewTarget, key: Option<RequestKey>, reply: Reply<Turn>) {
        match self.review_work(id, target).await {
            Ok(work) => self.replace(id, work, key, reply).await,
            Err(refusal) => reply(Err(refusal)),
        }
    }

    /// Forks a thread for a review, and starts the review in the fork.
    pub async fn fork_for_review(
        &self,
        source: ThreadId,
        key: Option<&RequestKey>,
        resolve: Resolve,
        subscriber: Subscriber,
    ) -> Result<ThreadId, Refusal> {
        let (answer, answered) = oneshot::channel();
        let reply: Reply<Opened> = Box::new(|opened| _ = answer.send(opened));
        self.fork_once(Source::Id(source), ForkForm::default(), key, resolve, subscriber, reply).await;
        let opened = answered.await.map_err(|_| Refusal::failed("the thread could not be copied"))??;
        opened.thread.id.parse().map_err(|_| Refusal::failed("the thread could not be copied"))
    }

    async fn review_work(&self, id: ThreadId, target: ReviewTarget) -> Result<Work, Refusal> {
        let loaded = self.get(id).ok_or_else(|| Refusal::not_found(id))?;
        let (target, merge_base) = match target {
            ReviewTarget::BaseBranch { branch } => {
                let cwd = loaded.view.thread().cwd;
                if !git::is_repository(&cwd).await {
                    return Err(Refusal::invalid(format!("{cwd:?} is not a git repository")));
                }
                let branch = match branch {
                    Some(branch) => branch,
                    None => git::default_branch(&cwd).await.ok_or_else(|| {
                        Refusal::invalid(format!(
                            "branch is missing, and the repository of {cwd:?} has no default branch"
                        ))
                    })?,
                };
                let merge_base = git::merge_base(&cwd, &branch).await;
                (ReviewTarget::BaseBranch { branch: Some(branch) }, merge_base)
            }
            ReviewTarget::Custom { instructions: None } => {
                (ReviewTarget::Custom { instructions: Some(prompts::REVIEW_LATEST.into()) }, None)
            }
            target => (target, None),
        };
        let (hint, prompt) = (prompts::review_hint(&target), prompts::review_prompt(&target, merge_base.as_deref()));
        Ok(Work::Review { target, hint, prompt })
    }

    fn check_steer(&self, params: &TurnSteerParams) -> Result<ThreadId, Refusal> {
        let id = parse_id(&params.thread_id)?;
        if !self.is_loaded(id) {
            return Err(Refusal::not_found(id));
        }
        self.check_direct_input(id)?;
        if params.expected_turn_id.is_empty() {
            return Err(Refusal::invalid("expectedTurnId must not be empty"));
        }
        check_size(&params.input)?;
        if params.input.is_empty() {
            return Err(Refusal::invalid("input must not be empty"));
        }
        Ok(id)
    }
}

/// Refuses environments other than this machine.
pub(crate) fn check_environments(environments: Option<&[TurnEnvironmentParams]>) -> Result<(), Refusal> {
    let Some(environments) = environments else { return Ok(()) };
    if let Some(unknown) = environments.iter().find(|one| one.environment_id != LOCAL) {
        return Err(Refusal::invalid(format!("unknown turn environment id `{}`", unknown.environment_id)));
    }
    match environments {
        [] | [_] => Ok(()),
        _ => Err(Refusal::invalid("environments must name the environment `local` once")),
    }
}

/// Returns the id that a client names a thread by.
pub fn parse_id(text: &str) -> Result<ThreadId, Refusal> {
    text.parse().map_err(|error| Refusal::invalid(format!("invalid thread id: {error}")))
}

/// The overrides of a turn that change the same settings.
fn overrides_of(params: ThreadSettingsUpdateParams) -> TurnStartParams {
    TurnStartParams {
        thread_id: params.thread_id,
        cwd: params.cwd,
        approval_policy: params.approval_policy,
        approvals_reviewer: params.approvals_reviewer,
        sandbox_policy: params.sandbox_policy,
        permissions: params.permissions,
        model: params.model,
        service_tier: params.service_tier,
        effort: params.effort,
        summary: params.summary,
        personality: params.personality,
        collaboration_mode: params.collaboration_mode,
        multi_agent_mode: params.multi_agent_mode,
        disabled_plugin_ids: params.disabled_plugin_ids,
        ..TurnStartParams::default()
    }
}

fn check_turn_settings(params: &TurnSettingsUpdateParams) -> Result<ThreadId, Refusal> {
    if params.model.as_ref().is_some_and(String::is_empty) {
        return Err(Refusal::invalid("model must not be empty"));
    }
    if params.approvals_reviewer.is_some() {
        return Err(Refusal::invalid("approvalsReviewer cannot be changed while a turn is running"));
    }
    parse_id(&params.thread_id)
}

fn check_turn_start(params: &mut TurnStartParams) -> Result<ThreadId, Refusal> {
    check_size(&params.input)?;
    check_settings(params)
}

fn check_settings(params: &mut TurnStartParams) -> Result<ThreadId, Refusal> {
    let id = parse_id(&params.thread_id)?;
    if let Some(output) = &params.tool_output {
        if !params.input.is_empty() {
            return Err(Refusal::invalid("`toolOutput` cannot be combined with nonempty `input`"));
        }
        if output.name.is_empty() {
            return Err(Refusal::invalid("`toolOutput.name` must not be empty"));
        }
    }
    if let Some(entries) = &params.additional_context {
        additional_context::check(entries)?;
    }
    check_environments(params.environments.as_deref())?;
    if params.environments.as_ref().is_some_and(Vec::is_empty) {
        return Err(Refusal::invalid("a turn without an environment is not supported yet; start such a thread"));
    }
    if params.disabled_plugin_ids.as_ref().is_some_and(|ids| !ids.is_empty()) {
        return Err(Refusal::invalid("disabledPluginIds is not supported yet"));
    }
    if params.model.as_ref().is_some_and(String::is_empty) {
        return Err(Refusal::invalid("model must not be empty"));
    }
    if let Some(cwd) = &mut params.cwd {
        *cwd = absolute(cwd)?.to_string_lossy().into_owned();
    }
    Ok(id)
}

pub(crate) fn check_size(input: &[UserInput]) -> Result<(), Refusal> {
    let chars = |part: &UserInput| match part {
        UserInput::Text { text, .. } => text.chars().count(),
        _ => 0,
    };
    match input.iter().map(chars).sum() {
        chars if chars > MAX_INPUT_CHARS => Err(Refusal::InputTooLarge { chars }),
        _ => Ok(()),
    }
}

/// Returns the target of a review with its texts trimmed; an empty one is refused, a missing one is chosen later.
pub(crate) fn review_target(target: ReviewTarget) -> Result<ReviewTarget, Refusal> {
    let filled = |name: &str, text: &str| match text.trim() {
        "" => Err(Refusal::invalid(format!("{name} must not be empty"))),
        text => Ok(text.to_owned()),
    };
    Ok(match target {
        ReviewTarget::UncommittedChanges => ReviewTarget::UncommittedChanges,
        ReviewTarget::BaseBranch { branch } => {
            ReviewTarget::BaseBranch { branch: branch.map(|branch| filled("branch", &branch)).transpose()? }
        }
        ReviewTarget::Commit { sha, title } => {
            let title = title.map(|title| title.trim().to_owned()).filter(|title| !title.is_empty());
            ReviewTarget::Commit { sha: filled("sha", &sha)?, title }
        }
        ReviewTarget::Custom { instructions } => {
            let instructions = instructions.map(|text| filled("instructions", &text)).transpose()?;
            ReviewTarget::Custom { instructions }
        }
    })
}
