//! The input of a turn: prompt, images, and output schema.

use std::fs;
use std::io::{IsTerminal, Read, stdin};
use std::path::{Path, PathBuf};

use anyhow::Result;
use loomd_client::Input;
use loomd_protocol::JsonValue;

use crate::cli::UsageError;

/// Longest prompt read from stdin; servers accept at most a megabyte.
const MAX_PROMPT: u64 = 16 * 1024 * 1024;

/// The prompt argument, or stdin if it is `-` or missing.
pub fn prompt(argument: Option<String>) -> Result<String> {
    let text = match argument {
        Some(text) if text != "-" => text,
        None if stdin().is_terminal() => {
            return Err(UsageError::new("no prompt; give one, or `-` to read it from stdin"));
        }
        _ => read_stdin()?,
    };
    if text.trim().is_empty() { Err(UsageError::new("the prompt is empty")) } else { Ok(text) }
}

pub fn read_stdin() -> Result<String> {
    let mut bytes = Vec::new();
    stdin().take(MAX_PROMPT + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_PROMPT {
        return Err(UsageError::new("the prompt on stdin is longer than 16 MiB"));
    }
    String::from_utf8(bytes).map_err(|_| UsageError::new("the prompt on stdin is not UTF-8"))
}

/// The text and the absolute paths of the images.
pub fn input(text: String, images: &[PathBuf]) -> Result<Input> {
    images.iter().try_fold(Input::text(text), |input, image| {
        if !image.is_file() {
            return Err(UsageError::new(format!("no such image: {}", image.display())));
        }
        let path = std::path::absolute(image)?;
        let path = path.to_str().ok_or_else(|| UsageError::new(format!("not a UTF-8 path: {}", image.display())))?;
        Ok(input.and_local_image(path))
    })
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
