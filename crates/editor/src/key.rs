//! [`KeyParser`]: the bytes that a terminal sends, as [`Key`]s. Bytes may arrive in any chunks. Unknown sequences are
//! dropped.

use crate::text::is_fold;

/// Longest pasted text, in bytes.
pub const MAX_PASTE: usize = 1024 * 1024;

/// Longest escape sequence; a longer one is dropped up to its end.
const MAX_SEQUENCE: usize = 32;

const ESCAPE: u8 = 0x1b;
const PASTE_END: &[u8] = b"\x1b[201~";

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Key {
    Char(char),
    /// Enter, which submits.
    Enter,
    /// Ctrl-J, Alt-Enter and, where the terminal tells them apart, Shift-Enter.
    NewLine,
    Tab,
    BackTab,
    Backspace,
    Delete,
    Left,
    Right,
    Up,
    Down,
    WordLeft,
    WordRight,
    Home,
    End,
    PageUp,
    PageDown,
    /// Ctrl-W and Alt-Backspace.
    DeleteWordLeft,
    DeleteWordRight,
    /// Ctrl-U.
    DeleteToStart,
    /// Ctrl-K.
    DeleteToEnd,
    /// Ctrl-Y: inserts what was deleted last.
    Yank,
    /// Ctrl-R.
    Search,
    /// Ctrl-L.
    ClearScreen,
    /// Ctrl-O.
    Unfold,
    /// Ctrl-C.
    Interrupt,
    /// Ctrl-D.
    EndOfInput,
    /// Ctrl-Z.
    Suspend,
    Escape,
    /// A bracketed paste: line ends are `\n`, and there are no other control characters than tabs.
    Paste(String),
    /// A paste longer than [`MAX_PASTE`], which is dropped.
    PasteTooLong,
}

#[derive(Default)]
pub struct KeyParser {
    /// The beginning of a sequence or of a UTF-8 character.
    pending: Vec<u8>,
    /// The bytes of a paste so far.
    paste: Option<Vec<u8>>,
    /// The paste has become too long.
    overflow: bool,
}

impl KeyParser {
    pub fn push(&mut self, bytes: &[u8]) -> Vec<Key> {
        let mut keys = Vec::new();
        for byte in bytes {
            self.push_byte(*byte, &mut keys);
        }
        keys
    }

    /// Whether an escape character was received that may be a key of its own or begin a sequence. If nothing follows
    /// soon, it is a key: see [`flush`](Self::flush).
    pub fn is_ambiguous(&self) -> bool {
        self.paste.is_none() && self.pending.first() == Some(&ESCAPE)
    }

    /// Ends an incomplete sequence. An escape character alone is [`Key::Escape`].
    pub fn flush(&mut self) -> Option<Key> {
        if !self.is_ambiguous() {
            return None;
        }
        let pending = std::mem::take(&mut self.pending);
        (pending == [ESCAPE]).then_some(Key::Escape)
    }

    fn push_byte(&mut self, byte: u8, keys: &mut Vec<Key>) {
        if let Some(paste) = &mut self.paste {
            paste.push(byte);
            if paste.ends_with(PASTE_END) {
                let mut paste = self.paste.take().unwrap_or_default();
                paste.truncate(paste.len() - PASTE_END.len());
                let fits = !std::mem::take(&mut self.overflow) && paste.len() <= MAX_PASTE;
                keys.push(if fits { Key::Paste(pasted(&paste)) } else { Key::PasteTooLong });
            } else if paste.len() > MAX_PASTE + PASTE_END.len() {
                self.overflow = true;
                paste.drain(..paste.len() - PASTE_END.len());
            }
            return;
        }
        if byte == ESCAPE && !self.pending.is_empty() {
            // A new sequence begins; of the one before, only an escape character alone is a key.
            let before = std::mem::replace(&mut self.pending, vec![ESCAPE]);
            keys.extend((before == [ESCAPE]).then_some(Key::Escape));
            return;
        }
        self.pending.push(byte);
        if self.pending[0] == ESCAPE { self.escape(keys) } else { self.character(keys) }
    }

