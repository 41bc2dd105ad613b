//! [`Keyboard`]: what is typed, as keys or, at a plain terminal, as lines. A thread reads the terminal; it cannot be
//! woken and ends with the process.

use std::fs::File;
use std::io::{self, Read};
use std::thread;
use std::time::Duration;

use loomd_editor::{Key, KeyParser};
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout_at};

/// Capacity of the queue of what was read.
const CHUNKS: usize = 64;

/// How long the rest of an escape sequence may take. An escape character alone is a key after that.
const ESCAPE_WAIT: Duration = Duration::from_millis(50);

/// Longest line of a plain terminal.
const MAX_LINE: usize = 1024 * 1024;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Typed {
    Keys(Vec<Key>),
    Line(String),
    /// Ctrl-D at a plain terminal.
    EndOfInput,
    /// The terminal is gone.
    Closed,
}

pub enum Keyboard {
    Keys {
        chunks: mpsc::Receiver<Vec<u8>>,
        parser: KeyParser,
        /// When an escape character alone becomes a key.
        flush_at: Option<Instant>,
    },
    Lines {
        chunks: mpsc::Receiver<Vec<u8>>,
        line: Vec<u8>,
        rest: Vec<u8>,
    },
}

pub fn keys(terminal: File) -> io::Result<Keyboard> {
    Ok(Keyboard::Keys { chunks: read(terminal)?, parser: KeyParser::default(), flush_at: None })
}

pub fn lines(terminal: File) -> io::Result<Keyboard> {
    Ok(Keyboard::Lines { chunks: read(terminal)?, line: Vec::new(), rest: Vec::new() })
}

impl Keyboard {
    /// What is typed next. Cancel-safe.
    pub async fn next(&mut self) -> Typed {
        match self {
            Self::Keys { chunks, parser, flush_at } => loop {
                let next = match flush_at {
                    Some(at) => timeout_at(*at, chunks.recv()).await,
                    None => Ok(chunks.recv().await),
                };
                let keys = match next {
                    // An end of the input in raw mode is the end of the terminal.
                    Ok(None) => return Typed::Closed,
                    Ok(Some(chunk)) if chunk.is_empty() => return Typed::Closed,
                    Ok(Some(chunk)) => parser.push(&chunk),
                    Err(_) => parser.flush().into_iter().collect(),
                };
                *flush_at = parser.is_ambiguous().then(|| Instant::now() + ESCAPE_WAIT);
                if !keys.is_empty() {
                    return Typed::Keys(keys);
                }
            },
            Self::Lines { chunks, line, rest } => loop {
                if let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
                    line.extend(rest.drain(..=end));
                    let whole = std::mem::take(line);
                    return Typed::Line(String::from_utf8_lossy(&whole).trim_end_matches(['\n', '\r']).to_owned());
                }
                line.append(rest);
                line.truncate(MAX_LINE);
                match chunks.recv().await {
                    None => return Typed::Closed,
                    Some(chunk) if chunk.is_empty() && line.is_empty() => return Typed::EndOfInput,
                    Some(chunk) => *rest = chunk,
                }
            },
        }
    }
}

/// Reads chunks on a thread. An empty chunk is an end of the input, after which a terminal may go on.
fn read(mut terminal: File) -> io::Result<mpsc::Receiver<Vec<u8>>> {
    let (sender, chunks) = mpsc::channel(CHUNKS);
    let reading = move || {
        let mut buffer = [0; 16 * 1024];
        loop {
            match terminal.read(&mut buffer) {
                Ok(count) => {
                    if sender.blocking_send(buffer[..count].to_vec()).is_err() {
                        return;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return,
            }
        }
    };
    thread::Builder::new().name("keyboard".to_owned()).spawn(reading)?;
    Ok(chunks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_escape_character_alone_is_a_key() {
        let (sender, chunks) = mpsc::channel(4);
        let mut keyboard = Keyboard::Keys { chunks, parser: KeyParser::default(), flush_at: None };
        sender.send(b"\x1b".to_vec()).await.unwrap();
        assert_eq!(keyboard.next().await, Typed::Keys(vec![Key::Escape]));
        sender.send(b"\x1b[".to_vec()).await.unwrap();
        sender.send(b"Ab".to_vec()).await.unwrap();
        assert_eq!(keyboard.next().await, Typed::Keys(vec![Key::Up, Key::Char('b')]));
        drop(sender);
        assert_eq!(keyboard.next().await, Typed::Closed);
    }

    #[tokio::test]
    async fn lines_of_a_plain_terminal_end_at_line_ends() {
        let (sender, chunks) = mpsc::channel(4);
        let mut keyboard = Keyboard::Lines { chunks, line: Vec::new(), rest: Vec::new() };
        for chunk in ["one\ntw", "o\n", ""] {
            sender.send(chunk.as_bytes().to_vec()).await.unwrap();
        }
        assert_eq!(keyboard.next().await, Typed::Line("one".into()));
        assert_eq!(keyboard.next().await, Typed::Line("two".into()));
        assert_eq!(keyboard.next().await, Typed::EndOfInput);
    }
}
