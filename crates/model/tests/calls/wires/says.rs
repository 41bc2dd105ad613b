//! What a scripted model says, in no wire's words.

use serde_json::Value;

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Say {
    Text(&'static [&'static str]),
    Think(&'static [&'static str]),
    /// Name, arguments, id.
    Call(&'static str, &'static str, &'static str),
    /// Name, input, id.
    Custom(&'static str, &'static str, &'static str),
    Took {
        input: i64,
        cached: i64,
        output: i64,
        reasoning: i64,
    },
    /// It stops because it may say no more.
    Length,
    /// A provider's error in the middle, with these words.
    Fail(&'static str),
    /// Something that only keeps the connection busy.
    Ping,
    /// The stream ends here, whether it is over or not.
    Cut,
}

pub const USUAL: Say = Say::Took { input: 10, cached: 0, output: 5, reasoning: 0 };

/// What it took, if that is said.
pub fn took(says: &[Say]) -> Say {
    *says.iter().find(|say| matches!(say, Say::Took { .. })).unwrap_or(&USUAL)
}

/// An event with a name.
pub fn event(value: &Value) -> String {
    match value["type"].as_str() {
        Some(name) => format!("event: {name}\ndata: {value}\n\n"),
        None => format!("data: {value}\n\n"),
    }
}

/// Two halves, cut in the middle.
pub fn halves(text: &str) -> (&str, &str) {
    text.split_at(text.floor_char_boundary(text.len() / 2))
}
