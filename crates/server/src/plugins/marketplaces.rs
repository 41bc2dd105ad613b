//! Marketplaces that the user added: a folder, which is used where it is, or a git repository, which is copied into the
//! home. They are in `[marketplaces]` of the user's configuration. A repository is checked before its copy is replaced.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use loomd_config::config_toml::MarketplaceSettings;
use loomd_config::{ConfigSources, Edit, WriteError, WriteRequest};
use loomd_plugins::{CURATED, Marketplace, PluginError, PluginId};
use loomd_protocol::{AbsolutePathBuf, JsonValue, MarketplaceUpgradeErrorInfo, MergeStrategy};
use serde_json::json;

use super::git::{self, GitFailure, Staging};

/// The copies of repositories, in the home.
const COPIES: &str = "plugins/marketplaces";

#[derive(Debug, thiserror::Error)]
pub(crate) enum MarketplaceError {
    /// The request is at fault, in words for the user.
    #[error("{0}")]
    Refused(String),
    #[error(transparent)]
    Plugin(#[from] PluginError),
    #[error("{0}")]
    Git(String),
    #[error("failed to write the configuration: {0}")]
    Config(#[from] WriteError),
    #[error("cannot replace the copy of the marketplace: {0}")]
    Io(#[from] std::io::Error),
}

impl From<GitFailure> for MarketplaceError {
    fn from(failure: GitFailure) -> Self {
        Self::Git(failure.to_string())
    }
}

type Result<T> = std::result::Result<T, MarketplaceError>;

fn refused<T>(message: impl Into<String>) -> Result<T> {
    Err(MarketplaceError::Refused(message.into()))
}

/// Where a marketplace comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    Folder(PathBuf),
    Git { url: String, reference: Option<String>, sparse_paths: Vec<String> },
}

impl Source {
    /// Parses the source of a request. Relative folders start in the working directory of the process.
    pub fn parse(source: &str, reference: Option<String>, sparse_paths: Vec<String>) -> Result<Self> {
        let source = source.trim();
        if source.is_empty() {
            return refused("marketplace source must not be empty");
        }
        let is_folder =
            ["/", "./", "../"].iter().any(|start| source.starts_with(start)) || [".", ".."].contains(&source);
        if is_folder {
            if reference.is_some() {
                return refused("--ref is only supported for git marketplace sources");
            }
            if !sparse_paths.is_empty() {
                return refused("--sparse is only supported for git marketplace sources");
            }
            return match Path::new(source).canonicalize() {
                Ok(folder) => Ok(Self::Folder(folder)),
                Err(error) => refused(format!("failed to resolve local marketplace source path: {error}")),
            };
        }
        let (url, named) = match source.split_once('#') {
            Some((url, named)) => (url, Some(named.to_owned()).filter(|named| !named.is_empty())),
            None => (source, None),
        };
        let url = match git_url(url) {
            Some(url) => url,
            None => {
                return refused(
                    "invalid marketplace source format; expected owner/repo, a git URL, or a local marketplace path",
                );
            }
        };
        let reference = reference.or(named);
        // It would be taken for an option.
        if reference.as_ref().is_some_and(|name| name.starts_with('-') || name.is_empty()) {
            return refused("invalid marketplace ref");
        }
        if sparse_paths.iter().any(|path| path.starts_with('-') || path.is_empty()) {
            return refused("invalid marketplace sparse path");
        }
        Ok(Self::Git { url, reference, sparse_paths })
    }
}

/// The URL of a repository: itself, or that of `owner/repo`.
fn git_url(text: &str) -> Option<String> {
    let has_blank = text.chars().any(|character| character.is_whitespace() || character.is_control());
    if has_blank || text.starts_with('-') {
        return None;
    }
    let schemes = ["https://", "http://", "ssh://", "file://"];
    if schemes.iter().any(|scheme| text.strip_prefix(scheme).is_some_and(|rest| !rest.is_empty())) {
        return Some(text.to_owned());
    }
    if let Some((login, path)) = text.split_once(':')
        && login.contains('@')
        && !login.contains('/')
        && !path.is_empty()
    {
        return Some(text.to_owned());
    }
    let is_name = |name: &str| {
        !name.is_empty()
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte))
            && !name.bytes().all(|byte| byte == b'.')
    };
    let (owner, repository) = text.split_once('/')?;
    let repository = repository.strip_suffix(".git").unwrap_or(repository);
    (is_name(owner) && is_name(repository)).then(|| format!("https://github.com/{owner}/{repository}.git"))
}

