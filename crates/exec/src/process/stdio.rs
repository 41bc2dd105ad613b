//! The standard streams of a program (nothing, pipes or a terminal), and the parent's ends of them.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::fs::{Mode, OFlags};
use rustix::termios::{Winsize, tcsetwinsize};
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncReadExt, AsyncWriteExt, Interest};
use tokio::net::unix::pipe;

use super::platform::open_terminal;

/// How a program is connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stdio {
    /// stdout and stderr apart; stdin is a pipe or empty.
    Pipes { stdin: bool },
    /// stdout and stderr in one pipe, so that they keep their order; stdin is empty.
    OnePipe,
    /// A terminal of its own.
    Terminal(Size),
}

/// The size of a terminal, in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    pub rows: u16,
    pub cols: u16,
}

impl Default for Size {
    fn default() -> Self {
        Self { rows: 24, cols: 80 }
    }
}

/// The master side of a program's terminal. Open until the last clone is dropped.
#[derive(Clone, Debug)]
pub struct Terminal(Arc<AsyncFd<OwnedFd>>);

impl Terminal {
    pub fn resize(&self, size: Size) -> io::Result<()> {
        set_size(self.0.get_ref(), size)
    }
}

/// The read end of a program's output.
#[derive(Debug)]
pub struct Output(OutputSource);

#[derive(Debug)]
enum OutputSource {
    Pipe(pipe::Receiver),
    Terminal(Terminal),
}

impl Output {
    /// Reads what is available, waiting for at least one byte. Returns 0 once no process holds the other end.
    /// Cancel-safe.
    pub async fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match &mut self.0 {
            OutputSource::Pipe(pipe) => pipe.read(buffer).await,
            OutputSource::Terminal(terminal) => {
                let read = |fd: &OwnedFd| Ok(rustix::io::read(fd, &mut *buffer)?);
                match terminal.0.async_io(Interest::READABLE, read).await {
                    // A terminal returns EIO once no process has its other side open.
                    Err(error) if error.raw_os_error() == Some(rustix::io::Errno::IO.raw_os_error()) => Ok(0),
                    other => other,
                }
            }
        }
    }
}

/// The write end of a program's input. Dropping it closes a pipe.
#[derive(Debug)]
pub struct Input(InputTarget);

#[derive(Debug)]
enum InputTarget {
    Pipe(pipe::Sender),
    Terminal(Terminal),
}

impl Input {
    pub async fn write_all(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        match &mut self.0 {
            InputTarget::Pipe(pipe) => pipe.write_all(bytes).await,
            InputTarget::Terminal(terminal) => {
                while !bytes.is_empty() {
                    let write = |fd: &OwnedFd| Ok(rustix::io::write(fd, bytes)?);
                    let written = terminal.0.async_io(Interest::WRITABLE, write).await?;
                    bytes = &bytes[written..];
                }
                Ok(())
            }
        }
    }

    /// Lets the program read end of file. On a terminal this writes a line end and the end-of-transmission character,
    /// which has this meaning only at the start of a line.
    pub async fn close(mut self) -> io::Result<()> {
        match self.0 {
            InputTarget::Pipe(_) => Ok(()),
            InputTarget::Terminal(_) => self.write_all(b"\n\x04").await,
        }
    }
}

pub(super) struct ParentEnds {
    pub stdin: Option<Input>,
    pub stdout: Output,
    pub stderr: Option<Output>,
    pub terminal: Option<Terminal>,
}

/// Our ends, and the program's stdin, stdout and stderr. The parent's ends never block; the program's do.
pub(super) fn connect(stdio: Stdio) -> io::Result<(ParentEnds, [OwnedFd; 3])> {
    match stdio {
        Stdio::Pipes { stdin } => {
            let (input, their_stdin) = if stdin {
                let (theirs, ours) = io::pipe()?;
                (Some(Input(InputTarget::Pipe(pipe::Sender::from_owned_fd(ours.into())?))), theirs.into())
            } else {
                (None, nothing()?)
            };
            let (stdout, their_stdout) = output_pipe()?;
            let (stderr, their_stderr) = output_pipe()?;
            let ours = ParentEnds { stdin: input, stdout, stderr: Some(stderr), terminal: None };
            Ok((ours, [their_stdin, their_stdout, their_stderr]))
        }
        Stdio::OnePipe => {
            let (stdout, theirs) = output_pipe()?;
            let ours = ParentEnds { stdin: None, stdout, stderr: None, terminal: None };
            let stderr = theirs.try_clone()?;
            Ok((ours, [nothing()?, theirs, stderr]))
        }
        Stdio::Terminal(size) => {
            let (terminal, theirs) = open_terminal()?;
            set_size(&terminal, size)?;
            rustix::io::ioctl_fionbio(&terminal, true)?;
            let watched = super::watch::watch(terminal, Interest::READABLE | Interest::WRITABLE)?;
            let terminal = Terminal(Arc::new(watched));
            let ours = ParentEnds {
                stdin: Some(Input(InputTarget::Terminal(terminal.clone()))),
                stdout: Output(OutputSource::Terminal(terminal.clone())),
                stderr: None,
                terminal: Some(terminal),
            };
            Ok((ours, [theirs.try_clone()?, theirs.try_clone()?, theirs]))
        }
    }
}

fn set_size(terminal: &OwnedFd, size: Size) -> io::Result<()> {
    let size = Winsize { ws_row: size.rows, ws_col: size.cols, ws_xpixel: 0, ws_ypixel: 0 };
    Ok(tcsetwinsize(terminal, size)?)
}

fn output_pipe() -> io::Result<(Output, OwnedFd)> {
    let (ours, theirs) = io::pipe()?;
    Ok((Output(OutputSource::Pipe(pipe::Receiver::from_owned_fd(ours.into())?)), theirs.into()))
}

pub(super) fn nothing() -> io::Result<OwnedFd> {
    Ok(rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?)
}
