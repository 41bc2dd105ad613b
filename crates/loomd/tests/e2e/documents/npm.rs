//! The package of `packaging/npm`: packed, installed from its archive, and run. Skipped without npm.

use std::fs;
use std::path::Path;

use loomd_testkit::Home;
use tokio::process::Command;

use super::root;
use crate::common::{LOOMD, RunResult, output};

/// Runs a program of node in the folder, without a network.
async fn node(home: &Home, folder: &Path, program: &str, args: &[&str]) -> RunResult {
    let mut command = Command::new(program);
    command.args(args).current_dir(folder).kill_on_drop(true);
    command.env("CODEX_HOME", home.path()).env("HOME", home.user()).env_remove("LOOMD_HOME");
    command.env("npm_config_offline", "true").env("npm_config_audit", "false").env("npm_config_fund", "false");
    command.env("npm_config_update_notifier", "false").env("npm_config_cache", home.user().join("npm-cache"));
    output(&mut command).await
}

#[tokio::test]
async fn the_package_for_npm_installs_and_starts_the_program() {
    if std::process::Command::new("npm").arg("--version").output().is_err() {
        eprintln!("skipped: npm is not installed");
        return;
    }
    let home = Home::empty();
    let package = home.user().join("package");
    fs::create_dir_all(package.join("bin")).unwrap();
    for file in ["package.json", "README.md", "index.js", "bin/loomd.js"] {
        fs::copy(root().join("packaging/npm").join(file), package.join(file)).unwrap();
    }
    let arch = if cfg!(target_arch = "aarch64") { "arm64" } else { "x64" };
    let vendor = package.join("vendor").join(format!("linux-{arch}"));
    fs::create_dir_all(&vendor).unwrap();
    // A link would not be packed, and the program of a debug build is large: a script stands for it here.
    let script = vendor.join("loomd");
    fs::write(&script, format!("#!/bin/sh\nexec '{LOOMD}' \"$@\"\n")).unwrap();
    fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();

    let packed = node(&home, &package, "npm", &["pack", "--silent"]).await;
    assert_eq!(packed.code, Some(0), "{}", packed.stderr);
    let archive = package.join(packed.stdout.trim());
    let project = home.work();
    fs::write(project.join("package.json"), "{}").unwrap();
    let installed = node(&home, &project, "npm", &["install", "--silent", archive.to_str().unwrap()]).await;
    assert_eq!(installed.code, Some(0), "{}", installed.stderr);

    let program = project.join("node_modules/.bin/loomd");
    let version = node(&home, &project, program.to_str().unwrap(), &["--version"]).await;
    assert_eq!((version.code, version.stderr.as_str()), (Some(0), ""));
    assert!(version.stdout.contains(env!("CARGO_PKG_VERSION")), "{}", version.stdout);
    let refused = node(&home, &project, program.to_str().unwrap(), &["--no-such-flag"]).await;
    assert_eq!(refused.code, Some(2), "the exit status is that of the program");
    let path = node(&home, &project, "node", &["-p", "require('loomd').path"]).await;
    assert!(path.stdout.trim().ends_with(&format!("vendor/linux-{arch}/loomd")), "{path:?}");
}

#[test]
fn the_package_for_npm_has_the_version_of_the_program() {
    let manifest = fs::read_to_string(root().join("packaging/npm/package.json")).unwrap();
    let manifest: serde_json::Value = serde_json::from_str(&manifest).unwrap();
    assert_eq!(manifest["version"], env!("CARGO_PKG_VERSION"));
}
