//! Lists: filters, order and pages.

use super::*;
use crate::search::SearchQuery;
use loomd_protocol::{SortDirection, SubAgentSource, ThreadId as WireId, ThreadSortKey, ThreadSourceKind};

/// Stores a thread that was created `age` seconds before the newest, with other facts as well.
async fn older(store: &dyn Store, age: i64, text: &str, change: impl FnOnce(&mut SessionMeta)) -> ThreadId {
    let mut facts = meta(ThreadId::new(), CREATED - age);
    change(&mut facts);
    store_thread(store, facts, text).await.0
}

async fn check(store: &dyn Store, query: ListQuery, expected: &[&str]) {
    let shown = previews(store, query.clone()).await;
    assert_eq!(shown, expected, "{query:?}");
}

pub async fn a_thread_without_a_user_message_is_found_and_not_listed(harness: &impl Harness) {
    let store = harness.open();
    let id = ThreadId::new();
    let reader = store.create(id, Timestamp::from_second(CREATED).unwrap());
    append(&*reader, &[Record::SessionMeta(Box::new(meta(id, CREATED)))]).await;
    assert_eq!(store.find(id, None).await.unwrap().preview, None);
    check(&*store, query(), &[]).await;
    append(&*reader, &[user(" "), user("hello"), user("later")]).await;
    check(&*store, query(), &["hello"]).await;
    check(&*harness.open(), query(), &["hello"]).await;
}

pub async fn lists_are_newest_first_and_end_without_a_cursor(harness: &impl Harness) {
    let store = harness.open();
    for (age, text) in [(20, "middle"), (0, "newest"), (90 * 86_400, "oldest")] {
        older(&*store, age, text, |_| {}).await;
    }
    check(&*store, query(), &["newest", "middle", "oldest"]).await;
    let page = store.list(ListQuery { limit: 3, ..query() }).await.unwrap();
    assert_eq!((page.next, page.unreadable), (None, 0));
    let page = store.list(ListQuery { limit: 2, ..query() }).await.unwrap();
    let next = page.next.unwrap();
    assert_eq!((next.at, next.id), ((CREATED - 20) * 1_000_000_000, page.threads[1].id()));
}

pub async fn pages_show_every_thread_once_in_either_order(harness: &impl Harness) {
    let store = harness.open();
    let mut ids = Vec::new();
    // Some share a second, so that the id decides.
    for number in 0..23 {
        ids.push(older(&*store, number / 4, &format!("t{number}"), |_| {}).await);
    }
    ids.sort();
    let ways = [SortDirection::Desc, SortDirection::Asc];
    for (sort, direction) in [
        (ThreadSortKey::CreatedAt, ways[0]),
        (ThreadSortKey::UpdatedAt, ways[0]),
        (ThreadSortKey::CreatedAt, ways[1]),
        (ThreadSortKey::RecencyAt, ways[1]),
    ] {
        for limit in [1, 4, 7, 23] {
            let (mut shown, mut after) = (Vec::new(), None);
            loop {
                let page = store.list(ListQuery { sort, direction, limit, after, ..query() }).await.unwrap();
                assert!(page.threads.len() == limit || page.next.is_none());
                shown.extend(page.threads);
                match page.next {
                    // A cursor is sent to clients as a text.
                    Some(next) => after = Some(next.to_string().parse().unwrap()),
                    None => break,
                }
            }
            let key = |thread: &crate::StoredThread| match sort {
                ThreadSortKey::CreatedAt => (thread.created_at(), thread.id()),
                _ => (thread.updated_ns, thread.id()),
            };
            let in_order = |a, b| if direction == SortDirection::Desc { key(a) > key(b) } else { key(a) < key(b) };
            assert!(shown.is_sorted_by(in_order), "{sort:?} {direction:?} {limit}");
            let mut found: Vec<ThreadId> = shown.iter().map(|thread| thread.id()).collect();
            found.sort();
            assert_eq!(found, ids, "{sort:?} {limit}");
        }
    }
}

pub async fn a_list_shows_only_the_providers_that_are_asked_for(harness: &impl Harness) {
    let store = harness.open();
    for (age, provider) in [(0, "mock"), (1, "other"), (2, "third")] {
        older(&*store, age, provider, |meta| meta.model_provider = Some(provider.into())).await;
    }
    let providers = |names: &[&str]| Some(names.iter().map(|name| (*name).to_owned()).collect());
    check(&*store, query(), &["mock"]).await;
    check(&*store, ListQuery { providers: providers(&["third", "other"]), ..query() }, &["other", "third"]).await;
    check(&*store, ListQuery { providers: providers(&["none"]), ..query() }, &[]).await;
    check(&*store, ListQuery { providers: None, ..query() }, &["mock", "other", "third"]).await;
}

