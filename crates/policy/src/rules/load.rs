//! Loads rules files. A file that cannot be parsed is reported, and does not affect the others.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::Rules;
use super::evaluate::evaluate;
use super::starlark::{Failure, Position, Span};

/// The largest rules file that is loaded.
pub(super) const MAX_FILE_BYTES: u64 = 1024 * 1024;

#[derive(Debug, Default, PartialEq, Eq)]
pub struct LoadedRules {
    pub rules: Rules,
    pub problems: Vec<RulesProblem>,
}

/// Why a file was not loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RulesProblem {
    pub path: PathBuf,
    pub message: String,
    pub start: Position,
    pub end: Position,
}

#[derive(Debug, thiserror::Error)]
#[error("failed to read rules {}: {source}", path.display())]
pub struct LoadError {
    pub path: PathBuf,
    pub source: io::Error,
}

/// Reads every `*.rules` file directly in the `rules` folder of each configuration folder, lowest precedence
/// first. Folders that are missing have no rules.
pub fn load<P: AsRef<Path>>(config_folders: &[P]) -> Result<LoadedRules, LoadError> {
    let mut loaded = LoadedRules::default();
    for folder in config_folders {
        for path in files(&folder.as_ref().join("rules"))? {
            let at = |source| LoadError { path: path.clone(), source };
            let text = loomd_regular::read_to_string(&path, MAX_FILE_BYTES).map_err(at)?;
            match evaluate(&text) {
                Ok(rules) => loaded.rules.extend(rules),
                Err(Failure { message, span: Span { start, end } }) => {
                    loaded.rules.incomplete = true;
                    loaded.problems.push(RulesProblem { path, message, start, end });
                }
            }
        }
    }
    Ok(loaded)
}

fn files(folder: &Path) -> Result<Vec<PathBuf>, LoadError> {
    let at = |source| LoadError { path: folder.to_owned(), source };
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(Vec::new());
        }
        Err(error) => return Err(at(error)),
    };
    let mut found = Vec::new();
    for entry in entries {
        let path = entry.map_err(at)?.path();
        if path.extension().is_some_and(|extension| extension == "rules") && path.is_file() {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_of_all_files_are_merged_and_broken_files_reported() {
        let home = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = home.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("one/rules/b.rules", "prefix_rule(['b'])");
        write("one/rules/a.rules", "prefix_rule(['a'])");
        write("one/rules/c.txt", "nonsense");
        write("one/rules/d.rules/x", "a folder");
        write("two/rules/z.rules", "prefix_rule(['z'])\nnonsense(");
        write("two/rules/y.rules", "prefix_rule(['y'])");
        let folders = ["one", "two", "missing"].map(|name| home.path().join(name));
        let loaded = load(&folders).unwrap();
        let patterns: Vec<_> = loaded.rules.prefixes.iter().map(|rule| rule.pattern[0][0].as_str()).collect();
        assert_eq!((patterns, loaded.rules.incomplete), (vec!["a", "b", "y"], true));
        let at = Position { line: 2, column: 10 };
        assert_eq!(
            loaded.problems,
            [RulesProblem {
                path: folders[1].join("rules/z.rules"),
                message: "Parse error: unexpected new line here".into(),
                start: at,
                end: at,
            }]
        );
        write("one/rules/bad.rules", "");
        fs::write(folders[0].join("rules/bad.rules"), b"\xff").unwrap();
        assert!(load(&folders).unwrap_err().to_string().contains("bad.rules"));
    }
}
