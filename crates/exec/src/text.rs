//! Decodes output to text. Output that is not UTF-8 is decoded in a detected legacy encoding. Characters that were
//! split between reads are joined.

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, IBM866, WINDOWS_1252};

/// The most bytes that are used to detect an encoding.
const GUESSED_BYTES: usize = 64 * 1024;

/// The bytes as text, in the encoding that they seem to be in.
pub fn to_text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| {
        let bytes = error.as_bytes();
        if is_damaged_utf8(bytes) {
            return String::from_utf8_lossy(bytes).into_owned();
        }
        match Encoding::for_bom(bytes) {
            Some((encoding, _)) => encoding.decode_with_bom_removal(bytes).0.into_owned(),
            None => guess(bytes).decode_without_bom_handling(bytes).0.into_owned(),
        }
    })
}

/// Whether bytes are UTF-8 with a few errors or an incomplete end, and not another encoding.
fn is_damaged_utf8(bytes: &[u8]) -> bool {
    let (mut right, mut wrong) = (0usize, 0usize);
    for chunk in bytes.utf8_chunks() {
        right += chunk.valid().chars().filter(|c| !c.is_ascii()).count();
        wrong += usize::from(!chunk.invalid().is_empty());
    }
    right > wrong || (right > 0 && wrong == 1 && begun_character(bytes) > 0)
}

fn guess(bytes: &[u8]) -> &'static Encoding {
    let from = bytes.iter().position(|byte| !byte.is_ascii()).unwrap_or(0);
    // From the start of a word: detection uses word boundaries.
    let from = bytes[..from].iter().rposition(u8::is_ascii_whitespace).map_or(0, |space| space + 1);
    let looked_at = &bytes[from..bytes.len().min(from + GUESSED_BYTES)];
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
    detector.feed(looked_at, from + looked_at.len() == bytes.len());
    let guessed = detector.guess(None, Utf8Detection::Deny);
    // Windows quotes and dashes are letters in the IBM code page; text with no other such letters is Windows text.
    let punctuation =
        |byte: &u8| byte.is_ascii() || matches!(byte, 0x80 | 0x82 | 0x84..=0x89 | 0x8b | 0x91..=0x99 | 0x9b);
    if guessed == IBM866 && looked_at.iter().all(punctuation) { WINDOWS_1252 } else { guessed }
}

/// Turns pieces of a stream into pieces of text. Invalid UTF-8 becomes U+FFFD: a chunk
/// is too short to detect another encoding.
#[derive(Debug, Default)]
pub struct TextChunks {
    /// The bytes of an incomplete character.
    begun: Vec<u8>,
}

impl TextChunks {
    /// Adds bytes and returns the complete characters. An incomplete one is kept for the next call.
    pub fn push(&mut self, bytes: &[u8]) -> String {
        let mut all = std::mem::take(&mut self.begun);
        all.extend_from_slice(bytes);
        let whole = all.len() - begun_character(&all);
        self.begun = all.split_off(whole);
        lossy(all)
    }

    /// Returns the rest at the end of the stream, if any.
    pub fn finish(&mut self) -> Option<String> {
        let rest = std::mem::take(&mut self.begun);
        (!rest.is_empty()).then(|| lossy(rest))
    }
}

fn lossy(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

/// The number of bytes of an incomplete character at the end.
pub(crate) fn begun_character(bytes: &[u8]) -> usize {
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
    fn output_is_decoded_in_its_detected_encoding() {
        let check = |encoding: &str, text: &str| {
            let (bytes, ..) = Encoding::for_label(encoding.as_bytes()).unwrap().encode(text);
            assert_eq!(to_text(bytes.into_owned()), text, "{encoding}");
        };
        check("utf-8", "déjà vu, 日本語");
        check("windows-1252", "Voilà un café très cher, déjà vu à l'été.\n");
        check("windows-1252", "café\n");
        check("windows-1252", "café");
        check("windows-1252", "“hello” – it’s\n");
        check("windows-1252", "Preis: 5 €\n");
        check("windows-1251", "Привет мир, это тестовый текст.\n");
        check("windows-1251", "пример");
        check("koi8-r", "Привет мир, это тестовый текст.\n");
        check("ibm866", "Привет мир, это тестовый текст.\n");
        check("windows-1253", "Καλημέρα κόσμε, αυτό είναι ένα κείμενο.\n");
        check("windows-1255", "שלום עולם זה טקסט\n");
        check("windows-874", "สวัสดีชาวโลก นี่คือข้อความ\n");
        check("shift_jis", "日本語のテキストです。これはテストです。\n");
        check("euc-jp", "日本語のテキストです。これはテストです。\n");
        check("gbk", "这是一个中文测试文本。你好世界。\n");
        check("big5", "這是一個中文測試文本。你好世界。\n");
        check("euc-kr", "한국어 텍스트입니다. 안녕하세요.\n");
        let utf16 = |order: fn(u16) -> [u8; 2]| "\u{feff}hello é\n".encode_utf16().flat_map(order).collect();
        assert_eq!([to_text(utf16(u16::to_le_bytes)), to_text(utf16(u16::to_be_bytes))], ["hello é\n", "hello é\n"]);
    }

    #[test]
    fn mostly_valid_utf8_is_decoded_as_utf8() {
        let check = |bytes: &[u8], expected: &str| assert_eq!(to_text(bytes.to_vec()), expected, "{bytes:?}");
        check("déjà \u{0}".as_bytes(), "déjà \u{0}");
        check(b"d\xc3\xa9j\xc3\xa0 \xff vu", "déjà \u{fffd} vu");
        // Ends in the middle of a character.
        check(b"d\xc3\xa9j\xc3", "déj\u{fffd}");
        check(b"\xe9\xe8", "éè");
        check(b"a\xffb\n", "aÿb\n");
    }

    #[test]
    fn an_encoding_is_detected_in_long_output() {
        let mut bytes = vec![b'a'; 1 << 20];
        bytes.extend_from_slice(b" caf\xe9 ");
        bytes.extend(vec![b'b'; 1 << 20]);
        assert!(to_text(bytes).contains("a café b"));
    }

    #[test]
    fn a_character_split_between_chunks_is_decoded_whole() {
        let mut text = TextChunks::default();
        let pieces = [&b"a\xe2"[..], b"\x82", b"\xac!", b"\xff", b"\xf0\x9f", b"x", b"\xf0\x9f\x98"];
        let seen: Vec<_> = pieces.iter().map(|piece| text.push(piece)).collect();
        assert_eq!(seen, ["a", "", "€!", "\u{fffd}", "", "\u{fffd}x", ""]);
        assert_eq!((text.finish(), text.finish()), (Some("\u{fffd}".into()), None));
    }

    proptest! {
        #[test]
        fn decoded_chunks_join_to_the_decoded_whole(bytes: Vec<u8>, text: String, at in 0usize..64, step in 1usize..9) {
            let mut whole = bytes;
            whole.splice(at.min(whole.len())..at.min(whole.len()), text.bytes());
            let mut chunks = TextChunks::default();
            let mut joined: String = whole.chunks(step).map(|piece| chunks.push(piece)).collect();
            joined.extend(chunks.finish());
            prop_assert_eq!(joined, String::from_utf8_lossy(&whole));
            // Any detected encoding gives text.
            let _ = to_text(whole);
        }
    }
}
