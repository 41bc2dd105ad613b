//! The rules of goals and of idle work, as functions of what is stored. They change values only.

use std::time::Duration;

use loomd_protocol::{ThreadGoalStall, ThreadGoalStatus};
use loomd_store::{Goal, ThreadId};
use uuid::Uuid;

use crate::refusal::Refusal;

/// The most characters of an objective.
const MAX_OBJECTIVE: usize = 4000;

/// A change of a goal by a client. Missing fields stay as they are.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GoalChange {
    pub objective: Option<String>,
    pub status: Option<ThreadGoalStatus>,
    /// `Some(None)` removes the budget.
    pub token_budget: Option<Option<i64>>,
}

/// The configured limits of goals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GoalLimits {
    pub max_token_budget: Option<i64>,
    /// Turns of one goal; then it is blocked.
    pub max_turns: Option<i64>,
    /// Turns in a row in which the model called no tool; then the goal is blocked.
    pub max_idle_turns: i64,
    /// The pause between two turns of a goal.
    pub pause: Duration,
}

impl Default for GoalLimits {
    fn default() -> Self {
        Self { max_token_budget: None, max_turns: None, max_idle_turns: 10, pause: Duration::ZERO }
    }
}

impl GoalLimits {
    /// The limits of a configuration.
    pub fn of(config: &loomd_config::Settings) -> Self {
        let defaults = Self::default();
        let Some(goals) = &config.config.goals else { return defaults };
        Self {
            max_token_budget: goals.max_goal_token_budget,
            max_turns: goals.max_turns.map(i64::from),
            max_idle_turns: goals.max_idle_turns.map_or(defaults.max_idle_turns, i64::from),
            pause: goals.min_turn_pause_ms.map_or(defaults.pause, Duration::from_millis),
        }
    }
}

/// Changes the goal of a thread as a client asks, or creates it.
pub(crate) fn set(
    stored: &mut Option<Goal>,
    change: GoalChange,
    limits: GoalLimits,
    id: ThreadId,
    now_ms: i64,
) -> Result<Goal, Refusal> {
    let objective = change.objective.map(|text| objective(&text)).transpose()?;
    let budget = change.token_budget.map(|budget| checked_budget(budget, limits)).transpose()?;
    let goal = match stored.take() {
        Some(mut goal) => {
            let before = goal.clone();
            goal.token_budget = budget.unwrap_or(goal.token_budget);
            let woken = change.status == Some(ThreadGoalStatus::Active) || objective.is_some();
            goal.objective = objective.unwrap_or(goal.objective);
            if let Some(status) = change.status {
                set_status(&mut goal, status);
            }
            if woken && goal.status == ThreadGoalStatus::Active {
                (goal.stalled, goal.idle_turns) = (None, 0);
                goal.wrapped_up &= before.status == ThreadGoalStatus::Active;
            }
            if goal != before {
                goal.updated_at_ms = now_ms;
            }
            goal
        }
        None => {
            let objective = objective
                .ok_or_else(|| Refusal::invalid(format!("cannot update goal for thread {id}: no goal exists")))?;
            let budget = budget.unwrap_or(limits.max_token_budget);
            Goal { status: change.status.unwrap_or(ThreadGoalStatus::Active), ..new(objective, budget, now_ms) }
        }
    };
    *stored = Some(goal.clone());
    Ok(goal)
}

/// Creates a goal as the model asks. The error is a text for the model.
pub(crate) fn create(
    stored: &mut Option<Goal>,
    text: &str,
    budget: Option<i64>,
    limits: GoalLimits,
    now_ms: i64,
) -> Result<Goal, String> {
    if let Some(goal) = stored.as_ref().filter(|goal| goal.status != ThreadGoalStatus::Complete) {
        return Err(format!(
            "this thread has a goal already, which is {}. Finish it with update_goal before another one is created",
            word(goal.status)
        ));
    }
    let objective = objective(text).map_err(|refusal| refusal.to_string())?;
    let budget = checked_budget(budget, limits).map_err(|refusal| refusal.to_string())?;
    let goal = new(objective, budget, now_ms);
    *stored = Some(goal.clone());
    Ok(goal)
}

