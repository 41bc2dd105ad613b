//! Where requests go, by hand.

use loomd_ownership::{
    Action, Answer, DbReply, Input, Need, Node, NodeId, OpId, PeerMessage, RequestKey, Session, Settings,
};

use super::database::Database;
use super::machine::{Machine, THREAD, answered, finished, forward, from, not_owner, own, read, request, run, send};

fn answer(key: u128, answer: Answer) -> Action {
    Action::Answer { key: RequestKey(key), answer }
}

fn repeatable(key: u128) -> Input {
    Input::Request { key: RequestKey(key), thread: THREAD, need: Need::Owner, repeatable: true }
}

/// A node that owns the thread, with a request that runs, and one that does not own it.
fn owner_and_other(database: &mut Database) -> (Machine, Machine) {
    let (mut owner, other) = (Machine::new(1, database), Machine::new(2, database));
    owner.handle(0, request(100), database);
    (owner, other)
}

#[test]
fn a_session_survives_being_one_number() {
    for session in [Session { node: NodeId(1), number: 2 }, Session { node: NodeId(u64::MAX), number: u64::MAX }] {
        assert_eq!(Session::from_bits(session.to_bits()), session);
    }
    assert_eq!(Session { node: NodeId(1), number: 2 }.to_bits(), (1 << 64) + 2);
}

#[test]
fn requests_that_wait_for_the_lease_run_in_the_order_in_which_they_came() {
    let mut database = Database::default();
    let mut machine = Machine::new(1, &mut database);
    let asked = machine.node.handle(0, request(5));
    let [Action::Db { op, .. }] = asked[..] else { panic!("{asked:?}") };
    assert_eq!(machine.node.handle(1, read(3)), []);
    assert_eq!(machine.node.handle(1, request(4)), []);
    let actions = machine.node.handle(2, Input::Db { op, reply: DbReply::Taken { epoch: 1 } });
    assert_eq!(actions, [own(1), run(5, 1), run(3, 1), run(4, 1)]);
}

#[test]
fn a_forwarded_request_is_run_by_the_owner_and_answered_once() {
    let mut database = Database::default();
    let (mut owner, mut other) = owner_and_other(&mut database);
    assert_eq!(other.handle(1, request(1), &mut database), [send(1, forward(1))]);
    assert_eq!(owner.handle(2, from(2, forward(1)), &mut database), [run(1, 1)]);
    assert_eq!(owner.handle(3, from(2, forward(1)), &mut database), [], "the same once more");
    assert_eq!(owner.handle(3, from(3, forward(1)), &mut database), [], "from another node");
    let actions = owner.handle(4, finished(1), &mut database);
    assert_eq!(actions, [send(2, answered(1)), send(3, answered(1))]);
    assert_eq!(other.handle(5, from(1, answered(1)), &mut database), []);
    assert_eq!(other.node.unanswered(), 0);
    assert_eq!(other.handle(5, from(1, answered(1)), &mut database), []);
}

#[test]
fn a_node_that_is_not_the_owner_gives_a_forwarded_request_back() {
    let mut database = Database::default();
    let (_owner, mut other) = owner_and_other(&mut database);
    assert_eq!(other.handle(1, from(3, forward(1)), &mut database), [send(3, not_owner(1))]);
    let read = PeerMessage::Forward {
        key: RequestKey(2),
        thread: loomd_ownership::Thread(7),
        need: Need::OwnerIfAny,
        repeatable: true,
    };
    assert_eq!(other.handle(1, from(3, read), &mut database), [send(3, not_owner(2))]);
    assert_eq!(other.node.unanswered(), 0);
}

#[test]
fn a_node_takes_a_thread_without_an_owner_for_a_forwarded_request() {
    let mut database = Database::default();
    let mut machine = Machine::new(1, &mut database);
    assert_eq!(machine.handle(1, from(3, forward(1)), &mut database), [own(1), run(1, 1)]);
}

#[test]
fn a_request_that_comes_back_looks_for_the_owner_again_and_stays_before_later_ones() {
    let mut database = Database::default();
    let (mut owner, mut other) = owner_and_other(&mut database);
    other.handle(1, request(1), &mut database);
    other.handle(1, request(2), &mut database);
    // The owner lets the thread go, and has neither of them.
    owner.handle(2, finished(100), &mut database);
    assert_eq!(other.handle(3, request(3), &mut database), [own(2)], "it waits for those that are elsewhere");
    assert_eq!(other.handle(4, from(1, not_owner(1)), &mut database), []);
    let actions = other.handle(5, from(1, not_owner(2)), &mut database);
    assert_eq!(actions, [run(1, 2), run(2, 2), run(3, 2)]);
}

#[test]
fn only_the_node_that_has_a_request_gives_it_back() {
    let mut database = Database::default();
    let (_owner, mut other) = owner_and_other(&mut database);
    assert_eq!(other.handle(1, request(1), &mut database), [send(1, forward(1))]);
    assert_eq!(other.handle(2, from(3, not_owner(1)), &mut database), []);
    assert_eq!(other.handle(3, from(1, not_owner(1)), &mut database), [send(1, forward(1))]);
    assert_eq!(other.handle(4, from(1, not_owner(1)), &mut database), [], "the second time after a pause");
    assert_eq!(other.tick(5..500, &mut database), [send(1, forward(1))]);
}

#[test]
fn a_request_does_not_wait_for_ever_for_one_that_another_node_keeps() {
    let mut database = Database::default();
    let (mut owner, mut other) = owner_and_other(&mut database);
    other.handle(1, request(1), &mut database);
    owner.handle(2, finished(100), &mut database);
    assert_eq!(other.handle(3, request(2), &mut database), [own(2)]);
    let patience = Settings::default().order_timeout;
    assert_eq!(other.tick(100..patience, &mut database), []);
    assert_eq!(other.tick(patience..patience + 200, &mut database), [run(2, 2)]);
}

