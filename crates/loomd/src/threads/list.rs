//! Threads as a table.

use std::time::{SystemTime, UNIX_EPOCH};

use loomd_protocol::Thread;

use crate::show::{Paint, Style, lines};

/// Seconds since the Unix epoch.
pub fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}

/// One line per thread: id, age, folder if `folders`, and name.
pub fn table(style: Style, threads: &[Thread], folders: bool, now: i64) -> String {
    let folder = |thread: &Thread| if folders { format!("{}  ", lines(&thread.cwd).join(" ")) } else { String::new() };
    threads
        .iter()
        .map(|thread| {
            let age = age(now - thread.updated_at);
            let about = format!("{}{}", folder(thread), about(thread));
            let used = thread.id.len() + age.len().max(AGE) + 4;
            let id = style.paint(Paint::Cyan, &thread.id);
            format!("{id}  {}  {}\n", style.paint(Paint::Dim, &format!("{age:>AGE$}")), style.cut(&about, used))
        })
        .collect()
}

/// The heading of a thread: name, id, folder, age.
pub fn heading(style: Style, thread: &Thread, now: i64) -> String {
    let facts = [
        ("thread", thread.id.clone()),
        ("folder", thread.cwd.clone()),
        ("model", thread.model_provider.clone()),
        ("last used", age(now - thread.updated_at)),
        ("file", thread.path.clone().unwrap_or_default()),
    ];
    let mut text = format!("{}\n", style.paint(Paint::Bold, &style.cut(&about(thread), 0)));
    for (name, value) in facts {
        text += &format!("{} {}\n", style.paint(Paint::Dim, name), lines(&value).join(" "));
    }
    text
}

/// The width of the column of ages.
const AGE: usize = 4;

/// The thread's name, or else its preview.
pub fn about(thread: &Thread) -> String {
    let text = thread.name.as_deref().unwrap_or(&thread.preview);
    lines(text).into_iter().find(|line| !line.trim().is_empty()).unwrap_or_default()
}

/// `5m`
pub fn age(seconds: i64) -> String {
    match seconds {
        ..60 => "now".to_owned(),
        60..3_600 => format!("{}m", seconds / 60),
        3_600..86_400 => format!("{}h", seconds / 3_600),
        _ => format!("{}d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_have_one_unit() {
        for (seconds, text) in [
            (-5, "now"),
            (59, "now"),
            (60, "1m"),
            (3_599, "59m"),
            (3_600, "1h"),
            (86_399, "23h"),
            (86_400, "1d"),
            (40_000_000, "462d"),
        ] {
            assert_eq!(age(seconds), text, "{seconds}");
        }
    }
}
