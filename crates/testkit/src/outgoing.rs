//! [`Outgoing`]: the sending side of a connection, as lines on a pipe or frames on a websocket.

use std::io;

use futures_util::SinkExt;
use futures_util::stream::SplitSink;
use tokio::io::{AsyncWrite, AsyncWriteExt};

use crate::ws::{Frame, RawWebSocket};

pub(crate) enum Outgoing {
    Lines(Box<dyn AsyncWrite + Send + Unpin>),
    Frames(SplitSink<RawWebSocket, Frame>),
    Closed,
}

impl Outgoing {
    /// Sends one whole message.
    pub(crate) async fn message(&mut self, mut message: Vec<u8>) -> io::Result<()> {
        if let Self::Lines(_) = self {
            message.push(b'\n');
        }
        self.raw(message).await
    }

    /// Sends bytes unchanged: a part of a line, or one text frame.
    pub(crate) async fn raw(&mut self, bytes: Vec<u8>) -> io::Result<()> {
        match self {
            Self::Lines(pipe) => {
                pipe.write_all(&bytes).await?;
                pipe.flush().await
            }
            Self::Frames(_) => {
                let text = String::from_utf8(bytes).expect("a text frame must be UTF-8; send others with `send_frame`");
                self.frame(Frame::text(text)).await
            }
            Self::Closed => panic!("the test has closed this connection and cannot send on it"),
        }
    }

    pub(crate) async fn frame(&mut self, frame: Frame) -> io::Result<()> {
        match self {
            Self::Frames(frames) => frames.send(frame).await.map_err(io::Error::other),
            Self::Lines(_) => panic!("a connection of lines has no frames"),
            Self::Closed => panic!("the test has closed this connection and cannot send on it"),
        }
    }

    /// Ends the input of the server: end of file, or a close frame.
    pub(crate) async fn close(&mut self) {
        // The server may have closed first.
        let _ = match std::mem::replace(self, Self::Closed) {
            Self::Lines(mut pipe) => pipe.shutdown().await,
            Self::Frames(mut frames) => frames.send(Frame::Close(None)).await.map_err(io::Error::other),
            Self::Closed => Ok(()),
        };
    }
}
