//! Which model answers, and what is said when none can.

use loomd_testkit::model::{error, message, status};
use loomd_testkit::{Home, ScriptedModel};
use serde_json::json;
use tokio::net::TcpListener;

use super::{command, home};
use crate::common::{RunResult, output};

async fn run(home: &Home, args: &[&str]) -> RunResult {
    output(&mut command(home, args)).await
}

#[tokio::test]
async fn without_a_model_nothing_runs_and_the_error_names_what_to_do() {
    let home = Home::empty();
    for args in [
        &["run", "run `touch made`", "--sandbox", "danger-full-access"][..],
        &["run", "--model", "gpt-5", "run `touch made`"],
        &["exec", "run `touch made`"],
        &["review"],
    ] {
        let ended = run(&home, args).await;
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), ""), "{args:?}: {}", ended.stderr);
        for words in ["error: no model: ", "loomd login", "OPENAI_API_KEY", "--provider", "loomd demo"] {
            assert!(ended.stderr.contains(words), "{args:?}: no {words:?} in {}", ended.stderr);
        }
    }
    assert!(!home.work().join("made").exists());
}

#[tokio::test]
async fn the_rehearsal_answers_when_it_is_named() {
    let home = Home::empty();
    let ended = run(&home, &["run", "--provider", "rehearsal", "say hello there"]).await;
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "hello there\n"), "{}", ended.stderr);
    let home = home.with(r#"model_provider = "rehearsal""#);
    let ended = run(&home, &["run", "say hello there"]).await;
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "hello there\n"), "{}", ended.stderr);
}

#[tokio::test]
async fn the_demo_says_what_it_is_and_leaves_nothing() {
    let home = Home::empty();
    let temporary = home.path().join("tmp");
    std::fs::create_dir(&temporary).unwrap();
    let ended =
        output(command(&home, &["demo", "write", "a.txt", "with \"x\"; say done"]).env("TMPDIR", &temporary)).await;
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "done\n"), "{}", ended.stderr);
    assert!(ended.stderr.starts_with("demo: a scripted turn of the built-in rehearsal model"), "{}", ended.stderr);
    assert!(ended.stderr.contains("+ a.txt") && !ended.stderr.contains("--resume"), "{}", ended.stderr);
    assert_eq!(std::fs::read_dir(&temporary).unwrap().count(), 0);
    assert_eq!(std::fs::read_dir(home.work()).unwrap().count(), 0);
    assert_eq!(run(&home, &["threads", "list", "--all", "--json"]).await.stdout, "");
}

#[tokio::test]
async fn a_resumed_thread_keeps_its_provider_and_model_unless_told_otherwise() {
    let model = ScriptedModel::start().await;
    let home = home(&model);
    let go = |args: &[&str]| {
        let args = [&["run"], args].concat().iter().map(|arg| (*arg).to_owned()).collect::<Vec<_>>();
        let (home, model) = (&home, &model);
        async move {
            model.reply(message("Well."));
            let args: Vec<&str> = args.iter().map(String::as_str).collect();
            let ended = run(home, &args).await;
            assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "Well.\n"), "{args:?}: {}", ended.stderr);
            model.calls().pop().unwrap().body["model"].as_str().unwrap().to_owned()
        }
    };
    assert_eq!(go(&["begin", "--model", "first"]).await, "first");
    // The configuration names another provider and another model by now.
    home.write("profile.toml", "");
    let other = ["-c", "model=configured"];
    assert_eq!(go(&["--resume", "last", "go on"]).await, "first");
    assert_eq!(go(&["--resume", "last", "go on", "--model", "second"]).await, "second");
    assert_eq!(go(&["--resume", "last", "go on"]).await, "second");
    assert_eq!(go(&[&["--resume", "last", "go on"], &other[..]].concat()).await, "configured");

    let text = std::fs::read_to_string(home.path().join("config.toml")).unwrap();
    let changed = text.replace(r#"model_provider = "scripted""#, r#"model_provider = "rehearsal""#);
    assert_ne!(text, changed);
    home.write("config.toml", &changed);
    assert_eq!(go(&["--resume", "last", "say something else"]).await, "configured");
    let ended = run(&home, &["run", "--resume", "last", "--provider", "rehearsal", "say other"]).await;
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "other\n"), "{}", ended.stderr);
}

