//! Reviews against a branch of the repository.

use std::process::Command;

use loomd_testkit::model::message;
use loomd_testkit::{Home, ScriptedModel};
use serde_json::{Value, json};

use crate::common::initialized;

#[tokio::test]
async fn a_review_against_no_named_branch_is_against_the_default_branch() {
    let model = ScriptedModel::start().await;
    for _ in 0..3 {
        model.reply(message("Fine."));
    }
    let home = Home::new(&model);
    let git = |arguments: &[&str]| {
        let mut git = Command::new("git");
        git.args(["-c", "user.name=t", "-c", "user.email=t@example.com"]).args(arguments).current_dir(home.work());
        let done = git.env("GIT_CONFIG_GLOBAL", "/dev/null").output().expect("git");
        assert!(done.status.success(), "{done:?}");
        String::from_utf8(done.stdout).unwrap().trim().to_owned()
    };
    let server = initialized(&home).await;
    let thread = server.start_thread(Default::default()).await;
    let review = async |target: Value| {
        server.request("review/start", json!({ "threadId": thread.id, "target": target })).await?;
        server.turn_completed(&thread.id).await;
        Ok::<_, loomd_protocol::RpcError>(())
    };
    git(&["init", "-q", "-b", "trunk"]);
    git(&["commit", "-q", "--allow-empty", "-m", "first"]);
    let refused = review(json!({ "type": "baseBranch" })).await.unwrap_err().message;
    assert!(refused.starts_with("branch is missing, and the repository of"), "{refused}");
    // A local branch with a usual name, and then the one that the remote names.
    git(&["branch", "main"]);
    git(&["switch", "-q", "-c", "topic"]);
    git(&["commit", "-q", "--allow-empty", "-m", "second"]);
    git(&["remote", "add", "origin", "https://host.example/a.git"]);
    for (number, branch) in ["main", "trunk"].into_iter().enumerate() {
        review(json!({ "type": "baseBranch" })).await.unwrap();
        let asked = model.call(number).await.body["input"].to_string();
        let base = git(&["merge-base", "HEAD", branch]);
        assert!(asked.contains(&format!("'{branch}'")) && asked.contains(&base), "{asked}");
        git(&["symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/trunk"]);
    }
    review(json!({ "type": "custom" })).await.unwrap();
    let asked = model.call(2).await.body["input"].to_string();
    assert!(asked.contains("Review the latest changes"), "{asked}");
    // The stored targets are those of the reference: complete.
    let stored = std::fs::read_to_string(thread.path.unwrap()).unwrap();
    assert!(stored.contains(r#""target":{"type":"baseBranch","branch":"trunk"}"#), "{stored}");
    assert!(stored.contains(r#""target":{"type":"custom","instructions":"Review the latest"#), "{stored}");
}
