//! Leases by hand: taken, taken over, kept, let go.

use loomd_ownership::{Action, Answer, DbOp, Input, NodeId, RequestKey, Session, Settings};

use super::database::Database;
use super::machine::{Machine, THREAD, answered, finished, forward, from, own, read, request, run, send};

const LOADED: Input = Input::Loaded { thread: THREAD };
const UNLOADED: Input = Input::Unloaded { thread: THREAD };
const STOP: Action = Action::Stop { thread: THREAD };

#[test]
fn a_follower_takes_a_thread_over_within_the_lease_and_five_seconds() {
    let mut database = Database::default();
    let (mut owner, mut follower) = (Machine::new(1, &mut database), Machine::new(2, &mut database));
    owner.handle(0, request(1), &mut database);
    assert_eq!(owner.node.running(0), [THREAD]);
    follower.handle(0, Input::Follow { thread: THREAD }, &mut database);
    // The owner is killed.
    let at = follower.owns_by(0, 60_000, &mut database).unwrap();
    let ttl = Settings::default().session_ttl;
    assert!((ttl..=ttl + 5_000).contains(&at), "{at}");
    assert_eq!(follower.handle(at, request(1), &mut database), [run(1, 2)]);
    // The thread that was taken over is loaded: it stays when the request is finished.
    assert_eq!(follower.handle(at, finished(1), &mut database), []);
}

#[test]
fn an_abandoned_thread_is_taken_over_unless_it_has_an_owner() {
    let mut database = Database::default();
    let (mut first, mut second) = (Machine::new(1, &mut database), Machine::new(2, &mut database));
    let abandoned = || Input::Abandoned { thread: THREAD };
    let taken_over = Action::Own { thread: THREAD, epoch: 1, taken_over: true };
    assert_eq!(first.handle(0, abandoned(), &mut database), [taken_over]);
    assert_eq!(first.handle(0, abandoned(), &mut database), []);
    assert_eq!(second.handle(0, abandoned(), &mut database), []);
    // It cannot be loaded there.
    assert_eq!(first.handle(1, UNLOADED, &mut database), [STOP]);
    assert_eq!(database.holder(THREAD, 1), None);
}

#[test]
fn a_node_that_was_paused_beyond_its_session_stops_before_it_does_anything_else() {
    let mut database = Database::default();
    let (mut paused, mut other) = (Machine::new(1, &mut database), Machine::new(2, &mut database));
    paused.handle(0, request(1), &mut database);
    other.handle(0, Input::Follow { thread: THREAD }, &mut database);
    let at = other.owns_by(0, 60_000, &mut database).unwrap();
    let actions = paused.node.handle(at, request(2));
    assert_eq!(actions.first(), Some(&STOP));
    assert!(!actions.iter().any(|action| matches!(action, Action::Run { .. })), "{actions:?}");
}

#[test]
fn a_session_counts_from_when_its_renewal_was_sent() {
    let mut database = Database::default();
    let mut machine = Machine::new(1, &mut database);
    let settings = Settings::default();
    assert_eq!(machine.node.live_until(), Some(settings.session_ttl - settings.clock_margin));
    let sent = machine.node.handle(5_000, Input::Tick);
    let [Action::Db { op, request: DbOp::Renew { .. } }] = sent[..] else { panic!("{sent:?}") };
    machine.node.handle(7_000, Input::Db { op, reply: loomd_ownership::DbReply::Ok });
    assert_eq!(machine.node.live_until(), Some(5_000 + settings.session_ttl - settings.clock_margin));
}

#[test]
fn a_thread_is_let_go_after_its_last_request_unless_it_is_loaded() {
    let mut database = Database::default();
    let mut machine = Machine::new(1, &mut database);
    assert_eq!(machine.handle(0, request(1), &mut database), [own(1), run(1, 1)]);
    assert_eq!(machine.handle(1, finished(1), &mut database), [STOP]);
    assert_eq!(database.holder(THREAD, 1), None);
    assert_eq!(machine.handle(2, request(2), &mut database), [own(2), run(2, 2)]);
    machine.handle(2, LOADED, &mut database);
    assert_eq!(machine.handle(3, finished(2), &mut database), []);
    assert_eq!(machine.handle(3, finished(2), &mut database), [], "the same once more");
    assert_eq!(machine.node.owned(THREAD), Some(2));
    assert_eq!(machine.handle(4, UNLOADED, &mut database), [STOP]);
    assert_eq!(machine.node.owned(THREAD), None);
}

#[test]
fn a_thread_that_is_unloaded_while_a_request_is_on_its_way_stays_owned_until_it_is_finished() {
    let mut database = Database::default();
    let mut machine = Machine::new(1, &mut database);
    machine.handle(0, request(1), &mut database);
    machine.handle(0, LOADED, &mut database);
    machine.handle(0, finished(1), &mut database);
    assert_eq!(machine.handle(1, request(2), &mut database), [run(2, 1)]);
    assert_eq!(machine.handle(1, UNLOADED, &mut database), []);
    assert_eq!(machine.handle(2, LOADED, &mut database), []);
    assert_eq!(machine.handle(2, finished(2), &mut database), []);
    assert_eq!(machine.node.owned(THREAD), Some(1));
    machine.handle(3, request(3), &mut database);
    assert_eq!(machine.handle(3, UNLOADED, &mut database), []);
    assert_eq!(machine.handle(4, finished(3), &mut database), [STOP]);
}

