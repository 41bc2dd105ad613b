//! The lines that are not for the model: commands that begin with `/`, and `!` before a shell command.

use loomd_client::protocol::ReviewTarget;
use loomd_editor::MenuItem;

/// A line of input, by what it is for.
#[derive(Clone, Debug, PartialEq)]
pub enum Line {
    /// For the model.
    Prompt(String),
    /// For the user's shell.
    Shell(String),
    Command(Command),
}

#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    Help,
    /// Without an argument, this and the others let the user choose.
    Model(Option<String>),
    Effort(Option<String>),
    Mode(Option<String>),
    Permissions(Option<String>),
    Status,
    Diff,
    New,
    Resume(Option<String>),
    Fork,
    Compact,
    Review(ReviewTarget),
    Mcp,
    Skills,
    Export(Option<String>),
    Quit,
}

/// Name, argument, and what it does.
const COMMANDS: [(&str, &str, &str); 16] = [
    ("model", "[NAME]", "choose the model"),
    ("effort", "[EFFORT]", "choose how much the model reasons"),
    ("mode", "[plan|default]", "plan first, or work at once"),
    ("permissions", "[PRESET]", "choose what commands may do and when approval is requested"),
    ("status", "", "show the thread, its settings and its tokens"),
    ("diff", "", "show the changes in the working tree"),
    ("new", "", "start a new thread"),
    ("resume", "[ID|last|all]", "resume a thread"),
    ("fork", "", "go on in a copy of this thread"),
    ("compact", "", "shorten the history to make room"),
    ("review", "[base BRANCH|commit SHA|TEXT]", "review changes; uncommitted ones by default"),
    ("mcp", "", "list the MCP servers and their tools"),
    ("skills", "", "list the skills"),
    ("export", "[FILE]", "write this thread to a Markdown or JSON file"),
    ("help", "", "list the commands and keys"),
    ("quit", "", "leave"),
];

const KEYS: [(&str, &str); 11] = [
    ("Enter", "send; while a turn runs, add to it"),
    ("Ctrl-J, Alt-Enter", "a new line, also \\ before Enter"),
    ("Up, Down", "earlier inputs"),
    ("Ctrl-R", "search them"),
    ("Tab", "complete a /command or an @file"),
    ("@name", "find a file"),
    ("!command", "run a command in your shell; the model sees its output"),
    ("Ctrl-O", "show the whole output of the last command"),
    ("Ctrl-C", "interrupt the turn; at an empty prompt, twice: leave"),
    ("Ctrl-D", "leave"),
    ("Ctrl-Z", "suspend"),
];

/// Parses an input. Fails with a message for the user.
pub fn parse(input: &str) -> Result<Line, String> {
    let text = input.trim();
    if let Some(command) = text.strip_prefix('!') {
        let command = command.trim();
        return if command.is_empty() {
            Err("no command after `!`".to_owned())
        } else {
            Ok(Line::Shell(command.to_owned()))
        };
    }
    let Some(rest) = text.strip_prefix('/') else { return Ok(Line::Prompt(input.trim_end().to_owned())) };
    let (name, argument) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    // A path or a comment is no command.
    if name.is_empty() || name.contains(['/', '.', '*']) {
        return Ok(Line::Prompt(input.trim_end().to_owned()));
    }
    let argument = Some(argument.trim()).filter(|argument| !argument.is_empty()).map(str::to_owned);
    command(&name.to_lowercase(), argument).map(Line::Command)
}

fn command(name: &str, argument: Option<String>) -> Result<Command, String> {
    let takes_none = COMMANDS.iter().any(|(known, argument, _)| *known == name && argument.is_empty());
    if let (true, Some(argument)) = (takes_none, &argument) {
        return Err(format!("`/{name}` takes no argument: `{argument}`"));
    }
    Ok(match name {
        "model" => Command::Model(argument),
        "effort" => Command::Effort(argument),
        "mode" => Command::Mode(argument),
        "permissions" => Command::Permissions(argument),
        "status" => Command::Status,
        "diff" => Command::Diff,
        "new" => Command::New,
        "resume" => Command::Resume(argument),
        "fork" => Command::Fork,
        "compact" => Command::Compact,
        "review" => Command::Review(review_target(argument)?),
        "mcp" => Command::Mcp,
        "skills" => Command::Skills,
        "export" => Command::Export(argument),
        "help" => Command::Help,
        "quit" | "exit" => Command::Quit,
        unknown => {
            let likely = COMMANDS.iter().map(|(name, ..)| *name).min_by_key(|known| distance(unknown, known));
            let hint = likely.filter(|known| distance(unknown, known) <= 2);
            let hint = hint.map_or("`/help` lists them".to_owned(), |known| format!("did you mean `/{known}`?"));
            return Err(format!("unknown command `/{unknown}`; {hint}"));
        }
    })
}

