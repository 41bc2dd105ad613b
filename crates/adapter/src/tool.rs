//! [`Tool`]: a typed function of this program that the model may call.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use loomd_client::protocol::{DynamicTool, DynamicToolCallOutputContentItem, DynamicToolSpec};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::context::ToolContext;
use crate::prompt::PromptError;
use crate::schema;

/// Longest name of a tool.
const MAX_NAME: usize = 64;

/// Names with this prefix are those of MCP servers' tools.
const MCP_PREFIX: &str = "mcp__";

/// A typed function that the model may call. It runs in this process, as a transaction on the session: what it changed
/// stays only if it succeeds.
///
/// ```
/// use loomd_adapter::{Tool, ToolContext, ToolError};
/// use schemars::JsonSchema;
/// use serde::Deserialize;
///
/// #[derive(Deserialize, JsonSchema)]
/// struct Add {
///     a: i64,
///     b: i64,
/// }
///
/// let add = Tool::new("add", "Adds two numbers.", |add: Add, _: ToolContext| async move {
///     let sum = add.a.checked_add(add.b).ok_or_else(|| ToolError::new("the sum is too large"))?;
///     Ok(sum.to_string())
/// });
/// assert_eq!(add.name(), "add");
/// ```
#[derive(Clone)]
pub struct Tool(Arc<ToolParts>);

struct ToolParts {
    name: String,
    description: String,
    input_schema: Value,
    run: Box<RunTool>,
}

type RunTool = dyn Fn(Value, ToolContext) -> ToolFuture + Send + Sync;
pub(crate) type ToolFuture = Pin<Box<dyn Future<Output = Result<ToolOutput, ToolError>> + Send>>;

/// The params of a tool that has none.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, JsonSchema)]
pub struct NoParams {}

impl Tool {
    /// A tool with params of type `P`, a struct. Names have letters, digits, `_` and `-`; they are checked when the
    /// prompt is built.
    pub fn new<P, R, F, Fut>(name: impl Into<String>, description: impl Into<String>, run: F) -> Self
    where
        P: DeserializeOwned + JsonSchema,
        R: IntoToolOutput,
        F: Fn(P, ToolContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, ToolError>> + Send + 'static,
    {
        let run = move |arguments: Value, context| -> ToolFuture {
            let params = match P::deserialize(arguments) {
                Ok(params) => params,
                Err(error) => {
                    return Box::pin(async move { Err(ToolError::new(format!("invalid arguments: {error}"))) });
                }
            };
            let running = run(params, context);
            Box::pin(async move { running.await.map(IntoToolOutput::into_tool_output) })
        };
        Self(Arc::new(ToolParts {
            name: name.into(),
            description: description.into(),
            input_schema: schema::of_params::<P>(),
            run: Box::new(run),
        }))
    }

    /// A tool by which the model opens hidden sections itself, by their paths.
    pub fn open_sections() -> Self {
        #[derive(Deserialize, JsonSchema)]
        struct OpenSections {
            /// The paths of the sections, as the summaries name them.
            sections: Vec<String>,
            /// What they are needed for.
            reason: String,
        }
        let description = "Opens sections of the prompt that are shown as summaries only.";
        Self::new("open_sections", description, |open: OpenSections, _| async move {
            Err::<(), _>(ToolError::expand(open.sections, open.reason))
        })
    }

    pub fn name(&self) -> &str {
        &self.0.name
    }

    pub fn description(&self) -> &str {
        &self.0.description
    }

    pub fn input_schema(&self) -> &Value {
        &self.0.input_schema
    }

    /// The entry of `dynamicTools`.
    pub(crate) fn spec(&self) -> DynamicToolSpec {
        DynamicToolSpec::Function(DynamicTool {
            name: self.0.name.clone(),
            description: self.0.description.clone(),
            input_schema: self.0.input_schema.clone(),
            defer_loading: false,
        })
    }

    pub(crate) fn run(&self, arguments: Value, context: ToolContext) -> ToolFuture {
        (self.0.run)(arguments, context)
    }

    pub(crate) fn check(&self) -> Result<(), PromptError> {
        let name = self.name();
        let valid = (1..=MAX_NAME).contains(&name.len())
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
        let reason = if !valid {
            format!("invalid name: expected up to {MAX_NAME} letters, digits, `_` and `-`")
        } else if name.starts_with(MCP_PREFIX) {
            format!("invalid name: `{MCP_PREFIX}` is the prefix of MCP servers' tools")
        } else if self.description().trim().is_empty() {
            "it has no description".to_owned()
        } else if self.input_schema()["type"] != "object" {
            "its params must be a struct".to_owned()
        } else {
            return Ok(());
        };
        Err(PromptError::BadTool { name: name.to_owned(), reason })
    }
}

impl fmt::Debug for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Tool").field(&self.0.name).finish()
    }
}

