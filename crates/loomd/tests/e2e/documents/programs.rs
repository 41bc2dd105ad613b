//! The programs of `docs/examples`, and the bot in Rust, run as the documents say.

#[allow(dead_code, reason = "`main` is for people")]
#[path = "../../../../client/examples/bot.rs"]
mod bot;

use std::os::unix::fs::PermissionsExt as _;
use std::process::Stdio;

use loomd_client::Program;
use loomd_testkit::Home;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

use super::root;
use crate::common::{LOOMD, RunResult, in_time};

fn home() -> Home {
    Home::empty().with(
        r#"
        model = "rehearsal"
        model_provider = "rehearsal"
        sandbox_mode = "danger-full-access"
        "#,
    )
}

/// Runs a program of `docs/examples` with loomd as its server.
async fn python(home: &Home, program: &str, args: &[&str], input: &str) -> RunResult {
    let mut command = Command::new("python3");
    command.arg(root().join("docs/examples").join(program)).args(args).args([LOOMD, "app-server"]);
    command.current_dir(home.work()).env("CODEX_HOME", home.path()).env("HOME", home.user()).env_remove("LOOMD_HOME");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    let mut child = command.spawn().expect("python3 starts");
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(input.as_bytes()).await.unwrap();
    drop(stdin);
    let output = in_time("the end of the program", child.wait_with_output()).await.unwrap();
    RunResult {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

#[tokio::test]
async fn the_client_of_the_guide_asks_before_commands() {
    let home = home();
    let prompt = "run `touch yes.txt`; run `touch no.txt`; say All done.";
    let ran = python(&home, "approve.py", &[prompt], "y\nn\n").await;
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    assert_eq!(ran.stdout.matches("? [y/N] ").count(), 2, "{}", ran.stdout);
    assert!(ran.stdout.ends_with("All done.\ncompleted\n"), "{}", ran.stdout);
    assert!(home.work().join("yes.txt").exists() && !home.work().join("no.txt").exists());
}

#[test]
fn the_client_of_the_guide_has_40_lines() {
    let client = std::fs::read_to_string(root().join("docs/examples/approve.py")).unwrap();
    assert_eq!(client.lines().count(), 40);
}

const MESSAGES: &str = "\
ops: run `./test.sh`; run `touch made.txt`; say It is done.
dev: say hello
dev: fail with bad request
";
const ANSWERS: &str = "\
ops: It is done.
dev: hello
dev: That failed: The request is invalid.
";

/// A project whose test leaves a file.
fn project(home: &Home) {
    let script = home.work().join("test.sh");
    std::fs::write(&script, "#!/bin/sh\ntouch tested.txt\n").unwrap();
    std::fs::set_permissions(script, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// Checks what the bot has done after [`MESSAGES`]: the listed command and no other, and a thread per room.
fn check_work(home: &Home) -> String {
    assert!(home.work().join("tested.txt").exists(), "the listed command did not run");
    assert!(!home.work().join("made.txt").exists(), "a command ran without approval");
    let rooms = std::fs::read_to_string(home.work().join("rooms.json")).unwrap();
    assert_eq!(rooms.matches("ops").count() + rooms.matches("dev").count(), 2, "{rooms}");
    rooms
}

#[tokio::test]
async fn the_bot_in_python_answers_in_rooms_and_resumes_them() {
    let home = home();
    project(&home);
    let ran = python(&home, "bot.py", &[], MESSAGES).await;
    assert_eq!((ran.code, ran.stdout.as_str(), ran.stderr.as_str()), (Some(0), ANSWERS, ""));
    let rooms = check_work(&home);
    let ran = python(&home, "bot.py", &[], "dev: say hello again\n").await;
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "dev: hello again\n"), "{}", ran.stderr);
    assert_eq!(std::fs::read_to_string(home.work().join("rooms.json")).unwrap(), rooms);
}

#[tokio::test]
async fn the_bot_in_rust_answers_in_rooms_and_resumes_them() {
    let home = home();
    project(&home);
    let rooms_file = home.work().join("rooms.json");
    let ask = async |messages: &'static str| {
        let server = Program::new(LOOMD)
            .arg("app-server")
            .env("CODEX_HOME", home.path())
            .env("HOME", home.user())
            .env_remove("LOOMD_HOME")
            .cwd(home.work());
        let mut answers = Vec::new();
        let asked = bot::run(server, &rooms_file, messages.as_bytes(), &mut answers);
        in_time("the end of the bot", asked).await.unwrap();
        String::from_utf8(answers).unwrap()
    };
    assert_eq!(ask(MESSAGES).await, ANSWERS);
    let rooms = check_work(&home);
    assert_eq!(ask("dev: say hello again\n").await, "dev: hello again\n");
    let after: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(&rooms_file).unwrap()).unwrap();
    assert_eq!(after, serde_json::from_str::<serde_json::Value>(&rooms).unwrap());
}
