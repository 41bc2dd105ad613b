//! The command line: accepted and refused arguments, error texts and exit codes.

use loomd_testkit::{Home, Launch, Server, Signal};
use serde_json::{Value, json};

use crate::common::{LOOMD, exit_code, launch, loomd, output, ping, run, send, until_caught};

#[tokio::test]
async fn invalid_arguments_are_refused_with_a_reason() {
    let home = Home::empty();
    let signed = ["app-server", "--ws-auth", "signed-bearer-token", "--ws-shared-secret-file", "f"];
    let signed_skew = |skew| [signed.as_slice(), &["--ws-max-clock-skew-seconds", skew]].concat();
    let token = ["app-server", "--ws-auth", "capability-token"];
    for (args, code, words) in [
        (signed_skew("9223372036854775808"), 1, "websocket auth clock skew must fit in a signed 64-bit integer"),
        (signed_skew("18446744073709551616"), 2, "--ws-max-clock-skew-seconds"),
        (signed_skew("-1"), 2, "error: "),
        (vec!["app-server", "--ws-auth", "bogus"], 2, "invalid value 'bogus' for '--ws-auth <MODE>'"),
        ([token.as_slice(), &["--ws-token-sha256", "abc"]].concat(), 1, "must be 64 hexadecimal digits"),
        (
            [token.as_slice(), &["--ws-token-sha256", SECRET_SHA256, "--ws-token-file", "f"]].concat(),
            1,
            "exclude each other",
        ),
        (vec!["app-server", "--ws-token-sha256", SECRET_SHA256], 1, "websocket auth flags require `--ws-auth"),
        (vec!["app-server", "-c", "x"], 1, "error parsing -c overrides: Invalid override (missing '='): x"),
        (vec!["-c", "x", "app-server"], 1, "error parsing -c overrides: Invalid override (missing '='): x"),
        (vec!["app-server", "-c", "model=5"], 1, "error loading default config after config error: "),
        (vec!["app-server", "-c", "approval_policy=bogus"], 1, "error loading default config after config error: "),
        (vec!["app-server", "--enable", "no_such_feature"], 1, "Unknown feature flag: no_such_feature"),
        (vec!["app-server", "--disable", "no_such_feature"], 1, "Unknown feature flag: no_such_feature"),
        (vec!["app-server", "--stdio", "--listen", "off"], 2, "cannot be used with"),
        (vec!["app-server", "--listen", "unix://relative"], 2, "invalid unix --listen URL `unix://relative`"),
        (vec!["app-server", "no-such-subcommand"], 2, "no-such-subcommand"),
        (vec!["no-such-command"], 2, "no-such-command"),
    ] {
        let ended = run(&home, &args).await;
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(code), ""), "{args:?}: {}", ended.stderr);
        assert!(ended.stderr.contains(words), "{args:?}: expected {words:?} in {:?}", ended.stderr);
        assert!(ended.stderr.starts_with("error: "), "{args:?}: {}", ended.stderr);
    }
}

#[tokio::test]
async fn codex_home_must_be_an_existing_directory() {
    let home = Home::empty();
    let file = home.write("file", "");
    let missing = home.path().join("missing");
    for (path, words) in [(&missing, "but that path does not exist"), (&file, "but that path is not a directory")] {
        let ended = output(loomd(&home).arg("app-server").env("CODEX_HOME", path)).await;
        let expected = format!("error: CODEX_HOME points to {path:?}, {words}\n");
        assert_eq!((ended.code, ended.stdout.as_str(), ended.stderr), (Some(1), "", expected));
    }
}

#[tokio::test]
async fn the_version_names_the_release_of_the_protocol() {
    let home = Home::empty();
    let ended = run(&home, &["--version"]).await;
    let version = format!("loomd {} (protocol 0.166.0)\n", env!("CARGO_PKG_VERSION"));
    assert_eq!((ended.code, ended.stdout, ended.stderr.as_str()), (Some(0), version, ""));
    let old = output(loomd(&home).arg("-V").env("LOOMD_PROTOCOL_VERSION", "0.118.0")).await;
    assert_eq!(old.stdout, format!("loomd {} (protocol 0.118.0)\n", env!("CARGO_PKG_VERSION")));
}