/// What a tool returns to the model: texts and images.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolOutput {
    pub(crate) content: Vec<DynamicToolCallOutputContentItem>,
}

impl ToolOutput {
    pub fn text(text: impl Into<String>) -> Self {
        Self::default().and_text(text)
    }

    pub fn and_text(mut self, text: impl Into<String>) -> Self {
        self.content.push(DynamicToolCallOutputContentItem::InputText { text: text.into() });
        self
    }

    /// An image by its URL, which may be a `data:` URL.
    pub fn and_image(mut self, url: impl Into<String>) -> Self {
        self.content.push(DynamicToolCallOutputContentItem::InputImage { image_url: url.into() });
        self
    }

    /// The texts, each on lines of its own.
    pub(crate) fn as_text(&self) -> String {
        let texts = self.content.iter().map(|item| match item {
            DynamicToolCallOutputContentItem::InputText { text } => text.as_str(),
            DynamicToolCallOutputContentItem::InputImage { .. } => "[image]",
        });
        texts.collect::<Vec<_>>().join("\n")
    }
}

/// What a tool may return: a text, nothing, [`Json`] or a [`ToolOutput`].
pub trait IntoToolOutput {
    fn into_tool_output(self) -> ToolOutput;
}

impl IntoToolOutput for ToolOutput {
    fn into_tool_output(self) -> ToolOutput {
        self
    }
}

impl IntoToolOutput for String {
    fn into_tool_output(self) -> ToolOutput {
        ToolOutput::text(self)
    }
}

impl IntoToolOutput for &'static str {
    fn into_tool_output(self) -> ToolOutput {
        ToolOutput::text(self)
    }
}

impl IntoToolOutput for () {
    fn into_tool_output(self) -> ToolOutput {
        ToolOutput::text("done")
    }
}

/// A typed result of a tool, which the model gets as JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Json<T>(pub T);

impl<T: Serialize> IntoToolOutput for Json<T> {
    fn into_tool_output(self) -> ToolOutput {
        ToolOutput::text(serde_json::to_string(&self.0).unwrap_or_else(|error| format!("cannot encode: {error}")))
    }
}

/// Why a tool did not succeed. Any error converts into one, so `?` works in tools.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolError(pub(crate) ToolErrorKind);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ToolErrorKind {
    Failed(String),
    Fatal(String),
    Expand { sections: Vec<String>, reason: String },
}

impl ToolError {
    /// A failure, whose text the model gets; the turn continues.
    pub fn new(message: impl fmt::Display) -> Self {
        Self(ToolErrorKind::Failed(message.to_string()))
    }

    /// A failure that ends the evaluation with phase `tool`.
    pub fn fatal(message: impl fmt::Display) -> Self {
        Self(ToolErrorKind::Fatal(message.to_string()))
    }

    /// Requests hidden sections by their paths. The model is told that they will be shown; the evaluation ends with
    /// [`EvaluateError::Expansion`](crate::EvaluateError::Expansion) after the turn.
    pub fn expand<S: Into<String>>(sections: impl IntoIterator<Item = S>, reason: impl fmt::Display) -> Self {
        let sections = sections.into_iter().map(Into::into).collect();
        Self(ToolErrorKind::Expand { sections, reason: reason.to_string() })
    }
}

impl<E: std::error::Error> From<E> for ToolError {
    fn from(error: E) -> Self {
        Self::new(error)
    }
}
