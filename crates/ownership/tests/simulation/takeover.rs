//! Single steps of the protocol, by hand.

use loomd_ownership::{Action, Answer, DbOp, DbReply, Input, Node, NodeId, OpId, RequestKey, Settings, Thread};

use super::database::Database;

const THREAD: Thread = Thread(1);

/// A node that reaches the database at once.
struct Machine {
    node: Node,
    /// Whether operations reach the database.
    connected: bool,
}

impl Machine {
    fn new(id: u64) -> Self {
        Self { node: Node::new(NodeId(id), Settings::default()), connected: true }
    }

    fn handle(&mut self, now: u64, input: Input, database: &mut Database) -> Vec<Action> {
        let (mut inputs, mut seen) = (vec![input], Vec::new());
        while let Some(input) = inputs.pop() {
            for action in self.node.handle(now, input) {
                match action {
                    Action::Db { op, request } if self.connected => {
                        let reply = database.apply(now, Settings::default().session_ttl, &request).unwrap();
                        inputs.push(Input::Db { op, reply });
                    }
                    other => seen.push(other),
                }
            }
        }
        seen
    }

    /// Ticks up to a time and returns when the node first owned the thread.
    fn owns_by(&mut self, from: u64, to: u64, database: &mut Database) -> Option<u64> {
        (from..to).step_by(100).find(|now| {
            self.handle(*now, Input::Tick, database);
            self.node.running(*now).contains(&THREAD)
        })
    }
}

fn request(key: u64) -> Input {
    Input::Request { key: RequestKey(key), thread: THREAD }
}

#[test]
fn a_follower_takes_a_thread_over_within_the_lease_and_five_seconds() {
    let mut database = Database::default();
    let (mut owner, mut follower) = (Machine::new(1), Machine::new(2));
    owner.handle(0, Input::Tick, &mut database);
    owner.handle(0, request(1), &mut database);
    assert_eq!(owner.node.running(0), [THREAD]);
    follower.handle(0, Input::Follow { thread: THREAD }, &mut database);
    // The owner is killed.
    let at = follower.owns_by(0, 60_000, &mut database).unwrap();
    let ttl = Settings::default().session_ttl;
    assert!((ttl..=ttl + 5_000).contains(&at), "{at}");
    let answers = follower.handle(at, request(1), &mut database);
    assert!(answers.contains(&Action::Answer { key: RequestKey(1), answer: Answer::Done { seq: 0 } }), "{answers:?}");
}

#[test]
fn a_node_that_was_paused_beyond_its_session_stops_before_it_does_anything_else() {
    let mut database = Database::default();
    let (mut paused, mut other) = (Machine::new(1), Machine::new(2));
    paused.handle(0, Input::Tick, &mut database);
    paused.handle(0, request(1), &mut database);
    other.handle(0, Input::Follow { thread: THREAD }, &mut database);
    let at = other.owns_by(0, 60_000, &mut database).unwrap();
    let actions = paused.node.handle(at, request(2));
    assert_eq!(actions.first(), Some(&Action::Stop { thread: THREAD }));
    assert!(!actions.iter().any(|action| matches!(action, Action::Db { request: DbOp::Append { .. }, .. })));
}

#[test]
fn an_append_of_unknown_outcome_is_settled_under_a_new_token() {
    let mut database = Database::default();
    let mut machine = Machine::new(1);
    machine.handle(0, Input::Tick, &mut database);
    machine.handle(0, request(1), &mut database);
    machine.connected = false;
    let sent = machine.handle(10, request(2), &mut database);
    let Some(Action::Db { request: late @ DbOp::Append { .. }, .. }) = sent.first() else { panic!("{sent:?}") };
    machine.connected = true;
    let later = 10 + Settings::default().db_timeout;
    let answers = machine.handle(later, Input::Tick, &mut database);
    assert!(answers.contains(&Action::Answer { key: RequestKey(2), answer: Answer::Done { seq: 1 } }), "{answers:?}");
    assert_eq!(database.apply(later, 15_000, late), Ok(DbReply::Stale), "it arrives after all");
}

#[test]
fn a_draining_node_lets_its_threads_go_and_sends_clients_elsewhere() {
    let mut database = Database::default();
    let (mut first, mut second) = (Machine::new(1), Machine::new(2));
    first.handle(0, Input::Tick, &mut database);
    first.handle(0, request(1), &mut database);
    let actions = first.handle(10, Input::Drain, &mut database);
    assert_eq!(actions, [Action::Stop { thread: THREAD }, Action::Drained]);
    let refused = first.handle(20, request(2), &mut database);
    assert_eq!(refused, [Action::Answer { key: RequestKey(2), answer: Answer::Moved }]);
    second.handle(20, Input::Tick, &mut database);
    let answers = second.handle(20, request(2), &mut database);
    assert!(answers.contains(&Action::Answer { key: RequestKey(2), answer: Answer::Done { seq: 1 } }), "{answers:?}");
}

#[test]
fn a_request_beyond_the_bound_is_refused_and_the_others_are_kept() {
    let settings = Settings { max_requests: 2, ..Settings::default() };
    let mut node = Node::new(NodeId(1), settings);
    let answers: Vec<Action> = (0..4).flat_map(|key| node.handle(0, request(key))).collect();
    let busy = |key| Action::Answer { key: RequestKey(key), answer: Answer::Busy };
    assert!(answers.contains(&busy(2)) && answers.contains(&busy(3)) && !answers.contains(&busy(1)));
    let late = node.handle(settings.request_timeout, Input::Tick);
    assert_eq!(late.iter().filter(|action| matches!(action, Action::Answer { .. })).count(), 2, "{late:?}");
    assert_eq!(node.handle(0, Input::Db { op: OpId(99), reply: DbReply::Ok }), [], "an answer to nothing");
}
