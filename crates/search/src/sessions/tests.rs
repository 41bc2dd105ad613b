use std::fs;
use std::time::Duration;

use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::timeout;

use super::*;

struct SessionFixture {
    dir: tempfile::TempDir,
    sessions: Sessions,
    event: UnboundedReceiver<(Vec<SearchSubscriber>, SessionEvent)>,
}

const ME: SearchSubscriber = SearchSubscriber(1);

fn fixture(files: &[&str]) -> SessionFixture {
    let dir = tempfile::tempdir().unwrap();
    files.iter().for_each(|file| fs::write(dir.path().join(file), "").unwrap());
    let (sender, event) = unbounded_channel();
    let deliver: Deliver = Box::new(move |subscribers, event| {
        _ = sender.send((subscribers, event));
        Box::pin(std::future::ready(()))
    });
    let trees = Arc::new(Trees::new(dir.path().into()));
    SessionFixture { sessions: Sessions::new(trees, deliver), dir, event }
}

impl SessionFixture {
    fn start(&self, id: &str) {
        self.sessions.start(ME, id.into(), &[".".into()]).unwrap();
    }

    fn set_query(&self, id: &str, query: &str) {
        self.sessions.find(ME, id).unwrap().set_query(query.into());
    }

    async fn next(&mut self) -> SessionEvent {
        let next = timeout(Duration::from_secs(30), self.event.recv()).await;
        next.expect("nothing was told").unwrap().1
    }

    /// Waits until these files are published for this query, and then for the completion of the query.
    async fn expect_files(&mut self, query: &str, expected: &[&str]) {
        loop {
            if let SessionEvent::Updated(updated) = self.next().await
                && updated.query == query
                && updated.files.iter().map(|file| file.path.as_str()).eq(expected.iter().copied())
            {
                break;
            }
        }
        loop {
            if let SessionEvent::Completed(completed) = self.next().await {
                break assert_eq!(completed.query.as_deref(), Some(query));
            }
        }
    }
}

#[tokio::test]
async fn each_query_gets_a_result_and_a_completion() {
    let mut fixture = fixture(&["alpha", "alphabet", "beta"]);
    fixture.start("s");
    fixture.expect_files("", &[]).await;
    for (query, expected) in [("al", &["alpha", "alphabet"][..]), ("alphab", &["alphabet"]), ("zz", &[]), ("", &[])] {
        fixture.set_query("s", query);
        fixture.expect_files(query, expected).await;
    }
}

#[tokio::test]
async fn only_the_latest_query_gets_a_result() {
    let mut fixture = fixture(&["alpha", "beta"]);
    fixture.start("s");
    for query in ["a", "al", "be", "b", "bet"] {
        fixture.set_query("s", query);
    }
    fixture.expect_files("bet", &["beta"]).await;
}

#[tokio::test]
async fn new_files_trigger_a_result() {
    let mut fixture = fixture(&["alpha"]);
    fixture.start("s");
    fixture.set_query("s", "needle");
    fixture.expect_files("needle", &[]).await;
    fs::create_dir(fixture.dir.path().join("sub")).unwrap();
    fs::write(fixture.dir.path().join("sub/needle"), "").unwrap();
    fixture.expect_files("needle", &["sub/needle"]).await;
    fs::write(fixture.dir.path().join("sub/needle2"), "").unwrap();
    fixture.expect_files("needle", &["sub/needle", "sub/needle2"]).await;
}

#[tokio::test]
async fn a_stopped_session_is_unknown_and_publishes_nothing() {
    let mut fixture = fixture(&["alpha"]);
    fixture.start("s");
    fixture.expect_files("", &[]).await;
    fixture.set_query("s", "al");
    fixture.sessions.stop("s").await;
    while fixture.event.try_recv().is_ok() {}
    fixture.sessions.stop("s").await;
    let error = fixture.sessions.find(ME, "s").map(|_| ()).unwrap_err();
    assert_eq!(error.to_string(), "fuzzy file search session not found: s");
    fs::write(fixture.dir.path().join("al"), "").unwrap();
    fixture.start("t");
    assert!(matches!(fixture.next().await, SessionEvent::Updated(updated) if updated.session_id == "t"));
}

#[tokio::test]
async fn a_session_ends_with_its_last_subscriber() {
    let mut fixture = fixture(&["alpha"]);
    fixture.start("s");
    fixture.sessions.find(SearchSubscriber(2), "s").unwrap().set_query("al".into());
    fixture.expect_files("al", &["alpha"]).await;
    fixture.sessions.disconnect(ME);
    fixture.sessions.find(SearchSubscriber(2), "s").unwrap().set_query("alp".into());
    loop {
        let (subscribers, event) = fixture.event.recv().await.unwrap();
        if matches!(event, SessionEvent::Updated(updated) if updated.query == "alp") {
            assert_eq!(subscribers, [SearchSubscriber(2)]);
            break;
        }
    }
    fixture.sessions.disconnect(SearchSubscriber(2));
    assert!(fixture.sessions.find(ME, "s").is_err());
}

#[tokio::test]
async fn invalid_sessions_are_refused() {
    let fixture = fixture(&[]);
    let start = |id: &str, roots: &[String]| fixture.sessions.start(ME, id.into(), roots).unwrap_err();
    assert_eq!(start("", &["/".into()]), SessionError::NoId);
    assert_eq!(start("s", &[]), SessionError::NoRoots);
}
