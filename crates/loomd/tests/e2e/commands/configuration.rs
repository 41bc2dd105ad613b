//! `loomd config`, `trust`, `login`, `logout`, `whoami`, `completions` and `man`; reports of unknown keys.

use std::process::Stdio;

use loomd_testkit::model::message;
use loomd_testkit::{Home, ScriptedModel};
use tokio::io::AsyncWriteExt;

use super::{command, home};
use crate::common::{RunResult, in_time, output};

async fn loomd(home: &Home, args: &[&str]) -> RunResult {
    output(&mut command(home, args)).await
}

/// Must succeed; returns its stdout.
async fn done(home: &Home, args: &[&str]) -> String {
    let ended = loomd(home, args).await;
    assert_eq!(ended.code, Some(0), "{args:?}: {}", ended.stderr);
    ended.stdout
}

fn config(home: &Home) -> String {
    std::fs::read_to_string(home.path().join("config.toml")).unwrap()
}

#[tokio::test]
async fn values_are_set_read_and_removed() {
    let home = Home::empty();
    let file = home.path().join("config.toml");
    assert_eq!(done(&home, &["config", "path"]).await, format!("{}\n", file.display()));
    home.write("config.toml", "# mine\nmodel = \"a\" # kept\n");
    done(&home, &["config", "set", "model", "gpt-5"]).await;
    done(&home, &["config", "set", "loomd.limits.processes", "100"]).await;
    done(&home, &["config", "set", "notify", r#"["a", "b"]"#]).await;
    assert!(config(&home).starts_with("# mine\nmodel = \"gpt-5\" # kept\n"), "{}", config(&home));
    assert_eq!(done(&home, &["config", "get", "model"]).await, "gpt-5\n");
    assert_eq!(done(&home, &["config", "get", "notify", "--json"]).await, "[\n  \"a\",\n  \"b\"\n]\n");
    assert_eq!(done(&home, &["config", "get", "loomd.limits"]).await, "processes = 100\n");
    let origin = done(&home, &["config", "get", "model", "--origin"]).await;
    assert_eq!(origin, format!("gpt-5\n# {}\n", file.display()));
    assert_eq!(done(&home, &["config", "-c", "model=flag", "get", "model"]).await, "flag\n");
    done(&home, &["config", "unset", "model"]).await;
    let gone = loomd(&home, &["config", "get", "model"]).await;
    assert_eq!((gone.code, gone.stdout.as_str()), (Some(1), ""));
    assert!(gone.stderr.starts_with("error: `model` is not set"), "{}", gone.stderr);
    assert_eq!(loomd(&home, &["config", "unset", "model"]).await.code, Some(1));
}

#[tokio::test]
async fn an_invalid_value_or_key_is_not_written() {
    let home = Home::empty();
    home.write("config.toml", "model = \"a\"\n");
    for (args, code, words) in [
        (["modle", "x"], 2, "unknown key `modle`; did you mean `model`?"),
        (["loomd.recrod", "x"], 2, "did you mean `loomd.record`?"),
        (["approval_policy", "bogus"], 1, "unknown variant `bogus`"),
        (["model_provider", "bogus"], 1, "bogus"),
    ] {
        let ended = loomd(&home, &[&["config", "set"], &args[..]].concat()).await;
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(code), ""), "{args:?}: {}", ended.stderr);
        assert!(ended.stderr.starts_with("error: ") && ended.stderr.contains(words), "{args:?}: {}", ended.stderr);
    }
    assert_eq!(config(&home), "model = \"a\"\n");
}

#[tokio::test]
async fn the_file_is_checked_after_an_edit() {
    let home = Home::empty();
    for (text, code, words) in [
        ("model = 5", 1, "config.toml:1:9: "),
        ("modle = 'x'", 0, "unknown key `modle`; did you mean `model`?"),
        ("model = 'x'", 0, ""),
    ] {
        let editor = home.write("editor.sh", &format!("#!/bin/sh\nprintf %s \"{text}\" > \"$1\"\n"));
        let mut edit = command(&home, &["config", "edit"]);
        let ended = output(edit.env("VISUAL", format!("sh {}", editor.display()))).await;
        assert_eq!(ended.code, Some(code), "{text}: {}", ended.stderr);
        assert!(ended.stderr.contains(words) && words.is_empty() == ended.stderr.is_empty(), "{}", ended.stderr);
    }
    let ended = output(command(&home, &["config", "edit"]).env("VISUAL", "no-such-editor-for-a-test")).await;
    assert_eq!(ended.code, Some(1));
    assert!(ended.stderr.contains("cannot start the editor `no-such-editor-for-a-test`"), "{}", ended.stderr);
}

