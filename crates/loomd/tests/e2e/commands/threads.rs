//! `loomd threads`: list, show, rename, archive, delete, export.

use std::fs::File;
use std::time::{Duration, UNIX_EPOCH};

use loomd_testkit::model::{message, shell};
use loomd_testkit::{Home, ScriptedModel};
use serde_json::Value;

use super::{command, home};
use crate::common::{RunResult, output};

async fn threads(home: &Home, args: &[&str]) -> RunResult {
    output(&mut command(home, &[&["threads"], args].concat())).await
}

/// Must succeed; returns its stdout.
async fn done(home: &Home, args: &[&str]) -> String {
    let ended = threads(home, args).await;
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{args:?}");
    ended.stdout
}

/// Starts a thread per prompt, in this order, and returns their ids.
async fn started(home: &Home, model: &ScriptedModel, prompts: &[&str]) -> Vec<String> {
    let mut ids = Vec::new();
    for prompt in prompts {
        model.reply(shell("echo found")).reply(message("There it is."));
        let ended = output(&mut command(home, &["exec", "--json", prompt])).await;
        let first: Value = serde_json::from_str(ended.stdout.lines().next().unwrap()).unwrap();
        ids.push(first["thread_id"].as_str().unwrap().to_owned());
    }
    ids
}

/// The ids in a list.
fn listed(text: &str) -> Vec<&str> {
    text.lines().filter_map(|line| line.split("  ").next()).collect()
}

#[tokio::test]
async fn threads_are_listed_renamed_archived_and_deleted() {
    let model = ScriptedModel::start().await;
    let home = home(&model);
    assert_eq!(done(&home, &["list"]).await, "no threads in this folder; --all shows those of all folders\n");
    let ids = started(&home, &model, &["look for it", "look again"]).await;
    let (first, second) = (ids[0].as_str(), ids[1].as_str());
    let list = done(&home, &["list"]).await;
    assert_eq!(listed(&list), [second, first], "{list}");
    assert!(list.lines().next().unwrap().ends_with("look again"), "{list}");

    done(&home, &["rename", first, "the first"]).await;
    done(&home, &["archive", "the first"]).await;
    assert_eq!(listed(&done(&home, &["list"]).await), [second]);
    assert_eq!(listed(&done(&home, &["list", "--archived"]).await), [first]);
    done(&home, &["unarchive", "the first"]).await;
    let json = done(&home, &["list", "--json", "--search", "for it"]).await;
    let found: Vec<Value> = json.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(found.iter().map(|thread| &thread["name"]).collect::<Vec<_>>(), ["the first"], "{json}");

    let refused = threads(&home, &["delete", first]).await;
    assert_eq!((refused.code, refused.stderr.as_str()), (Some(2), "error: deleting needs --yes without a terminal\n"));
    done(&home, &["delete", "--yes", first, first]).await;
    assert_eq!(listed(&done(&home, &["list", "--all"]).await), [second]);
    let gone = threads(&home, &["show", "the first"]).await;
    assert_eq!(gone.code, Some(1));
    assert!(gone.stderr.starts_with("error: unknown thread"), "{}", gone.stderr);
}

/// Sets the time of the last change of a thread, in seconds since the epoch.
async fn set_updated_at(home: &Home, id: &str, seconds: u64) {
    let list = done(home, &["list", "--all", "--json"]).await;
    let threads: Vec<Value> = list.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let thread = threads.iter().find(|thread| thread["id"] == id).unwrap();
    let rollout = File::options().append(true).open(thread["path"].as_str().unwrap()).unwrap();
    rollout.set_modified(UNIX_EPOCH + Duration::from_secs(seconds)).unwrap();
}

#[tokio::test]
async fn a_name_means_the_thread_of_that_name_that_was_updated_last() {
    let model = ScriptedModel::start().await;
    let home = home(&model);
    let ids = started(&home, &model, &["the older", "the newer"]).await;
    for id in &ids {
        done(&home, &["rename", id, "same"]).await;
    }
    for (last, earlier) in [(&ids[0], &ids[1]), (&ids[1], &ids[0])] {
        set_updated_at(&home, earlier, 1_700_000_000).await;
        set_updated_at(&home, last, 1_800_000_000).await;
        let json: Value = serde_json::from_str(&done(&home, &["export", "same", "-f", "json"]).await).unwrap();
        assert_eq!(json["id"], last.as_str());
        let shown = done(&home, &["show", "same"]).await;
        assert!(shown.contains(last.as_str()) && !shown.contains(earlier.as_str()), "{shown}");
    }
    let refused = threads(&home, &["delete", "--yes", "same"]).await;
    assert_eq!(refused.code, Some(1));
    assert!(refused.stderr.starts_with("error: `same` may mean 2 threads"), "{}", refused.stderr);
}

#[tokio::test]
async fn a_thread_is_shown_and_exported() {
    let model = ScriptedModel::start().await;
    let home = home(&model);
    let ids = started(&home, &model, &["look for it"]).await;
    let shown = done(&home, &["show", "last"]).await;
    for line in ["> look for it", "There it is."] {
        assert!(shown.lines().any(|known| known == line), "no {line:?} in {shown}");
    }
    let document = done(&home, &["export", &ids[0]]).await;
    assert!(document.starts_with("# look for it\n") && document.contains("\n## Agent\n\nThere it is.\n"), "{document}");

    let json: Value = serde_json::from_str(&done(&home, &["export", "last", "--format", "json"]).await).unwrap();
    assert_eq!((&json["id"], json["turns"].as_array().unwrap().len()), (&ids[0].as_str().into(), 1));

    let file = home.work().join("rollout.jsonl");
    done(&home, &["export", "last", "-f", "rollout", "-o", file.to_str().unwrap()]).await;
    let kept = std::fs::read(json["path"].as_str().unwrap()).unwrap();
    assert_eq!(std::fs::read(file).unwrap(), kept);
}
