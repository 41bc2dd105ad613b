//! [`Completion`]: the menu below the input, for the command or the file at the cursor.

use loomd_client::protocol::FuzzyFileSearchResult;
use loomd_editor::{Menu, MenuItem, Text};

use super::commands::completions;
use crate::show::lines;

/// What is at the cursor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// The name of a command, after the slash.
    Command(String),
    /// The words of a file search, after the `@`.
    File(String),
}

/// How many files are listed. Those of git are not.
const MAX_FILES: usize = 50;

#[derive(Default)]
pub struct Completion {
    target: Option<Target>,
    menu: Menu,
    /// Closed by the user until the target changes.
    closed: bool,
}

impl Completion {
    /// Follows the text. Returns the query of a file search to make.
    pub fn follow(&mut self, text: &Text) -> Option<String> {
        let target = target(text.before());
        if target == self.target {
            return None;
        }
        self.closed = false;
        self.target = target;
        match &self.target {
            Some(Target::File(query)) => Some(query.clone()),
            Some(Target::Command(prefix)) => {
                self.menu = Menu::new(completions(prefix));
                None
            }
            None => {
                self.menu = Menu::default();
                None
            }
        }
    }

    /// Shows the result of a file search, if it is still looked for.
    pub fn show_files(&mut self, query: &str, files: Vec<FuzzyFileSearchResult>) {
        if self.target == Some(Target::File(query.to_owned())) {
            let item = |file: FuzzyFileSearchResult| MenuItem {
                label: lines(&file.path).join(" "),
                value: file.path,
                detail: String::new(),
            };
            let is_own = |file: &FuzzyFileSearchResult| !file.path.split('/').any(|part| part == ".git");
            self.menu = Menu::new(files.into_iter().filter(is_own).take(MAX_FILES).map(item).collect());
        }
    }

    /// The menu, if it is open.
    pub fn menu(&mut self) -> Option<&mut Menu> {
        (!self.closed && !self.menu.is_empty()).then_some(&mut self.menu)
    }

    pub fn close(&mut self) {
        self.closed = true;
    }

    /// Replaces the target in the text by the selected item. Returns whether that is a whole command.
    pub fn accept(&mut self, text: &mut Text) -> bool {
        let Some(value) = self.menu.selected().map(|item| item.value.clone()) else { return false };
        let (length, inserted, is_command) = match &self.target {
            Some(Target::Command(prefix)) => (prefix.len() + 1, format!("{value} "), true),
            Some(Target::File(query)) if value.contains(char::is_whitespace) => {
                (query.len() + 1, format!("@\"{value}\" "), false)
            }
            Some(Target::File(query)) => (query.len() + 1, format!("@{value} "), false),
            None => return false,
        };
        text.replace_before(text.cursor() - length, &inserted);
        *self = Self::default();
        is_command
    }
}

/// What the text before the cursor ends with.
fn target(before: &str) -> Option<Target> {
    if let Some(name) = before.strip_prefix('/')
        && name.chars().all(|c| c.is_ascii_lowercase())
    {
        return Some(Target::Command(name.to_owned()));
    }
    let word = before.rsplit(char::is_whitespace).next()?;
    word.strip_prefix('@').map(|query| Target::File(query.to_owned()))
}

#[cfg(test)]
mod tests {
    use loomd_client::protocol::FuzzyFileSearchMatchType;

    use super::*;

    #[test]
    fn commands_and_files_are_completed_at_the_cursor() {
        for (before, expected) in [
            ("/mo", Some(Target::Command("mo".into()))),
            ("/model x", None),
            ("/usr/bin", None),
            ("look at @src/ma", Some(Target::File("src/ma".into()))),
            ("@", Some(Target::File(String::new()))),
            ("me@example.com", None),
            ("@a b", None),
            ("", None),
        ] {
            assert_eq!(target(before), expected, "{before}");
        }
    }

    #[test]
    fn a_chosen_file_replaces_its_query() {
        let file = |path: &str| FuzzyFileSearchResult {
            root: "/w".into(),
            path: path.into(),
            match_type: FuzzyFileSearchMatchType::File,
            file_name: path.into(),
            score: 1,
            indices: None,
        };
        let (mut completion, mut text) = (Completion::default(), Text::new("see @ma"));
        assert_eq!(completion.follow(&text), Some("ma".to_owned()));
        assert_eq!(completion.follow(&text), None);
        completion.show_files("m", vec![file("old result")]);
        assert!(completion.menu().is_none(), "an older search");
        completion.show_files("ma", vec![file(".git/main"), file("src/main.rs"), file("my main.rs")]);
        completion.menu().unwrap().down();
        assert!(!completion.accept(&mut text));
        assert_eq!(text.as_str(), "see @\"my main.rs\" ");
    }

    #[test]
    fn a_closed_menu_opens_again_when_the_word_changes() {
        let (mut completion, mut text) = (Completion::default(), Text::new("/m"));
        completion.follow(&text);
        completion.close();
        assert!(completion.menu().is_none());
        text.insert("o");
        completion.follow(&text);
        assert!(completion.menu().is_some());
        assert!(completion.accept(&mut text));
        assert_eq!(text.as_str(), "/model ");
    }
}
