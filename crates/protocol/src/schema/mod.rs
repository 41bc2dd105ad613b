//! The protocol described for other languages: JSON Schemas and TypeScript, generated from the method table and the
//! types' schemas. Returns file names and contents; the caller writes them.

mod definitions;
pub mod inventory;
mod json;
mod namespace;
mod older;
mod typescript;

pub use definitions::Definitions;
pub use json::json_schemas;
pub use typescript::typescript;

/// The surface to describe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Surface {
    Stable,
    /// Everything, including what needs the `experimentalApi` capability.
    Experimental,
}

/// What is generated from definitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    JsonSchema,
    TypeScript,
}

/// A generated file: its path relative to the output folder, with `/` between parts, and its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    pub path: String,
    pub text: String,
}