    fn escape(&mut self, keys: &mut Vec<Key>) {
        match self.pending[1..] {
            [] | [b'[' | b'O'] => return,
            [b'[', .., last] if !(0x40..=0x7e).contains(&last) => {
                if self.pending.len() > MAX_SEQUENCE {
                    // Only the end is looked for.
                    self.pending.truncate(3);
                }
                return;
            }
            [b'[', ref params @ .., last] => {
                if params == b"200" && last == b'~' {
                    self.paste = Some(Vec::new());
                } else {
                    keys.extend(control_sequence(params, last));
                }
            }
            [b'O', last] => keys.extend(control_sequence(b"", last)),
            [b'b' | b'B', ..] => keys.push(Key::WordLeft),
            [b'f' | b'F', ..] => keys.push(Key::WordRight),
            [b'd' | b'D', ..] => keys.push(Key::DeleteWordRight),
            [0x7f | 0x08, ..] => keys.push(Key::DeleteWordLeft),
            [b'\r' | b'\n', ..] => keys.push(Key::NewLine),
            _ => {}
        }
        self.pending.clear();
    }

    fn character(&mut self, keys: &mut Vec<Key>) {
        if let [byte @ (..=0x1f | 0x7f)] = self.pending[..] {
            self.pending.clear();
            keys.extend(control_character(byte));
            return;
        }
        match str::from_utf8(&self.pending) {
            Ok(text) => keys.extend(text.chars().filter(|c| !is_fold(*c) && !c.is_control()).map(Key::Char)),
            // The character is not complete.
            Err(error) if error.error_len().is_none() => return,
            Err(_) => {}
        }
        self.pending.clear();
    }
}

fn control_character(byte: u8) -> Option<Key> {
    Some(match byte {
        0x01 => Key::Home,
        0x02 => Key::Left,
        0x03 => Key::Interrupt,
        0x04 => Key::EndOfInput,
        0x05 => Key::End,
        0x06 => Key::Right,
        0x08 | 0x7f => Key::Backspace,
        b'\t' => Key::Tab,
        b'\n' => Key::NewLine,
        0x0b => Key::DeleteToEnd,
        0x0c => Key::ClearScreen,
        b'\r' => Key::Enter,
        0x0e => Key::Down,
        0x0f => Key::Unfold,
        0x10 => Key::Up,
        0x12 => Key::Search,
        0x15 => Key::DeleteToStart,
        0x17 => Key::DeleteWordLeft,
        0x19 => Key::Yank,
        0x1a => Key::Suspend,
        _ => return None,
    })
}

/// The key of `ESC [ params last`.
fn control_sequence(params: &[u8], last: u8) -> Option<Key> {
    let mut numbers = params.split(|byte| *byte == b';').map(|number| {
        // A kitty terminal may append further facts after a colon.
        let number = number.split(|byte| *byte == b':').next().unwrap_or_default();
        str::from_utf8(number).ok().and_then(|number| number.parse::<u32>().ok())
    });
    let (first, modifier, third) = (numbers.next().flatten(), numbers.next().flatten(), numbers.next().flatten());
    // One more than the sum of 1 for Shift, 2 for Alt and 4 for Ctrl.
    let modifiers = modifier.unwrap_or(1).saturating_sub(1);
    let by_word = modifiers & 6 != 0;
    Some(match (last, first) {
        (b'A', _) => Key::Up,
        (b'B', _) => Key::Down,
        (b'C', _) if by_word => Key::WordRight,
        (b'D', _) if by_word => Key::WordLeft,
        (b'C', _) => Key::Right,
        (b'D', _) => Key::Left,
        (b'H', _) | (b'~', Some(1 | 7)) => Key::Home,
        (b'F', _) | (b'~', Some(4 | 8)) => Key::End,
        (b'Z', _) => Key::BackTab,
        (b'~', Some(3)) if by_word => Key::DeleteWordRight,
        (b'~', Some(3)) => Key::Delete,
        (b'~', Some(5)) => Key::PageUp,
        (b'~', Some(6)) => Key::PageDown,
        (b'u', Some(13)) => {
            if modifiers == 0 {
                Key::Enter
            } else {
                Key::NewLine
            }
        }
        (b'u', Some(27)) => Key::Escape,
        (b'~', Some(27)) if third == Some(13) => Key::NewLine,
        _ => return None,
    })
}

