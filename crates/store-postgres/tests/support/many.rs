//! A database with many threads, and the lists that clients ask for.

use loomd_protocol::{SortDirection, ThreadSortKey, ThreadSourceKind};
use loomd_store::{ListQuery, ThreadId};

/// Makes `count` threads out of the only one that is stored, without records: a thousand working directories, a hundred
/// originators, of which some are rare, four providers, and a parent for every thousandth.
pub fn fill(count: usize) -> String {
    format!(
        "INSERT INTO loomd.thread (id, end_seq, archived, updated_ns, created_ns, meta, preview, kind, provider, cwd,
            originator, parent_id, attached_to)
         SELECT made.id, 2, number % 20 = 0, 1700000000000000000 + (number * 7919 % {count}) * 1000000000,
            1700000000000000000 + number * 1000000000, replace(t.meta, t.id::text, made.id::text),
            'message ' || number || repeat(' and more of it', 5), CASE WHEN number % 1000 = 0 THEN 2 ELSE t.kind END,
            'provider ' || number % 4, '/work/' || number % 1000, 'client ' || floor(sqrt(number % 10000)),
            CASE WHEN number % 1000 = 0 THEN t.id END, CASE WHEN number % 1000 = 1 THEN t.id END
         FROM loomd.thread t, generate_series(1::bigint, {count}) number,
            LATERAL (SELECT gen_random_uuid() AS id WHERE number > 0) made;
         ANALYZE loomd.thread; ANALYZE loomd.preview"
    )
}

/// One query of each sort. `first` is the thread that all others were made of.
pub fn queries(first: ThreadId) -> Vec<(&'static str, ListQuery)> {
    let all = || ListQuery { providers: None, ..ListQuery::new("mock") };
    let middle = loomd_store::Cursor { at: 1_700_000_500_000_000_000, id: first, inclusive: false };
    vec![
        ("newest", all()),
        ("a page in the middle", ListQuery { after: Some(middle), ..all() }),
        ("oldest", ListQuery { direction: SortDirection::Asc, ..all() }),
        ("last changed", ListQuery { sort: ThreadSortKey::UpdatedAt, ..all() }),
        ("archived", ListQuery { archived: true, ..all() }),
        ("a provider", ListQuery { providers: Some(vec!["provider 3".into()]), ..all() }),
        ("an unknown provider", ListQuery { providers: Some(vec!["none".into()]), ..all() }),
        ("a working directory", ListQuery { cwds: Some(vec!["/work/77".into()]), ..all() }),
        (
            "a working directory, last changed",
            ListQuery { cwds: Some(vec!["/work/77".into()]), sort: ThreadSortKey::UpdatedAt, ..all() },
        ),
        ("an unknown working directory", ListQuery { cwds: Some(vec!["/nowhere".into()]), ..all() }),
        ("an originator", ListQuery { originators: Some(vec!["client 99".into()]), ..all() }),
        ("a rare originator", ListQuery { originators: Some(vec!["client 0".into()]), ..all() }),
        ("an unknown originator", ListQuery { originators: Some(vec!["none".into()]), ..all() }),
        ("a rare source", ListQuery { kinds: Some(vec![ThreadSourceKind::Exec]), ..all() }),
        ("a search term", ListQuery { search: Some("message 9".into()), ..all() }),
        ("an unknown search term", ListQuery { search: Some("nothing has this".into()), ..all() }),
        ("excluded threads", ListQuery { excluded: vec![first, ThreadId::new()], ..all() }),
        ("given threads", ListQuery { only: Some(vec![first, ThreadId::new()]), ..all() }),
        ("child agents", ListQuery { parent: Some(first), ..all() }),
        ("descendants", ListQuery { ancestor: Some(first), ..all() }),
        ("attached forks", ListQuery { attached_to: Some(first), ..all() }),
    ]
}
