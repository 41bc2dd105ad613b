//! Which providers get which credentials, and what a 401 leads to.

use std::sync::Arc;

use loomd_config::config_toml::{ModelProvider, ProviderAuth};
use loomd_model::{Bearer, BearerKind, BoxFuture, Credentials, ModelError};
use loomd_protocol::Secret;
use loomd_testkit::ScriptedModel;
use loomd_testkit::model::{RecordedRequest, message, unauthorized};

use super::{NO_ENV, call, config, request, session_of, texts};

/// An account with a constant token.
struct Account(Bearer);

impl Credentials for Account {
    fn bearer(&self) -> BoxFuture<'_, Result<Option<Bearer>, ModelError>> {
        Box::pin(std::future::ready(Ok(Some(self.0.clone()))))
    }

    fn recover<'a>(&'a self, _: &'a Bearer, _: u32) -> BoxFuture<'a, Result<bool, ModelError>> {
        Box::pin(std::future::ready(Ok(false)))
    }
}

fn account(token: &str, kind: BearerKind) -> Option<Arc<dyn Credentials>> {
    Some(Arc::new(Account(Bearer { token: Secret::from(token.to_owned()), kind })))
}

fn signed_in() -> Option<Arc<dyn Credentials>> {
    account("at", BearerKind::Chatgpt { account_id: Some("acct".into()) })
}

fn auth(sent: &RecordedRequest) -> (Option<&str>, Option<&str>) {
    (sent.header("authorization"), sent.header("chatgpt-account-id"))
}

#[tokio::test]
async fn the_account_is_sent_only_to_providers_with_requires_openai_auth() {
    let model = ScriptedModel::start().await;
    let asks = ModelProvider { requires_openai_auth: true, ..config(&model) };
    let token = Some(Secret::from("static".to_owned()));
    let fixed = ModelProvider { experimental_bearer_token: token, ..asks.clone() };
    let by_variable = ModelProvider { env_key: Some("KEY".into()), ..fixed.clone() };
    let env = |name: &str| (name == "KEY").then(|| "from-env".to_owned());
    for (number, (config, expected)) in [
        (config(&model), (None, None)),
        (asks, (Some("Bearer at"), Some("acct"))),
        (fixed, (Some("Bearer static"), None)),
        (by_variable, (Some("Bearer from-env"), None)),
    ]
    .into_iter()
    .enumerate()
    {
        texts(&mut session_of("scripted", &config, env, signed_in()), &request(&["hi"])).await;
        assert_eq!(auth(&model.call(number).await), expected, "{number}");
    }
}

#[tokio::test]
async fn a_missing_key_fails_without_a_request() {
    let model = ScriptedModel::start().await;
    for (instructions, words) in [
        (Some("Ask the admin.".to_owned()), "Missing environment variable: `KEY`. Ask the admin."),
        (None, "Missing environment variable: `KEY`."),
    ] {
        let config =
            ModelProvider { env_key: Some("KEY".into()), env_key_instructions: instructions, ..config(&model) };
        for env in [NO_ENV, |_: &str| Some("  ".to_owned())] {
            let (_, error) = call(&mut session_of("scripted", &config, env, None), &request(&["hi"])).await;
            let error = error.unwrap();
            assert_eq!((error.message(), error.retryable()), (words.into(), false));
        }
    }
    assert_eq!(model.calls().len(), 0);
}

#[tokio::test]
async fn openai_gets_extra_headers_and_compressed_bodies_with_a_chatgpt_sign_in() {
    let model = ScriptedModel::start().await;
    let openai = ModelProvider {
        supports_websockets: false,
        base_url: Some(model.base_url()),
        ..ModelProvider::built_in("openai").unwrap()
    };
    let env = |name: &str| match name {
        "OPENAI_ORGANIZATION" => Some("org".to_owned()),
        "OPENAI_PROJECT" => Some("proj".to_owned()),
        _ => None,
    };
    let request = request(&["hi"]);
    texts(&mut session_of("openai", &openai, env, account("sk", BearerKind::Key)), &request).await;
    texts(&mut session_of("openai", &openai, env, signed_in()), &request).await;
    let plain = model.call(0).await;
    assert_eq!(auth(&plain), (Some("Bearer sk"), None));
    for (name, value) in [("version", "0.118.0"), ("openai-organization", "org"), ("openai-project", "proj")] {
        assert_eq!(plain.header(name), Some(value), "{name}");
    }
    let compressed = model.call(1).await;
    assert_eq!((plain.header("content-encoding"), compressed.header("content-encoding")), (None, Some("zstd")));
    assert_eq!(zstd::decode_all(&*compressed.bytes).unwrap(), plain.bytes);
}

#[cfg(unix)]
#[tokio::test]
async fn an_auth_command_runs_again_once_after_a_401() {
    let model = ScriptedModel::start().await;
    let home = tempfile::tempdir().unwrap();
    let script = format!("cd {}; echo x >> runs; echo token-$(wc -l < runs | tr -d ' ')", home.path().display());
    let auth = ProviderAuth {
        command: "sh".into(),
        args: vec!["-c".into(), script],
        timeout_ms: Some(20_000),
        refresh_interval_ms: None,
        cwd: None,
    };
    let config = ModelProvider { auth: Some(auth), ..config(&model) };
    let mut session = session_of("scripted", &config, NO_ENV, None);
    model.reply(message("one")).reply(unauthorized()).reply(message("two"));
    assert_eq!(texts(&mut session, &request(&["hi"])).await, ["one"]);
    assert_eq!(texts(&mut session, &request(&["hi"])).await, ["two"]);
    model.reply(unauthorized()).reply(unauthorized());
    let (_, error) = call(&mut session, &request(&["hi"])).await;
    assert_eq!(error.unwrap().http_status(), Some(401));
    let tokens: Vec<_> = model.calls().iter().map(|sent| sent.header("authorization").unwrap().to_owned()).collect();
    assert_eq!(tokens, [1, 1, 2, 2, 3].map(|number| format!("Bearer token-{number}")));
}
