//! Password files in the format of PostgreSQL's own clients: `host:port:database:user:password`, one per line.

use std::path::Path;

use crate::Address;

/// The password of an address in a password file. `None` when there is no such file or entry, and when others than the
/// file's owner may read it.
pub fn find_password(path: &Path, address: &Address) -> Option<String> {
    let metadata = std::fs::metadata(path).ok()?;
    #[cfg(unix)]
    if std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & 0o077 != 0 {
        tracing::warn!(path = %path.display(), "password file ignored: others than its owner may access it");
        return None;
    }
    if !metadata.is_file() {
        return None;
    }
    password_of(&std::fs::read_to_string(path).ok()?, address)
}

/// The password of an address in the text of a password file: that of the first line that matches.
pub fn password_of(text: &str, address: &Address) -> Option<String> {
    let wanted = address.parts();
    text.lines().filter(|line| !line.starts_with('#')).find_map(|line| {
        let fields: [String; 5] = fields(line).try_into().ok()?;
        let matches = fields.iter().zip(&wanted).all(|(field, wanted)| field == "*" || field == wanted);
        let [_, _, _, _, password] = fields;
        matches.then_some(password)
    })
}

/// The fields of a line. A backslash takes the character after it literally; the last field keeps further colons.
fn fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        match character {
            ':' if fields.len() < 5 => fields.push(String::new()),
            '\\' => fields.last_mut().into_iter().for_each(|field| field.extend(characters.next())),
            other => fields.last_mut().into_iter().for_each(|field| field.push(other)),
        }
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_that_matches_has_the_password() {
        let address: Address = "postgres://ann@db.example/work".parse().unwrap();
        let check = |text: &str, expected: Option<&str>| {
            assert_eq!(password_of(text, &address).as_deref(), expected, "{text}");
        };
        check("db.example:5432:work:ann:one\n*:*:*:*:two", Some("one"));
        check("# db.example:5432:work:ann:one\nother:*:*:*:no\n*:*:work:ann:a\\:b:c\\\\", Some("a:b:c\\"));
        check("db.example:5433:work:ann:one\nshort:line\n\n", None);
        check("*:*:*:*:", Some(""));
    }
}
