//! `cargo xtask conformance`: runs the conformance suites on our own build, for the areas that must pass, without the
//! tests that are excluded from them.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::command::{finish, target};

/// The selection of the command line.
#[derive(Debug, Default, PartialEq, Eq)]
struct Selection {
    /// `None`: the areas in `.ci/areas`.
    areas: Option<String>,
    /// A server to test instead of our build.
    server: Option<String>,
    debug: bool,
    pytest: Vec<String>,
}

impl Selection {
    fn parse(arguments: &[String]) -> Result<Self> {
        let mut selection = Self::default();
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            let mut value = || rest.next().cloned().with_context(|| format!("{argument} needs a value"));
            match argument.as_str() {
                "--areas" => selection.areas = Some(value()?),
                "--server" => selection.server = Some(value()?),
                "--debug" => selection.debug = true,
                "--" => {
                    selection.pytest = rest.cloned().collect();
                    break;
                }
                other => bail!("unknown argument {other:?}: expected --areas, --server, --debug or --"),
            }
        }
        Ok(selection)
    }
}

/// Builds loomd unless another server is named, then runs the suites. Fails when a test fails.
pub fn run(arguments: &[String]) -> Result<()> {
    let root = crate::root();
    let selection = Selection::parse(arguments)?;
    let server = match selection.server {
        Some(server) => server,
        None => format!("{} app-server", build(&root, selection.debug)?.display()),
    };
    // Tests are left out only when no areas are named, so that a named area shows its whole state.
    let (areas, left_out) = match selection.areas {
        Some(areas) => (areas, Vec::new()),
        None => (entries(&root.join(".ci/areas"))?.join(","), entries(&root.join(".ci/waiting"))?),
    };
    let mut command = Command::new(root.join("conformance/run"));
    command.args(["--server", &server, "--areas", &areas]);
    if !selection.pytest.is_empty() || !left_out.is_empty() {
        command.arg("--").args(selection.pytest);
    }
    if !left_out.is_empty() {
        command.arg("-k").arg(format!("not ({})", left_out.join(" or ")));
    }
    finish(&mut command)
}

/// The program, newly built.
fn build(root: &Path, debug: bool) -> Result<PathBuf> {
    let mut command = Command::new(env!("CARGO"));
    command.args(["build", "--locked", "--quiet", "-p", "loomd"]).current_dir(root);
    if !debug {
        command.arg("--release");
    }
    finish(&mut command)?;
    Ok(target(root).join(if debug { "debug/loomd" } else { "release/loomd" }))
}

/// The first word of every line that is not a comment.
fn entries(file: &Path) -> Result<Vec<String>> {
    let text = std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    Ok(first_words(&text))
}

fn first_words(text: &str) -> Vec<String> {
    let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default());
    lines.filter_map(|line| line.split_whitespace().next()).map(Into::into).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_leave_out_comments_and_reasons() {
        assert_eq!(first_words("# all\nsmoke\n\ntest_x  # on purpose\nturns later\n"), ["smoke", "test_x", "turns"]);
    }

    #[test]
    fn arguments_after_two_dashes_are_passed_to_pytest() {
        let arguments = ["--areas", "turns", "--debug", "--", "-k", "steer"].map(String::from);
        let expected = Selection {
            areas: Some("turns".into()),
            server: None,
            debug: true,
            pytest: vec!["-k".into(), "steer".into()],
        };
        assert_eq!(Selection::parse(&arguments).unwrap(), expected);
    }

    #[test]
    fn the_error_of_an_unknown_argument_names_it() {
        let error = Selection::parse(&["--area".into()]).unwrap_err();
        assert!(error.to_string().contains("--area"), "{error}");
    }
}
