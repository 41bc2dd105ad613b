//! What is exported: spans, log events and metrics, before they are encoded.

use crate::context::SpanContext;

/// The longest text of an attribute, in bytes.
const MAX_TEXT: usize = 16 * 1024;

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Name(&'static str),
    Text(String),
    Int(i64),
    Bool(bool),
}

impl From<&'static str> for Value {
    fn from(name: &'static str) -> Self {
        Self::Name(name)
    }
}

/// A text is cut to a bounded length.
impl From<String> for Value {
    fn from(mut text: String) -> Self {
        if text.len() > MAX_TEXT {
            text.truncate(text.floor_char_boundary(MAX_TEXT));
            text.push('…');
        }
        Self::Text(text)
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Self::Int(number)
    }
}

impl From<u64> for Value {
    fn from(number: u64) -> Self {
        Self::Int(i64::try_from(number).unwrap_or(i64::MAX))
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

/// Attributes of a record, by name.
pub type Attributes = Vec<(&'static str, Value)>;

/// A span or a log event.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Record {
    Span(SpanRecord),
    Log(LogRecord),
}

/// A span that has ended.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SpanRecord {
    pub name: &'static str,
    pub context: SpanContext,
    pub parent: Option<[u8; 8]>,
    pub kind: SpanKind,
    /// Nanoseconds since 1970.
    pub begun: u64,
    pub ended: u64,
    pub attributes: Attributes,
    /// The error, unless it ended well.
    pub error: Option<String>,
}

/// Who a span is about, as OTLP numbers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SpanKind {
    Internal = 1,
    /// Answers a request of another program.
    Server = 2,
    /// Makes a request to another program.
    Client = 3,
}

/// A log event.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LogRecord {
    pub name: &'static str,
    /// Nanoseconds since 1970.
    pub at: u64,
    pub context: Option<SpanContext>,
    pub attributes: Attributes,
}

impl Record {
    /// About how many bytes of memory the record takes.
    pub fn size(&self) -> usize {
        let (attributes, more) = match self {
            Self::Span(span) => (&span.attributes, span.error.as_ref().map_or(0, String::len)),
            Self::Log(log) => (&log.attributes, 0),
        };
        let text = |value: &Value| if let Value::Text(text) = value { text.len() } else { 0 };
        let of_attributes: usize = attributes.iter().map(|(_, value)| size_of::<Value>() + 16 + text(value)).sum();
        size_of::<Self>() + more + of_attributes
    }
}

/// A metric at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct Metric {
    pub name: &'static str,
    pub description: &'static str,
    pub kind: MetricKind,
}

#[derive(Clone, Debug, PartialEq)]
pub enum MetricKind {
    /// Grows from the start of the process.
    Counter(Vec<Point<f64>>),
    Gauge(Vec<Point<f64>>),
    Histogram(Vec<Point<Histogram>>),
}

/// A value of a metric for one set of attributes.
#[derive(Clone, Debug, PartialEq)]
pub struct Point<T> {
    pub attributes: Attributes,
    pub value: T,
}

/// How many values fell into each bucket since the start of the process.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Histogram {
    /// The upper bounds of all buckets but the last, which has none.
    pub bounds: &'static [f64],
    /// One count more than there are bounds.
    pub counts: Vec<u64>,
    pub sum: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_cut_at_a_character() {
        let Value::Text(text) = Value::from("é".repeat(MAX_TEXT)) else { panic!() };
        assert_eq!(text.len(), MAX_TEXT + '…'.len_utf8());
        assert!(text.ends_with("é…"));
        assert_eq!(Value::from("short".to_owned()), Value::Text("short".into()));
    }
}
