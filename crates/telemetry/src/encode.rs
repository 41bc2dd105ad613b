//! One writer for both encodings of OTLP: protobuf, and JSON as OTLP maps it (ids in hex, 64-bit integers as strings).

use std::fmt::Write as _;

use loomd_config::config_toml::OtelProtocol;

/// A field of a message: its number in protobuf, its name in JSON.
#[derive(Clone, Copy)]
pub(crate) struct Field(pub u32, pub &'static str);

/// Writes one message. Fields with the default value are left out, as protobuf does.
pub(crate) struct Encoder {
    protocol: OtelProtocol,
    bytes: Vec<u8>,
    /// Whether the message has a field already; JSON separates them.
    begun: bool,
}

const VARINT: u32 = 0;
const FIXED64: u32 = 1;
const DELIMITED: u32 = 2;

impl Encoder {
    /// The encoding of a whole message.
    pub fn encode(protocol: OtelProtocol, message: impl FnOnce(&mut Self)) -> Vec<u8> {
        let mut encoder = Self { protocol, bytes: Vec::new(), begun: false };
        encoder.open();
        message(&mut encoder);
        encoder.close();
        encoder.bytes
    }

    pub fn text(&mut self, field: Field, text: &str) {
        if text.is_empty() {
            return;
        }
        self.text_always(field, text);
    }

    /// A text that is written although it is empty, as that of a `oneof`.
    pub fn text_always(&mut self, field: Field, text: &str) {
        if self.begin_field(field, DELIMITED) {
            quote(&mut self.bytes, text);
        } else {
            self.delimited(text.as_bytes());
        }
    }

    /// The id of a trace or a span.
    pub fn id(&mut self, field: Field, id: &[u8]) {
        if self.begin_field(field, DELIMITED) {
            let mut text = String::with_capacity(2 * id.len() + 2);
            for byte in id {
                _ = write!(text, "{byte:02x}");
            }
            quote(&mut self.bytes, &text);
        } else {
            self.delimited(id);
        }
    }

    pub fn fixed64(&mut self, field: Field, value: u64) {
        if value != 0 {
            if self.begin_field(field, FIXED64) {
                quote(&mut self.bytes, &value.to_string());
            } else {
                self.bytes.extend(value.to_le_bytes());
            }
        }
    }

    /// Written also when it is 0: it is part of a `oneof`.
    pub fn double(&mut self, field: Field, value: f64) {
        if self.begin_field(field, FIXED64) {
            number(&mut self.bytes, value);
        } else {
            self.bytes.extend(value.to_le_bytes());
        }
    }

    /// Written also when it is 0: it is part of a `oneof`.
    pub fn int64(&mut self, field: Field, value: i64) {
        if self.begin_field(field, VARINT) {
            quote(&mut self.bytes, &value.to_string());
        } else {
            self.varint(value as u64);
        }
    }

    pub fn uint32(&mut self, field: Field, value: u32) {
        if value != 0 {
            if self.begin_field(field, VARINT) {
                self.bytes.extend(value.to_string().bytes());
            } else {
                self.varint(value.into());
            }
        }
    }

    /// Written also when it is false: it is part of a `oneof`.
    pub fn boolean(&mut self, field: Field, value: bool) {
        if self.begin_field(field, VARINT) {
            self.bytes.extend(if value { &b"true"[..] } else { b"false" });
        } else {
            self.varint(value.into());
        }
    }

    /// Counts of buckets.
    pub fn fixed64s(&mut self, field: Field, values: &[u64]) {
        if self.begin_field(field, DELIMITED) {
            self.array(values, |bytes, value| quote(bytes, &value.to_string()));
        } else {
            self.varint(8 * values.len() as u64);
            self.bytes.extend(values.iter().flat_map(|value| value.to_le_bytes()));
        }
    }

    /// Bounds of buckets.
    pub fn doubles(&mut self, field: Field, values: &[f64]) {
        if self.begin_field(field, DELIMITED) {
            self.array(values, |bytes, value| number(bytes, *value));
        } else {
            self.varint(8 * values.len() as u64);
            self.bytes.extend(values.iter().flat_map(|value| value.to_le_bytes()));
        }
    }

    /// A message inside of this one.
    pub fn message(&mut self, field: Field, message: impl FnOnce(&mut Self)) {
        if self.begin_field(field, DELIMITED) {
            self.nested(message);
        } else {
            self.delimited_message(message);
        }
    }

    /// Messages of one kind.
    pub fn messages<T>(
        &mut self,
        field: Field,
        items: impl IntoIterator<Item = T>,
        mut message: impl FnMut(&mut Self, T),
    ) {
        let mut items = items.into_iter().peekable();
        if items.peek().is_none() {
            return;
        }
        if self.protocol == OtelProtocol::Binary {
            for item in items {
                self.begin_field(field, DELIMITED);
                self.delimited_message(|encoder| message(encoder, item));
            }
            return;
        }
        self.begin_field(field, DELIMITED);
        self.bytes.push(b'[');
        let mut first = true;
        for item in items {
            if !std::mem::take(&mut first) {
                self.bytes.push(b',');
            }
            self.nested(|encoder| message(encoder, item));
        }
        self.bytes.push(b']');
    }

    /// Writes the key of a field. Returns whether the value is to be JSON.
    fn begin_field(&mut self, Field(number, name): Field, wire: u32) -> bool {
        match self.protocol {
            OtelProtocol::Binary => {
                self.varint(u64::from(number << 3 | wire));
                false
            }
            OtelProtocol::Json => {
                if std::mem::replace(&mut self.begun, true) {
                    self.bytes.push(b',');
                }
                quote(&mut self.bytes, name);
                self.bytes.push(b':');
                true
            }
        }
    }

    fn nested(&mut self, message: impl FnOnce(&mut Self)) {
        let outer = std::mem::replace(&mut self.begun, false);
        self.open();
        message(self);
        self.close();
        self.begun = outer;
    }

    fn delimited_message(&mut self, message: impl FnOnce(&mut Self)) {
        let outer = std::mem::take(&mut self.bytes);
        message(self);
        let inner = std::mem::replace(&mut self.bytes, outer);
        self.delimited(&inner);
    }

    fn array<T>(&mut self, values: &[T], mut write: impl FnMut(&mut Vec<u8>, &T)) {
        self.bytes.push(b'[');
        for (at, value) in values.iter().enumerate() {
            if at > 0 {
                self.bytes.push(b',');
            }
            write(&mut self.bytes, value);
        }
        self.bytes.push(b']');
    }

    fn open(&mut self) {
        if self.protocol == OtelProtocol::Json {
            self.bytes.push(b'{');
        }
    }

    fn close(&mut self) {
        if self.protocol == OtelProtocol::Json {
            self.bytes.push(b'}');
        }
    }

    fn delimited(&mut self, bytes: &[u8]) {
        self.varint(bytes.len() as u64);
        self.bytes.extend_from_slice(bytes);
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }
}

/// JSON has no number for what is not finite; OTLP writes it as a string.
fn number(bytes: &mut Vec<u8>, value: f64) {
    let text = if value.is_finite() {
        value.to_string()
    } else if value.is_nan() {
        "\"NaN\"".into()
    } else if value > 0.0 {
        "\"Infinity\"".into()
    } else {
        "\"-Infinity\"".into()
    };
    bytes.extend(text.bytes());
}

fn quote(bytes: &mut Vec<u8>, text: &str) {
    bytes.push(b'"');
    let mut rest = text;
    while let Some(at) = rest.bytes().position(|byte| byte < b' ' || byte == b'"' || byte == b'\\') {
        bytes.extend_from_slice(&rest.as_bytes()[..at]);
        match rest.as_bytes()[at] {
            special @ (b'"' | b'\\') => bytes.extend([b'\\', special]),
            control => bytes.extend(format!("\\u{control:04x}").bytes()),
        }
        rest = &rest[at + 1..];
    }
    bytes.extend_from_slice(rest.as_bytes());
    bytes.push(b'"');
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn both(message: impl Fn(&mut Encoder)) -> (Vec<u8>, String) {
        let json = Encoder::encode(OtelProtocol::Json, &message);
        (Encoder::encode(OtelProtocol::Binary, &message), String::from_utf8(json).unwrap())
    }

    #[test]
    fn every_kind_of_field_is_written_as_both_encodings_have_it() {
        let (binary, json) = both(|encoder| {
            encoder.text(Field(1, "text"), "aé");
            encoder.text(Field(2, "none"), "");
            encoder.id(Field(3, "id"), &[1, 0xff]);
            encoder.fixed64(Field(4, "fixed"), 258);
            encoder.double(Field(5, "double"), 0.5);
            encoder.int64(Field(6, "int"), -1);
            encoder.uint32(Field(16, "enum"), 300);
            encoder.boolean(Field(7, "flag"), false);
            encoder.message(Field(8, "inner"), |inner| inner.text(Field(1, "a"), "b"));
            encoder.messages(Field(9, "list"), [1_u32, 2], |inner, value| inner.uint32(Field(1, "v"), value));
            encoder.messages(Field(10, "empty"), [0_u32; 0], |_, _| {});
            encoder.fixed64s(Field(11, "counts"), &[1, 0]);
            encoder.doubles(Field(12, "bounds"), &[0.25]);
        });
        let expected = r#"{"text":"aé","id":"01ff","fixed":"258","double":0.5,"int":"-1","enum":300,"flag":false,"inner":{"a":"b"},"list":[{"v":1},{"v":2}],"counts":["1","0"],"bounds":[0.25]}"#;
        assert_eq!(json, expected);
        let mut wanted = vec![0x0a, 3, b'a', 0xc3, 0xa9, 0x1a, 2, 1, 0xff, 0x21, 2, 1, 0, 0, 0, 0, 0, 0, 0x29];
        wanted.extend(0.5_f64.to_le_bytes());
        wanted.push(0x30);
        wanted.extend([0xff; 9]);
        wanted.extend([1, 0x80, 1, 0xac, 2, 0x38, 0, 0x42, 3, 0x0a, 1, b'b', 0x4a, 2, 8, 1, 0x4a, 2, 8, 2]);
        wanted.extend([0x5a, 16, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x62, 8]);
        wanted.extend(0.25_f64.to_le_bytes());
        assert_eq!(binary, wanted);
    }

    #[test]
    fn numbers_that_json_does_not_have_are_strings() {
        for (value, expected) in [(f64::NAN, "NaN"), (f64::INFINITY, "Infinity"), (f64::NEG_INFINITY, "-Infinity")] {
            let (_, json) = both(|encoder| encoder.double(Field(1, "v"), value));
            assert_eq!(json, format!(r#"{{"v":"{expected}"}}"#));
        }
    }

    proptest! {
        #[test]
        fn any_text_is_valid_json(text in any::<String>()) {
            let (_, json) = both(|encoder| encoder.text_always(Field(1, "t"), &text));
            let value: serde_json::Value = serde_json::from_str(&json).unwrap();
            prop_assert_eq!(value["t"].as_str(), Some(text.as_str()));
        }

        #[test]
        fn any_double_is_read_back_from_json(value in any::<f64>()) {
            let (_, json) = both(|encoder| encoder.double(Field(1, "v"), value));
            prop_assert!(serde_json::from_str::<serde_json::Value>(&json).is_ok());
            if value.is_finite() {
                let written = json.strip_prefix("{\"v\":").and_then(|rest| rest.strip_suffix('}')).unwrap();
                prop_assert_eq!(written.parse::<f64>(), Ok(value));
            }
        }
    }
}
