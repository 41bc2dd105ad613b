//! Output as text. A character that a read has cut in two is put together again.

/// The bytes as text; what is not UTF-8 becomes U+FFFD.
pub fn to_text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

/// Turns pieces of a stream into pieces of text.
#[derive(Debug, Default)]
pub struct TextChunks {
    /// The start of a character whose rest has not come yet.
    begun: Vec<u8>,
}

impl TextChunks {
    /// The text that is complete with these bytes; the start of a last character waits for its rest.
    pub fn push(&mut self, bytes: &[u8]) -> String {
        let mut all = std::mem::take(&mut self.begun);
        all.extend_from_slice(bytes);
        let whole = all.len() - begun_character(&all);
        self.begun = all.split_off(whole);
        to_text(all)
    }

    /// What is left when the stream has ended, if anything.
    pub fn finish(&mut self) -> Option<String> {
        let rest = std::mem::take(&mut self.begun);
        (!rest.is_empty()).then(|| to_text(rest))
    }
}

/// How many of the last bytes begin a character that could still be completed.
fn begun_character(bytes: &[u8]) -> usize {
    let cut = (1..=bytes.len().min(3)).find(|back| {
        let tail = &bytes[bytes.len() - back..];
        // Incomplete rather than wrong: only then is there no length of error.
        matches!(std::str::from_utf8(tail), Err(error) if error.valid_up_to() == 0 && error.error_len().is_none())
    });
    cut.unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_cut_character_waits_for_its_rest() {
        let mut text = TextChunks::default();
        let pieces = [&b"a\xe2"[..], b"\x82", b"\xac!", b"\xff", b"\xf0\x9f", b"x", b"\xf0\x9f\x98"];
        let seen: Vec<_> = pieces.iter().map(|piece| text.push(piece)).collect();
        assert_eq!(seen, ["a", "", "€!", "\u{fffd}", "", "\u{fffd}x", ""]);
        assert_eq!((text.finish(), text.finish()), (Some("\u{fffd}".into()), None));
    }

    proptest! {
        #[test]
        fn pieces_join_to_the_text_of_the_whole(bytes: Vec<u8>, text: String, at in 0usize..64, step in 1usize..9) {
            let mut whole = bytes;
            whole.splice(at.min(whole.len())..at.min(whole.len()), text.bytes());
            let mut chunks = TextChunks::default();
            let mut joined: String = whole.chunks(step).map(|piece| chunks.push(piece)).collect();
            joined.extend(chunks.finish());
            prop_assert_eq!(joined, String::from_utf8_lossy(&whole));
        }
    }
}
