//! Projects: their root, the folders in them with a configuration of their own, and the user's trust.

use std::path::{Path, PathBuf};

use loomd_git::Repository;
use loomd_protocol::{AbsolutePathBuf, ConfigLayerSource};
use toml::{Table, Value};

use crate::config_toml::TrustLevel;
use crate::file::SourceFile;
use crate::paths::PathBase;
use crate::{ConfigError, Layer, nested};

/// The project of a working directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ProjectTree {
    cwd: AbsolutePathBuf,
    root: AbsolutePathBuf,
    /// With symlinks resolved; of a linked work tree, the main one.
    git_root: Option<PathBuf>,
    /// The work tree itself, with symlinks resolved.
    work_tree: Option<PathBuf>,
}

/// A project layer, and its file if the layer is enabled.
pub(crate) struct ProjectLayer {
    pub layer: Layer,
    pub file: Option<SourceFile>,
}

impl ProjectTree {
    /// Finds the project. `settings` are the merged layers without projects, which define the root markers.
    pub fn find(cwd: &AbsolutePathBuf, settings: &Table) -> Self {
        let markers: Vec<&str> = match settings.get("project_root_markers").and_then(Value::as_array) {
            Some(markers) => markers.iter().filter_map(Value::as_str).collect(),
            None => vec![".git"],
        };
        let is_root = |folder: &&Path| markers.iter().any(|marker| folder.join(marker).exists());
        let root = cwd.ancestors().find(is_root).and_then(AbsolutePathBuf::new);
        let repository = Repository::find(&cwd.canonicalize().unwrap_or_else(|_| cwd.to_path_buf()));
        Self {
            root: root.unwrap_or_else(|| cwd.clone()),
            git_root: repository.as_ref().map(Repository::main_work_tree),
            work_tree: repository.and_then(|repository| repository.real_work_tree()),
            cwd: cwd.clone(),
        }
    }

    /// Returns the trust in the working directory, or else in its project.
    pub fn trust(&self, settings: &Table) -> Option<TrustLevel> {
        self.trust_of(&self.cwd, settings)
    }

    fn trust_of(&self, folder: &Path, settings: &Table) -> Option<TrustLevel> {
        let places = [Some(folder), Some(&self.root), self.git_root.as_deref()];
        places.into_iter().flatten().find_map(|place| trust_in(place, settings))
    }

    /// Whether a trusted folder's whole configuration is used: if the user named the folder, or if it is the root of
    /// its work tree. Sandboxes protect those; below them, a command that worked further up may have written the file.
    fn is_fully_trusted(&self, folder: &Path, settings: &Table) -> bool {
        let is_work_tree = || folder.canonicalize().is_ok_and(|real| self.work_tree.as_ref() == Some(&real));
        trust_in(folder, settings) == Some(TrustLevel::Trusted) || is_work_tree()
    }

    /// Returns the layers from the root to the working directory. A file that is not TOML is an error only if its layer
    /// would be enabled.
    pub fn layers(
        &self,
        home: &AbsolutePathBuf,
        user_home: Option<&Path>,
        settings: &Table,
    ) -> Result<Vec<ProjectLayer>, ConfigError> {
        let mut layers = Vec::new();
        for folder in self.folders() {
            let dot_codex = AbsolutePathBuf::resolve(&folder, ".codex");
            // The home is the user's layer already.
            let is_home = || dot_codex == *home || dot_codex.canonicalize().is_ok_and(|real| real == **home);
            if !dot_codex.is_dir() || is_home() {
                continue;
            }
            let distrust = self.disabled_reason(&folder, home, settings);
            let file = SourceFile::read(AbsolutePathBuf::resolve(&dot_codex, "config.toml"));
            let read = file.and_then(|file| Ok((file.table()?, file)));
            // Without anything to load, trust does not matter.
            let is_missing = |file: &SourceFile| file.as_read().is_none() && !nested::has_rules_or_hooks(&dot_codex);
            let (mut table, file, disabled_reason) = match (read, &distrust) {
                (Ok((table, file)), None) => (table, Some(file), None),
                (Ok((_, file)), Some(_)) if is_missing(&file) => (Table::new(), None, None),
                (Ok((table, _)), Some(_)) => (table, None, distrust.clone()),
                (Err(_), Some(_)) => (Table::new(), None, distrust.clone()),
                (Err(error), None) => return Err(error),
            };
            PathBase { folder: dot_codex.clone(), user_home }.resolve(&mut table);
            let trusts_folder = distrust.is_none() && self.is_fully_trusted(&folder, settings);
            let source = ConfigLayerSource::Project { dot_codex_folder: dot_codex.clone() };
            if distrust.is_none() && !trusts_folder {
                let more = nested::take_all_but_preferences(&mut table);
                if !more.is_empty() || nested::has_rules_or_hooks(&dot_codex) {
                    let disabled_reason = Some(nested::disabled_reason(&folder, home));
                    let layer = Layer { disabled_reason, ..Layer::new(source.clone(), more) };
                    layers.push(ProjectLayer { layer, file: None });
                }
            }
            let layer = Layer { disabled_reason, trusts_folder, ..Layer::new(source, table) };
            layers.push(ProjectLayer { layer, file });
        }
        Ok(layers)
    }

