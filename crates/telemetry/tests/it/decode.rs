//! Protobuf, as far as a test needs it: fields by number, of any wire type.

/// The value of a field.
#[derive(Clone, Debug, PartialEq)]
pub enum Field {
    Varint(u64),
    Fixed64(u64),
    Bytes(Vec<u8>),
}

/// A message whose fields are found by number.
#[derive(Clone, Debug, PartialEq)]
pub struct Message(Vec<(u64, Field)>);

impl Message {
    pub fn parse(mut bytes: &[u8]) -> Self {
        let mut fields = Vec::new();
        while !bytes.is_empty() {
            let key = varint(&mut bytes);
            let field = match key & 7 {
                0 => Field::Varint(varint(&mut bytes)),
                1 => {
                    let (value, rest) = bytes.split_at(8);
                    bytes = rest;
                    Field::Fixed64(u64::from_le_bytes(value.try_into().unwrap()))
                }
                2 => {
                    let length = usize::try_from(varint(&mut bytes)).unwrap();
                    let (value, rest) = bytes.split_at(length);
                    bytes = rest;
                    Field::Bytes(value.to_vec())
                }
                other => panic!("unexpected wire type {other}"),
            };
            fields.push((key >> 3, field));
        }
        Self(fields)
    }

    pub fn all(&self, number: u64) -> Vec<&Field> {
        self.0.iter().filter(|(of, _)| *of == number).map(|(_, field)| field).collect()
    }

    pub fn bytes(&self, number: u64) -> Vec<u8> {
        match self.all(number)[..] {
            [Field::Bytes(bytes)] => bytes.clone(),
            ref other => panic!("field {number}: {other:?}"),
        }
    }

    pub fn text(&self, number: u64) -> String {
        String::from_utf8(self.bytes(number)).unwrap()
    }

    pub fn number(&self, number: u64) -> u64 {
        match self.all(number)[..] {
            [Field::Varint(value) | Field::Fixed64(value)] => *value,
            ref other => panic!("field {number}: {other:?}"),
        }
    }

    pub fn message(&self, number: u64) -> Self {
        Self::parse(&self.bytes(number))
    }

    pub fn messages(&self, number: u64) -> Vec<Self> {
        let parse = |field: &&Field| match field {
            Field::Bytes(bytes) => Self::parse(bytes),
            other => panic!("field {number}: {other:?}"),
        };
        self.all(number).iter().map(parse).collect()
    }

    /// The attributes of a field: their names, and their values as text.
    pub fn attributes(&self, number: u64) -> Vec<(String, String)> {
        let value = |any: &Self| match &any.0[..] {
            [(1, Field::Bytes(text))] => String::from_utf8(text.clone()).unwrap(),
            [(2, Field::Varint(flag))] => (*flag == 1).to_string(),
            [(3, Field::Varint(number))] => (*number as i64).to_string(),
            other => panic!("{other:?}"),
        };
        self.messages(number).iter().map(|pair| (pair.text(1), value(&pair.message(2)))).collect()
    }
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first().unwrap();
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return value;
        }
    }
    panic!("a varint is too long");
}
