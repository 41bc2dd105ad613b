//! Commands that outlive the call that started them.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use loomd_exec::{Command, Environment, Event, Exit, SessionEnd, SessionPoll, Sessions, WriteError};

const LONG: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(250);

#[derive(Clone, Default)]
struct ReceivedEvents(Arc<Mutex<(String, Vec<SessionEnd>)>>);

impl ReceivedEvents {
    fn listen(&self) -> impl FnMut(Event<'_>) + Send + 'static {
        let received = Arc::clone(&self.0);
        move |event| {
            let mut received = received.lock().unwrap();
            match event {
                Event::Output(text) => received.0.push_str(text),
                Event::Ended(ended) => received.1.push(ended),
            }
        }
    }

    fn output(&self) -> String {
        self.0.lock().unwrap().0.clone()
    }

    /// Waits for a whole line.
    async fn line(&self) -> String {
        while !self.output().ends_with('\n') {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        self.output().trim().to_owned()
    }

    /// The exit status and the whole output.
    async fn end(&self) -> (Exit, String) {
        loop {
            if let Some(ended) = self.0.lock().unwrap().1.first() {
                return (ended.exit, text(ended.output.clone()));
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

fn text(output: loomd_exec::HeadTail) -> String {
    String::from_utf8(output.into_bytes()).unwrap()
}

fn sh(script: &str) -> Command {
    Command::new(["sh", "-c", script], "/", Environment::of_this_process())
}

async fn start(
    sessions: &Sessions,
    script: &str,
    terminal: bool,
    wait: Duration,
    received: &ReceivedEvents,
) -> SessionPoll {
    sessions.start(sessions.reserve(), &sh(script), terminal, wait, received.listen()).await.unwrap()
}

#[tokio::test]
async fn a_command_that_ends_in_time_leaves_no_session() {
    let (sessions, received) = (Sessions::default(), ReceivedEvents::default());
    let polled = start(&sessions, "echo out; echo err >&2; echo out; exit 3", false, LONG, &received).await;
    assert_eq!((text(polled.output), polled.exit), ("out\nerr\nout\n".into(), Some(Exit::Code(3))));
    assert_eq!(received.end().await, (Exit::Code(3), "out\nerr\nout\n".into()));
    assert_eq!((received.output().as_str(), sessions.open()), ("out\nerr\nout\n", 0));
    let gone = sessions.write(polled.id, b"", SHORT).await.unwrap_err();
    assert_eq!(gone.to_string(), format!("Unknown process id {}", polled.id));
}

#[tokio::test]
async fn a_terminal_echoes_and_can_be_written_to() {
    let (sessions, received) = (Sessions::default(), ReceivedEvents::default());
    let polled = start(&sessions, "stty size; cat; echo bye", true, SHORT, &received).await;
    assert_eq!((polled.exit, sessions.open()), (None, 1));
    received.line().await;
    let mut seen = text(polled.output);
    seen += &text(sessions.write(polled.id, b"hello\n", SHORT).await.unwrap().output);
    let last = sessions.write(polled.id, b"\x04", LONG).await.unwrap();
    seen += &text(last.output);
    assert_eq!((seen.as_str(), last.exit), ("24 80\r\nhello\r\nhello\r\nbye\r\n", Some(Exit::Code(0))));
    assert_eq!(received.end().await, (Exit::Code(0), seen.clone()));
    assert_eq!((received.output(), sessions.open()), (seen, 0));
}

#[tokio::test]
async fn a_pipe_has_no_input() {
    let (sessions, received) = (Sessions::default(), ReceivedEvents::default());
    let polled = start(&sessions, "cat; echo empty; sleep 100", false, SHORT, &received).await;
    let error = sessions.write(polled.id, b"x", SHORT).await.unwrap_err();
    assert!(matches!(error, WriteError::StdinClosed), "{error}");
    received.line().await;
    sessions.terminate_all();
    assert_eq!(received.end().await, (Exit::Code(-1), "empty\n".into()));
}

#[tokio::test]
async fn a_session_that_ended_between_polls_reports_its_exit() {
    let (sessions, received) = (Sessions::default(), ReceivedEvents::default());
    let folder = tempfile::tempdir().unwrap();
    let go = folder.path().join("go");
    let script = format!("until [ -e {} ]; do sleep 0.02; done; echo late; exit 5", go.display());
    let polled = start(&sessions, &script, false, SHORT, &received).await;
    assert_eq!((text(polled.output), polled.exit), (String::new(), None));
    std::fs::write(&go, "").unwrap();
    assert_eq!(received.end().await, (Exit::Code(5), "late\n".into()));
    assert_eq!(sessions.open(), 1, "its end has not been seen yet");
    let polled = sessions.write(polled.id, b"", LONG).await.unwrap();
    assert_eq!((text(polled.output), polled.exit, sessions.open()), ("late\n".into(), Some(Exit::Code(5)), 0));
}

#[tokio::test]
async fn terminating_all_sessions_kills_their_background_jobs() {
    let (sessions, received) = (Sessions::default(), ReceivedEvents::default());
    // With job control each job has a process group of its own.
    start(&sessions, "set -m; sleep 100 & echo $!; wait", true, SHORT, &received).await;
    let pid = received.line().await;
    sessions.terminate_all();
    assert_eq!(received.end().await.0, Exit::Code(1));
    let stat = format!("/proc/{pid}/stat");
    while std::fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z")) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(sessions.open(), 0);
}

#[tokio::test]
async fn dropping_the_last_sessions_handle_kills_every_session() {
    let (sessions, received) = (Sessions::default(), ReceivedEvents::default());
    start(&sessions, "sleep 100", false, SHORT, &received).await;
    drop(sessions);
    assert_eq!(received.end().await, (Exit::Code(-1), String::new()));
}

#[tokio::test]
async fn a_dropped_call_leaves_the_session_running() {
    let (sessions, received) = (Sessions::default(), ReceivedEvents::default());
    let id = sessions.reserve();
    let number = id.id();
    let command = sh("echo up; read line; echo got $line");
    let call = sessions.start(id, &command, true, LONG, received.listen());
    tokio::select! {
        polled = call => panic!("{polled:?}"),
        _ = received.line() => {}
    }
    let polled = sessions.write(number, b"it\n", LONG).await.unwrap();
    assert_eq!((text(polled.output), polled.exit), ("up\r\nit\r\ngot it\r\n".into(), Some(Exit::Code(0))));
}

#[tokio::test]
async fn a_session_that_cannot_start_releases_its_id() {
    let sessions = Sessions::default();
    let command = Command::new(["no-such-program"], "/", Environment::of_this_process());
    let error = sessions.start(sessions.reserve(), &command, false, LONG, |_| {}).await.unwrap_err();
    assert!(error.to_string().starts_with("execution error: Io(Os { code: 2"), "{error}");
    assert_eq!(sessions.open(), 0);
}

#[tokio::test]
async fn a_background_child_does_not_keep_a_session_open() {
    let (sessions, received) = (Sessions::default(), ReceivedEvents::default());
    let polled = start(&sessions, "sleep 3 & echo done", false, LONG, &received).await;
    assert_eq!((text(polled.output), polled.exit), ("done\n".into(), Some(Exit::Code(0))));
}

#[tokio::test]
async fn a_character_is_not_split_between_two_polls() {
    let folder = tempfile::tempdir().unwrap();
    let go = folder.path().join("go");
    let script =
        format!(r"printf 'a\342\202'; until [ -e {} ]; do sleep 0.01; done; printf '\254!'; sleep 60", go.display());
    let (sessions, received) = (Sessions::default(), ReceivedEvents::default());
    let SessionPoll { id, output, .. } = start(&sessions, &script, false, SHORT, &received).await;
    let mut seen = text(output);
    for wanted in ["a", "a€!"] {
        while seen != wanted {
            assert!(wanted.starts_with(&seen), "{seen}");
            seen += &text(sessions.write(id, b"", SHORT).await.unwrap().output);
        }
        std::fs::write(&go, "").unwrap();
    }
}
