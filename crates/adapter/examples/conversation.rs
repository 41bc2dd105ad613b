//! A loop that evaluates several prompts in one thread, within one budget of tokens.
//!
//! ```sh
//! cargo run -p loomd-adapter --example conversation -- "Say one." "Say two."
//! ```
//!
//! `APP_SERVER` is the command of the server; by default loomd with its rehearsal model, which needs no key.

use std::error::Error;
use std::path::Path;

use loomd_adapter::{
    Adapter, Budget, BudgetTracker, Endpoint, Limits, Program, Prompt, Response, Section, Session, Text,
};

pub async fn run(endpoint: Endpoint, cwd: &Path, questions: &[&str]) -> Result<Vec<Response<Text>>, Box<dyn Error>> {
    let adapter = Adapter::new(endpoint).client("conversation", "1.0").cwd(cwd).reuse_thread(true);
    let budget = BudgetTracker::new(Budget { total_tokens: Some(1_000_000), ..Budget::default() });
    let mut session = Session::new();
    let mut responses = Vec::new();
    for question in questions {
        let prompt = Prompt::new("examples", "conversation")
            .section(Section::new("question", "Question", "${question}"))
            .param("question", question)
            .build()?;
        let limits = Limits::none().shared_budget(&budget);
        responses.push(adapter.evaluate::<Text>(&prompt, &mut session, limits).await?);
    }
    eprintln!("{} tokens in all", budget.used().total_tokens);
    Ok(responses)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let questions: Vec<String> = std::env::args().skip(1).collect();
    let mut questions: Vec<&str> = questions.iter().map(String::as_str).collect();
    if questions.is_empty() {
        questions = vec!["Say one.", "Say two.", "Say three."];
    }
    for response in run(server().into(), &std::env::current_dir()?, &questions).await? {
        println!("{}", response.text);
    }
    Ok(())
}

fn server() -> Program {
    let command = std::env::var("APP_SERVER").unwrap_or_else(|_| "loomd app-server -c model_provider=rehearsal".into());
    let mut words = command.split_whitespace();
    Program::new(words.next().unwrap_or("loomd")).args(words)
}
