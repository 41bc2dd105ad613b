//! What is stored in the end: threads as nodes show them, and the tables.

use anyhow::{Context, Result};
use loomd_testkit::Cluster;
use serde_json::Value;

use crate::history::Label;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredThread {
    pub id: String,
    pub turns: Vec<StoredTurn>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredTurn {
    pub id: String,
    pub status: String,
    pub items: Vec<Label>,
}

impl StoredThread {
    /// Of an answer to `thread/read`.
    pub fn of(answer: &Value) -> Result<Self> {
        let thread = &answer["thread"];
        let id = thread["id"].as_str().context("a thread without an id")?.to_owned();
        let turns = thread["turns"].as_array().context("a thread without turns")?;
        let turn = |turn: &Value| StoredTurn {
            id: turn["id"].as_str().unwrap_or_default().to_owned(),
            status: turn["status"].as_str().unwrap_or_default().to_owned(),
            items: turn["items"].as_array().into_iter().flatten().filter_map(Label::of).collect(),
        };
        Ok(Self { id, turns: turns.iter().map(turn).collect() })
    }

    pub fn has_ended(&self) -> bool {
        self.turns.iter().all(|turn| turn.status != "inProgress")
    }

    /// All items, in order.
    pub fn items(&self) -> Vec<&Label> {
        self.turns.iter().flat_map(|turn| &turn.items).collect()
    }
}

/// The items of some turns, in order.
pub fn labels(turns: &Value) -> Vec<Label> {
    let turns = turns.as_array().into_iter().flatten();
    turns.flat_map(|turn| turn["items"].as_array().into_iter().flatten()).filter_map(Label::of).collect()
}

/// Notes every owner of a thread, and every record that is appended under another epoch than that of the lease.
const WATCH: &str = "
CREATE SCHEMA chaos;
CREATE TABLE chaos.owner (thread_id uuid, epoch bigint, session uuid, PRIMARY KEY (thread_id, epoch, session));
CREATE TABLE chaos.stray (thread_id uuid, seq bigint, epoch bigint, lease bigint);
CREATE SEQUENCE chaos.appends;
CREATE FUNCTION chaos.note_owner() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    IF NEW.session IS NOT NULL THEN
        INSERT INTO chaos.owner VALUES (NEW.thread_id, NEW.epoch, NEW.session) ON CONFLICT DO NOTHING;
    END IF;
    RETURN NULL;
END $$;
CREATE FUNCTION chaos.note_stray() RETURNS trigger LANGUAGE plpgsql AS $$ DECLARE current bigint; BEGIN
    SELECT epoch INTO current FROM loomd.lease WHERE thread_id = NEW.thread_id;
    IF current IS DISTINCT FROM NEW.epoch THEN
        INSERT INTO chaos.stray VALUES (NEW.thread_id, NEW.seq, NEW.epoch, current);
    END IF;
    RETURN NULL;
END $$;
CREATE FUNCTION chaos.count_append() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    PERFORM nextval('chaos.appends');
    RETURN NULL;
END $$;
CREATE TRIGGER note_owner AFTER INSERT OR UPDATE ON loomd.lease FOR EACH ROW EXECUTE FUNCTION chaos.note_owner();
CREATE TRIGGER note_stray AFTER INSERT ON loomd.event FOR EACH ROW EXECUTE FUNCTION chaos.note_stray();
CREATE TRIGGER count_append AFTER INSERT ON loomd.event FOR EACH STATEMENT EXECUTE FUNCTION chaos.count_append();
";

/// Questions whose answers are violations: a thread, and what is wrong with it.
const QUESTIONS: [(&str, &str); 6] = [
    (
        "one epoch belongs to several sessions",
        "SELECT thread_id, 'epoch ' || epoch || ': ' || count(*) FROM chaos.owner GROUP BY thread_id, epoch HAVING count(*) > 1",
    ),
    (
        "an epoch is followed by a smaller one",
        "SELECT thread_id, 'record ' || seq FROM (SELECT thread_id, seq, epoch, lag(epoch) OVER \
         (PARTITION BY thread_id ORDER BY seq) AS before FROM loomd.event) AS e WHERE epoch < before",
    ),
    ("a record was appended past the lease", "SELECT thread_id, 'record ' || seq FROM chaos.stray"),
    (
        "a record has an epoch that nobody owned",
        "SELECT DISTINCT thread_id, 'epoch ' || epoch FROM loomd.event e WHERE NOT EXISTS \
         (SELECT 1 FROM chaos.owner o WHERE o.thread_id = e.thread_id AND o.epoch = e.epoch)",
    ),
    (
        "records are missing",
        "SELECT thread_id, count(*) || ' of ' || max(seq) + 1 FROM loomd.event GROUP BY thread_id HAVING count(*) <> max(seq) + 1",
    ),
    (
        "the end of a thread is not behind its last record",
        "SELECT t.id, t.end_seq || ' for ' || count(e.seq) FROM loomd.thread t LEFT JOIN loomd.event e ON e.thread_id = t.id \
         GROUP BY t.id, t.end_seq HAVING t.end_seq <> count(e.seq)",
    ),
];

/// Watches the tables from now on.
pub fn watch(cluster: &Cluster) {
    cluster.sql(WATCH);
}

/// Statements that have appended records so far.
pub fn appends(cluster: &Cluster) -> u64 {
    cluster.sql("SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM chaos.appends").parse().unwrap_or_default()
}

/// Whether the nodes keep threads in the database at all.
pub fn records(cluster: &Cluster) -> u64 {
    cluster.sql("SELECT count(*) FROM loomd.event").parse().unwrap_or_default()
}

/// What is wrong in the tables: the thread, and why.
pub fn violations(cluster: &Cluster) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for (what, question) in QUESTIONS {
        for line in cluster.sql(question).lines() {
            let (thread, detail) = line.split_once('|').unwrap_or((line, ""));
            found.push((thread.to_owned(), format!("{what}: {detail}")));
        }
    }
    found
}
