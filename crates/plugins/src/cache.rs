//! The installed plugins: `plugins/cache/<marketplace>/<plugin>/<version>` of the home.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use loomd_protocol::AbsolutePathBuf;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use uuid::Uuid;

use crate::copy::copy_folder;
use crate::error::PluginError;
use crate::id::PluginId;
use crate::manifest::Manifest;

/// The version of plugins that are in no repository. It is active whatever other versions there are.
pub const LOCAL: &str = "local";

/// Folders that are not installed yet, or no longer.
const STAGING: &str = ".staging-";
/// A staging folder of this age was left behind by a process that died.
const ABANDONED: Duration = Duration::from_secs(3600);

/// The folder of installed plugins.
#[derive(Clone, Debug)]
pub struct PluginCache {
    folder: AbsolutePathBuf,
}

impl PluginCache {
    pub fn new(home: &AbsolutePathBuf) -> Self {
        Self { folder: AbsolutePathBuf::resolve(home, "plugins/cache") }
    }

    /// The folder of the active version; `None` when the plugin is not installed.
    pub fn active(&self, id: &PluginId) -> Option<AbsolutePathBuf> {
        let folder = self.folder_of(id);
        let names = fs::read_dir(&folder).ok()?.flatten().filter(|entry| entry.path().is_dir());
        let mut names: Vec<_> = names.map(|entry| entry.file_name()).collect();
        names.retain(|name| !name.as_encoded_bytes().starts_with(b"."));
        names.sort();
        let name = names.iter().find(|name| *name == LOCAL).or(names.last())?;
        AbsolutePathBuf::new(folder.join(name))
    }

    /// Installs a copy of a folder in place of what was installed of the plugin before. The plugin is there in its old
    /// or its new form at any time, also when this fails.
    pub fn install(&self, source: &AbsolutePathBuf, id: &PluginId, version: &str) -> Result<(), PluginError> {
        let manifest = check_manifest(source)?;
        if manifest.name != id.plugin() {
            return Err(PluginError::Invalid(format!(
                "plugin manifest name `{}` does not match marketplace plugin name `{}`",
                manifest.name,
                id.plugin()
            )));
        }
        let failed = |what: &str| format!("failed to install plugin `{id}`: {what}");
        let staging = self.staging().map_err(PluginError::io(failed("cannot create a folder")))?;
        let staged = staging.0.join("new");
        copy_folder(source, &staged.join(version)).map_err(PluginError::io(failed("cannot copy its files")))?;
        let target = self.folder_of(id);
        let parent = target.parent().unwrap_or(&self.folder);
        loomd_private::create_dir_all(parent).map_err(PluginError::io(failed("cannot create a folder")))?;
        replace(&staged, &target, &staging.0.join("old")).map_err(PluginError::io(failed("cannot move its folder")))
    }

    /// Removes all versions of a plugin, if there are any.
    pub fn remove(&self, id: &PluginId) -> Result<(), PluginError> {
        let target = self.folder_of(id);
        if !target.exists() {
            return Ok(());
        }
        let failed = || format!("failed to remove plugin `{id}`");
        let staging = self.staging().map_err(PluginError::io(failed()))?;
        match fs::rename(&target, staging.0.join("old")) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(PluginError::io(failed())(error)),
            _ => {}
        }
        // Fails while it has other plugins.
        _ = target.parent().map(fs::remove_dir);
        Ok(())
    }

    fn folder_of(&self, id: &PluginId) -> PathBuf {
        self.folder.join(id.marketplace()).join(id.plugin())
    }

    fn staging(&self) -> io::Result<Staging> {
        self.remove_abandoned();
        let folder = self.folder.join(format!("{STAGING}{}", Uuid::now_v7()));
        loomd_private::create_dir_all(&folder)?;
        Ok(Staging(folder))
    }

    fn remove_abandoned(&self) {
        for entry in fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            let is_staging = entry.file_name().as_encoded_bytes().starts_with(STAGING.as_bytes());
            let changed = entry.metadata().and_then(|metadata| metadata.modified());
            let age = changed.ok().and_then(|changed| SystemTime::now().duration_since(changed).ok());
            if is_staging && age.is_some_and(|age| age > ABANDONED) {
                _ = fs::remove_dir_all(entry.path());
            }
        }
    }
}

/// A folder that is removed with what is left in it.
struct Staging(PathBuf);

impl Drop for Staging {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.0) {
            tracing::warn!(%error, folder = %self.0.display(), "cannot remove a staging folder");
        }
    }
}

/// Moves a folder to its place. What was there is in `new` or `old` afterwards.
fn replace(new: &Path, target: &Path, old: &Path) -> io::Result<()> {
    if !target.exists() {
        return fs::rename(new, target);
    }
    if renameat_with(CWD, new, CWD, target, RenameFlags::EXCHANGE).is_ok() {
        return Ok(());
    }
    // Not every file system can exchange.
    fs::rename(target, old)?;
    fs::rename(new, target).inspect_err(|_| _ = fs::rename(old, target))
}

