//! The connections to the database: made when first needed, checked, migrated, pooled.

use std::time::Duration;

use deadpool_postgres::{
    ClientWrapper, Hook, HookError, Manager, ManagerConfig, Object, Pool, RecyclingMethod, Runtime,
};
use loomd_store::{Failure, NodeRow, PoolFigures, Result};
use tokio::sync::OnceCell;

use crate::error::{Place, check_schema, check_version};
use crate::schema::{MIGRATION_LOCK, MIGRATIONS, VERSION};
use crate::tls::Tls;
use crate::{Address, Options, nodes};

/// How long a statement waits for a free connection, and for a new one.
const WAIT: Duration = Duration::from_secs(10);

/// The pool of one store.
pub(crate) struct Database {
    pub address: Address,
    pub place: Place,
    connections: usize,
    /// How long a database that is away is waited for.
    pub patience: Duration,
    tls: OnceCell<Tls>,
    /// Set once the database was checked and has the tables.
    pool: OnceCell<Pool>,
}

/// What `loomd store check` shows of a database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreCheck {
    /// The server's version, as it names it.
    pub server: String,
    /// The version of the tables; 0 when there are none.
    pub schema: i32,
    pub threads: i64,
    pub events: i64,
    /// Threads whose records have a gap, or do not end where the thread ends.
    pub broken: i64,
    /// Records whose blob is missing.
    pub missing_blobs: i64,
}

/// What `loomd doctor` shows of a database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreProbe {
    /// The server's version, as it names it.
    pub server: String,
    /// The version of the tables; 0 when there are none.
    pub schema: i32,
    /// What the user may not do and has to, if there is anything.
    pub lacking: Option<String>,
    /// Empty when rights are lacking.
    pub nodes: Vec<NodeRow>,
}

/// Sets a new connection up. Compiling a query takes longer than any of ours, and the server does so when it
/// overestimates their rows.
async fn prepare(client: &mut ClientWrapper) -> std::result::Result<(), HookError> {
    let set = tokio::time::timeout(WAIT, client.batch_execute("SET jit = off")).await;
    set.map_err(|_| HookError::message("the server does not answer"))?.map_err(HookError::Backend)
}

impl Database {
    pub fn new(options: &Options) -> Self {
        Self {
            place: Place::new(&options.address),
            address: options.address.clone(),
            connections: options.connections.max(2),
            patience: options.patience,
            tls: OnceCell::new(),
            pool: OnceCell::new(),
        }
    }

    /// A connection out of the pool. The first caller connects, checks the server and applies migrations.
    pub async fn client(&self) -> Result<Object> {
        let pool = self.pool.get_or_try_init(|| self.open()).await?;
        pool.get().await.map_err(|error| self.place.pool(&error))
    }

    /// A connection out of the pool. Waits for a database that was reached before and is away: for operations that may
    /// not be repeated once they were sent.
    pub async fn waiting_client(&self) -> Result<Object> {
        self.retry(|| self.client()).await
    }

    /// Whether the database was ever reached.
    pub fn was_reached(&self) -> bool {
        self.pool.initialized()
    }

    pub fn pool_figures(&self) -> PoolFigures {
        let Some(pool) = self.pool.get() else { return PoolFigures { limit: self.connections, ..Default::default() } };
        let status = pool.status();
        PoolFigures { connections: status.size, limit: status.max_size, waiting: status.waiting }
    }

    /// A connection of its own, outside of the pool.
    pub async fn connect(
        &self,
    ) -> Result<(
        tokio_postgres::Client,
        tokio_postgres::Connection<tokio_postgres::Socket, crate::tls::Stream<tokio_postgres::Socket>>,
    )> {
        // The tables are there when this returns.
        drop(self.client().await?);
        let tls = self.tls().await?;
        let connecting = tokio::time::timeout(WAIT, self.address.config.connect(tls));
        let connected =
            connecting.await.map_err(|_| self.place.error(Failure::Unreachable, "the server does not answer"))?;
        connected.map_err(|error| self.place.query(&error))
    }

    async fn open(&self) -> Result<Pool> {
        let pool = self.pool().await?;
        let mut client = pool.get().await.map_err(|error| self.place.pool(&error))?;
        self.check_server(&client).await?;
        self.migrate(&mut client).await?;
        drop(client);
        Ok(pool)
    }

