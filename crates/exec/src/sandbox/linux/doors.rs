//! Ports on the loopback of a confined command that somebody outside answers. They are opened inside, where nothing
//! else is to be reached and so no port is taken, and handed out; the network outside knows nothing of them, and
//! nobody there can connect to them.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream as StdUnixStream;
use std::sync::Arc;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
    recvmsg, sendmsg,
};
use tokio::io::Interest;
use tokio::net::{TcpListener, UnixStream};

use crate::command::Channel;

/// The most that are ever asked for; it bounds what is taken from a message.
const MOST: usize = 4;

/// The outer side of a command's ports.
#[derive(Debug)]
pub struct Doors {
    line: UnixStream,
    count: usize,
}

impl Doors {
    pub(super) fn new(count: usize) -> io::Result<(Self, Channel)> {
        let (ours, theirs) = StdUnixStream::pair()?;
        ours.set_nonblocking(true)?;
        Ok((Self { line: UnixStream::from_std(ours)?, count }, Channel(Arc::new(theirs.into()))))
    }

    /// Where the command connects to, in the order of the ports; once the confinement stands. An error when it never
    /// does.
    pub async fn open(&self) -> io::Result<Vec<TcpListener>> {
        let listeners = self.line.async_io(Interest::READABLE, || receive(self.line.as_fd())).await?;
        if listeners.len() != self.count {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let listen = |listener: OwnedFd| {
            let listener = std::net::TcpListener::from(listener);
            listener.set_nonblocking(true)?;
            TcpListener::from_std(listener)
        };
        listeners.into_iter().map(listen).collect()
    }

    /// Resolves when nothing is left of the sandbox, and of the command that was to be run in it.
    pub async fn closed(&self) {
        let mut nothing = [0; 16];
        loop {
            let read = self.line.async_io(Interest::READABLE, || Ok(rustix::io::read(&self.line, &mut nothing)?)).await;
            // Nothing that is said after the ports counts.
            if !matches!(read, Ok(1..)) {
                return;
            }
        }
    }
}

fn receive(line: BorrowedFd) -> io::Result<Vec<OwnedFd>> {
    let mut byte = [0];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    recvmsg(line, &mut [IoSliceMut::new(&mut byte)], &mut control, RecvFlags::CMSG_CLOEXEC)?;
    let descriptors = control.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
        _ => None,
    });
    Ok(descriptors.flatten().collect())
}

/// Inside, before anything of the command runs: opens the ports and hands them out.
pub(super) fn open(ports: &[u16], line: &OwnedFd) -> io::Result<()> {
    let bind = |port: &u16| std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, *port));
    let listeners = ports.iter().map(bind).collect::<io::Result<Vec<_>>>()?;
    let descriptors: Vec<_> = listeners.iter().map(AsFd::as_fd).collect();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !control.push(SendAncillaryMessage::ScmRights(&descriptors)) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    sendmsg(line, &[IoSlice::new(b"+")], &mut control, SendFlags::NOSIGNAL)?;
    Ok(())
}
