//! What is known of a thread without its records: the row of `thread`, with the name and git facts that clients gave it.

use loomd_store::rollout::SessionMeta;
use loomd_store::{Cursor, Error, GitPatch, Head, Kind, Result, StoredThread, ThreadId, slim_meta};
use tokio_postgres::Row;
use uuid::Uuid;

use crate::error::Place;
use crate::text::storable;

/// The columns that [`stored_thread`] reads, of `loomd.thread t` and `loomd.fact f`.
pub(crate) const COLUMNS: &str = "t.id, t.end_seq, t.archived, t.updated_ns, t.meta, t.preview, f.name, f.git_patch";

/// The tables of [`COLUMNS`].
pub(crate) const TABLES: &str = "loomd.thread t LEFT JOIN loomd.fact f ON f.thread_id = t.id";

/// The time in nanoseconds, by the database's clock.
pub(crate) const NOW_NS: &str = "((extract(epoch FROM clock_timestamp()) * 1000000)::bigint * 1000)";

/// A stored thread out of a row with [`COLUMNS`].
pub(crate) fn stored_thread(place: &Place, row: &Row) -> Result<StoredThread> {
    let id = ThreadId::from(row.get::<_, Uuid>(0));
    let at = || format!("{}#{id}", place.name());
    let Some(meta) = row.get::<_, Option<&str>>(4) else {
        return Err(match row.get::<_, i64>(1) {
            0 => Error::Empty { place: at() },
            _ => Error::NoSessionMeta { place: at() },
        });
    };
    let meta: SessionMeta = serde_json::from_str(meta).map_err(|error| place.corrupt("session metadata", error))?;
    let updated_ns: i64 = row.get(3);
    let git_info = meta.git.as_ref().and_then(|git| git.to_wire());
    Ok(StoredThread {
        path: None,
        archived: row.get(2),
        preview: row.get(5),
        updated_at: updated_ns.div_euclid(1_000_000_000),
        updated_ns,
        git_info: match git_patch(place, row.get(7))? {
            Some(patch) => patch.apply(git_info),
            None => git_info,
        },
        name: shown_name(row.get(6)),
        meta,
    })
}

/// A name without white space around it. A blank one counts as none.
pub(crate) fn shown_name(name: Option<&str>) -> Option<String> {
    name.map(|name| name.trim().to_owned()).filter(|name| !name.is_empty())
}

/// A stored change of git facts.
pub(crate) fn git_patch(place: &Place, text: Option<&str>) -> Result<Option<GitPatch>> {
    text.map(|text| serde_json::from_str(text).map_err(|error| place.corrupt("git facts", error))).transpose()
}

/// The columns of `thread` that are made from the head of its records. All are `None` while it is unknown.
#[derive(Default)]
pub(crate) struct HeadColumns {
    pub meta: Option<String>,
    pub preview: Option<String>,
    pub created_ns: Option<i64>,
    pub kind: Option<i16>,
    pub provider: Option<String>,
    pub cwd: Option<String>,
    pub originator: Option<String>,
    pub parent: Option<Uuid>,
    pub attached_to: Option<Uuid>,
}

impl HeadColumns {
    pub fn of(head: Head) -> Result<Self> {
        let preview = head.preview.as_deref().map(|preview| storable(preview).into_owned());
        let Some(meta) = head.meta else { return Ok(Self { preview, ..Self::default() }) };
        let meta = slim_meta(*meta);
        let created = meta.created_at().map_or(0, |time| time.as_second());
        let text = |text: &str| Some(storable(text).into_owned());
        Ok(Self {
            preview,
            created_ns: Some(Cursor::of_seconds(created, meta.id).at),
            kind: Some(Kind::of(&meta.source) as i16),
            provider: meta.model_provider.as_deref().and_then(text),
            cwd: text(&meta.cwd),
            originator: text(&meta.originator),
            parent: meta.parent().map(|id| *id.as_uuid()),
            attached_to: meta.attached_to.map(|id| *id.as_uuid()),
            // NUL is escaped in JSON.
            meta: Some(serde_json::to_string(&meta)?),
        })
    }
}
