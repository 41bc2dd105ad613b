//! The message of one agent to another: a text, or parts like those of user input.

use loomd_protocol::UserInput;
use serde::Deserialize;
use serde_json::Value;

use super::super::spec::{array, object, string};

/// The schema of `items`.
pub(super) fn items_schema(description: &str) -> Value {
    let part = object(
        &[
            ("type", string("The kind of part: `text`, `image`, `local_image`, `skill` or `mention`.")),
            ("text", string("The text of a `text`.")),
            ("image_url", string("The address of an `image`.")),
            ("path", string("The file of a `local_image`, a `skill` or a `mention`.")),
            ("name", string("The name of a `skill` or a `mention`.")),
        ],
        &[],
    );
    array(part, description)
}

#[derive(Deserialize)]
pub(super) struct Message {
    message: Option<String>,
    items: Option<Vec<MessagePart>>,
}

/// A part as models write it. The spelling of the protocol's [`UserInput`] is accepted too.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum MessagePart {
    Text {
        text: String,
    },
    Image {
        #[serde(alias = "url")]
        image_url: String,
    },
    #[serde(alias = "localImage")]
    LocalImage {
        path: String,
    },
    Skill {
        name: String,
        path: String,
    },
    Mention {
        name: String,
        path: String,
    },
}

impl From<MessagePart> for UserInput {
    fn from(part: MessagePart) -> Self {
        match part {
            MessagePart::Text { text } => Self::Text { text, text_elements: Vec::new() },
            MessagePart::Image { image_url } => Self::Image { url: image_url },
            MessagePart::LocalImage { path } => Self::LocalImage { path },
            MessagePart::Skill { name, path } => Self::Skill { name, path },
            MessagePart::Mention { name, path } => Self::Mention { name, path },
        }
    }
}

impl Message {
    /// The message as a user's input; an error for the model when there is none, or more than one.
    pub fn input(self) -> Result<Vec<UserInput>, String> {
        match (self.message, self.items) {
            (Some(_), Some(_)) => Err("Provide either message or items, but not both".into()),
            (None, None) => Err("Provide one of: message or items".into()),
            (Some(message), None) if message.trim().is_empty() => Err("Empty message can't be sent to an agent".into()),
            (Some(text), None) => Ok(vec![UserInput::Text { text, text_elements: Vec::new() }]),
            (None, Some(items)) if items.is_empty() => Err("Items can't be empty".into()),
            (None, Some(items)) => Ok(items.into_iter().map(Into::into).collect()),
        }
    }
}

/// The texts of an input, for the item that clients show.
pub(super) fn prompt(input: &[UserInput]) -> String {
    let texts = input.iter().map(|part| match part {
        UserInput::Text { text, .. } => text.clone(),
        UserInput::Image { .. } => "[image]".into(),
        UserInput::LocalImage { path } => format!("[local_image:{path}]"),
        UserInput::Skill { name, .. } => format!("[skill:${name}]"),
        UserInput::Mention { name, .. } => format!("[mention:${name}]"),
        UserInput::Audio { .. } | UserInput::LocalAudio { .. } => "[audio]".into(),
    });
    texts.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_field_of_a_part_is_in_the_schema() {
        let schema = items_schema("");
        let properties = schema["items"]["properties"].as_object().unwrap();
        let mut names: Vec<_> = properties.keys().map(String::as_str).collect();
        names.sort_unstable();
        assert_eq!(names, ["image_url", "name", "path", "text", "type"]);
    }

    #[test]
    fn parts_are_read_as_the_schema_spells_them_and_as_the_protocol_does() {
        let read = |items| serde_json::from_value::<Message>(json!({ "items": items })).unwrap().input().unwrap();
        let wanted = vec![
            UserInput::Text { text: "look".into(), text_elements: Vec::new() },
            UserInput::Image { url: "data:".into() },
            UserInput::LocalImage { path: "/a.png".into() },
            UserInput::Skill { name: "s".into(), path: "/s".into() },
            UserInput::Mention { name: "m".into(), path: "app://m".into() },
        ];
        let written = json!([
            { "type": "text", "text": "look" },
            { "type": "image", "image_url": "data:" },
            { "type": "local_image", "path": "/a.png" },
            { "type": "skill", "name": "s", "path": "/s" },
            { "type": "mention", "name": "m", "path": "app://m" },
        ]);
        assert_eq!(read(written), wanted);
        assert_eq!(read(json!(wanted)), wanted);
    }
}
