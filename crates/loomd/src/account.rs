//! `loomd login`, `logout` and `whoami`: the OpenAI account.

use std::io::{IsTerminal, Read, Write, stderr, stdin, stdout};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::Args;
use loomd_client::protocol::{
    Account, AccountLoginCompletedNotification, GetAccountParams, GetAccountResponse, LoginAccountParams,
    LoginAccountResponse, NoParams, Secret, ServerNotification,
};
use loomd_client::{Client, Events};

use crate::cli::{Overrides, TopOverrides, UsageError};
use crate::run::{self, Keyboard};
use crate::setup::{Setup, block_on, close_client};

/// The longest key that is read.
const MAX_KEY: u64 = 16 * 1024;

#[derive(Args)]
#[command(after_help = "Without options, signs in to ChatGPT in a browser on this machine.")]
pub struct Login {
    /// Sign in with an API key, read from stdin or typed without echo
    #[arg(long, conflicts_with = "device_code")]
    pub with_api_key: bool,
    /// Sign in to ChatGPT with a code, in a browser on any machine
    #[arg(long, alias = "device-auth")]
    pub device_code: bool,
    #[command(flatten)]
    pub overrides: Overrides,
}

#[derive(Args)]
pub struct Logout {
    #[command(flatten)]
    pub overrides: Overrides,
}

#[derive(Args)]
#[command(after_help = "Exit status: 0 if you are signed in, 1 if not.")]
pub struct Whoami {
    /// Print one JSON object, as `account/read` returns it
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub overrides: Overrides,
}

/// The setup with OpenAI as the provider, whose account this is about, unless another is named.
fn openai(top: TopOverrides, overrides: Overrides) -> Result<Setup> {
    let mut overrides = top.with(overrides);
    overrides.config.insert(0, "model_provider=\"openai\"".into());
    Setup::new(&overrides)
}

pub fn login(top: TopOverrides, arguments: Login) -> Result<ExitCode> {
    let setup = openai(top, arguments.overrides)?;
    block_on(async {
        let params = if arguments.with_api_key {
            LoginAccountParams::ApiKey { api_key: read_key().await? }
        } else if arguments.device_code {
            LoginAccountParams::ChatgptDeviceCode
        } else {
            LoginAccountParams::Chatgpt
        };
        let (client, mut events) = setup.connect(run::options("loomd-login")).await?;
        let done = sign_in(&client, &mut events, params).await;
        let account = match done {
            Ok(()) => Ok(client.account_read(GetAccountParams::default()).await?),
            Err(error) => Err(error),
        };
        close_client(&client).await;
        print(&format!("signed in: {}\n", described(&account?).unwrap_or_default()))?;
        Ok(ExitCode::SUCCESS)
    })
}

async fn sign_in(client: &Client, events: &mut Events, params: LoginAccountParams) -> Result<()> {
    let login = match client.account_login_start(params).await? {
        LoginAccountResponse::ApiKey | LoginAccountResponse::ChatgptAuthTokens => return Ok(()),
        LoginAccountResponse::Chatgpt { login_id, auth_url } => {
            print(&format!("Open this URL in a browser on this machine to sign in:\n\n{auth_url}\n\n"))?;
            _ = writeln!(stderr(), "On another machine, use `loomd login --device-code`. Ctrl-C cancels.");
            login_id
        }
        LoginAccountResponse::ChatgptDeviceCode { login_id, verification_url, user_code } => {
            print(&format!("Open this URL in a browser and enter the code {user_code}:\n\n{verification_url}\n\n"))?;
            _ = writeln!(stderr(), "Waiting for the sign-in. Ctrl-C cancels.");
            login_id
        }
    };
    let AccountLoginCompletedNotification { success, error, .. } = completed(events, &login).await?;
    if !success {
        bail!("the sign-in failed: {}", error.unwrap_or_else(|| "no reason was given".to_owned()));
    }
    Ok(())
}

/// Waits for the end of a login.
async fn completed(events: &mut Events, login: &str) -> Result<AccountLoginCompletedNotification> {
    while let Some(event) = events.next().await {
        if let Some(ServerNotification::AccountLoginCompleted(completed)) = event?.notification()
            && completed.login_id.as_deref() == Some(login)
        {
            return Ok(completed.clone());
        }
    }
    bail!("the connection ended before the sign-in")
}

/// Reads the key from stdin; at a terminal it is typed without echo.
async fn read_key() -> Result<Secret> {
    let key = if stdin().is_terminal() {
        let mut keyboard = Keyboard::open().context("no terminal to read the key from")?;
        keyboard.begin(true)?;
        _ = write!(stderr(), "API key (not shown): ");
        keyboard.line().await.unwrap_or_default()
    } else {
        let mut key = String::new();
        stdin().take(MAX_KEY).read_to_string(&mut key).context("cannot read the key from stdin")?;
        key
    };
    match key.trim() {
        "" => Err(UsageError::new("no API key on stdin; for example `loomd login --with-api-key < key.txt`")),
        key => Ok(key.to_owned().into()),
    }
}

pub fn logout(top: TopOverrides, arguments: Logout) -> Result<ExitCode> {
    let setup = openai(top, arguments.overrides)?;
    block_on(async {
        let (client, events) = setup.connect(run::options("loomd-logout")).await?;
        drop(events);
        let before = client.account_read(GetAccountParams::default()).await;
        let done = client.account_logout(NoParams).await;
        close_client(&client).await;
        done?;
        let was_signed_in = before.is_ok_and(|before| before.account.is_some());
        print(if was_signed_in { "signed out\n" } else { "you were not signed in\n" })?;
        Ok(ExitCode::SUCCESS)
    })
}

pub fn whoami(top: TopOverrides, arguments: Whoami) -> Result<ExitCode> {
    let setup = openai(top, arguments.overrides)?;
    block_on(async {
        let (client, events) = setup.connect(run::options("loomd-whoami")).await?;
        drop(events);
        let read = client.account_read(GetAccountParams::default()).await;
        close_client(&client).await;
        let read = read?;
        if arguments.json {
            print(&(serde_json::to_string(&read)? + "\n"))?;
        } else {
            let account = described(&read);
            print(&format!("{}\n", account.as_deref().unwrap_or("not signed in; run `loomd login`")))?;
        }
        Ok(if read.account.is_some() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    })
}

fn described(read: &GetAccountResponse) -> Option<String> {
    Some(match read.account.as_ref()? {
        Account::ApiKey => "API key".to_owned(),
        Account::Chatgpt { email, plan_type } => {
            let plan = serde_json::to_value(plan_type).ok();
            let plan = plan.as_ref().and_then(|plan| plan.as_str()).unwrap_or("unknown");
            let email = if email.is_empty() { "no email".to_owned() } else { crate::show::lines(email).join(" ") };
            format!("{email} (ChatGPT, plan {plan})")
        }
    })
}

fn print(text: &str) -> Result<()> {
    let mut out = stdout().lock();
    out.write_all(text.as_bytes())?;
    Ok(out.flush()?)
}