fn check_manifest(source: &AbsolutePathBuf) -> Result<Manifest, PluginError> {
    if !source.is_dir() {
        return Err(PluginError::Invalid(format!("plugin source path is not a directory: {}", source.display())));
    }
    let file = Manifest::file_of(source);
    if !file.is_file() {
        return Err(PluginError::Invalid(format!("missing plugin manifest: {}", file.display())));
    }
    Manifest::read(source)
        .ok_or_else(|| PluginError::Invalid(format!("missing or invalid plugin manifest: {}", file.display())))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    struct Fixture {
        dir: tempfile::TempDir,
        cache: PluginCache,
        id: PluginId,
    }

    fn fixture() -> Fixture {
        let dir = tempfile::tempdir().unwrap();
        let home = AbsolutePathBuf::new(dir.path().join("home")).unwrap();
        Fixture { dir, cache: PluginCache::new(&home), id: "good@market".parse().unwrap() }
    }

    impl Fixture {
        fn put(&self, name: &str, text: &str) {
            let path = self.source().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }

        fn source(&self) -> AbsolutePathBuf {
            AbsolutePathBuf::new(self.dir.path().join("source")).unwrap()
        }

        fn install(&self, version: &str) -> Result<(), String> {
            self.cache.install(&self.source(), &self.id, version).map_err(|error| error.to_string())
        }

        /// All paths in the cache.
        fn installed(&self) -> Vec<String> {
            fn walk(folder: &Path, root: &Path, found: &mut Vec<String>) {
                for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
                    found.push(entry.path().strip_prefix(root).unwrap().display().to_string());
                    walk(&entry.path(), root, found);
                }
            }
            let mut found = Vec::new();
            walk(&self.cache.folder, &self.cache.folder, &mut found);
            found.sort();
            found
        }
    }

    const MANIFEST: &str = ".codex-plugin/plugin.json";

    #[test]
    fn installing_again_replaces_everything_and_leaves_no_staging() {
        let fixture = fixture();
        fixture.put(MANIFEST, r#"{"name": "good"}"#);
        fixture.put("old.txt", "");
        symlink("/etc/passwd", fixture.source().join("link")).unwrap();
        fixture.install(LOCAL).unwrap();
        fs::remove_file(fixture.source().join("old.txt")).unwrap();
        fixture.put("new.txt", "");
        fixture.install(LOCAL).unwrap();
        let manifest = format!("market/good/local/{MANIFEST}");
        let folder = "market/good/local/.codex-plugin";
        assert_eq!(
            fixture.installed(),
            ["market", "market/good", "market/good/local", folder, &manifest, "market/good/local/new.txt"]
        );
        fixture.cache.remove(&fixture.id).unwrap();
        fixture.cache.remove(&fixture.id).unwrap();
        assert_eq!(fixture.installed(), [""; 0]);
    }

    #[test]
    fn a_failed_installation_leaves_the_old_version() {
        let fixture = fixture();
        fixture.put(MANIFEST, r#"{"name": "good"}"#);
        fixture.install(LOCAL).unwrap();
        let before = fixture.installed();
        fixture.put(MANIFEST, r#"{"name": "different"}"#);
        let mismatch = "plugin manifest name `different` does not match marketplace plugin name `good`";
        assert_eq!(fixture.install(LOCAL), Err(mismatch.into()));
        let file = fixture.source().join(MANIFEST);
        fs::write(&file, "[").unwrap();
        assert_eq!(fixture.install(LOCAL), Err(format!("missing or invalid plugin manifest: {}", file.display())));
        fs::remove_file(&file).unwrap();
        assert_eq!(fixture.install(LOCAL), Err(format!("missing plugin manifest: {}", file.display())));
        fs::remove_dir_all(fixture.source()).unwrap();
        let gone = format!("plugin source path is not a directory: {}", fixture.source().display());
        assert_eq!(fixture.install(LOCAL), Err(gone));
        assert_eq!(fixture.installed(), before);
    }

    #[test]
    fn the_local_version_is_active_else_the_greatest() {
        let fixture = fixture();
        let active = || fixture.cache.active(&fixture.id).map(|path| path.file_name().unwrap().to_owned());
        assert_eq!(active(), None);
        let folder = fixture.cache.folder_of(&fixture.id);
        for (version, expected) in [("b", "b"), ("a", "b"), (".hidden", "b"), ("local", "local"), ("z", "local")] {
            fs::create_dir_all(folder.join(version)).unwrap();
            assert_eq!(active().unwrap(), expected);
        }
    }
}
