//! [`Index`]: the paths below a folder, sorted and compact in memory, so that they can be scanned fast.

/// An entry's path, relative to the root, and whether it is a folder.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FoundPath {
    pub path: String,
    pub is_dir: bool,
}

/// Sorted paths. Those inside of `.git` are separate, because they are rarely searched for.
#[derive(Clone, Debug, Default)]
pub struct Index {
    pub(crate) main: Paths,
    pub(crate) git: Paths,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Paths {
    text: String,
    entries: Vec<Entry>,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    start: u32,
    length: u32,
    /// The letters that occur; see [`letters`].
    letters: u64,
    is_dir: bool,
}

/// One path of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PathRef<'a> {
    pub text: &'a str,
    pub letters: u64,
    pub is_dir: bool,
}

impl Index {
    pub fn new(mut found: Vec<FoundPath>) -> Self {
        found.sort_unstable();
        found.dedup_by(|one, other| one.path == other.path);
        let mut index = Self::default();
        found.iter().for_each(|found| index.push(&found.path, found.is_dir));
        index
    }

    pub fn len(&self) -> usize {
        self.main.entries.len() + self.git.entries.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A copy without the paths for which `gone` is true, and with `added`.
    pub(crate) fn changed(&self, gone: impl Fn(&str) -> bool, mut added: Vec<FoundPath>) -> Self {
        added.sort_unstable();
        added.dedup_by(|one, other| one.path == other.path);
        let mut index = Self::default();
        for (old, is_git) in [(&self.main, false), (&self.git, true)] {
            let new = if is_git { &mut index.git } else { &mut index.main };
            new.text.reserve(old.text.len());
            new.entries.reserve(old.entries.len());
            let mut added = added.iter().filter(|found| is_git_internal(&found.path) == is_git).peekable();
            for path in old.iter().filter(|path| !gone(path.text)) {
                while let Some(found) = added.next_if(|found| found.path.as_str() < path.text) {
                    new.push(&found.path, letters(&found.path), found.is_dir);
                }
                // An added path replaces the existing entry.
                match added.next_if(|found| found.path == path.text) {
                    Some(found) => new.push(&found.path, letters(&found.path), found.is_dir),
                    None => new.push(path.text, path.letters, path.is_dir),
                }
            }
            added.for_each(|found| new.push(&found.path, letters(&found.path), found.is_dir));
        }
        index
    }

    /// The direct children of a folder; `""` is the root.
    pub(crate) fn children<'a>(&'a self, folder: &'a str) -> impl Iterator<Item = PathRef<'a>> {
        [&self.main, &self.git].into_iter().flat_map(move |paths| paths.below(folder)).filter(move |path| {
            let rest = if folder.is_empty() { path.text } else { &path.text[folder.len() + 1..] };
            !rest.is_empty() && !rest.contains('/')
        })
    }

    fn push(&mut self, path: &str, is_dir: bool) {
        let paths = if is_git_internal(path) { &mut self.git } else { &mut self.main };
        paths.push(path, letters(path), is_dir);
    }
}

impl Paths {
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn get(&self, at: usize) -> PathRef<'_> {
        let Entry { start, length, letters, is_dir } = self.entries[at];
        PathRef { text: &self.text[start as usize..][..length as usize], letters, is_dir }
    }

    pub fn iter(&self) -> impl Iterator<Item = PathRef<'_>> {
        (0..self.len()).map(|at| self.get(at))
    }

    /// The positions of everything below a folder, without the folder itself.
    pub fn range_below(&self, folder: &str) -> std::ops::Range<usize> {
        if folder.is_empty() {
            return 0..self.len();
        }
        let position = |from: usize, end: u8| {
            let rest = &self.entries[from..];
            from + rest.partition_point(|entry| {
                let path = &self.text.as_bytes()[entry.start as usize..][..entry.length as usize];
                let head = &path[..path.len().min(folder.len())];
                (head, path.get(folder.len()).copied().unwrap_or(0)) < (folder.as_bytes(), end)
            })
        };
        let start = position(0, b'/');
        start..position(start, b'/' + 1)
    }

    /// The position of exactly this path; empty if it is missing.
    pub fn range_of(&self, path: &str) -> std::ops::Range<usize> {
        let at =
            self.entries.partition_point(|entry| &self.text[entry.start as usize..][..entry.length as usize] < path);
        at..at + usize::from(at < self.len() && self.get(at).text == path)
    }

    fn below<'a>(&'a self, folder: &str) -> impl Iterator<Item = PathRef<'a>> {
        self.range_below(folder).map(|at| self.get(at))
    }

    /// Appends a path; paths must come sorted. One beyond four gigabytes of text is left out.
    fn push(&mut self, path: &str, letters: u64, is_dir: bool) {
        let (Ok(start), Ok(length)) = (u32::try_from(self.text.len()), u32::try_from(path.len())) else { return };
        self.text.push_str(path);
        self.entries.push(Entry { start, length, letters, is_dir });
    }
}

