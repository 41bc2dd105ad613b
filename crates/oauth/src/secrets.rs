//! The secrets of one login.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};

/// The secrets that tie a code to one login: the state returns with the code, and the verifier is sent only when the
/// code is exchanged (PKCE). Has no `Debug`, so that neither reaches a log.
pub struct LoginSecrets {
    pub state: String,
    pub verifier: String,
}

impl LoginSecrets {
    pub fn new() -> Result<Self, getrandom::Error> {
        let (mut state, mut verifier) = ([0; 32], [0; 64]);
        getrandom::fill(&mut state)?;
        getrandom::fill(&mut verifier)?;
        Ok(Self { state: URL_SAFE_NO_PAD.encode(state), verifier: URL_SAFE_NO_PAD.encode(verifier) })
    }

    /// Returns the challenge of the method `S256`, which is sent with the authorization request.
    pub fn challenge(&self) -> String {
        URL_SAFE_NO_PAD.encode(Sha256::digest(&self.verifier))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_challenge_is_the_one_of_the_standard() {
        // The example of RFC 7636, appendix B.
        let verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk".to_owned();
        let secrets = LoginSecrets { state: String::new(), verifier };
        assert_eq!(secrets.challenge(), "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
    }

    #[test]
    fn two_logins_share_no_secret() {
        let (one, two) = (LoginSecrets::new().unwrap(), LoginSecrets::new().unwrap());
        assert_ne!(one.state, two.state);
        assert_ne!(one.verifier, two.verifier);
        assert_eq!(one.verifier.len(), 86, "within the 43 to 128 characters of the standard");
    }
}
