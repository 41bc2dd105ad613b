//! User input of clients as messages for the model.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use loomd_protocol::{ContentItem, ResponseItem, UserInput};
use loomd_store::rollout::{ByteRange, TextElement, UserMessage};
use tokio_util::sync::CancellationToken;

use crate::images::{self, Images};
use crate::message::message_of;

/// The text in place of an image that was not read because the turn was interrupted.
const NOT_READ: &str = "image content omitted because the turn was interrupted";

/// Makes one user message of the inputs of a request. Once `cancel` is cancelled, images that are not read yet are
/// replaced by a text.
pub(crate) async fn user_message(
    input: &[UserInput],
    cwd: &str,
    images: &Arc<Images>,
    cancel: &CancellationToken,
) -> ResponseItem {
    let mut content = Vec::with_capacity(input.len());
    let mut number = 0;
    for part in input {
        match part {
            UserInput::Text { text, .. } => content.push(text_part(text)),
            UserInput::Image { url } => {
                number += 1;
                content.extend(images::remote_image(url));
            }
            UserInput::LocalImage { path } => {
                number += 1;
                let image = cancel.run_until_cancelled(images.local_image(resolve(cwd, path), number)).await;
                content.extend(image.unwrap_or_else(|| vec![text_part(NOT_READ)]));
            }
            UserInput::Audio { .. } | UserInput::LocalAudio { .. } => {
                content.push(text_part("audio content omitted because it is not supported here"));
            }
            UserInput::Skill { .. } | UserInput::Mention { .. } => {}
        }
    }
    message_of("user", content)
}

/// The texts of the input.
pub(crate) fn text(input: &[UserInput]) -> String {
    let words = input.iter().filter_map(|part| match part {
        UserInput::Text { text, .. } => Some(text.as_str()),
        _ => None,
    });
    words.collect()
}

/// The input as the rollout's record of the user's item.
pub(crate) fn stored(input: &[UserInput], item_id: String) -> UserMessage {
    let mut stored = UserMessage { images: Some(Vec::new()), item_id: Some(item_id), ..UserMessage::default() };
    for part in input {
        match part {
            UserInput::Text { text, text_elements } => {
                let offset = stored.message.len() as u64;
                stored.message.push_str(text);
                stored.text_elements.extend(text_elements.iter().map(|element| TextElement {
                    byte_range: ByteRange {
                        start: offset + element.byte_range.start as u64,
                        end: offset + element.byte_range.end as u64,
                    },
                    placeholder: element.placeholder.clone(),
                }));
            }
            UserInput::Image { url } => stored.images.get_or_insert_default().push(url.clone()),
            UserInput::LocalImage { path } => stored.local_images.push(path.clone()),
            _ => {}
        }
    }
    stored
}

/// Resolves a path of the client against the thread's working directory.
pub(crate) fn resolve(cwd: &str, path: &str) -> PathBuf {
    Path::new(cwd).join(path)
}

fn text_part(text: &str) -> ContentItem {
    ContentItem::InputText { text: text.into() }
}
