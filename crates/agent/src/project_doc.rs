//! The instructions of a project: the `AGENTS.md` files of the home and of the folders from the project's root
//! down to the working folder, as one text for the model. Nothing is cached.

use std::io;
use std::path::{Path, PathBuf};

const OVERRIDE: &str = "AGENTS.override.md";
const PLAIN: &str = "AGENTS.md";

/// The separator between the home's document and those of the project.
const SEPARATOR: &str = "\n\n--- project-doc ---\n\n";

/// The most bytes of the home's document. `max_bytes` does not apply to it, but it is sent with every model call.
const MAX_HOME_BYTES: u64 = 1 << 20;

/// Where documents are looked for.
#[derive(Clone, Copy, Debug)]
pub struct ProjectDocs<'a> {
    pub home: &'a Path,
    pub cwd: &'a Path,
    /// The names of entries that mark the root of a project. Without any, only the working folder is searched.
    pub root_markers: &'a [String],
    /// The names of files that are read in folders without `AGENTS.md`.
    pub fallback_names: &'a [String],
    /// The limit of all documents of the project together.
    pub max_bytes: usize,
}

impl ProjectDocs<'_> {
    /// The documents, joined; `None` when there are none.
    pub fn read(&self) -> Option<String> {
        match (self.home_doc(), self.project_doc()) {
            (Some(home), Some(project)) => Some(format!("{home}{SEPARATOR}{project}")),
            (home, project) => home.or(project),
        }
    }

    /// The files that [`Self::read`] reads, whatever the limits: of the home, then from the root of the project down.
    pub fn sources(&self) -> Vec<PathBuf> {
        let is_filled = |path: &PathBuf| text(path, MAX_HOME_BYTES).is_some_and(|text| !text.trim().is_empty());
        let home = [OVERRIDE, PLAIN].iter().map(|name| self.home.join(name)).find(is_filled);
        let project = self.folders().into_iter().filter_map(|folder| self.doc_in(folder)).filter(is_filled);
        home.into_iter().chain(project).collect()
    }

    /// The home's document.
    fn home_doc(&self) -> Option<String> {
        [OVERRIDE, PLAIN].iter().find_map(|name| {
            let text = text(&self.home.join(name), MAX_HOME_BYTES)?;
            let text = text.trim();
            (!text.is_empty()).then(|| text.to_owned())
        })
    }

    fn project_doc(&self) -> Option<String> {
        let mut left = self.max_bytes;
        let mut docs = Vec::new();
        for path in self.folders().iter().filter_map(|folder| self.doc_in(folder)) {
            if left == 0 {
                break;
            }
            let Some(text) = text(&path, left as u64) else { continue };
            if !text.trim().is_empty() {
                left = left.saturating_sub(text.len());
                docs.push(text);
            }
        }
        (!docs.is_empty()).then(|| docs.join("\n\n"))
    }

    /// From the root of the project down to the working folder.
    fn folders(&self) -> Vec<&Path> {
        let is_root = |folder: &Path| self.root_markers.iter().any(|marker| folder.join(marker).exists());
        let depth = self.cwd.ancestors().position(is_root).unwrap_or(0);
        let mut folders: Vec<_> = self.cwd.ancestors().take(depth + 1).collect();
        folders.reverse();
        folders
    }

    fn doc_in(&self, folder: &Path) -> Option<PathBuf> {
        let fallbacks = self.fallback_names.iter().map(|name| name.trim()).filter(|name| !name.is_empty());
        let mut names = [OVERRIDE, PLAIN].into_iter().chain(fallbacks);
        names.find_map(|name| Some(folder.join(name)).filter(|path| path.is_file()))
    }
}

/// The documents as a section for the model, with the folder that they apply to.
pub fn section(cwd: &Path, docs: &str) -> String {
    format!("# AGENTS.md instructions for {}\n\n<INSTRUCTIONS>\n{docs}\n</INSTRUCTIONS>", cwd.display())
}

/// The start of a file as text. `None` when it cannot be read: that does not fail the thread.
fn text(path: &Path, max_bytes: u64) -> Option<String> {
    match loomd_regular::read_start(path, max_bytes) {
        Ok(bytes) => Some(String::from_utf8_lossy(whole_characters(&bytes)).into_owned()),
        Err(error) => {
            if error.kind() != io::ErrorKind::NotFound {
                tracing::warn!(path = %path.display(), %error, "cannot read project instructions");
            }
            None
        }
    }
}

