//! The tables, and how a database gets them. A migration is never changed once it was released, and keeps the release
//! before it working: nodes of both may run at once.

/// The version that this program makes and needs.
pub const VERSION: i32 = MIGRATIONS.len() as i32;

/// Serialises migrations between nodes that start at once.
pub(crate) const MIGRATION_LOCK: i64 = 0x6c6f_6f6d_6401;

/// The migrations, in order. The first leads to version 1.
pub(crate) const MIGRATIONS: [&str; 4] = [FIRST, APPROVALS, NODES, PREVIEWS];

/// `event.seq` counts the records of a thread from 0; `thread.end_seq` is the next one. A record above 64 KiB is in
/// `blob`. Columns of `thread` are null until the session metadata was appended; the ones beside `meta` and `preview`
/// are what lists filter by.
const FIRST: &str = "
CREATE TABLE loomd.thread (
    id uuid PRIMARY KEY,
    end_seq bigint NOT NULL,
    archived boolean NOT NULL DEFAULT false,
    updated_ns bigint NOT NULL,
    created_ns bigint,
    meta text,
    preview text,
    kind smallint,
    provider text,
    cwd text,
    originator text,
    parent_id uuid,
    attached_to uuid,
    message_filter bytea,
    filter_seq bigint
);
CREATE INDEX thread_by_creation ON loomd.thread (archived, created_ns DESC, id DESC) WHERE preview IS NOT NULL;
CREATE INDEX thread_by_change ON loomd.thread (archived, updated_ns DESC, id DESC) WHERE preview IS NOT NULL;
CREATE INDEX thread_by_cwd ON loomd.thread (cwd, archived, created_ns DESC, id DESC) WHERE preview IS NOT NULL;
CREATE INDEX thread_by_provider ON loomd.thread (provider, archived, created_ns DESC, id DESC) WHERE preview IS NOT NULL;
CREATE INDEX thread_by_parent ON loomd.thread (parent_id) WHERE parent_id IS NOT NULL;
CREATE INDEX thread_by_attachment ON loomd.thread (attached_to) WHERE attached_to IS NOT NULL;
CREATE TABLE loomd.event (
    thread_id uuid NOT NULL,
    seq bigint NOT NULL,
    epoch bigint NOT NULL,
    at timestamptz NOT NULL,
    kind text NOT NULL,
    size integer NOT NULL,
    body bytea,
    digest bytea,
    PRIMARY KEY (thread_id, seq),
    CHECK ((body IS NULL) <> (digest IS NULL))
) PARTITION BY HASH (thread_id);
DO $$ BEGIN
    FOR part IN 0..15 LOOP
        EXECUTE format('CREATE TABLE loomd.event_%s PARTITION OF loomd.event FOR VALUES WITH (MODULUS 16, REMAINDER %s)',
            part, part);
    END LOOP;
END $$;
CREATE TABLE loomd.blob (
    thread_id uuid NOT NULL,
    digest bytea NOT NULL,
    bytes bytea NOT NULL,
    PRIMARY KEY (thread_id, digest)
);
CREATE TABLE loomd.fact (
    thread_id uuid PRIMARY KEY,
    name text,
    git_patch text
);
CREATE TABLE loomd.derived (
    thread_id uuid PRIMARY KEY REFERENCES loomd.thread (id) ON DELETE CASCADE,
    bytes bytea NOT NULL
);
CREATE TABLE loomd.node (
    session uuid PRIMARY KEY,
    url text,
    labels text[] NOT NULL DEFAULT '{}',
    draining boolean NOT NULL DEFAULT false,
    started_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL
);
CREATE SEQUENCE loomd.lease_token;
CREATE TABLE loomd.lease (
    thread_id uuid PRIMARY KEY,
    session uuid,
    token bigint NOT NULL,
    epoch bigint NOT NULL,
    reader uuid NOT NULL
);
CREATE INDEX lease_by_session ON loomd.lease (session) WHERE session IS NOT NULL;
CREATE TABLE loomd.goal (
    thread_id uuid PRIMARY KEY,
    goal text NOT NULL
);
CREATE TABLE loomd.queue (
    thread_id uuid NOT NULL,
    id text NOT NULL,
    place bigint NOT NULL,
    client_id text NOT NULL,
    input text NOT NULL,
    turn_id text,
    PRIMARY KEY (thread_id, id)
);
CREATE TABLE loomd.started (
    thread_id uuid NOT NULL,
    client_id text NOT NULL,
    digest bytea NOT NULL,
    turn_id text NOT NULL,
    at timestamptz NOT NULL,
    PRIMARY KEY (thread_id, client_id, digest)
);
";

/// The approvals of turns. `params` and `decision` are JSON; they are text because JSON may have NULs in strings, which
/// `jsonb` has not.
const APPROVALS: &str = "
CREATE TABLE loomd.approval (
    id uuid PRIMARY KEY,
    thread_id uuid NOT NULL,
    turn_id text NOT NULL,
    item_id text NOT NULL,
    method text NOT NULL,
    params text NOT NULL,
    asked_at_ms bigint NOT NULL,
    deadline_ms bigint,
    default_decision text,
    state text NOT NULL,
    decision text,
    decided_at_ms bigint,
    connection text,
    client text,
    role text
);
CREATE INDEX approval_by_thread ON loomd.approval (thread_id, id);
CREATE INDEX open_approval ON loomd.approval (id) WHERE state = 'open';
";

