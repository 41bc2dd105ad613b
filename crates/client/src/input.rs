//! [`Input`]: what the user sends in a turn.

use loomd_protocol::UserInput;

/// The input of a turn, made from a text or from [`UserInput`]s.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Input(pub Vec<UserInput>);

impl Input {
    pub fn text(text: impl Into<String>) -> Self {
        Self::default().and(UserInput::Text { text: text.into(), text_elements: Vec::new() })
    }

    pub fn and(mut self, input: UserInput) -> Self {
        self.0.push(input);
        self
    }

    /// An image by its URL, which may be a `data:` URL.
    pub fn and_image(self, url: impl Into<String>) -> Self {
        self.and(UserInput::Image { url: url.into() })
    }

    /// An image file on the server's machine.
    pub fn and_local_image(self, path: impl Into<String>) -> Self {
        self.and(UserInput::LocalImage { path: path.into() })
    }

    pub fn and_skill(self, name: impl Into<String>, path: impl Into<String>) -> Self {
        self.and(UserInput::Skill { name: name.into(), path: path.into() })
    }
}

impl From<&str> for Input {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

impl From<String> for Input {
    fn from(text: String) -> Self {
        Self::text(text)
    }
}

impl From<UserInput> for Input {
    fn from(input: UserInput) -> Self {
        Self(vec![input])
    }
}

impl From<Vec<UserInput>> for Input {
    fn from(input: Vec<UserInput>) -> Self {
        Self(input)
    }
}
