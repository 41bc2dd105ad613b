//! Composes the [`Frame`] at the end of the terminal: what is not printed yet, the status, the input and its menu.

use loomd_editor::{Frame, Layout, Menu, Text, text_width};

use crate::show::{Paint, Style};

/// The parts of a frame, from top to bottom.
#[derive(Default)]
pub struct FrameParts<'a> {
    /// Text that may still change.
    pub pending: String,
    pub status: Option<String>,
    /// A heading above the input.
    pub title: Option<&'a str>,
    pub input: Option<&'a Text>,
    /// Shown in place of the input, such as a search.
    pub line: Option<String>,
    /// What the input begins with.
    pub mark: &'a str,
    pub secret: bool,
    /// Shown in an empty input.
    pub placeholder: &'a str,
    pub menu: Option<&'a Menu>,
    /// A dimmed line at the end.
    pub footer: String,
}

/// The most rows of a menu and of the input.
const MENU_ROWS: usize = 8;
const INPUT_ROWS: usize = 10;

/// Composes a frame that fits into `size`, columns and rows.
pub fn compose(style: Style, size: (usize, usize), parts: &FrameParts<'_>) -> Frame {
    // One column and one row stay free.
    let (width, height) = (size.0.saturating_sub(1).max(1), size.1.saturating_sub(1).max(1));
    let dim = |text: &str| style.paint(Paint::Dim, &style.cut(text, 0));
    let mut below = Vec::new();
    let mut cursor = None;
    if let Some(title) = parts.title {
        below.push(style.paint(Paint::Bold, &style.cut(title, 0)));
    }
    let indent = text_width(parts.mark) + 1;
    if let Some(line) = &parts.line {
        cursor = Some((below.len(), text_width(line).min(width - 1)));
        below.push(line.clone());
    } else if let Some(input) = parts.input {
        let room = width.saturating_sub(indent + 1);
        let layout = Layout::new(input, room, parts.secret).window(INPUT_ROWS.min(height.div_ceil(3)));
        cursor = Some((below.len() + layout.cursor.0, indent + layout.cursor.1));
        for (index, row) in layout.rows.iter().enumerate() {
            let mark = if index == 0 { style.paint(Paint::Cyan, parts.mark) } else { " ".repeat(indent - 1) };
            let text = if input.is_empty() { dim(parts.placeholder) } else { row.text.clone() };
            below.push(format!("{mark} {text}"));
        }
    }
    if let Some(menu) = parts.menu {
        let rows = MENU_ROWS.min(height.saturating_sub(below.len() + 1).max(1));
        for row in menu.rows(width.saturating_sub(2), rows) {
            let mark = if row.is_selected { style.paint(Paint::Cyan, "▸") } else { " ".to_owned() };
            let label = if row.is_selected { style.paint(Paint::Bold, &row.label) } else { row.label };
            below.push(format!("{mark} {label}{}", dim(&row.detail)));
        }
        if menu.is_empty() {
            below.push(dim("  nothing matches"));
        }
    } else if !parts.footer.is_empty() {
        below.push(dim(&parts.footer));
    }
    let mut above: Vec<String> = parts.pending.lines().map(str::to_owned).collect();
    above.push(String::new());
    above.extend(parts.status.iter().map(|status| dim(status)));
    // The end of what is above is what is new.
    below.truncate(height);
    let hidden = (above.len() + below.len()).saturating_sub(height);
    above.drain(..hidden);
    let cursor = cursor.map(|(row, column)| ((above.len() + row).min(height - 1), column));
    above.extend(below);
    Frame { rows: above, cursor }
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use loomd_editor::MenuItem;

    use super::*;

    /// The frame with `▮` at the cursor.
    fn shown(size: (usize, usize), parts: &FrameParts<'_>) -> String {
        let frame = compose(Style::new(Some(size.0 - 1), false), size, parts);
        assert!(frame.rows.len() < size.1, "{frame:?}");
        assert!(frame.rows.iter().all(|row| text_width(row) < size.0), "{frame:?}");
        let (at, column) = frame.cursor.unwrap();
        let mut rows = frame.rows;
        let row = &mut rows[at];
        let byte = row.char_indices().nth(column).map_or(row.len(), |(at, _)| at);
        row.insert(byte, '▮');
        rows.join("\n")
    }

    fn menu() -> Menu {
        let item = |number: usize| MenuItem {
            value: number.to_string(),
            label: format!("/command{number}"),
            detail: "does something that takes a while to explain".into(),
        };
        Menu::new((1..=20).map(item).collect())
    }

    #[test]
    fn a_running_turn_with_a_draft() {
        let text = Text::new("and also\nthe other one");
        let parts = FrameParts {
            pending: "I look at the\nfirst file.\n".into(),
            status: Some("⠋ running a command · 3s".into()),
            input: Some(&text),
            mark: ">",
            footer: "gpt-5 · workspace-write, asks on request · ~/work".into(),
            ..FrameParts::default()
        };
        assert_snapshot!(shown((40, 24), &parts), @r"
        I look at the
        first file.

        ⠋ running a command · 3s
        > and also
          the other one▮
        gpt-5 · workspace-write, asks on reque…
        ");
        assert_snapshot!(shown((24, 5), &parts), @r"
        ⠋ running a command · …
        > and also
          the other one▮
        gpt-5 · workspace-writ…
        ");
    }

    #[test]
    fn a_menu_below_the_input() {
        let (text, menu) = (Text::new("/comm"), menu());
        let parts = FrameParts { input: Some(&text), mark: ">", menu: Some(&menu), ..FrameParts::default() };
        assert_snapshot!(shown((60, 8), &parts), @r"

        > /comm▮
        ▸ /command1  does something that takes a while to explain
          /command2  does something that takes a while to explain
          /command3  does something that takes a while to explain
          /command4  does something that takes a while to explain
          /command5  does something that takes a while to explain
        ");
        assert_snapshot!(shown((24, 4), &parts), @r"

        > /comm▮
        ▸ /command1  does some…
        ");
    }

    #[test]
    fn an_empty_input_has_a_placeholder() {
        let text = Text::default();
        let parts = FrameParts { input: Some(&text), mark: ">", placeholder: "Ask, or /help", ..FrameParts::default() };
        assert_snapshot!(shown((30, 4), &parts), @r"

        > ▮Ask, or /help
        ");
        let secret = FrameParts { input: Some(&text), mark: "?", secret: true, ..FrameParts::default() };
        assert_snapshot!(shown((30, 4), &secret), @r"

        ? ▮
        ");
    }
}
