//! The commands of the README run as they stand: with this program as `loomd`, the rehearsal as the configured model, and a
//! provider on the loopback in place of the one that the README names.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use loomd_testkit::model::message;
use loomd_testkit::{Home, ScriptedModel};

use super::{root, shell};

/// `cargo run -- …` runs this program. CI itself tests the workspace and installs the program.
const CARGO: &str = r#"#!/bin/sh
case "$*" in
  "test --workspace" | "install --locked --path crates/loomd") exit 0 ;;
  run*" -- "*) while [ "$1" != -- ]; do shift; done; shift; exec loomd "$@" ;;
  *) echo "cargo $*: not expected in the README" >&2; exit 1 ;;
esac
"#;

const JQ: &str = "#!/bin/sh\nexec python3 -m json.tool\n";

/// The content of the README's shell blocks, in order.
fn blocks() -> Vec<String> {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let blocks = readme.split("\n```sh\n").skip(1);
    blocks.map(|rest| rest.split_once("\n```").expect("the end of a block").0.to_owned()).collect()
}

/// A project with a commit and a change, in which the commands run.
async fn project(model: &ScriptedModel) -> Home {
    let home = shell::home().with(&format!(
        r#"
        model = "rehearsal"
        model_provider = "rehearsal"

        [model_providers.anthropic]
        name = "Anthropic"
        base_url = "{}"
        wire_api = "responses"
        env_key = "ANTHROPIC_API_KEY"
        request_max_retries = 0
        stream_max_retries = 0
        "#,
        model.base_url()
    ));
    for (name, text) in [("cargo", CARGO), ("jq", JQ)] {
        let path = home.user().join("bin").join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    fs::write(
        home.work().join("shape.json"),
        r#"{ "type": "object", "properties": {}, "additionalProperties": false }"#,
    )
    .unwrap();
    let prepare = "git init -q && echo one > file && git add . && \
                   git -c user.name=me -c user.email=me@example.com commit -qm one && echo two > file";
    let prepared = shell::run(&home, prepare).await;
    assert_eq!(prepared.code, Some(0), "{}", prepared.stderr);
    home
}

#[tokio::test]
async fn the_commands_of_the_readme_run_as_they_stand() {
    let model = ScriptedModel::start().await;
    for _ in 0..4 {
        model.reply(message("It is a project."));
    }
    let home = project(&model).await;
    let blocks = blocks();
    assert!(blocks.len() >= 4, "{blocks:#?}");
    for block in blocks {
        let ran = shell::run(&home, &block).await;
        assert_eq!(ran.code, Some(0), "{block}\n--- stdout\n{}\n--- stderr\n{}", ran.stdout, ran.stderr);
    }
    assert!(!model.calls().is_empty(), "the named provider was not called");
    for written in ["review.md", "thread.md"] {
        assert_ne!(fs::read_to_string(home.work().join(written)).unwrap(), "", "{written}");
    }
}