/// Ends or pauses a goal as the model asks. The error is a text for the model.
pub(crate) fn update(stored: &mut Option<Goal>, status: ThreadGoalStatus, now_ms: i64) -> Result<Goal, String> {
    use ThreadGoalStatus::{Blocked, Complete, Paused};
    if !matches!(status, Complete | Blocked | Paused) {
        return Err("update_goal takes the status complete, blocked or paused; others are set by the user".into());
    }
    let goal = stored.as_mut().ok_or("this thread has no goal")?;
    set_status(goal, status);
    goal.updated_at_ms = now_ms;
    Ok(goal.clone())
}

fn new(objective: String, token_budget: Option<i64>, now_ms: i64) -> Goal {
    Goal {
        id: Uuid::now_v7(),
        objective,
        status: ThreadGoalStatus::Active,
        token_budget,
        tokens_used: 0,
        time_used_ms: 0,
        created_at_ms: now_ms,
        updated_at_ms: now_ms,
        stalled: None,
        wrapped_up: false,
        turns: 0,
        idle_turns: 0,
    }
}

fn objective(text: &str) -> Result<String, Refusal> {
    let text = text.trim();
    if text.is_empty() {
        return Err(Refusal::invalid("goal objective must not be empty"));
    }
    if text.chars().count() > MAX_OBJECTIVE {
        return Err(Refusal::invalid(format!("goal objective must be at most {MAX_OBJECTIVE} characters")));
    }
    Ok(text.to_owned())
}

fn checked_budget(budget: Option<i64>, limits: GoalLimits) -> Result<Option<i64>, Refusal> {
    match (budget, limits.max_token_budget) {
        (Some(..=0), _) => Err(Refusal::invalid("goal budgets must be positive when provided")),
        (Some(budget), Some(max)) if budget > max => Err(Refusal::invalid(format!(
            "goal token budget {budget} exceeds the maximum allowed goal token budget of {max}"
        ))),
        (Some(budget), _) => Ok(Some(budget)),
        (None, max) => Ok(max),
    }
}

/// Sets a status, except that a goal without budget left is neither paused nor active.
fn set_status(goal: &mut Goal, status: ThreadGoalStatus) {
    use ThreadGoalStatus::{Active, BudgetLimited, Paused};
    goal.status = match status {
        Paused if goal.status == BudgetLimited => BudgetLimited,
        Active if is_used_up(goal) => BudgetLimited,
        status => status,
    };
}

fn is_used_up(goal: &Goal) -> bool {
    goal.token_budget.is_some_and(|budget| goal.tokens_used >= budget)
}

/// Adds what was used. An active goal whose budget is used up becomes `budgetLimited`.
pub(crate) fn charge(goal: &mut Goal, tokens: i64, active_ms: i64, now_ms: i64) {
    if tokens == 0 && active_ms == 0 {
        return;
    }
    goal.tokens_used = goal.tokens_used.saturating_add(tokens);
    if goal.status == ThreadGoalStatus::Active {
        goal.time_used_ms = goal.time_used_ms.saturating_add(active_ms);
        if is_used_up(goal) {
            goal.status = ThreadGoalStatus::BudgetLimited;
        }
    }
    goal.updated_at_ms = now_ms;
}

/// How a turn ended, as far as goals are concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TurnResult {
    Completed,
    Failed,
    /// The provider refuses more calls for now.
    UsageLimited,
    /// A client interrupted it.
    Interrupted,
    /// It was stopped for another reason, such as the end of the server or another turn.
    Stopped,
}

