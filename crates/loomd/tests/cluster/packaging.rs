//! The commands in packaging/ for several nodes, with the paths and addresses of the test in place of theirs.

use std::path::{Path, PathBuf};
use std::process::Command;

use loomd_testkit::{Home, Launch, Postgres};
use serde_json::json;

use crate::common::LOOMD;

fn packaging(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging").join(file)
}

/// Makes the secrets as compose.yaml needs them.
fn secrets(folder: &Path) {
    let made = Command::new(packaging("compose/secrets")).arg(folder).status().expect("a shell");
    assert!(made.success());
    // The containers run as another user; this process need not be root.
    let own = Command::new("chown").arg("-R").arg(rustix::process::geteuid().as_raw().to_string()).arg(folder).status();
    assert!(own.is_ok_and(|status| status.success()));
}

/// The arguments of the program in `command` of each node of compose.yaml.
fn of_compose() -> Vec<Vec<String>> {
    let text = std::fs::read_to_string(packaging("compose/compose.yaml")).unwrap();
    let commands = text.split("    command: ").skip(1);
    commands.map(|rest| serde_json::Deserializer::from_str(rest).into_iter().next().unwrap().unwrap()).collect()
}

/// The arguments of the program in `ExecStart` of the unit.
fn of_systemd() -> Vec<String> {
    let text = std::fs::read_to_string(packaging("systemd/loomd-node.service")).unwrap();
    let command = text.lines().find_map(|line| line.strip_prefix("ExecStart=")).unwrap();
    command.replace("${LOOMD_LISTEN}", "0.0.0.0:4500").split(' ').skip(1).map(str::to_owned).collect()
}

/// Starts the program with these arguments and takes a client's token through its door.
async fn try_command(arguments: Vec<String>, store: &str, folder: &Path) {
    let mut words = Vec::new();
    let mut arguments = arguments.into_iter();
    while let Some(word) = arguments.next() {
        match word.as_str() {
            // Added with the address of the test.
            "--listen" => assert_eq!(arguments.next().as_deref(), Some("ws://0.0.0.0:4500")),
            // Not reached here.
            "--node-url" => {
                arguments.next().unwrap().parse::<tokio_tungstenite::tungstenite::http::Uri>().unwrap();
                words.extend(["--node-url".to_owned(), "ws://127.0.0.1:9".to_owned()]);
            }
            _ => {
                let name = word.strip_prefix("/run/secrets/").or(word.strip_prefix("/etc/loomd/"));
                words.push(name.map_or(word.clone(), |name| folder.join(name).display().to_string()));
            }
        }
    }
    let home = Home::empty();
    let server = Launch::new(LOOMD).args(words).env("LOOMD_STORE", store).websocket(&home).await;
    assert_eq!(server.upgrade("/", &[]).await.status, 401, "without the token");
    let token = std::fs::read_to_string(folder.join("client-token")).unwrap();
    let client = server.connect_to("/", &[("Authorization", &format!("Bearer {token}"))]).await;
    client.initialize().await;
    client.request("thread/list", json!({})).await.expect("the store answers");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_commands_of_the_compose_file_and_of_the_unit_start_nodes() {
    let Some(postgres) = Postgres::shared() else { return };
    let store = postgres.url(&postgres.create_database());
    let home = Home::empty();
    let folder = home.work().join("secrets");
    secrets(&folder);
    let commands = of_compose();
    assert_eq!(commands.len(), 2);
    for arguments in commands.into_iter().chain([of_systemd()]) {
        try_command(arguments, &store, &folder).await;
    }
}
