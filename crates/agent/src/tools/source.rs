//! Where tools come from.

use std::sync::Arc;

use super::tool::Tool;

/// The tools of a source, in the order in which they are offered.
pub(crate) type ToolList = Arc<[Arc<dyn Tool>]>;

/// A source of tools: the built-in ones, those of MCP servers, those of the client.
pub(crate) trait ToolSource: Send + Sync {
    /// The tools of one model call. Must not block: a source that gets its tools from elsewhere keeps the list that it
    /// got last, and returns the same list as long as it has not changed.
    fn snapshot(&self) -> ToolList;

    /// Whether the tools are those of MCP servers.
    fn is_mcp(&self) -> bool {
        false
    }
}
