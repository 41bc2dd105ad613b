//! Finds the id of a message that is too large to be kept, while it passes by.

use rmcp::model::RequestId;

/// The longest id and member name that are recognised.
const MAX_TOKEN: usize = 128;

/// Push the bytes of one message, then ask for its id.
#[derive(Debug, Default)]
pub(super) struct IdScanner {
    depth: usize,
    in_string: bool,
    escaped: bool,
    /// The string or number at the top level that is being read.
    token: Vec<u8>,
    /// The name of the member whose value is being read.
    member: Option<Vec<u8>>,
    id: Option<RequestId>,
    /// It is a request or a notification, whose id is the server's own.
    has_method: bool,
}

impl IdScanner {
    pub fn push(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.step(byte);
        }
    }

    /// The id of the request that the message answers.
    pub fn answers(self) -> Option<RequestId> {
        self.id.filter(|_| !self.has_method)
    }

    fn step(&mut self, byte: u8) {
        if self.in_string {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' => self.escaped = true,
                b'"' => {
                    self.in_string = false;
                    self.string_ended();
                    return;
                }
                _ => {}
            }
            self.keep(byte);
            return;
        }
        match byte {
            b'"' => {
                self.in_string = true;
                self.token.clear();
            }
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' => {
                self.number_ended();
                self.depth = self.depth.saturating_sub(1);
            }
            b',' => {
                self.number_ended();
                if self.depth == 1 {
                    self.member = None;
                }
            }
            b':' if self.depth == 1 => {
                self.member = Some(std::mem::take(&mut self.token));
                self.has_method |= self.member.as_deref() == Some(b"method");
            }
            b'0'..=b'9' | b'-' => self.keep(byte),
            _ => {}
        }
    }

    fn keep(&mut self, byte: u8) {
        if self.depth == 1 && self.token.len() < MAX_TOKEN {
            self.token.push(byte);
        }
    }

    fn string_ended(&mut self) {
        if self.depth == 1 && self.member.as_deref() == Some(b"id") {
            let text = String::from_utf8_lossy(&std::mem::take(&mut self.token)).into_owned();
            self.id = Some(RequestId::String(text.into()));
        }
    }

    fn number_ended(&mut self) {
        if self.depth == 1 && self.member.as_deref() == Some(b"id") && self.id.is_none() {
            let number = std::str::from_utf8(&self.token).ok().and_then(|text| text.parse().ok());
            self.id = number.map(RequestId::Number);
        }
        if self.depth == 1 {
            self.token.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(message: &str, expected: Option<RequestId>) {
        for cut in 0..=message.len() {
            let mut scanner = IdScanner::default();
            scanner.push(&message.as_bytes()[..cut]);
            scanner.push(&message.as_bytes()[cut..]);
            assert_eq!(scanner.answers(), expected, "{message} cut at {cut}");
        }
    }

    #[test]
    fn the_id_is_found_wherever_it_stands() {
        check(r#"{"jsonrpc":"2.0","id":7,"result":{"id":8,"x":"\"id\":9"}}"#, Some(RequestId::Number(7)));
        check(r#"{"result":[{"id":8}, "}}}"], "id" : 12 }"#, Some(RequestId::Number(12)));
        check(r#"{"id":"a","result":{}}"#, Some(RequestId::String("a".into())));
        check(r#"{"result":{"id":8}}"#, None);
        check(r#"{"id":3,"method":"elicitation/create","params":{}}"#, None);
        check("xxxxxxx", None);
    }
}