fn is_git_internal(path: &str) -> bool {
    path.starts_with(".git/") || path.contains("/.git/")
}

/// The letters of a text with characters beyond ASCII.
pub(crate) const NOT_PLAIN: u64 = u64::MAX;

/// A bit for each letter and digit that occurs, so that most paths can be rejected without matching. Characters that
/// may match others (`Ü` and `u`) set all bits.
pub(crate) fn letters(text: &str) -> u64 {
    text.bytes().fold(0, |bits, byte| match byte {
        b'a'..=b'z' => bits | 1 << (byte - b'a'),
        b'A'..=b'Z' => bits | 1 << (byte - b'A'),
        b'0'..=b'9' => bits | 1 << (26 + byte - b'0'),
        b'_' => bits | 1 << 36,
        b'-' => bits | 1 << 37,
        b'.' => bits | 1 << 38,
        b'/' => bits | 1 << 39,
        0x80.. => NOT_PLAIN,
        _ => bits,
    })
}

#[cfg(test)]
mod tests {
    use proptest::collection::btree_set;
    use proptest::prelude::*;

    use super::*;

    fn found(paths: &[&str]) -> Vec<FoundPath> {
        paths.iter().map(|path| FoundPath { path: (*path).into(), is_dir: false }).collect()
    }

    fn all(index: &Index) -> Vec<&str> {
        index.main.iter().chain(index.git.iter()).map(|path| path.text).collect()
    }

    #[test]
    fn paths_inside_of_git_are_separate() {
        let index = Index::new(found(&["b", ".git/x", "a/.git/y", ".git", ".gitignore", "x.git/z"]));
        assert_eq!(all(&index), [".git", ".gitignore", "b", "x.git/z", ".git/x", "a/.git/y"]);
    }

    #[test]
    fn children_are_direct() {
        let index = Index::new(found(&["a", "a-b", "a/b", "a/b/c", "a/d", "a0", ".git/x", ""]));
        let children = |folder| index.children(folder).map(|path| path.text).collect::<Vec<_>>();
        assert_eq!(children("a"), ["a/b", "a/d"]);
        assert_eq!(children(""), ["a", "a-b", "a0"]);
        assert_eq!(children(".git"), [".git/x"]);
        assert_eq!(children("none"), [""; 0]);
    }

    proptest! {
        #[test]
        fn an_updated_index_equals_a_new_one(
            old in btree_set("[ab/.]{1,4}|\\.git/[ab]", 0..12),
            gone in btree_set("[ab/.]{1,4}", 0..6),
            added in btree_set("[ab/.]{1,4}|\\.git/[ab]", 0..6),
        ) {
            let list = |paths: &std::collections::BTreeSet<String>| -> Vec<FoundPath> {
                paths.iter().map(|path| FoundPath { path: path.clone(), is_dir: false }).collect()
            };
            let changed = Index::new(list(&old)).changed(|path| gone.contains(path), list(&added));
            let expected = old.difference(&gone).chain(&added).cloned().collect();
            let fresh = Index::new(list(&expected));
            prop_assert_eq!(all(&changed), all(&fresh));
        }

        #[test]
        fn the_range_below_a_folder_is_exact(paths in btree_set("[ab/.-]{1,5}", 0..20), folder in "[ab]{1,2}") {
            let found = paths.iter().map(|path| FoundPath { path: path.clone(), is_dir: false }).collect();
            let index = Index::new(found);
            let below: Vec<_> = index.main.below(&folder).map(|path| path.text.to_owned()).collect();
            let prefix = format!("{folder}/");
            let expected: Vec<_> = paths.into_iter().filter(|path| path.starts_with(&prefix)).collect();
            prop_assert_eq!(below, expected);
        }
    }
}