pub async fn a_thread_without_a_provider_counts_for_the_default_one(harness: &impl Harness) {
    let store = harness.open();
    older(&*store, 0, "unrecorded", |meta| meta.model_provider = None).await;
    check(&*store, query(), &["unrecorded"]).await;
    check(&*store, ListQuery::new("other"), &["unrecorded"]).await;
    check(&*store, ListQuery { providers: Some(vec!["other".into()]), ..query() }, &[]).await;
}

pub async fn a_list_shows_only_the_sources_that_are_asked_for(harness: &impl Harness) {
    let store = harness.open();
    for (age, text, source) in [
        (0, "cli", Source::Cli),
        (1, "vscode", Source::Vscode),
        (2, "exec", Source::Exec),
        (3, "server", Source::Mcp),
        (4, "review", Source::SubAgent(SubAgentSource::Review)),
        (5, "compact", Source::SubAgent(SubAgentSource::Compact)),
        (6, "custom", Source::Custom("mine".into())),
        (7, "atlas", Source::Custom("atlas".into())),
        (8, "unknown", Source::Unknown),
    ] {
        older(&*store, age, text, |meta| meta.source = source).await;
    }
    use ThreadSourceKind as Wire;
    let kinds = |kinds: &[Wire]| ListQuery { kinds: Some(kinds.to_vec()), ..query() };
    check(&*store, query(), &["cli", "vscode", "atlas"]).await;
    check(&*store, kinds(&[Wire::Exec, Wire::AppServer]), &["exec", "server"]).await;
    check(&*store, kinds(&[Wire::SubAgent]), &["review", "compact"]).await;
    check(&*store, kinds(&[Wire::SubAgentReview]), &["review"]).await;
    check(&*store, kinds(&[Wire::Cli, Wire::Unknown]), &["cli", "unknown"]).await;
    check(&*store, kinds(&[Wire::SubAgentThreadSpawn]), &[]).await;
}

pub async fn a_list_shows_only_the_working_directories_that_are_asked_for(harness: &impl Harness) {
    let store = harness.open();
    for (age, cwd) in [(0, "/one"), (1, "/two"), (2, "/two/below")] {
        older(&*store, age, cwd, |meta| meta.cwd = cwd.into()).await;
    }
    let cwds = |cwds: &[&str]| ListQuery { cwds: Some(cwds.iter().map(|cwd| (*cwd).to_owned()).collect()), ..query() };
    check(&*store, cwds(&["/two"]), &["/two"]).await;
    check(&*store, cwds(&["/two", "/one"]), &["/one", "/two"]).await;
    check(&*store, cwds(&["/three"]), &[]).await;
}

pub async fn a_list_shows_only_previews_with_the_search_term(harness: &impl Harness) {
    let store = harness.open();
    for (age, text) in [(0, "fix the Parser"), (1, "parse 100% of it"), (2, "grüße_an alle"), (3, r"in C:\work")] {
        older(&*store, age, text, |_| {}).await;
    }
    let search = |term: &str| ListQuery { search: Some(term.into()), ..query() };
    check(&*store, search("parse"), &["parse 100% of it"]).await;
    check(&*store, search("arse"), &["fix the Parser", "parse 100% of it"]).await;
    check(&*store, search("100%"), &["parse 100% of it"]).await;
    check(&*store, search("e_a"), &["grüße_an alle"]).await;
    check(&*store, search("ü"), &["grüße_an alle"]).await;
    check(&*store, search(r":\w"), &[r"in C:\work"]).await;
    check(&*store, search(r"\%"), &[]).await;
    check(&*store, search("none of them"), &[]).await;
}

pub async fn filters_hold_together_and_with_a_cursor(harness: &impl Harness) {
    let store = harness.open();
    for number in 0..24_i64 {
        older(&*store, number, &format!("number {number}"), |meta| {
            meta.cwd = if number % 2 == 0 { "/even" } else { "/odd" }.into();
            meta.model_provider = Some(if number % 3 == 0 { "mock" } else { "other" }.into());
            meta.source = if number % 4 == 0 { Source::Exec } else { Source::Cli };
        })
        .await;
    }
    let wanted = ListQuery {
        limit: 2,
        cwds: Some(vec!["/even".into()]),
        kinds: Some(vec![ThreadSourceKind::Exec]),
        search: Some("number".into()),
        ..query()
    };
    let first = store.list(wanted.clone()).await.unwrap();
    check(&*store, wanted.clone(), &["number 0", "number 12"]).await;
    assert_eq!(first.next, None);
    let both = ListQuery { providers: None, ..wanted };
    check(&*store, both.clone(), &["number 0", "number 4"]).await;
    let after = store.list(both.clone()).await.unwrap().next;
    check(&*store, ListQuery { after, limit: 10, ..both }, &["number 8", "number 12", "number 16", "number 20"]).await;
}

