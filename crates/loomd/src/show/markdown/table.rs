//! Tables: columns of equal width, or a list of records where the columns do not fit.

use super::super::style::{Paint, Style, width};
use super::inline::{spans, wrap};

/// Between two columns.
const GAP: usize = 2;

/// Renders the rows `| a | b |` of a table. Without a row of dashes below the first they are no table, and are shown
/// as they are.
pub fn render(style: Style, rows: &[String]) -> String {
    let is_table = rows.get(1).is_some_and(|row| is_delimiter(row));
    if !is_table {
        return rows.iter().map(|row| format!("{row}\n")).collect();
    }
    let mut cells = rows.iter().enumerate().filter(|(index, _)| *index != 1).map(|(_, row)| cells(row));
    let header = cells.next().unwrap_or_default();
    let body: Vec<Vec<&str>> = cells.collect();
    let count = body.iter().map(Vec::len).chain([header.len()]).max().unwrap_or(0);
    let rendered = |cell: &str| wrap(style, &spans(style, cell), None).concat();
    let plain = |cell: &str| spans(style, cell).iter().map(|span| width(&span.text)).sum::<usize>();
    let widths: Vec<usize> = (0..count)
        .map(|column| {
            let all = body.iter().chain([&header]);
            all.filter_map(|row| row.get(column)).map(|cell| plain(cell)).max().unwrap_or(0)
        })
        .collect();
    let total = widths.iter().sum::<usize>() + GAP * count.saturating_sub(1);
    if style.width().is_some_and(|room| total > room) {
        return records(style, &header, &body);
    }
    let line = |row: &[&str], bold: bool| {
        let mut line = String::new();
        for (column, cell) in row.iter().enumerate() {
            let text = rendered(cell);
            line += &if bold { style.paint(Paint::Bold, &text) } else { text };
            if column + 1 < row.len() {
                line += &" ".repeat(widths[column] - plain(cell) + GAP);
            }
        }
        format!("{}\n", line.trim_end())
    };
    let rule = style.paint(Paint::Dim, &"─".repeat(total));
    let mut text = format!("{}{rule}\n", line(&header, true));
    body.iter().for_each(|row| text += &line(row, false));
    text
}

/// One line per cell, with the name of its column.
fn records(style: Style, header: &[&str], body: &[Vec<&str>]) -> String {
    let mut text = String::new();
    for (index, row) in body.iter().enumerate() {
        if index > 0 {
            text.push('\n');
        }
        for (column, cell) in row.iter().enumerate() {
            let name = header.get(column).filter(|name| !name.is_empty());
            let mut line = name.map(|name| spans(style, &format!("{name}: "))).unwrap_or_default();
            line.iter_mut().for_each(|span| span.paint = Some(Paint::Bold));
            line.extend(spans(style, cell));
            text += &format!("{}\n", wrap(style, &line, style.width()).join("\n  "));
        }
    }
    text
}

/// The cells of a row. A bar after a backslash belongs to the cell.
fn cells(row: &str) -> Vec<&str> {
    let row = row.trim().trim_start_matches('|');
    let row = if row.ends_with("\\|") { row } else { row.strip_suffix('|').unwrap_or(row) };
    let mut cells = Vec::new();
    let (mut start, mut escaped) = (0, false);
    for (at, c) in row.char_indices() {
        if c == '|' && !escaped {
            cells.push(row[start..at].trim());
            start = at + 1;
        }
        escaped = c == '\\' && !escaped;
    }
    cells.push(row[start..].trim());
    cells
}

fn is_delimiter(row: &str) -> bool {
    let is_dashes = |cell: &&str| {
        let dashes = cell.trim_matches(':');
        !dashes.is_empty() && dashes.bytes().all(|byte| byte == b'-')
    };
    cells(row).iter().all(is_dashes)
}