#[tokio::test]
async fn a_thread_whose_provider_cannot_be_used_is_not_resumed_with_another() {
    let model = ScriptedModel::start().await;
    model.reply(message("First."));
    let home = home(&model);
    assert_eq!(run(&home, &["run", "begin"]).await.code, Some(0));
    let (file, calls) = (home.path().join("config.toml"), model.calls().len());
    let text = std::fs::read_to_string(&file).unwrap();
    for (from, to, problem) in [
        ("scripted", "renamed", "unknown provider `scripted`"),
        ("wire_api", "env_key = \"NO_SUCH_KEY_FOR_A_TEST\"\nwire_api", "needs a key in NO_SUCH_KEY_FOR_A_TEST"),
    ] {
        home.write("config.toml", &text.replace(from, to));
        let ended = run(&home, &["run", "--resume", "last", "go on"]).await;
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), ""), "{}", ended.stderr);
        assert!(ended.stderr.contains("cannot be resumed with its provider `scripted`"), "{}", ended.stderr);
        assert!(ended.stderr.contains(problem) && ended.stderr.contains("--provider"), "{}", ended.stderr);
    }
    assert_eq!(model.calls().len(), calls);
}

#[tokio::test]
async fn an_unknown_provider_and_a_missing_key_are_named() {
    let home = Home::empty();
    for (provider, words) in [
        ("antropic", "unknown provider `antropic`; did you mean `anthropic`?"),
        ("zzz", "unknown provider `zzz`; `loomd models`"),
        ("openai", "not signed in"),
    ] {
        let ended = run(&home, &["run", "--provider", provider, "hi"]).await;
        assert_eq!(ended.code, Some(1));
        assert!(ended.stderr.starts_with("error: ") && ended.stderr.contains(words), "{}", ended.stderr);
    }
}

#[tokio::test]
async fn permanent_errors_fail_at_once_with_what_to_do() {
    let unknown = json!({ "error": { "message": "no model `m`", "type": "invalid", "code": "model_not_found" } });
    for (reply, words) in [
        (error(401, "invalid", "wrong key"), "check the key or sign in again"),
        (error(403, "invalid", "not yours"), "check the account's access to the model"),
        (error(404, "invalid", "not here"), "check `base_url` and the model's name"),
        (status(400, unknown), "unknown model: `loomd models` lists"),
    ] {
        let model = ScriptedModel::start().await;
        model.reply(reply);
        let home = home(&model).with("model_providers.scripted = { request_max_retries = 3, stream_max_retries = 3 }");
        let ended = run(&home, &["run", "go"]).await;
        assert_eq!((ended.code, ended.stdout.as_str(), model.calls().len()), (Some(1), "", 1), "{}", ended.stderr);
        let errors: Vec<_> = ended.stderr.lines().filter(|line| line.starts_with("error: ")).collect();
        assert!(matches!(errors.as_slice(), [line] if line.contains(words)), "{errors:?} in {}", ended.stderr);
        assert!(!ended.stderr.contains("trying again"), "{}", ended.stderr);
    }
}

#[tokio::test]
async fn a_refused_address_fails_at_once_and_is_named() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let model = ScriptedModel::start().await;
    let home = home(&model).with(&format!(
        "model_providers.scripted = {{ base_url = 'http://{address}', request_max_retries = 3, stream_max_retries = 3 }}"
    ));
    let ended = run(&home, &["run", "go"]).await;
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    let line = ended.stderr.lines().find(|line| line.starts_with("error: ")).unwrap_or_default();
    assert!(line.contains(&address.to_string()) && line.contains("check that its server runs"), "{}", ended.stderr);
    assert!(!ended.stderr.contains("trying again"), "{}", ended.stderr);
}

#[tokio::test]
async fn transient_errors_are_retried_with_their_number_and_cause() {
    let model = ScriptedModel::start().await;
    model.reply(error(503, "busy", "too busy")).reply(message("At last."));
    let home = home(&model).with("model_providers.scripted.stream_max_retries = 4");
    let ended = run(&home, &["run", "go"]).await;
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "At last.\n"), "{}", ended.stderr);
    let line = ended.stderr.lines().find(|line| line.starts_with("trying again (1 of 4): ")).unwrap_or_default();
    assert!(line.contains("503") && line.contains("too busy"), "{}", ended.stderr);
}
