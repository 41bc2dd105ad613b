//! [`Editor`]: edits a text by keys, with earlier inputs. What a key means beyond editing is left to the program.

use crate::history::History;
use crate::key::Key;
use crate::text::Text;

/// What a key did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Edit {
    /// The text or the cursor may have changed.
    Edited,
    /// Enter was pressed. The text is taken, with its pastes in full.
    Submitted(String),
    /// The editor has no use for the key.
    Unused(Key),
}

#[derive(Default)]
pub struct Editor {
    text: Text,
    history: History,
    /// The index of the shown entry of the history, and the text that was being edited before.
    recalled: Option<(usize, Text)>,
    search: Option<Search>,
}

/// A search in the history.
struct Search {
    query: String,
    /// The index of the found entry.
    found: Option<usize>,
}

impl Editor {
    pub fn new(history: History) -> Self {
        Self { history, ..Self::default() }
    }

    pub fn text(&self) -> &Text {
        &self.text
    }

    pub fn text_mut(&mut self) -> &mut Text {
        self.recalled = None;
        &mut self.text
    }

    /// Takes the text that is being edited, for [`restore`](Self::restore).
    pub fn take(&mut self) -> Text {
        (self.recalled, self.search) = (None, None);
        std::mem::take(&mut self.text)
    }

    pub fn restore(&mut self, text: Text) {
        self.text = text;
    }

    /// Adds an input to the history.
    pub fn remember(&mut self, entry: &str) {
        self.history.add(entry.to_owned());
    }

    /// The query of the search in progress, and the entry that it found.
    pub fn search(&self) -> Option<(&str, Option<&str>)> {
        let search = self.search.as_ref()?;
        Some((&search.query, search.found.and_then(|index| self.history.get(index))))
    }

    pub fn press(&mut self, key: Key) -> Edit {
        match self.search.take() {
            Some(search) => self.press_in_search(search, key),
            None => self.press_in_text(key),
        }
    }

    fn press_in_text(&mut self, key: Key) -> Edit {
        match key {
            Key::Char(c) => self.text.insert(c.encode_utf8(&mut [0; 4])),
            Key::Paste(text) => self.text.paste(&text),
            Key::NewLine => self.text.insert("\n"),
            // A backslash at the end of the line continues it.
            Key::Enter if self.text.before().ends_with('\\') => {
                self.text.backspace();
                self.text.insert("\n");
            }
            Key::Enter => return Edit::Submitted(self.take().expanded()),
            Key::Backspace => self.text.backspace(),
            Key::Delete => self.text.delete(),
            Key::Left => self.text.left(),
            Key::Right => self.text.right(),
            Key::WordLeft => self.text.word_left(),
            Key::WordRight => self.text.word_right(),
            Key::Home => self.text.home(),
            Key::End => self.text.end(),
            Key::Up => {
                if !self.text.up() {
                    self.recall_older();
                }
            }
            Key::Down => {
                if !self.text.down() {
                    self.recall_newer();
                }
            }
            Key::DeleteWordLeft => self.text.delete_word_left(),
            Key::DeleteWordRight => self.text.delete_word_right(),
            Key::DeleteToStart => self.text.delete_to_start(),
            Key::DeleteToEnd => self.text.delete_to_end(),
            Key::Yank => self.text.yank(),
            Key::EndOfInput if !self.text.is_empty() => self.text.delete(),
            Key::Search if !self.history.is_empty() => {
                self.search = Some(Search { query: String::new(), found: None });
            }
            other => return Edit::Unused(other),
        }
        Edit::Edited
    }

    fn press_in_search(&mut self, mut search: Search, key: Key) -> Edit {
        match key {
            Key::Char(c) => {
                search.query.push(c);
                search.found = self.history.search(&search.query, usize::MAX);
            }
            Key::Backspace => {
                search.query.pop();
                search.found = self.history.search(&search.query, usize::MAX).filter(|_| !search.query.is_empty());
            }
            // Further back; the oldest one stays.
            Key::Search => {
                let older = search.found.and_then(|found| self.history.search(&search.query, found));
                search.found = older.or(search.found);
            }
            Key::Escape | Key::Interrupt => return Edit::Edited,
            other => {
                if let Some(found) = search.found.and_then(|index| self.history.get(index)) {
                    self.text = Text::new(found);
                }
                // Enter takes the found entry, so that it can be edited before it is submitted.
                return if other == Key::Enter { Edit::Edited } else { self.press_in_text(other) };
            }
        }
        self.search = Some(search);
        Edit::Edited
    }

