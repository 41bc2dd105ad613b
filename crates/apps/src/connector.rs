//! The app that a tool belongs to.

use std::collections::BTreeMap;

use loomd_mcp::Tool;
use loomd_protocol::AppInfo;

use crate::info::{self, is_hidden};

/// An app, as its tools describe it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Connector {
    pub id: String,
    /// The id when the tool states no name.
    pub name: String,
    pub description: Option<String>,
}

impl Connector {
    /// Returns `None` for a tool that names no app, which is not offered.
    pub fn of(tool: &Tool) -> Option<Self> {
        let text = |name: &str| {
            let text = tool.meta.as_ref()?.get(name)?.as_str()?.trim();
            (!text.is_empty()).then(|| text.to_owned())
        };
        let id = text("connector_id")?;
        let name = text("connector_name").unwrap_or_else(|| id.clone());
        Some(Self { id, name, description: text("connector_description") })
    }
}

/// Returns the apps that the tools belong to, by id.
pub fn accessible<'a>(tools: impl IntoIterator<Item = &'a Tool>) -> BTreeMap<String, AppInfo> {
    let mut apps: BTreeMap<String, AppInfo> = BTreeMap::new();
    for connector in tools.into_iter().filter_map(Connector::of).filter(|connector| !is_hidden(&connector.id)) {
        let app = apps.entry(connector.id.clone()).or_insert_with(|| info::new(&connector.id, &connector.name));
        app.is_accessible = true;
        if app.description.is_none() {
            app.description = connector.description;
        }
    }
    apps
}
