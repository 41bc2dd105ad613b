//! Joining the other nodes.

use std::sync::{Arc, Weak};

use loomd_store::NodeFacts;

use super::actions::tick;
use super::known::look;
use super::{NodeHost, Nodes};

impl Nodes {
    /// Joins the other nodes. `listens_at` is where clients reach this process, if they do by websocket.
    pub fn start(self: &Arc<Self>, listens_at: Option<String>, host: Weak<dyn NodeHost>) {
        let url = self.options.url.clone().or(listens_at).filter(|_| self.options.token.is_some());
        let facts = NodeFacts { url, labels: self.options.labels.clone() };
        if self.facts.set(facts).is_err() || self.host.set(host).is_err() {
            return;
        }
        tokio::spawn(tick(Arc::clone(self)));
        tokio::spawn(look(Arc::clone(self)));
    }
}