    async fn tls(&self) -> Result<Tls> {
        let tls = self.tls.get_or_try_init(|| async {
            let address = self.address.clone();
            let made = tokio::task::spawn_blocking(move || Tls::new(&address)).await;
            let made = made.map_err(|_| loomd_store::Error::Stopped)?;
            made.map_err(|reason| self.place.error(Failure::Other, reason))
        });
        tls.await.cloned()
    }

    async fn pool(&self) -> Result<Pool> {
        let config = ManagerConfig { recycling_method: RecyclingMethod::Fast };
        let manager = Manager::from_config(self.address.config.clone(), self.tls().await?, config);
        let builder = Pool::builder(manager)
            .max_size(self.connections)
            .wait_timeout(Some(WAIT))
            .create_timeout(Some(WAIT))
            .recycle_timeout(Some(WAIT))
            .post_create(Hook::async_fn(|client, _| Box::pin(prepare(client))))
            .runtime(Runtime::Tokio1);
        builder.build().map_err(|error| self.place.error(Failure::Other, error.to_string()))
    }

    async fn check_server(&self, client: &Object) -> Result<String> {
        let query = "SELECT current_setting('server_version_num')::int, current_setting('server_version'), \
                     current_setting('server_encoding')";
        let row = client.query_one(query, &[]).await.map_err(|error| self.place.query(&error))?;
        let (number, name, encoding): (i32, String, String) = (row.get(0), row.get(1), row.get(2));
        check_version(number, &name).map_err(|reason| self.place.error(Failure::Other, reason))?;
        if encoding != "UTF8" {
            let reason = format!("the database's encoding is {encoding}: create it with ENCODING 'UTF8'");
            return Err(self.place.error(Failure::Other, reason));
        }
        Ok(name)
    }

    /// The version of the tables; 0 when there are none.
    async fn schema_version(&self, client: &impl deadpool_postgres::GenericClient) -> Result<i32> {
        let failed = |error: tokio_postgres::Error| self.place.query(&error);
        let exists = client.query_one("SELECT to_regclass('loomd.schema_version') IS NOT NULL", &[]).await;
        if !exists.map_err(failed)?.get::<_, bool>(0) {
            return Ok(0);
        }
        let row = client.query_one("SELECT coalesce(max(version), 0) FROM loomd.schema_version", &[]).await;
        Ok(row.map_err(failed)?.get(0))
    }

    /// Applies what is missing, all or nothing. Nodes that start at once wait for each other.
    async fn migrate(&self, client: &mut Object) -> Result<()> {
        let failed = |error: tokio_postgres::Error| self.place.query(&error);
        let refused = |reason| self.place.error(Failure::Other, reason);
        let version = self.schema_version(&*client).await?;
        check_schema(version, VERSION).map_err(refused)?;
        if version == VERSION {
            return Ok(());
        }
        let transaction = client.transaction().await.map_err(failed)?;
        transaction.execute("SELECT pg_advisory_xact_lock($1)", &[&MIGRATION_LOCK]).await.map_err(failed)?;
        let version = self.schema_version(&transaction).await?;
        check_schema(version, VERSION).map_err(refused)?;
        if version == 0 {
            let schema = transaction.query_one("SELECT to_regnamespace('loomd') IS NULL", &[]).await.map_err(failed)?;
            if schema.get::<_, bool>(0) {
                transaction.batch_execute("CREATE SCHEMA loomd").await.map_err(failed)?;
            }
            let table = "CREATE TABLE loomd.schema_version (version integer PRIMARY KEY, at timestamptz NOT NULL)";
            transaction.batch_execute(table).await.map_err(failed)?;
        }
        for (number, migration) in (1..).zip(MIGRATIONS).skip(usize::try_from(version).unwrap_or(0)) {
            transaction.batch_execute(migration).await.map_err(failed)?;
            let note = "INSERT INTO loomd.schema_version (version, at) VALUES ($1, clock_timestamp())";
            let number: i32 = number;
            transaction.execute(note, &[&number]).await.map_err(failed)?;
        }
        transaction.commit().await.map_err(failed)
    }

    /// Looks at the server, the tables' version, the rights and the nodes, and changes nothing.
    pub async fn probe(&self) -> Result<StoreProbe> {
        let (_, probe) = self.look().await?;
        Ok(probe)
    }

