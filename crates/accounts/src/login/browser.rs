//! `chatgpt`: the user signs in with a browser, which delivers a code to a local callback server. The code can be
//! exchanged only together with a secret that never leaves the process (PKCE).

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use loomd_oauth::{LoginSecrets, encoded};
use loomd_protocol::LoginAccountResponse;
use tokio::net::TcpListener;
use tokio::time::timeout;

use super::callback::Callback;
use super::{LoginKind, NOT_COMPLETED};
use crate::issuer::CLIENT_ID;
use crate::{AccountError, Accounts};

/// The only ports that the issuer redirects to. The second is for when another program's login uses the first.
pub(crate) const PORTS: [u16; 2] = [1455, 1457];

/// How long the user may take.
const TIMEOUT: Duration = Duration::from_secs(10 * 60);

/// How long the previous login may take to release the port.
const PORT_RELEASE_TIMEOUT: Duration = Duration::from_secs(3);

const SCOPE: &str = "openid profile email offline_access api.connectors.read api.connectors.invoke";

impl Accounts {
    /// `account/login/start` with a browser, which the client opens.
    pub async fn login_in_browser(
        &self,
        originator: &str,
        reply: impl FnOnce(Result<LoginAccountResponse, AccountError>) + Send,
    ) {
        if let Err(error) = self.check_chatgpt() {
            return reply(Err(error));
        }
        // The callback server of the previous login has to release the port first.
        let replaced = self.abandon_login(None);
        let started = self.open(originator).await;
        reply(started.map(|(login_id, auth_url)| LoginAccountResponse::Chatgpt { login_id, auth_url }));
        let why = replaced.as_ref().map_or(NOT_COMPLETED, |replaced| replaced.kind.replaced_by_browser());
        self.notify_abandoned(replaced, why).await;
    }

    /// Starts the callback server. Fails if the port is still in use.
    async fn open(&self, originator: &str) -> Result<(String, String), AccountError> {
        let port = timeout(PORT_RELEASE_TIMEOUT, Arc::clone(&self.0.callback_port).lock_owned()).await;
        let held =
            port.map_err(|_| AccountError::LoginServer("the previous login has not released its port".into()))?;
        let listener = bind(self.0.options.ports).await.map_err(AccountError::LoginServer)?;
        let port = listener.local_addr().map_err(|error| AccountError::LoginServer(error.to_string()))?.port();
        let secrets = LoginSecrets::new().map_err(|error| AccountError::LoginServer(error.to_string()))?;
        let redirect_uri = format!("http://localhost:{port}/auth/callback");
        let auth_url = self.auth_url(&redirect_uri, &secrets, originator);
        let (login_id, stop, before) = self.begin(LoginKind::Browser);
        let callback = Callback::new(self.clone(), login_id.clone(), secrets, redirect_uri);
        let (accounts, id) = (self.clone(), login_id.clone());
        tokio::spawn(async move {
            let ended = tokio::select! {
                () = stop.cancelled() => Ok(()),
                ended = timeout(TIMEOUT, callback.serve(&listener)) => ended,
            };
            drop(listener);
            drop(held);
            if ended.is_err() {
                accounts.time_out(&id).await;
            }
        });
        self.notify_abandoned(before, NOT_COMPLETED).await;
        Ok((login_id, auth_url))
    }

    async fn time_out(&self, id: &str) {
        if self.take_pending(Some(id)).is_some() {
            self.notify_login_completed(Some(id.into()), Err("Login timed out".into())).await;
        }
    }

    fn auth_url(&self, redirect_uri: &str, secrets: &LoginSecrets, originator: &str) -> String {
        let challenge = secrets.challenge();
        let workspace = self.0.options.forced_workspace.as_deref();
        let fields = [
            ("response_type", "code"),
            ("client_id", CLIENT_ID),
            ("redirect_uri", redirect_uri),
            ("scope", SCOPE),
            ("code_challenge", &challenge),
            ("code_challenge_method", "S256"),
            ("id_token_add_organizations", "true"),
            ("codex_cli_simplified_flow", "true"),
            ("state", &secrets.state),
            ("originator", originator),
        ];
        let fields = fields.into_iter().chain(workspace.map(|workspace| ("allowed_workspace_id", workspace)));
        format!("{}/oauth/authorize?{}", self.0.options.issuer, encoded(fields))
    }
}

async fn bind(ports: [u16; 2]) -> Result<TcpListener, String> {
    for port in ports {
        match TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await {
            Ok(listener) => return Ok(listener),
            Err(error) if error.kind() == std::io::ErrorKind::AddrInUse => {}
            Err(error) => return Err(error.to_string()),
        }
    }
    Err(format!("Port 127.0.0.1:{} is already in use", ports[0]))
}
