//! A read-only home: reading works, and every request that must write is refused.

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use loomd_testkit::{Home, Launch, Server};
use serde_json::{Value, json};

use crate::common::{LOOMD, initialized};

const ID: &str = "54cbd9a4-eb27-4019-a111-baa1c7c1e4e6";
const ROLLOUT: &str = "sessions/2025/03/04/rollout-2025-03-04T05-06-07-54cbd9a4-eb27-4019-a111-baa1c7c1e4e6.jsonl";
const LINES: &str = r#"{"timestamp":"2025-03-04T05:06:07.000Z","type":"session_meta","payload":{"id":"54cbd9a4-eb27-4019-a111-baa1c7c1e4e6","timestamp":"2025-03-04T05:06:07.000Z","cwd":"/","originator":"fixture","cli_version":"0.118.0","source":"cli"}}
{"timestamp":"2025-03-04T05:06:07.000Z","type":"event_msg","payload":{"type":"task_started","turn_id":"t1"}}
{"timestamp":"2025-03-04T05:06:07.000Z","type":"event_msg","payload":{"type":"user_message","message":"hello"}}
{"timestamp":"2025-03-04T05:06:07.000Z","type":"event_msg","payload":{"type":"agent_message","message":"hi"}}
{"timestamp":"2025-03-04T05:06:07.000Z","type":"event_msg","payload":{"type":"task_complete","turn_id":"t1"}}
"#;

#[tokio::test]
async fn a_read_only_home_can_be_read_and_stays_unchanged() {
    for indexed in [false, true] {
        let home = Home::empty();
        let path = home.path().join(ROLLOUT);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, LINES).unwrap();
        if indexed {
            let server = initialized(&home).await;
            assert_eq!(listed(&server).await, [ID]);
        }
        let sealed = ReadOnlyHome::new(&home);
        let server = sealed.launch().stdio(&home);
        server.initialize().await;
        look(&server).await;
        refuse(&server).await;
        look(&server).await;
        drop(server);
        sealed.open();
    }
}

async fn look(server: &Server) {
    assert_eq!(listed(server).await, [ID]);
    let read = server.request("thread/read", json!({ "threadId": ID, "includeTurns": true })).await.expect("a thread");
    let items: Vec<&Value> = read["thread"]["turns"][0]["items"].as_array().unwrap().iter().collect();
    assert_eq!((items.len(), &items[1]["text"]), (2, &json!("hi")));
    server.request("thread/resume", json!({ "threadId": ID })).await.expect("loaded");
    server.request("thread/unsubscribe", json!({ "threadId": ID })).await.expect("left");
    server.notification("thread/closed").await;
}

async fn listed(server: &Server) -> Vec<String> {
    let list = server.request("thread/list", json!({ "modelProviders": [] })).await.expect("a list");
    list["data"].as_array().unwrap().iter().map(|row| row["id"].as_str().unwrap().to_owned()).collect()
}

/// Every request that must write fails with the reason and changes nothing.
async fn refuse(server: &Server) {
    let history = json!([{ "type": "message", "role": "user", "content": [{ "type": "input_text", "text": "x" }] }]);
    for (method, params) in [
        ("thread/name/set", json!({ "threadId": ID, "name": "new" })),
        ("thread/metadata/update", json!({ "threadId": ID, "gitInfo": { "branch": "main" } })),
        ("thread/fork", json!({ "threadId": ID })),
        ("thread/resume", json!({ "threadId": "", "history": history })),
        ("thread/archive", json!({ "threadId": ID })),
        ("thread/delete", json!({ "threadId": ID })),
    ] {
        let error = server.request(method, params).await.expect_err(method);
        assert!(error.message.contains("Permission denied"), "{method}: {error:?}");
    }
}

/// A home without write permission for anyone. It has to be reopened to be removed.
struct ReadOnlyHome {
    root: PathBuf,
    before: BTreeMap<PathBuf, Vec<u8>>,
    /// Root may write anywhere: then the server runs as `nobody`, from a copy that `nobody` may execute.
    program: Option<(tempfile::TempDir, PathBuf)>,
}

impl ReadOnlyHome {
    fn new(home: &Home) -> Self {
        let program = rustix::process::geteuid().is_root().then(|| {
            let folder = tempfile::tempdir().unwrap();
            fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
            let copy = folder.path().join("loomd");
            fs::copy(LOOMD, &copy).unwrap();
            (folder, copy)
        });
        let root = home.path();
        if let Some(above) = root.parent() {
            fs::set_permissions(above, Permissions::from_mode(0o755)).unwrap();
        }
        let before = files(&root);
        set_modes(&root, 0o555, 0o444);
        Self { root, before, program }
    }

    fn launch(&self) -> Launch {
        match &self.program {
            None => Launch::new(LOOMD).args(["app-server"]),
            Some((_, copy)) => Launch::new("setpriv")
                .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
                .args([copy.as_os_str()])
                .args(["app-server"]),
        }
    }

    fn open(self) {
        assert_eq!(files(&self.root), self.before);
        set_modes(&self.root, 0o755, 0o644);
    }
}

fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.insert(path.clone(), fs::read(path).unwrap());
        }
    }
    found
}

fn set_modes(path: &Path, folder: u32, file: u32) {
    if path.is_dir() {
        fs::set_permissions(path, Permissions::from_mode(0o755)).unwrap();
        for entry in fs::read_dir(path).unwrap() {
            set_modes(&entry.unwrap().path(), folder, file);
        }
        fs::set_permissions(path, Permissions::from_mode(folder)).unwrap();
    } else {
        fs::set_permissions(path, Permissions::from_mode(file)).unwrap();
    }
}
