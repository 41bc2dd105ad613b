//! `view_image`: the model looks at an image file.

use loomd_model::ToolSpec;
use loomd_protocol::{FunctionCallOutputBody, FunctionCallOutputContentItem, InputModality, ThreadItem};
use loomd_store::rollout::{Event, ViewImageToolCall};
use serde::Deserialize;

use super::cx::ToolCx;
use super::scope::ToolScope;
use super::spec::{function, string};
use super::tool::{Tool, ToolFuture, ToolName};
use crate::guard;
use crate::images::VIEW_NOT_ALLOWED;
use crate::input;
use crate::tool_call::{Call, Output};

pub(super) struct ViewImage;

#[derive(Deserialize)]
struct Args {
    path: String,
}

impl Tool for ViewImage {
    fn name(&self) -> ToolName<'_> {
        ToolName::plain("view_image")
    }

    fn needs_environment(&self) -> bool {
        true
    }

    fn spec(&self, scope: &ToolScope<'_>) -> Option<ToolSpec> {
        let config = &scope.turn.profile.config.config;
        let configured = config.tools.as_ref().and_then(|tools| tools.view_image).or(config.tools_view_image);
        if configured == Some(false) {
            return None;
        }
        Some(function(
            "view_image",
            "Shows you an image file of the user's machine. Use it when a path is given or an image was made, and \
             seeing it helps.",
            &[("path", string("The file, absolute or relative to the working directory."))],
            &["path"],
        ))
    }

    fn parallel(&self) -> bool {
        true
    }

    fn notes_effects(&self) -> bool {
        true
    }

    fn run<'a>(&'a self, cx: &'a ToolCx, call: &'a Call) -> ToolFuture<'a> {
        Box::pin(async {
            let turn = &cx.action.turn;
            if !turn.model.input_modalities.contains(&InputModality::Image) {
                return Err(VIEW_NOT_ALLOWED.into());
            }
            let args: Args = call.arguments()?;
            let path = input::resolve(&turn.settings.cwd, &args.path);
            let shown = path.to_string_lossy().into_owned();
            if guard::sandbox(turn, &cx.action.guard, &cx.action.services)
                .is_some_and(|sandbox| !sandbox.can_read(&path))
            {
                return Err(format!("unable to read image at `{shown}`: the sandbox does not allow it"));
            }
            let image_url = cx.action.services.images.view(path).await.map_err(|error| error.to_string())?;
            let item = ThreadItem::ImageView { id: call.id.clone(), path: shown.clone() };
            turn.started(item.clone()).await;
            let event = Event::ViewImageToolCall(ViewImageToolCall { call_id: call.id.clone(), path: shown });
            turn.completed(item, Some(event)).await;
            let image = FunctionCallOutputContentItem::InputImage { image_url: image_url.to_string(), detail: None };
            Ok(Output { body: FunctionCallOutputBody::Items(vec![image]), notes: Vec::new() })
        })
    }
}
