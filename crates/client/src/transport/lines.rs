//! Messages as lines on pipes. A line may arrive in any number of reads; one that is too long is skipped.

use std::mem::take;

use bytes::Bytes;
use memchr::memchr;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::mpsc;
use tracing::{debug, warn};

use super::{MAX_MESSAGE, abandoned};

const BUFFER: usize = 64 * 1024;

/// Reads lines until the pipe ends. Goes on reading when `lines` is closed, so that the writing process is not
/// blocked.
pub(super) async fn read(reader: impl AsyncRead + Unpin, lines: mpsc::Sender<Bytes>) {
    let mut reader = BufReader::with_capacity(BUFFER, reader);
    let mut splitter = Lines::new(MAX_MESSAGE);
    let mut ready = Vec::new();
    loop {
        let count = match reader.fill_buf().await {
            Ok([]) => break,
            Ok(bytes) => {
                splitter.feed(bytes, &mut ready);
                bytes.len()
            }
            Err(error) => {
                debug!(%error, "cannot read from the server");
                break;
            }
        };
        reader.consume(count);
        for line in ready.drain(..) {
            _ = lines.send(line).await;
        }
    }
    splitter.finish(&mut ready);
    for line in ready {
        _ = lines.send(line).await;
    }
}

/// Writes lines until the channel is closed, then closes the pipe.
pub(super) async fn write(mut writer: impl AsyncWrite + Unpin, mut lines: mpsc::Receiver<Bytes>) {
    while let Some(line) = lines.recv().await {
        let mut message = Vec::with_capacity(line.len() + 1);
        message.extend_from_slice(&line);
        message.push(b'\n');
        let written = async {
            writer.write_all(&message).await?;
            writer.flush().await
        };
        let written = tokio::select! {
            written = written => written,
            () = abandoned(&lines) => return,
        };
        if let Err(error) = written {
            debug!(%error, "cannot write to the server");
            break;
        }
    }
    _ = writer.shutdown().await;
}

/// Splits bytes into lines without their line ends. Blank lines are left out.
struct Lines {
    limit: usize,
    /// The beginning of an incomplete line.
    partial: Vec<u8>,
    /// Whether the current line is too long.
    skipping: bool,
}

impl Lines {
    fn new(limit: usize) -> Self {
        Self { limit, partial: Vec::new(), skipping: false }
    }

    fn feed(&mut self, mut bytes: &[u8], ready: &mut Vec<Bytes>) {
        while let Some(end) = memchr(b'\n', bytes) {
            self.append(&bytes[..end]);
            self.complete(ready);
            bytes = &bytes[end + 1..];
        }
        self.append(bytes);
    }

    /// Completes a last line without line end.
    fn finish(&mut self, ready: &mut Vec<Bytes>) {
        self.complete(ready);
    }

    fn append(&mut self, part: &[u8]) {
        if self.skipping {
            return;
        }
        if self.partial.len() + part.len() > self.limit {
            warn!(limit = self.limit, "skipping a line that is too long");
            self.partial = Vec::new();
            self.skipping = true;
            return;
        }
        self.partial.extend_from_slice(part);
    }

    fn complete(&mut self, ready: &mut Vec<Bytes>) {
        self.skipping = false;
        let line = take(&mut self.partial);
        if !line.trim_ascii().is_empty() {
            ready.push(line.into());
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The lines of an input that arrives in chunks of `size`.
    fn lines(input: &[u8], size: usize, limit: usize) -> Vec<String> {
        let (mut splitter, mut ready) = (Lines::new(limit), Vec::new());
        for piece in input.chunks(size) {
            splitter.feed(piece, &mut ready);
        }
        splitter.finish(&mut ready);
        ready.iter().map(|line| String::from_utf8_lossy(line).trim_end().to_owned()).collect()
    }

    #[test]
    fn lines_are_whole_in_any_chunking() {
        for size in 1..20 {
            assert_eq!(lines(b"one\r\n\ntwo\n  \nlast", size, 10), ["one", "two", "last"], "{size}");
            assert_eq!(lines(b"12345\n123456\nx\n", size, 5), ["12345", "x"], "{size}");
            assert_eq!(lines(b"endless", size, 5), [] as [&str; 0], "{size}");
        }
    }

    proptest! {
        #[test]
        fn chunk_size_does_not_change_lines(input in "[ab\r\n]{0,60}", size in 1usize..30) {
            prop_assert_eq!(lines(input.as_bytes(), size, 7), lines(input.as_bytes(), 1000, 7));
        }
    }
}
