//! Threads: starting, naming, listing, archiving.

use loomd_client::protocol::{ServerNotification, ThreadListParams, ThreadStartParams, ThreadUnarchiveParams};
use loomd_client::{Error, Options, resume};
use loomd_testkit::Home;

use crate::servers::{Server, on_each_server};

on_each_server! {
    options_are_the_defaults_of_new_threads
    error_responses_pass_unchanged
    events_of_a_thread_reach_its_handle
}

async fn options_are_the_defaults_of_new_threads(server: Server) {
    let home = Home::empty();
    let options = Options::default()
        .model("some-model")
        .cwd(home.user().display().to_string())
        .approval_policy(loomd_client::protocol::AskForApproval::Never);
    let client = server.connect(&home, options).await;
    let thread = client.start_thread(ThreadStartParams::default()).await.unwrap();
    let settings = thread.settings();
    assert_eq!((settings.model.as_str(), settings.cwd.as_str()), ("some-model", home.user().to_str().unwrap()));
    assert_eq!(thread.read(false).await.unwrap().id, thread.id());
}

async fn error_responses_pass_unchanged(server: Server) {
    let home = Home::empty();
    let client = server.connect(&home, Options::default()).await;
    let id = "0190a1b2-0000-7000-8000-000000000000";
    let Err(error) = client.resume_thread(resume(id)).await else { panic!("there is no such thread") };
    assert_eq!(error.rpc().unwrap().code, -32600);
    assert!(error.to_string().contains(id), "{error}");
    let error = client.thread_unarchive(ThreadUnarchiveParams { thread_id: "x".into() }).await.unwrap_err();
    assert!(error.to_string().starts_with("thread/unarchive: invalid thread id"), "{error}");
    let listed = client.list_threads(ThreadListParams { limit: Some(1), ..Default::default() }).await.unwrap();
    assert!(listed.data.is_empty());
}

async fn events_of_a_thread_reach_its_handle(server: Server) {
    let home = Home::empty();
    let client = server.connect(&home, Options::default()).await;
    let thread = client.start_thread(ThreadStartParams::default()).await.unwrap();
    let other = client.start_thread(ThreadStartParams::default()).await.unwrap();
    assert!(matches!(thread.interrupt().await, Err(Error::NoActiveTurn { .. })));
    let mut events = thread.events();
    for thread in [&other, &thread] {
        thread.unsubscribe().await.unwrap();
    }
    loop {
        let event = events.next().await.unwrap().unwrap();
        assert_eq!(event.thread_id.as_deref(), Some(thread.id()));
        if let Some(ServerNotification::ThreadClosed(_)) = event.notification() {
            break;
        }
    }
}