/// Applies the end of a turn to the goal. `goal_turn`: whether it was started for the goal.
pub(crate) fn end_turn(goal: &mut Goal, result: TurnResult, goal_turn: bool, called_tools: bool, limits: GoalLimits) {
    let active = goal.status == ThreadGoalStatus::Active;
    match result {
        TurnResult::Completed => {
            goal.stalled = None;
            if goal_turn {
                goal.idle_turns = if called_tools { 0 } else { goal.idle_turns.saturating_add(1) };
                let too_many = limits.max_turns.is_some_and(|max| goal.turns >= max);
                if active && (too_many || goal.idle_turns >= limits.max_idle_turns) {
                    goal.status = ThreadGoalStatus::Blocked;
                }
            }
        }
        TurnResult::Failed if active => goal.status = ThreadGoalStatus::Blocked,
        TurnResult::UsageLimited if active => goal.status = ThreadGoalStatus::UsageLimited,
        TurnResult::Interrupted if active => goal.stalled = Some(ThreadGoalStall::Interrupted),
        _ => {}
    }
}

/// Counts a turn that starts for the goal; false when none may start.
pub(crate) fn begin_turn(goal: &mut Goal) -> bool {
    let may = starts_turns(goal);
    if may {
        goal.turns = goal.turns.saturating_add(1);
    }
    may
}

fn starts_turns(goal: &Goal) -> bool {
    goal.status == ThreadGoalStatus::Active && goal.stalled.is_none()
}

/// What an idle thread has to do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IdleFacts<'a> {
    /// Whether messages are queued.
    pub queued: bool,
    /// The last turn was interrupted: queued messages wait for the client.
    pub interrupted: bool,
    pub goal: Option<&'a Goal>,
    pub plan_mode: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IdleWork {
    QueuedMessage,
    Goal,
}

/// The next turn of an idle thread: queued messages before the goal.
pub(crate) fn next_idle_work(facts: &IdleFacts<'_>) -> Option<IdleWork> {
    if facts.queued && !facts.interrupted {
        return Some(IdleWork::QueuedMessage);
    }
    facts.goal.is_some_and(|goal| starts_turns(goal) && !facts.plan_mode).then_some(IdleWork::Goal)
}

/// A status as models and users read it.
fn word(status: ThreadGoalStatus) -> &'static str {
    match status {
        ThreadGoalStatus::Active => "active",
        ThreadGoalStatus::Paused => "paused",
        ThreadGoalStatus::Blocked => "blocked",
        ThreadGoalStatus::UsageLimited => "stopped by a usage limit",
        ThreadGoalStatus::BudgetLimited => "out of budget",
        ThreadGoalStatus::Complete => "complete",
    }
}

#[cfg(test)]
mod tests {
    use ThreadGoalStatus::*;

    use super::*;

    fn id() -> ThreadId {
        "01984de2-8f74-7c91-a3b2-000000000000".parse().unwrap()
    }

    fn goal(status: ThreadGoalStatus) -> Goal {
        Goal { status, ..new("paint".into(), None, 0) }
    }

    fn change(stored: &mut Option<Goal>, change: GoalChange) -> Result<Goal, String> {
        set(stored, change, GoalLimits::default(), id(), 5000).map_err(|refusal| refusal.to_string())
    }

    fn text(objective: &str) -> GoalChange {
        GoalChange { objective: Some(objective.into()), ..GoalChange::default() }
    }

    fn status(status: ThreadGoalStatus) -> GoalChange {
        GoalChange { status: Some(status), ..GoalChange::default() }
    }

    #[test]
    fn a_new_goal_is_active_and_has_its_objective_trimmed() {
        let mut stored = None;
        let made = change(&mut stored, text("  paint \n")).unwrap();
        assert_eq!((made.objective.as_str(), made.status, made.tokens_used), ("paint", Active, 0));
        assert_eq!(stored, Some(made));
    }