    fn recall_older(&mut self) {
        let index = self.recalled.as_ref().map_or(self.history.len(), |(index, _)| *index);
        let Some(older) = index.checked_sub(1) else { return };
        let Some(entry) = self.history.get(older) else { return };
        let recalled = Text::new(entry);
        let edited = std::mem::replace(&mut self.text, recalled);
        let draft = self.recalled.take().map_or(edited, |(_, draft)| draft);
        self.recalled = Some((older, draft));
    }

    fn recall_newer(&mut self) {
        let Some((index, draft)) = self.recalled.take() else { return };
        match self.history.get(index + 1) {
            Some(entry) => {
                self.text = Text::new(entry);
                self.recalled = Some((index + 1, draft));
            }
            None => self.text = draft,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn editor() -> Editor {
        Editor::new(History::new(["first", "second\nline"].map(str::to_owned)))
    }

    fn press(editor: &mut Editor, keys: &[Key]) {
        for key in keys {
            assert_eq!(editor.press(key.clone()), Edit::Edited, "{key:?}");
        }
    }

    fn type_text(editor: &mut Editor, text: &str) {
        press(editor, &text.chars().map(Key::Char).collect::<Vec<_>>());
    }

    #[test]
    fn enter_submits_and_a_backslash_continues_the_line() {
        let mut editor = editor();
        type_text(&mut editor, "one\\");
        press(&mut editor, &[Key::Enter]);
        type_text(&mut editor, "two");
        press(&mut editor, &[Key::NewLine]);
        assert_eq!(editor.press(Key::Enter), Edit::Submitted("one\ntwo\n".into()));
        assert!(editor.text().is_empty());
    }

    #[test]
    fn going_through_the_history_keeps_the_draft() {
        let mut editor = editor();
        type_text(&mut editor, "draft");
        press(&mut editor, &[Key::Up]);
        assert_eq!(editor.text().as_str(), "second\nline");
        // Through the lines of the entry first.
        press(&mut editor, &[Key::Up, Key::Up]);
        assert_eq!(editor.text().as_str(), "first");
        press(&mut editor, &[Key::Up]);
        assert_eq!(editor.text().as_str(), "first");
        press(&mut editor, &[Key::Down, Key::Down]);
        assert_eq!(editor.text().as_str(), "draft");
        press(&mut editor, &[Key::Down]);
        assert_eq!(editor.text().as_str(), "draft");
    }

    #[test]
    fn a_search_finds_older_entries_and_can_be_left() {
        let mut editor = Editor::new(History::new(["make a", "test", "make b"].map(str::to_owned)));
        press(&mut editor, &[Key::Search]);
        type_text(&mut editor, "mak");
        assert_eq!(editor.search(), Some(("mak", Some("make b"))));
        press(&mut editor, &[Key::Search]);
        assert_eq!(editor.search(), Some(("mak", Some("make a"))));
        press(&mut editor, &[Key::Search, Key::Enter]);
        assert_eq!((editor.text().as_str(), editor.search()), ("make a", None));
        press(&mut editor, &[Key::Search]);
        type_text(&mut editor, "test");
        press(&mut editor, &[Key::Escape]);
        assert_eq!((editor.text().as_str(), editor.search()), ("make a", None));
    }

    #[test]
    fn keys_without_a_use_are_returned() {
        let mut editor = editor();
        for key in [Key::Tab, Key::Interrupt, Key::EndOfInput, Key::Escape, Key::Suspend] {
            assert_eq!(editor.press(key.clone()), Edit::Unused(key));
        }
        type_text(&mut editor, "a");
        press(&mut editor, &[Key::Home, Key::EndOfInput]);
        assert!(editor.text().is_empty(), "Ctrl-D deletes while there is text");
    }
}
