//! Reusing the thread of the session.

use std::sync::Arc;

use loomd_adapter::{
    Adapter, HostMount, Limits, NoParams, Prompt, Section, Session, Text, ThreadState, Tool, Workspace,
};
use serde_json::json;
use tokio::sync::mpsc;

use crate::mock::{Mock, mock, opened, prompt};

async fn evaluate(adapter: &Adapter, prompt: &Prompt, session: &mut Session) {
    adapter.evaluate::<Text>(prompt, session, Limits::none()).await.unwrap();
}

/// Serves one evaluation that starts a thread.
async fn starts(accepted: &mut mpsc::Receiver<Mock>) {
    let mut mock = accepted.recv().await.unwrap();
    mock.turn().await;
    mock.finish("ok").await;
}

/// Serves one evaluation that resumes thread `t`.
async fn resumes(accepted: &mut mpsc::Receiver<Mock>) {
    let mut mock = accepted.recv().await.unwrap();
    mock.handshake().await;
    let params = mock.answer("thread/resume", opened("t")).await;
    assert_eq!((&params["threadId"], &params["cwd"]), (&json!("t"), &json!("/w")));
    mock.turn_start().await;
    mock.finish("ok").await;
}

#[tokio::test]
async fn the_thread_of_the_session_is_resumed_if_the_adapter_reuses_threads() {
    let (adapter, mut accepted) = mock();
    let (prompt, mut session) = (prompt(), Session::new());
    tokio::join!(evaluate(&adapter, &prompt, &mut session), starts(&mut accepted));
    let stored = session.latest::<ThreadState>().unwrap();
    assert_eq!((stored.thread_id.as_str(), stored.cwd.to_str()), ("t", Some("/w")));
    tokio::join!(evaluate(&adapter, &prompt, &mut session), starts(&mut accepted));
    let reusing = adapter.reuse_thread(true);
    tokio::join!(evaluate(&reusing, &prompt, &mut session), resumes(&mut accepted));

    // Also in another session, with what the first one has stored.
    let stored: ThreadState = serde_json::from_str(&serde_json::to_string(&*stored).unwrap()).unwrap();
    let mut other = Session::new();
    other.seed(stored);
    tokio::join!(evaluate(&reusing, &prompt, &mut other), resumes(&mut accepted));
}

#[tokio::test]
async fn a_thread_of_another_folder_workspace_or_set_of_tools_is_not_reused() {
    let (adapter, mut accepted) = mock();
    let adapter = adapter.reuse_thread(true);
    let (plain, mut session) = (prompt(), Session::new());
    tokio::join!(evaluate(&adapter, &plain, &mut session), starts(&mut accepted));

    let elsewhere = adapter.clone().cwd("/elsewhere");
    tokio::join!(evaluate(&elsewhere, &plain, &mut session), starts(&mut accepted));
    assert_eq!(session.latest::<ThreadState>().unwrap().cwd.to_str(), Some("/elsewhere"));

    let tool = Tool::new("look", "Looks.", |_: NoParams, _| async { Ok(()) });
    let with_tool =
        Prompt::new("test", "tool").section(Section::new("task", "Task", "Go.")).tool(tool).build().unwrap();
    tokio::join!(evaluate(&elsewhere, &with_tool, &mut session), starts(&mut accepted));

    let host = tempfile::tempdir().unwrap();
    std::fs::write(host.path().join("a"), "a").unwrap();
    let workspace = Workspace::builder().mount(HostMount::new(host.path()).at("m")).build().await.unwrap();
    let in_workspace = elsewhere.clone().workspace(Arc::new(workspace));
    tokio::join!(evaluate(&in_workspace, &with_tool, &mut session), starts(&mut accepted));
    assert!(session.latest::<ThreadState>().unwrap().workspace_fingerprint.is_some());
}

#[tokio::test]
async fn a_thread_that_cannot_be_resumed_is_replaced() {
    let (adapter, mut accepted) = mock();
    let adapter = adapter.reuse_thread(true);
    let (prompt, mut session) = (prompt(), Session::new());
    tokio::join!(evaluate(&adapter, &prompt, &mut session), starts(&mut accepted));
    let mut gone = (*session.latest::<ThreadState>().unwrap()).clone();
    gone.thread_id = "gone".into();
    session.seed(gone);
    let playing = async {
        let mut mock = accepted.recv().await.unwrap();
        mock.handshake().await;
        assert_eq!(mock.refuse("thread/resume", "no rollout found").await["threadId"], "gone");
        mock.answer("thread/start", opened("t")).await;
        mock.turn_start().await;
        mock.finish("ok").await;
    };
    tokio::join!(evaluate(&adapter, &prompt, &mut session), playing);
    assert_eq!(session.latest::<ThreadState>().unwrap().thread_id, "t");
}
