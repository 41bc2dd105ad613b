//! The place of a span in a distributed trace (W3C Trace Context).

use std::sync::Arc;

/// The longest `tracestate` that is passed on; longer ones are dropped.
const MAX_STATE: usize = 512;

/// The ids of a span, for its children here and in other programs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpanContext {
    pub(crate) trace: [u8; 16],
    pub(crate) span: [u8; 8],
    /// Whether spans of this trace are exported.
    pub(crate) sampled: bool,
    /// The `tracestate` of the program that began the trace; empty when there was none.
    pub(crate) state: Arc<str>,
}

impl SpanContext {
    /// Parses a `traceparent` and its `tracestate`. `None` when the former is malformed, has an id of zeros, or is of the
    /// version `ff`, which the standard forbids.
    pub fn parse(traceparent: &str, tracestate: Option<&str>) -> Option<Self> {
        let mut parts = traceparent.split('-');
        let (version, trace, span, flags) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        let [version]: [u8; 1] = hex(version)?;
        // Version 00 has four parts; later ones may have more.
        if version == 0xff || (version == 0 && parts.next().is_some()) {
            return None;
        }
        let (trace, span, [flags]): ([u8; 16], [u8; 8], [u8; 1]) = (hex(trace)?, hex(span)?, hex(flags)?);
        if trace == [0; 16] || span == [0; 8] {
            return None;
        }
        let state = tracestate.filter(|state| state.len() <= MAX_STATE && state.bytes().all(printable));
        Some(Self { trace, span, sampled: flags & 1 == 1, state: state.unwrap_or_default().into() })
    }

    /// A new span: a child of `parent`, or the root of a new trace.
    pub(crate) fn child_of(parent: Option<&Self>) -> Self {
        let span = fastrand::u64(1..).to_be_bytes();
        match parent {
            Some(parent) => Self { span, ..parent.clone() },
            None => Self { trace: fastrand::u128(1..).to_be_bytes(), span, sampled: true, state: Arc::default() },
        }
    }

    /// The header for requests that belong to the span.
    pub fn traceparent(&self) -> String {
        let flags = u8::from(self.sampled);
        format!("00-{:032x}-{:016x}-{flags:02x}", u128::from_be_bytes(self.trace), u64::from_be_bytes(self.span))
    }

    /// The header `tracestate`; `None` when it is empty.
    pub fn tracestate(&self) -> Option<&str> {
        Some(&*self.state).filter(|state| !state.is_empty())
    }
}

fn printable(byte: u8) -> bool {
    (b' '..=b'~').contains(&byte)
}

/// Parses lower-case hex digits of exactly `N` bytes.
fn hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let text = text.as_bytes();
    if text.len() != 2 * N {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(text.chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(bytes)
}

tokio::task_local! {
    static CURRENT: Option<SpanContext>;
}

/// Runs a future with a current span, which is the parent of those that it begins. Tasks that it spawns do not inherit
/// it.
pub async fn within<F: Future>(context: Option<SpanContext>, work: F) -> F::Output {
    CURRENT.scope(context, work).await
}

/// The current span; `None` outside of [`within`].
pub fn current() -> Option<SpanContext> {
    CURRENT.try_with(Clone::clone).ok().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    #[test]
    fn a_context_is_parsed_and_written_as_the_standard_has_it() {
        let parent = SpanContext::parse(PARENT, Some("a=b")).unwrap();
        assert_eq!((parent.traceparent().as_str(), parent.tracestate(), parent.sampled), (PARENT, Some("a=b"), true));
        let unsampled = PARENT.replace("-01", "-00");
        assert_eq!(SpanContext::parse(&unsampled, None).unwrap().traceparent(), unsampled);
        let later = format!("cc{}-more", &PARENT[2..]);
        assert_eq!(SpanContext::parse(&later, None).unwrap().traceparent(), PARENT);
    }

    #[test]
    fn malformed_contexts_are_none_and_unusable_states_are_dropped() {
        let bad = [
            "",
            "00",
            "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-x",
            "00-0AF7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
            "00-0af7651916cd43dd8448eb211c8031-b7ad6b7169203331-01",
        ];
        for bad in bad {
            assert_eq!(SpanContext::parse(bad, None), None, "{bad}");
        }
        for state in ["a=\n", &"a".repeat(513), "é"] {
            assert_eq!(SpanContext::parse(PARENT, Some(state)).unwrap().tracestate(), None);
        }
    }

    #[test]
    fn a_child_is_of_the_same_trace_with_an_id_of_its_own() {
        let parent = SpanContext::parse(PARENT, Some("a=b")).unwrap();
        let child = SpanContext::child_of(Some(&parent));
        assert_eq!((child.trace, &child.state, child.sampled), (parent.trace, &parent.state, true));
        assert_ne!(child.span, parent.span);
        let (one, other) = (SpanContext::child_of(None), SpanContext::child_of(None));
        assert_ne!(one.trace, other.trace);
    }

    #[tokio::test]
    async fn the_current_span_holds_within_its_future_only() {
        let parent = SpanContext::parse(PARENT, None);
        assert_eq!(current(), None);
        let inside = within(parent.clone(), async { (current(), within(None, async { current() }).await) }).await;
        assert_eq!(inside, (parent, None));
        assert_eq!(current(), None);
    }
}