#[test]
fn a_lease_that_a_lost_take_got_late_is_found_and_let_go() {
    let mut database = Database::default();
    let mut machine = Machine::new(1, &mut database);
    machine.connected = false;
    machine.handle(10, request(1), &mut database);
    let late = machine.missed.pop().unwrap();
    assert!(matches!(late, DbOp::Take { .. }));
    machine.connected = true;
    let timeout = Settings::default().db_timeout + 500;
    let actions = machine.tick(100..timeout, &mut database);
    assert_eq!(actions, [own(1), run(1, 1)]);
    machine.handle(timeout, finished(1), &mut database);
    assert_eq!(database.holder(THREAD, timeout), None);
    database.apply(timeout, 15_000, &late);
    assert!(database.holder(THREAD, timeout).is_some());
    machine.tick(timeout..timeout + 2_000, &mut database);
    assert_eq!(database.holder(THREAD, timeout), None);
    assert_eq!(machine.node.running(timeout + 2_000), []);
}

#[test]
fn an_owner_whose_lease_was_taken_again_by_its_own_late_take_goes_on_under_the_new_epoch() {
    let mut database = Database::default();
    let mut machine = Machine::new(1, &mut database);
    let sent = machine.node.handle(0, request(1));
    let [Action::Db { op, request: take @ DbOp::Take { .. } }] = &sent[..] else { panic!("{sent:?}") };
    assert_eq!(machine.tick(100..4_000, &mut database), [own(1), run(1, 1)]);
    machine.handle(4_000, LOADED, &mut database);
    let reply = database.apply(4_000, 15_000, take);
    let actions = machine.node.handle(4_010, Input::Db { op: *op, reply });
    assert_eq!(actions, [STOP, Action::Own { thread: THREAD, epoch: 2, taken_over: true }]);
}

#[test]
fn a_followed_thread_is_taken_over_while_a_lost_take_is_looked_after() {
    let mut database = Database::default();
    let mut machine = Machine::new(1, &mut database);
    machine.connected = false;
    machine.handle(0, request(1), &mut database);
    machine.connected = true;
    machine.tick(100..4_000, &mut database);
    machine.handle(4_000, finished(1), &mut database);
    assert_eq!(machine.node.running(4_000), []);
    machine.handle(4_050, Input::Follow { thread: THREAD }, &mut database);
    assert!(machine.owns_by(4_100, 7_000, &mut database).is_some());
}

#[test]
fn a_draining_node_lets_its_threads_go_after_their_step_and_sends_clients_elsewhere() {
    let mut database = Database::default();
    let (mut first, mut second) = (Machine::new(1, &mut database), Machine::new(2, &mut database));
    first.handle(0, request(1), &mut database);
    first.handle(0, LOADED, &mut database);
    let let_go = Action::LetGo { thread: THREAD };
    assert_eq!(first.handle(10, Input::Drain, &mut database), [let_go]);
    assert_eq!(first.handle(10, Input::Drain, &mut database), []);
    assert_eq!(first.handle(11, request(2), &mut database), [run(2, 1)], "it is still loaded");
    assert_eq!(first.handle(12, UNLOADED, &mut database), []);
    let moved = |key| Action::Answer { key: RequestKey(key), answer: Answer::Moved };
    assert_eq!(first.handle(12, request(3), &mut database), [moved(3)], "what runs may be waiting for it");
    assert_eq!(first.handle(13, finished(1), &mut database), []);
    assert_eq!(first.handle(13, finished(2), &mut database), [STOP, Action::Drained]);
    assert!(first.node.is_drained());
    assert!(!database.is_live(Session { node: NodeId(1), number: 0 }, 13));
    assert_eq!(first.handle(20, request(4), &mut database), [moved(4)]);
    assert_eq!(second.handle(20, request(4), &mut database), [own(2), run(4, 2)]);
}

#[test]
fn a_draining_node_forwards_to_owners_and_reads_what_has_none() {
    let mut database = Database::default();
    let (mut draining, mut owner) = (Machine::new(1, &mut database), Machine::new(2, &mut database));
    draining.handle(
        0,
        Input::Request {
            key: RequestKey(1),
            thread: loomd_ownership::Thread(9),
            need: loomd_ownership::Need::Owner,
            repeatable: false,
        },
        &mut database,
    );
    draining.handle(1, Input::Drain, &mut database);
    let unowned = Action::Run { key: RequestKey(2), thread: THREAD, epoch: None };
    assert_eq!(draining.handle(2, read(2), &mut database), [unowned]);
    owner.handle(3, request(3), &mut database);
    assert_eq!(draining.handle(4, request(4), &mut database), [send(2, forward(4))]);
    draining.handle(5, from(2, answered(4)), &mut database);
    draining.handle(5, finished(1), &mut database);
    assert_eq!(draining.handle(5, finished(2), &mut database), [Action::Drained]);
}
