//! Makes text of models and commands safe to print: removes escape sequences, control characters and bidirectional
//! controls. A sequence may arrive in several chunks.

/// Cleans text chunk by chunk. Keeps newlines; a tab becomes spaces.
#[derive(Default)]
pub struct Cleaner {
    state: EscapeState,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum EscapeState {
    #[default]
    Text,
    /// After an escape character.
    Escape,
    /// In a control sequence, up to its final letter.
    Control,
    /// In a string for the terminal (OSC and the like), up to its terminator.
    String,
    /// In such a string, after an escape character.
    StringEscape,
}

const ESCAPE: char = '\u{1b}';

/// Four columns, as eight take too much of a narrow terminal.
const TAB: &str = "    ";

impl Cleaner {
    pub fn push(&mut self, text: &str) -> String {
        let mut clean = String::with_capacity(text.len());
        for c in text.chars() {
            self.state = match (self.state, c) {
                (EscapeState::Text | EscapeState::Escape | EscapeState::Control, ESCAPE) => EscapeState::Escape,
                (EscapeState::Text, c) => {
                    match c {
                        '\n' => clean.push('\n'),
                        '\t' => clean.push_str(TAB),
                        c if c.is_control() || turns_direction(c) => {}
                        c => clean.push(c),
                    }
                    EscapeState::Text
                }
                (EscapeState::Escape, '[') => EscapeState::Control,
                (EscapeState::Escape, ']' | 'P' | 'X' | '^' | '_') => EscapeState::String,
                // Intermediate characters continue the sequence, anything else ends it.
                (EscapeState::Escape, ' '..='/') => EscapeState::Escape,
                (EscapeState::Control, ' '..='?') => EscapeState::Control,
                (EscapeState::Escape | EscapeState::Control, _) => EscapeState::Text,
                (EscapeState::String | EscapeState::StringEscape, ESCAPE) => EscapeState::StringEscape,
                (EscapeState::String, '\u{7}' | '\u{9c}') | (EscapeState::StringEscape, '\\') => EscapeState::Text,
                (EscapeState::String | EscapeState::StringEscape, _) => EscapeState::String,
            };
        }
        clean
    }
}

/// The lines of a command's output as the terminal showed them last: text overwritten after a carriage return is left
/// out.
pub fn lines(output: &str) -> Vec<String> {
    let mut cleaner = Cleaner::default();
    output
        .trim_end()
        .lines()
        .map(|line| cleaner.push(line.trim_end_matches('\r').rsplit('\r').next().unwrap_or_default()))
        .collect()
}

/// The lines of a text with nothing left out: what [`lines`] removes is escaped. For text that a user approves.
pub fn visible(text: &str) -> Vec<String> {
    let show = |line: &str| {
        line.chars().fold(String::with_capacity(line.len()), |mut shown, c| {
            match c {
                '\t' => shown.push_str(TAB),
                c if c.is_control() || turns_direction(c) => shown.extend(c.escape_default()),
                c => shown.push(c),
            }
            shown
        })
    };
    text.trim_end_matches('\n').split('\n').map(show).collect()
}

fn turns_direction(c: char) -> bool {
    matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn clean(pieces: &[&str]) -> String {
        let mut cleaner = Cleaner::default();
        pieces.iter().map(|piece| cleaner.push(piece)).collect()
    }

    #[test]
    fn escape_sequences_and_controls_are_removed() {
        for (given, left) in [
            ("plain\ntext", "plain\ntext"),
            ("a\tb", "a    b"),
            ("\u{1b}[1;31mred\u{1b}[0m", "red"),
            ("\u{1b}]0;title\u{7}after", "after"),
            ("\u{1b}]8;;http://x\u{1b}\\link", "link"),
            ("\u{1b}(Bx\u{1b}7y", "xy"),
            ("bell\u{7}back\u{8}space\0\u{9b}", "bellbackspace"),
            ("abc\u{202e}def", "abcdef"),
        ] {
            assert_eq!(clean(&[given]), left, "{given:?}");
        }
    }

    #[test]
    fn overwritten_progress_lines_are_left_out() {
        assert_eq!(lines("10%\r50%\r100%\ndone\r\n\n"), ["100%", "done"]);
        assert_eq!(lines(""), [] as [&str; 0]);
    }

    #[test]
    fn visible_escapes_what_lines_removes() {
        let text = "rm -rf x\rls\n\u{1b}]0;rm y\u{7}ok\u{202e}\tz\n\n";
        assert_eq!(visible(text), [r"rm -rf x\rls", r"\u{1b}]0;rm y\u{7}ok\u{202e}    z"]);
    }

    proptest! {
        #[test]
        fn cleaning_does_not_depend_on_chunks(text in "[\u{1b}\u{7}\\[\\]a;0m\\\\\n\r\u{9c}]{0,40}", at in 0usize..40) {
            let at = text.char_indices().map(|(at, _)| at).nth(at).unwrap_or(text.len());
            let whole = clean(&[&text]);
            prop_assert_eq!(clean(&[&text[..at], &text[at..]]), whole.clone());
            prop_assert!(whole.chars().all(|c| c == '\n' || !c.is_control()));
        }
    }
}
