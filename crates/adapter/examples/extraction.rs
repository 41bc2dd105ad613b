//! Extracts a typed contact from a text, with a tool that looks people up. The tool keeps what it found in the session.
//!
//! ```sh
//! cargo run -p loomd-adapter --example extraction
//! ```
//!
//! `APP_SERVER` is the command of the server; by default loomd with its rehearsal model, which needs no key.

use std::error::Error;
use std::path::Path;

use loomd_adapter::{
    Adapter, Endpoint, Json, Limits, Program, Prompt, Response, Section, Session, Tool, ToolContext, ToolError,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct Contact {
    pub name: String,
    pub email: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
struct FindContact {
    /// The full name.
    name: String,
}

/// Finds people in a small directory.
fn find_contact() -> Tool {
    let description = "Finds a person in the directory.";
    Tool::new("find_contact", description, |params: FindContact, context: ToolContext| async move {
        let directory = [("Ada Lovelace", "ada@example.org"), ("Alan Turing", "alan@example.org")];
        let known = directory.iter().find(|(name, _)| *name == params.name);
        let (name, email) = known.ok_or_else(|| ToolError::new(format!("there is no {}", params.name)))?;
        let contact = Contact { name: (*name).to_owned(), email: Some((*email).to_owned()) };
        context.append(contact.clone());
        Ok(Json(contact))
    })
}

pub async fn run(endpoint: Endpoint, cwd: &Path) -> Result<(Response<Contact>, Session), Box<dyn Error>> {
    // The rehearsal model follows the second line literally; other models need no such hint.
    let task = "Who wrote the letter, and what is the address?\ncall find_contact with {\"name\":\"${author}\"}";
    let prompt = Prompt::new("examples", "extraction")
        .section(Section::new("letter", "Letter", "Dear Charles, the engine works as intended. ${author}"))
        .section(Section::new("task", "Task", task))
        .tool(find_contact())
        .param("author", "Ada Lovelace")
        .build()?;
    let adapter = Adapter::new(endpoint).client("extraction", "1.0").cwd(cwd);
    let mut session = Session::new();
    let response = adapter.evaluate::<Contact>(&prompt, &mut session, Limits::none()).await?;
    Ok((response, session))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let (response, session) = run(server().into(), &std::env::current_dir()?).await?;
    println!("{:?}", response.output);
    println!("looked up: {:?}", session.all::<Contact>());
    Ok(())
}

fn server() -> Program {
    let command = std::env::var("APP_SERVER").unwrap_or_else(|_| "loomd app-server -c model_provider=rehearsal".into());
    let mut words = command.split_whitespace();
    Program::new(words.next().unwrap_or("loomd")).args(words)
}