    #[test]
    fn invalid_goals_are_refused_and_change_nothing() {
        let longest = "ä".repeat(4000);
        assert!(change(&mut None, text(&longest)).is_ok());
        let budget = |budget| GoalChange { token_budget: Some(Some(budget)), ..text("x") };
        for (wrong, expected) in [
            (text(" \n"), "goal objective must not be empty"),
            (text(&"ä".repeat(4001)), "goal objective must be at most 4000 characters"),
            (budget(0), "goal budgets must be positive when provided"),
            (budget(-1), "goal budgets must be positive when provided"),
        ] {
            let mut stored = Some(goal(Paused));
            let before = stored.clone();
            assert_eq!(change(&mut stored, wrong).unwrap_err(), expected);
            assert_eq!(stored, before);
        }
        let none = format!("cannot update goal for thread {}: no goal exists", id());
        assert_eq!(change(&mut None, status(Paused)).unwrap_err(), none);
        assert_eq!(change(&mut None, GoalChange::default()).unwrap_err(), none);
    }

    #[test]
    fn a_new_objective_keeps_status_counters_and_creation() {
        let mut stored = Some(Goal { tokens_used: 7, created_at_ms: 1, ..goal(Complete) });
        let goal_id = stored.as_ref().unwrap().id;
        let changed = change(&mut stored, text("mow")).unwrap();
        assert_eq!(
            (changed.id, changed.objective.as_str(), changed.status, changed.tokens_used, changed.created_at_ms),
            (goal_id, "mow", Complete, 7, 1)
        );
        assert_eq!(changed.updated_at_ms, 5000);
    }

    #[test]
    fn a_goal_without_budget_left_wakes_only_with_a_larger_budget() {
        let used_up = || Some(Goal { token_budget: Some(10), tokens_used: 12, ..goal(BudgetLimited) });
        let mut stored = used_up();
        assert_eq!(change(&mut stored, status(Paused)).unwrap().status, BudgetLimited);
        assert_eq!(change(&mut stored, status(Active)).unwrap().status, BudgetLimited);
        let more = GoalChange { token_budget: Some(Some(20)), ..GoalChange::default() };
        assert_eq!(change(&mut stored, more.clone()).unwrap().status, BudgetLimited);
        assert_eq!(change(&mut stored, status(Active)).unwrap().status, Active);
        let both = GoalChange { status: Some(Active), ..more };
        assert_eq!(change(&mut used_up(), both).unwrap().status, Active);
        let unbounded = GoalChange { token_budget: Some(None), status: Some(Active), ..GoalChange::default() };
        assert_eq!(change(&mut used_up(), unbounded).unwrap().status, Active);
    }

    #[test]
    fn a_configured_maximum_bounds_every_budget() {
        let limits = GoalLimits { max_token_budget: Some(100), ..GoalLimits::default() };
        let made = set(&mut None, text("x"), limits, id(), 0).unwrap();
        assert_eq!(made.token_budget, Some(100));
        let more = GoalChange { token_budget: Some(Some(101)), ..text("x") };
        assert_eq!(
            set(&mut None, more, limits, id(), 0).unwrap_err().to_string(),
            "goal token budget 101 exceeds the maximum allowed goal token budget of 100"
        );
        let none = GoalChange { token_budget: Some(None), ..text("x") };
        assert_eq!(set(&mut None, none, limits, id(), 0).unwrap().token_budget, Some(100));
    }

    #[test]
    fn usage_beyond_the_budget_limits_an_active_goal_and_is_counted_for_a_complete_one() {
        let mut active = Goal { token_budget: Some(100), ..goal(Active) };
        charge(&mut active, 99, 1500, 9);
        assert_eq!((active.status, active.tokens_used, active.time_used_ms), (Active, 99, 1500));
        charge(&mut active, 1, 0, 9);
        assert_eq!(active.status, BudgetLimited);
        let mut complete = Goal { token_budget: Some(100), ..goal(Complete) };
        charge(&mut complete, 500, 1500, 9);
        assert_eq!((complete.status, complete.tokens_used, complete.time_used_ms), (Complete, 500, 0));
    }

