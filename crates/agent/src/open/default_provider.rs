//! The name of the configured model provider, for threads that recorded none. Configuration is read again only
//! when one of its files has changed.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use loomd_config::ConfigSources;
use parking_lot::Mutex;

/// A file that changed more recently may change again within the resolution of its time.
const SETTLED: Duration = Duration::from_millis(50);

/// The provider when the configuration cannot be read.
const FALLBACK: &str = "openai";

/// The provider that the configuration named when its files were last read.
#[derive(Default)]
pub(crate) struct DefaultProvider(Mutex<Option<(Stamp, String)>>);

/// Device, inode, length and time of change of a file; `None` for one that is not there.
type FileStamp = Option<(u64, u64, u64, i64, i64)>;

/// The state of the configuration files that a value was read from.
#[derive(PartialEq, Eq)]
struct Stamp {
    files: Vec<FileStamp>,
    managed: String,
}

impl DefaultProvider {
    pub fn get(&self, sources: &ConfigSources) -> String {
        let managed = format!("{:?}", sources.live.managed);
        self.known_or(&files(sources), managed, || {
            let loaded = loomd_config::load(&sources.request());
            let settings = loaded.and_then(|loaded| loomd_config::resolve(&loaded));
            settings.map_or_else(|_| FALLBACK.into(), |settings| settings.config.model_provider().to_owned())
        })
    }

    fn known_or(&self, files: &[PathBuf], managed: String, read: impl FnOnce() -> String) -> String {
        // Taken before the files are read, so that a change meanwhile is detected by the next call.
        let (files, settled) = stamps(files);
        let stamp = Stamp { files, managed };
        let mut known = self.0.lock();
        if let Some((seen, provider)) = &*known
            && *seen == stamp
        {
            return provider.clone();
        }
        let provider = read();
        *known = settled.then(|| (stamp, provider.clone()));
        provider
    }
}

/// Returns the files that can name the provider.
fn files(sources: &ConfigSources) -> Vec<PathBuf> {
    let mut files = vec![sources.request().user_file().into_path_buf()];
    if let Some(system) = &sources.system_file {
        files.push(system.to_path_buf());
        let folder = system.parent().unwrap_or(Path::new("/"));
        files.extend(["managed_config.toml", "requirements.toml"].map(|name| folder.join(name)));
    }
    files
}

/// Returns the state of each file, and whether all are older than [`SETTLED`].
fn stamps(files: &[PathBuf]) -> (Vec<FileStamp>, bool) {
    let now = SystemTime::now();
    let mut settled = true;
    let stamp = |path: &PathBuf| {
        let meta = std::fs::metadata(path).ok()?;
        let age = meta.modified().ok().and_then(|time| now.duration_since(time).ok());
        settled &= age.is_some_and(|age| age > SETTLED);
        Some((meta.dev(), meta.ino(), meta.len(), meta.ctime(), meta.ctime_nsec()))
    };
    let stamps = files.iter().map(stamp).collect();
    (stamps, settled)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn configuration_is_read_again_only_after_a_file_changed() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("config.toml");
        let write = |text: &str, age: u64| {
            std::fs::write(&file, text).unwrap();
            let time = SystemTime::now() - Duration::from_secs(age);
            std::fs::File::options().append(true).open(&file).unwrap().set_modified(time).unwrap();
        };
        let (provider, files) = (DefaultProvider::default(), [file.clone(), home.path().join("missing")]);
        let ask = |answer: &str, managed: &str| provider.known_or(&files, managed.into(), || answer.into());
        write("one", 10);
        assert_eq!((ask("1", ""), ask("2", "")), ("1".into(), "1".into()));
        write("three", 10);
        assert_eq!((ask("3", ""), ask("4", "")), ("3".into(), "3".into()));
        assert_eq!((ask("5", "x"), ask("6", "x")), ("5".into(), "5".into()));
        std::fs::write(&files[1], "7").unwrap();
        assert_eq!((ask("7", "x"), ask("8", "x")), ("7".into(), "8".into()), "it may change again at once");
        std::fs::remove_file(&file).unwrap();
        assert_eq!(ask("9", "x"), "9");
    }
}
