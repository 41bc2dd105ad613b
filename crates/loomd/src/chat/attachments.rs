//! Images that a prompt names by their paths.

use std::path::{Path, PathBuf};

use loomd_client::Input;

const EXTENSIONS: [&str; 5] = ["png", "jpg", "jpeg", "gif", "webp"];

/// The most images of one prompt.
const MAX_IMAGES: usize = 16;

/// A prompt with the images that it names, and their paths. A path is absolute, in the user's home (`~/`), or relative
/// to `cwd`; it may follow an `@`, be quoted, or have its spaces escaped as terminals do for dropped files.
pub fn with_images(prompt: &str, cwd: &Path, home: Option<&Path>) -> (Input, Vec<PathBuf>) {
    let mut images: Vec<PathBuf> = Vec::new();
    for word in words(prompt) {
        let word = word.strip_prefix('@').unwrap_or(&word);
        let word = word.strip_prefix("file://").unwrap_or(word);
        let word = word.trim_end_matches([',', '.', ';', ':', '!', '?', ')']);
        let extension = Path::new(word).extension().and_then(|extension| extension.to_str()).map(str::to_lowercase);
        if !extension.is_some_and(|extension| EXTENSIONS.contains(&extension.as_str())) {
            continue;
        }
        let path = match (word.strip_prefix("~/"), home) {
            (Some(below), Some(home)) => home.join(below),
            _ => cwd.join(word),
        };
        if images.len() < MAX_IMAGES && path.is_file() && !images.contains(&path) {
            images.push(path);
        }
    }
    let add = |input: Input, path: &PathBuf| match path.to_str() {
        Some(path) => input.and_local_image(path),
        None => input,
    };
    (images.iter().fold(Input::text(prompt), add), images)
}

/// The words of a text, as a shell would read quotes and backslashes. An open quote is a character.
fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut characters = text.char_indices().peekable();
    while let Some((at, c)) = characters.next() {
        match c {
            '\\' if characters.peek().is_some_and(|(_, next)| !next.is_alphanumeric()) => {
                word.extend(characters.next().map(|(_, next)| next));
            }
            '"' | '\'' if word.is_empty() || word == "@" => match text[at + 1..].find([c, '\n']) {
                Some(end) if text[at + 1 + end..].starts_with(c) => {
                    word += &text[at + 1..at + 1 + end];
                    while characters.next_if(|(next, _)| *next <= at + 1 + end).is_some() {}
                }
                _ => word.push(c),
            },
            c if c.is_whitespace() => words.push(std::mem::take(&mut word)),
            c => word.push(c),
        }
    }
    words.push(word);
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_are_found_by_their_paths() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        for name in ["a.png", "my shot.PNG", "notes.txt"] {
            std::fs::write(path(name), b"x").unwrap();
        }
        let check = |prompt: &str, found: &[&str]| {
            let found: Vec<PathBuf> = found.iter().map(|name| path(name)).collect();
            assert_eq!(with_images(prompt, folder.path(), Some(folder.path())).1, found, "{prompt}");
        };
        check("look at a.png, please", &["a.png"]);
        check("see @a.png and ~/a.png", &["a.png"]);
        check(&format!("'{}'", path("my shot.PNG").display()), &["my shot.PNG"]);
        check("my\\ shot.PNG @\"my shot.PNG\"", &["my shot.PNG"]);
        check("it's in a.png", &["a.png"]);
        check("notes.txt and b.png", &[]);
    }

    #[test]
    fn the_text_stays_as_it_is() {
        let (input, _) = with_images("  don't \"change", Path::new("/"), None);
        assert_eq!(input, Input::text("  don't \"change"));
    }
}