/// What nodes need to own threads: notes about unfinished turns, answers to requests that must not be carried out twice,
/// and two functions. Also indexes for the filters of lists that had none.
///
/// `turn_note.lines` is empty when there are no notes; `(epoch, version)` orders the changes of a row. Requests that
/// belong to no thread have the nil id in `answered`; `claim` tells a second try of a request from a second request.
///
/// `is_live` waits for a renewal of the session that is on its way, and keeps later ones waiting until the transaction is
/// over: a session that it calls expired is never renewed. `new_token` makes a new token under an ownership; what was
/// sent under the one before can no longer come true, so that the end of the thread, which it reads afterwards, is final.
const NODES: &str = "
CREATE TABLE loomd.turn_note (
    thread_id uuid PRIMARY KEY,
    lines bytea NOT NULL,
    epoch bigint NOT NULL,
    version bigint NOT NULL
);
CREATE INDEX unfinished_turn ON loomd.turn_note (thread_id) WHERE octet_length(lines) > 0;
CREATE TABLE loomd.answered (
    thread_id uuid NOT NULL,
    method text NOT NULL,
    key bytea NOT NULL,
    body bytea NOT NULL,
    answer text NOT NULL,
    epoch text NOT NULL,
    at timestamptz NOT NULL,
    claim uuid,
    PRIMARY KEY (thread_id, method, key)
);
CREATE INDEX thread_by_originator ON loomd.thread (originator, archived, created_ns DESC, id DESC)
    WHERE preview IS NOT NULL;
CREATE INDEX thread_by_kind ON loomd.thread (kind, archived, created_ns DESC, id DESC) WHERE preview IS NOT NULL;
CREATE FUNCTION loomd.is_live(wanted uuid) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    until timestamptz;
BEGIN
    SELECT n.expires_at INTO until FROM loomd.node n WHERE n.session = wanted FOR SHARE;
    RETURN coalesce(until > clock_timestamp(), false);
END $$;
CREATE FUNCTION loomd.new_token(
    owned_thread uuid, owner uuid, owned_epoch bigint, OUT made bigint, OUT ends bigint, OUT complete boolean
) LANGUAGE plpgsql AS $$
BEGIN
    UPDATE loomd.lease l SET token = nextval('loomd.lease_token')
    WHERE l.thread_id = owned_thread AND l.session = owner AND l.epoch = owned_epoch RETURNING l.token INTO made;
    IF FOUND THEN
        SELECT t.end_seq, t.meta IS NOT NULL AND t.preview IS NOT NULL INTO ends, complete
        FROM loomd.thread t WHERE t.id = owned_thread;
    END IF;
END $$;
";

/// A searchable copy of `thread.preview`. It has a table of its own because the row of a thread changes with every append,
/// and each change would add to the index again. The index needs `pg_trgm`, which a server may not have, or not let this user
/// install: then a search reads the previews one by one. Every search reads the index's pending list, which is therefore
/// kept short.
///
/// Appends of other nodes go on until the triggers are made, which lock `thread`; what they added before is copied then.
const PREVIEWS: &str = "
CREATE TABLE loomd.preview (
    thread_id uuid PRIMARY KEY,
    text text NOT NULL
);
INSERT INTO loomd.preview SELECT id, preview FROM loomd.thread WHERE preview IS NOT NULL;
DO $$
DECLARE
    place name;
BEGIN
    CREATE EXTENSION IF NOT EXISTS pg_trgm WITH SCHEMA loomd;
    SELECT n.nspname INTO place FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace
    WHERE e.extname = 'pg_trgm';
    EXECUTE format('CREATE INDEX preview_by_text ON loomd.preview USING gin (text %I.gin_trgm_ops)
        WITH (gin_pending_list_limit = 256)', place);
EXCEPTION WHEN insufficient_privilege OR undefined_file OR feature_not_supported OR undefined_object
    OR duplicate_object OR duplicate_function THEN
    RAISE NOTICE 'previews have no index: %', SQLERRM;
END $$;
CREATE FUNCTION loomd.keep_preview() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = loomd, pg_temp AS $$
BEGIN
    INSERT INTO loomd.preview VALUES (NEW.id, NEW.preview)
    ON CONFLICT (thread_id) DO UPDATE SET text = excluded.text;
    RETURN NULL;
END $$;
CREATE TRIGGER new_preview AFTER INSERT ON loomd.thread
    FOR EACH ROW WHEN (NEW.preview IS NOT NULL) EXECUTE FUNCTION loomd.keep_preview();
CREATE TRIGGER changed_preview AFTER UPDATE ON loomd.thread
    FOR EACH ROW WHEN (NEW.preview IS NOT NULL AND NEW.preview IS DISTINCT FROM OLD.preview)
    EXECUTE FUNCTION loomd.keep_preview();
INSERT INTO loomd.preview SELECT id, preview FROM loomd.thread WHERE preview IS NOT NULL
    ON CONFLICT (thread_id) DO NOTHING;
DELETE FROM loomd.preview p WHERE NOT EXISTS (SELECT 1 FROM loomd.thread t WHERE t.id = p.thread_id);
ALTER TABLE loomd.preview ADD FOREIGN KEY (thread_id) REFERENCES loomd.thread (id) ON DELETE CASCADE;
";