    async fn look(&self) -> Result<(Object, StoreProbe)> {
        let pool = self.pool().await?;
        let client = pool.get().await.map_err(|error| self.place.pool(&error))?;
        let server = self.check_server(&client).await?;
        let schema = self.schema_version(&client).await?;
        check_schema(schema, VERSION).map_err(|reason| self.place.error(Failure::Other, reason))?;
        let lacking = self.lacking_rights(&client, schema).await?;
        let nodes = match schema {
            0 => Vec::new(),
            _ if lacking.is_some() => Vec::new(),
            _ => nodes::list(&client, &self.place).await?,
        };
        Ok((client, StoreProbe { server, schema, lacking, nodes }))
    }

    /// What the user may not do and has to, for people.
    async fn lacking_rights(&self, client: &Object, schema: i32) -> Result<Option<String>> {
        let failed = |error: tokio_postgres::Error| self.place.query(&error);
        let lacking = |right: String| Some(format!("user \"{}\" lacks rights: {right}", self.address.user()));
        let query = "SELECT n.oid IS NOT NULL, has_database_privilege(current_database(), 'CREATE'), \
                     coalesce(has_schema_privilege(n.oid, 'CREATE'), false) \
                     FROM (SELECT to_regnamespace('loomd')::oid AS oid) n";
        let row = client.query_one(query, &[]).await.map_err(failed)?;
        let (exists, may_create, may_change): (bool, bool, bool) = (row.get(0), row.get(1), row.get(2));
        if !exists {
            return Ok(if may_create { None } else { lacking("it may not create a schema in the database".into()) });
        }
        if schema < VERSION && !may_change {
            return Ok(lacking("it may not create tables in the schema loomd".into()));
        }
        let query = "
            SELECT r.verb || ' on ' || c.oid::regclass
            FROM pg_class c, unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE', 'USAGE']) r (verb)
            WHERE c.relnamespace = to_regnamespace('loomd') AND NOT c.relispartition AND CASE
                WHEN c.relkind = 'S' THEN r.verb = 'USAGE' AND NOT has_sequence_privilege(c.oid, r.verb)
                WHEN c.relname = 'schema_version' THEN r.verb = 'SELECT' AND NOT has_table_privilege(c.oid, r.verb)
                WHEN c.relkind IN ('r', 'p') THEN r.verb <> 'USAGE' AND NOT has_table_privilege(c.oid, r.verb)
                ELSE false END
            ORDER BY r.verb, c.relname LIMIT 1";
        let row = client.query_opt(query, &[]).await.map_err(failed)?;
        Ok(row.and_then(|row| lacking(format!("it has no {}", row.get::<_, &str>(0)))))
    }

    /// The nodes that are registered. Changes nothing: without tables there are none.
    pub async fn nodes(&self) -> Result<Vec<NodeRow>> {
        let (_, probe) = self.look().await?;
        self.allowed(&probe)?;
        Ok(probe.nodes)
    }

    fn allowed(&self, probe: &StoreProbe) -> Result<()> {
        match &probe.lacking {
            Some(lacking) => Err(self.place.error(Failure::Denied, lacking)),
            None => Ok(()),
        }
    }

    /// Checks the database without changing it.
    pub async fn check(&self) -> Result<StoreCheck> {
        let failed = |error: tokio_postgres::Error| self.place.query(&error);
        let (client, probe) = self.look().await?;
        self.allowed(&probe)?;
        let StoreProbe { server, schema, .. } = probe;
        if schema == 0 {
            return Ok(StoreCheck { server, schema, threads: 0, events: 0, broken: 0, missing_blobs: 0 });
        }
        let query = "
            SELECT (SELECT count(*) FROM loomd.thread), (SELECT count(*) FROM loomd.event),
                (SELECT count(*) FROM loomd.thread t LEFT JOIN (
                    SELECT thread_id, count(*) AS records, min(seq) AS first, max(seq) AS last
                    FROM loomd.event GROUP BY thread_id
                ) e ON e.thread_id = t.id
                WHERE coalesce(e.records, 0) <> t.end_seq OR e.first <> 0 OR e.last <> t.end_seq - 1),
                (SELECT count(*) FROM loomd.event e WHERE digest IS NOT NULL AND NOT EXISTS (
                    SELECT 1 FROM loomd.blob b WHERE b.thread_id = e.thread_id AND b.digest = e.digest))";
        let row = client.query_one(query, &[]).await.map_err(failed)?;
        Ok(StoreCheck {
            server,
            schema,
            threads: row.get(0),
            events: row.get(1),
            broken: row.get(2),
            missing_blobs: row.get(3),
        })
    }
}