    #[test]
    fn the_end_of_a_turn_decides_what_becomes_of_an_active_goal() {
        let limits = GoalLimits::default();
        let ended = |result| {
            let mut goal = goal(Active);
            end_turn(&mut goal, result, true, true, limits);
            (goal.status, goal.stalled)
        };
        assert_eq!(ended(TurnResult::Completed), (Active, None));
        assert_eq!(ended(TurnResult::Failed), (Blocked, None));
        assert_eq!(ended(TurnResult::UsageLimited), (UsageLimited, None));
        assert_eq!(ended(TurnResult::Interrupted), (Active, Some(ThreadGoalStall::Interrupted)));
        assert_eq!(ended(TurnResult::Stopped), (Active, None));
        let mut paused = goal(Paused);
        end_turn(&mut paused, TurnResult::Failed, true, true, limits);
        assert_eq!(paused.status, Paused);
        let mut stalled = Goal { stalled: Some(ThreadGoalStall::Deferred), ..goal(Active) };
        end_turn(&mut stalled, TurnResult::Completed, false, false, limits);
        assert_eq!(stalled.stalled, None);
    }

    #[test]
    fn turns_without_tools_block_a_goal_and_user_turns_do_not_count() {
        let limits = GoalLimits { max_idle_turns: 2, ..GoalLimits::default() };
        let mut goal = goal(Active);
        let mut end = |goal_turn, called| {
            end_turn(&mut goal, TurnResult::Completed, goal_turn, called, limits);
            goal.status
        };
        let turns = [(true, false), (true, true), (true, false), (false, false), (true, false)];
        assert_eq!(turns.map(|(goal_turn, called)| end(goal_turn, called)), [Active, Active, Active, Active, Blocked]);
    }

    #[test]
    fn a_goal_is_blocked_after_its_last_allowed_turn() {
        let limits = GoalLimits { max_turns: Some(2), ..GoalLimits::default() };
        let mut goal = goal(Active);
        let mut turn = || {
            assert!(begin_turn(&mut goal));
            end_turn(&mut goal, TurnResult::Completed, true, true, limits);
            goal.status
        };
        assert_eq!([turn(), turn()], [Active, Blocked]);
    }

    #[test]
    fn queued_messages_go_before_the_goal() {
        let active = goal(Active);
        let stalled = Goal { stalled: Some(ThreadGoalStall::Interrupted), ..goal(Active) };
        let facts = |queued, interrupted, goal, plan_mode| IdleFacts { queued, interrupted, goal, plan_mode };
        for (facts, expected) in [
            (facts(true, false, Some(&active), false), Some(IdleWork::QueuedMessage)),
            (facts(true, false, Some(&active), true), Some(IdleWork::QueuedMessage)),
            (facts(false, false, Some(&active), false), Some(IdleWork::Goal)),
            (facts(false, false, Some(&active), true), None),
            (facts(false, false, Some(&stalled), false), None),
            (facts(true, true, Some(&stalled), false), None),
            (facts(true, true, Some(&active), false), Some(IdleWork::Goal)),
            (facts(false, false, None, false), None),
        ] {
            assert_eq!(next_idle_work(&facts), expected, "{facts:?}");
        }
    }

    #[test]
    fn the_model_may_end_a_goal_and_replace_a_complete_one_only() {
        let mut stored = Some(Goal { tokens_used: 9, ..goal(Active) });
        let refused = create(&mut stored, "other", None, GoalLimits::default(), 1).unwrap_err();
        assert!(refused.contains("which is active"), "{refused}");
        for wrong in [Active, UsageLimited, BudgetLimited] {
            assert!(update(&mut stored, wrong, 1).is_err());
        }
        assert_eq!(update(&mut stored, Complete, 1).unwrap().status, Complete);
        let replaced = create(&mut stored, " other ", Some(5), GoalLimits::default(), 2).unwrap();
        assert_eq!((replaced.objective.as_str(), replaced.tokens_used, replaced.token_budget), ("other", 0, Some(5)));
        assert_eq!(update(&mut None, Complete, 1).unwrap_err(), "this thread has no goal");
    }
}
