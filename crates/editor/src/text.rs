//! [`Text`]: the text being edited, with its cursor. A long paste is one character of it, which stands for the whole
//! paste and is shown as a label.

use crate::width::char_width;

/// The first of the characters that stand for pastes; they are never typed or pasted.
const FIRST_FOLD: u32 = 0xF_0000;

/// How many pastes a text can hold; further ones are inserted as they are.
const MAX_FOLDS: usize = 1000;

/// A paste with more lines or bytes than this is folded.
const FOLD_LINES: usize = 8;
const FOLD_BYTES: usize = 2000;

/// Whether a character stands for a paste.
pub(crate) fn is_fold(c: char) -> bool {
    fold_index(c).is_some()
}

fn fold_index(c: char) -> Option<usize> {
    let index = u32::from(c).checked_sub(FIRST_FOLD)? as usize;
    (index < MAX_FOLDS).then_some(index)
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Text {
    text: String,
    /// A byte position between two clusters.
    cursor: usize,
    folds: Vec<String>,
    /// The text that was deleted last as a word or a line.
    deleted: String,
}

impl Text {
    /// A text with the cursor at its end. A long one is folded.
    pub fn new(text: &str) -> Self {
        let mut new = Self::default();
        new.paste(text);
        new
    }

    /// The text with its pastes in full.
    pub fn expanded(&self) -> String {
        self.expand(&self.text)
    }

    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// The text as it is edited: a character may stand for a paste.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The byte position of the cursor.
    pub fn cursor(&self) -> usize {
        self.cursor
    }

    /// The text before the cursor.
    pub fn before(&self) -> &str {
        &self.text[..self.cursor]
    }

    /// The label of a character that stands for a paste.
    pub fn label(&self, c: char) -> Option<String> {
        let index = fold_index(c)?;
        let paste = self.folds.get(index)?;
        let lines = paste.lines().count();
        let size = if lines > 1 { format!("{lines} lines") } else { format!("{} characters", paste.chars().count()) };
        Some(format!("[paste {}: {size}]", index + 1))
    }

    pub fn insert(&mut self, text: &str) {
        self.text.insert_str(self.cursor, text);
        self.cursor += text.len();
    }

    /// Inserts a pasted text, folded if it is long.
    pub fn paste(&mut self, text: &str) {
        let long = text.len() > FOLD_BYTES || text.lines().count() > FOLD_LINES;
        let fold = u32::try_from(self.folds.len()).ok().and_then(|index| char::from_u32(FIRST_FOLD + index));
        match fold {
            Some(fold) if long && self.folds.len() < MAX_FOLDS => {
                self.folds.push(text.to_owned());
                self.insert(fold.encode_utf8(&mut [0; 4]));
            }
            _ => self.insert(text),
        }
    }

    /// Replaces the bytes from `start` to the cursor.
    pub fn replace_before(&mut self, start: usize, text: &str) {
        self.text.replace_range(start..self.cursor, text);
        self.cursor = start + text.len();
    }

    pub fn clear(&mut self) {
        let deleted = std::mem::take(&mut self.deleted);
        *self = Self { deleted, ..Self::default() };
    }

    pub fn left(&mut self) {
        self.cursor = self.previous(self.cursor);
    }

    pub fn right(&mut self) {
        self.cursor = self.next(self.cursor);
    }

    pub fn word_left(&mut self) {
        self.cursor = self.word_start();
    }

    pub fn word_right(&mut self) {
        self.cursor = self.word_end();
    }

    /// Moves to the beginning of the line.
    pub fn home(&mut self) {
        self.cursor = self.line_start();
    }

    /// Moves to the end of the line.
    pub fn end(&mut self) {
        self.cursor = self.line_end();
    }

    pub fn move_to_end(&mut self) {
        self.cursor = self.text.len();
    }

    /// Moves to the line above, at the same character of it; false in the first line.
    pub fn up(&mut self) -> bool {
        let start = self.line_start();
        let Some(end_above) = start.checked_sub(1) else { return false };
        let offset = self.text[start..self.cursor].chars().count();
        let start_above = self.text[..end_above].rfind('\n').map_or(0, |at| at + 1);
        self.cursor = self.at_offset(start_above, end_above, offset);
        true
    }

    /// Moves to the line below; false in the last line.
    pub fn down(&mut self) -> bool {
        let offset = self.text[self.line_start()..self.cursor].chars().count();
        let end = self.line_end();
        if end == self.text.len() {
            return false;
        }
        let start_below = end + 1;
        let end_below = self.text[start_below..].find('\n').map_or(self.text.len(), |at| start_below + at);
        self.cursor = self.at_offset(start_below, end_below, offset);
        true
    }

    pub fn backspace(&mut self) {
        let start = self.previous(self.cursor);
        self.remove(start, self.cursor);
    }

    pub fn delete(&mut self) {
        let end = self.next(self.cursor);
        self.remove(self.cursor, end);
    }

    pub fn delete_word_left(&mut self) {
        let start = self.word_start();
        self.cut(start, self.cursor);
    }

    pub fn delete_word_right(&mut self) {
        let end = self.word_end();
        self.cut(self.cursor, end);
    }

    /// Deletes to the beginning of the line, or the line end before it.
    pub fn delete_to_start(&mut self) {
        let start = self.line_start();
        let start = if start == self.cursor { self.previous(start) } else { start };
        self.cut(start, self.cursor);
    }

    /// Deletes to the end of the line, or the line end itself.
    pub fn delete_to_end(&mut self) {
        let end = self.line_end();
        let end = if end == self.cursor { self.next(end) } else { end };
        self.cut(self.cursor, end);
    }

    /// Inserts the text that was deleted last as a word or a line.
    pub fn yank(&mut self) {
        let deleted = self.deleted.clone();
        self.insert(&deleted);
    }

    fn expand(&self, text: &str) -> String {
        let mut all = String::with_capacity(text.len());
        for c in text.chars() {
            match fold_index(c).and_then(|index| self.folds.get(index)) {
                Some(paste) => all.push_str(paste),
                None => all.push(c),
            }
        }
        all
    }

    fn cut(&mut self, start: usize, end: usize) {
        if start < end {
            self.deleted = self.text[start..end].to_owned();
            self.remove(start, end);
        }
    }

    fn remove(&mut self, start: usize, end: usize) {
        self.text.replace_range(start..end, "");
        self.cursor = start;
    }

    fn line_start(&self) -> usize {
        self.before().rfind('\n').map_or(0, |at| at + 1)
    }

    fn line_end(&self) -> usize {
        self.text[self.cursor..].find('\n').map_or(self.text.len(), |at| self.cursor + at)
    }

    fn at_offset(&self, start: usize, end: usize, offset: usize) -> usize {
        let at = self.text[start..end].char_indices().nth(offset).map_or(end, |(at, _)| start + at);
        // Not inside of a cluster.
        if at == start { at } else { self.next(self.previous(at)).min(end) }
    }

    /// The beginning of the word before the cursor.
    fn word_start(&self) -> usize {
        let before = self.before();
        let trimmed = before.trim_end_matches(|c| !is_word(c));
        trimmed.rfind(|c| !is_word(c)).map_or(0, |at| self.next(at))
    }

    /// The end of the word after the cursor.
    fn word_end(&self) -> usize {
        let after = &self.text[self.cursor..];
        let skipped = after.len() - after.trim_start_matches(|c| !is_word(c)).len();
        after[skipped..].find(|c| !is_word(c)).map_or(self.text.len(), |at| self.cursor + skipped + at)
    }

    /// The beginning of the cluster before `at`.
    fn previous(&self, at: usize) -> usize {
        let mut start = at;
        while let Some((before, c)) = self.text[..start].char_indices().next_back() {
            start = before;
            let joined = self.text[..start].ends_with(JOINER);
            if !is_joined(c) && !joined {
                break;
            }
        }
        start
    }

    /// The end of the cluster that begins at `at`.
    fn next(&self, at: usize) -> usize {
        let mut characters = self.text[at..].char_indices();
        let Some((_, first)) = characters.next() else { return at };
        let mut last = first;
        for (offset, c) in characters {
            if !is_joined(c) && last != JOINER {
                return at + offset;
            }
            last = c;
        }
        self.text.len()
    }
}

/// Joins the characters around it to one, such as an emoji.
const JOINER: char = '\u{200d}';

/// Whether a character belongs to the one before it.
fn is_joined(c: char) -> bool {
    c != '\n' && !is_fold(c) && !c.is_control() && char_width(c) == 0
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || is_fold(c)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The text with `|` at the cursor.
    fn shown(text: &Text) -> String {
        format!("{}|{}", text.before(), &text.text[text.cursor..])
    }

    /// The text after `edit`, from and to the form of [`shown`].
    fn edited(before: &str, edit: impl FnOnce(&mut Text)) -> String {
        let mut text = Text::default();
        text.insert(&before.replacen('|', "", 1));
        text.cursor = before.find('|').unwrap();
        edit(&mut text);
        shown(&text)
    }

    #[test]
    fn words_and_lines_are_deleted() {
        assert_eq!(edited("one two |three", Text::delete_word_left), "one |three");
        assert_eq!(edited("one |two three", Text::delete_word_right), "one | three");
        assert_eq!(edited("one\ntwo |three", Text::delete_to_start), "one\n|three");
        assert_eq!(edited("one\n|two", Text::delete_to_start), "one|two");
        assert_eq!(edited("one| two\nthree", Text::delete_to_end), "one|\nthree");
        assert_eq!(edited("one|\nthree", Text::delete_to_end), "one|three");
        assert_eq!(
            edited("one two|", |text| {
                text.delete_word_left();
                text.home();
                text.yank();
            }),
            "two|one "
        );
    }

    #[test]
    fn the_cursor_moves_by_words_and_lines() {
        assert_eq!(edited("one, two|", Text::word_left), "one, |two");
        assert_eq!(edited("|one, two", Text::word_right), "one|, two");
        assert_eq!(edited("long line\nab|c", |text| _ = text.up()), "lo|ng line\nabc");
        assert_eq!(edited("long l|ine\nabc", |text| _ = text.down()), "long line\nabc|");
        assert_eq!(edited("o|ne", |text| assert!(!text.up() && !text.down())), "o|ne");
    }

    #[test]
    fn characters_of_several_code_points_are_one() {
        let family = "\u{1f468}\u{200d}\u{1f469}\u{200d}\u{1f467}";
        assert_eq!(edited(&format!("a{family}|b"), Text::backspace), "a|b");
        assert_eq!(edited(&format!("a|{family}b"), Text::right), format!("a{family}|b"));
        assert_eq!(edited("e\u{301}|", Text::left), "|e\u{301}");
    }

    #[test]
    fn a_long_paste_is_one_character_with_a_label() {
        let lines: String = (0..200).map(|line| format!("line {line}\n")).collect();
        let mut text = Text::new("see: ");
        text.paste(&lines);
        assert_eq!(text.as_str().chars().count(), 6);
        assert_eq!(text.as_str().chars().last().and_then(|c| text.label(c)).unwrap(), "[paste 1: 200 lines]");
        assert_eq!(text.expanded(), format!("see: {lines}"));
        text.backspace();
        assert_eq!(text.expanded(), "see: ");
        text.paste("two\nlines");
        assert_eq!(text.as_str(), "see: two\nlines");
    }

    proptest! {
        #[test]
        fn edits_keep_the_cursor_between_characters(
            start in "[ab \n漢e\u{301}\u{200d}\u{1f468}]{0,20}", edits in proptest::collection::vec(0u8..16, 0..40)
        ) {
            let mut text = Text::new(&start);
            for edit in edits {
                match edit {
                    0 => text.left(),
                    1 => text.right(),
                    2 => text.word_left(),
                    3 => text.word_right(),
                    4 => text.home(),
                    5 => text.end(),
                    6 => _ = text.up(),
                    7 => _ = text.down(),
                    8 => text.backspace(),
                    9 => text.delete(),
                    10 => text.delete_word_left(),
                    11 => text.delete_word_right(),
                    12 => text.delete_to_start(),
                    13 => text.delete_to_end(),
                    14 => text.yank(),
                    _ => text.insert("x\n"),
                }
                prop_assert!(text.text.is_char_boundary(text.cursor));
            }
        }
    }
}