#[tokio::test]
async fn unknown_keys_are_reported_before_a_turn() {
    let model = ScriptedModel::start().await;
    model.reply(message("Well."));
    let home = home(&model).with("[loomd]\nrecrod = 'x'\n[tui]\nanything = 1");
    let ended = loomd(&home, &["run", "hi", "-c", "sandbx_mode=1"]).await;
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "Well.\n"), "{}", ended.stderr);
    let warnings: Vec<_> = ended.stderr.lines().filter(|line| line.starts_with("warning: ")).collect();
    let file = home.path().join("config.toml");
    assert_eq!(
        warnings,
        [
            format!("warning: {}: unknown key `loomd.recrod`; did you mean `loomd.record`?", file.display()),
            "warning: -c: unknown key `sandbx_mode`; did you mean `sandbox_mode`?".to_owned(),
        ]
    );
    let report = loomd(&home, &["doctor", "--offline"]).await.stdout;
    assert!(report.contains("did you mean `loomd.record`?"), "{report}");
}

#[tokio::test]
async fn a_project_is_trusted_as_a_whole() {
    let model = ScriptedModel::start().await;
    let home = home(&model);
    let project = home.work().join("project");
    std::fs::create_dir_all(project.join("sub")).unwrap();
    std::fs::create_dir(project.join(".git")).unwrap();
    let (root, sub) = (project.to_str().unwrap(), project.join("sub"));
    let sub = sub.to_str().unwrap();
    assert_eq!(done(&home, &["trust", sub, "--show"]).await, format!("{root}: no trust level\n"));
    assert!(done(&home, &["trust", sub]).await.starts_with(&format!("{root} is trusted (")));
    assert_eq!(done(&home, &["trust", root, "--show"]).await, format!("{root}: trusted\n"));
    done(&home, &["trust", root, "--untrusted"]).await;
    assert_eq!(done(&home, &["trust", sub, "--show"]).await, format!("{root}: untrusted\n"));
    done(&home, &["trust", root, "--forget"]).await;
    assert_eq!(done(&home, &["trust", sub, "--show"]).await, format!("{root}: no trust level\n"));
}

#[tokio::test]
async fn defaults_and_how_to_trust_are_stated() {
    let home = Home::empty().with(r#"model_provider = "rehearsal""#);
    let report = loomd(&home, &["doctor", "--offline"]).await.stdout;
    for words in ["`loomd trust` trusts it", "sandbox: read-only, the default of", "approvals: on-request, the default"]
    {
        assert!(report.contains(words), "no {words:?} in {report}");
    }
    done(&home, &["trust"]).await;
    let report = loomd(&home, &["doctor", "--offline"]).await.stdout;
    assert!(report.contains("sandbox: workspace-write, the default of"), "{report}");
    let help = done(&home, &["run", "--help"]).await;
    for words in ["workspace-write", "on-request", "loomd trust", "Exit status"] {
        assert!(help.contains(words), "no {words:?} in {help}");
    }
}

#[tokio::test]
async fn a_key_on_stdin_signs_in() {
    // Also when another provider is configured.
    let home = Home::empty().with("model_provider = \"rehearsal\"");
    let nobody = loomd(&home, &["whoami"]).await;
    assert_eq!((nobody.code, nobody.stdout.as_str()), (Some(1), "not signed in; run `loomd login`\n"));
    for (key, code) in [("\n", 2), ("sk-secret\n", 0)] {
        let mut login = command(&home, &["login", "--with-api-key"]);
        let mut child = login.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(key.as_bytes()).await.unwrap();
        let ended = in_time("the end of the program", child.wait_with_output()).await.unwrap();
        assert_eq!(ended.status.code(), Some(code), "{}", String::from_utf8_lossy(&ended.stderr));
        assert!(!String::from_utf8_lossy(&ended.stdout).contains("secret"));
    }
    assert_eq!(done(&home, &["whoami"]).await, "API key\n");
    let json: serde_json::Value = serde_json::from_str(&done(&home, &["whoami", "--json"]).await).unwrap();
    assert_eq!(json["account"]["type"], "apiKey");
    assert_eq!(done(&home, &["logout"]).await, "signed out\n");
    assert_eq!(loomd(&home, &["whoami"]).await.code, Some(1));
    assert_eq!(done(&home, &["logout"]).await, "you were not signed in\n");
}

#[tokio::test]
async fn completions_and_man_pages_are_generated() {
    let home = Home::empty();
    for shell in ["bash", "zsh", "fish"] {
        let script = done(&home, &["completions", shell]).await;
        assert!(script.contains("loomd") && script.contains("whoami"), "{shell}: {script}");
    }
    let folder = home.path().join("man");
    done(&home, &["man", folder.to_str().unwrap()]).await;
    for (page, words) in [("loomd.1", "app\\-server"), ("loomd-run.1", "\\-\\-attach"), ("loomd-trust.1", "trust")] {
        let text = std::fs::read_to_string(folder.join(page)).unwrap();
        assert!(text.contains(words), "no {words:?} in {page}");
    }
}