/// Text of a paste with line ends of one kind and without control characters.
fn pasted(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes).replace("\r\n", "\n").replace('\r', "\n");
    text.chars().filter(|c| matches!(c, '\n' | '\t') || !c.is_control() && !is_fold(*c)).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn keys(bytes: &[u8]) -> Vec<Key> {
        let mut parser = KeyParser::default();
        let mut keys = parser.push(bytes);
        keys.extend(parser.flush());
        keys
    }

    #[test]
    fn sequences_of_terminals_are_keys() {
        for (bytes, key) in [
            ("a", Key::Char('a')),
            ("漢", Key::Char('漢')),
            ("\r", Key::Enter),
            ("\n", Key::NewLine),
            ("\x1b\r", Key::NewLine),
            ("\x1b[13;2u", Key::NewLine),
            ("\x1b[27;2;13~", Key::NewLine),
            ("\x1b", Key::Escape),
            ("\x1b[A", Key::Up),
            ("\x1bOB", Key::Down),
            ("\x1b[1;5C", Key::WordRight),
            ("\x1bb", Key::WordLeft),
            ("\x1b[H", Key::Home),
            ("\x1b[4~", Key::End),
            ("\x1b[3~", Key::Delete),
            ("\x1b[Z", Key::BackTab),
            ("\x03", Key::Interrupt),
            ("\x1a", Key::Suspend),
            ("\x1b\x7f", Key::DeleteWordLeft),
        ] {
            assert_eq!(keys(bytes.as_bytes()), [key], "{bytes:?}");
        }
    }

    #[test]
    fn unknown_sequences_and_invalid_bytes_are_dropped() {
        let long = format!("\x1b[{}mx", "1;".repeat(100));
        for bytes in ["\x1b[?1;2cx", "\x1b[99~x", "\x1bqx", "\x00x", "\x1b[Ix", long.as_str()] {
            assert_eq!(keys(bytes.as_bytes()), [Key::Char('x')], "{bytes:?}");
        }
        assert_eq!(keys(b"\xffx\xe6\xbcyz"), [Key::Char('x'), Key::Char('z')]);
    }

    #[test]
    fn an_escape_before_a_sequence_is_a_key() {
        assert_eq!(keys(b"\x1b\x1b[A"), [Key::Escape, Key::Up]);
        assert_eq!(keys(b"\x1b[\x1b[B"), [Key::Down]);
    }

    #[test]
    fn a_paste_is_one_key_without_control_characters() {
        let paste = b"\x1b[200~one\r\ntwo\rthree\n\x1b[31m\ttab\x03\x1b[201~x";
        assert_eq!(keys(paste), [Key::Paste("one\ntwo\nthree\n[31m\ttab".into()), Key::Char('x')]);
    }

    #[test]
    fn a_paste_beyond_the_limit_is_dropped_and_reported() {
        let mut paste = b"\x1b[200~".to_vec();
        paste.resize(paste.len() + 3 * MAX_PASTE, b'x');
        paste.extend(b"\x1b[201~y");
        assert_eq!(keys(&paste), [Key::PasteTooLong, Key::Char('y')]);
    }

    proptest! {
        #[test]
        fn keys_do_not_depend_on_chunks(bytes in proptest::collection::vec(
            prop_oneof![Just(0x1b), Just(b'['), Just(b'O'), Just(b'2'), Just(b'0'), Just(b'1'), Just(b'~'), Just(b';'),
                Just(b'A'), Just(b'u'), Just(b'\r'), any::<u8>()], 0..60), at in 0usize..60) {
            let at = at.min(bytes.len());
            let mut parser = KeyParser::default();
            let mut parts = parser.push(&bytes[..at]);
            parts.extend(parser.push(&bytes[at..]));
            parts.extend(parser.flush());
            prop_assert_eq!(parts, keys(&bytes));
        }
    }
}
