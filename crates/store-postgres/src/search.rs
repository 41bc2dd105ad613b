//! `thread/search`: a filter of the messages of each thread rules out most of them in the database; the messages of the
//! others are read. A filter is made when a search reads a thread, and counts until the thread grows.

use loomd_store::search::{Hit, MessageFilter, MessageTexts, SearchPage, SearchQuery, Term, pieces};
use loomd_store::{ListQuery, Result, StoredThread};

use crate::database::Database;
use crate::facts::stored_thread;
use crate::list::{Conditions, cursor};

/// Threads that are read between two looks at the list.
const BATCH: usize = 64;

/// True for a thread without a filter, and for one whose filter has the bits of every piece of the term. The bit of a
/// piece is where `signature.rs` of the store puts it.
const MAY_HOLD: &str = "(t.message_filter IS NULL OR t.filter_seq <> t.end_seq OR NOT EXISTS (
    SELECT 1 FROM unnest($::bigint[]) AS piece
    WHERE get_bit(t.message_filter, ((piece * (octet_length(t.message_filter) * 8)) >> 32)::int) = 0))";

/// The kinds of records that a search looks at.
const MESSAGES: &str = "SELECT coalesce(e.body, b.bytes) FROM loomd.event e
    LEFT JOIN loomd.blob b ON b.thread_id = e.thread_id AND b.digest = e.digest
    WHERE e.thread_id = $1 AND e.seq < $2 AND (e.kind LIKE 'event\\_msg%' OR e.kind = '') ORDER BY e.seq";

pub(crate) async fn search(database: &Database, query: &SearchQuery) -> Result<SearchPage> {
    let term = Term::new(&query.term);
    let bits: Vec<i64> = pieces(term.folded())
        .chunks_exact(4)
        .map(|piece| i64::from(u32::from_le_bytes([piece[0], piece[1], piece[2], piece[3]])))
        .collect();
    let (mut hits, mut after): (Vec<Hit>, _) = (Vec::new(), query.list.after);
    while hits.len() <= query.list.limit {
        let list = ListQuery { after, ..query.list.clone() };
        let mut conditions = Conditions::of(&list);
        conditions.add(MAY_HOLD, bits.clone());
        let statement = conditions.select(&list, ", t.filter_seq = t.end_seq", BATCH);
        let client = database.client().await?;
        let rows = client.query(&statement, &conditions.params()).await;
        let rows = rows.map_err(|error| database.place.query(&error))?;
        drop(client);
        let Some(last) = rows.last() else { break };
        after = Some(cursor(&stored_thread(&database.place, last)?, &list));
        for row in &rows {
            let thread = stored_thread(&database.place, row)?;
            let is_filtered = row.get::<_, Option<bool>>(8) == Some(true);
            if let Some(snippet) = look(database, &thread, row.get(1), &term, is_filtered).await? {
                hits.push(Hit { thread, snippet });
            }
            if hits.len() > query.list.limit {
                break;
            }
        }
        if rows.len() < BATCH {
            break;
        }
    }
    let more = hits.len() > query.list.limit;
    hits.truncate(query.list.limit);
    Ok(SearchPage {
        next: hits.last().filter(|_| more).map(|hit| cursor(&hit.thread, &query.list)),
        back: hits.first().map(|hit| cursor(&hit.thread, &query.list).reversed()),
        hits,
    })
}

/// The first hit in the messages of a thread, whose filter is kept if there is none.
async fn look(
    database: &Database,
    thread: &StoredThread,
    end: i64,
    term: &Term,
    is_filtered: bool,
) -> Result<Option<String>> {
    let failed = |error: tokio_postgres::Error| database.place.query(&error);
    let client = database.client().await?;
    let statement = client.prepare_cached(MESSAGES).await.map_err(failed)?;
    let id = thread.id();
    let rows = client.query(&statement, &[id.as_uuid(), &end]).await.map_err(failed)?;
    let mut texts = MessageTexts::new(term);
    let mut filter = (!is_filtered).then(MessageFilter::default);
    for row in &rows {
        texts.push_filtered(row.get::<_, Option<&[u8]>>(0).unwrap_or_default(), filter.as_mut());
    }
    if let Some(filter) = filter {
        let keep = "UPDATE loomd.thread SET message_filter = $2, filter_seq = $3 WHERE id = $1 AND end_seq = $3";
        client.execute(keep, &[id.as_uuid(), &filter.finish(), &end]).await.map_err(failed)?;
    }
    Ok(texts.first())
}
