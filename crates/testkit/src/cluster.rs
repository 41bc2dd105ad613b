//! [`Cluster`]: several nodes of the program under test on one PostgreSQL. Each has a home of its own, and links to the
//! database and from the other nodes that a test can cut. Nodes can be killed, paused, drained and started again.

use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use loomd_protocol::InitializeCapabilities;
use parking_lot::Mutex;
use tempfile::TempDir;

use crate::{Home, Launch, Link, Postgres, ScriptedModel, Signal, WsConnection, WsServer};

/// How the nodes of a cluster are started.
pub struct Cluster {
    program: PathBuf,
    folder: TempDir,
    work: PathBuf,
    /// The database; `None` for nodes that keep their threads in files, and share nothing.
    store: Option<(Database, String)>,
    session_ttl: Duration,
    env: Vec<(String, String)>,
    nodes: Vec<Arc<ClusterNode>>,
}

/// The server of a cluster's database.
pub enum Database {
    Shared(&'static Postgres),
    /// One that is stopped and started again.
    Own(Arc<Postgres>),
}

impl Deref for Database {
    type Target = Postgres;

    fn deref(&self) -> &Postgres {
        match self {
            Self::Shared(postgres) => postgres,
            Self::Own(postgres) => postgres,
        }
    }
}

/// One node: where it keeps what is its own, and its process while it runs.
pub struct ClusterNode {
    home: Home,
    launch: Launch,
    database: Option<Link>,
    peers: Link,
    port: Mutex<Option<u16>>,
    server: tokio::sync::Mutex<Option<WsServer>>,
}

impl Cluster {
    /// A cluster without nodes. Its work folder is that of all nodes, as on a shared file system.
    pub fn new(program: impl Into<PathBuf>, postgres: Option<Database>, session_ttl: Duration) -> Self {
        let folder = TempDir::with_prefix("loomd-cluster-").expect("a temporary folder can be created");
        let root = folder.path().canonicalize().expect("a new folder has a real path");
        let work = root.join("work");
        std::fs::create_dir(&work).expect("a folder can be created in a new folder");
        write_token(&root.join("token"), "of-the-cluster-0123456789abcdef0123456789abcdef");
        let store = postgres.map(|postgres| {
            let database = postgres.create_database();
            (postgres, database)
        });
        Self { program: program.into(), folder, work, store, session_ttl, env: Vec::new(), nodes: Vec::new() }
    }

    /// Sets a variable of the environment of all nodes that are added from now on.
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.env.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The folder that the threads of all nodes work in.
    pub fn work(&self) -> &Path {
        &self.work
    }

    pub fn nodes(&self) -> &[Arc<ClusterNode>] {
        &self.nodes
    }

    pub fn session_ttl(&self) -> Duration {
        self.session_ttl
    }

    /// Runs statements in the database of the nodes. Blocks.
    pub fn sql(&self, statements: &str) -> String {
        let (postgres, database) = self.store.as_ref().expect("a cluster with a database");
        postgres.sql(database, statements)
    }

    /// The URL of the database, past all links.
    pub fn store_url(&self) -> Option<String> {
        self.store.as_ref().map(|(postgres, database)| postgres.url(database))
    }

    /// Adds a node with the shared token, and starts it. `config` is merged into that of [`Home::new`].
    pub async fn add(&mut self, model: &ScriptedModel, config: &str) -> Arc<ClusterNode> {
        let token = self.folder.path().join("token");
        self.add_with(model, config, &token).await
    }

    /// Like [`add`](Self::add), with a token of the node's own.
    pub async fn add_with_token(&mut self, model: &ScriptedModel, token: &str) -> Arc<ClusterNode> {
        let path = self.folder.path().join(format!("token-{}", self.nodes.len()));
        write_token(&path, token);
        self.add_with(model, "", &path).await
    }

