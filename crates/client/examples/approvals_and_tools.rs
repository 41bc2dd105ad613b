//! Asks for approval of commands in the terminal, and offers a tool to the model.
//!
//! ```sh
//! cargo run -p loomd-client --example approvals_and_tools -- "What is 19 times 23? Multiply."
//! ```
//!
//! `APP_SERVER` is the command of the server; by default loomd with its rehearsal model, which needs no key.

use std::io::Write;

use loomd_client::handler::{tool_failure, tool_success};
use loomd_client::protocol::{
    AskForApproval, CommandExecutionApprovalDecision, CommandExecutionRequestApprovalParams, DynamicTool,
    DynamicToolCallParams, DynamicToolCallResponse, DynamicToolSpec, ThreadStartParams,
};
use loomd_client::{Client, Error, Handler, Options, Program};
use serde_json::json;

struct TerminalHandler;

impl Handler for TerminalHandler {
    async fn approve_command(
        &self,
        request: CommandExecutionRequestApprovalParams,
    ) -> CommandExecutionApprovalDecision {
        let command = request.command.unwrap_or_default();
        // Reading a line blocks; a blocking thread keeps other work going.
        let yes = tokio::task::spawn_blocking(move || {
            print!("Run `{command}`? [y/N] ");
            _ = std::io::stdout().flush();
            let mut answer = String::new();
            std::io::stdin().read_line(&mut answer).is_ok() && answer.trim() == "y"
        });
        match yes.await {
            Ok(true) => CommandExecutionApprovalDecision::Accept,
            _ => CommandExecutionApprovalDecision::Decline,
        }
    }

    async fn call_tool(&self, request: DynamicToolCallParams) -> DynamicToolCallResponse {
        let number = |name: &str| request.arguments[name].as_f64();
        match (request.tool.as_str(), number("a"), number("b")) {
            ("multiply", Some(a), Some(b)) => {
                println!("multiplying {a} by {b}");
                tool_success((a * b).to_string())
            }
            ("multiply", ..) => tool_failure("a and b must be numbers"),
            (other, ..) => tool_failure(format!("there is no tool {other}")),
        }
    }
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    // The rehearsal model follows these words literally; other models take a question.
    let usual = r#"Run `date`; call multiply with {"a": 19, "b": 23}"#;
    let question = std::env::args().nth(1).unwrap_or_else(|| usual.to_owned());
    let options = Options::new("approvals", "1.0").handler(TerminalHandler).approval_policy(AskForApproval::Untrusted);
    let client = Client::connect(server(), options).await?;
    let multiply = DynamicTool {
        name: "multiply".into(),
        description: "Multiplies two numbers.".into(),
        input_schema: json!({
            "type": "object",
            "properties": { "a": { "type": "number" }, "b": { "type": "number" } },
            "required": ["a", "b"],
        }),
        defer_loading: false,
    };
    let tools = Some(vec![DynamicToolSpec::Function(multiply)]);
    let thread = client.start_thread(ThreadStartParams { dynamic_tools: tools, ..Default::default() }).await?;
    let done = thread.run(question).await?;
    println!("{}", done.agent_message.unwrap_or_default());
    client.close().await;
    Ok(())
}

fn server() -> Program {
    let command = std::env::var("APP_SERVER").unwrap_or_else(|_| "loomd app-server -c model_provider=rehearsal".into());
    let mut words = command.split_whitespace();
    Program::new(words.next().unwrap_or("loomd")).args(words)
}