/// The roots of the marketplaces that the user added.
pub(crate) fn added_roots(home: &Path, added: &BTreeMap<String, MarketplaceSettings>) -> Vec<PathBuf> {
    let root = |(name, settings): (&String, &MarketplaceSettings)| match settings.source_type.as_deref() {
        Some("git") => Some(copy_of(home, name)),
        _ => settings.source.as_ref().map(PathBuf::from).filter(|folder| folder.is_absolute()),
    };
    added.iter().filter_map(root).collect()
}

fn copy_of(home: &Path, name: &str) -> PathBuf {
    home.join(COPIES).join(name)
}

/// A marketplace that was added.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Added {
    pub name: String,
    pub root: PathBuf,
    pub already: bool,
}

/// Adds a marketplace. One that was added from the same source stays as it is.
pub(crate) async fn add(sources: &ConfigSources, source: Source) -> Result<Added> {
    let known = configured(sources)?;
    match source {
        Source::Folder(folder) => {
            let name = checked(&folder)?.name;
            let settings = MarketplaceSettings {
                source_type: Some("local".into()),
                source: Some(folder.to_string_lossy().into_owned()),
                ..MarketplaceSettings::default()
            };
            if is_known(&known, &name, &settings)? {
                return Ok(Added { name, root: folder, already: true });
            }
            write(sources, &name, &settings)?;
            Ok(Added { name, root: folder, already: false })
        }
        Source::Git { url, reference, sparse_paths } => {
            let (staging, commit) = fetch(&sources.home, &url, reference.as_deref(), &sparse_paths).await?;
            let name = checked(&staging.0)?.name;
            let settings = MarketplaceSettings {
                source_type: Some("git".into()),
                source: Some(url),
                r#ref: reference,
                sparse_paths: Some(sparse_paths).filter(|paths| !paths.is_empty()),
                commit: Some(commit),
            };
            let root = copy_of(&sources.home, &name);
            if is_known(&known, &name, &settings)? && root.is_dir() {
                return Ok(Added { name, root, already: true });
            }
            replace(&staging, &root)?;
            write(sources, &name, &settings)?;
            Ok(Added { name, root, already: false })
        }
    }
}

