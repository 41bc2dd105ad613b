//! Suggestions for misspelt words.

use strsim::damerau_levenshtein;

/// Returns the known word that is closest, if any is close.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let plain = |text: &str| text.to_lowercase().replace('-', "_");
    let distances = known.into_iter().map(|known| (damerau_levenshtein(&plain(word), &plain(known)), known));
    let (distance, near) = distances.min()?;
    let longest = word.chars().count().max(near.chars().count());
    (distance <= (longest / 3).max(1) && distance < longest).then_some(near)
}

/// Returns `; did you mean …?` with the closest known word, or nothing if none is close.
pub fn did_you_mean<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    nearest(word, known).map(|near| format!("; did you mean `{near}`?")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_close_word_is_suggested() {
        let known = ["model", "model_provider", "sandbox_mode", "approval_policy"];
        for (word, near) in [
            ("modle", Some("model")),
            ("Model", Some("model")),
            ("sandbox-mode", Some("sandbox_mode")),
            ("aproval_policy", Some("approval_policy")),
            ("provider", None),
            ("x", None),
            ("", None),
        ] {
            assert_eq!(nearest(word, known), near, "{word}");
        }
    }
}
