//! What runs requests on one node of a simulation: it loads and unloads threads, appends under their epochs, and runs the
//! requests of a thread one after the other.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use loomd_ownership::{Action, Input, Need, RequestKey, Session, Thread};

use super::clients::Outcome;
use super::database::{Append, Appended, Record};
use super::random::Random;

#[derive(Default)]
pub struct Executor {
    pub owned: BTreeMap<Thread, (u64, Session)>,
    pub loaded: BTreeSet<Thread>,
    /// The threads that were taken over and not loaded since.
    loading: BTreeSet<Thread>,
    pub runs: BTreeMap<RequestKey, Run>,
    lines: BTreeMap<Thread, VecDeque<RequestKey>>,
    /// The answers that were given.
    pub results: BTreeMap<RequestKey, Outcome>,
}

pub struct Run {
    pub thread: Thread,
    epoch: Option<u64>,
    need: Need,
    repeatable: bool,
    appending: bool,
}

/// Something that an executor does some time after it was told to.
#[derive(Clone, Copy, Debug)]
pub enum Step {
    /// Begins with a request.
    Begin {
        key: RequestKey,
    },
    /// The append of a request is answered; `None` when it was waited for too long.
    Appended {
        key: RequestKey,
        reply: Option<Appended>,
    },
    /// A thread that was taken over is loaded.
    Load {
        thread: Thread,
        epoch: u64,
    },
    Unload {
        thread: Thread,
        let_go: bool,
    },
}

/// What comes out of an executor.
pub enum Effect {
    /// Something to do later.
    Later(u64, Step),
    Append(RequestKey, Append),
    /// An input for the node.
    Give(Input),
    /// A request is answered.
    Answer(RequestKey, Outcome),
}

impl Executor {
    /// Does an action of the node. `session` is the node's, `request` what is known of the request that is run.
    pub fn act(
        &mut self,
        action: &Action,
        session: Option<Session>,
        request: Option<(Need, bool)>,
        random: &mut Random,
    ) -> Result<Vec<Effect>, String> {
        let mut effects = Vec::new();
        match *action {
            Action::Own { thread, epoch, taken_over } => {
                let Some(session) = session else { return Err(format!("{thread:?} is owned without a session")) };
                if self.owned.insert(thread, (epoch, session)).is_some() {
                    return Err(format!("{thread:?} is owned twice"));
                }
                if taken_over {
                    self.loading.insert(thread);
                    effects.push(Effect::Later(random.between(1, 500), Step::Load { thread, epoch }));
                }
            }
            Action::Run { key, thread, epoch } => {
                let Some((need, repeatable)) = request else { return Ok(effects) };
                if epoch != self.owned.get(&thread).map(|(epoch, _)| *epoch) && (epoch.is_some() || need == Need::Owner)
                {
                    return Err(format!("{key:?} runs under {epoch:?}, owned are {:?}", self.owned));
                }
                let run = Run { thread, epoch, need, repeatable, appending: false };
                if self.runs.insert(key, run).is_some() {
                    return Err(format!("{key:?} runs twice at one time"));
                }
                let line = self.lines.entry(thread).or_default();
                line.push_back(key);
                if line.len() == 1 {
                    effects.push(begin(key, random));
                }
            }
            Action::Stop { thread } => {
                let Some((epoch, _)) = self.owned.remove(&thread) else {
                    return Err(format!("{thread:?} stops, and is not owned"));
                };
                self.loaded.remove(&thread);
                self.loading.remove(&thread);
                let is_of = |run: &Run| run.thread == thread && run.epoch == Some(epoch);
                let stopped: Vec<(RequestKey, bool)> =
                    self.runs.iter().filter(|(_, run)| is_of(run)).map(|(key, run)| (*key, run.appending)).collect();
                for (key, appending) in stopped {
                    let outcome = if appending { Outcome::Unknown } else { Outcome::Refused };
                    self.finish(key, outcome, random, &mut effects);
                }
            }
            Action::LetGo { thread } if self.loaded.contains(&thread) => {
                effects.push(Effect::Later(random.below(3_000), Step::Unload { thread, let_go: true }));
            }
            _ => {}
        }
        Ok(effects)
    }

