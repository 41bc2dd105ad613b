//! `loomd models`: lists the usable providers and their models.

use std::env;
use std::fmt::Write as _;
use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use loomd_accounts::{Accounts, Options};
use loomd_config::config_toml::ModelProvider;
use loomd_model::{Catalogue, Http, Identity, Provider, list_models};

use crate::cli;
use crate::setup::{Setup, runtime};

/// How long a provider may take to answer.
const TIMEOUT: Duration = Duration::from_secs(10);

pub fn run(top: cli::TopOverrides) -> Result<()> {
    let Setup { sources, start, .. } = Setup::new(&top.with(cli::Overrides::default()))?;
    let http = Http::new(&environment);
    let options = Options::new(&sources.home, &start.loaded, &environment);
    let accounts = Accounts::new(options, Arc::clone(&http), Arc::new(()));
    let own = &start.loaded.config.model_providers;
    let built_in = ModelProvider::built_in_ids().filter(|id| !own.contains_key(*id));
    let providers = own.iter().map(|(id, config)| (id.clone(), config.clone()));
    let providers = providers.chain(built_in.filter_map(|id| Some((id.to_owned(), ModelProvider::built_in(id)?))));
    let (mut asked, mut missing) = (Vec::new(), Vec::new());
    for (id, config) in providers {
        match &config.env_key {
            Some(key) if !is_set(key) => missing.push(format!("  {id:<12} {key}\n")),
            _ => asked.push((id, config)),
        }
    }
    let found = runtime()?.block_on(async {
        let looks: Vec<_> = asked
            .into_iter()
            .map(|(id, config)| {
                let (http, accounts) = (Arc::clone(&http), accounts.clone());
                tokio::spawn(async move { look(id, config, &http, accounts).await })
            })
            .collect();
        let mut found = Vec::new();
        for look in looks {
            found.extend(look.await);
        }
        found
    });
    let mut text = found.concat();
    if !missing.is_empty() {
        _ = write!(text, "These need a key in the environment:\n{}", missing.concat());
    }
    // A reader may close stdout early.
    _ = std::io::stdout().write_all(text.as_bytes());
    Ok(())
}

/// Lists the models of one provider, or the reason why there are none.
async fn look(id: String, config: ModelProvider, http: &Arc<Http>, accounts: Accounts) -> String {
    if id == "rehearsal" && config.base_url.is_none() {
        return format!("{id}: built in, needs no key and no network\n  rehearsal\n");
    }
    if id == "openai" {
        // The account's provider has no public list; this is the one that clients get.
        return match accounts.is_signed_in() {
            true => show(&id, Catalogue::bundled().list(false).into_iter().map(|model| model.model).collect()),
            false => format!("{id}: not signed in\n"),
        };
    }
    let once = ModelProvider { request_max_retries: Some(0), ..config };
    let provider = Provider::new(&id, &once, &environment, Some(Arc::new(accounts)));
    let identity = Identity {
        user_agent: concat!("loomd/", env!("CARGO_PKG_VERSION")).into(),
        originator: "loomd".into(),
        version: env!("CARGO_PKG_VERSION").into(),
        residency: None,
    };
    match tokio::time::timeout(TIMEOUT, list_models(&provider, http, &identity)).await {
        Ok(Ok(models)) => show(&id, models),
        Ok(Err(error)) => format!("{id}: not reachable: {}\n", error.cause()),
        Err(_) => format!("{id}: no answer within {} s\n", TIMEOUT.as_secs()),
    }
}

fn show(id: &str, models: Vec<String>) -> String {
    let mut text = format!("{id}: {} models\n", models.len());
    for model in models {
        _ = writeln!(text, "  {model}");
    }
    text
}

fn is_set(name: &str) -> bool {
    environment(name).is_some_and(|value| !value.trim().is_empty())
}

fn environment(name: &str) -> Option<String> {
    env::var(name).ok()
}