    async fn add_with(&mut self, model: &ScriptedModel, config: &str, token: &Path) -> Arc<ClusterNode> {
        let home = Home::new(model)
            .with("features.shell_snapshot = false\nsandbox_mode = \"danger-full-access\"\n")
            .with(config);
        let peers = Link::tcp().await;
        let mut launch = self.wrapped();
        let mut database = None;
        if let Some(store) = self.store_url() {
            let folder = self.folder.path().join(format!("db{}", self.nodes.len()));
            std::fs::create_dir(&folder).expect("a folder can be created in a new folder");
            database = Some(Link::unix(&folder.join(".s.PGSQL.5432"), &socket_of(&store)));
            let name = &self.store.as_ref().expect("a database").1;
            let url = format!("postgres://postgres@/{name}?host={}&port=5432", folder.display());
            launch = launch.args(["--store".to_owned(), url]);
            launch = launch.args(["--node-url".to_owned(), format!("ws://127.0.0.1:{}", peers.port())]);
            launch = launch.args(["--node-token-file".as_ref(), token.as_os_str()]);
        }
        let launch = launch.env("LOOMD_SESSION_TTL_MS", self.session_ttl.as_millis().to_string());
        let launch = self.env.iter().fold(launch, |launch, (name, value)| launch.env(name, value));
        let (port, server) = (Mutex::new(None), tokio::sync::Mutex::new(None));
        let node = Arc::new(ClusterNode { home, launch, database, peers, port, server });
        node.start().await.unwrap_or_else(|reason| panic!("a node does not start: {reason}"));
        self.nodes.push(Arc::clone(&node));
        node
    }

    /// The program, ended by the kernel when the thread that started it ends, where there is `setpriv`.
    fn wrapped(&self) -> Launch {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let launch = if std::env::split_paths(&path).any(|folder| folder.join("setpriv").is_file()) {
            Launch::new("setpriv").args(["--pdeathsig", "KILL", "--"]).args([&self.program])
        } else {
            Launch::new(&self.program)
        };
        launch.args(["app-server"]).cwd(&self.work)
    }
}

impl ClusterNode {
    pub fn home(&self) -> &Home {
        &self.home
    }

    /// The link from the node to the database.
    pub fn database(&self) -> &Link {
        self.database.as_ref().expect("a node with a database")
    }

    /// The link from the other nodes to this one.
    pub fn peers(&self) -> &Link {
        &self.peers
    }

    /// The port for clients, while the node runs.
    pub fn port(&self) -> Option<u16> {
        *self.port.lock()
    }

    /// The id of the process, while it runs.
    pub async fn pid(&self) -> Option<u32> {
        self.server.lock().await.as_ref().map(|server| server.pid())
    }

    /// Starts the node, and waits until it listens.
    pub async fn start(&self) -> Result<(), String> {
        let mut server = self.server.lock().await;
        assert!(server.is_none(), "the node runs");
        let started = self.launch.try_listen(&self.home, "ws://127.0.0.1:0").await?;
        self.peers.lead_to(started.port());
        *self.port.lock() = Some(started.port());
        *server = Some(started);
        Ok(())
    }

    /// Sends a signal to the node, if it runs.
    pub async fn signal(&self, signal: Signal) {
        if let Some(server) = &*self.server.lock().await {
            server.signal(signal);
        }
    }

    /// Kills the node and waits for its end. Returns what it wrote to stderr.
    pub async fn kill(&self) -> String {
        self.end_by(Signal::KILL).await
    }

    /// Waits for the end of a node that was sent SIGTERM. Returns what it wrote to stderr.
    pub async fn drained(&self) -> String {
        self.end_by(Signal::TERM).await
    }

    async fn end_by(&self, signal: Signal) -> String {
        let Some(mut server) = self.server.lock().await.take() else { return String::new() };
        server.signal(signal);
        *self.port.lock() = None;
        server.wait_exit().await;
        server.stderr().text()
    }

    /// What the node has written to stderr since it was started.
    pub async fn stderr(&self) -> String {
        self.server.lock().await.as_ref().map_or_else(String::new, |server| server.stderr().text())
    }

    /// A client of this node, after the handshake, with event ids.
    pub async fn connect(&self) -> WsConnection {
        let connection = self.server.lock().await.as_ref().expect("a node that runs").connect().await;
        let capabilities = InitializeCapabilities { experimental_api: true, event_ids: true, ..Default::default() };
        connection.initialize_with(capabilities).await;
        connection
    }
}

/// The unix socket that a URL of [`Postgres::url`] names.
fn socket_of(url: &str) -> PathBuf {
    let value = |name: &str| {
        let query = url.split_once('?').map_or("", |(_, query)| query);
        query
            .split('&')
            .find_map(|part| part.strip_prefix(name))
            .unwrap_or_else(|| panic!("no {name} in {url}"))
            .to_owned()
    };
    PathBuf::from(value("host=")).join(format!(".s.PGSQL.{}", value("port=")))
}

/// Writes a secret that nobody else can read.
fn write_token(path: &Path, token: &str) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::write(path, token).expect("a token can be written");
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).expect("a token can be made private");
}