/// Removes an incomplete UTF-8 sequence at the end.
fn whole_characters(bytes: &[u8]) -> &[u8] {
    match std::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => &bytes[..error.valid_up_to()],
        _ => bytes,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// A home and a project in a temporary folder. The project is `work`, and turns run in `work/sub`.
    struct Case {
        folder: tempfile::TempDir,
        root_markers: Vec<String>,
        fallback_names: Vec<String>,
        max_bytes: usize,
    }

    impl Case {
        fn new(files: &[(&str, &str)]) -> Self {
            let folder = tempfile::tempdir().unwrap();
            fs::create_dir_all(folder.path().join("work/sub")).unwrap();
            let case = Self { folder, root_markers: vec![".git".into()], fallback_names: vec![], max_bytes: 32_768 };
            for (name, content) in files {
                case.put(name, content.as_bytes());
            }
            case
        }

        fn put(&self, name: &str, content: &[u8]) {
            let path = self.folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }

        fn read(&self) -> Option<String> {
            let docs = ProjectDocs {
                home: &self.folder.path().join("home"),
                cwd: &self.folder.path().join("work/sub"),
                root_markers: &self.root_markers,
                fallback_names: &self.fallback_names,
                max_bytes: self.max_bytes,
            };
            docs.read()
        }

        fn check(&self, expected: &str) {
            assert_eq!(self.read().as_deref(), Some(expected));
        }
    }

    const ROOT: (&str, &str) = ("work/.git/HEAD", "");

    #[test]
    fn without_documents_there_is_no_text() {
        assert_eq!(Case::new(&[]).read(), None);
        assert_eq!(Case::new(&[ROOT, ("work/AGENTS.md", " \n"), ("home/AGENTS.md", "\n")]).read(), None);
    }

    #[test]
    fn documents_are_joined_from_the_home_to_the_working_folder() {
        let files = [
            ROOT,
            ("AGENTS.md", "above the root"),
            ("home/AGENTS.md", "\n home \n"),
            ("work/AGENTS.md", "root\n"),
            ("work/sub/AGENTS.md", " sub"),
        ];
        Case::new(&files).check("home\n\n--- project-doc ---\n\nroot\n\n\n sub");
    }

    #[test]
    fn overrides_come_first_and_fallbacks_last() {
        let mut case = Case::new(&[
            ROOT,
            ("home/AGENTS.override.md", "home override"),
            ("home/AGENTS.md", "home"),
            ("work/GUIDE.md", "guide"),
            ("work/sub/AGENTS.override.md", "override"),
            ("work/sub/AGENTS.md", "shadowed"),
            ("work/sub/GUIDE.md", "shadowed"),
        ]);
        case.fallback_names = vec!["".into(), " GUIDE.md ".into()];
        case.check("home override\n\n--- project-doc ---\n\nguide\n\noverride");
    }

    #[test]
    fn a_blank_override_counts_in_a_project_and_not_in_the_home() {
        let files =
            [("home/AGENTS.override.md", " "), ("home/AGENTS.md", "home"), ("work/sub/AGENTS.override.md", " ")];
        let case = Case::new(&files);
        case.put("work/sub/AGENTS.md", b"shadowed");
        case.check("home");
    }

    #[test]
    fn without_a_root_only_the_working_folder_counts() {
        let files = [("work/.hg/x", ""), ("work/AGENTS.md", "root"), ("work/sub/AGENTS.md", "sub")];
        let mut case = Case::new(&files);
        case.check("sub");
        case.root_markers = vec![];
        case.check("sub");
        case.root_markers = vec![".git".into(), ".hg".into()];
        case.check("root\n\nsub");
    }

    #[test]
    fn documents_of_a_project_share_one_limit() {
        let files =
            [ROOT, ("home/AGENTS.md", "home"), ("work/AGENTS.md", "12345678"), ("work/sub/AGENTS.md", "abcdefgh")];
        let mut case = Case::new(&files);
        for (max_bytes, expected) in [(12, "12345678\n\nabcd"), (8, "12345678"), (3, "123")] {
            case.max_bytes = max_bytes;
            case.check(&format!("home{SEPARATOR}{expected}"));
        }
        case.max_bytes = 0;
        case.check("home");
        case.put("work/AGENTS.md", b"    ");
        case.max_bytes = 4;
        case.check("home\n\n--- project-doc ---\n\nabcd");
    }

    #[test]
    fn characters_are_not_cut_in_two_and_bad_bytes_are_replaced() {
        let mut case = Case::new(&[("work/sub/AGENTS.md", "\u{e9}\u{e9}")]);
        case.max_bytes = 3;
        case.check("\u{e9}");
        case.max_bytes = 100;
        case.put("work/sub/AGENTS.md", b"\xffx");
        case.check("\u{fffd}x");
    }

    #[test]
    fn a_folder_with_the_name_of_a_document_is_passed_over() {
        let mut case = Case::new(&[("work/sub/AGENTS.md/x", ""), ("work/sub/GUIDE.md", "guide")]);
        case.fallback_names = vec!["GUIDE.md".into()];
        case.check("guide");
    }

    #[test]
    fn the_section_names_its_folder() {
        assert_eq!(
            section(Path::new("/w"), "RULES"),
            "# AGENTS.md instructions for /w\n\n<INSTRUCTIONS>\nRULES\n</INSTRUCTIONS>"
        );
    }
}
