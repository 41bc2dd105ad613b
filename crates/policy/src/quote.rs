//! Joins words to one line that a shell splits into the same words.

/// The text in place of a command with a NUL byte, which can be neither quoted nor run.
const HOLDS_NUL: &str = "<command included NUL byte>";

pub fn join<S: AsRef<str>>(words: &[S]) -> String {
    shlex::try_join(words.iter().map(AsRef::as_ref)).unwrap_or_else(|_| HOLDS_NUL.into())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn joined_words_are_quoted_where_needed() {
        for (words, expected) in [
            (&["/bin/bash", "-c", "pwd"][..], "/bin/bash -c pwd"),
            (&["/bin/bash", "-lc", "cat 'a b.txt' | head -n 5"], r#"/bin/bash -lc "cat 'a b.txt' | head -n 5""#),
            (&["printf", "%s|", "a b", "c"], "printf '%s|' 'a b' c"),
            (&["", "a\\b"], r#"'' "a\\b""#),
            (&[r#"env | grep -E "^(A|B)""#], r#"'env | grep -E "''^(A|B)"'"#),
            (&["a\0b"], "<command included NUL byte>"),
            (&[], ""),
        ] {
            assert_eq!(join(words), expected);
        }
    }

    proptest! {
        #[test]
        fn joined_words_split_into_the_same_words(words in prop::collection::vec("[^\0]*", 0..4)) {
            prop_assert_eq!(shlex::split(&join(&words)), Some(words));
        }
    }
}
