//! The one statement that appends a batch.

use std::sync::LazyLock;

use loomd_store::Batch;
use loomd_store::rollout::{LineHeader, whole_lines};
use sha2::{Digest, Sha256};

use crate::facts::NOW_NS;

/// Larger records go to `blob`.
const LARGEST_BODY: usize = 64 * 1024;

/// Appends records under a lease: nothing happens, and there is no row, when the lease's session, token or epoch is
/// another one, or when the thread is gone and not new. The lease's row stays locked until the statement is over, so a
/// take-over happens before or after it.
///
/// Parameters: thread, session, token, count, epoch, kinds, sizes, bodies, digests, blob digests, blob bytes, whether
/// the thread is new, and the head's columns.
pub(crate) static APPEND: LazyLock<String> = LazyLock::new(|| {
    let head = ["meta", "preview", "created_ns", "kind", "provider", "cwd", "originator", "parent_id", "attached_to"];
    let types = ["text", "text", "bigint", "smallint", "text", "text", "text", "uuid", "uuid"];
    let values: Vec<String> = types.iter().zip(13..).map(|(kind, number)| format!("${number}::{kind}")).collect();
    let kept = |table: &str, value: &dyn Fn(usize) -> String| -> String {
        let kept = head
            .iter()
            .enumerate()
            .map(|(number, column)| format!("{column} = coalesce({table}.{column}, {})", value(number)));
        kept.collect::<Vec<_>>().join(", ")
    };
    format!(
        "WITH held AS MATERIALIZED (
            SELECT 1 FROM loomd.lease WHERE thread_id = $1 AND session = $2 AND token = $3 AND epoch = $5 FOR UPDATE
        ), made AS (
            INSERT INTO loomd.thread AS t (id, end_seq, updated_ns, {columns})
            SELECT $1, $4, {NOW_NS}, {values} FROM held WHERE $12
            ON CONFLICT (id) DO UPDATE SET end_seq = t.end_seq + $4, updated_ns = {NOW_NS}, {kept_new}
            RETURNING end_seq
        ), grown AS (
            UPDATE loomd.thread AS t SET end_seq = t.end_seq + $4, updated_ns = {NOW_NS}, {kept_old}
            WHERE t.id = $1 AND NOT $12 AND EXISTS (SELECT 1 FROM held)
            RETURNING end_seq
        ), ends AS (
            SELECT end_seq FROM made UNION ALL SELECT end_seq FROM grown
        ), blobs AS (
            INSERT INTO loomd.blob (thread_id, digest, bytes)
            SELECT DISTINCT ON (b.digest) $1::uuid, b.digest, b.bytes
            FROM ends, unnest($10::bytea[], $11::bytea[]) AS b (digest, bytes)
            ON CONFLICT DO NOTHING
        ), events AS (
            INSERT INTO loomd.event (thread_id, seq, epoch, at, kind, size, body, digest)
            SELECT $1, ends.end_seq - $4 + line.number - 1, $5, clock_timestamp(), line.kind, line.size, line.body, line.digest
            FROM ends, unnest($6::text[], $7::int[], $8::bytea[], $9::bytea[])
                WITH ORDINALITY AS line (kind, size, body, digest, number)
        )
        SELECT end_seq FROM ends",
        columns = head.join(", "),
        values = values.join(", "),
        kept_new = kept("t", &|number| format!("excluded.{}", head[number])),
        kept_old = kept("t", &|number| values[number].clone()),
    )
});

/// The records of a batch, as the statement takes them.
#[derive(Default)]
pub(crate) struct Lines<'a> {
    pub kinds: Vec<String>,
    pub sizes: Vec<i32>,
    pub bodies: Vec<Option<&'a [u8]>>,
    pub digests: Vec<Option<Vec<u8>>>,
    pub blob_digests: Vec<Vec<u8>>,
    pub blobs: Vec<&'a [u8]>,
}

impl<'a> Lines<'a> {
    pub fn of(batch: &'a Batch) -> Self {
        let mut lines = Self::default();
        for (_, line) in whole_lines(batch.bytes()) {
            lines.kinds.push(kind(line));
            lines.sizes.push(i32::try_from(line.len()).unwrap_or(i32::MAX));
            if line.len() > LARGEST_BODY {
                let digest = Sha256::digest(line).to_vec();
                lines.blob_digests.push(digest.clone());
                lines.blobs.push(line);
                lines.bodies.push(None);
                lines.digests.push(Some(digest));
            } else {
                lines.bodies.push(Some(line));
                lines.digests.push(None);
            }
        }
        lines
    }

    pub fn count(&self) -> i64 {
        i64::try_from(self.sizes.len()).unwrap_or(i64::MAX)
    }
}

/// What a record is, for searches and people: its type, and that of its payload. Empty for a line that is no record.
fn kind(line: &[u8]) -> String {
    let Some(header) = LineHeader::parse(line) else { return String::new() };
    let kind = match header.payload_type() {
        Some(payload) => format!("{}/{payload}", header.kind),
        None => header.kind.to_owned(),
    };
    kind.replace('\0', "\u{fffd}")
}