fn review_target(argument: Option<String>) -> Result<ReviewTarget, String> {
    let Some(argument) = argument else { return Ok(ReviewTarget::UncommittedChanges) };
    let (word, rest) = argument.split_once(char::is_whitespace).unwrap_or((&argument, ""));
    let rest = rest.trim().to_owned();
    match word {
        "base" | "commit" if rest.is_empty() => Err(format!("`/review {word}` needs a name after it")),
        "base" => Ok(ReviewTarget::BaseBranch { branch: Some(rest) }),
        "commit" => Ok(ReviewTarget::Commit { sha: rest, title: None }),
        _ => Ok(ReviewTarget::Custom { instructions: Some(argument) }),
    }
}

/// The commands whose names begin with `prefix`, for a menu.
pub fn completions(prefix: &str) -> Vec<MenuItem> {
    let matching = COMMANDS.iter().filter(|(name, ..)| name.starts_with(prefix));
    matching
        .map(|(name, _, about)| MenuItem {
            value: format!("/{name}"),
            label: format!("/{name}"),
            detail: (*about).to_owned(),
        })
        .collect()
}

/// The commands and keys, as pairs.
pub fn help() -> Vec<(String, String)> {
    let commands = COMMANDS
        .iter()
        .map(|(name, argument, about)| (format!("/{name} {argument}").trim_end().to_owned(), (*about).to_owned()));
    let keys = KEYS.iter().map(|(key, about)| ((*key).to_owned(), (*about).to_owned()));
    commands.chain([(String::new(), String::new())]).chain(keys).collect()
}

/// The number of edits between two words.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    // A long word is no misspelt command.
    for (index, c) in one.chars().take(32).enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], index + 1);
        for at in 0..other.len() {
            let replaced = diagonal + usize::from(other[at] != c);
            diagonal = row[at + 1];
            row[at + 1] = replaced.min(diagonal + 1).min(row[at] + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_take_their_arguments() {
        let some = |text: &str| Some(text.to_owned());
        for (line, command) in [
            ("/model", Command::Model(None)),
            ("/model  gpt-5 ", Command::Model(some("gpt-5"))),
            ("/Quit", Command::Quit),
            ("/exit", Command::Quit),
            ("/review", Command::Review(ReviewTarget::UncommittedChanges)),
            ("/review base main", Command::Review(ReviewTarget::BaseBranch { branch: Some("main".into()) })),
            ("/review commit abc", Command::Review(ReviewTarget::Commit { sha: "abc".into(), title: None })),
            (
                "/review look at locks",
                Command::Review(ReviewTarget::Custom { instructions: Some("look at locks".into()) }),
            ),
            ("/export my file.md", Command::Export(some("my file.md"))),
        ] {
            assert_eq!(parse(line), Ok(Line::Command(command)), "{line}");
        }
    }

    #[test]
    fn other_lines_are_for_the_model_or_the_shell() {
        for line in ["hello", "/usr/bin is full", "/ is the root", "// a comment", "  indented", "a\n/quit"] {
            assert_eq!(parse(line), Ok(Line::Prompt(line.to_owned())), "{line}");
        }
        assert_eq!(parse("! ls -l "), Ok(Line::Shell("ls -l".into())));
    }

    #[test]
    fn mistakes_are_explained() {
        for (line, message) in [
            ("/modell", "unknown command `/modell`; did you mean `/model`?"),
            ("/frobnicate", "unknown command `/frobnicate`; `/help` lists them"),
            ("/new thread", "`/new` takes no argument: `thread`"),
            ("/review base", "`/review base` needs a name after it"),
            ("!", "no command after `!`"),
        ] {
            assert_eq!(parse(line), Err(message.to_owned()), "{line}");
        }
    }

    #[test]
    fn every_listed_command_is_known() {
        for (name, ..) in COMMANDS {
            assert!(parse(&format!("/{name}")).is_ok(), "{name}");
        }
        let names: Vec<String> = completions("mo").into_iter().map(|item| item.value).collect();
        assert_eq!(names, ["/model", "/mode"]);
    }
}
