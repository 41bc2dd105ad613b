//! [`CapturedOutput`]: what a process wrote to a pipe, for assertions and panic messages.

use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncReadExt};

use crate::TIMEOUT;
use crate::watched_value::WatchedValue;

/// Only the end is kept, so that a verbose server cannot fill the test's memory.
const MAX_KEPT: usize = 4 << 20;

/// The output of a process so far. Clones share it, and it stays readable after the process has exited.
#[derive(Clone)]
pub struct CapturedOutput(Arc<WatchedValue<Output>>);

#[derive(Default)]
struct Output {
    bytes: Vec<u8>,
    ended: bool,
}

impl CapturedOutput {
    /// Reads until the pipe ends. The task ends with the pipe, not with this handle: a process whose pipe is not read
    /// would block.
    pub(crate) fn of(mut pipe: impl AsyncRead + Send + Unpin + 'static) -> Self {
        let output = Arc::new(WatchedValue::<Output>::default());
        let kept = Arc::clone(&output);
        tokio::spawn(async move {
            let mut chunk = vec![0; 16 << 10];
            while let Ok(length @ 1..) = pipe.read(&mut chunk).await {
                kept.update(|output| output.append(&chunk[..length]));
            }
            kept.update(|output| output.ended = true);
        });
        Self(output)
    }

    /// The output so far.
    pub fn text(&self) -> String {
        self.0.read(Output::text)
    }

    /// The whole output: waits until no process holds the pipe.
    pub async fn to_end(&self) -> String {
        let ended = self.0.until(|output| output.ended.then(|| output.text()));
        let Ok(text) = tokio::time::timeout(TIMEOUT, ended).await else {
            panic!("a process still holds this output open after {TIMEOUT:?}; so far: {}", self.tail());
        };
        text
    }

    /// The first match of `look` in the text, or `None` if the output ends without one.
    pub(crate) async fn find<R>(&self, look: impl Fn(&str) -> Option<R>) -> Option<R> {
        self.0
            .until(|output| match look(&output.text()) {
                Some(found) => Some(Some(found)),
                None => output.ended.then_some(None),
            })
            .await
    }

    /// The last lines, for a panic message.
    pub(crate) fn tail(&self) -> String {
        let text = self.text();
        let start = text.char_indices().rev().nth(2000).map_or(0, |(index, _)| index);
        text[start..].trim_end().to_owned()
    }
}

impl Output {
    fn append(&mut self, chunk: &[u8]) {
        self.bytes.extend_from_slice(chunk);
        if self.bytes.len() > 2 * MAX_KEPT {
            self.bytes.drain(..self.bytes.len() - MAX_KEPT);
        }
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }
}
