//! All servers of a process.

use std::sync::{Arc, Weak};

use loomd_exec::Environment;
use loomd_model::Http;
use parking_lot::Mutex;
use rmcp::model::{
    ClientCapabilities, ClientConfig, ElicitationCapability, ExtensionCapabilities, FormElicitationCapability,
    Implementation, InitializeRequestParams, ProtocolVersion, UrlElicitationCapability,
};

use crate::config::ServerConfig;
use crate::credentials::Credentials;
use crate::elicitation::OPENAI_FORM;
use crate::server::{Phase, Server};

/// The servers in use, one per distinct configuration.
pub struct Servers {
    shared: Arc<Shared>,
    known: Mutex<Vec<Weak<Server>>>,
}

/// What servers are reached with.
pub struct ServersOptions {
    pub http: Arc<Http>,
    /// Our environment: what programs inherit of it, and where tokens are looked up.
    pub environment: Environment,
    pub client: ClientInfo,
    /// OAuth logins to servers.
    pub oauth: Arc<dyn Credentials>,
    /// The signed-in account.
    pub account: Arc<dyn Credentials>,
}

/// How we present ourselves to servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientInfo {
    pub name: String,
    pub title: String,
    pub version: String,
}

/// What all servers share.
pub(crate) struct Shared {
    pub http: Arc<Http>,
    pub environment: Environment,
    client: ClientInfo,
    pub oauth: Arc<dyn Credentials>,
    pub account: Arc<dyn Credentials>,
}

impl Shared {
    pub fn user_agent(&self) -> String {
        format!("{}/{}", self.client.name, self.client.version)
    }

    /// What `initialize` says of us.
    pub fn client_config(&self, openai_form: bool) -> ClientConfig {
        let ClientInfo { name, title, version } = &self.client;
        let mut client = Implementation::new(name.clone(), version.clone());
        client.title = Some(title.clone());
        let mut capabilities = ClientCapabilities::default();
        capabilities.elicitation = Some(
            ElicitationCapability::new()
                .with_form(FormElicitationCapability::default())
                .with_url(UrlElicitationCapability::default()),
        );
        if openai_form {
            let none = serde_json::Map::new();
            capabilities.extensions = Some(ExtensionCapabilities::from([(OPENAI_FORM.to_owned(), none)]));
        }
        InitializeRequestParams::new(capabilities, client).with_protocol_version(ProtocolVersion::V_2025_06_18)
    }
}

impl Servers {
    pub fn new(options: ServersOptions) -> Self {
        let ServersOptions { http, environment, client, oauth, account } = options;
        let shared = Arc::new(Shared { http, environment, client, oauth, account });
        Self { shared, known: Mutex::default() }
    }

    /// How many servers are running.
    pub fn running(&self) -> usize {
        let known = self.known.lock();
        known.iter().filter_map(Weak::upgrade).filter(|server| matches!(server.phase(), Phase::Running)).count()
    }

    /// The server of a configuration: the one that is in use, else a new one that is not started yet.
    pub fn get(&self, config: &ServerConfig) -> Arc<Server> {
        let mut known = self.known.lock();
        known.retain(|server| server.strong_count() > 0);
        let same = known.iter().filter_map(Weak::upgrade).find(|server| server.config() == config);
        same.unwrap_or_else(|| {
            let server = Arc::new(Server::new(config.clone(), Arc::clone(&self.shared)));
            known.push(Arc::downgrade(&server));
            server
        })
    }
}
