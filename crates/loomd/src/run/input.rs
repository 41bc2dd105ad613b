//! The input of a turn: prompt, images, and output schema.

use std::fs::{self, File};
use std::io::{IsTerminal, Read, Write, stderr, stdin};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use anyhow::Result;
use loomd_client::Input;
use loomd_protocol::JsonValue;

use crate::cli::UsageError;

/// Longest prompt read from stdin; servers accept at most a megabyte.
const MAX_PROMPT: u64 = 16 * 1024 * 1024;

/// How long reading stdin may take before a notice on stderr. An open pipe that nobody writes to looks like a hang.
const PATIENCE: Duration = Duration::from_secs(2);

/// The prompt of a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Prompt {
    Text(String),
    /// There is none yet; a line is read from the terminal.
    Ask,
}

/// The prompt of a command line: its words, followed by stdin if that is a pipe or a file. `-` alone is stdin.
/// Without words it is stdin, and at a terminal it is asked for.
pub fn prompt(words: &[String]) -> Result<Prompt> {
    match words {
        [] if stdin().is_terminal() => Ok(Prompt::Ask),
        [] => text(None).map(Prompt::Text),
        words => text(Some(words.join(" "))).map(Prompt::Text),
    }
}

/// The prompt of one argument, followed by stdin if that is a pipe or a file. Without an argument, and for `-`, it is
/// stdin.
pub fn text(argument: Option<String>) -> Result<String> {
    let text = match argument {
        Some(text) if text != "-" => match stdin().is_terminal() {
            true => text,
            false => with_stdin(text, &read_stdin()?),
        },
        None if stdin().is_terminal() => {
            return Err(UsageError::new("no prompt; give one, or `-` to read it from stdin"));
        }
        _ => read_stdin()?,
    };
    checked(text)
}

/// Refuses an empty prompt.
pub fn checked(text: String) -> Result<String> {
    if text.trim().is_empty() { Err(UsageError::new("the prompt is empty")) } else { Ok(text) }
}

fn with_stdin(text: String, more: &str) -> String {
    match more.trim_end_matches('\n') {
        "" => text,
        more => format!("{text}\n\n<stdin>\n{more}\n</stdin>"),
    }
}

fn read_stdin() -> Result<String> {
    let (done, reading) = channel::<()>();
    let notice = thread::spawn(move || {
        if reading.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
            _ = writeln!(stderr(), "reading stdin to its end; `< /dev/null` if nothing comes from there");
        }
    });
    let mut bytes = Vec::new();
    let read = stdin().take(MAX_PROMPT + 1).read_to_end(&mut bytes);
    drop(done);
    _ = notice.join();
    read?;
    if bytes.len() as u64 > MAX_PROMPT {
        return Err(UsageError::new("the prompt on stdin is longer than 16 MiB"));
    }
    String::from_utf8(bytes).map_err(|_| UsageError::new("the prompt on stdin is not UTF-8"))
}

/// The first bytes of the image formats that models take.
const IMAGES: [(&[u8], usize); 5] =
    [(b"\x89PNG\r\n\x1a\n", 0), (b"\xff\xd8\xff", 0), (b"GIF87a", 0), (b"GIF89a", 0), (b"WEBP", 8)];

/// The absolute paths of the images. Refuses files that are none.
pub fn images(files: &[PathBuf]) -> Result<Vec<String>> {
    let checked = |file: &PathBuf| {
        let fail = |problem: &str| UsageError::new(format!("--image {}: {problem}", file.display()));
        if file.is_dir() {
            return Err(fail("it is a directory"));
        }
        let mut first = Vec::new();
        let read = File::open(file).and_then(|file| file.take(16).read_to_end(&mut first));
        read.map_err(|error| fail(&error.to_string()))?;
        if !IMAGES.iter().any(|(bytes, at)| first.get(*at..).is_some_and(|rest| rest.starts_with(bytes))) {
            return Err(fail("not an image: expected PNG, JPEG, GIF or WebP"));
        }
        let path = std::path::absolute(file)?;
        path.to_str().map(str::to_owned).ok_or_else(|| fail("the path is not UTF-8"))
    };
    files.iter().map(checked).collect()
}

/// The text and the images.
pub fn input(text: String, images: Vec<String>) -> Input {
    images.into_iter().fold(Input::text(text), |input, image| input.and_local_image(image))
}

pub fn output_schema(file: Option<&Path>) -> Result<Option<JsonValue>> {
    let Some(file) = file else { return Ok(None) };
    let fail = |problem: String| UsageError::new(format!("the output schema {}: {problem}", file.display()));
    let text = fs::read_to_string(file).map_err(|error| fail(error.to_string()))?;
    match serde_json::from_str(&text) {
        Ok(schema @ JsonValue::Object(_)) => Ok(Some(schema)),
        Ok(_) => Err(fail("expected a JSON object".to_owned())),
        Err(error) => Err(fail(error.to_string())),
    }
}

/// The absolute path of the working directory.
pub fn folder(folder: Option<&Path>) -> Result<String> {
    let folder = match folder {
        Some(folder) => {
            folder.canonicalize().map_err(|error| UsageError::new(format!("{}: {error}", folder.display())))?
        }
        None => std::env::current_dir()?,
    };
    if !folder.is_dir() {
        return Err(UsageError::new(format!("{} is not a directory", folder.display())));
    }
    let path = folder.to_str().ok_or_else(|| UsageError::new(format!("not a UTF-8 path: {}", folder.display())))?;
    Ok(path.to_owned())
}
