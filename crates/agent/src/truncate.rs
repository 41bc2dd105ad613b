//! Truncates the output of tools for the model: removes the middle, keeps both ends.

use loomd_store::rollout::TruncationPolicy;

/// The approximate bytes of a token.
pub(crate) const BYTES_PER_TOKEN: usize = 4;

/// The result of [`truncate`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TruncatedText {
    pub text: String,
    /// Whether anything was removed.
    pub cut: bool,
}

/// Removes the middle of a text that is longer than the policy allows.
pub(crate) fn truncate(text: &str, policy: TruncationPolicy) -> TruncatedText {
    let budget = bytes(policy);
    if text.len() <= budget {
        return TruncatedText { text: text.into(), cut: false };
    }
    let head = text.floor_char_boundary(budget / 2);
    let tail = text.ceil_char_boundary(text.len() - (budget - budget / 2));
    let middle = &text[head..tail];
    let marker = match policy {
        TruncationPolicy::Bytes(_) => format!("…{} chars truncated…", middle.chars().count()),
        TruncationPolicy::Tokens(_) => format!("…{} tokens truncated…", tokens(middle.len())),
    };
    let mut kept = String::with_capacity(budget + marker.len());
    kept.push_str(&text[..head]);
    kept.push_str(&marker);
    kept.push_str(&text[tail..]);
    TruncatedText { text: kept, cut: true }
}

/// A limit that is larger by a fifth, for text that was truncated before a header was added.
pub(crate) fn widened(policy: TruncationPolicy) -> TruncationPolicy {
    match policy {
        TruncationPolicy::Bytes(limit) => TruncationPolicy::Bytes(limit + limit / 5),
        TruncationPolicy::Tokens(limit) => TruncationPolicy::Tokens(limit + limit / 5),
    }
}

/// The approximate number of tokens of so many bytes.
pub(crate) fn tokens(bytes: usize) -> usize {
    bytes.div_ceil(BYTES_PER_TOKEN)
}

/// The size of a policy in bytes.
pub(crate) fn bytes(policy: TruncationPolicy) -> usize {
    let limit = match policy {
        TruncationPolicy::Bytes(limit) => limit,
        TruncationPolicy::Tokens(limit) => limit.saturating_mul(BYTES_PER_TOKEN as u64),
    };
    usize::try_from(limit).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(text: &str, policy: TruncationPolicy, expected: &str) {
        assert_eq!(truncate(text, policy).text, expected, "{text:?} {policy:?}");
    }

    #[test]
    fn the_middle_is_removed_and_counted() {
        check("", TruncationPolicy::Bytes(4), "");
        check("abcd", TruncationPolicy::Bytes(4), "abcd");
        check("abcdefgh", TruncationPolicy::Bytes(4), "ab…4 chars truncated…gh");
        check("abcdefgh", TruncationPolicy::Bytes(0), "…8 chars truncated…");
        check("aéééb", TruncationPolicy::Bytes(4), "a…3 chars truncated…b");
        check("abcdefghijkl", TruncationPolicy::Tokens(1), "ab…2 tokens truncated…kl");
        assert_eq!(widened(TruncationPolicy::Bytes(10_000)), TruncationPolicy::Bytes(12_000));
    }

    proptest! {
        #[test]
        fn truncated_text_is_within_the_limit(text in ".{0,200}", limit in 0u64..100) {
            let cut = truncate(&text, TruncationPolicy::Bytes(limit));
            prop_assert_eq!(cut.cut, text.len() as u64 > limit);
            let kept = cut.text.split('…').step_by(2).map(str::len).sum::<usize>();
            if cut.cut && !text.contains('…') {
                prop_assert!(kept as u64 <= limit);
            }
        }
    }
}
