//! `chatgptDeviceCode`: the user enters a code in a browser on any device, and the issuer is polled for the result.

use std::time::Duration;

use loomd_protocol::LoginAccountResponse;
use tokio::time::{sleep, timeout};

use super::{Failure, LoginKind, NOT_COMPLETED, credentials};
use crate::auth_json::AuthJson;
use crate::issuer::{DeviceCode, DeviceGrant, DevicePoll};
use crate::{AccountError, Accounts};

/// How long the user may take; the issuer forgets the code afterwards.
const TIMEOUT: Duration = Duration::from_secs(15 * 60);
/// The minimum polling interval, also where the issuer asks for less.
const MIN_INTERVAL: Duration = Duration::from_secs(1);
/// The polling interval if the issuer names none.
const DEFAULT_INTERVAL: Duration = Duration::from_secs(5);
/// Added to the interval whenever the issuer asks to slow down.
const SLOW_DOWN_STEP: Duration = Duration::from_secs(5);

impl Accounts {
    /// `account/login/start` with a device code. Replies once the issuer has returned a code.
    pub async fn login_with_device_code(&self, reply: impl FnOnce(Result<LoginAccountResponse, AccountError>) + Send) {
        let offered = match self.check_chatgpt() {
            Ok(()) => self.0.issuer.device_code().await,
            Err(error) => Err(error),
        };
        let code = match offered {
            Ok(code) => code,
            Err(error) => return reply(Err(error)),
        };
        let (login_id, stop, before) = self.begin(LoginKind::Device);
        reply(Ok(LoginAccountResponse::ChatgptDeviceCode {
            login_id: login_id.clone(),
            verification_url: self.0.issuer.verification_url(),
            user_code: code.user_code.clone(),
        }));
        let accounts = self.clone();
        tokio::spawn(async move {
            tokio::select! {
                () = stop.cancelled() => {}
                outcome = accounts.grant(&code) => {
                    _ = accounts.finish(&login_id, outcome).await;
                }
            }
        });
        self.notify_abandoned(before, NOT_COMPLETED).await;
    }

    async fn grant(&self, code: &DeviceCode) -> Result<AuthJson, Failure> {
        let failed = |message: String| Failure::new("device_code", message);
        let granted = match timeout(TIMEOUT, self.wait_for_grant(code)).await {
            Ok(granted) => granted.map_err(failed)?,
            Err(_) => {
                return Err(failed(format!("device auth timed out after {} minutes", TIMEOUT.as_secs() / 60)));
            }
        };
        let callback = self.0.issuer.device_callback();
        let exchanged = self.0.issuer.exchange(&granted.authorization_code, &callback, &granted.code_verifier).await;
        let tokens = exchanged.map_err(|why| failed(format!("device code exchange failed: {why}")))?;
        self.check_workspace(&tokens)?;
        credentials(tokens, None)
    }

    async fn wait_for_grant(&self, code: &DeviceCode) -> Result<DeviceGrant, String> {
        let mut pause = code.interval.unwrap_or(DEFAULT_INTERVAL).max(MIN_INTERVAL);
        loop {
            match self.0.issuer.poll(code).await? {
                DevicePoll::Granted(grant) => return Ok(grant),
                DevicePoll::Pending => {}
                DevicePoll::SlowDown => pause += SLOW_DOWN_STEP,
            }
            sleep(pause).await;
        }
    }
}
