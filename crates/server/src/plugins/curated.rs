//! Keeps the curated marketplace in the home up to date: a git repository of which the newest version is fetched in the
//! background, once per process. Nothing is fetched without a ChatGPT account at the official service, or when the
//! feature is off. Failures are logged and change nothing.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use loomd_accounts::Accounts;
use loomd_config::ConfigSources;
use loomd_plugins::{CURATED, Marketplace, curated_folder, curated_version};
use loomd_protocol::AbsolutePathBuf;
use tokio::task::spawn_blocking;

use super::git::{self, Staging};
use super::{Plugins, is_chatgpt, is_on};

const REPOSITORY: &str = "https://github.com/openai/plugins.git";
/// Says that the plugins of the account have been installed once.
const SYNCED: &str = ".tmp/app-server-remote-plugin-sync-v1";

/// Starts the update in the background, if it is allowed.
pub(crate) fn start(sources: &Arc<ConfigSources>, accounts: &Accounts, plugins: &Arc<Plugins>) {
    if !is_chatgpt(accounts) || !accounts.is_official_backend() {
        return;
    }
    if !loomd_config::load(&sources.request()).is_ok_and(|loaded| is_on(&loaded)) {
        return;
    }
    let (sources, accounts, plugins) = (Arc::clone(sources), accounts.clone(), Arc::clone(plugins));
    tokio::spawn(async move {
        if let Err(error) = update(&sources.home, REPOSITORY).await {
            return tracing::info!(%error, "the curated plugins were not updated");
        }
        let marker = sources.home.join(SYNCED);
        if marker.exists() {
            return;
        }
        match plugins.sync(&sources, &accounts).await {
            Ok(()) => _ = loomd_private::options().write(true).create(true).truncate(true).open(&marker),
            Err(error) => tracing::info!(%error, "the plugins of the account were not installed"),
        }
    });
}

/// Fetches the newest version of a repository into the home, unless it is there already.
async fn update(home: &AbsolutePathBuf, repository: &str) -> Result<(), String> {
    let listed = git(home, &["ls-remote", repository, "HEAD"]).await?;
    let newest = listed.split_whitespace().next().filter(|hash| hash.len() >= 40).ok_or("no HEAD in the repository")?;
    let folder = curated_folder(home);
    if curated_version(home).as_deref() == Some(newest) && Marketplace::file_of(&folder).is_file() {
        return Ok(());
    }
    let staging = Staging(home.join(format!(".tmp/plugins-{}", std::process::id())));
    let created = loomd_private::create_dir_all(home.join(".tmp"));
    created.map_err(|error| format!("cannot create a folder: {error}"))?;
    staging.remove();
    let target = staging.0.to_string_lossy().into_owned();
    git(home, &["clone", "--quiet", "--depth", "1", "--no-tags", repository, &target]).await?;
    let cloned = git(&staging.0, &["rev-parse", "HEAD"]).await?.trim().to_owned();
    let home = home.clone();
    let replaced = spawn_blocking(move || replace(&home, &staging, &folder, &cloned));
    replaced.await.map_err(|error| error.to_string())?
}

/// Puts a fetched version in its place.
fn replace(home: &Path, staging: &Staging, folder: &Path, version: &str) -> Result<(), String> {
    let file = AbsolutePathBuf::new(Marketplace::file_of(&staging.0)).ok_or("not an absolute path")?;
    let marketplace = Marketplace::load(&file).map_err(|error| error.to_string())?;
    if marketplace.name != CURATED {
        return Err(format!("the repository holds the marketplace `{}`", marketplace.name));
    }
    let failed = |error: std::io::Error| format!("cannot replace the folder: {error}");
    fs::remove_dir_all(staging.0.join(".git")).map_err(failed)?;
    let old = Staging(staging.0.with_extension("old"));
    old.remove();
    match fs::rename(folder, &old.0) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(failed(error)),
        _ => {}
    }
    fs::rename(&staging.0, folder).inspect_err(|_| _ = fs::rename(&old.0, folder)).map_err(failed)?;
    let mut options = loomd_private::options();
    let written = options.write(true).create(true).truncate(true).open(home.join(".tmp/plugins.sha"));
    written.and_then(|mut file| std::io::Write::write_all(&mut file, version.as_bytes())).map_err(failed)
}

/// Runs git without prompts, hooks and credentials, and returns its output.
async fn git(folder: &Path, arguments: &[&str]) -> Result<String, String> {
    let arguments: Vec<&str> = ["-c", "credential.helper="].iter().chain(arguments).copied().collect();
    git::run(folder, &arguments).await.map_err(|failure| failure.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn repository(folder: &Path, name: &str) {
        let file = Marketplace::file_of(folder);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, format!(r#"{{"name": "{name}", "plugins": []}}"#)).unwrap();
        if !folder.join(".git").exists() {
            git(folder, &["init", "--quiet"]).await.unwrap();
        }
        git(folder, &["add", "-A"]).await.unwrap();
        let author = ["-c", "user.name=t", "-c", "user.email=t@t.test", "commit", "--quiet", "-m", "c"];
        git(folder, &author).await.unwrap();
    }

    #[tokio::test]
    async fn the_newest_version_of_a_repository_is_put_into_the_home() {
        let dir = tempfile::tempdir().unwrap();
        let (home, source) = (dir.path().join("home"), dir.path().join("source"));
        fs::create_dir(&home).unwrap();
        fs::create_dir(&source).unwrap();
        let home = AbsolutePathBuf::new(&home).unwrap();
        let url = format!("file://{}", source.display());
        for text in ["one", "two"] {
            fs::write(source.join("text"), text).unwrap();
            repository(&source, CURATED).await;
            update(&home, &url).await.unwrap();
            assert_eq!(fs::read_to_string(curated_folder(&home).join("text")).unwrap(), text);
            let head = git(&source, &["rev-parse", "HEAD"]).await.unwrap();
            assert_eq!(curated_version(&home).as_deref(), Some(head.trim()));
        }
        // Another marketplace does not replace it.
        repository(&source, "other").await;
        assert_eq!(update(&home, &url).await.unwrap_err(), "the repository holds the marketplace `other`");
        assert_eq!(fs::read_to_string(curated_folder(&home).join("text")).unwrap(), "two");
        let mut names: Vec<_> = fs::read_dir(home.join(".tmp")).unwrap().flatten().map(|it| it.file_name()).collect();
        names.sort();
        assert_eq!(names, ["plugins", "plugins.sha"]);
        assert!(update(&home, "file:///no/such/repository").await.is_err());
    }
}
