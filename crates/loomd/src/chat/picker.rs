//! [`Picker`]: a list that the user chooses from, in place of the input. Typing narrows it.

use loomd_editor::{Editor, Key, Menu, MenuItem, Text};

use super::commands::Command;

pub struct Picker {
    pub title: String,
    items: Vec<MenuItem>,
    filter: Editor,
    menu: Menu,
    /// The command for the chosen value.
    command: fn(String) -> Command,
}

#[derive(Debug, PartialEq)]
pub enum Picked {
    Open,
    Chosen(Command),
    Cancelled,
}

impl Picker {
    /// A list with the item of value `current` selected.
    pub fn new(title: &str, items: Vec<MenuItem>, current: &str, command: fn(String) -> Command) -> Self {
        let mut menu = Menu::new(items.clone());
        menu.select(current);
        Self { title: title.to_owned(), items, filter: Editor::default(), menu, command }
    }

    pub fn menu(&self) -> &Menu {
        &self.menu
    }

    pub fn filter(&self) -> &Text {
        self.filter.text()
    }

    pub fn press(&mut self, key: Key) -> Picked {
        match key {
            Key::Up | Key::BackTab => self.menu.up(),
            Key::Down | Key::Tab => self.menu.down(),
            Key::Escape | Key::Interrupt => return Picked::Cancelled,
            Key::EndOfInput if self.filter.text().is_empty() => return Picked::Cancelled,
            Key::Enter => {
                return match self.menu.selected() {
                    Some(item) => Picked::Chosen((self.command)(item.value.clone())),
                    None => Picked::Cancelled,
                };
            }
            other => {
                self.filter.press(other);
                self.narrow();
            }
        }
        Picked::Open
    }

    /// The choice by a typed line of a plain terminal: a number, or a value.
    pub fn choose(&self, line: &str) -> Picked {
        let line = line.trim();
        if line.is_empty() {
            return Picked::Cancelled;
        }
        let number = line.parse().ok().and_then(|number: usize| self.items.get(number.checked_sub(1)?));
        match number.or_else(|| self.items.iter().find(|item| item.value == line)) {
            Some(item) => Picked::Chosen((self.command)(item.value.clone())),
            None => Picked::Open,
        }
    }

    /// The list as numbered lines.
    pub fn lines(&self) -> String {
        let line = |(index, item): (usize, &MenuItem)| {
            format!("  {}  {}  {}", index + 1, item.label, item.detail).trim_end().to_owned() + "\n"
        };
        let items: String = self.items.iter().enumerate().map(line).collect();
        format!("{}\n{items}Type a number, or nothing to cancel.\n", self.title)
    }

    fn narrow(&mut self) {
        let words: Vec<String> = self.filter.text().as_str().split_whitespace().map(str::to_lowercase).collect();
        let matches = |item: &&MenuItem| {
            let text = format!("{} {} {}", item.label, item.detail, item.value).to_lowercase();
            words.iter().all(|word| text.contains(word.as_str()))
        };
        self.menu = Menu::new(self.items.iter().filter(matches).cloned().collect());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picker() -> Picker {
        let item = |name: &str| MenuItem { value: name.to_owned(), label: name.to_owned(), detail: String::new() };
        Picker::new("Model", vec![item("alpha"), item("beta"), item("gamma")], "beta", |value| {
            Command::Model(Some(value))
        })
    }

    fn model(name: &str) -> Picked {
        Picked::Chosen(Command::Model(Some(name.to_owned())))
    }

    #[test]
    fn the_current_value_is_selected_and_typing_narrows_the_list() {
        assert_eq!(picker().press(Key::Enter), model("beta"));
        let mut narrowed = picker();
        "GAM".chars().for_each(|c| assert_eq!(narrowed.press(Key::Char(c)), Picked::Open));
        assert_eq!(narrowed.press(Key::Enter), model("gamma"));
        narrowed.press(Key::Char('x'));
        assert_eq!(narrowed.press(Key::Enter), Picked::Cancelled);
        assert_eq!(picker().press(Key::Escape), Picked::Cancelled);
    }

    #[test]
    fn a_plain_terminal_takes_numbers_and_names() {
        assert_eq!(picker().choose("3"), model("gamma"));
        assert_eq!(picker().choose(" alpha "), model("alpha"));
        assert_eq!(picker().choose("4"), Picked::Open);
        assert_eq!(picker().choose(""), Picked::Cancelled);
    }
}