#[test]
fn a_request_that_a_lost_node_had_is_repeated_only_if_that_is_harmless() {
    let mut database = Database::default();
    let (mut owner, mut other) = owner_and_other(&mut database);
    other.handle(1, request(1), &mut database);
    other.handle(1, repeatable(2), &mut database);
    owner.handle(2, finished(100), &mut database);
    let actions = other.handle(3, Input::Lost { node: NodeId(1) }, &mut database);
    assert_eq!(actions, [answer(1, Answer::Unknown), own(2), run(2, 2)]);
}

#[test]
fn a_request_that_may_have_been_done_is_not_called_undone() {
    let mut database = Database::default();
    let (_owner, mut other) = owner_and_other(&mut database);
    other.handle(1, repeatable(1), &mut database);
    other.connected = false;
    let times = 2..Settings::default().request_timeout + 1_000;
    other.handle(1, Input::Lost { node: NodeId(1) }, &mut database);
    let actions = other.tick(times, &mut database);
    assert_eq!(actions, [answer(1, Answer::Unknown)]);
}

#[test]
fn what_a_lost_node_had_sent_and_is_not_begun_is_given_back() {
    let mut database = Database::default();
    let mut machine = Machine::new(1, &mut database);
    machine.connected = false;
    assert_eq!(machine.handle(1, from(2, forward(1)), &mut database), []);
    assert_eq!(machine.handle(2, Input::Lost { node: NodeId(2) }, &mut database), [send(2, not_owner(1))]);
    assert_eq!(machine.node.unanswered(), 0);
}

#[test]
fn what_needs_no_owner_is_done_here_when_there_is_none_and_by_the_owner_when_there_is_one() {
    let mut database = Database::default();
    let (mut first, mut second) = (Machine::new(1, &mut database), Machine::new(2, &mut database));
    let unowned = Action::Run { key: RequestKey(1), thread: THREAD, epoch: None };
    assert_eq!(second.handle(0, read(1), &mut database), [unowned]);
    assert_eq!(first.handle(0, request(2), &mut database), [own(1), run(2, 1)]);
    assert_eq!(first.handle(0, read(3), &mut database), [run(3, 1)]);
    let forward = PeerMessage::Forward { key: RequestKey(4), thread: THREAD, need: Need::OwnerIfAny, repeatable: true };
    assert_eq!(second.handle(1, read(4), &mut database), [send(1, forward)]);
    assert_eq!(second.handle(2, finished(1), &mut database), []);
    assert_eq!(first.node.owned(THREAD), Some(1));
    assert_eq!(second.node.owned(THREAD), None);
}

#[test]
fn a_request_is_not_done_here_because_of_a_look_that_is_older_than_it() {
    let mut database = Database::default();
    let mut machine = Machine::new(1, &mut database);
    let asked = machine.node.handle(0, read(1));
    let [Action::Db { op, .. }] = asked[..] else { panic!("{asked:?}") };
    assert_eq!(machine.node.handle(1, read(2)), []);
    let actions = machine.node.handle(2, Input::Db { op, reply: DbReply::Free });
    let unowned = Action::Run { key: RequestKey(1), thread: THREAD, epoch: None };
    let lookup = loomd_ownership::DbOp::Lookup { thread: THREAD };
    assert_eq!(actions, [unowned, Action::Db { op: OpId(op.0 + 1), request: lookup }]);
}

#[test]
fn a_request_that_runs_or_was_forwarded_has_no_time_limit() {
    let mut database = Database::default();
    let (mut owner, mut other) = owner_and_other(&mut database);
    other.handle(1, request(1), &mut database);
    owner.handle(2, from(2, forward(1)), &mut database);
    let times = 100..Settings::default().request_timeout * 3;
    for now in times.step_by(100) {
        assert_eq!(owner.handle(now, Input::Tick, &mut database), []);
        assert_eq!(other.handle(now, Input::Tick, &mut database), []);
    }
    assert_eq!((owner.node.unanswered(), other.node.unanswered()), (2, 1));
}

#[test]
fn a_request_beyond_the_bound_is_refused_and_the_others_are_answered_in_time() {
    let settings = Settings { max_requests: 2, ..Settings::default() };
    let mut node = Node::new(NodeId(1), settings);
    let actions: Vec<Action> = (0..4).flat_map(|key| node.handle(0, request(key))).collect();
    let busy = |key| answer(key, Answer::Busy);
    assert!(actions.contains(&busy(2)) && actions.contains(&busy(3)) && !actions.contains(&busy(1)));
    let late = node.handle(settings.request_timeout, Input::Tick);
    let unavailable = [answer(0, Answer::Unavailable), answer(1, Answer::Unavailable)];
    assert!(unavailable.iter().all(|answer| late.contains(answer)), "{late:?}");
    assert_eq!(node.unanswered(), 0);
}

#[test]
fn an_answer_to_nothing_is_ignored() {
    let mut database = Database::default();
    let mut machine = Machine::new(1, &mut database);
    let inputs = [
        finished(9),
        from(2, answered(9)),
        from(2, not_owner(9)),
        Input::Db { op: OpId(99), reply: DbReply::Taken { epoch: 7 } },
        Input::Loaded { thread: THREAD },
        Input::Unloaded { thread: THREAD },
        Input::Lost { node: NodeId(5) },
        Input::Unfollow { thread: THREAD },
    ];
    for input in inputs {
        assert_eq!(machine.handle(1, input, &mut database), []);
    }
}
