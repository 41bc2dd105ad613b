//! Throttles log messages that a peer can cause any number of times.

/// Admits the first few messages of a kind, then ever fewer, so that a peer cannot fill the log.
#[derive(Default)]
pub(crate) struct Throttle {
    count: u64,
}

impl Throttle {
    /// The number of this one, when it is to be logged.
    pub fn admit(&mut self) -> Option<u64> {
        self.count += 1;
        (self.count <= 10 || self.count.is_power_of_two()).then_some(self.count)
    }
}

/// Returns the beginning of a peer's text for the log. Log it with `?`, which escapes line ends.
pub(crate) fn short(text: &str) -> &str {
    &text[..text.floor_char_boundary(100)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repeated_message_is_logged_ever_less_often() {
        let mut throttle = Throttle::default();
        let admitted: Vec<u64> = (0..100).filter_map(|_| throttle.admit()).collect();
        assert_eq!(admitted, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 16, 32, 64]);
    }

    #[test]
    fn long_text_is_cut_between_characters() {
        assert_eq!(short("method"), "method");
        assert_eq!(short(&"ä".repeat(80)), "ä".repeat(50));
    }
}
