//! A typed review of the Rust files of a folder, on copies of them.
//!
//! ```sh
//! cargo run -p loomd-adapter --example code_review -- /path/to/project
//! ```
//!
//! `APP_SERVER` is the command of the server; by default loomd with its rehearsal model, which needs no key.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use loomd_adapter::{Adapter, Endpoint, HostMount, Limits, Program, Prompt, Response, Section, Session, Workspace};
use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Debug, Deserialize, JsonSchema)]
pub struct Review {
    /// One or two sentences.
    pub summary: String,
    pub findings: Vec<Finding>,
    pub verdict: Verdict,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct Finding {
    pub file: String,
    pub line: Option<u32>,
    /// What is wrong, and what to do about it.
    pub problem: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    Approve,
    RequestChanges,
}

pub async fn run(endpoint: Endpoint, project: &Path) -> Result<(Response<Review>, Session), Box<dyn Error>> {
    let mount = HostMount::new(project).at("project").include("**/*.rs").exclude("target").max_bytes(4 << 20);
    let workspace = Arc::new(Workspace::builder().mount(mount).allowed_root(project).build().await?);
    // The rehearsal model follows the second line literally; other models need no such hint.
    let task = "This is a review of the Rust files in the folder `project`.\nRun `find project -type f`";
    let rules = "A finding is a defect that a test could show; matters of taste are none.";
    let prompt = Prompt::new("examples", "code-review")
        .section(Section::new("rules", "Rules", rules))
        .section(workspace.section())
        .section(Section::new("task", "Task", task))
        .build()?;
    let adapter = Adapter::new(endpoint).client("code-review", "1.0").workspace(workspace).ephemeral(true);
    let mut session = Session::new();
    let response = adapter.evaluate::<Review>(&prompt, &mut session, Limits::within(Duration::from_secs(600))).await?;
    Ok((response, session))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let project = std::env::args().nth(1).map_or_else(std::env::current_dir, std::fs::canonicalize)?;
    let (response, session) = run(server().into(), &project).await?;
    for event in session.events() {
        if let Some(invoked) = event.tool_invoked() {
            eprintln!("{} {}: {}", invoked.name, invoked.arguments, if invoked.success { "ok" } else { "failed" });
        }
    }
    let review = response.output;
    println!("{:?}: {}", review.verdict, review.summary);
    for finding in review.findings {
        println!("{}:{}: {}", finding.file, finding.line.unwrap_or(1), finding.problem);
    }
    Ok(())
}

fn server() -> Program {
    let command = std::env::var("APP_SERVER").unwrap_or_else(|_| "loomd app-server -c model_provider=rehearsal".into());
    let mut words = command.split_whitespace();
    Program::new(words.next().unwrap_or("loomd")).args(words)
}
