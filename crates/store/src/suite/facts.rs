//! Names, git facts and derived data.

use super::*;
use crate::GitPatch;
use crate::rollout::StoredGit;
use loomd_protocol::GitInfo;

pub async fn a_name_shows_in_lookups_and_lists(harness: &impl Harness) {
    let store = harness.open();
    let (id, _) = thread(&*store, "hello").await;
    assert_eq!(store.name(id).await.unwrap(), None);
    store.rename(id, "My name").await.unwrap();
    for store in [store, harness.open()] {
        assert_eq!(store.name(id).await.unwrap().as_deref(), Some("My name"));
        let found = store.find(id, None).await.unwrap();
        assert_eq!(found.name.as_deref(), Some("My name"));
        assert_eq!(store.list(query()).await.unwrap().threads, [found]);
    }
}

pub async fn a_name_can_be_given_before_a_thread_is_stored(harness: &impl Harness) {
    let store = harness.open();
    let id = ThreadId::new();
    store.rename(id, "early").await.unwrap();
    assert_eq!(store.name(id).await.unwrap().as_deref(), Some("early"));
    store_thread(&*store, meta(id, CREATED), "hello").await;
    assert_eq!(store.find(id, None).await.unwrap().name.as_deref(), Some("early"));
}

pub async fn the_last_name_counts_and_a_blank_one_is_none(harness: &impl Harness) {
    let (ours, theirs) = (harness.open(), harness.open());
    let (id, _) = thread(&*ours, "hello").await;
    let (other, _) = thread(&*ours, "another").await;
    for (store, name, shown) in [
        (&ours, "one", Some("one")),
        (&theirs, "  two ", Some("two")),
        (&ours, " ", None),
        (&theirs, "three", Some("three")),
    ] {
        store.rename(id, name).await.unwrap();
        assert_eq!(ours.name(id).await.unwrap().as_deref(), shown);
        assert_eq!(theirs.find(id, None).await.unwrap().name.as_deref(), shown);
    }
    assert_eq!(ours.name(other).await.unwrap(), None);
}

fn info(sha: Option<&str>, branch: Option<&str>) -> Option<GitInfo> {
    Some(GitInfo { sha: sha.map(str::to_owned), branch: branch.map(str::to_owned), origin_url: None })
}

async fn git_thread(store: &dyn Store) -> ThreadId {
    let id = ThreadId::new();
    let git = Some(StoredGit { branch: Some("main".into()), ..Default::default() });
    store_thread(store, SessionMeta { git, ..meta(id, CREATED) }, "hello").await.0
}

pub async fn git_changes_show_in_lookups_and_lists(harness: &impl Harness) {
    let store = harness.open();
    let id = git_thread(&*store).await;
    assert_eq!(store.find(id, None).await.unwrap().git_info, info(None, Some("main")));
    store.patch_git(id, &GitPatch { sha: Some(Some("abc".into())), ..GitPatch::default() }).await.unwrap();
    for store in [store, harness.open()] {
        let found = store.find(id, None).await.unwrap();
        assert_eq!(found.git_info, info(Some("abc"), Some("main")));
        assert_eq!(store.list(query()).await.unwrap().threads, [found]);
    }
}

pub async fn git_changes_add_up_and_can_clear_a_fact(harness: &impl Harness) {
    let (ours, theirs) = (harness.open(), harness.open());
    let id = git_thread(&*ours).await;
    ours.patch_git(id, &GitPatch { sha: Some(Some("abc".into())), ..GitPatch::default() }).await.unwrap();
    theirs.patch_git(id, &GitPatch { branch: Some(None), ..GitPatch::default() }).await.unwrap();
    for store in [&ours, &theirs] {
        assert_eq!(store.find(id, None).await.unwrap().git_info, info(Some("abc"), None));
        let patch = GitPatch { sha: Some(Some("abc".into())), branch: Some(None), origin_url: None };
        assert_eq!(store.git_patch(id).await.unwrap(), Some(patch));
    }
    ours.patch_git(id, &GitPatch { sha: Some(None), ..GitPatch::default() }).await.unwrap();
    assert_eq!(theirs.find(id, None).await.unwrap().git_info, None);
}

pub async fn derived_data_is_kept_replaced_and_ends_with_its_thread(harness: &impl Harness) {
    let (ours, theirs) = (harness.open(), harness.open());
    let (id, _) = thread(&*ours, "hello").await;
    assert_eq!(ours.derived(id).await.unwrap(), None);
    for bytes in [vec![1], vec![2; 100_000], Vec::new()] {
        ours.keep_derived(id, bytes.clone()).await.unwrap();
        assert_eq!(theirs.derived(id).await.unwrap(), Some(bytes));
    }
    ours.delete(id).await.unwrap();
    assert_eq!(theirs.derived(id).await.unwrap(), None);
}

pub async fn an_unknown_thread_has_no_facts(harness: &impl Harness) {
    let store = harness.open();
    let id = ThreadId::new();
    assert_eq!(store.name(id).await.unwrap(), None);
    assert_eq!(store.git_patch(id).await.unwrap(), None);
    assert_eq!(store.derived(id).await.unwrap(), None);
}
