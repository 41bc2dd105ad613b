//! The notices of the packages that are part of the program: their licences, and the texts that they come with.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::root;

/// A package of the program.
struct Package {
    title: String,
    licence: String,
    texts: Vec<String>,
}

/// The notices for a build for a target.
pub fn notices(triple: &str) -> Result<String> {
    let arguments = ["metadata", "--locked", "--format-version", "1", "--filter-platform", triple];
    let output = Command::new(env!("CARGO")).args(arguments).current_dir(root()).output()?;
    ensure!(output.status.success(), "cargo metadata failed: {}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).context("cargo metadata")?;
    let used = linked(&metadata)?;
    let packages = list(&metadata, "packages")?;
    let packages = packages.iter().filter(|package| package["id"].as_str().is_some_and(|id| used.contains(id)));
    // Packages of a registry; the others are of this project.
    let packages: Result<Vec<_>> = packages.filter(|package| !package["source"].is_null()).map(read).collect();
    Ok(render(packages?))
}

/// The ids of the packages that are linked into the program: what `loomd` depends on, without build scripts' and tests'
/// dependencies.
fn linked(metadata: &Value) -> Result<BTreeSet<String>> {
    let packages = list(metadata, "packages")?;
    let program = packages.iter().find(|package| package["name"] == "loomd").context("no package loomd")?;
    let nodes = list(&metadata["resolve"], "nodes")?;
    let nodes: BTreeMap<_, _> = nodes.iter().filter_map(|node| Some((node["id"].as_str()?, node))).collect();
    let mut used = BTreeSet::new();
    let mut open = vec![program["id"].as_str().context("a package has an id")?];
    while let Some(id) = open.pop() {
        if !used.insert(id.to_owned()) {
            continue;
        }
        let dependencies = nodes.get(id).map(|node| list(node, "deps")).transpose()?.unwrap_or_default();
        for dependency in dependencies {
            let kinds = list(dependency, "dep_kinds")?;
            if kinds.iter().any(|kind| kind["kind"].is_null()) {
                open.extend(dependency["pkg"].as_str());
            }
        }
    }
    Ok(used)
}

fn list<'a>(value: &'a Value, key: &str) -> Result<&'a [Value]> {
    value[key].as_array().map(Vec::as_slice).with_context(|| format!("cargo metadata has no list `{key}`"))
}

fn read(package: &Value) -> Result<Package> {
    let text = |key: &str| package[key].as_str().map(str::to_owned);
    let title = format!("{} {}", text("name").unwrap_or_default(), text("version").unwrap_or_default());
    let manifest = text("manifest_path").context("a package has a manifest")?;
    let folder = Path::new(&manifest).parent().context("a manifest has a folder")?;
    let mut texts = Vec::new();
    let mut names: Vec<_> = fs::read_dir(folder)?.filter_map(|entry| Some(entry.ok()?.path())).collect();
    names.sort();
    for path in names {
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
        let is_notice = ["license", "licence", "copying", "copyright", "notice", "unlicense"];
        if is_notice.iter().any(|start| name.starts_with(start)) && path.is_file() {
            let bytes = fs::read(&path).with_context(|| path.display().to_string())?;
            texts.push(String::from_utf8_lossy(&bytes).trim_end().replace("\r\n", "\n"));
        }
    }
    Ok(Package { title, licence: text("license").unwrap_or_else(|| "see the text".into()), texts })
}

/// A list of the packages, then each text once, under the packages that it is from.
fn render(mut packages: Vec<Package>) -> String {
    packages.sort_by(|one, other| one.title.cmp(&other.title));
    let mut text = String::from("loomd contains these packages, under these licences.\n\n");
    let mut owners: Vec<(&str, Vec<&str>)> = Vec::new();
    for package in &packages {
        let note = if package.texts.is_empty() { " (the package has no text of it)" } else { "" };
        _ = writeln!(text, "{}: {}{note}", package.title, package.licence);
        for own in &package.texts {
            match owners.iter_mut().find(|(known, _)| known == own) {
                Some((_, titles)) => titles.push(&package.title),
                None => owners.push((own, vec![&package.title])),
            }
        }
    }
    for (licence, titles) in owners {
        _ = write!(text, "\n{}\n{}\n\n{licence}\n", "-".repeat(80), titles.join(", "));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(title: &str, texts: &[&str]) -> Package {
        let texts = texts.iter().map(|text| (*text).to_owned()).collect();
        Package { title: title.into(), licence: "MIT".into(), texts }
    }

    #[test]
    fn a_text_of_several_packages_is_written_once() {
        let text = render(vec![package("b 2", &["same", "other"]), package("a 1", &["same"]), package("c 3", &[])]);
        let line = "-".repeat(80);
        let expected = format!(
            "loomd contains these packages, under these licences.\n\n\
             a 1: MIT\nb 2: MIT\nc 3: MIT (the package has no text of it)\n\
             \n{line}\na 1, b 2\n\nsame\n\n{line}\nb 2\n\nother\n"
        );
        assert_eq!(text, expected);
    }

    #[test]
    fn only_packages_that_are_linked_have_notices() {
        let dependency = |id: &str, kinds: &[Value]| {
            let kinds: Vec<_> = kinds.iter().map(|kind| serde_json::json!({ "kind": kind })).collect();
            serde_json::json!({ "pkg": id, "dep_kinds": kinds })
        };
        let normal = Value::Null;
        let metadata = serde_json::json!({
            "packages": [{ "name": "loomd", "id": "loomd" }],
            "resolve": { "nodes": [
                { "id": "loomd", "deps": [
                    dependency("linked", std::slice::from_ref(&normal)),
                    dependency("both", &["build".into(), normal.clone()]),
                    dependency("tests", &["dev".into()]),
                ] },
                { "id": "linked", "deps": [
                    dependency("inner", std::slice::from_ref(&normal)),
                    dependency("script", &["build".into()]),
                ] },
                { "id": "inner", "deps": [] },
                { "id": "both", "deps": [] },
            ] },
        });
        let used: Vec<_> = linked(&metadata).unwrap().into_iter().collect();
        assert_eq!(used, ["both", "inner", "linked", "loomd"]);
    }
}
