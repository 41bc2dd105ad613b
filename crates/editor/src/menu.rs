//! [`Menu`]: a list to choose one item of.

use crate::width::{fit, text_width};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MenuItem {
    /// What is chosen.
    pub value: String,
    /// How it is shown.
    pub label: String,
    /// Shown beside the label, if there is room.
    pub detail: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Menu {
    items: Vec<MenuItem>,
    selected: usize,
}

/// A row of the menu as it is shown, without colours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MenuRow {
    pub label: String,
    pub detail: String,
    pub is_selected: bool,
}

impl Menu {
    /// A menu with the first item selected.
    pub fn new(items: Vec<MenuItem>) -> Self {
        Self { items, selected: 0 }
    }

    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    pub fn items(&self) -> &[MenuItem] {
        &self.items
    }

    pub fn selected(&self) -> Option<&MenuItem> {
        self.items.get(self.selected)
    }

    /// Selects the item with this value, if there is one.
    pub fn select(&mut self, value: &str) {
        if let Some(index) = self.items.iter().position(|item| item.value == value) {
            self.selected = index;
        }
    }

    /// Selects the item before; the last one at the first.
    pub fn up(&mut self) {
        self.selected = self.selected.checked_sub(1).unwrap_or(self.items.len().saturating_sub(1));
    }

    /// Selects the item after; the first one at the last.
    pub fn down(&mut self) {
        self.selected = if self.selected + 1 < self.items.len() { self.selected + 1 } else { 0 };
    }

    /// At most `height` rows around the selected one, each with at most `width` columns.
    pub fn rows(&self, width: usize, height: usize) -> Vec<MenuRow> {
        let first = (self.selected + 1).saturating_sub(height.max(1));
        let window = || self.items.iter().enumerate().skip(first).take(height.max(1));
        let widest = window().map(|(_, item)| text_width(&item.label)).max().unwrap_or(0);
        let shown = |text: &str, room: usize| match text_width(text) > room {
            true if room > 0 => format!("{}…", fit(text, room - 1)),
            true => String::new(),
            false => text.to_owned(),
        };
        window()
            .map(|(index, item)| {
                let label = shown(&item.label, width);
                let padding = widest.min(width).saturating_sub(text_width(&label));
                let room = width.saturating_sub(widest + 2);
                let detail = if room < 8 { String::new() } else { shown(&item.detail, room) };
                let label = if detail.is_empty() { label } else { format!("{label}{}", " ".repeat(padding + 2)) };
                MenuRow { label, detail, is_selected: index == self.selected }
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn menu(count: usize) -> Menu {
        let item = |number: usize| MenuItem {
            value: number.to_string(),
            label: format!("item {number}"),
            detail: "what it is for".into(),
        };
        Menu::new((0..count).map(item).collect())
    }

    fn rows(menu: &Menu, width: usize, height: usize) -> Vec<String> {
        let row = |row: MenuRow| format!("{}{}{}", if row.is_selected { ">" } else { " " }, row.label, row.detail);
        menu.rows(width, height).into_iter().map(row).collect()
    }

    #[test]
    fn the_selection_goes_round_and_stays_in_view() {
        let mut menu = menu(3);
        menu.up();
        assert_eq!(menu.selected().unwrap().value, "2");
        assert_eq!(rows(&menu, 8, 2), [" item 1", ">item 2"]);
        menu.down();
        assert_eq!(menu.selected().unwrap().value, "0");
        assert_eq!(rows(&menu, 8, 2), [">item 0", " item 1"]);
    }

    #[test]
    fn details_are_cut_or_left_out_where_there_is_no_room() {
        assert_eq!(rows(&menu(1), 30, 5), [">item 0  what it is for"]);
        assert_eq!(rows(&menu(1), 17, 5), [">item 0  what it …"]);
        assert_eq!(rows(&menu(1), 12, 5), [">item 0"]);
        assert_eq!(rows(&menu(1), 4, 5), [">ite…"]);
        assert_eq!(rows(&Menu::default(), 10, 5), [] as [&str; 0]);
    }
}