/// Removes a marketplace. Returns the copy that was deleted; a folder of the user stays.
pub(crate) fn remove(sources: &ConfigSources, name: &str) -> Result<Option<PathBuf>> {
    let known = configured(sources)?;
    let Some(settings) = known.get(name) else {
        return refused(format!("marketplace `{name}` is not configured or installed"));
    };
    edit(sources, vec![replacement(format!("marketplaces.\"{name}\""), JsonValue::Null)])?;
    if settings.source_type.as_deref() != Some("git") || PluginId::new("plugin", name).is_err() {
        return Ok(None);
    }
    let copy = copy_of(&sources.home, name);
    match fs::remove_dir_all(&copy) {
        Ok(()) => Ok(Some(copy)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// What an upgrade did.
#[derive(Debug, Default)]
pub(crate) struct Upgraded {
    pub selected: Vec<String>,
    /// The copies that changed.
    pub roots: Vec<PathBuf>,
    pub errors: Vec<MarketplaceUpgradeErrorInfo>,
}

/// Fetches the newest state of one marketplace from git, or of all. One that fails keeps its copy.
pub(crate) async fn upgrade(sources: &ConfigSources, only: Option<&str>) -> Result<Upgraded> {
    let known = configured(sources)?;
    let is_git = |settings: &MarketplaceSettings| settings.source_type.as_deref() == Some("git");
    if let Some(name) = only
        && !known.get(name).is_some_and(is_git)
    {
        return refused(format!("marketplace `{name}` is not configured as a Git marketplace"));
    }
    let mut upgraded = Upgraded::default();
    let wanted = known.into_iter().filter(|(name, settings)| is_git(settings) && only.is_none_or(|only| only == name));
    for (name, settings) in wanted {
        upgraded.selected.push(name.clone());
        match upgrade_one(sources, &name, settings).await {
            Ok(Some(root)) => upgraded.roots.push(root),
            Ok(None) => {}
            Err(error) => {
                upgraded.errors.push(MarketplaceUpgradeErrorInfo { marketplace_name: name, message: error.to_string() })
            }
        }
    }
    Ok(upgraded)
}

async fn upgrade_one(sources: &ConfigSources, name: &str, settings: MarketplaceSettings) -> Result<Option<PathBuf>> {
    let Some(url) = settings.source.as_deref() else { return refused("it has no source") };
    let (reference, sparse) = (settings.r#ref.as_deref(), settings.sparse_paths.clone().unwrap_or_default());
    // Written by hand, it may be anything.
    let Source::Git { url, reference, sparse_paths } = Source::parse(url, reference.map(Into::into), sparse)? else {
        return refused("its source is no git repository");
    };
    let (staging, commit) = fetch(&sources.home, &url, reference.as_deref(), &sparse_paths).await?;
    let root = copy_of(&sources.home, name);
    if settings.commit.as_ref() == Some(&commit) && root.is_dir() {
        return Ok(None);
    }
    let found = checked(&staging.0)?.name;
    if found != name {
        return refused(format!("the repository holds the marketplace `{found}` now"));
    }
    replace(&staging, &root)?;
    write(sources, name, &MarketplaceSettings { commit: Some(commit), ..settings })?;
    Ok(Some(root))
}

/// Fetches a repository into a folder of its own. Returns the folder and the commit.
async fn fetch(home: &Path, url: &str, reference: Option<&str>, sparse: &[String]) -> Result<(Staging, String)> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let staging = Staging(home.join(COPIES).join(format!(".new-{}-{number}", std::process::id())));
    staging.remove();
    loomd_private::create_dir_all(&staging.0)?;
    let folder = &staging.0;
    git::run(folder, &["init", "--quiet"]).await?;
    git::run(folder, &["remote", "add", "--", "origin", url]).await?;
    if !sparse.is_empty() {
        let mut arguments = vec!["sparse-checkout", "set", "--no-cone"];
        let kept = [".agents/plugins/", ".claude-plugin/"];
        arguments.extend(kept);
        arguments.extend(sparse.iter().map(String::as_str));
        git::run(folder, &arguments).await?;
    }
    let wanted = reference.unwrap_or("HEAD");
    git::run(folder, &["fetch", "--quiet", "--depth", "1", "--no-tags", "origin", wanted]).await?;
    git::run(folder, &["checkout", "--quiet", "FETCH_HEAD"]).await?;
    let commit = git::run(folder, &["rev-parse", "HEAD"]).await?.trim().to_owned();
    fs::remove_dir_all(folder.join(".git"))?;
    Ok((staging, commit))
}

/// The marketplace of a folder, whose name is safe as that of a folder.
fn checked(root: &Path) -> Result<Marketplace> {
    let file = Marketplace::existing_file(root).and_then(AbsolutePathBuf::new);
    let Some(file) = file else {
        let detail = "marketplace root does not contain a supported manifest".into();
        return Err(PluginError::InvalidMarketplace { path: root.to_owned(), detail }.into());
    };
    let marketplace = Marketplace::load(&file)?;
    PluginId::new("plugin", &marketplace.name)?;
    if marketplace.name == CURATED {
        return refused(format!("marketplace '{CURATED}' is reserved and cannot be added from this source"));
    }
    Ok(marketplace)
}

/// Whether a marketplace was added from this source. Fails when it was added from another one.
fn is_known(known: &BTreeMap<String, MarketplaceSettings>, name: &str, settings: &MarketplaceSettings) -> Result<bool> {
    let Some(known) = known.get(name) else { return Ok(false) };
    let source = |settings: &MarketplaceSettings| {
        let sparse = settings.sparse_paths.clone().unwrap_or_default();
        (settings.source_type.clone(), settings.source.clone(), settings.r#ref.clone(), sparse)
    };
    match source(known) == source(settings) {
        true => Ok(true),
        false => refused(format!(
            "marketplace '{name}' is already added from a different source; remove it before adding this source"
        )),
    }
}

fn configured(sources: &ConfigSources) -> Result<BTreeMap<String, MarketplaceSettings>> {
    match loomd_config::load(&sources.request()) {
        Ok(loaded) => Ok(loaded.config.marketplaces),
        Err(error) => refused(format!("failed to load configuration: {error}")),
    }
}

/// Puts a fetched state in the place of the last one. The old one is there until the new one is.
fn replace(staging: &Staging, root: &Path) -> Result<()> {
    let old = Staging(staging.0.with_extension("old"));
    old.remove();
    match fs::rename(root, &old.0) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
        _ => {}
    }
    fs::rename(&staging.0, root).inspect_err(|_| _ = fs::rename(&old.0, root))?;
    Ok(())
}

fn write(sources: &ConfigSources, name: &str, settings: &MarketplaceSettings) -> Result<()> {
    let MarketplaceSettings { source_type, source, r#ref, sparse_paths, commit } = settings;
    let values = [
        ("source_type", json!(source_type)),
        ("source", json!(source)),
        ("ref", json!(r#ref)),
        ("sparse_paths", json!(sparse_paths)),
        ("commit", json!(commit)),
    ];
    let table: serde_json::Map<String, JsonValue> =
        values.into_iter().filter(|(_, value)| !value.is_null()).map(|(key, value)| (key.into(), value)).collect();
    edit(sources, vec![replacement(format!("marketplaces.\"{name}\""), table.into())])
}

fn replacement(key_path: String, value: JsonValue) -> Edit {
    Edit { key_path, value, merge_strategy: MergeStrategy::Replace }
}

fn edit(sources: &ConfigSources, edits: Vec<Edit>) -> Result<()> {
    let write = WriteRequest { edits: &edits, file_path: None, expected_version: None, cwd: &sources.home };
    loomd_config::write(&sources.request(), &write)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(source: &str) -> std::result::Result<Source, String> {
        Source::parse(source, None, Vec::new()).map_err(|error| error.to_string())
    }

    #[test]
    fn sources_are_folders_repositories_and_urls() {
        let git = |url: &str, reference: Option<&str>| Source::Git {
            url: url.into(),
            reference: reference.map(Into::into),
            sparse_paths: Vec::new(),
        };
        assert_eq!(parse("/"), Ok(Source::Folder("/".into())));
        assert_eq!(parse(" owner/repo "), Ok(git("https://github.com/owner/repo.git", None)));
        assert_eq!(parse("owner/repo.git#v1"), Ok(git("https://github.com/owner/repo.git", Some("v1"))));
        assert_eq!(parse("https://x.test/a.git#main"), Ok(git("https://x.test/a.git", Some("main"))));
        assert_eq!(parse("git@x.test:a/b.git"), Ok(git("git@x.test:a/b.git", None)));
        assert_eq!(parse("file:///srv/a.git"), Ok(git("file:///srv/a.git", None)));
        assert_eq!(parse(""), Err("marketplace source must not be empty".into()));
        for bad in
            ["not a source", "word", "a/b/c", "-x/y", "--upload-pack=x", "https://", "ext::sh -c x", "../..x/y\nz"]
        {
            assert!(parse(bad).is_err(), "{bad}");
        }
        assert!(parse("owner/repo#-x").is_err());
        assert!(Source::parse("/", Some("main".into()), Vec::new()).is_err());
    }
}