    /// Does something that was put off. `is_calm`: threads stay loaded, and everything can be loaded.
    pub fn step(&mut self, step: Step, is_calm: bool, random: &mut Random) -> Vec<Effect> {
        let mut effects = Vec::new();
        match step {
            Step::Begin { key } => self.begin(key, is_calm, random, &mut effects),
            Step::Appended { key, reply } => {
                let Some(run) = self.runs.get(&key).filter(|run| run.appending) else { return effects };
                let (thread, epoch) = (run.thread, run.epoch);
                let outcome = match reply {
                    Some(Appended::Stored) => Outcome::Done,
                    Some(Appended::Stale) => Outcome::Refused,
                    None => Outcome::Unknown,
                };
                if outcome != Outcome::Done && self.owned.get(&thread).map(|(epoch, _)| *epoch) == epoch {
                    // What is stored is not known any more.
                    self.loaded.remove(&thread);
                    effects.push(Effect::Give(Input::Unloaded { thread }));
                }
                self.finish(key, outcome, random, &mut effects);
            }
            Step::Load { thread, epoch } => {
                if self.owned.get(&thread).is_some_and(|(owned, _)| *owned == epoch) && self.loading.remove(&thread) {
                    if is_calm || !random.per_mille(100) {
                        self.load(thread, random, &mut effects);
                    } else {
                        effects.push(Effect::Give(Input::Unloaded { thread }));
                    }
                }
            }
            Step::Unload { thread, let_go } => {
                let is_used = self.lines.get(&thread).is_some_and(|line| !line.is_empty());
                let unloads = let_go || (!is_calm && (!is_used || random.per_mille(300)));
                if unloads && self.loaded.remove(&thread) {
                    effects.push(Effect::Give(Input::Unloaded { thread }));
                }
            }
        }
        effects
    }

    fn begin(&mut self, key: RequestKey, is_calm: bool, random: &mut Random, effects: &mut Vec<Effect>) {
        let Some(run) = self.runs.get_mut(&key).filter(|run| !run.appending) else { return };
        let (thread, need, repeatable) = (run.thread, run.need, run.repeatable);
        let Some((epoch, session)) = self.owned.get(&thread).copied().filter(|_| need == Need::Owner) else {
            self.finish(key, Outcome::Done, random, effects);
            return;
        };
        run.appending = true;
        if !self.loaded.contains(&thread) && (is_calm || random.per_mille(600)) {
            self.load(thread, random, effects);
        }
        if !is_calm && random.per_mille(50) {
            self.finish(key, Outcome::Refused, random, effects);
            return;
        }
        let record = Record { key, epoch, session };
        effects.push(Effect::Append(key, Append { thread, record, repeatable }));
        effects.push(Effect::Later(3_000, Step::Appended { key, reply: None }));
    }

    fn load(&mut self, thread: Thread, random: &mut Random, effects: &mut Vec<Effect>) {
        self.loaded.insert(thread);
        self.loading.remove(&thread);
        effects.push(Effect::Give(Input::Loaded { thread }));
        effects.push(Effect::Later(random.between(10, 20_000), Step::Unload { thread, let_go: false }));
    }

    fn finish(&mut self, key: RequestKey, outcome: Outcome, random: &mut Random, effects: &mut Vec<Effect>) {
        let Some(run) = self.runs.remove(&key) else { return };
        let line = self.lines.entry(run.thread).or_default();
        let was_first = line.front() == Some(&key);
        line.retain(|waiting| *waiting != key);
        if was_first && let Some(next) = line.front() {
            effects.push(begin(*next, random));
        }
        // An earlier run of it may have done it, on a node that was lost.
        let outcome = if run.repeatable && outcome == Outcome::Refused { Outcome::Unknown } else { outcome };
        self.results.insert(key, outcome);
        effects.push(Effect::Answer(key, outcome));
        effects.push(Effect::Give(Input::Finished { key }));
    }
}

/// Mostly at once, now and then after a long while.
fn begin(key: RequestKey, random: &mut Random) -> Effect {
    let after = if random.per_mille(30) { random.between(50, 9_000) } else { random.below(30) };
    Effect::Later(after, Step::Begin { key })
}
