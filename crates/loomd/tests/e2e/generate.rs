//! The generators write their files and print nothing.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use loomd_testkit::Home;
use serde_json::Value;

use crate::common::{RunResult, run};

#[tokio::test]
async fn json_schemas_are_grouped_by_version() {
    let home = Home::empty();
    let out = generate(&home, &["generate-json-schema", "--out", "deep/er"]).await.join("deep/er");
    let files = files(&out);
    for file in [
        "ClientRequest.json",
        "JSONRPCMessage.json",
        "v1/InitializeParams.json",
        "v2/ThreadStartParams.json",
        "codex_app_server_protocol.schemas.json",
        "codex_app_server_protocol.v2.schemas.json",
    ] {
        assert!(files.contains(file), "{file} is missing");
    }
    for file in &files {
        let text = fs::read_to_string(out.join(file)).unwrap();
        let schema: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{file} is not JSON: {error}"));
        assert_eq!(schema["$schema"], "http://json-schema.org/draft-07/schema#", "{file}");
        assert!(!text.ends_with('\n'), "{file}");
        let name = Path::new(file).file_stem().unwrap().to_str().unwrap();
        if !name.ends_with(".schemas") {
            assert_eq!(schema["title"], name);
        }
    }
}

#[tokio::test]
async fn the_schema_of_the_configuration_is_printed() {
    let ended = run(&Home::empty(), &["config", "schema"]).await;
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
    let schema: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(schema["properties"]["model"]["type"], "string");
}

#[tokio::test]
async fn experimental_parts_are_generated_on_request() {
    let home = Home::empty();
    let out = generate(&home, &["generate-json-schema", "-o", "stable"]).await;
    generate(&home, &["generate-json-schema", "-o", "all", "--experimental"]).await;
    let (stable, all) = (files(&out.join("stable")), files(&out.join("all")));
    assert!(stable.is_subset(&all));
    let more = BTreeSet::from_iter(all.difference(&stable).map(String::as_str));
    assert!(more.contains("v2/MockExperimentalMethodParams.json"), "{more:?}");
}

#[tokio::test]
async fn typescript_has_an_index_for_each_version() {
    let home = Home::empty();
    let out = generate(&home, &["generate-ts", "--out", "ts"]).await.join("ts");
    let files = files(&out);
    for file in ["ClientRequest.ts", "v2/ThreadStartParams.ts", "serde_json/JsonValue.ts"] {
        assert!(files.contains(file), "{file} is missing");
    }
    for file in &files {
        let text = fs::read_to_string(out.join(file)).unwrap();
        let mut lines = text.lines();
        assert!(lines.next().is_some_and(|line| line.starts_with("//")), "{file} begins with a comment");
        assert_eq!(lines.next(), Some(""), "{file}");
    }
    let index = fs::read_to_string(out.join("index.ts")).unwrap();
    assert!(index.contains("export type { ClientRequest } from \"./ClientRequest\";"));
    assert_eq!(index.lines().last(), Some("export * as v2 from \"./v2\";"));
}

#[tokio::test]
async fn generated_files_are_overwritten_and_others_stay() {
    let home = Home::empty();
    for (generator, own, other) in
        [("generate-json-schema", "ClientRequest.json", "v2/Mine.json"), ("generate-ts", "index.ts", "v2/Mine.ts")]
    {
        let out = generate(&home, &[generator, "-o", generator]).await.join(generator);
        let first = fs::read_to_string(out.join(own)).unwrap();
        fs::write(out.join(own), "old").unwrap();
        fs::write(out.join(other), "mine").unwrap();
        generate(&home, &[generator, "-o", generator]).await;
        assert_eq!(fs::read_to_string(out.join(own)).unwrap(), first);
        assert_eq!(fs::read_to_string(out.join(other)).unwrap(), "mine");
    }
}

#[tokio::test]
async fn prettier_is_run_once_with_all_files() {
    let home = Home::empty();
    let prettier = script(&home, "for argument; do echo \"$argument\"; done >> calls");
    let work = generate(&home, &["generate-ts", "-o", "ts", "-p", prettier.to_str().unwrap()]).await;
    let calls = fs::read_to_string(work.join("calls")).unwrap();
    let arguments: Vec<&str> = calls.lines().collect();
    let (flags, formatted) = arguments.split_at(3);
    assert_eq!(flags, ["--write", "--log-level", "warn"]);
    let formatted: BTreeSet<String> = formatted.iter().map(|file| (*file).to_owned()).collect();
    assert_eq!(formatted, files(&work.join("ts")).into_iter().map(|file| format!("ts/{file}")).collect());
}

#[tokio::test]
async fn a_failing_prettier_is_an_error() {
    let home = Home::empty();
    let ended = run(&home, &["app-server", "generate-ts", "-o", "ts", "-p", "no/such/prettier"]).await;
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), ""));
    assert!(ended.stderr.starts_with("error: Failed to invoke Prettier at no/such/prettier"), "{}", ended.stderr);

    let failing = script(&home, "exit 3");
    let ended = run(&home, &["app-server", "generate-ts", "-o", "ts", "-p", failing.to_str().unwrap()]).await;
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), ""));
    assert!(ended.stderr.starts_with("error: "), "{}", ended.stderr);
}

#[tokio::test]
async fn an_unwritable_folder_is_an_error() {
    let home = Home::empty();
    fs::write(home.work().join("file"), "").unwrap();
    for generator in ["generate-json-schema", "generate-ts"] {
        let ended = run(&home, &["app-server", generator, "-o", "file"]).await;
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), ""), "{generator}");
        assert!(ended.stderr.starts_with("error: Failed to "), "{}", ended.stderr);
    }
}

/// Runs a generator, which must succeed without output. Returns its working directory.
async fn generate(home: &Home, args: &[&str]) -> PathBuf {
    let ended = run(home, &[&["app-server"], args].concat()).await;
    assert_eq!(ended, RunResult { code: Some(0), stdout: String::new(), stderr: String::new() }, "{args:?}");
    home.work()
}

fn script(home: &Home, body: &str) -> PathBuf {
    let path = home.write("prettier", &format!("#!/bin/sh\n{body}\n"));
    fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
    path
}

/// The relative paths of all files below a folder.
fn files(folder: &Path) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if path.is_dir() {
            found.extend(files(&path).into_iter().map(|file| format!("{name}/{file}")));
        } else {
            found.insert(name);
        }
    }
    found
}