#[tokio::test]
async fn under_the_name_codex_the_version_is_the_release_of_the_protocol_alone() {
    let home = Home::empty();
    let codex = home.path().join("codex");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_loomd"), &codex).unwrap();
    let ended = output(tokio::process::Command::new(&codex).arg("--version").env("CODEX_HOME", home.path())).await;
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "codex-cli 0.166.0\n"));
}

#[tokio::test]
async fn configuration_overrides_work_on_either_side_of_the_subcommand() {
    for (args, key, value) in [
        (["-s", "read-only", "-a", "untrusted", "app-server"].as_slice(), "sandbox_mode", json!("read-only")),
        (&["-s", "read-only", "-a", "untrusted", "app-server"], "approval_policy", json!("untrusted")),
        (&["-m", "5", "app-server"], "model", json!("5")),
        (&["--config", "model=before", "app-server"], "model", json!("before")),
        (&["app-server", "--config", "model=after"], "model", json!("after")),
        (&["-c", "model=before", "app-server", "-c", "model=after"], "model", json!("after")),
        (&["-m", "name", "app-server", "-c", "model=after"], "model", json!("after")),
        (&["app-server", "-c", "model=first", "-c", "model=last"], "model", json!("last")),
        (&["app-server", "-c", "model=\"in quotes\""], "model", json!("in quotes")),
        (&["app-server", "-c", "model=a=b"], "model", json!("a=b")),
        (&["app-server", "--stdio"], "model", Value::Null),
        (&["app-server", "--analytics-default-enabled"], "model", Value::Null),
    ] {
        let home = Home::empty();
        let server = Launch::new(LOOMD).args(args.iter().copied()).stdio(&home);
        assert_eq!(config(&server).await[key], value, "{args:?}");
    }
}

async fn config(server: &Server) -> Value {
    server.initialize().await;
    server.request("config/read", json!({})).await.expect("config/read succeeds")["config"].take()
}

#[tokio::test]
async fn listen_off_runs_until_a_signal() {
    for signal in [Signal::TERM, Signal::INT] {
        let home = Home::empty();
        let mut server = loomd(&home).args(["app-server", "--listen", "off"]).spawn().unwrap();
        until_caught(server.id().unwrap(), signal).await;
        send(signal, &server);
        assert_eq!(exit_code(&mut server).await, Some(0), "{signal:?}");
    }
}

/// Of the token `secret`.
const SECRET_SHA256: &str = "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b";

#[tokio::test]
async fn a_token_can_be_given_by_its_digest() {
    let home = Home::empty();
    let digest = SECRET_SHA256.to_uppercase();
    let guarded = launch().args(["--ws-auth", "capability-token", "--ws-token-sha256", &digest]);
    let server = guarded.websocket(&home).await;
    assert_eq!(server.upgrade("/", &[]).await.status, 401);
    assert_eq!(server.upgrade("/", &[("Authorization", &format!("Bearer {digest}"))]).await.status, 401);
    let client = server.connect_to("/", &[("Authorization", "Bearer secret")]).await;
    client.initialize().await;
    ping(&client).await;
}

#[tokio::test]
async fn an_unusable_secret_file_is_named_and_its_content_not_shown() {
    let home = Home::empty();
    let short = home.write("short", "only-this-short-secret");
    let listen = ["app-server", "--listen", "ws://127.0.0.1:0", "--ws-auth"];
    let signed = [listen.as_slice(), &["signed-bearer-token", "--ws-shared-secret-file", short.to_str().unwrap()]];
    let ended = run(&home, &signed.concat()).await;
    let expected =
        format!("error: signed websocket bearer secret {} must be at least 32 bytes", short.to_str().unwrap());
    assert_eq!(ended.code, Some(1));
    assert!(ended.stderr.contains(&expected), "{}", ended.stderr);
    assert!(!ended.stderr.contains("only-this-short-secret"), "{}", ended.stderr);

    let digits = "not-a-digest-but-someones-token";
    let token = [listen.as_slice(), &["capability-token", "--ws-token-sha256", digits]];
    let ended = run(&home, &token.concat()).await;
    assert_eq!(ended.code, Some(1));
    assert!(!ended.stderr.contains(digits), "{}", ended.stderr);
}
