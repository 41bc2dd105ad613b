//! Searches several roots: each file belongs to the deepest root that contains it, and is found once.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use loomd_protocol::{FuzzyFileSearchMatchType, FuzzyFileSearchResult};

use crate::index::{Index, Paths};
use crate::{MAX_RESULTS, Query};

/// A root, as the client wrote it and as an absolute path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Root {
    pub given: String,
    pub path: PathBuf,
}

/// Makes roots absolute, relative to `cwd`, and removes duplicates.
pub(crate) fn resolve(given: &[String], cwd: &Path) -> Vec<Root> {
    let mut roots: Vec<Root> = Vec::new();
    for given in given {
        let path: PathBuf = cwd.join(given).components().collect();
        if roots.iter().all(|root| root.path != path) {
            roots.push(Root { given: given.clone(), path });
        }
    }
    roots
}

/// The best matches of all roots. An empty query matches nothing.
pub(crate) fn search(text: &str, roots: &[(Root, Arc<Index>)], cancelled: &AtomicBool) -> Vec<FuzzyFileSearchResult> {
    if text.is_empty() {
        return Vec::new();
    }
    let query = Query::new(text);
    let mut results = Vec::new();
    let tiers: [fn(&Index) -> &Paths; 2] = [|index| &index.main, |index| &index.git];
    for paths in tiers {
        let mut tier: Vec<FuzzyFileSearchResult> = Vec::new();
        for (root, index) in roots {
            let paths = paths(index);
            let without = nested(root, roots, paths);
            let matches = query.best_of(paths, &without, cancelled);
            tier.extend(matches.iter().map(|found| {
                let path = paths.get(found.at);
                FuzzyFileSearchResult {
                    root: root.given.clone(),
                    path: path.text.to_owned(),
                    match_type: match path.is_dir {
                        true => FuzzyFileSearchMatchType::Directory,
                        false => FuzzyFileSearchMatchType::File,
                    },
                    file_name: path.text.rsplit('/').next().unwrap_or_default().to_owned(),
                    score: found.score,
                    indices: Some(query.positions(path)),
                }
            }));
        }
        tier.sort_by(|one, other| other.score.cmp(&one.score).then_with(|| one.path.cmp(&other.path)));
        results.extend(tier);
        if results.len() >= MAX_RESULTS {
            break;
        }
    }
    results.truncate(MAX_RESULTS);
    results
}

/// The positions of paths that belong to other roots inside of this one.
fn nested(root: &Root, roots: &[(Root, Arc<Index>)], paths: &Paths) -> Vec<Range<usize>> {
    let inside = roots.iter().filter_map(|(other, _)| other.path.strip_prefix(&root.path).ok()?.to_str());
    let inside = inside.filter(|folder| !folder.is_empty());
    inside.flat_map(|folder| [paths.range_of(folder), paths.range_below(folder)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::FoundPath;

    fn check(query: &str, roots: &[(&str, &[&str])], expected: &[(&str, &str)]) {
        let given: Vec<_> = roots.iter().map(|(root, _)| (*root).to_owned()).collect();
        let resolved = resolve(&given, Path::new("/cwd"));
        let indexed: Vec<_> = resolved
            .into_iter()
            .map(|root| {
                let paths = roots.iter().find(|(given, _)| *given == root.given).unwrap().1;
                let found = paths.iter().map(|path| FoundPath { path: (*path).into(), is_dir: false }).collect();
                (root, Arc::new(Index::new(found)))
            })
            .collect();
        let found = search(query, &indexed, &AtomicBool::new(false));
        let found: Vec<_> = found.iter().map(|found| (found.root.as_str(), found.path.as_str())).collect();
        assert_eq!(found, expected, "{query} {roots:?}");
    }

    #[test]
    fn a_file_belongs_to_the_deepest_root() {
        let outer: &[&str] = &["sub", "sub/needle", "sub-needle", "needle"];
        let expected = [("/w/sub", "needle"), ("/w", "needle"), ("/w", "sub-needle")];
        check("needle", &[("/w", outer), ("/w/sub", &["needle"])], &[expected[1], expected[0], expected[2]]);
        check("sub", &[("/w", outer), ("/w/sub", &["", "needle"])], &[("/w", "sub-needle")]);
    }

    #[test]
    fn a_duplicate_root_counts_once() {
        check("a", &[("/w/", &["a"]), ("/w", &["a"]), ("../w", &["a"])], &[("/w/", "a"), ("../w", "a")]);
    }

    #[test]
    fn paths_inside_of_git_come_last() {
        check("head", &[("/w", &[".git/HEAD", "x/hxexaxd"])], &[("/w", "x/hxexaxd"), ("/w", ".git/HEAD")]);
    }

    #[test]
    fn an_empty_query_matches_nothing() {
        check("", &[("/w", &["a"])], &[]);
        check(" ", &[("/w", &["", "a"])], &[("/w", ""), ("/w", "a")]);
    }
}