pub async fn the_backwards_cursor_begins_with_the_first_thread_of_its_page(harness: &impl Harness) {
    let store = harness.open();
    for number in 0..5 {
        // Two of a second each.
        older(&*store, number / 2, &format!("t{number}"), |_| {}).await;
    }
    let first = store.list(ListQuery { limit: 2, ..query() }).await.unwrap();
    let wanted = ListQuery { limit: 2, after: first.next, ..query() };
    let second = store.list(wanted).await.unwrap();
    let back = second.back.unwrap().to_string().parse().ok();
    let asc = ListQuery { direction: SortDirection::Asc, after: back, limit: 3, ..query() };
    let other_way = store.list(asc).await.unwrap();
    let ids = |threads: &[crate::StoredThread]| threads.iter().map(|thread| thread.id()).collect::<Vec<_>>();
    assert_eq!(ids(&other_way.threads), [ids(&second.threads)[0], ids(&first.threads)[1], ids(&first.threads)[0]]);
    let empty = store.list(ListQuery { cwds: Some(vec![]), ..query() }).await.unwrap();
    assert_eq!((empty.threads.len(), empty.next, empty.back), (0, None, None));
}

pub async fn excluded_threads_and_other_clients_are_left_out_before_pages_are_cut(harness: &impl Harness) {
    let store = harness.open();
    let mut ids = Vec::new();
    for number in 0..5 {
        let client = if number == 3 { "other" } else { "mine" };
        ids.push(older(&*store, number, &format!("t{number}"), |meta| meta.originator = client.into()).await);
    }
    let without = ListQuery { limit: 2, excluded: vec![ids[0], ids[2]], ..query() };
    check(&*store, without.clone(), &["t1", "t3"]).await;
    check(&*store, ListQuery { originators: Some(vec!["mine".into()]), ..without }, &["t1", "t4"]).await;
    check(&*store, ListQuery { only: Some(vec![ids[4], ids[1]]), ..query() }, &["t1", "t4"]).await;
    check(&*store, ListQuery { only: Some(vec![]), ..query() }, &[]).await;
}

pub async fn relatives_are_listed_whatever_started_them(harness: &impl Harness) {
    let store = harness.open();
    let spawned = |parent: ThreadId, depth| {
        Source::SubAgent(SubAgentSource::ThreadSpawn {
            agent_nickname: None,
            agent_path: None,
            agent_role: None,
            depth,
            parent_thread_id: WireId(parent.to_string()),
        })
    };
    let parent = older(&*store, 9, "parent", |_| {}).await;
    let child = older(&*store, 8, "child", |meta| meta.source = spawned(parent, 1)).await;
    older(&*store, 7, "grandchild", |meta| meta.source = spawned(child, 2)).await;
    older(&*store, 6, "attached", |meta| meta.attached_to = Some(parent)).await;
    check(&*store, query(), &["attached", "parent"]).await;
    check(&*store, ListQuery { parent: Some(parent), ..query() }, &["child"]).await;
    check(&*store, ListQuery { ancestor: Some(parent), ..query() }, &["grandchild", "child"]).await;
    check(&*store, ListQuery { ancestor: Some(ThreadId::new()), ..query() }, &[]).await;
    check(&*store, ListQuery { attached_to: Some(parent), ..query() }, &["attached"]).await;
    let kinds = Some(vec![ThreadSourceKind::Cli]);
    check(&*store, ListQuery { ancestor: Some(parent), kinds, ..query() }, &[]).await;
}

pub async fn messages_are_searched_in_any_case_and_found_in_pages(harness: &impl Harness) {
    let store = harness.open();
    for (age, text) in [(3, "the blue Teapot"), (2, "no pot"), (1, "TEAPOT again"), (0, "a tea pot")] {
        older(&*store, age, text, |_| {}).await;
    }
    let found = async |term: &str, limit: usize, after| {
        let list = ListQuery { limit, after, ..query() };
        let page = store.search(SearchQuery { list, term: term.into() }).await.unwrap();
        let texts: Vec<String> = page.hits.iter().map(|hit| hit.snippet.clone()).collect();
        (texts, page.next)
    };
    // The second time the filters are there.
    for _ in 0..2 {
        let (texts, next) = found("teapot", 1, None).await;
        assert_eq!(texts, ["TEAPOT again"]);
        assert_eq!(found("teapot", 1, next).await, (vec!["the blue Teapot".to_owned()], None));
        assert_eq!(found("kettle", 5, None).await, (vec![], None));
        assert_eq!(found("po", 5, None).await.0.len(), 4);
    }
    let id = store.list(ListQuery { search: Some("no pot".into()), ..query() }).await.unwrap().threads[0].id();
    append(&*store.open(id).await.unwrap(), &[user("now a Teapot")]).await;
    assert_eq!(found("teapot", 5, None).await.0, ["TEAPOT again", "now a Teapot", "the blue Teapot"]);
}
