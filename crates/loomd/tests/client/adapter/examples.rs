//! The examples of the adapter run, with the rehearsal model, on this program spawned and in this process.

#[allow(dead_code, reason = "`main` is for people")]
#[path = "../../../../adapter/examples/code_review.rs"]
mod code_review;
#[allow(dead_code, reason = "`main` is for people")]
#[path = "../../../../adapter/examples/conversation.rs"]
mod conversation;
#[allow(dead_code, reason = "`main` is for people")]
#[path = "../../../../adapter/examples/extraction.rs"]
mod extraction;

use loomd_testkit::Home;

use super::Target;
use crate::rehearsal::home;
use crate::servers::Server;

/// The targets that have the rehearsal model, each with a home.
fn targets() -> [(Target, Home); 2] {
    [(Target::Spawned(Server::loomd()), home()), (Target::InProcess, home())]
}

#[tokio::test]
async fn a_typed_code_review() {
    for (target, home) in targets() {
        std::fs::create_dir(home.work().join("src")).unwrap();
        std::fs::write(home.work().join("src/lib.rs"), "pub fn one() -> u8 { 1 }\n").unwrap();
        let (response, session) = code_review::run(target.endpoint(&home), &home.work()).await.unwrap();
        let review = response.output;
        let events = session.events();
        let command = events.iter().find_map(|event| event.tool_invoked()).unwrap();
        assert_eq!((command.success, command.output.as_str()), (true, "project/src/lib.rs\n"));
        assert!(review.findings.is_empty(), "{review:?}");
        assert!(matches!(review.verdict, code_review::Verdict::Approve), "{review:?}");
    }
}

#[tokio::test]
async fn an_extraction_with_a_tool() {
    for (target, home) in targets() {
        let (_, session) = extraction::run(target.endpoint(&home), &home.work()).await.unwrap();
        let found = session.all::<extraction::Contact>();
        assert_eq!(found.len(), 1, "{:?}", session.events());
        assert_eq!(found[0].email.as_deref(), Some("ada@example.org"));
    }
}

#[tokio::test]
async fn a_loop_in_one_thread() {
    for (target, home) in targets() {
        let questions = ["Say one.", "Say two.", "Say three."];
        let responses = conversation::run(target.endpoint(&home), &home.work(), &questions).await.unwrap();
        let texts: Vec<_> = responses.iter().map(|response| response.text.as_str()).collect();
        assert_eq!(texts, ["one.", "two.", "three."]);
        assert!(responses.iter().all(|response| response.thread_id == responses[0].thread_id), "{responses:?}");
    }
}