    /// From the root to the working directory.
    pub fn folders(&self) -> Vec<AbsolutePathBuf> {
        let inside = self.cwd.ancestors().take_while(|folder| folder.starts_with(&*self.root));
        let mut folders: Vec<_> = inside.filter_map(AbsolutePathBuf::new).collect();
        folders.reverse();
        folders
    }

    fn disabled_reason(&self, folder: &Path, home: &Path, settings: &Table) -> Option<String> {
        let key = self.git_root.as_deref().unwrap_or(&self.root).display();
        let file = home.join("config.toml");
        let file = file.display();
        match self.trust_of(folder, settings) {
            Some(TrustLevel::Trusted) => None,
            Some(TrustLevel::Untrusted) => {
                Some(format!("{key} is marked as untrusted in {file}. To load config.toml, mark it trusted."))
            }
            None => Some(format!("To load config.toml, add {key} as a trusted project in {file}.")),
        }
    }
}

/// Returns the trust in exactly this folder.
fn trust_in(folder: &Path, settings: &Table) -> Option<TrustLevel> {
    match settings.get("projects")?.get(folder.to_str()?)?.get("trust_level")?.as_str()? {
        "trusted" => Some(TrustLevel::Trusted),
        "untrusted" => Some(TrustLevel::Untrusted),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    struct Fixture {
        _dir: tempfile::TempDir,
        root: AbsolutePathBuf,
    }

    /// Creates folders, and files with content.
    fn fixture(folders: &[&str], files: &[(&str, &str)]) -> Fixture {
        let dir = tempfile::tempdir().unwrap();
        let root = AbsolutePathBuf::new(dir.path().canonicalize().unwrap()).unwrap();
        folders.iter().for_each(|folder| fs::create_dir_all(root.join(folder)).unwrap());
        for (file, text) in files {
            fs::create_dir_all(root.join(file).parent().unwrap()).unwrap();
            fs::write(root.join(file), text).unwrap();
        }
        Fixture { _dir: dir, root }
    }

    impl Fixture {
        fn settings(&self, text: &str) -> Table {
            text.replace("<root>", self.root.to_str().unwrap()).parse().unwrap()
        }

        fn trust(&self, cwd: &str, settings: &str) -> Option<TrustLevel> {
            let settings = self.settings(settings);
            ProjectTree::find(&AbsolutePathBuf::resolve(&self.root, cwd), &settings).trust(&settings)
        }

        /// Returns each layer's folder, its table, and whether it is enabled.
        fn layers(&self, cwd: &str, settings: &str) -> Result<Vec<(String, String, bool)>, String> {
            let settings = self.settings(settings);
            let home = AbsolutePathBuf::resolve(&self.root, "home");
            let project = ProjectTree::find(&AbsolutePathBuf::resolve(&self.root, cwd), &settings);
            let layers = project.layers(&home, None, &settings).map_err(|error| error.to_string())?;
            let show = |found: ProjectLayer| {
                let ConfigLayerSource::Project { dot_codex_folder } = &found.layer.source else { unreachable!() };
                let folder = dot_codex_folder.strip_prefix(&*self.root).unwrap().display().to_string();
                (folder, found.layer.table.to_string(), found.layer.is_enabled())
            };
            Ok(layers.into_iter().map(show).collect())
        }
    }

    const TRUSTED: Option<TrustLevel> = Some(TrustLevel::Trusted);
    const UNTRUSTED: Option<TrustLevel> = Some(TrustLevel::Untrusted);

    #[test]
    fn the_trust_of_the_folder_overrides_that_of_the_project() {
        let fixture = fixture(&["w/.git", "w/a/b", "plain/sub"], &[]);
        assert_eq!(fixture.trust("w/a/b", "projects.'<root>/w'.trust_level = 'trusted'"), TRUSTED);
        assert_eq!(fixture.trust("w/a", ""), None);
        let both = "projects.'<root>/w'.trust_level = 'trusted'\nprojects.'<root>/w/a'.trust_level = 'untrusted'";
        assert_eq!(fixture.trust("w/a", both), UNTRUSTED);
        assert_eq!(fixture.trust("w/a/b", both), TRUSTED, "an intermediate folder has no effect");
        let plain = "projects.'<root>/plain'.trust_level = 'trusted'";
        assert_eq!(fixture.trust("plain", plain), TRUSTED);
        assert_eq!(fixture.trust("plain/sub", plain), None, "without a project, trust does not extend to subfolders");
    }

    #[test]
    fn linked_work_trees_and_symlinks_inherit_trust() {
        let fixture = fixture(
            &["main"],
            &[
                ("main/.git/worktrees/w/commondir", "../.."),
                ("main/.git/worktrees/w/gitdir", "../../../../tree/.git"),
                ("tree/.git", "gitdir: ../main/.git/worktrees/w"),
                ("tree/.codex/config.toml", "sandbox_mode = 'read-only'"),
            ],
        );
        std::os::unix::fs::symlink("main", fixture.root.join("alias")).unwrap();
        let settings = "projects.'<root>/main'.trust_level = 'trusted'";
        assert_eq!(fixture.trust("tree", settings), TRUSTED);
        assert_eq!(fixture.trust("alias", settings), TRUSTED);
        let layer = ("tree/.codex".to_owned(), "sandbox_mode = \"read-only\"\n".to_owned(), true);
        assert_eq!(fixture.layers("tree", settings).unwrap(), [layer], "the whole file is used");
    }

    #[test]
    fn a_git_file_that_points_to_a_trusted_repository_gains_no_trust() {
        let fixture = fixture(
            &["main/.git"],
            &[("a/.git/commondir", "../../main/.git"), ("b/.git", "gitdir: ../main/.git/worktrees/w")],
        );
        let settings = "projects.'<root>/main'.trust_level = 'trusted'";
        assert_eq!((fixture.trust("a", settings), fixture.trust("b", settings)), (None, None));
    }

    #[test]
    fn below_the_root_only_preferences_apply_unless_the_folder_is_trusted_by_name() {
        let text = "model = 'm'\nsandbox_mode = 'danger-full-access'\n[mcp_servers.x]\ncommand = 'x'\n";
        let fixture = fixture(
            &["w/.git", "w/b/.codex/rules"],
            &[("w/a/.codex/config.toml", text), ("w/a/PROJECT", ""), ("w/.codex/config.toml", text)],
        );
        let keys = |cwd: &str, settings: &str| -> Vec<_> {
            let layers = fixture.layers(cwd, settings).unwrap().into_iter();
            let key = |text: String| text.parse::<Table>().unwrap().keys().cloned().collect::<Vec<_>>().join(" ");
            layers.map(|(folder, text, enabled)| (folder, key(text), enabled)).collect()
        };
        let layer = |folder: &str, keys: &str, enabled| (folder.to_owned(), keys.to_owned(), enabled);
        let root = layer("w/.codex", "mcp_servers model sandbox_mode", true);
        let trusted = "projects.'<root>/w'.trust_level = 'trusted'\n";
        let nested =
            [root.clone(), layer("w/a/.codex", "mcp_servers sandbox_mode", false), layer("w/a/.codex", "model", true)];
        assert_eq!(keys("w/a", trusted), nested);
        // A command can also create a root marker.
        let marked = format!("project_root_markers = ['PROJECT']\n{trusted}");
        assert_eq!(keys("w/a", &marked), nested[1..]);
        let named = format!("{trusted}projects.'<root>/w/a'.trust_level = 'trusted'\n");
        assert_eq!(keys("w/a", &named), [root.clone(), layer("w/a/.codex", "mcp_servers model sandbox_mode", true)]);
        assert_eq!(keys("w/b", trusted), [root, layer("w/b/.codex", "", false), layer("w/b/.codex", "", true)]);
    }

    #[test]
    fn rules_and_hooks_apply_only_in_fully_trusted_folders() {
        let fixture = fixture(&["w/.git", "w/.codex", "w/a/.codex/rules"], &[]);
        let settings = fixture.settings("projects.'<root>/w'.trust_level = 'trusted'");
        let project = ProjectTree::find(&AbsolutePathBuf::resolve(&fixture.root, "w/a"), &settings);
        let layers = project.layers(&AbsolutePathBuf::resolve(&fixture.root, "home"), None, &settings).unwrap();
        let folders: Vec<_> = layers.iter().filter_map(|found| found.layer.config_folder()).collect();
        assert_eq!(folders, [fixture.root.join("w/.codex")]);
    }

    #[test]
    fn layers_are_ordered_from_the_root_to_the_working_directory() {
        let fixture = fixture(
            &["w/.git", "w/a/.codex", "w/a/b"],
            &[(".codex/config.toml", "a = 0"), ("w/.codex/config.toml", "a = 1"), ("w/a/b/.codex", "a file")],
        );
        let trusted = "projects.'<root>/w'.trust_level = 'trusted'";
        let layer = |folder: &str, text: &str, enabled| (folder.to_owned(), text.to_owned(), enabled);
        let expected = [layer("w/.codex", "a = 1\n", true), layer("w/a/.codex", "", true)];
        assert_eq!(fixture.layers("w/a/b", trusted).unwrap(), expected);
        assert_eq!(fixture.layers("w", "").unwrap(), [layer("w/.codex", "a = 1\n", false)]);
        assert_eq!(fixture.layers("w/a", "project_root_markers = []").unwrap(), [layer("w/a/.codex", "", true)]);
        let marked = "project_root_markers = ['.codex']";
        assert_eq!(fixture.layers("w/none/below", marked).unwrap(), [layer("w/.codex", "a = 1\n", false)]);
    }

    #[test]
    fn a_folder_without_a_file_is_an_empty_enabled_layer_trusted_or_not() {
        let fixture = fixture(&["w/.git", "w/.codex", "w/a/.codex/rules"], &[("w/b/.codex/config.toml", "")]);
        let layer = |folder: &str, enabled| (folder.to_owned(), String::new(), enabled);
        for settings in ["", "projects.'<root>/w'.trust_level = 'untrusted'"] {
            assert_eq!(fixture.layers("w", settings).unwrap(), [layer("w/.codex", true)]);
            let with_file = [layer("w/.codex", true), layer("w/b/.codex", false)];
            assert_eq!(fixture.layers("w/b", settings).unwrap(), with_file);
            let with_rules = [layer("w/.codex", true), layer("w/a/.codex", false)];
            assert_eq!(fixture.layers("w/a", settings).unwrap(), with_rules, "rules need trust");
        }
    }

    #[test]
    fn rules_added_later_to_an_untrusted_folder_are_not_in_force() {
        let fixture = fixture(&["w/.git", "w/.codex"], &[]);
        let project = ProjectTree::find(&AbsolutePathBuf::resolve(&fixture.root, "w"), &Table::new());
        let home = AbsolutePathBuf::resolve(&fixture.root, "home");
        let layers = project.layers(&home, None, &Table::new()).unwrap();
        assert_eq!(layers.iter().filter_map(|found| found.layer.config_folder()).count(), 0);
    }

    #[test]
    fn a_malformed_file_is_an_error_only_where_it_is_trusted() {
        let fixture = fixture(&[], &[("w/.codex/config.toml", "a = [")]);
        assert_eq!(fixture.layers("w", "").unwrap(), [("w/.codex".to_owned(), String::new(), false)]);
        let error = fixture.layers("w", "projects.'<root>/w'.trust_level = 'trusted'").unwrap_err();
        assert!(error.starts_with(fixture.root.join("w/.codex/config.toml:1:").to_str().unwrap()), "{error}");
    }

    #[test]
    fn the_home_is_not_a_project_layer() {
        let fixture = fixture(&["u/.codex"], &[]);
        let home = AbsolutePathBuf::resolve(&fixture.root, "u/.codex");
        let project = ProjectTree::find(&AbsolutePathBuf::resolve(&fixture.root, "u"), &Table::new());
        assert_eq!(project.layers(&home, None, &Table::new()).unwrap().len(), 0);
    }
}
